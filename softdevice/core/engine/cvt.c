/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cvt between all types, exact, one SIMD lane after another. It executes every conversion that has
 * no handler of its own. Integers are represented by 128-bit values, floating-point numbers by
 * doubles, which represent every source format exactly.
 */
#include "softdevice/core/engine/cvt.h"

#include <math.h>

#include "softdevice/core/half.h"
#include "softdevice/core/ops.h"

__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

static uint32_t width(uint32_t t)
{
	switch (t) {
	case OBD_T_U8:
	case OBD_T_S8:
	case OBD_T_B8:
	case OBD_T_E4M3:
	case OBD_T_E5M2:
		return 8;
	case OBD_T_U16:
	case OBD_T_S16:
	case OBD_T_B16:
	case OBD_T_F16:
	case OBD_T_BF16:
		return 16;
	case OBD_T_U64:
	case OBD_T_S64:
	case OBD_T_B64:
	case OBD_T_F64:
		return 64;
	default:
		return 32;
	}
}

static bool is_float(uint32_t t)
{
	return t >= OBD_T_F16 && t <= OBD_T_E5M2;
}

static bool is_signed(uint32_t t)
{
	return t >= OBD_T_S8 && t <= OBD_T_S64;
}

static const struct obd_format *format(uint32_t t)
{
	switch (t) {
	case OBD_T_F16:
		return &obd_format_f16;
	case OBD_T_BF16:
		return &obd_format_bf16;
	case OBD_T_E4M3:
		return &obd_format_e4m3;
	case OBD_T_E5M2:
		return &obd_format_e5m2;
	case OBD_T_TF32:
		return &obd_format_tf32;
	default:
		return &obd_format_f32;
	}
}

static enum obd_round rounding(uint32_t mode)
{
	switch (mode) {
	case OBD_CVT_RZ:
	case OBD_CVT_RZI:
		return OBD_RZ;
	case OBD_CVT_RM:
	case OBD_CVT_RMI:
		return OBD_RM;
	case OBD_CVT_RP:
	case OBD_CVT_RPI:
		return OBD_RP;
	case OBD_CVT_RNA:
		return OBD_RNA;
	default:
		return OBD_RN;
	}
}

static double round_integral(double x, uint32_t mode)
{
	switch (rounding(mode)) {
	case OBD_RZ:
		return trunc(x);
	case OBD_RM:
		return floor(x);
	case OBD_RP:
		return ceil(x);
	default:
		return nearbyint(x);
	}
}

static i128 integer_source(uint32_t t, uint64_t v)
{
	switch (t) {
	case OBD_T_S8:
		return (int8_t)v;
	case OBD_T_S16:
		return (int16_t)v;
	case OBD_T_S32:
		return (int32_t)v;
	case OBD_T_S64:
		return (int64_t)v;
	case OBD_T_U8:
	case OBD_T_B8:
		return (uint8_t)v;
	case OBD_T_U16:
	case OBD_T_B16:
		return (uint16_t)v;
	case OBD_T_U64:
	case OBD_T_B64:
		return v;
	default:
		return (uint32_t)v;
	}
}

static i128 least(uint32_t t)
{
	return is_signed(t) ? -((i128)1 << (width(t) - 1)) : 0;
}

static i128 most(uint32_t t)
{
	return ((i128)1 << (width(t) - is_signed(t))) - 1;
}

static uint64_t to_width(uint32_t t, i128 v)
{
	uint32_t n = width(t);

	return n == 64 ? (uint64_t)v : (uint64_t)v & ((1ull << n) - 1);
}

static uint64_t float_to_integer(uint32_t dt, uint32_t st, double x, uint32_t mode)
{
	if (x != x)
		return width(dt) == 64 || st == OBD_T_F64 ? 1ull << (width(dt) - 1) : 0;
	x = round_integral(x, mode);
	if (x <= (double)least(dt))
		return to_width(dt, least(dt));
	if (x >= (double)most(dt))
		return to_width(dt, most(dt));
	return to_width(dt, (i128)x);
}

/*
 * v as a double, rounded to odd: rounding the result again gives the correctly rounded value of v.
 */
static double odd_double(i128 v)
{
	bool neg = v < 0;
	u128 u = neg ? -(u128)v : (u128)v;
	uint64_t m = (uint64_t)u;
	int shift = 0;

	while (m >> 53) {
		m = (m >> 1) | (m & 1);
		shift++;
	}
	double r = ldexp((double)m, shift);

	return neg ? -r : r;
}

/* Converts an integer to f64 with the given rounding mode. */
static double integer_to_f64(i128 v, uint32_t mode)
{
	bool neg = v < 0;
	uint64_t u = (uint64_t)(neg ? -v : v), m = u, rest = 0;
	int shift = 0;

	while (m >> 53) {
		rest |= (m & 1) << shift;
		m >>= 1;
		shift++;
	}
	uint64_t half = shift ? 1ull << (shift - 1) : 0;

	switch (rounding(mode)) {
	case OBD_RZ:
		break;
	case OBD_RM:
		m += neg && rest;
		break;
	case OBD_RP:
		m += !neg && rest;
		break;
	default:
		m += rest > half || (rest && rest == half && (m & 1));
		break;
	}
	double r = ldexp((double)m, shift);

	return neg ? -r : r;
}

static double float_source(uint32_t t, uint64_t v)
{
	switch (t) {
	case OBD_T_F64:
		return obd_bits_f64(v);
	case OBD_T_F32:
		return (double)obd_bits_f32((uint32_t)v);
	default:
		return obd_small_to_f64(format(t), (uint32_t)v);
	}
}

static uint64_t float_result(uint32_t dt, double x, uint32_t mode, bool satfinite)
{
	if (dt == OBD_T_F64)
		return obd_f64_bits(x);
	uint32_t r = obd_round_to(format(dt), x, rounding(mode), satfinite);

	return dt == OBD_T_TF32 ? (uint64_t)r << 13 : r;
}

static double flush(double x, bool on)
{
	return on && fabs(x) < 0x1p-126 ? copysign(0.0, x) : x;
}

static uint64_t convert(uint32_t code, uint64_t v)
{
	uint32_t dt = code & 31, st = (code >> 5) & 31, mode = (code >> 10) & 15;
	bool sat = (code >> 14) & 1, ftz = (code >> 15) & 1, relu = (code >> 16) & 1;

	if (!is_float(st)) {
		i128 x = integer_source(st, v);

		if (is_float(dt)) {
			double r = dt == OBD_T_F64 ? integer_to_f64(x, mode) : odd_double(x);

			return float_result(dt, sat ? fmin(fmax(r, 0.0), 1.0) : r, mode, false);
		}
		if (sat)
			x = x < least(dt) ? least(dt) : x > most(dt) ? most(dt) : x;
		return to_width(dt, x);
	}
	double x = float_source(st, v);

	if (st == OBD_T_F32)
		x = flush(x, ftz);
	if (!is_float(dt))
		return float_to_integer(dt, st, x, mode);
	if (mode >= OBD_CVT_RNI)
		x = round_integral(x, mode);
	if (relu && !(x > 0) && x == x)
		x = 0;
	bool narrow = dt == OBD_T_E4M3 || dt == OBD_T_E5M2;

	if (sat && !narrow && dt != OBD_T_TF32)
		x = x > 0 ? (x < 1 ? x : 1.0) : 0.0;
	if (dt == OBD_T_F64)
		return x != x && st != OBD_T_F64 ? 0x7fffffffe0000000ull : obd_f64_bits(x);
	uint64_t r = float_result(dt, x, mode, narrow || (sat && dt == OBD_T_TF32));

	if (dt == OBD_T_F32 && ftz && !(r & 0x7f800000))
		r &= 0x80000000;
	return r;
}

/*
 * Conversions with packed operands. Of a pair d = {a, b} the upper half is a. Packed 8-bit floats
 * are unpacked into two halves.
 */
static uint64_t convert_pair(uint32_t code, uint64_t a, uint64_t b)
{
	uint32_t dt = code & 31, st = (code >> 5) & 31, part = code & ~0x3ffu;

	if (st == OBD_T_E4M3X2 || st == OBD_T_E5M2X2) {
		uint32_t one =
			OBD_T_F16 | ((st == OBD_T_E4M3X2 ? OBD_T_E4M3 : OBD_T_E5M2) << 5) | part;

		return convert(one, a & 0xff) | (convert(one, (a >> 8) & 0xff) << 16);
	}
	uint32_t to = dt == OBD_T_F16X2 ? OBD_T_F16
		: dt == OBD_T_BF16X2    ? OBD_T_BF16
		: dt == OBD_T_E4M3X2    ? OBD_T_E4M3
					: OBD_T_E5M2;
	uint32_t shift = to == OBD_T_F16 || to == OBD_T_BF16 ? 16 : 8;

	if (st == OBD_T_F16X2 || st == OBD_T_BF16X2) {
		b = a & 0xffff;
		a >>= 16;
		st = st == OBD_T_F16X2 ? OBD_T_F16 : OBD_T_BF16;
	}
	uint32_t one = to | (st << 5) | part;

	return convert(one, b) | (convert(one, a) << shift);
}

void obd_cvt(const struct obd_insn *in, char *regs, uint32_t m)
{
	uint32_t code = in->u.imm, dt = code & 31, st = (code >> 5) & 31;
	bool pair = dt >= OBD_T_F16X2 || st >= OBD_T_F16X2, wide_in = width(st) == 64,
	     wide_out = width(dt) == 64;
	const char *a = regs + (size_t)in->a * OBD_SLOT_BYTES,
		   *b = regs + (size_t)in->b * OBD_SLOT_BYTES;
	char *d = regs + (size_t)in->d * OBD_SLOT_BYTES;

	for (uint32_t rest = m; rest; rest &= rest - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(rest);
		uint64_t v = wide_in ? ((const uint64_t *)(const void *)a)[i]
				     : ((const uint32_t *)(const void *)a)[i];
		uint64_t r = pair ? convert_pair(code, v, ((const uint32_t *)(const void *)b)[i])
				  : convert(code, v);

		if (wide_out)
			((uint64_t *)(void *)d)[i] = r;
		else
			((uint32_t *)(void *)d)[i] = (uint32_t)r;
	}
}
