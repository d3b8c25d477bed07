/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/shared.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "client-shim/cuda/announce.h"
#include "client-shim/cuda/fault.h"
#include "client-shim/cuda/shared_inside.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/log.h"
#include "protocol/obc_calls.h"
#include "protocol/obf_calls.h"

_Atomic unsigned obc_shared_used;

struct obc_shareds obc_shareds;

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool forgotten;
static _Thread_local bool holds_lock; /* this thread; a fault under the lock is not served */
static _Thread_local bool accessed;   /* by the host function that runs in this thread */

void obc_shared_lock(void)
{
	pthread_mutex_lock(&shared_lock);
	holds_lock = true;
}

void obc_shared_unlock(void)
{
	holds_lock = false;
	pthread_mutex_unlock(&shared_lock);
}

/* ---- the list; under the lock ---- */

static bool fault_serve(uint64_t addr, int write);

bool obc_shared_ready(void)
{
	return obc_fault_install(fault_serve);
}

size_t obc_shared_at(uint64_t addr)
{
	size_t low = 0, high = obc_shareds.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct obc_shadow *shadow = &obc_shareds.list[middle]->shadow;

		if (shadow->base + shadow->size <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool obc_shared_add(struct obc_shared *s)
{
	size_t at = obc_shared_at(s->shadow.base);

	if (obc_shareds.n == obc_shareds.capacity) {
		size_t wanted = obc_shareds.capacity ? 2 * obc_shareds.capacity : 16;
		struct obc_shared **larger = realloc(obc_shareds.list, wanted * sizeof *larger);

		if (!larger)
			return false;
		obc_shareds.list = larger;
		obc_shareds.capacity = wanted;
	}
	memmove(obc_shareds.list + at + 1, obc_shareds.list + at,
		(obc_shareds.n - at) * sizeof *obc_shareds.list);
	obc_shareds.list[at] = s;
	obc_shareds.n++;
	obc_announce(s->shadow.base, s->shadow.size, true);
	atomic_fetch_add(&obc_shared_used, 1);
	return true;
}

void obc_shared_remove(const struct obc_shared *s)
{
	size_t at = obc_shared_at(s->shadow.base);

	obc_shareds.n--;
	obc_announce(s->shadow.base, s->shadow.size, false);
	memmove(obc_shareds.list + at, obc_shareds.list + at + 1,
		(obc_shareds.n - at) * sizeof *obc_shareds.list);
	atomic_fetch_sub(&obc_shared_used, 1);
}

/* ---- work of the device ---- */

/* The program's next accesses fault, so the handler must be ours by then. */
static CUresult give(struct obc_shadow *shadow, uint64_t addr, uint64_t size, bool writes)
{
	return obc_shared_ready() ? obc_shadow_give(shadow, addr, size, writes)
				  : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult obc_shared_launch(struct obc_stream *at)
{
	CUresult result = CUDA_SUCCESS;
	OBC_WAITS();

	obc_shared_lock();
	for (size_t i = 0; i < obc_shareds.n && result == CUDA_SUCCESS; i++) {
		struct obc_shared *s = obc_shareds.list[i];

		/* The memory of a stream that has ended is attached to all again. */
		if (s->stream && !ob_ids_get(&obf_stream_ids, s->stream))
			s->stream = 0;
		if (obc_home_here(s->home) && s->shadow.n_host &&
			(!s->stream || s->stream == at->base.handle))
			result = give(&s->shadow, s->shadow.base, s->shadow.size, true);
	}
	if (result == CUDA_SUCCESS)
		result = obc_home_gate(at);
	if (result != CUDA_SUCCESS)
		obc_shared_unlock();
	return result;
}

void obc_shared_launched(void)
{
	obc_shared_unlock();
}

static void reader_note(struct obc_readers *readers, const struct obc_stream *at)
{
	for (unsigned i = 0; i < readers->n; i++)
		if (readers->stream[i] == at->base.handle)
			return;
	if (readers->n == OBC_READERS_MAX)
		readers->more = true;
	else
		readers->stream[readers->n++] = at->base.handle;
}

CUresult obc_shared_work(struct obc_stream *at, uint64_t addr, uint64_t size, bool writes)
{
	CUresult result = CUDA_SUCCESS;
	bool found = false;
	OBC_WAITS();

	obc_shared_lock();
	for (size_t i = obc_shared_at(addr); i < obc_shareds.n && result == CUDA_SUCCESS; i++) {
		struct obc_shadow *shadow = &obc_shareds.list[i]->shadow;

		if (shadow->base >= addr + size)
			break;
		found = true;
		result = give(shadow, addr, size, writes);
		if (!writes)
			reader_note(&obc_shareds.list[i]->readers, at);
	}
	if (found && result == CUDA_SUCCESS)
		result = obc_home_gate(at);
	obc_shared_unlock();
	return result;
}

static CUresult uploads_wait(struct obf_ctx *ctx, void *user)
{
	struct obc_home *home = user;
	struct obf_stream *prompt = ob_ids_get(&obf_stream_ids, (uint64_t)(uintptr_t)home->prompt);
	struct obc_stream *at = obc_home_stream(home);
	CUresult result = CUDA_SUCCESS;

	(void)ctx;
	if (!at)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (home->prompt_pending && prompt)
		result = obc_stream_wait(prompt);
	home->prompt_pending = false;
	/* What other threads have uploaded there may wait for this function. */
	if (result == CUDA_SUCCESS && home->pending && !obc_home_blocked(home))
		result = obc_stream_wait(&at->base);
	return result;
}

/*
 * Kernels behind the function may be in the stream already, and their launches have uploaded
 * nothing that the function has written since.
 */
void obc_shared_host_function_end(void)
{
	CUresult result = CUDA_SUCCESS;
	OBC_WAITS();

	if (!accessed)
		return;
	accessed = false;
	obf_in_host_function = true; /* the stream still waits for it */
	obc_shared_lock();
	for (size_t i = 0; i < obc_shareds.n && result == CUDA_SUCCESS; i++) {
		struct obc_shadow *shadow = &obc_shareds.list[i]->shadow;

		if (obc_home_here(obc_shareds.list[i]->home))
			result = give(shadow, shadow->base, shadow->size, true);
	}
	/* A failed call has left its error in the session. */
	for (struct obc_home *home = obc_shareds.homes; home; home = home->next)
		if ((home->pending || home->prompt_pending) && obc_home_alive(home) &&
			obc_home_here(home))
			obf_ctx_note(home->ctx, obf_ctx_run(home->ctx, uploads_wait, home));
	obc_shared_unlock();
	obf_in_host_function = false;
}

/* ---- accesses of the program ---- */

static void warn_unserved(uint64_t addr, CUresult result)
{
	static _Atomic bool warned;

	if (!atomic_exchange(&warned, true))
		ob_error("the program reads managed or mapped memory at 0x%llx, but the device's "
			 "contents cannot be fetched (error %d): it gets the bytes that this "
			 "process had last. The next CUDA call returns the error",
			(unsigned long long)addr, (int)result);
}

static bool fault_serve(uint64_t addr, int write)
{
	CUresult result = CUDA_SUCCESS;
	bool ours = false;
	size_t i;

	if (holds_lock || atomic_load(&forgotten))
		return false;
	obc_shared_wait_before(addr);
	obc_shared_lock();
	i = obc_shared_at(addr);
	if (i < obc_shareds.n && obc_shareds.list[i]->shadow.base <= addr) {
		struct obc_shadow *shadow = &obc_shareds.list[i]->shadow;

		ours = true;
		accessed |= obf_in_host_function;
		if (write < 0)
			write = shadow->state[(addr - shadow->base) / shadow->block] ==
				OBC_SHADOW_CLEAN;
		result = obc_shadow_touch(shadow, addr, write > 0);
	}
	obc_shared_unlock();
	if (result == CUDA_ERROR_OPERATING_SYSTEM) {
		ob_error("managed or mapped memory at 0x%llx cannot be made accessible: mprotect "
			 "failed. Use fewer, larger allocations, or raise vm.max_map_count",
			(unsigned long long)addr);
		return false;
	}
	if (result != CUDA_SUCCESS)
		warn_unserved(addr, result);
	return ours;
}

void obc_shared_forget(void)
{
	atomic_store(&forgotten, true);
}

/* ---- the backend's functions ---- */

/* The device's side of new memory is zero too, so untouched pages are equal on both sides. */
static CUresult clear(struct obc_shared *s)
{
	struct obc_stream *at = obc_home_stream(s->home);
	struct obp_memset_req *req;
	struct obc_slot slot;

	req = at ? obc_log_begin(&slot, OBP_OP_MEMSET, sizeof *req) : NULL;
	if (!req)
		return at ? obc_log_error() : CUDA_ERROR_INVALID_CONTEXT;
	*req = (struct obp_memset_req){
		.dst = s->shadow.base,
		.element = 1,
		.pitch = s->shadow.size,
		.width = s->shadow.size,
		.height = 1,
		.stream = at->base.handle,
	};
	obc_stream_mark(at, slot.number);
	s->home->pending = true;
	return obc_log_commit(&slot);
}

static CUresult shared_make(struct obf_ctx *ctx, uint64_t size, struct obc_shared *s)
{
	CUresult result;

	s->home = obc_home_of(ctx);
	if (!s->home || !obc_shared_ready())
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obc_piece_take(ctx, size, &s->piece);
	if (result != CUDA_SUCCESS)
		return result;
	if (!obc_shadow_init(
		    &s->shadow, s->piece.base, s->piece.size, s->piece.alias, &obc_shared_ops))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS &&
		!obc_region_protect(s->piece.base, s->piece.size, OBC_SHADOW_WRITE))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = clear(s);
	if (result == CUDA_SUCCESS && !obc_shared_add(s))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		return result;
	obc_shadow_fini(&s->shadow);
	obc_piece_give(ctx, &s->piece, true);
	return result;
}

CUresult obc_shared_alloc(struct obf_ctx *ctx, struct obf_mem *mem)
{
	struct obc_shared *s = calloc(1, sizeof *s);
	CUresult result;
	OBC_WAITS();

	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	obc_shared_lock();
	result = shared_make(ctx, mem->size, s);
	obc_shared_unlock();
	if (result != CUDA_SUCCESS) {
		free(s);
		return result;
	}
	mem->base = s->shadow.base;
	mem->backend = s;
	return CUDA_SUCCESS;
}

CUresult obc_shared_free(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use)
{
	struct obc_shared *s = mem->backend;
	CUresult result;
	OBC_WAITS();

	obc_shared_lock();
	obc_shared_remove(s);
	obc_shadow_fini(&s->shadow);
	result = obc_piece_give(ctx, &s->piece, in_use);
	obc_shared_unlock();
	free(s);
	return result;
}

CUresult obc_shared_move(struct obf_stream *stream, uint64_t addr, uint64_t size, bool to_host)
{
	CUresult result = CUDA_SUCCESS;
	OBC_WAITS();

	if (!to_host)
		return obc_shared_work(obc_stream_of(stream), addr, size, true);
	obc_shared_wait_before(addr);
	obc_shared_lock();
	for (size_t i = obc_shared_at(addr); i < obc_shareds.n && result == CUDA_SUCCESS; i++) {
		if (obc_shareds.list[i]->shadow.base >= addr + size)
			break;
		result = obc_shadow_fetch(&obc_shareds.list[i]->shadow, addr, size);
	}
	obc_shared_unlock();
	return result;
}

CUresult obc_shared_attach(struct obf_stream *stream, const struct obf_mem *mem, unsigned flags)
{
	struct obc_shared *s = mem->backend;

	obc_shared_lock();
	s->stream = flags & CU_MEM_ATTACH_SINGLE ? stream->handle : 0;
	obc_shared_unlock();
	return CUDA_SUCCESS;
}
