/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Placement: properties that hold for any servers and any request, tested with many random ones,
 * and those of each policy.
 */
#include "base/check.h"
#include "loadbalancer/place.h"
#include "tests/test.h"

#define GIB     (1ull << 30)
#define ROUNDS  20000
#define SERVERS 8

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static void random_device(struct obl_device *device)
{
	static const char *const names[] = { "NVIDIA H200", "NVIDIA L4",
		"Outboard software device (CPU)" };
	uint32_t kind = below(3);

	*device = (struct obl_device){ .total = (1ull + below(80)) * GIB,
		.units = 1 + below(132),
		.clock_mhz = 1000 + below(1000),
		.sharers = below(12),
		.soft = kind == 2,
		.held = below(20) == 0 };
	device->used = device->total / 100 * below(101);
	strcpy(device->name, names[kind]);
}

static void random_server(struct obl_server *server)
{
	*server = (struct obl_server){ .alive = below(8) != 0,
		.draining = below(8) == 0,
		.sessions = below(9),
		.max_sessions = 8,
		.busy = below(1001),
		.weight = below(2) * below(10),
		.link_ns = below(2) * below(1000000),
		.n_devices = below(4) };
	for (uint32_t i = 0; i < server->n_devices; i++)
		random_device(&server->devices[i]);
}

static struct obl_request random_request(void)
{
	struct obl_request request = { .memory = below(3) ? below(60) * GIB : 0,
		.min_units = below(4) ? 0 : below(100),
		.max_sharers = below(3) ? 0 : below(10) };

	if (below(4) == 0)
		strcpy(request.type, below(2) ? "h200" : "L4");
	return request;
}

/* A second implementation from the definition, independent of the code under test. */
static bool may_take(
	const struct obl_server *s, uint32_t d, const struct obl_request *r, enum obl_policy policy)
{
	const struct obl_device *device = &s->devices[d];

	if (!s->alive || s->draining || s->sessions >= s->max_sessions)
		return false;
	if (s->n_devices == 0)
		return !r->type[0] && !(policy == OBL_EXCLUSIVE && s->sessions);
	return d < s->n_devices && (!r->type[0] || strcasestr(device->name, r->type)) &&
		device->units >= r->min_units && device->total - device->used >= r->memory &&
		!device->held && !(policy == OBL_EXCLUSIVE && device->sharers) &&
		!(r->max_sharers && device->sharers >= r->max_sharers);
}

static bool any_may(
	const struct obl_server *servers, const struct obl_request *r, enum obl_policy policy)
{
	for (uint32_t i = 0; i < SERVERS; i++)
		for (uint32_t d = 0; d < ob_max(servers[i].n_devices, 1u); d++)
			if (may_take(&servers[i], d, r, policy))
				return true;
	return false;
}

TEST(what_is_chosen_fits_and_something_is_chosen_when_anything_does)
{
	struct obl_server servers[SERVERS];
	struct obl_choice choice;

	for (int round = 0; round < ROUNDS; round++) {
		enum obl_policy policy = (enum obl_policy)below(OBL_POLICY_COUNT);
		struct obl_request request = random_request();
		struct obl_state state = { below(1000), seed };
		uint32_t out = 0;

		for (int i = 0; i < SERVERS; i++)
			random_server(&servers[i]);
		if (obl_place(servers, SERVERS, &request, policy, &state, &choice)) {
			CHECK(choice.server < SERVERS);
			CHECK(may_take(&servers[choice.server], choice.device, &request, policy));
		} else {
			char text[256];

			CHECK(!any_may(servers, &request, policy));
			obl_explain(&choice, &request, text, sizeof text);
			CHECK(text[0]);
		}
		for (int r = 0; r < OBL_REASONS; r++)
			out += choice.left_out[r];
		CHECK_INT(out, SERVERS);
	}
}

TEST(the_same_arguments_give_the_same_answer)
{
	struct obl_server servers[SERVERS];
	struct obl_choice a, b;

	for (int round = 0; round < ROUNDS; round++) {
		enum obl_policy policy = (enum obl_policy)below(OBL_POLICY_COUNT);
		struct obl_request request = random_request();
		struct obl_state first = { below(1000), seed }, second = first;

		for (int i = 0; i < SERVERS; i++)
			random_server(&servers[i]);
		CHECK_INT(obl_place(servers, SERVERS, &request, policy, &first, &a),
			obl_place(servers, SERVERS, &request, policy, &second, &b));
		CHECK(memcmp(&a, &b, sizeof a) == 0 && memcmp(&first, &second, sizeof first) == 0);
	}
}

/*
 * The result of deterministic policies does not depend on the order of the list, unless two servers
 * are equal.
 */
TEST(the_order_of_the_list_does_not_matter)
{
	static const enum obl_policy policies[] = { OBL_LEAST_LOAD, OBL_LEAST_CONNECTIONS,
		OBL_BINPACK, OBL_SPREAD, OBL_EXCLUSIVE };
	struct obl_server servers[SERVERS], turned[SERVERS];
	struct obl_choice a, b;

	for (int round = 0; round < ROUNDS; round++) {
		enum obl_policy policy = policies[below(ob_count(policies))];
		struct obl_request request = random_request();
		struct obl_state state = { 0, seed };
		uint32_t by = below(SERVERS);

		for (uint32_t i = 0; i < SERVERS; i++) {
			random_server(&servers[i]);
			servers[i].link_ns = 1000 + i; /* so that no two are equal */
			servers[i].n_devices = 1 + below(2);
			random_device(&servers[i].devices[0]);
			random_device(&servers[i].devices[1]);
		}
		for (uint32_t i = 0; i < SERVERS; i++)
			turned[i] = servers[(i + by) % SERVERS];
		if (!obl_place(servers, SERVERS, &request, policy, &state, &a))
			continue;
		CHECK(obl_place(turned, SERVERS, &request, policy, &state, &b));
		CHECK_INT((b.server + by) % SERVERS, a.server);
		CHECK_INT(a.device, b.device);
	}
}

static struct obl_server plain(
	uint32_t busy, uint64_t used_gib, uint32_t sharers, uint32_t sessions)
{
	struct obl_server s = { .alive = true,
		.max_sessions = 100,
		.busy = busy,
		.sessions = sessions,
		.n_devices = 1 };

	s.devices[0] = (struct obl_device){ .name = "X",
		.total = 80 * GIB,
		.used = used_gib * GIB,
		.units = 100,
		.clock_mhz = 1000,
		.sharers = sharers };
	return s;
}

static uint32_t pick(
	const struct obl_server *servers, uint32_t n, enum obl_policy policy, uint64_t memory)
{
	struct obl_request request = { .memory = memory };
	struct obl_state state = { 0, 42 };
	struct obl_choice choice;

	CHECK(obl_place(servers, n, &request, policy, &state, &choice));
	return choice.server;
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
	s[1].devices[0].used = 80 * GIB; /* full: the crowded one is chosen */
	CHECK_INT(pick(s, 2, OBL_BINPACK, GIB), 0);
}

TEST(a_cpu_is_the_last_choice_and_still_a_choice)
{
	struct obl_server s[] = { plain(0, 0, 0, 0), plain(900, 60, 5, 5) };

	s[0].devices[0].soft = true;
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
		got[choice.server]++;
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
		got[choice.server]++;
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
		got[choice.server]++;
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
		got[choice.server]++;
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
	b.devices[0].soft = true;
	CHECK(obl_device_score(&b, 0) < obl_device_score(&a, 0));
}

TEST(why_nothing_fits)
{
	struct obl_server s[] = { plain(0, 79, 0, 0), plain(0, 0, 0, 0), plain(0, 0, 0, 100) };
	struct obl_request request = { .memory = 2 * GIB };
	struct obl_state state = { 0, 0 };
	struct obl_choice choice;
	char text[256];

	s[1].alive = false;
	CHECK(!obl_place(s, 3, &request, OBL_LEAST_LOAD, &state, &choice));
	obl_explain(&choice, &request, text, sizeof text);
	CHECK_STR(text,
		"1 do not answer, 1 are full, 1 have too little free memory (2.0 GiB wanted, the "
		"largest free block is 1.0 GiB)");
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
