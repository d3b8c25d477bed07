/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies with arrays. Each call becomes an obf_array_copy, whose sides are arrays with a position,
 * or memory with addresses and pitches.
 */
#include "base/check.h"
#include "front/array.h"
#include "front/captured.h"
#include "front/copy.h"
#include "front/private.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

/* Whether [at, at + size) lies within `end`. */
static bool is_inside(size_t at, size_t size, size_t end)
{
	return at <= end && size <= end - at;
}

/*
 * Resolves a side that is an array and checks position and extent. Positions and widths must be
 * multiples of an element.
 */
static CUresult array_side(const struct obf_copy_side *side, const struct obf_ctx *ctx,
	const struct obf_copy *extent, struct obf_array **ret, size_t ret_at[3])
{
	struct obf_array *array = obf_array_find(side->array);
	const CUDA_ARRAY3D_DESCRIPTOR *desc;

	if (!array || array->ctx != ctx || !array->element)
		return CUDA_ERROR_INVALID_VALUE;
	desc = &array->desc;
	if (side->x % array->element || extent->width % array->element ||
		!is_inside(side->x, extent->width, desc->Width * array->element) ||
		!is_inside(side->y, extent->height, ob_array_rows(desc)) ||
		!is_inside(side->z, extent->depth, ob_array_slices(desc)))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = array;
	ret_at[0] = side->x;
	ret_at[1] = side->y;
	ret_at[2] = side->z;
	return CUDA_SUCCESS;
}

static bool is_empty(const struct obf_copy *extent)
{
	return !extent->width || !extent->height || !extent->depth;
}

/* The extent and the contexts of ret->flat are set. */
static CUresult sides_resolve(const struct obf_copy_side *src, const struct obf_copy_side *dst,
	const struct obf_ctx *src_ctx, const struct obf_ctx *dst_ctx, struct obf_array_copy *ret)
{
	struct obf_copy *flat = &ret->flat;
	CUresult result = CUDA_SUCCESS;

	if (src->lod || dst->lod)
		return CUDA_ERROR_INVALID_VALUE;
	if (src->type == CU_MEMORYTYPE_ARRAY)
		result = array_side(src, src_ctx, flat, &ret->src, ret->src_at);
	else if (!is_empty(flat))
		result = obf_copy_side_place(src, flat, &flat->src_device, &flat->src,
			&flat->src_pitch, &flat->src_slice);
	if (result != CUDA_SUCCESS)
		return result;
	if (dst->type == CU_MEMORYTYPE_ARRAY)
		return array_side(dst, dst_ctx, flat, &ret->dst, ret->dst_at);
	return is_empty(flat) ? CUDA_SUCCESS
			      : obf_copy_side_place(dst, flat, &flat->dst_device, &flat->dst,
					&flat->dst_pitch, &flat->dst_slice);
}

static CUresult submit(struct obf_stream *stream, const struct obf_array_copy *copy, bool blocking)
{
	if (ob_unlikely(stream->capture != NULL))
		return obf_capture_refuse(stream);
	if (is_empty(&copy->flat))
		return CUDA_SUCCESS;
	return obf_ctx_result(stream->ctx, obf_process.backend->array_copy(stream, copy, blocking));
}

static CUresult copy_sides(struct obf_stream *stream, const struct obf_copy_side *src,
	const struct obf_copy_side *dst, const struct obf_copy *extent, bool blocking)
{
	struct obf_array_copy copy = { .flat = *extent };
	const struct obf_ctx *ctx = obf_ctx_peek();
	CUresult result = sides_resolve(src, dst, extent->src_ctx ? extent->src_ctx : ctx,
		extent->dst_ctx ? extent->dst_ctx : ctx, &copy);

	return result == CUDA_SUCCESS ? submit(stream, &copy, blocking) : result;
}

/* ---- rows, boxes, peers ---- */

CUresult obf_array_copy_2d(struct obf_stream *stream, const CUDA_MEMCPY2D *params, bool blocking)
{
	const struct obf_copy extent = {
		.width = params->WidthInBytes, .height = params->Height, .depth = 1
	};

	return copy_sides(stream, &(struct obf_copy_side){ OBF_SIDE_2D(params, src) },
		&(struct obf_copy_side){ OBF_SIDE_2D(params, dst) }, &extent, blocking);
}

CUresult obf_array_copy_3d(struct obf_stream *stream, const CUDA_MEMCPY3D *params, bool blocking)
{
	const struct obf_copy extent = {
		.width = params->WidthInBytes, .height = params->Height, .depth = params->Depth
	};

	return copy_sides(stream, &(struct obf_copy_side){ OBF_SIDE_3D(params, src) },
		&(struct obf_copy_side){ OBF_SIDE_3D(params, dst) }, &extent, blocking);
}

CUresult obf_array_copy_peer(struct obf_stream *stream, const CUDA_MEMCPY3D_PEER *params,
	struct obf_ctx *dst_ctx, struct obf_ctx *src_ctx, bool blocking)
{
	const struct obf_copy extent = {
		.width = params->WidthInBytes,
		.height = params->Height,
		.depth = params->Depth,
		.src_ctx = src_ctx,
		.dst_ctx = dst_ctx,
	};

	return copy_sides(stream, &(struct obf_copy_side){ OBF_SIDE_3D(params, src) },
		&(struct obf_copy_side){ OBF_SIDE_3D(params, dst) }, &extent, blocking);
}

/* ---- batches: extents, offsets and row lengths are elements of the array ---- */

static unsigned operand_element(const CUmemcpy3DOperand *operand)
{
	const struct obf_array *array = operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY
		? obf_array_find(operand->op.array.array)
		: NULL;

	return array ? array->element : 0;
}

/* False: a number overflows, or the type is unknown. */
static bool operand_side(
	const CUmemcpy3DOperand *operand, unsigned element, struct obf_copy_side *ret)
{
	if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		*ret = (struct obf_copy_side){ .type = CU_MEMORYTYPE_ARRAY,
			.array = operand->op.array.array,
			.y = operand->op.array.offset.y,
			.z = operand->op.array.offset.z };
		return !ob_mul_overflows(operand->op.array.offset.x, (size_t)element, &ret->x);
	}
	*ret = (struct obf_copy_side){ .type = CU_MEMORYTYPE_UNIFIED,
		.address = operand->op.ptr.ptr,
		.height = operand->op.ptr.layerHeight };
	return operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER &&
		!ob_mul_overflows(operand->op.ptr.rowLength, (size_t)element, &ret->pitch);
}

CUresult obf_array_copy_from_batch(const CUDA_MEMCPY3D_BATCH_OP *op, struct obf_array_copy *ret)
{
	unsigned src_element = operand_element(&op->src), dst_element = operand_element(&op->dst);
	unsigned element = ob_max(src_element, dst_element);
	const struct obf_ctx *ctx = obf_ctx_peek();
	struct obf_copy_side src, dst;

	if (!element || (src_element && dst_element && src_element != dst_element))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct obf_array_copy){ .flat = { .height = op->extent.height,
						.depth = op->extent.depth } };
	if (ob_mul_overflows(op->extent.width, (size_t)element, &ret->flat.width) ||
		!operand_side(&op->src, element, &src) || !operand_side(&op->dst, element, &dst))
		return CUDA_ERROR_INVALID_VALUE;
	return sides_resolve(&src, &dst, ctx, ctx, ret);
}

/* ---- one row of a 1-D array ---- */

static struct obf_copy_side row_array(CUarray array, size_t offset)
{
	return (struct obf_copy_side){ .type = CU_MEMORYTYPE_ARRAY, .array = array, .x = offset };
}

static struct obf_copy_side row_memory(CUmemorytype type, uint64_t address)
{
	return (struct obf_copy_side){ .type = type, .address = address };
}

/* The calls are for arrays of one dimension. */
static bool is_row(const struct obf_copy_side *side)
{
	const struct obf_array *array =
		side->type == CU_MEMORYTYPE_ARRAY ? obf_array_find(side->array) : NULL;

	return !array || (!array->desc.Height && !array->desc.Depth);
}

static CUresult row_copy(struct obf_copy_side dst, struct obf_copy_side src, size_t size,
	CUstream handle, bool blocking)
{
	const struct obf_copy extent = { .width = size, .height = 1, .depth = 1 };
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!is_row(&dst) || !is_row(&src))
		return CUDA_ERROR_INVALID_VALUE;
	return copy_sides(stream, &src, &dst, &extent, blocking);
}

CUresult obf_cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset,
	size_t size, CUstream stream)
{
	return row_copy(row_array(dst, dst_offset), row_array(src, src_offset), size, stream, true);
}

CUresult obf_cuMemcpyAtoD_v2(
	CUdeviceptr dst, CUarray src, size_t offset, size_t size, CUstream stream)
{
	return row_copy(
		row_memory(CU_MEMORYTYPE_DEVICE, dst), row_array(src, offset), size, stream, true);
}

CUresult obf_cuMemcpyDtoA_v2(
	CUarray dst, size_t offset, CUdeviceptr src, size_t size, CUstream stream)
{
	return row_copy(
		row_array(dst, offset), row_memory(CU_MEMORYTYPE_DEVICE, src), size, stream, true);
}

CUresult obf_cuMemcpyAtoHAsync_v2(
	void *dst, CUarray src, size_t offset, size_t size, CUstream stream)
{
	return row_copy(row_memory(CU_MEMORYTYPE_HOST, (uintptr_t)dst), row_array(src, offset),
		size, stream, false);
}

CUresult obf_cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t size, CUstream stream)
{
	return row_copy(row_memory(CU_MEMORYTYPE_HOST, (uintptr_t)dst), row_array(src, offset),
		size, stream, true);
}

CUresult obf_cuMemcpyHtoAAsync_v2(
	CUarray dst, size_t offset, const void *src, size_t size, CUstream stream)
{
	return row_copy(row_array(dst, offset), row_memory(CU_MEMORYTYPE_HOST, (uintptr_t)src),
		size, stream, false);
}

CUresult obf_cuMemcpyHtoA_v2(
	CUarray dst, size_t offset, const void *src, size_t size, CUstream stream)
{
	return row_copy(row_array(dst, offset), row_memory(CU_MEMORYTYPE_HOST, (uintptr_t)src),
		size, stream, true);
}

/* The same with 32-bit sizes, of CUDA before 3.2. They have no per-thread twins. */

CUresult obf_cuMemcpyAtoA(
	CUarray dst, unsigned dst_offset, CUarray src, unsigned src_offset, unsigned size)
{
	return obf_cuMemcpyAtoA_v2(dst, dst_offset, src, src_offset, size, NULL);
}

CUresult obf_cuMemcpyAtoH(void *dst, CUarray src, unsigned offset, unsigned size)
{
	return obf_cuMemcpyAtoH_v2(dst, src, offset, size, NULL);
}

CUresult obf_cuMemcpyHtoA(CUarray dst, unsigned offset, const void *src, unsigned size)
{
	return obf_cuMemcpyHtoA_v2(dst, offset, src, size, NULL);
}

CUresult obf_cuMemcpyAtoHAsync(
	void *dst, CUarray src, unsigned offset, unsigned size, CUstream stream)
{
	return obf_cuMemcpyAtoHAsync_v2(dst, src, offset, size, stream);
}

CUresult obf_cuMemcpyHtoAAsync(
	CUarray dst, unsigned offset, const void *src, unsigned size, CUstream stream)
{
	return obf_cuMemcpyHtoAAsync_v2(dst, offset, src, size, stream);
}
