/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define BLOCKS_WANTED 16u /* a smaller shadow has smaller blocks, so that it has about so many */

_Static_assert(OBC_SHADOW_FRESH == 0, "zeroed states are fresh");

bool obc_shadow_init(struct obc_shadow *shadow, uint64_t base, uint64_t size, uint8_t *alias,
	const struct obc_shadow_ops *ops)
{
	uint32_t block = OBC_SHADOW_PAGE;

	while (block < OBC_SHADOW_BLOCK && size / block > BLOCKS_WANTED)
		block *= 2;
	shadow->base = base;
	shadow->size = size;
	shadow->alias = alias;
	shadow->ops = ops;
	shadow->block = block;
	shadow->n_blocks = (size_t)((size + block - 1) / block);
	shadow->n_host = shadow->n_blocks;
	shadow->next_fetch = SIZE_MAX;
	shadow->ahead = 1;
	shadow->state = calloc(shadow->n_blocks, 1);
	return shadow->state != NULL;
}

void obc_shadow_fini(struct obc_shadow *shadow)
{
	free(shadow->state);
	shadow->state = NULL;
}

/* ---- runs of blocks ---- */

struct run {
	size_t first, end; /* blocks */
};

/* The blocks that overlap the range. Empty: first == end. */
static struct run run_of(const struct obc_shadow *shadow, uint64_t addr, uint64_t size)
{
	uint64_t from = ob_max(addr, shadow->base), end = addr + size;

	end = ob_min(end, shadow->base + shadow->size);
	if (from >= end)
		return (struct run){ 0 };
	return (struct run){
		.first = (size_t)((from - shadow->base) / shadow->block),
		.end = (size_t)((end - 1 - shadow->base) / shadow->block) + 1,
	};
}

static uint64_t run_addr(const struct obc_shadow *shadow, struct run run)
{
	return shadow->base + (uint64_t)run.first * shadow->block;
}

static uint64_t run_size(const struct obc_shadow *shadow, struct run run)
{
	uint64_t from = (uint64_t)run.first * shadow->block;

	return ob_min((uint64_t)run.end * shadow->block, shadow->size) - from;
}

/* The states as a set of bits. */
static unsigned bit(unsigned state)
{
	return 1u << state;
}

#define ON_HOST  (bit(OBC_SHADOW_FRESH) | bit(OBC_SHADOW_DIRTY) | bit(OBC_SHADOW_CLEAN))
#define CHANGED  (bit(OBC_SHADOW_FRESH) | bit(OBC_SHADOW_DIRTY))
#define WRITABLE CHANGED

/* The first run at or after *at, before `end`, of blocks in one of these states. */
static bool run_next(
	const struct obc_shadow *shadow, unsigned states, size_t *at, size_t end, struct run *ret)
{
	size_t i = *at;

	while (i < end && !(bit(shadow->state[i]) & states))
		i++;
	ret->first = i;
	while (i < end && bit(shadow->state[i]) & states)
		i++;
	ret->end = *at = i;
	return ret->first < ret->end;
}

static bool run_protect(struct obc_shadow *shadow, struct run run, enum obc_shadow_access access)
{
	return shadow->ops->protect(shadow, run_addr(shadow, run), run_size(shadow, run), access);
}

static void run_set(struct obc_shadow *shadow, struct run run, enum obc_shadow_state state)
{
	for (size_t i = run.first; i < run.end; i++) {
		shadow->n_host -= shadow->state[i] != OBC_SHADOW_DEVICE;
		shadow->n_host += state != OBC_SHADOW_DEVICE;
		shadow->state[i] = (uint8_t)state;
	}
}

/* ---- to the device ---- */

/* Uploads the pages of fresh blocks that were touched. */
static CUresult fresh_upload(struct obc_shadow *shadow, struct run run)
{
	uint64_t at = run_addr(shadow, run) - shadow->base, end = at + run_size(shadow, run);
	CUresult result = CUDA_SUCCESS;

	while (at < end && result == CUDA_SUCCESS) {
		uint64_t from, size;

		if (!shadow->ops->touched(shadow, at, end - at, &from, &size))
			break;
		result = shadow->ops->upload(shadow, shadow->base + from, size);
		at = from + size;
	}
	return result;
}

static CUresult changed_upload(struct obc_shadow *shadow, struct run all)
{
	CUresult result = CUDA_SUCCESS;
	struct run run;
	size_t at = all.first;

	while (result == CUDA_SUCCESS &&
		run_next(shadow, bit(OBC_SHADOW_DIRTY), &at, all.end, &run))
		result = shadow->ops->upload(shadow, run_addr(shadow, run), run_size(shadow, run));
	at = all.first;
	while (result == CUDA_SUCCESS &&
		run_next(shadow, bit(OBC_SHADOW_FRESH), &at, all.end, &run))
		result = fresh_upload(shadow, run);
	return result;
}

CUresult obc_shadow_give(struct obc_shadow *shadow, uint64_t addr, uint64_t size, bool writes)
{
	const unsigned affected = writes ? ON_HOST : CHANGED;
	struct run all = run_of(shadow, addr, size), run;
	size_t at = all.first;
	CUresult result;

	if (!shadow->n_host)
		return CUDA_SUCCESS;
	/*
	 * The program's access ends before the bytes are read, so no write of another thread gets
	 * lost. If the system refuses, the blocks stay as they are.
	 */
	while (run_next(shadow, affected, &at, all.end, &run))
		if (!run_protect(shadow, run, writes ? OBC_SHADOW_NONE : OBC_SHADOW_READ))
			return CUDA_ERROR_OUT_OF_MEMORY;
	result = changed_upload(shadow, all);
	if (result != CUDA_SUCCESS)
		return result;
	at = all.first;
	while (run_next(shadow, affected, &at, all.end, &run))
		run_set(shadow, run, writes ? OBC_SHADOW_DEVICE : OBC_SHADOW_CLEAN);
	return CUDA_SUCCESS;
}

/* ---- to the program ---- */

/* Fetches a run of blocks that are on the device and gives the program access. */
static CUresult run_take(struct obc_shadow *shadow, struct run run, bool write)
{
	CUresult result = shadow->ops->fetch(shadow, run_addr(shadow, run), run_size(shadow, run));

	if (!run_protect(shadow, run, write ? OBC_SHADOW_WRITE : OBC_SHADOW_READ))
		return CUDA_ERROR_OPERATING_SYSTEM;
	run_set(shadow, run, write ? OBC_SHADOW_DIRTY : OBC_SHADOW_CLEAN);
	return result;
}

/* The blocks that an access of block `at` fetches: more if the accesses are sequential. */
static struct run ahead_of(struct obc_shadow *shadow, size_t at)
{
	struct run run = { at, at + 1 };

	shadow->ahead = at == shadow->next_fetch
		? ob_min(2 * shadow->ahead, OBC_SHADOW_AHEAD_MAX / shadow->block)
		: 1;
	while (run.end < shadow->n_blocks && run.end - run.first < shadow->ahead &&
		shadow->state[run.end] == OBC_SHADOW_DEVICE)
		run.end++;
	shadow->next_fetch = run.end;
	return run;
}

CUresult obc_shadow_touch(struct obc_shadow *shadow, uint64_t addr, bool write)
{
	size_t at = (size_t)((addr - shadow->base) / shadow->block);
	struct run one = { at, at + 1 }, run;
	CUresult result = CUDA_SUCCESS;

	if (shadow->state[at] == OBC_SHADOW_DEVICE) {
		run = ahead_of(shadow, at);
		result = run_take(shadow, run, write && run.end == at + 1);
	} else {
		bool writable = bit(shadow->state[at]) & WRITABLE;

		/*
		 * Another thread may have made the block accessible since, or obc_shadow_give has
		 * failed after it took the access away.
		 */
		if (!run_protect(shadow, one, writable ? OBC_SHADOW_WRITE : OBC_SHADOW_READ))
			return CUDA_ERROR_OPERATING_SYSTEM;
	}
	if (write && !(bit(shadow->state[at]) & WRITABLE)) {
		if (!run_protect(shadow, one, OBC_SHADOW_WRITE))
			return CUDA_ERROR_OPERATING_SYSTEM;
		run_set(shadow, one, OBC_SHADOW_DIRTY);
	}
	return result;
}

CUresult obc_shadow_fetch(struct obc_shadow *shadow, uint64_t addr, uint64_t size)
{
	struct run all = run_of(shadow, addr, size), run;
	CUresult result = CUDA_SUCCESS;
	size_t at = all.first;

	while (result == CUDA_SUCCESS &&
		run_next(shadow, bit(OBC_SHADOW_DEVICE), &at, all.end, &run))
		result = run_take(shadow, run, false);
	return result;
}
