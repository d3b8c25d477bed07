/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Inside the multi-scalar product on a GPU: what bases hold there, the kernels, and the shapes that they are run in. */
#ifndef OBK_MSM_GPU_INSIDE_H
#define OBK_MSM_GPU_INSIDE_H

#include "kernels/msm/gpu.h"
#include "kernels/msm/gpu_shape.h"
#include "kernels/msm/plan.h"

/* kernel.cu */
enum {
	OBK_MSM_PREPARE,
	OBK_MSM_COUNT,
	OBK_MSM_SCAN,
	OBK_MSM_SCAN_TILES,
	OBK_MSM_SCATTER,
	OBK_MSM_ACCUMULATE,
	OBK_MSM_JOIN,
	OBK_MSM_FOLD,
	OBK_MSM_FOLD_REST,
	OBK_MSM_MULTIPLES_SUM,
	OBK_MSM_SUM_TREE,
	OBK_MSM_JOIN_FOUR,
	OBK_MSM_FOLD_FOUR,
	OBK_MSM_FOLD_REST_FOUR,
	OBK_MSM_KERNELS,
};

/* tables.cu */
enum {
	OBK_MSM_CHECK,
	OBK_MSM_SHIFT,
	OBK_MSM_MAKE_MULTIPLES,
	OBK_MSM_TO_AFFINE,
	OBK_MSM_TABLE_KERNELS,
};

extern const struct obk_gpu_image obk_msm_gpu_kernels, obk_msm_gpu_table_kernels;

struct obk_msm_gpu_bases {
	struct obk_gpu *gpu;
	size_t count;
	bool order_r;
	bool multiples;  /* points: [windows][count][2^(window - 1) multiples], windows as obk_msm_gpu_multiples_plan has them */
	unsigned copies; /* points: [copies][count]; copy t holds 2^(shift t) P */
	unsigned shift, window; /* window: with multiples or more than one copy the only one they fit */
	struct obk_gpu_buffer points;
};

/* window = 0: the cheapest for products of n points, `products` at a time. */
void obk_msm_gpu_plan(struct obk_plan *plan, unsigned copies, unsigned fixed_window, bool order_r, size_t n, size_t products);
/* Where all multiples that digits of `bits` bits ask for are held. */
struct obk_plan obk_msm_gpu_multiples_plan(unsigned bits);
double obk_msm_gpu_cost(const struct obk_plan *plan, size_t n, size_t products);

/* Blocks of `threads` for n items. */
static inline unsigned obk_msm_gpu_blocks(size_t n, unsigned threads)
{
	return (unsigned)((n + threads - 1) / threads);
}

#endif
