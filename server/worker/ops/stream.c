/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Streams, events, launches, host functions. */
#include "base/check.h"
#include "server/worker/completion.h"
#include "server/worker/hostfunc.h"
#include "server/worker/ipc.h"
#include "server/worker/ops/ops.h"
#include "server/worker/work.h"

/* ---- streams ---- */

static CUresult stream_make(
	const struct obs_exec *x, const struct obp_stream_create_req *req, CUstream *ret)
{
	if (x->context && x->context->part.green)
		return obs_partition_stream(
			x->drv, &x->context->part, req->flags, req->priority, ret);
	return x->drv->cuStreamCreateWithPriority(ret, req->flags, req->priority);
}

/* Whether the driver's stream is this handle's alone. */
static bool stream_own(const struct obs_handle *handle)
{
	return !handle->context || handle->driver != handle->context->part.stream;
}

void obs_op_stream_create(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_stream_create_req *req)
{
	struct obs_handle handle = { .context = x->context,
		.extra = req->flags & CU_STREAM_NON_BLOCKING ? OBS_STREAM_APART : 0 };
	CUstream stream = NULL;
	CUresult result = obs_handle_room(x);

	if (result == CUDA_SUCCESS)
		result = stream_make(x, req, &stream);
	handle.driver = result == CUDA_SUCCESS ? stream : NULL;
	if (req->stream <= 1 || !obs_handles_put(&x->session->streams, req->stream, &handle))
		obs_violation(x, rec, "the stream's id is in use or out of range");
	obs_async_result(x, rec, result);
}

void obs_op_stream_destroy(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_stream_destroy_req *req)
{
	struct obs_handle handle;

	/*
	 * Unknown: it was destroyed with its context, and the client's record was already on its
	 * way. Likewise for events.
	 */
	if (!obs_handles_remove(&x->session->streams, req->stream, &handle) || !handle.driver)
		return;
	obs_work_orphan(x, &handle);
	if (stream_own(&handle))
		obs_async_result(x, rec, x->drv->cuStreamDestroy_v2(handle.driver));
}

void obs_op_stream_wait(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_stream_wait_req *req)
{
	struct obs_handle *event;
	CUstream stream;

	if (obs_stream_get(x, rec, req->stream, &stream) &&
		obs_handle_use(x, rec, &x->session->events, req->event, &event))
		obs_async_result(
			x, rec, x->drv->cuStreamWaitEvent(stream, event->driver, req->flags));
}

/* ---- events ---- */

void obs_op_event_create(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_event_create_req *req)
{
	struct obs_handle handle = { .context = x->context, .extra = req->flags };
	CUevent event = NULL;
	CUresult result = obs_handle_room(x);

	if (result == CUDA_SUCCESS)
		result = x->drv->cuEventCreate(&event, req->flags);
	handle.driver = result == CUDA_SUCCESS ? event : NULL;
	if (!obs_handles_put(&x->session->events, req->event, &handle))
		obs_violation(x, rec, "the event's id is in use or out of range");
	obs_async_result(x, rec, result);
}

void obs_op_event_destroy(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_event_destroy_req *req)
{
	struct obs_handle handle;

	obs_ipc_ended(OBS_IPC_EVENT, req->event);
	if (obs_handles_remove(&x->session->events, req->event, &handle) && handle.driver &&
		!obs_completion_keeps(x->session, handle.driver))
		obs_async_result(x, rec, x->drv->cuEventDestroy_v2(handle.driver));
}

/*
 * A call waits for the event as it is now: that event is left to it, and the handle gets another
 * one. Not if other sessions use the event: then the call waits for the new recording too.
 */
static CUresult event_renew(struct obs_exec *x, struct obs_handle *event)
{
	CUevent fresh;
	CUresult result = x->drv->cuEventCreate(&fresh, (unsigned)event->extra);

	if (result == CUDA_SUCCESS && obs_completion_keeps(x->session, event->driver))
		event->driver = fresh;
	else if (result == CUDA_SUCCESS)
		x->drv->cuEventDestroy_v2(fresh);
	return result;
}

void obs_op_event_record(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_event_record_req *req)
{
	struct obs_handle *event;
	CUstream stream;
	CUresult result = CUDA_SUCCESS;

	if (!obs_handle_use(x, rec, &x->session->events, req->event, &event) ||
		!obs_stream_get(x, rec, req->stream, &stream))
		return;
	if (ob_unlikely(obs_completion_waits(x->session, event->driver)) &&
		!(event->extra & CU_EVENT_INTERPROCESS))
		result = event_renew(x, event);
	if (result == CUDA_SUCCESS)
		result = req->flags
			? x->drv->cuEventRecordWithFlags(event->driver, stream, req->flags)
			: x->drv->cuEventRecord(event->driver, stream);
	obs_async_result(x, rec, result);
}

void obs_op_event_elapsed(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_event_elapsed_req *req)
{
	struct obp_event_elapsed_rep rep = { 0 };
	struct obs_handle *start, *end;
	CUresult result;

	if (!obs_handle_use(x, rec, &x->session->events, req->start, &start) ||
		!obs_handle_use(x, rec, &x->session->events, req->end, &end))
		return;
	result = x->drv->cuEventElapsedTime_v2(&rep.milliseconds, start->driver, end->driver);
	obs_reply(x, rec, result, &rep, sizeof rep);
}

/* ---- launches ---- */

#define LAUNCH_ATTRIBUTES_MAX 4

/* Attributes that cuLaunchKernel cannot express. */
static uint32_t launch_attributes(
	const struct obp_launch_req *req, CUlaunchAttribute ret[LAUNCH_ATTRIBUTES_MAX])
{
	uint32_t n = 0;

	if (req->flags & OBP_LAUNCH_COOPERATIVE)
		ret[n++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
			.value.cooperative = 1 };
	if (req->flags & OBP_LAUNCH_PRIORITY)
		ret[n++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_PRIORITY,
			.value.priority = req->priority };
	if (req->flags & OBP_LAUNCH_OVERLAP)
		ret[n++] = (CUlaunchAttribute){
			.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
			.value.programmaticStreamSerializationAllowed = 1
		};
	if (req->cluster[0] | req->cluster[1] | req->cluster[2])
		ret[n++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
			.value.clusterDim = { req->cluster[0], req->cluster[1], req->cluster[2] } };
	return n;
}

static CUresult launch_ex(struct obs_exec *x, const struct obp_launch_req *req, CUfunction function,
	CUstream stream, void **extra)
{
	CUlaunchAttribute attributes[LAUNCH_ATTRIBUTES_MAX];
	CUlaunchConfig config = { .gridDimX = req->grid[0],
		.gridDimY = req->grid[1],
		.gridDimZ = req->grid[2],
		.blockDimX = req->block[0],
		.blockDimY = req->block[1],
		.blockDimZ = req->block[2],
		.sharedMemBytes = req->shared,
		.hStream = stream,
		.attrs = attributes,
		.numAttrs = launch_attributes(req, attributes) };

	return x->drv->cuLaunchKernelEx(&config, function, NULL, extra);
}

void obs_op_launch(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_launch_req *req, const void *params)
{
	size_t param_bytes = req->param_bytes;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)params,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &param_bytes, CU_LAUNCH_PARAM_END };
	const uint32_t special = OBP_LAUNCH_COOPERATIVE | OBP_LAUNCH_PRIORITY | OBP_LAUNCH_OVERLAP;
	struct obs_handle *function;
	CUstream stream;
	CUresult result;

	if (!obs_handle_use(x, rec, &x->session->functions, req->func, &function) ||
		!obs_stream_get(x, rec, req->stream, &stream))
		return;
	if (ob_unlikely(req->flags & OBP_LAUNCH_PRINTS))
		atomic_store_explicit(&x->session->prints, true, memory_order_relaxed);
	if (ob_unlikely((req->flags & special) ||
		    (req->cluster[0] | req->cluster[1] | req->cluster[2])))
		result = launch_ex(x, req, function->driver, stream, param_bytes ? extra : NULL);
	else
		result = x->drv->cuLaunchKernel(function->driver, req->grid[0], req->grid[1],
			req->grid[2], req->block[0], req->block[1], req->block[2], req->shared,
			stream, NULL, param_bytes ? extra : NULL);
	obs_async_result(x, rec, result);
}

void obs_op_host_func(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_host_func_req *req)
{
	CUstream stream;

	if (obs_stream_get(x, rec, req->stream, &stream))
		obs_async_result(x, rec,
			obs_hostfunc_launch(
				x->session, stream, req->callback, req->with_status != 0));
}
