/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Threads that write to one session log: asynchronous calls, calls with small and large replies,
 * threads that start and end. Exit code 0: every call succeeded. Mainly for ThreadSanitizer and for
 * runs with all optimisations off.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cuda_types.h"

#define THREADS     8
#define GENERATIONS 3
#define CALLS       600
#define BYTES       (96u << 10) /* larger than a reply that the client's buffer holds completely */

static CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext),
	(*limit)(CUlimit, size_t), (*alloc)(CUdeviceptr *, size_t), (*release)(CUdeviceptr),
	(*up)(CUdeviceptr, const void *, size_t), (*down)(void *, CUdeviceptr, size_t),
	(*fill)(CUdeviceptr, unsigned char, size_t, CUstream), (*stream_new)(CUstream *, unsigned),
	(*stream_drop)(CUstream), (*stream_sync)(CUstream);
static CUcontext ctx;
static _Atomic int failures;

static void need(CUresult result, const char *what)
{
	if (result != CUDA_SUCCESS) {
		fprintf(stderr, "%s: %d\n", what, (int)result);
		atomic_fetch_add(&failures, 1);
	}
}

static void *work(void *unused)
{
	unsigned char *host = calloc(1, BYTES);
	CUdeviceptr p = 0;
	CUstream s = NULL;

	(void)unused;
	need(set(ctx), "cuCtxSetCurrent");
	need(alloc(&p, BYTES), "cuMemAlloc");
	need(stream_new(&s, 1), "cuStreamCreate");
	for (int i = 0; i < CALLS && !atomic_load(&failures); i++) {
		need(up(p, host, 64), "cuMemcpyHtoD");
		need(fill(p, (unsigned char)i, 256, s), "cuMemsetD8Async");
		if (i % 20 == 0)
			need(limit(CU_LIMIT_STACK_SIZE, 1024), "cuCtxSetLimit");
		if (i % 50 == 0)
			need(down(host, p, BYTES), "cuMemcpyDtoH");
		if (i % 70 == 0)
			need(stream_sync(s), "cuStreamSynchronize");
	}
	need(stream_drop(s), "cuStreamDestroy");
	need(release(p), "cuMemFree");
	free(host);
	return NULL;
}

int main(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	pthread_t threads[THREADS];

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
#define LOAD(variable, name) *(void **)&variable = dlsym(library, name)
	LOAD(init, "cuInit");
	LOAD(retain, "cuDevicePrimaryCtxRetain");
	LOAD(set, "cuCtxSetCurrent");
	LOAD(limit, "cuCtxSetLimit");
	LOAD(alloc, "cuMemAlloc_v2");
	LOAD(release, "cuMemFree_v2");
	LOAD(up, "cuMemcpyHtoD_v2");
	LOAD(down, "cuMemcpyDtoH_v2");
	LOAD(fill, "cuMemsetD8Async");
	LOAD(stream_new, "cuStreamCreate");
	LOAD(stream_drop, "cuStreamDestroy_v2");
	LOAD(stream_sync, "cuStreamSynchronize");
	need(init(0), "cuInit");
	need(retain(&ctx, 0), "cuDevicePrimaryCtxRetain");
	for (int g = 0; g < GENERATIONS; g++) {
		for (int i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, work, NULL))
				return 2;
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	printf("%d failures\n", atomic_load(&failures));
	return atomic_load(&failures) ? 1 : 0;
}
