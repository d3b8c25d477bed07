/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Rounds of rebalancing with a played clock: what counts as the load of devices and reservations,
 * where a program may go, what rests, and the limits.
 */
#include "loadbalancer/balancer/rounds.h"

#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/request.h"
#include "tests/test.h"
#include "tests/unit/balancer/rack.h"

#define NOW UINT64_C(1000000) /* s */
#define IDLE               \
	(const uint32_t[]) \
	{                  \
		0          \
	}
#define HOT                \
	(const uint32_t[]) \
	{                  \
		1000       \
	}

static void round_at(uint64_t s)
{
	rack_forget();
	for (struct obl_member *m = rack.members; m; m = m->next)
		m->beat_ns = ob_clock_ns();
	obl_round(&rack, s * 1000);
}

/* Two programs that always work on gpu1, which is full; gpu2 does nothing. */
static void two_on_one(void)
{
	rack_begin();
	rack_server("gpu1", 1, HOT, "");
	rack_server("gpu2", 1, IDLE, "");
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .busy = 1000 });
	rack_reserve(2, &(struct rack_reservation){ .server = "gpu1", .busy = 1000 });
}

TEST(one_of_two_moves)
{
	two_on_one();
	round_at(NOW);
	CHECK_INT(rack.moves.n, 1);
	CHECK_STR(rack.moves.list[0].server, "gpu2");
	CHECK_INT(rack.moves.list[0].load, 500); /* of one device that both want for themselves */
	CHECK_INT(rack.counts.imbalance, 1000);
	CHECK(!rack.moves.list[0].any_device && rack_device(&rack.moves.list[0]) == 0);
	rack_end();
}

/* Long kernels, or a program that computes on its processor meanwhile: no call is being executed. */
TEST(what_the_device_does_is_divided)
{
	two_on_one();
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .busy = 0 });
	rack_reserve(2, &(struct rack_reservation){ .server = "gpu1", .busy = 3 });
	round_at(NOW);
	CHECK_INT(rack.moves.n, 1);
	CHECK_INT(rack_number(&rack.moves.list[0]), 1);
	CHECK_INT(rack.moves.list[0].load, 250);
	/* not if others may do it */
	obl_member_find(&rack, "gpu1")->load.sessions = 3;
	round_at(NOW + 2);
	CHECK_INT(rack.moves.n, 1);
	CHECK_INT(rack_number(&rack.moves.list[0]), 2);
	CHECK_INT(rack.moves.list[0].load, 3);
	rack_end();
}

/* A server of an earlier version tells one number for its devices. */
TEST(devices_of_a_server_that_tells_one_number)
{
	rack_begin();
	rack_server("gpu1", 2, (const uint32_t[]){ RACK_UNKNOWN, RACK_UNKNOWN }, "")->load.busy =
		980;
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .busy = 600 });
	rack_reserve(2, &(struct rack_reservation){ .server = "gpu1", .busy = 380 });
	rack_reserve(3, &(struct rack_reservation){ .server = "gpu1", .busy = 100, .fixed = true });
	round_at(NOW);
	CHECK_INT(rack.counts.imbalance, 1000);
	CHECK_INT(rack.moves.n, 1);
	CHECK_STR(rack.moves.list[0].server, "gpu1");
	CHECK_INT(rack_device(&rack.moves.list[0]), 1);
	/* with 40 % on each nothing is hot */
	rack_remove(3);
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .busy = 400 });
	rack_reserve(2, &(struct rack_reservation){ .server = "gpu1", .device = 1, .busy = 400 });
	round_at(NOW + 2);
	CHECK_INT(rack.counts.imbalance, 0);
	CHECK_INT(rack.moves.n, 0);
	rack_end();
}

TEST(the_second_device_of_a_server)
{
	rack_begin();
	rack_server("gpu1", 3, (const uint32_t[]){ 500, 1000, 100 }, "");
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .device = 1, .busy = 400 });
	rack_reserve(2, &(struct rack_reservation){ .server = "gpu1", .device = 1, .busy = 600 });
	round_at(NOW);
	CHECK_INT(rack.moves.n, 1);
	CHECK_INT(rack_number(&rack.moves.list[0]), 1);
	CHECK_INT(rack_device(&rack.moves.list[0]), 2);
	/* of two devices: only an operator moves it */
	rack_reserve(1,
		&(struct rack_reservation){
			.server = "gpu1", .device = 1, .second_device = 2, .busy = 400 });
	rack_reserve(2,
		&(struct rack_reservation){
			.server = "gpu1", .device = 1, .busy = 600, .fixed = true });
	round_at(NOW + 2);
	CHECK_INT(rack.moves.n, 0);
	rack_end();
}

TEST(a_move_under_way_counts_where_it_goes_to)
{
	two_on_one();
	rack_reserve(3,
		&(struct rack_reservation){ .server = "gpu2",
			.idle = true,
			.moves = 1,
			.load = 500,
			.moved = NOW,
			.expires = NOW + 60,
			.from = "gpu1" });
	rack_reserve(1,
		&(struct rack_reservation){
			.server = "gpu1", .busy = 1000, .moved = NOW, .successor = 3 });
	round_at(NOW + 1);
	CHECK_INT(rack.counts.imbalance, 0);
	/* a slow start: the old one is gone, and its program has not come yet */
	rack_remove(1);
	obp_fact_set(&obl_member_find(&rack, "gpu1")->load.devices[0].facts, OBP_FACT_USE_GPU, 90);
	round_at(NOW + 60 + OBL_SETTLE_S - 1);
	CHECK_INT(rack.counts.imbalance, 400);
	/* its ticket is void by now, whoever ought to have removed it */
	round_at(NOW + 60 + OBL_SETTLE_S);
	CHECK_INT(rack.counts.imbalance, 900);
	/* it came at 70 and works from 95 on */
	rack_reserve(3,
		&(struct rack_reservation){
			.server = "gpu2", .busy = 10, .moves = 1, .load = 500, .moved = NOW + 70 });
	round_at(NOW + 70 + OBL_SETTLE_S - 1);
	CHECK_INT(rack.counts.imbalance, 400);
	round_at(NOW + 70 + OBL_SETTLE_S);
	CHECK_INT(rack.counts.imbalance, 900);
	rack_end();
}

TEST(what_was_moved_rests_longer_each_time)
{
	static const uint32_t rest[] = { 60, 60, 120, 240, 480, 960, 1920, 3840, 3840 };

	for (uint32_t moves = 1; moves < ob_count(rest); moves++) {
		two_on_one();
		for (uint32_t i = 1; i <= 2; i++)
			rack_reserve(i,
				&(struct rack_reservation){ .server = "gpu1",
					.busy = 1000,
					.moves = moves,
					.moved = NOW });
		round_at(NOW + rest[moves] - 1);
		CHECK_INT(rack.moves.n, 0);
		round_at(NOW + rest[moves]);
		CHECK_INT(rack.moves.n, 1);
		rack_end();
	}
}

TEST(an_offer_that_nobody_took)
{
	two_on_one();
	for (uint32_t i = 1; i <= 2; i++)
		rack_reserve(i,
			&(struct rack_reservation){
				.server = "gpu1", .busy = 1000, .moved = NOW, .successor = 9 });
	round_at(NOW + OBL_LAPSED_REST_S - 1);
	CHECK_INT(rack.moves.n, 0);
	round_at(NOW + OBL_LAPSED_REST_S);
	CHECK_INT(rack.moves.n, 1);
	rack_end();
}

/* Up to the tolerated difference such a time is now; beyond it, it says nothing. */
TEST(a_clock_that_was_ahead)
{
	two_on_one();
	for (uint32_t i = 1; i <= 2; i++)
		rack_reserve(i,
			&(struct rack_reservation){ .server = "gpu1",
				.busy = 1000,
				.moves = 1,
				.moved = NOW + OBP_TICKET_SKEW_S });
	round_at(NOW);
	CHECK_INT(rack.moves.n, 0);
	for (uint32_t i = 1; i <= 2; i++)
		rack_reserve(i,
			&(struct rack_reservation){
				.server = "gpu1", .busy = 1000, .moves = 1, .moved = NOW + 3600 });
	round_at(NOW + 2);
	CHECK_INT(rack.moves.n, 1);
	rack_end();
}

TEST(only_where_it_may_be)
{
	rack_begin();
	rack_server("gpu1", 1, HOT, "zone=a");
	rack_server("gpu2", 1, IDLE, "zone=b");
	rack_server("gpu3", 1, IDLE, "zone=a");
	rack_server("gpu4", 1, IDLE, "zone=a");
	for (uint32_t i = 1; i <= 2; i++)
		rack_reserve(i,
			&(struct rack_reservation){
				.server = "gpu1", .busy = 1000, .where = "zone=a", .apart = "x" });
	rack_reserve(3, &(struct rack_reservation){ .server = "gpu3", .busy = 1, .apart = "x" });
	round_at(NOW);
	CHECK_INT(rack.moves.n, 1);
	CHECK_STR(rack.moves.list[0].server, "gpu4");
	/* a device in exclusive use, by an operator's order, silent, or of another kind */
	rack_operate("gpu4", true, false);
	round_at(NOW + 2);
	CHECK_INT(rack.moves.n, 0);
	rack_operate("gpu4", false, false);
	obl_member_find(&rack, "gpu4")->healthy = false;
	round_at(NOW + 4);
	CHECK_INT(rack.moves.n, 0);
	obl_member_find(&rack, "gpu4")->healthy = true;
	round_at(NOW + 6);
	CHECK_INT(rack.moves.n, 1);
	rack_end();
}

TEST(devices_of_the_same_kind)
{
	const struct obl_item *item;

	two_on_one();
	item = obl_mirror_find(&rack.mirror, OBL_ITEM_SERVER, "gpu2");
	item->value.server->devices[0].soft = true;
	round_at(NOW);
	CHECK_INT(rack.moves.n, 0);
	item = obl_mirror_find(&rack.mirror, OBL_ITEM_SERVER, "gpu1");
	item->value.server->devices[0].soft = true;
	round_at(NOW + 2);
	CHECK_INT(rack.moves.n, 1);
	rack_end();
}

TEST(memory_must_fit)
{
	two_on_one();
	for (uint32_t i = 1; i <= 2; i++)
		rack_reserve(i,
			&(struct rack_reservation){
				.server = "gpu1", .busy = 1000, .memory = RACK_MEMORY });
	obl_member_find(&rack, "gpu2")->load.devices[0].used = 1;
	round_at(NOW);
	CHECK_INT(rack.moves.n, 0);
	obl_member_find(&rack, "gpu2")->load.devices[0].used = 0;
	round_at(NOW + 2);
	CHECK_INT(rack.moves.n, 1);
	rack_end();
}

static void many(uint32_t hot, uint32_t idle, uint32_t programs)
{
	char name[16];

	rack_begin();
	for (uint32_t i = 0; i < idle + hot; i++) {
		snprintf(name, sizeof name, "gpu%u", i);
		rack_server(name, 1, i < hot ? HOT : IDLE, "");
	}
	for (uint32_t i = 0; i < programs; i++) {
		snprintf(name, sizeof name, "gpu%u", i % hot);
		rack_reserve(i + 1, &(struct rack_reservation){ .server = name, .busy = 1000 });
	}
}

TEST(ten_moves_a_round)
{
	many(12, 11, 24);
	/* the idle ones would be spared in a large pool (request.h): each has a sleeping program */
	for (const struct obl_item *item = obl_mirror_first(&rack.mirror, OBL_ITEM_LEDGER); item;
		item = obl_mirror_next(item))
		item->value.ledger->devices[0].sharers = 1;
	round_at(NOW);
	CHECK_INT(rack.moves.n, OBL_REBALANCE_MOVES_MAX);
	for (uint32_t i = 0; i < rack.moves.n; i++)
		for (uint32_t j = 0; j < i; j++)
			CHECK(strcmp(rack.moves.list[i].server, rack.moves.list[j].server) != 0);
	obl_round(&rack, NOW * 1000 + 5000); /* not as long as some wait */
	CHECK_INT(rack.moves.n, OBL_REBALANCE_MOVES_MAX);
	rack_end();
}

/* As many hot devices as there are, the rest idle. */
static uint32_t moves_with_idle(uint32_t idle)
{
	uint32_t n = 0, hot = OBL_SPARING_DEVICES - idle, moves;

	many(hot, idle, 2 * hot);
	for (const struct obl_item *item = obl_mirror_first(&rack.mirror, OBL_ITEM_LEDGER);
		item && n < hot; item = obl_mirror_next(item), n++)
		item->value.ledger->devices[0].sharers = 2;
	round_at(NOW);
	moves = rack.moves.n;
	rack_end();
	return moves;
}

/* By the rule of placement: idle ones are spared below the square root of all. */
TEST(the_last_idle_devices_are_spared)
{
	CHECK_INT(moves_with_idle(4), 4);
	CHECK_INT(moves_with_idle(3), 0);
}

/* Those that can go nowhere do not keep the others from their turn. */
static uint32_t rounds_until_moved(uint32_t stuck)
{
	uint32_t rounds = 0;

	rack_begin();
	rack_server("gpu1", 1, HOT, "");
	rack_server("gpu2", 1, IDLE, "");
	for (uint32_t i = 1; i <= stuck; i++)
		rack_reserve(i,
			&(struct rack_reservation){
				.server = "gpu1", .busy = 1000, .where = "server=gpu1" });
	rack_reserve(stuck + 1, &(struct rack_reservation){ .server = "gpu1", .busy = 1000 });
	do
		round_at(NOW + 2 * rounds++);
	while (!rack.moves.n && rounds < 10);
	CHECK_INT(rack_number(&rack.moves.list[0]), stuck + 1);
	rack_end();
	return rounds;
}

TEST(as_many_as_a_round_looks_at_and_one_more)
{
	CHECK_INT(rounds_until_moved(OBL_MOVABLES_MAX - 1), 1);
	CHECK_INT(rounds_until_moved(OBL_MOVABLES_MAX), 2);
	CHECK_INT(rounds_until_moved(3 * OBL_MOVABLES_MAX), 4);
}

TEST(begins_above_and_ends_below)
{
	two_on_one();
	obp_fact_set(&obl_member_find(&rack, "gpu1")->load.devices[0].facts, OBP_FACT_USE_GPU, 90);
	obp_fact_set(&obl_member_find(&rack, "gpu2")->load.devices[0].facts, OBP_FACT_USE_GPU, 60);
	round_at(NOW);
	CHECK_INT(rack.counts.imbalance, 300);
	CHECK(!rack.moves.rule.active);
	obp_fact_set(&obl_member_find(&rack, "gpu1")->load.devices[0].facts, OBP_FACT_USE_GPU, 91);
	round_at(NOW + 2);
	CHECK(rack.moves.rule.active);
	obp_fact_set(&obl_member_find(&rack, "gpu1")->load.devices[0].facts, OBP_FACT_USE_GPU, 81);
	round_at(NOW + 4);
	CHECK(rack.moves.rule.active);
	obp_fact_set(&obl_member_find(&rack, "gpu1")->load.devices[0].facts, OBP_FACT_USE_GPU, 80);
	round_at(NOW + 6);
	CHECK_INT(rack.counts.imbalance, 200);
	CHECK(!rack.moves.rule.active);
	rack_end();
}

/* As long as another balancer leads, this one has no imbalance to tell. */
static bool is_leader;

static bool leads(const struct obl_registry *registry)
{
	(void)registry;
	return is_leader;
}

TEST(without_the_lead_nothing_is_told)
{
	static const struct obl_registry_ops ops = { .leads = leads };
	struct obl_registry registry = { .ops = &ops };

	two_on_one();
	rack.registry = &registry;
	is_leader = true;
	obl_rounds_sweep(&rack);
	CHECK_INT(rack.moves.n, 1);
	CHECK_INT(rack.counts.imbalance, 1000);
	is_leader = false;
	obl_rounds_sweep(&rack); /* also while a move waits */
	CHECK_INT(rack.counts.imbalance, 0);
	CHECK(!rack.moves.rule.active);
	is_leader = true;
	rack_forget();
	rack.moves.next_ns = 0;
	rack.usable = false;
	obl_rounds_sweep(&rack);
	CHECK_INT(rack.moves.n, 0);
	rack_end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
