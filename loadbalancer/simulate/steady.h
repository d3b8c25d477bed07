/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * First simulation: a pool in steady state. Sessions of the mix arrive at random times (Poisson),
 * run for 10 minutes on average (exponential) and are refused if they fit nowhere. Counts the
 * refusals and how many share a GPU, and measures the time of a placement.
 */
#ifndef OBL_SIMULATE_STEADY_H
#define OBL_SIMULATE_STEADY_H

#include <stdint.h>

#include "loadbalancer/request.h"

struct obl_steady_terms {
	uint32_t servers, gpus; /* gpus: of one server */
	uint32_t sessions;      /* counted; five mean durations before them are not */
	uint32_t load;          /* offered: per cent of the memory of all GPUs */
	enum obl_policy policy;
	uint64_t seed;
};

struct obl_steady {
	double refused, refused_whole; /* per cent: of all, of those that need a whole GPU */
	double sharers_mean;           /* on the chosen GPU, the new one included */
	double sharers_p99;
	double ns_p50, ns_p99; /* time of one placement that succeeds or not */
	double used;           /* mean reserved memory, per cent */
	double idle;           /* mean number of GPUs without a session, per cent */
};

struct obl_steady obl_steady_run(const struct obl_steady_terms *terms);

#endif
