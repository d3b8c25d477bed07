/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the kernels of compute/rqa get from the host, by value; the same layout in C and in CUDA.
 * Addresses are the device's; 0: there is none.
 */
#ifndef OBK_RQA_GPU_ARGS_H
#define OBK_RQA_GPU_ARGS_H

#include <stdint.h>

#define OBK_RQA_GPU_SHORT  256u /* runs shorter than this are counted per block first */
#define OBK_RQA_GPU_BLOCK  128u /* threads; of the bits, also diagonals of a block */
#define OBK_RQA_GPU_SLAB   32u  /* rows of a slab: the cells of a word */
/* zeros before the samples of a channel, as many as a slab is skewed */
#define OBK_RQA_GPU_BEFORE 32u
/* and behind them: two tiles further, or a block's diagonals and a slab */
#define OBK_RQA_GPU_BEHIND 512u
#define OBK_RQA_GPU_TILE   256u /* rows and diagonals of a tile, and threads that do it */
#define OBK_RQA_GPU_STRIP  8u   /* tiles that a block does one after the other, at most */
#define OBK_RQA_GPU_SLOTS  64u  /* (m, radius) that a block of a sweep counts together */
#define OBK_RQA_GPU_BINS   32u  /* runs shorter than this are counted per block of a sweep first */
#define OBK_RQA_GPU_PAD    64u  /* zeros readable behind a series of a sweep */

struct obk_rqa_gpu_plot {
	/*
	 * first samples; channels one after the other, each x_stride or y_stride numbers long with
	 * the zeros around it
	 */
	uint64_t x, y;
	uint64_t x_valid, y_valid;
	uint64_t x_stride, y_stride, tau;
	double limit;
	uint32_t channels, m, norm; /* norm: 0 L1, 1 L2, 2 the largest */
	float slack;                /* nearer to 0 than this a near result decides nothing */
	/*
	 * planes of float: each channel, moved to around 0, and the squared lengths of the vectors
	 * (gpu_near.c)
	 */
	uint64_t near, near_stride;
};

/*
 * Histograms are arrays of 64-bit counters. sums: points, points of the LOI, sum and number of
 * first recurrence times, the run that is open at the end. words: the cells of the slabs of a band,
 * `stride` words a slab (kernel.cu). states: 32-bit numbers, planes of one a diagonal or one a
 * column. With tiles (kernel_tiles.cuh) words are the pieces of a band's lines, `stride` of them a
 * row of `tiles` tiles, which are done `strip` at a time.
 */
struct obk_rqa_gpu_args {
	struct obk_rqa_gpu_plot plot[2];
	uint64_t n1, n2, square_length, stride, words, diagonal_state, column_state;
	uint64_t kinds[3], loi, loi_border, profile, square;
	uint64_t vertical, white, white_border, start, middle, sums;
	uint32_t theiler_rr, theiler_diag, theiler_vert, theiler_white;
	int32_t symmetric, triangle;
	uint32_t plots, tiles, strip;
};

enum {
	OBK_RQA_GPU_POINTS,
	OBK_RQA_GPU_LOI,
	OBK_RQA_GPU_T1_SUM,
	OBK_RQA_GPU_T1_COUNT,
	OBK_RQA_GPU_OPEN,
	OBK_RQA_GPU_SUMS
};

/*
 * What is kept of a column between two bands; from START on only where recurrence times are wanted.
 */
enum {
	OBK_RQA_GPU_COLUMN_OPEN,
	OBK_RQA_GPU_COLUMN_WHITE,
	OBK_RQA_GPU_COLUMN_BASIC,
	OBK_RQA_GPU_COLUMN_START = OBK_RQA_GPU_COLUMN_BASIC,
	OBK_RQA_GPU_COLUMN_END,
	OBK_RQA_GPU_COLUMN_FIRST,
	OBK_RQA_GPU_COLUMN_COUNT,
	OBK_RQA_GPU_COLUMN_POINTS,
	OBK_RQA_GPU_COLUMN_STATES
};

/* What one block of a sweep does: some m and some radii of one (series, mode, tau). */
struct obk_rqa_gpu_item {
	uint64_t planes; /* channels one after the other, each length + OBK_RQA_GPU_PAD numbers */
	uint64_t hist;   /* 32-bit counters: length + 1 of each slot, m-major */
	uint64_t m;      /* m_count dimensions, rising */
	uint64_t limit;  /* limit_count limits */
	/* width: cells of a column nearer to the LOI are left out */
	uint32_t length, channels, tau, norm, width;
	uint32_t line_first, line_last;
	uint32_t m_count, limit_count;
	uint32_t slot; /* the item's first one in `found` */
};

/*
 * What came of a slot: its pairs of length and count, by rising length. count ~0: there was no
 * room.
 */
struct obk_rqa_gpu_found {
	uint32_t first, count;
};

struct obk_rqa_gpu_sweep {
	/* cursor: one 32-bit number, pairs given out so far */
	uint64_t items, pairs, found, cursor;
	uint32_t room; /* pairs there is room for */
};

#endif
