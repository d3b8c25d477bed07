/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_chunk: 2 MiB of a device's memory cut into blocks of 256 bytes, for small allocations with a
 * free block between them.
 *
 * Belongs to its device, whose lock guards it; what lies at an address is looked up without one.
 * Structs are reused, never given back to malloc, so that such a look-up may race with the end of a
 * chunk.
 */
#ifndef OBD_CHUNK_H
#define OBD_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "softdevice/window.h"

/* alignment and granularity of small allocations */
#define OBD_BLOCK        256u
#define OBD_SMALL_MAX    (512u << 10) /* bytes; larger ones lie alone */
/* the last page guards the end */
#define OBD_CHUNK_BLOCKS ((uint32_t)((OBD_UNIT - OBD_PAGE) / OBD_BLOCK))

struct obd_alloc;
struct obd_device;

struct obd_chunk {
	struct obd_span span;
	struct obd_device *device;
	struct obd_chunk *next, *prev; /* of the device; next also of the free list */
	uint32_t used;                 /* blocks, guards among them */
	uint32_t cursor;               /* where to look first */
	uint32_t longest;              /* no free run is longer */
	/* the allocation each block belongs to */
	struct obd_alloc *_Atomic block[OBD_CHUNK_BLOCKS];
	uint64_t map[(OBD_CHUNK_BLOCKS + 63) / 64];
};

/*
 * Places the allocation (its size is set) in a chunk of the device; false: no memory or addresses
 * for another chunk.
 */
bool obd_chunk_take(struct obd_device *device, struct obd_alloc *alloc);
void obd_chunk_give(struct obd_device *device, struct obd_alloc *alloc);
/* The allocation whose blocks hold addr, which lies in the chunk; NULL: none. Lock-free. */
struct obd_alloc *obd_chunk_find(struct obd_chunk *chunk, uint64_t addr);

#endif
