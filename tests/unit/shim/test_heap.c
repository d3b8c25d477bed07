/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_heap against a model: a server with a fixed amount of memory that checks every grow and trim.
 */
#include "client-shim/cuda/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE      0x200000000000ull
#define MIB       (1ull << 20)
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

	assert_int_equal(addr % OBC_HEAP_PAGE, 0);
	assert_int_equal(size % OBC_HEAP_PAGE, 0);
	assert_true(addr >= BASE && (addr - BASE + size) / OBC_HEAP_PAGE <= PAGES_MAX);
	if (server->backed + size > server->limit)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t i = 0; i < size / OBC_HEAP_PAGE; i++) {
		uint8_t *page = &server->page[(addr - BASE) / OBC_HEAP_PAGE + i];

		assert_int_equal(*page, 0);
		*page = 1;
	}
	server->backed += size;
	server->grows++;
	return CUDA_SUCCESS;
}

static void trim(void *user, uint64_t addr, uint64_t size)
{
	struct server *server = user;

	assert_int_equal(addr % OBC_HEAP_PAGE, 0);
	for (uint64_t i = 0; i < size / OBC_HEAP_PAGE; i++) {
		uint8_t *page = &server->page[(addr - BASE) / OBC_HEAP_PAGE + i];

		assert_int_equal(*page, 1);
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
	assert_true(obc_heap_init(heap, BASE, range, granted, &ops, server));
	assert_true(obc_heap_sane(heap));
}

static bool backed(const struct server *server, uint64_t addr, uint64_t size)
{
	for (uint64_t page = (addr - BASE) / OBC_HEAP_PAGE;
		page <= (addr - BASE + size - 1) / OBC_HEAP_PAGE; page++)
		if (!server->page[page])
			return false;
	return true;
}

static void test_grant_needs_no_server(void **state)
{
	struct obc_block *block[2];
	struct server server;
	struct obc_heap heap;
	uint64_t a, b;

	(void)state;
	start(&heap, &server, 1024 * MIB, 64 * MIB, 64 * MIB);
	assert_int_equal(obc_heap_alloc(&heap, 1, &a, &block[0]), CUDA_SUCCESS);
	assert_int_equal(a, BASE);
	assert_int_equal(obc_block_size(block[0]), OBC_HEAP_ALIGN);
	assert_int_equal(
		obc_heap_alloc(&heap, 64 * MIB - OBC_HEAP_ALIGN, &b, &block[1]), CUDA_SUCCESS);
	assert_int_equal(b, BASE + OBC_HEAP_ALIGN);
	assert_int_equal(server.grows, 0);
	assert_int_equal(obc_heap_alloc(&heap, 1, &a, &block[0]), CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(obc_heap_sane(&heap));
	obc_heap_fini(&heap);
}

static void test_exact_limit(void **state)
{
	struct obc_block *block;
	struct server server;
	struct obc_heap heap;
	uint64_t addr;

	(void)state;
	/*
	 * what is left is less than a growth step: asked for exactly, together with the free end of
	 * the grant
	 */
	start(&heap, &server, 4096 * MIB, 16 * MIB, 100 * MIB);
	assert_int_equal(
		obc_heap_alloc(&heap, 100 * MIB + 1, &addr, &block), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(obc_heap_alloc(&heap, 100 * MIB, &addr, &block), CUDA_SUCCESS);
	assert_int_equal(addr, BASE);
	assert_int_equal(server.backed, 100 * MIB);
	obc_heap_free(&heap, block);
	assert_int_equal(obc_heap_free_bytes(&heap), 100 * MIB);
	/* pieces in the way: trimming the idle ones makes room for one large one elsewhere */
	assert_int_equal(obc_heap_alloc(&heap, 40 * MIB, &addr, &block), CUDA_SUCCESS);
	assert_int_equal(obc_heap_alloc(&heap, 61 * MIB, &addr, &block), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(obc_heap_alloc(&heap, 60 * MIB, &addr, &block), CUDA_SUCCESS);
	assert_true(obc_heap_sane(&heap));
	obc_heap_fini(&heap);
}

static void test_large_spans_go_back(void **state)
{
	struct obc_block *block;
	struct server server;
	struct obc_heap heap;
	uint64_t addr;

	(void)state;
	start(&heap, &server, 8192 * MIB, 64 * MIB, 4096 * MIB);
	assert_int_equal(obc_heap_alloc(&heap, 1000 * MIB, &addr, &block), CUDA_SUCCESS);
	obc_heap_free(&heap, block);
	assert_int_equal(server.trims, 1);
	assert_int_equal(server.backed, 64 * MIB);
	assert_true(obc_heap_sane(&heap));
	assert_int_equal(obc_heap_alloc(&heap, 100 * MIB, &addr, &block), CUDA_SUCCESS);
	obc_heap_free(&heap, block);
	assert_int_equal(server.trims, 1);
	assert_true(obc_heap_trim(&heap) >= 36 * MIB);
	assert_int_equal(server.backed, 64 * MIB);
	assert_true(obc_heap_sane(&heap));
	obc_heap_fini(&heap);
}

static void test_refuses(void **state)
{
	struct obc_heap heap;

	(void)state;
	assert_false(obc_heap_init(&heap, BASE + 4096, 64 * MIB, 0, &ops, NULL));
	obc_heap_fini(&heap);
	assert_false(obc_heap_init(&heap, BASE, MIB, 0, &ops, NULL));
	obc_heap_fini(&heap);
	assert_false(obc_heap_init(&heap, ~0ull & ~(OBC_HEAP_PAGE - 1), 4 * MIB, 0, &ops, NULL));
	obc_heap_fini(&heap);
}

/* Addresses for the program: nothing backs them, and the heap does not grow into them. */
static void test_reserved(void **state)
{
	struct obc_block *low, *high, *middle, *used;
	uint64_t at, addr, top = BASE + 256 * MIB;
	struct server server;
	struct obc_heap heap;

	(void)state;
	start(&heap, &server, 256 * MIB, 64 * MIB, 256 * MIB);
	/* as high as it goes; where it is wanted; aligned */
	assert_true(obc_heap_reserve(&heap, 2 * MIB, 2 * MIB, 0, &at, &high));
	assert_true(at == top - 2 * MIB);
	assert_true(obc_heap_reserve(&heap, 4 * MIB, 2 * MIB, BASE + 100 * MIB, &at, &middle));
	assert_true(at == BASE + 100 * MIB);
	assert_true(obc_heap_reserve(&heap, 2 * MIB, 64 * MIB, BASE + 100 * MIB, &at, &low));
	assert_true(at == BASE + 192 * MIB);
	assert_true(obc_heap_sane(&heap));
	/* between granted memory and a reservation 36 MiB are left, above it 88 and 60 */
	assert_false(obc_heap_reserve(&heap, 90 * MIB, 2 * MIB, 0, &at, &used));
	assert_int_equal(obc_heap_alloc(&heap, 100 * MIB, &addr, &used), CUDA_SUCCESS);
	assert_true(addr + 100 * MIB <= BASE + 100 * MIB);
	assert_int_equal(obc_heap_alloc(&heap, 90 * MIB, &addr, &used), CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(server.page[50] == 0 && server.page[96] == 0 && server.page[127] == 0);
	/* given back they are one hole again */
	obc_heap_unreserve(&heap, middle);
	obc_heap_unreserve(&heap, high);
	obc_heap_unreserve(&heap, low);
	assert_true(obc_heap_sane(&heap));
	assert_true(obc_heap_reserve(&heap, 156 * MIB, 2 * MIB, 0, &at, &high));
	assert_true(at == BASE + 100 * MIB);
	assert_false(obc_heap_reserve(&heap, 2 * MIB, 2 * MIB, 0, &at, &low));
	assert_int_equal(obc_heap_trim(&heap), 0);
	obc_heap_unreserve(&heap, high);
	assert_true(obc_heap_sane(&heap));
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
static void test_random(void **state)
{
	static struct live live[LIVE_MAX];
	uint64_t seed = 88172645463325252ull, refused = 0;
	struct server server;
	struct obc_heap heap;
	unsigned n = 0;

	(void)state;
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
			assert_int_equal(result, CUDA_SUCCESS);
			assert_int_equal(l->addr % OBC_HEAP_ALIGN, 0);
			assert_true(backed(&server, l->addr, size));
			for (unsigned i = 0; i < n; i++)
				assert_true(l->addr + size <= live[i].addr ||
					live[i].addr + live[i].size <= l->addr);
			n++;
		} else {
			unsigned i = (unsigned)(next(&seed) % n);

			assert_true(backed(&server, live[i].addr, live[i].size));
			obc_heap_free(&heap, live[i].block);
			live[i] = live[--n];
		}
		if (step % 500 == 0)
			assert_true(obc_heap_sane(&heap));
	}
	while (n)
		obc_heap_free(&heap, live[--n].block);
	assert_true(obc_heap_sane(&heap));
	assert_int_equal(heap.used_bytes, 0);
	obc_heap_trim(&heap);
	assert_int_equal(server.backed, 256 * MIB);
	assert_int_equal(obc_heap_free_bytes(&heap), 256 * MIB);
	assert_true(refused < 30000);
	obc_heap_fini(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grant_needs_no_server),
		cmocka_unit_test(test_exact_limit),
		cmocka_unit_test(test_large_spans_go_back),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
