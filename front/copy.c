/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuMemcpy2D and 3D parameters made plain: two addresses, pitches, an extent, all checked. */
#include "front/private.h"

struct side {
	CUmemorytype type;
	uint64_t address; /* of whichever pointer the type names; offsets not applied */
	size_t x, y, z, pitch, height;
};

/* Where the side lies; an address for a unified or host pointer is looked up in the map. */
static CUresult side_resolve(const struct side *side, bool *ret_device)
{
	switch ((int)side->type) {
	case CU_MEMORYTYPE_HOST:
		*ret_device = false;
		return side->address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEMORYTYPE_DEVICE:
		*ret_device = true;
		return obf_mem_is_device(side->address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEMORYTYPE_UNIFIED:
		*ret_device = obf_mem_is_device(side->address);
		return side->address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEMORYTYPE_ARRAY:
		return obf_absent(
			"cuMemcpy2D/3D with arrays", "arrays and textures are not forwarded");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/*
 * The first byte, with pitch and slice; for device memory the whole extent must lie in one
 * allocation.
 */
static CUresult side_place(const struct side *side, bool device, const struct obf_copy3d *copy,
	uint64_t *ret_first, size_t *ret_pitch, size_t *ret_slice)
{
	size_t row_end, pitch, height, slice, offset, a, b, last;

	if (ob_add_overflows(side->x, copy->width, &row_end))
		return CUDA_ERROR_INVALID_VALUE;
	/* A pitch of 0 is allowed where only one row is touched. */
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
	return device ? obf_mem_check_device(*ret_first, last) : CUDA_SUCCESS;
}

static CUresult copy_make(const struct side *src, const struct side *dst, size_t width,
	size_t height, size_t depth, struct obf_copy3d *ret)
{
	CUresult result;

	*ret = (struct obf_copy3d){ .width = width, .height = height, .depth = depth };
	result = side_resolve(src, &ret->src_device);
	if (result == CUDA_SUCCESS)
		result = side_resolve(dst, &ret->dst_device);
	if (result != CUDA_SUCCESS)
		return result;
	if (width == 0 || height == 0 || depth == 0) {
		/* Nothing moves: addresses as given, never dereferenced. */
		ret->src = src->address;
		ret->dst = dst->address;
		return CUDA_SUCCESS;
	}
	result = side_place(src, ret->src_device, ret, &ret->src, &ret->src_pitch, &ret->src_slice);
	if (result == CUDA_SUCCESS)
		result = side_place(
			dst, ret->dst_device, ret, &ret->dst, &ret->dst_pitch, &ret->dst_slice);
	return result;
}

/* Unified pointers come in the device field. */
static uint64_t address_of(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
}

CUresult obf_copy_from_2d(const CUDA_MEMCPY2D *copy, struct obf_copy3d *ret)
{
	struct side src, dst;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	src = (struct side){ .type = copy->srcMemoryType,
		.address = address_of(copy->srcMemoryType, copy->srcHost, copy->srcDevice),
		.x = copy->srcXInBytes,
		.y = copy->srcY,
		.pitch = copy->srcPitch };
	dst = (struct side){ .type = copy->dstMemoryType,
		.address = address_of(copy->dstMemoryType, copy->dstHost, copy->dstDevice),
		.x = copy->dstXInBytes,
		.y = copy->dstY,
		.pitch = copy->dstPitch };
	return copy_make(&src, &dst, copy->WidthInBytes, copy->Height, 1, ret);
}

CUresult obf_copy_from_3d(const CUDA_MEMCPY3D *copy, struct obf_copy3d *ret)
{
	struct side src, dst;

	if (!copy || copy->srcLOD != 0 || copy->dstLOD != 0)
		return CUDA_ERROR_INVALID_VALUE;
	src = (struct side){ .type = copy->srcMemoryType,
		.address = address_of(copy->srcMemoryType, copy->srcHost, copy->srcDevice),
		.x = copy->srcXInBytes,
		.y = copy->srcY,
		.z = copy->srcZ,
		.pitch = copy->srcPitch,
		.height = copy->srcHeight };
	dst = (struct side){ .type = copy->dstMemoryType,
		.address = address_of(copy->dstMemoryType, copy->dstHost, copy->dstDevice),
		.x = copy->dstXInBytes,
		.y = copy->dstY,
		.z = copy->dstZ,
		.pitch = copy->dstPitch,
		.height = copy->dstHeight };
	return copy_make(&src, &dst, copy->WidthInBytes, copy->Height, copy->Depth, ret);
}
