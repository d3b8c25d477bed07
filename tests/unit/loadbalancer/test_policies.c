/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Placement: what each policy chooses, each reason to leave something out, and the messages. */
#include "base/check.h"
#include "loadbalancer/place.h"
#include "tests/test.h"

#define GIB (1ull << 30)

static struct obl_server plain(
	uint32_t busy, uint64_t used_gib, uint32_t sharers, uint32_t sessions)
{
	struct obl_server s = { .alive = true,
		.max_sessions = 100,
		.busy = busy,
		.sessions = sessions,
		.n_devices = 1 };

	s.devices[0] = (struct obl_device){ .model = "X",
		.total = 80 * GIB,
		.reserved = used_gib * GIB,
		.units = 100,
		.clock_mhz = 1000,
		.sharers = sharers,
		.busy = (uint16_t)busy };
	return s;
}

static uint32_t pick(
	const struct obl_server *servers, uint32_t n, enum obl_policy policy, uint64_t memory)
{
	struct obl_request request = { .memory = memory };
	struct obl_state state = { 0, 42 };
	struct obl_choice choice;

	CHECK(obl_place(servers, n, &request, policy, &state, &choice));
	return choice.parts[0].server;
}

TEST(each_policy_does_what_it_is_named_for)
{
	struct obl_server s[] = { plain(900, 10, 1, 1), plain(100, 40, 3, 9), plain(500, 70, 2, 4),
		plain(400, 0, 0, 5) };

	CHECK_INT(pick(s, 3, OBL_LEAST_LOAD, 0), 1);
	CHECK_INT(pick(s, 4, OBL_LEAST_CONNECTIONS, 0), 0);
	CHECK_INT(pick(s, 4, OBL_BINPACK, 5 * GIB), 2); /* 10 GiB free: tightest */
	CHECK_INT(pick(s, 4, OBL_BINPACK, 20 * GIB), 1);
	CHECK_INT(pick(s, 4, OBL_SPREAD, 0), 3);
	CHECK_INT(pick(s, 3, OBL_SPREAD, 0), 0);
	CHECK_INT(pick(s, 4, OBL_EXCLUSIVE, 0), 3);
}

TEST(binpack_prefers_room_for_sharers)
{
	struct obl_server s[] = { plain(0, 70, OBL_SHARERS_PREFERRED, 8), plain(0, 40, 2, 2) };

	CHECK_INT(pick(s, 2, OBL_BINPACK, GIB), 1);
	s[1].devices[0].reserved = 80 * GIB; /* full: the crowded one is chosen */
	CHECK_INT(pick(s, 2, OBL_BINPACK, GIB), 0);
}

/* With few idle devices left the tightest fit is taken whatever its sharers, and an idle one last. */
TEST(binpack_spares_the_last_idle_devices)
{
	struct obl_server s[OBL_SPARING_DEVICES];

	for (uint32_t idle = 0; idle <= 5; idle++) {
		for (uint32_t i = 0; i < OBL_SPARING_DEVICES; i++)
			s[i] = plain(0, 80, 3, 3);
		for (uint32_t i = 0; i < idle; i++)
			s[i] = plain(0, 0, 0, 0);
		s[9] = plain(0, 79, OBL_SHARERS_PREFERRED, 8);
		s[10] = plain(0, 40, 2, 2);
		/* 4 * 4 = 16 */
		CHECK_INT(pick(s, OBL_SPARING_DEVICES, OBL_BINPACK, GIB), idle < 4 ? 9 : 10);
		CHECK_INT(pick(s, OBL_SPARING_DEVICES - 1, OBL_BINPACK, GIB), 10);
		s[10].devices[0].reserved = 80 * GIB;
		if (idle)
			CHECK_INT(pick(s, OBL_SPARING_DEVICES, OBL_BINPACK, GIB) < idle, idle >= 4);
		s[9].devices[0].reserved = 80 * GIB;
		if (idle)
			CHECK(pick(s, OBL_SPARING_DEVICES, OBL_BINPACK, GIB) < idle);
	}
}

TEST(a_cpu_is_the_last_choice_and_still_a_choice)
{
	struct obl_server s[] = { plain(0, 0, 0, 0), plain(900, 60, 5, 5) };

	s[0].devices[0].kind = OBL_SOFTWARE;
	CHECK_INT(pick(s, 2, OBL_LEAST_LOAD, 0), 1);
	CHECK_INT(pick(s, 2, OBL_SPREAD, 0), 1);
	CHECK_INT(pick(s, 2, OBL_BINPACK, 0), 1);
	s[1].draining = true;
	CHECK_INT(pick(s, 2, OBL_LEAST_LOAD, 0), 0);
}

TEST(round_robin_serves_all_alike_and_skips_what_does_not_fit)
{
	struct obl_server s[] = { plain(0, 0, 0, 0), plain(999, 0, 0, 0), plain(0, 0, 0, 0),
		plain(0, 0, 0, 0) };
	struct obl_request request = { .memory = 0 };
	struct obl_state state = { 0, 0 };
	struct obl_choice choice;
	unsigned got[4] = { 0 };

	s[2].alive = false;
	for (int i = 0; i < 300; i++) {
		CHECK(obl_place(s, 4, &request, OBL_ROUND_ROBIN, &state, &choice));
		got[choice.parts[0].server]++;
	}
	CHECK_INT(got[0], 100);
	CHECK_INT(got[1], 100);
	CHECK_INT(got[2], 0);
	CHECK_INT(got[3], 100);
}

TEST(weights_are_kept)
{
	struct obl_server s[] = { plain(0, 0, 0, 0), plain(0, 0, 0, 0) };
	struct obl_request request = { .memory = 0 };
	struct obl_state state = { 0, 7 };
	struct obl_choice choice;
	unsigned got[2] = { 0 };

	s[0].weight = 1;
	s[1].weight = 3;
	for (int i = 0; i < 40000; i++) {
		CHECK(obl_place(s, 2, &request, OBL_WEIGHTED, &state, &choice));
		got[choice.parts[0].server]++;
	}
	/* seven standard deviations around three quarters */
	CHECK(got[1] > 29400 && got[1] < 30600);
}

/*
 * The worst of n servers is never chosen. The others are chosen with the probability of two random
 * draws: the best about 2/n.
 */
TEST(of_two_the_better)
{
	struct obl_server s[4];
	struct obl_request request = { .memory = 0 };
	struct obl_state state = { 0, 7 };
	struct obl_choice choice;
	unsigned got[4] = { 0 };

	for (uint32_t i = 0; i < 4; i++)
		s[i] = plain(i * 200, 0, 0, 0);
	for (int i = 0; i < 40000; i++) {
		CHECK(obl_place(s, 4, &request, OBL_POWER_OF_TWO, &state, &choice));
		got[choice.parts[0].server]++;
	}
	CHECK_INT(got[3], 0);
	CHECK(got[0] > 19300 && got[0] < 20700);
	CHECK(got[1] > 12600 && got[1] < 14100);
	CHECK_INT(pick(s, 1, OBL_POWER_OF_TWO, 0), 0);
}

TEST(equal_servers_are_not_all_given_to_the_first)
{
	struct obl_server s[] = { plain(0, 0, 0, 0), plain(0, 0, 0, 0), plain(0, 0, 0, 0) };
	struct obl_request request = { .memory = 0 };
	unsigned got[3] = { 0 };
	struct obl_choice choice;

	for (uint64_t i = 0; i < 30000; i++) {
		struct obl_state state = { 0, i };

		CHECK(obl_place(s, 3, &request, OBL_LEAST_LOAD, &state, &choice));
		got[choice.parts[0].server]++;
	}
	for (int i = 0; i < 3; i++)
		CHECK(got[i] > 9400 && got[i] < 10600);
}

TEST(scores_rise_with_what_is_better)
{
	struct obl_server a = plain(0, 0, 0, 0), b = a;

	b.devices[0].units *= 2;
	CHECK(obl_device_score(&b, 0) > obl_device_score(&a, 0));
	b = a;
	b.devices[0].total *= 2;
	CHECK(obl_device_score(&b, 0) > obl_device_score(&a, 0));
	b = a;
	a.link_ns = 20000;
	b.link_ns = 500000;
	CHECK(obl_device_score(&b, 0) < obl_device_score(&a, 0));
	b = a;
	a.link_bytes_s = 10000000000ull;
	b.link_bytes_s = 125000000;
	CHECK(obl_device_score(&b, 0) < obl_device_score(&a, 0));
	b = a;
	b.devices[0].kind = OBL_SOFTWARE;
	CHECK(obl_device_score(&b, 0) < obl_device_score(&a, 0));
}

TEST(why_nothing_fits)
{
	struct obl_server s[] = { plain(0, 79, 0, 0), plain(0, 0, 0, 0), plain(0, 0, 0, 100) };
	struct obl_request request = { .memory = 2 * GIB };
	struct obl_state state = { 0, 0 };
	struct obl_choice choice;
	char text[256];

	s[0].name = "rack2";
	s[1].alive = false;
	CHECK(!obl_place(s, 3, &request, OBL_LEAST_LOAD, &state, &choice));
	obl_explain(&choice, s, &request, text, sizeof text);
	CHECK_STR(text,
		"servers: 1 do not answer, 1 are full; devices: 1 have too little free memory (2.0 "
		"GiB wanted, the largest free block is 1.0 GiB, on gpu0 of rack2)");
	CHECK_INT(choice.outlook, OBL_LATER);
	request.memory = 100 * GIB;
	CHECK(!obl_place(s, 1, &request, OBL_LEAST_LOAD, &state, &choice));
	obl_explain(&choice, s, &request, text, sizeof text);
	CHECK_STR(text,
		"devices: 1 have too little free memory (100.0 GiB wanted, the largest free block "
		"is 1.0 GiB, on gpu0 of rack2); 0 of 1 such devices exist in all");
	CHECK_INT(choice.outlook, OBL_CAPACITY);
	request = (struct obl_request){ .gpus = 3, .memory = GIB };
	s[1].alive = true;
	CHECK(!obl_place(s, 3, &request, OBL_LEAST_LOAD, &state, &choice));
	obl_explain(&choice, s, &request, text, sizeof text);
	CHECK_STR(text, "servers: 1 are full; 2 of 3 devices could be had now");
	CHECK_INT(choice.outlook, OBL_LATER);
}

/* Each reason is reported for what it stands for, and waiting is said to help where it can. */
TEST(each_reason)
{
	static const struct obl_where elsewhere = {
		.n_terms = 1, .terms = { { .key = OBL_WHERE_SERVER, .n = 1 } }, .text = "rack9"
	};
	uint64_t apart = 1;
	struct obl_choice kept = { .n_parts = 1, .parts = { { 0, 1, { 0 } } } };

	for (unsigned reason = OBL_DEAD; reason < OBL_REASONS; reason++) {
		struct obl_server s = plain(0, 10, 1, 1);
		struct obl_request request = { .memory = GIB, .share = 400000, .cuda = 12000 };
		struct obl_state state = { 0, 0 };
		struct obl_choice choice;
		char text[256];

		s.cuda = reason == OBL_OLD_CUDA ? 11080 : 12000;
		s.alive = reason != OBL_DEAD;
		s.draining = reason == OBL_DRAINING;
		s.cordoned = reason == OBL_CORDONED;
		s.unhealthy = reason == OBL_UNWELL;
		s.max_sessions = reason == OBL_FULL ? 1 : 2;
		s.fresh = 3;
		s.fresh_max = reason == OBL_STARTING ? 3 : 4;
		request.where = reason == OBL_NOT_WHERE ? &elsewhere : NULL;
		request.apart = reason == OBL_APART ? &apart : NULL;
		s.devices[0].mig_mode = reason == OBL_NO_TYPE;
		request.min_units = reason == OBL_NO_UNITS ? 101 : 100;
		s.devices[0].celsius = reason == OBL_FAULTY ? OBL_CELSIUS_MAX + 1 : OBL_CELSIUS_MAX;
		request.memory = reason == OBL_NO_MEMORY ? 71 * GIB : 70 * GIB;
		s.devices[0].share = reason == OBL_NO_SHARE ? 600001 : 600000;
		request.exclusive = reason == OBL_SHARED;
		request.kept = reason == OBL_KEPT ? &kept : NULL;
		CHECK(!obl_place(&s, 1, &request, OBL_BINPACK, &state, &choice));
		CHECK_INT(choice.left_out[reason], 1);
		obl_explain(&choice, &s, &request, text, sizeof text);
		CHECK(text[0]);
		CHECK_INT(choice.outlook,
			reason == OBL_OLD_CUDA || reason == OBL_NOT_WHERE ||
					reason == OBL_NO_TYPE || reason == OBL_NO_UNITS
				? OBL_CAPACITY
				: OBL_LATER);
	}
}

TEST(explanations_are_cut_at_the_buffer)
{
	struct obl_server s = plain(0, 79, 0, 0);
	struct obl_request request = { .memory = 2 * GIB };
	struct obl_state state = { 0, 0 };
	struct obl_choice choice;
	char text[64];

	CHECK(!obl_place(&s, 1, &request, OBL_BINPACK, &state, &choice));
	for (size_t size = 0; size <= sizeof text; size++) {
		memset(text, 'x', sizeof text);
		obl_explain(&choice, &s, &request, text, size);
		CHECK(size == 0 || strlen(text) < size);
		CHECK(size == sizeof text || text[size] == 'x');
	}
}

/* A new server gets few sessions at first, more with time, and then all. */
TEST(slow_start)
{
	CHECK_INT(obl_slow_start(0), 1);
	CHECK_INT(obl_slow_start(999), 1);
	CHECK_INT(obl_slow_start(10000), 11);
	CHECK_INT(obl_slow_start(29999), 30);
	CHECK_INT(obl_slow_start(30000), 0);
	CHECK_INT(obl_slow_start(UINT64_MAX), 0);
}

/* Among equally tight devices: less reserved compute, then a server in use, then the nearest. */
TEST(ties_of_binpack)
{
	struct obl_server s[2] = { plain(0, 0, 0, 0), plain(0, 0, 0, 0) };

	s[0].link_ns = 2000;
	s[1].link_ns = 1000;
	CHECK_INT(pick(s, 2, OBL_BINPACK, GIB), 1);
	s[0].n_devices = s[1].n_devices = 2;
	s[0].devices[1] = s[1].devices[1] = s[0].devices[0];
	s[0].devices[1].sharers = 1;
	s[0].devices[1].reserved = 80 * GIB;
	CHECK_INT(pick(s, 2, OBL_BINPACK, GIB), 0);
	s[0].devices[0].share = 1;
	CHECK_INT(pick(s, 2, OBL_BINPACK, GIB), 1);
}

TEST(names_of_policies)
{
	enum obl_policy policy;

	for (unsigned i = 0; i < OBL_POLICY_COUNT; i++) {
		CHECK(obl_policy_parse(obl_policy_name((enum obl_policy)i), &policy));
		CHECK_INT(policy, i);
	}
	CHECK(!obl_policy_parse("fastest", &policy));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
