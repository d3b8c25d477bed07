/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The client of a pool's balancers: learns that a reservation is to move
 * (docs/adr/0050-rebalancing.md). Blocks for as long as the reservation lasts; for a thread of its
 * own. No state.
 */
#ifndef OBL_POOL_FOLLOW_H
#define OBL_POOL_FOLLOW_H

#include "loadbalancer/pool.h"

/*
 * Waits until the reservation has a successor. A balancer that is lost is replaced by the next one,
 * after pauses from OBL_POOL_RETRY_MIN_NS to OBL_POOL_RETRY_MAX_NS. pool->cancelled must be set.
 * OB_ERR_NONE: *ret. OB_ERR_REFUSED: it has ended, or it may not be followed: *ret_cause.
 * OB_ERR_CANCELLED, OB_ERR_NO_MEMORY, OB_ERR_URL.
 */
enum ob_err obl_pool_follow(const struct obl_pool *pool, const uint8_t id[OBP_RESERVATION_BYTES],
	struct obp_pool_moved *ret, struct ob_cause *ret_cause);

#endif
