/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/slabs.h"

#include <stdlib.h>

#include "base/check.h"

bool obc_slabs_add(struct obc_slabs *slabs, uint64_t base, uint64_t size)
{
	uint32_t wanted = slabs->capacity ? 2 * slabs->capacity : 8;
	struct obc_slab *slab, *larger;

	if (slabs->n == slabs->capacity) {
		larger = realloc(slabs->list, wanted * sizeof *larger);
		if (!larger)
			return false;
		slabs->list = larger;
		slabs->capacity = wanted;
	}
	slab = &slabs->list[slabs->n];
	*slab = (struct obc_slab){ base, size, obc_blocks_add(&slabs->blocks, base, size) };
	slabs->n += slab->first != NULL;
	return slab->first != NULL;
}

void obc_slabs_fini(struct obc_slabs *slabs)
{
	obc_blocks_fini(&slabs->blocks);
	free(slabs->list);
	*slabs = (struct obc_slabs){ 0 };
}

bool obc_slabs_overlap(const struct obc_slabs *slabs, uint64_t base, uint64_t size)
{
	for (uint32_t i = 0; i < slabs->n; i++)
		if (base < slabs->list[i].base + slabs->list[i].size &&
			slabs->list[i].base < base + size)
			return true;
	return false;
}

struct obc_block *obc_slabs_take(struct obc_slabs *slabs, uint64_t size)
{
	return obc_block_take(&slabs->blocks, ob_round_up(size, OBC_BLOCK_ALIGN));
}

bool obc_slabs_give(struct obc_slabs *slabs, struct obc_block *block)
{
	block = obc_block_become(&slabs->blocks, block, OBC_BLOCK_FREE);
	return !block->prev && !block->next;
}

bool obc_slabs_remove_unused(
	struct obc_slabs *slabs, uint64_t keep, uint64_t *ret_base, uint64_t *ret_size)
{
	for (uint32_t i = slabs->n; i-- > 0;) {
		const struct obc_slab *slab = &slabs->list[i];

		if (slab->first->state != OBC_BLOCK_FREE || slab->first->size != slab->size ||
			slabs->blocks.free_bytes - slab->size < keep)
			continue;
		*ret_base = slab->base;
		*ret_size = slab->size;
		obc_blocks_remove(&slabs->blocks, slab->first);
		slabs->list[i] = slabs->list[--slabs->n];
		return true;
	}
	return false;
}

bool obc_slabs_sane(const struct obc_slabs *slabs, uint64_t *ret_used)
{
	uint64_t free_bytes = 0;

	*ret_used = 0;
	for (uint32_t i = 0; i < slabs->n; i++)
		if (!obc_blocks_range_sane(slabs->list[i].first, slabs->list[i].base,
			    slabs->list[i].size, OBC_BLOCK_ALIGN, &free_bytes, ret_used))
			return false;
	return free_bytes == slabs->blocks.free_bytes;
}
