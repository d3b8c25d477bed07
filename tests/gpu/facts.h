/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by the files of gpu-facts: the driver's calls by name, loaded once at the start, and the
 * erroneous calls. One thread.
 */
#ifndef TEST_GPU_FACTS_H
#define TEST_GPU_FACTS_H

#include "base/cuda_types.h"

#define GPU_CALLS(X)                                                                               \
	X(cuInit, (unsigned))                                                                      \
	X(cuDriverGetVersion, (int *))                                                             \
	X(cuGetExportTable, (const void **, const CUuuid *))                                       \
	X(cuDeviceGetCount, (int *))                                                               \
	X(cuDeviceGetName, (char *, int, CUdevice))                                                \
	X(cuDeviceGetUuid_v2, (CUuuid *, CUdevice))                                                \
	X(cuDeviceTotalMem_v2, (size_t *, CUdevice))                                               \
	X(cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))                             \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
	X(cuCtxSetCurrent, (CUcontext))                                                            \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuModuleLoadData, (CUmodule *, const void *))                                            \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
	X(cuLibraryLoadData,                                                                       \
		(CUlibrary *, const void *, void *, void *, unsigned, void *, void *, unsigned))   \
	X(cuLibraryGetKernel, (CUkernel *, CUlibrary, const char *))                               \
	X(cuLaunchKernel,                                                                          \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **, void **))                                               \
	X(cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int))                             \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                  \
	X(cuMemFree_v2, (CUdeviceptr))                                                             \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                          \
	X(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))   \
	X(cuMemAddressFree, (CUdeviceptr, size_t))                                                 \
	X(cuStreamCreate, (CUstream *, unsigned))                                                  \
	X(cuStreamGetId, (CUstream, unsigned long long *))                                         \
	X(cuStreamSynchronize, (CUstream))                                                         \
	X(cuStreamDestroy_v2, (CUstream))                                                          \
	X(cuEventDestroy_v2, (CUevent))

struct gpu_driver {
#define GPU_FIELD(name, args) CUresult(*name) args;
	GPU_CALLS(GPU_FIELD)
#undef GPU_FIELD
};

extern struct gpu_driver cu;

/* Makes device 0's primary context current; ends the program on failure. */
CUcontext gpu_context(void);

/* Prints the names of the erroneous calls, one per line. */
int errors_list(void);
/*
 * Makes one erroneous call. Prints its error code, and the code that a later wait for the device
 * returns. Returns 2 if there is no such case.
 */
int errors_run(const char *name);

#endif
