/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The policies: chooses among the servers that are offered to it, one after the other, without
 * keeping a list. For place.c alone, which owns the struct during one placement.
 */
#ifndef OBL_PICK_H
#define OBL_PICK_H

#include "loadbalancer/filter.h"

struct obl_picker { /* set search, state and turn; the rest is zero */
	const struct obl_search *search;
	struct obl_state *state;
	uint32_t seen, equal;
	uint32_t turn; /* state->turn as an index of a server */
	double weights;
	struct obl_rank best, other; /* other: the second sample of POWER_OF_TWO */
};

/* Offers a server with a device, or devices, that fit. `rank` may be completed. */
void obl_offer(struct obl_picker *picker, struct obl_rank *rank);
/*
 * Ends the choice and advances the state. False: nothing was offered. A server that did not fit
 * keeps its position in the round.
 */
bool obl_picked(struct obl_picker *picker, struct obl_rank *ret);
/* Uniform in [0, n); the bias is below n / 2^32. */
uint32_t obl_random_below(uint64_t *state, uint32_t n);

#endif
