/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/rounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "loadbalancer/balancer/leaving.h"
#include "loadbalancer/balancer/line.h"
#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/filter.h"

#define SLOTS (2 * OBL_SERVERS_MAX)
#define WORDS (OBL_REBALANCE_NODES_MAX / 64)

struct seen;

struct round {
	struct obl_core *core;
	struct obl_fleet *fleet;
	uint64_t now_s;
	uint32_t n_nodes, n_movables;
	uint32_t first[OBL_SERVERS_MAX]; /* node of a server's first device */
	uint16_t slots[SLOTS];           /* servers by the hash of their names, plus 1; 0: free */
	struct obl_node nodes[OBL_REBALANCE_NODES_MAX];
	uint16_t busy[OBL_REBALANCE_NODES_MAX]; /* as measured */
	/* the sum of the weights of the node's reservations (weight_of) */
	uint32_t used[OBL_REBALANCE_NODES_MAX];
	bool summed[OBL_REBALANCE_NODES_MAX]; /* nothing is measured but the reservations */
	bool whole[OBL_REBALANCE_NODES_MAX];  /* all that works on the node has a reservation */
	/* reservations are large: each is read once */
	struct seen *seen;
	uint32_t n_seen, seen_room;
	struct obl_movable movables[OBL_MOVABLES_MAX];
	const struct obl_reservation *reservations[OBL_MOVABLES_MAX]; /* of the movables */
	uint64_t allowed[OBL_MOVABLES_MAX][WORDS];
};

/* What a round knows of a part of a reservation. */
struct seen {
	const struct obl_reservation *reservation;
	const struct obp_pool_held *held; /* NULL: it is not in use */
	uint64_t apart;                   /* hash of the word; 0: none */
	uint32_t server;
	uint32_t node; /* of its device; UINT32_MAX: it is not of one device alone */
	bool moves;    /* is moved, or was: see under_way */
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

/* True: each session of the server has a reservation. */
static bool all_reserved(const struct obl_member *member)
{
	uint64_t n = 0;

	for (uint32_t i = 0; member && i < member->n_held; i++)
		n += member->held[i].sessions;
	return member && member->load.sessions <= n;
}

static void server_nodes(struct round *r, uint32_t i)
{
	const struct obl_server *s = &r->fleet->servers[i];
	const struct obl_fleet_row *row = &r->fleet->rows[i];
	const struct obl_known_server *known = row->known->value.server;
	bool whole = all_reserved(row->member);
	uint64_t value;

	r->first[i] = r->n_nodes;
	for (uint32_t d = 0; d < s->n_devices && r->n_nodes < OBL_REBALANCE_NODES_MAX; d++) {
		const struct obl_device *device = &s->devices[d];
		const struct obp_load_device *load =
			obl_fleet_load(row->member, known->devices[d].uuid);
		bool measured = load && obp_fact_get(&load->facts, OBP_FACT_USE_GPU, &value);

		r->summed[r->n_nodes] = !measured && s->n_devices > 1;
		r->whole[r->n_nodes] = measured && whole;
		r->nodes[r->n_nodes++] = (struct obl_node){ .load = device->busy,
			.room = obl_device_free(device),
			.closed = server_closed(s) || device->faulty || device->withdrawn ||
				device->mig_mode };
	}
}

static uint32_t slot_of(const struct round *r, const char *name)
{
	uint32_t slot = (uint32_t)(ob_hash(OB_HASH_START, name, strlen(name)) % SLOTS);

	while (r->slots[slot] && strcmp(r->fleet->servers[r->slots[slot] - 1].name, name) != 0)
		slot = (slot + 1) % SLOTS;
	return slot;
}

static void nodes_fill(struct round *r)
{
	for (uint32_t i = 0; i < r->fleet->n; i++) {
		r->slots[slot_of(r, r->fleet->servers[i].name)] = (uint16_t)(i + 1);
		server_nodes(r, i);
	}
}

/* ---- reservations ---- */

/* One device of one server: others are not moved by rounds. */
static bool is_single(const struct obl_reservation *v)
{
	return v->n_parts == 1 && v->granted == 1 && v->parts[0].n_devices == 1;
}

/* The node of a device of a part; UINT32_MAX: not in the pool as it is now. */
static uint32_t node_of(
	const struct round *r, uint32_t server, const struct obl_holding *part, uint32_t device)
{
	const struct obl_known_server *known = r->fleet->rows[server].known->value.server;

	for (uint32_t d = 0; d < known->n_devices && r->first[server] + d < r->n_nodes; d++)
		if (memcmp(known->devices[d].uuid, part->devices[device], 16) == 0)
			return r->first[server] + d;
	return UINT32_MAX;
}

/* What the part's server reports of it, as obl_in_use; *ret_server: UINT32_MAX: not known. */
static const struct obp_pool_held *part_find(const struct round *r, const struct obl_reservation *v,
	const struct obl_holding *part, uint32_t *ret_server)
{
	uint32_t slot = slot_of(r, part->server);
	const struct obl_member *member;
	const struct obp_pool_held *held;

	*ret_server = (uint32_t)r->slots[slot] - 1;
	if (!r->slots[slot])
		return NULL;
	member = r->fleet->rows[*ret_server].member;
	held = member ? obl_member_held(member, v->id) : NULL;
	return held && held->state == OBP_POOL_CLAIMED && held->sessions > 0 ? held : NULL;
}

/* Above 0: a program whose work is not seen, with long kernels, has its part too. */
static uint32_t weight_of(const struct obp_pool_held *held)
{
	return ob_min(ob_max(held->busy, 1u), 1000u);
}

static bool seen_add(struct round *r, struct seen seen)
{
	static const uint8_t none[OBP_RESERVATION_BYTES];
	const struct obl_reservation *v = seen.reservation;
	struct seen *larger = r->seen;

	if (r->n_seen == r->seen_room) {
		r->seen_room = r->seen_room ? 2 * r->seen_room : 1024;
		larger = realloc(r->seen, r->seen_room * sizeof *larger);
		if (!larger)
			return false;
		r->seen = larger;
	}
	seen.apart = v->apart[0] ? ob_hash(OB_HASH_START, v->apart, strlen(v->apart)) : 0;
	seen.moves = v->moves || memcmp(v->successor, none, sizeof none) != 0;
	r->seen[r->n_seen++] = seen;
	return true;
}

/* False: no memory. */
static bool reservation_read(struct round *r, const struct obl_reservation *v)
{
	for (uint32_t p = 0; p < v->n_parts; p++) {
		struct seen seen = { .reservation = v, .node = UINT32_MAX };

		seen.held = part_find(r, v, &v->parts[p], &seen.server);
		if (seen.server == UINT32_MAX)
			continue;
		for (uint32_t d = 0; d < v->parts[p].n_devices; d++) {
			uint32_t node = node_of(r, seen.server, &v->parts[p], d);

			if (node != UINT32_MAX && seen.held)
				r->used[node] += weight_of(seen.held);
			if (is_single(v))
				seen.node = node;
		}
		if (!seen_add(r, seen))
			return false;
	}
	return true;
}

/* False: no memory. */
static bool loads_fill(struct round *r)
{
	for (const struct obl_item *item = obl_mirror_first(&r->core->mirror, OBL_ITEM_RESERVATION);
		item; item = obl_mirror_next(item))
		if (!reservation_read(r, item->value.reservation))
			return false;
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		if (r->summed[i])
			r->nodes[i].load = ob_min(r->used[i], 1000u);
		r->busy[i] = (uint16_t)r->nodes[i].load;
	}
	return true;
}

/*
 * What a reservation adds to its device. Programs that want more than the device has get equal parts
 * of it; what the device does and nobody is seen to do is divided among them.
 */
static uint32_t load_of(const struct round *r, const struct seen *seen)
{
	uint32_t sum = r->used[seen->node], busy = r->busy[seen->node];

	if (!seen->held)
		return 0;
	if (sum > busy || (sum < busy && r->whole[seen->node]))
		return (uint32_t)((uint64_t)busy * weight_of(seen->held) / sum);
	return ob_min(seen->held->busy, 1000u);
}

/* It was moved and does not work as much as it did, because it has just begun. */
static bool settles(const struct round *r, const struct obl_reservation *v, uint32_t load)
{
	uint64_t until = v->from[0] ? v->expires : obl_moved_s(v, r->now_s);

	return v->moves && v->load > load && r->now_s < until + OBL_SETTLE_S;
}

/* What is under way counts where it goes to. */
static void under_way(struct round *r, const struct seen *seen)
{
	const struct obl_reservation *v = seen->reservation;
	uint32_t load = load_of(r, seen), *node = &r->nodes[seen->node].load;

	if (obl_successor(r->core, v))
		*node -= ob_min(*node, load);
	else if (settles(r, v, load))
		*node += v->load - load;
}

static bool rests(const struct round *r, const struct obl_reservation *v)
{
	static const uint8_t none[OBP_RESERVATION_BYTES];

	/* an offer was not taken: its client may be cut off from the balancers */
	return memcmp(v->successor, none, sizeof none) != 0 &&
		r->now_s < obl_moved_s(v, r->now_s) + OBL_LAPSED_REST_S;
}

static bool may_move(const struct round *r, const struct seen *seen)
{
	const struct obl_reservation *v = seen->reservation;

	return seen->held && seen->node != UINT32_MAX && r->busy[seen->node] > OBL_REBALANCE_HOT &&
		v->restartable &&
		!(seen->moves &&
			(rests(r, v) || obl_successor(r->core, v) ||
				settles(r, v, load_of(r, seen))));
}

/* ---- where they may go ---- */

static unsigned kind_of(const struct round *r, uint32_t node)
{
	for (uint32_t i = 0; i < r->fleet->n; i++)
		if (node >= r->first[i] && node - r->first[i] < r->fleet->servers[i].n_devices)
			return r->fleet->servers[i].devices[node - r->first[i]].kind;
	return OBL_KINDS;
}

/* The rule takes others never. */
static bool is_target(const struct obl_node *node)
{
	return !node->closed && node->load < OBL_REBALANCE_COLD;
}

/* As obl_fleet_apart. */
static void apart_fill(
	const struct round *r, const struct seen *seen, uint64_t ret_bits[OBL_SERVERS_MAX / 64])
{
	memset(ret_bits, 0, OBL_SERVERS_MAX / 8);
	for (uint32_t i = 0; i < r->n_seen; i++)
		if (r->seen[i].apart == seen->apart &&
			strcmp(r->seen[i].reservation->apart, seen->reservation->apart) == 0)
			ret_bits[r->seen[i].server / 64] |= UINT64_C(1) << r->seen[i].server % 64;
}

/* The nodes that the reservation's wishes admit, of those that can be targets. */
static void allowed_fill(const struct round *r, const struct seen *seen, uint64_t ret[WORDS])
{
	const struct obl_reservation *v = seen->reservation;
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
	unsigned kind = kind_of(r, seen->node);

	if (obl_where_parse(v->where, &where, NULL))
		return;
	request.where = where.n_terms ? &where : NULL;
	if (v->apart[0]) {
		apart_fill(r, seen, apart);
		request.apart = apart;
	}
	search = obl_search_of(
		r->fleet->servers, r->fleet->n, &request, OBL_LEAST_LOAD, OBL_VIEW_NOW);
	for (uint32_t i = 0; i < r->fleet->n; i++) {
		const struct obl_server *s = &r->fleet->servers[i];

		if (server_closed(s) || obl_server_reason(&search, i) != OBL_FITS)
			continue;
		for (uint32_t d = 0; d < s->n_devices && r->first[i] + d < r->n_nodes; d++) {
			uint32_t at = r->first[i] + d;

			if (s->devices[d].kind == kind && is_target(&r->nodes[at]) &&
				obl_device_reason(&search, &s->devices[d], false) == OBL_FITS)
				ret[at / 64] |= UINT64_C(1) << at % 64;
		}
	}
}

static void movable_add(struct round *r, const struct seen *seen)
{
	const struct obl_reservation *v = seen->reservation;
	uint32_t n = r->n_movables++;

	r->movables[n] = (struct obl_movable){ .node = seen->node,
		.load = load_of(r, seen),
		.memory = v->exclusive ? 0 : v->parts[0].memory,
		.moved_ms = obl_moved_s(v, r->now_s) * 1000,
		.moves = v->moves,
		.allowed = r->allowed[n] };
	allowed_fill(r, seen, r->allowed[n]);
	r->reservations[n] = v;
}

/* More than one round takes are looked at in turn. */
static void movables_fill(struct round *r)
{
	struct obl_moves *moves = &r->core->moves;
	uint32_t n = 0, skip;

	for (uint32_t i = 0; i < r->n_seen; i++)
		n += may_move(r, &r->seen[i]);
	skip = n > OBL_MOVABLES_MAX ? moves->turn % n : 0;
	moves->turn = n > OBL_MOVABLES_MAX ? skip + OBL_MOVABLES_MAX : 0;
	for (uint32_t i = 0; i < r->n_seen && r->n_movables < OBL_MOVABLES_MAX; i++) {
		if (!may_move(r, &r->seen[i]))
			continue;
		if (skip)
			skip--;
		else
			movable_add(r, &r->seen[i]);
	}
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
		*d = (struct obl_decided){ .load = r->movables[move->movable].load };
		obl_id_print(r->reservations[move->movable]->id, d->id);
		snprintf(d->server, sizeof d->server, "%s", r->fleet->servers[i].name);
		memcpy(d->uuid, known->devices[move->to - r->first[i]].uuid, 16);
		snprintf(d->why, sizeof d->why, "by rebalancing");
		moves->n++;
		return;
	}
}

static void decide(struct round *r)
{
	struct obl_move list[OBL_REBALANCE_MOVES_MAX];
	struct obl_moves *moves = &r->core->moves;
	uint32_t n = 0;

	nodes_fill(r);
	if (!loads_fill(r))
		return;
	for (uint32_t i = 0; i < r->n_seen; i++)
		if (r->seen[i].moves && r->seen[i].node != UINT32_MAX)
			under_way(r, &r->seen[i]);
	idle_spare(r);
	r->core->counts.imbalance = obl_imbalance(r->nodes, r->n_nodes);
	if (obl_rebalance_active(&moves->rule, r->core->counts.imbalance)) {
		movables_fill(r);
		n = obl_rebalance(&moves->rule, r->nodes, r->n_nodes, r->movables, r->n_movables,
			r->now_s * 1000, list);
	}
	for (uint32_t i = 0; i < n; i++)
		decided(r, &list[i]);
	ob_debug("rebalancing: imbalance %u per mille, %u programs could move, %u do",
		r->core->counts.imbalance, r->n_movables, n);
}

void obl_round(struct obl_core *core, uint64_t now_ms)
{
	struct round *r = core->moves.n ? NULL : calloc(1, sizeof *r);

	if (!r)
		return; /* a later round looks again */
	r->core = core;
	r->fleet = core->line->fleet;
	r->now_s = now_ms / 1000;
	obl_fleet_fill(core, r->fleet);
	decide(r);
	free(r->seen);
	free(r);
}

/*
 * What must leave a server goes first, because its time is limited; but in turn with rounds, because
 * it may find no place for as long as the server is drained.
 */
void obl_rounds_sweep(struct obl_core *core)
{
	struct obl_moves *moves = &core->moves;
	uint64_t now = ob_clock_ns();
	bool due = core->settings->rebalance_s && now >= moves->next_ns;

	if (!core->synced || !core->usable || core->stopping ||
		!core->registry->ops->leads(core->registry)) {
		moves->rule.active = false;
		core->counts.imbalance = 0;
		return;
	}
	if (moves->n)
		return;
	if (!due || !moves->left)
		obl_leaving_decide(core, obl_time_ms() / 1000);
	moves->left = moves->n > 0;
	if (due && !moves->n) {
		moves->next_ns = now + core->settings->rebalance_s * OB_SECOND - OB_SECOND / 2;
		obl_round(core, obl_time_ms());
	}
	if (moves->n)
		core->wake(core);
}
