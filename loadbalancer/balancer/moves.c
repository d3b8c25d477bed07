/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/moves.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/ledger.h"
#include "loadbalancer/balancer/line.h"
#include "loadbalancer/balancer/tenants.h"
#include "loadbalancer/balancer/work.h"
#include "loadbalancer/place.h"

static const uint8_t none[OBP_RESERVATION_BYTES];

static const struct obl_reservation *reservation_find(
	const struct obl_core *core, const uint8_t id[OBP_RESERVATION_BYTES])
{
	const struct obl_item *item = obl_mirror_reservation(&core->mirror, id);

	return item ? item->value.reservation : NULL;
}

const struct obl_reservation *obl_successor(
	const struct obl_core *core, const struct obl_reservation *r)
{
	const struct obl_reservation *successor;

	/* whoever can write to the registry can write anything */
	if (memcmp(r->successor, none, sizeof none) == 0 ||
		memcmp(r->successor, r->id, sizeof r->id) == 0)
		return NULL;
	successor = reservation_find(core, r->successor);
	return successor && strcmp(successor->tenant, r->tenant) == 0 ? successor : NULL;
}

uint64_t obl_moved_s(const struct obl_reservation *r, uint64_t now_s)
{
	return r->moved > now_s + OBP_TICKET_SKEW_S ? 0 : ob_min(r->moved, now_s);
}

uint64_t obl_offer_age_s(const struct obl_core *core, const struct obl_item *item)
{
	uint64_t expires = item->value.reservation->expires, now_s = obl_time_ms() / 1000;
	uint64_t age = (ob_clock_ns() - item->came_ns) / OB_SECOND;
	uint64_t begun = expires - ob_min(expires, OBP_POOL_TICKET_S);

	return item->came_ns > core->synced_ns || now_s <= begun ? age : ob_max(age, now_s - begun);
}

const struct obl_reservation *obl_predecessor(
	const struct obl_core *core, const struct obl_reservation *r)
{
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item))
		if (memcmp(item->value.reservation->successor, r->id, sizeof r->id) == 0 &&
			obl_successor(core, item->value.reservation) == r)
			return item->value.reservation;
	return NULL;
}

/* ---- where to ---- */

/* Leaves only what the move may use: no device of the present server, or only the named ones. */
static void fleet_narrow(
	struct obl_fleet *fleet, const char *from, const char *server, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < fleet->n; i++) {
		struct obl_server *s = &fleet->servers[i];
		const struct obl_known_server *known = fleet->rows[i].known->value.server;

		s->cordoned |= *server ? strcmp(s->name, server) != 0 : strcmp(s->name, from) == 0;
		for (uint32_t d = 0; uuid && d < s->n_devices; d++)
			s->devices[d].withdrawn |= memcmp(known->devices[d].uuid, uuid, 16) != 0;
	}
}

/* NULL: *ret has the place. */
static const char *place_find(struct obl_core *core, const struct obl_reservation *r,
	const char *server, const uint8_t *uuid, struct obl_choice *ret)
{
	static char why[OBP_POOL_TEXT_MAX];
	struct obl_fleet *fleet = core->line->fleet;
	uint64_t apart[OBL_SERVERS_MAX / 64];
	struct obl_state chance = core->chance;
	struct obl_where where;
	struct obl_request request = { .gpus = r->parts[0].n_devices,
		.share = r->share,
		.memory = r->exclusive ? 0 : r->parts[0].memory,
		.exclusive = r->exclusive,
		.one_server = true,
		.cuda = r->cuda,
		.max_sharers = core->settings->max_sharers,
		.kept = core->hold.active ? &core->hold.claim : NULL };
	struct ob_cause cause;

	if (obl_where_parse(r->where, &where, &cause))
		return "its wishes in the registry cannot be read";
	request.where = where.n_terms ? &where : NULL;
	obl_fleet_fill(core, fleet);
	if (r->apart[0]) {
		obl_fleet_apart(core, fleet, r->apart, apart);
		request.apart = apart;
	}
	fleet_narrow(fleet, r->parts[0].server, server, uuid);
	if (obl_place(fleet->servers, fleet->n, &request, OBL_LEAST_LOAD, &chance, ret))
		return NULL;
	obl_explain(ret, fleet->servers, &request, why, sizeof why);
	return why;
}

/* ---- the transaction ---- */

/* False: no random bytes, or the place has no ledger. */
static bool successor_fill(const struct obl_core *core, const struct obl_reservation *old,
	const struct obl_choice *choice, uint32_t load, struct obl_reservation *ret)
{
	const struct obl_part *part = &choice->parts[0];
	const struct obl_fleet_row *row = &core->line->fleet->rows[part->server];
	const struct obl_server *server = &core->line->fleet->servers[part->server];
	struct obl_holding *holding = &ret->parts[0];

	*ret = *old;
	if (getrandom(ret->id, sizeof ret->id, 0) != sizeof ret->id || !row->ledger)
		return false;
	memset(ret->successor, 0, sizeof ret->successor);
	snprintf(ret->from, sizeof ret->from, "%s", old->parts[0].server);
	ret->issued = ret->moved = obl_time_ms() / 1000;
	ret->expires = ret->issued + OBP_POOL_TICKET_S;
	ret->moves++;
	ret->load = load;
	snprintf(holding->server, sizeof holding->server, "%s", row->known->name);
	holding->incarnation = row->known->value.server->incarnation;
	holding->fence = row->ledger->value.ledger->fence + 1;
	for (uint32_t i = 0; i < part->n; i++) {
		uint64_t total = server->devices[part->devices[i]].total;

		if (ret->exclusive)
			holding->memory = i ? ob_min(holding->memory, total) : total;
		memcpy(holding->devices[i],
			row->known->value.server->devices[part->devices[i]].uuid, 16);
	}
	return true;
}

/*
 * Both count in the usage of the tenant until the old one ends. Its quota is not asked: it is about
 * what the tenant asks for, and a tenant at its limit could never be moved.
 */
static void plan_usage(
	struct obl_core *core, struct obl_plan *plan, const struct obl_reservation *successor)
{
	const struct obl_item *item =
		obl_mirror_find(&core->mirror, OBL_ITEM_TENANT, successor->tenant);
	struct obl_usage usage, more = obl_usage_of_reservation(successor);
	char key[OBL_KEY_MAX];

	if (!item)
		return;
	usage = *item->value.usage;
	obl_usage_add(&usage, &more);
	snprintf(key, sizeof key, "%s", item->key);
	obl_plan_put(plan, &core->mirror, key, obl_usage_text(&usage), false);
}

static void plan_fill(struct obl_core *core, const struct obl_reservation *old,
	const struct obl_reservation *successor, struct obl_ledger *book, char *ret_key)
{
	struct obl_plan *plan = obl_work_plan(core);
	struct obl_reservation changed = *old;
	char name[OBL_ID_TEXT], key[OBL_KEY_MAX];

	memcpy(changed.successor, successor->id, sizeof changed.successor);
	changed.moved = successor->moved;
	obl_id_print(old->id, name);
	obl_key_print(OBL_ITEM_RESERVATION, name, key);
	obl_plan_put(plan, &core->mirror, key, obl_reservation_text(&changed), false);
	obl_key_print(OBL_ITEM_LEDGER, successor->parts[0].server, key);
	obl_plan_put(plan, &core->mirror, key, obl_ledger_text(book), false);
	plan_usage(core, plan, successor);
	obl_id_print(successor->id, name);
	obl_key_print(OBL_ITEM_RESERVATION, name, ret_key);
	obl_plan_expect(plan, ret_key, 0);
	obl_plan_put_plainly(plan, ret_key, obl_reservation_text(successor), false);
}

/* Why the reservation can never be moved there; NULL: it can. */
static const char *unmovable(
	const struct obl_reservation *r, const char *server, const uint8_t *uuid)
{
	if (!r)
		return "there is no such reservation";
	if (!r->restartable)
		return "its program cannot be started again: it was not run with --restartable, "
		       "has used up its --restarts, or is ending";
	if (r->n_parts != 1 || r->granted != 1)
		return "it is on several servers, and only those on one can be moved";
	if (strcmp(server, r->parts[0].server) == 0 && !uuid)
		return "it is on this server already";
	return NULL;
}

enum ob_err obl_move_plan(struct obl_core *core, const char *id, const char *server,
	const uint8_t *uuid, uint32_t load, char ret_key[OBL_KEY_MAX],
	char ret_server[OBP_POOL_NAME_MAX], struct ob_cause *ret_cause)
{
	const struct obl_item *item = obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, id);
	const struct obl_reservation *old = item ? item->value.reservation : NULL;
	const char *wrong = unmovable(old, server, uuid);
	const struct obp_pool_held *held;
	struct obl_reservation successor;
	struct obl_choice choice;
	struct obl_ledger book;

	if (wrong)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "%s", wrong);
	held = obl_in_use(core, old);
	if (!load && held)
		load = ob_min(held->busy, 1000u);
	wrong = obl_successor(core, old) ? "it is being moved already"
					 : place_find(core, old, server, uuid, &choice);
	if (!wrong && !successor_fill(core, old, &choice, load, &successor))
		wrong = "the server has no ledger in the registry, or there are no random bytes";
	if (wrong)
		return ob_cause_set(ret_cause, OB_ERR_REFUSED, "%s", wrong);
	book = *core->line->fleet->rows[choice.parts[0].server].ledger->value.ledger;
	if (!obl_ledger_add(&book, &successor, &successor.parts[0]))
		return ob_cause_set(
			ret_cause, OB_ERR_REFUSED, "the server's ledger has no room for it");
	plan_fill(core, old, &successor, &book, ret_key);
	snprintf(ret_server, OBP_POOL_NAME_MAX, "%s", successor.parts[0].server);
	return OB_ERR_NONE;
}

bool obl_move_kill_plan(struct obl_core *core, const uint8_t successor[OBP_RESERVATION_BYTES],
	char ret_key[OBL_KEY_MAX])
{
	const struct obl_reservation *r = reservation_find(core, successor);
	struct obl_reservation changed;
	char name[OBL_ID_TEXT];

	if (!r)
		return false;
	changed = *r;
	changed.killed = true;
	obl_id_print(successor, name);
	obl_key_print(OBL_ITEM_RESERVATION, name, ret_key);
	obl_plan_put(
		obl_work_plan(core), &core->mirror, ret_key, obl_reservation_text(&changed), false);
	return true;
}

void obl_move_note(struct obl_core *core, const char *id, const char *to, const char *why)
{
	const struct obl_item *item = obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, id);
	const struct obl_reservation *r = item ? item->value.reservation : NULL;

	core->counts.moves_offered++;
	obl_event_add(core, "moving", r ? r->tenant : "",
		"reservation %.8s of %s from %s to %s, %s", id,
		r && r->program[0] ? r->program : "a program", r ? r->parts[0].server : "?", to,
		why);
}

/* ---- the end of a move ---- */

void obl_move_arrived(struct obl_core *core, const struct obl_credit *credit)
{
	core->counts.moves++;
	obl_event_add(core, "moved", credit->tenant, "reservation %.8s of %s from %s to %s",
		credit->id, credit->program[0] ? credit->program : "a program", credit->from,
		credit->server);
}

static void arrived(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	const struct obl_credit *arrival = &core->moves.arrival;
	const struct obl_item *item =
		obl_mirror_find(&core->mirror, OBL_ITEM_RESERVATION, arrival->id);

	(void)user;
	(void)cause;
	/* the answer may have been lost: its own change tells */
	if (outcome == OBL_MADE ||
		(outcome == OBL_STALE && item && !item->value.reservation->from[0] &&
			item->value.reservation->moved == arrival->moved_s))
		obl_move_arrived(core, arrival);
}

/* It rests from now on, and counts as busy as it was until it shows how busy it is. */
static bool arrival_note(struct obl_core *core, const struct obl_reservation *r)
{
	struct obl_credit *arrival = &core->moves.arrival;
	struct obl_reservation changed = *r;
	char key[OBL_KEY_MAX];

	obl_id_print(r->id, arrival->id);
	snprintf(arrival->tenant, sizeof arrival->tenant, "%s", r->tenant);
	snprintf(arrival->program, sizeof arrival->program, "%s", r->program);
	snprintf(arrival->from, sizeof arrival->from, "%s", r->from);
	snprintf(arrival->server, sizeof arrival->server, "%s", r->parts[0].server);
	changed.from[0] = '\0';
	changed.moved = arrival->moved_s = obl_time_ms() / 1000;
	obl_key_print(OBL_ITEM_RESERVATION, arrival->id, key);
	obl_plan_put(
		obl_work_plan(core), &core->mirror, key, obl_reservation_text(&changed), false);
	return obl_work_make(core, key, arrived, NULL);
}

/* True: a transaction was begun. */
static bool arrival_start(struct obl_core *core)
{
	const struct obl_item *item;

	/* one balancer, so that one clock says when */
	if (!core->moves.arrivals || !core->registry->ops->leads(core->registry))
		return false;
	for (item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION); item;
		item = obl_mirror_next(item))
		if (item->value.reservation->from[0] && obl_in_use(core, item->value.reservation))
			return arrival_note(core, item->value.reservation);
	core->moves.arrivals = false;
	return false;
}

/* ---- what a round has decided ---- */

static void drop_first(struct obl_moves *moves)
{
	memmove(&moves->list[0], &moves->list[1], --moves->n * sizeof moves->list[0]);
	moves->tries = 0;
}

static void made(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	struct obl_moves *moves = &core->moves;
	const struct obl_decided *d = &moves->list[0];

	(void)user;
	(void)cause;
	moves->making = false;
	if (outcome == OBL_STALE && ++moves->tries < OBL_MOVE_TRIES_MAX)
		return; /* the next turn decides on fresh values */
	if (outcome == OBL_MADE) {
		obl_move_note(core, d->id, moves->to, d->why);
		core->asks_changed = true;
	}
	drop_first(moves);
}

bool obl_moves_start(struct obl_core *core)
{
	struct obl_moves *moves = &core->moves;
	const struct obl_decided *d;
	char key[OBL_KEY_MAX];

	if (arrival_start(core))
		return true;
	if (!moves->n || moves->making)
		return false;
	d = &moves->list[0];
	if (!obl_move_plan(core, d->id, d->server, d->any_device ? NULL : d->uuid, d->load, key,
		    moves->to, NULL) &&
		obl_work_make(core, key, made, NULL)) {
		moves->making = true;
		return true;
	}
	/*
	 * What it was decided on has changed; a later round looks again. The next one has a turn of
	 * its own, because looking for a place in a large pool takes a while.
	 */
	drop_first(moves);
	core->wake(core);
	return false;
}

/* ---- the end of the old one ---- */

const struct obp_pool_held *obl_in_use(const struct obl_core *core, const struct obl_reservation *r)
{
	const struct obl_member *member =
		r->n_parts ? obl_member_find(core, r->parts[0].server) : NULL;
	const struct obp_pool_held *held = member ? obl_member_held(member, r->id) : NULL;

	return held && held->state == OBP_POOL_CLAIMED && held->sessions > 0 ? held : NULL;
}

void obl_moves_sweep(struct obl_core *core)
{
	char text[OBP_POOL_TEXT_MAX];

	if (!core->synced || !core->usable)
		return;
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item)) {
		const struct obl_reservation *r = item->value.reservation,
					     *next = obl_successor(core, r);
		struct obl_member *member = next && obl_in_use(core, next)
			? obl_member_find(core, r->parts[0].server)
			: NULL;

		core->moves.arrivals |= r->from[0] != '\0';
		if (!member || member->incarnation != r->parts[0].incarnation)
			continue;
		snprintf(text, sizeof text, OBP_POOL_MOVED_TEXT "%s", next->parts[0].server);
		obl_member_order(member, OBP_POOL_ORDER_KILL, r->id, 0, text);
	}
}
