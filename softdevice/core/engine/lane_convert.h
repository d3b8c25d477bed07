/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Conversions of one SIMD lane between floats and integers, where PTX differs from C. Pure
 * functions, inlined into the handlers of each instruction set.
 */
#ifndef OBD_CORE_LANE_CONVERT_H
#define OBD_CORE_LANE_CONVERT_H

#include "softdevice/core/engine/lane.h"

/* Rounds toward zero and clamps. NaN gives 0. */
static inline i32 obd_f32_s32(f32 a)
{
	if (a >= 0x1p31f)
		return INT32_MAX;
	return a >= -0x1p31f ? (i32)a : a < 0 ? INT32_MIN : 0;
}

static inline u32 obd_f32_u32(f32 a)
{
	if (a >= 0x1p32f)
		return UINT32_MAX;
	bool big = a >= 0x1p31f; /* the signed conversion is the one that exists for vectors */
	u32 r = (u32)(i32)(big ? a - 0x1p31f : a) + (big ? 1u << 31 : 0);

	return a > 0 ? r : 0;
}

/* To 64-bit integers, and from f64, NaN gives the number whose top bit alone is set. */
static inline i64 obd_f64_s64(f64 a)
{
	if (a >= 0x1p63)
		return INT64_MAX;
	return a >= -0x1p63 ? (i64)a : INT64_MIN;
}

/*
 * Without AVX-512 there are no vector instructions between floats and 64-bit integers. The halves
 * are converted apart: the low word of 2^52 + x is x, for a 32-bit number x.
 */
#if defined(__AVX512DQ__)
static inline f64 obd_u64_f64(u64 a)
{
	return (f64)a;
}
#else
/* 2^84 + 2^32 x is exact for a 32-bit number x, and so is its difference: the sum rounds once. */
static inline f64 obd_u64_f64(u64 a)
{
	f64 high = obd_bits_f64(0x4530000000000000ull | a >> 32) - (0x1p84 + 0x1p52);
	f64 sum = high + obd_bits_f64(0x4330000000000000ull | (a & 0xffffffff));

	return a ? sum : 0;
}
#endif

#if defined(__AVX2__) && !defined(__AVX512DQ__)
static inline u64 obd_f64_u64(f64 a)
{
	f64 positive = a > 0 ? a : 0, x = trunc(positive < 0x1p64 ? positive : 0);
	f64 high = floor(x * 0x1p-32);
	u64 r = obd_f64_bits(high + 0x1p52) << 32 |
		(obd_f64_bits(x - high * 0x1p32 + 0x1p52) & 0xffffffff);

	return a >= 0x1p64 ? UINT64_MAX : a != a ? 1ull << 63 : r;
}
#else
static inline u64 obd_f64_u64(f64 a)
{
	if (a >= 0x1p64)
		return UINT64_MAX;
	return a > 0 ? (u64)a : a != a ? 1ull << 63 : 0;
}
#endif

static inline i64 obd_f32_s64(f32 a)
{
	if (a >= 0x1p63f)
		return INT64_MAX;
	return a >= -0x1p63f ? (i64)a : INT64_MIN;
}

static inline u64 obd_f32_u64(f32 a)
{
	return obd_f64_u64((f64)a);
}

static inline i32 obd_f64_s32(f64 a)
{
	if (a >= 0x1p31)
		return INT32_MAX;
	return a >= -0x1p31 ? (i32)a : INT32_MIN;
}

static inline u32 obd_f64_u32(f64 a)
{
	if (a >= 0x1p32)
		return UINT32_MAX;
	return a > 0 ? (u32)(i64)a : a != a ? 1u << 31 : 0;
}

/* what: OBD_SMALL. The result is zero-extended. */
static inline u32 obd_f64_small(f64 a, u32 what)
{
	u32 bits = what & 31, sign = what >> 5;
	f64 top = (f64)((1 << (bits - sign)) - 1), low = sign ? -top - 1 : 0;
	f64 x = a > top ? top : a > low ? a : low;

	return a == a ? (u32)(i32)x & ((1u << bits) - 1) : 1u << (bits - 1);
}

/*
 * a as f32, rounded to odd: an inexact result is the neighbour whose last bit is 1, so that one
 * further rounding to f16 or bf16 is correct.
 */
static inline f32 obd_odd_f32(f64 a)
{
	f32 r = (f32)a;
	f64 back = (f64)r;
	u32 b = obd_f32_bits(r);
	bool inexact = back < a || back > a, outward = fabs(back) > fabs(a);

	b += inexact && !(b & 1) ? (outward ? ~0u : 1u) : 0;
	return obd_bits_f32(b);
}

#endif
