/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the simulations have in common: the pool, random times, the sessions that run and the order
 * in which they end, and a summary of numbers. Time is simulated, in milliseconds. One thread; the
 * owner is the simulation. Ends the program if there is no memory.
 */
#ifndef OBL_SIMULATE_WORLD_H
#define OBL_SIMULATE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "loadbalancer/place.h"

#define OBL_GIB         (UINT64_C(1) << 30)
#define OBL_GPU_GIB     80u
#define OBL_LIFE_MS     600000.0 /* mean duration of a session: exponential */
#define OBL_MIX_COUNT   6u
#define OBL_MIX_WHOLE   5u /* the one that needs a whole GPU */
#define OBL_SAMPLES_MAX 4000000u

/* Sizes of requests in GiB, and per cent of the requests (a mix of small and large programs). */
extern const uint32_t obl_mix_gib[OBL_MIX_COUNT], obl_mix_percent[OBL_MIX_COUNT];
/* Mean of the mix in GiB. */
double obl_mix_mean(void);

struct obl_session {
	bool running;
	double ends_ms;
	uint32_t kind;   /* index of the mix */
	uint32_t number; /* the simulation's */
	uint32_t load;   /* per mille of a GPU that it uses */
	uint64_t moved_ms;
	struct obl_request request;
	struct obl_choice choice;
};

struct obl_world {
	struct obl_server *servers;
	uint32_t n_servers, n_gpus; /* of one server */
	uint64_t seed;
	struct obl_state state;
	/*
	 * max_sessions entries; those that do not run are free. heap: the n_sessions that run, the
	 * one that ends first in front; from there on the free ones.
	 */
	struct obl_session *sessions;
	struct obl_ending {
		double ms;
		uint32_t session;
	} * heap;
	uint32_t n_sessions, max_sessions;
};

/* obl_world_fini frees. */
void obl_world_init(struct obl_world *world, uint32_t n_servers, uint32_t n_gpus, uint64_t seed);
void obl_world_fini(struct obl_world *world);
/* Uniform in [0, 1); in [0, n); exponential with a mean. */
double obl_world_uniform(struct obl_world *world);
uint32_t obl_world_below(struct obl_world *world, uint32_t n);
double obl_world_exponential(struct obl_world *world, double mean);
/* An index of the mix. */
uint32_t obl_world_kind(struct obl_world *world);
/* Processor time of this thread, in nanoseconds: other programs do not count. */
uint64_t obl_work_ns(void);
/* Accounts a session that was placed. */
void obl_world_start(struct obl_world *world, const struct obl_session *session);
/* When the next session ends; INFINITY: none runs. */
double obl_world_next_end(const struct obl_world *world);
/* Ends the session that ends first and takes it from the account; valid until the next start. */
const struct obl_session *obl_world_end(struct obl_world *world);

/* Numbers for percentiles; at most OBL_SAMPLES_MAX, further ones are ignored. All zero: empty. */
struct obl_samples {
	float *values;
	uint32_t n, max;
	double sum;
	bool sorted;
};

void obl_samples_add(struct obl_samples *samples, double value);
/* per_mille: 990 for the 99th percentile. 0 without values. */
double obl_samples_at(struct obl_samples *samples, uint32_t per_mille);
double obl_samples_mean(const struct obl_samples *samples);
void obl_samples_fini(struct obl_samples *samples);

#endif
