/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a balancer counts of its placements, for /metrics. Part of the balancer's state; plain data;
 * the loop's thread.
 */
#ifndef OBL_COUNTS_H
#define OBL_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/metrics.h"
#include "protocol/pool.h"

enum obl_placed {
	OBL_PLACED_GRANTED,
	OBL_PLACED_QUEUED,
	OBL_PLACED_REFUSED,
	OBL_PLACED_FAILED, /* the balancer's or the registry's fault */
	OBL_PLACED_RESULTS
};

enum obl_placed_reason {
	OBL_BECAUSE_NONE,
	OBL_BECAUSE_CAPACITY,
	OBL_BECAUSE_BUSY,
	OBL_BECAUSE_DENIED, /* token or quota */
	OBL_BECAUSE_INVALID,
	OBL_BECAUSE_REGISTRY,
	OBL_BECAUSE_INTERNAL,
	OBL_BECAUSE_REASONS
};

struct obl_counts {
	uint64_t placed[OBL_PLACED_RESULTS][OBL_BECAUSE_REASONS];
	struct ob_histogram placing; /* from request to answer, of those that did not wait */
	struct ob_histogram waiting; /* in the queue, of those that were placed from it */
	uint64_t conflicts;          /* transactions repeated because a ledger had changed */
	uint64_t moves_offered;      /* by rounds and operators */
	uint64_t moves;              /* that have come to an end: the program runs elsewhere */
	uint32_t imbalance;          /* per mille, at this balancer's last round */
};

/* A request was placed after so long; queued: it waited in the queue. */
static inline void obl_count_placed(struct obl_counts *counts, bool queued, uint64_t ns)
{
	counts->placed[OBL_PLACED_GRANTED][OBL_BECAUSE_NONE]++;
	ob_histogram_add(queued ? &counts->waiting : &counts->placing, ns);
}

/* A request was refused. usable: the registry is. */
static inline void obl_count_refused(
	struct obl_counts *counts, enum obp_pool_refusal code, bool usable)
{
	static const enum obl_placed_reason reasons[] = { OBL_BECAUSE_INTERNAL,
		OBL_BECAUSE_CAPACITY, OBL_BECAUSE_BUSY, OBL_BECAUSE_DENIED, OBL_BECAUSE_INVALID,
		OBL_BECAUSE_INTERNAL };
	enum obl_placed_reason reason =
		code <= OBP_POOL_FAULT ? reasons[code] : OBL_BECAUSE_INTERNAL;

	if (reason == OBL_BECAUSE_BUSY && !usable)
		reason = OBL_BECAUSE_REGISTRY;
	counts->placed[reason >= OBL_BECAUSE_REGISTRY ? OBL_PLACED_FAILED : OBL_PLACED_REFUSED]
		      [reason]++;
}

#endif
