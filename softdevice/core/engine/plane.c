/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/engine/plane.h"

#include <math.h>

#include "softdevice/core/half.h"
#include "softdevice/core/texture_form.h"

#define ONE   256    /* weight 1 */
#define REACH 0x1p21 /* coordinates are limited to this: no array is wider */

struct side {
	int32_t i[2];
	bool outside[2];
	int32_t weight; /* of i[1] */
};

bool obd_plane_fits(const struct obd_texture *t, uint32_t form)
{
	const uint32_t other = OBD_TEX_ARRAY | OBD_TEX_CUBE | OBD_TEX_INTEGER | OBD_TEX_OFFSET;

	return OBD_TEX_KIND(form) == OBD_TEX_FETCH && OBD_TEX_DIMS(form) == 2 && !(form & other) &&
		OBD_TEX_LOD(form) == OBD_LOD_NONE && t->n_levels == 1 &&
		t->levels[0].width < REACH && t->levels[0].height < REACH;
}

static inline int32_t floor_of(double x)
{
	int32_t i = (int32_t)x;

	return i - ((double)i > x);
}

/* A texel beyond the edge. */
static void wrap(struct side *s, unsigned k, int32_t n, uint8_t mode)
{
	int32_t i = s->i[k];

	switch (mode) {
	case OBD_WRAP_REPEAT:
		i %= n;
		i = i < 0 ? i + n : i;
		break;
	case OBD_WRAP_MIRROR:
		i %= 2 * n;
		i = i < 0 ? i + 2 * n : i;
		i = i < n ? i : 2 * n - 1 - i;
		break;
	case OBD_WRAP_BORDER:
		s->outside[k] = true;
		i = 0;
		break;
	default:
		i = i < 0 ? 0 : n - 1;
	}
	s->i[k] = i;
}

static inline void side_find(struct side *s, const struct obd_texture *t, unsigned dimension,
	float u, uint32_t extent, bool linear)
{
	uint8_t mode = t->wrap[dimension];
	int32_t n = (int32_t)extent, i;
	double x = (double)u;

	if (t->normalized) {
		if (mode == OBD_WRAP_REPEAT)
			x -= floor(x);
		else if (mode == OBD_WRAP_MIRROR)
			x -= 2 * floor(x / 2);
		x *= n;
	} else if (mode != OBD_WRAP_BORDER) {
		mode = OBD_WRAP_CLAMP;
	}
	x = x == x ? x : 0;
	x = x > -REACH ? (x < REACH ? x : REACH) : -REACH;
	i = floor_of(linear ? x * ONE - ONE / 2 + 0.5 : x);
	s->weight = linear ? i & (ONE - 1) : 0;
	i = linear ? i >> 8 : i;
	s->i[0] = i;
	s->i[1] = i + 1;
	s->outside[0] = s->outside[1] = false;
	if (__builtin_expect((uint32_t)i >= extent, 0))
		wrap(s, 0, n, mode);
	if (__builtin_expect((uint32_t)(i + 1) >= extent, 0))
		wrap(s, 1, n, mode);
}

/* The weighted sum of four texels, with a constant number of channels; NULL: the border. */
static inline void blend(const struct obd_texture *t, obd_texel_reader read,
	const void *const texels[4], const int32_t weights[4], uint32_t ret[4], uint32_t channels)
{
	double sum[4] = { 0 };
	uint32_t words[4];

	for (unsigned k = 0; k < 4; k++) {
		const uint32_t *texel = texels[k] ? words : t->border;

		if (!weights[k])
			continue;
		if (texels[k])
			read(texels[k], words);
		for (uint32_t c = 0; c < channels; c++)
			sum[c] += (double)weights[k] * (double)obd_bits_f32(texel[c]);
	}
	for (uint32_t c = 0; c < channels; c++)
		ret[c] = obd_f32_bits((float)(sum[c] * 0x1p-16));
}

static void filter(const struct obd_texture *t, obd_texel_reader read, const struct side *x,
	const struct side *y, uint64_t base, uint32_t ret[4])
{
	uint64_t rows[2] = { base + (uint64_t)y->i[0] * t->levels[0].pitch,
		base + (uint64_t)y->i[1] * t->levels[0].pitch };
	const int32_t weights[4] = { (ONE - x->weight) * (ONE - y->weight),
		x->weight * (ONE - y->weight), (ONE - x->weight) * y->weight,
		x->weight * y->weight };
	const void *texels[4];

	for (unsigned k = 0; k < 4; k++)
		texels[k] = x->outside[k & 1] || y->outside[k >> 1]
			? NULL
			: (const void *)(uintptr_t)(rows[k >> 1] +
				  (uint64_t)x->i[k & 1] * t->element);
	switch (t->channels) {
	case 1:
		blend(t, read, texels, weights, ret, 1);
		break;
	case 2:
		blend(t, read, texels, weights, ret, 2);
		break;
	default:
		blend(t, read, texels, weights, ret, 4);
	}
}

void obd_plane_sample(
	const struct obd_texture *t, obd_texel_reader read, float x, float y, uint32_t ret[4])
{
	const struct obd_texture_level *l = &t->levels[0];
	bool linear = t->linear && obd_texel_is_float(t);
	uint32_t z = t->first_layer < l->depth ? t->first_layer : l->depth - 1;
	uint64_t base = l->base + z * l->slice;
	struct side sides[2];

	side_find(&sides[0], t, 0, x, l->width, linear);
	side_find(&sides[1], t, 1, y, l->height, linear);
	if (linear) {
		filter(t, read, &sides[0], &sides[1], base, ret);
	} else if (sides[0].outside[0] || sides[1].outside[0]) {
		for (uint32_t c = 0; c < t->channels; c++)
			ret[c] = t->border[c];
	} else {
		read((const void *)(uintptr_t)(base + (uint64_t)sides[1].i[0] * l->pitch +
			     (uint64_t)sides[0].i[0] * t->element),
			ret);
	}
	obd_texel_complete(t, ret);
}
