/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/array_format.h"

#include "base/check.h"

struct format {
	CUarray_format format;
	uint8_t bytes;    /* of one channel, or of the element if channels is not 0 */
	uint8_t channels; /* the only number that is allowed; 0: 1, 2 or 4 */
};

static const struct format formats[] = {
	{ CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 },
	{ CU_AD_FORMAT_UNSIGNED_INT16, 2, 0 },
	{ CU_AD_FORMAT_UNSIGNED_INT32, 4, 0 },
	{ CU_AD_FORMAT_SIGNED_INT8, 1, 0 },
	{ CU_AD_FORMAT_SIGNED_INT16, 2, 0 },
	{ CU_AD_FORMAT_SIGNED_INT32, 4, 0 },
	{ CU_AD_FORMAT_HALF, 2, 0 },
	{ CU_AD_FORMAT_FLOAT, 4, 0 },
	{ CU_AD_FORMAT_UNORM_INT8X1, 1, 1 },
	{ CU_AD_FORMAT_UNORM_INT8X2, 2, 2 },
	{ CU_AD_FORMAT_UNORM_INT8X4, 4, 4 },
	{ CU_AD_FORMAT_UNORM_INT16X1, 2, 1 },
	{ CU_AD_FORMAT_UNORM_INT16X2, 4, 2 },
	{ CU_AD_FORMAT_UNORM_INT16X4, 8, 4 },
	{ CU_AD_FORMAT_SNORM_INT8X1, 1, 1 },
	{ CU_AD_FORMAT_SNORM_INT8X2, 2, 2 },
	{ CU_AD_FORMAT_SNORM_INT8X4, 4, 4 },
	{ CU_AD_FORMAT_SNORM_INT16X1, 2, 1 },
	{ CU_AD_FORMAT_SNORM_INT16X2, 4, 2 },
	{ CU_AD_FORMAT_SNORM_INT16X4, 8, 4 },
	{ CU_AD_FORMAT_UNORM_INT_101010_2, 4, 4 },
};

static const struct planar {
	CUarray_format format, plane;
	uint8_t half_height; /* of the chroma plane; its width is always half */
} planars[] = {
	{ CU_AD_FORMAT_NV12, CU_AD_FORMAT_UNSIGNED_INT8, 1 },
	{ CU_AD_FORMAT_P010, CU_AD_FORMAT_UNSIGNED_INT16, 1 },
	{ CU_AD_FORMAT_P016, CU_AD_FORMAT_UNSIGNED_INT16, 1 },
	{ CU_AD_FORMAT_NV16, CU_AD_FORMAT_UNSIGNED_INT8, 0 },
	{ CU_AD_FORMAT_P210, CU_AD_FORMAT_UNSIGNED_INT16, 0 },
	{ CU_AD_FORMAT_P216, CU_AD_FORMAT_UNSIGNED_INT16, 0 },
};

unsigned ob_array_element(CUarray_format format, unsigned channels)
{
	for (size_t i = 0; i < ob_count(formats); i++) {
		const struct format *f = &formats[i];

		if (f->format != format)
			continue;
		if (f->channels)
			return channels == f->channels ? f->bytes : 0;
		return channels == 1 || channels == 2 || channels == 4 ? f->bytes * channels : 0;
	}
	return 0;
}

static const struct planar *planar_find(CUarray_format format)
{
	for (size_t i = 0; i < ob_count(planars); i++)
		if (planars[i].format == format)
			return &planars[i];
	return NULL;
}

bool ob_array_is_planar(CUarray_format format)
{
	return planar_find(format) != NULL;
}

bool ob_array_plane(
	const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned plane, CUDA_ARRAY3D_DESCRIPTOR *ret)
{
	const struct planar *planar = planar_find(desc->Format);

	if (!planar || plane >= OB_ARRAY_PLANES_MAX)
		return false;
	*ret = *desc;
	ret->Format = planar->plane;
	ret->NumChannels = plane + 1;
	if (plane) {
		ret->Width /= 2;
		if (planar->half_height)
			ret->Height /= 2;
	}
	return true;
}

static bool has_depth(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return desc->Depth && !(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP));
}

static size_t halved(size_t extent, unsigned level)
{
	return extent ? ob_max(extent >> level, (size_t)1) : 0;
}

CUDA_ARRAY3D_DESCRIPTOR ob_array_level(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR part = *desc;

	part.Width = halved(desc->Width, level);
	part.Height = halved(desc->Height, level);
	if (has_depth(desc))
		part.Depth = halved(desc->Depth, level);
	return part;
}

unsigned ob_array_levels_max(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	size_t most = ob_max(desc->Width, desc->Height);
	unsigned n = 1;

	if (has_depth(desc))
		most = ob_max(most, desc->Depth);
	for (; most > 1 && n < OB_ARRAY_LEVELS_MAX; most >>= 1)
		n++;
	return n;
}

size_t ob_array_rows(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return ob_max(desc->Height, (size_t)1);
}

size_t ob_array_slices(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return ob_max(desc->Depth, (size_t)1);
}

static uint64_t part_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return (uint64_t)ob_array_element(desc->Format, desc->NumChannels) * desc->Width *
		ob_array_rows(desc) * ob_array_slices(desc);
}

/* One level then has less than 2^62 bytes, and all levels have less than twice that. */
static bool is_sane(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return desc->Width && desc->Width < OB_ARRAY_EXTENT_MAX &&
		desc->Height < OB_ARRAY_EXTENT_MAX && desc->Depth < OB_ARRAY_EXTENT_MAX / 4;
}

uint64_t ob_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned n_levels)
{
	CUDA_ARRAY3D_DESCRIPTOR part;
	uint64_t bytes = 0;

	if (!is_sane(desc) || n_levels > OB_ARRAY_LEVELS_MAX)
		return 0;
	for (unsigned i = 0; ob_array_plane(desc, i, &part); i++)
		bytes += part_bytes(&part);
	for (unsigned i = 0; i < ob_max(n_levels, 1u) && !ob_array_is_planar(desc->Format); i++) {
		part = ob_array_level(desc, i);
		bytes += part_bytes(&part);
	}
	return bytes;
}
