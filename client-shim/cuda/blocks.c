/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/blocks.h"

#include <stdlib.h>

#include "base/check.h"

#define CHUNK_BLOCKS 1024u /* descriptors that are allocated at once */

struct block_chunk {
	struct block_chunk *next;
	unsigned used; /* blocks from here on have never been used, nor their pages touched */
	struct obc_block blocks[CHUNK_BLOCKS];
};

/* ---- descriptors ---- */

static __attribute__((noinline)) struct obc_block *fresh_take(struct obc_blocks *blocks)
{
	struct block_chunk *chunk = blocks->chunks;

	if (!chunk || chunk->used == CHUNK_BLOCKS) {
		chunk = malloc(sizeof *chunk);
		if (!chunk)
			return NULL;
		chunk->next = blocks->chunks;
		chunk->used = 0;
		blocks->chunks = chunk;
	}
	return &chunk->blocks[chunk->used++];
}

static struct obc_block *spare_take(struct obc_blocks *blocks)
{
	struct obc_block *block = blocks->spare;

	if (ob_unlikely(!block))
		return fresh_take(blocks);
	blocks->spare = block->list_next;
	return block;
}

static void spare_give(struct obc_blocks *blocks, struct obc_block *block)
{
	block->list_next = blocks->spare;
	blocks->spare = block;
}

/* ---- lists by size ---- */

static void place_of(uint64_t size, unsigned *ret_level, unsigned *ret_step)
{
	uint64_t units = size / OBC_BLOCK_ALIGN;
	unsigned log = 63 - (unsigned)__builtin_clzll(units | 1);

	if (log < 4) { /* below sixteen units each step is one unit */
		*ret_level = 0;
		*ret_step = (unsigned)units;
		return;
	}
	*ret_level = ob_min(log - 3, OBC_BLOCK_LEVELS - 1);
	*ret_step = (unsigned)(units >> (log - 4)) & (OBC_BLOCK_STEPS - 1);
}

static struct obc_block **list_of(struct obc_blocks *blocks, const struct obc_block *block)
{
	unsigned level, step;

	if (block->state == OBC_BLOCK_HOLE)
		return &blocks->holes;
	place_of(block->size, &level, &step);
	return &blocks->lists[level][step];
}

void obc_block_list(struct obc_blocks *blocks, struct obc_block *block)
{
	struct obc_block **list = list_of(blocks, block);

	block->list_prev = NULL;
	block->list_next = *list;
	if (*list)
		(*list)->list_prev = block;
	*list = block;
	if (block->state == OBC_BLOCK_FREE) {
		unsigned level, step;

		place_of(block->size, &level, &step);
		blocks->level_map |= 1ull << level;
		blocks->step_map[level] |= (uint16_t)(1u << step);
		blocks->free_bytes += block->size;
	}
}

void obc_block_unlist(struct obc_blocks *blocks, struct obc_block *block)
{
	struct obc_block **list = list_of(blocks, block);

	if (block->list_prev)
		block->list_prev->list_next = block->list_next;
	else
		*list = block->list_next;
	if (block->list_next)
		block->list_next->list_prev = block->list_prev;
	if (block->state == OBC_BLOCK_FREE) {
		unsigned level, step;

		place_of(block->size, &level, &step);
		if (!*list)
			blocks->step_map[level] &= (uint16_t) ~(1u << step);
		if (!blocks->step_map[level])
			blocks->level_map &= ~(1ull << level);
		blocks->free_bytes -= block->size;
	}
}

struct obc_block *obc_block_find(struct obc_blocks *blocks, uint64_t size)
{
	unsigned level, step;
	uint64_t levels;

	place_of(size, &level, &step);
	if (blocks->lists[level][step] && blocks->lists[level][step]->size >= size)
		return blocks->lists[level][step];
	uint16_t steps =
		(uint16_t)(blocks->step_map[level] & (step + 1 < 16 ? ~0u << (step + 1) : 0u));
	if (!steps) {
		levels = level + 1 < 64 ? blocks->level_map & (~0ull << (level + 1)) : 0;
		if (levels) {
			level = (unsigned)__builtin_ctzll(levels);
			steps = blocks->step_map[level];
		}
	}
	if (steps)
		return blocks->lists[level][__builtin_ctz(steps)];
	/* Searches the whole list of this size before the server is asked for more memory. */
	place_of(size, &level, &step);
	for (struct obc_block *block = blocks->lists[level][step]; block; block = block->list_next)
		if (block->size >= size)
			return block;
	return NULL;
}

/* ---- pieces ---- */

struct obc_block *obc_block_split(struct obc_blocks *blocks, struct obc_block *block, uint64_t size)
{
	struct obc_block *rest = spare_take(blocks);

	if (!rest)
		return NULL;
	*rest = (struct obc_block){ .addr = block->addr + size,
		.size = block->size - size,
		.prev = block,
		.next = block->next,
		.state = block->state };
	if (block->next)
		block->next->prev = rest;
	block->next = rest;
	block->size = size;
	return rest;
}

static void neighbour_drop(struct obc_blocks *blocks, struct obc_block *block)
{
	if (block->prev)
		block->prev->next = block->next;
	if (block->next)
		block->next->prev = block->prev;
	spare_give(blocks, block);
}

struct obc_block *obc_block_become(
	struct obc_blocks *blocks, struct obc_block *block, enum obc_block_state state)
{
	struct obc_block *prev = block->prev, *next = block->next;

	block->state = state;
	if (next && next->state == state) {
		obc_block_unlist(blocks, next);
		block->size += next->size;
		neighbour_drop(blocks, next);
	}
	if (prev && prev->state == state) {
		obc_block_unlist(blocks, prev);
		prev->size += block->size;
		neighbour_drop(blocks, block);
		block = prev;
	}
	obc_block_list(blocks, block);
	return block;
}

struct obc_block *obc_block_take(struct obc_blocks *blocks, uint64_t size)
{
	struct obc_block *block = obc_block_find(blocks, size), *rest;

	if (!block)
		return NULL;
	obc_block_unlist(blocks, block);
	if (block->size > size) {
		rest = obc_block_split(blocks, block, size);
		if (rest)
			obc_block_list(blocks, rest);
	}
	block->state = OBC_BLOCK_USED;
	return block;
}

/* ---- the range ---- */

struct obc_block *obc_blocks_add(struct obc_blocks *blocks, uint64_t base, uint64_t size)
{
	struct obc_block *block = spare_take(blocks);

	if (!block)
		return NULL;
	*block = (struct obc_block){ .addr = base, .size = size, .state = OBC_BLOCK_FREE };
	obc_block_list(blocks, block);
	return block;
}

void obc_blocks_remove(struct obc_blocks *blocks, struct obc_block *block)
{
	obc_block_unlist(blocks, block);
	spare_give(blocks, block);
}

bool obc_blocks_init(struct obc_blocks *blocks, uint64_t base, uint64_t size)
{
	struct obc_block *block;

	*blocks = (struct obc_blocks){ 0 };
	block = spare_take(blocks);
	if (!block)
		return false;
	*block = (struct obc_block){ .addr = base, .size = size, .state = OBC_BLOCK_HOLE };
	blocks->first = block;
	obc_block_list(blocks, block);
	return true;
}

void obc_blocks_fini(struct obc_blocks *blocks)
{
	struct block_chunk *chunk = blocks->chunks, *next;

	for (; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	*blocks = (struct obc_blocks){ 0 };
}

bool obc_blocks_range_sane(const struct obc_block *first, uint64_t base, uint64_t size,
	uint64_t page, uint64_t *free_bytes, uint64_t *used)
{
	const struct obc_block *prev = NULL;
	uint64_t at = base;

	for (const struct obc_block *block = first; block; prev = block, block = block->next) {
		if (block->addr != at || !block->size || block->size % OBC_BLOCK_ALIGN ||
			block->prev != prev)
			return false;
		if (prev && block->state == prev->state && block->state != OBC_BLOCK_USED &&
			block->state != OBC_BLOCK_RESERVED)
			return false;
		if (block->state == OBC_BLOCK_HOLE && (block->addr % page || block->size % page))
			return false;
		*free_bytes += block->state == OBC_BLOCK_FREE ? block->size : 0;
		*used += block->state == OBC_BLOCK_USED ? block->size : 0;
		at += block->size;
	}
	return at == base + size;
}

bool obc_blocks_sane(const struct obc_blocks *blocks, uint64_t base, uint64_t size, uint64_t page,
	uint64_t *ret_used)
{
	uint64_t free_bytes = 0;

	*ret_used = 0;
	return obc_blocks_range_sane(blocks->first, base, size, page, &free_bytes, ret_used) &&
		free_bytes == blocks->free_bytes;
}
