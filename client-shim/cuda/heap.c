/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/heap.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define BLOCK_CHUNK 1024u

enum block_state { BLOCK_USED = 1, BLOCK_FREE, BLOCK_HOLE, BLOCK_RESERVED };

/*
 * A part of the address range. All blocks of a heap form one list in address order, without gaps.
 */
struct obc_block {
	uint64_t addr, size;
	struct obc_block *prev, *next; /* neighbours */
	/* FREE, HOLE: neighbours in the list; spare: only next is used */
	struct obc_block *list_prev, *list_next;
	enum block_state state;
};

struct block_chunk {
	struct block_chunk *next;
	struct obc_block blocks[BLOCK_CHUNK];
};

/* ---- descriptors ---- */

static struct obc_block *spare_take(struct obc_heap *heap)
{
	struct obc_block *block = heap->spare;

	if (ob_unlikely(!block)) {
		struct block_chunk *chunk = malloc(sizeof *chunk);

		if (!chunk)
			return NULL;
		chunk->next = heap->chunks;
		heap->chunks = chunk;
		for (unsigned i = 0; i < BLOCK_CHUNK; i++) {
			chunk->blocks[i].list_next = heap->spare;
			heap->spare = &chunk->blocks[i];
		}
		block = heap->spare;
	}
	heap->spare = block->list_next;
	return block;
}

static void spare_give(struct obc_heap *heap, struct obc_block *block)
{
	block->list_next = heap->spare;
	heap->spare = block;
}

/* ---- lists by size ---- */

static void place_of(uint64_t size, unsigned *ret_level, unsigned *ret_step)
{
	uint64_t units = size / OBC_HEAP_ALIGN;
	unsigned log = 63 - (unsigned)__builtin_clzll(units | 1);

	if (log < 4) { /* below sixteen units each step is one unit */
		*ret_level = 0;
		*ret_step = (unsigned)units;
		return;
	}
	*ret_level = ob_min(log - 3, OBC_HEAP_LEVELS - 1);
	*ret_step = (unsigned)(units >> (log - 4)) & (OBC_HEAP_STEPS - 1);
}

static struct obc_block **list_of(struct obc_heap *heap, const struct obc_block *block)
{
	unsigned level, step;

	if (block->state == BLOCK_HOLE)
		return &heap->holes;
	place_of(block->size, &level, &step);
	return &heap->lists[level][step];
}

static void list_add(struct obc_heap *heap, struct obc_block *block)
{
	struct obc_block **list = list_of(heap, block);

	block->list_prev = NULL;
	block->list_next = *list;
	if (*list)
		(*list)->list_prev = block;
	*list = block;
	if (block->state == BLOCK_FREE) {
		unsigned level, step;

		place_of(block->size, &level, &step);
		heap->level_map |= 1ull << level;
		heap->step_map[level] |= (uint16_t)(1u << step);
		heap->free_bytes += block->size;
	}
}

static void list_remove(struct obc_heap *heap, struct obc_block *block)
{
	struct obc_block **list = list_of(heap, block);

	if (block->list_prev)
		block->list_prev->list_next = block->list_next;
	else
		*list = block->list_next;
	if (block->list_next)
		block->list_next->list_prev = block->list_prev;
	if (block->state == BLOCK_FREE) {
		unsigned level, step;

		place_of(block->size, &level, &step);
		if (!*list)
			heap->step_map[level] &= (uint16_t) ~(1u << step);
		if (!heap->step_map[level])
			heap->level_map &= ~(1ull << level);
		heap->free_bytes -= block->size;
	}
}

/*
 * Returns a free block of at least `size`: the head of the list for this size, if it is large
 * enough, or the head of the next list that is not empty, all of whose blocks are large enough.
 */
static struct obc_block *list_find(struct obc_heap *heap, uint64_t size)
{
	unsigned level, step;
	uint64_t levels;

	place_of(size, &level, &step);
	if (heap->lists[level][step] && heap->lists[level][step]->size >= size)
		return heap->lists[level][step];
	uint16_t steps =
		(uint16_t)(heap->step_map[level] & (step + 1 < 16 ? ~0u << (step + 1) : 0u));
	if (!steps) {
		levels = level + 1 < 64 ? heap->level_map & (~0ull << (level + 1)) : 0;
		if (levels) {
			level = (unsigned)__builtin_ctzll(levels);
			steps = heap->step_map[level];
		}
	}
	if (steps)
		return heap->lists[level][__builtin_ctz(steps)];
	/* Searches the whole list of this size before the server is asked for more memory. */
	place_of(size, &level, &step);
	for (struct obc_block *block = heap->lists[level][step]; block; block = block->list_next)
		if (block->size >= size)
			return block;
	return NULL;
}

/* ---- pieces ---- */

/*
 * Splits a block that is in no list at `size`. The rest gets state `state` and is in no list
 * either. NULL: no memory for the descriptor.
 */
static struct obc_block *block_split(struct obc_heap *heap, struct obc_block *block, uint64_t size)
{
	struct obc_block *rest = spare_take(heap);

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

/*
 * Merges a block that is in no list with neighbours of the same state. Returns the merged block,
 * which is in no list.
 */
static struct obc_block *block_join(struct obc_heap *heap, struct obc_block *block)
{
	struct obc_block *prev = block->prev, *next = block->next;

	if (next && next->state == block->state) {
		list_remove(heap, next);
		block->size += next->size;
		block->next = next->next;
		if (next->next)
			next->next->prev = block;
		spare_give(heap, next);
	}
	if (prev && prev->state == block->state) {
		list_remove(heap, prev);
		prev->size += block->size;
		prev->next = block->next;
		if (block->next)
			block->next->prev = prev;
		spare_give(heap, block);
		block = prev;
	}
	return block;
}

static void block_become(struct obc_heap *heap, struct obc_block *block, enum block_state state)
{
	block->state = state;
	list_add(heap, block_join(heap, block));
}

/* ---- growing and trimming ---- */

/*
 * Makes the first `size` bytes of the hole free memory after the server has backed them. False: out
 * of host memory; it remains a hole.
 */
static bool hole_fill(struct obc_heap *heap, struct obc_block *hole, uint64_t size)
{
	struct obc_block *rest = NULL;

	list_remove(heap, hole);
	if (size < hole->size) {
		rest = block_split(heap, hole, size);
		if (!rest) {
			list_add(heap, hole);
			return false;
		}
		list_add(heap, rest);
	}
	block_become(heap, hole, BLOCK_FREE);
	return true;
}

/*
 * Finds the hole that needs the least new memory to provide `size` bytes, together with the free
 * block before it.
 */
static struct obc_block *hole_find(const struct obc_heap *heap, uint64_t size, uint64_t *ret_need)
{
	struct obc_block *best = NULL;

	for (struct obc_block *hole = heap->holes; hole; hole = hole->list_next) {
		uint64_t have =
			hole->prev && hole->prev->state == BLOCK_FREE ? hole->prev->size : 0;
		uint64_t need = ob_round_up(size > have ? size - have : 1, OBC_HEAP_PAGE);

		/* Ties: the lowest address, so that the top of the range stays contiguous. */
		if (need <= hole->size &&
			(!best || need < *ret_need ||
				(need == *ret_need && hole->addr < best->addr))) {
			best = hole;
			*ret_need = need;
		}
	}
	return best;
}

static uint64_t trim_locked(struct obc_heap *heap, struct obc_block *block)
{
	/*
	 * Memory was mapped in units counted from the end of the grant; the last unit of a run may
	 * be shorter.
	 */
	uint64_t origin = heap->base + heap->granted, limit = block->addr + block->size, begin, end;

	if (block->state != BLOCK_FREE || limit <= origin)
		return 0;
	begin = origin + ob_round_up(ob_max(block->addr, origin) - origin, OBC_HEAP_UNIT);
	end = block->next && block->next->state == BLOCK_HOLE
		? limit
		: origin + ((limit - origin) & ~(OBC_HEAP_UNIT - 1));
	if (begin >= end)
		return 0;
	list_remove(heap, block);
	if (begin > block->addr) {
		struct obc_block *middle = block_split(heap, block, begin - block->addr);

		if (!middle) {
			list_add(heap, block);
			return 0;
		}
		list_add(heap, block);
		block = middle;
	}
	if (end < block->addr + block->size) {
		struct obc_block *tail = block_split(heap, block, end - block->addr);

		if (!tail) {
			block_become(heap, block, BLOCK_FREE);
			return 0;
		}
		list_add(heap, tail);
	}
	heap->ops->trim(heap->user, begin, end - begin);
	block_become(heap, block, BLOCK_HOLE);
	return end - begin;
}

static uint64_t trim_all(struct obc_heap *heap)
{
	uint64_t bytes = 0, got;

	/* Trimming merges holes and may free neighbouring blocks: restart after each. */
	do {
		got = 0;
		for (struct obc_block *block = heap->first; block && !got; block = block->next)
			got = trim_locked(heap, block);
		bytes += got;
	} while (got);
	return bytes;
}

static CUresult heap_grow(struct obc_heap *heap, uint64_t size)
{
	uint64_t need = 0;
	struct obc_block *hole = hole_find(heap, size, &need);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (!hole)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t wish = ob_min(ob_round_up(need, OBC_HEAP_UNIT), hole->size);
	if (wish > need)
		result = heap->ops->grow(heap->user, hole->addr, wish);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		wish = need;
		result = heap->ops->grow(heap->user, hole->addr, wish);
	}
	if (result == CUDA_ERROR_OUT_OF_MEMORY && trim_all(heap)) {
		/* The scattered free spans may be enough as one contiguous span. */
		hole = hole_find(heap, size, &need);
		wish = need;
		result = hole ? heap->ops->grow(heap->user, hole->addr, wish)
			      : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS && !hole_fill(heap, hole, wish))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

/* ---- public ---- */

bool obc_heap_init(struct obc_heap *heap, uint64_t base, uint64_t size, uint64_t granted,
	const struct obc_heap_ops *ops, void *user)
{
	struct obc_block *block;

	memset(heap, 0, sizeof *heap);
	pthread_mutex_init(&heap->lock, NULL);
	heap->ops = ops;
	heap->user = user;
	size &= ~(OBC_HEAP_PAGE - 1);
	granted = ob_min(granted, size) & ~(OBC_HEAP_PAGE - 1);
	if (!size || base % OBC_HEAP_PAGE || size > UINT64_MAX - base)
		return false;
	heap->base = base;
	heap->size = size;
	heap->granted = granted;
	block = spare_take(heap);
	if (!block)
		return false;
	*block = (struct obc_block){ .addr = base, .size = size, .state = BLOCK_HOLE };
	heap->first = block;
	list_add(heap, block);
	return !granted || hole_fill(heap, block, granted);
}

void obc_heap_fini(struct obc_heap *heap)
{
	struct block_chunk *chunk = heap->chunks, *next;

	for (; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	pthread_mutex_destroy(&heap->lock);
	memset(heap, 0, sizeof *heap);
}

CUresult obc_heap_alloc(
	struct obc_heap *heap, uint64_t size, uint64_t *ret_addr, struct obc_block **ret_block)
{
	struct obc_block *block, *rest;
	CUresult result = CUDA_SUCCESS;

	if (size > heap->size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size = ob_round_up(size, OBC_HEAP_ALIGN);
	pthread_mutex_lock(&heap->lock);
	block = list_find(heap, size);
	if (ob_unlikely(!block)) {
		result = heap_grow(heap, size);
		block = result == CUDA_SUCCESS ? list_find(heap, size) : NULL;
	}
	if (block) {
		list_remove(heap, block);
		if (block->size > size) {
			rest = block_split(heap, block, size);
			if (rest)
				list_add(heap, rest);
		}
		block->state = BLOCK_USED;
		heap->used_bytes += block->size;
		*ret_addr = block->addr;
		*ret_block = block;
	} else if (result == CUDA_SUCCESS) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&heap->lock);
	return result;
}

void obc_heap_free(struct obc_heap *heap, struct obc_block *block)
{
	pthread_mutex_lock(&heap->lock);
	heap->used_bytes -= block->size;
	block->state = BLOCK_FREE;
	block = block_join(heap, block);
	list_add(heap, block);
	if (ob_unlikely(block->size >= OBC_HEAP_TRIM_MIN + OBC_HEAP_PAGE) &&
		block->addr + block->size > heap->base + heap->granted + OBC_HEAP_TRIM_MIN)
		trim_locked(heap, block);
	pthread_mutex_unlock(&heap->lock);
}

/*
 * Finds the address for a reservation and returns the hole that contains it. NULL: there is none.
 */
static struct obc_block *place_reserve(
	struct obc_heap *heap, uint64_t size, uint64_t align, uint64_t wanted, uint64_t *ret_addr)
{
	struct obc_block *best = NULL;

	for (struct obc_block *hole = heap->holes; hole; hole = hole->list_next) {
		uint64_t at;

		if (hole->size < size)
			continue;
		if (wanted >= hole->addr && ob_span_inside(wanted - hole->addr, size, hole->size)) {
			*ret_addr = wanted;
			return hole;
		}
		at = (hole->addr + hole->size - size) & ~(align - 1);
		if (at >= hole->addr && (!best || at > *ret_addr)) {
			best = hole;
			*ret_addr = at;
		}
	}
	return best;
}

bool obc_heap_reserve(struct obc_heap *heap, uint64_t size, uint64_t align, uint64_t wanted,
	uint64_t *ret_addr, struct obc_block **ret_block)
{
	struct obc_block *hole, *block, *rest;

	pthread_mutex_lock(&heap->lock);
	block = hole = place_reserve(heap, size, align, wanted, ret_addr);
	if (hole)
		list_remove(heap, hole);
	if (hole && *ret_addr > hole->addr) {
		block = block_split(heap, hole, *ret_addr - hole->addr);
		list_add(heap, hole);
	}
	if (block && block->size > size) {
		rest = block_split(heap, block, size);
		if (rest) {
			list_add(heap, rest);
		} else {
			block_become(heap, block, BLOCK_HOLE);
			block = NULL;
		}
	}
	if (block)
		block->state = BLOCK_RESERVED;
	pthread_mutex_unlock(&heap->lock);
	*ret_block = block;
	return block != NULL;
}

void obc_heap_unreserve(struct obc_heap *heap, struct obc_block *block)
{
	pthread_mutex_lock(&heap->lock);
	block_become(heap, block, BLOCK_HOLE);
	pthread_mutex_unlock(&heap->lock);
}

uint64_t obc_heap_trim(struct obc_heap *heap)
{
	uint64_t bytes;

	pthread_mutex_lock(&heap->lock);
	bytes = trim_all(heap);
	pthread_mutex_unlock(&heap->lock);
	return bytes;
}

uint64_t obc_heap_free_bytes(struct obc_heap *heap)
{
	uint64_t bytes;

	pthread_mutex_lock(&heap->lock);
	bytes = heap->free_bytes;
	pthread_mutex_unlock(&heap->lock);
	return bytes;
}

uint64_t obc_block_size(const struct obc_block *block)
{
	return block->size;
}

bool obc_heap_sane(struct obc_heap *heap)
{
	uint64_t at = heap->base, free_bytes = 0, used = 0;
	const struct obc_block *prev = NULL;

	for (const struct obc_block *block = heap->first; block;
		prev = block, block = block->next) {
		if (block->addr != at || !block->size || block->size % OBC_HEAP_ALIGN ||
			block->prev != prev)
			return false;
		if (prev && block->state == prev->state && block->state != BLOCK_USED &&
			block->state != BLOCK_RESERVED)
			return false;
		if (block->state == BLOCK_HOLE &&
			(block->addr % OBC_HEAP_PAGE || block->size % OBC_HEAP_PAGE))
			return false;
		free_bytes += block->state == BLOCK_FREE ? block->size : 0;
		used += block->state == BLOCK_USED ? block->size : 0;
		at += block->size;
	}
	return at == heap->base + heap->size && free_bytes == heap->free_bytes &&
		used == heap->used_bytes;
}
