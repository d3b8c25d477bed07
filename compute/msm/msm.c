/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "compute/msm/msm.h"
#include "compute/msm/plan.h"

#define SCALAR_BLOCK  1024 /* scalars that a thread processes together */
/*
 * Entries, and slots of buckets, that are processed together: 256 MiB of references, at most 1 GiB
 * of points.
 */
#define GROUP_ENTRIES ((size_t)1 << 26)
#define GROUP_BUCKETS ((size_t)1 << 23)

struct call {
	const struct obk_msm_bases *bases;
	const struct obk_msm_job *job;
	struct obk_msm_job range; /* the points being processed: all, or some of one product */
	struct obk_plan plan;
	struct obk_group group;
	/* of the products that are prepared together: halves or plain limbs */
	void *scalars;
	size_t prepared;       /* number of these products */
	const char *in;        /* their scalars as the caller gave them */
	size_t in_first;       /* index of the first of them */
	size_t item;           /* index of the caller's first scalar in errors */
	_Atomic size_t bad;    /* the lowest index of a refused scalar */
	pthread_mutex_t lock;  /* guards done, and calls of progress */
	double done, part;     /* done: of the whole; part: of one chunk */
	struct obk_g1 *result; /* [batch] */
	struct obk_g1 *sum;    /* [products prepared] of the range */
};

static enum ob_err check_job(size_t points, const struct obk_msm_job *job,
	const struct obk_g1_affine *ret, struct obk_fault *fault)
{
	if (job->format > OBK_SCALAR_MONT)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the scalars' format is none of the listed values");
	if (job->batch < 1 || job->batch > OBK_MSM_MAX_BATCH)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"a batch of %zu is not in 1..%d", job->batch, OBK_MSM_MAX_BATCH);
	if (job->offset > points || job->count > points - job->offset)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"bases %zu to %zu are asked for but there are %zu", job->offset,
			job->offset + job->count, points);
	if (job->window && (job->window < 2 || job->window > OBK_MSM_MAX_WINDOW))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"a window of %u bits is not in 2..%d", job->window, OBK_MSM_MAX_WINDOW);
	if ((job->count && !job->scalars) || !ret)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the scalars, or room for the result, are missing");
	return OB_ERR_NONE;
}

static void prepare_block(void *arg, size_t block, unsigned thread)
{
	struct call *c = arg;
	size_t n = c->range.count, total = c->prepared * n, first = block * SCALAR_BLOCK,
	       end = first + SCALAR_BLOCK < total ? first + SCALAR_BLOCK : total;

	(void)thread;
	for (size_t i = first; i < end; i++) {
		uint64_t plain[4];

		obk_scalar_read(plain, c->in + i * OBK_SCALAR_BYTES, c->job->format);
		if (c->job->canonical && !obk_fr_plain_is_canonical(plain)) {
			size_t seen = atomic_load_explicit(&c->bad, memory_order_relaxed),
			       item = c->in_first + i;

			while (item < seen &&
				!atomic_compare_exchange_weak_explicit(&c->bad, &seen, item,
					memory_order_relaxed, memory_order_relaxed))
				;
			return;
		}
		if (c->bases->order_r)
			obk_scalar_reduce(plain);
		if (c->bases->halves == 2) {
			struct obk_half *out =
				(struct obk_half *)c->scalars + i / n * 2 * n + i % n;

			obk_scalar_split(&out[0], &out[n], plain);
		} else {
			memcpy((uint64_t(*)[4])c->scalars + i, plain, sizeof(plain));
		}
	}
}

static void sort_body(void *arg, size_t set, unsigned thread)
{
	(void)thread;
	obk_group_sort(&((struct call *)arg)->group, set);
}

static void accumulate_body(void *arg, size_t chunk, unsigned thread)
{
	struct call *c = arg;

	obk_group_accumulate(&c->group, chunk, thread);
	if (c->job->progress) {
		pthread_mutex_lock(&c->lock);
		c->done += c->part;
		c->job->progress(c->job->progress_arg, c->done < 1 ? c->done : 1);
		pthread_mutex_unlock(&c->lock);
	}
}

static void run_sums_body(void *arg, size_t batch, unsigned thread)
{
	obk_group_run_sums(&((struct call *)arg)->group, batch, thread);
}

static void finish_body(void *arg, size_t set, unsigned thread)
{
	(void)thread;
	obk_group_finish_set(&((struct call *)arg)->group, set);
}

static void *room(size_t n, size_t bytes)
{
	size_t total = n * bytes;

	return aligned_alloc(
		OBK_LANES_ALIGN, (total + OBK_LANES_ALIGN) / OBK_LANES_ALIGN * OBK_LANES_ALIGN);
}

static void group_fini(struct obk_group *g, unsigned threads)
{
	for (unsigned i = 0; g->workers && i < threads; i++) {
		free(g->workers[i].items);
		free(g->workers[i].pieces);
		free(g->workers[i].live);
		free(g->workers[i].pairs);
		free(g->workers[i].slots);
		free(g->workers[i].workspace);
	}
	free(g->workers);
	free(g->refs);
	free(g->start);
	free(g->bucket);
	free(g->points);
	free(g->chunk);
	free(g->run);
	free(g->acc);
	free(g->run_sum);
	free(g->acc_sum);
	free(g->sum);
}

/*
 * Long segments have fewer ends to process; short ones are more numerous and share each inversion
 * among more.
 */
static uint32_t segment_length(size_t buckets_in_all, uint32_t buckets)
{
	uint32_t length = buckets_in_all <= 4096 ? 16 : buckets_in_all <= 32768 ? 32 : 64;

	return length < buckets ? length : buckets;
}

static bool worker_init(struct obk_worker *w, const struct obk_group *g)
{
	size_t pairs = g->chunk_entries / 2 + 1;

	pairs = pairs < 2 * g->segment_batch ? 2 * g->segment_batch : pairs;
	w->items = room(g->chunk_entries, sizeof(*w->items));
	w->pieces = room(g->chunk_entries, sizeof(*w->pieces));
	w->live = room(g->chunk_entries, sizeof(*w->live));
	w->pairs = room(pairs, sizeof(*w->pairs));
	w->slots = room(g->chunk_entries, g->bases->lanes->slot_bytes);
	w->workspace = room(1, g->bases->lanes->workspace_bytes(pairs));
	return w->items && w->pieces && w->live && w->pairs && w->slots && w->workspace;
}

/* Allocates memory for `sets` sets at a time. */
static bool group_init(struct obk_group *g, size_t sets, unsigned threads)
{
	size_t buckets = sets * g->plan->buckets, entries;

	g->sets = sets;
	g->entries = g->job->count * g->bases->halves * g->plan->copies;
	entries = g->entries * sets / (2 * threads);
	g->chunk_entries = entries < OBK_CHUNK_ENTRIES_MIN ? OBK_CHUNK_ENTRIES_MIN
		: entries > OBK_CHUNK_ENTRIES              ? OBK_CHUNK_ENTRIES
							   : entries;
	g->segment = segment_length(buckets, g->plan->buckets);
	g->segments = buckets / g->segment;
	g->segment_batch = (g->segments + threads - 1) / threads;
	g->segment_batch =
		g->segment_batch > OBK_SEGMENT_BATCH ? OBK_SEGMENT_BATCH : g->segment_batch;
	g->refs = room(sets * g->entries, sizeof(*g->refs));
	g->start = room(sets * ((size_t)g->plan->buckets + 1), sizeof(*g->start));
	g->bucket = room(buckets, sizeof(*g->bucket));
	g->points = room(buckets + 3 * g->segments, g->bases->lanes->slot_bytes);
	g->run = room(g->segments, sizeof(*g->run));
	g->acc = room(g->segments, sizeof(*g->acc));
	g->run_sum = room(g->segments, sizeof(*g->run_sum));
	g->acc_sum = room(g->segments, sizeof(*g->acc_sum));
	g->sum = room(sets, sizeof(*g->sum));
	g->workers = calloc(threads, sizeof(*g->workers));
	if (!g->refs || !g->start || !g->bucket || !g->points || !g->run || !g->acc ||
		!g->run_sum || !g->acc_sum || !g->sum || !g->workers)
		return false;
	for (unsigned i = 0; i < threads; i++) {
		if (!worker_init(&g->workers[i], g))
			return false;
	}
	return true;
}

/* OB_ERR_CANCELLED: the job was stopped. */
static enum ob_err loop(
	struct call *c, size_t items, void (*body)(void *arg, size_t item, unsigned thread))
{
	return obk_pool_run_until(c->job->pool, &c->job->stop, items, body, c) ? OB_ERR_NONE
									       : OB_ERR_CANCELLED;
}

/*
 * Computes the sums of `sets` sets from first_set on, numbered through the prepared products, in
 * group.sum.
 */
static enum ob_err run_group(struct call *c, size_t first_set, size_t sets, size_t sets_in_all)
{
	struct obk_group *g = &c->group;
	enum ob_err err;

	g->first_set = first_set;
	g->sets = sets;
	g->segments = sets * g->plan->buckets / g->segment;
	err = loop(c, sets, sort_body);
	err = err ? err : obk_group_cut(g);
	if (err)
		return err;
	c->part = (double)sets / (double)sets_in_all / (double)(g->chunks ? g->chunks : 1) *
		(double)c->range.count / (double)c->job->count;
	err = loop(c, g->chunks, accumulate_body);
	if (err)
		return err;
	obk_group_join(g);
	err = loop(c, (g->segments + g->segment_batch - 1) / g->segment_batch, run_sums_body);
	return err ? err : loop(c, sets, finish_body);
}

/*
 * result = the sums of the sets with their weights 2^(window set). Processes the sets [first, first
 * + n) of one product; call it for the last sets first.
 */
static void horner(
	const struct obk_plan *plan, struct obk_g1 *result, const struct obk_g1 *sum, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		for (unsigned b = 0; b < plan->window && !obk_g1_is_infinity(result); b++)
			obk_g1_double(result, result);
		obk_g1_add(result, result, &sum[i]);
	}
}

/*
 * Computes `products` products, or the range of one, whose scalars fit into the prepared memory;
 * processes the sets of each in groups of at most `most`.
 */
static enum ob_err run_products(struct call *c, size_t first, size_t products, size_t most)
{
	const struct obk_plan *plan = &c->plan;
	size_t in_all = c->job->batch * plan->sets, end = products * plan->sets,
	       before = first * c->job->count + c->range.offset - c->job->offset;
	enum ob_err err;

	c->prepared = products;
	c->in_first = c->item + before;
	c->in = (const char *)c->job->scalars + before * OBK_SCALAR_BYTES;
	err = loop(c, (products * c->range.count + SCALAR_BLOCK - 1) / SCALAR_BLOCK, prepare_block);
	if (err || c->bad != SIZE_MAX)
		return err ? err : OB_ERR_ARGUMENT;
	for (size_t i = 0; i < products; i++)
		obk_g1_set_infinity(&c->sum[i]);
	/*
	 * From the last set to the first, because Horner's rule needs them in this order. Groups of
	 * several products contain whole ones.
	 */
	while (end > 0) {
		size_t from = end > most ? end - most : 0;

		err = run_group(c, from, end - from, in_all);
		if (err)
			return err;
		for (size_t at = end; at > from;) {
			size_t product = (at - 1) / plan->sets,
			       low = product * plan->sets < from ? from : product * plan->sets;

			horner(plan, &c->sum[product], &c->group.sum[low - from], at - low);
			at = low;
		}
		end = from;
	}
	for (size_t i = 0; i < products; i++)
		obk_g1_add(&c->result[first + i], &c->result[first + i], &c->sum[i]);
	return OB_ERR_NONE;
}

static enum ob_err run_batch(struct call *c)
{
	const struct obk_msm_bases *b = c->bases;
	size_t n = c->range.count, entries = n * b->halves * c->plan.copies, most, products,
	       batch = c->job->batch, end = c->job->offset + c->job->count;
	unsigned threads = obk_pool_threads(c->job->pool);
	enum ob_err err = OB_ERR_NONE;

	most = GROUP_ENTRIES / entries < GROUP_BUCKETS / c->plan.buckets
		? GROUP_ENTRIES / entries
		: GROUP_BUCKETS / c->plan.buckets;
	most = most < 1 ? 1 : most;
	if (most >= c->plan.sets && n == c->job->count) { /* whole products */
		products = most / c->plan.sets < batch ? most / c->plan.sets : batch;
		most = products * c->plan.sets;
	} else {
		products = 1;
		most = most < c->plan.sets ? most : c->plan.sets;
	}
	c->group = (struct obk_group){ .bases = b, .job = &c->range, .plan = &c->plan };
	c->sum = room(products, sizeof(*c->sum));
	c->scalars = room(
		products * n, b->halves == 2 ? 2 * sizeof(struct obk_half) : 4 * sizeof(uint64_t));
	c->group.split = c->scalars;
	c->group.plain = c->scalars;
	if (!c->sum || !c->scalars || !group_init(&c->group, most, threads))
		err = OB_ERR_NO_MEMORY;
	for (size_t first = 0; first < batch && !err; first += products) {
		for (c->range.offset = c->job->offset; c->range.offset < end && !err;
			c->range.offset += n) {
			c->range.count = end - c->range.offset < n ? end - c->range.offset : n;
			err = run_products(c, first,
				batch - first < products ? batch - first : products, most);
		}
	}
	group_fini(&c->group, threads);
	free(c->scalars);
	free(c->sum);
	return err;
}

static size_t range_of(const struct obk_msm_job *job)
{
	size_t range = job->range ? job->range : OBK_MSM_RANGE;

	return range < job->count ? range : job->count;
}

/* item: index of the first scalar in errors. */
static enum ob_err run(const struct obk_msm_bases *bases, const struct obk_msm_job *job,
	size_t item, struct obk_g1_affine *ret_points, struct obk_fault *fault)
{
	struct call c = { .bases = bases, .job = job, .range = *job, .item = item };
	enum ob_err err = OB_ERR_NONE;
	struct obk_fp *scratch;

	c.result = calloc(job->batch, sizeof(*c.result));
	scratch = calloc(job->batch, 2 * sizeof(*scratch));
	pthread_mutex_init(&c.lock, NULL);
	atomic_init(&c.bad, SIZE_MAX);
	c.range.count = range_of(job);
	if (!c.result || !scratch)
		err = OB_ERR_NO_MEMORY;
	for (size_t i = 0; i < job->batch && !err; i++)
		obk_g1_set_infinity(&c.result[i]);
	if (job->count && !err) {
		obk_plan_make(&c.plan, bases, c.range.count, job->window);
		err = run_batch(&c);
	}
	if (err == OB_ERR_NO_MEMORY)
		obk_fault_set(fault, err, OBK_FAULT_NO_ITEM,
			"no memory to sum up %zu points: use a smaller range, window or batch, or "
			"split the product",
			job->count);
	else if (err == OB_ERR_CANCELLED)
		obk_fault_set(fault, err, OBK_FAULT_NO_ITEM, "the product was stopped");
	else if (err)
		obk_fault_set(fault, err, c.bad,
			"scalar %zu is not below r: reduce it, or do not ask for canonical scalars",
			(size_t)c.bad);
	else
		obk_g1_to_affine_batch(ret_points, c.result, job->batch, scratch);
	pthread_mutex_destroy(&c.lock);
	free(scratch);
	free(c.result);
	return err;
}

enum ob_err obk_msm_run(const struct obk_msm_bases *bases, const struct obk_msm_job *job,
	struct obk_g1_affine *ret_points, struct obk_fault *fault)
{
	enum ob_err err = check_job(bases->count, job, ret_points, fault);

	return err ? err : run(bases, job, 0, ret_points, fault);
}

/* A part of a product, reported as progress of the whole. */
struct stretch {
	const struct obk_msm_job *whole;
	size_t done, count;
};

static void stretch_progress(void *arg, double done)
{
	const struct stretch *s = arg;

	s->whole->progress(s->whole->progress_arg,
		((double)s->done + done * (double)s->count) / (double)s->whole->count);
}

/* Makes the bases and computes the product range by range. */
static enum ob_err once_in_ranges(const struct obk_msm_bases_args *args,
	const struct obk_msm_job *job, struct obk_g1_affine *ret, struct obk_fault *fault)
{
	struct stretch s = { .whole = job };
	struct obk_msm_bases_args part = *args;
	struct obk_msm_job sub = *job;
	struct obk_msm_bases *bases;
	struct obk_g1_affine p;
	struct obk_g1 sum;
	enum ob_err err = OB_ERR_NONE;

	obk_g1_set_infinity(&sum);
	sub.progress = job->progress ? stretch_progress : NULL;
	sub.progress_arg = &s;
	for (; s.done < job->count && !err; s.done += s.count) {
		s.count = job->count - s.done < range_of(job) ? job->count - s.done : range_of(job);
		part.points = (const char *)args->points + s.done * obk_msm_stride(args);
		part.first = args->first + s.done;
		part.count = sub.count = s.count;
		sub.scalars = (const char *)job->scalars + s.done * OBK_SCALAR_BYTES;
		err = obk_msm_bases_new(&part, &bases, fault);
		if (err)
			break;
		err = run(bases, &sub, s.done, &p, fault);
		obk_msm_bases_free(bases);
		if (!err)
			obk_g1_add_affine(&sum, &sum, &p);
	}
	if (!err)
		obk_g1_to_affine(ret, &sum);
	return err;
}

enum ob_err obk_msm_once(const struct obk_msm_bases_args *args, const struct obk_msm_job *job,
	struct obk_g1_affine *ret_points, struct obk_fault *fault)
{
	struct obk_msm_bases *bases;
	enum ob_err err = check_job(args->count, job, ret_points, fault);

	if (err)
		return err;
	if (job->batch == 1 && job->count == args->count && job->count > range_of(job) &&
		args->count <= OBK_MSM_MAX_POINTS && !args->table_bytes)
		return once_in_ranges(args, job, ret_points, fault);
	err = obk_msm_bases_new(args, &bases, fault);
	if (err)
		return err;
	err = run(bases, job, 0, ret_points, fault);
	obk_msm_bases_free(bases);
	return err;
}
