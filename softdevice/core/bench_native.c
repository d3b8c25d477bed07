/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures how long machine code (engine/native.h) of a kernel takes to make: 1,000 lines of PTX of
 * eight common kinds, with a branch in every eighth. Prints the medians of the time to load the PTX
 * and of the first launch, which makes the code, less that of the second.
 */
#include <stdio.h>
#include <stdlib.h>

#include "softdevice/core/bench_env.h"

#define LINES  1000
#define ROUNDS 9

static char text[1 << 17];

/* A register number from 1 to 39. */
static unsigned pick(unsigned *state)
{
	*state = *state * 1103515245u + 12345u;
	return 1 + (*state >> 16) % 39;
}

static size_t put_line(size_t n, unsigned i, unsigned *state)
{
	unsigned a = pick(state), b = pick(state), c = pick(state);
	char *to = text + n;
	size_t room = sizeof(text) - n;

	switch (i % 8) {
	case 0:
		return (size_t)snprintf(
			to, room, "fma.rn.f32 %%f%u, %%f%u, %%f%u, %%f%u;\n", a, b, c, a);
	case 1:
		return (size_t)snprintf(to, room, "ld.global.f32 %%f%u, [%%d2+%u];\n", a, 4 * b);
	case 2:
		return (size_t)snprintf(to, room, "st.global.f32 [%%d2+%u], %%f%u;\n", 4 * b, a);
	case 3:
		return (size_t)snprintf(to, room, "add.u32 %%r%u, %%r%u, %%r0;\n", a, b);
	case 4:
		return (size_t)snprintf(to, room,
			"setp.lt.u32 %%p1, %%r%u, %%r%u; @%%p1 bra L%u; L%u:\n", a, b, i, i);
	case 5:
		return (size_t)snprintf(to, room, "mul.lo.u32 %%r%u, %%r%u, %%r%u;\n", a, b, c);
	case 6:
		return (size_t)snprintf(to, room, "ex2.approx.f32 %%f%u, %%f%u;\n", a, b);
	default:
		return (size_t)snprintf(to, room, "add.f32 %%f%u, %%f%u, %%f%u;\n", a, b, c);
	}
}

static size_t put_kernel(void)
{
	unsigned state = 1;
	size_t n = (size_t)snprintf(text, sizeof(text),
		".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 "
		"p)\n{\n"
		".reg .b32 %%r<40>; .reg .b64 %%d<3>; .reg .f32 %%f<40>; .reg .pred %%p<2>;\n"
		"ld.param.u64 %%d0, [p]; mov.u32 %%r0, %%tid.x; mul.wide.u32 %%d1, %%r0, 4;\n"
		"add.u64 %%d2, %%d0, %%d1;\n");

	for (unsigned i = 1; i < 40; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"mov.u32 %%r%u, %u; mov.f32 %%f%u, 0f3f800000;\n", i, i, i);
	for (unsigned i = 0; i < LINES; i++)
		n += put_line(n, i, &state);
	return n + (size_t)snprintf(text + n, sizeof(text) - n, "ret;\n}\n");
}

static int less(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	double load[ROUNDS], make[ROUNDS];
	size_t size = put_kernel();
	struct obd_pool *pool = obd_pool_new(1);
	struct obd_env env;
	char log[512];

	if (!pool || !bench_env_init(&env))
		return 1;
	for (int k = 0; k < ROUNDS; k++) {
		struct obd_program *p;
		struct obd_fault fault;
		double t[4];

		t[0] = bench_now(CLOCK_PROCESS_CPUTIME_ID);
		if (obd_program_load(text, size, &env, &p, log, sizeof(log))) {
			printf("%s", log);
			return 1;
		}
		uint64_t out = (uintptr_t)bench_alloc(NULL, 4096, 256);
		struct obd_grid grid = { .program = p,
			.kernel = obd_program_kernel(p, "k"),
			.grid = { 1, 1, 1 },
			.block = { 32, 1, 1 },
			.params = &out };

		for (int run = 1; run < 4; run++) {
			t[run] = bench_now(CLOCK_PROCESS_CPUTIME_ID);
			if (run < 3 && obd_grid_run(pool, &grid, &fault))
				return 1;
		}
		load[k] = (t[1] - t[0]) * 1e3;
		make[k] = ((t[2] - t[1]) - (t[3] - t[2])) * 1e3;
		obd_program_free(p);
	}
	qsort(load, ROUNDS, sizeof(*load), less);
	qsort(make, ROUNDS, sizeof(*make), less);
	printf("%s, %u lines: load %.2f ms, make the code %.2f ms\n", obd_core_isa(), LINES,
		load[ROUNDS / 2], make[ROUNDS / 2]);
	obd_pool_free(pool);
	return 0;
}
