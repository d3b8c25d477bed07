/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * An independent reference: the recurrence matrix as one byte per cell, and a direct implementation
 * of every definition. Slow; shares only the options with compute/rqa. One owner, one thread.
 */
#ifndef OBK_TEST_BRUTE_H
#define OBK_TEST_BRUTE_H

#include "compute/rqa/rqa.h"

#define BRUTE_MAX 700

struct brute {
	unsigned n1, n2;
	int symmetric;
	unsigned char cell[BRUTE_MAX][BRUTE_MAX]; /* [i][j] */
	/* numbers of lines by length; the names are those of enum obk_rqa_histogram */
	unsigned long diagonal[BRUTE_MAX + 1], diagonal_border[BRUTE_MAX + 1],
		vertical[BRUTE_MAX + 1], white[BRUTE_MAX + 1], white_border[BRUTE_MAX + 1];
	unsigned long start[BRUTE_MAX + 1], middle[BRUTE_MAX + 1];
	unsigned long profile[2 * BRUTE_MAX];
	double value[OBK_RQA_MEASURE_COUNT];
};

/*
 * Fills cell[][]: compares each distance, for L2 computed with sqrt, with the threshold.
 * Coordinates are summed in index order.
 */
void brute_matrix(struct brute *b, const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *o);
/* Computes histograms and measures of the current cell[][]. */
void brute_count(struct brute *b, const struct obk_rqa_options *o);

#endif
