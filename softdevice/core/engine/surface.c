/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/surface.h"

#include <stdio.h>
#include <string.h>

#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/texel.h"
#include "softdevice/core/ops.h"

static _Noreturn void place_fault(
	const struct obd_tex_run *r, uint32_t lane, const int64_t at[3], bool misaligned)
{
	char what[110];

	snprintf(what, sizeof what, "%s surface %s at (%lld, %lld, %lld)",
		misaligned ? "Misaligned" : "Invalid",
		OBD_TEX_KIND(r->form) == OBD_TEX_LOAD ? "read" : "write", (long long)at[0],
		(long long)at[1], (long long)at[2]);
	obd_fault_raise(r->w, r->in, 1u << lane,
		misaligned ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS, what);
}

/* The lane's coordinates x, y, z; z is the layer of an array. Returns the index after them. */
static uint32_t place_read(const struct obd_tex_run *r, uint32_t lane, int64_t ret[3])
{
	uint32_t next = 1, dims = OBD_TEX_DIMS(r->form);

	ret[0] = ret[1] = ret[2] = 0;
	if (r->form & OBD_TEX_ARRAY)
		ret[2] = (int32_t)*obd_tex_word(r, r->ins[next++], lane);
	for (uint32_t d = 0; d < dims; d++)
		ret[d] = (int32_t)*obd_tex_word(r, r->ins[next++], lane);
	return next;
}

/*
 * The memory of `bytes` bytes at the place; x counts units of `unit` bytes. NULL: the access has no
 * effect.
 */
static char *place_find(const struct obd_tex_run *r, const struct obd_texture *t, uint32_t lane,
	int64_t at[3], uint32_t unit, uint32_t bytes)
{
	const struct obd_texture_level *l = &t->levels[0];
	const int64_t row = (int64_t)l->width * t->element;
	/* the last place in each dimension; negative: not even one access fits into a row */
	const int64_t last[3] = { row < bytes ? -1 : (row - bytes) / unit, (int64_t)l->height - 1,
		(int64_t)t->n_layers - 1 };
	const int64_t last_z = OBD_TEX_DIMS(r->form) == 3 ? (int64_t)l->depth - 1 : last[2];
	bool outside = false;

	for (uint32_t d = 0; d < 3; d++) {
		int64_t most = d == 2 ? last_z : last[d];

		if (at[d] >= 0 && at[d] <= most)
			continue;
		if (OBD_TEX_CLAMP(r->form) == OBD_CLAMP_TRAP)
			place_fault(r, lane, at, false);
		outside |= OBD_TEX_CLAMP(r->form) == OBD_CLAMP_ZERO || most < 0;
		at[d] = at[d] < 0 ? 0 : most;
	}
	if (outside)
		return NULL;
	if (!(r->form & OBD_TEX_FORMATTED) && at[0] % OBD_TEX_BYTES(r->form))
		place_fault(r, lane, at, true);
	return (char *)(uintptr_t)(l->base + (uint64_t)at[2] * l->slice +
		(uint64_t)at[1] * l->pitch + (uint64_t)at[0] * unit);
}

static void load(const struct obd_tex_run *r, const struct obd_texture *t, uint32_t lane)
{
	uint32_t size = OBD_TEX_BYTES(r->form), n = OBD_TEX_VALUES(r->form);
	int64_t at[3];
	const char *from;

	place_read(r, lane, at);
	from = place_find(r, t, lane, at, 1, size * n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t v = 0;

		if (from)
			memcpy(&v, from + i * size, size);
		if (size == 8)
			*obd_tex_wide(r, r->outs[i], lane) = v;
		else
			*obd_tex_word(r, r->outs[i], lane) = (uint32_t)v;
	}
}

static void store(const struct obd_tex_run *r, const struct obd_texture *t, uint32_t lane)
{
	uint32_t size = OBD_TEX_BYTES(r->form), n = OBD_TEX_VALUES(r->form), words[4];
	int64_t at[3];
	uint32_t next = place_read(r, lane, at);
	char *to;

	if (r->form & OBD_TEX_FORMATTED) {
		to = place_find(r, t, lane, at, t->element, t->element);
		for (uint32_t i = 0; i < n; i++)
			words[i] = *obd_tex_word(r, r->ins[next + i], lane);
		if (to)
			obd_texel_write(t, to, words, n);
		return;
	}
	to = place_find(r, t, lane, at, 1, size * n);
	for (uint32_t i = 0; to && i < n; i++) {
		uint64_t v = size == 8 ? *obd_tex_wide(r, r->ins[next + i], lane)
				       : *obd_tex_word(r, r->ins[next + i], lane);

		memcpy(to + i * size, &v, size);
	}
}

/* A function that applies one of the operations to a cell, atomically. */
#define REDUCE(name, type)                                                             \
	static void reduce_##name(type *cell, type v, uint32_t op)                     \
	{                                                                              \
		type old = __atomic_load_n(cell, __ATOMIC_RELAXED), fresh;             \
                                                                                       \
		do {                                                                   \
			fresh = op == OBD_ATOM_ADD   ? (type)(old + v)                 \
				: op == OBD_ATOM_MIN ? (v < old ? v : old)             \
				: op == OBD_ATOM_MAX ? (v > old ? v : old)             \
				: op == OBD_ATOM_AND ? (old & v)                       \
						     : (old | v);                      \
		} while (!__atomic_compare_exchange_n(                                 \
			cell, &old, fresh, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
	}
REDUCE(u32, uint32_t)
REDUCE(s32, int32_t)
REDUCE(u64, uint64_t)
REDUCE(s64, int64_t)

static void reduce(const struct obd_tex_run *r, const struct obd_texture *t, uint32_t lane)
{
	uint32_t size = OBD_TEX_BYTES(r->form), op = r->in->e & 15;
	uint32_t unit = r->form & OBD_TEX_FORMATTED ? t->element : 1;
	bool is_signed = r->in->e >> 4;
	int64_t at[3];
	uint32_t next = place_read(r, lane, at);
	char *cell = place_find(r, t, lane, at, unit, size);

	if (!cell)
		return;
	if ((uintptr_t)cell % size)
		place_fault(r, lane, at, true);
	if (size == 8 && is_signed)
		reduce_s64(
			(int64_t *)(void *)cell, (int64_t)*obd_tex_wide(r, r->ins[next], lane), op);
	else if (size == 8)
		reduce_u64((uint64_t *)(void *)cell, *obd_tex_wide(r, r->ins[next], lane), op);
	else if (is_signed)
		reduce_s32(
			(int32_t *)(void *)cell, (int32_t)*obd_tex_word(r, r->ins[next], lane), op);
	else
		reduce_u32((uint32_t *)(void *)cell, *obd_tex_word(r, r->ins[next], lane), op);
}

void obd_surface_access(const struct obd_tex_run *r, const struct obd_texture *t, uint32_t lane)
{
	switch (OBD_TEX_KIND(r->form)) {
	case OBD_TEX_LOAD:
		load(r, t, lane);
		break;
	case OBD_TEX_STORE:
		store(r, t, lane);
		break;
	default:
		reduce(r, t, lane);
	}
}
