/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Asks for the free memory, for free_memory.py:
 *
 *     free_memory loop CALLS        as often as that
 *     free_memory watch SECONDS     about each millisecond; for each number that was free prints
 *                                   "BYTES SECONDS": when the last call with it began
 *     free_memory take              for each line on stdin, allocates 64 MiB and prints the time
 *     free_memory own               after each of its own allocations and frees
 */
#include <string.h>

#include "base/clock.h"
#include "tests/e2e/calls.h"
#include "tests/waiting.h"

#define MIB ((size_t)1 << 20)

static CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
	(*info)(size_t *, size_t *), (*alloc)(CUdeviceptr *, size_t), (*release)(CUdeviceptr),
	(*fill)(CUdeviceptr, unsigned char, size_t, CUstream), (*synchronize)(void);

static size_t now_free(void)
{
	size_t left, total;

	need(info(&left, &total), "cuMemGetInfo");
	if (left > total) {
		printf("%zu of %zu bytes are free\n", left, total);
		exit(1);
	}
	return left;
}

static double seconds(void)
{
	return (double)ob_clock_ns() / 1e9;
}

static void watch(double duration)
{
	double end = seconds() + duration, at = 0, before_at = 0;
	size_t before = 0, left;

	for (;;) {
		before_at = at;
		at = seconds();
		if (at > end)
			break;
		left = now_free();
		if (before && left != before)
			printf("%zu %.6f\n", before, before_at);
		if (!before)
			printf("ready\n");
		fflush(stdout);
		before = left;
		let_pass(1000, "the program asks again and again");
	}
	printf("%zu %.6f\n", before, before_at);
}

static void take(void)
{
	CUdeviceptr p;
	char line[16];

	now_free();
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		need(alloc(&p, 64 * MIB), "cuMemAlloc");
		need(synchronize(), "cuCtxSynchronize");
		printf("%.6f\n", seconds());
		fflush(stdout);
	}
}

static void own(void)
{
	CUdeviceptr p[12];

	printf("%zu\n", now_free());
	for (size_t i = 0; i < 12; i++) {
		/* small ones, then ones that need more than is granted */
		need(alloc(&p[i], i % 2 ? (i * 30 + 1) * MIB : (i + 1) * 100000), "cuMemAlloc");
		printf("%zu\n", now_free());
		need(fill(p[i], 1, 4096, NULL), "cuMemsetD8Async");
		printf("%zu\n", now_free());
	}
	for (size_t i = 0; i < 12; i++) {
		need(release(p[i * 5 % 12]), "cuMemFree");
		printf("%zu\n", now_free());
		need(synchronize(), "cuCtxSynchronize");
		printf("%zu\n", now_free());
	}
}

int main(int argc, char **argv)
{
	void *library = library_open();
	const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "0";
	CUcontext ctx;

	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(library, "cuCtxSetCurrent");
	*(void **)&info = dlsym(library, "cuMemGetInfo_v2");
	*(void **)&alloc = dlsym(library, "cuMemAlloc_v2");
	*(void **)&release = dlsym(library, "cuMemFree_v2");
	*(void **)&fill = dlsym(library, "cuMemsetD8Async");
	*(void **)&synchronize = dlsym(library, "cuCtxSynchronize");
	need(init(0), "cuInit");
	need(retain(&ctx, 0), "cuDevicePrimaryCtxRetain");
	need(set(ctx), "cuCtxSetCurrent");
	if (strcmp(what, "loop") == 0)
		for (long i = atol(how); i > 0; i--)
			now_free();
	else if (strcmp(what, "watch") == 0)
		watch(atof(how));
	else if (strcmp(what, "take") == 0)
		take();
	else if (strcmp(what, "own") == 0)
		own();
	else
		return 2;
	return 0;
}
