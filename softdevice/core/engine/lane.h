/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arithmetic of one SIMD lane, where PTX differs from C. Pure functions, inlined into the handlers
 * of each instruction set. PTX does not specify the result of a division by zero; these functions
 * return what NVIDIA's code sequences return.
 */
#ifndef OBD_CORE_LANE_H
#define OBD_CORE_LANE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "softdevice/core/half.h"

typedef uint8_t u8;
typedef int8_t i8;
typedef uint16_t u16;
typedef int16_t i16;
typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;
typedef float f32;
typedef double f64;
__extension__ typedef unsigned __int128 obd_u128;
__extension__ typedef __int128 obd_i128;

static inline i64 obd_sext24(u32 a)
{
	return (i32)(a << 8) >> 8;
}

/*
 * Quotients of 32-bit numbers by f64 division, which exists for vectors. The f64 quotient is right
 * after truncation: if a / b is no integer, it differs from the next one by at least 1 / b, and a
 * unit of its last place is at most a / b * 2^-52, which is less. The conversions use the number
 * 2^52 + a, whose low word is a.
 */
static inline f64 obd_u32_f64(u32 a)
{
	return obd_bits_f64(0x4330000000000000ull | a) - 0x1p52;
}

static inline u32 obd_div_u32(u32 a, u32 b)
{
	u32 q = (u32)obd_f64_bits(trunc(obd_u32_f64(a) / obd_u32_f64(b)) + 0x1p52);

	return b ? q : ~0u;
}

static inline u32 obd_rem_u32(u32 a, u32 b)
{
	u32 q = (u32)obd_f64_bits(trunc(obd_u32_f64(a) / obd_u32_f64(b)) + 0x1p52);

	return b ? a - q * b : a;
}

static inline u32 obd_abs_u32(i32 a)
{
	return a < 0 ? 0u - (u32)a : (u32)a;
}

static inline u32 obd_div_s32(i32 a, i32 b)
{
	u32 q = obd_div_u32(obd_abs_u32(a), obd_abs_u32(b));

	return b == 0 ? ~0u : (a ^ b) < 0 ? 0u - q : q;
}

static inline u32 obd_rem_s32(i32 a, i32 b)
{
	u32 r = obd_rem_u32(obd_abs_u32(a), obd_abs_u32(b));

	return a < 0 ? 0u - r : r;
}

static inline u64 obd_div_s64(i64 a, i64 b)
{
	if (b == 0)
		return ~0ull;
	return b == -1 ? 0ull - (u64)a : (u64)(a / b);
}

static inline u64 obd_rem_s64(i64 a, i64 b)
{
	if (b == 0)
		return (u64)a;
	return b == -1 ? 0 : (u64)(a % b);
}

static inline u64 obd_mulhi_u64(u64 a, u64 b)
{
	return (u64)(((obd_u128)a * b) >> 64);
}

static inline u64 obd_mulhi_s64(u64 a, u64 b)
{
	return (u64)(((obd_i128)(i64)a * (i64)b) >> 64);
}

static inline i32 obd_clamp_s32(i64 v)
{
	return (i32)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}

/* Only the low 8 bits of `pos` and `len` are used. */
static inline u32 obd_bfe_u32(u32 a, u32 pos, u32 len)
{
	pos &= 0xff;
	len &= 0xff;
	u32 v = pos < 32 ? a >> pos : 0;

	return len < 32 ? v & ((1u << len) - 1) : v;
}

static inline u32 obd_bfe_s32(u32 a, u32 pos, u32 len)
{
	pos &= 0xff;
	len &= 0xff;
	if (len == 0)
		return 0;
	u32 last = pos + len - 1 < 31 ? pos + len - 1 : 31;
	u32 sign = (a >> last) & 1;
	u32 v = pos < 32 ? a >> pos : 0;
	u32 keep = len < 32 ? (1u << len) - 1 : ~0u;
	u32 have = pos < 32 ? ~0u >> pos : 0;

	keep &= have;
	return (v & keep) | (sign ? ~keep : 0);
}

static inline u64 obd_bfe_u64(u64 a, u32 pos, u32 len)
{
	pos &= 0xff;
	len &= 0xff;
	u64 v = pos < 64 ? a >> pos : 0;

	return len < 64 ? v & ((1ull << len) - 1) : v;
}

static inline u64 obd_bfe_s64(u64 a, u32 pos, u32 len)
{
	pos &= 0xff;
	len &= 0xff;
	if (len == 0)
		return 0;
	u32 last = pos + len - 1 < 63 ? pos + len - 1 : 63;
	u64 sign = (a >> last) & 1;
	u64 v = pos < 64 ? a >> pos : 0;
	u64 keep = len < 64 ? (1ull << len) - 1 : ~0ull;

	keep &= pos < 64 ? ~0ull >> pos : 0;
	return (v & keep) | (sign ? ~keep : 0);
}

static inline u64 obd_bfi(u64 a, u64 b, u32 pos, u32 len, u32 bits)
{
	pos &= 0xff;
	len &= 0xff;
	if (pos >= bits || len == 0)
		return b;
	u64 keep = len < 64 ? (1ull << len) - 1 : ~0ull;

	keep <<= pos;
	return (b & ~keep) | ((a << pos) & keep);
}

static inline u32 obd_bmsk(u32 a, u32 b, bool wrap)
{
	u32 pos = wrap ? a & 31 : (a < 32 ? a : 32), len = wrap ? b & 31 : (b < 32 ? b : 32);
	u64 keep = ((1ull << len) - 1) << pos;

	return (u32)keep;
}

static inline u32 obd_brev32(u32 a)
{
	a = ((a >> 1) & 0x55555555) | ((a & 0x55555555) << 1);
	a = ((a >> 2) & 0x33333333) | ((a & 0x33333333) << 2);
	a = ((a >> 4) & 0x0f0f0f0f) | ((a & 0x0f0f0f0f) << 4);
	a = ((a >> 8) & 0x00ff00ff) | ((a & 0x00ff00ff) << 8);
	return (a >> 16) | (a << 16);
}

static inline u64 obd_brev64(u64 a)
{
	return ((u64)obd_brev32((u32)a) << 32) | obd_brev32((u32)(a >> 32));
}

static inline u32 obd_popc32(u32 a)
{
	a = a - ((a >> 1) & 0x55555555);
	a = (a & 0x33333333) + ((a >> 2) & 0x33333333);
	a = (a + (a >> 4)) & 0x0f0f0f0f;
	return (a * 0x01010101u) >> 24;
}

static inline u32 obd_bfind_u32(u32 a)
{
	return a ? 31u - (u32)__builtin_clz(a) : ~0u;
}

static inline u32 obd_bfind_u64(u64 a)
{
	return a ? 63u - (u32)__builtin_clzll(a) : ~0u;
}

static inline u32 obd_shamt(u32 bit, u32 top)
{
	return bit == ~0u ? ~0u : top - bit;
}

/*
 * Position of the n-th set bit, counted from `base`. n > 0: upward, `base` included; n < 0:
 * downward; n == 0: `base` itself if that bit is set.
 */
static inline u32 obd_fns(u32 mask, u32 base, i32 n)
{
	if (base > 31)
		return ~0u;
	if (n == 0)
		return (mask >> base) & 1 ? base : ~0u;
	i32 step = n > 0 ? 1 : -1, left = n > 0 ? n : -n;

	for (i32 i = (i32)base; i >= 0 && i < 32; i += step)
		if (((mask >> i) & 1) && --left == 0)
			return (u32)i;
	return ~0u;
}

static inline u32 obd_prmt(u32 a, u32 b, u32 c)
{
	u64 v = (u64)a | ((u64)b << 32);
	u32 r = 0;

	for (u32 i = 0; i < 4; i++) {
		u32 s = (c >> (4 * i)) & 15;
		u32 x = (u32)(v >> (8 * (s & 7))) & 0xff;

		if (s & 8)
			x = x & 0x80 ? 0xff : 0;
		r |= x << (8 * i);
	}
	return r;
}

enum { OBD_PRMT_F4E = 1, OBD_PRMT_B4E, OBD_PRMT_RC8, OBD_PRMT_ECL, OBD_PRMT_ECR, OBD_PRMT_RC16 };

static inline u32 obd_prmt_mode(u32 a, u32 b, u32 c, u32 mode)
{
	static const u16 sel[7][4] = {
		{ 0 },
		{ 0x3210, 0x4321, 0x5432, 0x6543 },
		{ 0x5670, 0x6701, 0x7012, 0x0123 },
		{ 0x0000, 0x1111, 0x2222, 0x3333 },
		{ 0x3210, 0x3211, 0x3222, 0x3333 },
		{ 0x0000, 0x1110, 0x2210, 0x3210 },
		{ 0x1010, 0x3232, 0x1010, 0x3232 },
	};

	return obd_prmt(a, b, sel[mode][c & 3]);
}

static inline u32 obd_lop3(u32 a, u32 b, u32 c, u32 lut)
{
	u32 r = 0;

	if (lut & 0x01)
		r |= ~a & ~b & ~c;
	if (lut & 0x02)
		r |= ~a & ~b & c;
	if (lut & 0x04)
		r |= ~a & b & ~c;
	if (lut & 0x08)
		r |= ~a & b & c;
	if (lut & 0x10)
		r |= a & ~b & ~c;
	if (lut & 0x20)
		r |= a & ~b & c;
	if (lut & 0x40)
		r |= a & b & ~c;
	if (lut & 0x80)
		r |= a & b & c;
	return r;
}

/* mode: bit 0: a is signed; bit 1: b is signed; bit 2 (dp2a only): use the upper two bytes of b */
static inline u32 obd_dp4a(u32 a, u32 b, u32 c, u32 mode)
{
	for (u32 i = 0; i < 32; i += 8) {
		i32 x = mode & 1 ? (i8)(a >> i) : (i32)((a >> i) & 0xff);
		i32 y = mode & 2 ? (i8)(b >> i) : (i32)((b >> i) & 0xff);

		c += (u32)(x * y);
	}
	return c;
}

static inline u32 obd_dp2a(u32 a, u32 b, u32 c, u32 mode)
{
	if (mode & 4)
		b >>= 16;
	for (u32 i = 0; i < 2; i++) {
		i32 x = mode & 1 ? (i16)(a >> (16 * i)) : (i32)((a >> (16 * i)) & 0xffff);
		i32 y = mode & 2 ? (i8)(b >> (8 * i)) : (i32)((b >> (8 * i)) & 0xff);

		c += (u32)x * (u32)y;
	}
	return c;
}

/* what: bit 0: signed; bit 1: max */
static inline u32 obd_minmax16x2(u32 a, u32 b, u32 what)
{
	u32 r = 0;

	for (u32 i = 0; i < 32; i += 16) {
		u32 x = (a >> i) & 0xffff, y = (b >> i) & 0xffff;
		bool less = what & 1 ? (i16)x < (i16)y : x < y;

		r |= (less == !(what & 2) ? x : y) << i;
	}
	return r;
}

/*
 * The SIMD video instructions. what: bits 0-2 operation (add sub avrg absdiff min max set), bit 3
 * elements are bytes, bit 4 signed, bit 5 saturate, bit 6 accumulate into c, bits 8-10 comparison
 * of set (eq ne lt le gt ge).
 */
enum { OBD_VADD, OBD_VSUB, OBD_VAVRG, OBD_VABSDIFF, OBD_VMIN, OBD_VMAX, OBD_VSET };

static inline u32 obd_simd_video(u32 a, u32 b, u32 c, u32 what)
{
	u32 bits = what & 8 ? 8 : 16, r = 0, sum = c;
	u32 lane = (1u << bits) - 1;

	for (u32 i = 0; i < 32; i += bits) {
		u32 ua = (a >> i) & lane, ub = (b >> i) & lane;
		bool sign = what & 16;
		i32 x = sign ? (i32)(ua << (32 - bits)) >> (32 - bits) : (i32)ua;
		i32 y = sign ? (i32)(ub << (32 - bits)) >> (32 - bits) : (i32)ub;
		i32 lo = sign ? -(1 << (bits - 1)) : 0,
		    hi = sign ? (1 << (bits - 1)) - 1 : (i32)lane, v;

		switch (what & 7) {
		case OBD_VADD:
			v = x + y;
			break;
		case OBD_VSUB:
			v = x - y;
			break;
		case OBD_VAVRG:
			v = (x + y + (x + y >= 0)) >> 1;
			break;
		case OBD_VABSDIFF:
			v = x < y ? y - x : x - y;
			break;
		case OBD_VMIN:
			v = x < y ? x : y;
			break;
		case OBD_VMAX:
			v = x > y ? x : y;
			break;
		default:
			switch ((what >> 8) & 7) {
			case 0:
				v = x == y;
				break;
			case 1:
				v = x != y;
				break;
			case 2:
				v = x < y;
				break;
			case 3:
				v = x <= y;
				break;
			case 4:
				v = x > y;
				break;
			default:
				v = x >= y;
				break;
			}
		}
		if (what & 32)
			v = v < lo ? lo : v > hi ? hi : v;
		r |= ((u32)v & lane) << i;
		sum += (what & 7) == OBD_VABSDIFF ? (u32)v & lane : (u32)v;
	}
	return what & 64 ? sum : r;
}

#define QNAN32 obd_bits_f32(0x7fffffffu)
#define QNAN64 obd_bits_f64(0xfff8000000000000ull)

/* A NaN result of type f32 is always the canonical NaN. */
#define NAN32(x) obd_nan32(x)
static inline f32 obd_nan32(f32 x)
{
	return x != x ? QNAN32 : x;
}

#define FTZ(x) obd_ftz(x)
static inline f32 obd_ftz(f32 x)
{
	u32 b = obd_f32_bits(x), small = (u32)((i32)((b & 0x7fffffff) - 0x00800000) >> 31);

	return obd_bits_f32(b & ~(small & 0x7fffffff));
}

static inline f32 obd_min_f32(f32 a, f32 b)
{
	if (a == b) /* -0 is less than +0 */
		return obd_bits_f32(obd_f32_bits(a) | obd_f32_bits(b));
	return a != a ? (b != b ? QNAN32 : b) : b != b ? a : a < b ? a : b;
}

static inline f32 obd_max_f32(f32 a, f32 b)
{
	if (a == b)
		return obd_bits_f32(obd_f32_bits(a) & obd_f32_bits(b));
	return a != a ? (b != b ? QNAN32 : b) : b != b ? a : a > b ? a : b;
}

static inline f64 obd_min_f64(f64 a, f64 b)
{
	if (a == b)
		return obd_bits_f64(obd_f64_bits(a) | obd_f64_bits(b));
	return a != a    ? (b != b ? obd_bits_f64(0x7fffffffffffffffull) : b)
		: b != b ? a
		: a < b  ? a
			 : b;
}

static inline f64 obd_max_f64(f64 a, f64 b)
{
	if (a == b)
		return obd_bits_f64(obd_f64_bits(a) & obd_f64_bits(b));
	return a != a    ? (b != b ? obd_bits_f64(0x7fffffffffffffffull) : b)
		: b != b ? a
		: a > b  ? a
			 : b;
}

/* div.approx: the reciprocal of a divisor above 2^126 is 0. */
static inline f32 obd_div_fast(f32 a, f32 b)
{
	f32 m = b < 0 ? -b : b;

	if (m > 0x1p126f && m < INFINITY && a == a)
		return a == INFINITY || a == -INFINITY ? QNAN32 : (a < 0) != (b < 0) ? -0.0f : 0.0f;
	return obd_nan32(a / b);
}

/*
 * The approximate f64 functions use only the upper word of the argument and return zero in the
 * lower word. Subnormals are treated as zero.
 */
static inline f64 obd_high_word(f64 x)
{
	u64 b = obd_f64_bits(x);

	if (!(b & 0x7ff0000000000000ull))
		b &= 0x8000000000000000ull;
	return obd_bits_f64(b & 0xffffffff00000000ull);
}

static inline f64 obd_rcp_fast_f64(f64 a)
{
	f64 r = 1.0 / obd_high_word(a);

	return r != r ? obd_bits_f64(0x7fffffff00000000ull) : obd_high_word(r);
}

static inline f64 obd_rsqrt_fast_f64(f64 a)
{
	f64 r = 1.0 / sqrt(obd_high_word(a));

	return r != r ? obd_bits_f64(0x7fffffff00000000ull) : obd_high_word(r);
}

#endif
