/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A device of 64 MiB for tests of the interpreter. Memory is never freed for reuse; printed text is
 * kept.
 */
#ifndef TEST_SOFTCORE_DEVICE_H
#define TEST_SOFTCORE_DEVICE_H

#include <stdatomic.h>
#include <sys/mman.h>

#include "softdevice/core/program.h"
#include "tests/test.h"

#define WINDOW_BYTES ((size_t)256 << 20)
#define HEAD         ".version 8.0\n.target sm_70\n.address_size 64\n"

static char *window;
static _Atomic size_t window_used;
static char printed[4096];
static size_t printed_size;
static int live_blocks;
static char load_log[512];
static struct obd_fault fault;
static struct obd_pool *pool;

static void *device_take(void *user, size_t size, size_t align)
{
	size_t at = (atomic_fetch_add(&window_used, size + align) + align - 1) & ~(align - 1);

	(void)user;
	return at + size <= WINDOW_BYTES ? window + at : NULL;
}

static void *device_alloc(void *user, size_t size, size_t align)
{
	live_blocks++;
	return device_take(user, size, align);
}

static void device_free(void *user, void *p)
{
	(void)user;
	live_blocks -= p != NULL;
}

static void device_drop(void *user, void *p, size_t size)
{
	(void)user;
	(void)p;
	(void)size;
}

static void *device_heap(void *user, size_t size)
{
	return device_take(user, size, 16);
}

static void device_heap_free(void *user, void *p)
{
	(void)user;
	(void)p;
}

static void device_print(void *user, const char *text, size_t size)
{
	(void)user;
	if (printed_size + size < sizeof(printed)) {
		memcpy(printed + printed_size, text, size);
		printed_size += size;
	}
}

static struct obd_env device_env(void)
{
	if (!window) {
		window = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		CHECK(window != MAP_FAILED);
	}
	return (struct obd_env){ .alloc = device_alloc,
		.free = device_free,
		.window_base = (uintptr_t)window,
		.window_size = WINDOW_BYTES,
		.scratch_alloc = device_take,
		.scratch_free = device_drop,
		.heap_alloc = device_heap,
		.heap_free = device_heap_free,
		.print = device_print,
		.compute_capability = 90,
		.sm_count = 4 };
}

static inline CUresult device_load(const char *text, struct obd_program **ret)
{
	struct obd_env env = device_env();

	return obd_program_load(text, strlen(text), &env, ret, load_log, sizeof(load_log));
}

static inline struct obd_program *device_load_good(const char *text)
{
	struct obd_program *p = NULL;
	CUresult r = device_load(text, &p);

	if (r)
		fprintf(stderr, "%s", load_log);
	CHECK_INT(r, CUDA_SUCCESS);
	return p;
}

static inline CUresult device_run_shape(struct obd_program *p, const char *name, unsigned blocks,
	unsigned threads, const void *params, bool cooperative, _Atomic int *stop)
{
	struct obd_grid g = { .program = p,
		.kernel = obd_program_kernel(p, name),
		.grid = { blocks, 1, 1 },
		.block = { threads, 1, 1 },
		.cluster = { 1, 1, 1 },
		.cooperative = cooperative,
		.params = params,
		.abort = stop };

	CHECK(g.kernel != NULL);
	if (!pool)
		pool = obd_pool_new(2);
	CHECK(pool != NULL);
	memset(&fault, 0, sizeof(fault));
	return obd_grid_run(pool, &g, &fault);
}

static inline CUresult device_run(struct obd_program *p, const char *name, unsigned blocks,
	unsigned threads, const void *params)
{
	return device_run_shape(p, name, blocks, threads, params, false, NULL);
}

static void device_end(struct obd_program *p)
{
	obd_program_free(p);
	obd_pool_free(pool);
	pool = NULL;
}

#endif
