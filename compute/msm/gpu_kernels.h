/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The kernels of the MSM on a GPU: indices of the functions that obk_gpu_load returns. */
#ifndef OBK_MSM_GPU_KERNELS_H
#define OBK_MSM_GPU_KERNELS_H

#include "compute/gpu/gpu.h"

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

#endif
