/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Second simulation: skewed work. One session in seven keeps 60 % of a GPU busy, the others 3 %,
 * and that has nothing to do with their memory. Measures how unequally busy the GPUs are, with and
 * without rebalancing. Heartbeats are a second old, as in a pool.
 */
#ifndef OBL_SIMULATE_SKEW_H
#define OBL_SIMULATE_SKEW_H

#include <stdbool.h>
#include <stdint.h>

#include "loadbalancer/request.h"

struct obl_skew_terms {
	uint32_t servers, gpus; /* gpus: of one server */
	uint32_t minutes;       /* counted; five mean durations before them are not */
	uint32_t load;          /* offered: per cent of the memory of all GPUs */
	uint32_t movable;       /* per cent of the sessions that may be moved */
	bool rebalance;
	enum obl_policy policy;
	uint64_t seed;
};

struct obl_skew {
	double p5, mean,
		p95;    /* per cent of a GPU's time that its sessions want, over GPUs and time */
	double hot;     /* per cent of the GPUs above 80 % */
	double late;    /* per cent of the work that its GPU has no time for */
	double moves;   /* in a minute */
	double again;   /* per cent of the moves that moved a session again */
	double refused; /* per cent of the sessions */
};

struct obl_skew obl_skew_run(const struct obl_skew_terms *terms);

#endif
