/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Approximate functions: special operands must give the results of the manual's tables, the others
 * a result within its error bound. arg: function, modifiers.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/floats.h"
#include "tests/ptx/groups.h"

enum fn { RCP, SQRT, RSQRT, SIN, COS, LG2, EX2, TANH, DIV };

static double compute(enum fn f, double x, double y)
{
	switch (f) {
	case RCP:
		return 1 / x;
	case SQRT:
		return sqrt(x);
	case RSQRT:
		return x == 0 ? copysign(INFINITY, x) : 1 / sqrt(x);
	case SIN:
		return sin(x);
	case COS:
		return cos(x);
	case LG2:
		return x == 0 ? -INFINITY : log2(x);
	case EX2:
		return exp2(x);
	case TANH:
		return tanh(x);
	case DIV:
		return x / y;
	}
	return 0;
}

static enum pt_type element(enum pt_type t)
{
	return t == PT_F16X2 ? PT_F16 : t == PT_BF16X2 ? PT_BF16 : t;
}

static double operand(const struct pt_row *row, uint64_t bits)
{
	return pt_num_double(pt_float_read(element(row->in[0]), bits, row->arg[1]));
}

static void ref_approx(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	unsigned lanes = pt_type_lanes(row->in[0]), bits = pt_type_bits(element(row->in[0]));
	for (unsigned l = 0; l < lanes; l++) {
		double x = operand(row, (in[0] >> (l * bits)) & pt_mask(bits));
		double y = row->n_in > 1 ? operand(row, in[1]) : 0;
		want->real[l] = compute((enum fn)row->arg[0], x, y);
	}
}

/* div.approx: for 2^126 < |b| < 2^128 the result may be 0, or NaN when a is infinite. */
static void ref_div_approx(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	ref_approx(row, in, want);
	double b = fabs(operand(row, in[1]));
	want->open = b < 0x1p-126 ? b != 0 : b > 0x1p126 && b < INFINITY;
	/* the bound applies only if no step overflows or underflows */
	if (fabs(want->real[0]) < 0x1p-126 && want->real[0] != 0)
		want->open = true;
}

static struct pt_row *row(struct pt_suite *s, enum fn f, const char *types, const char *name,
	int modifiers, double rel, double absolute)
{
	struct pt_row *r =
		pt_row_add(s, f == DIV && strstr(name, "approx") ? ref_div_approx : ref_approx,
			types, "%s", name);
	r->arg[0] = (int)f;
	r->arg[1] = modifiers;
	r->rel = rel;
	r->abs = absolute;
	return r;
}

/*
 * Bounds: PTX ISA, floating-point instructions. One ulp of f32 is at most 2^-23 of the value. sin and
 * cos: the manual says 2^-20.5 = 0x1.6a0ap-21 within 2 pi. Measured on an H200, driver 580: cos of
 * 0xc09cbe5f gives 0x3e3d3738, an error of 0x1.7344p-21.
 */
static const struct {
	enum fn f;
	const char *name, *types;
	double rel, absolute;
} f32_functions[] = {
	{ RCP, "rcp.approx", "f32:f32", 0x1p-23, 0 },
	{ SQRT, "sqrt.approx", "f32:f32", 0x1.1p-22, 0 },
	{ RSQRT, "rsqrt.approx", "f32:f32", 0x1.2p-23, 0 },
	{ SIN, "sin.approx", "f32:f32/trig", 0, 0x1.8p-21 },
	{ COS, "cos.approx", "f32:f32/trig", 0, 0x1.8p-21 },
	{ LG2, "lg2.approx", "f32:f32", 0x1p-22, 0x1p-22 },
	{ EX2, "ex2.approx", "f32:f32", 0x1p-22, 0 },
};

static void add_f32(struct pt_suite *s)
{
	for (size_t i = 0; i < sizeof f32_functions / sizeof f32_functions[0]; i++) {
		for (int ftz = 0; ftz < 2; ftz++) {
			char name[64];
			snprintf(name, sizeof name, "%s%s.f32", f32_functions[i].name,
				ftz ? ".ftz" : "");
			/* adds the error of a flushed (2^-126) or subnormal (2^-149) result */
			double absolute = f32_functions[i].absolute + (ftz ? 0x1p-126 : 0x1p-149);
			row(s, f32_functions[i].f, f32_functions[i].types, name, ftz ? PT_FTZ : 0,
				f32_functions[i].rel, absolute);
		}
	}
	row(s, TANH, "f32:f32", "tanh.approx.f32", 0, 0x1p-11, 0x1p-149);
	row(s, DIV, "f32:f32,f32", "div.approx.f32", 0, 0x1p-22, 0x1p-149);
	row(s, DIV, "f32:f32,f32", "div.approx.ftz.f32", PT_FTZ, 0x1p-22, 0x1p-126);
	row(s, DIV, "f32:f32,f32", "div.full.f32", 0, 0x1p-22, 0x1p-148);
	row(s, DIV, "f32:f32,f32", "div.full.ftz.f32", PT_FTZ, 0x1p-22, 0x1p-126);
}

/*
 * Rows that test special forms of results again, without a tolerance: signed zeros and infinities.
 */
static void ref_special(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	double x = operand(row, in[0]), y = compute((enum fn)row->arg[0], x, 0);
	want->open =
		!(isinf(y) || y == 0 || y == 1 || isnan(y)) || !(isinf(x) || x == 0 || isnan(x));
	if (want->open)
		return;
	if (isnan(y)) {
		want->out[0] = 0x7fffffff;
		return;
	}
	float f = (float)y;
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	want->out[0] = bits;
}

static void add_special(struct pt_suite *s)
{
	static const struct {
		enum fn f;
		const char *op;
	} ops[] = { { RCP, "rcp.approx" }, { SQRT, "sqrt.approx" }, { RSQRT, "rsqrt.approx" },
		{ SIN, "sin.approx" }, { COS, "cos.approx" }, { LG2, "lg2.approx" },
		{ EX2, "ex2.approx" }, { TANH, "tanh.approx" } };
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
		for (int ftz = 0; ftz < (ops[i].f == TANH ? 1 : 2); ftz++) {
			char *opcode = pt_format("%s%s.f32", ops[i].op, ftz ? ".ftz" : "");
			struct pt_row *r = pt_row_add(
				s, ref_special, "f32:f32", "%s special operands", opcode);
			free(r->body);
			r->body = pt_format("%s %%d0, %%a;", opcode);
			r->arg[0] = (int)ops[i].f;
			r->arg[1] = ftz ? PT_FTZ : 0;
			free(opcode);
		}
	}
}

/*
 * The low word of rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 is zero; the high word is a coarse
 * approximation.
 */
static void ref_gross(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	(void)row;
	(void)in;
	want->out[0] = 0;
}

/*
 * Only the high word of the operand counts. Measured on an H200, driver 580: 0x7ff0000000000001, a
 * NaN whose high word is that of infinity, gives 0.
 */
static void ref_high_word(const struct pt_row *row, const uint64_t *in, struct pt_want *want)
{
	uint64_t high = in[0] & ~UINT64_C(0xffffffff);

	ref_approx(row, &high, want);
}

static void add_f64(struct pt_suite *s)
{
	struct pt_row *r = row(s, RCP, "f64:f64", "rcp.approx.ftz.f64", PT_FTZ, 0x1p-18, 0x1p-1022);
	r->ref = ref_high_word;
	r = row(s, RSQRT, "f64:f64", "rsqrt.approx.ftz.f64", PT_FTZ, 0x1p-18, 0);
	r->ref = ref_high_word;
	r = row(s, RSQRT, "f64:f64", "rsqrt.approx.f64", 0, 0x1p-18, 0);
	for (int i = 0; i < 2; i++) {
		const char *op = i ? "rsqrt" : "rcp";
		r = pt_row_add(s, ref_gross, "f64:f64", "%s.approx.ftz.f64 low word", op);
		free(r->body);
		r->body = pt_format("%s.approx.ftz.f64 %%d0, %%a;", op);
		r->care = 0xffffffff;
		r->strict_nan = true;
	}
}

void pt_half_functions(struct pt_suite *s)
{
	static const struct {
		enum fn f;
		const char *name, *type;
		int modifiers;
		double rel, absolute;
	} functions[] = {
		{ TANH, "tanh.approx.f16", "f16", 0, 0, 0x1.03p-11 },
		{ TANH, "tanh.approx.f16x2", "f16x2", 0, 0, 0x1.03p-11 },
		/* measured on an H200, driver 580: 0x3f3f gives 0x3f21, an error of 0x1.0005p-8 */
		{ TANH, "tanh.approx.bf16", "bf16", 0, 0, 0x1.01p-8 },
		{ TANH, "tanh.approx.bf16x2", "bf16x2", 0, 0, 0x1.01p-8 },
		{ EX2, "ex2.approx.f16", "f16", 0, 0x1.13p-10, 0x1p-24 },
		{ EX2, "ex2.approx.f16x2", "f16x2", 0, 0x1.13p-10, 0x1p-24 },
		{ EX2, "ex2.approx.ftz.bf16", "bf16", PT_FTZ, 0x1p-7, 0x1p-126 },
		{ EX2, "ex2.approx.ftz.bf16x2", "bf16x2", PT_FTZ, 0x1p-7, 0x1p-126 },
	};
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		char spec[32];
		snprintf(spec, sizeof spec, "%s:%s", functions[i].type, functions[i].type);
		row(s, functions[i].f, spec, functions[i].name, functions[i].modifiers,
			functions[i].rel, functions[i].absolute);
	}
}

void pt_group_approx(struct pt_suite *s)
{
	add_f32(s);
	add_special(s);
	add_f64(s);
	/* sin and cos of larger operands: the manual gives a bound within 100 pi */
	for (int i = 0; i < 2; i++) {
		const char *op = i ? "cos" : "sin";
		struct pt_row *r = pt_row_add(
			s, ref_approx, "f32:f32/trig_big", "%s.approx.f32 within 100 pi", op);
		free(r->body);
		r->body = pt_format("%s.approx.f32 %%d0, %%a;", op);
		r->arg[0] = i ? COS : SIN;
		r->abs = 0x1.4p-15;
	}
}
