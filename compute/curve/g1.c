/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Formulas: the Explicit-Formulas Database, short Weierstrass curves with a = 0, XYZZ coordinates.
 */
#include "compute/curve/g1.h"

const struct obk_g1_affine obk_g1_generator = {
	{ { 0x5cb38790fd530c16, 0x7817fc679976fff5, 0x154f95c7143ba1c1, 0xf0ae6acdf3d0e747,
		0xedce6ecc21dbf440, 0x120177419e0bfb75 } },
	{ { 0xbaac93d50ce72271, 0x8c22631a7918fd8e, 0xdd595f13570725ce, 0x51ac582950405194,
		0x0e1c8c3fad0059c0, 0x0bbc3efc5008a26a } },
};

const struct obk_fp obk_g1_beta = { { 0xcd03c9e48671f071, 0x5dab22461fcda5d2, 0x587042afd3851b95,
	0x8eb60ebe01bacb9e, 0x03f97d6e83d050d2, 0x18f0206554638741 } };

void obk_g1_set_infinity(struct obk_g1 *r)
{
	*r = (struct obk_g1){ .x = obk_fp_one, .y = obk_fp_one };
}

void obk_g1_from_affine(struct obk_g1 *r, const struct obk_g1_affine *p)
{
	if (obk_g1_affine_is_infinity(p)) {
		obk_g1_set_infinity(r);
		return;
	}
	*r = (struct obk_g1){ .x = p->x, .y = p->y, .zz = obk_fp_one, .zzz = obk_fp_one };
}

void obk_g1_to_affine(struct obk_g1_affine *r, const struct obk_g1 *p)
{
	struct obk_fp t, s;

	if (obk_g1_is_infinity(p)) {
		*r = (struct obk_g1_affine){ .x = obk_fp_zero, .y = obk_fp_zero };
		return;
	}
	obk_fp_inv(&t, &p->zzz);
	obk_fp_mul(&s, &t, &p->zz); /* 1 / Z */
	obk_fp_sqr(&s, &s);
	obk_fp_mul(&r->x, &p->x, &s);
	obk_fp_mul(&r->y, &p->y, &t);
}

void obk_g1_to_affine_batch(
	struct obk_g1_affine *r, const struct obk_g1 *p, size_t n, struct obk_fp *scratch)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = p[i].zzz;
	obk_fp_inv_batch(scratch, n, scratch + n);
	for (size_t i = 0; i < n; i++) {
		struct obk_fp s;

		obk_fp_mul(&s, &scratch[i], &p[i].zz); /* all 0 for infinity */
		obk_fp_sqr(&s, &s);
		obk_fp_mul(&r[i].x, &p[i].x, &s);
		obk_fp_mul(&r[i].y, &p[i].y, &scratch[i]);
	}
}

void obk_g1_double(struct obk_g1 *r, const struct obk_g1 *p)
{
	struct obk_fp u, v, w, s, m, t;

	/* The curve's order is odd, so y is never 0; infinity stays infinity because zz stays 0. */
	obk_fp_add(&u, &p->y, &p->y);
	obk_fp_sqr(&v, &u);
	obk_fp_mul(&w, &u, &v);
	obk_fp_mul(&s, &p->x, &v);
	obk_fp_sqr(&t, &p->x);
	obk_fp_add(&m, &t, &t);
	obk_fp_add(&m, &m, &t);
	obk_fp_mul(&u, &w, &p->y);
	obk_fp_mul(&r->zz, &v, &p->zz);
	obk_fp_mul(&r->zzz, &w, &p->zzz);
	obk_fp_sqr(&t, &m);
	obk_fp_sub(&t, &t, &s);
	obk_fp_sub(&r->x, &t, &s);
	obk_fp_sub(&s, &s, &r->x);
	obk_fp_mul(&s, &s, &m);
	obk_fp_sub(&r->y, &s, &u);
}

/*
 * The common end of both additions; P = U2 - U1 is not 0. u1, s1: X and Y of the first point over
 * the common denominators; zz, zzz: these denominators, without P's powers.
 */
static void add_tail(struct obk_g1 *r, const struct obk_fp *u1, const struct obk_fp *s1,
	const struct obk_fp *p, const struct obk_fp *rr, const struct obk_fp *zz,
	const struct obk_fp *zzz)
{
	struct obk_fp pp, ppp, q, t, y;

	obk_fp_sqr(&pp, p);
	obk_fp_mul(&ppp, p, &pp);
	obk_fp_mul(&q, u1, &pp);
	obk_fp_mul(&y, s1, &ppp);
	obk_fp_mul(&r->zz, zz, &pp);
	obk_fp_mul(&r->zzz, zzz, &ppp);
	obk_fp_sqr(&t, rr);
	obk_fp_sub(&t, &t, &ppp);
	obk_fp_sub(&t, &t, &q);
	obk_fp_sub(&t, &t, &q);
	obk_fp_sub(&q, &q, &t);
	obk_fp_mul(&q, &q, rr);
	r->x = t;
	obk_fp_sub(&r->y, &q, &y);
}

void obk_g1_add(struct obk_g1 *r, const struct obk_g1 *p, const struct obk_g1 *q)
{
	struct obk_fp u1, u2, s1, s2, zz, zzz;

	if (obk_g1_is_infinity(p) || obk_g1_is_infinity(q)) {
		*r = obk_g1_is_infinity(p) ? *q : *p;
		return;
	}
	obk_fp_mul(&u1, &p->x, &q->zz);
	obk_fp_mul(&u2, &q->x, &p->zz);
	obk_fp_mul(&s1, &p->y, &q->zzz);
	obk_fp_mul(&s2, &q->y, &p->zzz);
	obk_fp_sub(&u2, &u2, &u1);
	obk_fp_sub(&s2, &s2, &s1);
	if (obk_fp_is_zero(&u2)) {
		if (obk_fp_is_zero(&s2))
			obk_g1_double(r, p);
		else
			obk_g1_set_infinity(r);
		return;
	}
	obk_fp_mul(&zz, &p->zz, &q->zz);
	obk_fp_mul(&zzz, &p->zzz, &q->zzz);
	add_tail(r, &u1, &s1, &u2, &s2, &zz, &zzz);
}

void obk_g1_add_affine(struct obk_g1 *r, const struct obk_g1 *p, const struct obk_g1_affine *q)
{
	struct obk_fp u2, s2, x1 = p->x, y1 = p->y;

	if (obk_g1_affine_is_infinity(q)) {
		*r = *p;
		return;
	}
	if (obk_g1_is_infinity(p)) {
		obk_g1_from_affine(r, q);
		return;
	}
	obk_fp_mul(&u2, &q->x, &p->zz);
	obk_fp_mul(&s2, &q->y, &p->zzz);
	obk_fp_sub(&u2, &u2, &p->x);
	obk_fp_sub(&s2, &s2, &p->y);
	if (obk_fp_is_zero(&u2)) {
		if (obk_fp_is_zero(&s2))
			obk_g1_double(r, p);
		else
			obk_g1_set_infinity(r);
		return;
	}
	add_tail(r, &x1, &y1, &u2, &s2, &p->zz, &p->zzz);
}

void obk_g1_affine_neg(struct obk_g1_affine *r, const struct obk_g1_affine *p)
{
	r->x = p->x;
	obk_fp_neg(&r->y, &p->y);
}

void obk_g1_neg(struct obk_g1 *r, const struct obk_g1 *p)
{
	*r = *p;
	obk_fp_neg(&r->y, &p->y);
}

bool obk_g1_equal(const struct obk_g1 *p, const struct obk_g1 *q)
{
	struct obk_fp a, b;

	if (obk_g1_is_infinity(p) || obk_g1_is_infinity(q))
		return obk_g1_is_infinity(p) && obk_g1_is_infinity(q);
	obk_fp_mul(&a, &p->x, &q->zz);
	obk_fp_mul(&b, &q->x, &p->zz);
	if (!obk_fp_equal(&a, &b))
		return false;
	obk_fp_mul(&a, &p->y, &q->zzz);
	obk_fp_mul(&b, &q->y, &p->zzz);
	return obk_fp_equal(&a, &b);
}

void obk_g1_mul_full(struct obk_g1 *r, const struct obk_g1 *p, const uint64_t *k, unsigned bits)
{
	struct obk_g1 table[16], t;

	obk_g1_set_infinity(&table[0]);
	for (unsigned i = 1; i < 16; i++)
		obk_g1_add(&table[i], &table[i - 1], p);
	obk_g1_set_infinity(&t);
	for (unsigned at = (bits + 3) / 4 * 4; at > 0;) {
		unsigned digit;

		at -= 4;
		digit = (unsigned)(k[at / 64] >> at % 64) & 15;
		for (unsigned i = 0; i < 4 && !obk_g1_is_infinity(&t); i++)
			obk_g1_double(&t, &t);
		obk_g1_add(&t, &t, &table[digit]);
	}
	*r = t;
}

void obk_g1_mul(struct obk_g1 *r, const struct obk_g1_affine *p, const uint64_t *k, unsigned bits)
{
	struct obk_g1 t;

	obk_g1_from_affine(&t, p);
	obk_g1_mul_full(r, &t, k, bits);
}

bool obk_g1_on_curve(const struct obk_g1_affine *p)
{
	static const struct obk_fp four = { { 0xaa270000000cfff3, 0x53cc0032fc34000a,
		0x478fe97a6b0a807f, 0xb1d37ebee6ba24d7, 0x8ec9733bbf78ab2f, 0x09d645513d83de7e } };
	struct obk_fp l, s;

	if (obk_g1_affine_is_infinity(p))
		return true;
	obk_fp_sqr(&l, &p->y);
	obk_fp_sqr(&s, &p->x);
	obk_fp_mul(&s, &s, &p->x);
	obk_fp_add(&s, &s, &four);
	return obk_fp_equal(&l, &s);
}

/* r = |x| p, where x is the curve's parameter, which has six one bits. */
static void mul_by_parameter(struct obk_g1 *r, const struct obk_g1 *p)
{
	static const uint64_t parameter = 0xd201000000010000;
	struct obk_g1 t = *p;

	for (int bit = 62; bit >= 0; bit--) {
		obk_g1_double(&t, &t);
		if (parameter >> bit & 1)
			obk_g1_add(&t, &t, p);
	}
	*r = t;
}

bool obk_g1_in_subgroup(const struct obk_g1_affine *p)
{
	struct obk_g1 t, want;

	if (obk_g1_affine_is_infinity(p))
		return true;
	obk_g1_from_affine(&t, p);
	mul_by_parameter(&t, &t);
	mul_by_parameter(&t, &t);
	/* x^2 P = P + (beta x, y) */
	obk_g1_from_affine(&want, p);
	obk_fp_mul(&want.x, &want.x, &obk_g1_beta);
	obk_g1_add_affine(&want, &want, p);
	return obk_g1_equal(&t, &want);
}
