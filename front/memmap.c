/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The allocation map: a skip list by base address, under one readers-writer lock. Nearly every copy
 * and many launches make a look-up; every allocation makes a change. Both take about log2(live
 * ranges) steps. Nodes are reused and not freed.
 */
#include <stdlib.h>
#include <string.h>

#include "front/private.h"

#define LEVELS 16u /* sufficient for 4^16 ranges, many more than a process has */

struct node {
	struct obf_mem mem;
	unsigned levels;
	struct node *next[];
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct node *heads[LEVELS];
static unsigned top = 1; /* the largest number of levels of any node so far */
/* unused nodes by number of levels, linked through next[0] */
static struct node *spare[LEVELS + 1];
static uint64_t random_state = 0x9e3779b97f4a7c15u;
static uint64_t next_buffer_id = 1;

/* 1 with probability 3/4, 2 with 3/16, ... Under the write lock. */
static unsigned level_draw(void)
{
	unsigned zeros;

	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	zeros = (unsigned)__builtin_ctzll(random_state | 1ull << 62);
	return ob_min(1 + zeros / 2, LEVELS);
}

static struct node *node_take(void)
{
	unsigned levels = level_draw();
	struct node *node = spare[levels];

	if (node) {
		spare[levels] = node->next[0];
		return node;
	}
	node = malloc(sizeof *node + levels * sizeof node->next[0]);
	if (node)
		node->levels = levels;
	return node;
}

static void node_give(struct node *node)
{
	node->next[0] = spare[node->levels];
	spare[node->levels] = node;
}

/*
 * Returns the last node with base <= addr, or NULL. links (may be NULL) receives, for each level,
 * the link that passes over the position of addr.
 */
static struct node *walk(uint64_t addr, bool strictly_below, struct node **links[LEVELS])
{
	struct node *last = NULL, **row = heads;

	for (unsigned level = top; links && level < LEVELS; level++)
		links[level] = &heads[level];
	for (unsigned level = top; level-- > 0;) {
		struct node *next;

		while ((next = row[level]) &&
			(next->mem.base < addr || (!strictly_below && next->mem.base == addr))) {
			last = next;
			row = next->next;
		}
		if (links)
			links[level] = &row[level];
	}
	return last;
}

static void bounds_add(struct obf_mem_bounds *bounds, uint64_t base, uint64_t size);

bool obf_mem_insert(struct obf_mem *mem)
{
	struct node **links[LEVELS], *before, *after, *node;
	bool ok = false;

	if (mem->size == 0 || mem->base + mem->size < mem->base)
		return false;
	pthread_rwlock_wrlock(&lock);
	before = walk(mem->base, true, links);
	after = *links[0];
	if (!(before && before->mem.base + before->mem.size > mem->base) &&
		!(after && mem->base + mem->size > after->mem.base)) {
		node = node_take();
		if (node) {
			mem->buffer_id = next_buffer_id++;
			bounds_add(
				mem->kind == OBF_MEM_DEVICE ? &obf_mem_bounds : &obf_pinned_bounds,
				mem->base, mem->size);
			if (mem->kind != OBF_MEM_DEVICE)
				atomic_fetch_or(&obf_launch_watched, OBF_WATCH_PINNED);
			if (mem->sharing)
				atomic_fetch_or(&obf_launch_watched, OBF_WATCH_SHARED);
			node->mem = *mem;
			top = ob_max(top, node->levels);
			for (unsigned level = 0; level < node->levels; level++) {
				node->next[level] = *links[level];
				*links[level] = node;
			}
			ok = true;
		}
	}
	pthread_rwlock_unlock(&lock);
	return ok;
}

/* Removes the node after links[0]. */
static void unlink_at(struct node **links[LEVELS], struct node *node)
{
	for (unsigned level = 0; level < node->levels; level++)
		*links[level] = node->next[level];
	node_give(node);
}

bool obf_mem_remove(uint64_t base, struct obf_mem *ret)
{
	struct node **links[LEVELS], *node;
	bool found;

	pthread_rwlock_wrlock(&lock);
	walk(base, true, links);
	node = *links[0];
	found = node && node->mem.base == base;
	if (found) {
		if (ret)
			*ret = node->mem;
		unlink_at(links, node);
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

bool obf_mem_share(uint64_t base, enum obf_shared sharing, struct obf_mem *ret)
{
	struct node *node;
	bool found;

	pthread_rwlock_wrlock(&lock);
	node = walk(base, false, NULL);
	found = node && node->mem.base == base;
	if (found) {
		node->mem.sharing = sharing;
		atomic_fetch_or(&obf_launch_watched, OBF_WATCH_SHARED);
		*ret = node->mem;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

bool obf_mem_sync_memops(uint64_t addr, bool on)
{
	struct node *node;
	bool found;

	pthread_rwlock_wrlock(&lock);
	node = walk(addr, false, NULL);
	found = node && addr - node->mem.base < node->mem.size;
	if (found)
		node->mem.sync_memops = on;
	pthread_rwlock_unlock(&lock);
	return found;
}

bool obf_mem_overlaps(uint64_t base, uint64_t size)
{
	const struct node *last;
	bool found;

	pthread_rwlock_rdlock(&lock);
	last = walk(base + size - 1, false, NULL);
	found = last && last->mem.base + last->mem.size > base;
	pthread_rwlock_unlock(&lock);
	return found;
}

bool obf_mem_take_next(
	const struct obf_ctx *ctx, enum obf_mem_kind kind, uint64_t *from, struct obf_mem *ret)
{
	struct node **links[LEVELS], *node;
	bool found = false;

	pthread_rwlock_wrlock(&lock);
	walk(*from, true, links);
	for (node = *links[0]; node &&
		(node->mem.ctx != ctx || node->mem.joins || (kind && node->mem.kind != kind));
		node = node->next[0])
		;
	if (node) {
		*ret = node->mem;
		*from = node->mem.base;
		walk(node->mem.base, true, links);
		unlink_at(links, node);
		found = true;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

void obf_mem_remove_ctx(const struct obf_ctx *ctx, void (*removed)(const struct obf_mem *mem))
{
	struct obf_mem mem;
	uint64_t from = 0;

	while (obf_mem_take_next(ctx, 0, &from, &mem))
		if (removed)
			removed(&mem);
}

/* ---- what lies at an address ---- */

/* Addresses that are used only for device memory, sorted by base. Under the lock. */
static struct window {
	uint64_t base, size;
} * windows;
static size_t n_windows, windows_capacity;

struct obf_mem_bounds obf_mem_bounds = { .low = UINT64_MAX };
struct obf_mem_bounds obf_pinned_bounds = { .low = UINT64_MAX };
_Atomic unsigned obf_launch_watched;

static void bounds_add(struct obf_mem_bounds *bounds, uint64_t base, uint64_t size)
{
	if (base < bounds->low)
		atomic_store_explicit(&bounds->low, base, memory_order_relaxed);
	if (base + size > bounds->high)
		atomic_store_explicit(&bounds->high, base + size, memory_order_relaxed);
}

/* Index of the first window above addr. */
static size_t window_after(uint64_t addr)
{
	size_t low = 0, high = n_windows;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (windows[middle].base <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool window_room(void)
{
	size_t wanted = windows_capacity ? 2 * windows_capacity : 8;
	struct window *larger;

	if (n_windows < windows_capacity)
		return true;
	larger = realloc(windows, wanted * sizeof *windows);
	if (larger) {
		windows = larger;
		windows_capacity = wanted;
	}
	return larger != NULL;
}

bool obf_mem_window(uint64_t base, uint64_t size)
{
	bool room;
	size_t at;

	pthread_rwlock_wrlock(&lock);
	bounds_add(&obf_mem_bounds, base, size);
	room = window_room();
	if (room) {
		at = window_after(base);
		memmove(windows + at + 1, windows + at, (n_windows - at) * sizeof *windows);
		windows[at] = (struct window){ base, size };
		n_windows++;
	}
	pthread_rwlock_unlock(&lock);
	return room;
}

void obf_mem_window_end(uint64_t base)
{
	size_t at;

	pthread_rwlock_wrlock(&lock);
	at = window_after(base);
	if (at && windows[at - 1].base == base) {
		n_windows--;
		memmove(windows + at - 1, windows + at, (n_windows - (at - 1)) * sizeof *windows);
	}
	pthread_rwlock_unlock(&lock);
}

static bool in_window(uint64_t addr)
{
	bool inside;
	size_t at;

	pthread_rwlock_rdlock(&lock);
	at = window_after(addr);
	inside = at && addr - windows[at - 1].base < windows[at - 1].size;
	pthread_rwlock_unlock(&lock);
	return inside;
}

/* The kind of an address in no range of the map. */
static enum obf_place_kind unlisted_kind(uint64_t addr)
{
	if (in_window(addr))
		return OBF_PLACE_UNUSED;
	return addr < OBF_HOST_LOWEST ? OBF_PLACE_INVALID : OBF_PLACE_HOST;
}

/* Number of bytes from addr in the range of `node` and, up to `size`, in the ranges that join it. */
static uint64_t bytes_left(const struct node *node, uint64_t addr, uint64_t size)
{
	uint64_t end = node->mem.base + node->mem.size;

	while (node->mem.joins && end - addr < size) {
		node = node->next[0];
		if (!node || node->mem.base != end || !node->mem.joins)
			break;
		end += node->mem.size;
	}
	return end - addr;
}

struct obf_place obf_mem_classify(uint64_t addr, uint64_t size, struct obf_mem *ret)
{
	struct obf_place place = { .left = 0 };
	const struct node *node;
	bool found;

	pthread_rwlock_rdlock(&lock);
	node = walk(addr, false, NULL);
	found = node && addr - node->mem.base < node->mem.size;
	if (found) {
		place.kind = node->mem.kind == OBF_MEM_DEVICE ? OBF_PLACE_DEVICE : OBF_PLACE_PINNED;
		place.left = bytes_left(node, addr, size);
		if (ret)
			*ret = node->mem;
	}
	pthread_rwlock_unlock(&lock);
	if (!found)
		place.kind = unlisted_kind(addr);
	return place;
}

CUresult obf_mem_side_listed(uint64_t addr, size_t size, bool said_device, bool *ret_device)
{
	struct obf_place place = obf_mem_classify(addr, size, NULL);
	bool whole = size <= place.left;

	*ret_device = place.kind == OBF_PLACE_DEVICE;
	if (ob_likely(whole))
		return CUDA_SUCCESS;
	if (said_device)
		return CUDA_ERROR_INVALID_VALUE;
	/* Host memory of which only the first part is pinned is accessible like any other. */
	if (place.kind == OBF_PLACE_PINNED)
		place.kind = unlisted_kind(addr);
	return place.kind == OBF_PLACE_HOST ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
