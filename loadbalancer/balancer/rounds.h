/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Rounds of rebalancing (--rebalance): the balancer that leads measures how busy each device is,
 * from the heartbeats, and decides by rebalance.h which restartable reservations should move; moves.h
 * makes the moves. Loop's thread only.
 *
 *   load of a device       what its server reports
 *   load of a reservation  how busy its sessions were; all of one device together at most what the
 *                          device is
 *   a move under way       counts where it goes to, not where it comes from
 *   a program that was     counts as busy as it was, for OBL_SETTLE_S: it may not have begun to
 *   moved just now         work again
 */
#ifndef OBL_ROUNDS_H
#define OBL_ROUNDS_H

#include "loadbalancer/balancer/core.h"

#define OBL_SETTLE_S     30u
#define OBL_MOVABLES_MAX 1024u /* reservations that one round looks at */

/* Every second: a round, if it is time and this balancer leads. */
void obl_rounds_sweep(struct obl_core *core);

#endif
