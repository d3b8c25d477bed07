/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arguments of the kernels of compute/rqa, passed by value, with the same layout in C and in CUDA.
 * Addresses are device addresses; 0: none.
 */
#ifndef OBK_RQA_GPU_ARGS_H
#define OBK_RQA_GPU_ARGS_H

#include <stdint.h>

#define OBK_RQA_GPU_SHORT  256u /* runs shorter than this are first counted per block */
#define OBK_RQA_GPU_BLOCK  128u /* threads per block; for the bits also diagonals per block */
#define OBK_RQA_GPU_SLAB   32u  /* rows in a slab: the cells in one word */
/* zeros before the samples of a channel, as many as the skew of a slab */
#define OBK_RQA_GPU_BEFORE 32u
/* zeros behind the samples: for two more tiles, or for a block's diagonals and a slab */
#define OBK_RQA_GPU_BEHIND 512u
#define OBK_RQA_GPU_TILE   256u /* rows and diagonals in a tile; also the threads that process it */
#define OBK_RQA_GPU_STRIP  8u   /* most tiles that a block processes one after the other */
#define OBK_RQA_GPU_SLOTS  64u  /* (m, radius) pairs that a block of a sweep counts together */
#define OBK_RQA_GPU_BINS   32u  /* runs shorter than this are first counted per block of a sweep */
#define OBK_RQA_GPU_PAD    64u  /* zeros behind a series of a sweep */

struct obk_rqa_gpu_plot {
	/*
	 * addresses of the first samples; channels follow one another, each x_stride or y_stride
	 * numbers long including the zeros around it
	 */
	uint64_t x, y;
	uint64_t x_valid, y_valid;
	uint64_t x_stride, y_stride, tau;
	double limit;
	uint32_t channels, m, norm; /* norm: 0 L1, 1 L2, 2 maximum */
	/* an approximate result with a smaller absolute value is undecided */
	float slack;
	/*
	 * planes of float: each channel, shifted to be centred at 0, then the squared lengths of
	 * the vectors (gpu_near.c)
	 */
	uint64_t near, near_stride;
};

/*
 * Histograms are arrays of 64-bit counters. sums: points, points of the LOI, sum and number of
 * first recurrence times, the run that is open at the end. words: the cells of the slabs of a band,
 * `stride` words per slab (kernel.cu). states: planes of 32-bit numbers, one number per diagonal or
 * per column. With tiles (kernel_tiles.cuh), words holds the pieces of a band's lines: `stride`
 * pieces per row of `tiles` tiles, which are processed `strip` at a time.
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

/* State of a column between two bands. From START on it is needed for recurrence times only. */
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

/* Work of one block of a sweep: several m and several radii of one (series, mode, tau). */
struct obk_rqa_gpu_item {
	/* address of the channels, one after the other, each length + OBK_RQA_GPU_PAD numbers */
	uint64_t planes;
	uint64_t hist;  /* address of 32-bit counters: length + 1 per slot, m-major */
	uint64_t m;     /* address of m_count dimensions, ascending */
	uint64_t limit; /* address of limit_count limits */
	/* width: cells of a column with a smaller distance from the LOI are left out */
	uint32_t length, channels, tau, norm, width;
	uint32_t line_first, line_last;
	uint32_t m_count, limit_count;
	uint32_t slot; /* index of the item's first slot in `found` */
};

/*
 * Result of a slot: pairs of length and count, by ascending length. count ~0: there was no room for
 * them.
 */
struct obk_rqa_gpu_found {
	uint32_t first, count;
};

struct obk_rqa_gpu_sweep {
	/* addresses; cursor points to a 32-bit number: pairs allocated so far */
	uint64_t items, pairs, found, cursor;
	uint32_t room; /* capacity in pairs */
};

#endif
