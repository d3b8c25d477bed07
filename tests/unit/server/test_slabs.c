/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* obs_slabs over a driver of a few lines. */
#include "server/worker/slabs.h"

#include <stdlib.h>

#include "protocol/obs_driver.h"
#include "server/common/limits.h"
#include "server/layers/hold.h"
#include "tests/test.h"

#define MIB  (1ull << 20)
#define BASE 0x7f0000000000ull
#define UNIT OBS_SLAB_UNIT
#define HERE ((struct obs_context *)&contexts[0])
#define ELSE ((struct obs_context *)&contexts[1])

static char contexts[2];
static struct obs_driver driver;
static struct obs_slabs slabs;
static uint64_t next, left; /* where the driver allocates, and how much it has */
static unsigned live, allocs;

static CUresult mem_alloc(CUdeviceptr *ret, size_t size)
{
	allocs++;
	if (size > left)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = next;
	next += size;
	left -= size;
	live++;
	return CUDA_SUCCESS;
}

static CUresult mem_free(CUdeviceptr addr)
{
	(void)addr;
	live--;
	return CUDA_SUCCESS;
}

static void begin(uint64_t first, uint64_t bytes)
{
	driver.cuMemAlloc_v2 = mem_alloc;
	driver.cuMemFree_v2 = mem_free;
	next = first;
	left = bytes;
	obs_limits_now.host_memory = 64 * MIB;
	obs_slabs_init(&slabs, &driver);
}

static uint64_t slab_new(struct obs_context *context, uint64_t size)
{
	struct obp_range range = { 0 };

	CHECK_INT(obs_slabs_new(&slabs, context, 0, size, size, &range), CUDA_SUCCESS);
	CHECK_INT(range.size, size);
	return range.base;
}

TEST(only_live_allocations_are_accessible)
{
	uint64_t base;

	begin(BASE, 64 * MIB);
	base = slab_new(HERE, MIB);
	CHECK(!obs_slabs_check(&slabs, base, 1));
	CHECK(obs_slabs_alloc(&slabs, base, 1000) &&
		obs_slabs_alloc(&slabs, base + 2 * UNIT, UNIT));
	CHECK(obs_slabs_check(&slabs, base, 2 * UNIT) && obs_slabs_check(&slabs, base + 999, 1));
	/* not from one into the next, though both are live */
	CHECK(!obs_slabs_check(&slabs, base, 2 * UNIT + 1));
	CHECK(!obs_slabs_check(&slabs, base + 2 * UNIT, UNIT + 1));
	CHECK(obs_slabs_free(&slabs, base));
	CHECK(!obs_slabs_check(&slabs, base, 1) && obs_slabs_check(&slabs, base + 2 * UNIT, UNIT));
	/* all of it, across words of the bitmaps */
	CHECK(obs_slabs_free(&slabs, base + 2 * UNIT));
	CHECK(obs_slabs_alloc(&slabs, base, MIB) && obs_slabs_check(&slabs, base, MIB));
	CHECK(!obs_slabs_check(&slabs, base, MIB + 1) && !obs_slabs_check(&slabs, base - 1, 2));
	CHECK(!obs_slabs_check(&slabs, base + 1, UINT64_MAX));
	CHECK(obs_slabs_free(&slabs, base) && !obs_slabs_check(&slabs, base + MIB - 1, 1));
}

TEST(a_client_s_wrong_requests)
{
	uint64_t base;

	begin(BASE, 64 * MIB);
	base = slab_new(HERE, MIB);
	CHECK(obs_slabs_alloc(&slabs, base + UNIT, 4 * UNIT));
	CHECK(!obs_slabs_alloc(&slabs, base + UNIT, 1));        /* in use */
	CHECK(!obs_slabs_alloc(&slabs, base, UNIT + 1));        /* into it */
	CHECK(!obs_slabs_alloc(&slabs, base + 4 * UNIT, UNIT)); /* in its middle */
	CHECK(!obs_slabs_alloc(&slabs, base + 1, 1));           /* not aligned */
	CHECK(!obs_slabs_alloc(&slabs, base + 8 * UNIT, 0));    /* empty */
	CHECK(!obs_slabs_alloc(&slabs, base + MIB - UNIT, UNIT + 1));
	CHECK(!obs_slabs_alloc(&slabs, base + 8 * UNIT, UINT64_MAX));
	CHECK(!obs_slabs_alloc(&slabs, base - UNIT, UNIT) &&
		!obs_slabs_alloc(&slabs, base + MIB, 1));
	CHECK(!obs_slabs_free(&slabs, base) && !obs_slabs_free(&slabs, base + 2 * UNIT));
	CHECK(!obs_slabs_free(&slabs, base + UNIT + 1) && !obs_slabs_free(&slabs, base + MIB));
	CHECK(obs_slabs_free(&slabs, base + UNIT) && !obs_slabs_free(&slabs, base + UNIT));
}

TEST(a_device_with_less_memory)
{
	struct obp_range range = { 0 };

	begin(BASE, 10 * MIB);
	CHECK_INT(obs_slabs_new(&slabs, HERE, 0, 64 * MIB, 3 * MIB, &range), CUDA_SUCCESS);
	CHECK_INT(range.size, 8 * MIB);
	/* the size that the allocation needs is the last that is tried */
	CHECK_INT(
		obs_slabs_new(&slabs, HERE, 0, 8 * MIB, 3 * MIB, &range), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(obs_slabs_new(&slabs, HERE, 0, 8 * MIB, 2 * MIB - 1, &range), CUDA_SUCCESS);
	CHECK_INT(range.size, 2 * MIB);
	CHECK_INT(left, 0);
}

/* A driver need not align to pages: what it gives at both ends is left unused. */
TEST(addresses_become_whole_pages)
{
	struct obp_range range = { 0 };
	struct obs_context *context;
	CUdeviceptr address;

	begin(BASE + 256, 64 * MIB);
	CHECK_INT(obs_slabs_new(&slabs, HERE, 0, MIB, 1, &range), CUDA_SUCCESS);
	CHECK_INT(range.base, BASE + OBP_SLAB_PAGE);
	CHECK_INT(range.size, MIB - OBP_SLAB_PAGE);
	CHECK_INT(obs_slabs_new(&slabs, HERE, 0, MIB, MIB, &range), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(live, 1);
	CHECK(!obs_slabs_remove(&slabs, BASE + 256, &address, &context));
	CHECK(obs_slabs_remove(&slabs, BASE + OBP_SLAB_PAGE, &address, &context));
	CHECK(address == BASE + 256 && context == HERE);
	CHECK(!obs_slabs_remove(&slabs, BASE + OBP_SLAB_PAGE, &address, &context));
}

TEST(a_context_takes_its_slabs_with_it)
{
	uint64_t here[3], other;

	begin(BASE, 64 * MIB);
	here[0] = slab_new(HERE, MIB);
	other = slab_new(ELSE, MIB);
	here[1] = slab_new(HERE, MIB);
	CHECK(obs_slabs_alloc(&slabs, here[0], 1) && obs_slabs_alloc(&slabs, other, 1));
	obs_slabs_forget(&slabs, HERE);
	CHECK_INT(live, 1);
	CHECK(!obs_slabs_check(&slabs, here[0], 1) && obs_slabs_check(&slabs, other, 1));
	CHECK(!obs_slabs_alloc(&slabs, here[1], 1));
}

TEST(bytes_and_contexts)
{
	struct obp_range range;
	uint64_t base;

	begin(BASE, 64 * MIB);
	base = slab_new(HERE, MIB);
	CHECK_INT(obs_slabs_new(&slabs, ELSE, 1, 2 * MIB, 1, &range), CUDA_SUCCESS);
	CHECK_INT(obs_slabs_bytes(&slabs, 0), MIB);
	CHECK_INT(obs_slabs_bytes(&slabs, 1), 2 * MIB);
	CHECK_INT(obs_slabs_bytes(&slabs, 2), 0);
	CHECK(obs_slabs_context(&slabs, base + MIB - 1) == HERE);
	CHECK(obs_slabs_context(&slabs, range.base) == ELSE);
	CHECK(!obs_slabs_context(&slabs, base - 1));
	CHECK(!obs_slabs_context(&slabs, range.base + range.size));
}

/* The bitmaps are host memory, of which a session has a budget; and the number is limited. */
TEST(limits)
{
	struct obp_range range = { 0 };
	uint32_t n = 0;

	begin(BASE, 1ull << 50);
	obs_limits_now.host_memory = 1 << 20;
	while (obs_slabs_new(&slabs, HERE, 0, 64 * MIB, MIB, &range) == CUDA_SUCCESS)
		n++;
	CHECK_INT(n, 32); /* 32 KiB each */
	CHECK_INT(live, 32);
	obs_slabs_forget(&slabs, HERE);
	CHECK_INT(live, 0);
	obs_limits_now.host_memory = 64 * MIB;
	for (n = 0; obs_slabs_new(&slabs, HERE, 0, OBP_SLAB_PAGE, 1, &range) == CUDA_SUCCESS;)
		n++;
	CHECK_INT(n, OBS_SLABS_MAX);
	CHECK_INT(live, OBS_SLABS_MAX);
	obs_slabs_forget(&slabs, HERE);
	CHECK_INT(slabs.n, 0);
	CHECK(obs_hold_room(64 * MIB));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
