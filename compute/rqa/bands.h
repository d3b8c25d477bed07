/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Vertical lines of a symmetric matrix from its diagonals: bands of neighbouring diagonals are
 * walked by any thread in any order, and put together in theirs. Owned by one count; claim and done
 * may be called by its threads, the rest by one thread.
 */
#ifndef OBK_RQA_BANDS_H
#define OBK_RQA_BANDS_H

#include <pthread.h>

#include "compute/rqa/internal.h"

struct obk_rqa_bands {
	struct obk_rqa_counts *counts;
	/* n; diagonals of a band, a multiple of OBK_RQA_LANES below OBK_RQA_HEAD */
	uint64_t lines, width;
	uint64_t next; /* the band to be put in next */
	struct obk_rqa_band *slot;
	unsigned slots;
	bool waits; /* lock and turn are there */
	pthread_mutex_t lock;
	pthread_cond_t turn;
};

/*
 * Memory is 8 n bytes a thread and twice more, and 16 n for counts->line, which stays there.
 * OBK_RQA_NO_MEMORY: none is kept; fewer threads may do.
 */
int obk_rqa_bands_init(struct obk_rqa_bands *bands, struct obk_rqa_counts *counts, uint64_t width,
	unsigned threads);
void obk_rqa_bands_fini(struct obk_rqa_bands *bands);
/*
 * Where to count the band; blocks while it is too far ahead of the slowest one. NULL: the watch
 * says stop.
 */
struct obk_rqa_band *obk_rqa_bands_claim(
	struct obk_rqa_bands *bands, uint64_t index, struct obk_rqa_watch *watch);
/* The band is counted. Lines that end in it are added to the histogram of verticals. */
void obk_rqa_bands_done(struct obk_rqa_bands *bands, uint64_t index);
/* After the last band: lines through the line of identity, and those that reach the border. */
void obk_rqa_bands_end(struct obk_rqa_bands *bands);

#endif
