/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/event.h"

#include "base/ids.h"
#include "front/backend.h"
#include "front/captured.h"
#include "front/private.h"
#include "front/share.h"
#include "front/stream.h"
#include "front/waited.h"
#include "protocol/obf_calls.h"

#define EVENT_FLAGS \
	((unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS))

static struct ob_ids event_ids = OB_IDS_INIT(OBF_KIND_EVENT, OBF_EVENT_MAX);
static struct obf_objects events = { .lock = PTHREAD_MUTEX_INITIALIZER, .chunk = 256 };

/* ---- objects ---- */

static CUresult event_end(uint64_t handle, bool ctx_ended)
{
	struct obf_event *event = ob_ids_end(&event_ids, handle);
	CUresult result;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (ob_unlikely(event->captured != NULL))
		obf_capture_event_end(event);
	result = obf_process.backend->event_close(event, ctx_ended);
	ob_ids_recycle(&event_ids, handle);
	obf_object_give(&events, &event->object);
	return result;
}

struct end {
	const struct obf_ctx *ctx;
	struct obf_object *list;
};

static void end_collect(void *user, uint64_t id, void *value)
{
	struct obf_event *event = value;
	struct end *end = user;

	(void)id;
	if (event->ctx != end->ctx)
		return;
	event->object.next = end->list;
	end->list = &event->object;
}

void obf_events_end(const struct obf_ctx *ctx)
{
	struct end end = { .ctx = ctx };

	ob_ids_each(&event_ids, end_collect, &end);
	while (end.list) {
		struct obf_object *object = end.list;

		end.list = object->next;
		event_end(object->handle, true);
	}
}

struct obf_event *obf_event_look(CUevent handle)
{
	return ob_ids_get(&event_ids, (uint64_t)(uintptr_t)handle);
}

/* ---- calls ---- */

/* Resolves an event handle, and returns the error of the event's context if that is not current. */
static CUresult event_get(CUevent handle, const struct obf_ctx *ctx, struct obf_event **ret)
{
	*ret = ob_ids_get(&event_ids, (uint64_t)(uintptr_t)handle);
	if (ob_unlikely(!*ret))
		return CUDA_ERROR_INVALID_HANDLE;
	return ob_likely((*ret)->ctx == ctx) ? CUDA_SUCCESS : obf_ctx_report((*ret)->ctx);
}

static CUresult event_enter(CUevent handle, struct obf_event **ret)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	return ob_likely(result == CUDA_SUCCESS) ? event_get(handle, ctx, ret) : result;
}

/* Acquire: a thread that sees `recorded` sees what the backend stored about the recording. */
static bool is_recorded(const struct obf_event *event)
{
	return atomic_load_explicit(&event->recorded, memory_order_acquire);
}

CUresult obf_event_record(struct obf_event *event, struct obf_stream *stream)
{
	CUresult result = obf_process.backend->event_record(event, stream);

	if (ob_unlikely(event->captured != NULL))
		obf_capture_event_end(event);
	if (ob_likely(result == CUDA_SUCCESS))
		atomic_store_explicit(&event->recorded, true, memory_order_release);
	return result;
}

CUresult obf_event_wait_put(struct obf_event *event, struct obf_stream *stream)
{
	return is_recorded(event) ? obf_process.backend->stream_wait_event(stream, event)
				  : CUDA_SUCCESS;
}

/* Queries of events: not of captured ones, and not while a capture forbids them. */
static CUresult query_check(struct obf_event *event)
{
	return ob_unlikely(event->captured != NULL) ? obf_capture_event_query(event)
						    : obf_capture_unsafe();
}

CUresult obf_event_find(CUevent handle, const struct obf_ctx *ctx, struct obf_event **ret)
{
	return event_get(handle, ctx, ret);
}

static CUresult event_new(
	struct obf_ctx *ctx, unsigned flags, const struct obf_share *share, struct obf_event **ret)
{
	const struct obf_backend *backend = obf_process.backend;
	struct obf_event *event = obf_object_take(&events, backend->event_size, ctx);
	CUresult result;

	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->flags = flags;
	/* Another process may record it at any time: the backend must be asked. */
	if (flags & CU_EVENT_INTERPROCESS)
		atomic_store_explicit(&event->recorded, true, memory_order_release);
	event->handle = ob_ids_add(&event_ids, event);
	if (!event->handle)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		result = share ? backend->sharing->event_import(event, share)
			       : backend->event_open(event);
	if (result == CUDA_SUCCESS) {
		*ret = event;
		return CUDA_SUCCESS;
	}
	if (event->handle)
		ob_ids_remove(&event_ids, event->handle);
	obf_object_give(&events, &event->object);
	return result;
}

CUresult obf_event_new(
	struct obf_ctx *ctx, unsigned flags, const struct obf_share *share, CUevent *ret)
{
	struct obf_event *event;
	CUresult result = event_new(ctx, flags, share, &event);

	if (result != CUDA_SUCCESS)
		return obf_ctx_result(ctx, result);
	*ret = (CUevent)(uintptr_t)event->handle;
	return CUDA_SUCCESS;
}

CUresult obf_event_mark(struct obf_stream *stream, struct obf_event **ret)
{
	CUresult result = event_new(stream->ctx, CU_EVENT_DISABLE_TIMING, NULL, ret);

	if (result != CUDA_SUCCESS)
		return result;
	result = obf_ctx_result(stream->ctx, obf_event_record(*ret, stream));
	if (result != CUDA_SUCCESS)
		obf_event_drop(*ret);
	return result;
}

void obf_event_drop(struct obf_event *event)
{
	event_end(event->handle, false);
}

CUresult obf_cuEventCreate(CUevent *ret, unsigned flags)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || flags & ~EVENT_FLAGS ||
		(flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS && !(obf_shares() & OBF_SHARES_EVENTS))
		return CUDA_ERROR_NOT_SUPPORTED;
	return obf_event_new(ctx, flags, NULL, ret);
}

CUresult obf_cuEventDestroy_v2(CUevent handle)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	return result == CUDA_SUCCESS ? event_end((uint64_t)(uintptr_t)handle, false) : result;
}

CUresult obf_cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned flags)
{
	struct obf_stream *stream;
	struct obf_event *event;
	CUresult result = obf_stream_enter(stream_handle, &stream);

	if (ob_likely(result == CUDA_SUCCESS))
		result = event_get(handle, stream->ctx, &event);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	if (ob_unlikely(event->ctx != stream->ctx))
		return CUDA_ERROR_INVALID_HANDLE; /* event and stream belong to the same context */
	if (ob_unlikely(stream->capture != NULL))
		return obf_capture_record(stream, event, flags);
	if (ob_unlikely(flags != CU_EVENT_RECORD_DEFAULT))
		return CUDA_ERROR_INVALID_VALUE; /* RECORD_EXTERNAL is for captured streams */
	return obf_ctx_result(stream->ctx, obf_event_record(event, stream));
}

CUresult obf_cuEventRecord(CUevent event, CUstream stream)
{
	return obf_cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult obf_cuEventQuery(CUevent handle)
{
	struct obf_event *event;
	CUresult result = event_enter(handle, &event);

	if (result == CUDA_SUCCESS)
		result = query_check(event);
	if (result != CUDA_SUCCESS || !is_recorded(event))
		return result;
	obf_waits(true);
	result = obf_process.backend->event_query(event);
	if (obf_waited_heard())
		result = obf_waited(result, NULL, false);
	return obf_ctx_result(event->ctx, result);
}

CUresult obf_cuEventSynchronize(CUevent handle)
{
	struct obf_event *event;
	CUresult result = event_enter(handle, &event);

	if (result == CUDA_SUCCESS)
		result = query_check(event);
	if (result != CUDA_SUCCESS || !is_recorded(event))
		return result;
	obf_waits(false);
	result = obf_process.backend->event_wait(event);
	if (obf_waited_heard())
		result = obf_waited(result, NULL, false);
	return obf_ctx_result(event->ctx, result);
}

CUresult obf_cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags)
{
	struct obf_stream *stream;
	struct obf_event *event;
	CUresult result = obf_stream_enter(stream_handle, &stream);

	if (result == CUDA_SUCCESS)
		result = event_get(handle, stream->ctx, &event);
	if (result != CUDA_SUCCESS)
		return result;
	if (ob_unlikely(stream->capture != NULL || event->captured != NULL))
		return obf_capture_wait(stream, event, flags);
	if (flags != CU_EVENT_WAIT_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE; /* WAIT_EXTERNAL is for captured streams */
	return obf_ctx_result(stream->ctx, obf_event_wait_put(event, stream));
}

CUresult obf_cuEventElapsedTime_v2(float *ret, CUevent start_handle, CUevent end_handle)
{
	struct obf_event *start, *end;
	CUresult result = event_enter(start_handle, &start);

	if (result == CUDA_SUCCESS)
		result = event_enter(end_handle, &end);
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (start->captured || end->captured)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (!is_recorded(start) || !is_recorded(end) || start->ctx != end->ctx ||
		(start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	return obf_ctx_result(start->ctx, obf_process.backend->event_elapsed(start, end, ret));
}
