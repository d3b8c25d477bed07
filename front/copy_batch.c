/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Batches of copies. CUDA guarantees no order among the copies of a batch; here they are put into
 * the stream one after the other. All copies are checked before the first one is made.
 */
#include "front/array.h"
#include "front/captured.h"
#include "front/copy.h"
#include "front/mirror.h"
#include "front/private.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

#define COPY_FLAGS ((unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)

static bool order_valid(CUmemcpySrcAccessOrder order, unsigned flags)
{
	return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
		order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY && !(flags & ~COPY_FLAGS);
}

/* CUDA accepts a batch in any stream except the legacy stream. */
static CUresult batch_enter(CUstream handle, size_t *fail_index, struct obf_stream **ret)
{
	CUresult result = obf_stream_enter(handle, ret);

	if (fail_index)
		*fail_index = SIZE_MAX; /* an error that does not belong to one copy */
	return result == CUDA_SUCCESS && (*ret)->legacy ? CUDA_ERROR_INVALID_VALUE : result;
}

static CUresult copy_submit(
	struct obf_stream *stream, const struct obf_copy *copy, CUmemcpySrcAccessOrder order)
{
	CUresult result;

	if (ob_unlikely(stream->capture != NULL))
		return obf_capture_copy(stream, copy, false);
	result = obf_mirrors_copy(stream, copy->src_device, copy->src);
	if (result == CUDA_SUCCESS)
		result = obf_process.backend->copy(stream, copy, false);
	if (result == CUDA_SUCCESS)
		result = obf_mirrors_copied(stream, copy->dst_device, copy->dst);
	/* Pinned memory may be read when the stream reaches the copy. */
	if (result == CUDA_SUCCESS && order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
		!copy->src_device)
		result = obf_process.backend->stream_wait(stream);
	return obf_ctx_result(stream->ctx, result);
}

/* ---- rows ---- */

struct rows {
	const CUdeviceptr *dsts, *srcs;
	const size_t *sizes;
	size_t n;
	const CUmemcpyAttributes *attrs;
	const size_t *firsts; /* index of the first copy to which an entry of attrs applies */
	size_t n_attrs;
};

static CUresult rows_check(const struct rows *rows)
{
	if (!rows->n || !rows->dsts || !rows->srcs || !rows->sizes || !rows->attrs ||
		!rows->firsts || !rows->n_attrs || rows->n_attrs > rows->n || rows->firsts[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < rows->n_attrs; i++) {
		bool rises = i == 0 || rows->firsts[i] > rows->firsts[i - 1];

		if (!rises || rows->firsts[i] >= rows->n ||
			!order_valid(rows->attrs[i].srcAccessOrder, rows->attrs[i].flags))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult row_make(const struct rows *rows, size_t i, struct obf_copy *ret)
{
	size_t size = rows->sizes[i];
	CUresult result;

	*ret = obf_copy_row(rows->dsts[i], rows->srcs[i], size);
	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_mem_side(ret->dst, size, false, &ret->dst_device);
	return result == CUDA_SUCCESS ? obf_mem_side(ret->src, size, false, &ret->src_device)
				      : result;
}

static CUresult rows_copy(const struct rows *rows, size_t *fail_index, CUstream handle)
{
	struct obf_stream *stream;
	struct obf_copy copy;
	CUresult result = batch_enter(handle, fail_index, &stream);

	if (result == CUDA_SUCCESS)
		result = rows_check(rows);
	for (size_t i = 0; i < rows->n && result == CUDA_SUCCESS; i++) {
		result = row_make(rows, i, &copy);
		if (result != CUDA_SUCCESS && fail_index)
			*fail_index = i;
	}
	for (size_t i = 0, attr = 0; i < rows->n && result == CUDA_SUCCESS; i++) {
		if (attr + 1 < rows->n_attrs && rows->firsts[attr + 1] == i)
			attr++;
		row_make(rows, i, &copy);
		result = copy_submit(stream, &copy, rows->attrs[attr].srcAccessOrder);
		if (result != CUDA_SUCCESS && fail_index)
			*fail_index = i;
	}
	return result;
}

CUresult obf_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	CUmemcpyAttributes *attrs, size_t *attr_firsts, size_t n_attrs, size_t *fail_index,
	CUstream stream)
{
	struct rows rows = { dsts, srcs, sizes, count, attrs, attr_firsts, n_attrs };

	return rows_copy(&rows, fail_index, stream);
}

CUresult obf_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attr_firsts, size_t n_attrs,
	CUstream stream)
{
	struct rows rows = { dsts, srcs, sizes, count, attrs, attr_firsts, n_attrs };

	return rows_copy(&rows, NULL, stream);
}

/* ---- boxes: without an array, elements are bytes ---- */

static CUresult box_make(const CUDA_MEMCPY3D_BATCH_OP *op, struct obf_copy *ret)
{
	const CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = op->src.op.ptr.ptr,
		.srcPitch = op->src.op.ptr.rowLength,
		.srcHeight = op->src.op.ptr.layerHeight,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = op->dst.op.ptr.ptr,
		.dstPitch = op->dst.op.ptr.rowLength,
		.dstHeight = op->dst.op.ptr.layerHeight,
		.WidthInBytes = op->extent.width,
		.Height = op->extent.height,
		.Depth = op->extent.depth,
	};

	if (op->src.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
		op->dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER || !op->extent.width ||
		!op->extent.height || !op->extent.depth ||
		!order_valid(op->srcAccessOrder, op->flags))
		return CUDA_ERROR_INVALID_VALUE;
	return obf_copy_from_3d(&copy, ret);
}

static bool has_array(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	return op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ||
		op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
}

static CUresult array_make(const CUDA_MEMCPY3D_BATCH_OP *op, struct obf_array_copy *ret)
{
	if (!op->extent.width || !op->extent.height || !op->extent.depth ||
		!order_valid(op->srcAccessOrder, op->flags))
		return CUDA_ERROR_INVALID_VALUE;
	return obf_array_copy_from_batch(op, ret);
}

static CUresult op_check(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	struct obf_array_copy array;
	struct obf_copy copy;

	return has_array(op) ? array_make(op, &array) : box_make(op, &copy);
}

static CUresult array_submit(struct obf_stream *stream, const CUDA_MEMCPY3D_BATCH_OP *op)
{
	struct obf_array_copy copy;
	CUresult result = array_make(op, &copy);

	if (result == CUDA_SUCCESS)
		result = obf_process.backend->array_copy(stream, &copy, false);
	if (result == CUDA_SUCCESS &&
		op->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && !copy.src &&
		!copy.flat.src_device)
		result = obf_process.backend->stream_wait(stream);
	return obf_ctx_result(stream->ctx, result);
}

static CUresult op_submit(struct obf_stream *stream, const CUDA_MEMCPY3D_BATCH_OP *op)
{
	struct obf_copy copy;

	if (has_array(op))
		return array_submit(stream, op);
	box_make(op, &copy);
	return copy_submit(stream, &copy, op->srcAccessOrder);
}

static CUresult boxes_copy(size_t n, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail_index,
	unsigned long long flags, CUstream handle)
{
	struct obf_stream *stream;
	CUresult result = batch_enter(handle, fail_index, &stream);

	if (result == CUDA_SUCCESS && (!n || !ops || flags))
		result = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		result = op_check(&ops[i]);
		if (result != CUDA_SUCCESS && fail_index)
			*fail_index = i;
	}
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		result = op_submit(stream, &ops[i]);
		if (result != CUDA_SUCCESS && fail_index)
			*fail_index = i;
	}
	return result;
}

CUresult obf_cuMemcpy3DBatchAsync(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail_index,
	unsigned long long flags, CUstream stream)
{
	return boxes_copy(n, ops, fail_index, flags, stream);
}

CUresult obf_cuMemcpy3DBatchAsync_v2(
	size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream)
{
	return boxes_copy(n, ops, NULL, flags, stream);
}
