/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/chunk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/check.h"
#include "softdevice/bitmap.h"
#include "softdevice/config.h"
#include "softdevice/device.h"
#include "softdevice/alloc.h"

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct obd_chunk *spare; /* free list, linked by `next` */

static struct obd_chunk *chunk_new(struct obd_device *device)
{
	struct obd_chunk *chunk;

	pthread_mutex_lock(&spare_lock);
	chunk = spare;
	if (chunk)
		spare = chunk->next;
	pthread_mutex_unlock(&spare_lock);
	if (!chunk)
		chunk = calloc(1, sizeof *chunk);
	if (!chunk)
		return NULL;
	chunk->span.kind = OBD_SPAN_CHUNK;
	chunk->device = device;
	chunk->used = chunk->cursor = 0;
	chunk->longest = OBD_CHUNK_BLOCKS;
	chunk->prev = NULL;
	chunk->next = device->chunks;
	if (!obd_window_take(&chunk->span, (uint64_t)OBD_CHUNK_BLOCKS * OBD_BLOCK)) {
		pthread_mutex_lock(&spare_lock);
		chunk->next = spare;
		spare = chunk;
		pthread_mutex_unlock(&spare_lock);
		return NULL;
	}
	if (device->chunks)
		device->chunks->prev = chunk;
	device->chunks = chunk;
	return chunk;
}

static void chunk_free(struct obd_chunk *chunk)
{
	struct obd_device *device = chunk->device;

	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		device->chunks = chunk->next;
	if (chunk->next)
		chunk->next->prev = chunk->prev;
	obd_window_give(&chunk->span);
	pthread_mutex_lock(&spare_lock);
	chunk->next = spare;
	spare = chunk;
	pthread_mutex_unlock(&spare_lock);
}

static bool blocks_take(struct obd_chunk *chunk, struct obd_alloc *alloc, uint32_t blocks)
{
	uint32_t n = blocks + 1; /* one guard block at the end */
	uint64_t first;

	if (n > chunk->longest)
		return false;
	first = obd_bitmap_find(chunk->map, chunk->cursor, OBD_CHUNK_BLOCKS, n);
	if (first == OBD_BITMAP_NONE)
		first = obd_bitmap_find(chunk->map, 0, OBD_CHUNK_BLOCKS, n);
	if (first == OBD_BITMAP_NONE) {
		chunk->longest = n - 1;
		return false;
	}
	obd_bitmap_set(chunk->map, first, n, true);
	chunk->used += n;
	chunk->cursor = (uint32_t)first + n;
	alloc->chunk = chunk;
	alloc->span.base = chunk->span.base + first * OBD_BLOCK;
	for (uint32_t i = 0; i < blocks; i++)
		atomic_store_explicit(&chunk->block[first + i], alloc, memory_order_release);
	return true;
}

static void blocks_give(struct obd_alloc *alloc)
{
	struct obd_chunk *chunk = alloc->chunk;
	uint32_t first = (uint32_t)((alloc->span.base - chunk->span.base) / OBD_BLOCK);
	uint32_t blocks = (uint32_t)((alloc->span.size + OBD_BLOCK - 1) / OBD_BLOCK);

	for (uint32_t i = 0; i < blocks; i++)
		atomic_store_explicit(&chunk->block[first + i], NULL, memory_order_release);
	obd_bitmap_set(chunk->map, first, blocks + 1, false);
	chunk->used -= blocks + 1;
	chunk->longest = OBD_CHUNK_BLOCKS;
	/*
	 * With the memory checker a freed address is reused as late as possible, to detect its use.
	 */
	if (!obd_config.memcheck)
		chunk->cursor = ob_min(chunk->cursor, first);
	if (chunk->used == 0 && chunk->device->chunks->next) /* keep the last chunk of a device */
		chunk_free(chunk);
}

bool obd_chunk_take(struct obd_device *device, struct obd_alloc *alloc)
{
	uint32_t blocks = (uint32_t)((alloc->span.size + OBD_BLOCK - 1) / OBD_BLOCK);
	bool ok = false;

	pthread_mutex_lock(&device->lock);
	for (struct obd_chunk *chunk = device->chunks; chunk && !ok; chunk = chunk->next)
		ok = blocks_take(chunk, alloc, blocks);
	if (!ok) {
		struct obd_chunk *chunk = chunk_new(device);

		ok = chunk && blocks_take(chunk, alloc, blocks);
	}
	pthread_mutex_unlock(&device->lock);
	return ok;
}

void obd_chunk_give(struct obd_device *device, struct obd_alloc *alloc)
{
	pthread_mutex_lock(&device->lock);
	blocks_give(alloc);
	pthread_mutex_unlock(&device->lock);
}

struct obd_alloc *obd_chunk_find(struct obd_chunk *chunk, uint64_t addr)
{
	uint64_t i = (addr - chunk->span.base) / OBD_BLOCK;

	return i < OBD_CHUNK_BLOCKS ? atomic_load_explicit(&chunk->block[i], memory_order_acquire)
				    : NULL;
}
