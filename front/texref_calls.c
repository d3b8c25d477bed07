/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * How references read a texture: the calls that set and return it. What they are bound to is in
 * texref_bind.c. Getters are answered here.
 */
#include <string.h>

#include "base/array_format.h"
#include "front/private.h"
#include "front/texref.h"
#include "protocol/obf_calls.h"

#define FLAGS                                                                                 \
	((unsigned)(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | \
		CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION))

static CUresult find(CUtexref handle, struct obf_texref **ret)
{
	struct obf_ctx *ctx;

	return obf_texref_enter((uintptr_t)handle, false, &ctx, ret);
}

static bool is_filter(CUfilter_mode mode)
{
	return (unsigned)mode <= CU_TR_FILTER_MODE_LINEAR;
}

/* ---- setters ---- */

/* With pitched memory the format was given when it was bound, and cannot change. */
CUresult obf_cuTexRefSetFormat(CUtexref handle, CUarray_format format, int n_channels)
{
	struct obf_texref_state next;
	struct obf_texref *ref;
	CUresult result = find(handle, &ref);
	unsigned channels = (unsigned)n_channels;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ob_array_element(format, channels))
		return CUDA_ERROR_INVALID_VALUE;
	obf_texref_change_begin(ref, &next);
	if (next.bound.is_bound && next.bound.type == CU_RESOURCE_TYPE_PITCH2D &&
		(format != next.format || channels != next.channels))
		result = CUDA_ERROR_INVALID_VALUE;
	next.format = format;
	next.channels = channels;
	return obf_texref_change_end(ref, &next, OBF_TEXREF_FORMAT, 0, result);
}

CUresult obf_cuTexRefSetAddressMode(CUtexref handle, int dimension, CUaddress_mode mode)
{
	struct obf_texref_state next;
	struct obf_texref *ref;
	CUresult result = find(handle, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	if (dimension < 0 || dimension >= OBF_TEXREF_DIMENSIONS ||
		(unsigned)mode > CU_TR_ADDRESS_MODE_BORDER)
		return CUDA_ERROR_INVALID_VALUE;
	obf_texref_change_begin(ref, &next);
	next.address[dimension] = mode;
	return obf_texref_change_end(
		ref, &next, OBF_TEXREF_ADDRESS_MODE, (unsigned)dimension, CUDA_SUCCESS);
}

static bool has_border(const struct obf_texref_state *state)
{
	for (int i = 0; i < OBF_TEXREF_DIMENSIONS; i++)
		if (state->address[i] == CU_TR_ADDRESS_MODE_BORDER)
			return true;
	return false;
}

/* As documented: the colour can be set only while the address mode is that of a border. */
CUresult obf_cuTexRefSetBorderColor(CUtexref handle, float *color)
{
	struct obf_texref_state next;
	struct obf_texref *ref;
	CUresult result = find(handle, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	if (!color)
		return CUDA_ERROR_INVALID_VALUE;
	obf_texref_change_begin(ref, &next);
	if (!has_border(&next))
		result = CUDA_ERROR_INVALID_VALUE;
	memcpy(next.border, color, sizeof next.border); /* may hold integers */
	return obf_texref_change_end(ref, &next, OBF_TEXREF_BORDER, 0, result);
}

CUresult obf_cuTexRefSetMipmapLevelClamp(CUtexref handle, float lowest, float highest)
{
	struct obf_texref_state next;
	struct obf_texref *ref;
	CUresult result = find(handle, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	obf_texref_change_begin(ref, &next);
	next.mip_min = lowest;
	next.mip_max = highest;
	return obf_texref_change_end(ref, &next, OBF_TEXREF_MIP_CLAMP, 0, CUDA_SUCCESS);
}

/* A call with one value. */
#define SET(call, type, member, setting, is_right)                                               \
	CUresult obf_##call(CUtexref handle, type value)                                         \
	{                                                                                        \
		struct obf_texref_state next;                                                    \
		struct obf_texref *ref;                                                          \
		CUresult result = find(handle, &ref);                                            \
                                                                                                 \
		if (result != CUDA_SUCCESS)                                                      \
			return result;                                                           \
		if (!(is_right))                                                                 \
			return CUDA_ERROR_INVALID_VALUE;                                         \
		obf_texref_change_begin(ref, &next);                                             \
		next.member = value;                                                             \
		return obf_texref_change_end(ref, &next, OBF_TEXREF_##setting, 0, CUDA_SUCCESS); \
	}

SET(cuTexRefSetFilterMode, CUfilter_mode, filter, FILTER, is_filter(value))
SET(cuTexRefSetMipmapFilterMode, CUfilter_mode, mip_filter, MIP_FILTER, is_filter(value))
SET(cuTexRefSetMipmapLevelBias, float, mip_bias, MIP_BIAS, true)
SET(cuTexRefSetMaxAnisotropy, unsigned, anisotropy, ANISOTROPY, true)
SET(cuTexRefSetFlags, unsigned, flags, FLAGS, !(value & ~FLAGS))

/* ---- getters ---- */

static CUresult get(CUtexref handle, const void *program_ret, struct obf_texref_state *ret)
{
	struct obf_texref *ref;
	CUresult result = find(handle, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	if (!program_ret)
		return CUDA_ERROR_INVALID_VALUE;
	obf_texref_read(ref, ret);
	return CUDA_SUCCESS;
}

/* Either output may be NULL. */
CUresult obf_cuTexRefGetFormat(CUarray_format *ret_format, int *ret_channels, CUtexref handle)
{
	struct obf_texref_state state;
	CUresult result = get(handle, &state, &state);

	if (result != CUDA_SUCCESS)
		return result;
	if (ret_format)
		*ret_format = state.format;
	if (ret_channels)
		*ret_channels = (int)state.channels;
	return CUDA_SUCCESS;
}

CUresult obf_cuTexRefGetAddressMode(CUaddress_mode *ret, CUtexref handle, int dimension)
{
	struct obf_texref_state state;
	CUresult result = get(handle, ret, &state);

	if (result != CUDA_SUCCESS)
		return result;
	if (dimension < 0 || dimension >= OBF_TEXREF_DIMENSIONS)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = state.address[dimension];
	return CUDA_SUCCESS;
}

CUresult obf_cuTexRefGetBorderColor(float *ret, CUtexref handle)
{
	struct obf_texref_state state;
	CUresult result = get(handle, ret, &state);

	if (result == CUDA_SUCCESS)
		memcpy(ret, state.border, sizeof state.border);
	return result;
}

CUresult obf_cuTexRefGetMipmapLevelClamp(float *ret_lowest, float *ret_highest, CUtexref handle)
{
	struct obf_texref_state state;
	CUresult result = get(handle, ret_highest ? ret_lowest : NULL, &state);

	if (result != CUDA_SUCCESS)
		return result;
	*ret_lowest = state.mip_min;
	*ret_highest = state.mip_max;
	return CUDA_SUCCESS;
}

/* A call with one output. */
#define GET(call, type, member)                             \
	CUresult obf_##call(type *ret, CUtexref handle)     \
	{                                                   \
		struct obf_texref_state state;              \
		CUresult result = get(handle, ret, &state); \
                                                            \
		if (result == CUDA_SUCCESS)                 \
			*ret = (type)state.member;          \
		return result;                              \
	}

GET(cuTexRefGetFilterMode, CUfilter_mode, filter)
GET(cuTexRefGetMipmapFilterMode, CUfilter_mode, mip_filter)
GET(cuTexRefGetMipmapLevelBias, float, mip_bias)
GET(cuTexRefGetMaxAnisotropy, int, anisotropy)
GET(cuTexRefGetFlags, unsigned, flags)
