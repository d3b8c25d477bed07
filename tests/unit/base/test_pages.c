/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Memory that is given back: only whole pages lose their contents, and they leave the process. */
#include <stdint.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "tests/test.h"

#define PAGES 16u

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static unsigned resident(void *map)
{
	unsigned char in[PAGES];
	unsigned n = 0;

	CHECK(mincore(map, PAGES * page(), in) == 0);
	for (unsigned i = 0; i < PAGES; i++)
		n += in[i] & 1;
	return n;
}

TEST(only_whole_pages_are_discarded)
{
	size_t size = PAGES * page(), from = 3 * page() + 1, to = 9 * page() - 1;
	uint8_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(map != MAP_FAILED);
	memset(map, 7, size);
	CHECK_INT(resident(map), PAGES);
	ob_pages_discard(map + from, to - from);
	CHECK_INT(resident(map), PAGES - 4);
	for (size_t i = 0; i < size; i++)
		CHECK_INT(map[i], i >= 4 * page() && i < 8 * page() ? 0 : 7);
	/* Within one page, and nothing. */
	ob_pages_discard(map + 1, page() - 1);
	ob_pages_discard(map + page(), 0);
	CHECK_INT(map[page()], 7);
	ob_pages_discard(map, size);
	CHECK_INT(resident(map), 0);
	munmap(map, size);
}

TEST(allocations_are_zero_and_aligned)
{
	for (size_t size = 0; size < 4 * page(); size += 511) {
		uint8_t *p = ob_pages_alloc(size);

		CHECK(p && (uintptr_t)p % 64 == 0);
		for (size_t i = 0; i < size; i++)
			CHECK_INT(p[i], 0);
		memset(p, 1, size);
		ob_pages_free(p);
	}
	ob_pages_free(NULL);
	CHECK(!ob_pages_alloc(SIZE_MAX));
	CHECK(!ob_pages_alloc(SIZE_MAX - 64));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
