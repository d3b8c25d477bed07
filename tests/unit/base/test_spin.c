/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Tests when a thread polls and for how long (base/spin.h). */
#include "base/opt.h"
#include "base/spin.h"
#include "tests/test.h"

#define SHORT (OB_SPIN_NS / 2)
#define LONG  (OB_SPIN_NS * 2)

static void learn(struct ob_spin *spin, unsigned times, uint64_t waited)
{
	for (unsigned i = 0; i < times; i++)
		ob_spin_learn(spin, waited, 0);
}

TEST(short_waits_poll)
{
	struct ob_spin spin = { 0 };

	CHECK_INT(ob_spin_budget(&spin, 0), 0);
	learn(&spin, 1, SHORT);
	CHECK_INT(ob_spin_budget(&spin, 0), OB_SPIN_NS);
	learn(&spin, 1, LONG);
	CHECK_INT(ob_spin_budget(&spin, 0), 0);
}

TEST(one_core_sleeps)
{
	struct ob_spin spin = { 0 };

	learn(&spin, 5, SHORT);
	ob_spin_set_cores(1);
	CHECK_INT(ob_spin_budget(&spin, 0), 0);
	ob_spin_set_cores(2);
	CHECK_INT(ob_spin_budget(&spin, 0), OB_SPIN_NS);
}

/* Waking both sides may take longer than a short wait: only polling then shows that it pays. */
TEST(long_waits_probe)
{
	struct ob_spin spin = { 0 };
	unsigned polls = 0;

	for (unsigned i = 0; i < 10 * OB_SPIN_PROBE; i++) {
		polls += ob_spin_budget(&spin, 0) > 0;
		learn(&spin, 1, LONG);
	}
	CHECK(polls >= 8 && polls <= 10);
	while (!ob_spin_budget(&spin, 0))
		learn(&spin, 1, LONG);
	for (unsigned i = 0; i < 100; i++) {
		CHECK(ob_spin_budget(&spin, 0) > 0);
		learn(&spin, 1, SHORT);
	}
}

/* Before the other side can answer it must receive what was sent. */
TEST(large_transfers_wait_longer)
{
	struct ob_spin spin = { 0 };

	CHECK_INT(ob_spin_limit(1u << 20), OB_SPIN_NS + (1u << 20) / OB_SPIN_RATE);
	CHECK_INT(ob_spin_limit(UINT64_MAX), ob_spin_limit(OB_SPIN_BYTES));
	ob_spin_learn(&spin, LONG, 1u << 20);
	CHECK_INT(ob_spin_budget(&spin, 1u << 20), ob_spin_limit(1u << 20));
	CHECK_INT(ob_spin_budget(&spin, 0), OB_SPIN_NS);
}

int main(int argc, char **argv)
{
	ob_opt_set(OB_OPT_SPIN, true);
	ob_spin_set_cores(2);
	return test_main(argc, argv);
}
