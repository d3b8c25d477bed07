/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Offers of moves as the client answers them (docs/adr/0050-rebalancing.md): it asks for the place
 * that it was offered, or says that its program cannot be started again any more. Loop's thread only.
 *
 *   ASK, offered    kept ──► its ticket is renewed, if it is about to expire ──► GRANT
 *                   gone, expired, or ended by command ──► REFUSED
 *                   its server is away, closed or unwell ──► REFUSED
 *   FOLLOW, fixed   the reservation is not restartable any more; its offer is made void
 *
 * A place that was asked for is kept for OBP_POOL_OFFER_S at least, but its ticket is not renewed
 * later than OBL_OFFER_MAX_S after it was reserved.
 */
#ifndef OBL_OFFERS_H
#define OBL_OFFERS_H

#include "loadbalancer/balancer/asker.h"

#define OBL_OFFER_MAX_S      300u
/* The registry may tell this balancer later of the reservation than another balancer the client. */
#define OBL_OFFER_UNKNOWN_MS 1000u

/* Answers requests for offered places. True: a transaction was begun. */
bool obl_offers_start(struct obl_core *core);
/* Four times a second: refuses requests for places that are not kept. */
void obl_offers_sweep(struct obl_core *core);

#endif
