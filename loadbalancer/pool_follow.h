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
 * Waits until the reservation has a successor that the pool keeps, and takes the offer: the place is
 * kept for OBP_POOL_OFFER_S from then on. What is not kept any more is no offer; it follows on. A
 * balancer that is lost is replaced by the next one, after pauses from OBL_POOL_RETRY_MIN_NS to
 * OBL_POOL_RETRY_MAX_NS. pool->cancelled must be set. fixed: the program cannot be started again any
 * more; waits until the pool has noted it. OB_ERR_NONE: *ret. OB_ERR_REFUSED: the reservation has
 * ended or cannot be moved: *ret_cause, whose code is OB_ERR_DENIED if it may not be followed.
 * OB_ERR_CANCELLED, OB_ERR_NO_MEMORY, OB_ERR_URL.
 */
enum ob_err obl_pool_follow(const struct obl_pool *pool, const uint8_t id[OBP_RESERVATION_BYTES],
	bool fixed, struct obp_pool_moved *ret, struct ob_cause *ret_cause);

#endif
