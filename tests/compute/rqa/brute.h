/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A second opinion: the recurrence matrix as bytes, walked cell by cell, every definition written
 * down once more in the plainest way. Slow, and shares nothing with compute/rqa but the options.
 * One owner, one thread.
 */
#ifndef OBK_TEST_BRUTE_H
#define OBK_TEST_BRUTE_H

#include "compute/rqa/rqa.h"

#define BRUTE_MAX 700

struct brute {
	unsigned n1, n2;
	int symmetric;
	unsigned char cell[BRUTE_MAX][BRUTE_MAX]; /* [i][j] */
	/* by length; the names are those of enum obk_rqa_histogram */
	unsigned long diagonal[BRUTE_MAX + 1], diagonal_border[BRUTE_MAX + 1],
		vertical[BRUTE_MAX + 1], white[BRUTE_MAX + 1], white_border[BRUTE_MAX + 1];
	unsigned long start[BRUTE_MAX + 1], middle[BRUTE_MAX + 1];
	unsigned long profile[2 * BRUTE_MAX];
	double value[OBK_RQA_MEASURE_COUNT];
};

/* Cells by sqrt and comparison, coordinates summed in index order. */
void brute_matrix(struct brute *b, const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *o);
/* Histograms and measures of cell[][] as it stands. */
void brute_count(struct brute *b, const struct obk_rqa_options *o);

#endif
