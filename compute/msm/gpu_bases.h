/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Bases of multi-scalar multiplications on a GPU. The caller owns them and frees them before it
 * closes the device they were made for. They are read-only once made; any thread may use them. The
 * functions call obk_gpu_enter themselves.
 *
 * With a table, the device holds shifted copies of the bases, 2^(c t) P, as many as the allowed
 * memory permits. Then there are fewer buckets to sum, and no doublings. For a few bases and much
 * memory the table holds all multiples that a digit of b bits can select; then nothing is sorted.
 * It has ceil(255 / b) 2^(b - 1) points per base, from 64 x 8 (b = 4) to 32 x 128 (b = 8). It uses
 * the largest b that the memory allows, and is chosen if it needs no more additions than shifted
 * copies.
 */
#ifndef OBK_MSM_GPU_BASES_H
#define OBK_MSM_GPU_BASES_H

#include "compute/gpu/gpu.h"
#include "compute/msm/job.h"

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

#endif
