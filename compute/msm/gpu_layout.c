/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/msm/gpu_layout.h"

#include <string.h>

#define MAX_KEYS   ((size_t)1 << 31)
#define MAX_PIECES 64
#define CHUNK_MIN  4
#define CHUNK_MAX  128

/* The number of threads that keep the device busy. */
static size_t threads_of(const struct obk_msm_gpu_layout *l)
{
	return (size_t)obk_gpu_info(l->gpu)->processors * OBK_MSM_RESIDENT * OBK_MSM_THREADS;
}

/* Divides the work of a group; depends on its size and the device. */
static void cut(struct obk_msm_gpu_layout *l)
{
	size_t threads = threads_of(l), total = obk_msm_gpu_layout_total(l),
	       entries = total * l->shape.windows, chunk;

	chunk = entries / (2 * threads);
	chunk = chunk < CHUNK_MIN ? CHUNK_MIN : chunk > CHUNK_MAX ? CHUNK_MAX : chunk;
	l->chunks = (entries + chunk - 1) / chunk;
	l->least = CHUNK_MIN;
	l->each = l->shape.windows;
	while (l->each > 4 && total * obk_msm_gpu_layout_parts(l) < threads)
		l->each = (l->each + 1) / 2;
}

/* Maxima for groups of this size and all smaller ones, some of which are cut into more parts. */
static void most_of(const struct obk_msm_gpu_layout *l, size_t *chunks, size_t *parts)
{
	size_t threads = threads_of(l), total = obk_msm_gpu_layout_total(l), least;

	/*
	 * entries / chunk with chunk = entries / (2 threads), rounded down, is below 2.5 threads;
	 * halving `each` less than doubles a number that was below `threads`
	 */
	least = total * l->shape.windows / CHUNK_MIN + 1;
	least = least < 3 * threads ? least : 3 * threads;
	*chunks = l->chunks > least ? l->chunks : least;
	least = total * l->shape.windows;
	least = least < 2 * threads ? least : 2 * threads;
	*parts = total * obk_msm_gpu_layout_parts(l) > least ? total * obk_msm_gpu_layout_parts(l)
							     : least;
}

void obk_msm_gpu_layout_sizes(const struct obk_msm_gpu_layout *l, size_t size[OBK_MSM_BUFFERS])
{
	const size_t point = sizeof(struct obk_g1);
	size_t total = obk_msm_gpu_layout_total(l), entries = total * l->shape.windows,
	       keys = obk_msm_gpu_layout_keys(l), chunks, parts, joined;

	most_of(l, &chunks, &parts);
	joined = chunks / 4 + 1;
	memset(size, 0, OBK_MSM_BUFFERS * sizeof(*size));
	size[OBK_MSM_BUFFER_PLAIN] = total * OBK_SCALAR_BYTES;
	size[OBK_MSM_BUFFER_RESULT] = OBK_MSM_RESULT_HEADER + obk_msm_gpu_layout_points(l) * point;
	if (l->b->multiples) {
		size[OBK_MSM_BUFFER_SUMS] = parts * point;
		size[OBK_MSM_BUFFER_FOLDS] = (parts / OBK_MSM_TREE + l->shape.products + 1) * point;
		return;
	}
	size[OBK_MSM_BUFFER_ENTRIES] = entries * sizeof(struct obk_msm_entry);
	size[OBK_MSM_BUFFER_RANKS] = entries * sizeof(uint32_t);
	size[OBK_MSM_BUFFER_COUNTS] = keys * sizeof(uint32_t);
	size[OBK_MSM_BUFFER_TILES] = (obk_msm_gpu_layout_tiles(keys) + 1) * sizeof(uint32_t);
	size[OBK_MSM_BUFFER_SUMS] = size[OBK_MSM_BUFFER_FOLDS] = keys * point;
	size[OBK_MSM_BUFFER_HEADS] = chunks * point;
	size[OBK_MSM_BUFFER_HEAD_KEYS] = chunks * sizeof(uint32_t);
	size[OBK_MSM_BUFFER_JOINED] = joined * point;
	size[OBK_MSM_BUFFER_JOINED_KEYS] = joined * sizeof(uint32_t);
}

static size_t bytes_of(const struct obk_msm_gpu_layout *l)
{
	size_t size[OBK_MSM_BUFFERS], sum = 0;

	obk_msm_gpu_layout_sizes(l, size);
	for (unsigned i = 0; i < OBK_MSM_BUFFERS; i++)
		/* allowance for the rounding of the memory pool */
		sum += size[i] + size[i] / 8 + 512;
	return sum;
}

void obk_msm_gpu_layout_set(struct obk_msm_gpu_layout *l, size_t count, size_t products)
{
	l->shape = (struct obk_msm_shape){ .count = (uint32_t)count,
		.products = (uint32_t)products,
		.window = l->plan.window,
		.windows = l->plan.windows,
		.sets = l->plan.sets,
		.buckets = l->plan.buckets,
		.order_r = l->b->order_r };
	cut(l);
}

static bool fits(struct obk_msm_gpu_layout *l, size_t count, size_t products, size_t room)
{
	size_t entries = count * products * l->plan.windows;

	obk_msm_gpu_layout_set(l, count, products);
	return obk_msm_gpu_layout_keys(l) < MAX_KEYS && entries < MAX_KEYS && bytes_of(l) <= room;
}

/*
 * If the buckets alone fill the device, uses the widest window that fits. Narrower windows need
 * half as many buckets, which is better than a product in parts.
 */
static void narrow_window(struct obk_msm_gpu_layout *l, size_t room)
{
	const struct obk_plan wide = l->plan;

	if (l->b->multiples || l->b->copies > 1 || l->job->window)
		return;
	while (!fits(l, l->job->count, 1, room)) {
		if (l->plan.window <= 3) {
			/* its entries do not fit either; parts of the product may fit */
			l->plan = wide;
			return;
		}
		l->plan = obk_plan_shape(l->plan.window - 1, l->b->order_r ? 255 : 257, 1);
	}
}

enum ob_err obk_msm_gpu_layout_choose(struct obk_msm_gpu_layout *l, size_t *ret_count,
	size_t *ret_products, struct obk_fault *fault)
{
	size_t room, pieces = 1;
	enum ob_err err = obk_gpu_room(l->gpu, &room, fault);

	if (err)
		return err;
	room -= room / 16;
	narrow_window(l, room);
	*ret_products = obk_msm_gpu_group(l->tuning, l->job->count, l->plan.windows, l->job->batch);
	*ret_count = l->job->count;
	while (*ret_products > 1 && !fits(l, *ret_count, *ret_products, room))
		*ret_products = (*ret_products + 1) / 2;
	while (!fits(l, *ret_count, *ret_products, room)) {
		pieces *= 2;
		if (pieces > MAX_PIECES || pieces > l->job->count)
			return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
				"GPU %u has room for %zu bytes only, too little for %zu points and "
				"windows of %u bits: use a smaller window, or the CPU",
				obk_gpu_info(l->gpu)->ordinal, room, l->job->count, l->plan.window);
		*ret_count = (l->job->count + pieces - 1) / pieces;
	}
	return OB_ERR_NONE;
}

void obk_msm_gpu_layout_plan(struct obk_msm_gpu_layout *l)
{
	const struct obk_msm_gpu_bases *b = l->b;

	if (b->multiples)
		l->plan = obk_msm_gpu_multiples_plan(b->window);
	else
		obk_msm_gpu_plan(l->tuning, &l->plan, b->copies,
			b->copies > 1 ? b->window : l->job->window, b->order_r, l->job->count,
			l->job->batch);
}
