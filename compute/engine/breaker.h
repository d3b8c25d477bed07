/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Circuit breaker: a device that fails repeatedly gets no work for a while, then one piece as a
 * trial. A plain struct inside its device, guarded by the owner's lock. It does not read a clock;
 * callers pass `now` in nanoseconds.
 *
 *     closed     threshold failures in a row         -> open
 *     open       the pause is over, a piece begins   -> half-open
 *     half-open  success                             -> closed
 *     half-open  failure: the pause doubles, up to   -> open
 *                OBV_BREAKER_LONGEST times the first
 */
#ifndef OBV_BREAKER_H
#define OBV_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/engine/outboard.h"

#define OBV_BREAKER_LONGEST 16

struct obv_breaker {
	enum outboard_breaker state;
	/* consecutive failures; number of them that opens the breaker */
	unsigned failures, threshold;
	uint64_t pause, first_pause; /* ns */
	uint64_t until;              /* end of the pause while open */
	uint64_t opened;             /* how often it has opened */
};

void obv_breaker_init(struct obv_breaker *b, unsigned threshold, uint64_t pause_ns);
/*
 * True if work may be sent: the breaker is closed, or it is open and its pause is over. In the
 * second case only one piece may be sent.
 */
bool obv_breaker_ready(const struct obv_breaker *b, uint64_t now);
/*
 * Call it when a piece begins. False: the piece must not begin now. An open breaker whose pause is
 * over becomes half-open and *ret_trial is true.
 */
bool obv_breaker_begin(struct obv_breaker *b, uint64_t now, bool *ret_trial);
void obv_breaker_success(struct obv_breaker *b);
/* True if this failure opened the breaker. */
bool obv_breaker_failure(struct obv_breaker *b, uint64_t now);
/*
 * The delay before repetition number `attempt` (from 1): first_ns, doubled each time, at most
 * most_ns.
 */
uint64_t obv_backoff(unsigned attempt, uint64_t first_ns, uint64_t most_ns);

#endif
