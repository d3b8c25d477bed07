/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Compares the reference arithmetic with the host's. With a wrong reference, the tests of a correct
 * device would fail.
 */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/ptx/operand.h"
#include "tests/ptx/softfloat.h"

enum { OP_ADD, OP_MUL, OP_DIV, OP_SQRT, OP_FMA, OP_COUNT };

static double as_double(uint64_t u)
{
	double d;
	memcpy(&d, &u, sizeof d);
	return d;
}

static float as_float(uint64_t u)
{
	uint32_t w = (uint32_t)u;
	float f;
	memcpy(&f, &w, sizeof f);
	return f;
}

/* volatile: the compiler must not compute before the rounding mode is set */
static uint64_t machine64(int op, uint64_t a, uint64_t b, uint64_t c)
{
	volatile double x = as_double(a), y = as_double(b), z = as_double(c), r = 0;
	switch (op) {
	case OP_ADD:
		r = x + y;
		break;
	case OP_MUL:
		r = x * y;
		break;
	case OP_DIV:
		r = x / y;
		break;
	case OP_SQRT:
		r = sqrt(x);
		break;
	default:
		r = fma(x, y, z);
		break;
	}
	uint64_t u;
	double d = r;
	memcpy(&u, &d, sizeof u);
	return u;
}

static uint64_t machine32(int op, uint64_t a, uint64_t b, uint64_t c)
{
	volatile float x = as_float(a), y = as_float(b), z = as_float(c), r = 0;
	switch (op) {
	case OP_ADD:
		r = x + y;
		break;
	case OP_MUL:
		r = x * y;
		break;
	case OP_DIV:
		r = x / y;
		break;
	case OP_SQRT:
		r = sqrtf(x);
		break;
	default:
		r = fmaf(x, y, z);
		break;
	}
	uint32_t u;
	float f = r;
	memcpy(&u, &f, sizeof u);
	return u;
}

static uint64_t ours(
	const struct pt_float_format *f, int op, const uint64_t *in, enum pt_rounding rm)
{
	struct pt_num a = pt_num_unpack(f, in[0]), b = pt_num_unpack(f, in[1]),
		      c = pt_num_unpack(f, in[2]), r;
	switch (op) {
	case OP_ADD:
		r = pt_num_add(a, b, rm);
		break;
	case OP_MUL:
		r = pt_num_mul(a, b);
		break;
	case OP_DIV:
		r = pt_num_div(a, b);
		break;
	case OP_SQRT:
		r = pt_num_sqrt(a);
		break;
	default:
		r = pt_num_add(pt_num_mul(a, b), c, rm);
		break;
	}
	return pt_num_pack(f, r, rm, false, NULL);
}

unsigned pt_num_selftest(uint64_t seed, unsigned rounds)
{
	static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };
	struct pt_rng rng = { seed };
	unsigned differences = 0;
	for (unsigned i = 0; i < rounds; i++) {
		bool wide = pt_rng_next(&rng) & 1;
		enum pt_type type = wide ? PT_F64 : PT_F32;
		const struct pt_float_format *f = wide ? &pt_f64 : &pt_f32;
		int op = (int)(pt_rng_next(&rng) % OP_COUNT);
		unsigned m = (unsigned)(pt_rng_next(&rng) % 4);
		uint64_t in[3];
		for (unsigned k = 0; k < 3; k++)
			in[k] = pt_value(&rng, type, PT_ANY, k ? in[k - 1] : 0);
		uint64_t got = ours(f, op, in, (enum pt_rounding)m);
		fesetround(modes[m]);
		uint64_t want = wide ? machine64(op, in[0], in[1], in[2])
				     : machine32(op, in[0], in[1], in[2]);
		fesetround(FE_TONEAREST);
		bool nan = pt_num_unpack(f, want).kind == PT_NAN;
		if (nan ? pt_num_unpack(f, got).kind == PT_NAN : got == want)
			continue;
		if (++differences < 5)
			printf("reference differs: op %d mode %u %s %llx %llx %llx: %llx, machine "
			       "%llx\n",
				op, m, wide ? "f64" : "f32", (unsigned long long)in[0],
				(unsigned long long)in[1], (unsigned long long)in[2],
				(unsigned long long)got, (unsigned long long)want);
	}
	return differences;
}
