/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <assert.h>

#include "compute/curve/pairing.h"

#define PARAMETER 0xd201000000010000u /* -x */
#define TOP_BIT   63

static void step(struct obk_g2_lines *lines, unsigned at, struct obk_g2_affine *t,
	const struct obk_fp2 *slope, const struct obk_fp2 *other_x)
{
	struct obk_fp2 x, y;

	obk_fp2_mul(&y, slope, &t->x);
	obk_fp2_sub(&y, &y, &t->y);
	lines->line[at].slope = *slope;
	lines->line[at].offset = y;
	/* x3 = slope^2 - x1 - x2, y3 = slope (x1 - x3) - y1 */
	obk_fp2_sqr(&x, slope);
	obk_fp2_sub(&x, &x, &t->x);
	obk_fp2_sub(&x, &x, other_x);
	t->x = x;
	obk_fp2_mul(&x, &x, slope);
	obk_fp2_sub(&t->y, &y, &x);
}

void obk_g2_lines_make(struct obk_g2_lines *lines, const struct obk_g2_affine *q)
{
	struct obk_g2_affine t = *q;
	unsigned at = 0;

	lines->infinity = obk_g2_affine_is_infinity(q);
	for (unsigned bit = TOP_BIT; bit-- > 0;) {
		struct obk_fp2 slope, den, x;

		obk_fp2_sqr(&x, &t.x);
		obk_fp2_add(&slope, &x, &x);
		obk_fp2_add(&slope, &slope, &x);
		obk_fp2_add(&den, &t.y, &t.y);
		obk_fp2_inv(&den, &den);
		obk_fp2_mul(&slope, &slope, &den);
		x = t.x;
		step(lines, at++, &t, &slope, &x);
		if (!(PARAMETER >> bit & 1))
			continue;
		obk_fp2_sub(&slope, &t.y, &q->y);
		obk_fp2_sub(&den, &t.x, &q->x);
		obk_fp2_inv(&den, &den);
		obk_fp2_mul(&slope, &slope, &den);
		step(lines, at++, &t, &slope, &q->x);
	}
	assert(at == OBK_PAIRING_LINES);
}

/*
 * The point (X, Y) of the twist is (X / w^2, Y / w^3) on the curve. The line there, times w^3, is
 * (slope X - Y) - slope x v + y v w; the final power removes the factor w^3.
 */
static void take_line(struct obk_fp12 *f, const struct obk_g1_affine *p,
	const struct obk_g2_lines *q, unsigned at)
{
	struct obk_fp2 b;
	struct obk_fp minus;

	obk_fp_neg(&minus, &p->x);
	obk_fp2_mul_fp(&b, &q->line[at].slope, &minus);
	obk_fp12_mul_line(f, &q->line[at].offset, &b, &p->y);
}

static void miller(struct obk_fp12 *f, const struct obk_g1_affine *p,
	const struct obk_g2_lines *const *q, size_t n)
{
	size_t live[OBK_PAIRING_MAX_TERMS], count = 0;
	unsigned at = 0;

	assert(n <= OBK_PAIRING_MAX_TERMS);
	for (size_t i = 0; i < n; i++) {
		if (!q[i]->infinity && !obk_g1_affine_is_infinity(&p[i]))
			live[count++] = i;
	}
	obk_fp12_set_one(f);
	for (unsigned bit = TOP_BIT; bit-- > 0;) {
		obk_fp12_sqr(f, f);
		for (size_t i = 0; i < count; i++)
			take_line(f, &p[live[i]], q[live[i]], at);
		at++;
		if (!(PARAMETER >> bit & 1))
			continue;
		for (size_t i = 0; i < count; i++)
			take_line(f, &p[live[i]], q[live[i]], at);
		at++;
	}
	obk_fp12_conjugate(f, f); /* the parameter is negative */
}

/* r = a^x */
static void pow_parameter(struct obk_fp12 *r, const struct obk_fp12 *a)
{
	struct obk_fp12 t = *a;

	for (unsigned bit = TOP_BIT; bit-- > 0;) {
		obk_fp12_sqr_cyclotomic(&t, &t);
		if (PARAMETER >> bit & 1)
			obk_fp12_mul(&t, &t, a);
	}
	obk_fp12_conjugate(r, &t);
}

/* r = a^(x - 1) */
static void pow_parameter_minus_one(struct obk_fp12 *r, const struct obk_fp12 *a)
{
	struct obk_fp12 t, inverse;

	pow_parameter(&t, a);
	obk_fp12_conjugate(&inverse, a);
	obk_fp12_mul(r, &t, &inverse);
}

/*
 * 3 (p^4 - p^2 + 1) / r = (x - 1)^2 (x + p) (x^2 + p^2 - 1) + 3 (Hayashida, Hayasaka, Teruya,
 * eprint 2020/875)
 */
static void final_power(struct obk_fp12 *f)
{
	struct obk_fp12 m, a, b, t;

	obk_fp12_inv(&t, f);
	obk_fp12_conjugate(&m, f);
	obk_fp12_mul(&m, &m, &t);
	obk_fp12_frobenius(&t, &m, 2);
	obk_fp12_mul(&m, &m, &t);

	pow_parameter_minus_one(&a, &m);
	pow_parameter_minus_one(&a, &a);
	pow_parameter(&b, &a);
	obk_fp12_frobenius(&t, &a, 1);
	obk_fp12_mul(&b, &b, &t);
	pow_parameter(&a, &b);
	pow_parameter(&a, &a);
	obk_fp12_frobenius(&t, &b, 2);
	obk_fp12_mul(&a, &a, &t);
	obk_fp12_conjugate(&b, &b);
	obk_fp12_mul(&a, &a, &b);
	obk_fp12_sqr_cyclotomic(&t, &m);
	obk_fp12_mul(&t, &t, &m);
	obk_fp12_mul(f, &a, &t);
}

void obk_pairing_product(struct obk_fp12 *r, const struct obk_g1_affine *p,
	const struct obk_g2_lines *const *q, size_t n)
{
	miller(r, p, q, n);
	final_power(r);
}

bool obk_pairing_product_is_one(
	const struct obk_g1_affine *p, const struct obk_g2_lines *const *q, size_t n)
{
	struct obk_fp12 f;

	obk_pairing_product(&f, p, q, n);
	return obk_fp12_is_one(&f);
}
