/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/balancer/ledger.h"

struct obl_fleet *obl_fleet_new(void)
{
	return calloc(1, sizeof(struct obl_fleet));
}

const struct obp_load_device *obl_fleet_load(
	const struct obl_member *member, const uint8_t uuid[16])
{
	for (uint32_t i = 0; member && i < member->load.n_devices; i++)
		if (memcmp(member->load.devices[i].uuid, uuid, 16) == 0)
			return &member->load.devices[i];
	return NULL;
}

static void device_load(
	struct obl_device *ret, const struct obl_member *member, const struct obp_load_device *load)
{
	uint64_t value;

	ret->clock_mhz = load->clock_khz / 1000;
	ret->share_by = (uint8_t)(load->share_by & UINT8_MAX);
	/* Sessions that the ledger does not know, without a ticket for example. */
	ret->reserved = ob_max(ret->reserved, ob_min(load->used, ret->total));
	ret->busy = (uint16_t)ob_min(member->load.busy, 1000u);
	if (obp_fact_get(&load->facts, OBP_FACT_USE_GPU, &value))
		ret->busy = (uint16_t)(ob_min(value, 100u) * 10);
	if (obp_fact_get(&load->facts, OBP_FACT_TEMPERATURE, &value))
		ret->celsius = (uint16_t)ob_min(value, 1000u);
	if (obp_fact_get(&load->facts, OBP_FACT_MIG, &value))
		ret->mig_mode = value == 1 && ret->kind == OBL_GPU;
}

static void device_fill(struct obl_device *ret, const struct obl_known_device *known,
	const struct obl_fleet_row *row)
{
	const struct obp_load_device *load = obl_fleet_load(row->member, known->uuid);
	const struct obl_ledger_device *book = NULL;

	*ret = (struct obl_device){ .total = known->total,
		.units = known->units,
		.clock_mhz = known->clock_khz / 1000,
		.capability = (uint16_t)known->capability,
		.kind = known->soft                   ? OBL_SOFTWARE
			: strstr(known->name, "MIG ") ? OBL_MIG
						      : OBL_GPU };
	ret->model = known->name;
	if (row->ledger)
		book = obl_ledger_device(row->ledger->value.ledger, known->uuid);
	if (book) {
		ret->reserved = book->reserved;
		ret->share = (uint32_t)ob_min(book->share, OBL_SHARE_ALL);
		ret->sharers = book->sharers;
		ret->held = book->exclusive;
	}
	if (load)
		device_load(ret, row->member, load);
	ret->faulty = !book;
}

static void server_fill(struct obl_server *ret, struct obl_fleet_row *row)
{
	const struct obl_known_server *known = row->known->value.server;
	const struct obl_member *m = row->member;
	uint64_t now = ob_clock_ns();

	*ret = (struct obl_server){ .name = row->known->name,
		.labels = &row->labels,
		.cuda = known->cuda,
		.n_devices = known->n_devices,
		.max_sessions = UINT32_MAX };
	if (row->operated) {
		ret->cordoned = row->operated->cordoned;
		ret->draining = row->operated->draining;
	}
	if (m) {
		ret->alive = obl_member_alive(m, now);
		ret->draining |= m->load.draining;
		ret->unhealthy = !m->healthy;
		ret->sessions = m->load.sessions;
		if (m->load.max_sessions)
			ret->max_sessions = m->load.max_sessions;
		ret->busy = ob_min(m->load.busy, 1000u);
		ret->fresh = now < m->fresh_ns + OB_SECOND ? m->fresh : 0;
		ret->fresh_max = obl_slow_start(m->load.uptime_ns / OB_MS);
	}
	for (uint32_t i = 0; i < known->n_devices; i++)
		device_fill(&ret->devices[i], &known->devices[i], row);
	obl_server_score(ret);
}

void obl_fleet_fill(struct obl_core *core, struct obl_fleet *fleet)
{
	bool settled = false; /* a server is past its slow start */

	fleet->n = 0;
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_SERVER);
		item && fleet->n < OBL_SERVERS_MAX; item = obl_mirror_next(item)) {
		struct obl_fleet_row *row = &fleet->rows[fleet->n];
		const struct obl_item *operated =
			obl_mirror_find(&core->mirror, OBL_ITEM_OPERATOR, item->name);
		struct obl_server *server = &fleet->servers[fleet->n++];

		row->known = item;
		row->ledger = obl_mirror_find(&core->mirror, OBL_ITEM_LEDGER, item->name);
		row->member = obl_member_find(core, item->name);
		row->operated = operated ? operated->value.operated : NULL;
		if (obl_labels_parse(item->value.server->labels, &row->labels, NULL))
			row->labels.n = 0;
		server_fill(server, row);
		settled |= server->alive && !server->fresh_max;
	}
	/* Slow start moves requests to other servers; without one it would only refuse them. */
	for (uint32_t i = 0; i < fleet->n && !settled; i++)
		fleet->servers[i].fresh_max = 0;
}

enum obl_seen_state obl_fleet_state(const struct obl_fleet *fleet, uint32_t i)
{
	const struct obl_server *server = &fleet->servers[i];
	const struct obl_member *member = fleet->rows[i].member;

	if (!member)
		return OBL_SEEN_LOST;
	if (member->silent)
		return OBL_SEEN_SILENT;
	if (!server->alive)
		return OBL_SEEN_JOINING;
	if (server->unhealthy)
		return OBL_SEEN_UNWELL;
	if (server->draining)
		return OBL_SEEN_DRAINING;
	return server->cordoned ? OBL_SEEN_CORDONED : OBL_SEEN_READY;
}

void obl_fleet_apart(const struct obl_core *core, const struct obl_fleet *fleet, const char *word,
	uint64_t ret_bits[OBL_SERVERS_MAX / 64])
{
	memset(ret_bits, 0, OBL_SERVERS_MAX / 8);
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item)) {
		const struct obl_reservation *r = item->value.reservation;

		if (strcmp(r->apart, word) != 0)
			continue;
		for (uint32_t p = 0; p < r->n_parts; p++)
			for (uint32_t i = 0; i < fleet->n; i++)
				if (strcmp(fleet->rows[i].known->name, r->parts[p].server) == 0)
					ret_bits[i / 64] |= UINT64_C(1) << i % 64;
	}
}
