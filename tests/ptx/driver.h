/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * pt_driver: a CUDA driver library opened by path, with the primary context of device 0 current. It
 * uses the driver API only, so that the same program tests the software device and a GPU. Owned by
 * main; one thread.
 */
#ifndef OB_TESTS_PTX_DRIVER_H
#define OB_TESTS_PTX_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"

/* name, symbol, arguments */
#define PT_DRIVER_CALLS(X)                                                                         \
	X(init, cuInit, (unsigned))                                                                \
	X(device_get, cuDeviceGet, (CUdevice *, int))                                              \
	X(device_name, cuDeviceGetName, (char *, int, CUdevice))                                   \
	X(device_attribute, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))           \
	X(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                       \
	X(primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice))                               \
	X(primary_reset, cuDevicePrimaryCtxReset_v2, (CUdevice))                                   \
	X(ctx_set, cuCtxSetCurrent, (CUcontext))                                                   \
	X(ctx_sync, cuCtxSynchronize, (void))                                                      \
	X(module_load, cuModuleLoadDataEx,                                                         \
		(CUmodule *, const void *, unsigned, CUjit_option *, void **))                     \
	X(module_unload, cuModuleUnload, (CUmodule))                                               \
	X(module_function, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))            \
	X(module_global, cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *))  \
	X(mem_alloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                       \
	X(mem_free, cuMemFree_v2, (CUdeviceptr))                                                   \
	X(mem_set8, cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                           \
	X(copy_to, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                           \
	X(copy_from, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                               \
	X(tensor_map, cuTensorMapEncodeTiled,                                                      \
		(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,       \
			const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,                \
			CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,         \
			CUtensorMapFloatOOBfill))                                                  \
	X(function_set, cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int))               \
	X(launch, cuLaunchKernel,                                                                  \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **, void **))                                               \
	X(launch_cooperative, cuLaunchCooperativeKernel,                                           \
		(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			CUstream, void **))

struct pt_driver {
	void *lib;
	CUdevice device;
	CUcontext context;
	char name[128];
	char log[4096]; /* error log of the last module */
#define PT_DRIVER_FIELD(field, symbol, args) CUresult(*field) args;
	PT_DRIVER_CALLS(PT_DRIVER_FIELD)
#undef PT_DRIVER_FIELD
};

enum pt_open { PT_OPEN_OK, PT_OPEN_NO_LIBRARY, PT_OPEN_BROKEN };

/* Prints errors to stdout. NO_LIBRARY: no library to test; BROKEN: the library does not work. */
enum pt_open pt_driver_open(struct pt_driver *d, const char *path);

/* Replaces the context after a fault. */
CUresult pt_driver_reset(struct pt_driver *d);

/* Releases the context. The library stays open. */
void pt_driver_close(struct pt_driver *d);

/* Loads PTX text. On failure the reason is in d->log. */
CUresult pt_driver_load(struct pt_driver *d, const char *text, CUmodule *ret);

#endif
