/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The parts of tests/e2e/several.c: its driver calls, one device of the first server and one of the
 * last, and their memory.
 */
#ifndef OB_TESTS_E2E_SEVERAL_H
#define OB_TESTS_E2E_SEVERAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "tests/e2e/calls.h"

#define LARGE  (9u << 20) /* bytes: several parts of a copy between servers */
#define ROUNDS 3000000u   /* of the kernel, which takes long */

#define SEVERAL_CALLS(X)                                                                           \
	X(cuInit, unsigned)                                                                        \
	X(cuDeviceGetCount, int *)                                                                 \
	X(cuDeviceGetPCIBusId, char *, int, CUdevice)                                              \
	X(cuDeviceGetByPCIBusId, CUdevice *, const char *)                                         \
	X(cuDeviceGetUuid_v2, CUuuid *, CUdevice)                                                  \
	X(cuDeviceGetAttribute, int *, CUdevice_attribute, CUdevice)                               \
	X(cuDeviceCanAccessPeer, int *, CUdevice, CUdevice)                                        \
	X(cuDeviceGetP2PAttribute, int *, CUdevice_P2PAttribute, CUdevice, CUdevice)               \
	X(cuCtxEnablePeerAccess, CUcontext, unsigned)                                              \
	X(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)                                         \
	X(cuCtxCreate_v2, CUcontext *, unsigned, CUdevice)                                         \
	X(cuCtxDestroy_v2, CUcontext)                                                              \
	X(cuCtxSetCurrent, CUcontext)                                                              \
	X(cuCtxGetDevice, CUdevice *)                                                              \
	X(cuCtxSynchronize, void)                                                                  \
	X(cuModuleLoadData, CUmodule *, const void *)                                              \
	X(cuModuleGetFunction, CUfunction *, CUmodule, const char *)                               \
	X(cuMemAlloc_v2, CUdeviceptr *, size_t)                                                    \
	X(cuMemFree_v2, CUdeviceptr)                                                               \
	X(cuMemHostAlloc, void **, size_t, unsigned)                                               \
	X(cuMemHostRegister_v2, void *, size_t, unsigned)                                          \
	X(cuMemHostUnregister, void *)                                                             \
	X(cuMemHostGetDevicePointer_v2, CUdeviceptr *, void *, unsigned)                           \
	X(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned)                                      \
	X(cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t)                                      \
	X(cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t)                                            \
	X(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream)                       \
	X(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, size_t, CUstream)                             \
	X(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, size_t)                                       \
	X(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, size_t, CUstream)                        \
	X(cuMemcpy, CUdeviceptr, CUdeviceptr, size_t)                                              \
	X(cuMemcpyPeer, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t)                    \
	X(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)     \
	X(cuMemcpy3DPeer, const CUDA_MEMCPY3D_PEER *)                                              \
	X(cuMemcpyBatchAsync_v2, CUdeviceptr *, CUdeviceptr *, size_t *, size_t,                   \
		CUmemcpyAttributes *, size_t *, size_t, CUstream)                                  \
	X(cuMemsetD8_v2, CUdeviceptr, unsigned char, size_t)                                       \
	X(cuMemGetAllocationGranularity, size_t *, const CUmemAllocationProp *,                    \
		CUmemAllocationGranularity_flags)                                                  \
	X(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,        \
		unsigned long long)                                                                \
	X(cuMemRelease, CUmemGenericAllocationHandle)                                              \
	X(cuMemAddressReserve, CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)     \
	X(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) \
	X(cuMemUnmap, CUdeviceptr, size_t)                                                         \
	X(cuMemSetAccess, CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)                    \
	X(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
		unsigned, CUstream, void **, void **)                                              \
	X(cuStreamCreate, CUstream *, unsigned)                                                    \
	X(cuStreamWaitEvent, CUstream, CUevent, unsigned)                                          \
	X(cuStreamQuery, CUstream)                                                                 \
	X(cuStreamSynchronize, CUstream)                                                           \
	X(cuStreamDestroy_v2, CUstream)                                                            \
	X(cuStreamWriteValue32_v2, CUstream, CUdeviceptr, cuuint32_t, unsigned)                    \
	X(cuEventCreate, CUevent *, unsigned)                                                      \
	X(cuEventRecord, CUevent, CUstream)                                                        \
	X(cuEventQuery, CUevent)                                                                   \
	X(cuEventSynchronize, CUevent)                                                             \
	X(cuEventElapsedTime, float *, CUevent, CUevent)                                           \
	X(cuGraphAddKernelNode_v2, CUgraphNode *, CUgraph, const CUgraphNode *, size_t,            \
		const CUDA_KERNEL_NODE_PARAMS *)                                                   \
	X(cuGraphLaunch, CUgraphExec, CUstream)                                                    \
	X(cuGraphCreate, CUgraph *, unsigned)                                                      \
	X(cuGraphAddMemcpyNode, CUgraphNode *, CUgraph, const CUgraphNode *, size_t,               \
		const CUDA_MEMCPY3D *, CUcontext)                                                  \
	X(cuGraphInstantiateWithFlags, CUgraphExec *, CUgraph, unsigned long long)

struct several_calls {
#define X(name, ...) CUresult (*name)(__VA_ARGS__);
	SEVERAL_CALLS(X)
#undef X
};
extern struct several_calls cu;

extern int wrong;

#define NEED(call) need(cu.call, #call)

#define EXPECT(condition)                                                        \
	do {                                                                     \
		if (!(condition)) {                                              \
			printf("line %d: not true: %s\n", __LINE__, #condition); \
			wrong++;                                                 \
		}                                                                \
	} while (0)
#define EXPECT_CODE(call, code)                                                              \
	do {                                                                                 \
		CUresult result_ = cu.call;                                                  \
		if (result_ != CUDA_##code) {                                                \
			printf("line %d: %s is %d, not %s\n", __LINE__, #call, (int)result_, \
				#code);                                                      \
			wrong++;                                                             \
		}                                                                            \
	} while (0)

/* One device of the first server and one of the last. */
struct side {
	CUdevice device;
	CUcontext context;
	CUdeviceptr memory; /* LARGE bytes */
	CUfunction busy;
	CUstream stream;
};
extern struct side sides[2];
extern uint8_t *pattern, *back; /* LARGE bytes each */

/* Makes the side's context current. */
void current(unsigned side);
void pattern_set(unsigned seed);
/* Whether the first `size` bytes of the memory are those of the pattern. */
bool holds(unsigned side, size_t size);
/* Fills one side with a new pattern, and the other one with something else. */
void refill(unsigned from);
/* The side's kernel, which takes long, in its stream. */
void launch(unsigned side);

/* Modes of the program. */
void several_copies(void);
void several_order(void);
void several_threads(void);

#endif
