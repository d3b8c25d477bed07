/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that uses every device it sees for some seconds and checks that each keeps what was
 * written: a pattern of its own on each device, read back every 200 ms. For tests of a pool.
 *
 *     pool_client SECONDS [BYTES]
 *
 * Prints the devices, and at the end "right" or the first wrong result. Exit code 0: all was right;
 * 3: a call failed (its CUresult is on stdout); 4: wrong data.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cuda_types.h"

#define DEVICES_MAX 64
#define WORDS       1024u /* read back of each device */

static void *library;

static void *call(const char *name)
{
	void *function = dlsym(library, name);

	if (!function) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(2);
	}
	return function;
}

static void must(const char *what, CUresult result)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: error %d\n", what, (int)result);
	exit(3);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	CUresult (*init)(unsigned), (*count)(int *), (*retain)(CUcontext *, CUdevice),
		(*set)(CUcontext), (*alloc)(CUdeviceptr *, size_t),
		(*fill)(CUdeviceptr, unsigned, size_t), (*get)(void *, CUdeviceptr, size_t),
		(*name)(char *, int, CUdevice);
	double end = now() + (argc > 1 ? atof(argv[1]) : 0);
	size_t bytes = argc > 2 ? (size_t)strtoull(argv[2], NULL, 10) : 1u << 20;
	static uint32_t words[WORDS];
	CUcontext contexts[DEVICES_MAX];
	CUdeviceptr memory[DEVICES_MAX];
	char text[256];
	int n = 0;

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	*(void **)&init = call("cuInit");
	*(void **)&count = call("cuDeviceGetCount");
	*(void **)&name = call("cuDeviceGetName");
	*(void **)&retain = call("cuDevicePrimaryCtxRetain");
	*(void **)&set = call("cuCtxSetCurrent");
	*(void **)&alloc = call("cuMemAlloc_v2");
	*(void **)&fill = call("cuMemsetD32_v2");
	*(void **)&get = call("cuMemcpyDtoH_v2");
	must("cuInit", init(0));
	must("cuDeviceGetCount", count(&n));
	printf("%d devices\n", n);
	for (int d = 0; d < n && d < DEVICES_MAX; d++) {
		must("cuDeviceGetName", name(text, sizeof text, d));
		must("cuDevicePrimaryCtxRetain", retain(&contexts[d], d));
		must("cuCtxSetCurrent", set(contexts[d]));
		must("cuMemAlloc", alloc(&memory[d], bytes));
		must("cuMemsetD32", fill(memory[d], (unsigned)getpid() + (unsigned)d, bytes / 4));
	}
	do {
		for (int d = 0; d < n && d < DEVICES_MAX; d++) {
			must("cuCtxSetCurrent", set(contexts[d]));
			must("cuMemcpyDtoH", get(words, memory[d], sizeof words));
			for (unsigned i = 0; i < WORDS; i++)
				if (words[i] != (unsigned)getpid() + (unsigned)d) {
					printf("device %d, word %u: %u\n", d, i, words[i]);
					return 4;
				}
		}
		usleep(200000); // poll: the pace of the checks
	} while (now() < end);
	printf("right\n");
	return 0;
}
