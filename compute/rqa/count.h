/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The count of one matrix: count.c plans it, runs its units on threads and keeps a run's file;
 * count_lines.c counts the lines of a unit. A unit has neighbouring diagonals, or neighbouring
 * columns. Read-only for the threads but for the counters and each one's scratch.
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
	struct obk_rqa_scratch *scratch; /* one a thread */
	struct obk_rqa_sieve sieve[2];   /* of each plot */
	bool sifting;
	bool banded; /* vertical lines are counted with the diagonals */
	struct obk_rqa_bands bands;
	/* number of diagonals, the LOI of a symmetric matrix included */
	uint64_t diagonals;
	uint64_t columns; /* 0 when nothing is counted along them */
	uint64_t diagonals_unit, columns_unit, diagonal_units, units;
};

/* One unit, on one of the threads; arg: a struct obk_rqa_counting. */
void obk_rqa_count_unit(void *arg, unsigned thread, uint64_t unit);
/* Words that the cells of one column take in scratch->columns. */
uint64_t obk_rqa_columns_stride(const struct obk_rqa_matrix *matrix);

#endif
