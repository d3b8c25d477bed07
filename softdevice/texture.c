/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/texture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "softdevice/array.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/core/texture.h"
#include "softdevice/module.h"
#include "softdevice/sched.h"
#include "softdevice/window.h"

_Static_assert(OBD_TEXTURE_LEVELS_MAX == OB_ARRAY_LEVELS_MAX, "levels of an array");

/* ---- formats ---- */

struct format {
	int format;
	uint8_t texel;
	bool as_float; /* the format itself is normalised */
};

static const struct format formats[] = {
	{ CU_AD_FORMAT_UNSIGNED_INT8, OBD_TEXEL_U8, false },
	{ CU_AD_FORMAT_UNSIGNED_INT16, OBD_TEXEL_U16, false },
	{ CU_AD_FORMAT_UNSIGNED_INT32, OBD_TEXEL_U32, false },
	{ CU_AD_FORMAT_SIGNED_INT8, OBD_TEXEL_S8, false },
	{ CU_AD_FORMAT_SIGNED_INT16, OBD_TEXEL_S16, false },
	{ CU_AD_FORMAT_SIGNED_INT32, OBD_TEXEL_S32, false },
	{ CU_AD_FORMAT_HALF, OBD_TEXEL_F16, false },
	{ CU_AD_FORMAT_FLOAT, OBD_TEXEL_F32, false },
	{ CU_AD_FORMAT_UNORM_INT8X1, OBD_TEXEL_U8, true },
	{ CU_AD_FORMAT_UNORM_INT8X2, OBD_TEXEL_U8, true },
	{ CU_AD_FORMAT_UNORM_INT8X4, OBD_TEXEL_U8, true },
	{ CU_AD_FORMAT_UNORM_INT16X1, OBD_TEXEL_U16, true },
	{ CU_AD_FORMAT_UNORM_INT16X2, OBD_TEXEL_U16, true },
	{ CU_AD_FORMAT_UNORM_INT16X4, OBD_TEXEL_U16, true },
	{ CU_AD_FORMAT_SNORM_INT8X1, OBD_TEXEL_S8, true },
	{ CU_AD_FORMAT_SNORM_INT8X2, OBD_TEXEL_S8, true },
	{ CU_AD_FORMAT_SNORM_INT8X4, OBD_TEXEL_S8, true },
	{ CU_AD_FORMAT_SNORM_INT16X1, OBD_TEXEL_S16, true },
	{ CU_AD_FORMAT_SNORM_INT16X2, OBD_TEXEL_S16, true },
	{ CU_AD_FORMAT_SNORM_INT16X4, OBD_TEXEL_S16, true },
	{ CU_AD_FORMAT_UNORM_INT_101010_2, OBD_TEXEL_10_10_10_2, true },
};

static void format_set(struct obd_texture *t, CUarray_format format, unsigned channels)
{
	for (size_t i = 0; i < ob_count(formats); i++)
		if (formats[i].format == (int)format) {
			t->texel = formats[i].texel;
			t->as_float = formats[i].as_float;
			t->channels = (uint8_t)channels;
			t->element = (uint8_t)obd_texel_bytes(t->texel, channels);
			return;
		}
	t->refused = "the format of the array is not supported by the software device";
}

/* A view reads the same bytes with another format. Source: CUresourceViewFormat in cuda.h. */
static void view_format_set(struct obd_texture *t, CUresourceViewFormat format)
{
	static const uint8_t texels[] = { OBD_TEXEL_U8, OBD_TEXEL_S8, OBD_TEXEL_U16, OBD_TEXEL_S16,
		OBD_TEXEL_U32, OBD_TEXEL_S32, OBD_TEXEL_F16, OBD_TEXEL_F32 };
	unsigned at = (unsigned)format - CU_RES_VIEW_FORMAT_UINT_1X8;

	if (format == CU_RES_VIEW_FORMAT_NONE)
		return;
	if (format > CU_RES_VIEW_FORMAT_FLOAT_4X32) {
		t->refused = "block-compressed views are not supported by the software device";
		return;
	}
	t->texel = texels[at / 3];
	t->as_float = false;
	t->channels = (uint8_t)(1u << at % 3);
	t->element = (uint8_t)obd_texel_bytes(t->texel, t->channels);
}

/* ---- memory ---- */

static void levels_set(struct obd_texture *t, const struct obf_array *array)
{
	const struct obd_array *memory = array->backend;
	unsigned n = ob_max(array->n_levels, 1u);

	t->n_levels = t->n_queried_levels = n;
	for (unsigned i = 0; i < n; i++) {
		CUDA_ARRAY3D_DESCRIPTOR desc = ob_array_level(&array->desc, i);
		struct obd_texture_level *l = &t->levels[i];

		l->width = (uint32_t)desc.Width;
		l->height = (uint32_t)ob_array_rows(&desc);
		l->depth = (uint32_t)ob_array_slices(&desc);
		l->pitch = (uint64_t)desc.Width * array->element;
		l->slice = l->pitch * l->height;
		l->base = memory->base + obd_array_offset(array, i);
	}
	t->bytes = t->levels[n - 1].base - t->levels[0].base +
		t->levels[n - 1].slice * t->levels[n - 1].depth;
}

static void array_set(struct obd_texture *t, const struct obf_array *array)
{
	const CUDA_ARRAY3D_DESCRIPTOR *desc = &array->desc;

	format_set(t, desc->Format, desc->NumChannels);
	t->layered = desc->Flags & CUDA_ARRAY3D_LAYERED;
	t->cube = desc->Flags & CUDA_ARRAY3D_CUBEMAP;
	levels_set(t, array);
	t->n_layers = t->layered || t->cube ? t->levels[0].depth : 1;
	t->dims = desc->Depth && !t->layered && !t->cube ? 3 : desc->Height ? 2 : 1;
}

/* Linear memory, or pitched memory if it has more than one row. */
static void memory_set(
	struct obd_texture *t, uint64_t base, size_t width, size_t height, size_t pitch)
{
	t->n_levels = t->n_queried_levels = t->n_layers = 1;
	t->levels[0] = (struct obd_texture_level){ .base = base,
		.pitch = pitch,
		.slice = pitch * height,
		.width = (uint32_t)width,
		.height = (uint32_t)height,
		.depth = 1 };
	t->bytes = pitch * (height - 1) + width * t->element;
	if (!obd_window_holds(base) || !obd_window_holds(base + t->bytes - 1))
		t->refused = "textures of pinned host memory are not supported by the software "
			     "device";
}

static void linear_set(struct obd_texture *t, uint64_t base, size_t size)
{
	size_t width = t->element ? size / t->element : 0;

	t->dims = 1;
	t->is_memory = true;
	memory_set(t, base, ob_max(width, (size_t)1), 1, size);
	if (!width && !t->refused)
		t->refused = "its memory is smaller than a texel";
}

static void pitched_set(
	struct obd_texture *t, uint64_t base, size_t width, size_t height, size_t pitch)
{
	t->dims = 2;
	memory_set(t, base, width, height, pitch);
}

static void view_set(struct obd_texture *t, const CUDA_RESOURCE_VIEW_DESC *view)
{
	view_format_set(t, view->format);
	/* the front end has checked the ranges */
	if (view->lastMipmapLevel || view->firstMipmapLevel) {
		t->n_levels = view->lastMipmapLevel - view->firstMipmapLevel + 1;
		memmove(t->levels, t->levels + view->firstMipmapLevel,
			t->n_levels * sizeof t->levels[0]);
	}
	if (view->lastLayer || view->firstLayer) {
		t->first_layer = view->firstLayer;
		t->n_layers = view->lastLayer - view->firstLayer + 1;
	}
}

/* ---- sampling ---- */

/* border: numbers, which a format of integers takes as bits. */
static void sampling_set(struct obd_texture *t, const CUaddress_mode wrap[3], CUfilter_mode filter,
	CUfilter_mode mip_filter, unsigned flags, const float border[4])
{
	for (int i = 0; i < 3; i++)
		t->wrap[i] = (uint8_t)wrap[i];
	t->linear = filter == CU_TR_FILTER_MODE_LINEAR;
	t->mip_linear = mip_filter == CU_TR_FILTER_MODE_LINEAR;
	t->normalized = flags & CU_TRSF_NORMALIZED_COORDINATES;
	t->srgb = flags & CU_TRSF_SRGB;
	t->seamless = flags & CU_TRSF_SEAMLESS_CUBEMAP;
	if (!(flags & CU_TRSF_READ_AS_INTEGER) && t->texel <= OBD_TEXEL_S16)
		t->as_float = true;
	memcpy(t->border, border, sizeof t->border);
	if (t->is_memory) { /* not filtered; what lies outside is 0 */
		t->linear = false;
		memset(t->wrap, OBD_WRAP_BORDER, sizeof t->wrap);
		memset(t->border, 0, sizeof t->border);
	}
}

/* ---- objects ---- */

static CUresult object_add(struct obf_texture *texture, const struct obd_texture *t)
{
	struct obd_ctx *ctx = texture->ctx->backend;

	texture->value = obd_textures_add(ctx->env.textures, t);
	return texture->value ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obd_texture_create(struct obf_texture *texture)
{
	const CUDA_RESOURCE_DESC *resource = &texture->resource;
	const CUDA_TEXTURE_DESC *sampling = &texture->sampling;
	struct obd_texture t = { .kind = texture->surface ? OBD_IS_SURFACE : OBD_IS_TEXTURE };

	if (texture->array) {
		array_set(&t, texture->array);
	} else if (resource->resType == CU_RESOURCE_TYPE_LINEAR) {
		format_set(&t, resource->res.linear.format, resource->res.linear.numChannels);
		linear_set(&t, resource->res.linear.devPtr, resource->res.linear.sizeInBytes);
	} else {
		format_set(&t, resource->res.pitch2D.format, resource->res.pitch2D.numChannels);
		pitched_set(&t, resource->res.pitch2D.devPtr, resource->res.pitch2D.width,
			resource->res.pitch2D.height, resource->res.pitch2D.pitchInBytes);
	}
	if (texture->has_view)
		view_set(&t, &texture->view);
	if (!texture->surface) {
		sampling_set(&t, sampling->addressMode, sampling->filterMode,
			sampling->mipmapFilterMode, sampling->flags, sampling->borderColor);
		t.mip_bias = sampling->mipmapLevelBias;
		t.mip_min = sampling->minMipmapLevelClamp;
		t.mip_max = sampling->maxMipmapLevelClamp;
	}
	return object_add(texture, &t);
}

/* Replaces or ends what a handle stands for. CUDA_ERROR_OUT_OF_MEMORY: nothing has changed. */
static CUresult swap(struct obd_ctx *ctx, uint64_t handle, const struct obd_texture *texture)
{
	struct obd_texture *old, *ended;

	obd_ctx_wait(ctx, false);
	old = obd_textures_swap(ctx->env.textures, handle, texture);
	if (!old)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* those of modules that were unloaded while kernels of other modules may have run */
	ended = obd_textures_ended(ctx->env.textures);
	/* another thread may have launched a kernel meanwhile */
	obd_ctx_wait(ctx, false);
	free(old);
	obd_textures_drop(ended);
	return CUDA_SUCCESS;
}

CUresult obd_texture_destroy(struct obf_texture *texture, bool ctx_ended)
{
	/* The table ends with the context. */
	if (!ctx_ended)
		swap(texture->ctx->backend, texture->value, NULL);
	return CUDA_SUCCESS;
}

/* ---- references ---- */

/* False: an array that does not exist any more. */
static bool bound_set(struct obd_texture *t, const struct obf_texref_state *state)
{
	const struct obf_texref_binding *bound = &state->bound;
	const struct obf_array *array;

	switch ((int)bound->type) {
	case CU_RESOURCE_TYPE_ARRAY:
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		array = bound->type == CU_RESOURCE_TYPE_ARRAY
			? obf_array_find((CUarray)(uintptr_t)bound->array)
			: obf_mipmap_find((CUmipmappedArray)(uintptr_t)bound->array);
		if (!array)
			return false;
		array_set(t, array);
		return true;
	case CU_RESOURCE_TYPE_LINEAR:
		format_set(t, state->format, state->channels);
		linear_set(t, bound->addr - bound->offset, bound->offset + bound->size);
		return true;
	default:
		format_set(t, state->format, state->channels);
		pitched_set(t, bound->addr, bound->width, bound->height, bound->pitch);
		return true;
	}
}

CUresult obd_texref_set(const struct obf_texref *ref, const struct obf_texref_state *next,
	unsigned setting, unsigned dimension)
{
	struct obd_texture t = { .kind = ref->is_surface ? OBD_IS_SURFACE : OBD_IS_TEXTURE };
	const struct obd_module *module = ref->mod ? ref->mod->backend : NULL;
	uint64_t handle =
		module && module->program ? obd_program_ref(module->program, ref->name) : 0;

	(void)setting;
	(void)dimension;
	if (!handle) /* no kernel can use it */
		return CUDA_SUCCESS;
	if (!next->bound.is_bound)
		t.refused = ref->is_surface ? "the surface reference is not bound"
					    : "the texture reference is not bound";
	else if (!bound_set(&t, next))
		t.refused = "the array of the reference was destroyed";
	if (next->bound.is_bound && !ref->is_surface) {
		sampling_set(&t, next->address, next->filter, next->mip_filter, next->flags,
			next->border);
		t.mip_bias = next->mip_bias;
		t.mip_min = next->mip_min;
		t.mip_max = next->mip_max;
	}
	return swap(module->ctx, handle, &t);
}
