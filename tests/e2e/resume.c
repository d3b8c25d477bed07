/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program with known results, for a link that breaks. Threads copy in both directions in small,
 * medium and large pieces, launch kernels that count their runs, and have host functions called.
 * Each result is compared at once and added to a sum that is printed. The counters of the device
 * and the host show a launch or a host function that ran twice or not at all.
 *
 *     resume [threads] [rounds] [large bytes]
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda_types.h"

#define THREADS_MAX 16
/* size of each thread's vector: larger than a reply that the client's buffer holds completely */
#define WORDS       50000u
#define LAUNCHES    12 /* launches between two checks of the result */

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry step(.param .u64 xp, .param .u64 yp, .param .u64 cp, "
			  ".param .u32 a, .param .u32 n)\n{\n"
			  "	.reg .pred %p<3>;\n	.reg .b32 %r<12>;\n	.reg .b64 %d<8>;\n"
			  "	ld.param.u64 %d1, [xp];\n	ld.param.u64 %d2, [yp];\n	"
			  "ld.param.u64 %d3, [cp];\n"
			  "	ld.param.u32 %r1, [a];\n	ld.param.u32 %r2, [n];\n"
			  "	mov.u32 %r3, %ctaid.x;\n	mov.u32 %r4, %ntid.x;\n	mov.u32 "
			  "%r5, %tid.x;\n	mad.lo.s32 %r6, %r3, %r4, %r5;\n"
			  "	setp.ne.u32 %p1, %r6, 0;\n	@%p1 bra rest;\n	"
			  "atom.global.add.u32 %r7, [%d3], 1;\nrest:\n"
			  "	setp.ge.u32 %p2, %r6, %r2;\n	@%p2 bra done;\n"
			  "	mul.wide.u32 %d4, %r6, 4;\n	add.s64 %d5, %d1, %d4;\n	"
			  "add.s64 %d6, %d2, %d4;\n"
			  "	ld.global.u32 %r8, [%d5];\n	ld.global.u32 %r9, [%d6];\n	"
			  "mad.lo.s32 %r10, %r9, %r1, %r8;\n	st.global.u32 [%d6], %r10;\n"
			  "done:\n	ret;\n}\n";

/* The calls by their names, loaded at run time. */
#define CALLS(X)                                                                                   \
	X(init, "cuInit", (unsigned))                                                              \
	X(retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                             \
	X(set, "cuCtxSetCurrent", (CUcontext))                                                     \
	X(load, "cuModuleLoadData", (CUmodule *, const void *))                                    \
	X(function, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                 \
	X(alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                         \
	X(release, "cuMemFree_v2", (CUdeviceptr))                                                  \
	X(up, "cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t))                              \
	X(up_async, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))         \
	X(down, "cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t))                                  \
	X(down_async, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream))             \
	X(fill, "cuMemsetD32Async", (CUdeviceptr, unsigned, size_t, CUstream))                     \
	X(launch, "cuLaunchKernel",                                                                \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **, void **))                                               \
	X(host, "cuLaunchHostFunc", (CUstream, CUhostFn, void *))                                  \
	X(stream_new, "cuStreamCreate", (CUstream *, unsigned))                                    \
	X(stream_drop, "cuStreamDestroy_v2", (CUstream))                                           \
	X(stream_sync, "cuStreamSynchronize", (CUstream))
#define X(name, text, args) static CUresult(*name) args;
CALLS(X)
#undef X

static CUcontext ctx;
static CUfunction step;
static unsigned rounds;
static size_t large;
static _Atomic int failures;

struct worker {
	pthread_t thread;
	unsigned index;
	uint64_t sum;
	/* host functions; `called` is written by the thread that runs them */
	unsigned called, expected;
	uint32_t *host, *x, *y;
	uint8_t *big, *back;
	CUdeviceptr dx, dy, dcount, dbig;
	CUstream stream;
};

static void need(CUresult result, const char *what)
{
	if (result != CUDA_SUCCESS && atomic_fetch_add(&failures, 1) < 5)
		fprintf(stderr, "%s: %d\n", what, (int)result);
}

static void must(int ok, const char *what, unsigned worker, unsigned round)
{
	if (!ok && atomic_fetch_add(&failures, 1) < 5)
		fprintf(stderr, "worker %u, round %u: %s\n", worker, round, what);
}

static uint32_t mix(uint32_t v)
{
	v = (v ^ (v >> 16)) * 0x7feb352du;
	v = (v ^ (v >> 15)) * 0x846ca68bu;
	return v ^ (v >> 16);
}

static void sum_add(struct worker *w, const void *data, size_t size)
{
	const uint8_t *p = data;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t v;

		memcpy(&v, p + i, 8);
		w->sum = (w->sum ^ v) * 0x100000001b3ull;
	}
}

static void called(void *user)
{
	((struct worker *)user)->called++;
}

static void vectors(struct worker *w, unsigned round)
{
	uint32_t n = WORDS, a = round * 2 + 3, count = 0;
	void *args[] = { &w->dx, &w->dy, &w->dcount, &a, &n };

	for (uint32_t i = 0; i < WORDS; i++)
		w->x[i] = mix(i + round * 77u + w->index * 1000003u);
	need(up_async(w->dx, w->x, sizeof *w->x * WORDS, w->stream), "cuMemcpyHtoDAsync");
	need(fill(w->dy, round, WORDS, w->stream), "cuMemsetD32Async");
	for (unsigned k = 0; k < LAUNCHES; k++) {
		need(launch(step, (WORDS + 255) / 256, 1, 1, 256, 1, 1, 0, w->stream, args, NULL),
			"cuLaunchKernel");
		if (k % 4 == 0) {
			need(host(w->stream, called, w), "cuLaunchHostFunc");
			w->expected++;
		}
	}
	need(down_async(w->y, w->dy, sizeof *w->y * WORDS, w->stream), "cuMemcpyDtoHAsync");
	need(stream_sync(w->stream), "cuStreamSynchronize");
	for (uint32_t i = 0; i < WORDS; i++) {
		uint32_t v = round;

		for (unsigned k = 0; k < LAUNCHES; k++)
			v = v * a + w->x[i];
		w->host[i] = v;
	}
	must(memcmp(w->host, w->y, sizeof *w->y * WORDS) == 0,
		"the kernels' result is not what it must be", w->index, round);
	sum_add(w, w->y, sizeof *w->y * WORDS);
	must(w->called == w->expected,
		"host functions ran more or fewer times than they were launched", w->index, round);
	need(down(&count, w->dcount, sizeof count), "cuMemcpyDtoH");
	must(count == (round + 1) * LAUNCHES,
		"kernels ran more or fewer times than they were launched", w->index, round);
}

static void bulk(struct worker *w, unsigned round)
{
	uint32_t *words = (uint32_t *)w->big;

	for (size_t i = 0; i < large / 4; i += 64)
		words[i] = mix((uint32_t)i + round + w->index);
	need(up(w->dbig, w->big, large), "cuMemcpyHtoD");
	memset(w->back, 0x55, large);
	need(down(w->back, w->dbig, large), "cuMemcpyDtoH");
	must(memcmp(w->big, w->back, large) == 0, "a large copy came back changed", w->index,
		round);
	sum_add(w, w->back, large);
}

static void *work(void *argument)
{
	struct worker *w = argument;
	uint32_t zero = 0;

	w->host = calloc(WORDS, 4);
	w->x = calloc(WORDS, 4);
	w->y = calloc(WORDS, 4);
	w->big = calloc(1, large);
	w->back = calloc(1, large);
	need(set(ctx), "cuCtxSetCurrent");
	need(alloc(&w->dx, WORDS * 4), "cuMemAlloc");
	need(alloc(&w->dy, WORDS * 4), "cuMemAlloc");
	need(alloc(&w->dcount, 256), "cuMemAlloc");
	need(alloc(&w->dbig, large), "cuMemAlloc");
	need(stream_new(&w->stream, 1), "cuStreamCreate");
	need(up(w->dcount, &zero, sizeof zero), "cuMemcpyHtoD");
	for (unsigned round = 0; round < rounds && !atomic_load(&failures); round++) {
		vectors(w, round);
		bulk(w, round);
	}
	need(stream_drop(w->stream), "cuStreamDestroy");
	need(release(w->dx), "cuMemFree");
	need(release(w->dy), "cuMemFree");
	need(release(w->dcount), "cuMemFree");
	need(release(w->dbig), "cuMemFree");
	free(w->host);
	free(w->x);
	free(w->y);
	free(w->big);
	free(w->back);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUmodule module;

	rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;
	large = argc > 3 ? strtoul(argv[3], NULL, 10) : 9u << 20;
	if (!library || n > THREADS_MAX) {
		fprintf(stderr, "%s\n", library ? "too many threads" : dlerror());
		return 2;
	}
#define X(name, text, args) *(void **)&name = dlsym(library, text);
	CALLS(X)
#undef X
	need(init(0), "cuInit");
	need(retain(&ctx, 0), "cuDevicePrimaryCtxRetain");
	need(set(ctx), "cuCtxSetCurrent");
	need(load(&module, ptx), "cuModuleLoadData");
	need(function(&step, module, "step"), "cuModuleGetFunction");
	for (unsigned i = 0; i < n && !atomic_load(&failures); i++) {
		workers[i].index = i;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 2;
	}
	for (unsigned i = 0; i < n; i++)
		if (workers[i].thread)
			pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < n; i++)
		printf("worker %u: sum %016llx, %u host functions\n", i,
			(unsigned long long)workers[i].sum, workers[i].called);
	printf("%d failures\n", atomic_load(&failures));
	return atomic_load(&failures) ? 1 : 0;
}
