/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "compute/curve/lanes.h"
#include "compute/kzg/fk20.h"
#include "compute/kzg/g1_ntt.h"
#include "compute/msm/scalars.h"
#include "compute/ntt/ntt.h"

#define TERMS       OBK_FK20_TERMS
#define COLUMNS     OBK_FK20_COLUMNS
#define POINTS      (TERMS * COLUMNS)
#define MAX_WINDOWS 129 /* for 255 bits and the sign, 2 bits each */
/* target for the sums of one thread: a call of the adder then has about 2048 pairs */
#define GROUP_SUMS  64
#define SCALAR_BITS 255

struct obk_fk20 {
	pthread_mutex_t lock; /* held while the table is made */
	_Atomic bool ready;
	struct obk_g1_affine *monomial;
	const struct obk_lanes *lanes;
	unsigned window, windows, group;
	size_t multiples; /* of each point in the table: 1 .. 2^(window - 1) */
	void *table;      /* slots [column, bit-reversed][term][multiple - 1] */
	/* [column][term], used instead of the table with OUTBOARD_OPT=-cells */
	struct obk_g1_affine *plain;
};

static void *slot_of(const struct obk_lanes *lanes, void *slots, size_t i)
{
	return (char *)slots + i * lanes->slot_bytes;
}

static void *slots_new(size_t bytes)
{
	return aligned_alloc(
		OBK_LANES_ALIGN, (bytes + OBK_LANES_ALIGN - 1) / OBK_LANES_ALIGN * OBK_LANES_ALIGN);
}

struct build {
	const struct obk_fk20 *fk;
	struct obk_g1_affine *points; /* [column][term] */
	_Atomic bool failed;
};

/*
 * Transforms term j's points in the order of a correlation: position -a - 1 of 128 holds [s^(64 a +
 * j)].
 */
static void transform_body(void *arg, size_t j, unsigned thread)
{
	struct build *b = arg;
	struct obk_g1 *x = malloc(COLUMNS * sizeof(*x));
	struct obk_fp *scratch = malloc(2 * COLUMNS * sizeof(*scratch));
	struct obk_g1_affine *out = malloc(COLUMNS * sizeof(*out));

	(void)thread;
	if (x && scratch && out) {
		for (size_t i = 0; i < COLUMNS; i++)
			obk_g1_set_infinity(&x[i]);
		for (size_t a = 0; a + 1 < TERMS; a++)
			obk_g1_from_affine(&x[COLUMNS - 1 - a], &b->fk->monomial[TERMS * a + j]);
		obk_g1_ntt_scatter(x, 7, false, NULL);
		obk_g1_to_affine_batch(out, x, COLUMNS, scratch);
		for (size_t i = 0; i < COLUMNS; i++)
			b->points[TERMS * i + j] = out[i];
	} else {
		b->failed = true;
	}
	free(x);
	free(scratch);
	free(out);
}

/* Computes the multiples of a column's points: m P = (m - 1) P + P for all of them at once. */
static void multiples_body(void *arg, size_t column, unsigned thread)
{
	struct build *b = arg;
	const struct obk_lanes *lanes = b->fk->lanes;
	size_t multiples = b->fk->multiples;
	void *workspace = slots_new(lanes->workspace_bytes(TERMS));
	void *slots = slot_of(lanes, b->fk->table, column * TERMS * multiples);
	struct obk_pair pairs[TERMS];

	(void)thread;
	if (!workspace) {
		b->failed = true;
		return;
	}
	for (uint32_t j = 0; j < TERMS; j++)
		lanes->load(
			slot_of(lanes, slots, j * multiples), &b->points[TERMS * column + j], 1);
	for (uint32_t m = 1; m < multiples; m++) {
		for (uint32_t j = 0; j < TERMS; j++) {
			uint32_t first = j * (uint32_t)multiples;

			pairs[j] = (struct obk_pair){ (first + m - 1) | OBK_REF_SCRATCH,
				first | OBK_REF_SCRATCH, first + m };
		}
		lanes->add(NULL, slots, pairs, TERMS, workspace);
	}
	free(workspace);
}

struct obk_fk20 *obk_fk20_new(const struct obk_g1_affine *monomial, unsigned window)
{
	struct obk_fk20 *fk = calloc(1, sizeof(*fk));

	if (!fk)
		return NULL;
	pthread_mutex_init(&fk->lock, NULL);
	fk->monomial = malloc(TERMS * TERMS * sizeof(*monomial));
	if (!fk->monomial) {
		obk_fk20_free(fk);
		return NULL;
	}
	memcpy(fk->monomial, monomial, TERMS * TERMS * sizeof(*monomial));
	fk->lanes = obk_lanes_choose();
	fk->window = window;
	fk->windows = SCALAR_BITS / window + 1;
	fk->group = fk->windows >= GROUP_SUMS ? 1 : GROUP_SUMS / fk->windows;
	while (COLUMNS % fk->group)
		fk->group--;
	fk->multiples = (size_t)1 << (window - 1);
	return fk;
}

enum ob_err obk_fk20_points(
	const struct obk_fk20 *fk, struct obk_g1_affine *ret_points, struct obk_pool *pool)
{
	struct build b = { .fk = fk, .points = ret_points };

	obk_pool_run(pool, TERMS, transform_body, &b);
	return b.failed ? OB_ERR_NO_MEMORY : OB_ERR_NONE;
}

static enum ob_err prepare(struct obk_fk20 *fk, struct obk_pool *pool)
{
	struct build b = { .fk = fk };

	if (atomic_load_explicit(&fk->ready, memory_order_acquire))
		return OB_ERR_NONE;
	pthread_mutex_lock(&fk->lock);
	if (!fk->ready && !ob_opt_on(OB_OPT_CELLS)) {
		fk->plain = b.points = malloc(POINTS * sizeof(*b.points));
		b.failed = !b.points || obk_fk20_points(fk, b.points, pool);
		if (b.failed) {
			free(fk->plain);
			fk->plain = NULL;
		}
		/* release: as below */
		atomic_store_explicit(&fk->ready, !b.failed, memory_order_release);
	} else if (!fk->ready) {
		b.points = malloc(POINTS * sizeof(*b.points));
		fk->table = slots_new(POINTS * fk->multiples * fk->lanes->slot_bytes);
		b.failed = !b.points || !fk->table || obk_fk20_points(fk, b.points, pool);
		if (!b.failed)
			obk_pool_run(pool, COLUMNS, multiples_body, &b);
		free(b.points);
		if (b.failed) {
			free(fk->table);
			fk->table = NULL; /* the next call tries again */
		}
		/* release: pairs with the acquire above; the table is written before the flag */
		atomic_store_explicit(&fk->ready, !b.failed, memory_order_release);
	}
	pthread_mutex_unlock(&fk->lock);
	return b.failed ? OB_ERR_NO_MEMORY : OB_ERR_NONE;
}

void obk_fk20_free(struct obk_fk20 *fk)
{
	if (!fk)
		return;
	pthread_mutex_destroy(&fk->lock);
	free(fk->monomial);
	free(fk->plain);
	free(fk->table);
	free(fk);
}

struct prove {
	const struct obk_fk20 *fk;
	struct obk_fr *scalars; /* [column, bit-reversed][term] */
	struct obk_g1 *sums;    /* [column] */
	_Atomic bool failed;
};

/* Memory that a thread needs to sum a group of columns; one sum for each window of each column. */
struct work {
	uint32_t refs[MAX_WINDOWS > GROUP_SUMS ? MAX_WINDOWS : GROUP_SUMS][TERMS];
	uint32_t count[MAX_WINDOWS > GROUP_SUMS ? MAX_WINDOWS : GROUP_SUMS];
	struct obk_pair pairs[(MAX_WINDOWS > GROUP_SUMS ? MAX_WINDOWS : GROUP_SUMS) * TERMS / 2];
};

static void take_digits(const struct prove *p, struct work *w, size_t column, size_t first_sum)
{
	for (uint32_t j = 0; j < TERMS; j++) {
		size_t base = (column * TERMS + j) * p->fk->multiples;
		uint64_t plain[4];

		obk_fr_to_plain(plain, &p->scalars[column * TERMS + j]);
		for (unsigned t = 0; t < p->fk->windows; t++) {
			int32_t d = obk_scalar_digit(plain, 4, t, p->fk->window);
			size_t s = first_sum + t;

			if (d)
				w->refs[s][w->count[s]++] = d > 0
					? (uint32_t)(base + (size_t)d - 1)
					: (uint32_t)(base + (size_t)-d - 1) | OBK_REF_NEGATIVE;
		}
	}
}

/* Halves the number of items of every sum until each has at most one. */
static void add_trees(
	const struct obk_fk20 *fk, struct work *w, size_t sums, void *slots, void *workspace)
{
	size_t pairs;

	do {
		pairs = 0;
		for (size_t s = 0; s < sums; s++) {
			uint32_t *r = w->refs[s], n = w->count[s];

			for (uint32_t k = 0; k + 1 < n; k += 2) {
				uint32_t a = r[k], b = r[k + 1],
					 out = (uint32_t)s * (TERMS / 2) + k / 2;

				if ((a | b) & OBK_REF_SCRATCH)
					out = (a & OBK_REF_SCRATCH ? a : b) & OBK_REF_INDEX;
				w->pairs[pairs++] = (struct obk_pair){ a, b, out };
				r[k / 2] = out | OBK_REF_SCRATCH;
			}
			if (n % 2)
				r[n / 2] = r[n - 1];
			w->count[s] = (n + 1) / 2;
		}
		if (pairs)
			fk->lanes->add(fk->table, slots, w->pairs, pairs, workspace);
	} while (pairs);
}

static void horner(const struct obk_fk20 *fk, const struct work *w, size_t first_sum, void *slots,
	struct obk_g1 *ret)
{
	obk_g1_set_infinity(ret);
	for (unsigned t = fk->windows; t-- > 0;) {
		size_t s = first_sum + t;
		struct obk_g1_affine q;

		for (unsigned i = 0; i < fk->window && !obk_g1_is_infinity(ret); i++)
			obk_g1_double(ret, ret);
		if (!w->count[s])
			continue;
		fk->lanes->store(&q,
			slot_of(fk->lanes, w->refs[s][0] & OBK_REF_SCRATCH ? slots : fk->table,
				w->refs[s][0] & OBK_REF_INDEX),
			1);
		if (w->refs[s][0] & OBK_REF_NEGATIVE)
			obk_g1_affine_neg(&q, &q);
		obk_g1_add_affine(ret, ret, &q);
	}
}

/* Without a table: term by term. */
static void plain_body(void *arg, size_t column, unsigned thread)
{
	struct prove *p = arg;
	struct obk_g1 t;

	(void)thread;
	obk_g1_set_infinity(&p->sums[column]);
	for (size_t j = 0; j < TERMS; j++) {
		uint64_t k[4];

		obk_fr_to_plain(k, &p->scalars[column * TERMS + j]);
		obk_g1_mul(&t, &p->fk->plain[column * TERMS + j], k, SCALAR_BITS);
		obk_g1_add(&p->sums[column], &p->sums[column], &t);
	}
}

static void columns_body(void *arg, size_t item, unsigned thread)
{
	struct prove *p = arg;
	const struct obk_fk20 *fk = p->fk;
	size_t sums = fk->group * fk->windows;
	struct work *w = malloc(sizeof(*w));
	void *slots = slots_new(sums * (TERMS / 2) * fk->lanes->slot_bytes);
	void *workspace = slots_new(fk->lanes->workspace_bytes(sums * (TERMS / 2)));

	(void)thread;
	if (w && slots && workspace) {
		memset(w->count, 0, sizeof(w->count));
		for (size_t c = 0; c < fk->group; c++)
			take_digits(p, w, item * fk->group + c, c * fk->windows);
		add_trees(fk, w, sums, slots, workspace);
		for (size_t c = 0; c < fk->group; c++)
			horner(fk, w, c * fk->windows, slots, &p->sums[item * fk->group + c]);
	} else {
		p->failed = true;
	}
	free(w);
	free(slots);
	free(workspace);
}

enum ob_err obk_fk20_scalars(
	const struct obk_fr *coefficients, struct obk_fr *ret_scalars, struct obk_pool *pool)
{
	struct obk_ntt_job job = { .log_n = 7, .order = OBK_NTT_NR, .batch = TERMS, .pool = pool };
	struct obk_fr *rows = calloc(POINTS, sizeof(*rows)), share; /* [term][column] */
	enum ob_err err;

	if (!rows)
		return OB_ERR_NO_MEMORY;
	/*
	 * the inverse transform of points does not divide by 128; the scalars contain that factor
	 */
	obk_fr_from_plain(&share, (uint64_t[4]){ COLUMNS });
	obk_fr_inv(&share, &share);
	for (size_t j = 0; j < TERMS; j++)
		for (size_t b = 0; b < TERMS; b++)
			obk_fr_mul(&rows[j * COLUMNS + b], &coefficients[TERMS * b + j], &share);
	err = obk_ntt_run(&job, rows, NULL);
	for (size_t i = 0; i < POINTS && !err; i++)
		ret_scalars[i] = rows[i % TERMS * COLUMNS + i / TERMS];
	free(rows);
	return err;
}

enum ob_err obk_fk20_prove(struct obk_fk20 *fk, const struct obk_fr *coefficients,
	struct obk_g1_affine proofs[OBK_FK20_COLUMNS], struct obk_pool *pool)
{
	struct prove p = { .fk = fk,
		.scalars = malloc(POINTS * sizeof(*p.scalars)),
		.sums = malloc(COLUMNS * sizeof(*p.sums)) };
	struct obk_fp *scratch = malloc(2 * COLUMNS * sizeof(*scratch));
	enum ob_err err = OB_ERR_NO_MEMORY;

	if (!p.scalars || !p.sums || !scratch || prepare(fk, pool))
		goto out;
	err = obk_fk20_scalars(coefficients, p.scalars, pool);
	if (err)
		goto out;
	if (fk->plain)
		obk_pool_run(pool, COLUMNS, plain_body, &p);
	else
		obk_pool_run(pool, COLUMNS / fk->group, columns_body, &p);
	if (p.failed) {
		err = OB_ERR_NO_MEMORY;
		goto out;
	}
	obk_g1_ntt_gather_low(p.sums, 7, true, pool);
	obk_g1_ntt_scatter_low(p.sums, 7, false, pool);
	obk_g1_to_affine_batch(proofs, p.sums, COLUMNS, scratch);
out:
	free(p.scalars);
	free(p.sums);
	free(scratch);
	return err;
}
