/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/offers.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/balancer/asks.h"
#include "loadbalancer/balancer/credits.h"
#include "loadbalancer/balancer/follows.h"
#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/balancer/work.h"

#define FAILURE_MS 200u /* rest after a failed transaction */

/* Puts one reservation. False: no memory. */
static bool reservation_put(struct obl_core *core, const struct obl_item *item,
	const struct obl_reservation *changed, obl_work_done *done, void *user)
{
	struct obl_plan *plan = obl_work_plan(core);
	char key[OBL_KEY_MAX];

	snprintf(key, sizeof key, "%s", item->key);
	obl_plan_put(plan, &core->mirror, key, obl_reservation_text(changed), false);
	return obl_work_make(core, key, done, user);
}

/* ---- a place that was offered ---- */

/* The next turn sees whether the ticket is a new one. */
static void renewed(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	struct obl_asker *asker = user;

	(void)cause;
	asker->placing = false;
	if (outcome == OBL_FAILED)
		core->work.rest_until = ob_clock_ns() + FAILURE_MS * OB_MS;
	if (!asker->link || asker->cancelled)
		obl_asker_free(asker);
}

enum offer {
	KEPT,
	DUE, /* kept, and its ticket is to be renewed */
	OVER /* it has ended, or its server may have made the ticket void */
};

static enum offer offer_look(const struct obl_core *core, const struct obl_item *item)
{
	const struct obl_reservation *r = item->value.reservation;
	const struct obl_member *member = obl_member_find(core, r->parts[0].server);
	const struct obp_pool_held *held = member ? obl_member_held(member, r->id) : NULL;
	uint64_t age = obl_offer_age_s(core, item);

	if (held && held->state == OBP_POOL_CLAIMED)
		return KEPT;
	if (!held && age + OBP_POOL_OFFER_S <= OBP_POOL_TICKET_S)
		return KEPT;
	if (held || age > OBP_POOL_TICKET_S)
		return OVER;
	/* Who asked for it late in its time, and comes again, has been promised OBP_POOL_OFFER_S. */
	return r->expires + age <= r->issued + OBL_OFFER_MAX_S + OBP_POOL_TICKET_S ? DUE : KEPT;
}

/*
 * Why a server of the place would not take the program; NULL: each would. What is in use was taken.
 * A balancer that has just started does not know yet who is connected.
 */
static const char *place_closed(const struct obl_core *core, const struct obl_reservation *r)
{
	bool knows = ob_clock_ns() >= core->started_ns + OBP_POOL_SILENT_MS * OB_MS;

	for (uint32_t i = 0; i < r->n_parts && !obl_in_use(core, r); i++) {
		const char *name = r->parts[i].server;
		const struct obl_member *m = obl_member_find(core, name);
		const struct obl_item *operated =
			obl_mirror_find(&core->mirror, OBL_ITEM_OPERATOR, name);

		if (knows && (!m || m->silent) && !obl_member_elsewhere(core, name))
			return "the server of the place that was offered is not connected to the "
			       "pool any more: ask again with a new id";
		if ((operated && operated->value.operated->cordoned) ||
			(m && (m->load.draining || m->is.closed != OBL_WISH_OPEN)))
			return "the server of the place that was offered is cordoned or drained: "
			       "ask again with a new id";
		if (m && !m->healthy)
			return "the server of the place that was offered is not well: ask again "
			       "with a new id";
	}
	return NULL;
}

/* True: a transaction was begun. */
static bool renew(struct obl_asker *asker, const struct obl_item *item)
{
	struct obl_reservation changed = *item->value.reservation;

	changed.expires += obl_offer_age_s(asker->core, item); /* by the clock of who made it */
	asker->placing = reservation_put(asker->core, item, &changed, renewed, asker);
	if (asker->placing)
		return true;
	obl_asker_refuse(asker, OBP_POOL_FAULT, "the balancer has no memory");
	return false;
}

/*
 * A program that was ended for an offered place that it has lost goes back to the place that it had.
 * That is kept until it is there, however short its linger time is, and what was offered is not.
 */
static void place_give(struct obl_asker *asker, const struct obl_reservation *r,
	const struct obl_reservation *successor)
{
	for (uint32_t i = 0; i < r->n_parts; i++) {
		struct obl_member *m = obl_member_find(asker->core, r->parts[i].server);
		const struct obp_pool_held *held = m ? obl_member_held(m, r->id) : NULL;

		if (held && held->state == OBP_POOL_CLAIMED)
			obl_member_order(m, OBP_POOL_ORDER_KEEP, r->id, OBP_POOL_TICKET_S, NULL);
	}
	if (successor)
		obl_credits_cancel(asker->core, successor->id);
	obl_asker_answer(asker, r);
}

/* True: a transaction was begun. */
static bool asker_look(struct obl_asker *asker, const struct obl_item *item)
{
	const struct obl_reservation *r = item->value.reservation;
	const struct obl_reservation *successor = obl_successor(asker->core, r);
	enum offer offer = offer_look(asker->core, item);
	const char *closed = place_closed(asker->core, r);

	if (strcmp(r->tenant, asker->entry.tenant) != 0)
		obl_asker_answer(asker, r); /* which refuses it */
	else if (r->killed || (successor && successor->killed))
		obl_asker_refuse(asker, OBP_POOL_DENIED, OBL_KILLED_TEXT);
	else if (closed)
		obl_asker_refuse(asker, OBP_POOL_INVALID, closed);
	else if (offer == DUE)
		return renew(asker, item);
	else if (offer == OVER)
		obl_asker_refuse(asker, OBP_POOL_INVALID,
			"the place was not taken in time, or has ended: ask again with a new id");
	else
		place_give(asker, r, successor);
	return false;
}

static bool askers_start(struct obl_core *core)
{
	struct obl_asker *next;

	for (struct obl_asker *a = core->askers; a; a = next) {
		const struct obl_item *item;

		next = a->next;
		if (!a->entry.ask.offered || a->placing)
			continue;
		item = obl_mirror_reservation(&core->mirror, a->entry.ask.id);
		if (item && asker_look(a, item))
			return true;
	}
	return false;
}

void obl_offers_sweep(struct obl_core *core)
{
	uint64_t now = ob_clock_ns();
	struct obl_asker *next;

	if (!core->usable || !core->synced)
		return; /* the sweep of asks.h says so in time */
	for (struct obl_asker *a = core->askers; a; a = next) {
		next = a->next;
		if (a->entry.ask.offered && !a->placing &&
			now >= a->begun_ns + OBL_OFFER_UNKNOWN_MS * OB_MS &&
			!obl_mirror_reservation(&core->mirror, a->entry.ask.id))
			obl_asker_refuse(a, OBP_POOL_INVALID,
				"the place that was offered is not kept any more: ask again with a "
				"new id");
	}
}

/* ---- programs that cannot be started again ---- */

static void fixed(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	(void)user;
	(void)cause;
	if (outcome == OBL_FAILED)
		core->work.rest_until = ob_clock_ns() + FAILURE_MS * OB_MS;
}

static bool fixed_start(struct obl_core *core)
{
	const struct obl_item *item = obl_follows_fixed(core);
	const struct obl_reservation *successor;
	struct obl_reservation changed;

	if (!item)
		return false;
	changed = *item->value.reservation;
	successor = obl_successor(core, &changed);
	if (successor)
		obl_credits_cancel(core, successor->id);
	changed.restartable = false;
	return reservation_put(core, item, &changed, fixed, NULL);
}

bool obl_offers_start(struct obl_core *core)
{
	return askers_start(core) || fixed_start(core);
}
