/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Converts the parameters of cuMemcpy2D, cuMemcpy3D and similar calls into an obf_copy: two
 * addresses, pitches and an extent, all checked.
 */
#include "front/copy.h"

#include "base/check.h"

/* Whether the pointer for this type is a CUdeviceptr, which must be device or pinned memory. */
static CUresult side_type(const struct obf_copy_side *side, bool *ret_said_device)
{
	switch ((int)side->type) {
	case CU_MEMORYTYPE_HOST:
	case CU_MEMORYTYPE_UNIFIED:
		*ret_said_device = false;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
		*ret_said_device = true;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/*
 * Computes the first byte, the pitch and the slice. The whole extent must be in one kind of memory.
 */
static CUresult side_place(const struct obf_copy_side *side, bool said_device,
	const struct obf_copy *copy, bool *ret_device, uint64_t *ret_first, size_t *ret_pitch,
	size_t *ret_slice)
{
	size_t row_end, pitch, height, slice, offset, a, b, last;

	if (ob_add_overflows(side->x, copy->width, &row_end))
		return CUDA_ERROR_INVALID_VALUE;
	/* A pitch of 0 is allowed if only one row is copied. */
	pitch = side->pitch ? side->pitch : row_end;
	height = side->height ? side->height : side->y + copy->height;
	if (row_end > pitch || ob_mul_overflows(pitch, height, &slice))
		return CUDA_ERROR_INVALID_VALUE;
	if (copy->depth > 1 && side->y + copy->height > height)
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_mul_overflows(side->z, slice, &a) || ob_mul_overflows(side->y, pitch, &b) ||
		ob_add_overflows(a, b, &offset) || ob_add_overflows(offset, side->x, &offset))
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_mul_overflows(copy->depth - 1, slice, &a) ||
		ob_mul_overflows(copy->height - 1, pitch, &b) || ob_add_overflows(a, b, &last) ||
		ob_add_overflows(last, copy->width, &last) ||
		ob_add_overflows(side->address, offset, ret_first) ||
		ob_add_overflows(*ret_first, last, &a))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_pitch = pitch;
	*ret_slice = slice;
	return obf_mem_side(*ret_first, last, said_device, ret_device);
}

/* For an empty copy: rejects only pointers that cannot be valid. */
static CUresult side_empty(const struct obf_copy_side *side, bool said_device)
{
	bool device;

	return side->address ? obf_mem_side(side->address, 1, said_device, &device)
			     : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_copy_side_place(const struct obf_copy_side *side, const struct obf_copy *copy,
	bool *ret_device, uint64_t *ret_first, size_t *ret_pitch, size_t *ret_slice)
{
	bool said_device = false;
	CUresult result = side_type(side, &said_device);

	return result == CUDA_SUCCESS
		? side_place(side, said_device, copy, ret_device, ret_first, ret_pitch, ret_slice)
		: result;
}

static CUresult copy_make(const struct obf_copy_side *src, const struct obf_copy_side *dst,
	size_t width, size_t height, size_t depth, struct obf_copy *ret)
{
	bool src_said = false, dst_said = false;
	CUresult result;

	*ret = (struct obf_copy){ .width = width, .height = height, .depth = depth };
	result = side_type(src, &src_said);
	if (result == CUDA_SUCCESS)
		result = side_type(dst, &dst_said);
	if (result != CUDA_SUCCESS)
		return result;
	if (width == 0 || height == 0 || depth == 0) {
		result = side_empty(src, src_said);
		return result == CUDA_SUCCESS ? side_empty(dst, dst_said) : result;
	}
	result = side_place(
		src, src_said, ret, &ret->src_device, &ret->src, &ret->src_pitch, &ret->src_slice);
	if (result == CUDA_SUCCESS)
		result = side_place(dst, dst_said, ret, &ret->dst_device, &ret->dst,
			&ret->dst_pitch, &ret->dst_slice);
	return result;
}

CUresult obf_copy_from_2d(const CUDA_MEMCPY2D *copy, struct obf_copy *ret)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_make(&(struct obf_copy_side){ OBF_SIDE_2D(copy, src) },
		&(struct obf_copy_side){ OBF_SIDE_2D(copy, dst) }, copy->WidthInBytes, copy->Height,
		1, ret);
}

CUresult obf_copy_from_3d(const CUDA_MEMCPY3D *copy, struct obf_copy *ret)
{
	if (!copy || copy->srcLOD != 0 || copy->dstLOD != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_make(&(struct obf_copy_side){ OBF_SIDE_3D(copy, src) },
		&(struct obf_copy_side){ OBF_SIDE_3D(copy, dst) }, copy->WidthInBytes, copy->Height,
		copy->Depth, ret);
}

CUresult obf_copy_from_peer(const CUDA_MEMCPY3D_PEER *copy, struct obf_copy *ret)
{
	if (copy->srcLOD != 0 || copy->dstLOD != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_make(&(struct obf_copy_side){ OBF_SIDE_3D(copy, src) },
		&(struct obf_copy_side){ OBF_SIDE_3D(copy, dst) }, copy->WidthInBytes, copy->Height,
		copy->Depth, ret);
}
