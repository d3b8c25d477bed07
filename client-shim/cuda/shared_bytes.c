/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The bytes of shared memory: uploads, and fetches behind the work that may still write. Under the
 * lock, apart from obc_shared_wait_before.
 */
#include "client-shim/cuda/shared_inside.h"
#include "client-shim/session/log.h"
#include "client-shim/session/transfer.h"
#include "front/event.h"
#include "protocol/obc_calls.h"
#include "protocol/obf_calls.h"

static struct obc_shared *shared_of(struct obc_shadow *shadow)
{
	return (struct obc_shared *)shadow;
}

static bool shadow_protect(
	struct obc_shadow *shadow, uint64_t addr, uint64_t size, enum obc_shadow_access access)
{
	(void)shadow;
	return obc_region_protect(addr, size, access);
}

struct transfer {
	struct obc_shared *s;
	uint64_t addr, size;
	CUresult (*part)(struct transfer *t, struct obc_stream *at, uint64_t addr, uint64_t size);
};

static uint8_t *alias_of(const struct transfer *t, uint64_t addr)
{
	return t->s->shadow.alias + (addr - t->s->shadow.base);
}

/* Calls part() for the bytes of the range that the device has. */
static CUresult parts(struct transfer *t, struct obc_stream *at)
{
	CUresult result = CUDA_SUCCESS;

	if (!t->s->spans)
		return t->part(t, at, t->addr, t->size);
	for (size_t i = 0; i < t->s->n_spans && result == CUDA_SUCCESS; i++) {
		const struct obc_span *span = &t->s->spans[i];
		uint64_t from = ob_max(t->addr, span->base),
			 end = ob_min(t->addr + t->size, span->base + span->size);

		if (from < end)
			result = t->part(t, at, from, end - from);
	}
	return result;
}

static CUresult upload_part(struct transfer *t, struct obc_stream *at, uint64_t addr, uint64_t size)
{
	return obc_transfer_write(addr, alias_of(t, addr), size, at->base.handle, NULL, NULL);
}

/* The work that may still write some memory. Homes are never freed. */
struct wait {
	struct obf_ctx *ctx;
	uint64_t stream;
	struct obc_home *homes;
};

static struct wait wait_for(const struct obc_shared *s)
{
	return (struct wait){ s->home->ctx, s->stream, obc_shareds.homes };
}

static CUresult wait_in(struct obf_ctx *ctx, void *user)
{
	const struct wait *wait = user;
	struct obf_stream *stream = wait->stream ? ob_ids_get(&obf_stream_ids, wait->stream) : NULL;
	CUresult result = CUDA_SUCCESS;

	/* The stream waits for the function that makes the access. */
	if (obf_in_host_function)
		return CUDA_SUCCESS;
	if (stream)
		return obc_stream_wait(stream);
	for (struct obc_home *home = wait->homes; home && result == CUDA_SUCCESS; home = home->next)
		if (obc_home_alive(home) && home->ctx->device == ctx->device)
			result = home->ctx == ctx ? obf_attached()->ctx_synchronize(ctx)
						  : obf_ctx_settle(home->ctx);
	return result;
}

/*
 * Orders the home's stream behind the copies that read what an upload is about to replace: all that
 * the stream `handle` has now. A capture of that stream does not concern its copies.
 */
static CUresult behind_reader(struct obc_home *home, uint64_t handle)
{
	struct obf_stream *stream = ob_ids_get(&obf_stream_ids, handle),
			  *own = ob_ids_get(&obf_stream_ids, (uint64_t)(uintptr_t)home->stream);
	struct obf_event *order;
	CUresult result;

	if (!stream || !own) /* an ended stream's copies are waited for below */
		return CUDA_ERROR_INVALID_HANDLE;
	result = obf_event_find(home->order, home->ctx, &order);
	if (result == CUDA_SUCCESS && stream->ctx != home->ctx)
		result = CUDA_ERROR_INVALID_CONTEXT;
	if (result == CUDA_SUCCESS)
		result = obf_event_record(order, stream);
	if (result == CUDA_SUCCESS)
		result = obf_event_wait_put(order, own);
	home->ordered |= result == CUDA_SUCCESS;
	return result;
}

static CUresult behind_readers(struct obc_shared *s, struct obf_ctx *ctx)
{
	struct wait all = { ctx, 0, obc_shareds.homes };
	struct obc_readers readers = s->readers;
	CUresult result = CUDA_SUCCESS;

	/* The copies behind the function read what it writes. */
	if (obf_in_host_function)
		return CUDA_SUCCESS;
	s->readers = (struct obc_readers){ 0 };
	for (unsigned i = 0; i < readers.n && result == CUDA_SUCCESS; i++)
		result = behind_reader(s->home, readers.stream[i]);
	return readers.more || result != CUDA_SUCCESS ? wait_in(ctx, &all) : CUDA_SUCCESS;
}

static CUresult upload_in(struct obf_ctx *ctx, void *user)
{
	struct transfer *t = user;
	struct obc_stream *at = obc_home_transfers(t->s->home);
	CUresult result;

	if (!at)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = behind_readers(t->s, ctx);
	if (result == CUDA_SUCCESS)
		result = parts(t, at);
	obc_stream_mark(at, obc_log_last());
	/* The function waits for those in the other stream at its end. */
	if (at == obc_home_stream(t->s->home))
		t->s->home->pending = true;
	else
		t->s->home->prompt_pending = true;
	return result;
}

static CUresult shadow_upload(struct obc_shadow *shadow, uint64_t addr, uint64_t size)
{
	struct transfer t = { shared_of(shadow), addr, size, upload_part };

	return obf_ctx_run(t.s->home->ctx, upload_in, &t);
}

void obc_shared_wait_before(uint64_t addr)
{
	struct wait wait = { .ctx = NULL };
	size_t i;

	obc_shared_lock();
	i = obc_shared_at(addr);
	if (i < obc_shareds.n && obc_shareds.list[i]->shadow.base <= addr) {
		const struct obc_shadow *shadow = &obc_shareds.list[i]->shadow;

		if (shadow->state[(addr - shadow->base) / shadow->block] == OBC_SHADOW_DEVICE)
			wait = wait_for(obc_shareds.list[i]);
	}
	obc_shared_unlock();
	/* The fetch meets the same error and reports it. */
	if (wait.ctx)
		obf_ctx_run(wait.ctx, wait_in, &wait);
}

static CUresult fetch_part(struct transfer *t, struct obc_stream *at, uint64_t addr, uint64_t size)
{
	return obc_transfer_read(alias_of(t, addr), addr, size, at->base.handle);
}

static CUresult fetch_in(struct obf_ctx *ctx, void *user)
{
	struct transfer *t = user;
	struct obc_stream *at = obc_home_transfers(t->s->home);
	struct wait wait = wait_for(t->s);
	CUresult result = at ? wait_in(ctx, &wait) : CUDA_ERROR_INVALID_CONTEXT;

	if (result == CUDA_SUCCESS)
		result = parts(t, at);
	if (result != CUDA_SUCCESS)
		obf_ctx_note(ctx, result);
	return result;
}

static CUresult shadow_fetch(struct obc_shadow *shadow, uint64_t addr, uint64_t size)
{
	struct transfer t = { shared_of(shadow), addr, size, fetch_part };

	return obf_ctx_run(t.s->home->ctx, fetch_in, &t);
}

static bool shadow_touched(struct obc_shadow *shadow, uint64_t offset, uint64_t size,
	uint64_t *ret_offset, uint64_t *ret_size)
{
	return obc_piece_touched(&shared_of(shadow)->piece, offset, size, ret_offset, ret_size);
}

const struct obc_shadow_ops obc_shared_ops = {
	.protect = shadow_protect,
	.upload = shadow_upload,
	.fetch = shadow_fetch,
	.touched = shadow_touched,
};
