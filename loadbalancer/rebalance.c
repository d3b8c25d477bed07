/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/rebalance.h"

#include <string.h>

#include "base/check.h"

#define SOURCES_MAX 256u /* nodes that are looked at in one round */
#define NONE        UINT32_MAX

uint32_t obl_imbalance(const struct obl_node *nodes, uint32_t n)
{
	uint32_t least = UINT32_MAX, most = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!nodes[i].closed) {
			least = ob_min(least, nodes[i].load);
			most = ob_max(most, nodes[i].load);
		}
	return most > least ? most - least : 0;
}

/* ---- one round ---- */

uint64_t obl_rebalance_rest_ms(uint32_t moves)
{
	return (uint64_t)OBL_REBALANCE_REST_MS
		<< (moves ? ob_min(moves - 1, OBL_REBALANCE_DOUBLINGS) : 0);
}

struct round {
	struct obl_node *nodes;
	const struct obl_movable *movables;
	uint32_t n_nodes, n_movables, n_moves;
	uint64_t now_ms;
	struct obl_move *moves;
	uint64_t sources[OBL_REBALANCE_NODES_MAX / 64]; /* a bit for each node that may give */
};

static bool bit(const uint64_t *words, uint32_t i)
{
	return words[i / 64] >> i % 64 & 1;
}

static bool rests(const struct round *r, const struct obl_movable *m)
{
	return m->moved_ms &&
		r->now_ms - ob_min(m->moved_ms, r->now_ms) < obl_rebalance_rest_ms(m->moves);
}

static bool chosen(const struct round *r, uint32_t movable)
{
	for (uint32_t i = 0; i < r->n_moves; i++)
		if (r->moves[i].movable == movable)
			return true;
	return false;
}

/* Marks the nodes with something to give. Returns how many reservations on hot nodes rest. */
static uint32_t sources_mark(struct round *r)
{
	uint32_t resting = 0;

	memset(r->sources, 0, sizeof r->sources);
	for (uint32_t i = 0; i < r->n_movables; i++) {
		const struct obl_movable *m = &r->movables[i];

		if (m->node >= r->n_nodes || m->load == 0 ||
			r->nodes[m->node].load <= OBL_REBALANCE_HOT)
			continue;
		if (rests(r, m))
			resting++;
		else if (!r->nodes[m->node].closed)
			r->sources[m->node / 64] |= UINT64_C(1) << m->node % 64;
	}
	return resting;
}

static uint32_t hottest(const struct round *r)
{
	uint32_t best = NONE;

	for (uint32_t i = 0; i < r->n_nodes; i++)
		if (bit(r->sources, i) && r->nodes[i].load > OBL_REBALANCE_HOT &&
			(best == NONE || r->nodes[i].load > r->nodes[best].load))
			best = i;
	return best;
}

/* The idlest node that can take the reservation. NONE: no such node. */
static uint32_t target_find(const struct round *r, const struct obl_movable *m)
{
	uint32_t best = NONE;

	for (uint32_t i = 0; i < r->n_nodes; i++) {
		const struct obl_node *node = &r->nodes[i];
		uint64_t after = (uint64_t)node->load + m->load;

		if (node->closed || node->load >= OBL_REBALANCE_COLD || node->room < m->memory ||
			after > OBL_REBALANCE_HOT ||
			after + OBL_REBALANCE_MARGIN > r->nodes[m->node].load ||
			(m->allowed && !bit(m->allowed, i)))
			continue;
		if (best == NONE || node->load < r->nodes[best].load)
			best = i;
	}
	return best;
}

/* Moves the reservation of the node whose load is nearest to half of the difference. */
static bool source_relieve(struct round *r, uint32_t source)
{
	struct obl_move best = { NONE, NONE };
	uint64_t best_miss = UINT64_MAX;
	struct obl_node *from = &r->nodes[source], *to;

	for (uint32_t i = 0; i < r->n_movables; i++) {
		const struct obl_movable *m = &r->movables[i];
		uint32_t target;
		uint64_t gap, miss;

		if (m->node != source || m->load == 0 || m->load > from->load || rests(r, m) ||
			chosen(r, i))
			continue;
		target = target_find(r, m);
		if (target == NONE)
			continue;
		gap = from->load - r->nodes[target].load;
		miss = 2ull * m->load > gap ? 2ull * m->load - gap : gap - 2ull * m->load;
		if (miss < best_miss) {
			best_miss = miss;
			best = (struct obl_move){ i, target };
		}
	}
	if (best.movable == NONE)
		return false;
	to = &r->nodes[best.to];
	from->load -= r->movables[best.movable].load;
	to->load += r->movables[best.movable].load;
	to->room -= r->movables[best.movable].memory;
	r->moves[r->n_moves++] = best;
	return true;
}

bool obl_rebalance_active(struct obl_rebalance *state, uint32_t imbalance)
{
	if (imbalance <= OBL_REBALANCE_END)
		state->active = false;
	else if (imbalance > OBL_REBALANCE_BEGIN)
		state->active = true;
	return state->active;
}

uint32_t obl_rebalance(struct obl_rebalance *state, struct obl_node *nodes, uint32_t n_nodes,
	const struct obl_movable *movables, uint32_t n_movables, uint64_t now_ms,
	struct obl_move *ret_moves)
{
	struct round r = { .nodes = nodes,
		.movables = movables,
		.n_nodes = ob_min(n_nodes, OBL_REBALANCE_NODES_MAX),
		.n_movables = n_movables,
		.now_ms = now_ms,
		.moves = ret_moves };
	uint32_t source;

	if (!obl_rebalance_active(state, obl_imbalance(nodes, r.n_nodes)) ||
		(state->last_ms && now_ms < state->last_ms + OBL_REBALANCE_INTERVAL_MS))
		return 0;
	state->resting += sources_mark(&r);
	for (uint32_t tries = 0; tries < SOURCES_MAX && r.n_moves < OBL_REBALANCE_MOVES_MAX;
		tries++) {
		source = hottest(&r);
		if (source == NONE)
			break;
		if (!source_relieve(&r, source))
			r.sources[source / 64] &= ~(UINT64_C(1) << source % 64);
	}
	if (r.n_moves) {
		state->last_ms = now_ms;
		state->rounds++;
		state->moves += r.n_moves;
	}
	return r.n_moves;
}
