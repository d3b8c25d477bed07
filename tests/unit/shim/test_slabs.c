/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/slabs.h"

#include <stdlib.h>

#include "tests/test.h"

#define MIB  (1ull << 20)
#define BASE 0x7f0000000000ull

static struct obc_slabs slabs;

static void sane(uint64_t used)
{
	uint64_t found;

	CHECK(obc_slabs_sane(&slabs, &found));
	CHECK_INT(found, used);
}

TEST(allocations_lie_in_slabs)
{
	struct obc_block *a, *b, *c;

	CHECK(!obc_slabs_take(&slabs, 1));
	CHECK(obc_slabs_add(&slabs, BASE, 2 * MIB));
	a = obc_slabs_take(&slabs, 1);
	b = obc_slabs_take(&slabs, 1000);
	CHECK(a && b);
	CHECK_INT(a->addr, BASE);
	CHECK_INT(b->addr, BASE + OBC_BLOCK_ALIGN);
	sane(3 * OBC_BLOCK_ALIGN);
	c = obc_slabs_take(&slabs, 2 * MIB - 3 * OBC_BLOCK_ALIGN);
	CHECK(c && !obc_slabs_take(&slabs, 1));
	CHECK(!obc_slabs_give(&slabs, a));
	CHECK(!obc_slabs_give(&slabs, c));
	CHECK(obc_slabs_give(&slabs, b));
	sane(0);
	obc_slabs_fini(&slabs);
}

/* Two slabs whose addresses adjoin stay two: the driver takes back only whole ones. */
TEST(neighbours_are_not_merged)
{
	uint64_t base, size;
	struct obc_block *block;

	CHECK(obc_slabs_add(&slabs, BASE + 2 * MIB, 2 * MIB) &&
		obc_slabs_add(&slabs, BASE, 2 * MIB));
	CHECK(!obc_slabs_take(&slabs, 2 * MIB + 1));
	block = obc_slabs_take(&slabs, 2 * MIB);
	CHECK(block && block->addr == BASE);
	CHECK(!obc_slabs_remove_unused(&slabs, 1, &base, &size));
	CHECK(obc_slabs_remove_unused(&slabs, 0, &base, &size));
	CHECK_INT(base, BASE + 2 * MIB);
	CHECK_INT(size, 2 * MIB);
	CHECK(!obc_slabs_remove_unused(&slabs, 0, &base, &size));
	CHECK(obc_slabs_overlap(&slabs, BASE + 2 * MIB - 1, 1));
	CHECK(!obc_slabs_overlap(&slabs, BASE + 2 * MIB, 1) &&
		!obc_slabs_overlap(&slabs, BASE - 1, 1));
	CHECK(obc_slabs_overlap(&slabs, BASE - 1, 2));
	CHECK(obc_slabs_give(&slabs, block));
	sane(0);
	obc_slabs_fini(&slabs);
}

/* Random requests on slabs that come and go; no two allocations overlap. */
TEST(many_requests)
{
	enum { N = 300 };
	static struct obc_block *live[N];
	uint64_t used = 0, base, size, next = BASE;

	srand(3);
	for (int round = 0; round < 30000; round++) {
		int i = rand() % N;

		if (live[i]) {
			used -= live[i]->size;
			obc_slabs_give(&slabs, live[i]);
			live[i] = NULL;
		} else {
			live[i] = obc_slabs_take(&slabs, (uint64_t)rand() % (300u << 10) + 1);
			used += live[i] ? live[i]->size : 0;
		}
		if (rand() % 300 == 0) {
			CHECK(obc_slabs_add(&slabs, next, 4 * MIB));
			next += 4 * MIB * (uint64_t)(1 + rand() % 2);
		}
		if (rand() % 200 == 0 && obc_slabs_remove_unused(&slabs, 0, &base, &size))
			for (int k = 0; k < N; k++)
				CHECK(!live[k] || live[k]->addr - base >= size);
		if (round % 500 == 0)
			sane(used);
	}
	for (int i = 0; i < N; i++)
		if (live[i])
			obc_slabs_give(&slabs, live[i]);
	sane(0);
	while (obc_slabs_remove_unused(&slabs, 0, &base, &size))
		;
	CHECK_INT(slabs.n, 0);
	CHECK_INT(slabs.blocks.free_bytes, 0);
	obc_slabs_fini(&slabs);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
