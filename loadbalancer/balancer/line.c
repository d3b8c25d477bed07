/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/line.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "loadbalancer/balancer/tenants.h"

#define MEMORY_LEAST (UINT64_C(1) << 30) /* default of small devices */
#define MEMORY_PART  8u                  /* default: this part of a device */

struct obl_line *obl_line_new(void)
{
	struct obl_line *line = calloc(1, sizeof *line);

	if (line && !(line->fleet = obl_fleet_new())) {
		free(line);
		line = NULL;
	}
	return line;
}

void obl_line_free(struct obl_line *line)
{
	if (line)
		free(line->fleet);
	free(line);
}

/* ---- requests ---- */

uint64_t obl_memory_default(const struct obl_core *core, uint64_t total)
{
	uint64_t wanted = core->settings->default_memory;

	if (!wanted)
		wanted = ob_max(total / MEMORY_PART, MEMORY_LEAST);
	return ob_min(wanted, total);
}

/* The smallest default of any device: a request without memory needs at least this. */
static uint64_t least_default(const struct obl_core *core, const struct obl_fleet *fleet)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < fleet->n; i++)
		for (uint32_t d = 0; d < fleet->servers[i].n_devices; d++)
			least = ob_min(least,
				obl_memory_default(core, fleet->servers[i].devices[d].total));
	return least == UINT64_MAX ? 0 : least;
}

enum obl_policy obl_policy_of(const struct obl_core *core, const struct obp_pool_ask *ask)
{
	return ask->policy && ask->policy <= OBL_POLICY_COUNT ? (enum obl_policy)(ask->policy - 1)
							      : core->settings->policy;
}

bool obl_ask_exclusive(const struct obl_core *core, const struct obp_pool_ask *ask)
{
	return ask->exclusive || obl_policy_of(core, ask) == OBL_EXCLUSIVE;
}

void obl_request_of(const struct obl_core *core, const struct obl_fleet *fleet,
	const struct obp_pool_ask *ask, const struct obl_where *where, struct obl_request *ret)
{
	*ret = (struct obl_request){ .gpus = ask->gpus,
		.share = ask->share,
		.memory = ask->memory,
		.exclusive = obl_ask_exclusive(core, ask),
		.one_server = ask->one_server,
		.cuda = ask->cuda,
		.max_sharers = core->settings->max_sharers,
		.where = where->n_terms ? where : NULL };
	if (!ret->memory && !ret->exclusive)
		ret->memory = least_default(core, fleet);
}

/* ---- the line ---- */

static uint32_t tenant_index(struct obl_core *core, struct obl_line *line, const char *name)
{
	struct obl_quota quota;
	uint32_t i = 0;

	while (i < line->n_tenants && strcmp(line->tenant_names[i], name) != 0)
		i++;
	if (i < line->n_tenants)
		return i;
	if (i == OBL_QUEUE_TENANTS_MAX)
		return i - 1;
	line->tenant_names[i] = name;
	line->tenants[i] = (struct obl_queue_tenant){ .weight = 1 };
	if (obl_tenant_quota(core, name, &quota))
		line->tenants[i].weight = quota.weight;
	line->n_tenants++;
	return i;
}

/* What a waiting request's quota says: it may have to wait although devices are free. */
static bool blocked(
	struct obl_core *core, const struct obl_queued *entry, const struct obl_request *request)
{
	struct obl_quota quota;
	struct obl_usage usage;
	char text[OBP_POOL_TEXT_MAX];

	if (!obl_tenant_quota(core, entry->tenant, &quota))
		return false;
	usage = obl_tenant_usage(core, entry->tenant);
	return obl_quota_check(&quota, &usage, request, entry->ask.priority, entry->tenant, text,
		       sizeof text) != OBL_QUOTA_OK;
}

static void add(struct obl_core *core, struct obl_line *line, const struct obl_queued *entry,
	const struct obl_request *request, uint64_t number)
{
	line->waiting[line->n] = (struct obl_waiting){ .priority = entry->ask.priority,
		.tenant = tenant_index(core, line, entry->tenant),
		.since_ms = entry->since,
		.number = number,
		.request = request,
		.policy = obl_policy_of(core, &entry->ask),
		.blocked = blocked(core, entry, request) };
	line->entries[line->n] = entry;
	line->n++;
}

static void add_own(struct obl_core *core, struct obl_line *line)
{
	for (struct obl_asker *a = core->askers; a && line->n < OBL_QUEUE_MAX; a = a->next) {
		if (a->placing || !a->link || a->entry.ask.offered)
			continue;
		obl_request_of(core, line->fleet, &a->entry.ask, &a->where, &a->request);
		if (a->most_memory)
			a->request.memory = ob_min(a->request.memory, a->most_memory);
		if (a->entry.ask.apart[0]) {
			obl_fleet_apart(core, line->fleet, a->entry.ask.apart, a->apart);
			a->request.apart = a->apart;
		}
		line->own[line->n] = a;
		add(core, line, &a->entry, &a->request, a->number);
	}
}

/* Requests at other balancers. Their words `apart` are not looked at: they only hold back others. */
static void add_others(struct obl_core *core, struct obl_line *line)
{
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_QUEUE);
		item && line->n < OBL_QUEUE_MAX; item = obl_mirror_next(item)) {
		const struct obl_queued *entry = item->value.queued;
		struct obl_line_other *other = &line->others[line->n];

		if (strcmp(entry->balancer, core->name) == 0 ||
			obl_where_parse(entry->ask.where, &other->where, NULL))
			continue;
		obl_request_of(core, line->fleet, &entry->ask, &other->where, &other->request);
		line->own[line->n] = NULL;
		add(core, line, entry, &other->request,
			ob_hash(OB_HASH_START, item->key, strlen(item->key)));
	}
}

static void add_usage(struct obl_core *core, struct obl_line *line)
{
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item)) {
		const struct obl_reservation *r = item->value.reservation;

		for (uint32_t i = 0; i < line->n_tenants; i++)
			if (strcmp(line->tenant_names[i], r->tenant) == 0)
				for (uint32_t p = 0; p < r->n_parts; p++)
					line->tenants[i].devices += r->parts[p].n_devices;
	}
}

void obl_line_fill(struct obl_core *core, struct obl_line *line)
{
	obl_fleet_fill(core, line->fleet);
	line->n = line->n_tenants = 0;
	add_own(core, line);
	add_others(core, line);
	if (line->n_tenants > 1)
		add_usage(core, line);
	obl_queue_order(line->waiting, line->n, line->tenants, line->n_tenants, line->order);
}

void obl_line_remove(struct obl_line *line, uint32_t place)
{
	memmove(&line->order[place], &line->order[place + 1],
		(line->n - place - 1) * sizeof line->order[0]);
	line->n--;
}
