/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/event.h"

#include <pthread.h>

#include "base/cleanup.h"
#include "softdevice/context.h"
#include "softdevice/event_share.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"

struct obd_event {
	struct obf_event base;
	struct obd_op *op; /* one reference; NULL: never recorded; guarded by `lock` */
	/* an event of several processes, which has no `op`; else NULL */
	struct obd_shared_event *shared;
};

const size_t obd_event_size = sizeof(struct obd_event);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `op` of every event */

static void op_unrefp(struct obd_op **op)
{
	obd_op_unref(*op);
}

/* Stores `op`, or NULL, in the event and returns the old op. The caller gets its reference. */
static struct obd_op *op_exchange(struct obf_event *base, struct obd_op *op)
{
	struct obd_event *event = (struct obd_event *)base;
	struct obd_op *old;

	pthread_mutex_lock(&lock);
	old = event->op;
	event->op = op;
	pthread_mutex_unlock(&lock);
	return old;
}

/* The op of the last recording, as a new reference. */
static struct obd_op *op_get(struct obf_event *event)
{
	struct obd_op *op;

	pthread_mutex_lock(&lock);
	op = obd_op_ref(((struct obd_event *)event)->op);
	pthread_mutex_unlock(&lock);
	return op;
}

static struct obd_ctx *ctx_of(const struct obf_event *event)
{
	return event->ctx->backend;
}

static struct obd_shared_event *shared_of(const struct obf_event *event)
{
	return ((const struct obd_event *)event)->shared;
}

CUresult obd_event_open(struct obf_event *event)
{
	if (!(event->flags & CU_EVENT_INTERPROCESS))
		return CUDA_SUCCESS;
	((struct obd_event *)event)->shared = obd_shared_event_new();
	return shared_of(event) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obd_event_import(struct obf_event *event, const struct obf_share *share)
{
	return obd_shared_event_open(share, &((struct obd_event *)event)->shared);
}

CUresult obd_event_export(struct obf_event *event, struct obf_share *ret)
{
	obd_shared_event_name(shared_of(event), ret);
	return CUDA_SUCCESS;
}

CUresult obd_event_close(struct obf_event *event, bool ctx_ended)
{
	/* Waits that are queued hold a reference to the op, not to the event. */
	(void)ctx_ended;
	obd_op_unref(op_exchange(event, NULL));
	obd_shared_event_unref(shared_of(event));
	return CUDA_SUCCESS;
}

/* Appends a mark to the stream. *ret is a reference to it; NULL on error. */
static CUresult mark_put(struct obf_stream *base, struct obd_op **ret)
{
	struct obd_stream *stream = obd_stream_of(base);
	CUresult result;

	*ret = obd_op_new(sizeof **ret, OBD_OP_MARK, stream->ctx);
	if (!*ret)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obd_sched_submit(*ret, stream, NULL);
	if (result) {
		obd_op_unref(*ret);
		*ret = NULL;
	}
	return result;
}

CUresult obd_event_record(struct obf_event *event, struct obf_stream *stream)
{
	struct obd_op *mark;
	CUresult result;

	if (shared_of(event))
		return obd_shared_event_record(shared_of(event), stream);
	result = mark_put(stream, &mark);
	if (!result)
		obd_op_unref(op_exchange(event, mark));
	return result;
}

CUresult obd_event_query(struct obf_event *event)
{
	OB_CLEANUP(op_unrefp) struct obd_op *op = op_get(event);

	if (shared_of(event) && obd_shared_event_query(shared_of(event)) != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_READY;
	return op && !obd_op_over(op) ? CUDA_ERROR_NOT_READY : obd_ctx_result(ctx_of(event));
}

CUresult obd_event_wait(struct obf_event *event)
{
	OB_CLEANUP(op_unrefp) struct obd_op *op = op_get(event);

	if (op)
		obd_op_wait(op);
	if (shared_of(event))
		obd_shared_event_wait(shared_of(event), ctx_of(event));
	obd_print_flush(&ctx_of(event)->print);
	return obd_ctx_result(ctx_of(event));
}

CUresult obd_event_elapsed(struct obf_event *start, struct obf_event *end, float *ret)
{
	OB_CLEANUP(op_unrefp) struct obd_op *from = op_get(start);
	OB_CLEANUP(op_unrefp) struct obd_op *to = op_get(end);

	if (!from || !to)
		return CUDA_ERROR_INVALID_HANDLE; /* destroyed by another thread */
	if (!obd_op_over(from) || !obd_op_over(to))
		return CUDA_ERROR_NOT_READY;
	*ret = (float)((double)(int64_t)(to->time_ns - from->time_ns) / 1e6);
	return CUDA_SUCCESS;
}

CUresult obd_stream_wait_event(struct obf_stream *base, struct obf_event *event)
{
	OB_CLEANUP(op_unrefp) struct obd_op *op = op_get(event);
	OB_CLEANUP(op_unrefp) struct obd_op *mark = NULL;
	struct obd_stream *stream = obd_stream_of(base);

	if (shared_of(event))
		return obd_shared_event_stream_wait(shared_of(event), base);
	if (!op || obd_op_over(op))
		return CUDA_SUCCESS;
	mark = obd_op_new(sizeof *mark, OBD_OP_MARK, stream->ctx);
	return mark ? obd_sched_submit(mark, stream, op) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- points: like events, but without an event object ---- */

CUresult obd_point_take(struct obf_stream *stream, struct obf_point *ret)
{
	struct obd_op *mark;
	CUresult result = mark_put(stream, &mark);

	ret->words[0] = (uintptr_t)mark;
	return result;
}

bool obd_point_passed(const struct obf_point *point)
{
	return obd_op_over((struct obd_op *)(uintptr_t)point->words[0]);
}

void obd_point_drop(struct obf_point *point)
{
	obd_op_unref((struct obd_op *)(uintptr_t)point->words[0]);
}
