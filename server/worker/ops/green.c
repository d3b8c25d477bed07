/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Green contexts: made by the driver from a split that is repeated for each of them. */
#include <string.h>

#include "base/check.h"
#include "server/layers/keep.h"
#include "server/worker/ops/ops.h"

/* The result of a split. */
struct split {
	CUdevResource whole, groups[OBP_GREEN_GROUPS_MAX], rest;
	unsigned n;
};

/* The resource of green context `base`, or of the device. */
static CUresult whole_get(struct obs_exec *x, const struct obp_record *rec, uint64_t base,
	uint32_t device, CUdevResource *ret)
{
	struct obs_handle *handle = base ? obs_handles_find(&x->session->greens, base) : NULL;

	if (device >= (uint32_t)x->session->n_devices)
		obs_violation(x, rec, "there is no such device");
	if (!base) {
		/* A session that has a part of the device has nothing else to divide. */
		const struct obs_context *primary =
			obs_context_find(x->session, OBP_CTX_PRIMARY + (uint64_t)device);

		return primary && primary->part.green
			? x->drv->cuGreenCtxGetDevResource(
				  primary->part.green, ret, CU_DEV_RESOURCE_TYPE_SM)
			: x->drv->cuDeviceGetDevResource(
				  (CUdevice)device, ret, CU_DEV_RESOURCE_TYPE_SM);
	}
	/* It may have ended when the client's record was on its way. */
	if (!handle || !handle->driver)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	return x->drv->cuGreenCtxGetDevResource(handle->driver, ret, CU_DEV_RESOURCE_TYPE_SM);
}

static CUresult part_ready(struct obs_exec *x, const struct obp_record *rec, uint32_t device)
{
	struct obs_context *primary =
		obs_context_find(x->session, OBP_CTX_PRIMARY + (uint64_t)device);

	if (device >= (uint32_t)x->session->n_devices || !primary)
		obs_violation(x, rec, "there is no such device");
	return obs_context_ready(x->session, primary);
}

static void sms_put(const CUdevResource *resource, uint32_t ret[3])
{
	if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
		return;
	ret[0] = resource->sm.smCount;
	ret[1] = resource->sm.minSmPartitionSize;
	ret[2] = resource->sm.smCoscheduledAlignment;
}

void obs_op_green_split(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_green_split_req *req)
{
	struct obp_green_split_rep rep = { 0 };
	struct split split = { .n = req->groups };
	CUresult result = CUDA_SUCCESS;

	/* The program needs no context for it, but what it has to divide is its part. */
	if (!req->base && obs_keep_by() == OBP_SHARE_BY_GREEN)
		result = part_ready(x, rec, req->device);
	if (result == CUDA_SUCCESS)
		result = whole_get(x, rec, req->base, req->device, &split.whole);
	if (result == CUDA_SUCCESS && req->least != OBP_GREEN_NO_SPLIT)
		result = x->drv->cuDevSmResourceSplitByCount(req->groups ? split.groups : NULL,
			&split.n, &split.whole, &split.rest, req->flags, req->least);
	if (result == CUDA_SUCCESS) {
		rep.made = split.n;
		sms_put(&split.whole, rep.whole);
		sms_put(&split.groups[0], rep.group);
		sms_put(&split.rest, rep.rest);
	}
	obs_reply(x, rec, result, &rep, sizeof rep);
}

/* Writes the chosen resources to ret, which has room for all. CUDA_ERROR_INVALID_VALUE: none. */
static CUresult choose(const struct obp_green_create_req *req, const struct split *split,
	CUdevResource ret[OBP_GREEN_GROUPS_MAX + 1], unsigned *ret_n)
{
	unsigned n = 0;

	for (unsigned i = 0; i < split->n && i < OBP_GREEN_GROUPS_MAX; i++)
		if (req->chosen[i / 64] & 1ull << i % 64)
			ret[n++] = split->groups[i];
	if (req->rest && split->rest.type == CU_DEV_RESOURCE_TYPE_SM)
		ret[n++] = split->rest;
	*ret_n = n;
	return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult green_make(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_green_create_req *req, CUgreenCtx *ret)
{
	CUdevResource chosen[OBP_GREEN_GROUPS_MAX + 1];
	struct split split = { .n = req->groups };
	CUdevResourceDesc desc;
	unsigned n = 1;
	CUresult result = whole_get(x, rec, req->base, req->device, &split.whole);

	chosen[0] = split.whole;
	if (result == CUDA_SUCCESS && req->groups)
		result = x->drv->cuDevSmResourceSplitByCount(
			split.groups, &split.n, &split.whole, &split.rest, req->flags, req->least);
	if (result == CUDA_SUCCESS && req->groups)
		result = choose(req, &split, chosen, &n);
	if (result == CUDA_SUCCESS)
		result = x->drv->cuDevResourceGenerateDesc(&desc, chosen, n);
	return result == CUDA_SUCCESS ? x->drv->cuGreenCtxCreate(ret, desc, (CUdevice)req->device,
						CU_GREEN_CTX_DEFAULT_STREAM)
				      : result;
}

void obs_op_green_create(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_green_create_req *req)
{
	struct obs_context *primary =
		obs_context_find(x->session, OBP_CTX_PRIMARY + (uint64_t)req->device);
	struct obs_handle handle = { .context = primary };
	CUgreenCtx green = NULL;
	CUresult result = obs_handle_room(x);

	if (req->device >= (uint32_t)x->session->n_devices || !primary)
		obs_violation(x, rec, "there is no such device");
	if (!obs_handles_vacant(&x->session->greens, req->green))
		obs_violation(x, rec, "the green context's id is in use or out of range");
	if (result == CUDA_SUCCESS)
		result = obs_context_ready(x->session, primary);
	if (result == CUDA_SUCCESS)
		result = green_make(x, rec, req, &green);
	handle.driver = green;
	if (result == CUDA_SUCCESS && !obs_handles_put(&x->session->greens, req->green, &handle)) {
		x->drv->cuGreenCtxDestroy(green);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	obs_reply(x, rec, result, NULL, 0);
}

void obs_op_green_destroy(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_green_destroy_req *req)
{
	struct obs_handle handle;

	/* Unknown: it ended with its primary context, and the record was already on its way. */
	if (obs_handles_remove(&x->session->greens, req->green, &handle))
		obs_async_result(x, rec, x->drv->cuGreenCtxDestroy(handle.driver));
}

void obs_op_green_stream(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_green_stream_req *req)
{
	struct obs_handle *green = obs_handles_find(&x->session->greens, req->green);
	struct obs_handle handle = { .extra = OBS_STREAM_APART,
		.context = green ? green->context : x->context };
	CUstream stream = NULL;
	CUresult result = obs_handle_room(x);

	if (result == CUDA_SUCCESS)
		result = green ? x->drv->cuGreenCtxStreamCreate(&stream, green->driver,
					 CU_STREAM_NON_BLOCKING, req->priority)
			       : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	handle.driver = result == CUDA_SUCCESS ? stream : NULL;
	if (req->stream <= 1 || !obs_handles_put(&x->session->streams, req->stream, &handle))
		obs_violation(x, rec, "the stream's id is in use or out of range");
	obs_async_result(x, rec, result);
}
