/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Converts the parameters of cuMemcpy2D, cuMemcpy3D and similar calls into an obf_copy: two
 * addresses, pitches and an extent, all checked.
 */
#include "front/copy.h"

#include "base/check.h"

struct side {
	CUmemorytype type;
	uint64_t address; /* the pointer that the memory type selects; offsets not applied */
	size_t x, y, z, pitch, height;
};

/* Whether the pointer for this type is a CUdeviceptr, which must be device or pinned memory. */
static CUresult side_type(const struct side *side, bool *ret_said_device)
{
	switch ((int)side->type) {
	case CU_MEMORYTYPE_HOST:
	case CU_MEMORYTYPE_UNIFIED:
		*ret_said_device = false;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
		*ret_said_device = true;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_ARRAY:
		return obf_absent(
			"cuMemcpy2D/3D with arrays", "arrays and textures are not forwarded");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/*
 * Computes the first byte, the pitch and the slice. The whole extent must be in one kind of memory.
 */
static CUresult side_place(const struct side *side, bool said_device, const struct obf_copy *copy,
	bool *ret_device, uint64_t *ret_first, size_t *ret_pitch, size_t *ret_slice)
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
static CUresult side_empty(const struct side *side, bool said_device)
{
	bool device;

	return side->address ? obf_mem_side(side->address, 1, said_device, &device)
			     : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_make(const struct side *src, const struct side *dst, size_t width,
	size_t height, size_t depth, struct obf_copy *ret)
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

/* Unified pointers are in the device field. */
static uint64_t address_of(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
}

/*
 * The members of struct side from the parameters of one side, `src` or `dst`. The structs for two
 * dimensions, three dimensions and peers name them alike.
 */
#define SIDE_2D(copy, side)                                                                        \
	.type = (copy)->side##MemoryType,                                                          \
	.address = address_of((copy)->side##MemoryType, (copy)->side##Host, (copy)->side##Device), \
	.x = (copy)->side##XInBytes, .y = (copy)->side##Y, .pitch = (copy)->side##Pitch
#define SIDE_3D(copy, side) \
	SIDE_2D(copy, side), .z = (copy)->side##Z, .height = (copy)->side##Height

CUresult obf_copy_from_2d(const CUDA_MEMCPY2D *copy, struct obf_copy *ret)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_make(&(struct side){ SIDE_2D(copy, src) }, &(struct side){ SIDE_2D(copy, dst) },
		copy->WidthInBytes, copy->Height, 1, ret);
}

CUresult obf_copy_from_3d(const CUDA_MEMCPY3D *copy, struct obf_copy *ret)
{
	if (!copy || copy->srcLOD != 0 || copy->dstLOD != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_make(&(struct side){ SIDE_3D(copy, src) }, &(struct side){ SIDE_3D(copy, dst) },
		copy->WidthInBytes, copy->Height, copy->Depth, ret);
}

CUresult obf_copy_from_peer(const CUDA_MEMCPY3D_PEER *copy, struct obf_copy *ret)
{
	if (copy->srcLOD != 0 || copy->dstLOD != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_make(&(struct side){ SIDE_3D(copy, src) }, &(struct side){ SIDE_3D(copy, dst) },
		copy->WidthInBytes, copy->Height, copy->Depth, ret);
}
