/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

#define HEAD 64u /* bytes before the object: the size of the mapping; keeps the alignment */

void ob_pages_discard(void *p, size_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t begin = ob_round_up((uint64_t)(uintptr_t)p, page);
	uint64_t end = ((uint64_t)(uintptr_t)p + size) / page * page;

	if (begin < end)
		madvise((void *)(uintptr_t)begin, end - begin, MADV_DONTNEED);
}

void *ob_pages_alloc(size_t size)
{
	size_t whole;
	uint8_t *map;

	if (ob_add_overflows(size, (size_t)HEAD, &whole))
		return NULL;
	map = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	*(size_t *)map = whole;
	return map + HEAD;
}

void ob_pages_free(void *p)
{
	uint8_t *map;

	if (!p)
		return;
	map = (uint8_t *)p - HEAD;
	munmap(map, *(size_t *)map);
}
