/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that exits while copies of pinned memory are pending which can never be complete, because
 * they are behind a kernel that does not end.
 *
 *     exits read | upload | both | full | idle
 *
 * full: another thread has filled the ring, so that its call waits for room. idle: the copies are
 * complete.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/calls.h"
#include "tests/waiting.h"

#define BYTES ((size_t)64 << 20)

#define CALLS(X)                                                                                  \
	X(cuInit, unsigned)                                                                       \
	X(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)                                        \
	X(cuCtxSetCurrent, CUcontext)                                                             \
	X(cuModuleLoadData, CUmodule *, const void *)                                             \
	X(cuModuleGetFunction, CUfunction *, CUmodule, const char *)                              \
	X(cuMemAlloc_v2, CUdeviceptr *, size_t)                                                   \
	X(cuMemHostAlloc, void **, size_t, unsigned)                                              \
	X(cuMemsetD8_v2, CUdeviceptr, unsigned char, size_t)                                      \
	X(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream)                      \
	X(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, size_t, CUstream)                            \
	X(cuStreamCreate, CUstream *, unsigned)                                                   \
	X(cuStreamSynchronize, CUstream)                                                          \
	X(cuEventCreate, CUevent *, unsigned)                                                     \
	X(cuEventRecord, CUevent, CUstream)                                                       \
	X(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
		unsigned, CUstream, void **, void **)

static struct {
#define X(name, ...) CUresult (*name)(__VA_ARGS__);
	CALLS(X)
#undef X
} cu;

#define NEED(call) need(cu.call, #call)

/* Runs until the flag is set. */
static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry hold(.param .u64 flag)\n{\n\t.reg .u64 %a;\n\t.reg .u32 %v;\n"
	"\t.reg .pred %p;\n\tld.param.u64 %a, [flag];\nagain:\n\tld.volatile.global.u32 %v, [%a];\n"
	"\tsetp.eq.u32 %p, %v, 0;\n\t@%p bra again;\n\tret;\n}\n";

static CUcontext ctx;
static CUstream stream;
static CUdeviceptr device, flag;
static _Atomic unsigned long calls;

static void begin(void)
{
	void *library = library_open();

#define X(name, ...) *(void **)&cu.name = dlsym(library, #name);
	CALLS(X)
#undef X
	NEED(cuInit(0));
	NEED(cuDevicePrimaryCtxRetain(&ctx, 0));
	NEED(cuCtxSetCurrent(ctx));
	NEED(cuMemAlloc_v2(&device, BYTES));
	NEED(cuMemAlloc_v2(&flag, 4));
	NEED(cuMemsetD8_v2(flag, 0, 4));
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static void hold(void)
{
	CUfunction function;
	CUmodule module;
	void *params[] = { &flag };

	NEED(cuModuleLoadData(&module, ptx));
	NEED(cuModuleGetFunction(&function, module, "hold"));
	NEED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void *call_without_end(void *unused)
{
	CUevent event;

	(void)unused;
	NEED(cuCtxSetCurrent(ctx));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	/* Until the process exits; then the call fails. */
	while (cu.cuEventRecord(event, stream) == CUDA_SUCCESS)
		calls++;
	for (;;)
		pause();
	return NULL;
}

/* Until the other thread makes no progress any more. */
static void ring_fill(void)
{
	unsigned long seen = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, call_without_end, NULL))
		exit(2);
	do {
		seen = calls;
		let_pass(200000, "the other thread makes calls if there is room");
	} while (!calls || calls != seen);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint8_t *up, *down;

	begin();
	NEED(cuMemHostAlloc((void **)&up, BYTES, 0));
	NEED(cuMemHostAlloc((void **)&down, BYTES, 0));
	memset(up, 1, BYTES);
	if (strcmp(what, "idle") != 0)
		hold();
	if (strcmp(what, "read") != 0)
		NEED(cuMemcpyHtoDAsync_v2(device, up, BYTES, stream));
	if (strcmp(what, "upload") != 0)
		NEED(cuMemcpyDtoHAsync_v2(down, device, BYTES, stream));
	if (strcmp(what, "full") == 0)
		ring_fill();
	if (strcmp(what, "idle") == 0)
		NEED(cuStreamSynchronize(stream));
	printf("done\n");
	return 0;
}
