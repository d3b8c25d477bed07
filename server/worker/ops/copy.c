/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies and fills. Addresses are checked before the driver sees them: one outside the session's
 * memory could be in this process.
 */
#include <string.h>

#include "base/check.h"
#include "server/worker/lane.h"
#include "server/worker/ops/ops.h"

/* A box of bytes in device memory: depth slices of height rows of width bytes. */
struct box {
	uint64_t addr, pitch, slice, width, height, depth;
};

/* True when every byte of the box lies in the session's memory. An empty box always does. */
static bool box_inside(struct obs_exec *x, const struct box *box)
{
	uint64_t rows, slices, last;

	if (box->width == 0 || box->height == 0 || box->depth == 0)
		return true;
	if ((box->height > 1 && box->pitch < box->width) ||
		ob_mul_overflows(box->height - 1, box->pitch, &rows) ||
		ob_mul_overflows(box->depth - 1, box->slice, &slices) ||
		ob_add_overflows(rows, slices, &last) ||
		ob_add_overflows(last, box->width, &last) ||
		(box->depth > 1 && box->slice < rows + box->width))
		return false;
	return obs_memory_check(&x->session->memory, box->addr, last);
}

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

/* The driver's context for the id of a peer copy; 0 is the current one. False: told. */
static bool peer_context(
	struct obs_exec *x, const struct obp_record *rec, uint64_t id, CUcontext *ret)
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
		(!peer_context(x, rec, req->dst_ctx, &dst_ctx) ||
			!peer_context(x, rec, req->src_ctx, &src_ctx)))
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

/* ---- device to host ---- */

/*
 * A copy to the client in pieces of at most OBP_CHUNK_MAX bytes. Each piece is copied into one of
 * two slots; meanwhile the piece before is sent. `row` and `done_in_row` say where the next piece
 * begins.
 */
struct pull {
	struct box box;
	uint64_t row, done_in_row; /* rows are numbered through all slices */
	uint64_t piece;            /* bytes */
	CUstream stream;
};

static CUresult pull_rows(
	struct obs_exec *x, const struct pull *pull, uint64_t row, uint64_t rows, uint8_t *dst)
{
	const struct box *box = &pull->box;
	CUresult result = CUDA_SUCCESS;

	while (rows > 0 && result == CUDA_SUCCESS) {
		uint64_t k = row / box->height, y = row % box->height,
			 n = ob_min(rows, box->height - y);
		CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = box->addr + k * box->slice + y * box->pitch,
			.srcPitch = n > 1 ? box->pitch : box->width,
			.dstMemoryType = CU_MEMORYTYPE_HOST,
			.dstHost = dst,
			.dstPitch = box->width,
			.WidthInBytes = box->width,
			.Height = n };

		result = x->drv->cuMemcpy2DAsync_v2(&copy, pull->stream);
		dst += n * box->width;
		row += n;
		rows -= n;
	}
	return result;
}

/* Starts the next piece; *ret_size 0: there are no more. */
static CUresult pull_next(struct obs_exec *x, struct pull *pull, uint8_t *dst, uint32_t *ret_size)
{
	const struct box *box = &pull->box;
	uint64_t rows = box->height * box->depth - pull->row, n;

	*ret_size = 0;
	if (rows == 0 || box->width == 0)
		return CUDA_SUCCESS;
	if (box->width <= pull->piece && rows > 1) {
		uint64_t row = pull->row;

		n = ob_min(rows, pull->piece / box->width);
		pull->row += n;
		*ret_size = (uint32_t)(n * box->width);
		return pull_rows(x, pull, row, n, dst);
	}
	n = ob_min(box->width - pull->done_in_row, pull->piece);
	*ret_size = (uint32_t)n;
	CUresult result = x->drv->cuMemcpyDtoHAsync_v2(dst,
		box->addr + pull->row / box->height * box->slice +
			pull->row % box->height * box->pitch + pull->done_in_row,
		n, pull->stream);
	pull->done_in_row += n;
	if (pull->done_in_row == box->width) {
		pull->row++;
		pull->done_in_row = 0;
	}
	return result;
}

/* Marks the piece in the slot so that it can be waited for. */
static void pull_mark(struct obs_exec *x, struct obs_slot *slot, const struct pull *pull)
{
	CUevent event = obs_staging_event(&x->session->staging, slot, x->context);

	slot->pending = event && x->drv->cuEventRecord(event, pull->stream) == CUDA_SUCCESS;
}

static CUresult pull_wait(struct obs_exec *x, struct obs_slot *slot, const struct pull *pull)
{
	bool marked = slot->pending;

	slot->pending = false;
	return marked ? x->drv->cuEventSynchronize(slot->event)
		      : x->drv->cuStreamSynchronize(pull->stream);
}

/* A single piece: no event, the stream is waited for. */
static void pull_single(
	struct obs_exec *x, const struct obp_record *rec, struct pull *pull, struct obs_slot *slot)
{
	uint32_t size;
	CUresult result = pull_next(x, pull, slot->data, &size);

	if (result == CUDA_SUCCESS)
		result = x->drv->cuStreamSynchronize(pull->stream);
	obs_exec_output(x, result);
	(void)rec;
	obs_reply_slot(x, result, slot, result == CUDA_SUCCESS ? size : 0, false);
}

static void pull_pieces(struct obs_exec *x, const struct obp_record *rec, struct pull *pull,
	struct obs_slot *slots[2])
{
	uint32_t size, next_size;
	CUresult result = pull_next(x, pull, slots[0]->data, &size);
	bool first = true;

	pull_mark(x, slots[0], pull);
	for (uint32_t i = 0; result == CUDA_SUCCESS; i ^= 1) {
		result = pull_next(x, pull, slots[i ^ 1]->data, &next_size);
		if (next_size)
			pull_mark(x, slots[i ^ 1], pull);
		if (result == CUDA_SUCCESS)
			result = pull_wait(x, slots[i], pull);
		if (result != CUDA_SUCCESS)
			break;
		if (first)
			obs_exec_output(x, result);
		first = false;
		if (next_size == 0) {
			obs_reply_slot(x, result, slots[i], size, false);
			return;
		}
		obs_reply_slot(x, result, slots[i], size, true);
		size = next_size;
		if (!obs_staging_read_turn(&x->session->staging, &slots[i]))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* The slots may be reused by others only when nothing writes into them any more. */
	x->drv->cuStreamSynchronize(pull->stream);
	slots[0]->pending = slots[1]->pending = false;
	obs_exec_output(x, result);
	obs_reply(x, rec, result, NULL, 0);
}

static void pull_run(
	struct obs_exec *x, const struct obp_record *rec, struct pull *pull, uint64_t stream)
{
	struct obs_slot *slots[2];
	uint64_t bytes;

	if (!obs_stream_get(x, rec, stream, &pull->stream))
		return;
	if (!x->context) {
		obs_reply(x, rec, CUDA_ERROR_INVALID_CONTEXT, NULL, 0);
		return;
	}
	if (!box_inside(x, &pull->box) ||
		ob_mul_overflows(pull->box.width, pull->box.height, &bytes) ||
		ob_mul_overflows(bytes, pull->box.depth, &bytes)) {
		obs_reply(x, rec, CUDA_ERROR_INVALID_VALUE, NULL, 0);
		return;
	}
	/* With small pieces, packing, sending and unpacking overlap. */
	pull->piece = obp_packer_cuts(&x->session->packer) ? OBP_PACK_CHUNK : OBP_CHUNK_MAX;
	if (!obs_staging_read_take(&x->session->staging, slots)) {
		obs_reply(x, rec, CUDA_ERROR_OUT_OF_MEMORY, NULL, 0);
		return;
	}
	if (bytes <= pull->piece)
		pull_single(x, rec, pull, slots[0]);
	else
		pull_pieces(x, rec, pull, slots);
	obs_staging_read_give(&x->session->staging, slots);
}

void obs_op_read(struct obs_exec *x, const struct obp_record *rec, const struct obp_read_req *req)
{
	struct pull pull = { .box = { req->src, req->size, req->size, req->size, 1, 1 } };

	pull_run(x, rec, &pull, req->stream);
}

void obs_op_read_rows(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_read_rows_req *req)
{
	struct pull pull = { .box = { req->src, req->src_pitch, req->src_slice, req->width,
				     req->height, req->depth } };

	pull_run(x, rec, &pull, req->stream);
}
