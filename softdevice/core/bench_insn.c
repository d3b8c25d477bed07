/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures what one instruction costs in the interpreter: nanoseconds of processor time per warp
 * instruction (32 lanes). One kernel per instruction repeats it 16 times in a loop; the cost of the
 * empty loop is subtracted. The figure is the median of the rounds.
 *
 *   obd-bench-insn [-m] [WORD]
 *
 * WORD: only instructions whose text contains it. -m: lane 0 waits at a barrier meanwhile, so that
 * the handlers with a lane mask run.
 */
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "softdevice/core/bench_env.h"

#define REPEAT 16u
#define LOOPS  400u
#define BLOCKS 8u
#define ROUNDS 9u

/* Operands: %f f32, %d f64, %r 32 bits, %q 64 bits, %h 16 bits. Number 0 is the source. */
static const char *const instructions[] = {
	"mov.b32 %r1, %r0",
	"add.rn.f32 %f1, %f0, %f0",
	"fma.rn.f32 %f1, %f0, %f0, %f0",
	"fma.rm.f32 %f1, %f0, %f0, %f0",
	"add.rn.f64 %d1, %d0, %d0",
	/* f16, bf16 */
	"add.rn.f16x2 %r1, %r0, %r0",
	"sub.rn.f16x2 %r1, %r0, %r0",
	"mul.rn.f16x2 %r1, %r0, %r0",
	"fma.rn.f16x2 %r1, %r0, %r0, %r0",
	"fma.rn.ftz.f16x2 %r1, %r0, %r0, %r0",
	"fma.rn.ftz.sat.f16x2 %r1, %r0, %r0, %r0",
	"fma.rn.relu.f16x2 %r1, %r0, %r0, %r0",
	"min.f16x2 %r1, %r0, %r0",
	"max.NaN.f16x2 %r1, %r0, %r0",
	"neg.f16x2 %r1, %r0",
	"ex2.approx.f16x2 %r1, %r0",
	"tanh.approx.f16x2 %r1, %r0",
	"add.rn.f16 %h1, %h0, %h0",
	"mul.rn.f16 %h1, %h0, %h0",
	"fma.rn.f16 %h1, %h0, %h0, %h0",
	"add.rn.bf16x2 %r1, %r0, %r0",
	"mul.rn.bf16x2 %r1, %r0, %r0",
	"fma.rn.bf16x2 %r1, %r0, %r0, %r0",
	"fma.rn.bf16 %h1, %h0, %h0, %h0",
	"max.bf16x2 %r1, %r0, %r0",
	"ex2.approx.ftz.bf16x2 %r1, %r0",
	"tanh.approx.bf16x2 %r1, %r0",
	/* conversions */
	"cvt.sat.f32.f32 %f1, %f0",
	"cvt.rni.f32.f32 %f1, %f0",
	"cvt.rn.f32.s32 %f1, %r0",
	"cvt.rn.f32.u32 %f1, %r0",
	"cvt.rz.f32.u32 %f1, %r0",
	"cvt.rn.f32.u16 %f1, %h0",
	"cvt.rn.f32.s8 %f1, %r0",
	"cvt.rn.f32.u8 %f1, %r0",
	"cvt.rn.f32.s64 %f1, %q0",
	"cvt.rn.f32.u64 %f1, %q0",
	"cvt.rn.f64.s32 %d1, %r0",
	"cvt.rn.f64.s64 %d1, %q0",
	"cvt.rn.f64.u64 %d1, %q0",
	"cvt.f64.f32 %d1, %f0",
	"cvt.rn.f32.f64 %f1, %d0",
	"cvt.rm.f32.f64 %f1, %d0",
	"cvt.rzi.s32.f32 %r1, %f0",
	"cvt.rzi.u32.f32 %r1, %f0",
	"cvt.rni.s32.f32 %r1, %f0",
	"cvt.rmi.s32.f32 %r1, %f0",
	"cvt.rpi.ftz.s32.f32 %r1, %f0",
	"cvt.rzi.u16.f32 %h1, %f0",
	"cvt.rni.s8.f32 %r1, %f0",
	"cvt.rni.sat.u8.f32 %r1, %f0",
	"cvt.rzi.s64.f32 %q1, %f0",
	"cvt.rzi.u64.f32 %q1, %f0",
	"cvt.rzi.s32.f64 %r1, %d0",
	"cvt.rzi.u32.f64 %r1, %d0",
	"cvt.rmi.s32.f64 %r1, %d0",
	"cvt.rzi.s64.f64 %q1, %d0",
	"cvt.rzi.u64.f64 %q1, %d0",
	"cvt.f32.f16 %f1, %h0",
	"cvt.f64.f16 %d1, %h0",
	"cvt.rn.f16.f32 %h1, %f0",
	"cvt.rz.f16.f32 %h1, %f0",
	"cvt.rn.relu.f16.f32 %h1, %f0",
	"cvt.rn.sat.f16.f32 %h1, %f0",
	"cvt.rn.f16.f64 %h1, %d0",
	"cvt.rn.f16.s32 %h1, %r0",
	"cvt.rn.f16.u16 %h1, %h0",
	"cvt.rzi.s32.f16 %r1, %h0",
	"cvt.rni.f16.f16 %h1, %h0",
	"cvt.f32.bf16 %f1, %h0",
	"cvt.rn.bf16.f32 %h1, %f0",
	"cvt.rz.bf16.f32 %h1, %f0",
	"cvt.rn.f16x2.f32 %r1, %f0, %f0",
	"cvt.rn.bf16x2.f32 %r1, %f0, %f0",
	"cvt.rna.tf32.f32 %r1, %f0",
	"cvt.rn.satfinite.e4m3x2.f32 %h1, %f0, %f0",
	"cvt.rn.f16x2.e4m3x2 %r1, %h0",
	"cvt.u16.u32 %h1, %r0",
	"cvt.s64.s32 %q1, %r0",
	"cvt.sat.u8.s32 %r1, %r0",
	"cvt.sat.s16.s32 %h1, %r0",
	/* functions */
	"ex2.approx.ftz.f32 %f1, %f0",
	"ex2.approx.f32 %f1, %f0",
	"lg2.approx.ftz.f32 %f1, %f0",
	"lg2.approx.f32 %f1, %f0",
	"sin.approx.f32 %f1, %f0",
	"cos.approx.f32 %f1, %f0",
	"tanh.approx.f32 %f1, %f0",
	"rsqrt.approx.f32 %f1, %f0",
	"rsqrt.approx.f64 %d1, %d0",
	"rcp.approx.f32 %f1, %f0",
	"rcp.approx.ftz.f64 %d1, %d0",
	"sqrt.approx.f32 %f1, %f0",
	"sqrt.rn.f32 %f1, %f0",
	"sqrt.rn.f64 %d1, %d0",
	"div.approx.f32 %f1, %f0, %f0",
	"div.full.f32 %f1, %f0, %f0",
	"div.rn.f32 %f1, %f0, %f0",
	"div.rn.f64 %d1, %d0, %d0",
	"min.f32 %f1, %f0, %f0",
	/* integer division */
	"div.u32 %r1, %r0, %r2",
	"div.s32 %r1, %r0, %r2",
	"rem.u32 %r1, %r0, %r2",
	"rem.s32 %r1, %r0, %r2",
	/* q0 is above 2^32, q3 below */
	"div.u64 %q1, %q3, %q2",
	"rem.s64 %q1, %q3, %q2",
	"div.u64 %q1, %q0, %q2",
	"div.s64 %q1, %q0, %q2",
	"rem.u64 %q1, %q0, %q2",
	"rem.s64 %q1, %q0, %q2",
	"div.u16 %h1, %h0, %h0",
	"mul.hi.u64 %q1, %q0, %q0",
	"mul.lo.u64 %q1, %q0, %q0",
};
#define COUNT (sizeof instructions / sizeof instructions[0])

/* The kernel of one instruction; NULL: the empty loop. guard: only in lanes 1 to 31. */
static size_t put_kernel(char *text, size_t size, const char *instruction, bool guard)
{
	int n = snprintf(text, size,
		".version 8.4\n.target sm_90\n.address_size 64\n"
		".visible .entry k(.param .u32 n) {\n"
		".reg .pred %%p, %%m; .reg .b32 %%i, %%t; .reg .f32 %%f<3>; .reg .f64 %%d<3>;\n"
		".reg .b32 %%r<3>; .reg .b64 %%q<4>; .reg .b16 %%h<3>;\n"
		"ld.param.u32 %%i, [n]; mov.u32 %%t, %%tid.x; setp.ne.u32 %%m, %%t, 0;\n"
		"cvt.rn.f32.s32 %%f0, %%t; fma.rn.f32 %%f0, %%f0, 0f3c23d70a, 0f3f800000;\n"
		"cvt.f64.f32 %%d0, %%f0; add.u32 %%r0, %%t, 0x3c003a00; cvt.u16.u32 %%h0, %%r0;\n"
		"mul.wide.u32 %%q0, %%r0, 0x12345; add.u32 %%r2, %%t, 7; cvt.u64.u32 %%q2, %%r2;\n"
		"cvt.u64.u32 %%q3, %%r0;\n"
		"%s\nL:\n",
		guard ? "@!%m bra E;" : "");

	for (unsigned i = 0; instruction && i < REPEAT; i++)
		n += snprintf(text + n, size - (size_t)n, "%s;\n", instruction);
	n += snprintf(text + n, size - (size_t)n,
		"sub.u32 %%i, %%i, 1; setp.ne.u32 %%p, %%i, 0; @%%p bra L;\nE: bar.sync 0; ret; "
		"}\n");
	return (size_t)n;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns seconds of processor time per loop of a warp, or a negative number. */
static double measure(
	struct obd_env *env, struct obd_pool *pool, const char *instruction, bool guard)
{
	static char text[1 << 14];
	char log[512];
	struct obd_program *p;
	struct obd_fault fault;
	double t[ROUNDS];
	uint32_t n = LOOPS;
	size_t used = bench_window_used;

	if (obd_program_load(text, put_kernel(text, sizeof(text), instruction, guard), env, &p, log,
		    sizeof(log))) {
		printf("%s\n", log);
		return -1;
	}
	struct obd_grid g = { .program = p,
		.kernel = obd_program_kernel(p, "k"),
		.grid = { BLOCKS, 1, 1 },
		.block = { 32, 1, 1 },
		.cluster = { 1, 1, 1 },
		.params = &n };

	for (unsigned i = 0; i < ROUNDS; i++) {
		t[i] = bench_now(CLOCK_PROCESS_CPUTIME_ID);
		if (obd_grid_run(pool, &g, &fault)) {
			printf("%s\n", fault.text);
			t[0] = -1;
			break;
		}
		t[i] = (bench_now(CLOCK_PROCESS_CPUTIME_ID) - t[i]) / LOOPS / BLOCKS;
	}
	if (t[0] >= 0)
		qsort(t, ROUNDS, sizeof(t[0]), ascending);
	obd_program_free(p);
	bench_window_used = used;
	return t[0] < 0 ? -1 : t[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	bool guard = argc > 1 && strcmp(argv[1], "-m") == 0;
	const char *word = argc > 1 + guard ? argv[1 + guard] : "";
	struct obd_env env;
	struct obd_pool *pool = obd_pool_new(1);

	/* they would drop instructions whose result is not used, or the same each time */
	ob_opt_set(OB_OPT_INVARIANT, false);
	ob_opt_set(OB_OPT_FUSE, false);
	obd_native_on = false; /* the page is about the interpreter */
	if (!bench_env_init(&env) || !pool)
		return 1;
	double empty = measure(&env, pool, NULL, guard);

	printf("%s, nanoseconds per warp instruction\n", obd_core_isa());
	for (size_t i = 0; i < COUNT; i++) {
		if (!strstr(instructions[i], word))
			continue;
		double s = measure(&env, pool, instructions[i], guard);

		if (s < 0)
			return 1;
		printf("%7.1f  %s\n", (s - empty) / REPEAT * 1e9, instructions[i]);
		fflush(stdout);
	}
	obd_pool_free(pool);
	return 0;
}
