/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/heap.h"

#define CHUNK_BYTES  ((size_t)64 << 10)
#define HEADER_BYTES ((size_t)16)

struct chunk {
	struct chunk *next;
};
_Static_assert(sizeof(struct chunk) <= HEADER_BYTES, "the header keeps the alignment");

struct obd_arena {
	struct chunk *chunks;
	char *at;
	size_t left;
};

struct obd_arena *obd_arena_new(void)
{
	return calloc(1, sizeof(struct obd_arena));
}

void obd_arena_free(struct obd_arena *a)
{
	if (!a)
		return;
	for (struct chunk *c = a->chunks, *next; c; c = next) {
		next = c->next;
		obd_heap_free(c);
	}
	free(a);
}

static char *add_chunk(struct obd_arena *a, size_t size)
{
	struct chunk *c = obd_heap_alloc(HEADER_BYTES + size);

	if (!c)
		return NULL;
	c->next = a->chunks;
	a->chunks = c;
	return (char *)c + HEADER_BYTES;
}

void *obd_arena_alloc(struct obd_arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 15) & ~(size_t)15;
	if (size > CHUNK_BYTES / 4)
		return add_chunk(a, size);
	if (size > a->left) {
		char *p = add_chunk(a, CHUNK_BYTES);

		if (!p)
			return NULL;
		a->at = p;
		a->left = CHUNK_BYTES;
	}
	void *ret = a->at;

	a->at += size;
	a->left -= size;
	return ret;
}

char *obd_arena_copy(struct obd_arena *a, const void *p, size_t size)
{
	char *ret = obd_arena_alloc(a, size + 1);

	if (ret && size)
		memcpy(ret, p, size);
	return ret;
}
