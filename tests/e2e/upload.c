/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that uploads MIB MiB of incompressible data, the same data for the same SEED, in copies
 * of PIECE bytes. It reads back all of it, or 4 KiB of every MiB, and compares. Prints a checksum
 * of what it read; prints to stderr how long the uploads took until they were complete on the
 * device.
 *
 *     upload MIB SEED PIECE all|some
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cuda_types.h"
#include "tests/e2e/calls.h"

#define MIB ((size_t)1 << 20)

static CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
	(*alloc)(CUdeviceptr *, size_t), (*up)(CUdeviceptr, const void *, size_t),
	(*down)(void *, CUdeviceptr, size_t), (*synchronize)(void);

static void load(void)
{
	void *library = library_open();

	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(library, "cuCtxSetCurrent");
	*(void **)&alloc = dlsym(library, "cuMemAlloc_v2");
	*(void **)&up = dlsym(library, "cuMemcpyHtoD_v2");
	*(void **)&down = dlsym(library, "cuMemcpyDtoH_v2");
	*(void **)&synchronize = dlsym(library, "cuCtxSynchronize");
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	size_t size = argc == 5 ? strtoull(argv[1], NULL, 10) * MIB : 0,
	       piece = argc == 5 ? strtoull(argv[3], NULL, 10) : 0;
	size_t step = argc == 5 && strcmp(argv[4], "all") == 0 ? MIB : 4096;
	uint64_t x = size ? strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u + 1 : 0, sum = 0;
	uint64_t *host = malloc(size + 1), *back = malloc(MIB);
	CUdeviceptr p;
	CUcontext ctx;
	double begin;

	if (!size || !piece || !host || !back) {
		fprintf(stderr, "usage: upload MIB SEED PIECE all|some\n");
		return 2;
	}
	for (size_t i = 0; i < size / 8; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17; /* Marsaglia's xorshift */
		host[i] = x;
	}
	load();
	need(init(0), "cuInit");
	need(retain(&ctx, 0), "cuDevicePrimaryCtxRetain");
	need(set(ctx), "cuCtxSetCurrent");
	need(alloc(&p, size), "cuMemAlloc");
	begin = now();
	for (size_t at = 0; at < size; at += piece)
		need(up(p + at, (char *)host + at, size - at < piece ? size - at : piece),
			"cuMemcpyHtoD");
	need(synchronize(), "cuCtxSynchronize");
	fprintf(stderr, "uploaded in %.4f s\n", now() - begin);
	for (size_t at = 0; at < size; at += MIB) {
		need(down(back, p + at, step), "cuMemcpyDtoH");
		if (memcmp(back, (char *)host + at, step) != 0) {
			printf("what came back is not what was sent, at MiB %zu\n", at / MIB);
			return 1;
		}
		for (size_t i = 0; i < step / 8; i++)
			sum = sum * 31 + back[i];
	}
	printf("%016llx\n", (unsigned long long)sum);
	return 0;
}
