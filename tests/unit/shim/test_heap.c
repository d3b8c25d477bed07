/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_heap against a model: a server with a fixed amount of memory that checks every grow and trim.
 */
#include "client-shim/cuda/heap.h"
#include "protocol/format.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

#define BASE      0x200000000000ull
#define MIB       (1ull << 20)
#define UNIT      OBP_MEMORY_UNIT_MAX
#define PAGES_MAX 4096u

/* What a server would know: which pages of the range have memory behind them. */
struct server {
	uint64_t limit, backed; /* bytes */
	unsigned grows, trims;
	uint8_t page[PAGES_MAX];
};

static CUresult grow(void *user, uint64_t addr, uint64_t size)
{
	struct server *server = user;

	CHECK_INT(addr % OBC_HEAP_PAGE, 0);
	CHECK_INT(size % OBC_HEAP_PAGE, 0);
	CHECK(addr >= BASE && (addr - BASE + size) / OBC_HEAP_PAGE <= PAGES_MAX);
	if (server->backed + size > server->limit)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t i = 0; i < size / OBC_HEAP_PAGE; i++) {
		uint8_t *page = &server->page[(addr - BASE) / OBC_HEAP_PAGE + i];

		CHECK_INT(*page, 0);
		*page = 1;
	}
	server->backed += size;
	server->grows++;
	return CUDA_SUCCESS;
}

static void trim(void *user, uint64_t addr, uint64_t size)
{
	struct server *server = user;

	CHECK_INT(addr % OBC_HEAP_PAGE, 0);
	for (uint64_t i = 0; i < size / OBC_HEAP_PAGE; i++) {
		uint8_t *page = &server->page[(addr - BASE) / OBC_HEAP_PAGE + i];

		CHECK_INT(*page, 1);
		*page = 0;
	}
	server->backed -= size;
	server->trims++;
}

static const struct obc_heap_ops ops = { grow, trim };

static void start(struct obc_heap *heap, struct server *server, uint64_t range, uint64_t granted,
	uint64_t limit)
{
	*server = (struct server){ .limit = limit, .backed = granted };
	memset(server->page, 1, granted / OBC_HEAP_PAGE);
	CHECK(obc_heap_init(heap, BASE, range, granted, UNIT, &ops, server));
	CHECK(obc_heap_sane(heap));
}

static bool backed(const struct server *server, uint64_t addr, uint64_t size)
{
	for (uint64_t page = (addr - BASE) / OBC_HEAP_PAGE;
		page <= (addr - BASE + size - 1) / OBC_HEAP_PAGE; page++)
		if (!server->page[page])
			return false;
	return true;
}

TEST(grant_needs_no_server)
{
	struct obc_block *block[2];
	struct server server;
	struct obc_heap heap;
	uint64_t a, b;

	start(&heap, &server, 1024 * MIB, 64 * MIB, 64 * MIB);
	CHECK_INT(obc_heap_alloc(&heap, 1, &a, &block[0]), CUDA_SUCCESS);
	CHECK_INT(a, BASE);
	CHECK_INT(obc_block_size(block[0]), OBC_HEAP_ALIGN);
	CHECK_INT(obc_heap_alloc(&heap, 64 * MIB - OBC_HEAP_ALIGN, &b, &block[1]), CUDA_SUCCESS);
	CHECK_INT(b, BASE + OBC_HEAP_ALIGN);
	CHECK_INT(server.grows, 0);
	CHECK_INT(obc_heap_alloc(&heap, 1, &a, &block[0]), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(obc_heap_sane(&heap));
	obc_heap_fini(&heap);
}

TEST(exact_limit)
{
	struct obc_block *block;
	struct server server;
	struct obc_heap heap;
	uint64_t addr;

	/*
	 * what is left is less than a growth step: asked for exactly, together with the free end of
	 * the grant
	 */
	start(&heap, &server, 4096 * MIB, 16 * MIB, 100 * MIB);
	CHECK_INT(obc_heap_alloc(&heap, 100 * MIB + 1, &addr, &block), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(obc_heap_alloc(&heap, 100 * MIB, &addr, &block), CUDA_SUCCESS);
	CHECK_INT(addr, BASE);
	CHECK_INT(server.backed, 100 * MIB);
	obc_heap_free(&heap, block);
	CHECK_INT(obc_heap_free_bytes(&heap), 100 * MIB);
	/* pieces in the way: trimming the idle ones makes room for one large one elsewhere */
	CHECK_INT(obc_heap_alloc(&heap, 40 * MIB, &addr, &block), CUDA_SUCCESS);
	CHECK_INT(obc_heap_alloc(&heap, 61 * MIB, &addr, &block), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(obc_heap_alloc(&heap, 60 * MIB, &addr, &block), CUDA_SUCCESS);
	CHECK(obc_heap_sane(&heap));
	obc_heap_fini(&heap);
}

TEST(large_spans_go_back)
{
	struct obc_block *block;
	struct server server;
	struct obc_heap heap;
	uint64_t addr;

	start(&heap, &server, 8192 * MIB, 64 * MIB, 4096 * MIB);
	CHECK_INT(obc_heap_alloc(&heap, 1000 * MIB, &addr, &block), CUDA_SUCCESS);
	obc_heap_free(&heap, block);
	CHECK_INT(server.trims, 1);
	CHECK_INT(server.backed, 64 * MIB);
	CHECK(obc_heap_sane(&heap));
	CHECK_INT(obc_heap_alloc(&heap, 100 * MIB, &addr, &block), CUDA_SUCCESS);
	obc_heap_free(&heap, block);
	CHECK_INT(server.trims, 1);
	CHECK(obc_heap_trim(&heap) >= 36 * MIB);
	CHECK_INT(server.backed, 64 * MIB);
	CHECK(obc_heap_sane(&heap));
	obc_heap_fini(&heap);
}

/* Several processes share a small reservation: what one of them keeps unused is missing for others. */
TEST(a_small_device_has_a_small_unit)
{
	struct obc_block *block;
	struct server server;
	struct obc_heap heap;
	uint64_t addr;

	CHECK_INT(obp_memory_unit(0), 2 * MIB);
	CHECK_INT(obp_memory_unit(16 * MIB), 2 * MIB);
	CHECK_INT(obp_memory_unit(64 * MIB - 1), 4 * MIB);
	CHECK_INT(obp_memory_unit(64 * MIB), 8 * MIB);
	CHECK_INT(obp_memory_unit(512 * MIB - 1), 32 * MIB);
	CHECK_INT(obp_memory_unit(512 * MIB), 64 * MIB);
	CHECK_INT(obp_memory_unit(UINT64_MAX), 64 * MIB);
	start(&heap, &server, 1024 * MIB, 0, 64 * MIB);
	heap.unit = obp_memory_unit(64 * MIB);
	CHECK_INT(obc_heap_alloc(&heap, 1, &addr, &block), CUDA_SUCCESS);
	CHECK_INT(server.backed, 8 * MIB);
	CHECK_INT(obc_heap_alloc(&heap, 30 * MIB, &addr, &block), CUDA_SUCCESS);
	CHECK_INT(server.backed, 32 * MIB);
	obc_heap_free(&heap, block);
	CHECK_INT(obc_heap_trim(&heap), 24 * MIB);
	CHECK_INT(server.backed, 8 * MIB);
	CHECK(obc_heap_sane(&heap));
	obc_heap_fini(&heap);
}

TEST(refuses)
{
	struct obc_heap heap;

	CHECK(!obc_heap_init(&heap, BASE + 4096, 64 * MIB, 0, UNIT, &ops, NULL));
	obc_heap_fini(&heap);
	CHECK(!obc_heap_init(&heap, BASE, MIB, 0, UNIT, &ops, NULL));
	obc_heap_fini(&heap);
	CHECK(!(obc_heap_init(&heap, ~0ull & ~(OBC_HEAP_PAGE - 1), 4 * MIB, 0, UNIT, &ops, NULL)));
	obc_heap_fini(&heap);
}

/* Addresses for the program: nothing backs them, and the heap does not grow into them. */
TEST(reserved)
{
	struct obc_block *low, *high, *middle, *used;
	uint64_t at, addr, top = BASE + 256 * MIB;
	struct server server;
	struct obc_heap heap;

	start(&heap, &server, 256 * MIB, 64 * MIB, 256 * MIB);
	/* as high as it goes; where it is wanted; aligned */
	CHECK(obc_heap_reserve(&heap, 2 * MIB, 2 * MIB, 0, &at, &high));
	CHECK(at == top - 2 * MIB);
	CHECK(obc_heap_reserve(&heap, 4 * MIB, 2 * MIB, BASE + 100 * MIB, &at, &middle));
	CHECK(at == BASE + 100 * MIB);
	CHECK(obc_heap_reserve(&heap, 2 * MIB, 64 * MIB, BASE + 100 * MIB, &at, &low));
	CHECK(at == BASE + 192 * MIB);
	CHECK(obc_heap_sane(&heap));
	/* between granted memory and a reservation 36 MiB are left, above it 88 and 60 */
	CHECK(!obc_heap_reserve(&heap, 90 * MIB, 2 * MIB, 0, &at, &used));
	CHECK_INT(obc_heap_alloc(&heap, 100 * MIB, &addr, &used), CUDA_SUCCESS);
	CHECK(addr + 100 * MIB <= BASE + 100 * MIB);
	CHECK_INT(obc_heap_alloc(&heap, 90 * MIB, &addr, &used), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(server.page[50] == 0 && server.page[96] == 0 && server.page[127] == 0);
	/* given back they are one hole again */
	obc_heap_unreserve(&heap, middle);
	obc_heap_unreserve(&heap, high);
	obc_heap_unreserve(&heap, low);
	CHECK(obc_heap_sane(&heap));
	CHECK(obc_heap_reserve(&heap, 156 * MIB, 2 * MIB, 0, &at, &high));
	CHECK(at == BASE + 100 * MIB);
	CHECK(!obc_heap_reserve(&heap, 2 * MIB, 2 * MIB, 0, &at, &low));
	CHECK_INT(obc_heap_trim(&heap), 0);
	obc_heap_unreserve(&heap, high);
	CHECK(obc_heap_sane(&heap));
	obc_heap_fini(&heap);
}

#define LIVE_MAX 512u

struct live {
	uint64_t addr, size;
	struct obc_block *block;
};

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/*
 * Sizes of all magnitudes, random order; after each step nothing overlaps, everything in use is
 * backed, and the books agree.
 */
TEST(random)
{
	static struct live live[LIVE_MAX];
	uint64_t seed = 88172645463325252ull, refused = 0;
	struct server server;
	struct obc_heap heap;
	unsigned n = 0;

	start(&heap, &server, PAGES_MAX * OBC_HEAP_PAGE, 256 * MIB, 2048 * MIB);
	for (unsigned step = 0; step < 60000; step++) {
		if (n < LIVE_MAX && (n == 0 || next(&seed) % 100 < 55)) {
			uint64_t size = 1 + next(&seed) % (1ull << (4 + next(&seed) % 26));
			struct live *l = &live[n];
			CUresult result = obc_heap_alloc(&heap, size, &l->addr, &l->block);

			l->size = size;
			if (result == CUDA_ERROR_OUT_OF_MEMORY) {
				refused++;
				continue;
			}
			CHECK_INT(result, CUDA_SUCCESS);
			CHECK_INT(l->addr % OBC_HEAP_ALIGN, 0);
			CHECK(backed(&server, l->addr, size));
			for (unsigned i = 0; i < n; i++)
				CHECK(l->addr + size <= live[i].addr ||
					live[i].addr + live[i].size <= l->addr);
			n++;
		} else {
			unsigned i = (unsigned)(next(&seed) % n);

			CHECK(backed(&server, live[i].addr, live[i].size));
			obc_heap_free(&heap, live[i].block);
			live[i] = live[--n];
		}
		if (step % 500 == 0)
			CHECK(obc_heap_sane(&heap));
	}
	while (n)
		obc_heap_free(&heap, live[--n].block);
	CHECK(obc_heap_sane(&heap));
	CHECK_INT(heap.used_bytes, 0);
	obc_heap_trim(&heap);
	CHECK_INT(server.backed, 256 * MIB);
	CHECK_INT(obc_heap_free_bytes(&heap), 256 * MIB);
	CHECK(refused < 30000);
	obc_heap_fini(&heap);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
