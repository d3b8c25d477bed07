/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Arithmetic of sharing work out: scores, parts, whom to relieve. Pure functions, any thread. */
#ifndef OBV_SPLIT_H
#define OBV_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/engine/outboard.h"

#define OBV_LOAD_HOT  0.8
#define OBV_LOAD_COLD 0.5
#define OBV_MOVES_MAX 10 /* pieces moved in one round */

/*
 * What a device's score is made from where nothing was measured: relative to one thread of a CPU.
 */
struct obv_traits {
	uint32_t kind;  /* enum outboard_kind */
	uint32_t units; /* threads or multiprocessors */
	uint64_t memory;
	double clock; /* GHz; 0: unknown */
	double link;  /* seconds of one call */
};
double obv_score(const struct obv_traits *traits);

/*
 * Parts of `count` items for n devices (1..OUTBOARD_MAX_DEVICES): ret_parts[n] add up to count.
 * EQUAL: the remainder goes to the first device. PROPORTIONAL: by score. DYNAMIC: by score x (1 -
 * load). Rounding's rest goes to the largest fractions, lower index first. Scores that are all 0:
 * as EQUAL. SINGLE and AUTO are not split: everything goes to the best score x (1 - load).
 */
void obv_split(uint32_t strategy, uint64_t count, unsigned n, const double *scores,
	const double *loads, uint64_t *ret_parts);

/*
 * The hottest device above OBV_LOAD_HOT and the coldest below OBV_LOAD_COLD among those with
 * usable[i]; false when there is no such pair.
 */
bool obv_hot_and_cold(
	unsigned n, const double *loads, const bool *usable, unsigned *ret_hot, unsigned *ret_cold);
/* Seconds of queued work as a load: 0..1. */
double obv_load(double seconds, double horizon);

#endif
