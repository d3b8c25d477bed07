/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Programs that do very much, or ask something, while a copy of pinned memory is under way: the
 * server can hold back only so much, and must not end the session.
 *
 *     beside records | bursts | beside | elapsed
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/e2e/calls.h"
#include "tests/waiting.h"

#define BYTES   (64u << 20)
#define BIG     (256u << 20)
#define RECORDS 300000

#define CALLS(X)                                                             \
	X(cuInit, unsigned)                                                  \
	X(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)                   \
	X(cuCtxSetCurrent, CUcontext)                                        \
	X(cuCtxSynchronize, void)                                            \
	X(cuModuleLoadData, CUmodule *, const void *)                        \
	X(cuModuleGetFunction, CUfunction *, CUmodule, const char *)         \
	X(cuFuncSetAttribute, CUfunction, CUfunction_attribute, int)         \
	X(cuMemAlloc_v2, CUdeviceptr *, size_t)                              \
	X(cuMemHostAlloc, void **, size_t, unsigned)                         \
	X(cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t)                \
	X(cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t)                      \
	X(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream) \
	X(cuMemsetD8Async, CUdeviceptr, unsigned char, size_t, CUstream)     \
	X(cuStreamCreate, CUstream *, unsigned)                              \
	X(cuStreamQuery, CUstream)                                           \
	X(cuStreamSynchronize, CUstream)                                     \
	X(cuEventCreate, CUevent *, unsigned)                                \
	X(cuEventRecord, CUevent, CUstream)                                  \
	X(cuEventElapsedTime, float *, CUevent, CUevent)

static struct {
#define X(name, ...) CUresult (*name)(__VA_ARGS__);
	CALLS(X)
#undef X
} cu;

#define NEED(call) need(cu.call, #call)

static const char ptx[] = ".version 8.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry nothing()\n{\nret;\n}\n";

static CUcontext ctx;
static CUdeviceptr device, big;
static uint8_t *pinned, *pageable;
static CUstream blocking, apart;

/* Small records, each of which the server keeps with an entry. */
static void records(void)
{
	CUevent event;

	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuMemcpyHtoDAsync_v2(device, pinned, BYTES, apart));
	for (int i = 0; i < RECORDS; i++)
		NEED(cuEventRecord(event, apart));
}

/* With pauses, in which the server acknowledges everything and the ring is empty. */
static void bursts(void)
{
	for (int i = 0; i < RECORDS; i++) {
		/* Again and again, so that one is under way all the time. */
		if (i % 40000 == 0)
			NEED(cuMemcpyHtoDAsync_v2(device, pinned, BYTES, apart));
		NEED(cuMemsetD8Async(big, 7, 64, apart));
		if (i % 6000 == 0)
			let_pass(2000, "the server acknowledges more or less");
	}
}

static void *copy_big(void *unused)
{
	(void)unused;
	NEED(cuCtxSetCurrent(ctx));
	NEED(cuMemcpyHtoD_v2(big, pageable, BIG));
	return NULL;
}

/* A large copy of another thread has begun before those of pinned memory, for which it waits. */
static void beside(void)
{
	pthread_t thread;

	pageable = malloc(BIG);
	memset(pageable, 3, BIG);
	pthread_create(&thread, NULL, copy_big, NULL);
	let_pass(30000, "more or less of the copy is under way");
	for (int i = 0; i < 4; i++) {
		NEED(cuMemcpyHtoDAsync_v2(device, pinned, BYTES, blocking));
		NEED(cuStreamSynchronize(blocking));
	}
	pthread_join(thread, NULL);
	NEED(cuMemcpyDtoH_v2(pageable, big, BIG));
	for (size_t i = 0; i < BIG; i++)
		if (pageable[i] != 3) {
			printf("byte %zu is %u\n", i, pageable[i]);
			exit(1);
		}
}

/* What is complete stays complete, also behind a call that waits for all copies. */
static void elapsed(void)
{
	CUevent start, end;
	CUfunction function;
	CUmodule module;
	bool pending;
	float ms;

	NEED(cuModuleLoadData(&module, ptx));
	NEED(cuModuleGetFunction(&function, module, "nothing"));
	NEED(cuEventCreate(&start, 0));
	NEED(cuEventCreate(&end, 0));
	NEED(cuEventRecord(start, blocking));
	NEED(cuMemsetD8Async(big, 1, 64, blocking));
	NEED(cuEventRecord(end, blocking));
	NEED(cuStreamSynchronize(blocking));
	NEED(cuMemcpyHtoDAsync_v2(device, pinned, BYTES, apart));
	NEED(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
	NEED(cuEventElapsedTime(&ms, start, end));
	pending = cu.cuStreamQuery(apart) == CUDA_ERROR_NOT_READY;
	printf("the copy is %s\n", pending ? "under way" : "complete");
}

int main(int argc, char **argv)
{
	void *library = library_open();
	const char *what = argc > 1 ? argv[1] : "";

#define X(name, ...) *(void **)&cu.name = dlsym(library, #name);
	CALLS(X)
#undef X
	NEED(cuInit(0));
	NEED(cuDevicePrimaryCtxRetain(&ctx, 0));
	NEED(cuCtxSetCurrent(ctx));
	NEED(cuStreamCreate(&blocking, 0));
	NEED(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
	NEED(cuMemAlloc_v2(&device, BYTES));
	NEED(cuMemAlloc_v2(&big, BIG));
	NEED(cuMemHostAlloc((void **)&pinned, BYTES, 0));
	memset(pinned, 5, BYTES);
	if (strcmp(what, "records") == 0)
		records();
	else if (strcmp(what, "bursts") == 0)
		bursts();
	else if (strcmp(what, "beside") == 0)
		beside();
	else if (strcmp(what, "elapsed") == 0)
		elapsed();
	else
		return 2;
	NEED(cuCtxSynchronize());
	printf("done\n");
	return 0;
}
