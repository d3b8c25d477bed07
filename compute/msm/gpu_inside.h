/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Private to the MSM on a GPU: products with a given tuning. */
#ifndef OBK_MSM_GPU_INSIDE_H
#define OBK_MSM_GPU_INSIDE_H

#include "compute/msm/gpu.h"
#include "compute/msm/gpu_model.h"

/* As obk_msm_gpu_run, with `tuning` in place of the tuning of the device. */
enum ob_err obk_msm_gpu_run_by(const struct obk_msm_gpu_bases *bases, const struct obk_msm_job *job,
	const struct obk_msm_gpu_tuning *tuning, CUdeviceptr scalars,
	struct obk_g1_affine *ret_points, struct obk_fault *fault);

#endif
