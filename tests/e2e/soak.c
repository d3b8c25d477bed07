/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Very many calls of each kind, so that records of all sizes reach the end of the command ring.
 * Each call's result is checked. `data` also compares the device's memory with what was written
 * (not on the null driver, which stores nothing). Prints kind, calls and seconds. The caller counts
 * the calls at the driver.
 *
 *     soak COUNT data|calls [KIND...]
 *
 * Without names of kinds, all but those that are only for counts of one call's cost.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cuda_types.h"

#define AREA       (1u << 20) /* bytes device memory that is written */
#define COPY_MAX   4096u
#define LOOK_EVERY 65536u       /* calls between comparisons */
#define PINNED     (256u << 10) /* bytes; an upload of so many goes on in the background */

/* The CUDA functions that are called, one per line. */
#define CALLS(X)                                                                                   \
	X(init, cuInit, (unsigned))                                                                \
	X(retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                               \
	X(set, cuCtxSetCurrent, (CUcontext))                                                       \
	X(synchronize, cuCtxSynchronize, (void))                                                   \
	X(alloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                           \
	X(release, cuMemFree_v2, (CUdeviceptr))                                                    \
	X(up, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                \
	X(down, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                    \
	X(host_alloc, cuMemHostAlloc, (void **, size_t, unsigned))                                 \
	X(up_async, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))           \
	X(down_async, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))               \
	X(across, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))              \
	X(fill, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))                   \
	X(info, cuMemGetInfo_v2, (size_t *, size_t *))                                             \
	X(stream_new, cuStreamCreate, (CUstream *, unsigned))                                      \
	X(stream_drop, cuStreamDestroy_v2, (CUstream))                                             \
	X(stream_wait, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                           \
	X(event_new, cuEventCreate, (CUevent *, unsigned))                                         \
	X(event_record, cuEventRecord, (CUevent, CUstream))                                        \
	X(event_drop, cuEventDestroy_v2, (CUevent))                                                \
	X(event_query, cuEventQuery, (CUevent))                                                    \
	X(stream_synchronize, cuStreamSynchronize, (CUstream))                                     \
	X(load, cuModuleLoadData, (CUmodule *, const void *))                                      \
	X(get, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                        \
	X(launch, cuLaunchKernel,                                                                  \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **, void **))
#define X(name, symbol, parameters) static CUresult(*name) parameters;
CALLS(X)
#undef X

static const char kernels[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			      ".visible .entry none()\n{\nret;\n}\n"
			      ".visible .entry six(.param .u64 a, .param .u64 b, .param .u64 c, "
			      ".param .u64 d, .param .u64 e, .param .u64 f)\n{\nret;\n}\n"
			      ".visible .entry odd(.param .align 1 .b8 a[37])\n{\nret;\n}\n";

static CUdeviceptr area;
static CUfunction functions[3];
static CUstream stream, idle_stream;
static CUevent lasting, done; /* recorded again and again; recorded once, and known to be done */
static void *pinned;
static uint8_t shadow[AREA], seen[AREA], source[AREA];
static bool data;
static uint64_t seed = 1;

static void need(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: %d\n", what, (int)result);
	exit(1);
}
#define NEED(call) need(call, #call)

static uint32_t dice(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

/* Checks that the whole area, or a piece of it, equals the host's copy. */
static void look(void)
{
	uint32_t size = AREA / 4, at = dice(AREA - size);

	if (!data)
		return;
	NEED(down(seen, area + at, size));
	if (memcmp(seen, shadow + at, size) == 0)
		return;
	printf("wrong data\n");
	exit(1);
}

/* ---- the kinds: one call, or a few related ones ---- */

static void one_launch(void)
{
	uint64_t word = 1;
	void *words[] = { &word, &word, &word, &word, &word, &word };
	uint8_t odd[37] = { 0 };
	void *bytes[] = { odd };
	unsigned which = dice(3);

	NEED(launch(functions[which], 1, 1, 1, 1, 1, 1, 0, stream,
		which == 1           ? words
			: which == 2 ? bytes
				     : NULL,
		NULL));
}

static void one_event(void)
{
	CUevent event;

	NEED(event_new(&event, 0));
	NEED(event_record(event, stream));
	NEED(stream_wait(stream, event, 0));
	NEED(event_drop(event));
}

static void one_memset(void)
{
	uint32_t size = 1 + dice(64), at = dice(AREA - size);
	uint8_t value = (uint8_t)dice(256);

	NEED(fill(area + at, value, size, NULL));
	memset(shadow + at, value, size);
}

static void one_copy(void)
{
	uint32_t size = 1 + dice(dice(8) ? 256 : COPY_MAX), at = dice(AREA - size),
		 from = dice(AREA - size);

	NEED(up(area + at, source + from, size));
	memcpy(shadow + at, source + from, size);
}

static void one_copy_across(void)
{
	uint32_t size = 1 + dice(64), at = dice(AREA / 2 - size),
		 from = AREA / 2 + dice(AREA / 2 - size);

	NEED(across(area + at, area + from, size, NULL));
	memcpy(shadow + at, shadow + from, size);
}

static void one_alloc(void)
{
	CUdeviceptr p;

	NEED(alloc(&p, 1 + dice(1u << 16)));
	NEED(release(p));
}

static void one_stream(void)
{
	CUstream made;

	NEED(stream_new(&made, 0));
	NEED(stream_drop(made));
}

static void one_answer(void)
{
	size_t left, total;

	NEED(info(&left, &total));
}

static void one_read(void)
{
	uint32_t size = 1 + dice(COPY_MAX), at = dice(AREA - size);

	NEED(down(seen, area + at, size));
	if (data && memcmp(seen, shadow + at, size) != 0)
		need(CUDA_ERROR_UNKNOWN, "wrong data");
}

/* A size that does not vary, for counts of instructions and system calls. */
static void one_copy_4k(void)
{
	NEED(up(area, source, COPY_MAX));
	memcpy(shadow, source, COPY_MAX);
}

static void one_launch_and_wait(void)
{
	NEED(launch(functions[0], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	NEED(synchronize());
}

static void one_record(void)
{
	NEED(event_record(lasting, stream));
}

static void one_query(void)
{
	NEED(event_query(done));
}

static void one_wait_idle(void)
{
	NEED(stream_synchronize(idle_stream));
}

static void need_pinned(void)
{
	if (!pinned)
		NEED(host_alloc(&pinned, PINNED, 0));
}

/* Parameters may point to pinned memory if the program has any. */
static void one_launch_beside_pinned(void)
{
	need_pinned();
	one_launch();
}

/* Copies that go on after their call. */
static void one_upload(void)
{
	need_pinned();
	NEED(up_async(area, pinned, PINNED, stream));
}

static void one_read_later(void)
{
	need_pinned();
	NEED(down_async(pinned, area, COPY_MAX, stream));
}

/* For a driver whose events never complete. */
static void one_query_busy(void)
{
	if (event_query(lasting) != CUDA_ERROR_NOT_READY)
		need(CUDA_ERROR_UNKNOWN, "the event is complete");
}

static const struct kind {
	const char *name;
	void (*one)(void);
	unsigned calls;
	bool cost_only;
} kinds[] = {
	{ "launch", one_launch, 1, false },
	{ "event", one_event, 4, false },
	{ "memset", one_memset, 1, false },
	{ "copy", one_copy, 1, false },
	{ "copy-across", one_copy_across, 1, false },
	{ "alloc", one_alloc, 2, false },
	{ "stream", one_stream, 2, false },
	{ "answer", one_answer, 1, false },
	{ "read", one_read, 1, false },
	{ "copy-4k", one_copy_4k, 1, false },
	{ "launch-and-wait", one_launch_and_wait, 2, false },
	{ "record", one_record, 1, false },
	{ "query", one_query, 1, false },
	{ "wait-idle", one_wait_idle, 1, false },
	{ "upload", one_upload, 1, true },
	{ "read-later", one_read_later, 1, true },
	{ "launch-pinned", one_launch_beside_pinned, 1, true },
	{ "query-busy", one_query_busy, 1, true },
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void start(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	static const char *const names[] = { "none", "six", "odd" };
	CUmodule module;
	CUcontext ctx;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
#define X(name, symbol, parameters) *(void **)&name = dlsym(library, #symbol);
	CALLS(X)
#undef X
	for (uint32_t i = 0; i < AREA; i++)
		source[i] = (uint8_t)dice(256);
	NEED(init(0));
	NEED(retain(&ctx, 0));
	NEED(set(ctx));
	NEED(alloc(&area, AREA));
	NEED(fill(area, 0, AREA, NULL));
	NEED(stream_new(&stream, 0));
	NEED(stream_new(&idle_stream, 0));
	NEED(event_new(&lasting, 0));
	NEED(event_new(&done, 0));
	NEED(event_record(done, idle_stream));
	NEED(stream_synchronize(idle_stream));
	NEED(event_record(lasting, stream));
	NEED(load(&module, kernels));
	for (int i = 0; i < 3; i++)
		NEED(get(&functions[i], module, names[i]));
}

static bool chosen(const struct kind *kind, int argc, char **argv)
{
	for (int i = 3; i < argc; i++)
		if (strcmp(argv[i], kind->name) == 0)
			return true;
	return argc == 3 && !kind->cost_only;
}

int main(int argc, char **argv)
{
	uint64_t count = argc >= 3 ? strtoull(argv[1], NULL, 10) : 0;

	if (!count)
		return 2;
	data = strcmp(argv[2], "data") == 0;
	start();
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		double began = now();

		if (!chosen(&kinds[k], argc, argv))
			continue;
		for (uint64_t i = 0; i < count; i++) {
			kinds[k].one();
			if (i % LOOK_EVERY == LOOK_EVERY - 1)
				look();
		}
		syscall(SYS_getppid); /* whoever counts system calls sees where the calls end */
		NEED(synchronize());
		look();
		printf("%s %llu %.3f\n", kinds[k].name,
			(unsigned long long)(count * kinds[k].calls), now() - began);
		fflush(stdout);
	}
	return 0;
}
