/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Clients that follow a reservation: who may, how many, and what they are told when the balancer
 * loses the registry.
 */
#include "loadbalancer/balancer/follows.h"

#include "base/clock.h"
#include "tests/test.h"
#include "tests/unit/balancer/rack.h"

#define CLIENTS 40u

static struct obl_address near = { .local = true }, far[2];
static struct obl_link links[CLIENTS];
static const struct rack_reservation usual = { .server = "gpu1" };

static void begin(void)
{
	struct ob_cause cause;

	rack_begin();
	rack_settings.gate.connections = 64;
	rack_settings.gate.address_connections = 8;
	CHECK(!obl_auth_open(NULL, &rack.auth, &cause));
	rack_server("gpu1", 1, (const uint32_t[]){ 0 }, "");
	for (uint32_t i = 0; i < CLIENTS; i++)
		links[i] = (struct obl_link){ .state = OBL_LINK_MESSAGES, .address = &near };
}

static void end(void)
{
	for (uint32_t i = 0; i < CLIENTS; i++)
		obl_follows_link_gone(&rack, &links[i]);
	CHECK(!rack.follows);
	obl_auth_close(rack.auth);
	rack_end();
}

/* Whether it follows after its message and a look. */
static bool follow(uint32_t client, uint32_t number)
{
	struct obp_pool_follow message = { .id = { 0 } };

	message.id[2] = (uint8_t)(number >> 8);
	message.id[3] = (uint8_t)number;
	obl_follow(&rack, &links[client], &message);
	obl_follows_sweep(&rack, ob_clock_ns());
	CHECK_INT(links[client].follows, links[client].patient);
	return links[client].follows;
}

TEST(only_restartable_ones_and_only_once)
{
	begin();
	rack_reserve(1, &usual);
	rack_reserve(2, &(struct rack_reservation){ .server = "gpu1", .fixed = true });
	CHECK(follow(0, 1));
	CHECK(!follow(1, 2));
	CHECK(follow(2, 1));
	CHECK(!links[0].follows && links[2].follows); /* the newest */
	CHECK(follow(3, 7));                          /* it may be known here in a moment */
	rack_reserve(7, &(struct rack_reservation){ .server = "gpu1", .fixed = true });
	obl_follows_sweep(&rack, ob_clock_ns());
	CHECK(!links[3].follows);
	end();
}

TEST(half_of_the_connections)
{
	begin();
	for (uint32_t i = 0; i < 33; i++)
		rack_reserve(i + 1, &usual);
	for (uint32_t i = 0; i < 32; i++)
		CHECK(follow(i, i + 1));
	CHECK(!follow(32, 33));
	obl_follows_link_gone(&rack, &links[5]);
	CHECK(follow(32, 33));
	CHECK(follow(33, 33)); /* in the place of its own */
	CHECK(!links[32].follows);
	end();
}

TEST(half_of_those_of_an_address)
{
	begin();
	for (uint32_t i = 0; i < 12; i++) {
		links[i].address = &far[i / 6];
		rack_reserve(i + 1, &usual);
	}
	for (uint32_t i = 0; i < 12; i++)
		CHECK_INT(follow(i, i + 1), i % 6 < 4);
	rack_settings.gate.address_connections = 1;
	obl_follows_link_gone(&rack, &links[0]);
	CHECK(!follow(0, 1));
	for (uint32_t i = 0; i < 6; i++)
		obl_follows_link_gone(&rack, &links[i]);
	CHECK(follow(0, 1));
	CHECK(!follow(1, 2));
	end();
}

/* Another balancer may hear of the move. */
TEST(a_lost_registry)
{
	uint64_t now;

	begin();
	rack_reserve(1, &usual);
	CHECK(follow(0, 1));
	now = ob_clock_ns();
	obl_follows_sweep(&rack, now);
	rack.usable = false;
	obl_follows_sweep(&rack, now + OBL_FOLLOW_BLIND_S * OB_SECOND - 1);
	CHECK(links[0].follows);
	rack.usable = true;
	obl_follows_sweep(&rack, now + OBL_FOLLOW_BLIND_S * OB_SECOND);
	rack.usable = false;
	obl_follows_sweep(&rack, now + 2 * OBL_FOLLOW_BLIND_S * OB_SECOND - 1);
	CHECK(links[0].follows);
	obl_follows_sweep(&rack, now + 2 * OBL_FOLLOW_BLIND_S * OB_SECOND);
	CHECK(!links[0].follows);
	end();
}

TEST(a_reservation_that_is_not_known)
{
	uint64_t now;

	begin();
	CHECK(follow(0, 1));
	now = ob_clock_ns();
	obl_follows_sweep(&rack, now + (OBL_FOLLOW_UNKNOWN_S - 1) * OB_SECOND);
	CHECK(links[0].follows);
	obl_follows_sweep(&rack, now + OBL_FOLLOW_UNKNOWN_S * OB_SECOND);
	CHECK(!links[0].follows);
	end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
