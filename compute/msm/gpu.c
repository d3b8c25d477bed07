/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>

#include "base/opt.h"
#include "compute/msm/gpu_inside.h"
#include "compute/msm/gpu_kernels.h"
#include "compute/msm/gpu_layout.h"
#include "compute/msm/gpu_tune.h"

/* joins of at most this many heads use a small fan: their time is that of one thread */
#define SMALL_JOIN    ((size_t)1 << 17)
#define REST_LOG      5 /* from rows of 2^5 points on, the remaining levels are one launch */
/*
 * the same with four SIMD lanes per point: from 2^3 on, because more points would keep one
 * multiprocessor busy for longer than a launch takes
 */
#define REST_LOG_FOUR 3

/* State of one call. */
struct call {
	struct obk_msm_gpu_layout l;
	const CUfunction *kernels;
	CUstream stream;
	CUdeviceptr scalars; /* of all products; 0: in host memory */
	size_t first;        /* index of the current group's first scalar among all */
	size_t offset;       /* index of its first base */
	struct obk_gpu_buffer plain, entries, ranks, counts, tiles, sums, folds, heads, head_keys,
		joined, joined_keys, result;
	/* the result as it was read: the lowest bad scalar, then points */
	unsigned long long *host;
	struct obk_g1 *products; /* [batch] */
	struct obk_fault *fault;
};

static enum ob_err launch(
	struct call *c, unsigned kernel, size_t items, unsigned rows, unsigned threads, void **args)
{
	return obk_gpu_launch(c->l.gpu, c->stream, c->kernels[kernel],
		obk_msm_gpu_blocks(items, threads), rows, threads, 0, args, c->fault);
}

/*
 * Whether additions of this many points at once are faster with four SIMD lanes per point. An
 * addition then has a latency of four products instead of thirteen, but takes sixteen product
 * slots. It is faster up to three warps for each of a multiprocessor's four schedulers.
 */
static bool takes_four(const struct call *c, size_t points)
{
	return ob_opt_on(OB_OPT_TAILS) &&
		4 * points <= (size_t)obk_gpu_info(c->l.gpu)->processors * 3 * OBK_MSM_THREADS;
}

static struct obk_gpu_buffer *buffer_at(struct call *c, unsigned i)
{
	struct obk_gpu_buffer *const all[OBK_MSM_BUFFERS] = {
		[OBK_MSM_BUFFER_PLAIN] = &c->plain,
		[OBK_MSM_BUFFER_ENTRIES] = &c->entries,
		[OBK_MSM_BUFFER_RANKS] = &c->ranks,
		[OBK_MSM_BUFFER_COUNTS] = &c->counts,
		[OBK_MSM_BUFFER_TILES] = &c->tiles,
		[OBK_MSM_BUFFER_SUMS] = &c->sums,
		[OBK_MSM_BUFFER_FOLDS] = &c->folds,
		[OBK_MSM_BUFFER_HEADS] = &c->heads,
		[OBK_MSM_BUFFER_HEAD_KEYS] = &c->head_keys,
		[OBK_MSM_BUFFER_JOINED] = &c->joined,
		[OBK_MSM_BUFFER_JOINED_KEYS] = &c->joined_keys,
		[OBK_MSM_BUFFER_RESULT] = &c->result,
	};

	return all[i];
}

static enum ob_err take_buffers(struct call *c)
{
	size_t size[OBK_MSM_BUFFERS];
	enum ob_err err = OB_ERR_NONE;

	obk_msm_gpu_layout_sizes(&c->l, size);
	for (unsigned i = 0; i < OBK_MSM_BUFFERS && !err; i++)
		err = obk_gpu_take(c->l.gpu, size[i], buffer_at(c, i), c->fault);
	c->host = malloc(size[OBK_MSM_BUFFER_RESULT]);
	if (!err && !c->host)
		err = obk_fault_set(c->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory to read the result");
	return err;
}

static void give_buffers(struct call *c)
{
	for (unsigned i = 0; i < OBK_MSM_BUFFERS; i++)
		obk_gpu_give(c->l.gpu, buffer_at(c, i));
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
		 n = (uint32_t)(bytes / OBK_SCALAR_BYTES), end = first + n,
		 total = obk_msm_gpu_layout_total(&c->l);
	uint32_t format = c->l.job->format, canonical = c->l.job->canonical;
	CUdeviceptr out = c->plain.at + first_byte,
		    in = c->scalars ? c->scalars + c->first * OBK_SCALAR_BYTES + first_byte : out,
		    bad = c->result.at;
	unsigned long long through_all = c->first + first;
	enum ob_err err = launch(c, OBK_MSM_PREPARE, n, 1, 256,
		(void *[]){ &c->l.shape, &n, &in, &format, &canonical, &out, &through_all, &bad });

	if (!err && !c->l.b->multiples)
		err = launch(c, OBK_MSM_COUNT, n, c->l.shape.windows, 256,
			(void *[]){ &c->l.shape, &first, &end, &total, &c->plain.at, &c->counts.at,
				&c->ranks.at });
	return err;
}

static enum ob_err prepare(struct call *c)
{
	size_t bytes = (size_t)obk_msm_gpu_layout_total(&c->l) * OBK_SCALAR_BYTES;
	enum ob_err err = obk_gpu_check(c->l.gpu,
		obk_gpu_driver(c->l.gpu)->set_bytes(
			c->result.at, 0xff, sizeof(uint64_t), c->stream),
		"cuMemsetD8Async", c->fault);

	if (!err && !c->l.b->multiples)
		err = obk_gpu_zero(c->l.gpu, c->stream, c->counts.at,
			obk_msm_gpu_layout_keys(&c->l) * sizeof(uint32_t), c->fault);
	if (err)
		return err;
	if (c->scalars)
		return prepare_piece(c, 0, bytes);
	return obk_gpu_upload(c->l.gpu, c->stream, c->plain.at,
		(const char *)c->l.job->scalars + c->first * OBK_SCALAR_BYTES, bytes, prepare_piece,
		c, c->fault);
}

static enum ob_err sort_entries(struct call *c)
{
	uint32_t total = obk_msm_gpu_layout_total(&c->l),
		 keys = (uint32_t)obk_msm_gpu_layout_keys(&c->l),
		 tiles = (uint32_t)obk_msm_gpu_layout_tiles(keys);
	uint32_t offset = (uint32_t)c->offset, stride = (uint32_t)c->l.b->count;
	enum ob_err err;

	err = launch(c, OBK_MSM_SCAN, (size_t)tiles * OBK_MSM_SCAN_THREADS, 1, OBK_MSM_SCAN_THREADS,
		(void *[]){ &keys, &c->counts.at, &c->tiles.at });
	if (!err)
		err = launch(c, OBK_MSM_SCAN_TILES, 1, 1, OBK_MSM_SCAN_THREADS,
			(void *[]){ &tiles, &c->tiles.at });
	if (!err)
		err = launch(c, OBK_MSM_SCATTER, total, c->l.shape.windows, 256,
			(void *[]){ &c->l.shape, &total, &c->plain.at, &c->counts.at, &c->tiles.at,
				&c->ranks.at, &offset, &stride, &c->entries.at });
	return err;
}

static enum ob_err add_entries(struct call *c)
{
	uint32_t chunks = (uint32_t)c->l.chunks;
	size_t keys = obk_msm_gpu_layout_keys(&c->l);
	CUdeviceptr total = c->tiles.at + obk_msm_gpu_layout_tiles(keys) * sizeof(uint32_t),
		    in = c->heads.at, in_keys = c->head_keys.at, out = c->joined.at,
		    out_keys = c->joined_keys.at;
	enum ob_err err = obk_gpu_zero(
		c->l.gpu, c->stream, c->sums.at, keys * sizeof(struct obk_g1), c->fault);

	if (!err)
		err = launch(c, OBK_MSM_ACCUMULATE, chunks, 1, OBK_MSM_THREADS,
			(void *[]){ &c->entries.at, &total, &chunks, &c->l.least,
				(void *)&c->l.b->points.at, &c->sums.at, &in, &in_keys });
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
	uint32_t sets = c->l.shape.products * c->l.shape.sets, level = 0,
		 log_n = c->l.shape.window - 1;
	CUdeviceptr in = c->sums.at, out = c->folds.at,
		    result = c->result.at + OBK_MSM_RESULT_HEADER;
	bool few = takes_four(c, (size_t)sets * c->l.shape.window << REST_LOG_FOUR);
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
	uint32_t parts = obk_msm_gpu_layout_parts(&c->l),
		 total = obk_msm_gpu_layout_total(&c->l) * parts, n = c->l.shape.count * parts,
		 offset = (uint32_t)c->offset, stride = (uint32_t)c->l.b->count,
		 scalars = obk_msm_gpu_layout_total(&c->l), four = ob_opt_on(OB_OPT_TAILS);
	CUdeviceptr in = c->sums.at, out;
	enum ob_err err = launch(c, OBK_MSM_MULTIPLES_SUM, total, 1, OBK_MSM_THREADS,
		(void *[]){ &c->l.shape, &scalars, &c->l.each, &c->plain.at,
			(void *)&c->l.b->points.at, &offset, &stride, &in });

	out = c->folds.at;
	do {
		uint32_t blocks = (n + OBK_MSM_TREE - 1) / OBK_MSM_TREE;
		CUdeviceptr to = blocks == 1 ? c->result.at + OBK_MSM_RESULT_HEADER : out, t = in;

		if (!err)
			err = launch(c, OBK_MSM_SUM_TREE, (size_t)blocks * (OBK_MSM_TREE / 2),
				c->l.shape.products, OBK_MSM_TREE / 2,
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
	unsigned rows = c->l.shape.window, sets = c->l.shape.sets;
	const struct obk_g1 *points = (const struct obk_g1 *)(const void *)((const char *)c->host +
		OBK_MSM_RESULT_HEADER);
	struct obk_g1 *to = &c->products[c->first / c->l.job->count + product], sum;

	(void)thread;
	if (c->l.b->multiples) {
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

	if (c->l.b->multiples) {
		err = err ? err : add_multiples(c);
	} else {
		err = err ? err : sort_entries(c);
		err = err ? err : add_entries(c);
		err = err ? err : fold_buckets(c);
	}
	if (!err)
		err = obk_gpu_read(c->l.gpu, c->stream, c->host, c->result.at,
			OBK_MSM_RESULT_HEADER +
				obk_msm_gpu_layout_points(&c->l) * sizeof(struct obk_g1),
			c->fault);
	if (!err && c->host[0] != UINT64_MAX)
		err = obk_fault_set(c->fault, OB_ERR_ARGUMENT, (size_t)c->host[0],
			"scalar %zu is not below r: reduce it, or do not ask for canonical scalars",
			(size_t)c->host[0]);
	if (!err)
		obk_pool_run(c->l.job->pool, c->l.shape.products, finish_product, c);
	return err;
}

static enum ob_err run_all(struct call *c)
{
	size_t n = c->l.job->count, batch = c->l.job->batch, count, products, done = 0;
	enum ob_err err = obk_msm_gpu_layout_choose(&c->l, &count, &products, c->fault);

	if (err)
		return err;
	obk_msm_gpu_layout_set(&c->l, count, products);
	err = take_buffers(c);
	while (done < n * batch && !err) {
		size_t product = done / n, point = done % n, left = batch - product;

		if (count == n)
			obk_msm_gpu_layout_set(&c->l, n, left < products ? left : products);
		else
			obk_msm_gpu_layout_set(&c->l, n - point < count ? n - point : count, 1);
		c->first = done;
		c->offset = c->l.job->offset + point;
		err = run_group(c);
		done += obk_msm_gpu_layout_total(&c->l);
		if (!err && c->l.job->progress)
			c->l.job->progress(
				c->l.job->progress_arg, (double)done / (double)(n * batch));
		if (!err && done < n * batch && obk_stopped(&c->l.job->stop))
			err = obk_fault_set(c->fault, OB_ERR_CANCELLED, OBK_FAULT_NO_ITEM,
				"the product was stopped");
	}
	/* no work may be pending on buffers that are given back */
	if (err && !obk_gpu_lost(c->l.gpu))
		obk_gpu_wait(c->l.gpu, c->stream, NULL);
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

static enum ob_err run_entered(struct call *c)
{
	const struct obk_msm_gpu_bases *b = c->l.b;
	enum ob_err err = obk_gpu_load(b->gpu, &obk_msm_gpu_kernels, &c->kernels, c->fault);

	if (!err)
		err = obk_gpu_stream_take(b->gpu, &c->stream, c->fault);
	if (err)
		return err;
	obk_msm_gpu_layout_plan(&c->l);
	err = run_all(c);
	obk_gpu_stream_give(b->gpu, c->stream);
	return err;
}

enum ob_err obk_msm_gpu_run_by(const struct obk_msm_gpu_bases *bases, const struct obk_msm_job *job,
	const struct obk_msm_gpu_tuning *tuning, CUdeviceptr scalars,
	struct obk_g1_affine *ret_points, struct obk_fault *fault)
{
	struct call c = { .l = { .b = bases, .job = job, .gpu = bases->gpu, .tuning = tuning },
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
