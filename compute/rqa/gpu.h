/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counting on a GPU, through the CUDA driver API: on the device a call names (control.gpu), else on
 * the first one of whatever libcuda.so.1 the process has, which is opened at the first call and
 * kept for the life of the process. Any thread may call; on the process's own device one call
 * counts at a time.
 */
#ifndef OBK_RQA_GPU_H
#define OBK_RQA_GPU_H

#include "base/err.h"
#include "compute/field/fault.h"
#include "compute/gpu/gpu.h"
#include "compute/rqa/sweep.h"

/* Kernels of kernel.cu, in the order of the image's names. */
enum obk_rqa_kernel {
	OBK_RQA_KERNEL_BITS, /* L1, L2, max; then the same for f64 */
	OBK_RQA_KERNEL_DIAGONALS = OBK_RQA_KERNEL_BITS + 6,
	OBK_RQA_KERNEL_COLUMNS,
	OBK_RQA_KERNEL_TILES, /* f32, f64; then the same with near results first */
	OBK_RQA_KERNEL_JOIN = OBK_RQA_KERNEL_TILES + 4,
	OBK_RQA_KERNEL_SWEEP, /* diagonals and columns, f32; then the same for f64 */
	OBK_RQA_KERNEL_PAIRS = OBK_RQA_KERNEL_SWEEP + 4,
	OBK_RQA_KERNEL_COUNT
};

/* A device in use by a call: entered, the kernels loaded. */
struct obk_rqa_gpu_use {
	struct obk_gpu *gpu;
	const CUfunction *functions;
	bool own; /* the process's device: locked */
	/* of the process's device: tells one from the next, which is opened after it was lost */
	uint64_t opened;
};

/* Has this build code for GPUs? */
bool obk_rqa_gpu_built(void);
/* OBK_RQA_UNSUPPORTED and a sentence where there is no driver, device or code for it. */
int obk_rqa_gpu_begin(const struct obk_rqa_control *control, struct obk_rqa_gpu_use *use,
	struct obk_rqa_error *ret_error);
void obk_rqa_gpu_end(struct obk_rqa_gpu_use *use);
/* The fault as the outcome of a call: OBK_RQA_NO_MEMORY or OBK_RQA_DEVICE. */
int obk_rqa_gpu_fail(
	struct obk_rqa_error *ret_error, enum ob_err err, const struct obk_fault *fault);

/*
 * Where a call of that many cells is to run: true: on a GPU. AUTO takes one that is there, is none
 * in software, and is worth it.
 */
bool obk_rqa_gpu_wanted(const struct obk_rqa_control *control, uint64_t cells);

/*
 * As obk_rqa_count, on a device; ret_name: the device's name, `size` bytes. counts are touched only
 * on success. OBK_RQA_UNSUPPORTED as above; OBK_RQA_DEVICE: the device failed.
 */
int obk_rqa_gpu_count(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options,
	struct obk_rqa_watch *watch, struct obk_rqa_counts *counts,
	const struct obk_rqa_control *control, uint64_t hash, char *ret_name, size_t size,
	struct obk_rqa_error *ret_error);

/*
 * A plot of a series with itself, Euclidean, for a device that looks nearly first: planes are
 * plot->channels + 1 of `stride` floats each, zeroed, of which the last one gets the vectors'
 * squared lengths. Of cells of two vectors without gaps, limit - d^2 has the sign of limit - |x|^2
 * - |y|^2 + 2 x y, taken as kernel_near.cuh does, where that is further from 0 than slack. False:
 * that would decide too little.
 */
bool obk_rqa_gpu_near(
	const struct obk_rqa_plot *plot, float *planes, uint64_t stride, float *ret_slack);

/*
 * All units of a sweep: lines are counted on the device, some units at a time, and made into rows
 * by the job's threads; what the device's pass does not know, or has no room for, they do on the
 * CPU. OBK_RQA_DEVICE: the device failed; rows that were given stay given.
 */
int obk_rqa_gpu_job_run(struct obk_rqa_job *job, unsigned threads, struct obk_rqa_error *ret_error);

/* As obk_rqa_control_check, for calls that can use a GPU. */
int obk_rqa_control_check_gpu(const struct obk_rqa_control *control,
	const struct obk_rqa_ops **ret_ops, struct obk_rqa_error *ret_error);

#endif
