/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/texture.h"

#include <stdio.h>
#include <string.h>

#include "softdevice/core/engine/fault.h"
#include "softdevice/core/engine/plane.h"
#include "softdevice/core/engine/sample.h"
#include "softdevice/core/engine/surface.h"
#include "softdevice/core/engine/texture_run.h"
#include "softdevice/core/half.h"

/* ---- handles ---- */

static _Noreturn void handle_fault(const struct obd_tex_run *r, uint32_t lane, uint64_t handle,
	const struct obd_texture *found)
{
	bool surface = r->form & OBD_TEX_SURFACE;
	char what[110];

	if (found && found->refused && (found->kind == OBD_IS_SURFACE) == surface)
		snprintf(what, sizeof what, "Invalid %s access: %s",
			surface ? "surface" : "texture", found->refused);
	else
		snprintf(what, sizeof what, "Invalid %s handle 0x%llx: the context has no such %s",
			surface ? "surface" : "texture", (unsigned long long)handle,
			surface ? "surface" : "texture");
	obd_fault_raise(r->w, r->in, 1u << lane, CUDA_ERROR_ILLEGAL_ADDRESS, what);
}

static const struct obd_texture *texture_of(
	const struct obd_tex_run *r, uint32_t lane, uint64_t handle)
{
	const struct obd_env *env = &r->w->cta->launch->program->env;
	const struct obd_texture *t = obd_textures_find(env->textures, handle);
	bool surface = r->form & OBD_TEX_SURFACE;

	if (!t || t->kind != (surface ? OBD_IS_SURFACE : OBD_IS_TEXTURE) || t->refused)
		handle_fault(r, lane, handle, t);
	/* what OUTBOARD_SOFT_MEMCHECK checks of a texture: that its memory has not been freed */
	if (r->w->memcheck && t->bytes &&
		!env->check_texture(env->user, (uintptr_t)t->levels[0].base, (size_t)t->bytes))
		obd_fault_raise(r->w, r->in, 1u << lane, CUDA_ERROR_ILLEGAL_ADDRESS,
			surface ? "Invalid surface access: its array was freed"
				: "Invalid texture access: its memory was freed");
	return t;
}

/* ---- fetches ---- */

/* Where the list has the parts of a fetch; 0: it does not have them. */
struct layout {
	uint32_t layer, at, lod, gradients, offsets;
};

static struct layout layout_of(uint32_t form)
{
	uint32_t n = obd_tex_coordinates(form), next = 1; /* after the handle */
	struct layout l = { 0 };

	if (form & OBD_TEX_ARRAY)
		l.layer = next++;
	l.at = next;
	next += n;
	if (OBD_TEX_LOD(form) == OBD_LOD_LEVEL)
		l.lod = next++;
	if (OBD_TEX_LOD(form) == OBD_LOD_GRADIENTS) {
		l.gradients = next;
		next += 2 * n;
	}
	if (form & OBD_TEX_OFFSET)
		l.offsets = next;
	return l;
}

static void sample_read(
	const struct obd_tex_run *r, const struct layout *l, uint32_t lane, struct obd_sample *ret)
{
	uint32_t n = obd_tex_coordinates(r->form);

	if (l->layer)
		ret->layer = (int32_t)*obd_tex_word(r, r->ins[l->layer], lane);
	for (uint32_t d = 0; d < n; d++) {
		uint32_t word = *obd_tex_word(r, r->ins[l->at + d], lane);

		if (r->form & OBD_TEX_INTEGER)
			ret->texel[d] = (int32_t)word;
		else
			ret->at[d] = obd_bits_f32(word);
	}
	if (l->lod) {
		uint32_t word = *obd_tex_word(r, r->ins[l->lod], lane);

		ret->lod = obd_bits_f32(word);
		ret->lod_texel = (int32_t)word;
	}
	for (uint32_t g = 0; l->gradients && g < 2; g++)
		for (uint32_t d = 0; d < n; d++)
			ret->gradient[g][d] = obd_bits_f32(
				*obd_tex_word(r, r->ins[l->gradients + g * n + d], lane));
	for (uint32_t d = 0; l->offsets && d < n; d++)
		ret->offset[d] = (int32_t)*obd_tex_word(r, r->ins[l->offsets + d], lane);
}

static uint32_t as_half(const struct obd_texture *t, uint32_t word)
{
	return obd_texel_is_float(t) ? obd_f32_f16(obd_bits_f32(word)) : word & 0xffff;
}

static void results_write(const struct obd_tex_run *r, const struct obd_texture *t, uint32_t lane,
	const uint32_t got[4])
{
	switch (OBD_TEX_RESULT(r->form)) {
	case OBD_TEX_F16X2:
		for (uint32_t i = 0; i < 2; i++)
			*obd_tex_word(r, r->outs[i], lane) =
				as_half(t, got[2 * i]) | as_half(t, got[2 * i + 1]) << 16;
		break;
	case OBD_TEX_F16:
		for (uint32_t i = 0; i < 4; i++)
			*obd_tex_word(r, r->outs[i], lane) = as_half(t, got[i]);
		break;
	default:
		for (uint32_t i = 0; i < 4; i++)
			*obd_tex_word(r, r->outs[i], lane) = got[i];
	}
}

static void run_fetch(const struct obd_tex_run *r, uint32_t m)
{
	const struct layout layout = layout_of(r->form);
	const struct obd_texture *t = NULL;
	obd_texel_reader read = NULL;
	bool plane = false;
	uint64_t last = 0;

	for (; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m), got[4];
		uint64_t handle = *obd_tex_wide(r, r->ins[0], lane);
		if (!t || handle != last) {
			t = texture_of(r, lane, handle);
			read = obd_texel_reader_of(t);
			plane = obd_plane_fits(t, r->form);
			last = handle;
		}
		if (plane) {
			obd_plane_sample(t, read, obd_bits_f32(*obd_tex_word(r, r->ins[1], lane)),
				obd_bits_f32(*obd_tex_word(r, r->ins[2], lane)), got);
		} else {
			struct obd_sample sample = { .form = r->form };

			sample_read(r, &layout, lane, &sample);
			if (OBD_TEX_KIND(r->form) == OBD_TEX_GATHER)
				obd_sample_gather(t, read, &sample, r->in->e & 3, got);
			else
				obd_sample(t, read, &sample, got);
		}
		results_write(r, t, lane, got);
	}
}

/* ---- queries ---- */

/* Source: the table "Channel Data Type and Channel Order Fields" of the PTX ISA. */
static uint32_t data_type(const struct obd_texture *t)
{
	static const uint16_t plain[] = {
		[OBD_TEXEL_U8] = 0x10da,
		[OBD_TEXEL_S8] = 0x10d7,
		[OBD_TEXEL_U16] = 0x10db,
		[OBD_TEXEL_S16] = 0x10d8,
		[OBD_TEXEL_U32] = 0x10dc,
		[OBD_TEXEL_S32] = 0x10d9,
		[OBD_TEXEL_F16] = 0x10dd,
		[OBD_TEXEL_F32] = 0x10de,
		[OBD_TEXEL_10_10_10_2] = 0x10d6,
	};

	if (t->as_float)
		switch (t->texel) {
		case OBD_TEXEL_S8:
			return 0x10d0;
		case OBD_TEXEL_S16:
			return 0x10d1;
		case OBD_TEXEL_U8:
			return 0x10d2;
		case OBD_TEXEL_U16:
			return 0x10d3;
		default:
			break;
		}
	return plain[t->texel];
}

static uint32_t wrap_mode(uint8_t wrap)
{
	/* wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border */
	static const uint8_t modes[] = {
		[OBD_WRAP_REPEAT] = 0,
		[OBD_WRAP_MIRROR] = 1,
		[OBD_WRAP_CLAMP] = 3,
		[OBD_WRAP_BORDER] = 4,
	};

	return modes[wrap & 3];
}

static uint32_t answer(const struct obd_texture *t, uint32_t query, uint32_t level)
{
	const struct obd_texture_level none = { 0 };
	const struct obd_texture_level *l = level < t->n_levels ? &t->levels[level] : &none;

	switch (query) {
	case OBD_QUERY_WIDTH:
		return l->width;
	case OBD_QUERY_HEIGHT:
		return t->dims > 1 ? l->height : 0;
	case OBD_QUERY_DEPTH:
		return t->dims > 2 ? l->depth : 0;
	case OBD_QUERY_DATA_TYPE:
		return data_type(t);
	case OBD_QUERY_ORDER: /* r, rg, rgba */
		return t->channels == 1 ? 0x10b0 : t->channels == 2 ? 0x10b2 : 0x10b5;
	case OBD_QUERY_NORMALIZED:
		return t->normalized;
	case OBD_QUERY_UNNORMALIZED:
		return !t->normalized;
	case OBD_QUERY_FILTER: /* nearest, linear */
		return t->linear;
	case OBD_QUERY_WRAP_0:
	case OBD_QUERY_WRAP_1:
	case OBD_QUERY_WRAP_2:
		return wrap_mode(t->wrap[query - OBD_QUERY_WRAP_0]);
	case OBD_QUERY_LAYERS:
		return t->layered ? t->n_layers / (t->cube ? 6 : 1) : 0;
	case OBD_QUERY_LEVELS:
		return t->n_queried_levels;
	default:
		return 1; /* samples */
	}
}

static void run_query(const struct obd_tex_run *r, uint32_t m)
{
	for (; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m), level = 0;
		const struct obd_texture *t =
			texture_of(r, lane, *obd_tex_wide(r, r->ins[0], lane));

		if (OBD_TEX_LOD(r->form) == OBD_LOD_LEVEL)
			level = *obd_tex_word(r, r->ins[1], lane);
		*obd_tex_word(r, r->outs[0], lane) = answer(t, r->in->e, level);
	}
}

static void run_type(const struct obd_tex_run *r, uint32_t m)
{
	const struct obd_env *env = &r->w->cta->launch->program->env;

	for (; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m);
		const struct obd_texture *t =
			obd_textures_find(env->textures, *obd_tex_wide(r, r->ins[0], lane));

		*obd_tex_word(r, r->outs[0], lane) = t && t->kind == r->in->e;
	}
}

static void run_surface(const struct obd_tex_run *r, uint32_t m)
{
	const struct obd_texture *t = NULL;
	uint64_t last = 0;

	for (; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m);
		uint64_t handle = *obd_tex_wide(r, r->ins[0], lane);

		if (!t || handle != last) {
			t = texture_of(r, lane, handle);
			last = handle;
		}
		obd_surface_access(r, t, lane);
	}
}

void obd_texture_run(struct obd_warp *w, const struct obd_insn *in, char *regs, uint32_t m)
{
	const uint16_t *list = w->cur->frame->func->call_ops + in->u.imm;
	const struct obd_tex_run r = { .w = w,
		.in = in,
		.regs = regs,
		.form = (uint32_t)in->d << 16 | in->a,
		.ins = list + 2,
		.n_in = list[0],
		.outs = list + 2 + list[0],
		.n_out = list[1] };

	/* A texel whose memory was unmapped raises a signal; no lane has an address to name. */
	w->mem_in = in;
	w->mem_mask = 0;
	switch (OBD_TEX_KIND(r.form)) {
	case OBD_TEX_FETCH:
	case OBD_TEX_GATHER:
		run_fetch(&r, m);
		break;
	case OBD_TEX_QUERY:
		run_query(&r, m);
		break;
	case OBD_TEX_TYPE:
		run_type(&r, m);
		break;
	default:
		run_surface(&r, m);
	}
}
