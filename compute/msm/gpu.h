/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Multi-scalar multiplication on a GPU (compute/gpu): the same bases, jobs, errors and, bit for
 * bit, results as msm.h. Any number of threads may run products on the same bases at once; each call
 * uses its own stream and buffers. The functions call obk_gpu_enter themselves.
 */
#ifndef OBK_MSM_GPU_H
#define OBK_MSM_GPU_H

#include "compute/msm/gpu_bases.h"

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
