/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/document.h"

#include <stdlib.h>

#include "loadbalancer/balancer/tenants.h"

/* ---- the queue ---- */

static void queued_write(struct obl_document *d, const struct obl_queued *entry, uint32_t place,
	uint64_t estimate_ms)
{
	struct ob_json *json = &d->json;
	uint64_t now = obl_time_ms();
	char id[OBL_ID_TEXT];

	obl_id_print(entry->ask.id, id);
	ob_json_object(json, NULL);
	ob_json_uint(json, "position", place + 1);
	ob_json_text(json, "id", id);
	ob_json_text(json, "tenant", entry->tenant);
	ob_json_text(json, "balancer", entry->balancer);
	ob_json_text(json, "program", entry->ask.program);
	ob_json_text(json, "host", entry->ask.host);
	ob_json_text(json, "user", entry->ask.user);
	ob_json_uint(json, "gpus", entry->ask.gpus);
	ob_json_uint(json, "memory_bytes", entry->ask.memory);
	ob_json_text(json, "priority", obl_priority_name(entry->ask.priority));
	ob_json_text(json, "where", entry->ask.where);
	ob_json_uint(json, "waited_ms", now > entry->since ? now - entry->since : 0);
	if (estimate_ms)
		ob_json_uint(json, "estimate_ms", estimate_ms);
	else
		ob_json_null(json, "estimate_ms");
	ob_json_end(json);
}

void obl_document_queue(struct obl_document *d)
{
	struct obl_line *line = d->line;
	uint64_t others = 0;

	ob_json_array(&d->json, "queue");
	for (uint32_t place = 0; place < line->n; place++) {
		const struct obl_queued *entry = line->entries[line->order[place]];

		if (!obl_document_shows(d, entry->tenant)) {
			others++;
			continue;
		}
		queued_write(d, entry, place,
			obl_queue_estimate(line->waiting, line->order, place, &d->core->releases,
				obl_time_ms()));
	}
	ob_json_end(&d->json);
	ob_json_uint(&d->json, "queue_length", line->n);
	ob_json_uint(&d->json, "other_requests", others);
}

/* ---- quotas ---- */

static void limit_write(struct ob_json *json, const char *key, uint64_t limit)
{
	if (limit)
		ob_json_uint(json, key, limit);
	else
		ob_json_null(json, key);
}

static void tenant_write(struct obl_document *d, const char *tenant)
{
	struct obl_usage usage = obl_tenant_usage(d->core, tenant);
	struct ob_json *json = &d->json;
	struct obl_quota quota = { 0 };
	bool limited = obl_tenant_quota(d->core, tenant, &quota);

	if (!obl_document_shows(d, tenant) || !obl_document_wants(d, tenant))
		return;
	ob_json_object(json, NULL);
	ob_json_text(json, "tenant", tenant);
	ob_json_bool(json, "limited", limited);
	ob_json_uint(json, "gpus", usage.gpus);
	limit_write(json, "gpus_limit", quota.gpus);
	ob_json_uint(json, "memory_bytes", usage.memory);
	limit_write(json, "memory_limit_bytes", quota.memory);
	ob_json_uint(json, "share_millionths", usage.share);
	limit_write(json, "share_limit_millionths", quota.share);
	ob_json_uint(json, "reservations", usage.sessions);
	limit_write(json, "reservations_limit", quota.sessions);
	ob_json_uint(json, "weight", quota.weight ? quota.weight : 1);
	ob_json_text(json, "max_priority",
		obl_priority_name(quota.max_priority ? quota.max_priority : OBL_HIGH));
	ob_json_end(json);
}

#define TENANTS_SHOWN 1024u

static void note_tenant(const char **names, uint32_t *n, const char *name)
{
	for (uint32_t i = 0; i < *n; i++)
		if (strcmp(names[i], name) == 0)
			return;
	if (*n < TENANTS_SHOWN && strcmp(name, "*") != 0)
		names[(*n)++] = name;
}

void obl_document_quota(struct obl_document *d)
{
	const char *names[TENANTS_SHOWN], *name;
	struct obl_quota quota;
	uint32_t n = 0;

	for (uint32_t i = 0; obl_tenants_nth(d->core, i, &name, &quota); i++)
		note_tenant(names, &n, name);
	for (const struct obl_item *item = obl_mirror_first(&d->core->mirror, OBL_ITEM_QUOTA); item;
		item = obl_mirror_next(item))
		note_tenant(names, &n, item->name);
	for (const struct obl_item *item = obl_mirror_first(&d->core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item))
		note_tenant(names, &n, item->value.reservation->tenant);
	ob_json_array(&d->json, "tenants");
	for (uint32_t i = 0; i < n; i++)
		tenant_write(d, names[i]);
	ob_json_end(&d->json);
}

/* ---- events ---- */

/* Events that concern no tenant. */
static const char *const public_kinds[] = { "joined", "lost", "silent", "back", "unwell", "well",
	"cordoned", "uncordoned", "drained", "forgotten", "balancer", "registry-lost",
	"registry-back", NULL };
/* Whose subject is a tenant. That of all others is a server, and may have a tenant's name. */
static const char *const tenant_kinds[] = { "placed", "refused", "ended", "moving", "moved",
	"quota", NULL };

static bool is_of(const struct obl_event *event, const char *const *kinds)
{
	while (*kinds && strcmp(*kinds, event->kind) != 0)
		kinds++;
	return *kinds;
}

static bool event_shows(const struct obl_document *d, const struct obl_event *event)
{
	if (!d->tenant || is_of(event, public_kinds))
		return true;
	return is_of(event, tenant_kinds) && obl_document_shows(d, event->subject);
}

void obl_document_events(struct obl_document *d)
{
	struct ob_json *json = &d->json;

	ob_json_array(json, "events");
	for (const struct obl_item *item = obl_mirror_first(&d->core->mirror, OBL_ITEM_EVENT); item;
		item = obl_mirror_next(item)) {
		const struct obl_event *event = item->value.event;
		uint64_t number = strtoull(item->name, NULL, 10);

		if (number <= d->query->since || !event_shows(d, event))
			continue;
		ob_json_object(json, NULL);
		ob_json_uint(json, "number", number);
		ob_json_uint(json, "time_ms", event->time_ms);
		ob_json_text(json, "kind", event->kind);
		ob_json_text(json, "subject", event->subject);
		ob_json_text(json, "text", event->text);
		ob_json_uint(json, "count", event->count);
		ob_json_end(json);
	}
	ob_json_end(json);
}
