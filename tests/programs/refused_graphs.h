/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the programs about wrong uses of graphs share: a context, a graph with an empty node, and good
 * parameters of nodes, from which each case makes a wrong one.
 */
#ifndef TESTS_PROGRAMS_REFUSED_GRAPHS_H
#define TESTS_PROGRAMS_REFUSED_GRAPHS_H

#include "refused.h"

static const char PTX[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry fail()\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, 16;\n"
	"st.global.u32 [%rd1], 1;\nret;\n}\n"
	".visible .entry add(.param .u64 p)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<2>;\n"
	"ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\nadd.u32 %r2, %r1, 1;\n"
	"st.global.u32 [%rd1], %r2;\nret;\n}\n";

static CUdevice device;
static CUcontext context;
static CUmodule module;
static CUfunction add, fail;
static CUdeviceptr memory;
static CUstream stream;
static CUgraph graph;
static CUgraphNode empty;
static char host[4096];
static void *args[] = { &memory };

static inline void nothing(void *user)
{
	(void)user;
}

static inline CUDA_KERNEL_NODE_PARAMS kernel(unsigned threads)
{
	return (CUDA_KERNEL_NODE_PARAMS){ .func = add,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = threads,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = args };
}

static inline CUDA_MEMCPY3D copy(size_t width, size_t rows)
{
	return (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.srcPitch = 64,
		.srcHeight = rows,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = memory,
		.dstPitch = 64,
		.dstHeight = rows,
		.WidthInBytes = width,
		.Height = rows,
		.Depth = 1 };
}

static inline CUDA_MEMSET_NODE_PARAMS fill(size_t width, size_t rows)
{
	return (CUDA_MEMSET_NODE_PARAMS){ memory, 64, 0, 1, width, rows };
}

static inline CUDA_MEM_ALLOC_NODE_PARAMS piece(size_t size)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } },
		.bytesize = size,
	};
}

static inline void begin(void)
{
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&context, NULL, 0, device));
	CU(cuModuleLoadData(&module, PTX));
	CU(cuModuleGetFunction(&add, module, "add"));
	CU(cuModuleGetFunction(&fail, module, "fail"));
	CU(cuMemAlloc(&memory, sizeof host));
	CU(cuMemsetD8(memory, 0, sizeof host));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuGraphCreate(&graph, 0));
	CU(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
}

static inline CUgraphExec made(CUgraph from)
{
	CUgraphExec exec;

	CU(cuGraphInstantiate(&exec, from, 0));
	return exec;
}

#endif
