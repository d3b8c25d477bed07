/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the programs that build graphs with the driver API: a context with a stream, device memory
 * and a kernel that adds 1 to each of LENGTH numbers, and parameters of nodes.
 */
#ifndef TESTS_PROGRAMS_GRAPHS_H
#define TESTS_PROGRAMS_GRAPHS_H

#include "driver.h"

enum { LENGTH = 128, BYTES = LENGTH * 4 };

static CUcontext context;
static CUmodule module;
static CUfunction bounded;
static CUdeviceptr a, b; /* BYTES each, one after the other */
static CUstream stream;
static int got[2 * LENGTH];

static inline void graphs_begin(void)
{
	CUdevice device;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoad(&module, beside("driver_kernels.ptx")));
	CU(cuModuleGetFunction(&bounded, module, "bounded"));
	CU(cuMemAlloc(&a, 2 * (size_t)BYTES));
	b = a + BYTES;
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static inline int graphs_end(const char *program)
{
	CU(cuMemFree(a));
	CU(cuStreamDestroy(stream));
	CU(cuModuleUnload(module));
	CU(cuDevicePrimaryCtxRelease(0));
	return verdict(program);
}

/* A launch of `bounded` on *data. The parameters point to both arguments. */
static inline CUDA_KERNEL_NODE_PARAMS increment(CUdeviceptr *data, void **args)
{
	CUDA_KERNEL_NODE_PARAMS kernel = { .func = bounded,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = LENGTH,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = args };

	args[0] = data;
	return kernel;
}

static inline CUDA_MEMSET_NODE_PARAMS filled(CUdeviceptr dst, unsigned value)
{
	return (CUDA_MEMSET_NODE_PARAMS){
		.dst = dst, .value = value, .elementSize = 4, .width = LENGTH, .height = 1
	};
}

static inline CUDA_MEMCPY3D copied(CUdeviceptr dst, CUdeviceptr src)
{
	return (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = src,
		.dstDevice = dst,
		.WidthInBytes = BYTES,
		.Height = 1,
		.Depth = 1 };
}

/* All numbers there are this one. */
static inline bool is_all(CUdeviceptr data, int value)
{
	CU(cuMemcpyDtoH(got, data, BYTES));
	for (int i = 0; i < LENGTH; i++)
		if (got[i] != value)
			return false;
	return true;
}

static inline void run(CUgraphExec exec)
{
	CU(cuGraphLaunch(exec, stream));
	CU(cuStreamSynchronize(stream));
}

#endif
