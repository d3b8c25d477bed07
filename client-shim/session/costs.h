/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_costs: the part of the report at exit that names the operations in which the program waited
 * longest, with a hint where there is a known way to wait less. No state.
 */
#ifndef OBC_COSTS_H
#define OBC_COSTS_H

#include <stdint.h>
#include <stdio.h>

#define OBC_COSTS_SHOWN 3u

/* The counters of the session log by which the hints are chosen. */
struct obc_costs {
	uint64_t run_ns; /* since the session began */
	/* by opcode: records sent, round trips, time spent waiting for them (all threads) */
	uint64_t (*count)(uint16_t opcode);
	uint64_t (*trips)(uint16_t opcode);
	uint64_t (*trip_ns)(uint16_t opcode);
};

/*
 * Prints up to OBC_COSTS_SHOWN operations, the one with the longest total wait first, each with
 * round trips, mean and share of the run time. The goodbye is left out: it is always made, once.
 * Prints nothing if no operation waited.
 */
void obc_costs_print(FILE *out, const struct obc_costs *costs);

#endif
