/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <string.h>

#include "compute/kzg/g1_ntt.h"
#include "compute/msm/scalars.h"
#include "compute/ntt/roots.h"

#define MUL_WINDOW  5
#define MUL_WINDOWS (OBK_HALF_BITS / MUL_WINDOW + 1)
#define MULTIPLES   (1 << (MUL_WINDOW - 1))

/* t += digit times the table's point, with the endomorphism applied if requested. */
static void add_digit(
	struct obk_g1 *t, const struct obk_g1 *table, int32_t digit, bool negative, bool endo)
{
	struct obk_g1 q;

	if (!digit)
		return;
	q = table[(digit < 0 ? -digit : digit) - 1];
	if ((digit < 0) != negative)
		obk_g1_neg(&q, &q);
	if (endo)
		obk_fp_mul(&q.x, &q.x, &obk_g1_beta);
	obk_g1_add(t, t, &q);
}

void obk_g1_mul_endo(struct obk_g1 *r, const struct obk_g1 *p, const struct obk_fr *k)
{
	struct obk_g1 table[MULTIPLES], t;
	struct obk_half half[2];
	uint64_t plain[4];
	bool negative[2];

	obk_fr_to_plain(plain, k);
	obk_scalar_split(&half[0], &half[1], plain);
	for (unsigned h = 0; h < 2; h++) {
		negative[h] = half[h].l[1] & OBK_HALF_SIGN;
		half[h].l[1] &= ~OBK_HALF_SIGN;
	}
	table[0] = *p;
	for (unsigned i = 1; i < MULTIPLES; i++) {
		if (i % 2)
			obk_g1_double(&table[i], &table[i / 2]);
		else
			obk_g1_add(&table[i], &table[i - 1], p);
	}
	obk_g1_set_infinity(&t);
	for (unsigned w = MUL_WINDOWS; w-- > 0;) {
		for (unsigned i = 0; i < MUL_WINDOW && !obk_g1_is_infinity(&t); i++)
			obk_g1_double(&t, &t);
		add_digit(&t, table, obk_scalar_digit(half[0].l, 2, w, MUL_WINDOW), negative[0],
			false);
		add_digit(&t, table, obk_scalar_digit(half[1].l, 2, w, MUL_WINDOW), negative[1],
			true);
	}
	*r = t;
}

struct level {
	struct obk_g1 *x;
	const struct obk_fr *roots;
	size_t half;
	bool inverse, gather;
};

const struct obk_fr *obk_g1_ntt_root(const struct obk_fr *roots, size_t i, bool inverse)
{
	return &roots[inverse && i ? i ^ (((size_t)1 << (63 - __builtin_clzll(i))) - 1) : i];
}

static void butterfly_body(void *arg, size_t item, unsigned thread)
{
	const struct level *l = arg;
	size_t i = item / l->half;
	struct obk_g1 *a = l->x + 2 * l->half * i + item % l->half, *b = a + l->half, t = *b,
		      u = *a, n;

	(void)thread;
	if (l->gather) {
		if (l->inverse && i)
			obk_g1_neg(&u, &u);
		else
			obk_g1_neg(&t, &t);
		/* (a - b) times the root, or (b - a) times minus the root */
		obk_g1_add(&n, &u, &t);
		obk_g1_add(a, a, b);
		if (i)
			obk_g1_mul_endo(&n, &n, obk_g1_ntt_root(l->roots, i, l->inverse));
		*b = n;
		return;
	}
	if (i)
		obk_g1_mul_endo(&t, &t, obk_g1_ntt_root(l->roots, i, l->inverse));
	if (l->inverse && i)
		obk_g1_neg(&t, &t);
	obk_g1_add(a, &u, &t);
	obk_g1_neg(&t, &t);
	obk_g1_add(b, &u, &t);
}

static void run_level(struct obk_g1 *x, unsigned log_n, unsigned level, bool inverse, bool gather,
	struct obk_pool *pool)
{
	struct level l = { .x = x,
		.roots = obk_roots_get(log_n),
		.half = (size_t)1 << (log_n - 1 - level),
		.inverse = inverse,
		.gather = gather };

	obk_pool_run(pool, (size_t)1 << (log_n - 1), butterfly_body, &l);
}

void obk_g1_ntt_scatter(struct obk_g1 *x, unsigned log_n, bool inverse, struct obk_pool *pool)
{
	for (unsigned level = 0; level < log_n; level++)
		run_level(x, log_n, level, inverse, false, pool);
}

void obk_g1_ntt_scatter_low(struct obk_g1 *x, unsigned log_n, bool inverse, struct obk_pool *pool)
{
	size_t half = (size_t)1 << (log_n - 1);

	memcpy(x + half, x, half * sizeof(*x));
	for (unsigned level = 1; level < log_n; level++)
		run_level(x, log_n, level, inverse, false, pool);
}

void obk_g1_ntt_gather_low(struct obk_g1 *x, unsigned log_n, bool inverse, struct obk_pool *pool)
{
	size_t half = (size_t)1 << (log_n - 1);

	for (unsigned level = log_n - 1; level > 0; level--)
		run_level(x, log_n, level, inverse, true, pool);
	for (size_t i = 0; i < half; i++)
		obk_g1_add(&x[i], &x[i], &x[half + i]);
}
