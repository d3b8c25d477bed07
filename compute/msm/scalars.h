/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Scalars for the bucket method: plain limbs, or two signed halves for the endomorphism, cut into
 * signed digits. Pure functions, any thread.
 */
#ifndef OBK_SCALARS_H
#define OBK_SCALARS_H

#include "compute/msm/job.h"

/* |k| < 2^127 in two limbs; the top bit is the sign. */
#define OBK_HALF_BITS 127
#define OBK_HALF_SIGN 0x8000000000000000u

struct obk_half {
	uint64_t l[2];
};

/* Reads a scalar as a plain 256-bit number. */
void obk_scalar_read(uint64_t plain[4], const void *scalar, enum obk_scalar_format format);
/* plain mod r */
void obk_scalar_reduce(uint64_t plain[4]);
/* k = k1 + k2 lambda (mod r) for k < r; the absolute value of both halves is below 2^126.5. */
void obk_scalar_split(struct obk_half *k1, struct obk_half *k2, const uint64_t k[4]);

/*
 * Digit `window` of a number of `limbs` limbs in base 2^c, in [-2^(c-1), 2^(c-1)]. Each digit is
 * computed independently of the others (Booth recoding: windows overlap by one bit). A number of n
 * bits has n / c + 1 digits. 2 <= c <= OBK_MSM_MAX_WINDOW.
 */
static inline int32_t obk_scalar_digit(
	const uint64_t *l, unsigned limbs, unsigned window, unsigned c)
{
	unsigned at = window * c; /* the bits at - 1 .. at + c - 1 */
	uint64_t raw;
	int32_t d;

	if (at == 0) {
		raw = l[0] << 1;
	} else {
		unsigned limb = (at - 1) / 64, shift = (at - 1) % 64;

		if (limb >= limbs)
			return 0;
		raw = l[limb] >> shift;
		if (shift + c + 1 > 64 && limb + 1 < limbs)
			raw |= l[limb + 1] << (64 - shift);
	}
	raw &= ((uint64_t)2 << c) - 1;
	d = (int32_t)((raw + 1) >> 1);
	return raw >> c ? d - (int32_t)(1u << c) : d;
}

#endif
