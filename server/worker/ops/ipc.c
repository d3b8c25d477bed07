/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Sharing memory and events with other sessions (server/worker/ipc.h). */
#include <string.h>

#include "server/layers/quota.h"
#include "server/worker/ask.h"
#include "server/worker/ipc.h"
#include "server/worker/ops/ops.h"

/* ---- memory of cuMemCreate ---- */

void obs_op_share_memory(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_share_memory_req *req)
{
	struct obp_share_memory_rep rep = { 0 };
	CUmemGenericAllocationHandle handle;
	CUresult result;
	void *driver;

	if (!obs_handle_get(x, rec, OBS_KIND_MEMORY, req->handle, &driver))
		return;
	handle = (CUmemGenericAllocationHandle)(uintptr_t)driver;
	result = obs_ipc_memory(handle, obs_quota_handle_bytes(handle), rep.id);
	if (result == CUDA_SUCCESS)
		result = obs_ipc_exported(OBS_IPC_MEMORY, handle, rep.id);
	obs_reply(x, rec, result, &rep, sizeof rep);
}

void obs_op_share_fetch(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_share_fetch_req *req)
{
	struct obp_share_fetch_rep rep = { 0 };
	uint64_t bytes;
	uint32_t device;

	obs_reply(x, rec, obs_ipc_fetch(req->id, &rep.ticket, &bytes, &device), &rep, sizeof rep);
}

/* ---- allocations ---- */

void obs_op_share_range(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_share_range_req *req)
{
	struct obp_share_range_rep rep = { 0 };

	obs_reply(x, rec, obs_ipc_range(req->addr, req->size, rep.id, &rep.offset, &rep.span), &rep,
		sizeof rep);
}

void obs_op_share_map(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_share_map_req *req)
{
	struct obp_share_map_rep rep = { 0 };

	obs_reply(
		x, rec, obs_ipc_map(req->id, req->addr, req->span, &rep.device), &rep, sizeof rep);
}

void obs_op_share_unmap(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_share_unmap_req *req)
{
	/* The front end has waited for the work of its context; this is for a hostile client. */
	if (x->lane->context && obs_context_enter(x, x->lane->context) == CUDA_SUCCESS)
		x->drv->cuCtxSynchronize();
	obs_async_result(x, rec, obs_ipc_unmap(req->addr));
}

/* ---- events ---- */

void obs_op_share_event(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_share_event_req *req)
{
	struct obs_ipc request = { .op = OBS_IPC_PUT, .kind = OBS_IPC_EVENT };
	struct obp_share_event_rep rep = { 0 };
	struct obs_handle *event;
	CUipcEventHandle handle = { { 0 } };
	CUresult result;

	_Static_assert(sizeof handle == OBS_IPC_DATA, "the driver's handle is passed on");
	if (!obs_handle_use(x, rec, &x->session->events, req->event, &event))
		return;
	result = x->drv->cuIpcGetEventHandle(&handle, event->driver);
	if (result == CUDA_SUCCESS) {
		memcpy(request.data, &handle, sizeof handle);
		result = obs_ask(&request, CUDA_ERROR_INVALID_HANDLE,
			obs_driver_event_fd(&x->session->lib, &handle), NULL);
		memcpy(rep.id, request.id, sizeof rep.id);
	}
	if (result == CUDA_SUCCESS)
		result = obs_ipc_exported(OBS_IPC_EVENT, req->event, rep.id);
	obs_reply(x, rec, result, &rep, sizeof rep);
}

static CUresult event_fetch(struct obs_exec *x, const uint64_t id[2], CUevent *ret)
{
	struct obs_ipc request = {
		.op = OBS_IPC_GET, .kind = OBS_IPC_EVENT, .id = { id[0], id[1] }
	};
	CUipcEventHandle handle;
	int fd = -1;
	CUresult result = obs_ask(&request, CUDA_ERROR_INVALID_HANDLE, -1, &fd);

	if (result == CUDA_SUCCESS && request.own)
		result = CUDA_ERROR_INVALID_CONTEXT;
	if (result == CUDA_SUCCESS) {
		memcpy(&handle, request.data, sizeof handle);
		if (x->session->lib.soft)
			obs_driver_event_set_fd(&x->session->lib, &handle, fd);
		result = x->drv->cuIpcOpenEventHandle(ret, handle);
	}
	obs_handoff_drop(&fd);
	return result;
}

void obs_op_event_open(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_event_open_req *req)
{
	struct obs_handle handle = { .context = x->context,
		.extra = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS };
	CUevent event = NULL;
	CUresult result = obs_handle_room(x);

	if (result == CUDA_SUCCESS)
		result = event_fetch(x, req->id, &event);
	handle.driver = result == CUDA_SUCCESS ? event : NULL;
	/* The client does not know the handle if opening it failed. */
	if (result == CUDA_SUCCESS && !obs_handles_put(&x->session->events, req->event, &handle))
		obs_violation(x, rec, "the event's id is in use or out of range");
	obs_reply(x, rec, result, NULL, 0);
}

/* Like any record that held.c does not list, it is executed after all that were held back. */
void obs_op_share_settle(struct obs_exec *x, const struct obp_record *rec)
{
	obs_reply(x, rec, CUDA_SUCCESS, NULL, 0);
}

/* ---- pools ---- */

void obs_op_share_pool(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_share_pool_req *req)
{
	struct obs_ipc request = { .op = OBS_IPC_PUT, .kind = OBS_IPC_POOL, .device = req->device };
	struct obp_share_pool_rep rep = { 0 };
	CUresult result = obs_ask(&request, CUDA_ERROR_INVALID_VALUE, -1, NULL);

	memcpy(rep.id, request.id, sizeof rep.id);
	obs_reply(x, rec, result, &rep, sizeof rep);
}

void obs_op_pool_open(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_pool_open_req *req)
{
	struct obs_ipc request = {
		.op = OBS_IPC_GET, .kind = OBS_IPC_POOL, .id = { req->id[0], req->id[1] }
	};
	struct obp_pool_open_rep rep = { 0 };
	CUresult result = obs_ask(&request, CUDA_ERROR_INVALID_VALUE, -1, NULL);

	rep.device = request.device;
	obs_reply(x, rec, result, &rep, sizeof rep);
}
