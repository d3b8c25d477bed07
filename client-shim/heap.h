/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_heap: the addresses of one device, handed out by the client. It keeps books about memory it
 * cannot touch.
 *
 *   base                                                                 base + size
 *    | used | free | used |   hole   | used | free |            hole          |
 *    |<- granted ->|      backed by the server: used and free     not backed
 *
 * Free pieces are found by size in constant time (two levels of lists: powers of two, sixteen steps
 * in each); a hole becomes free memory when the server agrees to back it (grow), and a large free
 * span becomes a hole again (trim). Everything is a multiple of 512 bytes, holes of 2 MiB. One heap
 * has one lock, held while the server is asked to grow. Any thread.
 */
#ifndef OBC_HEAP_H
#define OBC_HEAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OBC_HEAP_ALIGN    512u         /* bytes; what CUDA's own allocator gives */
#define OBC_HEAP_PAGE     (2ull << 20) /* what memory is backed in */
/*
 * Grown and trimmed in multiples of this where there is room: a driver unmaps only what it mapped
 * as one.
 */
#define OBC_HEAP_UNIT     (64ull << 20)
/* a free span from this size on goes back to the device */
#define OBC_HEAP_TRIM_MIN (256ull << 20)
#define OBC_HEAP_LEVELS   36u /* powers of two: up to 2^36 * 512 bytes = 32 TiB */
#define OBC_HEAP_STEPS    16u

struct obc_block;

/* How a heap reaches the server; called under the heap's lock. */
struct obc_heap_ops {
	/* CUDA_ERROR_OUT_OF_MEMORY: not that much */
	CUresult (*grow)(void *user, uint64_t addr, uint64_t size);
	void (*trim)(void *user, uint64_t addr, uint64_t size);
};

struct obc_heap {
	pthread_mutex_t lock;
	const struct obc_heap_ops *ops;
	void *user;
	uint64_t base, size, granted;
	uint64_t free_bytes; /* backed and not in use */
	uint64_t used_bytes;
	uint64_t level_map;
	uint16_t step_map[OBC_HEAP_LEVELS];
	struct obc_block *lists[OBC_HEAP_LEVELS][OBC_HEAP_STEPS];
	struct obc_block *holes;
	struct obc_block *spare;
	struct obc_block *first;
	void *chunks;
};

/*
 * granted: bytes at the start that are backed already, rounded down to pages. False: out of host
 * memory, or the range is unusable.
 */
bool obc_heap_init(struct obc_heap *heap, uint64_t base, uint64_t size, uint64_t granted,
	const struct obc_heap_ops *ops, void *user);
void obc_heap_fini(struct obc_heap *heap);
/* size > 0. CUDA_ERROR_OUT_OF_MEMORY, or what grow said. *ret_block is what free takes. */
CUresult obc_heap_alloc(
	struct obc_heap *heap, uint64_t size, uint64_t *ret_addr, struct obc_block **ret_block);
void obc_heap_free(struct obc_heap *heap, struct obc_block *block);
/*
 * Takes a hole out of the heap: addresses that nothing backs, for the program to map memory at.
 * size > 0, a multiple of OBC_HEAP_PAGE; align: a power of two. At `wanted` where that is free,
 * else as high as possible, so that the heap grows below. False: no hole is that large, or out of
 * host memory.
 */
bool obc_heap_reserve(struct obc_heap *heap, uint64_t size, uint64_t align, uint64_t wanted,
	uint64_t *ret_addr, struct obc_block **ret_block);
/* It is a hole again; nothing may be mapped there. */
void obc_heap_unreserve(struct obc_heap *heap, struct obc_block *block);
/* Gives every free page back that is not in the grant. Bytes given. */
uint64_t obc_heap_trim(struct obc_heap *heap);
uint64_t obc_heap_free_bytes(struct obc_heap *heap);
uint64_t obc_block_size(const struct obc_block *block);
/* For tests: every invariant. */
bool obc_heap_sane(struct obc_heap *heap);

#endif
