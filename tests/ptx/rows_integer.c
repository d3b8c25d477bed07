/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Integer arithmetic. arg[0] of a row is its operand type. The comparison truncates results to the
 * destination's width.
 */
#include <stdlib.h>

#include "tests/ptx/groups.h"

static const enum pt_type plain[] = { PT_U16, PT_S16, PT_U32, PT_S32, PT_U64, PT_S64 };
#define N_PLAIN (sizeof plain / sizeof plain[0])

static enum pt_type type_of(const struct pt_row *row)
{
	return (enum pt_type)row->arg[0];
}

/* An operand as a mathematical integer. */
static pt_i128 value(enum pt_type t, uint64_t bits)
{
	unsigned w = pt_type_bits(t);
	return pt_type_signed(t) ? (pt_i128)pt_sext(bits, w) : (pt_i128)(bits & pt_mask(w));
}

static uint64_t store(const struct pt_row *row, pt_i128 v)
{
	return (uint64_t)v & pt_mask(pt_type_bits(row->out[0]));
}

static pt_i128 clamp(pt_i128 v, pt_i128 lo, pt_i128 hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static pt_i128 clamp_s32(pt_i128 v)
{
	return clamp(v, INT32_MIN, INT32_MAX);
}

static void ref_add(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	pt_i128 v = value(type_of(row), in[0]) + value(type_of(row), in[1]);
	want->out[0] = store(row, row->arg[1] ? clamp_s32(v) : v);
}

static void ref_sub(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	pt_i128 v = value(type_of(row), in[0]) - value(type_of(row), in[1]);
	want->out[0] = store(row, row->arg[1] ? clamp_s32(v) : v);
}

/*
 * The full product, as 128 bits of two's complement: the largest, 2^128 - 2^65 + 1, does not fit a
 * signed type.
 */
static pt_u128 product(enum pt_type t, uint64_t a, uint64_t b)
{
	return (pt_u128)value(t, a) * (pt_u128)value(t, b);
}

enum { LO, HI, WIDE };

static pt_u128 part(const struct pt_row *row, pt_u128 p)
{
	return row->arg[1] == HI ? p >> pt_type_bits(type_of(row)) : p;
}

static void ref_mul(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->out[0] = store(row, (pt_i128)part(row, product(type_of(row), in[0], in[1])));
}

static void ref_mad(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	pt_u128 p = part(row, product(type_of(row), in[0], in[1]));
	if (row->arg[2]) { /* mad.hi.sat.s32 */
		pt_i128 hi = pt_sext((uint64_t)p, 32);
		want->out[0] = store(row, clamp_s32(hi + value(PT_S32, in[2])));
		return;
	}
	want->out[0] = store(row, (pt_i128)(p + (pt_u128)in[2]));
}

/* 24-bit operands, sign- or zero-extended; hi is bits 47..16 of the product. */
static uint64_t product24(const struct pt_row *row, const uint64_t *in)
{
	bool is_signed = pt_type_signed(type_of(row));
	int64_t a = is_signed ? pt_sext(in[0], 24) : (int64_t)(in[0] & 0xffffff);
	int64_t b = is_signed ? pt_sext(in[1], 24) : (int64_t)(in[1] & 0xffffff);
	uint64_t p = (uint64_t)(a * b);
	return (row->arg[1] == HI ? p >> 16 : p) & 0xffffffff;
}

static void ref_mul24(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->out[0] = product24(row, in);
}

static void ref_mad24(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	uint64_t p = product24(row, in);
	if (row->arg[2])
		want->out[0] = store(row, clamp_s32((pt_i128)pt_sext(p, 32) + pt_sext(in[2], 32)));
	else
		want->out[0] = store(row, (pt_i128)(p + in[2]));
}

static void ref_sad(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	pt_i128 d = value(type_of(row), in[0]) - value(type_of(row), in[1]);
	want->out[0] = store(row, (pt_i128)in[2] + (d < 0 ? -d : d));
}

/* The ISA does not define division by zero and the one quotient that overflows. */
static bool division_open(const struct pt_row *row, const uint64_t *in)
{
	unsigned w = pt_type_bits(type_of(row));
	pt_i128 b = value(type_of(row), in[1]);
	return b == 0 || (b == -1 && (in[0] & pt_mask(w)) == UINT64_C(1) << (w - 1));
}

static void ref_div(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->open = division_open(row, in);
	if (!want->open)
		want->out[0] = store(row, value(type_of(row), in[0]) / value(type_of(row), in[1]));
}

static void ref_rem(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->open = division_open(row, in);
	if (!want->open)
		want->out[0] = store(row, value(type_of(row), in[0]) % value(type_of(row), in[1]));
}

static pt_i128 pick(const struct pt_row *row, enum pt_type t, uint64_t a, uint64_t b)
{
	pt_i128 x = value(t, a), y = value(t, b);
	pt_i128 r = row->arg[1] ? (x > y ? x : y) : (x < y ? x : y);
	return row->arg[2] && r < 0 ? 0 : r; /* .relu */
}

static void ref_minmax(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->out[0] = store(row, pick(row, type_of(row), in[0], in[1]));
}

static void ref_minmax_x2(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	uint64_t lo = (uint64_t)pick(row, type_of(row), in[0] & 0xffff, in[1] & 0xffff) & 0xffff;
	uint64_t hi = (uint64_t)pick(row, type_of(row), in[0] >> 16, in[1] >> 16) & 0xffff;
	want->out[0] = hi << 16 | lo;
}

static void ref_add_x2(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	(void)row;
	uint64_t lo = (in[0] + in[1]) & 0xffff, hi = ((in[0] >> 16) + (in[1] >> 16)) & 0xffff;
	want->out[0] = hi << 16 | lo;
}

static void ref_abs(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	pt_i128 v = value(type_of(row), in[0]);
	want->out[0] = store(row, v < 0 ? -v : v);
}

static void ref_neg(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	want->out[0] = store(row, -value(type_of(row), in[0]));
}

static struct pt_row *row(
	struct pt_suite *s, pt_ref_fn *ref, const char *op, enum pt_type t, unsigned n_in)
{
	const char *n = pt_type_name(t);
	char *types = n_in == 1 ? pt_format("%s:%s", n, n)
		: n_in == 2     ? pt_format("%s:%s,%s", n, n, n)
				: pt_format("%s:%s,%s,%s", n, n, n, n);
	struct pt_row *r = pt_row_add(s, ref, types, "%s.%s", op, n);
	r->arg[0] = (int)t;
	free(types);
	return r;
}

static void add_products(struct pt_suite *s, enum pt_type t)
{
	row(s, ref_mul, "mul.lo", t, 2);
	row(s, ref_mul, "mul.hi", t, 2)->arg[1] = HI;
	row(s, ref_mad, "mad.lo", t, 3);
	row(s, ref_mad, "mad.hi", t, 3)->arg[1] = HI;
	if (pt_type_bits(t) == 64)
		return;
	const char *n = pt_type_name(t);
	enum pt_type wide = (enum pt_type)((int)t + 3); /* the same signedness, twice the width */
	char *types = pt_format("%s:%s,%s", pt_type_name(wide), n, n);
	struct pt_row *r = pt_row_add(s, ref_mul, types, "mul.wide.%s", n);
	free(types);
	r->arg[0] = (int)t;
	r->arg[1] = WIDE;
	types = pt_format("%s:%s,%s,%s", pt_type_name(wide), n, n, pt_type_name(wide));
	r = pt_row_add(s, ref_mad, types, "mad.wide.%s", n);
	free(types);
	r->arg[0] = (int)t;
	r->arg[1] = WIDE;
}

static void add_24(struct pt_suite *s, enum pt_type t)
{
	row(s, ref_mul24, "mul24.lo", t, 2);
	row(s, ref_mul24, "mul24.hi", t, 2)->arg[1] = HI;
	row(s, ref_mad24, "mad24.lo", t, 3);
	row(s, ref_mad24, "mad24.hi", t, 3)->arg[1] = HI;
	if (t == PT_S32) {
		struct pt_row *r = row(s, ref_mad24, "mad24.hi.sat", t, 3);
		r->arg[1] = HI;
		r->arg[2] = 1;
	}
}

static void add_x2(struct pt_suite *s)
{
	static const struct {
		const char *name;
		enum pt_type t;
		int max, relu;
	} ops[] = { { "min.u16x2", PT_U16, 0, 0 }, { "max.u16x2", PT_U16, 1, 0 },
		{ "min.s16x2", PT_S16, 0, 0 }, { "max.s16x2", PT_S16, 1, 0 },
		{ "min.relu.s16x2", PT_S16, 0, 1 }, { "max.relu.s16x2", PT_S16, 1, 1 } };
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
		struct pt_row *r = pt_row_add(s, ref_minmax_x2, "b32:b32,b32", "%s", ops[i].name);
		r->arg[0] = (int)ops[i].t;
		r->arg[1] = ops[i].max;
		r->arg[2] = ops[i].relu;
	}
	pt_row_add(s, ref_add_x2, "b32:b32,b32", "add.u16x2");
	pt_row_add(s, ref_add_x2, "b32:b32,b32", "add.s16x2");
}

void pt_group_integer(struct pt_suite *s)
{
	for (size_t i = 0; i < N_PLAIN; i++) {
		enum pt_type t = plain[i];
		row(s, ref_add, "add", t, 2);
		row(s, ref_sub, "sub", t, 2);
		add_products(s, t);
		row(s, ref_sad, "sad", t, 3);
		row(s, ref_div, "div", t, 2);
		row(s, ref_rem, "rem", t, 2);
		row(s, ref_minmax, "min", t, 2);
		row(s, ref_minmax, "max", t, 2)->arg[1] = 1;
		if (pt_type_signed(t)) {
			row(s, ref_abs, "abs", t, 1);
			row(s, ref_neg, "neg", t, 1);
		}
		if (t == PT_U32 || t == PT_S32)
			add_24(s, t);
	}
	row(s, ref_add, "add.sat", PT_S32, 2)->arg[1] = 1;
	row(s, ref_sub, "sub.sat", PT_S32, 2)->arg[1] = 1;
	struct pt_row *r = row(s, ref_mad, "mad.hi.sat", PT_S32, 3);
	r->arg[1] = HI;
	r->arg[2] = 1;
	row(s, ref_minmax, "min.relu", PT_S32, 2)->arg[2] = 1;
	r = row(s, ref_minmax, "max.relu", PT_S32, 2);
	r->arg[1] = 1;
	r->arg[2] = 1;
	add_x2(s);
}
