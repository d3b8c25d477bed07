/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/half.h"

#include <math.h>

const struct obd_format obd_format_f16 = { 10, -14, 15, 0x7c00, 0x7fff, 0x7bff };
const struct obd_format obd_format_bf16 = { 7, -126, 127, 0x7f80, 0x7fff, 0x7f7f };
const struct obd_format obd_format_e4m3 = { 3, -6, 8, 0, 0x7f, 0x7e };
const struct obd_format obd_format_e5m2 = { 2, -14, 15, 0x7c, 0x7f, 0x7b };
const struct obd_format obd_format_f32 = { 23, -126, 127, 0x7f800000, 0x7fffffff, 0x7f7fffff };
const struct obd_format obd_format_tf32 = { 10, -126, 127, 0x7f800000 >> 13, 0x7fffffff >> 13,
	0x7f7fffff >> 13 };

static uint32_t overflow(const struct obd_format *f, bool neg, enum obd_round mode, bool satfinite)
{
	if (satfinite)
		return f->max;
	if (mode == OBD_RZ || (mode == OBD_RM && !neg) || (mode == OBD_RP && neg))
		return f->max;
	return f->inf ? f->inf : f->nan;
}

uint32_t obd_round_to(const struct obd_format *f, double x, enum obd_round mode, bool satfinite)
{
	uint64_t b = obd_f64_bits(x);
	bool neg = b >> 63;
	int bits = f->man + (f->emax >= 127 ? 8 : f->man == 10 ? 5 : f->man == 3 ? 4 : 5);
	uint32_t sign = neg ? 1u << bits : 0;

	if (x != x)
		return f->nan;
	if (isinf(x))
		return sign | (f->inf && !satfinite ? f->inf : satfinite ? f->max : f->nan);
	b &= 0x7fffffffffffffffull;
	if (!b)
		return sign;
	int e = (int)(b >> 52) - 1023;
	uint64_t m = (b & 0xfffffffffffffull) | (1ull << 52);

	if ((b >> 52) == 0)
		return sign | ((mode == OBD_RM && neg) || (mode == OBD_RP && !neg) ? 1u : 0u);
	int shift = 52 - f->man + (e < f->emin ? f->emin - e : 0);

	if (shift > 63)
		shift = 63;
	uint64_t r = m >> shift, rest = m & ((1ull << shift) - 1), half = 1ull << (shift - 1);
	bool up;

	switch (mode) {
	case OBD_RZ:
		up = false;
		break;
	case OBD_RM:
		up = neg && rest;
		break;
	case OBD_RP:
		up = !neg && rest;
		break;
	case OBD_RNA:
		up = rest >= half;
		break;
	default:
		up = rest > half || (rest == half && (r & 1));
		break;
	}
	r += up;
	/*
	 * r contains the hidden bit, which increments the exponent field. A subnormal has exponent
	 * field 0; a carry out of its fraction gives the smallest normal number.
	 */
	uint64_t v = e < f->emin ? r : r + ((uint64_t)(e - f->emin) << f->man);

	if (v > f->max)
		return sign | overflow(f, neg, mode, satfinite);
	return sign | (uint32_t)v;
}

double obd_small_to_f64(const struct obd_format *f, uint32_t bits)
{
	int width = f->man + (f->emax >= 127 ? 8 : f->man == 10 ? 5 : f->man == 3 ? 4 : 5);
	bool neg = (bits >> width) & 1;
	uint32_t v = bits & ((1u << width) - 1), e = v >> f->man, m = v & ((1u << f->man) - 1);

	if (f->inf ? v > f->inf : v == f->nan)
		return obd_bits_f64(0x7fffffffe0000000ull);
	if (f->inf && v == f->inf)
		return neg ? -INFINITY : INFINITY;
	/* m * 2^(e - 1 + emin - man), with the hidden bit unless e is 0 */
	int exponent = (e ? (int)e - 1 : 0) + f->emin - f->man;
	double r = (double)(e ? m | (1u << f->man) : m) *
		obd_bits_f64((uint64_t)(exponent + 1023) << 52);

	return neg ? -r : r;
}

double obd_fma_odd(double a, double b, double c)
{
	double p = a * b; /* exact: the operands have at most 24 bits */
	double s = p + c;

	if (!isfinite(s) || s == 0)
		return s;
	double bb = s - p, err = (p - (s - bb)) + (c - bb);

	if (err != 0) {
		uint64_t v = obd_f64_bits(s);

		/*
		 * The exact value lies next to s. If s is even, take the odd neighbour on that
		 * side.
		 */
		if (!(v & 1))
			v = (err > 0) == (s > 0) ? v + 1 : v - 1;
		s = obd_bits_f64(v);
	}
	return s;
}

static uint32_t half_one(uint32_t ua, uint32_t ub, const struct obd_format *f, enum obd_half_op op)
{
	double a = obd_small_to_f64(f, ua), b = obd_small_to_f64(f, ub);

	if (op == OBD_HALF_ADD)
		return obd_round_to(f, obd_fma_odd(a, 1.0, b), OBD_RN, false);
	if (a != a || b != b)
		return a != a && b != b ? f->nan : a != a ? ub : ua;
	if (op == OBD_HALF_MIN)
		return a == b ? ua | ub : a < b ? ua : ub;
	return a == b ? ua & ub : a > b ? ua : ub;
}

uint32_t obd_half2(uint32_t a, uint32_t b, uint32_t format, enum obd_half_op op)
{
	const struct obd_format *f = format & 1 ? &obd_format_bf16 : &obd_format_f16;
	uint32_t lo = half_one(a & 0xffff, b & 0xffff, f, op);

	if (!(format & 2))
		return lo;
	return lo | (half_one(a >> 16, b >> 16, f, op) << 16);
}
