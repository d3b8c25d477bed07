/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that allocates as much as it can of one kind of resource and prints how much it got.
 * Used by tests of limits.
 *
 *     limits info | memory HOW | handles N | modules N | code N | threads N | idle SECONDS |
 *            spin SECONDS | refusals N | launches N | fill
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cuda_types.h"
#include "tests/e2e/calls.h"
#include "tests/waiting.h"

#define PIECE      (4u << 20)
#define PIECES_MAX 4096

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry spin(.param .u32 n)\n{\n\t.reg .u32 %r<4>;\n\t.reg .pred %p;\n"
	"\tld.param.u32 %r1, [n];\n\tmov.u32 %r2, 0;\n"
	"loop:\n\tadd.u32 %r2, %r2, 1;\n\tsetp.lt.u32 %p, %r2, %r1;\n\t@%p bra loop;\n\tret;\n}\n";

static struct {
	CUresult (*cuInit)(unsigned);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
	CUresult (*cuCtxSetCurrent)(CUcontext);
	CUresult (*cuCtxSynchronize)(void);
	CUresult (*cuStreamSynchronize)(CUstream);
	CUresult (*cuDeviceTotalMem_v2)(size_t *, CUdevice);
	CUresult (*cuMemGetInfo_v2)(size_t *, size_t *);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
	CUresult (*cuMemAllocPitch_v2)(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
	CUresult (*cuMemAllocAsync)(CUdeviceptr *, size_t, CUstream);
	CUresult (*cuMemFree_v2)(CUdeviceptr);
	CUresult (*cuMemsetD8_v2)(CUdeviceptr, unsigned char, size_t);
	CUresult (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
	CUresult (*cuEventCreate)(CUevent *, unsigned);
	CUresult (*cuEventRecord)(CUevent, CUstream);
	CUresult (*cuModuleLoadData)(CUmodule *, const void *);
	CUresult (*cuModuleGetFunction)(CUfunction *, CUmodule, const char *);
	CUresult (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, unsigned, CUstream, void **, void **);
	CUresult (*cuCtxSetLimit)(CUlimit, size_t);
} cu;

static CUcontext context;

static void load(void)
{
	void *library = library_open();

#define LOAD(name) *(void **)&cu.name = dlsym(library, #name)
	LOAD(cuInit);
	LOAD(cuDevicePrimaryCtxRetain);
	LOAD(cuCtxSetCurrent);
	LOAD(cuCtxSynchronize);
	LOAD(cuStreamSynchronize);
	LOAD(cuDeviceTotalMem_v2);
	LOAD(cuMemGetInfo_v2);
	LOAD(cuMemAlloc_v2);
	LOAD(cuMemAllocPitch_v2);
	LOAD(cuMemAllocAsync);
	LOAD(cuMemFree_v2);
	LOAD(cuMemsetD8_v2);
	LOAD(cuMemcpyDtoH_v2);
	LOAD(cuEventCreate);
	LOAD(cuEventRecord);
	LOAD(cuModuleLoadData);
	LOAD(cuModuleGetFunction);
	LOAD(cuLaunchKernel);
	LOAD(cuCtxSetLimit);
#undef LOAD
}

/* A call that only the server can answer. */
static CUresult ask(void)
{
	return cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024);
}

static void info(void)
{
	size_t total = 0, left = 0, all = 0;

	need(cu.cuDeviceTotalMem_v2(&total, 0), "cuDeviceTotalMem");
	need(cu.cuMemGetInfo_v2(&left, &all), "cuMemGetInfo");
	printf("total %zu info %zu free %zu\n", total, all, left);
}

static CUresult one(const char *how, CUdeviceptr *ret)
{
	size_t pitch;

	if (strcmp(how, "pitch") == 0)
		return cu.cuMemAllocPitch_v2(ret, &pitch, 4096, PIECE / 4096, 4);
	if (strcmp(how, "async") == 0)
		return cu.cuMemAllocAsync(ret, PIECE, NULL);
	return cu.cuMemAlloc_v2(ret, PIECE);
}

/*
 * Allocates until the limit, then frees everything. All of it must be available again: no byte may
 * stay charged.
 */
static void memory(const char *how)
{
	static CUdeviceptr pieces[PIECES_MAX];
	unsigned char byte = 0;

	for (int round = 0; round < 2; round++) {
		int n = 0;
		CUresult result = CUDA_SUCCESS;

		while (n < PIECES_MAX && (result = one(how, &pieces[n])) == CUDA_SUCCESS) {
			need(cu.cuMemsetD8_v2(pieces[n], (unsigned char)(n + 1), PIECE),
				"cuMemsetD8");
			n++;
		}
		for (int i = 0; i < n; i++) {
			need(cu.cuMemcpyDtoH_v2(&byte, pieces[i] + PIECE - 1, 1), "cuMemcpyDtoH");
			if (byte != (unsigned char)(i + 1))
				printf("piece %d is damaged\n", i);
		}
		printf("got %lld result %d\n", (long long)n * PIECE, (int)result);
		info();
		while (n > 0)
			need(cu.cuMemFree_v2(pieces[--n]), "cuMemFree");
	}
}

static void handles(int n)
{
	CUevent event;
	int made = 0;
	CUresult result = CUDA_SUCCESS;

	for (; made < n && result == CUDA_SUCCESS; made++) {
		result = cu.cuEventCreate(&event, 0);
		if (result == CUDA_SUCCESS)
			result = cu.cuEventRecord(event, NULL);
		if (result == CUDA_SUCCESS && made % 8 == 7)
			/* creating is asynchronous: a failure is reported here */
			result = cu.cuCtxSynchronize();
	}
	if (result == CUDA_SUCCESS)
		result = cu.cuCtxSynchronize();
	printf("handles %d result %d\n", made, (int)result);
}

static void modules(int n)
{
	CUmodule module;
	CUresult result = CUDA_SUCCESS;
	int made = 0;

	for (; made < n && result == CUDA_SUCCESS; made++) {
		result = cu.cuModuleLoadData(&module, ptx);
		if (result == CUDA_SUCCESS)
			result = cu.cuCtxSynchronize();
	}
	printf("modules %d result %d\n", made, (int)result);
}

#define CODE_LINES 20000

/*
 * Loads modules of about 400 KB of text each, all different, until one is refused. Then makes a
 * call that allocates nothing.
 */
static void code(int n)
{
	char *text = malloc(sizeof ptx + CODE_LINES * 24 + 64);
	CUresult result = CUDA_SUCCESS;
	CUmodule module;
	int made = 0;

	if (!text)
		exit(2);
	for (; made < n && result == CUDA_SUCCESS; made++) {
		size_t size = (size_t)snprintf(text, 256,
			".version 7.0\n.target sm_50\n.address_size 64\n// %d\n"
			".visible .entry k()\n{\n\t.reg .u32 %%r<4>;\n",
			made);

		for (int i = 0; i < CODE_LINES; i++)
			size += (size_t)snprintf(
				text + size, 24, "add.u32 %%r1,%%r1,%d;\n", i % 10);
		memcpy(text + size, "ret;\n}\n", sizeof "ret;\n}\n");
		result = cu.cuModuleLoadData(&module, text);
		if (result == CUDA_SUCCESS)
			result = cu.cuCtxSynchronize();
	}
	printf("code %d result %d\n", made, (int)result);
	printf("after %d\n", (int)ask());
	free(text);
}

static pthread_barrier_t barrier;

static void *thread(void *result)
{
	cu.cuCtxSetCurrent(context);
	*(CUresult *)result = ask();
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void threads(int n)
{
	pthread_t ids[64];
	CUresult results[64];
	int good = 0, refused = 0;

	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		pthread_create(&ids[i], NULL, thread, &results[i]);
	for (int i = 0; i < n; i++) {
		pthread_join(ids[i], NULL);
		good += results[i] == CUDA_SUCCESS;
		refused += results[i] == CUDA_ERROR_OUT_OF_MEMORY;
	}
	printf("threads %d good %d refused, after %d\n", good, refused, (int)ask());
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Launches as fast as possible for the given time. Returns how many launches were executed. */
static void spin(double seconds)
{
	/* some milliseconds, so that the device is the bottleneck, not the wire */
	unsigned loops = 300000, done = 0;
	void *params[] = { &loops };
	CUfunction function;
	CUmodule module;
	double began;

	need(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	need(cu.cuModuleGetFunction(&function, module, "spin"), "cuModuleGetFunction");
	need(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
		"cuLaunchKernel");
	need(cu.cuCtxSynchronize(), "cuCtxSynchronize");
	for (began = now(); now() - began < seconds; done += 4) {
		for (int i = 0; i < 4; i++)
			need(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
				"cuLaunchKernel");
		need(cu.cuCtxSynchronize(), "cuCtxSynchronize");
	}
	printf("launches %u in %.3f\n", done, now() - began);
}

/* Repeatedly requests more than its limit. */
static void fill(void)
{
	CUdeviceptr p;

	need(cu.cuMemAlloc_v2(&p, PIECE), "cuMemAlloc");
	need(cu.cuMemsetD8_v2(p, 1, PIECE), "cuMemsetD8");
	need(cu.cuStreamSynchronize(NULL), "cuStreamSynchronize");
}

/* One after another; prints a line after each. */
static void launches(int n)
{
	unsigned loops = 10;
	void *params[] = { &loops };
	CUfunction function;
	CUmodule module;

	setvbuf(stdout, NULL, _IOLBF, 0);
	need(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	need(cu.cuModuleGetFunction(&function, module, "spin"), "cuModuleGetFunction");
	for (int i = 0; i < n; i++) {
		need(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
			"cuLaunchKernel");
		need(cu.cuCtxSynchronize(), "cuCtxSynchronize");
		puts("launched");
	}
}

static void refusals(int n)
{
	double began = now();
	CUresult result = CUDA_SUCCESS;
	CUdeviceptr p;
	int refused = 0;

	for (int i = 0; i < n; i++) {
		result = cu.cuMemAlloc_v2(&p, 1ull << 40);
		refused += result == CUDA_ERROR_OUT_OF_MEMORY;
	}
	printf("refused %d last %d in %.3f\n", refused, (int)result, now() - began);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "info", *how = argc > 2 ? argv[2] : "";
	int n = (int)strtol(how, NULL, 10);

	load();
	need(cu.cuInit(0), "cuInit");
	need(cu.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	need(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
	if (strcmp(what, "info") == 0)
		info();
	else if (strcmp(what, "memory") == 0)
		memory(how);
	else if (strcmp(what, "handles") == 0)
		handles(n);
	else if (strcmp(what, "modules") == 0)
		modules(n);
	else if (strcmp(what, "code") == 0)
		code(n);
	else if (strcmp(what, "threads") == 0)
		threads(n < 1 || n > 64 ? 1 : n);
	else if (strcmp(what, "spin") == 0)
		spin(atof(how));
	else if (strcmp(what, "fill") == 0)
		fill();
	else if (strcmp(what, "launches") == 0)
		launches(n);
	else if (strcmp(what, "refusals") == 0)
		refusals(n);
	else if (strcmp(what, "heap") == 0)
		printf("heap %d\n",
			(int)cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)n << 20));
	if (strcmp(what, "idle") == 0) {
		need(cu.cuCtxSynchronize(), "cuCtxSynchronize");
		let_pass((unsigned)(atof(how) * 1e6), "idleness is what is measured");
		printf("after %d\n", (int)ask());
	}
	return 0;
}
