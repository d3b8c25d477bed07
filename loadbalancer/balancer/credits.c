/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/credits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/ledger.h"
#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/balancer/work.h"

#define CREDITED_EVERY_MS 1000u
#define UNKNOWN_S         5u /* longer than the registry takes to tell of a placement */
#define HELD_MAX          (2 * OBP_POOL_BEAT_MAX) /* those of a heartbeat, and answers since */

/* The part of the reservation on the member, of its present incarnation; -1: none. */
static int part_on(const struct obl_reservation *r, const struct obl_member *member)
{
	for (uint32_t i = 0; i < r->n_parts; i++)
		if (r->parts[i].incarnation == member->incarnation &&
			strcmp(r->parts[i].server, member->name) == 0)
			return (int)i;
	return -1;
}

static bool has_ended(const struct obp_pool_held *held)
{
	return held->state == OBP_POOL_ENDED || held->state == OBP_POOL_VOID;
}

/*
 * Whether the report is about this part, not about an earlier reservation with the same id, whose
 * ticket had a lower fence. A void one has none: the server never saw its ticket.
 */
static bool concerns(const struct obp_pool_held *held, const struct obl_holding *part)
{
	return held->state == OBP_POOL_VOID || held->fence == 0 || held->fence >= part->fence;
}

/* The part that the report ends; -1: none. */
static int part_ended(const struct obl_reservation *r, const struct obl_member *member,
	const struct obp_pool_held *held)
{
	int part = part_on(r, member);

	return part >= 0 && concerns(held, &r->parts[part]) ? part : -1;
}

/* ---- crediting ---- */

static void credited(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	const struct obl_credit *credit = &core->credit;

	(void)user;
	(void)cause;
	if (outcome != OBL_MADE)
		return;
	core->asks_changed = true;
	obl_releases_add(&core->releases, obl_time_ms(), credit->devices);
	if (!credit->whole)
		return;
	core->ended++;
	if (credit->from[0])
		obl_move_arrived(core, credit);
	if (credit->moved)
		return; /* the program goes on, with another reservation */
	obl_event_add(core, "ended", credit->tenant, "reservation %.8s of %s", credit->id,
		credit->program[0] ? credit->program : "a program");
}

/* The tenant has a limit, or had one: its usage is kept. */
static void plan_usage(struct obl_core *core, struct obl_plan *plan, const char *tenant,
	const struct obl_usage *less)
{
	const struct obl_item *item = obl_mirror_find(&core->mirror, OBL_ITEM_TENANT, tenant);
	struct obl_usage usage;
	char key[OBL_KEY_MAX];

	if (!item)
		return;
	usage = *item->value.usage;
	obl_usage_subtract(&usage, less);
	snprintf(key, sizeof key, "%s", item->key);
	obl_plan_put(plan, &core->mirror, key, obl_usage_text(&usage), false);
}

/* used: a session has used it. */
static bool part_credit(
	struct obl_core *core, const struct obl_item *item, uint32_t index, bool used)
{
	struct obl_reservation rest = *item->value.reservation;
	struct obl_holding part = rest.parts[index];
	const struct obl_item *ledger =
		obl_mirror_find(&core->mirror, OBL_ITEM_LEDGER, part.server);
	struct obl_usage less = obl_usage_of_part(&rest, &part, rest.n_parts == 1);
	struct obl_plan *plan = obl_work_plan(core);
	char key[OBL_KEY_MAX], ledger_key[OBL_KEY_MAX];
	struct obl_ledger book;

	snprintf(key, sizeof key, "%s", item->key);
	obl_key_print(OBL_ITEM_LEDGER, part.server, ledger_key);
	if (ledger) {
		book = *ledger->value.ledger;
		if (obl_ledger_subtract(&book, &rest, &part))
			obl_plan_put(
				plan, &core->mirror, ledger_key, obl_ledger_text(&book), false);
		else
			obl_plan_expect(plan, ledger_key, ledger->revision);
	}
	plan_usage(core, plan, rest.tenant, &less);
	obl_reservation_drop(&rest, index);
	core->credit.devices = part.n_devices;
	core->credit.whole = rest.n_parts == 0;
	obl_id_print(rest.id, core->credit.id);
	snprintf(core->credit.tenant, sizeof core->credit.tenant, "%s", rest.tenant);
	snprintf(core->credit.program, sizeof core->credit.program, "%s", rest.program);
	core->credit.moved = obl_successor(core, &rest) != NULL;
	snprintf(core->credit.from, sizeof core->credit.from, "%s", used ? rest.from : "");
	snprintf(core->credit.server, sizeof core->credit.server, "%s", part.server);
	if (rest.n_parts == 0)
		obl_plan_delete(plan, &core->mirror, key);
	else
		obl_plan_put(plan, &core->mirror, key, obl_reservation_text(&rest), false);
	return obl_work_make(core, key, credited, NULL);
}

/*
 * A place that was offered and then ended by command is kept until the offer is over, so that its
 * client learns that its program is not to be started again.
 */
static bool is_marked(const struct obl_item *item)
{
	return item->value.reservation->killed && ob_clock_ns() <= item->came_ns + OBL_UNUSED_NS;
}

/* Parts of servers that have another incarnation now. */
static bool orphans_start(struct obl_core *core)
{
	bool left = false;

	if (!core->orphans)
		return false;
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item)) {
		const struct obl_reservation *r = item->value.reservation;

		for (uint32_t i = 0; i < r->n_parts; i++) {
			const struct obl_item *ledger =
				obl_mirror_find(&core->mirror, OBL_ITEM_LEDGER, r->parts[i].server);

			if (!ledger || ledger->value.ledger->incarnation == r->parts[i].incarnation)
				continue;
			if (!is_marked(item))
				return part_credit(core, item, i, false);
			left = true;
		}
	}
	core->orphans = left;
	return false;
}

bool obl_credits_start(struct obl_core *core)
{
	for (struct obl_member *m = core->members; m; m = m->next)
		for (uint32_t i = 0; m->n_ended && i < m->n_held; i++) {
			const struct obl_item *item;
			int part;

			if (!has_ended(&m->held[i]))
				continue;
			item = obl_mirror_reservation(&core->mirror, m->held[i].id);
			if (item && m->held[i].state == OBP_POOL_VOID && is_marked(item))
				continue;
			part = item ? part_ended(item->value.reservation, m, &m->held[i]) : -1;
			if (part >= 0)
				return part_credit(core, item, (uint32_t)part,
					m->held[i].state == OBP_POOL_ENDED);
		}
	return orphans_start(core);
}

/* ---- orders ---- */

/*
 * Tells the server which ended reservations it can forget: those that the mirror does not have, if
 * the mirror is as new as their tickets.
 */
static void credited_tell(struct obl_core *core, struct obl_member *member)
{
	const struct obl_item *ledger =
		obl_mirror_find(&core->mirror, OBL_ITEM_LEDGER, member->name);
	uint64_t now = ob_clock_ns();

	if (!ledger || ledger->value.ledger->incarnation != member->incarnation ||
		now < member->credited_ns + CREDITED_EVERY_MS * OB_MS)
		return;
	member->credited_ns = now;
	for (uint32_t i = 0; i < member->n_held; i++) {
		const struct obp_pool_held *held = &member->held[i];
		const struct obl_item *item;

		if (!has_ended(held) || held->fence > ledger->value.ledger->fence)
			continue;
		item = obl_mirror_reservation(&core->mirror, held->id);
		if (item && part_ended(item->value.reservation, member, held) >= 0)
			continue;
		if (!obl_member_order(member, OBP_POOL_ORDER_CREDITED, held->id, 0, NULL))
			return; /* the member is gone */
	}
}

/* Reservations that the server runs and the registry does not know: it was lost, or replaced. */
static void unknown_note(struct obl_core *core, struct obl_member *member)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < member->n_held; i++) {
		const struct obl_item *item =
			obl_mirror_reservation(&core->mirror, member->held[i].id);

		n += member->held[i].state == OBP_POOL_CLAIMED &&
			(!item || part_on(item->value.reservation, member) < 0);
	}
	member->unknown_s = n ? member->unknown_s + 1 : 0;
	if (member->unknown_s == UNKNOWN_S)
		obl_event_add(core, "unknown", member->name,
			"it runs %u reservation%s that the registry does not know", n,
			n == 1 ? "" : "s");
}

/* Parts that their server does not run. */
static void unused_void(struct obl_core *core, const struct obl_reservation *r)
{
	for (uint32_t i = 0; i < r->n_parts; i++) {
		struct obl_member *member = obl_member_find(core, r->parts[i].server);

		if (member && member->incarnation == r->parts[i].incarnation && member->beat_ns &&
			!member->silent && !obl_member_held(member, r->id))
			obl_member_void(member, r->id);
	}
}

void obl_credits_sweep(struct obl_core *core)
{
	uint64_t now = ob_clock_ns();
	struct obl_member *next;

	if (!core->synced || !core->usable)
		return;
	for (struct obl_member *m = core->members; m; m = next) {
		next = m->next;
		unknown_note(core, m);
		credited_tell(core, m);
	}
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item))
		if (now > item->came_ns + OBL_UNUSED_NS)
			unused_void(core, item->value.reservation);
}

static void parts_order(struct obl_core *core, const uint8_t id[OBP_RESERVATION_BYTES],
	enum obp_pool_order_kind kind)
{
	const struct obl_item *item = obl_mirror_reservation(&core->mirror, id);
	const struct obl_reservation *r = item ? item->value.reservation : NULL;

	for (uint32_t i = 0; r && i < r->n_parts; i++) {
		struct obl_member *member = obl_member_find(core, r->parts[i].server);

		if (!member || member->incarnation != r->parts[i].incarnation)
			continue;
		if (kind == OBP_POOL_ORDER_VOID)
			obl_member_void(member, id);
		else
			obl_member_order(member, kind, id, 0, NULL);
	}
}

void obl_credits_cancel(struct obl_core *core, const uint8_t id[OBP_RESERVATION_BYTES])
{
	parts_order(core, id, OBP_POOL_ORDER_VOID);
}

void obl_credits_end(struct obl_core *core, const uint8_t id[OBP_RESERVATION_BYTES])
{
	parts_order(core, id, OBP_POOL_ORDER_END);
}

static int by_id(const void *a, const void *b)
{
	return memcmp(((const struct obp_pool_held *)a)->id, ((const struct obp_pool_held *)b)->id,
		OBP_RESERVATION_BYTES);
}

void obl_credits_obeyed(struct obl_member *member, const struct obp_pool_obeyed *obeyed)
{
	struct obp_pool_held *held;

	if (obeyed->result != OBP_POOL_VOID && obeyed->result != OBP_POOL_ENDED)
		return; /* it is in use: the heartbeats say how long */
	held = (struct obp_pool_held *)obl_member_held(member, obeyed->id);
	if (held) {
		held->state = obeyed->result;
		held->fence = 0; /* the answer is about what is reserved now */
		member->n_ended++;
	} else if (member->n_held < HELD_MAX) {
		held = realloc(member->held, (member->n_held + 1) * sizeof *held);
		if (!held)
			return; /* the order will be repeated */
		member->held = held;
		held[member->n_held] = (struct obp_pool_held){ .state = obeyed->result };
		memcpy(held[member->n_held].id, obeyed->id, OBP_RESERVATION_BYTES);
		member->n_held++;
		member->n_ended++;
		qsort(member->held, member->n_held, sizeof *held, by_id);
	}
	member->core->wake(member->core);
}
