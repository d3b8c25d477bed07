/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program for tests with a hostile server: calls of every kind that has a reply, in two threads,
 * each result into a buffer between guards. Every call may fail; nothing else may happen. Usage:
 * victim. Exit codes:
 *
 *     0   every call succeeded and every result is right
 *     3   a call returned an error
 *     4   a result is wrong
 *     9   a guard was overwritten
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cuda_types.h"

#define ROUNDS     3
#define GUARD      256u
#define MEDIUM     (40u << 10)      /* a reply that does not fit into the client's buffer */
#define LARGE      ((5u << 20) / 2) /* several pieces */
#define DEADLINE_S 60               /* a hang is ended by a signal, which is a failure */

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".global .align 4 .u32 total = 5;\n"
	".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
	".global .align 1 .b8 text[7] = {116, 105, 100, 32, 48, 10, 0};\n"
	".visible .entry add(.param .u64 p, .param .u32 n)\n{\n"
	"	.reg .b32 %r<6>;\n	.reg .b64 %d<6>;\n	.reg .pred %q;\n"
	"	ld.param.u64 %d1, [p];\n	ld.param.u32 %r1, [n];\n	mov.u32 %r2, "
	"%tid.x;\n"
	"	mul.wide.u32 %d2, %r2, 4;\n	add.s64 %d3, %d1, %d2;\n	ld.global.u32 %r3, "
	"[%d3];\n"
	"	add.s32 %r3, %r3, %r1;\n	st.global.u32 [%d3], %r3;\n"
	"	setp.ne.u32 %q, %r2, 0;\n	@%q bra done;\n"
	"	mov.u64 %d4, text;\n	cvta.global.u64 %d4, %d4;\n	mov.u64 %d5, 0;\n"
	"	{\n	.param .b64 a0;\n	.param .b64 a1;\n	.param .b32 r0;\n	"
	"st.param.b64 [a0], %d4;\n	st.param.b64 [a1], %d5;\n"
	"	call.uni (r0), vprintf, (a0, a1);\n	ld.param.b32 %r4, [r0];\n	}\n"
	"done:\n	ret;\n}\n";

#define CALLS(X)                                                                                   \
	X(init, "cuInit", (unsigned))                                                              \
	X(retain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                             \
	X(set, "cuCtxSetCurrent", (CUcontext))                                                     \
	X(ctx_sync, "cuCtxSynchronize", (void))                                                    \
	X(info, "cuMemGetInfo_v2", (size_t *, size_t *))                                           \
	X(limit, "cuCtxGetLimit", (size_t *, CUlimit))                                             \
	X(load, "cuModuleLoadDataEx",                                                              \
		(CUmodule *, const void *, unsigned, CUjit_option *, void **))                     \
	X(function, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                 \
	X(global, "cuModuleGetGlobal_v2", (CUdeviceptr *, size_t *, CUmodule, const char *))       \
	X(attribute, "cuFuncGetAttribute", (int *, CUfunction_attribute, CUfunction))              \
	X(unload, "cuModuleUnload", (CUmodule))                                                    \
	X(alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                         \
	X(release, "cuMemFree_v2", (CUdeviceptr))                                                  \
	X(up, "cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t))                              \
	X(down, "cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t))                                  \
	X(launch, "cuLaunchKernel",                                                                \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **, void **))                                               \
	X(host, "cuLaunchHostFunc", (CUstream, CUhostFn, void *))                                  \
	X(stream_new, "cuStreamCreate", (CUstream *, unsigned))                                    \
	X(stream_drop, "cuStreamDestroy_v2", (CUstream))                                           \
	X(stream_sync, "cuStreamSynchronize", (CUstream))                                          \
	X(stream_query, "cuStreamQuery", (CUstream))                                               \
	X(event_new, "cuEventCreate", (CUevent *, unsigned))                                       \
	X(event_record, "cuEventRecord", (CUevent, CUstream))                                      \
	X(event_sync, "cuEventSynchronize", (CUevent))                                             \
	X(event_time, "cuEventElapsedTime", (float *, CUevent, CUevent))
#define X(name, text, args) static CUresult(*name) args;
CALLS(X)
#undef X

static CUcontext ctx;
static _Atomic int failed, wrong;

static void need(CUresult result)
{
	if (result != CUDA_SUCCESS)
		atomic_store(&failed, 1);
}

static void must(int ok, const char *what)
{
	if (!ok && !atomic_load(&failed) && !atomic_exchange(&wrong, 1))
		fprintf(stderr, "wrong: %s\n", what);
}

/* Returns a buffer whose guard follows immediately. */
struct guarded {
	unsigned char *base, *data;
	size_t size;
};

static struct guarded guarded_new(size_t size)
{
	struct guarded g = { .base = malloc(size + 2 * GUARD), .size = size };

	if (!g.base)
		_exit(2);
	memset(g.base, 0xa5, size + 2 * GUARD);
	g.data = g.base + GUARD;
	return g;
}

static void guarded_check(const struct guarded *g)
{
	for (size_t i = 0; i < GUARD; i++)
		if (g->base[i] != 0xa5 || g->data[g->size + i] != 0xa5) {
			fprintf(stderr, "a guard of %zu bytes was overwritten\n", g->size);
			_exit(9);
		}
}

static void read_back(CUdeviceptr from, struct guarded *to, size_t size, unsigned char add)
{
	memset(to->data, 0, size);
	need(down(to->data, from, size));
	guarded_check(to);
	for (size_t i = 0; i < size; i++)
		if (to->data[i] != (unsigned char)((i * 7 >> 4) + add)) {
			must(0, "bytes that were read back");
			return;
		}
}

/* Small results on the stack, as in programs. */
static void small_answers(void)
{
	struct {
		unsigned char before[GUARD];
		size_t left, total, heap;
		unsigned char after[GUARD];
	} s;

	memset(&s, 0xa5, sizeof s);
	need(info(&s.left, &s.total));
	need(info(&s.left, &s.total)); /* from now on the control thread asks too */
	need(limit(&s.heap, CU_LIMIT_MALLOC_HEAP_SIZE));
	for (size_t i = 0; i < GUARD; i++)
		if (s.before[i] != 0xa5 || s.after[i] != 0xa5)
			_exit(9);
}

static void called(void *user)
{
	atomic_fetch_add((_Atomic int *)user, 1);
}

static void streams_and_events(unsigned worker)
{
	static _Atomic int counts[3]; /* static: a function may be called late */
	_Atomic int *calls = &counts[worker];
	CUstream stream = NULL;
	CUevent first = NULL, last = NULL;
	int before = atomic_load(calls);
	float ms = -1;

	need(stream_new(&stream, 1));
	need(event_new(&first, 0));
	need(event_new(&last, 0));
	need(event_record(first, stream));
	need(host(stream, called, (void *)calls));
	need(event_record(last, stream));
	stream_query(stream);
	need(stream_sync(stream));
	need(event_sync(last));
	need(event_time(&ms, first, last));
	must(atomic_load(calls) == before + 1, "the host function did not run once");
	need(stream_drop(stream));
}

static void modules(CUdeviceptr p)
{
	struct guarded logs[2] = { guarded_new(512), guarded_new(512) };
	CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { logs[0].data, (void *)512, logs[1].data, (void *)512 };
	unsigned n = 3;
	void *args[] = { &p, &n };
	CUfunction add = NULL;
	CUmodule module = NULL;
	CUdeviceptr total = 0;
	uint32_t word = 0;
	size_t size = 0;
	int threads = 0;

	need(load(&module, ptx, 4, options, values));
	guarded_check(&logs[0]);
	guarded_check(&logs[1]);
	if (module) {
		need(function(&add, module, "add"));
		need(global(&total, &size, module, "total"));
		must(size == 4, "the size of a global");
		if (size == 4 && total)
			need(down(&word, total, sizeof word));
		must(word == 5, "the value of a global");
	}
	if (add) {
		need(attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add));
		must(threads > 0, "an attribute");
		need(launch(add, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
		need(ctx_sync());
	}
	if (module)
		need(unload(module));
	free(logs[0].base);
	free(logs[1].base);
}

static void *work(void *argument)
{
	unsigned char add = *(unsigned char *)argument;
	struct guarded big = guarded_new(LARGE), back = guarded_new(LARGE),
		       medium = guarded_new(MEDIUM), small = guarded_new(24);
	CUdeviceptr p = 0, q = 0;

	need(set(ctx));
	need(alloc(&p, LARGE));
	need(alloc(&q, 4096));
	for (size_t i = 0; i < LARGE; i++)
		big.data[i] = (unsigned char)((i * 7 >> 4) + add);
	for (int round = 0; round < ROUNDS && !atomic_load(&failed); round++) {
		need(up(p, big.data, LARGE));
		small_answers();
		read_back(p, &small, 24, add);
		read_back(p, &medium, MEDIUM, add);
		read_back(p, &back, LARGE, add);
		streams_and_events(add);
		modules(q);
	}
	if (p)
		need(release(p));
	if (q)
		need(release(q));
	free(big.base);
	free(back.base);
	free(medium.base);
	free(small.base);
	return NULL;
}

int main(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	unsigned char first = 1, second = 2;
	pthread_t thread;

	alarm(DEADLINE_S);
	if (!library)
		return 2;
#define X(name, text, args)                     \
	*(void **)&name = dlsym(library, text); \
	if (!name)                              \
		return 2;
	CALLS(X)
#undef X
	if (init(0) != CUDA_SUCCESS || retain(&ctx, 0) != CUDA_SUCCESS ||
		pthread_create(&thread, NULL, work, &first) != 0)
		return 3;
	work(&second);
	pthread_join(thread, NULL);
	return atomic_load(&failed) ? 3 : atomic_load(&wrong) ? 4 : 0;
}
