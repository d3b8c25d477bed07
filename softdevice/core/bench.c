/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures the speed of the interpreter in lane instructions per second, with two kernels: a
 * 384-bit Montgomery product in carry chains, and a loop of fused multiply-adds. The program
 * generates the PTX itself, so no toolkit is needed. It prints one line per kernel and checks the
 * product against the same computation in C.
 *
 *   bench [THREADS [REPEATS]]
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/bench_env.h"

#define WORDS 12
static char text[1 << 17];
static size_t text_size;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	int n = vsnprintf(text + text_size, sizeof(text) - text_size, format, ap);

	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text) - text_size)
		abort();
	text_size += (size_t)n;
}

/* modulus of the base field of BLS12-381; the low word of -1/p */
static const uint32_t modulus[WORDS] = { 0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624,
	0x6730d2a0, 0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea };
#define INVERSE 0xfffcfffdu

/* t += x * f, then the carries into t[12] and t[13]; x and f are PTX operands */
static void put_row(const char *x, const char *f)
{
	char operand[24];

	for (int half = 0; half < 2; half++) {
		for (int j = 0; j < WORDS; j++) {
			if (x)
				snprintf(operand, sizeof(operand), "%s%d", x, j);
			else
				snprintf(operand, sizeof(operand), "%u", modulus[j]);
			put("mad%s.%s.cc.u32 %%t%d, %s, %s, %%t%d;\n", j ? "c" : "",
				half ? "hi" : "lo", j + half, operand, f, j + half);
		}
		put("addc%s.u32 %%t%d, %%t%d, 0;\n", half ? "" : ".cc", WORDS + half, WORDS + half);
		if (!half)
			put("addc.u32 %%t%d, %%t%d, 0;\n", WORDS + 1, WORDS + 1);
	}
}

static void put_kernels(void)
{
	put(".version 8.0\n.target sm_70\n.address_size 64\n"
	    ".visible .entry mont(.param .u64 data, .param .u32 n) {\n"
	    ".reg .pred %%p<3>; .reg .b32 %%a<12>; .reg .b32 %%b<12>; .reg .b32 %%t<14>; .reg .b32 "
	    "%%r<8>; .reg .b64 %%d<4>;\n"
	    "ld.param.u64 %%d0, [data]; ld.param.u32 %%r0, [n];\n"
	    "mov.u32 %%r1, %%ctaid.x; mov.u32 %%r2, %%ntid.x; mov.u32 %%r3, %%tid.x; mad.lo.u32 "
	    "%%r1, %%r1, %%r2, %%r3;\n"
	    "mul.wide.u32 %%d1, %%r1, 48; add.u64 %%d0, %%d0, %%d1;\n");
	for (int j = 0; j < WORDS; j++)
		put("ld.global.u32 %%a%d, [%%d0+%d]; mov.b32 %%b%d, %%a%d;\n", j, j * 4, j, j);
	put("LOOP:\n");
	for (int j = 0; j < WORDS + 2; j++)
		put("mov.u32 %%t%d, 0;\n", j);
	for (int i = 0; i < WORDS; i++) {
		char f[16];

		snprintf(f, sizeof(f), "%%b%d", i);
		put_row("%a", f);
		put("mul.lo.u32 %%r4, %%t0, %u;\n", INVERSE);
		put_row(NULL, "%r4");
		for (int j = 0; j < WORDS + 1; j++)
			put("mov.u32 %%t%d, %%t%d;\n", j, j + 1);
		put("mov.u32 %%t%d, 0;\n", WORDS + 1);
	}
	for (int j = 0; j < WORDS; j++)
		put("mov.u32 %%a%d, %%t%d;\n", j, j);
	put("sub.u32 %%r0, %%r0, 1; setp.ne.u32 %%p0, %%r0, 0; @%%p0 bra LOOP;\n");
	for (int j = 0; j < WORDS; j++)
		put("st.global.u32 [%%d0+%d], %%a%d;\n", j * 4, j);
	put("ret; }\n"
	    ".visible .entry fma(.param .u64 data, .param .u32 n) {\n"
	    ".reg .pred %%p<3>; .reg .f32 %%f<12>; .reg .b32 %%r<8>; .reg .b64 %%d<4>;\n"
	    "ld.param.u64 %%d0, [data]; ld.param.u32 %%r0, [n];\n"
	    "mov.u32 %%r3, %%tid.x; mul.wide.u32 %%d1, %%r3, 48; add.u64 %%d0, %%d0, %%d1; "
	    "cvt.rn.f32.u32 %%f0, %%r3; mov.f32 %%f1, 0f3f000000;\n"
	    "LOOP:\n");
	for (int j = 0; j < 16; j++)
		put("fma.rn.f32 %%f%d, %%f0, %%f1, %%f%d; add.f32 %%f0, %%f0, %%f1;\n", 2 + j % 8,
			2 + j % 8);
	put("sub.u32 %%r0, %%r0, 1; setp.ne.u32 %%p0, %%r0, 0; @%%p0 bra LOOP;\n");
	put("st.global.f32 [%%d0], %%f2; ret; }\n");
}

/* a = a * b / 2^384 mod p, not fully reduced, as the kernel computes it */
static void montgomery(uint32_t *a, const uint32_t *b)
{
	uint32_t t[WORDS + 2] = { 0 };

	for (int i = 0; i < WORDS; i++) {
		for (int pass = 0; pass < 2; pass++) {
			const uint32_t *x = pass ? modulus : a;
			uint32_t f = pass ? t[0] * INVERSE : b[i];
			uint64_t c = 0;

			for (int j = 0; j < WORDS; j++) {
				c += (uint64_t)x[j] * f + t[j];
				t[j] = (uint32_t)c;
				c >>= 32;
			}
			c += t[WORDS];
			t[WORDS] = (uint32_t)c;
			t[WORDS + 1] += (uint32_t)(c >> 32);
		}
		memmove(t, t + 1, (WORDS + 1) * sizeof(t[0]));
		t[WORDS + 1] = 0;
	}
	memcpy(a, t, WORDS * sizeof(t[0]));
}

/*
 * Processor cycles per second of processor time, measured with a chain of additions. On a shared
 * machine the result is much lower than the clock rate.
 */
static double cycles_per_second(void)
{
	double best = 0;

	for (int k = 0; k < 5; k++) {
		double start = bench_now(CLOCK_PROCESS_CPUTIME_ID);
		uint64_t x = 1;

#if defined(__x86_64__)
		for (long i = 0; i < 10000000; i++)
			__asm__ volatile("add $1, %0\n add $1, %0\n add $1, %0\n add $1, %0"
					 : "+r"(x));
#else
		for (volatile long i = 0; i < 40000000; i++)
			x++;
#endif
		double rate = 4e7 / (bench_now(CLOCK_PROCESS_CPUTIME_ID) - start);

		best = rate > best ? rate : best;
	}
	return best;
}

static bool run(struct obd_program *p, struct obd_pool *pool, const char *name, uint32_t *data,
	uint32_t n, uint32_t blocks)
{
	struct {
		uint32_t *data;
		uint32_t n;
	} params = { data, n };
	struct obd_grid g = { .program = p,
		.kernel = obd_program_kernel(p, name),
		.grid = { blocks, 1, 1 },
		.block = { 128, 1, 1 },
		.cluster = { 1, 1, 1 },
		.params = &params };
	struct obd_fault fault;
	uint64_t before = obd_core_lane_instructions();
	double start = bench_now(CLOCK_MONOTONIC), cpu = bench_now(CLOCK_PROCESS_CPUTIME_ID);

	if (obd_grid_run(pool, &g, &fault)) {
		printf("%s: %s\n", name, fault.text);
		return false;
	}
	double s = bench_now(CLOCK_MONOTONIC) - start,
	       lanes = (double)(obd_core_lane_instructions() - before);

	cpu = bench_now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%-5s %-8s threads %u: %.3f s, %.2f G lane-instructions/s, %.2f per second of "
	       "processor time, %.1f cycles per warp instruction\n",
		name, obd_core_isa(), obd_pool_threads(pool), s, lanes / s * 1e-9,
		lanes / cpu * 1e-9, cpu * cycles_per_second() / (lanes / 32));
	return true;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
	uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 200, blocks = 8 * threads;
	char log[512];
	struct obd_program *p;

	struct obd_env env;

	if (!bench_env_init(&env))
		return 1;
	struct obd_pool *pool = obd_pool_new(threads);

	put_kernels();
	if (!pool || obd_program_load(text, text_size, &env, &p, log, sizeof(log))) {
		printf("%s", log);
		return 1;
	}
	size_t count = (size_t)blocks * 128 * WORDS;
	uint32_t *data = bench_alloc(NULL, count * 4, 64), *check = malloc(count * 4);

	if (!data || !check)
		return 1;
	for (size_t i = 0; i < count; i++)
		check[i] = data[i] =
			i % WORDS == WORDS - 1 ? 0x0123456u : (uint32_t)(i * 2654435761u);
	bool ok = run(p, pool, "mont", data, n, blocks);

	for (size_t i = 0; ok && i < count; i += 97 * WORDS) {
		uint32_t b[WORDS];

		memcpy(b, check + i, sizeof(b));
		for (uint32_t k = 0; k < n; k++)
			montgomery(check + i, b);
		if (memcmp(check + i, data + i, sizeof(b)) != 0) {
			printf("mont: thread %zu is wrong\n", i / WORDS);
			ok = false;
		}
	}
	ok = ok && run(p, pool, "fma", data, n * 40, blocks);
	obd_program_free(p);
	obd_pool_free(pool);
	free(check);
	return !ok;
}
