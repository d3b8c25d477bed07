/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A JSON document about the pool while it is made (fleet_json.h), and the parts of it that are about
 * demand: what waits, who may have how much, and what has happened. Loop's thread only.
 */
#ifndef OBL_DOCUMENT_H
#define OBL_DOCUMENT_H

#include <string.h>

#include "base/json.h"
#include "loadbalancer/balancer/core.h"
#include "loadbalancer/balancer/line.h"

struct obl_document {
	struct obl_core *core;
	struct obl_line *line; /* filled in */
	const struct obp_pool_query *query;
	const char *tenant; /* for whom; NULL: all */
	struct ob_json json;
};

/* Whether the query is about this name, or about all. */
static inline bool obl_document_wants(const struct obl_document *d, const char *name)
{
	return !d->query->target[0] || strcmp(d->query->target, name) == 0;
}

/* Whether the caller may see what is this tenant's. */
static inline bool obl_document_shows(const struct obl_document *d, const char *tenant)
{
	return !d->tenant || strcmp(d->tenant, tenant) == 0;
}

void obl_document_queue(struct obl_document *d);
void obl_document_quota(struct obl_document *d);
void obl_document_events(struct obl_document *d);

#endif
