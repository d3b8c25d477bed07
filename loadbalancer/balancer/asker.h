/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A client's request that waits for its answer at this balancer. Owner: the core's list; made by
 * asks.c. Loop's thread only.
 */
#ifndef OBL_ASKER_H
#define OBL_ASKER_H

#include "loadbalancer/balancer/core.h"

struct obl_asker {
	struct obl_core *core;
	struct obl_asker *next, *previous;
	struct obl_link *link;   /* NULL: the client has gone */
	struct obl_queued entry; /* the request, without its token */
	struct obl_where where;
	struct obl_request request;
	enum obl_policy policy;
	uint64_t most_memory; /* on each device, by its token; 0: no limit */
	uint64_t apart[OBL_SERVERS_MAX / 64];
	uint64_t begun_ns;     /* ob_clock_ns */
	uint64_t until_ns;     /* it is refused then; ob_clock_ns */
	uint64_t number;       /* in the queue; unique */
	char key[OBL_KEY_MAX]; /* queue/ORDER */
	bool placing;          /* its transaction is under way */
	bool cancelled;        /* the client does not want it any more */
	bool looked;           /* it was tried at least once */
	bool hopes;            /* for a server whose devices are not known yet, and no other one */
	uint32_t tries;
	/* what the client was told last */
	uint32_t position, length;
	uint64_t estimate_ms, told_ns;
	char reason[OBP_POOL_TEXT_MAX];
};

/* Takes it out of the list; its connection becomes idle. */
void obl_asker_free(struct obl_asker *asker);
/* Refuses it and frees it. */
void obl_asker_refuse(struct obl_asker *asker, enum obp_pool_refusal code, const char *text);

#endif
