/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/msm/gpu_kernels.h"

extern const unsigned char obk_msm_image_start[], obk_msm_image_end[];
static const char *const names[OBK_MSM_KERNELS] = { "msm_prepare", "msm_count", "msm_scan",
	"msm_scan_tiles", "msm_scatter", "msm_accumulate", "msm_join", "msm_fold", "msm_fold_rest",
	"msm_multiples_sum", "msm_tree", "msm_join_four", "msm_fold_four", "msm_fold_rest_four" };
const struct obk_gpu_image obk_msm_gpu_kernels = { "multi-scalar products", obk_msm_image_start,
	obk_msm_image_end, OBK_MSM_KERNELS, names };

extern const unsigned char obk_msm_tables_image_start[], obk_msm_tables_image_end[];
static const char *const table_names[OBK_MSM_TABLE_KERNELS] = { "msm_check", "msm_shift",
	"msm_multiples", "msm_normalise" };
const struct obk_gpu_image obk_msm_gpu_table_kernels = { "multi-scalar products",
	obk_msm_tables_image_start, obk_msm_tables_image_end, OBK_MSM_TABLE_KERNELS, table_names };
