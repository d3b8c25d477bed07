/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/slabs.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/obs_driver.h"
#include "server/layers/hold.h"

/* ---- bits ---- */

#define WORD 64u

/* The bits of word `word` that belong to [from, to). */
static uint64_t word_mask(uint64_t word, uint64_t from, uint64_t to)
{
	uint64_t low = from > word * WORD ? from - word * WORD : 0;
	uint64_t high = to - word * WORD;

	return (high < WORD ? (UINT64_C(1) << high) - 1 : UINT64_MAX) & UINT64_MAX << low;
}

static void bits_change(uint64_t *bits, uint64_t from, uint64_t to, bool set)
{
	for (uint64_t word = from / WORD; word * WORD < to; word++) {
		uint64_t mask = word_mask(word, from, to);

		bits[word] = set ? bits[word] | mask : bits[word] & ~mask;
	}
}

/* Whether every bit of [from, to) is equal to `set`. */
static bool bits_are(const uint64_t *bits, uint64_t from, uint64_t to, bool set)
{
	for (uint64_t word = from / WORD; word * WORD < to; word++)
		if ((set ? ~bits[word] : bits[word]) & word_mask(word, from, to))
			return false;
	return true;
}

/* ---- finding ---- */

static uint64_t units_of(const struct obs_slab *slab)
{
	return slab->size / OBS_SLAB_UNIT;
}

/* Index of the first slab whose base is above addr. */
static uint32_t slab_after(const struct obs_slabs *slabs, uint64_t addr)
{
	uint32_t low = 0, high = slabs->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (slabs->list[middle].base <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The slab that contains the bytes, and their units. NULL: none does. size > 0. */
static struct obs_slab *slab_of(const struct obs_slabs *slabs, uint64_t addr, uint64_t size,
	uint64_t *ret_from, uint64_t *ret_to)
{
	uint32_t after = slab_after(slabs, addr);
	struct obs_slab *slab = after ? &slabs->list[after - 1] : NULL;

	if (!slab || !ob_span_inside(addr - slab->base, size, slab->size))
		return NULL;
	*ret_from = (addr - slab->base) / OBS_SLAB_UNIT;
	*ret_to = (addr - slab->base + size - 1) / OBS_SLAB_UNIT + 1;
	return slab;
}

/* End of the allocation whose first unit is `from`. */
static uint64_t end_of(const struct obs_slab *slab, uint64_t from)
{
	uint64_t units = units_of(slab), at = from + 1;

	while (at < units) {
		uint64_t word = at / WORD;
		uint64_t stops =
			(~slab->live[word] | slab->first[word]) & word_mask(word, at, units);

		if (stops)
			return word * WORD + (uint64_t)__builtin_ctzll(stops);
		at = (word + 1) * WORD;
	}
	return units;
}

/* ---- slabs ---- */

void obs_slabs_init(struct obs_slabs *slabs, const struct obs_driver *drv)
{
	*slabs = (struct obs_slabs){ .drv = drv };
	pthread_mutex_init(&slabs->lock, NULL);
}

/* Bytes of both bitmaps. */
static uint64_t bitmap_bytes(uint64_t size)
{
	return 2 * sizeof(uint64_t) * ((size / OBS_SLAB_UNIT + WORD - 1) / WORD);
}

static bool list_room(struct obs_slabs *slabs)
{
	uint32_t wanted = slabs->capacity ? slabs->capacity * 2 : 16;
	void *larger;

	if (slabs->n < slabs->capacity)
		return true;
	larger = slabs->n < OBS_SLABS_MAX ? realloc(slabs->list, wanted * sizeof *slabs->list)
					  : NULL;
	if (larger) {
		slabs->list = larger;
		slabs->capacity = wanted;
	}
	return larger != NULL;
}

/* Enters what the driver allocated. False: no memory for that. */
static bool slab_enter(struct obs_slabs *slabs, const struct obs_slab *slab)
{
	uint64_t bytes = bitmap_bytes(slab->size);
	bool entered = false;

	if (!obs_hold_take(OBS_HOLD_HANDLES, bytes))
		return false;
	pthread_mutex_lock(&slabs->lock);
	if (list_room(slabs)) {
		uint32_t at = slab_after(slabs, slab->base);
		uint64_t *bits = calloc(1, bytes);

		if (bits) {
			memmove(slabs->list + at + 1, slabs->list + at,
				(slabs->n - at) * sizeof *slabs->list);
			slabs->list[at] = *slab;
			slabs->list[at].live = bits;
			slabs->list[at].first = bits + bytes / sizeof *bits / 2;
			slabs->n++;
			entered = true;
		}
	}
	pthread_mutex_unlock(&slabs->lock);
	if (!entered)
		obs_hold_give(OBS_HOLD_HANDLES, bytes);
	return entered;
}

CUresult obs_slabs_new(struct obs_slabs *slabs, struct obs_context *context, uint32_t device,
	uint64_t size, uint64_t least, struct obp_range *ret)
{
	struct obs_slab slab = { .context = context, .device = device };
	CUresult result;
	uint64_t end;

	size = ob_round_up(size, OBP_SLAB_PAGE);
	least = ob_round_up(ob_max(least, 1u), OBP_SLAB_PAGE);
	while ((result = slabs->drv->cuMemAlloc_v2(&slab.driver, size)) ==
			CUDA_ERROR_OUT_OF_MEMORY &&
		size > least)
		size = ob_max(ob_round_up(size / 2, OBP_SLAB_PAGE), least);
	if (result != CUDA_SUCCESS)
		return result;
	/* The client reserves whole pages. CUDA promises an alignment of 256 bytes only. */
	slab.base = ob_round_up(slab.driver, OBP_SLAB_PAGE);
	end = (slab.driver + size) & ~(uint64_t)(OBP_SLAB_PAGE - 1);
	slab.size = end > slab.base ? end - slab.base : 0;
	if (!slab.base || slab.size < least || !slab_enter(slabs, &slab)) {
		slabs->drv->cuMemFree_v2(slab.driver);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (struct obp_range){ .base = slab.base, .size = slab.size };
	return CUDA_SUCCESS;
}

uint64_t obs_slabs_bytes(struct obs_slabs *slabs, uint32_t device)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&slabs->lock);
	for (uint32_t i = 0; i < slabs->n; i++)
		bytes += slabs->list[i].device == device ? slabs->list[i].size : 0;
	pthread_mutex_unlock(&slabs->lock);
	return bytes;
}

struct obs_context *obs_slabs_context(struct obs_slabs *slabs, uint64_t addr)
{
	const struct obs_slab *slab;
	struct obs_context *context;
	uint64_t from, to;

	pthread_mutex_lock(&slabs->lock);
	slab = slab_of(slabs, addr, 1, &from, &to);
	context = slab ? slab->context : NULL;
	pthread_mutex_unlock(&slabs->lock);
	return context;
}

/* Under the lock. */
static void slab_drop(struct obs_slabs *slabs, uint32_t at)
{
	struct obs_slab *slab = &slabs->list[at];

	obs_hold_give(OBS_HOLD_HANDLES, bitmap_bytes(slab->size));
	free(slab->live);
	slabs->n--;
	memmove(slab, slab + 1, (slabs->n - at) * sizeof *slab);
}

bool obs_slabs_remove(struct obs_slabs *slabs, uint64_t base, CUdeviceptr *ret_driver,
	struct obs_context **ret_context)
{
	uint32_t after;
	bool found;

	pthread_mutex_lock(&slabs->lock);
	after = slab_after(slabs, base);
	found = after && slabs->list[after - 1].base == base;
	if (found) {
		*ret_driver = slabs->list[after - 1].driver;
		*ret_context = slabs->list[after - 1].context;
		slab_drop(slabs, after - 1);
	}
	pthread_mutex_unlock(&slabs->lock);
	return found;
}

void obs_slabs_forget(struct obs_slabs *slabs, struct obs_context *context)
{
	for (uint32_t i = slabs->n; i-- > 0;) {
		CUdeviceptr driver = slabs->list[i].driver;

		if (slabs->list[i].context != context)
			continue;
		pthread_mutex_lock(&slabs->lock);
		slab_drop(slabs, i);
		pthread_mutex_unlock(&slabs->lock);
		slabs->drv->cuMemFree_v2(driver);
	}
}

/* ---- allocations ---- */

bool obs_slabs_alloc(struct obs_slabs *slabs, uint64_t addr, uint64_t size)
{
	struct obs_slab *slab;
	uint64_t from, to;
	bool done;

	pthread_mutex_lock(&slabs->lock);
	slab = size && addr % OBS_SLAB_UNIT == 0 ? slab_of(slabs, addr, size, &from, &to) : NULL;
	done = slab && bits_are(slab->live, from, to, false);
	if (done) {
		bits_change(slab->live, from, to, true);
		bits_change(slab->first, from, from + 1, true);
	}
	pthread_mutex_unlock(&slabs->lock);
	return done;
}

bool obs_slabs_free(struct obs_slabs *slabs, uint64_t addr)
{
	struct obs_slab *slab;
	uint64_t from, to;
	bool done;

	pthread_mutex_lock(&slabs->lock);
	slab = addr % OBS_SLAB_UNIT == 0 ? slab_of(slabs, addr, 1, &from, &to) : NULL;
	done = slab && bits_are(slab->first, from, from + 1, true);
	if (done) {
		bits_change(slab->live, from, end_of(slab, from), false);
		bits_change(slab->first, from, from + 1, false);
	}
	pthread_mutex_unlock(&slabs->lock);
	return done;
}

bool obs_slabs_check(struct obs_slabs *slabs, uint64_t addr, uint64_t size)
{
	const struct obs_slab *slab;
	uint64_t from, to;
	bool inside;

	pthread_mutex_lock(&slabs->lock);
	slab = slab_of(slabs, addr, size, &from, &to);
	inside = slab && bits_are(slab->live, from, to, true) &&
		bits_are(slab->first, from + 1, to, false);
	pthread_mutex_unlock(&slabs->lock);
	return inside;
}
