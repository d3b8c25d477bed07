/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arithmetic for dividing work: scores, parts, and which device to relieve. Pure functions, any
 * thread.
 */
#ifndef OBV_SPLIT_H
#define OBV_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/engine/outboard.h"

#define OBV_LOAD_HOT  0.8
#define OBV_LOAD_COLD 0.5
#define OBV_MOVES_MAX 10 /* most pieces moved in one round */

/*
 * What a device's score is computed from if there are no measurements. Scores are relative to one
 * CPU thread.
 */
struct obv_traits {
	uint32_t kind;  /* enum outboard_kind */
	uint32_t units; /* threads or multiprocessors */
	uint64_t memory;
	double clock; /* GHz; 0: unknown */
	double link;  /* overhead of one call, in seconds */
};
double obv_score(const struct obv_traits *traits);

/*
 * Divides `count` items among n devices (1..OUTBOARD_MAX_DEVICES): the values of ret_parts[n] add
 * up to count. EQUAL: the remainder goes to the first device. PROPORTIONAL: by score. DYNAMIC: by
 * score x (1 - load). The remainder of rounding goes to the parts with the largest fractions, lower
 * index first. If all scores are 0: as EQUAL. SINGLE and AUTO do not divide: everything goes to the
 * device with the highest score x (1 - load).
 */
void obv_split(uint32_t strategy, uint64_t count, unsigned n, const double *scores,
	const double *loads, uint64_t *ret_parts);

/*
 * Finds the most loaded usable device above OBV_LOAD_HOT and the least loaded one below
 * OBV_LOAD_COLD; false: there is no such pair.
 */
bool obv_hot_and_cold(
	unsigned n, const double *loads, const bool *usable, unsigned *ret_hot, unsigned *ret_cold);
/* Converts seconds of queued work to a load in 0..1. */
double obv_load(double seconds, double horizon);

#endif
