/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/bench/bench.h"

#include "base/text.h"

#define STREAM_NON_BLOCKING 1u

struct bench_driver cu;
CUcontext bench_context;
const char bench_image[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			   ".visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, "
			   ".param .u32 n)\n{\n\tret;\n}\n";

static CUfunction kernel;

void bench_open(void)
{
	void *library = library_open();
	CUmodule module;

#define X(name, parameters)                                                      \
	*(void **)&cu.name = dlsym(library, #name);                              \
	if (!cu.name) {                                                          \
		fprintf(stderr, "the library that was found lacks " #name "\n"); \
		exit(2);                                                         \
	}
	BENCH_CALLS(X)
#undef X
	NEED(cu.cuInit(0));
	NEED(cu.cuDevicePrimaryCtxRetain(&bench_context, 0));
	NEED(cu.cuCtxSetCurrent(bench_context));
	NEED(cu.cuModuleLoadData(&module, bench_image));
	NEED(cu.cuModuleGetFunction(&kernel, module, "nothing"));
	NEED(cu.cuCtxSynchronize());
}

void bench_launch(CUstream stream)
{
	CUdeviceptr address = 0;
	int n = 1024;
	void *params[] = { &address, &address, &address, &n };

	NEED(cu.cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, stream, params, NULL));
}

CUstream bench_stream(void)
{
	CUstream stream;

	NEED(cu.cuStreamCreate(&stream, STREAM_NON_BLOCKING));
	return stream;
}

void bench_say(const char *name, double value)
{
	printf("%s %.6g\n", name, value);
	fflush(stdout);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double bench_percentile(uint64_t *samples, size_t n, double fraction)
{
	qsort(samples, n, sizeof *samples, by_size);
	return (double)samples[(size_t)((double)(n - 1) * fraction)];
}

unsigned bench_number(const char *text)
{
	uint64_t number;

	if (!ob_text_parse_number(text, 0, UINT32_MAX, &number)) {
		fprintf(stderr, "%s is not a number\n", text);
		exit(2);
	}
	return (unsigned)number;
}

void bench_fill(void *memory, size_t size)
{
	uint64_t *words = memory, x = 0x9e3779b97f4a7c15ull;

	for (size_t i = 0; i < size / sizeof *words; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		words[i] = x;
	}
}
