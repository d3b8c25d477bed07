/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Moves: what is planned, how their end is noted however long the program takes, what is refused for
 * good, and what leaves a server that is to become empty.
 */
#include "loadbalancer/balancer/moves.h"

#include "base/clock.h"
#include "loadbalancer/balancer/credits.h"
#include "loadbalancer/balancer/leaving.h"
#include "loadbalancer/balancer/rounds.h"
#include "tests/test.h"
#include "tests/unit/balancer/rack.h"

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
#define NOW UINT64_C(1000000)

static char key[OBL_KEY_MAX], server[OBP_POOL_NAME_MAX];

static void two_servers(void)
{
	rack_begin();
	rack_server("gpu1", 1, HOT, "");
	rack_server("gpu2", 1, IDLE, "");
}

static enum ob_err plan(uint32_t number, const char *to, struct ob_cause *ret_cause)
{
	const struct obl_reservation *r = rack_look(number);
	char id[OBL_ID_TEXT] = "none";

	if (r)
		obl_id_print(r->id, id);
	return obl_move_plan(&rack, id, to, NULL, 0, key, server, ret_cause);
}

/* The successor that the plan makes. */
static struct obl_reservation planned(void)
{
	const struct obl_plan *p = &rack.work.plan;
	struct obl_reservation r;

	for (uint32_t i = 0; i < p->n_changes; i++)
		if (strcmp(p->changes[i].key, key) == 0) {
			CHECK(obl_reservation_read(p->changes[i].value, &r));
			return r;
		}
	CHECK(false);
	return r;
}

TEST(an_operators_move_counts_with_its_load)
{
	struct obl_reservation next;
	struct ob_cause cause;

	two_servers();
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .busy = 730 });
	CHECK_INT(plan(1, "", &cause), OB_ERR_NONE);
	CHECK_STR(server, "gpu2");
	next = planned();
	CHECK_INT(next.load, 730);
	CHECK_STR(next.from, "gpu1");
	CHECK_INT(next.moves, 1);
	rack_end();
}

TEST(what_will_never_be_moved_is_told_from_what_cannot_now)
{
	struct ob_cause cause;

	two_servers();
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .busy = 1000 });
	CHECK_INT(plan(9, "", &cause), OB_ERR_ARGUMENT);
	CHECK_INT(plan(1, "gpu1", &cause), OB_ERR_ARGUMENT);
	CHECK(strstr(cause.text, "on this server already"));
	rack_operate("gpu2", true, false);
	CHECK_INT(plan(1, "", &cause), OB_ERR_REFUSED);
	CHECK_INT(plan(1, "gpu2", &cause), OB_ERR_REFUSED);
	rack_operate("gpu2", false, false);
	rack_reserve(
		2, &(struct rack_reservation){ .server = "gpu2", .idle = true, .from = "gpu1" });
	rack_reserve(
		1, &(struct rack_reservation){ .server = "gpu1", .busy = 1000, .successor = 2 });
	CHECK_INT(plan(1, "", &cause), OB_ERR_REFUSED);
	CHECK(strstr(cause.text, "being moved already"));
	rack_reserve(
		1, &(struct rack_reservation){ .server = "gpu1", .busy = 1000, .fixed = true });
	CHECK_INT(plan(1, "", &cause), OB_ERR_ARGUMENT);
	CHECK(strstr(cause.text, "--restartable"));
	rack_end();
}

/* A second: what the balancer does once in it, as far as it can. */
static void second(void)
{
	obl_moves_sweep(&rack);
	while (obl_moves_start(&rack) || obl_credits_start(&rack))
		CHECK(rack_answer(true));
}

static void offered(void)
{
	two_servers();
	rack_reserve(2,
		&(struct rack_reservation){
			.server = "gpu2", .idle = true, .from = "gpu1", .moves = 1, .load = 500 });
	rack_reserve(
		1, &(struct rack_reservation){ .server = "gpu1", .busy = 1000, .successor = 2 });
}

/* The old place is credited long before the program uses the new one. */
TEST(a_slow_start)
{
	const struct obl_event *event;

	offered();
	second();
	CHECK_INT(rack_events("moved", &event), 0);
	rack_report(1, &(struct obp_pool_held){ .state = OBP_POOL_ENDED });
	second();
	CHECK(!rack_look(1));
	CHECK_INT(rack_events("ended", &event) + rack_events("moved", &event), 0);
	rack_report(2, &(struct obp_pool_held){ .state = OBP_POOL_CLAIMED, .sessions = 1 });
	second();
	second();
	CHECK_INT(rack_events("moved", &event), 1);
	CHECK(strstr(event->text, "from gpu1 to gpu2"));
	CHECK_INT(rack.counts.moves, 1);
	CHECK(rack_look(2)->from[0] == '\0' && rack_look(2)->moved >= obl_time_ms() / 1000 - 60);
	rack_report(2, &(struct obp_pool_held){ .state = OBP_POOL_ENDED });
	second();
	CHECK_INT(rack_events("ended", &event), 1);
	CHECK_INT(rack_events("moved", &event), 1);
	rack_end();
}

/* It was here and has ended between two heartbeats. */
TEST(a_short_program)
{
	const struct obl_event *event;

	offered();
	rack_report(1, &(struct obp_pool_held){ .state = OBP_POOL_ENDED });
	second();
	rack_report(2, &(struct obp_pool_held){ .state = OBP_POOL_ENDED });
	second();
	CHECK_INT(rack_events("moved", &event), 1);
	CHECK_INT(rack_events("ended", &event), 1);
	CHECK_INT(rack.counts.moves, 1);
	rack_end();
}

TEST(an_offer_that_nobody_takes)
{
	const struct obl_event *event;

	offered();
	rack_report(2, &(struct obp_pool_held){ .state = OBP_POOL_VOID });
	second();
	CHECK(rack_look(1) && !rack_look(2));
	CHECK_INT(rack_events("moved", &event), 0);
	CHECK_INT(rack.counts.moves, 0);
	rack_end();
}

/* Noted once, also if the registry's answer was lost or another change came first. */
TEST(the_end_is_noted_once)
{
	const struct obl_event *event;
	struct obl_reservation other;
	char *text;

	offered();
	rack_report(2, &(struct obp_pool_held){ .state = OBP_POOL_CLAIMED, .sessions = 1 });
	obl_moves_sweep(&rack);
	CHECK(obl_moves_start(&rack));
	CHECK(rack_answer(false));
	CHECK_INT(rack_events("moved", &event), 0);
	CHECK(obl_moves_start(&rack));
	/* it was made, and that was seen before the answer */
	other = *rack_look(2);
	other.from[0] = '\0';
	other.moved = rack.moves.arrival.moved_s;
	snprintf(key, sizeof key, "reservations/%s", rack.moves.arrival.id);
	text = obl_reservation_text(&other);
	obl_mirror_apply(&rack.mirror, key, text, UINT64_MAX / 2, false);
	free(text);
	CHECK(rack_answer(false));
	CHECK_INT(rack_events("moved", &event), 1);
	second();
	CHECK_INT(rack_events("moved", &event), 1);
	rack_end();
}

/* ---- servers that are to become empty ---- */

static void crowd(uint32_t n, uint32_t busy)
{
	two_servers();
	for (uint32_t i = 1; i <= n; i++)
		rack_reserve(i, &(struct rack_reservation){ .server = "gpu1", .busy = busy });
}

static uint32_t leaving_at(uint64_t s)
{
	rack_forget();
	obl_leaving_decide(&rack, s);
	return rack.moves.n;
}

TEST(a_drain_moves_ten_a_round_whatever_they_do)
{
	crowd(OBL_REBALANCE_MOVES_MAX, 0);
	rack_settings.rebalance_s = 0;
	CHECK_INT(leaving_at(NOW), 0);
	rack_operate("gpu1", true, false);
	CHECK_INT(leaving_at(NOW), 0); /* cordoned: they stay */
	rack_operate("gpu1", true, true);
	CHECK_INT(leaving_at(NOW), OBL_REBALANCE_MOVES_MAX);
	CHECK_STR(rack.moves.list[0].why, "because gpu1 is drained");
	CHECK(rack.moves.list[0].any_device && !rack.moves.list[0].server[0]);
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .fixed = true });
	rack_reserve(2, &(struct rack_reservation){ .server = "gpu1", .idle = true });
	rack_reserve(3, &(struct rack_reservation){ .server = "gpu1", .successor = 1 });
	CHECK_INT(leaving_at(NOW), OBL_REBALANCE_MOVES_MAX - 3);
	rack_end();
}

/* Those that find no place come again when the others had their turn. */
TEST(one_more_than_a_round_takes)
{
	crowd(OBL_REBALANCE_MOVES_MAX + 1, 1000);
	rack_operate("gpu1", true, true);
	CHECK_INT(leaving_at(NOW), OBL_REBALANCE_MOVES_MAX);
	CHECK(!rack_decided(OBL_REBALANCE_MOVES_MAX + 1));
	CHECK_INT(leaving_at(NOW + 1), OBL_REBALANCE_MOVES_MAX);
	CHECK(rack_decided(OBL_REBALANCE_MOVES_MAX + 1) && rack_decided(1));
	CHECK(!rack_decided(OBL_REBALANCE_MOVES_MAX));
	CHECK_INT(leaving_at(NOW + 2), OBL_REBALANCE_MOVES_MAX);
	CHECK(rack_decided(OBL_REBALANCE_MOVES_MAX));
	rack_end();
}

TEST(the_offer_is_repeated_and_a_drain_does_not_wait)
{
	crowd(1, 1000);
	rack_operate("gpu1", true, true);
	rack_reserve(1,
		&(struct rack_reservation){
			.server = "gpu1", .busy = 10, .moves = 5, .moved = NOW });
	CHECK_INT(leaving_at(NOW), 1);
	rack_reserve(1,
		&(struct rack_reservation){
			.server = "gpu1", .busy = 10, .moved = NOW, .successor = 9 });
	CHECK_INT(leaving_at(NOW + OBL_LEAVING_REST_S - 1), 0);
	CHECK_INT(leaving_at(NOW + OBL_LEAVING_REST_S), 1);
	rack_end();
}

TEST(a_server_that_is_not_well)
{
	crowd(1, 0);
	obl_member_find(&rack, "gpu1")->healthy = false;
	rack_settings.rebalance_s = 0;
	CHECK_INT(leaving_at(NOW), 0);
	rack_settings.rebalance_s = 60;
	CHECK_INT(leaving_at(NOW), 1);
	CHECK_STR(rack.moves.list[0].why, "because gpu1 is not well");
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .moves = 2, .moved = NOW });
	CHECK_INT(leaving_at(NOW + 119), 0);
	CHECK_INT(leaving_at(NOW + 120), 1);
	obl_member_find(&rack, "gpu1")->healthy = true;
	obl_member_find(&rack, "gpu1")->load.draining = true; /* it was told to end */
	CHECK_INT(leaving_at(NOW), 1);
	rack_end();
}

/* What was decided becomes an offer, by the place that is best then. */
TEST(a_drained_program_is_offered_the_other_server)
{
	const struct obl_event *event;

	crowd(2, 400);
	rack_operate("gpu1", true, true);
	obl_rounds_sweep(&rack);
	CHECK_INT(rack.moves.n, 2);
	while (obl_moves_start(&rack))
		CHECK(rack_answer(true));
	CHECK_INT(rack.moves.n, 0);
	CHECK_INT(rack_events("moving", &event), 2);
	CHECK(strstr(event->text, "from gpu1 to gpu2, because gpu1 is drained"));
	CHECK(obl_successor(&rack, rack_look(1)) && obl_successor(&rack, rack_look(2)));
	CHECK_INT(leaving_at(obl_time_ms() / 1000), 0);
	rack_end();
}

/* A program that finds no place for as long as the server is drained. */
TEST(rounds_go_on_beside_a_drain)
{
	rack_begin();
	rack_server("gpu1", 1, IDLE, "");
	rack_server("gpu2", 1, HOT, "");
	rack_server("gpu3", 1, IDLE, "");
	rack_operate("gpu1", true, true);
	rack_reserve(1, &(struct rack_reservation){ .server = "gpu1", .where = "server=gpu1" });
	rack_reserve(2, &(struct rack_reservation){ .server = "gpu2", .busy = 1000 });
	rack_reserve(3, &(struct rack_reservation){ .server = "gpu2", .busy = 1000 });
	obl_rounds_sweep(&rack);
	CHECK_INT(rack.moves.n, 1);
	CHECK(rack_decided(1));
	CHECK(!obl_moves_start(&rack) && rack.moves.n == 0);
	obl_rounds_sweep(&rack);
	CHECK_INT(rack.moves.n, 1);
	CHECK(!rack_decided(1));
	rack_forget();
	obl_rounds_sweep(&rack);
	CHECK(rack_decided(1));
	rack_end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
