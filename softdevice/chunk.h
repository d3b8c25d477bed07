/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_chunk: 2 MiB of a device's memory, divided into blocks of 512 bytes. It holds small
 * allocations, each followed by a free guard block.
 *
 * A chunk belongs to its device, and the device's lock guards it. Looking up the allocation at an
 * address takes no lock. Structs are reused and never returned to malloc, because such a look-up
 * may race with the release of a chunk.
 */
#ifndef OBD_CHUNK_H
#define OBD_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "softdevice/bitmap.h"
#include "softdevice/window.h"

/* alignment and granularity of small allocations: also what a texture of linear memory needs */
#define OBD_BLOCK        512u
#define OBD_SMALL_MAX    (512u << 10) /* bytes; a larger allocation gets its own units */
/* the last page of a chunk is a guard page */
#define OBD_CHUNK_BLOCKS ((uint32_t)((OBD_UNIT - OBD_PAGE) / OBD_BLOCK))

struct obd_alloc;
struct obd_device;

struct obd_chunk {
	struct obd_span span;
	struct obd_device *device;
	struct obd_chunk *next, *prev; /* list of the device; `next` is also the free list */
	uint32_t used;                 /* blocks in use, guard blocks included */
	uint32_t cursor;               /* where the next search starts */
	uint32_t longest;              /* upper bound of the longest run of free blocks */
	/* the allocation that each block belongs to */
	struct obd_alloc *_Atomic block[OBD_CHUNK_BLOCKS];
	uint64_t map[OBD_BITMAP_WORDS(OBD_CHUNK_BLOCKS)];
};

/*
 * Finds room for an allocation, whose size is set, in one of the device's chunks. False: no memory
 * or no addresses for another chunk.
 */
bool obd_chunk_take(struct obd_device *device, struct obd_alloc *alloc);
void obd_chunk_give(struct obd_device *device, struct obd_alloc *alloc);
/* The allocation that contains addr, which must lie in the chunk; NULL: none. Lock-free. */
struct obd_alloc *obd_chunk_find(struct obd_chunk *chunk, uint64_t addr);

#endif
