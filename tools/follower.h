/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A thread that follows a reservation at the pool's balancers (loadbalancer/pool_follow.h), for
 * tools/restart.c, which owns it. Main thread only.
 */
#ifndef OBX_FOLLOWER_H
#define OBX_FOLLOWER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadbalancer/pool_follow.h"

struct obx_follower {
	struct obl_pool pool;
	uint8_t id[OBP_RESERVATION_BYTES];
	bool fixed;
	_Atomic bool stop; /* seq_cst: a flag that is seldom read */
	int event;         /* readable when the following are set; -1: never */
	enum ob_err err;   /* OB_ERR_NONE: the pool offers `moved`, and was asked for it */
	struct obp_pool_moved moved;
	uint64_t until_ns; /* `moved` is kept so long at least; ob_clock_ns */
	pthread_t thread;
	bool runs;
};

/* No thread, no event. */
void obx_follower_init(struct obx_follower *follower);
/*
 * Starts it, at an address that stays. fixed: only tells the pool that the program cannot be started
 * again any more. Prints a warning if there is no thread.
 */
void obx_follower_start(struct obx_follower *follower, const char *balancers,
	const uint8_t id[OBP_RESERVATION_BYTES], bool fixed);
/* True if an offer has come, which `moved` says. After false, `event` may become readable. */
bool obx_follower_offers(const struct obx_follower *follower);
/* Blocks for as long as connecting to a balancer takes. `err` and `moved` stay. */
void obx_follower_stop(struct obx_follower *follower);

#endif
