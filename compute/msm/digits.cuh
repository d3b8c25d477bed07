/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Scalars in the form that the kernel msm_prepare writes, and their signed digits. */
#ifndef OBK_DIGITS_CUH
#define OBK_DIGITS_CUH

#include <stdint.h>

struct __align__(16) obk_scalar
{
	uint32_t l[8];
};

/* Digit `window` in [-2^(c-1), 2^(c-1)], as in obk_scalar_digit. order_r: bit 255 is the sign. */
static __device__ __forceinline__ int32_t obk_scalar_digit_of(
	const obk_scalar *k, uint32_t order_r, uint32_t window, uint32_t c)
{
	uint32_t at = window * c, word = at ? (at - 1) / 32 : 0, shift = at ? (at - 1) % 32 : 0,
		 raw, low, high, top = k->l[7];
	int32_t d;

	if (word >= 8)
		return 0;
	low = k->l[word];
	high = word < 7 ? k->l[word + 1] : 0;
	if (order_r) {
		low = word == 7 ? low & 0x7fffffff : low;
		high = word == 6 ? high & 0x7fffffff : high;
	}
	raw = at ? __funnelshift_r(low, high, shift) : low << 1;
	raw &= (2u << c) - 1;
	d = (int32_t)((raw + 1) >> 1);
	d = raw >> c ? d - (int32_t)(1u << c) : d;
	return order_r && top >> 31 ? -d : d;
}

#endif
