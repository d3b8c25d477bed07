/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Access between devices. The driver's call concerns memory that the driver placed; memory of the
 * session's range is opened to the device by obs_memory_share.
 */
#include "server/worker/ops/ops.h"

static int attribute(struct obs_exec *x, CUdevice_P2PAttribute attr,
	const struct obp_peer_query_req *req, CUresult *result)
{
	int value = 0;

	if (*result == CUDA_SUCCESS)
		*result = x->drv->cuDeviceGetP2PAttribute(
			&value, attr, (CUdevice)req->device, (CUdevice)req->peer);
	/* One that this driver does not know: not offered. */
	if (*result == CUDA_ERROR_INVALID_VALUE)
		*result = CUDA_SUCCESS;
	return value;
}

void obs_op_peer_query(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_peer_query_req *req)
{
	struct obp_peer_query_rep rep = { 0 };
	uint32_t n = (uint32_t)x->session->n_devices;
	int can = 0;
	CUresult result;

	if (req->device >= n || req->peer >= n || req->device == req->peer)
		obs_violation(x, rec, "there is no such pair of devices");
	result = x->drv->cuDeviceCanAccessPeer(&can, (CUdevice)req->device, (CUdevice)req->peer);
	rep.attr[0] = can != 0;
	for (uint32_t i = 1; i < OBP_PEER_ATTRS; i++)
		rep.attr[i] = (uint32_t)attribute(x, (CUdevice_P2PAttribute)i, req, &result);
	obs_reply(x, rec, result, &rep, sizeof rep);
}

void obs_op_peer_enable(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_peer_enable_req *req)
{
	struct obs_context *peer = obs_context_find(x->session, req->peer);
	CUresult result = peer ? obs_context_ready(x->session, peer) : CUDA_ERROR_INVALID_CONTEXT;

	if (result == CUDA_SUCCESS)
		result = x->drv->cuCtxEnablePeerAccess(peer->driver, 0);
	/* The client keeps the books: a context may have been reset there. */
	if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
		result = CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = obs_memory_share(&x->session->memory, peer->device, x->context->device);
	obs_reply(x, rec, result, NULL, 0);
}

void obs_op_peer_disable(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_peer_disable_req *req)
{
	struct obs_context *peer = obs_context_find(x->session, req->peer);

	/* One that has ended gave up the access itself. */
	if (peer && peer->driver)
		obs_async_result(x, rec, x->drv->cuCtxDisablePeerAccess(peer->driver));
}
