/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Elements of matrices as numbers, a register or more at a time. Written for the vectoriser:
 * without branches or tables, except for the 8-bit formats. The callers canonicalise NaN.
 */
#ifndef OBD_CORE_ELEMENT_H
#define OBD_CORE_ELEMENT_H

#include <math.h>
#include <stdint.h>

#include "softdevice/core/half.h"
#include "softdevice/core/ops.h"

/* The exact value; all NaNs stay NaN. */
static inline float obd_element_f16(uint32_t h)
{
	uint32_t x = (h & 0x7fff) << 13, e = x & (0x7c00u << 13), normal = x + (112u << 23),
		 sub = obd_f32_bits(obd_bits_f32(normal + (1u << 23)) - 0x1p-14f),
		 v = e == 0            ? sub
		: e == (0x7c00u << 13) ? normal + (112u << 23)
				       : normal;

	return obd_bits_f32(v | (h & 0x8000) << 16);
}

/*
 * Rounded once to nearest even. The value is first rounded to odd to 24 bits, which is exact
 * enough.
 */
static inline uint16_t obd_element_to_f16(double x)
{
	uint64_t b = obd_f64_bits(x), low = b & 0x1fffffff;
	float f = (float)obd_bits_f64((b & ~0x1fffffffull) | (low ? 1ull << 29 : 0));
	uint32_t u = obd_f32_bits(f), sign = (u >> 16) & 0x8000, a = u & 0x7fffffff,
		 /* in units of 2^-24, rounded by the addition */
		sub = obd_f32_bits(obd_bits_f32(a) + 0.5f) - 0x3f000000u,
		 normal = (a + 0xfff + ((a >> 13) & 1) - 0x38000000) >> 13,
		 v = a < 0x38800000 ? sub
		: a >= 0x477ff000   ? 0x7c00
				    : normal;

	return x != x ? 0x7fff : (uint16_t)(sign | v);
}

static inline uint32_t obd_element_to_f32(double x)
{
	float f = (float)x;

	return x != x ? 0x7fffffff : obd_f32_bits(f);
}

/* The elements of one block, in the order of the register's memory. */
static inline void obd_block_f64(uint32_t t, const uint32_t *words, double *x)
{
	const uint16_t *halves = (const uint16_t *)(const void *)words;
	const uint8_t *bytes = (const uint8_t *)words;
	float f[128];

	switch (t) {
	case OBD_MMA_F16:
		for (uint32_t i = 0; i < 64; i++)
			f[i] = obd_element_f16(halves[i]);
		for (uint32_t i = 0; i < 64; i++)
			x[i] = (double)f[i];
		return;
	case OBD_MMA_BF16:
		for (uint32_t i = 0; i < 64; i++)
			f[i] = obd_bits_f32((uint32_t)halves[i] << 16);
		for (uint32_t i = 0; i < 64; i++)
			x[i] = (double)f[i];
		return;
	case OBD_MMA_TF32: /* the lower bits are ignored */
		for (uint32_t i = 0; i < 32; i++)
			x[i] = (double)obd_bits_f32(words[i] & 0xffffe000u);
		return;
	case OBD_MMA_E5M2: /* the upper half of an f16 */
		for (uint32_t i = 0; i < 128; i++)
			f[i] = obd_element_f16((uint32_t)bytes[i] << 8);
		break;
	/* shifted, they are f16 with a bias that differs by 12 (e3m2) or 14 (e2m3, e2m1) */
	case OBD_MMA_E3M2:
		for (uint32_t i = 0; i < 128; i++)
			f[i] = obd_element_f16((uint32_t)(bytes[i] & 0x20) << 10 |
				       (uint32_t)(bytes[i] & 0x1f) << 8) *
				0x1p12f;
		break;
	case OBD_MMA_E2M3:
		for (uint32_t i = 0; i < 128; i++)
			f[i] = obd_element_f16((uint32_t)(bytes[i] & 0x20) << 10 |
				       (uint32_t)(bytes[i] & 0x1f) << 7) *
				0x1p14f;
		break;
	case OBD_MMA_E2M1:
		for (uint32_t i = 0; i < 128; i++)
			f[i] = obd_element_f16((uint32_t)(bytes[i] & 0x20) << 10 |
				       (uint32_t)(bytes[i] & 0x1c) << 7) *
				0x1p14f;
		break;
	default: /* e4m3: shifted, it is an f16 with a bias that differs by 8 */
		for (uint32_t i = 0; i < 128; i++) {
			uint32_t v = bytes[i];
			float y = obd_element_f16((v & 0x80) << 8 | (v & 0x7f) << 7) * 0x1p8f;

			f[i] = (v & 0x7f) == 0x7f ? NAN : y;
		}
		break;
	}
	for (uint32_t i = 0; i < 128; i++)
		x[i] = (double)f[i];
}

static inline void obd_block_f32(uint32_t t, const uint32_t *words, float *x)
{
	const uint8_t *bytes = (const uint8_t *)words;

	switch (t) {
	case OBD_MMA_S8:
		for (uint32_t i = 0; i < 128; i++)
			x[i] = (float)(int8_t)bytes[i];
		return;
	case OBD_MMA_U8:
		for (uint32_t i = 0; i < 128; i++)
			x[i] = (float)bytes[i];
		return;
	case OBD_MMA_S4:
		for (uint32_t i = 0; i < 256; i++)
			x[i] = (float)((int32_t)(((bytes[i / 2] >> (i % 2 * 4)) & 15) ^ 8) - 8);
		return;
	default:
		for (uint32_t i = 0; i < 256; i++)
			x[i] = (float)((bytes[i / 2] >> (i % 2 * 4)) & 15);
		return;
	}
}

#endif
