/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/plan.h"

#include <stdio.h>
#include <stdlib.h>

void obl_plan_clear(struct obl_plan *plan)
{
	for (uint32_t i = 0; i < plan->n_changes; i++)
		free(plan->values[i]);
	plan->n_compares = plan->n_changes = 0;
	plan->failed = false;
}

void obl_plan_expect(struct obl_plan *plan, const char *key, uint64_t revision)
{
	uint32_t i = plan->n_compares;

	if (i == OBL_TXN_OPS_MAX) {
		plan->failed = true;
		return;
	}
	snprintf(plan->compare_keys[i], OBL_KEY_MAX, "%s", key);
	plan->compares[i] = (struct obl_compare){ plan->compare_keys[i], revision };
	plan->n_compares++;
}

void obl_plan_put_plainly(struct obl_plan *plan, const char *key, char *value, bool leased)
{
	uint32_t i = plan->n_changes;

	if (!value || i == OBL_TXN_OPS_MAX) {
		free(value);
		plan->failed = true;
		return;
	}
	snprintf(plan->change_keys[i], OBL_KEY_MAX, "%s", key);
	plan->values[i] = value;
	plan->changes[i] = (struct obl_change){ plan->change_keys[i], value, leased };
	plan->n_changes++;
}

void obl_plan_delete_plainly(struct obl_plan *plan, const char *key)
{
	uint32_t i = plan->n_changes;

	if (i == OBL_TXN_OPS_MAX) {
		plan->failed = true;
		return;
	}
	snprintf(plan->change_keys[i], OBL_KEY_MAX, "%s", key);
	plan->values[i] = NULL;
	plan->changes[i] = (struct obl_change){ plan->change_keys[i], NULL, false };
	plan->n_changes++;
}

void obl_plan_put(struct obl_plan *plan, const struct obl_mirror *mirror, const char *key,
	char *value, bool leased)
{
	obl_plan_expect(plan, key, obl_mirror_revision(mirror, key));
	obl_plan_put_plainly(plan, key, value, leased);
}

void obl_plan_delete(struct obl_plan *plan, const struct obl_mirror *mirror, const char *key)
{
	obl_plan_expect(plan, key, obl_mirror_revision(mirror, key));
	obl_plan_delete_plainly(plan, key);
}

void obl_plan_apply(const struct obl_plan *plan, struct obl_mirror *mirror, uint64_t revision)
{
	for (uint32_t i = 0; i < plan->n_changes; i++)
		obl_mirror_apply(
			mirror, plan->changes[i].key, plan->changes[i].value, revision, false);
}
