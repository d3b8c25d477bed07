/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/rounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "loadbalancer/balancer/line.h"
#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/filter.h"

struct round {
	struct obl_core *core;
	struct obl_fleet *fleet;
	uint64_t now_s;
	uint32_t n_nodes, n_movables, words;
	uint32_t first[OBL_SERVERS_MAX]; /* node of a server's first device */
	uint64_t hash[OBL_SERVERS_MAX];  /* of its name */
	struct obl_node *nodes;
	uint32_t *used; /* for each node: the sum of its reservations' loads, as reported */
	struct obl_movable *movables;
	const struct obl_reservation **reservations; /* of the movables */
	uint64_t *allowed;                           /* `words` for each movable */
};

/* ---- devices ---- */

static bool server_closed(const struct obl_server *s)
{
	return !s->alive || s->draining || s->cordoned || s->unhealthy;
}

/* The last idle devices of a large pool are no targets, as placement spares them (request.h). */
static void idle_spare(struct round *r)
{
	uint64_t idle = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < r->fleet->n; i++)
		for (uint32_t d = 0; d < r->fleet->servers[i].n_devices; d++)
			idle += r->fleet->servers[i].devices[d].sharers == 0;
	if (r->n_nodes < OBL_SPARING_DEVICES || idle * idle >= r->n_nodes)
		return;
	for (uint32_t i = 0; i < r->fleet->n; i++)
		for (uint32_t d = 0; d < r->fleet->servers[i].n_devices && at < r->n_nodes; d++)
			r->nodes[at++].closed |= r->fleet->servers[i].devices[d].sharers == 0;
}

static void nodes_fill(struct round *r)
{
	for (uint32_t i = 0; i < r->fleet->n; i++) {
		const struct obl_server *s = &r->fleet->servers[i];

		r->first[i] = r->n_nodes;
		r->hash[i] = ob_hash(OB_HASH_START, s->name, strlen(s->name));
		for (uint32_t d = 0; d < s->n_devices && r->n_nodes < OBL_REBALANCE_NODES_MAX;
			d++) {
			const struct obl_device *device = &s->devices[d];

			r->nodes[r->n_nodes++] = (struct obl_node){ .load = device->busy,
				.room = obl_device_free(device),
				.closed = server_closed(s) || device->faulty || device->withdrawn ||
					device->mig_mode };
		}
	}
}

/* The node of a device of a reservation; UINT32_MAX: not in the pool as it is now. */
static uint32_t node_of(const struct round *r, const struct obl_holding *part, uint32_t device)
{
	uint64_t hash = ob_hash(OB_HASH_START, part->server, strlen(part->server));

	for (uint32_t i = 0; i < r->fleet->n; i++) {
		const struct obl_known_server *known = r->fleet->rows[i].known->value.server;

		if (r->hash[i] != hash || strcmp(r->fleet->servers[i].name, part->server) != 0)
			continue;
		for (uint32_t d = 0; d < known->n_devices && r->first[i] + d < r->n_nodes; d++)
			if (memcmp(known->devices[d].uuid, part->devices[device], 16) == 0)
				return r->first[i] + d;
	}
	return UINT32_MAX;
}

/* ---- reservations ---- */

/* One device of one server: others are not moved by rounds. */
static bool is_single(const struct obl_reservation *reservation)
{
	return reservation->n_parts == 1 && reservation->granted == 1 &&
		reservation->parts[0].n_devices == 1;
}

static void used_sum(struct round *r)
{
	for (const struct obl_item *item = obl_mirror_first(&r->core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item)) {
		const struct obl_reservation *v = item->value.reservation;
		const struct obp_pool_held *held = obl_in_use(r->core, v);

		for (uint32_t d = 0; held && d < v->parts[0].n_devices; d++) {
			uint32_t node = node_of(r, &v->parts[0], d);

			if (node != UINT32_MAX)
				r->used[node] += held->busy;
		}
	}
}

/*
 * What the reservation adds to its device: programs that want more than the device has get equal
 * parts of it. busy: what the device's server reported.
 */
static uint32_t load_of(
	const struct round *r, const struct obp_pool_held *held, uint32_t node, uint32_t busy)
{
	uint32_t sum = r->used[node];

	return !held ? 0 : sum > busy ? (uint32_t)((uint64_t)busy * held->busy / sum) : held->busy;
}

static bool rests(const struct round *r, const struct obl_reservation *v)
{
	static const uint8_t none[OBP_RESERVATION_BYTES];

	/* an offer was not taken: its client may be cut off from the balancers */
	return memcmp(v->successor, none, sizeof none) != 0 &&
		r->now_s < v->moved + OBL_LAPSED_REST_S;
}

/* The nodes that the reservation's wishes admit. */
static void allowed_fill(
	struct round *r, const struct obl_reservation *v, uint32_t node, uint64_t *ret)
{
	struct obl_where where;
	uint64_t apart[OBL_SERVERS_MAX / 64];
	struct obl_request request = { .gpus = 1,
		.share = v->share,
		.memory = v->exclusive ? 0 : v->parts[0].memory,
		.exclusive = v->exclusive,
		.one_server = true,
		.cuda = v->cuda,
		.max_sharers = r->core->settings->max_sharers };
	struct obl_search search;
	unsigned kind = OBL_KINDS;

	memset(ret, 0, r->words * sizeof *ret);
	if (obl_where_parse(v->where, &where, NULL))
		return;
	request.where = where.n_terms ? &where : NULL;
	if (v->apart[0]) {
		obl_fleet_apart(r->core, r->fleet, v->apart, apart);
		request.apart = apart;
	}
	for (uint32_t i = 0; i < r->fleet->n; i++)
		if (node >= r->first[i] && node - r->first[i] < r->fleet->servers[i].n_devices)
			kind = r->fleet->servers[i].devices[node - r->first[i]].kind;
	search = obl_search_of(
		r->fleet->servers, r->fleet->n, &request, OBL_LEAST_LOAD, OBL_VIEW_NOW);
	for (uint32_t i = 0; i < r->fleet->n; i++) {
		const struct obl_server *s = &r->fleet->servers[i];

		if (obl_server_reason(&search, i) != OBL_FITS)
			continue;
		for (uint32_t d = 0; d < s->n_devices && r->first[i] + d < r->n_nodes; d++)
			if (s->devices[d].kind == kind &&
				obl_device_reason(&search, &s->devices[d], false) == OBL_FITS)
				ret[(r->first[i] + d) / 64] |= UINT64_C(1)
					<< (r->first[i] + d) % 64;
	}
}

/* Adds one reservation to the loads and, if it may move, to the movables. */
static void reservation_look(struct round *r, const struct obl_reservation *v, const uint16_t *busy)
{
	uint32_t node = is_single(v) ? node_of(r, &v->parts[0], 0) : UINT32_MAX, load;
	const struct obp_pool_held *held;
	struct obl_movable *m;

	if (node == UINT32_MAX)
		return;
	held = obl_in_use(r->core, v);
	load = load_of(r, held, node, busy[node]);
	if (obl_successor(r->core, v)) {
		r->nodes[node].load -= ob_min(r->nodes[node].load, load);
		return;
	}
	if (v->moves && r->now_s < v->moved + OBL_SETTLE_S && v->load > load) {
		r->nodes[node].load += v->load - load;
		return;
	}
	if (!v->restartable || !held || rests(r, v) || busy[node] <= OBL_REBALANCE_HOT ||
		r->n_movables == OBL_MOVABLES_MAX)
		return;
	m = &r->movables[r->n_movables];
	*m = (struct obl_movable){ .node = node,
		.load = load,
		.memory = v->exclusive ? 0 : v->parts[0].memory,
		.moved_ms = v->moved * 1000,
		.allowed = &r->allowed[(size_t)r->n_movables * r->words] };
	allowed_fill(r, v, node, &r->allowed[(size_t)r->n_movables * r->words]);
	r->reservations[r->n_movables++] = v;
}

static void reservations_look(struct round *r, const uint16_t *busy)
{
	for (const struct obl_item *item = obl_mirror_first(&r->core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item))
		reservation_look(r, item->value.reservation, busy);
}

/* ---- the round ---- */

static void decided(struct round *r, const struct obl_move *move)
{
	struct obl_moves *moves = &r->core->moves;
	struct obl_decided *d = &moves->list[moves->n];

	for (uint32_t i = 0; i < r->fleet->n; i++) {
		const struct obl_known_server *known = r->fleet->rows[i].known->value.server;

		if (move->to < r->first[i] || move->to - r->first[i] >= known->n_devices)
			continue;
		obl_id_print(r->reservations[move->movable]->id, d->id);
		snprintf(d->server, sizeof d->server, "%s", r->fleet->servers[i].name);
		memcpy(d->uuid, known->devices[move->to - r->first[i]].uuid, 16);
		d->load = r->movables[move->movable].load;
		moves->n++;
		return;
	}
}

static void decide(struct round *r, const uint16_t *busy)
{
	struct obl_move list[OBL_REBALANCE_MOVES_MAX];
	struct obl_moves *moves = &r->core->moves;
	uint32_t n;

	used_sum(r);
	reservations_look(r, busy);
	idle_spare(r);
	r->core->counts.imbalance = obl_imbalance(r->nodes, r->n_nodes);
	n = obl_rebalance(&moves->rule, r->nodes, r->n_nodes, r->movables, r->n_movables,
		r->now_s * 1000, list);
	for (uint32_t i = 0; i < n; i++)
		decided(r, &list[i]);
	ob_debug("rebalancing: imbalance %u per mille, %u programs could move, %u do",
		r->core->counts.imbalance, r->n_movables, n);
}

static void round_run(struct obl_core *core)
{
	OB_CLEANUP(ob_freep) struct round *r = calloc(1, sizeof *r);
	OB_CLEANUP(ob_freep) uint16_t *busy = NULL;
	uint32_t most = 1;

	if (!r)
		return;
	r->core = core;
	r->fleet = core->line->fleet;
	r->now_s = obl_time_ms() / 1000;
	obl_fleet_fill(core, r->fleet);
	for (uint32_t i = 0; i < r->fleet->n; i++)
		most += r->fleet->servers[i].n_devices;
	r->words = (most + 63) / 64;
	busy = calloc(most, sizeof *busy);
	r->nodes = calloc(most, sizeof *r->nodes);
	r->used = calloc(most, sizeof *r->used);
	r->movables = calloc(OBL_MOVABLES_MAX, sizeof *r->movables);
	r->reservations = calloc(OBL_MOVABLES_MAX, sizeof *r->reservations);
	r->allowed = calloc((size_t)OBL_MOVABLES_MAX * r->words, sizeof *r->allowed);
	if (busy && r->nodes && r->used && r->movables && r->reservations && r->allowed) {
		nodes_fill(r);
		for (uint32_t i = 0; i < r->n_nodes; i++)
			busy[i] = (uint16_t)r->nodes[i].load;
		decide(r, busy);
	}
	free(r->nodes);
	free(r->used);
	free(r->movables);
	free(r->reservations);
	free(r->allowed);
	core->wake(core);
}

void obl_rounds_sweep(struct obl_core *core)
{
	struct obl_moves *moves = &core->moves;
	uint64_t now = ob_clock_ns();

	if (!core->settings->rebalance_s || !core->synced || !core->usable || core->stopping ||
		moves->n || now < moves->next_ns)
		return;
	moves->next_ns = now + core->settings->rebalance_s * OB_SECOND - OB_SECOND / 2;
	if (core->registry->ops->leads(core->registry))
		round_run(core);
	else
		moves->rule.active = false;
}
