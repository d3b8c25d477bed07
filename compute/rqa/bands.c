/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compute/rqa/bands.h"

/* bands that may wait for a slower one, in addition to one per thread */
#define SLOTS_MORE 2u
#define LOOK_NS    50000000l /* time between two checks of the watch */

/*
 * State of a line: whether its first run has ended, the length of that run, and the length of the
 * open run. 0: no cells yet.
 */
#define ENDED    ((uint64_t)1 << 63)
#define RUN_BITS 32

int obk_rqa_bands_init(struct obk_rqa_bands *bands, struct obk_rqa_counts *counts, uint64_t width,
	unsigned threads)
{
	uint64_t n = counts->n1;
	bool good;

	memset(bands, 0, sizeof *bands);
	bands->counts = counts;
	bands->lines = n;
	bands->width = width;
	bands->slots = threads == 1 ? 1 : threads + SLOTS_MORE;
	bands->slot = calloc(bands->slots, sizeof *bands->slot);
	counts->line.length = 2 * n - 1;
	counts->line.count = calloc(2 * n, sizeof *counts->line.count);
	good = bands->slot && counts->line.count;
	for (unsigned s = 0; s < bands->slots && good; s++) {
		struct obk_rqa_band *band = &bands->slot[s];

		band->lines = n;
		band->start = malloc(2 * n * sizeof *band->start);
		band->head = calloc(2 * n, sizeof *band->head);
		band->tail = malloc((n / 64 + 2) * sizeof *band->tail);
		good = band->start && band->head && band->tail;
	}
	if (!good) {
		obk_rqa_bands_fini(bands);
		free(counts->line.count);
		counts->line.count = NULL;
		return OBK_RQA_NO_MEMORY;
	}
	pthread_mutex_init(&bands->lock, NULL);
	pthread_cond_init(&bands->turn, NULL);
	bands->waits = true;
	return OBK_RQA_OK;
}

void obk_rqa_bands_fini(struct obk_rqa_bands *bands)
{
	for (unsigned s = 0; s < bands->slots && bands->slot; s++) {
		free(bands->slot[s].start);
		free(bands->slot[s].head);
		free(bands->slot[s].tail);
	}
	free(bands->slot);
	if (bands->waits) {
		pthread_mutex_destroy(&bands->lock);
		pthread_cond_destroy(&bands->turn);
	}
	memset(bands, 0, sizeof *bands);
}

struct obk_rqa_band *obk_rqa_bands_claim(
	struct obk_rqa_bands *bands, uint64_t index, struct obk_rqa_watch *watch)
{
	struct obk_rqa_band *band = &bands->slot[index % bands->slots];
	bool stopped;

	pthread_mutex_lock(&bands->lock);
	while (!(stopped = obk_rqa_watch_stopped(watch)) && index >= bands->next + bands->slots) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&bands->turn, &bands->lock, &until);
	}
	pthread_mutex_unlock(&bands->lock);
	if (stopped)
		return NULL;
	/*
	 * Assume that every line has an open run from the previous band; whether it has is known
	 * when the bands are merged.
	 */
	memset(band->start, 0xff, 2 * bands->lines * sizeof *band->start);
	memset(band->tail, 0xff, (bands->lines / 64 + 2) * sizeof *band->tail);
	return band;
}

static void line_add(struct obk_rqa_bands *bands, const struct obk_rqa_band *band, uint64_t line,
	uint64_t width, bool open)
{
	uint64_t so_far = obk_rqa_hist_get(&bands->counts->line, line),
		 run = so_far & (((uint64_t)1 << RUN_BITS) - 1);

	if (open && band->start[line] == OBK_RQA_HEAD) {
		so_far += width;
	} else {
		uint64_t tail = open ? width - band->start[line] : 0;

		run += band->head[line];
		if (!(so_far & ENDED))
			so_far = ENDED | run << RUN_BITS;
		else if (run)
			obk_rqa_hist_add(&bands->counts->vertical, run, 1);
		so_far = (so_far >> RUN_BITS << RUN_BITS) | tail;
	}
	/* relaxed: accessed under the lock */
	atomic_store_explicit(&bands->counts->line.count[line], so_far, memory_order_relaxed);
}

static void band_add(struct obk_rqa_bands *bands, const struct obk_rqa_band *band, uint64_t index)
{
	uint64_t n = bands->lines, first = index * bands->width,
		 last = first + bands->width < n ? first + bands->width : n;

	for (uint64_t i = 0; i < n - first; i++)
		line_add(bands, band, i, (last < n - i ? last : n - i) - first,
			band->tail[i / 64] >> (i & 63) & 1);
	/* Column j leaves the band at the cell (j - last + 1, j), or at the border. */
	for (uint64_t j = first; j < n; j++) {
		uint64_t i = j - last + 1;

		line_add(bands, band, n + j, last - first,
			j >= last && band->tail[i / 64] >> (i & 63) & 1);
	}
}

void obk_rqa_bands_done(struct obk_rqa_bands *bands, uint64_t index)
{
	pthread_mutex_lock(&bands->lock);
	bands->slot[index % bands->slots].done = true;
	for (;;) {
		struct obk_rqa_band *band = &bands->slot[bands->next % bands->slots];

		if (!band->done)
			break;
		band_add(bands, band, bands->next);
		band->done = false;
		bands->next++;
	}
	pthread_cond_broadcast(&bands->turn);
	pthread_mutex_unlock(&bands->lock);
}

/* The length of the run at the beginning of a line. */
static uint64_t line_first(const struct obk_rqa_bands *bands, uint64_t line)
{
	uint64_t value = obk_rqa_hist_get(&bands->counts->line, line);

	return value & ENDED ? (value & ~ENDED) >> RUN_BITS : value;
}

void obk_rqa_bands_end(struct obk_rqa_bands *bands)
{
	uint64_t n = bands->lines;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t below = line_first(bands, i), above = line_first(bands, n + i),
			 value = obk_rqa_hist_get(&bands->counts->line, i);

		/* Both lines contain the cell (i, i). */
		if (below)
			obk_rqa_hist_add(&bands->counts->vertical, below + above - 1, 1);
		if (value & ENDED && value << RUN_BITS)
			obk_rqa_hist_add(&bands->counts->vertical,
				value & (((uint64_t)1 << RUN_BITS) - 1), 1);
	}
	bands->counts->open_last = line_first(bands, 2 * n - 1);
}
