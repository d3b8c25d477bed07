/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What references are bound to: arrays, mipmapped arrays, linear and pitched memory. Source of the
 * checks: documentation of cuTexRefSet* and cuSurfRefSetArray in cuda.h.
 */
#include "front/private.h"
#include "front/texref.h"
#include "front/texture.h"
#include "protocol/obf_calls.h"

/* `bound` names an array with this format, or pitched memory. */
static CUresult bind(struct obf_texref *ref, const struct obf_texref_binding *bound,
	CUarray_format format, unsigned channels)
{
	struct obf_texref_state next;

	obf_texref_change_begin(ref, &next);
	next.bound = *bound;
	next.format = format;
	next.channels = channels;
	return obf_texref_change_end(ref, &next, OBF_TEXREF_BINDING, 0, CUDA_SUCCESS);
}

/* ---- arrays ---- */

static CUresult bind_array(
	uint64_t handle, bool is_surface, CUresourcetype type, uint64_t id, bool flags_valid)
{
	const struct obf_texref_binding bound = { .is_bound = true, .type = type, .array = id };
	CUDA_RESOURCE_DESC resource = { .resType = type };
	struct obf_array *array;
	struct obf_texref *ref;
	struct obf_ctx *ctx;
	CUresult result = obf_texref_enter(handle, is_surface, &ctx, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	if (!flags_valid)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_RESOURCE_TYPE_ARRAY)
		resource.res.array.hArray = (CUarray)(uintptr_t)id;
	else
		resource.res.mipmap.hMipmappedArray = (CUmipmappedArray)(uintptr_t)id;
	result = is_surface ? obf_surface_resource_check(ctx, &resource, &array)
			    : obf_texture_resource_check(ctx, &resource, &array);
	if (result != CUDA_SUCCESS)
		return result;
	/* cuda.h demands it of references, not of surface objects. */
	if (is_surface && !(array->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		return CUDA_ERROR_INVALID_VALUE;
	return bind(ref, &bound, array->desc.Format, array->desc.NumChannels);
}

CUresult obf_cuTexRefSetArray(CUtexref handle, CUarray array, unsigned flags)
{
	return bind_array((uintptr_t)handle, false, CU_RESOURCE_TYPE_ARRAY, (uintptr_t)array,
		flags == CU_TRSA_OVERRIDE_FORMAT);
}

CUresult obf_cuTexRefSetMipmappedArray(CUtexref handle, CUmipmappedArray array, unsigned flags)
{
	return bind_array((uintptr_t)handle, false, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
		(uintptr_t)array, flags == CU_TRSA_OVERRIDE_FORMAT);
}

CUresult obf_cuSurfRefSetArray(CUsurfref handle, CUarray array, unsigned flags)
{
	return bind_array(
		(uintptr_t)handle, true, CU_RESOURCE_TYPE_ARRAY, (uintptr_t)array, flags == 0);
}

/* The array that the reference is bound to, unless it has ended. */
static CUresult bound_array(uint64_t handle, bool is_surface, CUresourcetype type,
	const void *program_ret, uint64_t *ret)
{
	struct obf_texref_state state;
	struct obf_texref *ref;
	struct obf_ctx *ctx;
	CUresult result = obf_texref_enter(handle, is_surface, &ctx, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	obf_texref_read(ref, &state);
	if (!program_ret || !state.bound.is_bound || state.bound.type != type)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_RESOURCE_TYPE_ARRAY
			? !obf_array_find((CUarray)(uintptr_t)state.bound.array)
			: !obf_mipmap_find((CUmipmappedArray)(uintptr_t)state.bound.array))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = state.bound.array;
	return CUDA_SUCCESS;
}

CUresult obf_cuTexRefGetArray(CUarray *ret, CUtexref handle)
{
	uint64_t id = 0;
	CUresult result = bound_array((uintptr_t)handle, false, CU_RESOURCE_TYPE_ARRAY, ret, &id);

	if (result == CUDA_SUCCESS)
		*ret = (CUarray)(uintptr_t)id;
	return result;
}

CUresult obf_cuTexRefGetMipmappedArray(CUmipmappedArray *ret, CUtexref handle)
{
	uint64_t id = 0;
	CUresult result =
		bound_array((uintptr_t)handle, false, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, ret, &id);

	if (result == CUDA_SUCCESS)
		*ret = (CUmipmappedArray)(uintptr_t)id;
	return result;
}

CUresult obf_cuSurfRefGetArray(CUarray *ret, CUsurfref handle)
{
	uint64_t id = 0;
	CUresult result = bound_array((uintptr_t)handle, true, CU_RESOURCE_TYPE_ARRAY, ret, &id);

	if (result == CUDA_SUCCESS)
		*ret = (CUarray)(uintptr_t)id;
	return result;
}

/* ---- memory ---- */

/*
 * The memory must be on the device, all of it. bytes and addr 0: the reference is bound to nothing,
 * as the runtime of CUDA 11 unbinds it.
 */
static CUresult linear_check(const struct obf_ctx *ctx, const struct obf_texref_state *state,
	CUdeviceptr addr, size_t bytes, struct obf_texref_binding *ret)
{
	const struct obf_device *device = obf_ctx_device(ctx);
	unsigned align =
		(unsigned)obf_device_attr(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 1);
	unsigned element = ob_array_element(state->format, state->channels);
	CUresult result;
	bool on_device;

	*ret = (struct obf_texref_binding){
		.is_bound = bytes > 0, .type = CU_RESOURCE_TYPE_LINEAR, .addr = addr, .size = bytes
	};
	if (!bytes)
		return addr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	ret->offset = align ? addr % align : 0;
	if (!element ||
		bytes / element > (size_t)obf_device_attr(device,
					  CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 0))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_mem_side(addr, bytes, true, &on_device);
	if (result != CUDA_SUCCESS)
		return result;
	return on_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuTexRefSetAddress_v2(
	size_t *ret_offset, CUtexref handle, CUdeviceptr addr, size_t bytes)
{
	struct obf_texref_state next;
	struct obf_texref *ref;
	struct obf_ctx *ctx;
	CUresult result = obf_texref_enter((uintptr_t)handle, false, &ctx, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	obf_texref_change_begin(ref, &next);
	result = linear_check(ctx, &next, addr, bytes, &next.bound);
	/* without the offset the program would read from a wrong place */
	if (result == CUDA_SUCCESS && next.bound.offset && !ret_offset)
		result = CUDA_ERROR_INVALID_VALUE;
	result = obf_texref_change_end(ref, &next, OBF_TEXREF_BINDING, 0, result);
	if (result == CUDA_SUCCESS && ret_offset)
		*ret_offset = next.bound.offset;
	return result;
}

CUresult obf_cuTexRefSetAddress2D_v3(
	CUtexref handle, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr addr, size_t pitch)
{
	struct obf_texref_binding bound = {
		.is_bound = true, .type = CU_RESOURCE_TYPE_PITCH2D, .addr = addr, .pitch = pitch
	};
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_PITCH2D };
	struct obf_array *none;
	struct obf_texref *ref;
	struct obf_ctx *ctx;
	CUresult result = obf_texref_enter((uintptr_t)handle, false, &ctx, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	resource.res.pitch2D.devPtr = addr;
	resource.res.pitch2D.format = desc->Format;
	resource.res.pitch2D.numChannels = desc->NumChannels;
	resource.res.pitch2D.width = bound.width = desc->Width;
	resource.res.pitch2D.height = bound.height = desc->Height;
	resource.res.pitch2D.pitchInBytes = pitch;
	result = obf_texture_resource_check(ctx, &resource, &none);
	return result == CUDA_SUCCESS ? bind(ref, &bound, desc->Format, desc->NumChannels) : result;
}

/* The same before CUDA 4.1. */
CUresult obf_cuTexRefSetAddress2D_v2(
	CUtexref handle, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr addr, size_t pitch)
{
	return obf_cuTexRefSetAddress2D_v3(handle, desc, addr, pitch);
}

/* The address that the hardware uses: the program applies the offset to its fetches. */
CUresult obf_cuTexRefGetAddress_v2(CUdeviceptr *ret, CUtexref handle)
{
	struct obf_texref_state state;
	struct obf_texref *ref;
	struct obf_ctx *ctx;
	CUresult result = obf_texref_enter((uintptr_t)handle, false, &ctx, &ref);

	if (result != CUDA_SUCCESS)
		return result;
	obf_texref_read(ref, &state);
	if (!ret || !state.bound.is_bound || state.bound.array)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = state.bound.addr - state.bound.offset;
	return CUDA_SUCCESS;
}
