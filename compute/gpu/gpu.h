/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * GPU access for the kernels of compute/: a driver, loaded at run time; its devices; kernels that
 * are embedded in this library and loaded once per device; pooled device memory. It uses the CUDA
 * driver API only, so a GPU in this machine, a GPU behind a server (through Outboard's
 * libcuda.so.1) and the software device work alike.
 *
 * A driver stays open until the process ends. A device is closed by the caller who opened it, after
 * everything taken from it was given back. Several devices may be open on one GPU, each with its
 * own memory pool. Any thread may use a device; several may do so at once if each uses its own
 * stream. A thread must call obk_gpu_enter before and obk_gpu_leave after the functions below the
 * line that says so.
 *
 * Errors: OB_ERR_NO_MEMORY (of the device or the host), OB_ERR_IMAGE_NO_ENTRY (no code for this
 * device), OB_ERR_UNSUPPORTED (this build has no GPU code), OB_ERR_CLOSED (the connection to a
 * remote device is lost) and OB_ERR_DRIVER for all other CUDA errors. The fault's text has the call
 * and the name of the CUDA error.
 */
#ifndef OBK_GPU_H
#define OBK_GPU_H

#include <stdbool.h>

#include "compute/gpu/driver.h"

#define OBK_GPU_MAX_IMAGES  16
#define OBK_GPU_MAX_KERNELS 32 /* in an image */

struct obk_gpu;

/* Opens a device and retains its primary context. */
enum ob_err obk_gpu_open(const struct obk_gpu_driver *driver, unsigned ordinal,
	struct obk_gpu **ret_gpu, struct obk_fault *fault);
/*
 * Frees all its memory, including buffers that were not given back, and unloads its images. NULL is
 * allowed.
 */
void obk_gpu_close(struct obk_gpu *gpu);
const struct obk_gpu_info *obk_gpu_info(const struct obk_gpu *gpu);
const struct obk_gpu_driver *obk_gpu_driver(const struct obk_gpu *gpu);
/*
 * True after an error that makes every later call on this context fail (a fault in a kernel, a lost
 * device or connection): close the device.
 */
bool obk_gpu_lost(const struct obk_gpu *gpu);

/*
 * Makes the device's context current in this thread until obk_gpu_leave. Calls may be nested.
 * OB_ERR_DRIVER.
 */
enum ob_err obk_gpu_enter(struct obk_gpu *gpu, struct obk_fault *fault);
void obk_gpu_leave(struct obk_gpu *gpu);

/* ---- only between obk_gpu_enter and obk_gpu_leave ---- */

/*
 * Kernels embedded in this library. The build generates `start` and `end` (compute/gpu/meson.build:
 * gpu_image); they are equal if the build had no CUDA toolkit.
 */
struct obk_gpu_image {
	const char *name; /* for messages */
	const unsigned char *start, *end;
	unsigned kernels; /* 1..OBK_GPU_MAX_KERNELS */
	const char *const *names;
};

/* True if this build contains code for the image. Needs no device. */
static inline bool obk_gpu_image_built(const struct obk_gpu_image *image)
{
	return image->end > image->start;
}

/*
 * Returns the image's functions on this device, in the order of its names. The first call loads
 * them; they are valid until the device is closed.
 */
enum ob_err obk_gpu_load(struct obk_gpu *gpu, const struct obk_gpu_image *image,
	const CUfunction **ret_functions, struct obk_fault *fault);

/*
 * OB_ERR_NONE for CUDA_SUCCESS. Otherwise fills the fault with "<what>: CUDA_ERROR_... ", where
 * `what` is the name of the call or a short description, and records if the device is lost.
 */
enum ob_err obk_gpu_check(
	struct obk_gpu *gpu, CUresult result, const char *what, struct obk_fault *fault);

/*
 * Launches a one- or two-dimensional grid of one-dimensional blocks. Sets the function attribute
 * that more than 48 KiB of shared memory requires. args as for cuLaunchKernel.
 */
enum ob_err obk_gpu_launch(struct obk_gpu *gpu, CUstream stream, CUfunction function,
	unsigned blocks_x, unsigned blocks_y, unsigned threads, unsigned shared_bytes, void **args,
	struct obk_fault *fault);

/*
 * Device memory. Buffers that are given back are kept and used again. When a buffer is given back,
 * no work that uses it may be pending, except on the stream of its next user: wait first. A buffer
 * of 0 bytes is {0, 0}. Giving back {0, 0} does nothing, so a zeroed struct may always be given
 * back.
 */
struct obk_gpu_buffer {
	CUdeviceptr at;
	size_t bytes; /* at least what was requested */
};

enum ob_err obk_gpu_take(struct obk_gpu *gpu, size_t bytes, struct obk_gpu_buffer *ret_buffer,
	struct obk_fault *fault);
/* Gives the buffer back and zeroes *buffer. */
void obk_gpu_give(struct obk_gpu *gpu, struct obk_gpu_buffer *buffer);
/* Frees buffers that are not in use. */
void obk_gpu_trim(struct obk_gpu *gpu);

struct obk_gpu_stats {
	size_t in_use, idle;    /* bytes in use; bytes kept for later use */
	size_t high_water;      /* the largest value of in_use so far */
	uint64_t taken, reused; /* buffers taken; how many of them without a call of the driver */
	uint64_t launches;
	/* copied to the device and from the device by the functions below */
	uint64_t bytes_to, bytes_from;
	uint64_t pieces; /* pieces of uploads that were split */
};

/* May be called without obk_gpu_enter. */
void obk_gpu_stats(struct obk_gpu *gpu, struct obk_gpu_stats *ret_stats);
/* Bytes that can still be taken: free on the device, or kept for later use. */
enum ob_err obk_gpu_room(struct obk_gpu *gpu, size_t *ret_bytes, struct obk_fault *fault);

/* Pinned host memory. */
enum ob_err obk_gpu_pinned_new(
	struct obk_gpu *gpu, size_t bytes, void **ret_at, struct obk_fault *fault);
void obk_gpu_pinned_free(struct obk_gpu *gpu, void *at);

/*
 * Streams are pooled like memory. They do not synchronise with the default stream. Give a stream
 * back when its work is done.
 */
enum ob_err obk_gpu_stream_take(struct obk_gpu *gpu, CUstream *ret_stream, struct obk_fault *fault);
void obk_gpu_stream_give(struct obk_gpu *gpu, CUstream stream);

/* Copies in stream order. A pinned source must stay unchanged until the copy is done. */
enum ob_err obk_gpu_write(struct obk_gpu *gpu, CUstream stream, CUdeviceptr to, const void *from,
	size_t bytes, struct obk_fault *fault);
enum ob_err obk_gpu_zero(struct obk_gpu *gpu, CUstream stream, CUdeviceptr at, size_t bytes,
	struct obk_fault *fault);
enum ob_err obk_gpu_copy(struct obk_gpu *gpu, CUstream stream, CUdeviceptr to, CUdeviceptr from,
	size_t bytes, struct obk_fault *fault);

/*
 * Launches, in the upload's stream, the kernels that process bytes [first, first + bytes) of an
 * upload. arg is the caller's.
 */
typedef enum ob_err obk_gpu_piece(void *arg, size_t first, size_t bytes);

/*
 * Copies host memory to the device in pieces of OBK_GPU_PIECE bytes, through pinned memory and on a
 * separate stream, and calls `piece` for each piece once `stream` has been made to wait for its
 * arrival. So kernels process one piece while the next ones are copied. There is a single piece,
 * copied directly, if the data is not larger, if no pinned memory is available, or with
 * OUTBOARD_OPT=-stage. No work may be pending on the destination. `from` may be reused on return,
 * unless it is pinned memory that was copied as a single piece. The first error stops the upload.
 */
#define OBK_GPU_PIECE ((size_t)1 << 20)
enum ob_err obk_gpu_upload(struct obk_gpu *gpu, CUstream stream, CUdeviceptr to, const void *from,
	size_t bytes, obk_gpu_piece *piece, void *arg, struct obk_fault *fault);
/* Waits for the earlier work of the stream and for the copy. */
enum ob_err obk_gpu_read(struct obk_gpu *gpu, CUstream stream, void *to, CUdeviceptr from,
	size_t bytes, struct obk_fault *fault);
enum ob_err obk_gpu_wait(struct obk_gpu *gpu, CUstream stream, struct obk_fault *fault);

#endif
