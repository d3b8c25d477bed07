/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/audit.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/ledger.h"
#include "loadbalancer/balancer/work.h"

/* What the ledger should be. */
static void ledger_sum(
	const struct obl_core *core, const struct obl_item *item, struct obl_ledger *ret)
{
	*ret = *item->value.ledger;
	for (uint32_t i = 0; i < ret->n_devices; i++) {
		ret->devices[i].reserved = ret->devices[i].share = 0;
		ret->devices[i].sharers = 0;
		ret->devices[i].exclusive = false;
	}
	for (const struct obl_item *r = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION); r;
		r = obl_mirror_next(r))
		for (uint32_t p = 0; p < r->value.reservation->n_parts; p++)
			if (strcmp(r->value.reservation->parts[p].server, item->name) == 0)
				obl_ledger_count(
					ret, r->value.reservation, &r->value.reservation->parts[p]);
}

static struct obl_usage usage_sum(const struct obl_core *core, const char *tenant)
{
	struct obl_usage sum = { 0 };

	for (const struct obl_item *r = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION); r;
		r = obl_mirror_next(r))
		if (strcmp(r->value.reservation->tenant, tenant) == 0) {
			struct obl_usage one = obl_usage_of_reservation(r->value.reservation);

			obl_usage_add(&sum, &one);
		}
	return sum;
}

static bool same_ledger(const struct obl_ledger *a, const struct obl_ledger *b)
{
	for (uint32_t i = 0; i < a->n_devices; i++) {
		const struct obl_ledger_device *x = &a->devices[i], *y = &b->devices[i];

		if (x->reserved != y->reserved || x->share != y->share ||
			x->sharers != y->sharers || x->exclusive != y->exclusive)
			return false;
	}
	return true;
}

static bool same_usage(const struct obl_usage *a, const struct obl_usage *b)
{
	return a->gpus == b->gpus && a->sessions == b->sessions && a->memory == b->memory &&
		a->share == b->share;
}

/* Whether the item is as the reservations say. */
static bool is_right(const struct obl_core *core, const struct obl_item *item)
{
	struct obl_ledger ledger;
	struct obl_usage usage;

	if (item->kind == OBL_ITEM_LEDGER) {
		ledger_sum(core, item, &ledger);
		return same_ledger(&ledger, item->value.ledger);
	}
	usage = usage_sum(core, item->name);
	return same_usage(&usage, item->value.usage);
}

/* The first item that is not right; NULL: all are. */
static const struct obl_item *find_wrong(const struct obl_core *core)
{
	static const enum obl_item_kind kinds[] = { OBL_ITEM_LEDGER, OBL_ITEM_TENANT };

	for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		for (const struct obl_item *item = obl_mirror_first(&core->mirror, kinds[i]); item;
			item = obl_mirror_next(item))
			if (!is_right(core, item))
				return item;
	return NULL;
}

void obl_audit_sweep(struct obl_core *core)
{
	struct obl_audit *audit = &core->audit;
	const struct obl_item *item;

	if (++audit->seconds % OBL_AUDIT_EVERY_S || !core->usable || !core->synced ||
		!core->registry->ops->leads(core->registry))
		return;
	item = obl_mirror_has_wrong(&core->mirror, OBL_ITEM_RESERVATION) ? NULL : find_wrong(core);
	audit->due =
		item && strcmp(item->key, audit->key) == 0 && item->revision == audit->revision;
	snprintf(audit->key, sizeof audit->key, "%s", item ? item->key : "");
	audit->revision = item ? item->revision : 0;
}

static void corrected(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	(void)user;
	(void)cause;
	if (outcome != OBL_MADE)
		return;
	ob_warn("balancer: %s differed from the sum of the reservations and was corrected",
		core->audit.key);
	obl_event_add(core, "corrected", strchr(core->audit.key, '/') + 1, "%s", core->audit.key);
	core->asks_changed = true;
}

bool obl_audit_start(struct obl_core *core)
{
	struct obl_audit *audit = &core->audit;
	const struct obl_item *item = audit->due ? obl_mirror_get(&core->mirror, audit->key) : NULL;
	struct obl_plan *plan;
	struct obl_ledger ledger;
	struct obl_usage usage;

	audit->due = false;
	if (!item || item->revision != audit->revision || is_right(core, item))
		return false;
	plan = obl_work_plan(core);
	if (item->kind == OBL_ITEM_LEDGER) {
		ledger_sum(core, item, &ledger);
		ledger.fence++;
		obl_plan_put(plan, &core->mirror, audit->key, obl_ledger_text(&ledger), false);
	} else {
		usage = usage_sum(core, item->name);
		obl_plan_put(plan, &core->mirror, audit->key, obl_usage_text(&usage), false);
	}
	return obl_work_make(core, audit->key, corrected, NULL);
}
