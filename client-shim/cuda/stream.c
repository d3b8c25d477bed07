/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/stream.h"

#include <string.h>

#include "base/ids.h"
#include "base/opt.h"
#include "client-shim/session/log.h"
#include "front/green_view.h"
#include "protocol/obc_calls.h"

CUresult obc_stream_open(struct obf_stream *base)
{
	struct obc_stream *stream = obc_stream_of(base);

	stream->home = obc_ctx_of(base->ctx);
	stream->uploads_seen = 0;
	if (base->legacy)
		return CUDA_SUCCESS; /* the server creates the legacy stream with the context */
	if (ob_id_index(base->handle) >= OBC_STREAM_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!base->blocking)
		atomic_store(&stream->home->other_streams, true);
	if (base->green)
		return obc_call_op_green_stream(
			base->handle, (uint64_t)(uintptr_t)base->green->handle, base->priority);
	return obc_call_op_stream_create(base->handle, base->flags, base->priority);
}

void obc_stream_close(struct obf_stream *base, bool ctx_ended)
{
	struct obc_stream *stream = obc_stream_of(base);
	uint64_t id = base->handle;

	obc_watch_end(&stream->watch);
	if (!ctx_ended)
		obc_raise(&stream->home->orphaned, obc_read(&stream->last));
	/* Before another thread may get the object. */
	if (!ctx_ended)
		obc_call_op_stream_destroy(id);
	obf_stream_recycle(base);
}

/*
 * For generated calls. Their work is not counted, so from now on the server must be asked for the
 * state of the stream.
 */
CUresult obc_wire_stream(CUstream handle, uint64_t *ret_id)
{
	struct obc_stream *stream;
	struct obf_stream *base;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result == CUDA_SUCCESS)
		result = obf_stream_get_current(handle, ctx, &base);
	if (result != CUDA_SUCCESS)
		return result;
	stream = obc_stream_of(base);
	atomic_store(&stream->untracked, true);
	atomic_store(&stream->home->untracked, true);
	*ret_id = base->handle;
	return CUDA_SUCCESS;
}

/* ---- progress ---- */

void obc_stream_done(struct obc_stream *stream, uint64_t number, bool waited_as_work)
{
	obc_raise(&stream->done, number);
	if (stream->base.legacy && waited_as_work)
		obc_raise(&stream->home->done_blocking, number);
}

void obc_stream_arrived(struct obc_stream *stream, uint64_t number, uint64_t launches)
{
	obc_stream_done(stream, number, true);
	if (stream->base.legacy)
		obc_ctx_settled(stream->home, launches, false);
}

/* All work before this record is complete in every stream of this kind. */
static uint64_t done_in(const struct obc_ctx *home, bool blocking)
{
	uint64_t done = obc_read(&home->done);

	return blocking ? ob_max(done, obc_read(&home->done_blocking)) : done;
}

/* Record of the newest work that this stream waits for. */
static uint64_t stream_last(const struct obc_stream *stream)
{
	return obc_read(stream->base.legacy ? &stream->home->last_blocking : &stream->last);
}

/*
 * Whether the stream has work that is not counted. For the legacy stream, any stream that it waits
 * for may have such work.
 */
static bool is_untracked(const struct obc_stream *stream)
{
	return atomic_load_explicit(
		stream->base.legacy ? &stream->home->untracked : &stream->untracked,
		memory_order_relaxed);
}

bool obc_stream_idle(struct obc_stream *stream)
{
	return !is_untracked(stream) &&
		stream_last(stream) <=
		ob_max(done_in(stream->home, stream->base.blocking), obc_read(&stream->done));
}

struct idle_scan {
	uint64_t blocking; /* newest work of a stream that waits for the legacy one */
	bool idle;
};

static void idle_check(void *user, struct obf_stream *base)
{
	struct obc_stream *stream = obc_stream_of(base);
	struct idle_scan *scan = user;

	scan->idle &= obc_stream_idle(stream);
	if (base->blocking)
		scan->blocking = ob_max(scan->blocking, obc_read(&stream->last));
}

/*
 * The legacy stream's work is counted together with that of the streams that wait for it. This
 * suffices: if the newest work belongs to such a stream, that stream has waited for all earlier
 * legacy work, and it is idle. Otherwise the newest work belongs to the legacy stream.
 */
bool obc_streams_idle(struct obf_ctx *ctx)
{
	struct obc_ctx *home = obc_ctx_of(ctx);
	struct idle_scan scan = { .idle = true };
	uint64_t newest = obc_read(&home->last_blocking);

	if (atomic_load_explicit(&home->untracked, memory_order_relaxed) ||
		obc_read(&home->orphaned) > obc_read(&home->done))
		return false;
	obf_streams_each(ctx, idle_check, &scan);
	return scan.idle &&
		(newest <= scan.blocking || obc_stream_idle(obc_stream_of(ctx->legacy)));
}

/* ---- points ---- */

struct obc_point obc_point_at(struct obc_stream *stream, uint64_t number)
{
	return (struct obc_point){
		.stream = stream,
		.home = stream->home,
		.id = stream->base.handle,
		.number = number,
		.blocking = stream->base.blocking,
	};
}

/* Whether the object still belongs to the stream of the point. */
static bool is_live(const struct obc_point *point)
{
	return point->stream->base.ctx && point->stream->base.handle == point->id &&
		point->stream->home == point->home;
}

bool obc_point_passed(const struct obc_point *point)
{
	if (point->number < done_in(point->home, point->blocking))
		return true;
	return is_live(point) && point->number < obc_read(&point->stream->done);
}

void obc_point_arrived(const struct obc_point *point)
{
	if (is_live(point))
		obc_stream_done(point->stream, point->number, true);
}

_Static_assert(sizeof(struct obc_point) <= sizeof(struct obf_point), "a point fits");

CUresult obc_point_take(struct obf_stream *base, struct obf_point *ret)
{
	struct obc_stream *stream = obc_stream_of(base);
	/*
	 * After all work that this thread has put into the stream so far, and all work of other
	 * threads that happened before this call.
	 */
	uint64_t last =
		obc_read(base->blocking ? &stream->home->last_blocking : &stream->home->last_other);
	struct obc_point point = obc_point_at(stream, ob_max(last, obc_log_last()));

	memcpy(ret, &point, sizeof point);
	return CUDA_SUCCESS;
}

bool obc_point_over(const struct obf_point *point)
{
	return obc_point_passed((const struct obc_point *)(const void *)point);
}

void obc_point_drop(struct obf_point *point)
{
	(void)point; /* holds nothing */
}

/* ---- waiting ---- */

/* Whether the stream is known to be idle, also from what the server has said since. */
static bool stream_heard(struct obc_stream *stream, CUresult *ret)
{
	uint64_t before;

	*ret = CUDA_SUCCESS;
	if (!ob_opt_on(OB_OPT_LOCAL) || is_untracked(stream))
		return false;
	if (obc_stream_idle(stream))
		return true;
	if (!obc_watch_look(&stream->watch, stream_last(stream), ret, &before))
		return false;
	if (*ret == CUDA_SUCCESS)
		obc_stream_done(stream, before, false);
	return true;
}

/* Query and wait differ only in the operation. */
static CUresult stream_ask(struct obc_stream *stream, uint16_t opcode)
{
	struct obp_stream_query_req *req;
	struct obc_slot slot;
	CUresult result;

	_Static_assert(
		sizeof(struct obp_stream_query_req) == sizeof(struct obp_stream_synchronize_req),
		"both records name a stream");
	req = obc_log_begin(&slot, opcode, sizeof *req);
	if (!req)
		return obc_log_error();
	req->stream = stream->base.handle;
	result = obc_log_call(&slot, NULL, 0, NULL);
	if (result == CUDA_SUCCESS)
		obc_stream_done(stream, slot.number, false);
	return result;
}

CUresult obc_stream_query(struct obf_stream *base)
{
	struct obc_stream *stream = obc_stream_of(base);
	CUresult result;

	if (stream_heard(stream, &result))
		return result;
	result = stream_ask(stream, OBP_OP_STREAM_QUERY);
	if (result == CUDA_ERROR_NOT_READY && !is_untracked(stream))
		obc_watch_begin(
			&stream->watch, OBP_OP_STREAM_WATCH, base->handle, stream_last(stream));
	return result;
}

CUresult obc_stream_wait(struct obf_stream *base)
{
	struct obc_stream *stream = obc_stream_of(base);
	CUresult result;

	if (stream_heard(stream, &result) && result != CUDA_ERROR_NOT_READY)
		return result;
	return stream_ask(stream, OBP_OP_STREAM_SYNCHRONIZE);
}
