/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the front end costs in the paths that programs take most: nanoseconds per operation, one thread,
 * median of runs.
 */
#include <time.h>

#include "front.h"

enum { RUNS = 5, COUNT = 1000000, LIVE = 10000 };

static struct obf_ctx *ctx;
static CUkernel kernel;
static CUresult (*storage_get)(void **, CUcontext, void *);

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void bench_enter(void)
{
	for (int i = 0; i < COUNT; i++)
		OK(obf_ctx_enter(&ctx));
}

/* All that a launch asks of the front end. */
static void bench_launch(void)
{
	struct obf_launch launch = {
		.grid = { 1, 1, 1 }, .block = { 256, 1, 1 }, .cluster = { 1, 1, 1 }
	};
	uint64_t a = 1, c = 2, packed[3];
	uint32_t b = 3;
	void *params[] = { &a, &b, &c };
	struct obf_func *func;

	for (int i = 0; i < COUNT; i++) {
		OK(obf_ctx_enter(&ctx));
		OK(obf_func_resolve((CUfunction)(void *)kernel, ctx, &func));
		OK(obf_launch_check(ctx, func, &launch));
		OK(obf_launch_pack(func, params, NULL, packed));
	}
}

static void bench_pairs(void)
{
	for (int i = 0; i < COUNT; i++) {
		struct obf_mem mem = { .base = 0x400000000000 + (uint64_t)(i % 1000) * 0x1000,
			.size = 0x1000,
			.kind = OBF_MEM_DEVICE };

		CHECK(obf_mem_insert(&mem) && obf_mem_remove(mem.base, &mem));
	}
}

static void bench_find(void)
{
	struct obf_mem mem;

	for (uint64_t i = 0; i < COUNT; i++)
		CHECK(obf_mem_find(0x200000000000 + (i * 7919 % LIVE) * 0x1000 + 8, &mem));
}

static void bench_storage(void)
{
	void *value;

	for (int i = 0; i < COUNT; i++)
		OK(storage_get(&value, NULL, (void *)3));
}

static void measure(const char *what, void (*run)(void))
{
	double best[RUNS];

	for (int i = 0; i < RUNS; i++) {
		double begun = now(), took;
		int at = i;

		run();
		took = (now() - begun) / (double)COUNT;
		for (; at > 0 && best[at - 1] > took; at--)
			best[at] = best[at - 1];
		best[at] = took;
	}
	printf("%-44s %7.1f ns\n", what, best[RUNS / 2]);
}

int main(void)
{
	static const CUuuid storage_id = {
		"\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93"
	};
	CUresult (*put)(CUcontext, void *, void *, void *);
	const void *table;
	CUlibrary library;

	begin();
	OK(obf_cuLibraryLoadData(&library, ptx_text, NULL, NULL, 0, NULL, NULL, 0));
	OK(obf_cuLibraryGetKernel(&kernel, library, "first"));
	OK(obf_cuGetExportTable(&table, &storage_id));
	memcpy(&put, table, sizeof put);
	memcpy(&storage_get, (const char *)table + 16, sizeof storage_get);
	for (uintptr_t i = 1; i < 4; i++)
		OK(put(NULL, (void *)i, (void *)i, NULL));
	measure("context entered", bench_enter);
	measure("context-local storage read", bench_storage);
	measure("launch: enter, resolve, check, pack 3", bench_launch);
	measure("range inserted and removed, map empty", bench_pairs);
	for (uint64_t i = 0; i < LIVE; i++) {
		struct obf_mem mem = {
			.base = 0x200000000000 + i * 0x1000, .size = 0x1000, .kind = OBF_MEM_DEVICE
		};

		CHECK(obf_mem_insert(&mem));
	}
	measure("range inserted and removed, 10,000 live", bench_pairs);
	measure("address found among 10,000 ranges", bench_find);
	return 0;
}
