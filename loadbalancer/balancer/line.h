/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * All waiting requests, this balancer's and those of others, with the fleet, as queue.h wants them.
 * Made anew for each decision. Loop's thread only; owner: the core.
 */
#ifndef OBL_LINE_H
#define OBL_LINE_H

#include "loadbalancer/balancer/asker.h"
#include "loadbalancer/balancer/fleet.h"
#include "loadbalancer/queue.h"

#define OBL_BATCH_MAX 8u  /* placements in one transaction */
#define OBL_BOOKS_MAX 32u /* servers whose ledgers it changes */

struct obl_line_other {
	struct obl_where where;
	struct obl_request request;
};

struct obl_line {
	struct obl_fleet *fleet;
	uint32_t n, n_tenants;
	struct obl_waiting waiting[OBL_QUEUE_MAX];
	uint16_t order[OBL_QUEUE_MAX];
	struct obl_asker *own[OBL_QUEUE_MAX]; /* NULL: another balancer's */
	const struct obl_queued *entries[OBL_QUEUE_MAX];
	struct obl_queue_tenant tenants[OBL_QUEUE_TENANTS_MAX];
	const char *tenant_names[OBL_QUEUE_TENANTS_MAX];
	struct obl_line_other others[OBL_QUEUE_MAX];
	/* the placements of one transaction, and the ledgers that they change */
	struct obl_asker *batch[OBL_BATCH_MAX];
	uint32_t n_batch, n_books;
	struct obl_ledger books[OBL_BOOKS_MAX];
	uint32_t book_servers[OBL_BOOKS_MAX]; /* places in the fleet */
};

/* NULL: no memory. */
struct obl_line *obl_line_new(void);
void obl_line_free(struct obl_line *line);
/* Fills in everything, in order. Valid until mirror, members or requests change. */
void obl_line_fill(struct obl_core *core, struct obl_line *line);
/* Removes an entry that was dealt with; the order stays valid. */
void obl_line_remove(struct obl_line *line, uint32_t place);
/* The request as placement sees it, without `apart`; a request without memory gets the least default. */
void obl_request_of(const struct obl_core *core, const struct obl_fleet *fleet,
	const struct obp_pool_ask *ask, const struct obl_where *where, struct obl_request *ret);
enum obl_policy obl_policy_of(const struct obl_core *core, const struct obp_pool_ask *ask);
/* Whether a request is for whole devices: it says so, or by its policy or the balancer's. */
bool obl_ask_exclusive(const struct obl_core *core, const struct obp_pool_ask *ask);
/* What a request without memory reserves of a device. */
uint64_t obl_memory_default(const struct obl_core *core, uint64_t total);

#endif
