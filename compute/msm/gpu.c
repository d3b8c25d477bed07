/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "compute/msm/gpu_inside.h"
#include "compute/msm/gpu_tune.h"

#define MAX_KEYS      ((size_t)1 << 31)
#define MAX_PIECES    64
#define CHUNK_MIN     4
#define CHUNK_MAX     128
/* joins of at most this many heads use a small fan: their time is that of one thread */
#define SMALL_JOIN    ((size_t)1 << 17)
#define REST_LOG      5 /* from rows of 2^5 points on, the remaining levels are one launch */
/*
 * the same with four SIMD lanes per point: from 2^3 on, because more points would keep one
 * multiprocessor busy for longer than a launch takes
 */
#define REST_LOG_FOUR 3

extern const unsigned char obk_msm_image_start[], obk_msm_image_end[];
static const char *const names[OBK_MSM_KERNELS] = { "msm_prepare", "msm_count", "msm_scan",
	"msm_scan_tiles", "msm_scatter", "msm_accumulate", "msm_join", "msm_fold", "msm_fold_rest",
	"msm_multiples_sum", "msm_tree", "msm_join_four", "msm_fold_four", "msm_fold_rest_four" };
const struct obk_gpu_image obk_msm_gpu_kernels = { "multi-scalar products", obk_msm_image_start,
	obk_msm_image_end, OBK_MSM_KERNELS, names };

/*
 * State of one call. A group consists of several whole products, or of a part of one product's
 * points if memory is short.
 */
struct call {
	const struct obk_msm_gpu_bases *b;
	const struct obk_msm_job *job;
	struct obk_gpu *gpu;
	const CUfunction *kernels;
	CUstream stream;
	CUdeviceptr scalars; /* of all products; 0: in host memory */
	const struct obk_msm_gpu_tuning *tuning;
	struct obk_plan plan;
	struct obk_msm_shape shape; /* of the current group */
	size_t first;               /* index of its first scalar among all */
	size_t offset;              /* index of its first base */
	size_t chunks;
	uint32_t least; /* fewest entries in a chunk */
	uint32_t each;  /* multiples per thread */
	struct obk_gpu_buffer plain, entries, ranks, counts, tiles, sums, folds, heads, head_keys,
		joined, joined_keys, result;
	/* the result as it was read: the lowest bad scalar, then points */
	unsigned long long *host;
	struct obk_g1 *products; /* [batch] */
	struct obk_fault *fault;
};

#define HEADER sizeof(struct obk_g1) /* bytes before the points of a result */

static enum ob_err launch(
	struct call *c, unsigned kernel, size_t items, unsigned rows, unsigned threads, void **args)
{
	return obk_gpu_launch(c->gpu, c->stream, c->kernels[kernel],
		obk_msm_gpu_blocks(items, threads), rows, threads, 0, args, c->fault);
}

/* The number of threads that sum up the multiples of one scalar. */
static uint32_t parts_of(const struct call *c)
{
	return (c->shape.windows + c->each - 1) / c->each;
}

static uint32_t total_of(const struct call *c)
{
	return c->shape.products * c->shape.count;
}

static size_t keys_of(const struct call *c)
{
	return (size_t)c->shape.products * c->shape.sets * c->shape.buckets;
}

static size_t tiles_of(size_t keys)
{
	return (keys + OBK_MSM_SCAN_TILE - 1) / OBK_MSM_SCAN_TILE;
}

/* The number of threads that keep the device busy. */
static size_t threads_of(const struct call *c)
{
	return (size_t)obk_gpu_info(c->gpu)->processors * OBK_MSM_RESIDENT * OBK_MSM_THREADS;
}

/*
 * Whether additions of this many points at once are faster with four SIMD lanes per point. An
 * addition then has a latency of four products instead of thirteen, but takes sixteen product
 * slots. It is faster up to three warps for each of a multiprocessor's four schedulers.
 */
static bool takes_four(const struct call *c, size_t points)
{
	return ob_opt_on(OB_OPT_TAILS) &&
		4 * points <= (size_t)obk_gpu_info(c->gpu)->processors * 3 * OBK_MSM_THREADS;
}

/* Divides the work of a group; depends on its size and the device. */
static void cut(struct call *c)
{
	size_t threads = threads_of(c), total = total_of(c), entries = total * c->shape.windows,
	       chunk;

	chunk = entries / (2 * threads);
	chunk = chunk < CHUNK_MIN ? CHUNK_MIN : chunk > CHUNK_MAX ? CHUNK_MAX : chunk;
	c->chunks = (entries + chunk - 1) / chunk;
	c->least = CHUNK_MIN;
	c->each = c->shape.windows;
	while (c->each > 4 && total * parts_of(c) < threads)
		c->each = (c->each + 1) / 2;
}

static size_t points_of_result(const struct call *c)
{
	return c->b->multiples ? c->shape.products
			       : (size_t)c->shape.products * c->shape.sets * c->shape.window;
}

/* Maxima for groups of this size and all smaller ones, some of which are cut into more parts. */
static void most_of(const struct call *c, size_t *chunks, size_t *parts)
{
	size_t threads = threads_of(c), total = total_of(c), least;

	/*
	 * entries / chunk with chunk = entries / (2 threads), rounded down, is below 2.5 threads;
	 * halving `each` less than doubles a number that was below `threads`
	 */
	least = total * c->shape.windows / CHUNK_MIN + 1;
	least = least < 3 * threads ? least : 3 * threads;
	*chunks = c->chunks > least ? c->chunks : least;
	least = total * c->shape.windows;
	least = least < 2 * threads ? least : 2 * threads;
	*parts = total * parts_of(c) > least ? total * parts_of(c) : least;
}

/* Sizes of all buffers for the group's shape and smaller groups, in the order of struct call. */
#define BUFFERS 12
static void sizes(const struct call *c, size_t size[BUFFERS])
{
	const size_t point = sizeof(struct obk_g1);
	size_t total = total_of(c), entries = total * c->shape.windows, keys = keys_of(c), chunks,
	       parts, joined;

	most_of(c, &chunks, &parts);
	joined = chunks / 4 + 1;
	memset(size, 0, BUFFERS * sizeof(*size));
	size[0] = total * OBK_SCALAR_BYTES;
	size[11] = HEADER + points_of_result(c) * point;
	if (c->b->multiples) {
		size[5] = parts * point;
		size[6] = (parts / OBK_MSM_TREE + c->shape.products + 1) * point;
		return;
	}
	size[1] = entries * sizeof(struct obk_msm_entry);
	size[2] = entries * sizeof(uint32_t);
	size[3] = keys * sizeof(uint32_t);
	size[4] = (tiles_of(keys) + 1) * sizeof(uint32_t);
	size[5] = size[6] = keys * point;
	size[7] = chunks * point;
	size[8] = chunks * sizeof(uint32_t);
	size[9] = joined * point;
	size[10] = joined * sizeof(uint32_t);
}

static size_t bytes_of(const struct call *c)
{
	size_t size[BUFFERS], sum = 0;

	sizes(c, size);
	for (unsigned i = 0; i < BUFFERS; i++)
		/* allowance for the rounding of the memory pool */
		sum += size[i] + size[i] / 8 + 512;
	return sum;
}

static void set_shape(struct call *c, size_t count, size_t products)
{
	c->shape = (struct obk_msm_shape){ .count = (uint32_t)count,
		.products = (uint32_t)products,
		.window = c->plan.window,
		.windows = c->plan.windows,
		.sets = c->plan.sets,
		.buckets = c->plan.buckets,
		.order_r = c->b->order_r };
	cut(c);
}

static bool fits(struct call *c, size_t count, size_t products, size_t room)
{
	size_t entries = count * products * c->plan.windows;

	set_shape(c, count, products);
	return keys_of(c) < MAX_KEYS && entries < MAX_KEYS && bytes_of(c) <= room;
}

/*
 * If the buckets alone fill the device, uses the widest window that fits. Narrower windows need
 * half as many buckets, which is better than a product in parts.
 */
static void narrow_window(struct call *c, size_t room)
{
	const struct obk_plan wide = c->plan;

	if (c->b->multiples || c->b->copies > 1 || c->job->window)
		return;
	while (!fits(c, c->job->count, 1, room)) {
		if (c->plan.window <= 3) {
			/* its entries do not fit either; parts of the product may fit */
			c->plan = wide;
			return;
		}
		c->plan = obk_plan_shape(c->plan.window - 1, c->b->order_r ? 255 : 257, 1);
	}
}

/* Chooses the largest group: *products whole ones, or *count points of one. */
static enum ob_err choose_group(struct call *c, size_t *count, size_t *products)
{
	size_t room, pieces = 1;
	enum ob_err err = obk_gpu_room(c->gpu, &room, c->fault);

	if (err)
		return err;
	room -= room / 16;
	narrow_window(c, room);
	*products = obk_msm_gpu_group(c->tuning, c->job->count, c->plan.windows, c->job->batch);
	*count = c->job->count;
	while (*products > 1 && !fits(c, *count, *products, room))
		*products = (*products + 1) / 2;
	while (!fits(c, *count, *products, room)) {
		pieces *= 2;
		if (pieces > MAX_PIECES || pieces > c->job->count)
			return obk_fault_set(c->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
				"GPU %u has room for %zu bytes only, too little for %zu points and "
				"windows of %u bits: use a smaller window, or the CPU",
				obk_gpu_info(c->gpu)->ordinal, room, c->job->count, c->plan.window);
		*count = (c->job->count + pieces - 1) / pieces;
	}
	return OB_ERR_NONE;
}

static struct obk_gpu_buffer *buffer_at(struct call *c, unsigned i)
{
	struct obk_gpu_buffer *const all[BUFFERS] = { &c->plain, &c->entries, &c->ranks, &c->counts,
		&c->tiles, &c->sums, &c->folds, &c->heads, &c->head_keys, &c->joined,
		&c->joined_keys, &c->result };

	return all[i];
}

static enum ob_err take_buffers(struct call *c)
{
	size_t size[BUFFERS];
	enum ob_err err = OB_ERR_NONE;

	sizes(c, size);
	for (unsigned i = 0; i < BUFFERS && !err; i++)
		err = obk_gpu_take(c->gpu, size[i], buffer_at(c, i), c->fault);
	c->host = malloc(size[BUFFERS - 1]);
	if (!err && !c->host)
		err = obk_fault_set(c->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory to read the result");
	return err;
}

static void give_buffers(struct call *c)
{
	for (unsigned i = 0; i < BUFFERS; i++)
		obk_gpu_give(c->gpu, buffer_at(c, i));
	free(c->host);
	c->host = NULL;
}

/*
 * Converts the scalars in a byte range of the group to plain numbers and computes the positions of
 * their entries in the buckets.
 */
static enum ob_err prepare_piece(void *arg, size_t first_byte, size_t bytes)
{
	struct call *c = arg;
	uint32_t first = (uint32_t)(first_byte / OBK_SCALAR_BYTES),
		 n = (uint32_t)(bytes / OBK_SCALAR_BYTES), end = first + n, total = total_of(c);
	uint32_t format = c->job->format, canonical = c->job->canonical;
	CUdeviceptr out = c->plain.at + first_byte,
		    in = c->scalars ? c->scalars + c->first * OBK_SCALAR_BYTES + first_byte : out,
		    bad = c->result.at;
	unsigned long long through_all = c->first + first;
	enum ob_err err = launch(c, OBK_MSM_PREPARE, n, 1, 256,
		(void *[]){ &c->shape, &n, &in, &format, &canonical, &out, &through_all, &bad });

	if (!err && !c->b->multiples)
		err = launch(c, OBK_MSM_COUNT, n, c->shape.windows, 256,
			(void *[]){ &c->shape, &first, &end, &total, &c->plain.at, &c->counts.at,
				&c->ranks.at });
	return err;
}

static enum ob_err prepare(struct call *c)
{
	size_t bytes = (size_t)total_of(c) * OBK_SCALAR_BYTES;
	enum ob_err err = obk_gpu_check(c->gpu,
		obk_gpu_driver(c->gpu)->set_bytes(c->result.at, 0xff, sizeof(uint64_t), c->stream),
		"cuMemsetD8Async", c->fault);

	if (!err && !c->b->multiples)
		err = obk_gpu_zero(
			c->gpu, c->stream, c->counts.at, keys_of(c) * sizeof(uint32_t), c->fault);
	if (err)
		return err;
	if (c->scalars)
		return prepare_piece(c, 0, bytes);
	return obk_gpu_upload(c->gpu, c->stream, c->plain.at,
		(const char *)c->job->scalars + c->first * OBK_SCALAR_BYTES, bytes, prepare_piece,
		c, c->fault);
}

static enum ob_err sort_entries(struct call *c)
{
	uint32_t total = total_of(c), keys = (uint32_t)keys_of(c), tiles = (uint32_t)tiles_of(keys);
	uint32_t offset = (uint32_t)c->offset, stride = (uint32_t)c->b->count;
	enum ob_err err;

	err = launch(c, OBK_MSM_SCAN, (size_t)tiles * OBK_MSM_SCAN_THREADS, 1, OBK_MSM_SCAN_THREADS,
		(void *[]){ &keys, &c->counts.at, &c->tiles.at });
	if (!err)
		err = launch(c, OBK_MSM_SCAN_TILES, 1, 1, OBK_MSM_SCAN_THREADS,
			(void *[]){ &tiles, &c->tiles.at });
	if (!err)
		err = launch(c, OBK_MSM_SCATTER, total, c->shape.windows, 256,
			(void *[]){ &c->shape, &total, &c->plain.at, &c->counts.at, &c->tiles.at,
				&c->ranks.at, &offset, &stride, &c->entries.at });
	return err;
}

static enum ob_err add_entries(struct call *c)
{
	uint32_t chunks = (uint32_t)c->chunks;
	size_t keys = keys_of(c);
	CUdeviceptr total = c->tiles.at + tiles_of(keys) * sizeof(uint32_t), in = c->heads.at,
		    in_keys = c->head_keys.at, out = c->joined.at, out_keys = c->joined_keys.at;
	enum ob_err err =
		obk_gpu_zero(c->gpu, c->stream, c->sums.at, keys * sizeof(struct obk_g1), c->fault);

	if (!err)
		err = launch(c, OBK_MSM_ACCUMULATE, chunks, 1, OBK_MSM_THREADS,
			(void *[]){ &c->entries.at, &total, &chunks, &c->least,
				(void *)&c->b->points.at, &c->sums.at, &in, &in_keys });
	for (uint32_t n = chunks; n > 1 && !err;) {
		uint32_t fan = n > SMALL_JOIN ? 16 : 4, next = (n + fan - 1) / fan;
		bool four = takes_four(c, next);
		CUdeviceptr t;

		err = launch(c, four ? OBK_MSM_JOIN_FOUR : OBK_MSM_JOIN,
			four ? 4 * (size_t)next : next, 1, OBK_MSM_THREADS,
			(void *[]){ &n, &fan, &in, &in_keys, &c->sums.at, &out, &out_keys });
		t = in;
		in = out;
		out = t;
		t = in_keys;
		in_keys = out_keys;
		out_keys = t;
		n = next;
	}
	return err;
}

static enum ob_err fold_buckets(struct call *c)
{
	uint32_t sets = c->shape.products * c->shape.sets, level = 0, log_n = c->shape.window - 1;
	CUdeviceptr in = c->sums.at, out = c->folds.at, result = c->result.at + HEADER;
	bool few = takes_four(c, (size_t)sets * c->shape.window << REST_LOG_FOUR);
	unsigned threads = few ? OBK_MSM_REST_THREADS : OBK_MSM_THREADS;
	enum ob_err err = OB_ERR_NONE;

	for (; log_n > (few ? REST_LOG_FOUR : REST_LOG) && !err; level++) {
		size_t points = ((size_t)sets * (level + 2)) << (log_n - 1);
		bool four = takes_four(c, points);
		CUdeviceptr t = in;

		log_n--;
		err = launch(c, four ? OBK_MSM_FOLD_FOUR : OBK_MSM_FOLD, four ? 4 * points : points,
			1, OBK_MSM_THREADS, (void *[]){ &level, &log_n, &sets, &in, &out });
		in = out;
		out = t;
	}
	if (!err)
		err = launch(c, few ? OBK_MSM_FOLD_REST_FOUR : OBK_MSM_FOLD_REST,
			(size_t)sets * threads, 1, threads,
			(void *[]){ &level, &log_n, &in, &out, &result });
	return err;
}

static enum ob_err add_multiples(struct call *c)
{
	uint32_t parts = parts_of(c), total = total_of(c) * parts, n = c->shape.count * parts,
		 offset = (uint32_t)c->offset, stride = (uint32_t)c->b->count,
		 scalars = total_of(c), four = ob_opt_on(OB_OPT_TAILS);
	CUdeviceptr in = c->sums.at, out;
	enum ob_err err = launch(c, OBK_MSM_MULTIPLES_SUM, total, 1, OBK_MSM_THREADS,
		(void *[]){ &c->shape, &scalars, &c->each, &c->plain.at, (void *)&c->b->points.at,
			&offset, &stride, &in });

	out = c->folds.at;
	do {
		uint32_t blocks = (n + OBK_MSM_TREE - 1) / OBK_MSM_TREE;
		CUdeviceptr to = blocks == 1 ? c->result.at + HEADER : out, t = in;

		if (!err)
			err = launch(c, OBK_MSM_SUM_TREE, (size_t)blocks * (OBK_MSM_TREE / 2),
				c->shape.products, OBK_MSM_TREE / 2,
				(void *[]){ &n, &four, &in, &to });
		in = out;
		out = t;
		n = blocks;
	} while (n > 1 && !err);
	return err;
}

/* sum over sets s of 2^(c s) (R + sum of 2^j S_j) by Horner's rule; see msm_fold. */
static void finish_product(void *arg, size_t product, unsigned thread)
{
	const struct call *c = arg;
	unsigned rows = c->shape.window, sets = c->shape.sets;
	const struct obk_g1 *points =
		(const struct obk_g1 *)(const void *)((const char *)c->host + HEADER);
	struct obk_g1 *to = &c->products[c->first / c->job->count + product], sum;

	(void)thread;
	if (c->b->multiples) {
		obk_g1_add(to, to, &points[product]);
		return;
	}
	obk_g1_set_infinity(&sum);
	points += product * sets * rows;
	for (unsigned set = sets; set-- > 0;) {
		for (unsigned j = rows; j-- > 0;) {
			if (!obk_g1_is_infinity(&sum))
				obk_g1_double(&sum, &sum);
			if (j + 1 < rows)
				obk_g1_add(&sum, &sum, &points[set * rows + j]);
		}
		obk_g1_add(&sum, &sum, &points[set * rows + rows - 1]);
	}
	obk_g1_add(to, to, &sum);
}

static enum ob_err run_group(struct call *c)
{
	enum ob_err err = prepare(c);

	if (c->b->multiples) {
		err = err ? err : add_multiples(c);
	} else {
		err = err ? err : sort_entries(c);
		err = err ? err : add_entries(c);
		err = err ? err : fold_buckets(c);
	}
	if (!err)
		err = obk_gpu_read(c->gpu, c->stream, c->host, c->result.at,
			HEADER + points_of_result(c) * sizeof(struct obk_g1), c->fault);
	if (!err && c->host[0] != UINT64_MAX)
		err = obk_fault_set(c->fault, OB_ERR_ARGUMENT, (size_t)c->host[0],
			"scalar %zu is not below r: reduce it, or do not ask for canonical scalars",
			(size_t)c->host[0]);
	if (!err)
		obk_pool_run(c->job->pool, c->shape.products, finish_product, c);
	return err;
}

static enum ob_err run_all(struct call *c)
{
	size_t n = c->job->count, batch = c->job->batch, count, products, done = 0;
	enum ob_err err = choose_group(c, &count, &products);

	if (err)
		return err;
	set_shape(c, count, products);
	err = take_buffers(c);
	while (done < n * batch && !err) {
		size_t product = done / n, point = done % n, left = batch - product;

		if (count == n)
			set_shape(c, n, left < products ? left : products);
		else
			set_shape(c, n - point < count ? n - point : count, 1);
		c->first = done;
		c->offset = c->job->offset + point;
		err = run_group(c);
		done += total_of(c);
		if (!err && c->job->progress)
			c->job->progress(c->job->progress_arg, (double)done / (double)(n * batch));
		if (!err && done < n * batch && obk_stopped(&c->job->stop))
			err = obk_fault_set(c->fault, OB_ERR_CANCELLED, OBK_FAULT_NO_ITEM,
				"the product was stopped");
	}
	/* no work may be pending on buffers that are given back */
	if (err && !obk_gpu_lost(c->gpu))
		obk_gpu_wait(c->gpu, c->stream, NULL);
	give_buffers(c);
	return err;
}

static enum ob_err check_job(const struct obk_msm_gpu_bases *b, const struct obk_msm_job *job,
	CUdeviceptr scalars, const struct obk_g1_affine *ret, struct obk_fault *fault)
{
	if (job->format > OBK_SCALAR_MONT)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the scalars' format is none of the listed values");
	if (job->batch < 1 || job->batch > OBK_MSM_MAX_BATCH)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"a batch of %zu is not in 1..%d", job->batch, OBK_MSM_MAX_BATCH);
	if (job->offset > b->count || job->count > b->count - job->offset)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"bases %zu to %zu are asked for but there are %zu", job->offset,
			job->offset + job->count, b->count);
	if (job->window && (job->window < 2 || job->window > OBK_MSM_GPU_MAX_WINDOW))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"a window of %u bits is not in 2..%d", job->window, OBK_MSM_GPU_MAX_WINDOW);
	if ((job->count && !job->scalars && !scalars) || !ret)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the scalars, or room for the result, are missing");
	if (scalars % 16)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the scalars on the device do not lie at a multiple of 16 bytes");
	return OB_ERR_NONE;
}

static void make_plan(struct call *c)
{
	const struct obk_msm_gpu_bases *b = c->b;

	if (b->multiples)
		c->plan = obk_msm_gpu_multiples_plan(b->window);
	else
		obk_msm_gpu_plan(c->tuning, &c->plan, b->copies,
			b->copies > 1 ? b->window : c->job->window, b->order_r, c->job->count,
			c->job->batch);
}

enum ob_err obk_msm_gpu_how(const struct obk_msm_gpu_bases *b, size_t n, size_t batch,
	struct obk_msm_gpu_how *ret_how, struct obk_fault *fault)
{
	struct obk_msm_job job = { .count = n, .batch = batch };
	struct obk_msm_gpu_tuning tuning;
	struct call c = { .b = b, .job = &job, .gpu = b->gpu, .tuning = &tuning, .fault = fault };
	struct obk_msm_gpu_work work = { .n = n, .multiples = b->multiples };
	size_t count = n;
	enum ob_err err;

	if (!n || n > b->count || !batch || batch > OBK_MSM_MAX_BATCH)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"%zu products of %zu points are not in 1..%d of 1..%zu", batch, n,
			OBK_MSM_MAX_BATCH, b->count);
	obk_msm_gpu_tuning_get(b->gpu, &tuning);
	make_plan(&c);
	err = obk_gpu_enter(b->gpu, fault);
	if (err)
		return err;
	err = choose_group(&c, &count, &work.products);
	obk_gpu_leave(b->gpu);
	work.plan = c.plan;
	if (!err)
		*ret_how = (struct obk_msm_gpu_how){ .plan = c.plan,
			.products = work.products,
			.count = count,
			.measured = tuning.measured,
			.seconds = obk_msm_gpu_seconds(&tuning, &work) * (double)batch /
				(double)work.products };
	return err;
}

static enum ob_err run_entered(struct call *c)
{
	const struct obk_msm_gpu_bases *b = c->b;
	enum ob_err err = obk_gpu_load(b->gpu, &obk_msm_gpu_kernels, &c->kernels, c->fault);

	if (!err)
		err = obk_gpu_stream_take(b->gpu, &c->stream, c->fault);
	if (err)
		return err;
	make_plan(c);
	err = run_all(c);
	obk_gpu_stream_give(b->gpu, c->stream);
	return err;
}

enum ob_err obk_msm_gpu_run_by(const struct obk_msm_gpu_bases *bases, const struct obk_msm_job *job,
	const struct obk_msm_gpu_tuning *tuning, CUdeviceptr scalars,
	struct obk_g1_affine *ret_points, struct obk_fault *fault)
{
	struct call c = { .b = bases,
		.job = job,
		.gpu = bases->gpu,
		.tuning = tuning,
		.scalars = scalars,
		.fault = fault };
	enum ob_err err = check_job(bases, job, scalars, ret_points, fault);
	struct obk_fp *scratch;

	if (err)
		return err;
	c.products = calloc(job->batch, sizeof(*c.products));
	scratch = calloc(job->batch, 2 * sizeof(*scratch));
	if (!c.products || !scratch)
		err = obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for %zu results", job->batch);
	for (size_t i = 0; i < job->batch && !err; i++)
		obk_g1_set_infinity(&c.products[i]);
	if (job->count && !err) {
		err = obk_gpu_enter(bases->gpu, fault);
		if (!err) {
			err = run_entered(&c);
			obk_gpu_leave(bases->gpu);
		}
	}
	if (!err)
		obk_g1_to_affine_batch(ret_points, c.products, job->batch, scratch);
	free(scratch);
	free(c.products);
	return err;
}

enum ob_err obk_msm_gpu_run(const struct obk_msm_gpu_bases *bases, const struct obk_msm_job *job,
	CUdeviceptr scalars, struct obk_g1_affine *ret_points, struct obk_fault *fault)
{
	struct obk_msm_gpu_tuning tuning;

	obk_msm_gpu_tuning_get(bases->gpu, &tuning);
	return obk_msm_gpu_run_by(bases, job, &tuning, scalars, ret_points, fault);
}
