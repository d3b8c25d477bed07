/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/event.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/ids.h"
#include "base/opt.h"
#include "client-shim/context.h"
#include "client-shim/log.h"
#include "client-shim/stream.h"
#include "protocol/obc_calls.h"
#include "protocol/obc_locals.h"

#define EVENT_FLAGS \
	((unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS))
#define EVENT_CHUNK 256u

struct obc_event {
	uint64_t wire;
	struct obf_ctx *ctx;
	unsigned flags;
	/* The last recording: where, and its record number, written last. */
	struct obc_lane_of at;
	uint64_t at_wire;
	_Atomic uint64_t recorded; /* 0: never */
	_Atomic uint64_t done;     /* recordings up to this one are complete */
	/* The last elapsed time asked for with this event as the end. Under elapsed_lock. */
	uint64_t elapsed_start, elapsed_start_recorded, elapsed_recorded;
	float elapsed_ms;
	struct obc_event *next_free;
};

static struct ob_ids event_ids = OB_IDS_INIT(OBF_KIND_EVENT, OBC_EVENT_MAX);
static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t elapsed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct obc_event *event_free; /* under event_lock */

/* Under the lock. */
static struct obc_event *event_take(void)
{
	struct obc_event *event = event_free, *chunk;

	if (!event) {
		chunk = calloc(EVENT_CHUNK, sizeof *chunk);
		if (!chunk)
			return NULL;
		for (unsigned i = 0; i < EVENT_CHUNK; i++)
			chunk[i].next_free = i + 1 < EVENT_CHUNK ? &chunk[i + 1] : NULL;
		event = chunk;
	}
	event_free = event->next_free;
	memset(event, 0, sizeof *event);
	return event;
}

static void event_give(struct obc_event *event)
{
	event->ctx = NULL;
	event->next_free = event_free;
	event_free = event;
}

static void end_in_ctx(void *user, uint64_t id, void *value)
{
	struct obc_event *event = value;

	if (event->ctx != user)
		return;
	ob_ids_remove(&event_ids, id);
	event_give(event);
}

void obc_events_end(const struct obf_ctx *ctx)
{
	pthread_mutex_lock(&event_lock);
	ob_ids_each(&event_ids, end_in_ctx, (void *)(uintptr_t)ctx);
	pthread_mutex_unlock(&event_lock);
}

static CUresult event_enter(CUevent handle, struct obf_ctx **ret_ctx, struct obc_event **ret)
{
	CUresult result = obf_ctx_enter(ret_ctx);

	if (result != CUDA_SUCCESS)
		return result;
	*ret = ob_ids_get(&event_ids, (uint64_t)(uintptr_t)handle);
	return ob_likely(*ret != NULL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The recording numbered `recorded` is known to be complete. */
static bool event_complete(struct obc_event *event, uint64_t recorded)
{
	const struct obc_lane_of *at = &event->at;

	if (!ob_opt_on(OB_OPT_LOCAL))
		return false;
	if (recorded <= obc_read(&event->done) || recorded < obc_read(&at->home->done))
		return true;
	if (at->blocking && recorded < obc_read(&at->home->done_blocking))
		return true;
	if (!at->stream)
		return recorded < obc_read(&at->home->legacy_done);
	/* The object may serve another stream by now. */
	return at->stream->wire == event->at_wire && at->stream->ctx &&
		recorded < obc_read(&at->stream->done);
}

/* The server said that the recording is complete: so is all that stood before it in its stream. */
static void event_completed(struct obc_event *event, uint64_t recorded)
{
	obc_raise(&event->done, recorded);
	if (event->at.stream ? event->at.stream->wire == event->at_wire : true)
		obc_stream_done(&event->at, recorded, true);
}

CUresult obc_cuEventCreate(CUevent *ret, unsigned flags)
{
	struct obc_event *event;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || flags & ~EVENT_FLAGS ||
		(flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED; /* other processes have sessions of their own */
	pthread_mutex_lock(&event_lock);
	event = event_take();
	if (event) {
		event->ctx = ctx;
		event->flags = flags;
		event->wire = ob_ids_add(&event_ids, event);
		if (!event->wire) {
			event_give(event);
			event = NULL;
		}
	}
	pthread_mutex_unlock(&event_lock);
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = (CUevent)(uintptr_t)event->wire;
	return obc_ctx_result(ctx, obc_call_op_event_create(event->wire, flags));
}

CUresult obc_cuEventDestroy_v2(CUevent handle)
{
	struct obc_event *event;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&event_lock);
	event = ob_ids_remove(&event_ids, (uint64_t)(uintptr_t)handle);
	if (event)
		event_give(event);
	pthread_mutex_unlock(&event_lock);
	return event ? obc_call_op_event_destroy((uint64_t)(uintptr_t)handle)
		     : CUDA_ERROR_INVALID_HANDLE;
}

CUresult obc_cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags)
{
	struct obp_event_record_req *req;
	struct obc_event *event;
	struct obc_lane_of at;
	struct obc_slot slot;
	struct obf_ctx *ctx;
	CUresult result = event_enter(handle, &ctx, &event);

	if (ob_likely(result == CUDA_SUCCESS))
		result = obc_stream_any(stream, ctx, &at);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	if (ob_unlikely(at.home != obc_ctx_of(event->ctx)))
		return CUDA_ERROR_INVALID_HANDLE; /* event and stream are of one context */
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	req = obc_log_begin(&slot, OBP_OP_EVENT_RECORD, sizeof *req);
	if (!req)
		return obc_log_error();
	memset(req, 0, sizeof *req);
	req->event = event->wire;
	req->stream = at.wire;
	req->flags = flags;
	event->at = at;
	event->at_wire = at.wire;
	obc_stream_mark(&at, slot.number);
	/* Release: who sees the number sees where. */
	atomic_store_explicit(&event->recorded, slot.number, memory_order_release);
	return obc_ctx_result(ctx, obc_log_commit(&slot));
}

CUresult obc_cuEventRecord(CUevent event, CUstream stream)
{
	return obc_cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

/* Query and synchronise differ only in the record. */
static CUresult event_ask(CUevent handle, uint16_t opcode)
{
	struct obp_event_query_req *req;
	struct obc_event *event;
	struct obc_slot slot;
	struct obf_ctx *ctx;
	CUresult result = event_enter(handle, &ctx, &event);
	uint64_t recorded;

	if (result != CUDA_SUCCESS)
		return result;
	recorded = atomic_load_explicit(&event->recorded, memory_order_acquire);
	if (!recorded || event_complete(event, recorded))
		return CUDA_SUCCESS;
	req = obc_log_begin(&slot, opcode, sizeof *req);
	if (!req)
		return obc_log_error();
	req->event = event->wire;
	result = obc_log_call(&slot, NULL, 0, NULL);
	if (result == CUDA_SUCCESS)
		event_completed(event, recorded);
	return obc_ctx_result(ctx, result);
}

CUresult obc_cuEventQuery(CUevent event)
{
	return event_ask(event, OBP_OP_EVENT_QUERY);
}

CUresult obc_cuEventSynchronize(CUevent event)
{
	return event_ask(event, OBP_OP_EVENT_SYNCHRONIZE);
}

CUresult obc_cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags)
{
	struct obp_stream_wait_req *req;
	struct obc_event *event;
	struct obc_lane_of at;
	struct obc_slot slot;
	struct obf_ctx *ctx;
	CUresult result = event_enter(handle, &ctx, &event);
	uint64_t recorded;

	if (result == CUDA_SUCCESS)
		result = obc_stream_any(stream, ctx, &at);
	if (result != CUDA_SUCCESS)
		return result;
	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	recorded = atomic_load_explicit(&event->recorded, memory_order_acquire);
	if (!recorded || event_complete(event, recorded))
		return CUDA_SUCCESS;
	req = obc_log_begin(&slot, OBP_OP_STREAM_WAIT, sizeof *req);
	if (!req)
		return obc_log_error();
	memset(req, 0, sizeof *req);
	req->stream = at.wire;
	req->event = event->wire;
	req->flags = flags;
	obc_stream_mark(&at, slot.number);
	return obc_ctx_result(ctx, obc_log_commit(&slot));
}

/* True when this very pair of recordings has been measured before. */
static bool elapsed_known(const struct obc_event *start, uint64_t from, const struct obc_event *end,
	uint64_t to, float *ret)
{
	bool known;

	pthread_mutex_lock(&elapsed_lock);
	known = end->elapsed_start == start->wire && end->elapsed_start_recorded == from &&
		end->elapsed_recorded == to;
	if (known)
		*ret = end->elapsed_ms;
	pthread_mutex_unlock(&elapsed_lock);
	return known;
}

CUresult obc_cuEventElapsedTime_v2(float *ret, CUevent start_handle, CUevent end_handle)
{
	struct obc_event *start, *end;
	struct obf_ctx *ctx;
	CUresult result = event_enter(start_handle, &ctx, &start);
	uint64_t from, to;
	float ms = 0;

	if (result == CUDA_SUCCESS)
		result = event_enter(end_handle, &ctx, &end);
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	from = atomic_load_explicit(&start->recorded, memory_order_acquire);
	to = atomic_load_explicit(&end->recorded, memory_order_acquire);
	if (!from || !to || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (ob_opt_on(OB_OPT_LOCAL) && elapsed_known(start, from, end, to, ret))
		return CUDA_SUCCESS;
	result = obc_call_op_event_elapsed(start->wire, end->wire, &ms);
	if (result != CUDA_SUCCESS)
		return obc_ctx_result(ctx, result);
	event_completed(start, from);
	event_completed(end, to);
	pthread_mutex_lock(&elapsed_lock);
	end->elapsed_start = start->wire;
	end->elapsed_start_recorded = from;
	end->elapsed_recorded = to;
	end->elapsed_ms = ms;
	pthread_mutex_unlock(&elapsed_lock);
	*ret = ms;
	return CUDA_SUCCESS;
}
