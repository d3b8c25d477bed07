/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Multi-scalar multiplication on a GPU (compute/gpu): the same bases, jobs, errors and, bit for
 * bit, results as msm.h. The caller owns bases, which stay on the device that they were made for,
 * and frees them before it closes the device. Any number of threads may run products on them at
 * once; each takes a stream and buffers of its own. These functions enter the device themselves.
 *
 * With a table the bases are held as shifted copies, 2^(c t) P, as many as its memory allows, so
 * that fewer buckets are summed up and nothing is doubled; a few bases with a large table as all
 * multiples that digits of b bits ask for, so that nothing is sorted: ceil(255 / b) 2^(b - 1)
 * points a base, from 64 x 8 (b = 4) to 32 x 128 (b = 8), the widest digits that the memory allows,
 * where that takes no more additions than shifted copies.
 */
#ifndef OBK_MSM_GPU_H
#define OBK_MSM_GPU_H

#include "compute/gpu/gpu.h"
#include "compute/msm/msm.h"

#define OBK_MSM_GPU_MAX_WINDOW           24
#define OBK_MSM_GPU_MULTIPLES_MAX_POINTS ((size_t)1 << 14)
#define OBK_MSM_GPU_MULTIPLES_MIN_BITS   4
#define OBK_MSM_GPU_MULTIPLES_MAX_BITS   8

struct obk_msm_gpu_bases;

/*
 * args as for obk_msm_bases_new; table_bytes is memory of the device. Points are checked there. The
 * pool serves for decoding compressed and uncompressed points. If the device lacks memory for the
 * table, a smaller one is made.
 */
enum ob_err obk_msm_gpu_bases_new(struct obk_gpu *gpu, const struct obk_msm_bases_args *args,
	struct obk_msm_gpu_bases **ret_bases, struct obk_fault *fault);
void obk_msm_gpu_bases_free(struct obk_msm_gpu_bases *bases);

struct obk_msm_gpu_info {
	size_t count, bytes; /* points; memory of the device held */
	unsigned shifts;     /* copies of the bases, 1 without a table */
	/* bits of a window, or of a digit, if there is a table, else 0: chosen by size */
	unsigned window;
	bool multiples; /* all multiples by the digits are held; shifts: windows of them */
};

void obk_msm_gpu_bases_info(
	const struct obk_msm_gpu_bases *bases, struct obk_msm_gpu_info *ret_info);

/*
 * As obk_msm_run, with job->window up to OBK_MSM_GPU_MAX_WINDOW. job->pool sums up what is left for
 * the CPU. scalars: their address on the device, batch x count of them in job->format, 16-byte
 * aligned and finished before this call (job->scalars is not looked at); 0: they are job->scalars,
 * and work on the first begins while the rest travel (OUTBOARD_OPT=-stage: after the last). Returns
 * when the result is there. job->stop is asked between groups of points, job->range is not used.
 * OB_ERR_NO_MEMORY if the device has no room even for a 64th of the points at a time.
 */
enum ob_err obk_msm_gpu_run(const struct obk_msm_gpu_bases *bases, const struct obk_msm_job *job,
	CUdeviceptr scalars, struct obk_g1_affine *ret_points, struct obk_fault *fault);

#endif
