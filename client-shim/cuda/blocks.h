/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_blocks: the blocks of an address range. All blocks form one list in address order, without
 * gaps. Free blocks are also in lists by size (two levels: powers of two, and sixteen steps in
 * each), so that one is found in constant time. Holes are in one list. Part of obc_heap, which
 * gives the states their meaning; under the heap's lock.
 */
#ifndef OBC_BLOCKS_H
#define OBC_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define OBC_BLOCK_ALIGN  512u /* bytes; sizes and addresses are multiples of it */
#define OBC_BLOCK_LEVELS 36u  /* powers of two: up to 2^36 * 512 bytes = 32 TiB */
#define OBC_BLOCK_STEPS  16u

enum obc_block_state { OBC_BLOCK_USED = 1, OBC_BLOCK_FREE, OBC_BLOCK_HOLE, OBC_BLOCK_RESERVED };

struct obc_block {
	uint64_t addr, size;
	struct obc_block *prev, *next; /* neighbours */
	/* free, hole: neighbours in the list; unused descriptor: only next is used */
	struct obc_block *list_prev, *list_next;
	enum obc_block_state state;
};

struct obc_blocks {
	struct obc_block *first; /* in address order */
	struct obc_block *holes;
	uint64_t free_bytes; /* of free blocks */
	uint64_t level_map;
	uint16_t step_map[OBC_BLOCK_LEVELS];
	struct obc_block *lists[OBC_BLOCK_LEVELS][OBC_BLOCK_STEPS];
	struct obc_block *spare; /* unused descriptors */
	void *chunks;            /* of descriptors */
};

/*
 * Adds a free block that has no neighbours: [base, base + size) is a range of its own. NULL: no
 * memory for the descriptor. For an object that is zeroed or has only such ranges, not for one of
 * obc_blocks_init.
 */
struct obc_block *obc_blocks_add(struct obc_blocks *blocks, uint64_t base, uint64_t size);
/* Removes a free block that has no neighbours. */
void obc_blocks_remove(struct obc_blocks *blocks, struct obc_block *block);
/* Makes the range one hole. False: no memory for the descriptor. fini accepts a zeroed object. */
bool obc_blocks_init(struct obc_blocks *blocks, uint64_t base, uint64_t size);
void obc_blocks_fini(struct obc_blocks *blocks);

/* Adds a free block or a hole to its list, or removes it. */
void obc_block_list(struct obc_blocks *blocks, struct obc_block *block);
void obc_block_unlist(struct obc_blocks *blocks, struct obc_block *block);
/*
 * Returns a free block of at least `size`: the head of the list for this size, if it is large
 * enough, or the head of the next list that is not empty, all of whose blocks are large enough.
 * NULL: there is none.
 */
struct obc_block *obc_block_find(struct obc_blocks *blocks, uint64_t size);
/*
 * Splits a block that is in no list at `size`. The rest has the same state and is in no list
 * either. NULL: no memory for the descriptor.
 */
struct obc_block *obc_block_split(
	struct obc_blocks *blocks, struct obc_block *block, uint64_t size);
/*
 * Takes a free block of at least `size`, which is a multiple of the alignment, and splits off the
 * rest of it, if there is memory for the descriptor. The block is used and in no list. NULL: there
 * is none.
 */
struct obc_block *obc_block_take(struct obc_blocks *blocks, uint64_t size);
/*
 * Gives a block that is in no list the state free or hole, merges it with neighbours of that state
 * and adds the merged block, which is returned, to its list.
 */
struct obc_block *obc_block_become(
	struct obc_blocks *blocks, struct obc_block *block, enum obc_block_state state);
/*
 * For tests: checks every invariant of a range. *ret_used: bytes of used blocks. Holes must be
 * multiples of `page`.
 */
bool obc_blocks_sane(const struct obc_blocks *blocks, uint64_t base, uint64_t size, uint64_t page,
	uint64_t *ret_used);
/*
 * For tests: checks the blocks of one range, of which `first` is the first. Adds the bytes of free
 * and used blocks.
 */
bool obc_blocks_range_sane(const struct obc_block *first, uint64_t base, uint64_t size,
	uint64_t page, uint64_t *free_bytes, uint64_t *used);

#endif
