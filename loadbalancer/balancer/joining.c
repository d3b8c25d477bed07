/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/ledger.h"
#include "loadbalancer/balancer/members.h"
#include "loadbalancer/balancer/work.h"

#define NAMESAKE_NS (20 * OB_SECOND) /* longer than a lease */

static void known_of(const struct obl_member *member, struct obl_known_server *ret)
{
	const struct obp_load *load = &member->load;

	*ret = (struct obl_known_server){ .incarnation = member->incarnation,
		.cuda = ob_min(load->cuda_version, 1000000u),
		.n_devices = load->n_devices };
	snprintf(ret->version, sizeof ret->version, "%s", member->version);
	snprintf(ret->pin, sizeof ret->pin, "%s", member->pin);
	snprintf(ret->urls, sizeof ret->urls, "%s", member->urls);
	snprintf(ret->labels, sizeof ret->labels, "%s", member->labels_text);
	for (uint32_t i = 0; i < load->n_devices; i++) {
		const struct obp_load_device *from = &load->devices[i];
		struct obl_known_device *to = &ret->devices[i];

		memcpy(to->uuid, from->uuid, sizeof to->uuid);
		snprintf(to->name, sizeof to->name, "%s", from->name);
		to->total = ob_min(from->total, OBL_MEMORY_MAX);
		to->units = ob_min(from->units, OBL_COUNT_MAX);
		to->clock_khz = from->clock_khz;
		to->capability = ob_min(from->capability, 1000u);
		to->soft = from->ptx_only;
	}
}

/* Names and numbers that change while a server runs, its clocks above all, do not count. */
static bool same_server(const struct obl_known_server *a, const struct obl_known_server *b)
{
	if (a->incarnation != b->incarnation || a->n_devices != b->n_devices ||
		a->cuda != b->cuda || strcmp(a->urls, b->urls) != 0 ||
		strcmp(a->labels, b->labels) != 0 || strcmp(a->pin, b->pin) != 0)
		return false;
	for (uint32_t i = 0; i < a->n_devices; i++)
		if (memcmp(a->devices[i].uuid, b->devices[i].uuid, 16) != 0 ||
			a->devices[i].total != b->devices[i].total)
			return false;
	return true;
}

/* A ledger needs to tell the devices from each other. */
static bool twice(const struct obl_known_server *known)
{
	for (uint32_t i = 0; i < known->n_devices; i++)
		for (uint32_t j = 0; j < i; j++)
			if (memcmp(known->devices[i].uuid, known->devices[j].uuid, 16) == 0)
				return true;
	return false;
}

static void alive_key(const struct obl_core *core, const char *name, char ret_key[OBL_KEY_MAX])
{
	char both[2 * OBP_POOL_NAME_MAX];

	snprintf(both, sizeof both, "%s/%s", name, core->name);
	obl_key_print(OBL_ITEM_ALIVE, both, ret_key);
}

/* ---- registration ---- */

static void registered(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	(void)user;
	(void)cause;
	core->asks_changed |= outcome == OBL_MADE;
	for (struct obl_member *m = core->members; m && outcome != OBL_MADE; m = m->next)
		m->check = true;
}

/* The plan of a server that the registry does not have as it is now. */
static void plan_server(struct obl_core *core, struct obl_member *member,
	const struct obl_known_server *known, struct obl_plan *plan)
{
	const struct obl_item *old = obl_mirror_find(&core->mirror, OBL_ITEM_LEDGER, member->name);
	char key[OBL_KEY_MAX];
	struct obl_ledger ledger;

	/* Higher than any fence before, even if the registry has lost the old ledger. */
	obl_ledger_begin(known, old ? old->value.ledger->fence + 1 : obl_time_ms(), &ledger);
	if (old && old->value.ledger->incarnation == member->incarnation)
		obl_ledger_carry(&ledger, old->value.ledger);
	obl_key_print(OBL_ITEM_SERVER, member->name, key);
	obl_plan_put(plan, &core->mirror, key, obl_known_server_text(known), false);
	obl_key_print(OBL_ITEM_LEDGER, member->name, key);
	obl_plan_put(plan, &core->mirror, key, obl_ledger_text(&ledger), false);
}

/* True: a transaction was begun. */
static bool member_start(struct obl_core *core, struct obl_member *member)
{
	const struct obl_item *server =
		obl_mirror_find(&core->mirror, OBL_ITEM_SERVER, member->name);
	const struct obl_item *ledger =
		obl_mirror_find(&core->mirror, OBL_ITEM_LEDGER, member->name);
	struct obl_known_server known;
	char key[OBL_KEY_MAX];
	const struct obl_item *alive;
	struct obl_plan *plan;
	bool current;

	if (!member->check || member->silent || !member->beat_ns || member->load.n_devices == 0)
		return false;
	member->check = false;
	known_of(member, &known);
	if (twice(&known)) {
		obl_link_refuse(member->link, OBP_POOL_INVALID, 0,
			"two of the server's devices have the same UUID");
		obl_link_end(member->link); /* frees the member */
		return false;
	}
	current = server && ledger && same_server(server->value.server, &known) &&
		ledger->value.ledger->incarnation == member->incarnation;
	alive_key(core, member->name, key);
	alive = obl_mirror_get(&core->mirror, key);
	if (current && alive && *alive->value.alive == member->incarnation) {
		if (!member->joined)
			obl_event_add(core, "joined", member->name, "%u device%s, balancer %s",
				known.n_devices, known.n_devices == 1 ? "" : "s", core->name);
		member->joined = true;
		return false;
	}
	plan = obl_work_plan(core);
	if (!current)
		plan_server(core, member, &known, plan);
	obl_plan_put(plan, &core->mirror, key, obl_alive_text(member->incarnation), true);
	return obl_work_make(core, key, registered, NULL);
}

/* ---- alive/ ---- */

/* Whether a key alive/NAME/US is of a server that is here. */
static bool is_here(const struct obl_core *core, const struct obl_item *item)
{
	const char *slash = strrchr(item->name, '/');
	char name[OBP_POOL_NAME_MAX];
	const struct obl_member *member;

	if (!slash || strcmp(slash + 1, core->name) != 0)
		return true; /* another balancer's */
	snprintf(name, sizeof name, "%.*s", (int)(slash - item->name), item->name);
	member = obl_member_find(core, name);
	return member && !member->silent;
}

static bool alive_start(struct obl_core *core)
{
	if (!core->check_alive)
		return false;
	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_ALIVE); item;
		item = obl_mirror_next(item)) {
		char key[OBL_KEY_MAX];

		if (is_here(core, item))
			continue;
		snprintf(key, sizeof key, "%s", item->key);
		obl_plan_delete(obl_work_plan(core), &core->mirror, key);
		return obl_work_make(core, key, registered, NULL);
	}
	core->check_alive = false;
	return false;
}

/* A balancer that was killed keeps its name until its lease ends; another one keeps it. */
static void namesake_note(struct obl_core *core)
{
	uint64_t now = ob_clock_ns();

	if (!core->namesake_ns)
		core->namesake_ns = now;
	if (now < core->namesake_ns + NAMESAKE_NS)
		return;
	ob_error("another balancer of this pool has the name %s: give one of them another (--name)",
		core->name);
	core->namesake_ns = now;
}

/* The balancer's own key, balancers/NAME. */
static bool announce_start(struct obl_core *core)
{
	const struct obl_item *item = obl_mirror_find(&core->mirror, OBL_ITEM_BALANCER, core->name);
	char key[OBL_KEY_MAX];

	if (item && *item->value.alive == core->instance) {
		if (!core->announced)
			obl_event_add(core, "balancer", core->name, "it has joined the pool");
		core->announced = true;
		core->namesake_ns = 0;
		return false;
	}
	core->announced = false;
	if (item) {
		namesake_note(core);
		return false;
	}
	obl_key_print(OBL_ITEM_BALANCER, core->name, key);
	obl_plan_put(obl_work_plan(core), &core->mirror, key, obl_alive_text(core->instance), true);
	return obl_work_make(core, key, registered, NULL);
}

bool obl_members_start(struct obl_core *core)
{
	struct obl_member *next;

	if (announce_start(core))
		return true;
	for (struct obl_member *m = core->members; m; m = next) {
		next = m->next;
		if (member_start(core, m))
			return true;
	}
	return alive_start(core);
}
