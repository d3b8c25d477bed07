/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/ids.h"
#include "base/opt.h"
#include "client-shim/log.h"
#include "protocol/obc_calls.h"
#include "protocol/obc_locals.h"

#define STREAM_FLAGS ((unsigned)CU_STREAM_NON_BLOCKING)
#define STREAM_CHUNK 64u

/* A thread's own stream in one context. */
struct thread_stream {
	struct obf_ctx *ctx;
	uint64_t ctx_id, wire;
};

static struct ob_ids stream_ids = OB_IDS_INIT(OBF_KIND_STREAM, OBC_STREAM_MAX);
static pthread_mutex_t stream_lock = PTHREAD_MUTEX_INITIALIZER;
static struct obc_stream *stream_free;          /* under stream_lock */
static _Atomic unsigned long long next_id = 16; /* below: default streams */
static _Thread_local struct thread_stream thread_streams[OBC_THREAD_STREAMS];

/* ---- objects ---- */

/* Under the lock. */
static struct obc_stream *stream_take(void)
{
	struct obc_stream *stream = stream_free, *chunk;

	if (!stream) {
		chunk = calloc(STREAM_CHUNK, sizeof *chunk);
		if (!chunk)
			return NULL;
		for (unsigned i = 0; i < STREAM_CHUNK; i++)
			chunk[i].next_free = i + 1 < STREAM_CHUNK ? &chunk[i + 1] : NULL;
		stream = chunk;
	}
	stream_free = stream->next_free;
	memset(stream, 0, sizeof *stream);
	return stream;
}

/* Under the lock. */
static void stream_give(struct obc_stream *stream)
{
	stream->ctx = NULL;
	stream->next_free = stream_free;
	stream_free = stream;
}

static CUresult stream_new(
	struct obf_ctx *ctx, unsigned flags, int priority, struct obc_stream **ret)
{
	struct obc_stream *stream;

	pthread_mutex_lock(&stream_lock);
	stream = stream_take();
	if (stream) {
		stream->ctx = ctx;
		stream->flags = flags;
		stream->priority = priority;
		stream->policy.syncPolicy = CU_SYNC_POLICY_AUTO;
		stream->domain_map.memSyncDomainMap.remote = 1;
		stream->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
		stream->wire = ob_ids_add(&stream_ids, stream);
		if (!stream->wire) {
			stream_give(stream);
			stream = NULL;
		}
	}
	pthread_mutex_unlock(&stream_lock);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (flags & CU_STREAM_NON_BLOCKING)
		atomic_store(&obc_ctx_of(ctx)->other_streams, true);
	*ret = stream;
	return obc_call_op_stream_create(stream->wire, flags, priority);
}

/* Takes it out of the table and tells the server; false: it was gone. */
static bool stream_end(uint64_t wire)
{
	struct obc_stream *stream;

	pthread_mutex_lock(&stream_lock);
	stream = ob_ids_remove(&stream_ids, wire);
	if (stream) {
		obc_raise(&obc_ctx_of(stream->ctx)->orphaned, obc_read(&stream->last));
		stream_give(stream);
	}
	pthread_mutex_unlock(&stream_lock);
	if (stream)
		obc_call_op_stream_destroy(wire);
	return stream != NULL;
}

static void end_in_ctx(void *user, uint64_t id, void *value)
{
	struct obc_stream *stream = value;

	if (stream->ctx != user)
		return;
	ob_ids_remove(&stream_ids, id); /* on the server they go with the context */
	stream_give(stream);
}

void obc_streams_end(const struct obf_ctx *ctx)
{
	pthread_mutex_lock(&stream_lock);
	ob_ids_each(&stream_ids, end_in_ctx, (void *)(uintptr_t)ctx);
	pthread_mutex_unlock(&stream_lock);
}

void obc_streams_thread_exit(void)
{
	for (unsigned i = 0; i < OBC_THREAD_STREAMS; i++) {
		if (thread_streams[i].wire)
			stream_end(thread_streams[i].wire);
		thread_streams[i] = (struct thread_stream){ 0 };
	}
}

/* ---- finding ---- */

static struct obc_stream *stream_find(CUstream handle)
{
	return ob_ids_get(&stream_ids, (uint64_t)(uintptr_t)handle);
}

static __attribute__((noinline)) CUresult thread_stream_make(
	struct obf_ctx *ctx, struct obc_stream **ret)
{
	struct thread_stream *place = NULL;
	CUresult result;

	for (unsigned i = 0; i < OBC_THREAD_STREAMS; i++) {
		struct thread_stream *row = &thread_streams[i];

		if (!row->wire || !ob_ids_get(&stream_ids, row->wire)) {
			place = row;
			break;
		}
	}
	if (!place) {
		place = &thread_streams[0];
		stream_end(place->wire);
	}
	result = stream_new(ctx, CU_STREAM_DEFAULT, 0, ret);
	if (result != CUDA_SUCCESS)
		return result;
	(*ret)->per_thread = true;
	*place = (struct thread_stream){ ctx, ctx->id, (*ret)->wire };
	return CUDA_SUCCESS;
}

static CUresult thread_stream_get(struct obf_ctx *ctx, struct obc_stream **ret)
{
	for (unsigned i = 0; i < OBC_THREAD_STREAMS; i++) {
		const struct thread_stream *row = &thread_streams[i];

		if (row->ctx == ctx && row->ctx_id == ctx->id && row->wire) {
			*ret = ob_ids_get(&stream_ids, row->wire);
			if (*ret)
				return CUDA_SUCCESS;
		}
	}
	return thread_stream_make(ctx, ret);
}

CUresult obc_stream_any(CUstream handle, struct obf_ctx *ctx, struct obc_lane_of *ret)
{
	struct obc_stream *stream;

	if ((uintptr_t)handle <= (uintptr_t)CU_STREAM_LEGACY) {
		*ret = (struct obc_lane_of){ .home = obc_ctx_of(ctx), .blocking = true };
		return CUDA_SUCCESS;
	}
	if (handle == CU_STREAM_PER_THREAD) {
		CUresult result = thread_stream_get(ctx, &stream);

		if (result != CUDA_SUCCESS)
			return result;
	} else {
		stream = stream_find(handle);
	}
	if (ob_unlikely(!stream))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = (struct obc_lane_of){ stream->wire, stream, obc_ctx_of(stream->ctx),
		!(stream->flags & CU_STREAM_NON_BLOCKING) };
	return CUDA_SUCCESS;
}

CUresult obc_stream_enter(CUstream handle, struct obf_ctx *ctx, struct obc_lane_of *ret)
{
	CUresult result = obc_stream_any(handle, ctx, ret);

	if (result == CUDA_SUCCESS && ob_unlikely(ret->stream && ret->stream->ctx != ctx))
		return CUDA_ERROR_INVALID_HANDLE;
	return result;
}

/* For regular calls. They are not counted, so the stream's state must be asked for from now on. */
CUresult obc_wire_stream(CUstream handle, uint64_t *ret_id)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result == CUDA_SUCCESS)
		result = obc_stream_enter(handle, ctx, &at);
	if (result != CUDA_SUCCESS)
		return result;
	if (at.stream)
		atomic_store(&at.stream->untracked, true);
	atomic_store(&at.home->untracked, true);
	*ret_id = at.wire;
	return CUDA_SUCCESS;
}

/* ---- progress ---- */

void obc_stream_done(const struct obc_lane_of *at, uint64_t number, bool waited_as_work)
{
	if (at->stream) {
		obc_raise(&at->stream->done, number);
		return;
	}
	obc_raise(&at->home->legacy_done, number);
	if (waited_as_work)
		obc_raise(&at->home->done_blocking, number);
}

void obc_stream_arrived(const struct obc_lane_of *at, uint64_t number, uint64_t launches)
{
	obc_stream_done(at, number, true);
	if (!at->stream)
		obc_ctx_settled(at->home, launches, false);
}

bool obc_stream_idle(const struct obc_lane_of *at)
{
	uint64_t done = obc_read(&at->home->done);

	if (at->blocking)
		done = ob_max(done, obc_read(&at->home->done_blocking));
	if (!at->stream)
		return !atomic_load_explicit(&at->home->untracked, memory_order_relaxed) &&
			obc_read(&at->home->last_blocking) <=
			ob_max(done, obc_read(&at->home->legacy_done));
	return !atomic_load_explicit(&at->stream->untracked, memory_order_relaxed) &&
		obc_read(&at->stream->last) <= ob_max(done, obc_read(&at->stream->done));
}

struct idle_scan {
	struct obc_ctx *home;
	uint64_t blocking; /* newest work of a stream that waits for the legacy one */
	bool idle;
};

static void idle_look(void *user, uint64_t id, void *value)
{
	struct idle_scan *scan = user;
	struct obc_stream *stream = value;
	struct obc_lane_of at = { .stream = stream,
		.home = scan->home,
		.blocking = !(stream->flags & CU_STREAM_NON_BLOCKING) };

	(void)id;
	if (obc_ctx_of(stream->ctx) != scan->home)
		return;
	scan->idle &= obc_stream_idle(&at);
	if (at.blocking)
		scan->blocking = ob_max(scan->blocking, obc_read(&stream->last));
}

/*
 * The legacy stream's own work is not counted apart from that of the streams that wait for it. It
 * need not be: if the newest of both is such a stream's, that stream has waited for all legacy work
 * before it, and is idle; else it is the legacy stream's.
 */
bool obc_streams_idle(struct obc_ctx *home)
{
	const struct obc_lane_of legacy = { .home = home, .blocking = true };
	struct idle_scan scan = { .home = home, .idle = true };
	uint64_t newest = obc_read(&home->last_blocking);

	if (atomic_load_explicit(&home->untracked, memory_order_relaxed) ||
		obc_read(&home->orphaned) > obc_read(&home->done))
		return false;
	pthread_mutex_lock(&stream_lock);
	ob_ids_each(&stream_ids, idle_look, &scan);
	pthread_mutex_unlock(&stream_lock);
	return scan.idle && (newest <= scan.blocking || obc_stream_idle(&legacy));
}

CUresult obc_stream_wait(struct obf_ctx *ctx, const struct obc_lane_of *at)
{
	struct obp_stream_synchronize_req *req;
	struct obc_slot slot;
	CUresult result;

	if (ob_opt_on(OB_OPT_LOCAL) && obc_stream_idle(at))
		return CUDA_SUCCESS;
	req = obc_log_begin(&slot, OBP_OP_STREAM_SYNCHRONIZE, sizeof *req);
	if (!req)
		return obc_log_error();
	req->stream = at->wire;
	result = obc_log_call(&slot, NULL, 0, NULL);
	if (result == CUDA_SUCCESS)
		obc_stream_done(at, slot.number, false);
	return obc_ctx_result(ctx, result);
}

/* ---- the program's calls ---- */

/* Context and stream for a call that takes any stream. */
static CUresult call_enter(CUstream handle, struct obf_ctx **ret_ctx, struct obc_lane_of *ret)
{
	CUresult result = obf_ctx_enter(ret_ctx);

	return result == CUDA_SUCCESS ? obc_stream_any(handle, *ret_ctx, ret) : result;
}

CUresult obc_cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority)
{
	struct obc_stream *stream;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || flags & ~STREAM_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	/*
	 * CUDA clamps a priority to what the device has; the server's driver knows its range and
	 * does the same.
	 */
	result = stream_new(ctx, flags, priority < -5 ? -5 : priority > 0 ? 0 : priority, &stream);
	if (result == CUDA_SUCCESS)
		*ret = (CUstream)(uintptr_t)stream->wire;
	return obc_ctx_result(ctx, result);
}

CUresult obc_cuStreamCreate(CUstream *stream, unsigned flags)
{
	return obc_cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult obc_cuStreamDestroy_v2(CUstream handle)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if ((uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	return stream_end((uint64_t)(uintptr_t)handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult obc_cuStreamQuery(CUstream handle)
{
	struct obp_stream_query_req *req;
	struct obc_lane_of at;
	struct obc_slot slot;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (ob_opt_on(OB_OPT_LOCAL) && obc_stream_idle(&at))
		return CUDA_SUCCESS;
	req = obc_log_begin(&slot, OBP_OP_STREAM_QUERY, sizeof *req);
	if (!req)
		return obc_log_error();
	req->stream = at.wire;
	result = obc_log_call(&slot, NULL, 0, NULL);
	if (result == CUDA_SUCCESS)
		obc_stream_done(&at, slot.number, false);
	return obc_ctx_result(ctx, result);
}

CUresult obc_cuStreamSynchronize(CUstream handle)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	return result == CUDA_SUCCESS ? obc_stream_wait(ctx, &at) : result;
}

CUresult obc_cuStreamGetPriority(CUstream handle, int *priority)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	*priority = at.stream ? at.stream->priority : 0;
	return CUDA_SUCCESS;
}

CUresult obc_cuStreamGetFlags(CUstream handle, unsigned *flags)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = at.stream ? at.stream->flags : CU_STREAM_DEFAULT;
	return CUDA_SUCCESS;
}

CUresult obc_cuStreamGetId(CUstream handle, unsigned long long *id)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = at.stream ? at.stream->id : 1;
	return CUDA_SUCCESS;
}

CUresult obc_cuStreamGetCtx(CUstream handle, CUcontext *ret)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = at.stream ? at.stream->ctx->handle : ctx->handle;
	return CUDA_SUCCESS;
}

CUresult obc_cuStreamGetCtx_v2(CUstream handle, CUcontext *ret, CUgreenCtx *green)
{
	if (green)
		*green = NULL;
	return obc_cuStreamGetCtx(handle, ret);
}

/* Green contexts cannot be made, so no stream is in one. cuBLAS 13.10 asks before each product. */
CUresult obc_cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *green)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!green)
		return CUDA_ERROR_INVALID_VALUE;
	*green = NULL;
	return CUDA_SUCCESS;
}

CUresult obc_cuStreamGetDevice(CUstream handle, CUdevice *device)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = at.stream ? at.stream->ctx->device : ctx->device;
	return CUDA_SUCCESS;
}

/* ---- attributes: hints that are kept for the program to read back ---- */

static CUstreamAttrValue *attr_place(struct obc_stream *stream, CUstreamAttrID attr)
{
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return &stream->window;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return &stream->policy;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return &stream->domain_map;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return &stream->domain;
	default:
		return NULL;
	}
}

CUresult obc_cuStreamGetAttribute(CUstream handle, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	static const struct obc_stream standard = { .policy.syncPolicy = CU_SYNC_POLICY_AUTO,
		.domain_map.memSyncDomainMap.remote = 1 };
	struct obc_stream copy;
	CUstreamAttrValue *place;
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	copy = at.stream ? *at.stream : standard;
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		memset(value, 0, sizeof *value);
		value->priority = copy.priority;
		return CUDA_SUCCESS;
	}
	place = attr_place(&copy, attr);
	if (!place)
		return CUDA_ERROR_INVALID_VALUE;
	*value = *place;
	return CUDA_SUCCESS;
}

CUresult obc_cuStreamSetAttribute(
	CUstream handle, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	CUstreamAttrValue *place;
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!at.stream)
		return CUDA_SUCCESS;
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		at.stream->priority = value->priority;
		return CUDA_SUCCESS;
	}
	place = attr_place(at.stream, attr);
	if (!place)
		return CUDA_ERROR_INVALID_VALUE;
	*place = *value;
	return CUDA_SUCCESS;
}

CUresult obc_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	struct obc_lane_of to, from;
	struct obf_ctx *ctx;
	CUresult result = call_enter(dst, &ctx, &to);

	if (result == CUDA_SUCCESS)
		result = obc_stream_any(src, ctx, &from);
	if (result != CUDA_SUCCESS)
		return result;
	if (to.stream && from.stream) {
		to.stream->window = from.stream->window;
		to.stream->policy = from.stream->policy;
		to.stream->domain_map = from.stream->domain_map;
		to.stream->domain = from.stream->domain;
	}
	return CUDA_SUCCESS;
}

/* ---- capture: there is none, and that is a valid answer ---- */

CUresult obc_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
	struct obc_lane_of at;
	struct obf_ctx *ctx;
	CUresult result = call_enter(handle, &ctx, &at);

	if (result != CUDA_SUCCESS)
		return result;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult obc_cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	CUresult result = obc_cuStreamIsCapturing(handle, status);

	if (result == CUDA_SUCCESS && id)
		*id = 0;
	return result;
}

CUresult obc_cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, size_t *n_dependencies)
{
	CUresult result = obc_cuStreamGetCaptureInfo(handle, status, id);

	if (result != CUDA_SUCCESS)
		return result;
	if (graph)
		*graph = NULL;
	if (dependencies)
		*dependencies = NULL;
	if (n_dependencies)
		*n_dependencies = 0;
	return CUDA_SUCCESS;
}

CUresult obc_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
	const CUgraphEdgeData **edges, size_t *n_dependencies)
{
	if (edges)
		*edges = NULL;
	return obc_cuStreamGetCaptureInfo_v2(
		handle, status, id, graph, dependencies, n_dependencies);
}
