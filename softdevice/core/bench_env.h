/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the benchmarks of the interpreter share: an obd_env over one mapping, and clocks. Included
 * by one file of each benchmark program.
 */
#ifndef OBD_CORE_BENCH_ENV_H
#define OBD_CORE_BENCH_ENV_H

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "softdevice/core/program.h"

#define BENCH_WINDOW ((size_t)1 << 30)

static char *bench_window;
static size_t bench_window_used;

static void *bench_alloc(void *user, size_t size, size_t align)
{
	size_t at = (__atomic_fetch_add(&bench_window_used, size + align + 4096, __ATOMIC_RELAXED) +
			    align - 1) &
		~(align - 1);

	(void)user;
	return at + size <= BENCH_WINDOW ? bench_window + at : NULL;
}

static void bench_free(void *user, void *p)
{
	(void)user;
	(void)p;
}

static void bench_free_scratch(void *user, void *p, size_t size)
{
	(void)user;
	(void)p;
	(void)size;
}

static void *bench_heap(void *user, size_t size)
{
	return bench_alloc(user, size, 16);
}

static void bench_print(void *user, const char *s, size_t size)
{
	(void)user;
	fwrite(s, 1, size, stdout);
}

/* Maps the window. Returns false if that fails. */
static inline bool bench_env_init(struct obd_env *ret_env)
{
	bench_window = mmap(NULL, BENCH_WINDOW, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*ret_env = (struct obd_env){ .alloc = bench_alloc,
		.free = bench_free,
		.window_base = (uintptr_t)bench_window,
		.window_size = BENCH_WINDOW,
		.scratch_alloc = bench_alloc,
		.scratch_free = bench_free_scratch,
		.heap_alloc = bench_heap,
		.heap_free = bench_free,
		.print = bench_print,
		.compute_capability = 90,
		.sm_count = 4 };
	return bench_window != MAP_FAILED;
}

static inline double bench_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
