/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The counting of one matrix. count.c plans it, runs its units on threads and keeps the file for
 * resuming; count_lines.c counts the lines of a unit. A unit is a group of neighbouring diagonals
 * or of neighbouring columns. The struct is read-only for the threads, except for the counters and
 * each thread's scratch.
 */
#ifndef OBK_RQA_COUNT_H
#define OBK_RQA_COUNT_H

#include "compute/rqa/bands.h"

struct obk_rqa_counting {
	const struct obk_rqa_matrix *matrix;
	const struct obk_rqa_options *options;
	const struct obk_rqa_ops *ops;
	struct obk_rqa_watch *watch;
	struct obk_rqa_counts *counts;
	struct obk_rqa_scratch *scratch; /* one per thread */
	struct obk_rqa_sieve sieve[2];   /* one per plot */
	bool sifting;
	bool banded; /* vertical lines are counted with the diagonals */
	struct obk_rqa_bands bands;
	/* number of diagonals; for a symmetric matrix including the LOI */
	uint64_t diagonals;
	uint64_t columns; /* 0: nothing is counted along columns */
	uint64_t diagonals_unit, columns_unit, diagonal_units, units;
};

/* Counts one unit on one of the threads. arg: a struct obk_rqa_counting. */
void obk_rqa_count_unit(void *arg, unsigned thread, uint64_t unit);
/* Number of words for the cells of one column in scratch->columns. */
uint64_t obk_rqa_columns_stride(const struct obk_rqa_matrix *matrix);

#endif
