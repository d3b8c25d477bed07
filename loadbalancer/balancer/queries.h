/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Questions about the pool: QUERY to ANSWER. The documents are made by fleet_json.c, and are the
 * same for tools and the dashboard. Loop's thread only.
 */
#ifndef OBL_QUERIES_H
#define OBL_QUERIES_H

#include "loadbalancer/balancer/core.h"

void obl_query(struct obl_core *core, struct obl_link *link, struct obp_pool_query *query);

#endif
