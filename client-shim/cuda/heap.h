/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_heap: an allocator for the addresses of one device. The client allocates them; it has no
 * access to the memory itself, so all bookkeeping is kept outside of it.
 *
 *   base                                                                 base + size
 *    | used | free | used |   hole   | used | free |            hole          |
 *    |<- granted ->|      backed by the server: used and free     not backed
 *
 * The parts of the range are blocks (client-shim/cuda/blocks.h). A hole becomes free memory when
 * the server backs it (grow). A large free span becomes a hole again (trim). Sizes and addresses
 * are multiples of 512 bytes, those of holes multiples of 2 MiB. Each heap has one lock, which is
 * held during a grow request to the server. Any thread.
 */
#ifndef OBC_HEAP_H
#define OBC_HEAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "client-shim/cuda/blocks.h"

#define OBC_HEAP_ALIGN    OBC_BLOCK_ALIGN /* the alignment of CUDA's allocator */
#define OBC_HEAP_PAGE     (2ull << 20)    /* bytes; the unit in which the server backs memory */
/* a free span of at least this size is given back to the device */
#define OBC_HEAP_TRIM_MIN (256ull << 20)

/* Requests of a heap to the server; called under the heap's lock. */
struct obc_heap_ops {
	/* CUDA_ERROR_OUT_OF_MEMORY: the device has less */
	CUresult (*grow)(void *user, uint64_t addr, uint64_t size);
	void (*trim)(void *user, uint64_t addr, uint64_t size);
};

struct obc_heap {
	pthread_mutex_t lock;
	const struct obc_heap_ops *ops;
	void *user;
	uint64_t base, size, granted;
	/*
	 * Bytes. The heap grows and shrinks in multiples of this where there is room, because a
	 * driver unmaps a mapping only as a whole.
	 */
	uint64_t unit;
	uint64_t used_bytes;
	struct obc_blocks blocks; /* free: backed and not in use; hole: not backed */
};

/*
 * granted: bytes at the start of the range that are already backed, rounded down to pages. unit: of
 * growing, a multiple of OBC_HEAP_PAGE (obp_memory_unit). False: out of host memory, or the range is
 * unusable.
 */
bool obc_heap_init(struct obc_heap *heap, uint64_t base, uint64_t size, uint64_t granted,
	uint64_t unit, const struct obc_heap_ops *ops, void *user);
void obc_heap_fini(struct obc_heap *heap);
/*
 * size > 0. Fails with CUDA_ERROR_OUT_OF_MEMORY or the error of grow. *ret_block is the argument of
 * obc_heap_free.
 */
CUresult obc_heap_alloc(
	struct obc_heap *heap, uint64_t size, uint64_t *ret_addr, struct obc_block **ret_block);
void obc_heap_free(struct obc_heap *heap, struct obc_block *block);
/*
 * Takes part of a hole out of the heap: unbacked addresses, at which the program maps memory. size
 * > 0, a multiple of OBC_HEAP_PAGE; align: a power of two. The result is `wanted` if that is free,
 * else as high as possible, so that the heap can grow below it. False: no hole is large enough, or
 * out of host memory.
 */
bool obc_heap_reserve(struct obc_heap *heap, uint64_t size, uint64_t align, uint64_t wanted,
	uint64_t *ret_addr, struct obc_block **ret_block);
/* Makes the addresses a hole again. Nothing may be mapped there. */
void obc_heap_unreserve(struct obc_heap *heap, struct obc_block *block);
/* Gives every free page outside the grant back to the device. Returns the number of bytes. */
uint64_t obc_heap_trim(struct obc_heap *heap);
uint64_t obc_heap_free_bytes(struct obc_heap *heap);
uint64_t obc_block_size(const struct obc_block *block);
/* For tests: checks every invariant. */
bool obc_heap_sane(struct obc_heap *heap);

#endif
