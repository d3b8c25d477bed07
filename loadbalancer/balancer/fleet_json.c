/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/fleet_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "loadbalancer/balancer/document.h"
#include "loadbalancer/balancer/ledger.h"
#include "loadbalancer/balancer/line.h"
#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/dashboard/exposition.h"

/* ---- servers and devices ---- */

static void labels_write(struct ob_json *json, const struct obl_labels *labels)
{
	ob_json_object(json, "labels");
	for (uint32_t i = 0; i < labels->n; i++)
		ob_json_text(json, labels->text + labels->list[i].key,
			labels->text + labels->list[i].value);
	ob_json_end(json);
}

static void urls_write(struct ob_json *json, const char *urls)
{
	char copy[OBL_URLS_TEXT], *rest = copy, *word;

	snprintf(copy, sizeof copy, "%s", urls);
	ob_json_array(json, "addresses");
	while ((word = strsep(&rest, " ")))
		if (*word)
			ob_json_text(json, NULL, word);
	ob_json_end(json);
}

/* null: not known, or no limit. */
static void reading_write(struct ob_json *json, const char *key, bool known, uint64_t value)
{
	if (known)
		ob_json_uint(json, key, value);
	else
		ob_json_null(json, key);
}

static void server_write(struct obl_document *d, uint32_t i)
{
	const struct obl_server *server = &d->line->fleet->servers[i];
	const struct obl_fleet_row *row = &d->line->fleet->rows[i];
	const struct obl_known_server *known = row->known->value.server;
	const struct obl_member *m = row->member;
	bool beats = m && m->beat_ns;
	struct ob_json *json = &d->json;

	ob_json_object(json, NULL);
	ob_json_text(json, "name", row->known->name);
	ob_json_text(json, "state", obl_seen_state_name(obl_fleet_state(d->line->fleet, i)));
	ob_json_bool(json, "cordoned", server->cordoned);
	ob_json_bool(json, "draining", server->draining);
	ob_json_bool(json, "healthy", m && m->healthy);
	ob_json_text(json, "health", m ? m->health : "");
	ob_json_text(json, "version", known->version);
	urls_write(json, known->urls);
	labels_write(json, &row->labels);
	ob_json_textf(json, "incarnation", "%016" PRIx64, known->incarnation);
	ob_json_uint(json, "cuda", known->cuda);
	ob_json_text(json, "driver", m ? m->load.driver : "");
	ob_json_uint(json, "devices", known->n_devices);
	reading_write(json, "sessions", beats, beats ? m->load.sessions : 0);
	reading_write(json, "max_sessions", beats && m->load.max_sessions,
		beats ? m->load.max_sessions : 0);
	reading_write(json, "busy_per_mille", beats, server->busy);
	reading_write(json, "uptime_s", beats, beats ? m->load.uptime_ns / OB_SECOND : 0);
	reading_write(
		json, "heartbeat_age_ms", beats, beats ? (ob_clock_ns() - m->beat_ns) / OB_MS : 0);
	ob_json_end(json);
}

static void servers_write(struct obl_document *d)
{
	ob_json_array(&d->json, "servers");
	for (uint32_t i = 0; i < d->line->fleet->n; i++)
		if (obl_document_wants(d, d->line->fleet->rows[i].known->name))
			server_write(d, i);
	ob_json_end(&d->json);
}

static void fact_write(
	struct ob_json *json, const char *key, const struct obp_facts *facts, enum obp_fact fact)
{
	uint64_t value = 0;
	bool known = obp_fact_get(facts, fact, &value);

	reading_write(json, key, known, value);
}

static void gpu_write(struct obl_document *d, uint32_t i, uint32_t n)
{
	static const struct obp_facts no_facts;
	const struct obl_device *device = &d->line->fleet->servers[i].devices[n];
	const struct obl_fleet_row *row = &d->line->fleet->rows[i];
	const struct obl_known_device *known = &row->known->value.server->devices[n];
	const struct obp_load_device *load = obl_fleet_load(row->member, known->uuid);
	const struct obp_facts *facts = load ? &load->facts : &no_facts;
	const struct obl_ledger_device *book =
		row->ledger ? obl_ledger_device(row->ledger->value.ledger, known->uuid) : NULL;
	struct ob_json *json = &d->json;
	char uuid[OB_UUID_TEXT];

	ob_uuid_print(known->uuid, uuid);
	ob_json_object(json, NULL);
	ob_json_text(json, "server", row->known->name);
	ob_json_uint(json, "index", n);
	ob_json_text(json, "uuid", uuid);
	ob_json_text(json, "name", known->name);
	ob_json_text(json, "kind", obl_kind_name(device->kind));
	ob_json_textf(json, "capability", "%u.%u", known->capability / 10, known->capability % 10);
	ob_json_uint(json, "multiprocessors", known->units);
	ob_json_uint(json, "memory_bytes", known->total);
	ob_json_uint(json, "reserved_bytes", book ? book->reserved : 0);
	reading_write(json, "used_bytes", load, load ? load->used : 0);
	ob_json_uint(json, "reservations", device->sharers);
	reading_write(json, "sessions", load, load ? load->sharers : 0);
	ob_json_uint(json, "share_millionths", device->share);
	ob_json_array(json, "share_by");
	for (uint32_t by = OBP_SHARE_BY_THROTTLE; load && by < OBP_SHARE_BY_COUNT; by++)
		if (load->share_by >> by & 1)
			ob_json_text(json, NULL, obp_share_by_name(by));
	ob_json_end(json);
	ob_json_bool(json, "exclusive", device->held);
	ob_json_bool(json, "faulty", device->faulty);
	reading_write(json, "busy_per_mille", load, device->busy);
	fact_write(json, "celsius", facts, OBP_FACT_TEMPERATURE);
	fact_write(json, "milliwatts", facts, OBP_FACT_POWER);
	fact_write(json, "milliwatts_limit", facts, OBP_FACT_POWER_LIMIT);
	ob_json_end(json);
}

static void gpus_write(struct obl_document *d)
{
	ob_json_array(&d->json, "gpus");
	for (uint32_t i = 0; i < d->line->fleet->n; i++)
		for (uint32_t n = 0; n < d->line->fleet->servers[i].n_devices; n++)
			if (obl_document_wants(d, d->line->fleet->rows[i].known->name))
				gpu_write(d, i, n);
	ob_json_end(&d->json);
}

/* ---- reservations ---- */

static void part_write(struct obl_document *d, const struct obl_reservation *r, uint32_t i)
{
	const struct obl_holding *part = &r->parts[i];
	const struct obl_member *m = obl_member_find(d->core, part->server);
	const struct obp_pool_held *held =
		m && m->incarnation == part->incarnation ? obl_member_held(m, r->id) : NULL;
	struct ob_json *json = &d->json;
	char uuid[OB_UUID_TEXT];

	ob_json_object(json, NULL);
	ob_json_text(json, "server", part->server);
	ob_json_array(json, "gpus");
	for (uint32_t n = 0; n < part->n_devices; n++) {
		ob_uuid_print(part->devices[n], uuid);
		ob_json_text(json, NULL, uuid);
	}
	ob_json_end(json);
	ob_json_uint(json, "memory_bytes", part->memory);
	ob_json_uint(json, "used_bytes", held ? held->used : 0);
	ob_json_uint(json, "sessions", held ? held->sessions : 0);
	/* a newer server may have more methods */
	if (held && held->sessions && held->share_by < OBP_SHARE_BY_COUNT)
		ob_json_text(json, "share_by", obp_share_by_name(held->share_by));
	else
		ob_json_null(json, "share_by");
	ob_json_text(json, "state",
		!m                                        ? "unknown"
			: !held                           ? "granted"
			: held->state != OBP_POOL_CLAIMED ? "ended"
			: held->sessions                  ? "running"
							  : "kept");
	ob_json_end(json);
}

static void reservation_write(struct obl_document *d, const struct obl_reservation *r)
{
	const struct obl_reservation *successor = obl_successor(d->core, r);
	struct ob_json *json = &d->json;
	char id[OBL_ID_TEXT];

	obl_id_print(r->id, id);
	ob_json_object(json, NULL);
	ob_json_text(json, "id", id);
	ob_json_text(json, "tenant", r->tenant);
	ob_json_text(json, "program", r->program);
	ob_json_text(json, "host", r->host);
	ob_json_text(json, "user", r->user);
	ob_json_uint(json, "pid", r->pid);
	ob_json_uint(json, "since", r->issued);
	ob_json_text(json, "priority", obl_priority_name(r->priority));
	ob_json_uint(json, "share_millionths", r->share);
	ob_json_bool(json, "exclusive", r->exclusive);
	ob_json_bool(json, "restartable", r->restartable);
	ob_json_uint(json, "moves", r->moves);
	ob_json_text(json, "moving_to", successor ? successor->parts[0].server : NULL);
	ob_json_uint(json, "hold_s", r->linger_s);
	ob_json_array(json, "parts");
	for (uint32_t i = 0; i < r->n_parts; i++)
		part_write(d, r, i);
	ob_json_end(json);
	ob_json_end(json);
}

static void sessions_write(struct obl_document *d)
{
	uint64_t others = 0;
	char id[OBL_ID_TEXT];

	ob_json_array(&d->json, "reservations");
	for (const struct obl_item *item = obl_mirror_first(&d->core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item)) {
		const struct obl_reservation *r = item->value.reservation;

		obl_id_print(r->id, id);
		if (!obl_document_shows(d, r->tenant))
			others++;
		else if (obl_document_wants(d, id) || obl_document_wants(d, r->tenant))
			reservation_write(d, r);
	}
	ob_json_end(&d->json);
	ob_json_uint(&d->json, "other_reservations", others);
}

/* ---- this balancer ---- */

static uint64_t count_of(const struct obl_core *core, enum obl_item_kind kind)
{
	uint64_t n = 0;

	for (const struct obl_item *item = obl_mirror_first(&core->mirror, kind); item;
		item = obl_mirror_next(item))
		n++;
	return n;
}

static void info_write(struct obl_document *d)
{
	struct obl_core *core = d->core;
	struct ob_json *json = &d->json;

	ob_json_object(json, "info");
	ob_json_text(json, "balancer", core->name);
	ob_json_text(json, "version", OB_VERSION);
	ob_json_uint(json, "uptime_s", (ob_clock_ns() - core->started_ns) / OB_SECOND);
	ob_json_text(json, "registry", core->registry ? core->registry->ops->name : "");
	ob_json_bool(json, "registry_usable", core->usable && core->synced);
	ob_json_text(json, "registry_error", core->usable && core->synced ? NULL : core->unusable);
	ob_json_bool(json, "leads", core->registry && core->registry->ops->leads(core->registry));
	ob_json_text(json, "policy", obl_policy_name(core->settings->policy));
	ob_json_uint(json, "servers_here", core->n_members);
	ob_json_uint(json, "servers", count_of(core, OBL_ITEM_SERVER));
	ob_json_uint(json, "reservations", count_of(core, OBL_ITEM_RESERVATION));
	ob_json_uint(json, "queue_length", d->line->n);
	ob_json_uint(json, "connections", core->gate.links.n);
	ob_json_uint(json, "placed_total", core->placed);
	ob_json_uint(json, "refused_total", core->refused);
	ob_json_uint(json, "ended_total", core->ended);
	ob_json_uint(json, "transactions_total", core->work.made);
	ob_json_uint(json, "conflicts_total", core->work.conflicts);
	ob_json_uint(json, "moves_offered_total", core->counts.moves_offered);
	ob_json_uint(json, "moves_total", core->counts.moves);
	ob_json_uint(json, "registry_failures_total", core->work.failures);
	ob_json_array(json, "balancers");
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_BALANCER); item;
		item = obl_mirror_next(item))
		ob_json_text(json, NULL, item->name);
	ob_json_end(json);
	ob_json_end(json);
}

/* ---- documents ---- */

static const struct {
	const char *what;
	void (*write)(struct obl_document *d);
} documents[] = {
	{ "info", info_write },
	{ "servers", servers_write },
	{ "gpus", gpus_write },
	{ "sessions", sessions_write },
	{ "queue", obl_document_queue },
	{ "quota", obl_document_quota },
	{ "events", obl_document_events },
};

bool obl_document_known(const char *what)
{
	for (unsigned i = 0; i < sizeof documents / sizeof documents[0]; i++)
		if (strcmp(what, documents[i].what) == 0)
			return true;
	return strcmp(what, "fleet") == 0;
}

bool obl_document(struct obl_core *core, const struct obp_pool_query *query, const char *tenant,
	char **ret_text, size_t *ret_size)
{
	struct obl_document d = {
		.core = core, .line = core->line, .query = query, .tenant = tenant
	};
	FILE *out = open_memstream(ret_text, ret_size);

	if (!out)
		return false;
	obl_line_fill(core, core->line);
	ob_json_begin(&d.json, out, OB_JSON_COMPACT);
	ob_json_object(&d.json, NULL);
	ob_json_uint(&d.json, "schema", 1);
	ob_json_uint(&d.json, "time_ms", obl_time_ms());
	for (unsigned i = 0; i < sizeof documents / sizeof documents[0]; i++)
		if (strcmp(query->what, "fleet") == 0 ||
			strcmp(query->what, documents[i].what) == 0)
			documents[i].write(&d);
	ob_json_end(&d.json);
	return fclose(out) == 0;
}
