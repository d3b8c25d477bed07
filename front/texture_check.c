/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The checks of descriptors of textures and surfaces. Source: documentation of cuTexObjectCreate and
 * cuSurfObjectCreate in cuda.h.
 */
#include "front/private.h"
#include "front/texture.h"

static size_t limit(const struct obf_ctx *ctx, CUdevice_attribute attr)
{
	return (size_t)obf_device_attr(obf_ctx_device(ctx), attr, 0);
}

static bool is_aligned(const struct obf_ctx *ctx, uint64_t value, CUdevice_attribute attr)
{
	size_t align = limit(ctx, attr);

	return !align || value % align == 0;
}

/* All of it must be device memory, or pinned. */
static CUresult memory_check(const struct obf_ctx *ctx, CUdeviceptr addr, size_t size)
{
	bool device;

	if (!size || !is_aligned(ctx, addr, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT))
		return CUDA_ERROR_INVALID_VALUE;
	return obf_mem_side(addr, size, true, &device);
}

static CUresult linear_check(const struct obf_ctx *ctx, const CUDA_RESOURCE_DESC *resource)
{
	unsigned element =
		ob_array_element(resource->res.linear.format, resource->res.linear.numChannels);
	size_t size = resource->res.linear.sizeInBytes;

	if (!element ||
		size / element > limit(ctx, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH))
		return CUDA_ERROR_INVALID_VALUE;
	/* Programs name more than they have allocated, so the first element is enough. */
	return memory_check(ctx, resource->res.linear.devPtr, ob_min(size, (size_t)element));
}

void obf_texture_linear_clip(CUDA_RESOURCE_DESC *resource)
{
	CUdeviceptr addr = resource->res.linear.devPtr;
	size_t size = resource->res.linear.sizeInBytes;
	struct obf_mem mem;
	bool device;

	if (obf_mem_side(addr, size, true, &device) != CUDA_SUCCESS && obf_mem_find(addr, &mem))
		resource->res.linear.sizeInBytes =
			ob_min(size, (size_t)(mem.base + mem.size - addr));
}

static CUresult pitch_check(const struct obf_ctx *ctx, const CUDA_RESOURCE_DESC *resource)
{
	unsigned element =
		ob_array_element(resource->res.pitch2D.format, resource->res.pitch2D.numChannels);
	size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height,
	       pitch = resource->res.pitch2D.pitchInBytes;

	if (!element || !width || !height ||
		width > limit(ctx, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
		height > limit(ctx, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
		pitch > limit(ctx, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) ||
		pitch < width * element ||
		!is_aligned(ctx, pitch, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT))
		return CUDA_ERROR_INVALID_VALUE;
	return memory_check(
		ctx, resource->res.pitch2D.devPtr, (height - 1) * pitch + width * element);
}

CUresult obf_texture_resource_check(
	const struct obf_ctx *ctx, const CUDA_RESOURCE_DESC *resource, struct obf_array **ret_array)
{
	*ret_array = NULL;
	if (resource->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)resource->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		*ret_array = obf_array_find(resource->res.array.hArray);
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		*ret_array = obf_mipmap_find(resource->res.mipmap.hMipmappedArray);
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		return linear_check(ctx, resource);
	case CU_RESOURCE_TYPE_PITCH2D:
		return pitch_check(ctx, resource);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* An array with a planar format is read plane by plane. */
	return *ret_array && (*ret_array)->ctx == ctx && (*ret_array)->element
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_surface_resource_check(
	const struct obf_ctx *ctx, const CUDA_RESOURCE_DESC *resource, struct obf_array **ret_array)
{
	if (resource->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	/*
	 * CUDA_ARRAY3D_SURFACE_LDST is not required: programs make surfaces of levels of mipmapped
	 * arrays without it.
	 */
	return obf_texture_resource_check(ctx, resource, ret_array);
}

CUresult obf_texture_sampling_check(
	const CUDA_TEXTURE_DESC *sampling, const struct obf_array *array)
{
	for (int i = 0; i < 3; i++)
		if ((unsigned)sampling->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)sampling->filterMode > CU_TR_FILTER_MODE_LINEAR ||
		(unsigned)sampling->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR ||
		sampling->flags & ~OBF_TEXTURE_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (array && array->n_levels && !(sampling->flags & CU_TRSF_NORMALIZED_COORDINATES))
		return CUDA_ERROR_INVALID_VALUE;
	if (sampling->flags & CU_TRSF_SEAMLESS_CUBEMAP &&
		(!array || !(array->desc.Flags & CUDA_ARRAY3D_CUBEMAP)))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* ---- views ---- */

/* Bytes of an element of a view that is not block-compressed. */
static unsigned view_element(CUresourceViewFormat format)
{
	static const uint8_t bytes[] = { 0, 1, 2, 4, 1, 2, 4, 2, 4, 8, 2, 4, 8, 4, 8, 16, 4, 8, 16,
		2, 4, 8, 4, 8, 16 };

	return (unsigned)format < ob_count(bytes) ? bytes[format] : 0;
}

/* Bytes of a compressed block of 4 x 4 elements; 0: not such a format. */
static unsigned view_block(CUresourceViewFormat format)
{
	switch (format) {
	case CU_RES_VIEW_FORMAT_UNSIGNED_BC1:
	case CU_RES_VIEW_FORMAT_UNSIGNED_BC4:
	case CU_RES_VIEW_FORMAT_SIGNED_BC4:
		return 8;
	default:
		return format >= CU_RES_VIEW_FORMAT_UNSIGNED_BC1 &&
				format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7
			? 16
			: 0;
	}
}

static bool is_view_extent(
	const CUDA_RESOURCE_VIEW_DESC *view, const CUDA_ARRAY3D_DESCRIPTOR *desc, size_t factor)
{
	return view->width == factor * desc->Width && view->height == factor * desc->Height &&
		view->depth == desc->Depth;
}

static bool is_view_format(const CUDA_RESOURCE_VIEW_DESC *view, const struct obf_array *array)
{
	unsigned block = view_block(view->format);

	if (block)
		return array->desc.Format == CU_AD_FORMAT_UNSIGNED_INT32 &&
			array->element == block && is_view_extent(view, &array->desc, 4);
	if (view->format != CU_RES_VIEW_FORMAT_NONE && view_element(view->format) != array->element)
		return false;
	return is_view_extent(view, &array->desc, 1);
}

static bool is_view_range(unsigned first, unsigned last, size_t n)
{
	return n ? first <= last && last < n : !first && !last;
}

CUresult obf_texture_view_check(const CUDA_RESOURCE_VIEW_DESC *view, const struct obf_array *array)
{
	bool layered;

	if (!array || !is_view_format(view, array))
		return CUDA_ERROR_INVALID_VALUE;
	layered = array->desc.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	if (!is_view_range(view->firstMipmapLevel, view->lastMipmapLevel, array->n_levels) ||
		!is_view_range(view->firstLayer, view->lastLayer, layered ? array->desc.Depth : 0))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
