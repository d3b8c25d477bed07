/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Calls that wait for a context, a stream or an event. With one thread in the program the executor
 * blocks in the driver (exec.c). With several (x->later) it must go on: a call whose work is
 * complete is answered at once, any other is left to the completion thread.
 */
#include "server/worker/aside.h"
#include "server/worker/completion.h"
#include "server/worker/ops/ops.h"
#include "server/worker/work.h"

/* The driver has the work of this call complete, or the executor waits for it here. */
static void answer(struct obs_exec *x, const struct obp_record *rec, CUresult result)
{
	obs_exec_output(x, result);
	obs_reply(x, rec, result, NULL, 0);
}

/* ---- a context ---- */

/* The streams that a call for a context waits for. */
struct gather {
	struct obs_exec *x;
	struct obs_pending *pending; /* NULL: nothing has to be waited for yet */
	CUresult result;
	bool failed; /* no entry could be made */
};

static bool gather_one(void *user, CUstream stream)
{
	struct gather *gather = user;

	if (!gather->pending)
		gather->pending = obs_completion_new(gather->x);
	gather->failed = !gather->pending ||
		obs_completion_await(gather->x, gather->pending, stream) != CUDA_SUCCESS;
	return !gather->failed;
}

/* False: the executor has to wait here. */
static bool context_later(struct obs_exec *x, const struct obp_record *rec)
{
	struct gather gather = { .x = x };

	if (!x->context)
		return false;
	if (x->context->orphans)
		return obs_aside_run(x, rec, NULL, 0);
	if (obs_work_each(x, gather_one, &gather) == 0)
		return false; /* the driver's call returns at once */
	if (gather.failed) {
		if (gather.pending)
			obs_completion_drop(x->session, gather.pending);
		return obs_aside_run(x, rec, NULL, 0);
	}
	obs_completion_add(x->session, gather.pending);
	return true;
}

void obs_op_ctx_synchronize(struct obs_exec *x, const struct obp_record *rec)
{
	if (x->later && context_later(x, rec))
		return;
	answer(x, rec, x->drv->cuCtxSynchronize());
}

/* ---- a stream ---- */

static bool stream_later(struct obs_exec *x, CUstream stream, bool query)
{
	struct obs_pending *pending;

	if (x->drv->cuStreamQuery(stream) != CUDA_ERROR_NOT_READY)
		return false;
	pending = obs_completion_new(x);
	if (!pending)
		return false;
	if (obs_completion_await(x, pending, stream) != CUDA_SUCCESS) {
		obs_completion_drop(x->session, pending);
		return false;
	}
	pending->query = query;
	obs_completion_add(x->session, pending);
	return true;
}

void obs_op_stream_synchronize(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_stream_synchronize_req *req)
{
	CUstream stream;

	if (!obs_stream_get(x, rec, req->stream, &stream) ||
		(x->later && stream_later(x, stream, false)))
		return;
	answer(x, rec, x->drv->cuStreamSynchronize(stream));
}

void obs_op_stream_watch(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_stream_watch_req *req)
{
	CUstream stream;

	if (obs_stream_get(x, rec, req->stream, &stream) && !stream_later(x, stream, true))
		obs_reply(x, rec, x->drv->cuStreamQuery(stream), NULL, 0);
}

void obs_op_stream_query(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_stream_query_req *req)
{
	CUstream stream;

	if (obs_stream_get(x, rec, req->stream, &stream))
		obs_reply(x, rec, x->drv->cuStreamQuery(stream), NULL, 0);
}

/* ---- an event ---- */

/* body: size in bytes of the reply's body, which is zeros. */
static bool event_later(
	struct obs_exec *x, const struct obs_handle *handle, uint32_t body, bool query)
{
	CUevent event = handle->driver;
	struct obs_pending *pending;

	if (x->drv->cuEventQuery(event) != CUDA_ERROR_NOT_READY)
		return false;
	pending = obs_completion_new(x);
	if (!pending)
		return false;
	pending->shared = event;
	pending->body = body;
	pending->query = query;
	obs_completion_add(x->session, pending);
	return true;
}

void obs_op_event_synchronize(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_event_synchronize_req *req)
{
	struct obs_handle *event;

	if (!obs_handle_use(x, rec, &x->session->events, req->event, &event) ||
		(x->later && event_later(x, event, 0, false)))
		return;
	answer(x, rec, x->drv->cuEventSynchronize(event->driver));
}

void obs_op_event_query(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_event_query_req *req)
{
	struct obs_handle *event;

	if (obs_handle_use(x, rec, &x->session->events, req->event, &event))
		obs_reply(x, rec, x->drv->cuEventQuery(event->driver), NULL, 0);
}

void obs_op_event_watch(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_event_watch_req *req)
{
	struct obs_handle *event;

	if (obs_handle_use(x, rec, &x->session->events, req->event, &event) &&
		!event_later(x, event, 0, true))
		obs_reply(x, rec, x->drv->cuEventQuery(event->driver), NULL, 0);
}

/* A wait that the completion thread answers does not tell the time: the client asks for it. */
void obs_op_event_synchronize_since(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_event_synchronize_since_req *req)
{
	struct obp_event_synchronize_since_rep rep = { 0 };
	struct obs_handle *event, *start = obs_handles_find(&x->session->events, req->start);
	CUresult result;

	if (!obs_handle_use(x, rec, &x->session->events, req->event, &event) ||
		(x->later && event_later(x, event, sizeof rep, false)))
		return;
	result = x->drv->cuEventSynchronize(event->driver);
	if (result == CUDA_SUCCESS && start && start->driver)
		rep.timed = x->drv->cuEventElapsedTime_v2(&rep.milliseconds, start->driver,
				    event->driver) == CUDA_SUCCESS;
	obs_exec_output(x, result);
	obs_reply(x, rec, result, &rep, result == CUDA_SUCCESS ? sizeof rep : 0);
}
