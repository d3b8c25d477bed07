/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/batch.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "loadbalancer/balancer/asks.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/ledger.h"
#include "loadbalancer/balancer/tenants.h"
#include "loadbalancer/balancer/work.h"

#define TRIES_MAX  64u  /* conflicts of one request with other balancers */
#define FAILURE_MS 200u /* rest after a failed transaction */

/* ---- the reservation of a choice ---- */

/* The ledger of a server as this transaction leaves it. NULL: it has no room for more servers. */
static struct obl_ledger *book_of(struct obl_line *line, uint32_t server)
{
	uint32_t i = 0;

	while (i < line->n_books && line->book_servers[i] != server)
		i++;
	if (i == OBL_BOOKS_MAX)
		return NULL;
	if (i == line->n_books) {
		line->books[i] = *line->fleet->rows[server].ledger->value.ledger;
		line->book_servers[line->n_books++] = server;
	}
	return &line->books[i];
}

/* Bytes that a part reserves on each of its devices. */
static uint64_t part_memory(struct obl_core *core, const struct obl_line *line,
	const struct obl_asker *asker, const struct obl_part *part)
{
	const struct obl_server *server = &line->fleet->servers[part->server];
	uint64_t memory = UINT64_MAX;

	if (asker->entry.ask.memory && !asker->request.exclusive)
		return asker->entry.ask.memory;
	for (uint32_t i = 0; i < part->n; i++) {
		const struct obl_device *device = &server->devices[part->devices[i]];
		uint64_t most = asker->request.exclusive
			? device->total
			: ob_min(obl_memory_default(core, device->total), obl_device_free(device));

		memory = ob_min(memory, most);
	}
	/* A default is no more than the token allows; an exclusive request was refused then. */
	return asker->most_memory ? ob_min(memory, asker->most_memory) : memory;
}

/* False: too many servers in one transaction. */
static bool reservation_fill(struct obl_core *core, struct obl_line *line,
	const struct obl_asker *asker, const struct obl_choice *choice, struct obl_reservation *ret)
{
	const struct obp_pool_ask *ask = &asker->entry.ask;
	uint64_t now_s = obl_time_ms() / 1000;

	*ret = (struct obl_reservation){ .pid = ask->pid,
		.issued = now_s,
		.expires = now_s + OBP_POOL_TICKET_S,
		.share = ask->share,
		.priority = ask->priority,
		.linger_s = ask->linger_s ? ask->linger_s : OBP_POOL_LINGER_S,
		.exclusive = asker->request.exclusive,
		.restartable = ask->restartable,
		.granted = choice->n_parts,
		.n_parts = choice->n_parts };
	memcpy(ret->id, ask->id, sizeof ret->id);
	snprintf(ret->tenant, sizeof ret->tenant, "%s", asker->entry.tenant);
	snprintf(ret->program, sizeof ret->program, "%s", ask->program);
	snprintf(ret->host, sizeof ret->host, "%s", ask->host);
	snprintf(ret->user, sizeof ret->user, "%s", ask->user);
	snprintf(ret->apart, sizeof ret->apart, "%s", ask->apart);
	if (ask->restartable) {
		snprintf(ret->where, sizeof ret->where, "%s", ask->where);
		ret->cuda = ask->cuda;
	}
	for (uint32_t p = 0; p < choice->n_parts; p++) {
		const struct obl_part *part = &choice->parts[p];
		const struct obl_fleet_row *row = &line->fleet->rows[part->server];
		struct obl_holding *holding = &ret->parts[p];
		const struct obl_ledger *book = book_of(line, part->server);

		if (!book)
			return false;
		snprintf(holding->server, sizeof holding->server, "%s", row->known->name);
		holding->incarnation = row->known->value.server->incarnation;
		holding->fence = book->fence + 1;
		holding->memory = part_memory(core, line, asker, part);
		holding->n_devices = part->n;
		for (uint32_t i = 0; i < part->n; i++)
			memcpy(holding->devices[i],
				row->known->value.server->devices[part->devices[i]].uuid, 16);
	}
	return true;
}

/* Adds what the tenant uses; only if it has a quota, or had one. False: the quota is used up. */
static bool plan_usage(struct obl_core *core, struct obl_plan *plan, const struct obl_asker *asker,
	const struct obl_reservation *r)
{
	const char *tenant = asker->entry.tenant;
	struct obl_usage usage, more = obl_usage_of_reservation(r);
	struct obl_request request = asker->request;
	char key[OBL_KEY_MAX], text[OBP_POOL_TEXT_MAX];
	struct obl_quota quota;
	bool limited = obl_tenant_quota(core, tenant, &quota);

	if (!limited && !obl_mirror_find(&core->mirror, OBL_ITEM_TENANT, tenant))
		return true;
	usage = obl_tenant_usage(core, tenant);
	for (uint32_t i = 0; i < r->n_parts; i++)
		request.memory = ob_max(request.memory, r->parts[i].memory);
	if (limited &&
		obl_quota_check(&quota, &usage, &request, r->priority, tenant, text, sizeof text) !=
			OBL_QUOTA_OK)
		return false;
	obl_usage_add(&usage, &more);
	obl_key_print(OBL_ITEM_TENANT, tenant, key);
	obl_plan_put(plan, &core->mirror, key, obl_usage_text(&usage), false);
	return true;
}

/* Adds the reservation to the ledgers, and to what the next placement sees. False: no room. */
static bool books_add(
	struct obl_line *line, const struct obl_choice *choice, const struct obl_reservation *r)
{
	struct obl_ledger after[OBP_POOL_PARTS_MAX];

	for (uint32_t p = 0; p < r->n_parts; p++) {
		after[p] = *book_of(line, choice->parts[p].server);
		if (!obl_ledger_add(&after[p], r, &r->parts[p]))
			return false;
	}
	for (uint32_t p = 0; p < r->n_parts; p++) {
		const struct obl_part *part = &choice->parts[p];
		struct obl_server *server = &line->fleet->servers[part->server];

		*book_of(line, part->server) = after[p];
		server->fresh++;
		for (uint32_t i = 0; i < part->n; i++) {
			const struct obl_ledger_device *book =
				obl_ledger_device(&after[p], r->parts[p].devices[i]);
			struct obl_device *device = &server->devices[part->devices[i]];

			device->reserved = ob_max(device->reserved, book->reserved);
			device->share = (uint32_t)ob_min(book->share, OBL_SHARE_ALL);
			device->sharers = book->sharers;
			device->held = book->exclusive;
		}
	}
	return true;
}

static void plan_books(struct obl_core *core, struct obl_plan *plan, const struct obl_line *line)
{
	char key[OBL_KEY_MAX];

	for (uint32_t i = 0; i < line->n_books; i++) {
		obl_key_print(
			OBL_ITEM_LEDGER, line->fleet->rows[line->book_servers[i]].known->name, key);
		obl_plan_put(plan, &core->mirror, key, obl_ledger_text(&line->books[i]), false);
	}
}

/* ---- the transaction ---- */

static void placed_note(struct obl_core *core, const struct obl_reservation *r)
{
	uint64_t now = ob_clock_ns();
	char where[OBL_EVENT_TEXT] = "";
	uint32_t devices = 0;

	for (uint32_t p = 0; p < r->n_parts; p++) {
		struct obl_member *member = obl_member_find(core, r->parts[p].server);
		size_t used = strlen(where);

		devices += r->parts[p].n_devices;
		snprintf(where + used, sizeof where - used, "%s%s", p ? ", " : "",
			r->parts[p].server);
		if (!member)
			continue;
		if (now >= member->fresh_ns + OB_SECOND) {
			member->fresh_ns = now;
			member->fresh = 0;
		}
		member->fresh++;
	}
	core->placed++;
	obl_event_add(core, "placed", r->tenant, "%u device%s on %.180s", devices,
		devices == 1 ? "" : "s", where);
}

static void placed_one(struct obl_core *core, struct obl_asker *asker, enum obl_outcome outcome,
	const struct ob_cause *cause)
{
	const struct obl_item *item = obl_mirror_reservation(&core->mirror, asker->entry.ask.id);
	char text[OBP_POOL_TEXT_MAX];

	asker->placing = false;
	core->asks_changed = true;
	if (outcome == OBL_MADE && item) {
		placed_note(core, item->value.reservation);
		obl_count_placed(
			&core->counts, asker->told_ns != 0, ob_clock_ns() - asker->begun_ns);
	}
	if (item) {
		obl_asker_answer(asker, item->value.reservation);
		return;
	}
	if (!asker->link || asker->cancelled) {
		obl_asker_free(asker);
		return;
	}
	if (outcome == OBL_FAILED) {
		core->work.rest_until = ob_clock_ns() + FAILURE_MS * OB_MS;
		ob_warn("balancer: a reservation could not be stored: %s", cause->text);
	}
	if (core->stopping || (outcome == OBL_FAILED && !asker->entry.ask.wait_s)) {
		snprintf(text, sizeof text, "the reservation could not be stored: %.900s",
			cause ? cause->text : "this balancer stops; ask another one");
		obl_asker_refuse(asker, OBP_POOL_LATER, text);
	} else if (outcome == OBL_STALE && ++asker->tries >= TRIES_MAX) {
		obl_asker_refuse(
			asker, OBP_POOL_LATER, "other balancers were faster each time; try again");
	}
}

static void placed(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	struct obl_line *line = user;

	for (uint32_t i = 0; i < line->n_batch; i++)
		placed_one(core, line->batch[i], outcome, cause);
	line->n_batch = 0;
}

/* Whether further placements of the same transaction would not see what this one changes. */
static bool is_single(const struct obl_core *core, const struct obl_asker *asker)
{
	struct obl_quota quota;

	return asker->entry.ask.apart[0] || obl_tenant_quota(core, asker->entry.tenant, &quota) ||
		obl_mirror_find(&core->mirror, OBL_ITEM_TENANT, asker->entry.tenant);
}

enum obl_added obl_batch_add(struct obl_core *core, struct obl_line *line, struct obl_asker *asker,
	const struct obl_choice *choice)
{
	bool single = is_single(core, asker);
	struct obl_plan *plan = &core->work.plan;
	char name[OBL_ID_TEXT], key[OBL_KEY_MAX];
	struct obl_reservation reservation;

	if (single && line->n_batch)
		return OBL_BATCH_FULL;
	for (uint32_t i = 0; i < line->n_batch; i++)
		if (memcmp(line->batch[i]->entry.ask.id, asker->entry.ask.id,
			    OBP_RESERVATION_BYTES) == 0)
			return OBL_BATCH_FULL; /* the same request again: it gets the same grant */
	for (uint32_t p = 0; p < choice->n_parts; p++)
		if (!line->fleet->rows[choice->parts[p].server].ledger || choice->parts[p].n == 0)
			return OBL_BATCH_FULL;
	if (!reservation_fill(core, line, asker, choice, &reservation))
		return OBL_BATCH_FULL;
	if (single && !plan_usage(core, plan, asker, &reservation))
		return OBL_BATCH_BLOCKED;
	if (!books_add(line, choice, &reservation))
		return OBL_BATCH_FULL;
	obl_id_print(reservation.id, name);
	obl_key_print(OBL_ITEM_RESERVATION, name, key);
	obl_plan_expect(plan, key, 0);
	obl_plan_put_plainly(plan, key, obl_reservation_text(&reservation), false);
	if (obl_mirror_get(&core->mirror, asker->key))
		obl_plan_delete_plainly(plan, asker->key);
	line->batch[line->n_batch++] = asker;
	return single ? OBL_BATCH_ADDED_LAST : OBL_BATCH_ADDED;
}

bool obl_batch_make(struct obl_core *core, struct obl_line *line)
{
	char name[OBL_ID_TEXT], key[OBL_KEY_MAX];

	if (!line->n_batch)
		return false;
	plan_books(core, &core->work.plan, line);
	obl_id_print(line->batch[0]->entry.ask.id, name);
	obl_key_print(OBL_ITEM_RESERVATION, name, key);
	for (uint32_t i = 0; i < line->n_batch; i++)
		line->batch[i]->placing = true;
	if (obl_work_make(core, key, placed, line))
		return true;
	for (uint32_t i = 0; i < line->n_batch; i++)
		line->batch[i]->placing = false;
	line->n_batch = 0;
	return false;
}
