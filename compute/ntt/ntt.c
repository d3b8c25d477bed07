/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * There are two networks. `scatter` goes from natural to bit-reversed order: at level s there are
 * 2^s blocks; block i multiplies its upper half by root i and then computes (a + b, a - b).
 * `gather` is its mirror image, from bit-reversed to natural order: (a + b, (a - b) root). Each
 * runs with roots or with inverse roots, which gives forward and inverse transforms for both pairs
 * of orders.
 */
#include "compute/ntt/lanes.h"
#include "compute/ntt/ntt.h"
#include "compute/ntt/reverse.h"
#include "compute/ntt/roots.h"

#define LEAF_LOG 12 /* 128 KiB: a block that one thread completes within its cache */
#define PIECE    2048

struct run {
	const struct obk_ntt_job *job;
	struct obk_fr *data;
	const struct obk_fr *roots;
	unsigned log_roots;
	bool inverse, stopped;
	/* the current level */
	unsigned level;
	size_t pieces;
	/* scaling: element j is multiplied by scale shift^j */
	struct obk_fr scale, shift;
	bool reversed;
};

static bool gathers(const struct obk_ntt_job *job)
{
	return job->order == OBK_NTT_RN || job->order == OBK_NTT_RR;
}

/* Runs body for all items, unless the job was stopped. */
static void loop(struct run *r, size_t items, void (*body)(void *arg, size_t item, unsigned thread),
	void *arg)
{
	if (!r->stopped)
		r->stopped = !obk_pool_run_until(r->job->pool, &r->job->stop, items, body, arg);
}

/*
 * Root i, or minus its inverse; the caller compensates for the sign by swapping a subtraction. For
 * i = 0 it is 1 in both cases.
 */
static struct obk_fr root_at(const struct run *r, size_t i)
{
	struct obk_fr t;
	uint64_t turn;

	if (r->inverse && i)
		i ^= ((size_t)1 << (63 - __builtin_clzll(i))) - 1;
	if (i >> r->log_roots == 0)
		return r->roots[i];
	/*
	 * f is additive over disjoint bits: the low part is in the table, the high part is computed
	 * from its reversed bits
	 */
	obk_fr_root(&t, 32);
	/* f(i) 2^32 */
	turn = obk_ntt_reverse_bits((uint32_t)(i & ~(((size_t)1 << r->log_roots) - 1)), 31);
	obk_fr_pow(&t, &t, &turn, 1);
	obk_fr_mul(&t, &t, &r->roots[i & (((size_t)1 << r->log_roots) - 1)]);
	return t;
}

static void scatter_pairs(
	struct obk_fr *a, struct obk_fr *b, size_t n, const struct obk_fr *w, bool one, bool swap)
{
	for (size_t j = 0; j < n; j++) {
		struct obk_fr t = b[j], u = a[j];

		if (!one)
			obk_fr_mul(&t, &t, w);
		if (swap) { /* w is minus the inverse root */
			obk_fr_sub(&a[j], &u, &t);
			obk_fr_add(&b[j], &u, &t);
		} else {
			obk_fr_add(&a[j], &u, &t);
			obk_fr_sub(&b[j], &u, &t);
		}
	}
}

static void gather_pairs(
	struct obk_fr *a, struct obk_fr *b, size_t n, const struct obk_fr *w, bool one, bool swap)
{
	for (size_t j = 0; j < n; j++) {
		struct obk_fr t = b[j], u = a[j];

		obk_fr_add(&a[j], &u, &t);
		if (swap)
			obk_fr_sub(&b[j], &t, &u);
		else
			obk_fr_sub(&b[j], &u, &t);
		if (!one)
			obk_fr_mul(&b[j], &b[j], w);
	}
}

/* Half the length of the blocks at a level of the network. */
static size_t half_of(const struct run *r, unsigned level)
{
	return (size_t)1 << (r->job->log_n - 1 - level);
}

/* Processes the part [from, from + n) of the upper half of block i. */
static void block_part(const struct run *r, struct obk_fr *data, unsigned level, size_t i,
	size_t from, size_t n, const struct obk_fr *w, bool gather)
{
	size_t half = half_of(r, level);
	struct obk_fr *a = data + 2 * half * i + from;

	if (gather)
		gather_pairs(a, a + half, n, w, i == 0, r->inverse && i);
	else
		scatter_pairs(a, a + half, n, w, i == 0, r->inverse && i);
}

/*
 * Processes the levels [from, log_n) of the part of the network that stays inside block `block` of
 * level `from`.
 */
static void leaf(const struct run *r, struct obk_fr *data, unsigned from, size_t block, bool gather)
{
	unsigned levels = r->job->log_n - from;

	for (unsigned l = 0; l < levels; l++) {
		unsigned level = gather ? r->job->log_n - 1 - l : from + l;
		size_t blocks = (size_t)1 << (level - from), first = block << (level - from);
		struct obk_fr high = obk_fr_one;
		bool beyond = (first + blocks - 1) >> r->log_roots != 0;

		/*
		 * beyond the table: all blocks here have the same high bits, unless there are more
		 * blocks than entries, which LEAF_LOG rules out
		 */
		if (beyond) {
			size_t mask = ((size_t)1 << r->log_roots) - 1;
			struct obk_fr low =
				r->roots[(r->inverse ? (first ^
							       (((size_t)1 << (63 -
									 __builtin_clzll(first))) -
								       1))
						     : first) &
					mask];

			high = root_at(r, first);
			obk_fr_inv(&low, &low);
			obk_fr_mul(&high, &high, &low);
		}
		for (size_t i = first; i < first + blocks; i++) {
			struct obk_fr w;
			size_t at = i;

			if (r->inverse && i)
				at ^= ((size_t)1 << (63 - __builtin_clzll(i))) - 1;
			w = r->roots[at & (((size_t)1 << r->log_roots) - 1)];
			if (beyond)
				obk_fr_mul(&w, &w, &high);
			block_part(r, data, level, i, 0, half_of(r, level), &w, gather);
		}
	}
}

static unsigned leaf_level(const struct run *r)
{
	return r->job->log_n > LEAF_LOG ? r->job->log_n - LEAF_LOG : 0;
}

static void leaf_body(void *arg, size_t item, unsigned thread)
{
	const struct run *r = arg;
	unsigned from = leaf_level(r);
	size_t per = (size_t)1 << from;
	bool gather = gathers(r->job);

	(void)thread;
	leaf(r, r->data + ((item >> from) << r->job->log_n), from, item & (per - 1), gather);
}

/* One level of the network over all data, in parts. */
static void level_body(void *arg, size_t item, unsigned thread)
{
	const struct run *r = arg;
	size_t half = half_of(r, r->level), pieces = half / PIECE,
	       i = item / pieces % ((size_t)1 << r->level);
	struct obk_fr *data = r->data + ((item / pieces >> r->level) << r->job->log_n);
	bool gather = gathers(r->job);
	struct obk_fr w = root_at(r, i);

	(void)thread;
	block_part(r, data, r->level, i, item % pieces * PIECE, PIECE, &w, gather);
}

/*
 * Multiplies element j by scale shift^(j reversed): bit k of j adds 2^(log_n - 1 - k) to the
 * exponent.
 */
static void scale_reversed(const struct run *r, struct obk_fr *x, size_t first, size_t count)
{
	struct obk_fr factor[PIECE], step;
	uint64_t e = obk_ntt_reverse_bits((uint32_t)first, r->job->log_n);

	obk_fr_pow(&step, &r->shift, &e, 1);
	obk_fr_mul(&factor[0], &step, &r->scale);
	for (unsigned k = 0; (size_t)1 << k < count; k++) {
		e = (uint64_t)1 << (r->job->log_n - 1 - k);
		obk_fr_pow(&step, &r->shift, &e, 1);
		for (size_t j = 0; j < (size_t)1 << k; j++)
			obk_fr_mul(&factor[((size_t)1 << k) + j], &factor[j], &step);
	}
	for (size_t j = 0; j < count; j++)
		obk_fr_mul(&x[j], &x[j], &factor[j]);
}

static void scale_body(void *arg, size_t item, unsigned thread)
{
	const struct run *r = arg;
	size_t n = (size_t)1 << r->job->log_n, count = n < PIECE ? n : PIECE, pieces = n / count,
	       first = item % pieces * count;
	struct obk_fr *x = r->data + item * count, t;

	(void)thread;
	if (!r->reversed) {
		uint64_t e = first;

		if (obk_fr_equal(&r->shift, &obk_fr_one)) {
			for (size_t j = 0; j < count; j++)
				obk_fr_mul(&x[j], &x[j], &r->scale);
			return;
		}
		obk_fr_pow(&t, &r->shift, &e, 1);
		obk_fr_mul(&t, &t, &r->scale);
		for (size_t j = 0; j < count; j++) {
			obk_fr_mul(&x[j], &x[j], &t);
			obk_fr_mul(&t, &t, &r->shift);
		}
		return;
	}
	scale_reversed(r, x, first, count);
}

static void scale(struct run *r, const struct obk_fr *by, const struct obk_fr *shift, bool reversed)
{
	size_t n = (size_t)1 << r->job->log_n;

	r->scale = *by;
	r->shift = *shift;
	r->reversed = reversed && !obk_fr_equal(shift, &obk_fr_one);
	loop(r, r->job->batch * (n / (n < PIECE ? n : PIECE)), scale_body, r);
}

static void network(struct run *r)
{
	bool gather = gathers(r->job);
	unsigned top = leaf_level(r);

	if (gather)
		loop(r, r->job->batch << top, leaf_body, r);
	for (unsigned l = 0; l < top; l++) {
		r->level = gather ? top - 1 - l : l;
		loop(r, r->job->batch * (((size_t)1 << (r->job->log_n - 1)) / PIECE), level_body,
			r);
	}
	if (!gather)
		loop(r, r->job->batch << top, leaf_body, r);
}

struct tiles {
	struct obk_ntt_pass pass;
	obk_ntt_tile_fn *tile;
};

static void tile_body(void *arg, size_t item, unsigned thread)
{
	const struct tiles *t = arg;

	(void)thread;
	t->tile(&t->pass, item);
}

/*
 * Executes the network in tiles, in as few passes over the data as the depth of tiles allows, and
 * multiplies by `by` unless that is one. False: there are no tiles for this processor or size, and
 * nothing was done.
 */
static bool tile_network(struct run *r, const struct obk_fr *by)
{
	unsigned log_n = r->job->log_n,
		 passes = (log_n + OBK_NTT_TILE_MAX_LEVELS - 1) / OBK_NTT_TILE_MAX_LEVELS, done = 0;
	struct tiles t = { .tile = obk_ntt_tile_choose() };
	struct obk_fr to_lanes, scale;

	if (!t.tile || log_n < 2 * OBK_NTT_TILE_MIN_LEVELS)
		return false;
	passes = passes < 2 ? 2 : passes;
	t.pass = (struct obk_ntt_pass){ .data = r->data,
		.log_n = log_n,
		.gather = gathers(r->job),
		.inverse = r->inverse,
		.log_roots = r->log_roots,
		.roots = obk_roots_get_lanes(r->log_roots) };
	obk_fr_from_plain(&to_lanes, (uint64_t[4]){ OBK_ROOTS_TO_LANES });
	obk_fr_mul(&scale, by, &to_lanes);
	for (unsigned i = 0; i < passes; i++) {
		/*
		 * levels are divided evenly among passes; the first passes take the remainder; a
		 * gather starts with the last level
		 */
		unsigned which = t.pass.gather ? passes - 1 - i : i;

		t.pass.level = which * (log_n / passes) +
			(which < log_n % passes ? which : log_n % passes);
		t.pass.levels = log_n / passes + (which < log_n % passes);
		done += t.pass.levels;
		t.pass.scale = done == log_n && !obk_fr_equal(by, &obk_fr_one) ? &scale : NULL;
		loop(r, r->job->batch << (log_n - t.pass.levels - OBK_NTT_LANES_LOG), tile_body,
			&t);
	}
	return true;
}

enum ob_err obk_ntt_check(const struct obk_ntt_job *job, bool data, unsigned max_log_n,
	size_t max_elements, struct obk_fault *fault)
{
	if (!job)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM, "there is no job");
	if (job->log_n > max_log_n)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"a transform of 2^%u elements is beyond the largest, 2^%u", job->log_n,
			max_log_n);
	if (job->batch > max_elements >> job->log_n)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"%zu transforms of 2^%u elements are more than %zu elements: split the "
			"batch",
			job->batch, job->log_n, max_elements);
	if ((unsigned)job->direction > OBK_NTT_INVERSE || (unsigned)job->order > OBK_NTT_RR)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the direction %u or the order %u is none of the named ones",
			(unsigned)job->direction, (unsigned)job->order);
	if (job->coset && obk_fr_is_zero(job->coset))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the shift of the coset is zero; give any other element");
	if (job->batch && !data)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM, "there is no data");
	return OB_ERR_NONE;
}

/* Executes the network and multiplies by `by`. */
static void transform(struct run *r, const struct obk_fr *by)
{
	if (tile_network(r, by))
		return;
	if (r->job->log_n)
		network(r);
	if (!obk_fr_equal(by, &obk_fr_one))
		scale(r, by, &obk_fr_one, false);
}

enum ob_err obk_ntt_run(const struct obk_ntt_job *job, struct obk_fr *data, struct obk_fault *fault)
{
	struct run r = { .job = job, .data = data };
	struct obk_fr by = obk_fr_one, shift = obk_fr_one;
	enum ob_err err =
		obk_ntt_check(job, data != NULL, OBK_NTT_MAX_LOG_N, OBK_NTT_MAX_BATCH, fault);
	bool before, after;

	if (err || job->batch == 0)
		return err;
	r.inverse = job->direction == OBK_NTT_INVERSE;
	r.log_roots = job->log_n > OBK_ROOTS_MAX_LOG ? OBK_ROOTS_MAX_LOG : job->log_n;
	before = !r.inverse && job->coset;
	after = r.inverse && job->coset;
	if (job->coset)
		shift = *job->coset;
	if (r.inverse) {
		obk_fr_from_plain(&by, (uint64_t[4]){ (uint64_t)1 << job->log_n });
		obk_fr_inv(&by, &by);
		obk_fr_inv(&shift, &shift);
	}
	/* get the roots first: if that fails the data must be unchanged */
	r.roots = obk_roots_get(r.log_roots);
	if (!r.roots || (obk_ntt_tile_choose() && !obk_roots_get_lanes(r.log_roots)))
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for 2^%u roots of unity: free some, or allow the process more",
			r.log_roots);
	if (before)
		scale(&r, &obk_fr_one, &shift, gathers(job));
	transform(&r, after ? &obk_fr_one : &by);
	/* a network reverses the order; NN and RR need the original order */
	if (!r.stopped && (job->order == OBK_NTT_NN || job->order == OBK_NTT_RR))
		r.stopped =
			!obk_ntt_reverse_batch(data, job->log_n, job->batch, job->pool, &job->stop);
	if (after)
		scale(&r, &by, &shift, job->order == OBK_NTT_NR || job->order == OBK_NTT_RR);
	return r.stopped ? obk_fault_set(fault, OB_ERR_CANCELLED, OBK_FAULT_NO_ITEM,
				   "the transform was stopped")
			 : OB_ERR_NONE;
}
