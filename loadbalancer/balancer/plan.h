/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A transaction that is being put together, with its keys and values. Each changed key is compared
 * with the revision that the mirror has of it, so that the transaction is made on exactly that
 * state or not at all. Owner: work.c, one at a time.
 */
#ifndef OBL_PLAN_H
#define OBL_PLAN_H

#include "loadbalancer/balancer/mirror.h"

struct obl_plan {
	uint32_t n_compares, n_changes;
	struct obl_compare compares[OBL_TXN_OPS_MAX];
	struct obl_change changes[OBL_TXN_OPS_MAX];
	char compare_keys[OBL_TXN_OPS_MAX][OBL_KEY_MAX], change_keys[OBL_TXN_OPS_MAX][OBL_KEY_MAX];
	char *values[OBL_TXN_OPS_MAX]; /* malloc'ed */
	bool failed;                   /* no memory, or too many keys */
};

void obl_plan_clear(struct obl_plan *plan);
/* The key must have this revision. */
void obl_plan_expect(struct obl_plan *plan, const char *key, uint64_t revision);
/*
 * Compares the key with the mirror's revision, and changes it. value: malloc'ed, taken over; NULL
 * marks the plan as failed.
 */
void obl_plan_put(struct obl_plan *plan, const struct obl_mirror *mirror, const char *key,
	char *value, bool leased);
void obl_plan_delete(struct obl_plan *plan, const struct obl_mirror *mirror, const char *key);
/* Changes a key without comparing it. */
void obl_plan_put_plainly(struct obl_plan *plan, const char *key, char *value, bool leased);
void obl_plan_delete_plainly(struct obl_plan *plan, const char *key);
/* Tells the mirror that the transaction was made. */
void obl_plan_apply(const struct obl_plan *plan, struct obl_mirror *mirror, uint64_t revision);

#endif
