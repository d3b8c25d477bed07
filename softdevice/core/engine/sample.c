/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/sample.h"

#include <math.h>

#include "softdevice/core/half.h"
#include "softdevice/core/texture_form.h"

#define ONE   256    /* weight 1 */
#define REACH 0x1p30 /* coordinates are limited to this: no extent is larger */

/* Up to two texels along a dimension, and the weight of the second. */
struct axis {
	int64_t i[2];
	bool outside[2]; /* the border is read instead */
	uint32_t weight;
};

static inline int64_t floor_of(double x)
{
	int64_t i = (int64_t)x;

	return i - ((double)i > x);
}

/* ---- addressing ---- */

static int64_t modulo(int64_t i, int64_t n)
{
	i %= n;
	return i < 0 ? i + n : i;
}

static inline void axis_wrap(struct axis *a, unsigned k, int64_t i, int64_t n, uint8_t wrap)
{
	a->outside[k] = false;
	if (i < 0 || i >= n) {
		switch (wrap) {
		case OBD_WRAP_REPEAT:
			i = modulo(i, n);
			break;
		case OBD_WRAP_MIRROR:
			i = modulo(i, 2 * n);
			i = i < n ? i : 2 * n - 1 - i;
			break;
		case OBD_WRAP_BORDER:
			a->outside[k] = true;
			i = 0;
			break;
		default:
			i = i < 0 ? 0 : n - 1;
		}
	}
	a->i[k] = i;
}

/* The texels that the coordinate stands for, before they are wrapped. */
static inline void axis_find(struct axis *a, const struct obd_texture *t, float u, uint32_t n,
	uint8_t wrap, bool linear, int32_t offset)
{
	double x = (double)u;
	int64_t i;

	if (t->normalized) {
		/* before the multiplication, which would lose the fraction of a large coordinate */
		if (wrap == OBD_WRAP_REPEAT)
			x -= floor(x);
		else if (wrap == OBD_WRAP_MIRROR)
			x -= 2 * floor(x / 2);
		x *= n;
	}
	x = x == x ? x : 0;
	x = x > -REACH ? (x < REACH ? x : REACH) : -REACH;
	if (linear) {
		i = floor_of(x * ONE - ONE / 2 + 0.5);
		a->weight = (uint32_t)(i & (ONE - 1));
		i >>= 8;
	} else {
		i = floor_of(x);
		a->weight = 0;
	}
	a->i[0] = i + offset;
	a->i[1] = i + offset + 1;
}

static void axis_set(struct axis *a, const struct obd_texture *t, unsigned dimension, float u,
	uint32_t n, bool linear, int32_t offset)
{
	uint8_t wrap = t->wrap[dimension];

	/* as documented: other coordinates are never repeated */
	if (!t->normalized && wrap != OBD_WRAP_BORDER)
		wrap = OBD_WRAP_CLAMP;
	axis_find(a, t, u, n, wrap, linear, offset);
	axis_wrap(a, 0, a->i[0], n, wrap);
	if (linear)
		axis_wrap(a, 1, a->i[1], n, wrap);
}

/* ---- cubemaps ---- */

/* Faces +x, -x, +y, -y, +z, -z. Source: the guide's table of cubemap textures. */
static uint32_t cube_face(const float at[3], float ret[2])
{
	float x = at[0], y = at[1], z = at[2];
	float ax = fabsf(x), ay = fabsf(y), az = fabsf(z), s, t, m;
	uint32_t face;

	if (az >= ax && az >= ay) {
		face = z < 0 ? 5 : 4;
		s = z < 0 ? -x : x;
		t = -y;
		m = az;
	} else if (ay >= ax) {
		face = y < 0 ? 3 : 2;
		s = x;
		t = y < 0 ? -z : z;
		m = ay;
	} else {
		face = x < 0 ? 1 : 0;
		s = x < 0 ? z : -z;
		t = -y;
		m = ax;
	}
	ret[0] = (s / m + 1) / 2;
	ret[1] = (t / m + 1) / 2;
	return face;
}

/* A texel beyond the edge of a face lies on another: the direction to its centre says where. */
static uint32_t cube_neighbour(uint32_t face, int64_t *i, int64_t *j, int64_t n)
{
	float s = (float)(2 * *i + 1) / (float)n - 1, t = (float)(2 * *j + 1) / (float)n - 1, at[2];
	const float directions[6][3] = {
		{ 1, -t, -s },
		{ -1, -t, s },
		{ s, 1, t },
		{ s, -1, -t },
		{ s, -t, 1 },
		{ -s, -t, -1 },
	};

	face = cube_face(directions[face], at);
	*i = floor_of((double)at[0] * (double)n);
	*j = floor_of((double)at[1] * (double)n);
	*i = *i < 0 ? 0 : *i < n ? *i : n - 1;
	*j = *j < 0 ? 0 : *j < n ? *j : n - 1;
	return face;
}

/* ---- one level ---- */

struct view {
	const struct obd_texture *t;
	const struct obd_texture_level *level;
	obd_texel_reader read;
	struct axis axes[3];
	uint32_t dims; /* that have an axis */
	int64_t z;     /* the slice, if not by an axis: layer, face or 0 */
	uint32_t face;
	bool seamless;
};

static void texel_read(const struct view *v, const unsigned corner[3], uint32_t *ret)
{
	const struct obd_texture_level *l = v->level;
	int64_t x = v->axes[0].i[corner[0]], y = 0, z = v->z;
	bool outside = v->axes[0].outside[corner[0]];

	if (v->dims > 1) {
		y = v->axes[1].i[corner[1]];
		outside |= v->axes[1].outside[corner[1]];
	}
	if (v->dims > 2) {
		z = v->axes[2].i[corner[2]];
		outside |= v->axes[2].outside[corner[2]];
	}
	if (v->seamless && (x < 0 || y < 0 || x >= l->width || y >= l->height)) {
		z -= v->face;
		z += cube_neighbour(v->face, &x, &y, l->width);
		z = z < 0 ? 0 : z < l->depth ? z : l->depth - 1; /* too few faces */
		y = y < l->height ? y : l->height - 1;
	}
	if (outside) {
		for (uint32_t c = 0; c < v->t->channels; c++)
			ret[c] = v->t->border[c];
		return;
	}
	v->read((const void *)(uintptr_t)(l->base + (uint64_t)z * l->slice +
			(uint64_t)y * l->pitch + (uint64_t)x * v->t->element),
		ret);
}

/* Finds slice and axes. */
static void view_set(struct view *v, const struct obd_sample *s, bool linear)
{
	const struct obd_texture *t = v->t;
	const struct obd_texture_level *l = v->level;
	uint32_t extents[3] = { l->width, l->height, l->depth };
	bool cube = s->form & OBD_TEX_CUBE;
	uint32_t per = cube ? 6 : 1;
	int64_t layers = t->n_layers / per, layer = 0;
	float on_face[2];
	const float *at = s->at;

	v->dims = OBD_TEX_DIMS(s->form);
	v->face = 0;
	v->seamless = cube && t->seamless && linear;
	if (s->form & OBD_TEX_ARRAY)
		layer = s->layer < 0 ? 0 : s->layer < layers ? s->layer : layers - 1;
	if (cube) {
		v->face = cube_face(at, on_face);
		at = on_face;
	}
	v->z = t->first_layer + layer * per + v->face;
	if (v->z < 0 || v->z >= l->depth)
		v->z = l->depth - 1;
	for (uint32_t d = 0; d < v->dims; d++) {
		if (v->seamless)
			axis_find(&v->axes[d], t, at[d], extents[d], OBD_WRAP_CLAMP, true,
				s->offset[d]);
		else
			axis_set(&v->axes[d], t, d, at[d], extents[d], linear, s->offset[d]);
		if (v->seamless)
			v->axes[d].outside[0] = v->axes[d].outside[1] = false;
	}
}

/* A texel that takes part in a filter. */
struct part {
	uint32_t weight;
	const void *texel;
};

/*
 * The texels with a weight, up to eight. `border` takes the place of those outside. Not for a
 * cubemap that is filtered across its edges.
 */
static unsigned parts_find(const struct view *v, const void *border, struct part *ret)
{
	const struct obd_texture_level *l = v->level;
	unsigned n = 0, rows = v->dims > 1 ? 2 : 1, slices = v->dims > 2 ? 2 : 1;

	for (unsigned k = 0; k < slices; k++) {
		const struct axis *z = &v->axes[2];
		uint32_t z_weight = slices == 1 ? 1 : k ? z->weight : ONE - z->weight;
		bool z_outside = slices > 1 && z->outside[k];
		uint64_t slice = l->base + (uint64_t)(slices > 1 ? z->i[k] : v->z) * l->slice;

		for (unsigned j = 0; j < rows; j++) {
			const struct axis *y = &v->axes[1], *x = &v->axes[0];
			uint32_t y_weight = rows == 1 ? 1 : j ? y->weight : ONE - y->weight;
			uint64_t row = rows > 1 ? slice + (uint64_t)y->i[j] * l->pitch : slice;
			bool outside = z_outside || (rows > 1 && y->outside[j]);

			y_weight *= z_weight;
			for (unsigned i = 0; i < 2; i++) {
				uint32_t weight = y_weight * (i ? x->weight : ONE - x->weight);

				if (!weight)
					continue;
				ret[n].weight = weight;
				ret[n++].texel = outside || x->outside[i]
					? border
					: (const void *)(uintptr_t)(row +
						  (uint64_t)x->i[i] * v->t->element);
			}
		}
	}
	return n;
}

/* The weighted sum of n texels, with a constant number of channels. */
static inline void parts_sum(const struct view *v, const struct part *parts, unsigned n,
	const void *border, double ret[4], uint32_t channels)
{
	double sum[4] = { 0 };
	uint32_t words[4];

	for (unsigned k = 0; k < n; k++) {
		const uint32_t *texel = words;

		if (parts[k].texel == border)
			texel = v->t->border;
		else
			v->read(parts[k].texel, words);
		for (uint32_t c = 0; c < channels; c++)
			sum[c] += (double)parts[k].weight * (double)obd_bits_f32(texel[c]);
	}
	const double scale = v->dims == 1 ? 0x1p-8 : v->dims == 2 ? 0x1p-16 : 0x1p-24;

	for (uint32_t c = 0; c < channels; c++)
		ret[c] = sum[c] * scale;
}

static void seamless_filter(const struct view *v, double ret[4])
{
	uint32_t texel[4];

	for (uint32_t c = 0; c < v->t->channels; c++)
		ret[c] = 0;
	for (unsigned k = 0; k < 4; k++) {
		const unsigned corner[3] = { k & 1, k >> 1, 0 };
		uint32_t weight = 1;

		for (uint32_t d = 0; d < 2; d++)
			weight *= corner[d] ? v->axes[d].weight : ONE - v->axes[d].weight;
		texel_read(v, corner, texel);
		for (uint32_t c = 0; c < v->t->channels; c++)
			ret[c] += (double)weight * 0x1p-16 * (double)obd_bits_f32(texel[c]);
	}
}

static void view_filter(const struct view *v, double ret[4])
{
	const void *border = v->t->border;
	struct part parts[8];
	unsigned n;

	if (v->seamless) {
		seamless_filter(v, ret);
		return;
	}
	n = parts_find(v, border, parts);
	switch (v->t->channels) {
	case 1:
		parts_sum(v, parts, n, border, ret, 1);
		break;
	case 2:
		parts_sum(v, parts, n, border, ret, 2);
		break;
	default:
		parts_sum(v, parts, n, border, ret, 4);
	}
}

/* ---- levels of detail ---- */

static float lod_of(const struct obd_texture *t, const struct obd_sample *s)
{
	const struct obd_texture_level *l = &t->levels[0];
	const float extents[3] = { (float)l->width, (float)l->height, (float)l->depth };
	float most = 0;

	switch (OBD_TEX_LOD(s->form)) {
	case OBD_LOD_LEVEL:
		return s->lod;
	case OBD_LOD_GRADIENTS:
		for (unsigned g = 0; g < 2; g++) {
			float sum = 0;

			for (uint32_t d = 0; d < obd_tex_coordinates(s->form); d++) {
				float x = s->gradient[g][d];

				/* a cubemap's face is two wide in its direction's units */
				x *= s->form & OBD_TEX_CUBE ? extents[0] / 2
					: t->normalized     ? extents[d]
							    : 1;
				sum += x * x;
			}
			most = sum > most ? sum : most;
		}
		return log2f(most) / 2;
	default:
		return 0;
	}
}

/* The level of detail in steps of 1/256, within the texture's levels. */
static uint32_t lod_steps(const struct obd_texture *t, const struct obd_sample *s)
{
	float lod = lod_of(t, s) + t->mip_bias, last = (float)(t->n_levels - 1);

	lod = lod > t->mip_min ? lod : t->mip_min; /* NaN becomes the lower limit */
	lod = lod < t->mip_max ? lod : t->mip_max;
	lod = lod > 0 ? (lod < last ? lod : last) : 0;
	return (uint32_t)(lod * ONE + 0.5f);
}

/* ---- fetches ---- */

static void level_filter(struct view *v, const struct obd_sample *s, uint32_t level, double ret[4])
{
	v->level = &v->t->levels[level];
	view_set(v, s, true);
	view_filter(v, ret);
}

static void level_point(struct view *v, const struct obd_sample *s, uint32_t level, uint32_t ret[4])
{
	static const unsigned first[3];

	v->level = &v->t->levels[level];
	view_set(v, s, false);
	texel_read(v, first, ret);
}

/* Integer coordinates: no filter and no wrapping. A texel outside is 0. */
static void sample_texel(struct view *v, const struct obd_sample *s, uint32_t ret[4])
{
	static const unsigned first[3];
	const struct obd_texture *t = v->t;
	int64_t level = OBD_TEX_LOD(s->form) == OBD_LOD_LEVEL ? s->lod_texel : 0;
	bool outside = level < 0 || level >= t->n_levels;

	v->level = &t->levels[outside ? 0 : level];
	const int64_t extents[3] = { v->level->width, v->level->height, v->level->depth };

	v->dims = OBD_TEX_DIMS(s->form);
	v->seamless = false;
	v->z = t->first_layer;
	if (s->form & OBD_TEX_ARRAY) {
		outside |= s->layer < 0 || s->layer >= (int64_t)t->n_layers;
		v->z += s->layer;
	}
	outside |= v->z < 0 || v->z >= extents[2];
	for (uint32_t d = 0; d < v->dims; d++) {
		int64_t i = (int64_t)s->texel[d] + s->offset[d];

		outside |= i < 0 || i >= extents[d];
		v->axes[d].i[0] = i;
		v->axes[d].outside[0] = false;
	}
	if (outside)
		ret[0] = ret[1] = ret[2] = ret[3] = 0;
	else
		texel_read(v, first, ret);
}

void obd_sample(const struct obd_texture *t, obd_texel_reader read, const struct obd_sample *s,
	uint32_t ret[4])
{
	struct view v = { .t = t, .read = read };
	uint32_t lod = 0, level, weight, second[4];
	double sum[4], other[4];
	bool linear = t->linear && obd_texel_is_float(t);

	if (s->form & OBD_TEX_INTEGER) {
		sample_texel(&v, s, ret);
		obd_texel_complete(t, ret);
		return;
	}
	if (t->n_levels > 1)
		lod = lod_steps(t, s);
	if (!t->mip_linear || !obd_texel_is_float(t))
		lod = (lod + ONE / 2) & ~(uint32_t)(ONE - 1);
	level = lod / ONE;
	weight = lod % ONE;
	if (!linear && !weight) {
		level_point(&v, s, level, ret);
		obd_texel_complete(t, ret);
		return;
	}
	if (linear) {
		level_filter(&v, s, level, sum);
		if (weight)
			level_filter(&v, s, level + 1, other);
	} else {
		level_point(&v, s, level, ret);
		level_point(&v, s, level + 1, second);
		for (uint32_t c = 0; c < t->channels; c++) {
			sum[c] = (double)obd_bits_f32(ret[c]);
			other[c] = (double)obd_bits_f32(second[c]);
		}
	}
	for (uint32_t c = 0; c < t->channels; c++) {
		double x = weight ? (sum[c] * (ONE - weight) + other[c] * weight) / ONE : sum[c];

		ret[c] = obd_f32_bits((float)x);
	}
	obd_texel_complete(t, ret);
}

void obd_sample_gather(const struct obd_texture *t, obd_texel_reader read,
	const struct obd_sample *s, uint32_t component, uint32_t ret[4])
{
	static const unsigned corners[4][3] = { { 0, 1, 0 }, { 1, 1, 0 }, { 1, 0, 0 },
		{ 0, 0, 0 } };
	struct view v = { .t = t, .read = read, .level = &t->levels[0] };

	view_set(&v, s, true);
	for (unsigned k = 0; k < 4; k++) {
		uint32_t texel[4];

		texel_read(&v, corners[k], texel);
		obd_texel_complete(t, texel);
		ret[k] = texel[component];
	}
}
