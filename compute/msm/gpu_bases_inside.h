/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Private to the MSM on a GPU: the contents of bases. */
#ifndef OBK_MSM_GPU_BASES_INSIDE_H
#define OBK_MSM_GPU_BASES_INSIDE_H

#include "compute/msm/gpu_bases.h"
#include "compute/msm/gpu_model.h"
#include "compute/msm/gpu_shape.h"
#include "compute/msm/plan.h"

struct obk_msm_gpu_bases {
	struct obk_gpu *gpu;
	size_t count;
	bool order_r;
	/*
	 * points: [windows][count][2^(window - 1) multiples], windows as in
	 * obk_msm_gpu_multiples_plan
	 */
	bool multiples;
	unsigned copies; /* points: [copies][count]; copy t holds 2^(shift t) P */
	/* with multiples or several copies, window is the only window size that they fit */
	unsigned shift, window;
	struct obk_gpu_buffer points;
};

/*
 * As obk_msm_gpu_bases_new, with the table given by `choice`, which must be valid for these points;
 * NULL: the fastest.
 */
enum ob_err obk_msm_gpu_bases_make(struct obk_gpu *gpu, const struct obk_msm_bases_args *args,
	const struct obk_msm_gpu_choice *choice, struct obk_msm_gpu_bases **ret_bases,
	struct obk_fault *fault);
/*
 * Chooses the table with which the device is fastest in that memory, for bases with gpu, count and
 * order_r.
 */
void obk_msm_gpu_table_plan(struct obk_msm_gpu_bases *bases, size_t table_bytes);

/* The number of blocks of `threads` threads for n items. */
static inline unsigned obk_msm_gpu_blocks(size_t n, unsigned threads)
{
	return (unsigned)((n + threads - 1) / threads);
}

#endif
