/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "loadbalancer/balancer/asks.h"
#include "loadbalancer/balancer/batch.h"
#include "loadbalancer/balancer/credits.h"
#include "loadbalancer/balancer/grant.h"
#include "loadbalancer/balancer/line.h"
#include "loadbalancer/balancer/not_now.h"
#include "loadbalancer/balancer/tenants.h"
#include "loadbalancer/balancer/work.h"

#define ENTRIES_MAX 16u  /* of the queue in one transaction */
#define OTHERS_MAX  64u  /* requests of other balancers that are passed over in one turn */
#define FAILURE_MS  200u /* rest after a failed transaction */

/* ---- answers ---- */

static void cancel(struct obl_asker *asker, const struct obl_reservation *r)
{
	obl_credits_cancel(asker->core, r->id);
	obl_asker_free(asker);
}

void obl_asker_answer(struct obl_asker *asker, const struct obl_reservation *r)
{
	struct obl_core *core = asker->core;
	struct ob_cause cause;

	if (strcmp(r->tenant, asker->entry.tenant) != 0)
		obl_asker_refuse(asker, OBP_POOL_INVALID,
			"another tenant's reservation has this id: make a random one");
	else if (asker->cancelled)
		cancel(asker, r);
	else if (!asker->link || obl_grant_send(core, asker->link, r, &cause))
		obl_asker_free(asker);
	else
		obl_asker_refuse(asker, OBP_POOL_INVALID, cause.text);
}

/* ---- the line ---- */

static void not_now_all(struct obl_core *core, struct obl_line *line)
{
	for (uint32_t i = 0; i < line->n; i++)
		if (line->own[line->order[i]])
			obl_not_now(core, line, line->own[line->order[i]]);
}

/* Requests with an id that has a reservation need no place. True: there was one. */
static bool answer_known(struct obl_core *core)
{
	for (struct obl_asker *a = core->askers; a; a = a->next) {
		const struct obl_item *item = a->placing || a->entry.ask.offered
			? NULL
			: obl_mirror_reservation(&core->mirror, a->entry.ask.id);

		if (item) {
			obl_asker_answer(a, item->value.reservation);
			return true;
		}
	}
	return false;
}

static void queue_changed(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	(void)user;
	(void)cause;
	if (outcome == OBL_FAILED)
		core->work.rest_until = ob_clock_ns() + FAILURE_MS * OB_MS;
}

static bool is_waiting(const struct obl_core *core, const char *key)
{
	for (const struct obl_asker *a = core->askers; a; a = a->next)
		if (strcmp(a->key, key) == 0)
			return true;
	return false;
}

/* Keeps queue/ as it should be, several entries at a time. True: a transaction was begun. */
static bool queue_start(struct obl_core *core)
{
	struct obl_plan *plan = obl_work_plan(core);
	uint32_t n = 0;

	for (struct obl_asker *a = core->askers; a && n < ENTRIES_MAX; a = a->next)
		if (a->looked && !a->placing && a->entry.ask.wait_s &&
			!obl_mirror_get(&core->mirror, a->key)) {
			obl_plan_put(plan, &core->mirror, a->key, obl_queued_text(&a->entry), true);
			n++;
		}
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_QUEUE);
		item && core->announced && n < ENTRIES_MAX; item = obl_mirror_next(item))
		if (strcmp(item->value.queued->balancer, core->name) == 0 &&
			!is_waiting(core, item->key)) {
			obl_plan_delete(plan, &core->mirror, item->key);
			n++;
		}
	return n && obl_work_make(core, plan->changes[0].key, queue_changed, NULL);
}

/* True if another request may be placed. */
static bool next_fits(struct obl_core *core, struct obl_line *line, uint32_t *ret_place,
	struct obl_choice *ret_choice)
{
	return obl_queue_next(line->waiting, line->order, line->n, line->fleet->servers,
		line->fleet->n, obl_time_ms(), &core->hold, &core->chance, ret_place, ret_choice);
}

/* Looks at the line. True: a transaction was begun. */
static bool line_start(struct obl_core *core)
{
	struct obl_line *line = core->line;
	/* After a conflict one at a time: fewer ledgers, fewer conflicts. */
	uint32_t most = core->work.stale ? 1 : OBL_BATCH_MAX, place;
	enum obl_added added = OBL_BATCH_ADDED;
	struct obl_choice choice;

	obl_work_plan(core);
	obl_line_fill(core, line);
	line->n_batch = line->n_books = 0;
	for (unsigned i = 0; i < OTHERS_MAX && line->n_batch < most &&
		added != OBL_BATCH_ADDED_LAST && next_fits(core, line, &place, &choice);
		i++) {
		uint32_t index = line->order[place];

		if (!line->own[index]) {
			/* Its own balancer serves it; the devices are not given to others. */
			obl_take(line->fleet->servers, line->waiting[index].request, &choice);
			obl_line_remove(line, place);
			continue;
		}
		added = obl_batch_add(core, line, line->own[index], &choice);
		if (added == OBL_BATCH_FULL && line->n_batch)
			break;
		if (added == OBL_BATCH_FULL)
			ob_warn("balancer: a placement did not fit its ledger");
		if (added == OBL_BATCH_ADDED || added == OBL_BATCH_ADDED_LAST) {
			obl_line_remove(line, place);
			continue;
		}
		line->waiting[index].blocked = true;
		if (line->n_batch == 0) {
			obl_work_plan(core); /* without what it has left there */
			line->n_books = 0;
		}
	}
	if (obl_batch_make(core, line))
		return true;
	not_now_all(core, line);
	return false;
}

bool obl_asks_start(struct obl_core *core)
{
	if (!core->asks_changed)
		return queue_start(core);
	if (!core->askers) {
		core->asks_changed = false;
		return queue_start(core);
	}
	while (answer_known(core))
		;
	if (core->askers && line_start(core))
		return true;
	core->asks_changed = false;
	return queue_start(core);
}
