/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Limits: parsing, the ledger of charges compared with a simple list, and the layer around a driver
 * that keeps its own counts.
 */
#include "base/check.h"
#include "protocol/load.h"
#include "protocol/obs_driver.h"
#include "server/common/reservation_page.h"
#include "server/common/stats_page.h"
#include "server/layers/hold.h"
#include "server/layers/ledger.h"
#include "server/common/limits.h"
#include "server/layers/quota.h"
#include "tests/test.h"

#define MIB (1ull << 20)

TEST(texts_of_limits)
{
	struct obs_limits limits = obs_limits_default, back;
	char text[OBS_LIMITS_TEXT_MAX], again[OBS_LIMITS_TEXT_MAX];
	struct ob_cause cause;

	CHECK_INT(obs_limits_option(&limits, "max-memory", "4GiB", &cause), OB_ERR_NONE);
	CHECK(limits.memory == 4ull << 30);
	CHECK_INT(obs_limits_option(&limits, "max-memory", "4095KiB", &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obs_limits_option(&limits, "share", "0.25", &cause), OB_ERR_NONE);
	CHECK_INT(limits.share, 250000);
	static const char *const bad_shares[] = { "", "0", "0.009", "1.01", "nan", "-1", "0.5x" };
	for (size_t i = 0; i < ob_count(bad_shares); i++)
		CHECK_INT(obs_limits_option(&limits, "share", bad_shares[i], &cause),
			OB_ERR_ARGUMENT);
	CHECK_INT(obs_limits_option(&limits, "max-lanes", "1024", &cause), OB_ERR_NONE);
	CHECK_INT(obs_limits_option(&limits, "max-lanes", "1025", &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obs_limits_option(&limits, "max-handles", "1048576", &cause), OB_ERR_NONE);
	CHECK_INT(obs_limits_option(&limits, "max-handles", "1048577", &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obs_limits_option(&limits, "idle-timeout", "31536001", &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obs_limits_option(&limits, "max-priority", "high", &cause), OB_ERR_NONE);
	CHECK_INT(obs_limits_option(&limits, "max-priority", "higher", &cause), OB_ERR_ARGUMENT);
	CHECK_INT(obs_limits_option(&limits, "on-excess", "terminate", &cause), OB_ERR_NONE);
	CHECK_INT(limits.strictest, OBP_THROTTLE_ENDED);
	CHECK_INT(obs_limits_share_by(&limits, 0), OBP_SHARE_BY_THROTTLE);
	CHECK_INT(obs_limits_share_by(&limits, 1), OBP_SHARE_BY_NONE);
	CHECK_INT(
		obs_limits_option(&limits, "share-by", "mps,green,throttle", &cause), OB_ERR_NONE);
	CHECK_INT(obs_limits_share_by(&limits, 0), OBP_SHARE_BY_MPS);
	CHECK_INT(obs_limits_share_by(&limits, 1), OBP_SHARE_BY_GREEN);
	CHECK_INT(obs_limits_share_by(&limits, 2), OBP_SHARE_BY_THROTTLE);
	CHECK_INT(obs_limits_share_by(&limits, 3), OBP_SHARE_BY_NONE);
	static const char *const bad_lists[] = { "", ",", "none", "mps,", ",mps", "mps,mps",
		"mps,green,throttle,mps", "Green", "green throttle", "throttle,green",
		"mps,throttle,green" };
	for (size_t i = 0; i < ob_count(bad_lists); i++)
		CHECK_INT(obs_limits_option(&limits, "share-by", bad_lists[i], &cause),
			OB_ERR_ARGUMENT);
	CHECK_INT(obs_limits_option(&limits, "warm", "1", &cause), OB_ERR_NOT_FOUND);
	obs_limits_print(&limits, text);
	CHECK(!obs_limits_parse(text, &back));
	obs_limits_print(&back, again);
	CHECK_STR(again, text);
	CHECK_INT(obs_limits_parse("1:2:3", &back), OB_ERR_ARGUMENT);
}

TEST(a_token_may_allow_less_only)
{
	struct obt_allow allow = { .value = { [OBT_ALLOW_MEMORY] = 200 * MIB,
					   [OBT_ALLOW_SHARE] = OBP_SHARE_ALL,
					   [OBT_ALLOW_PRIORITY] = 3,
					   [OBT_ALLOW_LANES] = 1024,
					   [OBT_ALLOW_IDLE] = 600,
					   [OBT_ALLOW_OUTSTANDING] = 64 * MIB } };
	struct obs_limits limits = { .memory = 100 * MIB,
		.share = 500000,
		.priority = 1,
		.lanes = 10,
		.idle_s = 60,
		.outstanding = 8 * MIB,
		.handles = 5 };
	const struct obs_limits was = limits;

	obs_limits_allow(&limits, &(struct obt_allow){ { 0 } });
	CHECK(!memcmp(&limits, &was, sizeof was));
	obs_limits_allow(&limits, &allow);
	CHECK(!memcmp(&limits, &was, sizeof was));
	limits = obs_limits_default;
	obs_limits_allow(&limits, &allow);
	CHECK(limits.memory == 200 * MIB && limits.host_memory == OBS_HOST_MEMORY_DEFAULT &&
		limits.idle_s == 600);
	CHECK(limits.outstanding == OBS_OUTSTANDING_MAX && limits.priority == 1);
	allow = (struct obt_allow){ .value = { [OBT_ALLOW_MEMORY] = 50 * MIB,
					    [OBT_ALLOW_HOST_MEMORY] = 4 * MIB,
					    [OBT_ALLOW_HANDLES] = 3,
					    [OBT_ALLOW_MODULES] = 2,
					    [OBT_ALLOW_LANES] = 1,
					    [OBT_ALLOW_IDLE] = 5,
					    [OBT_ALLOW_SHARE] = 100000,
					    [OBT_ALLOW_PRIORITY] = 1,
					    [OBT_ALLOW_OUTSTANDING] = 8 * MIB } };
	obs_limits_allow(&limits, &allow);
	CHECK(limits.memory == 50 * MIB && limits.host_memory == 4 * MIB && limits.handles == 3 &&
		limits.modules == 2 && limits.lanes == 1);
	CHECK(limits.idle_s == 5 && limits.share == 100000 && limits.priority == 0 &&
		limits.outstanding == 8 * MIB);
}

TEST(a_client_may_ask_for_less_only)
{
	struct obs_limits limits = { .memory = 100 * MIB, .share = 500000, .priority = 1 };
	struct obp_hello hello = {
		.want_memory = 200 * MIB, .want_share = OBP_SHARE_ALL, .want_priority = 3
	};

	obs_limits_lower(&limits, &hello);
	CHECK(limits.memory == 100 * MIB && limits.share == 500000 && limits.priority == 1);
	hello = (struct obp_hello){
		.want_memory = 50 * MIB, .want_share = 100000, .want_priority = 1
	};
	obs_limits_lower(&limits, &hello);
	CHECK(limits.memory == 50 * MIB && limits.share == 100000 && limits.priority == 0);
	limits = (struct obs_limits){ .share = OBP_SHARE_ALL, .priority = 2 };
	hello = (struct obp_hello){ .want_memory = 50 * MIB };
	obs_limits_lower(&limits, &hello);
	CHECK(limits.memory == 50 * MIB && limits.share == OBP_SHARE_ALL && limits.priority == 1);
}

#define NAMES 600

TEST(the_ledger_agrees_with_a_plain_list)
{
	struct obs_ledger ledger = { .count = 0 };
	static struct obs_entry list[3][NAMES];
	uint64_t seed = 1;
	uint32_t count = 0;

	for (int round = 0; round < 200000; round++) {
		struct obs_entry entry, old;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		entry = (struct obs_entry){ .name = (seed >> 33) % NAMES,
			.kind = 1 + (seed >> 20) % 3,
			.bytes = (uint64_t)round,
			.device = 1 };
		struct obs_entry *known = &list[entry.kind - 1][entry.name];
		/* Handles like those of a driver: far apart, with equal low bits. */
		uint64_t index = entry.name;
		entry.name <<= 21;
		if (seed >> 60 & 1) {
			CHECK(obs_ledger_put(&ledger, &entry, &old));
			CHECK_INT(old.kind, known->kind);
			CHECK(old.kind == OBS_CHARGE_NONE || old.bytes == known->bytes);
			count += known->kind == OBS_CHARGE_NONE;
			*known = entry;
		} else {
			bool there = known->kind != OBS_CHARGE_NONE;

			CHECK_INT(obs_ledger_take(&ledger, entry.kind, entry.name, &old), there);
			CHECK(!there || (old.bytes == known->bytes && old.name == index << 21));
			count -= there;
			known->kind = OBS_CHARGE_NONE;
		}
		CHECK_INT(ledger.count, count);
	}
	obs_ledger_fini(&ledger);
}

/* ---- the layer, around a driver that returns numbers ---- */

static uint64_t given, last_address = 1 << 20;
static size_t heap_limit;

static CUresult fake_alloc(CUdeviceptr *addr, size_t bytes)
{
	given += bytes;
	*addr = last_address += 1ull << 30;
	return CUDA_SUCCESS;
}

static CUresult fake_pitch(
	CUdeviceptr *addr, size_t *pitch, size_t width, size_t height, unsigned element)
{
	(void)element;
	*pitch = ob_round_up(width, 256);
	return fake_alloc(addr, *pitch * height);
}

static CUresult fake_async(CUdeviceptr *addr, size_t bytes, CUstream stream)
{
	(void)stream;
	return fake_alloc(addr, bytes);
}

static CUresult fake_pool(CUdeviceptr *addr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	(void)pool;
	(void)stream;
	return fake_alloc(addr, bytes);
}

static CUresult fake_create(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUdeviceptr addr;

	(void)prop;
	(void)flags;
	fake_alloc(&addr, bytes);
	*handle = addr;
	return CUDA_SUCCESS;
}

static CUresult fake_free(CUdeviceptr addr)
{
	(void)addr;
	return CUDA_SUCCESS;
}

static CUresult fake_map(CUdeviceptr addr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	(void)addr;
	(void)size;
	(void)offset;
	(void)handle;
	(void)flags;
	return CUDA_SUCCESS;
}

static CUresult fake_unmap(CUdeviceptr addr, size_t size)
{
	(void)addr;
	(void)size;
	return CUDA_SUCCESS;
}

static CUresult fake_free_async(CUdeviceptr addr, CUstream stream)
{
	(void)addr;
	(void)stream;
	return CUDA_SUCCESS;
}

static CUresult fake_host_alloc(void **host, size_t bytes, unsigned flags)
{
	static char memory[1];

	(void)bytes;
	(void)flags;
	*host = memory;
	return CUDA_SUCCESS;
}

static CUresult fake_host_free(void *host)
{
	(void)host;
	return CUDA_SUCCESS;
}

static CUresult fake_limit(CUlimit limit, size_t value)
{
	(void)limit;
	heap_limit = value;
	return CUDA_SUCCESS;
}

static CUresult fake_device(CUdevice *ret)
{
	*ret = 1;
	return CUDA_SUCCESS;
}

static CUresult fake_info(size_t *left, size_t *total)
{
	*left = *total = 1000 * MIB;
	return CUDA_SUCCESS;
}

static struct obs_driver layered(void)
{
	struct obs_driver table = { .cuMemAlloc_v2 = fake_alloc,
		.cuMemAllocPitch_v2 = fake_pitch,
		.cuMemAllocAsync = fake_async,
		.cuMemAllocFromPoolAsync = fake_pool,
		.cuMemCreate = fake_create,
		.cuMemRelease = fake_free,
		.cuMemMap = fake_map,
		.cuMemUnmap = fake_unmap,
		.cuMemFree_v2 = fake_free,
		.cuMemFreeAsync = fake_free_async,
		.cuMemHostAlloc = fake_host_alloc,
		.cuMemFreeHost = fake_host_free,
		.cuCtxSetLimit = fake_limit,
		.cuCtxGetDevice = fake_device,
		.cuMemGetInfo_v2 = fake_info };

	obs_limits_now = obs_limits_default;
	obs_limits_now.memory = obs_limits_now.host_memory = 100 * MIB;
	obs_quota_wrap(&table);
	return table;
}

TEST(every_way_of_taking_memory_counts_and_gives_back)
{
	struct obs_driver t = layered();
	const CUmemAllocationProp prop = { .location = {
						   .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 } };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr a, b, c, d, over;
	size_t pitch, left, total;

	CHECK_INT(t.cuMemAlloc_v2(&a, 20 * MIB), CUDA_SUCCESS);
	CHECK_INT(t.cuMemAllocPitch_v2(&b, &pitch, 300, 10, 4), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 20 * MIB + 512 * 10);
	CHECK_INT(t.cuMemFree_v2(b), CUDA_SUCCESS);
	CHECK_INT(t.cuMemAllocAsync(&c, 20 * MIB, NULL), CUDA_SUCCESS);
	CHECK_INT(t.cuMemAllocFromPoolAsync(&d, 20 * MIB, NULL, NULL), CUDA_SUCCESS);
	CHECK_INT(t.cuMemCreate(&handle, 40 * MIB, &prop, 0), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 100 * MIB);
	CHECK_INT(t.cuMemGetInfo_v2(&left, &total), CUDA_SUCCESS);
	CHECK(left == 0 && total == 100 * MIB);
	given = 0;
	CHECK_INT(t.cuMemAlloc_v2(&over, 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(t.cuMemAllocPitch_v2(&over, &pitch, 1, 1, 4), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(t.cuMemAllocAsync(&over, 1, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(t.cuMemAllocFromPoolAsync(&over, 1, NULL, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(t.cuMemCreate(&handle, 1, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(t.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(given, 0);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->refusals), 6);
	CHECK_INT(t.cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_INT(t.cuMemFreeAsync(c, NULL), CUDA_SUCCESS);
	CHECK_INT(t.cuMemFree_v2(d), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 40 * MIB);
	CHECK_INT(t.cuMemFree_v2(a), CUDA_SUCCESS); /* again: nothing is credited twice */
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 40 * MIB);
	CHECK_INT(t.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 50 * MIB), CUDA_SUCCESS);
	/* replaces the old charge, does not add to it */
	CHECK_INT(t.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 60 * MIB), CUDA_SUCCESS);
	CHECK_INT(t.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 61 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(heap_limit, 60 * MIB);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 100 * MIB);
	CHECK_INT(t.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 10 * MIB), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 50 * MIB);
	CHECK_INT(t.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 30), CUDA_SUCCESS);
}

/* Memory stays charged when a client releases the handle and keeps the mapping. */
TEST(a_reservation_is_charged_too)
{
	static struct obs_reservation_page all;
	struct obs_driver t;
	CUdeviceptr a, b;
	size_t left, total;

	obs_limits_now = obs_limits_default;
	obs_reservation_page = &all;
	t = layered();
	atomic_store(&all.used[1], 30 * MIB); /* another process of the reservation */
	obs_quota_reserve(80 * MIB);
	CHECK_INT(obs_limits_now.memory, 80 * MIB);
	CHECK_INT(t.cuMemGetInfo_v2(&left, &total), CUDA_SUCCESS);
	CHECK(left == 50 * MIB && total == 80 * MIB);
	CHECK_INT(t.cuMemAlloc_v2(&a, 50 * MIB + 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(t.cuMemAlloc_v2(&a, 50 * MIB), CUDA_SUCCESS);
	CHECK_INT(atomic_load(&all.used[1]), 80 * MIB);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 50 * MIB);
	CHECK(!obs_quota_room(1, 1) && obs_quota_room(0, 80 * MIB));
	CHECK_INT(t.cuMemAlloc_v2(&b, 1), CUDA_ERROR_OUT_OF_MEMORY);
	atomic_fetch_sub(&all.used[1], 30 * MIB);
	CHECK_INT(t.cuMemAlloc_v2(&b, 30 * MIB), CUDA_SUCCESS);
	/* The session's own cap: what the reservation was charged is given back. */
	atomic_store(&all.used[1], 0);
	CHECK_INT(t.cuMemAlloc_v2(&b, 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(atomic_load(&all.used[1]), 0);
	atomic_store(&all.used[1], 80 * MIB);
	CHECK_INT(t.cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_INT(atomic_load(&all.used[1]), 30 * MIB);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 30 * MIB);
}

TEST(mapped_memory_counts_until_it_is_unmapped)
{
	struct obs_driver t = layered();
	const CUmemAllocationProp prop = { .location = {
						   .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 } };
	CUmemGenericAllocationHandle a, b;

	CHECK_INT(t.cuMemCreate(&a, 40 * MIB, &prop, 0), CUDA_SUCCESS);
	CHECK_INT(t.cuMemCreate(&b, 20 * MIB, &prop, 0), CUDA_SUCCESS);
	CHECK_INT(t.cuMemMap(1 * MIB, 20 * MIB, 0, a, 0), CUDA_SUCCESS);
	CHECK_INT(t.cuMemMap(21 * MIB, 20 * MIB, 20 * MIB, a, 0), CUDA_SUCCESS);
	CHECK_INT(t.cuMemMap(41 * MIB, 20 * MIB, 0, b, 0), CUDA_SUCCESS);
	CHECK_INT(t.cuMemRelease(a), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 60 * MIB);
	CHECK_INT(t.cuMemUnmap(1 * MIB, 20 * MIB), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 60 * MIB);
	/* two mappings in one call; the second memory still has its handle */
	CHECK_INT(t.cuMemUnmap(21 * MIB, 40 * MIB), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 20 * MIB);
	CHECK_INT(t.cuMemRelease(b), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->used[1]), 0);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->host_used), 0);
}

/* Mapping needs an entry in the ledger; if it cannot be added, the memory is unmapped again. */
TEST(mappings_count_as_host_memory)
{
	struct obs_driver t = layered();
	uint64_t n = 0;

	obs_limits_now.host_memory = MIB;
	while (t.cuMemMap(n * MIB, MIB, 0, 5, 0) == CUDA_SUCCESS)
		n++;
	CHECK_INT(n, MIB / OBS_ALLOCATION_BYTES);
	CHECK_INT(t.cuMemUnmap(0, n * MIB), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->host_used), 0);
}

TEST(page_locked_memory_counts_as_host_memory)
{
	struct obs_driver t = layered();
	const uint64_t rest = MIB - 2 * OBS_ALLOCATION_BYTES;
	CUdeviceptr a;
	void *host, *host2;

	CHECK_INT(t.cuMemHostAlloc(&host, 99 * MIB, 0), CUDA_SUCCESS);
	CHECK_INT(t.cuMemAlloc_v2(&a, 100 * MIB), CUDA_SUCCESS); /* the device: another limit */
	CHECK_INT(obs_stats_page_read(&obs_stats_page->host[OBS_HOLD_PINNED]), 99 * MIB);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->host[OBS_HOLD_HANDLES]),
		2 * OBS_ALLOCATION_BYTES);
	CHECK(obs_hold_room(rest) && !obs_hold_room(rest + 1));
	given = 0;
	CHECK_INT(t.cuMemHostAlloc(&host2, rest + 1, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(given, 0);
	CHECK_INT(t.cuMemFreeHost(host), CUDA_SUCCESS);
	CHECK_INT(t.cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->host_used), 0);
	CHECK_INT(t.cuMemHostAlloc(&host, 1, 0), CUDA_SUCCESS);
}

TEST(a_purpose_takes_up_to_the_limit_and_not_a_byte_more)
{
	layered();
	CHECK(obs_hold_take(OBS_HOLD_IMAGES, 60 * MIB) && obs_hold_take(OBS_HOLD_DEVICE, 40 * MIB));
	CHECK(!obs_hold_take(OBS_HOLD_IMAGES, 1) && !obs_hold_room(1) && obs_hold_room(0));
	CHECK(!obs_hold_take(OBS_HOLD_IMAGES, UINT64_MAX));
	CHECK_INT(obs_stats_page_read(&obs_stats_page->host[OBS_HOLD_IMAGES]), 60 * MIB);
	obs_hold_add(OBS_HOLD_HANDLES, 5); /* above the limit: bounded elsewhere */
	CHECK(!obs_hold_take(OBS_HOLD_IMAGES, 0) && !obs_hold_room(0));
	obs_hold_give(OBS_HOLD_DEVICE, 40 * MIB);
	CHECK(obs_hold_room(40 * MIB - 5) && !obs_hold_room(40 * MIB - 4));
	obs_limits_now.host_memory = 0; /* no limit */
	CHECK(obs_hold_take(OBS_HOLD_IMAGES, 1ull << 50));
	CHECK_INT(obs_quota_host(OBS_HOLD_IMAGES, 1), CUDA_SUCCESS);
	obs_limits_now.host_memory = 100 * MIB;
	CHECK_INT(obs_quota_host(OBS_HOLD_IMAGES, 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(obs_stats_page_read(&obs_stats_page->refusals), 1);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
