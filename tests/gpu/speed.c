/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures what driver calls cost, on a driver in this process or, under `outboard run`, on that
 * of a server. Prints medians and 99th percentiles, one JSON object per line: name, value, unit,
 * and whether less is better.
 *
 *     gpu-speed [-l LIBRARY] [-s]        -s: few samples and small sizes, to test this program
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cuda_types.h"

#define SAMPLES_MAX 4000u
#define ROUNDS      5u
#define LARGEST     ((size_t)256 << 20)
#define SMALLEST    ((size_t)4 << 10)

#define CALLS(X)                                                                                   \
	X(cuInit, (unsigned))                                                                      \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
	X(cuCtxSetCurrent, (CUcontext))                                                            \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuModuleLoadData, (CUmodule *, const void *))                                            \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
	X(cuLaunchKernel,                                                                          \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **, void **))                                               \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                  \
	X(cuMemFree_v2, (CUdeviceptr))                                                             \
	X(cuMemAllocHost_v2, (void **, size_t))                                                    \
	X(cuMemFreeHost, (void *))                                                                 \
	X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                    \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                          \
	X(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t))                                     \
	X(cuMemGetInfo_v2, (size_t *, size_t *))                                                   \
	X(cuStreamCreate, (CUstream *, unsigned))                                                  \
	X(cuStreamDestroy_v2, (CUstream))                                                          \
	X(cuEventCreate, (CUevent *, unsigned))                                                    \
	X(cuEventRecord, (CUevent, CUstream))                                                      \
	X(cuEventSynchronize, (CUevent))

static struct {
#define FIELD(name, args) CUresult(*name) args;
	CALLS(FIELD)
#undef FIELD
} cu;

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry nothing(.param .u64 a, .param .u32 b, .param .u32 c)\n{\n\tret;\n}\n";
static CUfunction nothing;
static CUdeviceptr device[2];
static CUevent event;
static unsigned samples = 2000, many = 100000;
static size_t largest = LARGEST;

static void need(CUresult result, const char *what)
{
	if (result) {
		fprintf(stderr, "gpu-speed: %s returned CUDA error %d\n", what, (int)result);
		exit(1);
	}
}
#define NEED(name, ...) need(cu.name(__VA_ARGS__), #name)

static void tell(const char *name, double value, const char *unit, bool less)
{
	printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"less\": %s}\n", name, value,
		unit, less ? "true" : "false");
	fflush(stdout);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
	qsort(values, n, sizeof *values, ascending);
	return values[n / 2];
}

static double since_us(uint64_t began)
{
	return (double)(ob_clock_ns() - began) / 1e3;
}

static void launch(void)
{
	CUdeviceptr a = 0;
	unsigned b = 1, c = 2;

	NEED(cuLaunchKernel, nothing, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){ &a, &b, &c }, NULL);
}

static void launch_and_wait(void)
{
	launch();
	NEED(cuCtxSynchronize);
}

static void ask(void)
{
	size_t left, total;

	NEED(cuMemGetInfo_v2, &left, &total);
}

static void pair(void)
{
	CUdeviceptr p;

	NEED(cuMemAlloc_v2, &p, 1 << 20);
	NEED(cuMemFree_v2, p);
}

static void stream_pair(void)
{
	CUstream s;

	NEED(cuStreamCreate, &s, 1);
	NEED(cuStreamDestroy_v2, s);
}

static void event_and_wait(void)
{
	NEED(cuEventRecord, event, NULL);
	NEED(cuEventSynchronize, event);
}

static void each(const char *name, void (*call)(void))
{
	static double us[SAMPLES_MAX];
	char text[128];

	for (unsigned i = 0; i < 20; i++)
		call();
	NEED(cuCtxSynchronize);
	for (unsigned i = 0; i < samples; i++) {
		uint64_t began = ob_clock_ns();

		call();
		us[i] = since_us(began);
	}
	tell(name, median(us, samples), "us", true);
	snprintf(text, sizeof text, "%s, 99%%", name);
	tell(text, us[samples * 99 / 100], "us", true);
	NEED(cuCtxSynchronize);
}

static void launches(void)
{
	double issue[ROUNDS], whole[ROUNDS];

	for (unsigned r = 0; r < ROUNDS; r++) {
		uint64_t began = ob_clock_ns();

		for (unsigned i = 0; i < many; i++)
			launch();
		issue[r] = since_us(began) * 1e3 / many;
		NEED(cuCtxSynchronize);
		whole[r] = many / since_us(began);
	}
	tell("launch, caller's time", median(issue, ROUNDS), "ns", true);
	tell("launches until done", median(whole, ROUNDS), "M/s", false);
}

static void copies(const char *kind, char *host)
{
	char name[64];

	for (size_t bytes = SMALLEST; bytes <= largest; bytes *= 16) {
		double rate[2][ROUNDS];
		unsigned count = (unsigned)(bytes < largest ? (32 << 20) / bytes : 1);

		count = count < 1 ? 1 : count > 200 ? 200 : count;
		for (unsigned r = 0; r <= ROUNDS; r++)
			for (unsigned down = 0; down < 2; down++) {
				uint64_t began = ob_clock_ns();

				for (unsigned i = 0; i < count; i++)
					if (down)
						NEED(cuMemcpyDtoH_v2, host, device[0], bytes);
					else
						NEED(cuMemcpyHtoD_v2, device[0], host, bytes);
				NEED(cuCtxSynchronize);
				rate[down][r ? r - 1 : 0] =
					(double)bytes * count / since_us(began) / 1e3;
			}
		for (unsigned down = 0; down < 2; down++) {
			snprintf(name, sizeof name, "%s %s, %zu KiB", kind, down ? "DtoH" : "HtoD",
				bytes >> 10);
			tell(name, median(rate[down], ROUNDS), "GB/s", false);
		}
	}
}

static void on_the_device(void)
{
	double rate[ROUNDS];

	for (unsigned r = 0; r < ROUNDS; r++) {
		uint64_t began = ob_clock_ns();

		for (unsigned i = 0; i < 8; i++)
			NEED(cuMemcpyDtoD_v2, device[1], device[0], largest);
		NEED(cuCtxSynchronize);
		rate[r] = 8.0 * (double)largest / since_us(began) / 1e3;
	}
	tell("DtoD, bytes moved once", median(rate, ROUNDS), "GB/s", false);
}

static void start(const char *path)
{
	uint64_t began = ob_clock_ns();
	void *library = dlopen(path, RTLD_NOW), *found;
	CUcontext context;
	CUmodule module;

	if (!library) {
		fprintf(stderr, "gpu-speed: %s\n", dlerror());
		exit(2);
	}
#define LOOK_UP(name, args)                                               \
	found = dlsym(library, #name);                                    \
	if (!found) {                                                     \
		fprintf(stderr, "gpu-speed: %s lacks %s\n", path, #name); \
		exit(2);                                                  \
	}                                                                 \
	*(void **)&cu.name = found;
	CALLS(LOOK_UP)
#undef LOOK_UP
	NEED(cuInit, 0);
	tell("start: library and cuInit", since_us(began) / 1e3, "ms", true);
	began = ob_clock_ns();
	NEED(cuDevicePrimaryCtxRetain, &context, 0);
	NEED(cuCtxSetCurrent, context);
	NEED(cuCtxSynchronize);
	tell("start: context", since_us(began) / 1e3, "ms", true);
	began = ob_clock_ns();
	NEED(cuModuleLoadData, &module, ptx);
	NEED(cuModuleGetFunction, &nothing, module, "nothing");
	launch_and_wait();
	tell("start: module and first launch", since_us(began) / 1e3, "ms", true);
}

int main(int argc, char **argv)
{
	const char *path = "libcuda.so.1";
	char *pageable;
	void *pinned;
	int c;

	while ((c = getopt(argc, argv, "l:s")) != -1) {
		if (c == 'l') {
			path = optarg;
		} else if (c == 's') {
			samples = 100;
			many = 1000;
			largest = 1 << 20;
		} else {
			return 2;
		}
	}
	start(path);
	pageable = malloc(largest);
	if (!pageable)
		return 1;
	for (size_t i = 0; i < largest; i += 8)
		*(uint64_t *)(pageable + i) = i * 0x9e3779b97f4a7c15;
	NEED(cuMemAlloc_v2, &device[0], largest);
	NEED(cuMemAlloc_v2, &device[1], largest);
	NEED(cuMemAllocHost_v2, &pinned, largest);
	memcpy(pinned, pageable, largest);
	NEED(cuEventCreate, &event, 2);
	launches();
	each("launch and wait", launch_and_wait);
	each("a call that needs an answer", ask);
	each("event, record and wait", event_and_wait);
	each("allocate and free 1 MiB", pair);
	each("stream, create and destroy", stream_pair);
	copies("pageable", pageable);
	copies("pinned", pinned);
	on_the_device();
	NEED(cuMemFreeHost, pinned);
	free(pageable);
	return 0;
}
