/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * CUDA driver libraries, loaded at run time, and their devices. A driver stays open until the
 * process ends. Any thread may call these functions. Errors are those of compute/gpu/gpu.h.
 */
#ifndef OBK_GPU_DRIVER_H
#define OBK_GPU_DRIVER_H

#include "base/cuda_types.h"
#include "compute/field/fault.h"

#define OBK_GPU_MAX_DRIVERS    8
#define OBK_GPU_MAX_DEVICES    64
#define OBK_GPU_NAME_BYTES     256
#define OBK_GPU_DEFAULT_SHARED (48 * 1024) /* bytes that a block may use without asking */

/* X(member, symbol, arguments): the functions of the driver that are used. */
#define OBK_GPU_CALLS(X)                                                                          \
	X(init, cuInit, (unsigned flags))                                                         \
	X(driver_version, cuDriverGetVersion, (int *version))                                     \
	X(error_name, cuGetErrorName, (CUresult err, const char **name))                          \
	X(device_count, cuDeviceGetCount, (int *count))                                           \
	X(device_get, cuDeviceGet, (CUdevice * device, int ordinal))                              \
	X(device_name, cuDeviceGetName, (char *name, int bytes, CUdevice device))                 \
	X(device_attribute, cuDeviceGetAttribute,                                                 \
		(int *value, CUdevice_attribute attribute, CUdevice device))                      \
	X(device_memory, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                  \
	X(context_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))       \
	X(context_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                       \
	X(context_push, cuCtxPushCurrent_v2, (CUcontext context))                                 \
	X(context_pop, cuCtxPopCurrent_v2, (CUcontext * context))                                 \
	X(module_load, cuModuleLoadData, (CUmodule * module, const void *image))                  \
	X(module_unload, cuModuleUnload, (CUmodule module))                                       \
	X(module_function, cuModuleGetFunction,                                                   \
		(CUfunction * function, CUmodule module, const char *name))                       \
	X(function_attribute, cuFuncGetAttribute,                                                 \
		(int *value, CUfunction_attribute attribute, CUfunction function))                \
	X(function_set_attribute, cuFuncSetAttribute,                                             \
		(CUfunction function, CUfunction_attribute attribute, int value))                 \
	X(mem_info, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total))                       \
	X(mem_alloc, cuMemAlloc_v2, (CUdeviceptr * at, size_t bytes))                             \
	X(mem_free, cuMemFree_v2, (CUdeviceptr at))                                               \
	X(host_alloc, cuMemHostAlloc, (void **at, size_t bytes, unsigned flags))                  \
	X(host_free, cuMemFreeHost, (void *at))                                                   \
	X(copy_to, cuMemcpyHtoDAsync_v2,                                                          \
		(CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                \
	X(copy_from, cuMemcpyDtoHAsync_v2,                                                        \
		(void *to, CUdeviceptr from, size_t bytes, CUstream stream))                      \
	X(copy_within, cuMemcpyDtoDAsync_v2,                                                      \
		(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                \
	X(set_bytes, cuMemsetD8Async,                                                             \
		(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream))             \
	X(set_words, cuMemsetD32Async,                                                            \
		(CUdeviceptr at, unsigned value, size_t words, CUstream stream))                  \
	X(launch, cuLaunchKernel,                                                                 \
		(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,         \
			unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,         \
			void **args, void **extra))                                               \
	X(stream_new, cuStreamCreate, (CUstream * stream, unsigned flags))                        \
	X(stream_free, cuStreamDestroy_v2, (CUstream stream))                                     \
	X(stream_wait, cuStreamSynchronize, (CUstream stream))                                    \
	X(stream_wait_event, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags)) \
	X(event_new, cuEventCreate, (CUevent * event, unsigned flags))                            \
	X(event_free, cuEventDestroy_v2, (CUevent event))                                         \
	X(event_record, cuEventRecord, (CUevent event, CUstream stream))                          \
	X(event_wait, cuEventSynchronize, (CUevent event))                                        \
	X(event_query, cuEventQuery, (CUevent event))                                             \
	X(event_elapsed, cuEventElapsedTime, (float *ms, CUevent start, CUevent end))

/*
 * A driver library that was opened and initialised. Its functions may be called directly between
 * obk_gpu_enter and obk_gpu_leave.
 */
struct obk_gpu_driver {
	char path[OBK_GPU_NAME_BYTES]; /* as passed to obk_gpu_driver_open */
	int version;                   /* 13000 for CUDA 13.0 */
	/*
	 * identifies the way to the devices: a hash of the library and OUTBOARD_SERVER, the same in
	 * every process
	 */
	uint64_t link;
	unsigned devices;
#define X(member, symbol, arguments) CUresult(*member) arguments;
	OBK_GPU_CALLS(X)
#undef X
};

/*
 * Opens the driver in library `path`; NULL: "libcuda.so.1" as the loader finds it, or the one that
 * is already loaded. The same path gives the same driver. If there is no library, a symbol is
 * missing or cuInit fails: OB_ERR_DRIVER and a text. A driver that works but has no device has
 * devices = 0.
 */
enum ob_err obk_gpu_driver_open(
	const char *path, const struct obk_gpu_driver **ret_driver, struct obk_fault *fault);

struct obk_gpu_info {
	char name[OBK_GPU_NAME_BYTES];
	unsigned ordinal, major, minor; /* compute capability */
	unsigned processors;            /* multiprocessors (SMs) */
	unsigned clock_khz;             /* 0: unknown */
	size_t memory, cache;           /* bytes of device memory and of L2 */
	size_t shared;                  /* most bytes of shared memory that a block may request */
};

enum ob_err obk_gpu_describe(const struct obk_gpu_driver *driver, unsigned ordinal,
	struct obk_gpu_info *ret_info, struct obk_fault *fault);

/* The device with this ordinal. OB_ERR_NOT_FOUND, OB_ERR_DRIVER. */
enum ob_err obk_gpu_device_find(const struct obk_gpu_driver *driver, unsigned ordinal,
	CUdevice *ret_device, struct obk_fault *fault);
/* Fills the fault with "<what>: CUDA_ERROR_..." and returns the error that `result` means. */
enum ob_err obk_gpu_driver_refuse(const struct obk_gpu_driver *driver, CUresult result,
	const char *what, struct obk_fault *fault);

#endif
