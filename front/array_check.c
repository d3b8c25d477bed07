/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Source of the limits: the tables of cuArray3DCreate and cuMipmappedArrayCreate in cuda.h. */
#include "front/array_check.h"

#include "base/array_format.h"
#include "front/private.h"

#define PLAIN_FLAGS                                                                           \
	((unsigned)(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | \
		CUDA_ARRAY3D_TEXTURE_GATHER))
#define MAPPED_FLAGS ((unsigned)(CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
#define GRAPHICS_FLAGS                                                           \
	((unsigned)(CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT | \
		CUDA_ARRAY3D_VIDEO_ENCODE_DECODE))
#define FACES 6u

enum shape {
	SHAPE_1D,
	SHAPE_2D,
	SHAPE_3D,
	SHAPE_1D_LAYERED,
	SHAPE_2D_LAYERED,
	SHAPE_CUBEMAP,
	SHAPE_CUBEMAP_LAYERED,
	SHAPE_NONE,
};

/* The attributes that limit width, height and depth; 0: no limit of its own. */
struct limits {
	uint16_t attr[3];
};

#define LIMIT(name) CU_DEVICE_ATTRIBUTE_MAXIMUM_##name

static const struct limits textures[] = {
	[SHAPE_1D] = { { LIMIT(TEXTURE1D_WIDTH) } },
	[SHAPE_2D] = { { LIMIT(TEXTURE2D_WIDTH), LIMIT(TEXTURE2D_HEIGHT) } },
	[SHAPE_3D] = { { LIMIT(TEXTURE3D_WIDTH), LIMIT(TEXTURE3D_HEIGHT),
		LIMIT(TEXTURE3D_DEPTH) } },
	[SHAPE_1D_LAYERED] = { { LIMIT(TEXTURE1D_LAYERED_WIDTH), 0,
		LIMIT(TEXTURE1D_LAYERED_LAYERS) } },
	[SHAPE_2D_LAYERED] = { { LIMIT(TEXTURE2D_LAYERED_WIDTH), LIMIT(TEXTURE2D_LAYERED_HEIGHT),
		LIMIT(TEXTURE2D_LAYERED_LAYERS) } },
	[SHAPE_CUBEMAP] = { { LIMIT(TEXTURECUBEMAP_WIDTH), LIMIT(TEXTURECUBEMAP_WIDTH) } },
	[SHAPE_CUBEMAP_LAYERED] = { { LIMIT(TEXTURECUBEMAP_LAYERED_WIDTH),
		LIMIT(TEXTURECUBEMAP_LAYERED_WIDTH), LIMIT(TEXTURECUBEMAP_LAYERED_LAYERS) } },
};

static const struct limits surfaces[] = {
	[SHAPE_1D] = { { LIMIT(SURFACE1D_WIDTH) } },
	[SHAPE_2D] = { { LIMIT(SURFACE2D_WIDTH), LIMIT(SURFACE2D_HEIGHT) } },
	[SHAPE_3D] = { { LIMIT(SURFACE3D_WIDTH), LIMIT(SURFACE3D_HEIGHT),
		LIMIT(SURFACE3D_DEPTH) } },
	[SHAPE_1D_LAYERED] = { { LIMIT(SURFACE1D_LAYERED_WIDTH), 0,
		LIMIT(SURFACE1D_LAYERED_LAYERS) } },
	[SHAPE_2D_LAYERED] = { { LIMIT(SURFACE2D_LAYERED_WIDTH), LIMIT(SURFACE2D_LAYERED_HEIGHT),
		LIMIT(SURFACE2D_LAYERED_LAYERS) } },
	[SHAPE_CUBEMAP] = { { LIMIT(SURFACECUBEMAP_WIDTH), LIMIT(SURFACECUBEMAP_WIDTH) } },
	[SHAPE_CUBEMAP_LAYERED] = { { LIMIT(SURFACECUBEMAP_LAYERED_WIDTH),
		LIMIT(SURFACECUBEMAP_LAYERED_WIDTH), LIMIT(SURFACECUBEMAP_LAYERED_LAYERS) } },
};

static const struct limits mipmapped_1d = { { LIMIT(TEXTURE1D_MIPMAPPED_WIDTH) } };
static const struct limits mipmapped_2d = { { LIMIT(TEXTURE2D_MIPMAPPED_WIDTH),
	LIMIT(TEXTURE2D_MIPMAPPED_HEIGHT) } };
static const struct limits gather = { { LIMIT(TEXTURE2D_GATHER_WIDTH),
	LIMIT(TEXTURE2D_GATHER_HEIGHT) } };
static const struct limits alternate = { { LIMIT(TEXTURE3D_WIDTH_ALTERNATE),
	LIMIT(TEXTURE3D_HEIGHT_ALTERNATE), LIMIT(TEXTURE3D_DEPTH_ALTERNATE) } };

static bool is_within(const struct obf_device *device, const struct limits *limits,
	const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	const size_t extent[3] = { desc->Width, desc->Height, desc->Depth };

	for (int i = 0; i < 3; i++)
		if (limits->attr[i] &&
			extent[i] > (size_t)obf_device_attr(device, limits->attr[i], 0))
			return false;
	return true;
}

/* SHAPE_NONE: these extents and flags do not belong together. */
static enum shape shape_of(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	bool layered = desc->Flags & CUDA_ARRAY3D_LAYERED;

	if (!desc->Width)
		return SHAPE_NONE;
	if (desc->Flags & CUDA_ARRAY3D_CUBEMAP) {
		if (desc->Width != desc->Height || !desc->Depth || desc->Depth % FACES)
			return SHAPE_NONE;
		if (layered)
			return SHAPE_CUBEMAP_LAYERED;
		return desc->Depth == FACES ? SHAPE_CUBEMAP : SHAPE_NONE;
	}
	if (layered && !desc->Depth)
		return SHAPE_NONE;
	if (layered)
		return desc->Height ? SHAPE_2D_LAYERED : SHAPE_1D_LAYERED;
	if (desc->Depth)
		return desc->Height ? SHAPE_3D : SHAPE_NONE;
	return desc->Height ? SHAPE_2D : SHAPE_1D;
}

static CUresult extents_check(
	const struct obf_device *device, const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped)
{
	enum shape shape = shape_of(desc);
	const struct limits *limits;

	if (shape == SHAPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	limits = &textures[shape];
	if (mipmapped && shape == SHAPE_1D)
		limits = &mipmapped_1d;
	else if (mipmapped && shape == SHAPE_2D)
		limits = &mipmapped_2d;
	if (!is_within(device, limits, desc) &&
		!(shape == SHAPE_3D && is_within(device, &alternate, desc)))
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->Flags & CUDA_ARRAY3D_SURFACE_LDST && !is_within(device, &surfaces[shape], desc))
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->Flags & CUDA_ARRAY3D_TEXTURE_GATHER &&
		(shape != SHAPE_2D || !is_within(device, &gather, desc)))
		return CUDA_ERROR_INVALID_VALUE;
	/* Limits of ours: the bytes are computed without overflow. */
	return ob_array_bytes(desc, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult flags_check(unsigned flags)
{
	if (flags & MAPPED_FLAGS)
		return obf_absent("sparse arrays and deferred mapping",
			"the device reports that it does not offer them");
	if (flags & GRAPHICS_FLAGS)
		return obf_absent("arrays for graphics and video",
			"buffers of graphics and video are not shared with the server");
	return flags & ~PLAIN_FLAGS ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Formats of compressed blocks and of packed video have values above those of numbers. */
static bool is_other_format(CUarray_format format)
{
	return format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar &&
		ob_array_element(format, 1) + ob_array_element(format, 2) +
			ob_array_element(format, 4) ==
		0;
}

static CUresult format_check(const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped)
{
	if (ob_array_is_planar(desc->Format))
		return desc->NumChannels == 3 && desc->Height && !desc->Depth && !mipmapped &&
				desc->Width % 2 == 0 && desc->Height % 2 == 0
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_VALUE;
	if (is_other_format(desc->Format))
		return obf_absent("arrays of block-compressed or packed video formats",
			"their layout in copies is not documented; a resource view of an array of "
			"CU_AD_FORMAT_UNSIGNED_INT32 reads compressed blocks");
	return ob_array_element(desc->Format, desc->NumChannels) ? CUDA_SUCCESS
								 : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_array_check(
	const struct obf_device *device, const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped)
{
	CUresult result = flags_check(desc->Flags);

	if (result == CUDA_SUCCESS)
		result = format_check(desc, mipmapped);
	return result == CUDA_SUCCESS ? extents_check(device, desc, mipmapped) : result;
}
