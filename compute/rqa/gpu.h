/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counting on a GPU through the CUDA driver API. The device is control.gpu or else the first device
 * of the process's libcuda.so.1, which is opened at the first call and stays open until the process
 * ends. Any thread may call; the process's own device executes one count at a time.
 */
#ifndef OBK_RQA_GPU_H
#define OBK_RQA_GPU_H

#include "base/err.h"
#include "compute/field/fault.h"
#include "compute/gpu/gpu.h"
#include "compute/rqa/sweep.h"

/* Kernels of kernel.cu, in the order of the names in the image. */
enum obk_rqa_kernel {
	OBK_RQA_KERNEL_BITS, /* L1, L2, max for f32; then the same for f64 */
	OBK_RQA_KERNEL_DIAGONALS = OBK_RQA_KERNEL_BITS + 6,
	OBK_RQA_KERNEL_COLUMNS,
	OBK_RQA_KERNEL_TILES, /* f32, f64; then the same with approximate results first */
	OBK_RQA_KERNEL_JOIN = OBK_RQA_KERNEL_TILES + 4,
	OBK_RQA_KERNEL_SWEEP, /* diagonals and columns for f32; then the same for f64 */
	OBK_RQA_KERNEL_PAIRS = OBK_RQA_KERNEL_SWEEP + 4,
	OBK_RQA_KERNEL_COUNT
};

/* A device during a call: entered, with the kernels loaded. */
struct obk_rqa_gpu_use {
	struct obk_gpu *gpu;
	const CUfunction *functions;
	bool own; /* true: the process's own device, which is locked */
	/*
	 * number of the opening of the process's own device; it changes when the device is opened
	 * again after it was lost
	 */
	uint64_t opened;
};

/* True if this build has GPU code. */
bool obk_rqa_gpu_built(void);
/* OBK_RQA_UNSUPPORTED with a text if there is no driver, no device or no code for the device. */
int obk_rqa_gpu_begin(const struct obk_rqa_control *control, struct obk_rqa_gpu_use *use,
	struct obk_rqa_error *ret_error);
void obk_rqa_gpu_end(struct obk_rqa_gpu_use *use);
/* Converts a fault to the status of a call: OBK_RQA_NO_MEMORY or OBK_RQA_DEVICE. */
int obk_rqa_gpu_fail(
	struct obk_rqa_error *ret_error, enum ob_err err, const struct obk_fault *fault);

/*
 * True if a call with this many cells should run on a GPU. AUTO: true if there is a GPU, it is not
 * a software device, and the call is large enough.
 */
bool obk_rqa_gpu_wanted(const struct obk_rqa_control *control, uint64_t cells);

/*
 * As obk_rqa_count, on a device. ret_name: buffer of `size` bytes for the device's name. counts is
 * changed only on success. OBK_RQA_UNSUPPORTED as in obk_rqa_gpu_begin; OBK_RQA_DEVICE: the device
 * failed.
 */
int obk_rqa_gpu_count(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options,
	struct obk_rqa_watch *watch, struct obk_rqa_counts *counts,
	const struct obk_rqa_control *control, uint64_t hash, char *ret_name, size_t size,
	struct obk_rqa_error *ret_error);

/*
 * Prepares the approximate test of kernel_near.cuh for a Euclidean plot of a series with itself.
 * `planes` has plot->channels + 1 planes of `stride` floats, zeroed by the caller; the last one
 * receives the squared lengths of the vectors. For a cell of two vectors without gaps, limit - d^2
 * has the same sign as the approximate limit - |x|^2 - |y|^2 + 2 x y if the absolute value of the
 * latter exceeds `slack`. False: the test would leave too many cells undecided.
 */
bool obk_rqa_gpu_near(
	const struct obk_rqa_plot *plot, float *planes, uint64_t stride, float *ret_slack);

/*
 * Runs all units of a sweep. The device counts the lines of several units at a time, and the
 * threads of the job make rows from the counts. They also count on the CPU what the device's pass
 * does not support or has no memory for. OBK_RQA_DEVICE: the device failed; rows that have been
 * delivered stay valid.
 */
int obk_rqa_gpu_job_run(struct obk_rqa_job *job, unsigned threads, struct obk_rqa_error *ret_error);

/* As obk_rqa_control_check, for calls that can run on a GPU. */
int obk_rqa_control_check_gpu(const struct obk_rqa_control *control,
	const struct obk_rqa_ops **ret_ops, struct obk_rqa_error *ret_error);

#endif
