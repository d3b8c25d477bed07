/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_slabs: an allocator for the slabs of one context: device memory that the server has allocated
 * in pieces, at addresses that its driver chose. Allocations are blocks (client-shim/cuda/blocks.h)
 * of slabs. No I/O. The owner (client-shim/cuda/plain.c) has the lock.
 */
#ifndef OBC_SLABS_H
#define OBC_SLABS_H

#include "client-shim/cuda/blocks.h"

struct obc_slab {
	uint64_t base, size;
	struct obc_block *first; /* at base; merging and splitting keep it */
};

struct obc_slabs {
	struct obc_blocks blocks; /* of all slabs */
	struct obc_slab *list;
	uint32_t n, capacity;
};

/* slabs: zeroed, or used before. False: out of host memory. */
bool obc_slabs_add(struct obc_slabs *slabs, uint64_t base, uint64_t size);
/* Frees the host memory. Accepts a zeroed object. */
void obc_slabs_fini(struct obc_slabs *slabs);
bool obc_slabs_overlap(const struct obc_slabs *slabs, uint64_t base, uint64_t size);
/* NULL: no free block is large enough. size > 0; it is rounded up to OBC_BLOCK_ALIGN. */
struct obc_block *obc_slabs_take(struct obc_slabs *slabs, uint64_t size);
/* True: the slab that contains the block is unused now. */
bool obc_slabs_give(struct obc_slabs *slabs, struct obc_block *block);
/*
 * Removes an unused slab, if at least `keep` free bytes remain after that. False: there is none, or
 * too little would remain.
 */
bool obc_slabs_remove_unused(
	struct obc_slabs *slabs, uint64_t keep, uint64_t *ret_base, uint64_t *ret_size);
/* For tests: checks every invariant. *ret_used: bytes of used blocks. */
bool obc_slabs_sane(const struct obc_slabs *slabs, uint64_t *ret_used);

#endif
