/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counting on a GPU, through the CUDA driver API: whatever libcuda.so.1 the process has. The device is opened at the first call and kept for the life of the
 * process; one call counts at a time, from any thread.
 */
#ifndef OBK_RQA_GPU_H
#define OBK_RQA_GPU_H

#include "kernels/rqa/internal.h"

/*
 * As obk_rqa_count, on device 0; ret_name: the device's name, `size` bytes.
 * OBK_RQA_UNSUPPORTED and a sentence where there is no driver, device or code for it.
 */
int obk_rqa_gpu_count(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options, struct obk_rqa_watch *watch, struct obk_rqa_counts *counts,
		      char *ret_name, size_t size, struct obk_rqa_error *ret_error);
/* As obk_rqa_control_check, for calls that can use a GPU. */
int obk_rqa_control_check_gpu(const struct obk_rqa_control *control, const struct obk_rqa_ops **ret_ops, struct obk_rqa_error *ret_error);

#endif
