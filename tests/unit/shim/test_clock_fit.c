/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The alignment of two clocks whose true difference is known: the stated error bounds the real one,
 * with delays that differ from one direction to the other, with drift, and with claims that cannot
 * be true.
 */
#include "base/clock.h"
#include "client-shim/session/clock_fit.h"
#include "tests/test.h"

static uint64_t seed = 1;

static uint64_t chance(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % below;
}

/* The server's clock is ahead by `ahead` at time 0 and gains `ppm`. */
struct clocks {
	int64_t ahead;
	double ppm;
};

static uint64_t server_time(const struct clocks *clocks, uint64_t client)
{
	return client + (uint64_t)(clocks->ahead + (int64_t)((double)client * clocks->ppm / 1e6));
}

/* One exchange at time `at`, with delays of up to `most` ns each way. */
static void exchange(struct obc_fit *fit, const struct clocks *clocks, uint64_t at, uint64_t most)
{
	uint64_t first = at + chance(most), last = first + chance(most);

	obc_fit_add(fit, at, server_time(clocks, first), server_time(clocks, last),
		last + chance(most));
}

static uint64_t distance(const struct obc_fit *fit, const struct clocks *clocks, uint64_t at)
{
	uint64_t found = obc_fit_client_time(fit, server_time(clocks, at));

	return found > at ? found - at : at - found;
}

TEST(nothing_added)
{
	struct obc_fit fit = { 0 };

	CHECK(obc_fit_error(&fit) == UINT64_MAX);
	obc_fit_add(&fit, 10, 5, 5, 9); /* received before it was sent */
	CHECK(obc_fit_error(&fit) == UINT64_MAX);
}

TEST(one_exchange)
{
	struct obc_fit fit = { 0 };

	obc_fit_add(&fit, 1000, 501200, 501200, 1400);
	CHECK_INT(obc_fit_error(&fit), 201);
	CHECK_INT(obc_fit_client_time(&fit, 501200), 1200);
	CHECK_INT(fit.exchanges, 1);
	/* one from before the first bounds the same difference */
	obc_fit_add(&fit, 500, 500510, 500510, 700);
	CHECK_INT(obc_fit_error(&fit), 101);
	CHECK_INT(obc_fit_client_time(&fit, 500000), 90);
}

TEST(the_error_is_a_bound)
{
	for (unsigned round = 0; round < 200; round++) {
		struct obc_fit fit = { 0 };
		const struct clocks clocks = { (int64_t)chance(OB_SECOND) - (int64_t)OB_SECOND / 2,
			0 };
		uint64_t start = OB_SECOND * (1 + chance(1000)), n = 1 + chance(50);

		for (uint64_t i = 0; i < n; i++)
			exchange(&fit, &clocks, start + i * 7 * OB_MS, 1 + chance(OB_MS));
		for (unsigned i = 0; i < 50; i++)
			CHECK(distance(&fit, &clocks, start + chance(n * 7 * OB_MS)) <=
				obc_fit_error(&fit));
	}
}

TEST(drift_is_followed)
{
	struct obc_fit fit = { 0 };
	const struct clocks clocks = { -123456789, 50 };
	uint64_t start = 1000 * OB_SECOND, before = 0;

	/* an hour: 50 ppm are 180 ms */
	for (uint64_t s = 0; s < 3600; s++)
		exchange(&fit, &clocks, start + s * OB_SECOND, 200000);
	/* a window has become 64 s wide, in which the clocks drift by 3.2 ms */
	for (uint64_t s = 0; s < 3600; s += 5) {
		uint64_t mapped =
			obc_fit_client_time(&fit, server_time(&clocks, start + s * OB_SECOND));

		CHECK(distance(&fit, &clocks, start + s * OB_SECOND) < 4 * OB_MS);
		CHECK(mapped > before);
		before = mapped;
	}
	CHECK(obc_fit_error(&fit) < 4 * OB_MS);
}

TEST(impossible_claims)
{
	for (unsigned round = 0; round < 1000; round++) {
		struct obc_fit fit = { 0 };

		for (unsigned i = 0; i < 20; i++) {
			uint64_t sent = chance(2) ? chance(UINT32_MAX) : chance(UINT32_MAX) << 32;

			obc_fit_add(&fit, sent, chance(UINT32_MAX) << chance(33),
				chance(UINT32_MAX) << chance(33), sent + chance(OB_SECOND));
		}
		obc_fit_client_time(&fit, chance(UINT32_MAX) << chance(33));
		CHECK(obc_fit_error(&fit) > 0);
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
