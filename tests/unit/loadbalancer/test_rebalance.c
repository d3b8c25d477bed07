/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Rebalancing: thresholds and limits, properties of random rounds, and long runs that must come to
 * rest.
 */
#include "base/check.h"
#include "loadbalancer/rebalance.h"
#include "tests/test.h"

#define GIB      (1ull << 30)
#define NODES    24
#define MOVABLES 96

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static uint32_t one_round(struct obl_node *nodes, uint32_t n, const struct obl_movable *movables,
	uint32_t n_movables, struct obl_move *moves)
{
	struct obl_rebalance state = { .active = false };

	return obl_rebalance(&state, nodes, n, movables, n_movables, 1000, moves);
}

TEST(thresholds)
{
	struct obl_move moves[OBL_REBALANCE_MOVES_MAX];
	const struct obl_movable half = { .node = 0, .load = 150 };
	struct obl_node nodes[2] = { { .load = 801 }, { .load = 499 } };

	CHECK_INT(obl_imbalance(nodes, 2), 302);
	CHECK_INT(one_round(nodes, 2, &half, 1, moves), 1);
	CHECK_INT(moves[0].movable, 0);
	CHECK_INT(moves[0].to, 1);
	CHECK_INT(nodes[0].load, 651);
	CHECK_INT(nodes[1].load, 649);
	/* not hot */
	nodes[0].load = 800;
	nodes[1].load = 400;
	CHECK_INT(one_round(nodes, 2, &half, 1, moves), 0);
	/* not cold */
	nodes[0].load = 900;
	nodes[1].load = 500;
	CHECK_INT(one_round(nodes, 2, &half, 1, moves), 0);
	/* the imbalance is at its threshold */
	nodes[0].load = 801;
	nodes[1].load = 501;
	CHECK_INT(one_round(nodes, 2, &half, 1, moves), 0);
	/* closed: no target, and does not count */
	nodes[1] = (struct obl_node){ .load = 0, .closed = true };
	CHECK_INT(obl_imbalance(nodes, 2), 0);
	CHECK_INT(one_round(nodes, 2, &half, 1, moves), 0);
	CHECK_INT(obl_imbalance(nodes, 0), 0);
}

TEST(what_may_move)
{
	struct obl_move moves[OBL_REBALANCE_MOVES_MAX];
	const uint64_t not_one = ~UINT64_C(2);
	struct obl_movable m = { .node = 0, .load = 200, .memory = 5 * GIB };
	const struct obl_node start[2] = { { .load = 900 }, { .load = 100, .room = 5 * GIB } };
	struct obl_node nodes[2];

	memcpy(nodes, start, sizeof nodes);
	m.memory++; /* no room */
	CHECK_INT(one_round(nodes, 2, &m, 1, moves), 0);
	m.memory--;
	m.allowed = &not_one;
	CHECK_INT(one_round(nodes, 2, &m, 1, moves), 0);
	m.allowed = NULL;
	m.moved_ms = 1; /* rests */
	CHECK_INT(one_round(nodes, 2, &m, 1, moves), 0);
	m.moved_ms = 0;
	m.load = 751; /* would only turn the two around */
	CHECK_INT(one_round(nodes, 2, &m, 1, moves), 0);
	m.load = 700; /* 800 after it: hot at most, but not below the source by the margin... */
	CHECK_INT(one_round(nodes, 2, &m, 1, moves), 1);
	CHECK_INT(nodes[1].load, 800);
	CHECK(nodes[1].room == 0);
	memcpy(nodes, start, sizeof nodes);
	m.load = 701; /* hot after it */
	CHECK_INT(one_round(nodes, 2, &m, 1, moves), 0);
	m.load = 0; /* nothing to gain */
	CHECK_INT(one_round(nodes, 2, &m, 1, moves), 0);
	m = (struct obl_movable){ .node = 7, .load = 200 }; /* no such node */
	CHECK_INT(one_round(nodes, 2, &m, 1, moves), 0);
	m = (struct obl_movable){ .node = 0, .load = 901 }; /* more than the node has */
	CHECK_INT(one_round(nodes, 2, &m, 1, moves), 0);
	CHECK(memcmp(nodes, start, sizeof nodes) == 0);
}

/* At least a second between rounds, at most ten moves in one. */
TEST(limits_of_rounds)
{
	struct obl_move moves[OBL_REBALANCE_MOVES_MAX];
	struct obl_rebalance state = { .active = false };
	struct obl_node nodes[40];
	struct obl_movable movables[100];

	for (int i = 0; i < 40; i++)
		nodes[i] = (struct obl_node){ .load = i < 20 ? 1000 : 0, .room = UINT64_MAX };
	for (uint32_t i = 0; i < 100; i++)
		movables[i] = (struct obl_movable){ .node = i / 5, .load = 100, .memory = 1 };
	CHECK_INT(obl_rebalance(&state, nodes, 40, movables, 100, 5000, moves),
		OBL_REBALANCE_MOVES_MAX);
	for (uint32_t i = 0; i < OBL_REBALANCE_MOVES_MAX; i++)
		for (uint32_t k = 0; k < i; k++)
			CHECK(moves[i].movable != moves[k].movable);
	CHECK_INT(obl_rebalance(&state, nodes, 40, movables, 100, 5999, moves), 0);
	CHECK(obl_rebalance(&state, nodes, 40, movables, 100, 6000, moves) > 0);
	CHECK(state.rounds == 2 && state.moves > OBL_REBALANCE_MOVES_MAX);
	CHECK_INT(obl_rebalance(&state, nodes, 40, movables, 100, 3000, moves),
		0); /* clock went back */
}

/* Begins above 0.3, and goes on until it is at most 0.2. */
TEST(hysteresis)
{
	struct obl_move moves[OBL_REBALANCE_MOVES_MAX];
	struct obl_rebalance state = { .active = false };
	struct obl_movable m = { .node = 0, .load = 50 };
	struct obl_node nodes[2] = { { .load = 850 }, { .load = 560 } };

	CHECK_INT(obl_rebalance(&state, nodes, 2, &m, 1, 1000, moves), 0);
	CHECK(!state.active);
	nodes[1].load = 540;
	obl_rebalance(&state, nodes, 2, &m, 1, 1000, moves);
	CHECK(state.active);
	nodes[1].load = 640;
	obl_rebalance(&state, nodes, 2, &m, 1, 2000, moves);
	CHECK(state.active);
	nodes[1].load = 650;
	obl_rebalance(&state, nodes, 2, &m, 1, 3000, moves);
	CHECK(!state.active);
}

struct world {
	struct obl_node nodes[NODES];
	struct obl_movable movables[MOVABLES];
	uint64_t capacity[NODES];
};

static void world_make(struct world *w)
{
	memset(w, 0, sizeof *w);
	for (uint32_t i = 0; i < NODES; i++)
		w->nodes[i] = (struct obl_node){ .room = 80 * GIB, .closed = below(10) == 0 };
	for (uint32_t i = 0; i < MOVABLES; i++) {
		struct obl_movable *m = &w->movables[i];

		/* most work on the first third */
		*m = (struct obl_movable){ .node = below(below(2) ? NODES / 3 : NODES),
			.load = below(300),
			.memory = (1 + below(16)) * GIB };
		w->nodes[m->node].load += m->load;
		w->nodes[m->node].room -= ob_min(m->memory, w->nodes[m->node].room);
	}
}

static uint64_t squares(const struct obl_node *nodes)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < NODES; i++)
		sum += (uint64_t)nodes[i].load * nodes[i].load;
	return sum;
}

static void moves_carry_out(
	struct world *w, const struct obl_move *moves, uint32_t n, uint64_t now_ms)
{
	for (uint32_t i = 0; i < n; i++) {
		w->movables[moves[i].movable].node = moves[i].to;
		w->movables[moves[i].movable].moved_ms = now_ms;
	}
}

/* A round never makes the imbalance greater, and its sums are right. */
TEST(a_round_never_makes_it_worse)
{
	uint32_t moved = 0;

	for (uint32_t round = 0; round < 20000 / TEST_SLOWER; round++) {
		struct obl_move moves[OBL_REBALANCE_MOVES_MAX];
		struct world w, before;
		uint32_t n;

		world_make(&w);
		before = w;
		n = one_round(w.nodes, NODES, w.movables, MOVABLES, moves);
		CHECK(n <= OBL_REBALANCE_MOVES_MAX);
		CHECK(obl_imbalance(w.nodes, NODES) <= obl_imbalance(before.nodes, NODES));
		CHECK(n ? squares(w.nodes) < squares(before.nodes)
			: memcmp(w.nodes, before.nodes, sizeof w.nodes) == 0);
		for (uint32_t i = 0; i < n; i++) {
			const struct obl_movable *m = &w.movables[moves[i].movable];

			CHECK(moves[i].to < NODES && moves[i].to != m->node);
			CHECK(!before.nodes[moves[i].to].closed && !before.nodes[m->node].closed);
			CHECK(before.nodes[m->node].load > OBL_REBALANCE_HOT);
			CHECK(before.nodes[moves[i].to].load < OBL_REBALANCE_COLD);
			before.nodes[m->node].load -= m->load;
			before.nodes[moves[i].to].load += m->load;
			CHECK(before.nodes[moves[i].to].room >= m->memory);
			before.nodes[moves[i].to].room -= m->memory;
			CHECK(before.nodes[moves[i].to].load <= OBL_REBALANCE_HOT);
		}
		CHECK(memcmp(w.nodes, before.nodes, sizeof w.nodes) == 0);
		moved += n;
	}
	CHECK(moved > 10000 / TEST_SLOWER);
}

/* With loads that do not change it comes to rest: nothing is moved for ever, or back. */
TEST(constant_loads_come_to_rest)
{
	for (uint32_t round = 0; round < 300 / TEST_SLOWER; round++) {
		struct obl_rebalance state = { .active = false };
		uint32_t times[MOVABLES] = { 0 };
		uint64_t last = 0;
		struct world w;

		world_make(&w);
		for (uint64_t now = 1000; now < 600000; now += 500) {
			struct obl_move moves[OBL_REBALANCE_MOVES_MAX];
			uint32_t n = obl_rebalance(
				&state, w.nodes, NODES, w.movables, MOVABLES, now, moves);

			for (uint32_t i = 0; i < n; i++)
				times[moves[i].movable]++;
			moves_carry_out(&w, moves, n, now);
			last = n ? now : last;
		}
		CHECK(last < 300000);
		for (uint32_t i = 0; i < MOVABLES; i++)
			CHECK(times[i] <= 3);
	}
}

/*
 * With loads that change all the time, an hour: a reservation is not moved more often than once in
 * its rest, and the time with an imbalance is shorter than without moves.
 */
TEST(changing_loads_are_followed_without_ping_pong)
{
	struct world with, without;
	struct obl_rebalance state = { .active = false };
	uint64_t seen_with = 0, seen_without = 0;
	uint64_t moved[MOVABLES] = { 0 };

	world_make(&with);
	without = with;
	for (uint64_t now = 1000; now < 3600000; now += 1000) {
		struct obl_move moves[OBL_REBALANCE_MOVES_MAX];
		uint32_t k = below(MOVABLES), load = below(300), n;

		with.nodes[with.movables[k].node].load += load - with.movables[k].load;
		without.nodes[without.movables[k].node].load += load - without.movables[k].load;
		with.movables[k].load = without.movables[k].load = load;
		n = obl_rebalance(&state, with.nodes, NODES, with.movables, MOVABLES, now, moves);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t *at = &moved[moves[i].movable];

			CHECK(*at == 0 || now - *at >= OBL_REBALANCE_REST_MS);
			*at = now;
			with.nodes[with.movables[moves[i].movable].node].room +=
				with.movables[moves[i].movable].memory;
		}
		moves_carry_out(&with, moves, n, now);
		seen_with += obl_imbalance(with.nodes, NODES);
		seen_without += obl_imbalance(without.nodes, NODES);
	}
	CHECK(state.moves > 0);
	CHECK(seen_with * 10 < seen_without * 8);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
