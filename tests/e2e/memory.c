/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program whose memory is watched from outside. At the start it does what a small program does: a
 * context, an allocation, a module, a launch, copies of a few bytes. Then it executes the lines
 * that it reads from stdin, and answers each with "done":
 *
 *     launches N        N launches, then waits for them
 *     copies N BYTES    N copies of so many bytes to the device and back, whose data is compared
 *
 * The memory that it uses itself is mapped for a line and unmapped before the answer.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cuda_types.h"

#define CALLS(X)                                                                                   \
	X(init, cuInit, (unsigned))                                                                \
	X(retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                               \
	X(set, cuCtxSetCurrent, (CUcontext))                                                       \
	X(synchronize, cuCtxSynchronize, (void))                                                   \
	X(alloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                           \
	X(release, cuMemFree_v2, (CUdeviceptr))                                                    \
	X(up, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                \
	X(down, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                    \
	X(load, cuModuleLoadData, (CUmodule *, const void *))                                      \
	X(get, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                        \
	X(launch, cuLaunchKernel,                                                                  \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **, void **))
#define X(name, symbol, parameters) static CUresult(*name) parameters;
CALLS(X)
#undef X

static const char kernels[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			      ".visible .entry none()\n{\nret;\n}\n";

static CUfunction function;

static void need(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: %d\n", what, (int)result);
	exit(1);
}
#define NEED(call) need(call, #call)

static void launches(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		NEED(launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	NEED(synchronize());
}

/* Numbers that a codec can compress. */
static void fill(uint32_t *words, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		words[i] = seed + (uint32_t)(i / 3);
}

static void copies(unsigned long n, size_t bytes)
{
	uint8_t *map =
		mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr device;

	if (map == MAP_FAILED)
		exit(1);
	NEED(alloc(&device, bytes));
	for (unsigned long i = 0; i < n; i++) {
		fill((uint32_t *)map, bytes / 4, (uint32_t)i);
		NEED(up(device, map, bytes));
		if (i % 8 && i < n - 1)
			continue;
		memset(map + bytes, 0, bytes);
		NEED(down(map + bytes, device, bytes));
		if (memcmp(map, map + bytes, bytes) != 0) {
			printf("wrong data\n");
			exit(1);
		}
	}
	NEED(release(device));
	munmap(map, 2 * bytes);
}

static void begin(void)
{
	char bytes[4096] = { 0 };
	CUdeviceptr device;
	CUcontext ctx;
	CUmodule module;

	NEED(init(0));
	NEED(retain(&ctx, 0));
	NEED(set(ctx));
	NEED(alloc(&device, 1 << 20));
	NEED(load(&module, kernels));
	NEED(get(&function, module, "none"));
	NEED(up(device, bytes, sizeof bytes));
	launches(1);
	NEED(down(bytes, device, sizeof bytes));
}

int main(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	char line[128] = "";

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
#define X(name, symbol, parameters) *(void **)&name = dlsym(library, #symbol);
	CALLS(X)
#undef X
	begin();
	do {
		unsigned long n = 0, bytes = 0;

		if (sscanf(line, "launches %lu", &n) == 1)
			launches(n);
		else if (sscanf(line, "copies %lu %lu", &n, &bytes) == 2)
			copies(n, bytes);
		printf("done\n");
		fflush(stdout);
	} while (fgets(line, sizeof line, stdin));
	return 0;
}
