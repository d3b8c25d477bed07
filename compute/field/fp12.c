/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/field/fp12.h"

static void fp6_add(struct obk_fp6 *r, const struct obk_fp6 *a, const struct obk_fp6 *b)
{
	for (unsigned i = 0; i < 3; i++)
		obk_fp2_add(&r->c[i], &a->c[i], &b->c[i]);
}

static void fp6_sub(struct obk_fp6 *r, const struct obk_fp6 *a, const struct obk_fp6 *b)
{
	for (unsigned i = 0; i < 3; i++)
		obk_fp2_sub(&r->c[i], &a->c[i], &b->c[i]);
}

static void fp6_neg(struct obk_fp6 *r, const struct obk_fp6 *a)
{
	for (unsigned i = 0; i < 3; i++)
		obk_fp2_neg(&r->c[i], &a->c[i]);
}

/* times v */
static void fp6_mul_v(struct obk_fp6 *r, const struct obk_fp6 *a)
{
	struct obk_fp2 top;

	obk_fp2_mul_xi(&top, &a->c[2]);
	r->c[2] = a->c[1];
	r->c[1] = a->c[0];
	r->c[0] = top;
}

/* (x0 + x1)(y0 + y1) - low - high */
static void cross(struct obk_fp2 *r, const struct obk_fp2 *x0, const struct obk_fp2 *x1,
	const struct obk_fp2 *y0, const struct obk_fp2 *y1, const struct obk_fp2 *low,
	const struct obk_fp2 *high)
{
	struct obk_fp2 s, t;

	obk_fp2_add(&s, x0, x1);
	obk_fp2_add(&t, y0, y1);
	obk_fp2_mul(&s, &s, &t);
	obk_fp2_sub(&s, &s, low);
	obk_fp2_sub(r, &s, high);
}

static void fp6_mul(struct obk_fp6 *r, const struct obk_fp6 *a, const struct obk_fp6 *b)
{
	struct obk_fp2 v0, v1, v2, t01, t02, t12;

	obk_fp2_mul(&v0, &a->c[0], &b->c[0]);
	obk_fp2_mul(&v1, &a->c[1], &b->c[1]);
	obk_fp2_mul(&v2, &a->c[2], &b->c[2]);
	cross(&t12, &a->c[1], &a->c[2], &b->c[1], &b->c[2], &v1, &v2);
	cross(&t01, &a->c[0], &a->c[1], &b->c[0], &b->c[1], &v0, &v1);
	cross(&t02, &a->c[0], &a->c[2], &b->c[0], &b->c[2], &v0, &v2);
	obk_fp2_mul_xi(&t12, &t12);
	obk_fp2_add(&r->c[0], &v0, &t12);
	obk_fp2_mul_xi(&v2, &v2);
	obk_fp2_add(&r->c[1], &t01, &v2);
	obk_fp2_add(&r->c[2], &t02, &v1);
}

/* times a + b v */
static void fp6_mul_01(struct obk_fp6 *r, const struct obk_fp6 *x, const struct obk_fp2 *a,
	const struct obk_fp2 *b)
{
	struct obk_fp2 v0, v1, t0, t1, t2;

	obk_fp2_mul(&v0, &x->c[0], a);
	obk_fp2_mul(&v1, &x->c[1], b);
	cross(&t1, &x->c[0], &x->c[1], a, b, &v0, &v1);
	obk_fp2_mul(&t0, &x->c[2], b);
	obk_fp2_mul_xi(&t0, &t0);
	obk_fp2_mul(&t2, &x->c[2], a);
	obk_fp2_add(&r->c[0], &v0, &t0);
	r->c[1] = t1;
	obk_fp2_add(&r->c[2], &t2, &v1);
}

/* times c v, c in Fp */
static void fp6_mul_cv(struct obk_fp6 *r, const struct obk_fp6 *x, const struct obk_fp *c)
{
	for (unsigned i = 0; i < 3; i++)
		obk_fp2_mul_fp(&r->c[i], &x->c[i], c);
	fp6_mul_v(r, r);
}

static void fp6_inv(struct obk_fp6 *r, const struct obk_fp6 *a)
{
	struct obk_fp2 c0, c1, c2, t, norm;

	obk_fp2_sqr(&c0, &a->c[0]);
	obk_fp2_mul(&t, &a->c[1], &a->c[2]);
	obk_fp2_mul_xi(&t, &t);
	obk_fp2_sub(&c0, &c0, &t);
	obk_fp2_sqr(&c1, &a->c[2]);
	obk_fp2_mul_xi(&c1, &c1);
	obk_fp2_mul(&t, &a->c[0], &a->c[1]);
	obk_fp2_sub(&c1, &c1, &t);
	obk_fp2_sqr(&c2, &a->c[1]);
	obk_fp2_mul(&t, &a->c[0], &a->c[2]);
	obk_fp2_sub(&c2, &c2, &t);
	obk_fp2_mul(&norm, &a->c[2], &c1);
	obk_fp2_mul(&t, &a->c[1], &c2);
	obk_fp2_add(&norm, &norm, &t);
	obk_fp2_mul_xi(&norm, &norm);
	obk_fp2_mul(&t, &a->c[0], &c0);
	obk_fp2_add(&norm, &norm, &t);
	obk_fp2_inv(&norm, &norm);
	obk_fp2_mul(&r->c[0], &c0, &norm);
	obk_fp2_mul(&r->c[1], &c1, &norm);
	obk_fp2_mul(&r->c[2], &c2, &norm);
}

void obk_fp12_set_one(struct obk_fp12 *r)
{
	*r = (struct obk_fp12){ .c = { { .c = { obk_fp2_one } } } };
}

bool obk_fp12_equal(const struct obk_fp12 *a, const struct obk_fp12 *b)
{
	bool equal = true;

	for (unsigned i = 0; i < 6; i++)
		equal &= obk_fp2_equal(&a->c[i / 3].c[i % 3], &b->c[i / 3].c[i % 3]);
	return equal;
}

bool obk_fp12_is_one(const struct obk_fp12 *a)
{
	struct obk_fp12 one;

	obk_fp12_set_one(&one);
	return obk_fp12_equal(a, &one);
}

void obk_fp12_mul(struct obk_fp12 *r, const struct obk_fp12 *a, const struct obk_fp12 *b)
{
	struct obk_fp6 v0, v1, s, t;

	fp6_mul(&v0, &a->c[0], &b->c[0]);
	fp6_mul(&v1, &a->c[1], &b->c[1]);
	fp6_add(&s, &a->c[0], &a->c[1]);
	fp6_add(&t, &b->c[0], &b->c[1]);
	fp6_mul(&s, &s, &t);
	fp6_sub(&s, &s, &v0);
	fp6_sub(&r->c[1], &s, &v1);
	fp6_mul_v(&v1, &v1);
	fp6_add(&r->c[0], &v0, &v1);
}

void obk_fp12_sqr(struct obk_fp12 *r, const struct obk_fp12 *a)
{
	struct obk_fp6 ab, s, t;

	/* (a + b)(a + v b) - ab - v ab = a^2 + v b^2 */
	fp6_mul(&ab, &a->c[0], &a->c[1]);
	fp6_add(&s, &a->c[0], &a->c[1]);
	fp6_mul_v(&t, &a->c[1]);
	fp6_add(&t, &t, &a->c[0]);
	fp6_mul(&s, &s, &t);
	fp6_sub(&s, &s, &ab);
	fp6_mul_v(&t, &ab);
	fp6_sub(&r->c[0], &s, &t);
	fp6_add(&r->c[1], &ab, &ab);
}

void obk_fp12_mul_line(struct obk_fp12 *r, const struct obk_fp2 *a, const struct obk_fp2 *b,
	const struct obk_fp *c)
{
	struct obk_fp6 v0, v1, s;
	struct obk_fp2 bc = *b;

	fp6_mul_01(&v0, &r->c[0], a, b);
	fp6_mul_cv(&v1, &r->c[1], c);
	fp6_add(&s, &r->c[0], &r->c[1]);
	obk_fp_add(&bc.c[0], &bc.c[0], c);
	fp6_mul_01(&s, &s, a, &bc);
	fp6_sub(&s, &s, &v0);
	fp6_sub(&r->c[1], &s, &v1);
	fp6_mul_v(&v1, &v1);
	fp6_add(&r->c[0], &v0, &v1);
}

void obk_fp12_conjugate(struct obk_fp12 *r, const struct obk_fp12 *a)
{
	r->c[0] = a->c[0];
	fp6_neg(&r->c[1], &a->c[1]);
}

void obk_fp12_inv(struct obk_fp12 *r, const struct obk_fp12 *a)
{
	struct obk_fp6 s, t;

	fp6_mul(&s, &a->c[0], &a->c[0]);
	fp6_mul(&t, &a->c[1], &a->c[1]);
	fp6_mul_v(&t, &t);
	fp6_sub(&s, &s, &t);
	fp6_inv(&s, &s);
	fp6_mul(&r->c[0], &a->c[0], &s);
	fp6_neg(&t, &a->c[1]);
	fp6_mul(&r->c[1], &t, &s);
}

/* xi^(k (p - 1) / 6): the factor of w^k in the p-th power */
static const struct obk_fp2 frobenius_1[6] = {
	{ { { { 0x760900000002fffd, 0xebf4000bc40c0002, 0x5f48985753c758ba, 0x77ce585370525745,
		    0x5c071a97a256ec6d, 0x15f65ec3fa80e493 } },
		{ { 0 } } } },
	{ { { { 0x07089552b319d465, 0xc6695f92b50a8313, 0x97e83cccd117228f, 0xa35baecab2dc29ee,
		    0x1ce393ea5daace4d, 0x08f2220fb0fb66eb } },
		{ { 0xb2f66aad4ce5d646, 0x5842a06bfc497cec, 0xcf4895d42599d394, 0xc11b9cba40a8e8d0,
			0x2e3813cbe5a0de89, 0x110eefda88847faf } } } },
	{ { { { 0 } },
		{ { 0xcd03c9e48671f071, 0x5dab22461fcda5d2, 0x587042afd3851b95, 0x8eb60ebe01bacb9e,
			0x03f97d6e83d050d2, 0x18f0206554638741 } } } },
	{ { { { 0x7bcfa7a25aa30fda, 0xdc17dec12a927e7c, 0x2f088dd86b4ebef1, 0xd1ca2087da74d4a7,
		    0x2da2596696cebc1d, 0x0e2b7eedbbfd87d2 } },
		{ { 0x7bcfa7a25aa30fda, 0xdc17dec12a927e7c, 0x2f088dd86b4ebef1, 0xd1ca2087da74d4a7,
			0x2da2596696cebc1d, 0x0e2b7eedbbfd87d2 } } } },
	{ { { { 0x890dc9e4867545c3, 0x2af322533285a5d5, 0x50880866309b7e2c, 0xa20d1b8c7e881024,
		    0x14e4f04fe2db9068, 0x14e56d3f1564853a } },
		{ { 0 } } } },
	{ { { { 0x82d83cf50dbce43f, 0xa2813e53df9d018f, 0xc6f0caa53c65e181, 0x7525cf528d50fe95,
		    0x4a85ed50f4798a6b, 0x171da0fd6cf8eebd } },
		{ { 0x3726c30af242c66c, 0x7c2ac1aad1b6fe70, 0xa04007fbba4b14a2, 0xef517c3266341429,
			0x0095ba654ed2226b, 0x02e370eccc86f7dd } } } },
};
/* xi^(k (p^2 - 1) / 6), in Fp */
static const struct obk_fp frobenius_2[6] = {
	{ { 0x760900000002fffd, 0xebf4000bc40c0002, 0x5f48985753c758ba, 0x77ce585370525745,
		0x5c071a97a256ec6d, 0x15f65ec3fa80e493 } },
	{ { 0xecfb361b798dba3a, 0xc100ddb891865a2c, 0x0ec08ff1232bda8e, 0xd5c13cc6f1ca4721,
		0x47222a47bf7b5c04, 0x0110f184e51c5f59 } },
	{ { 0x30f1361b798a64e8, 0xf3b8ddab7ece5a2a, 0x16a8ca3ac61577f7, 0xc26a2ff874fd029b,
		0x3636b76660701c6e, 0x051ba4ab241b6160 } },
	{ { 0x43f5fffffffcaaae, 0x32b7fff2ed47fffd, 0x07e83a49a2e99d69, 0xeca8f3318332bb7a,
		0xef148d1ea0f4c069, 0x040ab3263eff0206 } },
	{ { 0xcd03c9e48671f071, 0x5dab22461fcda5d2, 0x587042afd3851b95, 0x8eb60ebe01bacb9e,
		0x03f97d6e83d050d2, 0x18f0206554638741 } },
	{ { 0x890dc9e4867545c3, 0x2af322533285a5d5, 0x50880866309b7e2c, 0xa20d1b8c7e881024,
		0x14e4f04fe2db9068, 0x14e56d3f1564853a } },
};

void obk_fp12_frobenius(struct obk_fp12 *r, const struct obk_fp12 *a, unsigned power)
{
	for (unsigned k = 0; k < 6; k++) { /* the coefficient of w^k */
		const struct obk_fp2 *from = &a->c[k % 2].c[k / 2];
		struct obk_fp2 *to = &r->c[k % 2].c[k / 2];

		if (power == 2) {
			obk_fp2_mul_fp(to, from, &frobenius_2[k]);
		} else {
			obk_fp2_conjugate(to, from);
			obk_fp2_mul(to, to, &frobenius_1[k]);
		}
	}
}

/* (x + y s)^2 in Fp2[s] / (s^2 - xi) */
static void fp4_sqr(
	struct obk_fp2 *r0, struct obk_fp2 *r1, const struct obk_fp2 *x, const struct obk_fp2 *y)
{
	struct obk_fp2 xx, yy, s;

	obk_fp2_sqr(&xx, x);
	obk_fp2_sqr(&yy, y);
	obk_fp2_add(&s, x, y);
	obk_fp2_sqr(&s, &s);
	obk_fp2_sub(&s, &s, &xx);
	obk_fp2_sub(r1, &s, &yy);
	obk_fp2_mul_xi(&yy, &yy);
	obk_fp2_add(r0, &xx, &yy);
}

/* r = 3 t - 2 a, or 3 t + 2 a */
static void three_minus_two(
	struct obk_fp2 *r, const struct obk_fp2 *t, const struct obk_fp2 *a, bool plus)
{
	struct obk_fp2 d;

	if (plus)
		obk_fp2_add(&d, t, a);
	else
		obk_fp2_sub(&d, t, a);
	obk_fp2_add(&d, &d, &d);
	obk_fp2_add(r, &d, t);
}

void obk_fp12_sqr_cyclotomic(struct obk_fp12 *r, const struct obk_fp12 *a)
{
	struct obk_fp2 t[6], *c0 = r->c[0].c, *c1 = r->c[1].c;

	*r = *a;
	fp4_sqr(&t[0], &t[1], &c0[0], &c1[1]);
	fp4_sqr(&t[2], &t[3], &c1[0], &c0[2]);
	fp4_sqr(&t[4], &t[5], &c0[1], &c1[2]);
	obk_fp2_mul_xi(&t[5], &t[5]);
	three_minus_two(&c0[0], &t[0], &c0[0], false);
	three_minus_two(&c0[1], &t[2], &c0[1], false);
	three_minus_two(&c0[2], &t[4], &c0[2], false);
	three_minus_two(&c1[0], &t[5], &c1[0], true);
	three_minus_two(&c1[1], &t[1], &c1[1], true);
	three_minus_two(&c1[2], &t[3], &c1[2], true);
}
