/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Rounded arithmetic of f32 and f64, and of f16, bf16 and their packed forms (groups float and
 * half). All formats use the same reference. arg: operation, rounding, modifiers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/floats.h"
#include "tests/ptx/groups.h"

enum op { ADD, SUB, MUL, FMA, DIV, RCP, SQRT };

static const char *const op_names[] = { "add", "sub", "mul", "fma", "div", "rcp", "sqrt" };
static const unsigned op_inputs[] = { 2, 2, 2, 3, 2, 1, 1 };

static struct pt_num compute(enum op op, const struct pt_num *x, enum pt_rounding rm)
{
	static const struct pt_num one = { PT_FINITE, false, 0, 1 };
	switch (op) {
	case ADD:
		return pt_num_add(x[0], x[1], rm);
	case SUB:
		return pt_num_add(x[0], pt_num_neg(x[1]), rm);
	case MUL:
		return pt_num_mul(x[0], x[1]);
	case FMA:
		return pt_num_add(pt_num_mul(x[0], x[1]), x[2], rm);
	case DIV:
		return pt_num_div(x[0], x[1]);
	case RCP:
		return pt_num_div(one, x[0]);
	case SQRT:
		return pt_num_sqrt(x[0]);
	}
	return one;
}

/* The element type of a packed type. */
static enum pt_type element(enum pt_type t)
{
	return t == PT_F16X2 ? PT_F16 : t == PT_BF16X2 ? PT_BF16 : t;
}

/* For each element of the result: f(elements of the operands). */
typedef uint64_t element_fn(
	const struct pt_row *row, enum pt_type t, const uint64_t *in, uint64_t *ret_alt);

static void per_element(
	const struct pt_row *row, const uint64_t *in, struct pt_want *want, element_fn *f)
{
	enum pt_type t = element(row->out[0]);
	unsigned lanes = pt_type_lanes(row->out[0]), bits = pt_type_bits(t);
	for (unsigned l = 0; l < lanes; l++) {
		uint64_t x[PT_MAX_OPERANDS], alt;
		for (unsigned k = 0; k < row->n_in; k++)
			x[k] = (in[k] >> (l * bits)) & pt_mask(bits);
		want->out[0] |= f(row, t, x, &alt) << (l * bits);
		want->alt[0] |= alt << (l * bits);
	}
	want->has_alt = want->alt[0] != want->out[0];
}

static uint64_t arithmetic(
	const struct pt_row *row, enum pt_type t, const uint64_t *in, uint64_t *ret_alt)
{
	struct pt_num x[3];
	for (unsigned k = 0; k < row->n_in; k++)
		x[k] = pt_float_read(t, in[k], row->arg[2]);
	enum pt_rounding rm = (enum pt_rounding)row->arg[1];
	return pt_float_write(t, compute((enum op)row->arg[0], x, rm), rm, row->arg[2], ret_alt);
}

static void ref_arithmetic(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	per_element(row, in, want, arithmetic);
}

/*
 * min and max by the manual: a NaN operand is ignored unless .NaN is given; +0 > -0; two NaN
 * operands give the canonical NaN.
 */
static uint64_t minmax(
	const struct pt_row *row, enum pt_type t, const uint64_t *in, uint64_t *ret_alt)
{
	int m = row->arg[2];
	const struct pt_float_format *f = pt_type_format(t);
	uint64_t sign = UINT64_C(1) << (f->width - 1), x[2], xorsign = (in[0] ^ in[1]) & sign;
	struct pt_num v[2];
	for (int k = 0; k < 2; k++) {
		x[k] = in[k];
		v[k] = pt_float_read(t, in[k], m);
		if (v[k].kind == PT_ZERO)
			x[k] &= sign;
		if (m & PT_XORSIGN) {
			x[k] &= ~sign;
			v[k].neg = false;
		}
	}
	uint64_t nan = sign - 1, r;
	int order = pt_num_compare(v[0], v[1]);
	if (order == 0) /* equal, or zeros of either sign */
		order = v[0].neg == v[1].neg ? 0 : v[0].neg ? -1 : 1;
	if (v[0].kind == PT_NAN && v[1].kind == PT_NAN)
		r = nan;
	else if (order == 2)
		r = m & PT_NAN_WINS ? nan : v[0].kind == PT_NAN ? x[1] : x[0];
	else
		r = (m & PT_MAX ? order > 0 : order < 0) ? x[0] : x[1];
	if ((m & PT_XORSIGN) && r != nan)
		r |= xorsign;
	return *ret_alt = r;
}

static void ref_minmax(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	per_element(row, in, want, minmax);
}

enum sign_op { ABS, NEG };

static uint64_t sign_of(
	const struct pt_row *row, enum pt_type t, const uint64_t *in, uint64_t *ret_alt)
{
	uint64_t sign = UINT64_C(1) << (pt_type_bits(t) - 1);
	uint64_t x = in[0];
	if (pt_float_read(t, x, row->arg[2]).kind == PT_ZERO)
		x &= sign;
	return *ret_alt = row->arg[0] == ABS ? x & ~sign : x ^ sign;
}

static void ref_sign(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	per_element(row, in, want, sign_of);
}

static void ref_copysign(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	uint64_t sign = UINT64_C(1) << (pt_type_bits(row->out[0]) - 1);
	want->out[0] = (in[0] & sign) | (in[1] & ~sign);
}

/* arg[0]: index into the names below. Zeros count as normal. */
static const char *const testp_names[] = { "finite", "infinite", "number", "notanumber", "normal",
	"subnormal" };

static void ref_testp(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	const struct pt_float_format *f = pt_type_format(row->in[0]);
	struct pt_num v = pt_num_unpack(f, in[0]);
	bool subnormal = v.kind == PT_FINITE && v.mant >> (f->precision - 1) == 0;
	bool finite = v.kind == PT_FINITE || v.kind == PT_ZERO;
	const bool answers[] = { finite, v.kind == PT_INF, v.kind != PT_NAN, v.kind == PT_NAN,
		finite && !subnormal, subnormal };
	want->out[0] = answers[row->arg[0]];
}

static struct pt_row *row(struct pt_suite *s, pt_ref_fn *ref, enum pt_type t, unsigned n_in,
	const char *op, const char *qualifiers, int modifiers)
{
	const char *n = pt_type_name(t);
	char spec[64];
	snprintf(spec, sizeof spec,
		n_in == 1           ? "%s:%s"
			: n_in == 2 ? "%s:%s,%s"
				    : "%s:%s,%s,%s",
		n, n, n, n);
	struct pt_row *r = pt_row_add(s, ref, spec, "%s%s%s%s%s%s.%s", op, qualifiers,
		modifiers & PT_FTZ ? ".ftz" : "", modifiers & PT_NAN_WINS ? ".NaN" : "",
		modifiers & PT_XORSIGN ? ".xorsign.abs" : "",
		modifiers & PT_SAT            ? ".sat"
			: modifiers & PT_RELU ? ".relu"
					      : "",
		n);
	r->arg[2] = modifiers;
	return r;
}

static void add_op(struct pt_suite *s, enum pt_type t, enum op op, const char *rounding,
	enum pt_rounding rm, int modifiers)
{
	struct pt_row *r =
		row(s, ref_arithmetic, t, op_inputs[op], op_names[op], rounding, modifiers);
	r->arg[0] = (int)op;
	r->arg[1] = (int)rm;
}

static void add_minmax(struct pt_suite *s, enum pt_type t, int modifiers)
{
	row(s, ref_minmax, t, 2, "min", "", modifiers);
	row(s, ref_minmax, t, 2, "max", "", modifiers | PT_MAX);
}

static void add_sign(struct pt_suite *s, enum pt_type t, int modifiers)
{
	row(s, ref_sign, t, 1, "abs", "", modifiers)->arg[0] = ABS;
	row(s, ref_sign, t, 1, "neg", "", modifiers)->arg[0] = NEG;
}

static void add_rounded(struct pt_suite *s, enum pt_type t)
{
	for (int op = ADD; op <= SQRT; op++) {
		for (int rm = PT_RN; rm <= PT_RP; rm++) {
			const char *name = pt_rounding_name((enum pt_rounding)rm);
			add_op(s, t, (enum op)op, name, (enum pt_rounding)rm, 0);
			if (t == PT_F64)
				continue;
			add_op(s, t, (enum op)op, name, (enum pt_rounding)rm, PT_FTZ);
			if (op > FMA)
				continue;
			add_op(s, t, (enum op)op, name, (enum pt_rounding)rm, PT_SAT);
			add_op(s, t, (enum op)op, name, (enum pt_rounding)rm, PT_FTZ | PT_SAT);
		}
		if (op < FMA)
			add_op(s, t, (enum op)op, "", PT_RN, 0);
	}
}

void pt_group_float(struct pt_suite *s)
{
	static const enum pt_type both[] = { PT_F32, PT_F64 };
	for (int i = 0; i < 2; i++) {
		enum pt_type t = both[i];
		add_rounded(s, t);
		add_sign(s, t, 0);
		add_minmax(s, t, 0);
		row(s, ref_copysign, t, 2, "copysign", "", 0)->strict_nan = true;
		const char *n = pt_type_name(t);
		char spec[32];
		snprintf(spec, sizeof spec, "pred:%s", n);
		for (int k = 0; k < 6; k++)
			pt_row_add(s, ref_testp, spec, "testp.%s.%s", testp_names[k], n)->arg[0] =
				k;
	}
	/* mad with a rounding modifier is the same as fma */
	for (int rm = PT_RN; rm <= PT_RP; rm++) {
		for (int i = 0; i < 2; i++) {
			struct pt_row *r = row(s, ref_arithmetic, both[i], 3, "mad",
				pt_rounding_name((enum pt_rounding)rm), 0);
			r->arg[0] = FMA;
			r->arg[1] = rm;
		}
	}
	add_sign(s, PT_F32, PT_FTZ);
	static const int modifiers[] = { PT_FTZ, PT_NAN_WINS, PT_XORSIGN, PT_FTZ | PT_NAN_WINS,
		PT_FTZ | PT_XORSIGN, PT_NAN_WINS | PT_XORSIGN, PT_FTZ | PT_NAN_WINS | PT_XORSIGN };
	for (size_t i = 0; i < sizeof modifiers / sizeof modifiers[0]; i++)
		add_minmax(s, PT_F32, modifiers[i]);
}

static void add_half(struct pt_suite *s, enum pt_type t)
{
	bool f16 = t == PT_F16 || t == PT_F16X2;
	for (int op = ADD; op <= FMA; op++) {
		add_op(s, t, (enum op)op, ".rn", PT_RN, 0);
		if (op < FMA)
			add_op(s, t, (enum op)op, "", PT_RN, 0);
		if (!f16)
			continue;
		add_op(s, t, (enum op)op, ".rn", PT_RN, PT_FTZ);
		add_op(s, t, (enum op)op, ".rn", PT_RN, PT_SAT);
		add_op(s, t, (enum op)op, ".rn", PT_RN, PT_FTZ | PT_SAT);
	}
	add_op(s, t, FMA, ".rn", PT_RN, PT_RELU);
	if (f16)
		add_op(s, t, FMA, ".rn", PT_RN, PT_FTZ | PT_RELU);
	add_sign(s, t, 0);
	if (f16)
		add_sign(s, t, PT_FTZ);
	static const int modifiers[] = { 0, PT_NAN_WINS, PT_XORSIGN, PT_NAN_WINS | PT_XORSIGN };
	for (size_t i = 0; i < sizeof modifiers / sizeof modifiers[0]; i++) {
		add_minmax(s, t, modifiers[i]);
		if (f16)
			add_minmax(s, t, modifiers[i] | PT_FTZ);
	}
}

void pt_group_half(struct pt_suite *s)
{
	static const enum pt_type types[] = { PT_F16, PT_F16X2, PT_BF16, PT_BF16X2 };
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		add_half(s, types[i]);
	pt_half_functions(s);
}
