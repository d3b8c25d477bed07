/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Multi-scalar multiplication on a GPU (compute/gpu): the same bases, jobs, errors and, bit for
 * bit, results as msm.h. The caller owns the bases, which stay on the device they were made for,
 * and frees them before it closes the device. Any number of threads may run products on them at
 * once; each call uses its own stream and buffers. These functions call obk_gpu_enter themselves.
 *
 * With a table, the device holds shifted copies of the bases, 2^(c t) P, as many as the allowed
 * memory permits. Then there are fewer buckets to sum, and no doublings. For a few bases and much
 * memory the table holds all multiples that a digit of b bits can select; then nothing is sorted.
 * It has ceil(255 / b) 2^(b - 1) points per base, from 64 x 8 (b = 4) to 32 x 128 (b = 8). It uses
 * the largest b that the memory allows, and is chosen if it needs no more additions than shifted
 * copies.
 */
#ifndef OBK_MSM_GPU_H
#define OBK_MSM_GPU_H

#include "compute/gpu/gpu.h"
#include "compute/msm/msm.h"

struct obk_msm_gpu_bases;

/*
 * args as for obk_msm_bases_new; table_bytes is device memory. The device checks the points. The
 * pool's threads decode compressed and uncompressed points. If the device lacks memory for the
 * table, a smaller one is made.
 */
enum ob_err obk_msm_gpu_bases_new(struct obk_gpu *gpu, const struct obk_msm_bases_args *args,
	struct obk_msm_gpu_bases **ret_bases, struct obk_fault *fault);
void obk_msm_gpu_bases_free(struct obk_msm_gpu_bases *bases);

struct obk_msm_gpu_info {
	size_t count, bytes; /* points; bytes of device memory held */
	unsigned shifts;     /* copies of the bases; 1: no table */
	/* bits in a window or digit if there is a table, else 0: chosen by size */
	unsigned window;
	bool multiples; /* the table holds all multiples; `shifts` is the number of windows then */
};

void obk_msm_gpu_bases_info(
	const struct obk_msm_gpu_bases *bases, struct obk_msm_gpu_info *ret_info);

/*
 * As obk_msm_run, with job->window up to OBK_MSM_GPU_MAX_WINDOW. The threads of job->pool compute
 * the last sums. scalars: device address of batch x count scalars in job->format, 16-byte aligned,
 * written before this call (job->scalars is ignored). 0: use job->scalars; work on the first
 * scalars begins while the others are uploaded (with OUTBOARD_OPT=-stage: after the upload).
 * Returns when the result is complete. job->stop is polled between groups of points; job->range is
 * ignored. OB_ERR_NO_MEMORY if the device has no room even for a 64th of the points at a time.
 */
enum ob_err obk_msm_gpu_run(const struct obk_msm_gpu_bases *bases, const struct obk_msm_job *job,
	CUdeviceptr scalars, struct obk_g1_affine *ret_points, struct obk_fault *fault);

#endif
