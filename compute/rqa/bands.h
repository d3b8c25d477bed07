/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counts vertical lines of a symmetric matrix while its diagonals are walked. Threads count bands
 * of neighbouring diagonals in any order; finished bands are merged in their natural order. Owned
 * by one count. Its threads may call claim and done; only one thread may call the other functions.
 */
#ifndef OBK_RQA_BANDS_H
#define OBK_RQA_BANDS_H

#include <pthread.h>

#include "compute/rqa/internal.h"

struct obk_rqa_bands {
	struct obk_rqa_counts *counts;
	/* n; number of diagonals in a band, a multiple of OBK_RQA_LANES below OBK_RQA_HEAD */
	uint64_t lines, width;
	uint64_t next; /* the band that is merged next */
	struct obk_rqa_band *slot;
	unsigned slots;
	bool waits; /* lock and turn are initialised */
	pthread_mutex_t lock;
	pthread_cond_t turn;
};

/*
 * Memory: 8 n bytes for each thread and for two more, and 16 n in counts->line, which is not freed.
 * OBK_RQA_NO_MEMORY: nothing stays allocated; the caller may try again with fewer threads.
 */
int obk_rqa_bands_init(struct obk_rqa_bands *bands, struct obk_rqa_counts *counts, uint64_t width,
	unsigned threads);
void obk_rqa_bands_fini(struct obk_rqa_bands *bands);
/*
 * Returns the memory for counting the band; blocks while the band is too far ahead of the slowest
 * one. NULL: the watch is stopped.
 */
struct obk_rqa_band *obk_rqa_bands_claim(
	struct obk_rqa_bands *bands, uint64_t index, struct obk_rqa_watch *watch);
/*
 * Call it when the band has been counted. Lines that end in it are added to the histogram of
 * vertical lines.
 */
void obk_rqa_bands_done(struct obk_rqa_bands *bands, uint64_t index);
/*
 * Call it after the last band. Counts lines that cross the line of identity and lines that reach
 * the border.
 */
void obk_rqa_bands_end(struct obk_rqa_bands *bands);

#endif
