/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/heap.h"

#include <string.h>

#include "base/check.h"

/* ---- growing and trimming ---- */

/*
 * Makes the first `size` bytes of the hole free memory after the server has backed them. False: out
 * of host memory; it remains a hole.
 */
static bool hole_fill(struct obc_heap *heap, struct obc_block *hole, uint64_t size)
{
	struct obc_block *rest = NULL;

	obc_block_unlist(&heap->blocks, hole);
	if (size < hole->size) {
		rest = obc_block_split(&heap->blocks, hole, size);
		if (!rest) {
			obc_block_list(&heap->blocks, hole);
			return false;
		}
		obc_block_list(&heap->blocks, rest);
	}
	obc_block_become(&heap->blocks, hole, OBC_BLOCK_FREE);
	return true;
}

/*
 * Finds the hole that needs the least new memory to provide `size` bytes, together with the free
 * block before it.
 */
static struct obc_block *hole_find(const struct obc_heap *heap, uint64_t size, uint64_t *ret_need)
{
	struct obc_block *best = NULL;

	for (struct obc_block *hole = heap->blocks.holes; hole; hole = hole->list_next) {
		uint64_t have =
			hole->prev && hole->prev->state == OBC_BLOCK_FREE ? hole->prev->size : 0;
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

	if (block->state != OBC_BLOCK_FREE || limit <= origin)
		return 0;
	begin = origin + ob_round_up(ob_max(block->addr, origin) - origin, heap->unit);
	end = block->next && block->next->state == OBC_BLOCK_HOLE
		? limit
		: limit - (limit - origin) % heap->unit;
	if (begin >= end)
		return 0;
	obc_block_unlist(&heap->blocks, block);
	if (begin > block->addr) {
		struct obc_block *middle =
			obc_block_split(&heap->blocks, block, begin - block->addr);

		if (!middle) {
			obc_block_list(&heap->blocks, block);
			return 0;
		}
		obc_block_list(&heap->blocks, block);
		block = middle;
	}
	if (end < block->addr + block->size) {
		struct obc_block *tail = obc_block_split(&heap->blocks, block, end - block->addr);

		if (!tail) {
			obc_block_become(&heap->blocks, block, OBC_BLOCK_FREE);
			return 0;
		}
		obc_block_list(&heap->blocks, tail);
	}
	heap->ops->trim(heap->user, begin, end - begin);
	obc_block_become(&heap->blocks, block, OBC_BLOCK_HOLE);
	return end - begin;
}

static uint64_t trim_all(struct obc_heap *heap)
{
	uint64_t bytes = 0, got;

	/* Trimming merges holes and may free neighbouring blocks: restart after each. */
	do {
		got = 0;
		for (struct obc_block *block = heap->blocks.first; block && !got;
			block = block->next)
			got = trim_locked(heap, block);
		bytes += got;
	} while (got);
	return bytes;
}

static CUresult heap_grow(struct obc_heap *heap, uint64_t size)
{
	uint64_t need = 0, bytes;
	struct obc_block *hole = hole_find(heap, size, &need);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (!hole)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bytes = ob_min(ob_round_up(need, heap->unit), hole->size);
	if (bytes > need)
		result = heap->ops->grow(heap->user, hole->addr, bytes);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		bytes = need;
		result = heap->ops->grow(heap->user, hole->addr, bytes);
	}
	if (result == CUDA_ERROR_OUT_OF_MEMORY && trim_all(heap)) {
		/* The scattered free spans may be enough as one contiguous span. */
		hole = hole_find(heap, size, &need);
		bytes = need;
		result = hole ? heap->ops->grow(heap->user, hole->addr, bytes)
			      : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS && !hole_fill(heap, hole, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

/* ---- public ---- */

bool obc_heap_init(struct obc_heap *heap, uint64_t base, uint64_t size, uint64_t granted,
	uint64_t unit, const struct obc_heap_ops *ops, void *user)
{
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
	heap->unit = unit;
	return obc_blocks_init(&heap->blocks, base, size) &&
		(!granted || hole_fill(heap, heap->blocks.first, granted));
}

void obc_heap_fini(struct obc_heap *heap)
{
	obc_blocks_fini(&heap->blocks);
	pthread_mutex_destroy(&heap->lock);
	memset(heap, 0, sizeof *heap);
}

CUresult obc_heap_alloc(
	struct obc_heap *heap, uint64_t size, uint64_t *ret_addr, struct obc_block **ret_block)
{
	struct obc_block *block;
	CUresult result = CUDA_SUCCESS;

	if (size > heap->size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size = ob_round_up(size, OBC_BLOCK_ALIGN);
	pthread_mutex_lock(&heap->lock);
	block = obc_block_take(&heap->blocks, size);
	if (ob_unlikely(!block)) {
		result = heap_grow(heap, size);
		block = result == CUDA_SUCCESS ? obc_block_take(&heap->blocks, size) : NULL;
	}
	if (block) {
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
	block = obc_block_become(&heap->blocks, block, OBC_BLOCK_FREE);
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

	for (struct obc_block *hole = heap->blocks.holes; hole; hole = hole->list_next) {
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
		obc_block_unlist(&heap->blocks, hole);
	if (hole && *ret_addr > hole->addr) {
		block = obc_block_split(&heap->blocks, hole, *ret_addr - hole->addr);
		obc_block_list(&heap->blocks, hole);
	}
	if (block && block->size > size) {
		rest = obc_block_split(&heap->blocks, block, size);
		if (rest) {
			obc_block_list(&heap->blocks, rest);
		} else {
			obc_block_become(&heap->blocks, block, OBC_BLOCK_HOLE);
			block = NULL;
		}
	}
	if (block)
		block->state = OBC_BLOCK_RESERVED;
	pthread_mutex_unlock(&heap->lock);
	*ret_block = block;
	return block != NULL;
}

void obc_heap_unreserve(struct obc_heap *heap, struct obc_block *block)
{
	pthread_mutex_lock(&heap->lock);
	obc_block_become(&heap->blocks, block, OBC_BLOCK_HOLE);
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
	bytes = heap->blocks.free_bytes;
	pthread_mutex_unlock(&heap->lock);
	return bytes;
}

uint64_t obc_block_size(const struct obc_block *block)
{
	return block->size;
}

bool obc_heap_sane(struct obc_heap *heap)
{
	uint64_t used;

	return obc_blocks_sane(&heap->blocks, heap->base, heap->size, OBC_HEAP_PAGE, &used) &&
		used == heap->used_bytes;
}
