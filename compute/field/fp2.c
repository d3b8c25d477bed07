/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/field/fp2.h"

const struct obk_fp2 obk_fp2_zero = { { { { 0 } }, { { 0 } } } };
const struct obk_fp2 obk_fp2_one = {
	{ { { 0x760900000002fffd, 0xebf4000bc40c0002, 0x5f48985753c758ba, 0x77ce585370525745,
		  0x5c071a97a256ec6d, 0x15f65ec3fa80e493 } },
		{ { 0 } } }
};

void obk_fp2_neg(struct obk_fp2 *r, const struct obk_fp2 *a)
{
	obk_fp_neg(&r->c[0], &a->c[0]);
	obk_fp_neg(&r->c[1], &a->c[1]);
}

void obk_fp2_conjugate(struct obk_fp2 *r, const struct obk_fp2 *a)
{
	r->c[0] = a->c[0];
	obk_fp_neg(&r->c[1], &a->c[1]);
}

void obk_fp2_mul(struct obk_fp2 *r, const struct obk_fp2 *a, const struct obk_fp2 *b)
{
	struct obk_fp sa, sb, low, high;

	obk_fp_add(&sa, &a->c[0], &a->c[1]);
	obk_fp_add(&sb, &b->c[0], &b->c[1]);
	obk_fp_mul(&low, &a->c[0], &b->c[0]);
	obk_fp_mul(&high, &a->c[1], &b->c[1]);
	obk_fp_mul(&sa, &sa, &sb);
	obk_fp_sub(&sa, &sa, &low);
	obk_fp_sub(&r->c[1], &sa, &high);
	obk_fp_sub(&r->c[0], &low, &high);
}

void obk_fp2_sqr(struct obk_fp2 *r, const struct obk_fp2 *a)
{
	struct obk_fp sum, difference, product;

	obk_fp_add(&sum, &a->c[0], &a->c[1]);
	obk_fp_sub(&difference, &a->c[0], &a->c[1]);
	obk_fp_mul(&product, &a->c[0], &a->c[1]);
	obk_fp_mul(&r->c[0], &sum, &difference);
	obk_fp_add(&r->c[1], &product, &product);
}

void obk_fp2_mul_fp(struct obk_fp2 *r, const struct obk_fp2 *a, const struct obk_fp *b)
{
	struct obk_fp k = *b;

	obk_fp_mul(&r->c[0], &a->c[0], &k);
	obk_fp_mul(&r->c[1], &a->c[1], &k);
}

void obk_fp2_mul_xi(struct obk_fp2 *r, const struct obk_fp2 *a)
{
	struct obk_fp difference;

	obk_fp_sub(&difference, &a->c[0], &a->c[1]);
	obk_fp_add(&r->c[1], &a->c[0], &a->c[1]);
	r->c[0] = difference;
}

void obk_fp2_inv(struct obk_fp2 *r, const struct obk_fp2 *a)
{
	struct obk_fp norm, t;

	obk_fp_sqr(&norm, &a->c[0]);
	obk_fp_sqr(&t, &a->c[1]);
	obk_fp_add(&norm, &norm, &t);
	obk_fp_inv(&norm, &norm);
	obk_fp_mul(&r->c[0], &a->c[0], &norm);
	obk_fp_neg(&t, &a->c[1]);
	obk_fp_mul(&r->c[1], &t, &norm);
}

/* With the root n of the norm: c0^2 = (a0 + n) / 2 for one of the signs of n, and 2 c0 c1 = a1. */
bool obk_fp2_sqrt(struct obk_fp2 *ret, const struct obk_fp2 *a)
{
	static const struct obk_fp half = { { 0x1804000000015554, 0x855000053ab00001,
		0x633cb57c253c276f, 0x6e22d1ec31ebb502, 0xd3916126f2d14ca2, 0x17fbb8571a006596 } };
	struct obk_fp norm, t;
	struct obk_fp2 root = obk_fp2_zero, square;

	/* the root of a0 or of -a0, because -1 is not a square in Fp */
	if (obk_fp_is_zero(&a->c[1])) {
		obk_fp_neg(&t, &a->c[0]);
		if (!obk_fp_sqrt(&root.c[0], &a->c[0]) && !obk_fp_sqrt(&root.c[1], &t))
			return false;
		*ret = root;
		return true;
	}
	obk_fp_sqr(&norm, &a->c[0]);
	obk_fp_sqr(&t, &a->c[1]);
	obk_fp_add(&norm, &norm, &t);
	if (!obk_fp_sqrt(&norm, &norm))
		return false;
	obk_fp_add(&t, &a->c[0], &norm);
	obk_fp_mul(&t, &t, &half);
	if (!obk_fp_sqrt(&root.c[0], &t)) {
		obk_fp_sub(&t, &a->c[0], &norm);
		obk_fp_mul(&t, &t, &half);
		if (!obk_fp_sqrt(&root.c[0], &t))
			return false;
	}
	obk_fp_add(&t, &root.c[0], &root.c[0]); /* not 0, because a1 is not */
	obk_fp_inv(&t, &t);
	obk_fp_mul(&root.c[1], &a->c[1], &t);
	obk_fp2_sqr(&square, &root);
	if (!obk_fp2_equal(&square, a))
		return false;
	*ret = root;
	return true;
}

bool obk_fp2_is_large(const struct obk_fp2 *a)
{
	return obk_fp_is_large(obk_fp_is_zero(&a->c[1]) ? &a->c[0] : &a->c[1]);
}
