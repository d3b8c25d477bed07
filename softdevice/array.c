/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/array.h"

#include <stdlib.h>

#include "base/check.h"
#include "softdevice/context.h"
#include "softdevice/copy.h"
#include "softdevice/memory.h"
#include "softdevice/sched.h"

/* The descriptor of a level or a plane. False: there is no such part. */
static bool part_desc(const struct obf_array *array, unsigned number, CUDA_ARRAY3D_DESCRIPTOR *ret)
{
	if (ob_array_is_planar(array->desc.Format))
		return ob_array_plane(&array->desc, number, ret);
	*ret = ob_array_level(&array->desc, number);
	return number < ob_max(array->n_levels, 1u);
}

uint64_t obd_array_offset(const struct obf_array *array, unsigned number)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	uint64_t offset = 0;

	for (unsigned i = 0; i < number && part_desc(array, i, &desc); i++)
		offset += ob_round_up(ob_array_bytes(&desc, 1), (uint64_t)OBD_ARRAY_ALIGN);
	return offset;
}

static struct obd_array *array_new(const struct obf_array *array)
{
	struct obd_array *made = calloc(1, sizeof *made);

	if (made) {
		made->pitch = array->desc.Width * array->element;
		made->slice = made->pitch * ob_array_rows(&array->desc);
	}
	return made;
}

CUresult obd_array_create(struct obf_array *array)
{
	struct obd_array *made = array_new(array);

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->alloc = obd_memory_new(array->ctx->backend,
		obd_array_offset(array, OB_ARRAY_LEVELS_MAX), OBD_ARRAY_ALIGN, OBD_ALLOC_ARRAY);
	if (!made->alloc) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	made->base = made->alloc->span.base;
	array->backend = made;
	return CUDA_SUCCESS;
}

CUresult obd_array_part(struct obf_array *array)
{
	const struct obd_array *parent = array->parent->backend;
	struct obd_array *made = array_new(array);

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->base = parent->base + obd_array_offset(array->parent, array->part);
	array->backend = made;
	return CUDA_SUCCESS;
}

CUresult obd_array_destroy(struct obf_array *array, bool ctx_ended)
{
	struct obd_array *made = array->backend;

	/* Memory of a context that has ended is freed with the context. */
	if (made->alloc && !ctx_ended) {
		obd_ctx_wait(array->ctx->backend, false);
		obd_memory_free(made->alloc);
	}
	free(made);
	array->backend = NULL;
	return CUDA_SUCCESS;
}

/* ---- copies ---- */

static uint64_t address_at(const struct obd_array *array, const size_t at[3])
{
	return array->base + at[2] * array->slice + at[1] * array->pitch + at[0];
}

CUresult obd_array_copy(struct obf_stream *stream, const struct obf_array_copy *copy, bool blocking)
{
	struct obf_copy flat = copy->flat;
	CUresult result = CUDA_SUCCESS;

	if (copy->src) {
		const struct obd_array *array = copy->src->backend;

		flat.src = address_at(array, copy->src_at);
		flat.src_pitch = array->pitch;
		flat.src_slice = array->slice;
		flat.src_device = true;
	} else {
		result = obd_copy_side_check(
			flat.src_device, flat.src, flat.src_pitch, flat.src_slice, &flat);
	}
	if (copy->dst) {
		const struct obd_array *array = copy->dst->backend;

		flat.dst = address_at(array, copy->dst_at);
		flat.dst_pitch = array->pitch;
		flat.dst_slice = array->slice;
		flat.dst_device = true;
	} else if (!result) {
		result = obd_copy_side_check(
			flat.dst_device, flat.dst, flat.dst_pitch, flat.dst_slice, &flat);
	}
	return result ? result : obd_copy_checked(stream, &flat, blocking);
}
