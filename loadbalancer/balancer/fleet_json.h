/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The JSON documents about the pool, for tools, the dashboard and scripts; docs/POOL.md describes
 * their fields. All begin with "schema": 1; fields are only added within one schema. Loop's thread
 * only.
 */
#ifndef OBL_FLEET_JSON_H
#define OBL_FLEET_JSON_H

#include "loadbalancer/balancer/core.h"

bool obl_document_known(const char *what);
/*
 * Makes the document that the query names; *ret_text is malloc'ed. tenant: of reservations and
 * requests only this tenant's are listed, the others are counted; NULL: all. False: no memory.
 */
bool obl_document(struct obl_core *core, const struct obp_pool_query *query, const char *tenant,
	char **ret_text, size_t *ret_size);

#endif
