/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the programs that tools/dev/measure runs: the CUDA functions of the libcuda.so.1 that
 * the loader finds, one context with one empty kernel, and lines of the form "name value". A call
 * that fails ends the program with exit code 1.
 */
#ifndef OB_TESTS_BENCH_H
#define OB_TESTS_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "tests/e2e/calls.h"

/* The CUDA functions that are called, one per line. */
#define BENCH_CALLS(X)                                                                             \
	X(cuInit, (unsigned))                                                                      \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
	X(cuCtxSetCurrent, (CUcontext))                                                            \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                  \
	X(cuMemFree_v2, (CUdeviceptr))                                                             \
	X(cuMemHostAlloc, (void **, size_t, unsigned))                                             \
	X(cuMemFreeHost, (void *))                                                                 \
	X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                    \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                          \
	X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))                     \
	X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                           \
	X(cuStreamCreate, (CUstream *, unsigned))                                                  \
	X(cuStreamSynchronize, (CUstream))                                                         \
	X(cuStreamQuery, (CUstream))                                                               \
	X(cuEventCreate, (CUevent *, unsigned))                                                    \
	X(cuEventRecord, (CUevent, CUstream))                                                      \
	X(cuEventQuery, (CUevent))                                                                 \
	X(cuEventSynchronize, (CUevent))                                                           \
	X(cuEventElapsedTime, (float *, CUevent, CUevent))                                         \
	X(cuModuleLoadData, (CUmodule *, const void *))                                            \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
	X(cuModuleUnload, (CUmodule))                                                              \
	X(cuLaunchKernel,                                                                          \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **, void **))

struct bench_driver {
#define X(name, parameters) CUresult(*name) parameters;
	BENCH_CALLS(X)
#undef X
};

extern struct bench_driver cu;
extern CUcontext bench_context;
extern const char bench_image[]; /* the PTX of the kernel, for programs that load more modules */

#define NEED(call) need(call, #call)

/* Opens library, context and kernel. After it returns, the server has executed everything. */
void bench_open(void);
void bench_launch(CUstream stream);
/* A stream that does not synchronise with the default stream. */
CUstream bench_stream(void);
/* Prints one line, at once. */
void bench_say(const char *name, double value);
/* The value below which this fraction of n samples lies. Sorts them. */
double bench_percentile(uint64_t *samples, size_t n, double fraction);
/* A number of the command line. One that is none ends the program. */
unsigned bench_number(const char *text);
/* Fills memory with what does not compress. size: a multiple of 8. */
void bench_fill(void *memory, size_t size);

#endif
