/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "loadbalancer/balancer/commands.h"
#include "loadbalancer/balancer/fleet_json.h"
#include "loadbalancer/balancer/line.h"
#include "loadbalancer/balancer/tenants.h"
#include "loadbalancer/dashboard/web.h"

#define TENANTS_MAX 1024u /* with metrics of their own; further ones have none */

/* A tenant, while all are counted. */
struct tally {
	struct obl_seen_tenant seen;
	uint64_t oldest_ms; /* since 1970: since when its oldest request waits; 0: none */
};

static struct pages {
	struct obl_web *web;
	struct obl_counts counts; /* a copy, with the conflicts */
	struct tally tallies[TENANTS_MAX];
	unsigned n_tallies;
} pages;

/* ---- who asks ---- */

static enum ob_err identity_find(struct obl_core *core, struct obl_address *address,
	const char *token, struct obl_caller *ret, struct ob_cause *ret_cause)
{
	struct obl_identity identity;
	struct ob_cause ignored;
	enum ob_err err =
		obl_auth_check(core->auth, address, token, OBL_RIGHT_LOOK, &identity, ret_cause);

	if (err)
		return err;
	*ret = (struct obl_caller){ .all = identity.all,
		.proven = token[0] && core->settings->tokens };
	snprintf(ret->tenant, sizeof ret->tenant, "%s", identity.tenant);
	snprintf(ret->who, sizeof ret->who, "%s", identity.who);
	ret->admin = obl_auth_check(core->auth, address, token, OBL_RIGHT_ADMIN, &identity,
			     &ignored) == OB_ERR_NONE;
	snprintf(ret->scope, sizeof ret->scope, "%s",
		ret->admin         ? "admin"
			: ret->all ? "look"
				   : "use");
	return OB_ERR_NONE;
}

static enum ob_err caller_find(
	void *user, int fd, const char *token, struct obl_caller *ret, struct ob_cause *ret_cause)
{
	struct obl_core *core = user;
	struct obl_addresses *addresses = &core->gate.links.addresses;
	struct obl_address *address, nobody = { .next = NULL };
	enum ob_err err;

	/* Also on a unix socket, whose callers may be those of a proxy. */
	if (!token && core->settings->tokens)
		return ob_cause_set(ret_cause, OB_ERR_DENIED, "this balancer wants a token");
	if (fd < 0)
		return identity_find(core, &nobody, token ? token : "", ret, ret_cause);
	address = obl_address_enter(addresses, fd);
	if (!address)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"too many addresses have shown wrong tokens; try again");
	err = identity_find(core, address, token ? token : "", ret, ret_cause);
	obl_address_leave(addresses, address, ob_clock_ns());
	return err;
}

/* ---- documents and commands ---- */

static bool document(void *user, const struct obl_caller *caller, const char *what, uint64_t since,
	char **ret_text, size_t *ret_size)
{
	struct obp_pool_query query = { .since = since };

	snprintf(query.what, sizeof query.what, "%s", what);
	return obl_document(user, &query, caller->all ? NULL : caller->tenant, ret_text, ret_size);
}

static uint64_t last_event(void *user)
{
	const struct obl_core *core = user;
	uint64_t last = 0;

	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_EVENT); item;
		item = obl_mirror_next(item)) {
		uint64_t number = strtoull(item->name, NULL, 10);

		last = number > last ? number : last;
	}
	return last;
}

static void command(void *user, const struct obl_caller *caller, const char *verb,
	const char *target, const char *argument, obl_web_done *done, void *done_user)
{
	static struct obp_pool_command message;

	snprintf(message.verb, sizeof message.verb, "%s", verb);
	snprintf(message.target, sizeof message.target, "%s", target);
	snprintf(message.argument, sizeof message.argument, "%s", argument);
	obl_command_run(user, &message, caller->who, done, done_user);
}

/* ---- what metrics and history show ---- */

static void seen(void *user, struct obl_seen *ret)
{
	const struct obl_core *core = user;

	pages.counts = core->counts;
	pages.counts.conflicts = core->work.conflicts;
	*ret = (struct obl_seen){ .balancer = core->name,
		.version = OB_VERSION,
		.usable = core->usable && core->synced,
		.leader = core->registry && core->registry->ops->leads(core->registry),
		.counts = &pages.counts };
}

static struct tally *tally_find(const char *tenant)
{
	static struct tally lost;

	for (unsigned i = 0; i < pages.n_tallies; i++)
		if (strcmp(pages.tallies[i].seen.name, tenant) == 0)
			return &pages.tallies[i];
	if (pages.n_tallies == TENANTS_MAX)
		return &lost;
	pages.tallies[pages.n_tallies] = (struct tally){ .seen.name = tenant };
	return &pages.tallies[pages.n_tallies++];
}

static bool claimed(const struct obl_core *core, const struct obl_reservation *r)
{
	for (uint32_t i = 0; i < r->n_parts; i++) {
		const struct obl_member *m = obl_member_find(core, r->parts[i].server);
		const struct obp_pool_held *held = m ? obl_member_held(m, r->id) : NULL;

		if (held && held->state == OBP_POOL_CLAIMED)
			return true;
	}
	return false;
}

static void reservation_tally(const struct obl_core *core, const struct obl_reservation *r)
{
	struct tally *tally = tally_find(r->tenant);

	tally->seen.reservations++;
	tally->seen.claimed += claimed(core, r);
	for (uint32_t i = 0; i < r->n_parts; i++) {
		tally->seen.gpus += r->parts[i].n_devices;
		tally->seen.memory += r->parts[i].memory * r->parts[i].n_devices;
	}
}

static void refresh(void *user)
{
	struct obl_core *core = user;

	obl_fleet_fill(core, core->line->fleet);
	pages.n_tallies = 0;
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item))
		reservation_tally(core, item->value.reservation);
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_QUEUE); item;
		item = obl_mirror_next(item)) {
		const struct obl_queued *queued = item->value.queued;
		struct tally *tally = tally_find(queued->tenant);

		tally->seen.waiting++;
		if (!tally->oldest_ms || queued->since < tally->oldest_ms)
			tally->oldest_ms = queued->since;
	}
}

static void servers(
	void *user, void (*each)(void *to, const struct obl_seen_server *server), void *to)
{
	const struct obl_core *core = user;
	const struct obl_fleet *fleet = core->line->fleet;

	for (uint32_t i = 0; i < fleet->n; i++) {
		const struct obl_member *m = fleet->rows[i].member;

		each(to,
			&(struct obl_seen_server){ .name = fleet->rows[i].known->name,
				.state = obl_fleet_state(fleet, i),
				.beat_ns =
					m && m->beat_ns ? ob_clock_ns() - m->beat_ns : UINT64_MAX,
				.sessions = m ? m->load.sessions : 0 });
	}
}

static struct obl_seen_gpu gpu_of(const struct obl_fleet *fleet, uint32_t i, uint32_t n)
{
	const struct obl_known_device *known = &fleet->rows[i].known->value.server->devices[n];
	const struct obl_device *device = &fleet->servers[i].devices[n];
	const struct obp_load_device *load = obl_fleet_load(fleet->rows[i].member, known->uuid);
	struct obl_seen_gpu gpu = { .server = fleet->rows[i].known->name,
		.model = known->name,
		.index = n,
		.total = known->total,
		.reserved = device->reserved,
		.sharers = device->sharers,
		.faulty = device->faulty };
	uint64_t value;

	memcpy(gpu.uuid, known->uuid, sizeof gpu.uuid);
	if (!load)
		return gpu;
	gpu.used = load->used;
	gpu.busy = device->busy;
	gpu.known = 1u << OBL_READ_USED | 1u << OBL_READ_BUSY;
	if (obp_fact_get(&load->facts, OBP_FACT_TEMPERATURE, &value)) {
		gpu.celsius = (uint32_t)value;
		gpu.known |= 1u << OBL_READ_CELSIUS;
	}
	if (obp_fact_get(&load->facts, OBP_FACT_POWER, &value)) {
		gpu.milliwatts = (uint32_t)value;
		gpu.known |= 1u << OBL_READ_POWER;
	}
	return gpu;
}

static void gpus(void *user, void (*each)(void *to, const struct obl_seen_gpu *gpu), void *to)
{
	const struct obl_core *core = user;
	const struct obl_fleet *fleet = core->line->fleet;

	for (uint32_t i = 0; i < fleet->n; i++)
		for (uint32_t n = 0; n < fleet->servers[i].n_devices; n++) {
			struct obl_seen_gpu gpu = gpu_of(fleet, i, n);

			each(to, &gpu);
		}
}

static void tenants(
	void *user, void (*each)(void *to, const struct obl_seen_tenant *tenant), void *to)
{
	uint64_t now_ms = obl_time_ms();

	(void)user;
	for (unsigned i = 0; i < pages.n_tallies; i++) {
		struct obl_seen_tenant tenant = pages.tallies[i].seen;
		uint64_t oldest = pages.tallies[i].oldest_ms;

		if (oldest && now_ms > oldest)
			tenant.waiting_ns = (now_ms - oldest) * OB_MS;
		each(to, &tenant);
	}
}

/* ---- opening and closing ---- */

static struct obl_source source = { .caller = caller_find,
	.document = document,
	.last_event = last_event,
	.command = command,
	.seen = seen,
	.refresh = refresh,
	.servers = servers,
	.gpus = gpus,
	.tenants = tenants };

enum ob_err obl_pages_open(struct obl_core *core, struct ob_cause *ret_cause)
{
	const struct obl_settings *s = core->settings;
	const struct obl_web_options options = { .url = s->http,
		.cert = s->gate.tls_cert,
		.key = s->gate.tls_key,
		.tokens = s->tokens != NULL,
		.insecure = s->gate.insecure };
	char url[OBT_URL_MAX + 16];
	enum ob_err err;

	if (!s->http)
		return OB_ERR_NONE;
	source.user = core;
	err = obl_web_open(core->loop, &options, &source, &pages.web, url, sizeof url, ret_cause);
	if (!err)
		ob_info("dashboard and metrics at %s", url);
	return err;
}

void obl_pages_close(void)
{
	obl_web_close(pages.web, NULL, NULL);
	pages.web = NULL;
}
