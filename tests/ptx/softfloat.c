/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/ptx/softfloat.h"

#include <math.h>
#include <stddef.h>

const struct pt_float_format pt_f64 = { 64, 53, -1022, UINT64_C(0x7ff) << 52, true };
const struct pt_float_format pt_f32 = { 32, 24, -126, 0x7f800000u, true };
const struct pt_float_format pt_f16 = { 16, 11, -14, 0x7c00u, true };
const struct pt_float_format pt_bf16 = { 16, 8, -126, 0x7f80u, true };
/* 19 bits; cvt puts them into the upper bits of a 32-bit register */
const struct pt_float_format pt_tf32 = { 19, 11, -126, 0x3fc00u, true };
const struct pt_float_format pt_e4m3 = { 8, 4, -6, 0x7fu, false };
const struct pt_float_format pt_e5m2 = { 8, 3, -14, 0x7cu, true };

static const struct pt_num num_nan = { PT_NAN, false, 0, 0 };

static int msb_of(pt_u128 m)
{
	uint64_t hi = (uint64_t)(m >> 64), lo = (uint64_t)m;
	return hi ? 127 - __builtin_clzll(hi) : 63 - __builtin_clzll(lo);
}

/* Returns m * 2^-s; the lowest bit is the OR of itself and all bits shifted out. */
static pt_u128 shift_jam(pt_u128 m, int s)
{
	if (s <= 0)
		return m << -s;
	if (s >= 128)
		return m != 0;
	pt_u128 lost = m & (((pt_u128)1 << s) - 1);
	return (m >> s) | (lost != 0);
}

struct pt_num pt_num_unpack(const struct pt_float_format *f, uint64_t bits)
{
	uint64_t sign = UINT64_C(1) << (f->width - 1);
	uint64_t mag = bits & (sign - 1);
	struct pt_num x = { PT_FINITE, (bits & sign) != 0, 0, 0 };
	if (mag == 0) {
		x.kind = PT_ZERO;
		return x;
	}
	if (mag >= f->inf) {
		x.kind = f->has_inf && mag == f->inf ? PT_INF : PT_NAN;
		return x;
	}
	uint64_t hidden = UINT64_C(1) << (f->precision - 1);
	int biased = (int)(mag >> (f->precision - 1));
	x.mant = mag & (hidden - 1);
	if (biased)
		x.mant |= hidden;
	x.exp = f->emin - (f->precision - 1) + (biased ? biased - 1 : 0);
	return x;
}

struct pt_num pt_num_from_int(bool neg, uint64_t magnitude)
{
	return (struct pt_num){ magnitude ? PT_FINITE : PT_ZERO, magnitude ? neg : false, 0,
		magnitude };
}

/*
 * Whether to round a magnitude away from zero. half: the dropped part is 0 below, 1 at, 2 above the
 * middle.
 */
static bool rounds_up(enum pt_rounding rm, bool neg, bool odd, bool inexact, int half)
{
	switch (rm) {
	case PT_RN:
		return half == 2 || (half == 1 && odd);
	case PT_RNA:
		return half >= 1;
	case PT_RZ:
		return false;
	case PT_RM:
		return neg && inexact;
	case PT_RP:
		return !neg && inexact;
	}
	return false;
}

/* mant * 2^-s, rounded to an integer; s > 0 */
static pt_u128 shift_round(pt_u128 m, int s, enum pt_rounding rm, bool neg)
{
	if (s > 127)
		return rounds_up(rm, neg, false, m != 0, 0);
	pt_u128 kept = m >> s, lost = m & (((pt_u128)1 << s) - 1), middle = (pt_u128)1 << (s - 1);
	int half = lost > middle ? 2 : lost == middle ? 1 : 0;
	return kept + rounds_up(rm, neg, kept & 1, lost != 0, half);
}

uint64_t pt_num_pack(const struct pt_float_format *f, struct pt_num x, enum pt_rounding rm,
	bool satfinite, bool *ret_tiny)
{
	uint64_t sign = x.neg ? UINT64_C(1) << (f->width - 1) : 0;
	uint64_t max = f->inf - 1; /* largest finite magnitude: one below infinity, or below NaN */
	if (ret_tiny)
		*ret_tiny = false;
	if (x.kind == PT_NAN)
		return (UINT64_C(1) << (f->width - 1)) - 1;
	if (x.kind == PT_ZERO)
		return sign;
	if (x.kind == PT_INF)
		return sign | (satfinite || !f->has_inf ? max : f->inf);
	int top = x.exp + msb_of(x.mant);
	bool tiny = top < f->emin;
	if (ret_tiny)
		*ret_tiny = tiny;
	int quantum = (tiny ? f->emin : top) - (f->precision - 1);
	if (top > 2000)
		top = 2000;
	pt_u128 m = quantum <= x.exp ? x.mant << (x.exp - quantum)
				     : shift_round(x.mant, quantum - x.exp, rm, x.neg);
	/*
	 * The hidden bit of a normal number adds one to the exponent field, and so does a carry out
	 * of the fraction.
	 */
	pt_u128 bits = m + (tiny ? 0 : ((pt_u128)(top - f->emin) << (f->precision - 1)));
	if (bits > max) {
		bool to_inf = rm == PT_RN || rm == PT_RNA || (rm == PT_RP && !x.neg) ||
			(rm == PT_RM && x.neg);
		bits = f->has_inf && to_inf && !satfinite ? f->inf : max;
	}
	return sign | (uint64_t)bits;
}

struct pt_num pt_num_neg(struct pt_num a)
{
	a.neg = !a.neg;
	return a;
}

struct pt_num pt_num_add(struct pt_num a, struct pt_num b, enum pt_rounding rm)
{
	if (a.kind == PT_NAN || b.kind == PT_NAN ||
		(a.kind == PT_INF && b.kind == PT_INF && a.neg != b.neg))
		return num_nan;
	if (a.kind == PT_INF || b.kind == PT_INF)
		return a.kind == PT_INF ? a : b;
	struct pt_num zero = { PT_ZERO, a.neg == b.neg ? a.neg : rm == PT_RM, 0, 0 };
	if (a.kind == PT_ZERO && b.kind == PT_ZERO)
		return zero;
	if (a.kind == PT_ZERO || b.kind == PT_ZERO)
		return a.kind == PT_ZERO ? b : a;
	int ta = a.exp + msb_of(a.mant), tb = b.exp + msb_of(b.mant);
	/* Room for a carry, 106 exact bits of the larger operand and a sticky bit. */
	int base = (ta > tb ? ta : tb) - 120;
	pt_u128 ma = shift_jam(a.mant, base - a.exp), mb = shift_jam(b.mant, base - b.exp);
	struct pt_num r = { PT_FINITE, a.neg, base, 0 };
	if (a.neg == b.neg) {
		r.mant = ma + mb;
	} else if (ma == mb) {
		return zero;
	} else {
		r.mant = ma > mb ? ma - mb : mb - ma;
		r.neg = ma > mb ? a.neg : b.neg;
	}
	return r;
}

struct pt_num pt_num_mul(struct pt_num a, struct pt_num b)
{
	bool neg = a.neg != b.neg;
	if (a.kind == PT_NAN || b.kind == PT_NAN)
		return num_nan;
	if (a.kind == PT_INF || b.kind == PT_INF)
		return a.kind == PT_ZERO || b.kind == PT_ZERO
			? num_nan
			: (struct pt_num){ PT_INF, neg, 0, 0 };
	if (a.kind == PT_ZERO || b.kind == PT_ZERO)
		return (struct pt_num){ PT_ZERO, neg, 0, 0 };
	return (struct pt_num){ PT_FINITE, neg, a.exp + b.exp, a.mant * b.mant };
}

struct pt_num pt_num_div(struct pt_num a, struct pt_num b)
{
	bool neg = a.neg != b.neg;
	if (a.kind == PT_NAN || b.kind == PT_NAN || (a.kind == b.kind && a.kind != PT_FINITE))
		return num_nan;
	if (a.kind == PT_INF || b.kind == PT_ZERO)
		return (struct pt_num){ PT_INF, neg, 0, 0 };
	if (a.kind == PT_ZERO || b.kind == PT_INF)
		return (struct pt_num){ PT_ZERO, neg, 0, 0 };
	int up = 126 - msb_of(a.mant);
	pt_u128 n = a.mant << up, q = n / b.mant;
	return (struct pt_num){ PT_FINITE, neg, a.exp - up - b.exp, q | (n % b.mant != 0) };
}

struct pt_num pt_num_sqrt(struct pt_num a)
{
	if (a.kind == PT_ZERO || a.kind == PT_NAN)
		return a;
	if (a.neg)
		return num_nan;
	if (a.kind == PT_INF)
		return a;
	int up = 125 - msb_of(a.mant);
	if ((a.exp - up) % 2)
		up++;
	pt_u128 n = a.mant << up, root = 0;
	for (pt_u128 bit = (pt_u128)1 << 126; bit; bit >>= 2) {
		if (n >= root + bit) {
			n -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	/* one more bit: the sticky bit */
	return (struct pt_num){ PT_FINITE, false, (a.exp - up) / 2 - 1, (root << 1) | (n != 0) };
}

struct pt_num pt_num_round(struct pt_num a, enum pt_rounding rm)
{
	if (a.kind != PT_FINITE || a.exp >= 0)
		return a;
	a.mant = shift_round(a.mant, -a.exp, rm, a.neg);
	a.exp = 0;
	if (a.mant == 0)
		a.kind = PT_ZERO;
	return a;
}

int pt_num_compare(struct pt_num a, struct pt_num b)
{
	if (a.kind == PT_NAN || b.kind == PT_NAN)
		return 2;
	if (a.kind == PT_INF || b.kind == PT_INF) {
		int va = a.kind == PT_INF ? (a.neg ? -1 : 1) : 0,
		    vb = b.kind == PT_INF ? (b.neg ? -1 : 1) : 0;
		return (va > vb) - (va < vb);
	}
	struct pt_num d = pt_num_add(a, pt_num_neg(b), PT_RN);
	return d.kind == PT_ZERO ? 0 : d.neg ? -1 : 1;
}

double pt_num_double(struct pt_num a)
{
	union {
		uint64_t u;
		double d;
	} v = { pt_num_pack(&pt_f64, a, PT_RN, false, NULL) };
	return v.d;
}
