/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/msm/gpu_predict.h"

#include "compute/msm/gpu_layout.h"
#include "compute/msm/gpu_tune.h"

enum ob_err obk_msm_gpu_predict(const struct obk_msm_gpu_bases *b, size_t n, size_t batch,
	struct obk_msm_gpu_prediction *ret_prediction, struct obk_fault *fault)
{
	struct obk_msm_job job = { .count = n, .batch = batch };
	struct obk_msm_gpu_tuning tuning;
	struct obk_msm_gpu_layout l = { .b = b, .job = &job, .gpu = b->gpu, .tuning = &tuning };
	struct obk_msm_gpu_work work = { .n = n, .multiples = b->multiples };
	size_t count = n;
	enum ob_err err;

	if (!n || n > b->count || !batch || batch > OBK_MSM_MAX_BATCH)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"%zu products of %zu points are not in 1..%d of 1..%zu", batch, n,
			OBK_MSM_MAX_BATCH, b->count);
	obk_msm_gpu_tuning_get(b->gpu, &tuning);
	obk_msm_gpu_layout_plan(&l);
	err = obk_gpu_enter(b->gpu, fault);
	if (err)
		return err;
	err = obk_msm_gpu_layout_choose(&l, &count, &work.products, fault);
	obk_gpu_leave(b->gpu);
	work.plan = l.plan;
	if (!err)
		*ret_prediction = (struct obk_msm_gpu_prediction){ .plan = l.plan,
			.products = work.products,
			.count = count,
			.measured = tuning.measured,
			.seconds = obk_msm_gpu_seconds(&tuning, &work) * (double)batch /
				(double)work.products };
	return err;
}

enum ob_err obk_msm_gpu_predict_new(struct obk_gpu *gpu, size_t count, bool order_r,
	size_t table_bytes, size_t n, size_t batch, struct obk_msm_gpu_info *ret_info,
	struct obk_msm_gpu_prediction *ret_prediction, struct obk_fault *fault)
{
	struct obk_msm_gpu_bases b = { .gpu = gpu, .count = count, .order_r = order_r };

	obk_msm_gpu_table_plan(&b, table_bytes);
	obk_msm_gpu_bases_info(&b, ret_info);
	return obk_msm_gpu_predict(&b, n, batch, ret_prediction, fault);
}
