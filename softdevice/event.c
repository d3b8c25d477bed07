/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/event.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/ids.h"
#include "protocol/obd_locals.h"
#include "softdevice/context.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"

#define FLAGS_ALL (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

static struct ob_ids ids = OB_IDS_INIT(OBF_KIND_EVENT, OBD_EVENT_MAX);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void event_unref(struct obd_event *event)
{
	bool last;

	if (!event)
		return;
	pthread_mutex_lock(&lock);
	last = --event->refs == 0;
	pthread_mutex_unlock(&lock);
	if (last) {
		obd_op_unref(event->op);
		free(event);
	}
}

static void event_unrefp(struct obd_event **event)
{
	event_unref(*event);
}

static void op_unrefp(struct obd_op **op)
{
	obd_op_unref(*op);
}

/* The event, and the op it was last recorded with (NULL: never), both referenced. */
static CUresult event_get(CUevent handle, struct obd_event **ret, struct obd_op **ret_op)
{
	pthread_mutex_lock(&lock);
	*ret = ob_ids_get(&ids, (uint64_t)(uintptr_t)handle);
	if (*ret) {
		(*ret)->refs++;
		*ret_op = obd_op_ref((*ret)->op);
	}
	pthread_mutex_unlock(&lock);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult event_enter(CUevent handle, struct obd_event **ret, struct obd_op **ret_op)
{
	CUresult result = obd_ctx_none();

	if (!result)
		result = event_get(handle, ret, ret_op);
	return result ? result : obd_ctx_result((*ret)->ctx);
}

static void unlink_locked(struct obd_event *event)
{
	if (event->prev)
		event->prev->next = event->next;
	else
		event->ctx->events = event->next;
	if (event->next)
		event->next->prev = event->prev;
}

static struct obd_event *handle_end(CUevent handle)
{
	struct obd_event *event;

	pthread_mutex_lock(&lock);
	event = ob_ids_remove(&ids, (uint64_t)(uintptr_t)handle);
	pthread_mutex_unlock(&lock);
	return event;
}

void obd_event_forget(struct obd_ctx *ctx)
{
	struct obd_event *event;

	do {
		pthread_mutex_lock(&ctx->lock);
		event = ctx->events;
		if (event)
			unlink_locked(event);
		pthread_mutex_unlock(&ctx->lock);
		if (event && handle_end(event->handle))
			event_unref(event);
	} while (event);
}

CUresult obd_cuEventCreate(CUevent *event, unsigned int flags)
{
	struct obd_ctx *ctx;
	struct obd_event *new;
	CUresult result = obd_ctx_enter(&ctx);

	if (result)
		return result;
	if (!event || flags & ~(unsigned)FLAGS_ALL)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS)
		return flags & CU_EVENT_DISABLE_TIMING ? CUDA_ERROR_NOT_SUPPORTED
						       : CUDA_ERROR_INVALID_VALUE;
	new = calloc(1, sizeof *new);
	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	new->ctx = ctx;
	new->flags = flags;
	new->refs = 1;
	new->handle = (CUevent)(uintptr_t)ob_ids_add(&ids, new);
	if (!new->handle) {
		free(new);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&ctx->lock);
	new->next = ctx->events;
	if (ctx->events)
		ctx->events->prev = new;
	ctx->events = new;
	pthread_mutex_unlock(&ctx->lock);
	*event = new->handle;
	return CUDA_SUCCESS;
}

CUresult obd_cuEventDestroy_v2(CUevent event)
{
	struct obd_event *gone;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	gone = handle_end(event);
	if (!gone)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&gone->ctx->lock);
	unlink_locked(gone);
	pthread_mutex_unlock(&gone->ctx->lock);
	result = obd_ctx_result(gone->ctx);
	/* Waits that were queued hold the op, not the event. */
	event_unref(gone);
	return result;
}

CUresult obd_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	OB_CLEANUP(event_unrefp) struct obd_event *e = NULL;
	OB_CLEANUP(op_unrefp) struct obd_op *op = NULL;
	struct obd_ctx *ctx;
	struct obd_op *mark;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (!result)
		result = event_get(event, &e, &op);
	if (result)
		return result;
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_RECORD_EXTERNAL) /* for captured streams, and none is */
		return CUDA_ERROR_INVALID_VALUE;
	if (e->ctx != s->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	mark = obd_op_new(sizeof *mark, OBD_OP_MARK, s->ctx);
	if (!mark)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obd_sched_submit(mark, s, NULL);
	if (result) {
		obd_op_unref(mark);
		return result;
	}
	pthread_mutex_lock(&lock);
	obd_op_unref(op);
	op = e->op; /* dropped when the lock is free */
	e->op = mark;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult obd_cuEventRecord(CUevent event, CUstream stream)
{
	return obd_cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult obd_cuEventQuery(CUevent event)
{
	OB_CLEANUP(event_unrefp) struct obd_event *e = NULL;
	OB_CLEANUP(op_unrefp) struct obd_op *op = NULL;
	CUresult result = event_enter(event, &e, &op);

	if (result)
		return result;
	return op && !obd_op_done(op) ? CUDA_ERROR_NOT_READY : obd_ctx_result(e->ctx);
}

CUresult obd_cuEventSynchronize(CUevent event)
{
	OB_CLEANUP(event_unrefp) struct obd_event *e = NULL;
	OB_CLEANUP(op_unrefp) struct obd_op *op = NULL;
	CUresult result = event_enter(event, &e, &op);

	if (result)
		return result;
	if (op)
		obd_op_wait(op);
	obd_print_flush(&e->ctx->print);
	return obd_ctx_result(e->ctx);
}

CUresult obd_cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
	OB_CLEANUP(event_unrefp) struct obd_event *a = NULL;
	OB_CLEANUP(event_unrefp) struct obd_event *b = NULL;
	OB_CLEANUP(op_unrefp) struct obd_op *from = NULL;
	OB_CLEANUP(op_unrefp) struct obd_op *to = NULL;
	CUresult result = event_enter(start, &a, &from);

	if (!result)
		result = event_enter(end, &b, &to);
	if (result)
		return result;
	if (!milliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING || !from || !to || a->ctx != b->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!obd_op_done(from) || !obd_op_done(to))
		return CUDA_ERROR_NOT_READY;
	*milliseconds = (float)((double)(int64_t)(to->time_ns - from->time_ns) / 1e6);
	return CUDA_SUCCESS;
}

CUresult obd_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	OB_CLEANUP(event_unrefp) struct obd_event *e = NULL;
	OB_CLEANUP(op_unrefp) struct obd_op *op = NULL;
	struct obd_ctx *ctx;
	struct obd_op *mark;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (!result)
		result = event_get(event, &e, &op);
	if (result)
		return result;
	if (flags != CU_EVENT_WAIT_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	if (!op || obd_op_done(op))
		return CUDA_SUCCESS;
	mark = obd_op_new(sizeof *mark, OBD_OP_MARK, s->ctx);
	if (!mark)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obd_sched_submit(mark, s, op);
	obd_op_unref(mark);
	return result;
}
