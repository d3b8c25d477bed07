/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Formats narrower than f32 (f16, bf16, e4m3, e5m2) and arithmetic on packed halves. Pure
 * functions. They round to nearest even unless a mode is given, independently of the processor's
 * rounding mode.
 */
#ifndef OBD_CORE_HALF_H
#define OBD_CORE_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum obd_round { OBD_RN, OBD_RZ, OBD_RM, OBD_RP, OBD_RNA };

enum obd_half_op { OBD_HALF_ADD, OBD_HALF_MIN, OBD_HALF_MAX };

static inline uint32_t obd_f32_bits(float x)
{
	uint32_t b;

	memcpy(&b, &x, 4);
	return b;
}

static inline float obd_bits_f32(uint32_t b)
{
	float x;

	memcpy(&x, &b, 4);
	return x;
}

static inline uint64_t obd_f64_bits(double x)
{
	uint64_t b;

	memcpy(&b, &x, 8);
	return b;
}

static inline double obd_bits_f64(uint64_t b)
{
	double x;

	memcpy(&x, &b, 8);
	return x;
}

/* Exact. NaN becomes the canonical NaN. */
static inline float obd_f16_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, f = h & 0x3ff;

	if (e == 31)
		return obd_bits_f32(f ? 0x7fffffff : sign | 0x7f800000);
	if (e)
		return obd_bits_f32(sign | ((e + 112) << 23) | (f << 13));
	float v = (float)(int32_t)f * 0x1p-24f;

	return sign ? -v : v;
}

static inline uint32_t obd_bf16_bits(uint32_t h)
{
	h <<= 16;
	return (h & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : h;
}

/* A floating-point format that obd_round_to can produce. */
struct obd_format {
	/* stored fraction bits; exponents of the smallest and the largest normal number */
	int man, emin, emax;
	uint32_t inf, nan, max; /* bit patterns without sign; inf 0: the format has no infinity */
};

extern const struct obd_format obd_format_f16, obd_format_bf16, obd_format_e4m3, obd_format_e5m2,
	obd_format_f32, obd_format_tf32;

/*
 * Rounds a finite or infinite double to the format. satfinite: a value above the largest finite
 * value becomes that value.
 */
uint32_t obd_round_to(const struct obd_format *f, double x, enum obd_round mode, bool satfinite);
double obd_small_to_f64(const struct obd_format *f, uint32_t bits);
/*
 * a * b + c in double, rounded to odd, so that one further rounding gives the correctly rounded
 * result.
 */
double obd_fma_odd(double a, double b, double c);

static inline uint16_t obd_f32_f16(float x)
{
	uint32_t b = obd_f32_bits(x), sign = (b >> 16) & 0x8000;

	b &= 0x7fffffff;
	if (b > 0x7f800000)
		return 0x7fff;
	if (b >= 0x477ff000) /* rounds to 2^16 or more: infinity */
		return (uint16_t)(sign | 0x7c00);
	/* subnormal: rounded to nearest even in integer arithmetic */
	if (b < 0x38800000) {
		uint32_t e = b >> 23, shift = 126 - e;

		if (shift > 25)
			return (uint16_t)sign;
		uint32_t m = (b & 0x7fffff) | 0x800000, r = m >> shift,
			 rest = m & ((1u << shift) - 1), half = 1u << (shift - 1);

		r += rest > half || (rest == half && (r & 1));
		return (uint16_t)(sign | r);
	}
	b += 0xfff + ((b >> 13) & 1);
	return (uint16_t)(sign | ((b - 0x38000000) >> 13));
}

static inline uint16_t obd_f32_bf16(float x)
{
	uint32_t b = obd_f32_bits(x);

	if ((b & 0x7fffffff) > 0x7f800000)
		return 0x7fff;
	return (uint16_t)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}

/* For atomics. format: bit 0: bf16; bit 1: two packed values */
uint32_t obd_half2(uint32_t a, uint32_t b, uint32_t format, enum obd_half_op op);

#endif
