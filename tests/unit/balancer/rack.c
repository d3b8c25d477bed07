/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/unit/balancer/rack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "loadbalancer/balancer/ledger.h"
#include "loadbalancer/balancer/line.h"

struct obl_core rack;
struct obl_settings rack_settings;

static uint64_t revision;
static struct obl_link closed; /* orders get no answer */

static bool leads(const struct obl_registry *registry)
{
	(void)registry;
	return true;
}

static obl_txn_done *answer;
static void *answer_user;

static void txn(
	struct obl_registry *unused, const struct obl_txn *asked, obl_txn_done *done, void *user)
{
	(void)unused;
	(void)asked;
	answer = done;
	answer_user = user;
}

bool rack_answer(bool made)
{
	obl_txn_done *done = answer;

	answer = NULL;
	if (done)
		done(answer_user, OB_ERR_NONE, NULL, made, ++revision, NULL, 0);
	return done != NULL;
}

static const struct obl_registry_ops ops = { .name = "played", .leads = leads, .txn = txn };
static struct obl_registry registry = { .ops = &ops };

static void wake(struct obl_core *core)
{
	(void)core;
}

void rack_begin(void)
{
	rack_settings = (struct obl_settings){ .rebalance_s = 1 };
	rack = (struct obl_core){ .settings = &rack_settings,
		.registry = &registry,
		.name = "one",
		.usable = true,
		.synced = true,
		.wake = wake };
	rack.line = obl_line_new();
	if (!rack.line || !obl_mirror_init(&rack.mirror))
		abort();
}

void rack_end(void)
{
	while (rack.members) {
		struct obl_member *m = rack.members;

		rack.members = m->next;
		free(m->held);
		free(m);
	}
	obl_plan_clear(&rack.work.plan);
	obl_line_free(rack.line);
	obl_mirror_fini(&rack.mirror);
}

static void apply(enum obl_item_kind kind, const char *name, char *text)
{
	char key[OBL_KEY_MAX];

	obl_key_print(kind, name, key);
	obl_mirror_apply(&rack.mirror, key, text, ++revision, false);
	if (text && !obl_mirror_get(&rack.mirror, key))
		abort(); /* not a value */
	free(text);
}

/* The same each time. */
static void uuid_of(const char *server, uint32_t device, uint8_t ret[16])
{
	uint64_t hash = ob_hash(OB_HASH_START, server, strlen(server));

	memset(ret, 0, 16);
	memcpy(ret, &hash, sizeof hash);
	ret[15] = (uint8_t)(device + 1);
}

struct obl_member *rack_server(
	const char *name, uint32_t n, const uint32_t *busy, const char *labels)
{
	struct obl_known_server known = { .incarnation = 1, .cuda = 13000, .n_devices = n };
	struct obl_member *m = calloc(1, sizeof *m);
	struct obl_ledger ledger;

	if (!m)
		abort();
	*m = (struct obl_member){ .core = &rack,
		.link = &closed,
		.incarnation = 1,
		.healthy = true,
		.joined = true,
		.beat_ns = ob_clock_ns() };
	snprintf(m->name, sizeof m->name, "%s", name);
	snprintf(known.labels, sizeof known.labels, "%s", labels);
	snprintf(known.version, sizeof known.version, "1");
	m->load.n_devices = n;
	for (uint32_t d = 0; d < n; d++) {
		struct obl_known_device *device = &known.devices[d];

		uuid_of(name, d, device->uuid);
		memcpy(m->load.devices[d].uuid, device->uuid, 16);
		snprintf(device->name, sizeof device->name, "NVIDIA H100");
		device->total = RACK_MEMORY;
		if (busy[d] != RACK_UNKNOWN)
			obp_fact_set(&m->load.devices[d].facts, OBP_FACT_USE_GPU, busy[d] / 10);
		m->load.busy = ob_max(m->load.busy, busy[d] == RACK_UNKNOWN ? 0 : busy[d]);
	}
	obl_member_enter(m);
	obl_ledger_begin(&known, 1, &ledger);
	apply(OBL_ITEM_SERVER, name, obl_known_server_text(&known));
	apply(OBL_ITEM_LEDGER, name, obl_ledger_text(&ledger));
	return m;
}

void rack_operate(const char *name, bool cordoned, bool draining)
{
	const struct obl_operator state = { .cordoned = cordoned, .draining = draining };

	apply(OBL_ITEM_OPERATOR, name, obl_operator_text(&state));
}

static void id_of(uint32_t number, uint8_t ret[OBP_RESERVATION_BYTES])
{
	memset(ret, 0, OBP_RESERVATION_BYTES);
	for (unsigned i = 0; i < 4; i++)
		ret[i] = (uint8_t)(number >> (24 - 8 * i));
}

static int by_id(const void *a, const void *b)
{
	return memcmp(((const struct obp_pool_held *)a)->id, ((const struct obp_pool_held *)b)->id,
		OBP_RESERVATION_BYTES);
}

/* Without an entry the server does not know the reservation. */
static void held_set(struct obl_member *m, const uint8_t *id, const struct obp_pool_held *held)
{
	struct obp_pool_held *old = (struct obp_pool_held *)obl_member_held(m, id);

	if (old)
		*old = m->held[--m->n_held];
	if (held) {
		m->held = realloc(m->held, (m->n_held + 1) * sizeof *m->held);
		if (!m->held)
			abort();
		m->held[m->n_held++] = *held;
	}
	if (m->n_held)
		qsort(m->held, m->n_held, sizeof *m->held, by_id);
}

void rack_reserve(uint32_t number, const struct rack_reservation *of)
{
	struct obl_member *m = obl_member_find(&rack, of->server);
	struct obl_reservation r = { .priority = 2,
		.restartable = !of->fixed,
		.exclusive = of->exclusive,
		.moves = of->moves,
		.load = of->load,
		.moved = of->moved,
		.expires = of->expires,
		.granted = 1,
		.n_parts = 1 };
	struct obp_pool_held held = { .state = OBP_POOL_CLAIMED, .sessions = 1, .busy = of->busy };
	char name[OBL_ID_TEXT];

	id_of(number, r.id);
	id_of(of->successor, r.successor);
	memcpy(held.id, r.id, sizeof held.id);
	snprintf(r.tenant, sizeof r.tenant, "default");
	snprintf(r.where, sizeof r.where, "%s", of->where ? of->where : "");
	snprintf(r.apart, sizeof r.apart, "%s", of->apart ? of->apart : "");
	snprintf(r.from, sizeof r.from, "%s", of->from ? of->from : "");
	snprintf(r.parts[0].server, sizeof r.parts[0].server, "%s", of->server);
	r.parts[0].incarnation = r.parts[0].fence = 1;
	r.parts[0].memory = of->memory ? of->memory : RACK_GIB;
	r.parts[0].n_devices = of->second_device ? 2 : 1;
	uuid_of(of->server, of->device, r.parts[0].devices[0]);
	uuid_of(of->server, of->second_device, r.parts[0].devices[1]);
	obl_id_print(r.id, name);
	apply(OBL_ITEM_RESERVATION, name, obl_reservation_text(&r));
	if (m)
		held_set(m, r.id, of->idle ? NULL : &held);
}

void rack_report(uint32_t number, const struct obp_pool_held *held)
{
	const struct obl_reservation *r = rack_look(number);
	struct obl_member *m = obl_member_find(&rack, r->parts[0].server);
	struct obp_pool_held to = *held;

	memcpy(to.id, r->id, sizeof to.id);
	held_set(m, r->id, &to);
	m->n_ended = 0;
	for (uint32_t i = 0; i < m->n_held; i++)
		m->n_ended += m->held[i].state != OBP_POOL_CLAIMED;
}

uint32_t rack_events(const char *kind, const struct obl_event **ret_last)
{
	const struct obl_events *events = &rack.events;
	uint32_t n = 0;

	*ret_last = NULL;
	for (uint32_t i = 0; i < events->n; i++) {
		const struct obl_event *e =
			&events->ring[(events->first + i) % OBL_EVENTS_WAITING_MAX];

		if (strcmp(e->kind, kind) != 0)
			continue;
		n += e->count;
		*ret_last = e;
	}
	return n;
}

void rack_remove(uint32_t number)
{
	const struct obl_reservation *r = rack_look(number);
	struct obl_member *m = r ? obl_member_find(&rack, r->parts[0].server) : NULL;
	char name[OBL_ID_TEXT];

	if (!r)
		return;
	if (m)
		held_set(m, r->id, NULL);
	obl_id_print(r->id, name);
	apply(OBL_ITEM_RESERVATION, name, NULL);
}

const struct obl_reservation *rack_look(uint32_t number)
{
	uint8_t id[OBP_RESERVATION_BYTES];
	const struct obl_item *item;
	char name[OBL_ID_TEXT];

	id_of(number, id);
	obl_id_print(id, name);
	item = obl_mirror_find(&rack.mirror, OBL_ITEM_RESERVATION, name);
	return item ? item->value.reservation : NULL;
}

uint32_t rack_number(const struct obl_decided *decided)
{
	char head[9];

	snprintf(head, sizeof head, "%.8s", decided->id);
	return (uint32_t)strtoul(head, NULL, 16);
}

const struct obl_decided *rack_decided(uint32_t number)
{
	for (uint32_t i = 0; i < rack.moves.n; i++)
		if (rack_number(&rack.moves.list[i]) == number)
			return &rack.moves.list[i];
	return NULL;
}

void rack_forget(void)
{
	rack.moves.n = 0;
}

uint32_t rack_device(const struct obl_decided *decided)
{
	uint8_t uuid[16];

	for (uint32_t d = 0; d < OBP_DEVICE_MAX; d++) {
		uuid_of(decided->server, d, uuid);
		if (memcmp(uuid, decided->uuid, 16) == 0)
			return d;
	}
	return UINT32_MAX;
}
