/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Unit tests of the server's objects: handle tables, memory mapped into a range, options. */
#include "server/worker/handles.h"
#include "server/worker/memory.h"
#include "server/common/options.h"
#include "protocol/obs_driver.h"
#include "tests/test.h"

/* ---- handles ---- */

static struct obs_handles handles;

TEST(handles_are_found_by_their_whole_id)
{
	struct obs_handle value = { .driver = &value, .extra = 5 }, out;
	uint64_t id = 0x0100000200000003ull;

	CHECK(!obs_handles_find(&handles, id));
	CHECK(obs_handles_vacant(&handles, id));
	CHECK(obs_handles_put(&handles, id, &value));
	CHECK(!obs_handles_vacant(&handles, id) &&
		!obs_handles_vacant(&handles, id + (1ull << 32)));
	CHECK(obs_handles_vacant(&handles, id + 1));
	CHECK(obs_handles_find(&handles, id)->extra == 5);
	CHECK(!obs_handles_find(&handles, id + (1ull << 32)));
	CHECK(!obs_handles_find(&handles, id ^ (1ull << 56)));
	CHECK(!obs_handles_find(&handles, id + 1));
	CHECK(!obs_handles_put(&handles, id, &value));
	CHECK(!obs_handles_put(&handles, id + (1ull << 32), &value));
	CHECK(obs_handles_remove(&handles, id, &out));
	CHECK(out.driver == &value);
	CHECK(!obs_handles_remove(&handles, id, &out));
	CHECK(obs_handles_put(&handles, id + (1ull << 32), &value));
	CHECK(!obs_handles_find(&handles, id));
	obs_handles_fini(&handles);
}

TEST(handles_have_a_maximum)
{
	struct obs_handle value = { 0 };

	CHECK(!obs_handles_put(&handles, 0, &value));
	CHECK(!obs_handles_put(&handles, OBS_HANDLES_MAX, &value));
	CHECK(!obs_handles_put(&handles, UINT32_MAX, &value));
	CHECK(!obs_handles_vacant(&handles, 0) && !obs_handles_vacant(&handles, OBS_HANDLES_MAX));
	CHECK(obs_handles_vacant(&handles, OBS_HANDLES_MAX - 1));
	CHECK(obs_handles_put(&handles, OBS_HANDLES_MAX - 1, &value));
	CHECK(!obs_handles_find(&handles, OBS_HANDLES_MAX));
	obs_handles_fini(&handles);
}

static void remove_odd(void *user, struct obs_handle *handle)
{
	int *seen = user;

	(*seen)++;
	if (handle->extra % 2)
		obs_handles_remove(&handles, handle->id, NULL);
}

TEST(handles_can_be_removed_while_visited)
{
	int seen = 0;

	for (uint64_t i = 1; i <= 3000; i++) {
		struct obs_handle value = { .extra = i };

		CHECK(obs_handles_put(&handles, i, &value));
	}
	obs_handles_each(&handles, remove_odd, &seen);
	CHECK_INT(seen, 3000);
	CHECK_INT(handles.n_live, 1500);
	CHECK(!obs_handles_find(&handles, 1) && obs_handles_find(&handles, 2));
	obs_handles_fini(&handles);
}

/* ---- memory ---- */

#define MIB  (1ull << 20)
#define BASE 0x200000000000ull

/* A driver that counts pages, for comparison with the object's counts. */
static struct {
	uint64_t free_bytes, refuse_base;
	uint64_t handle_size[4096];
	unsigned handles, live;
	uint8_t mapped[4096];  /* by 2 MiB page from BASE */
	uint8_t readers[4096]; /* likewise: the devices with access, a bit each */
} fake;

static CUresult reserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	(void)size;
	(void)alignment;
	(void)flags;
	*ptr = addr && addr != fake.refuse_base ? addr : BASE;
	return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr ptr, size_t size)
{
	(void)ptr;
	(void)size;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	(void)prop;
	(void)flags;
	CHECK(size % (2 * MIB) == 0);
	if (size > fake.free_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fake.free_bytes -= size;
	fake.live++;
	fake.handle_size[++fake.handles] = size;
	*handle = fake.handles;
	return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	fake.free_bytes += fake.handle_size[handle];
	fake.live--;
	return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	(void)flags;
	CHECK(offset == 0 && fake.handle_size[handle] == size);
	for (uint64_t at = (ptr - BASE) / (2 * MIB); at < (ptr + size - BASE) / (2 * MIB); at++) {
		CHECK(!fake.mapped[at]);
		fake.mapped[at] = 1;
	}
	return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr ptr, size_t size)
{
	for (uint64_t at = (ptr - BASE) / (2 * MIB); at < (ptr + size - BASE) / (2 * MIB); at++) {
		CHECK(fake.mapped[at]);
		fake.mapped[at] = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult access_set(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CHECK(count == 1 && desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
		desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	for (uint64_t at = (ptr - BASE) / (2 * MIB); at < (ptr + size - BASE) / (2 * MIB); at++) {
		CHECK(fake.mapped[at]);
		fake.readers[at] |= (uint8_t)(1u << desc->location.id);
	}
	return CUDA_SUCCESS;
}

static struct obs_driver driver;
static struct obs_memory memory;

static void memory_begin(uint64_t free_bytes, uint32_t n_devices)
{
	const struct obp_range ranges[] = { { BASE - (1ull << 40), 4096 * 2 * MIB },
		{ BASE, 4096 * 2 * MIB } };
	bool ok = false;

	driver.cuMemAddressReserve = reserve;
	driver.cuMemAddressFree = unreserve;
	driver.cuMemCreate = create;
	driver.cuMemRelease = release;
	driver.cuMemMap = map;
	driver.cuMemUnmap = unmap;
	driver.cuMemSetAccess = access_set;
	fake.free_bytes = free_bytes;
	fake.refuse_base = ranges[0].base;
	obs_memory_init(&memory, &driver, n_devices, true);
	CHECK(obs_memory_choose(&memory, ranges, 2, &ok));
	CHECK(ok && memory.range.base == BASE);
}

/* The devices that can access the memory at an offset of the range, a bit each. */
static unsigned readers_at(uint64_t offset)
{
	return fake.readers[offset / (2 * MIB)];
}

TEST(a_peer_gets_access_to_all_of_a_slice)
{
	uint64_t each;

	memory_begin(8192 * MIB, 3);
	each = memory.slices[1].base - BASE;
	CHECK_INT(obs_memory_grow(&memory, 0, BASE, 10 * MIB), 0);
	CHECK_INT(obs_memory_grow(&memory, 1, BASE + each, 200 * MIB), 0);
	CHECK(readers_at(each) == 1u << 1);
	CHECK_INT(obs_memory_share(&memory, 1, 2), 0);
	CHECK(readers_at(each) == (1u << 1 | 1u << 2));
	CHECK(readers_at(each + 198 * MIB) == (1u << 1 | 1u << 2));
	CHECK(readers_at(0) == 1u << 0);
	/* What is mapped later, too. */
	CHECK_INT(obs_memory_grow(&memory, 1, BASE + each + 400 * MIB, 2 * MIB), 0);
	CHECK(readers_at(each + 400 * MIB) == (1u << 1 | 1u << 2));
	CHECK_INT(obs_memory_grow(&memory, 2, BASE + 2 * each, 2 * MIB), 0);
	CHECK(readers_at(2 * each) == 1u << 2);
	CHECK_INT(obs_memory_share(&memory, 1, 2), 0);
	CHECK_INT(obs_memory_share(&memory, 1, 1), 0);
}

TEST(growing_fills_holes_only)
{
	memory_begin(8192 * MIB, 1);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE + 10 * MIB, 1), 0);
	CHECK_INT(8192 * MIB - fake.free_bytes, 2 * MIB);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE, 300 * MIB), 0);
	CHECK_INT(8192 * MIB - fake.free_bytes, 300 * MIB);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE + 5 * MIB, 200 * MIB), 0);
	CHECK_INT(8192 * MIB - fake.free_bytes, 300 * MIB);
}

TEST(growing_is_all_or_nothing)
{
	memory_begin(200 * MIB, 1);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE + 100 * MIB, 50 * MIB), 0);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE, 400 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(fake.free_bytes, 150 * MIB);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE, 100 * MIB), 0);
}

TEST(trimming_gives_back_whole_chunks)
{
	memory_begin(8192 * MIB, 1);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE, 128 * MIB), 0);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE + 128 * MIB, 30 * MIB), 0);
	CHECK_INT(obs_memory_trim(&memory, BASE + 100 * MIB, 58 * MIB), 0);
	CHECK_INT(8192 * MIB - fake.free_bytes, 128 * MIB);
	CHECK_INT(obs_memory_trim(&memory, BASE, 128 * MIB), 0);
	CHECK_INT(fake.live, 0);
	CHECK_INT(obs_memory_trim(&memory, BASE, 8192 * MIB), 0);
	CHECK_INT(obs_memory_trim(&memory, BASE - 1, 2), CUDA_ERROR_INVALID_VALUE);
}

/* A client gives back whole units, counted from the end of its grant, whatever it asked for. */
TEST(trimming_gives_back_whole_units)
{
	memory_begin(64 * MIB, 1);
	obs_memory_set_total(&memory, 0, 64 * MIB);
	CHECK_INT(obs_memory_grant(&memory, 0, 6 * MIB), 6 * MIB);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE + 6 * MIB, 10 * MIB), 0);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE + 16 * MIB, 30 * MIB), 0);
	CHECK_INT(obs_memory_trim(&memory, BASE + 14 * MIB, 16 * MIB), 0);
	CHECK_INT(fake.free_bytes, 34 * MIB);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE + 14 * MIB, 16 * MIB), 0);
	CHECK_INT(fake.free_bytes, 18 * MIB);
}

/* Random requests; the driver's checks above see any double mapping. */
TEST(many_requests_keep_the_books)
{
	memory_begin(2048 * MIB, 1);
	srand(7);
	for (int i = 0; i < 2000; i++) {
		uint64_t addr = BASE + (uint64_t)(rand() % 4000) * 2 * MIB,
			 size = (uint64_t)(rand() % 90 + 1) * 2 * MIB;

		if (addr + size > BASE + 4096 * 2 * MIB)
			continue;
		if (rand() % 2)
			obs_memory_trim(&memory, addr, size);
		else if (obs_memory_grow(&memory, 0, addr, size) == CUDA_SUCCESS)
			for (uint64_t at = (addr - BASE) / (2 * MIB);
				at < (addr + size - BASE) / (2 * MIB); at++)
				CHECK(fake.mapped[at]);
		if (fake.handles > 4000)
			break;
	}
	CHECK_INT(obs_memory_trim(&memory, BASE, 4096 * 2 * MIB), 0);
	CHECK_INT(fake.live, 0);
	CHECK_INT(fake.free_bytes, 2048 * MIB);
}

TEST(a_grant_shrinks_to_what_there_is)
{
	memory_begin(70 * MIB, 1);
	CHECK_INT(obs_memory_grant(&memory, 0, 256 * MIB), 64 * MIB);
}

TEST(devices_have_their_own_slices)
{
	memory_begin(8192 * MIB, 4);
	CHECK_INT(obs_memory_device(&memory, BASE), 0);
	CHECK_INT(obs_memory_device(&memory, BASE + 2 * 1024 * 2 * MIB), 2);
	CHECK_INT(obs_memory_device(&memory, BASE + 4 * 1024 * 2 * MIB), -1);
	CHECK_INT(obs_memory_grow(&memory, 1, BASE, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obs_memory_grow(&memory, 4, BASE, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE + 1024 * 2 * MIB - 2 * MIB, 4 * MIB),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obs_memory_grow(&memory, 0, BASE, UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
}

TEST(copies_stay_inside)
{
	memory_begin(8192 * MIB, 1);
	CHECK(obs_memory_check(&memory, BASE, 4096 * 2 * MIB));
	CHECK(!obs_memory_check(&memory, BASE, 4096 * 2 * MIB + 1));
	CHECK(!obs_memory_check(&memory, BASE - 1, 2));
	CHECK(!obs_memory_check(&memory, BASE, UINT64_MAX));
	CHECK(obs_memory_check(&memory, 4, 0));
	CHECK(obs_memory_extra_add(&memory, 0x7000, 100, 1));
	CHECK(obs_memory_extra_add(&memory, 0x8000, 100, 2));
	CHECK(obs_memory_check(&memory, 0x7000, 100) && obs_memory_check(&memory, 0x7063, 1));
	CHECK(!obs_memory_check(&memory, 0x7063, 2) && !obs_memory_check(&memory, 0x6fff, 1));
	CHECK(!obs_memory_extra_remove(&memory, 0x7000, 2));
	obs_memory_extra_remove_owner(&memory, 1);
	CHECK(!obs_memory_check(&memory, 0x7000, 1) && obs_memory_check(&memory, 0x8000, 1));
}

/* ---- options ---- */

static int parse(
	struct obs_options *options, const char *a, const char *b, const char *c, const char *d)
{
	const char *args[] = { "outboard-server", a, b, c, d, NULL };
	int n = 1;

	while (n < 5 && args[n])
		n++;
	CHECK(freopen("/dev/null", "w", stderr));
	return obs_options_parse(options, n, (char **)(uintptr_t)args);
}

TEST(options_are_checked)
{
	struct obs_options options;

	CHECK_INT(parse(&options, "--listen", "tcp://x:1", NULL, NULL), 0);
	CHECK_INT(options.max_sessions, OBS_SESSIONS_DEFAULT);
	CHECK_INT(options.warm, 1);
	CHECK_STR(options.driver, "auto");
	CHECK_INT(parse(&options, NULL, NULL, NULL, NULL), 2);
	CHECK_INT(parse(&options, "--listen", "tcp://x:1", "--warm", "65"), 2);
	CHECK_INT(parse(&options, "--listen", "tcp://x:1", "--warm", "64"), 0);
	CHECK_INT(parse(&options, "--listen", "tcp://x:1", "--warm", "-1"), 2);
	CHECK_INT(parse(&options, "--listen", "tcp://x:1", "--max-sessions", "0"), 2);
	CHECK_INT(parse(&options, "--listen", "tcp://x:1", "--driver", ""), 2);
	CHECK_INT(parse(&options, "--listen", "tcp://x:1", "stray", NULL), 2);
	CHECK_INT(parse(&options, "--nonsense", NULL, NULL, NULL), 2);
}

/* The defaults that --help shows are those that are in force. */
TEST(options_have_the_defaults_that_help_shows)
{
	struct obs_options options, set;
	struct ob_cause cause;
	unsigned compared = 0;

	CHECK_INT(parse(&options, "--listen", "tcp://x:1", NULL, NULL), 0);
	for (const struct ob_option *o = obs_option_table; o->name; o++) {
		set = options;
		if (!o->fallback || o->kind == OB_TEXT || o->kind == OB_FOLDER ||
			ob_option_set(o, &set, o->fallback, &cause) != OB_ERR_NONE)
			continue;
		compared++;
		CHECK(memcmp((char *)&set + o->offset, (char *)&options + o->offset, o->size) == 0);
	}
	CHECK(compared >= 18);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
