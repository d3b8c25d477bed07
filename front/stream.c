/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/stream.h"

#include "front/green_view.h"
#include "front/captured.h"
#include "front/private.h"
#include "front/waited.h"
#include "protocol/obf_calls.h"

#define STREAM_FLAGS    ((unsigned)CU_STREAM_NON_BLOCKING)
#define PRIORITY_LOWEST 0
#define PRIORITY_MOST   (-5)
#define ID_LEGACY       1u /* result of cuStreamGetId for a legacy stream */

/* A thread's own stream in one context. */
struct thread_stream {
	uint64_t ctx_id, handle;
};

struct ob_ids obf_stream_ids = OB_IDS_INIT(OBF_KIND_STREAM, OBF_STREAM_MAX);

static struct obf_objects streams = { .lock = PTHREAD_MUTEX_INITIALIZER, .chunk = 64 };
static _Atomic unsigned long long next_id = 16; /* lower ids are those of default streams */
static _Thread_local struct thread_stream thread_streams[OBF_THREAD_STREAMS];

/* ---- objects ---- */

void obf_stream_recycle(struct obf_stream *stream)
{
	obf_object_give(&streams, &stream->object);
}

static struct obf_stream *stream_make(struct obf_ctx *ctx, unsigned flags, int priority)
{
	struct obf_stream *stream =
		obf_object_take(&streams, obf_process.backend->stream_size, ctx);

	if (!stream)
		return NULL;
	stream->flags = flags;
	stream->priority = ob_max(ob_min(priority, PRIORITY_LOWEST), PRIORITY_MOST);
	stream->blocking = !(flags & CU_STREAM_NON_BLOCKING);
	stream->policy.syncPolicy = CU_SYNC_POLICY_AUTO;
	stream->domain_map.memSyncDomainMap.remote = 1;
	return stream;
}

CUresult obf_stream_new(struct obf_ctx *ctx, struct obf_green *green, unsigned flags, int priority,
	struct obf_stream **ret)
{
	struct obf_stream *stream = stream_make(ctx, flags, priority);
	CUresult result;

	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->green = green;
	stream->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	stream->handle = ob_ids_add(&obf_stream_ids, stream);
	result = stream->handle ? obf_process.backend->stream_open(stream)
				: CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		obf_gates_pass(stream);
		*ret = stream;
		return CUDA_SUCCESS;
	}
	if (stream->handle)
		ob_ids_remove(&obf_stream_ids, stream->handle);
	obf_stream_recycle(stream);
	return result;
}

uint64_t obf_stream_share(struct obf_stream *stream)
{
	return ob_ids_add(&obf_stream_ids, stream);
}

bool obf_stream_end(uint64_t handle)
{
	struct obf_stream *stream = ob_ids_end(&obf_stream_ids, handle);

	if (!stream)
		return false;
	if (ob_unlikely(stream->capture != NULL))
		obf_capture_stream_end(stream);
	if (stream->handle == handle) /* else a further handle of the stream */
		obf_process.backend->stream_close(stream, false);
	ob_ids_recycle(&obf_stream_ids, handle);
	return true;
}

/* ---- contexts ---- */

CUresult obf_streams_begin(struct obf_ctx *ctx)
{
	struct obf_stream *stream = stream_make(ctx, CU_STREAM_DEFAULT, 0);
	CUresult result;

	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->legacy = true;
	stream->id = ID_LEGACY;
	result = obf_process.backend->stream_open(stream);
	if (result != CUDA_SUCCESS) {
		obf_stream_recycle(stream);
		return result;
	}
	ctx->legacy = stream;
	return CUDA_SUCCESS;
}

struct each {
	const struct obf_ctx *ctx;
	void (*fn)(void *user, struct obf_stream *);
	void *user;
};

static void stream_visit(void *user, uint64_t id, void *value)
{
	const struct each *each = user;
	struct obf_stream *stream = value;

	if (stream->ctx == each->ctx && stream->handle == id)
		each->fn(each->user, stream);
}

void obf_streams_each(
	const struct obf_ctx *ctx, void (*fn)(void *user, struct obf_stream *), void *user)
{
	struct each each = { ctx, fn, user };

	ob_ids_each(&obf_stream_ids, stream_visit, &each);
}

static void end_collect(void *user, struct obf_stream *stream)
{
	struct obf_object **list = user;

	stream->object.next = *list;
	*list = &stream->object;
}

void obf_streams_end(struct obf_ctx *ctx)
{
	struct obf_stream *legacy = ctx->legacy;
	struct obf_object *list = NULL;

	obf_streams_each(ctx, end_collect, &list);
	while (list) {
		struct obf_stream *stream = ob_ids_remove(&obf_stream_ids, list->handle);

		list = list->next;
		if (stream && stream->capture)
			obf_capture_stream_end(stream);
		if (stream)
			obf_process.backend->stream_close(stream, true);
	}
	ctx->legacy = NULL;
	if (legacy)
		obf_process.backend->stream_close(legacy, true);
}

/* ---- streams of threads ---- */

void obf_streams_thread_exit(void)
{
	for (unsigned i = 0; i < OBF_THREAD_STREAMS; i++) {
		if (thread_streams[i].handle)
			obf_stream_end(thread_streams[i].handle);
		thread_streams[i] = (struct thread_stream){ 0 };
	}
}

static __attribute__((noinline)) CUresult thread_stream_make(
	struct obf_ctx *ctx, struct obf_stream **ret)
{
	struct thread_stream *row = NULL;
	CUresult result;

	for (unsigned i = 0; i < OBF_THREAD_STREAMS && !row; i++)
		if (!thread_streams[i].handle ||
			!ob_ids_get(&obf_stream_ids, thread_streams[i].handle))
			row = &thread_streams[i];
	if (!row) {
		row = &thread_streams[0];
		obf_stream_end(row->handle);
	}
	*row = (struct thread_stream){ 0 };
	result = obf_stream_new(ctx, NULL, CU_STREAM_DEFAULT, 0, ret);
	if (result == CUDA_SUCCESS)
		*row = (struct thread_stream){ ctx->id, (*ret)->handle };
	return result;
}

CUresult obf_stream_of_thread(struct obf_ctx *ctx, struct obf_stream **ret)
{
	if (ob_unlikely(obf_green_current(ctx) != NULL))
		return CUDA_ERROR_INVALID_HANDLE; /* as CUDA documents it */
	for (unsigned i = 0; i < OBF_THREAD_STREAMS; i++) {
		const struct thread_stream *row = &thread_streams[i];

		if (row->handle && row->ctx_id == ctx->id) {
			*ret = ob_ids_get(&obf_stream_ids, row->handle);
			if (*ret)
				return CUDA_SUCCESS;
		}
	}
	return thread_stream_make(ctx, ret);
}

/* ---- calls ---- */

CUresult obf_stream_enter(CUstream handle, struct obf_stream **ret)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (ob_likely(result == CUDA_SUCCESS))
		result = obf_stream_get(handle, ctx, ret);
	if (result == CUDA_SUCCESS && ob_unlikely((*ret)->ctx != ctx))
		result = obf_ctx_report((*ret)->ctx);
	return result;
}

CUresult obf_cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority)
{
	struct obf_stream *stream;
	struct obf_green *green;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || flags & ~STREAM_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	green = obf_green_current(ctx);
	if (ob_unlikely(green && !(flags & CU_STREAM_NON_BLOCKING))) {
		/* It must wait for the default stream, and that for it: it is the default stream. */
		*ret = (CUstream)(uintptr_t)obf_stream_share(green->stream);
		return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = obf_stream_new(ctx, green, flags, priority, &stream);
	if (result == CUDA_SUCCESS)
		*ret = (CUstream)(uintptr_t)stream->handle;
	return obf_ctx_result(ctx, result);
}

CUresult obf_cuStreamCreate(CUstream *stream, unsigned flags)
{
	return obf_cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult obf_cuStreamDestroy_v2(CUstream handle)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if ((uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	return obf_stream_end((uint64_t)(uintptr_t)handle)
		? CUDA_SUCCESS
		: obf_stream_missing((uint64_t)(uintptr_t)handle);
}

/* A captured stream has no state, and other streams only if captures allow the question. */
static CUresult ask_check(struct obf_stream *stream)
{
	return ob_unlikely(stream->capture != NULL) ? obf_capture_refuse(stream)
						    : obf_capture_unsafe();
}

CUresult obf_cuStreamQuery(CUstream handle)
{
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result == CUDA_SUCCESS)
		result = ask_check(stream);
	if (result != CUDA_SUCCESS)
		return result;
	obf_waits(true);
	result = obf_process.backend->stream_query(stream);
	if (obf_waited_heard())
		result = obf_waited(result, stream, false);
	return obf_ctx_result(stream->ctx, result);
}

CUresult obf_cuStreamSynchronize(CUstream handle)
{
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result == CUDA_SUCCESS)
		result = ask_check(stream);
	if (result != CUDA_SUCCESS)
		return result;
	obf_waits(false);
	result = obf_process.backend->stream_wait(stream);
	if (obf_waited_heard())
		result = obf_waited(result, stream, false);
	return obf_ctx_result(stream->ctx, result);
}

/* The common checks of a query of a stream. */
static CUresult getter_enter(CUstream handle, const void *ret, struct obf_stream **ret_stream)
{
	CUresult result = obf_stream_enter(handle, ret_stream);

	return result == CUDA_SUCCESS && !ret ? CUDA_ERROR_INVALID_VALUE : result;
}

/* The queries of one value of a stream. */
#define GETTER(name, type, value)                                     \
	CUresult obf_cuStreamGet##name(CUstream handle, type *ret)    \
	{                                                             \
		struct obf_stream *stream;                            \
		CUresult result = getter_enter(handle, ret, &stream); \
                                                                      \
		if (result == CUDA_SUCCESS)                           \
			*ret = value;                                 \
		return result;                                        \
	}

GETTER(Priority, int, stream->priority)
GETTER(Flags, unsigned, stream->flags)
GETTER(Id, unsigned long long, stream->id)
GETTER(Ctx, CUcontext, stream->green ? obf_green_context(stream->green) : stream->ctx->handle)
GETTER(Device, CUdevice, stream->ctx->device)
GETTER(GreenCtx, CUgreenCtx, stream->green ? stream->green->handle : NULL)

CUresult obf_cuStreamGetCtx_v2(CUstream handle, CUcontext *ret, CUgreenCtx *ret_green)
{
	struct obf_stream *stream;
	CUresult result = getter_enter(handle, ret, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	*ret = stream->ctx->handle;
	if (ret_green)
		*ret_green = stream->green ? stream->green->handle : NULL;
	return CUDA_SUCCESS;
}
