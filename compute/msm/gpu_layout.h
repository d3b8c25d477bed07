/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Private to the MSM on a GPU: how the products of a call are divided into groups, how a group is
 * divided among threads, and which buffers it takes. A group consists of several whole products, or
 * of a part of one product's points if memory is short. The caller fills the first four fields; it
 * owns what they point to.
 */
#ifndef OBK_MSM_GPU_LAYOUT_H
#define OBK_MSM_GPU_LAYOUT_H

#include "compute/msm/gpu_bases_inside.h"

struct obk_msm_gpu_layout {
	const struct obk_msm_gpu_bases *b;
	const struct obk_msm_job *job;
	struct obk_gpu *gpu;
	const struct obk_msm_gpu_tuning *tuning;
	struct obk_plan plan;
	struct obk_msm_shape shape; /* of the current group */
	size_t chunks;
	uint32_t least; /* fewest entries in a chunk */
	uint32_t each;  /* multiples per thread */
};

enum {
	OBK_MSM_BUFFER_PLAIN,
	OBK_MSM_BUFFER_ENTRIES,
	OBK_MSM_BUFFER_RANKS,
	OBK_MSM_BUFFER_COUNTS,
	OBK_MSM_BUFFER_TILES,
	OBK_MSM_BUFFER_SUMS,
	OBK_MSM_BUFFER_FOLDS,
	OBK_MSM_BUFFER_HEADS,
	OBK_MSM_BUFFER_HEAD_KEYS,
	OBK_MSM_BUFFER_JOINED,
	OBK_MSM_BUFFER_JOINED_KEYS,
	OBK_MSM_BUFFER_RESULT,
	OBK_MSM_BUFFERS,
};

#define OBK_MSM_RESULT_HEADER sizeof(struct obk_g1) /* bytes before the points of a result */

/* Makes the plan of the job's products. First. */
void obk_msm_gpu_layout_plan(struct obk_msm_gpu_layout *l);
/*
 * Chooses the largest group for which the device has room: *ret_products whole products, or
 * *ret_count points of one. May change the plan to a narrower window. Between obk_gpu_enter and
 * obk_gpu_leave. OB_ERR_NO_MEMORY.
 */
enum ob_err obk_msm_gpu_layout_choose(struct obk_msm_gpu_layout *l, size_t *ret_count,
	size_t *ret_products, struct obk_fault *fault);
/* Makes a group of this size the current one and divides its work among threads. */
void obk_msm_gpu_layout_set(struct obk_msm_gpu_layout *l, size_t count, size_t products);
/* Bytes of all buffers, enough for the current group and for smaller ones. */
void obk_msm_gpu_layout_sizes(const struct obk_msm_gpu_layout *l, size_t size[OBK_MSM_BUFFERS]);

/* The number of threads that sum up the multiples of one scalar. */
static inline uint32_t obk_msm_gpu_layout_parts(const struct obk_msm_gpu_layout *l)
{
	return (l->shape.windows + l->each - 1) / l->each;
}

static inline uint32_t obk_msm_gpu_layout_total(const struct obk_msm_gpu_layout *l)
{
	return l->shape.products * l->shape.count;
}

static inline size_t obk_msm_gpu_layout_keys(const struct obk_msm_gpu_layout *l)
{
	return (size_t)l->shape.products * l->shape.sets * l->shape.buckets;
}

static inline size_t obk_msm_gpu_layout_tiles(size_t keys)
{
	return (keys + OBK_MSM_SCAN_TILE - 1) / OBK_MSM_SCAN_TILE;
}

/* Points in the result of the current group. */
static inline size_t obk_msm_gpu_layout_points(const struct obk_msm_gpu_layout *l)
{
	return l->b->multiples ? l->shape.products
			       : (size_t)l->shape.products * l->shape.sets * l->shape.window;
}

#endif
