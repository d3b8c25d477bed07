/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that makes the server allocate more and more of one kind of resource, until a call is
 * refused or a fixed number is reached. Then it frees everything and uses the device normally. It
 * prints how many it got and whether the session still works, then waits for a line on stdin, so
 * that the test can inspect the worker.
 *
 *     bombs launches | prints | streams | events | contexts | images | uploads | copies | threads
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cuda_types.h"
#include "tests/e2e/calls.h"

#define PARAM_BYTES   4000u
#define ROUND         64 /* asynchronous calls between two that are answered */
#define THINGS_MAX    400000
#define UPLOAD_PIECE  ((size_t)1 << 20)
#define UPLOAD_PIECES 400
#define THREADS       200
#define COPIERS       12
#define COPIES        4
#define COPY_BYTES    ((size_t)4 << 20)
#define LINE          1000u /* bytes */
#define PRINTS        50
#define PRINT_LINES   2000u /* in each kernel */

/* %s: the printed line, as numbers. */
static const char pattern[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
	".global .align 1 .b8 text[] = {%s10,0};\n"
	/* runs until the flag is set */
	".visible .entry hold(.param .u64 flag)\n{\n\t.reg .u64 %%a;\n\t.reg .u32 %%v;\n\t.reg "
	".pred %%p;\n"
	"\tld.param.u64 %%a, [flag];\nagain:\n\tld.volatile.global.u32 %%v, [%%a];\n\tsetp.eq.u32 "
	"%%p, %%v, 0;\n\t@%%p bra again;\n\tret;\n}\n"
	".visible .entry spin(.param .u32 n)\n{\n\t.reg .u32 %%i, %%n;\n\t.reg .pred "
	"%%p;\n\tld.param.u32 %%n, [n];\n\tmov.u32 %%i, 0;\n"
	"again:\n\tadd.u32 %%i, %%i, 1;\n\tsetp.lt.u32 %%p, %%i, %%n;\n\t@%%p bra "
	"again;\n\tret;\n}\n"
	".visible .entry large(.param .align 8 .b8 p[4000])\n{\n\tret;\n}\n"
	".visible .entry put(.param .u64 at, .param .u32 v)\n{\n\t.reg .u64 %%a;\n\t.reg .u32 "
	"%%v;\n"
	"\tld.param.u64 %%a, [at];\n\tld.param.u32 %%v, [v];\n\tst.global.u32 [%%a], "
	"%%v;\n\tret;\n}\n"
	".visible .entry print(.param .u32 n)\n{\n\t.reg .u64 %%t;\n\t.reg .u32 %%i, %%n;\n\t.reg "
	".pred %%p;\n"
	"\tld.param.u32 %%n, [n];\n\tmov.u32 %%i, 0;\n\tmov.u64 %%t, text;\n\tcvta.global.u64 %%t, "
	"%%t;\n"
	"again:\n\t{\n\t.param .b64 f;\n\t.param .b64 a;\n\t.param .b32 r;\n"
	"\tst.param.b64 [f], %%t;\n\tst.param.b64 [a], 0;\n\tcall.uni (r), vprintf, (f, a);\n\t}\n"
	"\tadd.u32 %%i, %%i, 1;\n\tsetp.lt.u32 %%p, %%i, %%n;\n\t@%%p bra again;\n\tret;\n}\n";

static char ptx[sizeof pattern + 3 * LINE];

static void ptx_make(void)
{
	static char line[3 * LINE];

	for (size_t i = 0; i < LINE - 1; i++)
		memcpy(line + 3 * i, "88,", 4);
	snprintf(ptx, sizeof ptx, pattern, line);
}

static struct {
	CUresult (*cuInit)(unsigned);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *, CUdevice);
	CUresult (*cuCtxSetCurrent)(CUcontext);
	CUresult (*cuCtxSynchronize)(void);
	CUresult (*cuCtxCreate_v2)(CUcontext *, unsigned, CUdevice);
	CUresult (*cuCtxDestroy_v2)(CUcontext);
	CUresult (*cuCtxPopCurrent_v2)(CUcontext *);
	CUresult (*cuCtxSetLimit)(CUlimit, size_t);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
	CUresult (*cuMemFree_v2)(CUdeviceptr);
	CUresult (*cuMemsetD32Async)(CUdeviceptr, unsigned, size_t, CUstream);
	CUresult (*cuMemcpyHtoDAsync_v2)(CUdeviceptr, const void *, size_t, CUstream);
	CUresult (*cuMemcpyHtoD_v2)(CUdeviceptr, const void *, size_t);
	CUresult (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
	CUresult (*cuStreamCreate)(CUstream *, unsigned);
	CUresult (*cuStreamDestroy_v2)(CUstream);
	CUresult (*cuStreamQuery)(CUstream);
	CUresult (*cuStreamSynchronize)(CUstream);
	CUresult (*cuEventCreate)(CUevent *, unsigned);
	CUresult (*cuEventDestroy_v2)(CUevent);
	CUresult (*cuModuleLoadData)(CUmodule *, const void *);
	CUresult (*cuModuleUnload)(CUmodule);
	CUresult (*cuModuleGetFunction)(CUfunction *, CUmodule, const char *);
	CUresult (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, unsigned, CUstream, void **, void **);
} cu;

static CUcontext context;
static CUmodule module;
static CUdeviceptr flag;
static CUstream held, beside;
static void *things[THINGS_MAX];

static void load(void)
{
	void *library = library_open();

#define LOAD(name) *(void **)&cu.name = dlsym(library, #name)
	LOAD(cuInit);
	LOAD(cuDevicePrimaryCtxRetain);
	LOAD(cuCtxSetCurrent);
	LOAD(cuCtxSynchronize);
	LOAD(cuCtxCreate_v2);
	LOAD(cuCtxDestroy_v2);
	LOAD(cuCtxPopCurrent_v2);
	LOAD(cuCtxSetLimit);
	LOAD(cuMemAlloc_v2);
	LOAD(cuMemFree_v2);
	LOAD(cuMemsetD32Async);
	LOAD(cuMemcpyHtoDAsync_v2);
	LOAD(cuMemcpyHtoD_v2);
	LOAD(cuMemcpyDtoH_v2);
	LOAD(cuStreamCreate);
	LOAD(cuStreamDestroy_v2);
	LOAD(cuStreamQuery);
	LOAD(cuStreamSynchronize);
	LOAD(cuEventCreate);
	LOAD(cuEventDestroy_v2);
	LOAD(cuModuleLoadData);
	LOAD(cuModuleUnload);
	LOAD(cuModuleGetFunction);
	LOAD(cuLaunchKernel);
#undef LOAD
}

/* Returns an error that occurred since the previous call: only the server can answer this. */
static CUresult ask(void)
{
	return cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024);
}

static CUresult asked_sometimes(CUresult result, int n)
{
	return result == CUDA_SUCCESS && n % ROUND == ROUND - 1 ? ask() : result;
}

static CUfunction function(const char *name)
{
	CUfunction f;

	need(cu.cuModuleGetFunction(&f, module, name), name);
	return f;
}

static void hold(void)
{
	void *params[] = { &flag };

	need(cu.cuMemsetD32Async(flag, 0, 1, NULL), "cuMemsetD32");
	need(cu.cuCtxSynchronize(), "cuCtxSynchronize");
	need(cu.cuLaunchKernel(function("hold"), 1, 1, 1, 1, 1, 1, 0, held, params, NULL), "hold");
}

static void release(void)
{
	cu.cuMemsetD32Async(flag, 1, 1, beside);
	cu.cuCtxSynchronize();
}

/* ---- the bombs: each returns how many it made; *ret: the result that ended it ---- */

static int launches(CUresult *ret)
{
	unsigned char block[PARAM_BYTES] = { 1 };
	size_t size = sizeof block;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
		CU_LAUNCH_PARAM_END };
	CUfunction f = function("large");
	int n = 0;

	hold();
	for (; n < THINGS_MAX && *ret == CUDA_SUCCESS; n++)
		*ret = asked_sometimes(
			cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, held, NULL, extra), n);
	release();
	return n;
}

/* Output that no call fetches: the program queries the end of a kernel, never its output. */
static int prints(CUresult *ret)
{
	unsigned lines = PRINT_LINES;
	void *params[] = { &lines };
	CUfunction f = function("print");
	int n = 0;

	for (; n < PRINTS && *ret == CUDA_SUCCESS; n++) {
		*ret = cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, held, params, NULL);
		while (*ret == CUDA_SUCCESS &&
			(*ret = cu.cuStreamQuery(held)) == CUDA_ERROR_NOT_READY)
			*ret = CUDA_SUCCESS;
	}
	return n;
}

static int streams(CUresult *ret)
{
	int n = 0;

	for (; n < THINGS_MAX && *ret == CUDA_SUCCESS; n++)
		*ret = asked_sometimes(
			cu.cuStreamCreate((CUstream *)&things[n], CU_STREAM_NON_BLOCKING), n);
	for (int i = 0; i < n; i++)
		if (things[i])
			cu.cuStreamDestroy_v2(things[i]);
	return n;
}

static int events(CUresult *ret)
{
	int n = 0;

	for (; n < THINGS_MAX && *ret == CUDA_SUCCESS; n++)
		*ret = asked_sometimes(cu.cuEventCreate((CUevent *)&things[n], 0), n);
	for (int i = 0; i < n; i++)
		if (things[i])
			cu.cuEventDestroy_v2(things[i]);
	return n;
}

static int contexts(CUresult *ret)
{
	CUcontext popped;
	int n = 0;

	for (; n < 3000 && *ret == CUDA_SUCCESS; n++) {
		*ret = cu.cuCtxCreate_v2((CUcontext *)&things[n], 0, 0);
		if (*ret == CUDA_SUCCESS)
			*ret = ask();
		cu.cuCtxPopCurrent_v2(&popped);
	}
	for (int i = 0; i < n; i++)
		if (things[i])
			cu.cuCtxDestroy_v2(things[i]);
	cu.cuCtxSetCurrent(context);
	return n;
}

/* All images differ, and each is unloaded at once: tests what the server keeps of them. */
static int images(CUresult *ret)
{
	const size_t size = (size_t)1 << 20;
	char *text = malloc(sizeof ptx + size + 64);
	CUmodule one;
	int n = 0;

	if (!text)
		exit(2);
	for (; n < 400 && *ret == CUDA_SUCCESS; n++) {
		size_t at = (size_t)snprintf(text, sizeof ptx + 64, "%s// %d ", ptx, n);
		uint32_t x = (uint32_t)n * 2654435761u + 1;

		for (size_t i = 0; i < size; i++) {
			x ^= x << 13, x ^= x >> 17, x ^= x << 5; /* incompressible */
			text[at + i] = (char)('0' + x % 64);
		}
		memcpy(text + at + size, "\n", 2);
		*ret = cu.cuModuleLoadData(&one, text);
		if (*ret == CUDA_SUCCESS)
			*ret = cu.cuModuleUnload(one);
		if (*ret == CUDA_SUCCESS)
			*ret = cu.cuCtxSynchronize();
	}
	free(text);
	return n;
}

/* Copies queued after a long kernel: they must wait in the client. */
static int uploads(CUresult *ret)
{
	const void *from = calloc(1, UPLOAD_PIECE);
	unsigned loops = 20000000;
	void *params[] = { &loops };
	CUdeviceptr to;
	int n = 0;

	need(cu.cuMemAlloc_v2(&to, UPLOAD_PIECE), "cuMemAlloc");
	need(cu.cuLaunchKernel(function("spin"), 1, 1, 1, 1, 1, 1, 0, held, params, NULL), "spin");
	for (; n < UPLOAD_PIECES && *ret == CUDA_SUCCESS; n++)
		*ret = cu.cuMemcpyHtoDAsync_v2(to, from, UPLOAD_PIECE, held);
	return n;
}

/* Large copies in both directions by many threads at once. */
static void *copier(void *result)
{
	char *host = calloc(1, COPY_BYTES);
	CUresult r = CUDA_SUCCESS;
	CUdeviceptr p;

	cu.cuCtxSetCurrent(context);
	r = cu.cuMemAlloc_v2(&p, COPY_BYTES);
	for (int i = 0; i < COPIES && r == CUDA_SUCCESS; i++) {
		host[i] = (char)i;
		r = cu.cuMemcpyHtoD_v2(p, host, COPY_BYTES);
		host[i] = 0;
		if (r == CUDA_SUCCESS)
			r = cu.cuMemcpyDtoH_v2(host, p, COPY_BYTES);
		if (r == CUDA_SUCCESS && host[i] != (char)i)
			r = CUDA_ERROR_UNKNOWN;
	}
	cu.cuMemFree_v2(p);
	free(host);
	*(CUresult *)result = r;
	return NULL;
}

static int copies(CUresult *ret)
{
	pthread_t ids[COPIERS];
	CUresult results[COPIERS];
	int good = 0;

	for (int i = 0; i < COPIERS; i++)
		pthread_create(&ids[i], NULL, copier, &results[i]);
	for (int i = 0; i < COPIERS; i++) {
		pthread_join(ids[i], NULL);
		good += results[i] == CUDA_SUCCESS;
		*ret = results[i] ? results[i] : *ret;
	}
	return good;
}

static pthread_barrier_t barrier;

/* Each waiting call has its own thread in the server. */
static void *thread(void *result)
{
	unsigned value = 1;
	void *params[] = { &flag, &value };
	CUresult r = cu.cuCtxSetCurrent(context);

	pthread_barrier_wait(&barrier);
	if (r == CUDA_SUCCESS)
		r = cu.cuLaunchKernel(function("put"), 1, 1, 1, 1, 1, 1, 0, held, params, NULL);
	*(CUresult *)result = r == CUDA_SUCCESS ? cu.cuStreamSynchronize(held) : r;
	pthread_barrier_wait(&barrier);
	return NULL;
}

static int threads(CUresult *ret)
{
	static pthread_t ids[THREADS];
	static CUresult results[THREADS];
	int good = 0;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, thread, &results[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(ids[i], NULL);
		good += results[i] == CUDA_SUCCESS;
		*ret = results[i] ? results[i] : *ret;
	}
	return good;
}

static const struct {
	const char *name;
	int (*run)(CUresult *ret);
} bombs[] = { { "launches", launches }, { "prints", prints }, { "streams", streams },
	{ "events", events }, { "contexts", contexts }, { "images", images },
	{ "uploads", uploads }, { "copies", copies }, { "threads", threads } };

/* A kernel writes a number, which is read back. */
static bool works(void)
{
	unsigned value = 42, back = 0;
	void *params[] = { &flag, &value };
	CUresult result;

	cu.cuCtxSynchronize(); /* reports earlier refusals, once */
	result = cu.cuLaunchKernel(function("put"), 1, 1, 1, 1, 1, 1, 0, held, params, NULL);
	if (result == CUDA_SUCCESS)
		result = cu.cuCtxSynchronize();
	if (result == CUDA_SUCCESS)
		result = cu.cuMemcpyDtoH_v2(&back, flag, sizeof back);
	return result == CUDA_SUCCESS && back == value;
}

int main(int argc, char **argv)
{
	CUresult result = CUDA_SUCCESS;
	char line[16];
	int n = 0;

	load();
	ptx_make();
	need(cu.cuInit(0), "cuInit");
	need(cu.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	need(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
	need(cu.cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	need(cu.cuMemAlloc_v2(&flag, 4096), "cuMemAlloc");
	need(cu.cuStreamCreate(&held, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	need(cu.cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	need(works() ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "before");
	for (size_t i = 0; i < ob_count(bombs); i++)
		if (argc > 1 && strcmp(argv[1], bombs[i].name) == 0)
			n = bombs[i].run(&result);
	fprintf(stderr, "made %d result %d works %d\n", n, (int)result, works());
	if (!fgets(line, sizeof line, stdin))
		return 1;
	return 0;
}
