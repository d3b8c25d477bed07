/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Third simulation: the queue. Requests wait instead of being refused: the mix, and with it some
 * requests for two, four and eight whole GPUs. Two tenants of equal weight, of which the first
 * asks for nine times as much. Compares three rules, and how long requests wait.
 */
#ifndef OBL_SIMULATE_WAITING_H
#define OBL_SIMULATE_WAITING_H

#include <stdint.h>

#include "loadbalancer/request.h"

/*
 * FIRST: strictly in order, nobody goes before another. A full queue loses requests. BACKFILL: whoever fits goes. CLAIMS:
 * backfill, and those that have waited for long keep devices: queue.h.
 */
enum obl_rule { OBL_RULE_FIRST, OBL_RULE_BACKFILL, OBL_RULE_CLAIMS, OBL_RULES };

struct obl_waiting_terms {
	uint32_t servers, gpus; /* gpus: of one server */
	uint32_t sessions;
	uint32_t load;  /* offered: per cent of the memory of all GPUs */
	uint32_t large; /* per mille of the requests need 2 GPUs, as many 4, as many 8; to 333 */
	enum obl_rule rule;
	enum obl_policy policy;
	uint64_t seed;
};

struct obl_wait_times {
	double mean, p99, most; /* seconds */
};

struct obl_waits {
	struct obl_wait_times small, whole, several; /* less than one GPU, one, two to eight */
	struct obl_wait_times greedy, modest;        /* the two tenants */
	double used;                                 /* mean reserved memory, per cent */
	double ns_p50, ns_p99;                       /* time of obl_queue_next */
	uint32_t length;                             /* longest queue */
	uint32_t unserved; /* requests that still wait when the last one arrives */
};

struct obl_waits obl_waits_run(const struct obl_waiting_terms *terms);
const char *obl_rule_name(enum obl_rule rule);

#endif
