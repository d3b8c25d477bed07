/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The chooser on links whose rates are known: what it settles on, and what it costs to find out. */
#include "client-shim/session/stripe_choice.h"
#include "tests/test.h"

#define BYTES (64u << 20)

/* n copies at these rates (bytes/s); the time all took, in seconds. */
static double copies(struct obc_choice *choice, unsigned n, double log, double stripes, bool ready,
	unsigned *ret_striped)
{
	double took = 0;

	*ret_striped = 0;
	for (unsigned i = 0; i < n; i++) {
		enum obc_way way = obc_choice_next(choice, ready);
		double one = BYTES / (way == OBC_LOG ? log : stripes);

		obc_choice_learn(choice, way, BYTES, (uint64_t)(one * 1e9));
		*ret_striped += way == OBC_STRIPES;
		took += one;
	}
	return took;
}

TEST(faster_stripes_are_used)
{
	struct obc_choice choice = { 0 };
	unsigned striped;
	double took = copies(&choice, 200, 1e8, 2e8, true, &striped);

	CHECK(striped >= 190);
	CHECK(took < 1.05 * 200 * BYTES / 2e8);
}

TEST(slower_stripes_cost_little)
{
	for (double part = 0.1; part < 1; part += 0.1) {
		struct obc_choice choice = { 0 };
		unsigned striped;
		double took = copies(&choice, 400, 1e9, part * 1e9, true, &striped);

		CHECK(striped >= 1 && striped <= 10);
		CHECK(took < 1.05 * 400 * BYTES / 1e9);
	}
}

TEST(as_fast_is_not_enough)
{
	struct obc_choice choice = { 0 };
	unsigned striped;

	copies(&choice, 400, 1e9, 1.05e9, true, &striped);
	CHECK(striped <= 12);
}

TEST(none_means_none)
{
	struct obc_choice choice = { 0 };
	unsigned striped;

	copies(&choice, 100, 1e9, 9e9, false, &striped);
	CHECK_INT(striped, 0);
	copies(&choice, 10, 1e9, 9e9, true, &striped);
	CHECK_INT(striped, 10);
}

/* A link that changes its mind is noticed. */
TEST(a_change_is_seen)
{
	struct obc_choice choice = { 0 };
	unsigned striped;

	copies(&choice, 20, 1e9, 1.5e9, true, &striped);
	CHECK(striped >= 18);
	copies(&choice, 100, 1e9, 0.3e9, true, &striped);
	CHECK(striped < 20);
	copies(&choice, 1500, 0.5e9, 1.5e9, true, &striped);
	CHECK(striped > 100);
}

TEST(an_earlier_session_is_continued)
{
	struct obc_choice choice = { 0 };
	unsigned striped;

	obc_choice_recall(&choice, 1e9, 2e9);
	copies(&choice, OBC_CHOICE_CHECK, 1e9, 2e9, true, &striped);
	CHECK_INT(striped, OBC_CHOICE_CHECK); /* none over the log */
	copies(&choice, 40, 1e9, 2e9, true, &striped);
	CHECK_INT(striped, 39); /* one to see whether that still holds */
	choice = (struct obc_choice){ 0 };
	obc_choice_recall(&choice, 2e9, 1e9);
	copies(&choice, OBC_CHOICE_CHECK, 2e9, 1e9, true, &striped);
	CHECK_INT(striped, 0);
	/* one rate alone says nothing */
	choice = (struct obc_choice){ 0 };
	obc_choice_recall(&choice, 0, 1e9);
	CHECK(choice.samples[OBC_STRIPES] == 0 && choice.rate[OBC_STRIPES] == 0);
}

TEST(an_earlier_session_may_be_wrong)
{
	struct obc_choice choice = { 0 };
	unsigned striped;

	obc_choice_recall(&choice, 1e9, 2e9);
	copies(&choice, 60, 1e9, 0.2e9, true, &striped);
	CHECK_RANGE(striped, 1, 8);
	choice = (struct obc_choice){ 0 };
	obc_choice_recall(&choice, 2e9, 0.1e9);
	copies(&choice, 60, 1e9, 3e9, true, &striped);
	CHECK(striped >= 48);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
