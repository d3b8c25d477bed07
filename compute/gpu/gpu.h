/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The ground that the kernel services' GPU parts stand on: a driver, found at run time; devices of
 * it; kernels that are embedded in this library, loaded once a device; device memory that is kept
 * and used again. Through the CUDA driver API alone, so a GPU here, one over the wire (our
 * libcuda.so.1) and the software device are the same to it.
 *
 * Drivers live as long as the process. A device is opened by its user, who closes it after giving
 * back all it took; several may be open on one GPU, each with a memory pool of its own. Any thread
 * may use a device, several at once if each has its own stream. A thread calls obk_gpu_enter
 * before, and obk_gpu_leave after, everything below the line that says so.
 *
 * Errors: OB_ERR_NO_MEMORY (the device's or ours), OB_ERR_IMAGE_NO_ENTRY (no code for this device),
 * OB_ERR_UNSUPPORTED (this build has no GPU code), OB_ERR_CLOSED (the connection to a remote device
 * is gone) and OB_ERR_DRIVER for all else that CUDA reports; the fault's text has the call and
 * CUDA's name.
 */
#ifndef OBK_GPU_H
#define OBK_GPU_H

#include <stdbool.h>

#include "base/cuda_types.h"
#include "compute/field/fault.h"

#define OBK_GPU_MAX_DRIVERS 8
#define OBK_GPU_MAX_DEVICES 64
#define OBK_GPU_MAX_IMAGES  16
#define OBK_GPU_MAX_KERNELS 32 /* of an image */
#define OBK_GPU_NAME_BYTES  256

/* X(member, symbol, arguments): what is used of the driver. */
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
 * A driver library that was opened and initialised. Its calls may be used directly, between
 * obk_gpu_enter and obk_gpu_leave.
 */
struct obk_gpu_driver {
	char path[OBK_GPU_NAME_BYTES]; /* as asked for */
	int version;                   /* 13000 for CUDA 13.0 */
	/*
	 * tells ways to devices apart, the same in every process: which library it is, and
	 * OUTBOARD_SERVER
	 */
	uint64_t link;
	unsigned devices;
#define X(member, symbol, arguments) CUresult(*member) arguments;
	OBK_GPU_CALLS(X)
#undef X
};

/*
 * The driver in library `path`; NULL: "libcuda.so.1" as the loader finds it, or the one that is
 * loaded already. The same driver for the same path. With no library, a missing symbol or a failing
 * cuInit: OB_ERR_DRIVER and a sentence; a driver that works and has no device has devices = 0.
 */
enum ob_err obk_gpu_driver_open(
	const char *path, const struct obk_gpu_driver **ret_driver, struct obk_fault *fault);

struct obk_gpu_info {
	char name[OBK_GPU_NAME_BYTES];
	unsigned ordinal, major, minor; /* compute capability */
	unsigned processors;            /* SMs */
	unsigned clock_khz;             /* 0: unknown */
	size_t memory, cache;           /* bytes of device memory and of L2 */
	size_t shared;                  /* bytes of shared memory that a block may ask for */
};

enum ob_err obk_gpu_describe(const struct obk_gpu_driver *driver, unsigned ordinal,
	struct obk_gpu_info *ret_info, struct obk_fault *fault);

struct obk_gpu;

/* Retains the device's primary context. */
enum ob_err obk_gpu_open(const struct obk_gpu_driver *driver, unsigned ordinal,
	struct obk_gpu **ret_gpu, struct obk_fault *fault);
/*
 * Frees all memory that it holds, also what was not given back, and unloads its images. NULL is
 * allowed.
 */
void obk_gpu_close(struct obk_gpu *gpu);
const struct obk_gpu_info *obk_gpu_info(const struct obk_gpu *gpu);
const struct obk_gpu_driver *obk_gpu_driver(const struct obk_gpu *gpu);
/*
 * An error of the kind after which every call on this context fails (a fault of a kernel, a lost
 * device or connection) was seen: close it.
 */
bool obk_gpu_lost(const struct obk_gpu *gpu);

/*
 * Makes the device's context this thread's current one, until obk_gpu_leave; nests. OB_ERR_DRIVER.
 */
enum ob_err obk_gpu_enter(struct obk_gpu *gpu, struct obk_fault *fault);
void obk_gpu_leave(struct obk_gpu *gpu);

/* ---- between obk_gpu_enter and obk_gpu_leave ---- */

/*
 * Kernels that are embedded in this library. The build makes `start` and `end`
 * (compute/gpu/meson.build: gpu_image); they are equal where it had no CUDA toolkit.
 */
struct obk_gpu_image {
	const char *name; /* in messages */
	const unsigned char *start, *end;
	unsigned kernels; /* 1..OBK_GPU_MAX_KERNELS */
	const char *const *names;
};

/* Is there code in this build? Needs no device. */
static inline bool obk_gpu_image_built(const struct obk_gpu_image *image)
{
	return image->end > image->start;
}

/*
 * The image's functions on this device, in the order of its names; loaded by the first call, valid
 * until the device is closed.
 */
enum ob_err obk_gpu_load(struct obk_gpu *gpu, const struct obk_gpu_image *image,
	const CUfunction **ret_functions, struct obk_fault *fault);

/*
 * OB_ERR_NONE for CUDA_SUCCESS; else fills the fault with "<what>: CUDA_ERROR_... ". what: the
 * call, or a few words. Notes a lost device.
 */
enum ob_err obk_gpu_check(
	struct obk_gpu *gpu, CUresult result, const char *what, struct obk_fault *fault);

/*
 * A one- or two-dimensional grid of one-dimensional blocks. More than 48 KiB of shared memory is
 * asked for on the way. args as cuLaunchKernel takes them.
 */
enum ob_err obk_gpu_launch(struct obk_gpu *gpu, CUstream stream, CUfunction function,
	unsigned blocks_x, unsigned blocks_y, unsigned threads, unsigned shared_bytes, void **args,
	struct obk_fault *fault);

/*
 * Device memory, kept for the next taker when given back. Nothing that uses a buffer may be pending
 * on another stream than the next taker's when it is given back: wait first. A buffer of 0 bytes is
 * {0, 0}. Giving back {0, 0} does nothing, so a zeroed struct may always be given.
 */
struct obk_gpu_buffer {
	CUdeviceptr at;
	size_t bytes; /* at least what was asked for */
};

enum ob_err obk_gpu_take(struct obk_gpu *gpu, size_t bytes, struct obk_gpu_buffer *ret_buffer,
	struct obk_fault *fault);
/* And zeroes *buffer. */
void obk_gpu_give(struct obk_gpu *gpu, struct obk_gpu_buffer *buffer);
/* Frees what nobody uses. */
void obk_gpu_trim(struct obk_gpu *gpu);

struct obk_gpu_stats {
	size_t in_use, idle;    /* bytes taken; kept for the next taker */
	size_t high_water;      /* the most that was ever taken at once */
	uint64_t taken, reused; /* buffers; how many of them without asking the driver */
	uint64_t launches;
	uint64_t bytes_to, bytes_from; /* copied to the device and from it by the calls below */
	uint64_t pieces;               /* of uploads that were made in several */
};

/* Needs no obk_gpu_enter. */
void obk_gpu_stats(struct obk_gpu *gpu, struct obk_gpu_stats *ret_stats);
/* Bytes that could still be taken: free on the device, and idle here. */
enum ob_err obk_gpu_room(struct obk_gpu *gpu, size_t *ret_bytes, struct obk_fault *fault);

/* Pinned memory of the host. */
enum ob_err obk_gpu_pinned_new(
	struct obk_gpu *gpu, size_t bytes, void **ret_at, struct obk_fault *fault);
void obk_gpu_pinned_free(struct obk_gpu *gpu, void *at);

/*
 * Streams are kept like memory; they do not wait for the default stream. Give one back when its
 * work is done.
 */
enum ob_err obk_gpu_stream_take(struct obk_gpu *gpu, CUstream *ret_stream, struct obk_fault *fault);
void obk_gpu_stream_give(struct obk_gpu *gpu, CUstream stream);

/* In the stream's order; a pinned source must stay until the stream got there. */
enum ob_err obk_gpu_write(struct obk_gpu *gpu, CUstream stream, CUdeviceptr to, const void *from,
	size_t bytes, struct obk_fault *fault);
enum ob_err obk_gpu_zero(struct obk_gpu *gpu, CUstream stream, CUdeviceptr at, size_t bytes,
	struct obk_fault *fault);
enum ob_err obk_gpu_copy(struct obk_gpu *gpu, CUstream stream, CUdeviceptr to, CUdeviceptr from,
	size_t bytes, struct obk_fault *fault);

/*
 * Launches, in the upload's stream, what works on bytes [first, first + bytes) of an upload. arg is
 * the caller's.
 */
typedef enum ob_err obk_gpu_piece(void *arg, size_t first, size_t bytes);

/*
 * Copies host memory in pieces of OBK_GPU_PIECE bytes, through pinned memory and on a stream of
 * their own, and calls `piece` for each as soon as `stream` waits for its arrival: what it launches
 * runs while the next ones travel. One piece, with no such detour, where there is no more than
 * that, no pinned memory to be had, or OUTBOARD_OPT=-stage. Nothing may be pending on what is
 * written. `from` is free again on return, unless it is pinned memory that went in one piece; the
 * first error ends it.
 */
#define OBK_GPU_PIECE ((size_t)1 << 20)
enum ob_err obk_gpu_upload(struct obk_gpu *gpu, CUstream stream, CUdeviceptr to, const void *from,
	size_t bytes, obk_gpu_piece *piece, void *arg, struct obk_fault *fault);
/* Waits for the stream's earlier work and for the copy. */
enum ob_err obk_gpu_read(struct obk_gpu *gpu, CUstream stream, void *to, CUdeviceptr from,
	size_t bytes, struct obk_fault *fault);
enum ob_err obk_gpu_wait(struct obk_gpu *gpu, CUstream stream, struct obk_fault *fault);

#endif
