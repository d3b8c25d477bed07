/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Predicts how products on a GPU would be computed, and how long they would take. Any thread; the
 * functions call obk_gpu_enter themselves.
 */
#ifndef OBK_MSM_GPU_PREDICT_H
#define OBK_MSM_GPU_PREDICT_H

#include "compute/msm/gpu_bases.h"
#include "compute/msm/plan.h"

/* How `batch` products of the first n points (1..the number of bases) would be computed now. */
struct obk_msm_gpu_prediction {
	struct obk_plan plan;
	/*
	 * products processed together; points of a product processed together, fewer than n if
	 * memory is short
	 */
	size_t products, count;
	double seconds; /* expected for all products */
	bool measured;  /* true: from a profile; false: estimated */
};

/*
 * The same for a handle of `count` points that does not exist yet, with the largest table that
 * table_bytes allows. ret_info as for obk_msm_gpu_bases_info.
 */
enum ob_err obk_msm_gpu_predict_new(struct obk_gpu *gpu, size_t count, bool order_r,
	size_t table_bytes, size_t n, size_t batch, struct obk_msm_gpu_info *ret_info,
	struct obk_msm_gpu_prediction *ret_prediction, struct obk_fault *fault);
enum ob_err obk_msm_gpu_predict(const struct obk_msm_gpu_bases *bases, size_t n, size_t batch,
	struct obk_msm_gpu_prediction *ret_prediction, struct obk_fault *fault);

#endif
