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

#include "loadbalancer/balancer/fleet.h"

struct obl_asker {
	struct obl_core *core;
	struct obl_asker *next, *previous;
	struct obl_link *link;   /* NULL: the client has gone */
	struct obl_queued entry; /* the request, without its token */
	struct obl_where where;
	struct obl_request request;
	enum obl_policy policy;
	uint64_t apart[OBL_SERVERS_MAX / 64];
	uint64_t begun_ns;     /* ob_clock_ns */
	uint64_t number;       /* in the queue; unique */
	char key[OBL_KEY_MAX]; /* queue/ORDER */
	bool placing;          /* its transaction is under way */
	bool cancelled;        /* the client does not want it any more */
	bool looked;           /* it was tried at least once */
	uint32_t tries;
	/* what the client was told last */
	uint32_t position, length;
	uint64_t estimate_ms, told_ns;
	char reason[OBP_POOL_TEXT_MAX];
};

/* A request; the token in it is erased. */
void obl_ask(struct obl_core *core, struct obl_link *link, struct obp_pool_ask *ask);
void obl_ask_cancel(
	struct obl_core *core, struct obl_link *link, const uint8_t id[OBP_RESERVATION_BYTES]);
/* The connection has ended. */
void obl_asker_gone(struct obl_asker *asker);
/* Places the next request. True: a transaction was begun. */
bool obl_asks_start(struct obl_core *core);
/* Four times a second: time-outs, and QUEUED to those that wait. */
void obl_asks_sweep(struct obl_core *core);
/* The balancer stops: everybody is refused, and told to ask another. */
void obl_asks_refuse_all(struct obl_core *core, const char *text);

/* Used between the files of this object. */
void obl_asker_refuse(struct obl_asker *asker, enum obp_pool_refusal code, const char *text);
void obl_asker_free(struct obl_asker *asker);

#endif
