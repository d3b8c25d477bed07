/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The states of shadows, with a device and page rights that are arrays. What the program reads must
 * always be what was written last, by the program or by the device.
 */
#include "client-shim/cuda/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

#define BASE  0x200000000000ull
#define PAGE  OBC_SHADOW_PAGE
#define PAGES 1024u

static struct {
	uint8_t alias[PAGES * PAGE], device[PAGES * PAGE];
	uint8_t rights[PAGES]; /* enum obc_shadow_access */
	bool touched[PAGES];
	unsigned protects, uploads, fetches;
	uint64_t fetched, uploaded; /* bytes */
	bool refuse;                /* protect fails */
	CUresult fetch_result, upload_result;
} sys;

static struct obc_shadow shadow;

static bool protect(
	struct obc_shadow *s, uint64_t addr, uint64_t size, enum obc_shadow_access access)
{
	CHECK(addr % PAGE == 0 && size % PAGE == 0 && size > 0);
	CHECK(addr >= s->base && addr + size <= s->base + s->size);
	sys.protects++;
	if (sys.refuse)
		return false;
	memset(sys.rights + (addr - BASE) / PAGE, (int)access, size / PAGE);
	return true;
}

static CUresult upload(struct obc_shadow *s, uint64_t addr, uint64_t size)
{
	CHECK(addr >= s->base && addr + size <= s->base + s->size);
	/* No write of the program may come between. */
	for (uint64_t at = addr; at < addr + size; at += PAGE)
		CHECK(sys.rights[(at - BASE) / PAGE] != OBC_SHADOW_WRITE);
	sys.uploads++;
	sys.uploaded += size;
	if (sys.upload_result == CUDA_SUCCESS)
		memcpy(sys.device + (addr - BASE), sys.alias + (addr - BASE), size);
	return sys.upload_result;
}

static CUresult fetch(struct obc_shadow *s, uint64_t addr, uint64_t size)
{
	CHECK(addr >= s->base && addr + size <= s->base + s->size);
	/* The program must not see half of the bytes. */
	for (uint64_t at = addr; at < addr + size; at += PAGE)
		CHECK_INT(sys.rights[(at - BASE) / PAGE], OBC_SHADOW_NONE);
	sys.fetches++;
	sys.fetched += size;
	if (sys.fetch_result == CUDA_SUCCESS)
		memcpy(sys.alias + (addr - BASE), sys.device + (addr - BASE), size);
	return sys.fetch_result;
}

static bool touched(struct obc_shadow *s, uint64_t offset, uint64_t size, uint64_t *ret_offset,
	uint64_t *ret_size)
{
	uint64_t page = offset / PAGE, end = (offset + size) / PAGE;

	(void)s;
	while (page < end && !sys.touched[page])
		page++;
	*ret_offset = page * PAGE;
	while (page < end && sys.touched[page])
		page++;
	*ret_size = page * PAGE - *ret_offset;
	return *ret_size > 0;
}

static const struct obc_shadow_ops ops = { protect, upload, fetch, touched };

static void begin(unsigned pages)
{
	memset(&sys, 0, sizeof sys);
	memset(sys.rights, OBC_SHADOW_WRITE, sizeof sys.rights);
	CHECK(obc_shadow_init(&shadow, BASE, (uint64_t)pages * PAGE, sys.alias, &ops));
}

/* What the processor and the handler do. */
static uint8_t load(uint64_t offset)
{
	if (sys.rights[offset / PAGE] == OBC_SHADOW_NONE)
		CHECK_INT(obc_shadow_touch(&shadow, BASE + offset, false), CUDA_SUCCESS);
	CHECK(sys.rights[offset / PAGE] != OBC_SHADOW_NONE);
	sys.touched[offset / PAGE] = true;
	return sys.alias[offset];
}

static void store(uint64_t offset, uint8_t value)
{
	if (sys.rights[offset / PAGE] != OBC_SHADOW_WRITE)
		CHECK_INT(obc_shadow_touch(&shadow, BASE + offset, true), CUDA_SUCCESS);
	CHECK_INT(sys.rights[offset / PAGE], OBC_SHADOW_WRITE);
	sys.touched[offset / PAGE] = true;
	sys.alias[offset] = value;
}

static void give_all(void)
{
	CHECK_INT(obc_shadow_give(&shadow, shadow.base, shadow.size, true), CUDA_SUCCESS);
	CHECK(shadow.n_host == 0);
}

TEST(only_touched_pages_are_uploaded)
{
	begin(256);
	store(5, 1);
	store(100 * PAGE + 7, 2);
	store(101 * PAGE, 3);
	give_all();
	CHECK_INT(sys.uploads, 2);
	CHECK_INT(sys.uploaded, 3 * PAGE);
	CHECK(sys.device[5] == 1 && sys.device[100 * PAGE + 7] == 2 && sys.device[101 * PAGE] == 3);
	CHECK_INT(sys.protects, 1);
	obc_shadow_fini(&shadow);
}

TEST(nothing_is_done_twice)
{
	begin(16);
	store(0, 1);
	give_all();
	sys.protects = sys.uploads = 0;
	give_all();
	CHECK(sys.protects == 0 && sys.uploads == 0);
	CHECK(load(PAGE) == 0);
	CHECK_INT(sys.fetches, 1);
	CHECK(load(PAGE + 1) == 0);
	CHECK_INT(sys.fetches, 1);
	give_all();
	CHECK_INT(sys.uploads, 0); /* it was only read */
	obc_shadow_fini(&shadow);
}

TEST(a_read_of_the_device_leaves_the_bytes_readable)
{
	begin(16);
	store(3 * PAGE, 9);
	CHECK_INT(obc_shadow_give(&shadow, BASE + 3 * PAGE, 1, false), CUDA_SUCCESS);
	CHECK(sys.device[3 * PAGE] == 9);
	CHECK_INT(sys.rights[3], OBC_SHADOW_READ);
	CHECK_INT(sys.rights[4], OBC_SHADOW_WRITE); /* not in the range */
	CHECK(load(3 * PAGE) == 9 && sys.fetches == 0);
	store(3 * PAGE, 10);
	give_all();
	CHECK(sys.device[3 * PAGE] == 10);
	obc_shadow_fini(&shadow);
}

TEST(a_partial_write_of_the_device_keeps_the_rest)
{
	begin(PAGES);
	CHECK(shadow.block > PAGE);
	store(0, 1);
	store(shadow.block - 1, 2);
	CHECK_INT(obc_shadow_give(&shadow, BASE + 100, 10, true), CUDA_SUCCESS);
	memset(sys.device + 100, 7, 10);
	CHECK(load(0) == 1 && load(shadow.block - 1) == 2 && load(100) == 7 && load(109) == 7);
	CHECK_INT(sys.fetches, 1);
	obc_shadow_fini(&shadow);
}

TEST(sequential_reads_fetch_ahead)
{
	begin(PAGES);
	give_all();
	for (uint64_t at = 0; at < shadow.size; at += PAGE)
		load(at);
	/* 1, 2, 4 ... blocks: far fewer fetches than blocks */
	CHECK(shadow.n_blocks >= 16 && sys.fetches <= 8);
	CHECK_INT(sys.fetched, shadow.size);
	give_all();
	sys.fetches = 0;
	sys.fetched = 0;
	for (uint64_t at = shadow.size; at > 0; at -= 4 * shadow.block)
		load(at - 1);
	CHECK_INT(sys.fetched, sys.fetches * shadow.block);
	obc_shadow_fini(&shadow);
}

TEST(errors_leave_the_last_bytes)
{
	begin(16);
	store(0, 5);
	give_all();
	sys.device[0] = 6;
	sys.fetch_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	CHECK_INT(obc_shadow_touch(&shadow, BASE, false), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(sys.rights[0], OBC_SHADOW_READ);
	CHECK_INT(sys.alias[0], 5);
	obc_shadow_fini(&shadow);

	begin(16);
	store(0, 5);
	sys.upload_result = CUDA_ERROR_UNKNOWN;
	CHECK_INT(obc_shadow_give(&shadow, BASE, shadow.size, true), CUDA_ERROR_UNKNOWN);
	sys.upload_result = CUDA_SUCCESS;
	give_all();
	CHECK_INT(sys.device[0], 5); /* nothing was lost */
	obc_shadow_fini(&shadow);

	begin(16);
	store(0, 5);
	sys.refuse = true;
	CHECK_INT(obc_shadow_give(&shadow, BASE, shadow.size, true), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(shadow.n_host == shadow.n_blocks && sys.uploads == 0);
	sys.refuse = false;
	give_all();
	CHECK_INT(sys.device[0], 5);
	obc_shadow_fini(&shadow);
}

/* Sizes that are no multiple of a block. */
TEST(short_last_block)
{
	const unsigned pages[] = { 1, 2, 17, 33, 100, 257, 1023 };

	for (unsigned i = 0; i < sizeof pages / sizeof pages[0]; i++) {
		begin(pages[i]);
		CHECK(shadow.block >= PAGE && shadow.block <= OBC_SHADOW_BLOCK);
		store(shadow.size - 1, 4);
		give_all();
		CHECK_INT(sys.device[shadow.size - 1], 4);
		CHECK(load(shadow.size - 1) == 4);
		CHECK_INT(obc_shadow_fetch(&shadow, BASE - PAGE, 2 * shadow.size + PAGE),
			CUDA_SUCCESS);
		CHECK(shadow.n_host == shadow.n_blocks);
		obc_shadow_fini(&shadow);
	}
}

/* The program and the device take turns at random; `want` is what must be there. */
TEST(random_turns)
{
	static uint8_t want[PAGES * PAGE];

	srand(1);
	for (int round = 0; round < 30; round++) {
		unsigned pages = 1 + (unsigned)rand() % PAGES;

		begin(pages);
		memset(want, 0, sizeof want);
		for (int turn = 0; turn < 200; turn++) {
			uint64_t at = (uint64_t)rand() % shadow.size,
				 size = 1 + (uint64_t)rand() % (shadow.size - at);
			uint8_t value = (uint8_t)rand();

			switch (rand() % 6) {
			case 0:
				CHECK_INT(obc_shadow_give(&shadow, BASE + at, size, true),
					CUDA_SUCCESS);
				memset(sys.device + at, value, size);
				memset(want + at, value, size);
				break;
			case 1:
				CHECK_INT(obc_shadow_give(&shadow, BASE + at, size, false),
					CUDA_SUCCESS);
				CHECK(memcmp(sys.device + at, want + at, size) == 0);
				break;
			case 2:
				CHECK_INT(obc_shadow_fetch(&shadow, BASE + at, size), CUDA_SUCCESS);
				break;
			case 3:
				give_all();
				CHECK(memcmp(sys.device, want, shadow.size) == 0);
				break;
			case 4:
				store(at, value);
				want[at] = value;
				break;
			default:
				CHECK_INT(load(at), want[at]);
			}
		}
		for (uint64_t at = 0; at < shadow.size; at += 997)
			CHECK_INT(load(at), want[at]);
		obc_shadow_fini(&shadow);
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
