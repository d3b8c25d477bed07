/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Rounds of rebalancing (--rebalance): the balancer that leads measures how busy each device is,
 * from the heartbeats, and decides by rebalance.h which restartable reservations should move; moves.h
 * makes the moves. What must leave a server goes first (leaving.h). Loop's thread only.
 *
 *   load of a device       what its server reports; of an older server with several devices, which
 *                          reports one number for all, the sum of its reservations' loads
 *   load of a reservation  how busy its sessions were; all of one device together what the device
 *                          is: at most, and also at least if no other sessions work there
 *   a move under way       counts where it goes to, not where it comes from
 *   a program that was     counts as busy as it was, until OBL_SETTLE_S after its first use of the
 *   moved                  new place: it may not have begun to work again
 */
#ifndef OBL_ROUNDS_H
#define OBL_ROUNDS_H

#include "loadbalancer/balancer/core.h"

#define OBL_SETTLE_S     30u
#define OBL_MOVABLES_MAX 32u /* reservations that one round looks at; the next goes on after them */

/* One round at this time (ms since 1970), if no move is waiting. */
void obl_round(struct obl_core *core, uint64_t now_ms);
/* Every second: a round, if it is time and this balancer leads. */
void obl_rounds_sweep(struct obl_core *core);

#endif
