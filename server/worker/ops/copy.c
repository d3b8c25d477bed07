/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fills, and copies to and within the device. Addresses are checked before the driver sees them:
 * one outside the session's memory could be in this process.
 */
#include <string.h>

#include "base/check.h"
#include "server/worker/lane.h"
#include "server/worker/ops/box.h"
#include "server/worker/ops/ops.h"

/* ---- fills ---- */

static CUresult fill(struct obs_exec *x, const struct obp_memset_req *req, CUstream stream)
{
	const struct obs_driver *drv = x->drv;

	if (req->height <= 1) {
		switch (req->element) {
		case 1:
			return drv->cuMemsetD8Async(
				req->dst, (unsigned char)req->value, req->width, stream);
		case 2:
			return drv->cuMemsetD16Async(
				req->dst, (unsigned short)req->value, req->width, stream);
		default:
			return drv->cuMemsetD32Async(req->dst, req->value, req->width, stream);
		}
	}
	switch (req->element) {
	case 1:
		return drv->cuMemsetD2D8Async(req->dst, req->pitch, (unsigned char)req->value,
			req->width, req->height, stream);
	case 2:
		return drv->cuMemsetD2D16Async(req->dst, req->pitch, (unsigned short)req->value,
			req->width, req->height, stream);
	default:
		return drv->cuMemsetD2D32Async(
			req->dst, req->pitch, req->value, req->width, req->height, stream);
	}
}

void obs_op_memset(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_memset_req *req)
{
	struct box box = { req->dst, req->pitch, 0, 0, req->height, 1 };
	CUstream stream;

	if (req->element != 1 && req->element != 2 && req->element != 4)
		obs_violation(x, rec, "the element size of a fill is not 1, 2 or 4 bytes");
	if (!obs_stream_get(x, rec, req->stream, &stream))
		return;
	if (ob_mul_overflows(req->width, req->element, &box.width) || !box_inside(x, &box))
		obs_async_result(x, rec, CUDA_ERROR_INVALID_VALUE);
	else
		obs_async_result(x, rec, fill(x, req, stream));
}

/* ---- device to device ---- */

static CUresult d2d_slice(struct obs_exec *x, const struct obp_copy_d2d_req *req, uint64_t k,
	CUcontext dst_ctx, CUcontext src_ctx, CUstream stream)
{
	uint64_t dst = req->dst + k * req->dst_slice, src = req->src + k * req->src_slice;

	if (dst_ctx != src_ctx) {
		CUDA_MEMCPY3D_PEER peer = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = src,
			.dstDevice = dst,
			.srcContext = src_ctx,
			.dstContext = dst_ctx,
			.srcPitch = req->src_pitch,
			.dstPitch = req->dst_pitch,
			.srcHeight = req->height,
			.dstHeight = req->height,
			.WidthInBytes = req->width,
			.Height = req->height,
			.Depth = 1 };

		if (req->height == 1)
			return x->drv->cuMemcpyPeerAsync(
				dst, dst_ctx, src, src_ctx, req->width, stream);
		return x->drv->cuMemcpy3DPeerAsync(&peer, stream);
	}
	if (req->height == 1)
		return x->drv->cuMemcpyDtoDAsync_v2(dst, src, req->width, stream);
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = src,
		.dstDevice = dst,
		.srcPitch = req->src_pitch,
		.dstPitch = req->dst_pitch,
		.WidthInBytes = req->width,
		.Height = req->height };

	return x->drv->cuMemcpy2DAsync_v2(&copy, stream);
}

bool obs_peer_context(struct obs_exec *x, const struct obp_record *rec, uint64_t id, CUcontext *ret)
{
	struct obs_context *context = id ? obs_context_find(x->session, id) : x->context;
	CUresult result = CUDA_ERROR_INVALID_CONTEXT;

	if (context)
		result = obs_context_ready(x->session, context);
	if (result != CUDA_SUCCESS) {
		obs_exec_result(x, rec, result);
		return false;
	}
	*ret = context->driver;
	return true;
}

void obs_op_copy_d2d(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_copy_d2d_req *req)
{
	const struct box dst = { req->dst, req->dst_pitch, req->dst_slice, req->width, req->height,
		req->depth };
	const struct box src = { req->src, req->src_pitch, req->src_slice, req->width, req->height,
		req->depth };
	CUcontext dst_ctx = NULL, src_ctx = NULL;
	CUresult result = CUDA_SUCCESS;
	CUstream stream;

	if (!obs_stream_get(x, rec, req->stream, &stream))
		return;
	if (req->dst_ctx != req->src_ctx &&
		(!obs_peer_context(x, rec, req->dst_ctx, &dst_ctx) ||
			!obs_peer_context(x, rec, req->src_ctx, &src_ctx)))
		return;
	if (!box_inside(x, &dst) || !box_inside(x, &src)) {
		obs_async_result(x, rec, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (req->width && req->height)
		for (uint64_t k = 0; k < req->depth && result == CUDA_SUCCESS; k++)
			result = d2d_slice(x, req, k, dst_ctx, src_ctx, stream);
	obs_async_result(x, rec, result);
}

/* ---- host to device ---- */

void obs_op_write(struct obs_exec *x, const struct obp_record *rec, const struct obp_write_req *req,
	const void *data)
{
	CUresult result = CUDA_SUCCESS;
	CUstream stream;

	if (!obs_stream_get(x, rec, req->stream, &stream))
		return;
	/*
	 * The driver has taken the bytes of pageable memory when it returns, also in the Async
	 * form: the buffer may be reused.
	 */
	if (!obs_memory_check(&x->session->memory, req->dst, req->size))
		result = CUDA_ERROR_INVALID_VALUE;
	else if (req->size && !stream)
		result = x->drv->cuMemcpyHtoD_v2(req->dst, data, req->size);
	else if (req->size)
		result = x->drv->cuMemcpyHtoDAsync_v2(req->dst, data, req->size, stream);
	obs_async_result(x, rec, result);
}

/* Receives and drops the rest of a record that cannot be executed. */
static bool big_skip(struct obs_exec *x)
{
	uint8_t bytes[4096];
	size_t left;

	while ((left = obp_conn_body_left(x->conn)) > 0)
		if (!obs_exec_receive(x, bytes, ob_min(left, sizeof bytes)))
			return false;
	return true;
}

bool obs_big_write(struct obs_exec *x, const struct obp_item *item)
{
	const struct obp_record *rec = &item->record;
	struct obp_write_req req;
	struct obs_slot *slot;
	uint64_t pad;
	CUstream stream;
	CUresult result;

	if (!obs_exec_receive(x, &req, sizeof req))
		return false;
	pad = (8 - req.size % 8) % 8;
	if (req.size > OBP_CHUNK_MAX || sizeof req + req.size + pad != item->size)
		obs_violation(x, rec, "a call's body is out of bounds");
	result = x->lane->context == x->context ? CUDA_SUCCESS
						: obs_context_enter(x, x->lane->context);
	if (result == CUDA_SUCCESS && !obs_memory_check(&x->session->memory, req.dst, req.size))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS || !obs_stream_get(x, rec, req.stream, &stream)) {
		if (!big_skip(x))
			return false;
		if (result != CUDA_SUCCESS)
			obs_async_result(x, rec, result);
		return true;
	}
	slot = obs_staging_write_slot(&x->session->staging, x->context);
	/*
	 * If the connection breaks here the whole record comes again: the slot was only filled,
	 * nothing was copied from it.
	 */
	if (!obs_exec_receive(x, slot->data, req.size) || !big_skip(x))
		return false;
	result = x->drv->cuMemcpyHtoDAsync_v2(req.dst, slot->data, req.size, stream);
	obs_staging_write_started(&x->session->staging, slot, x->context, stream);
	obs_async_result(x, rec, result);
	return true;
}

void obs_op_write_rows(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_write_rows_req *req, const void *data)
{
	const struct box box = { req->dst, req->dst_pitch, req->dst_slice, req->width, req->height,
		req->depth };
	/* the spec bounds width * height * depth */
	uint64_t slice_bytes = req->width * req->height;
	CUresult result = CUDA_SUCCESS;
	struct obs_slot *slot;
	CUstream stream;

	if (!obs_stream_get(x, rec, req->stream, &stream))
		return;
	if (!box_inside(x, &box)) {
		obs_async_result(x, rec, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (slice_bytes == 0 || req->depth == 0)
		return;
	slot = obs_staging_write_slot(&x->session->staging, x->context);
	memcpy(slot->data, data, slice_bytes * req->depth);
	for (uint64_t k = 0; k < req->depth && result == CUDA_SUCCESS; k++) {
		CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			.srcHost = slot->data + k * slice_bytes,
			.srcPitch = req->width,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = req->dst + k * req->dst_slice,
			.dstPitch = req->height > 1 ? req->dst_pitch : req->width,
			.WidthInBytes = req->width,
			.Height = req->height };

		result = x->drv->cuMemcpy2DAsync_v2(&copy, stream);
	}
	obs_staging_write_started(&x->session->staging, slot, x->context, stream);
	obs_async_result(x, rec, result);
}
