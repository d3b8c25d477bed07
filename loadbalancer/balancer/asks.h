/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Requests of clients: from ASK to GRANT or REFUSED. A request that must wait is in the registry's
 * queue too (queue/ORDER, on this balancer's lease), so that all balancers serve one order. Loop's
 * thread only.
 *
 *   ASK ──► checks ──► placed by a transaction ──► GRANT
 *              │             ▲      │ not now
 *              ▼             │      ▼
 *           REFUSED          └── waits: QUEUED ... ──► REFUSED (time-out)
 *
 * A request whose client has gone is dropped, unless its transaction is under way: then its
 * reservation stays until its ticket expires, because the client may ask another balancer for it.
 */
#ifndef OBL_ASKS_H
#define OBL_ASKS_H

#include "loadbalancer/balancer/asker.h"

/* A request; the token in it is erased. */
void obl_ask(struct obl_core *core, struct obl_link *link, struct obp_pool_ask *ask);
void obl_ask_cancel(
	struct obl_core *core, struct obl_link *link, const struct obp_pool_cancel *cancel);
/* The connection has ended. */
void obl_asker_gone(struct obl_asker *asker);
/* The request has a reservation, made just now or by an earlier request with the same id. */
void obl_asker_answer(struct obl_asker *asker, const struct obl_reservation *r);
/* Places the next request. True: a transaction was begun. */
bool obl_asks_start(struct obl_core *core);
/* Four times a second: time-outs, and QUEUED to those that wait. */
void obl_asks_sweep(struct obl_core *core);
/* The balancer stops: everybody is refused, and told to ask another. */
void obl_asks_refuse_all(struct obl_core *core, const char *text);

#endif
