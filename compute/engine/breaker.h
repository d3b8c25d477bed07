/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A circuit breaker: a device that fails again and again gets no work for a while, then one piece
 * to try. A plain struct inside its device, guarded by the owner's lock; it never looks at a clock:
 * `now` is given, in nanoseconds.
 *
 *     closed --failures in a row--> open --pause over, a piece begins--> half-open --success--> closed
 *                                    ^                                      | failure: the pause doubles, up to OBV_BREAKER_LONGEST times the first
 *                                    +--------------------------------------+
 */
#ifndef OBV_BREAKER_H
#define OBV_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/engine/outboard.h"

#define OBV_BREAKER_LONGEST 16

struct obv_breaker {
	enum outboard_breaker state;
	unsigned failures, threshold; /* in a row; that open it */
	uint64_t pause, first_pause;  /* ns */
	uint64_t until;               /* open: the end of the pause */
	uint64_t opened;              /* how often */
};

void obv_breaker_init(struct obv_breaker *b, unsigned threshold, uint64_t pause_ns);
/*
 * May work be sent there? True when closed, and when open with its pause over: then one piece only.
 */
bool obv_breaker_ready(const struct obv_breaker *b, uint64_t now);
/*
 * A piece begins. False: not now. An open breaker whose pause is over becomes half-open, *ret_trial
 * tells.
 */
bool obv_breaker_begin(struct obv_breaker *b, uint64_t now, bool *ret_trial);
void obv_breaker_success(struct obv_breaker *b);
/* True when this failure opened it. */
bool obv_breaker_failure(struct obv_breaker *b, uint64_t now);
/*
 * The wait before attempt `attempt` (1: the first repetition): first, doubled each time, at most
 * `most`.
 */
uint64_t obv_backoff(unsigned attempt, uint64_t first_ns, uint64_t most_ns);

#endif
