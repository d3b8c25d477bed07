/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the kernels of kernels/rqa get from the host, by value; the same layout in C and in CUDA. Addresses are the device's; 0: there is none. */
#ifndef OBK_RQA_GPU_ARGS_H
#define OBK_RQA_GPU_ARGS_H

#include <stdint.h>

#define OBK_RQA_GPU_SHORT 256u /* runs shorter than this are counted per block first */
#define OBK_RQA_GPU_BLOCK 128u /* threads */

struct obk_rqa_gpu_plot {
	uint64_t x, y; /* channels one after the other, each x_stride or y_stride numbers long */
	uint64_t x_valid, y_valid;
	uint64_t x_stride, y_stride, tau;
	double limit;
	uint32_t channels, m;
	int32_t norm, f64;
};

/* Histograms are arrays of 64-bit counters. sums: points, points of the LOI, sum and number of first recurrence times, the run that is open at the end. */
struct obk_rqa_gpu_args {
	struct obk_rqa_gpu_plot plot[2];
	uint64_t n1, n2, square_length;
	uint64_t kinds[3], loi, loi_border, profile, square;
	uint64_t vertical, white, white_border, start, middle, sums;
	uint32_t plots, theiler_rr, theiler_diag, theiler_vert, theiler_white;
	int32_t symmetric, triangle;
};

enum { OBK_RQA_GPU_POINTS, OBK_RQA_GPU_LOI, OBK_RQA_GPU_T1_SUM, OBK_RQA_GPU_T1_COUNT, OBK_RQA_GPU_OPEN, OBK_RQA_GPU_SUMS };

#endif
