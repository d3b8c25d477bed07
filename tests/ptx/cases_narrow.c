/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cvt to and from pairs of floats of 4 and 6 bits and powers of two. The references search the
 * values of a format, which are computed from their definition.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"
#include "tests/ptx/softfloat.h"

#define N 4096u

struct format {
	const char *name;
	unsigned exponent, fraction; /* bits; no fraction and no sign: a power of two */
	int bias;
};

static const struct format formats[] = {
	{ "e2m1x2", 2, 1, 1 },
	{ "e2m3x2", 2, 3, 1 },
	{ "e3m2x2", 3, 2, 3 },
	{ "ue8m0x2", 8, 0, 127 },
};

/* arg: format, direction, relu, satfinite, up, source of 16 bits */
enum { FORMAT, FROM, RELU, FINITE, UP, HALF };

/* The value of a code without its sign. */
static double value_of(const struct format *f, unsigned code)
{
	unsigned e = code >> f->fraction, m = code & ((1u << f->fraction) - 1);
	double fraction = (double)m / (1 << f->fraction);
	return f->fraction && !e ? ldexp(fraction, 1 - f->bias)
				 : ldexp(1 + fraction, (int)e - f->bias);
}

/* The nearest code; of two, the even one. */
static unsigned nearest(const struct format *f, float x, bool relu)
{
	unsigned bits = f->exponent + f->fraction, best = 0;
	bool neg = signbit(x);
	double a = fmin(fabs((double)x), 64), distance = INFINITY; /* above all values */
	if (isnan(x))
		return (1u << bits) - 1;
	if (relu && neg)
		return 0;
	for (unsigned code = 0; code < 1u << bits; code++) {
		double d = fabs(value_of(f, code) - a);
		if (d < distance || (d == distance && !(code & 1))) {
			best = code;
			distance = d;
		}
	}
	return best | (unsigned)neg << bits;
}

static unsigned power(float x, bool up, bool finite)
{
	const struct format *f = &formats[3];
	double a = fabs((double)x);
	unsigned code = 0;
	if (isnan(x))
		return 255;
	while (code < 255 && value_of(f, code) < a)
		code++;
	if (!up && code && value_of(f, code) > a)
		code--;
	if (isinf(x))
		code = 255;
	return finite && code == 255 ? 254 : code;
}

static uint32_t half_bits(const struct format *f, unsigned code, bool relu)
{
	unsigned bits = f->exponent + f->fraction, magnitude = code & ((1u << bits) - 1);
	bool neg = code >> bits & 1;
	if (!f->fraction)
		return code == 255 ? 0x7fff : code ? code << 7 : 0x40;
	if (relu && neg)
		return 0;
	/* all values are multiples of 1/16 */
	struct pt_num v = pt_num_from_int(neg, (uint64_t)(value_of(f, magnitude) * 16));
	if (v.kind == PT_FINITE)
		v.exp -= 4;
	return (uint32_t)pt_num_pack(&pt_f16, v, PT_RN, false, NULL) | (uint32_t)neg << 15;
}

static float number(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, 4);
	return x;
}

static uint32_t want_of(const struct pt_case *c, const uint32_t *in)
{
	const struct format *f = &formats[c->arg[FORMAT]];
	unsigned shift = f->exponent + f->fraction == 3 ? 4 : 8, mask = (1u << shift) - 1;
	uint32_t part[2];
	if (c->arg[FROM])
		return half_bits(f, in[0] >> shift & mask, c->arg[RELU]) << 16 |
			half_bits(f, in[0] & mask, c->arg[RELU]);
	for (unsigned i = 0; i < 2; i++) {
		float x = number(!c->arg[HALF] ? in[i] : i ? in[0] << 16 : in[0] & 0xffff0000);
		part[i] = f->fraction ? nearest(f, x, c->arg[RELU])
				      : power(x, c->arg[UP], c->arg[FINITE]);
	}
	return part[0] << shift | part[1];
}

static bool run_narrow(struct pt_run *run)
{
	static uint32_t in[2 * N], want[N], got[N];
	static const uint32_t special[] = { 0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
		0xffffffff, 1, 0x00400000, 0x00400001, 0x003fffff, 0x7f000000, 0x7f000001,
		0x7f7fffff, 0xff7fffff };
	bool codes = run->c->arg[FROM];
	for (unsigned i = 0; i < 2 * N; i++) {
		/* multiples of 1/64 up to 32, exact, a little more, or a little less */
		float x = ((float)pt_rng_below(&run->rng, 4097) - 2048) / 64;
		uint32_t bits;
		memcpy(&bits, &x, 4);
		bits += pt_rng_below(&run->rng, 3) - 1;
		in[i] = codes || pt_rng_below(&run->rng, 4) == 0 ? (uint32_t)pt_rng_next(&run->rng)
								 : bits;
		if (i < sizeof special / 4)
			in[i] = special[i];
		/* of six bits the upper two are 0 */
		if (codes && formats[run->c->arg[FORMAT]].exponent < 8 && run->c->arg[FORMAT] != 0)
			in[i] &= 0x3f3f;
	}
	for (unsigned i = 0; i < N; i++)
		want[i] = want_of(run->c, in + 2 * i);
	CUdeviceptr a = pt_run_put(run, in, sizeof in), b = pt_run_put(run, NULL, sizeof got);
	pt_run_line(run, "narrow", N / 128, 128, a, b, 0, 0);
	pt_run_get(run, b, got, sizeof got);
	return pt_run_same32(run, "pair", got, want, N);
}

/* The registers are: %r1 and %r2 the operands, also %f1, %f2, %h1; %r3 the result. */
static void add(struct pt_suite *s, const char *op, const int *args)
{
	bool bytes = args[FORMAT] == 0;
	struct pt_text t = { 0 };
	pt_text_add(&t, "%s", PT_ENTRY("narrow") "{\n" PT_PROLOGUE);
	pt_text_add(&t,
		"	.reg .b8 %%c, %%z;\n	mad.wide.u32 %%p0, %%i, 8, %%p0;\n"
		"	mad.wide.u32 %%p1, %%i, 4, %%p1;\n"
		"	ld.global.v2.u32 {%%r1, %%r2}, [%%p0];\n"
		"	mov.b32 %%f1, %%r1;\n	mov.b32 %%f2, %%r2;\n	cvt.u16.u32 %%h1, %%r1;\n");
	if (args[FROM] && bytes)
		pt_text_add(&t, "	mov.b16 {%%c, %%z}, %%h1;\n");
	pt_text_add(&t, "	%s %s;\n", op,
		args[FROM]           ? (bytes ? "%r3, %c" : "%r3, %h1")
			: args[HALF] ? "%h1, %r1"
			: bytes      ? "%c, %f1, %f2"
				     : "%h1, %f1, %f2");
	if (!args[FROM] && bytes)
		pt_text_add(&t, "	mov.b16 %%h1, {%%c, 0};\n");
	if (!args[FROM])
		pt_text_add(&t, "	cvt.u32.u16 %%r3, %%h1;\n");
	pt_text_add(&t, "	st.global.u32 [%%p1], %%r3;\n	ret;\n}\n");
	struct pt_case *c = pt_case_add(s, run_narrow, op, t.p);
	c->target = "sm_120a";
	memcpy(c->arg, args, 6 * sizeof *args);
	pt_text_free(&t);
}

static void add_powers(struct pt_suite *s)
{
	for (int i = 0; i < 8; i++) {
		int args[6] = {
			[FORMAT] = 3, [FINITE] = i & 1, [UP] = i >> 1 & 1, [HALF] = i >> 2
		};
		char *op = pt_format("cvt.%s%s.ue8m0x2.%s", args[UP] ? "rp" : "rz",
			args[FINITE] ? ".satfinite" : "", args[HALF] ? "bf16x2" : "f32");
		add(s, op, args);
		free(op);
	}
	add(s, "cvt.rn.bf16x2.ue8m0x2", (const int[6]){ [FORMAT] = 3, [FROM] = 1 });
}

void pt_narrow_cases(struct pt_suite *s)
{
	for (int f = 0; f < 3; f++) {
		for (int relu = 0; relu < 2; relu++) {
			int args[6] = { [FORMAT] = f, [RELU] = relu };
			char *op = pt_format(
				"cvt.rn.satfinite%s.%s.f32", relu ? ".relu" : "", formats[f].name);
			add(s, op, args);
			free(op);
			op = pt_format("cvt.rn%s.f16x2.%s", relu ? ".relu" : "", formats[f].name);
			args[FROM] = 1;
			add(s, op, args);
			free(op);
		}
	}
	add_powers(s);
}
