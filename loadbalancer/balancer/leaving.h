/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Restartable reservations on servers that are to become empty: drained ones, and, with --rebalance,
 * those that are not well. They are offered another place whatever the loads are, ten a round; moves.h
 * makes the moves. Loop's thread only.
 */
#ifndef OBL_LEAVING_H
#define OBL_LEAVING_H

#include "loadbalancer/balancer/core.h"

#define OBL_LEAVING_REST_S 60u /* after an offer that nobody took, before the next one */

/* Adds to what is decided. Reservations that find no place do not keep others from their turn. */
void obl_leaving_decide(struct obl_core *core, uint64_t now_s);

#endif
