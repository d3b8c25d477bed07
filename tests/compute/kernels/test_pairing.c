/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The tower of fields and the pairing, tested by algebraic laws: inverses, powers of p, orders,
 * bilinearity. G2 is tested by its order and its encoding.
 */
#include "compute/curve/pairing.h"
#include "tests/test.h"

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void any_fp(struct obk_fp *r)
{
	uint64_t plain[6];

	for (unsigned i = 0; i < 6; i++)
		plain[i] = next();
	obk_fp_from_plain(r, plain);
}

static void any_fp2(struct obk_fp2 *r)
{
	any_fp(&r->c[0]);
	any_fp(&r->c[1]);
}

static void any_fp12(struct obk_fp12 *r)
{
	for (unsigned i = 0; i < 6; i++)
		any_fp2(&r->c[i / 3].c[i % 3]);
}

TEST(fp2_laws)
{
	for (unsigned i = 0; i < 200; i++) {
		struct obk_fp2 a, b, s, t, u;

		any_fp2(&a);
		any_fp2(&b);
		if (i % 4 == 1)
			a.c[1] = obk_fp_zero;
		if (i % 4 == 2)
			a.c[0] = obk_fp_zero;
		obk_fp2_sqr(&s, &a);
		obk_fp2_mul(&t, &a, &a);
		CHECK(obk_fp2_equal(&s, &t));
		CHECK(obk_fp2_sqrt(&u, &s));
		obk_fp2_neg(&t, &u);
		CHECK(obk_fp2_equal(&u, &a) || obk_fp2_equal(&t, &a));
		CHECK(obk_fp2_is_large(&u) != obk_fp2_is_large(&t));
		obk_fp2_mul_xi(&t, &s); /* xi is not a square */
		CHECK(!obk_fp2_sqrt(&u, &t));
		obk_fp2_inv(&t, &a);
		obk_fp2_mul(&t, &t, &a);
		CHECK(obk_fp2_equal(&t, &obk_fp2_one));
		/* (a + b)^2 = a^2 + 2 a b + b^2 */
		obk_fp2_add(&t, &a, &b);
		obk_fp2_sqr(&t, &t);
		obk_fp2_mul(&u, &a, &b);
		obk_fp2_sub(&t, &t, &u);
		obk_fp2_sub(&t, &t, &u);
		obk_fp2_sub(&t, &t, &s);
		obk_fp2_sqr(&u, &b);
		CHECK(obk_fp2_equal(&t, &u));
	}
	CHECK(obk_fp2_sqrt(&(struct obk_fp2){ { { { 0 } } } }, &obk_fp2_zero));
}

static void power_p(struct obk_fp12 *r, const struct obk_fp12 *a)
{
	struct obk_fp12 base = *a;

	obk_fp12_set_one(r);
	for (unsigned bit = 381; bit-- > 0;) {
		obk_fp12_sqr(r, r);
		if (obk_fp_modulus.l[bit / 64] >> bit % 64 & 1)
			obk_fp12_mul(r, r, &base);
	}
}

TEST(fp12_laws)
{
	struct obk_fp12 a, b, s, t;

	any_fp12(&a);
	any_fp12(&b);
	obk_fp12_mul(&s, &a, &a);
	obk_fp12_sqr(&t, &a);
	CHECK(obk_fp12_equal(&s, &t));
	obk_fp12_inv(&t, &a);
	obk_fp12_mul(&t, &t, &a);
	CHECK(obk_fp12_is_one(&t));
	power_p(&s, &a);
	obk_fp12_frobenius(&t, &a, 1);
	CHECK(obk_fp12_equal(&s, &t));
	power_p(&s, &s);
	obk_fp12_frobenius(&t, &a, 2);
	CHECK(obk_fp12_equal(&s, &t));
	for (unsigned i = 2; i < 6; i++)
		power_p(&s, &s);
	obk_fp12_conjugate(&t, &a);
	CHECK(obk_fp12_equal(&s, &t));
	/* a line is a sparse element */
	struct obk_fp12 line = {
		.c = { { .c = { b.c[0].c[0], b.c[0].c[1] } },
			{ .c = { { .c = { { { 0 } } } }, { .c = { b.c[1].c[0].c[0] } } } } }
	};

	obk_fp12_mul(&s, &a, &line);
	obk_fp12_mul_line(&a, &b.c[0].c[0], &b.c[0].c[1], &b.c[1].c[0].c[0]);
	CHECK(obk_fp12_equal(&s, &a));
}

static void multiples(struct obk_g1_affine *p, struct obk_g2_affine *q, uint64_t a, uint64_t b)
{
	struct obk_g1 g1;
	struct obk_g2 g2;

	obk_g1_mul(&g1, &obk_g1_generator, &a, 64);
	obk_g1_to_affine(p, &g1);
	obk_g2_mul(&g2, &obk_g2_generator, &b, 64);
	obk_g2_to_affine(q, &g2);
}

TEST(g2_order_and_codes)
{
	struct obk_g2 t;
	struct obk_g2_affine q, back;
	struct obk_g1_affine p;
	uint8_t bytes[96];
	struct obk_fault fault;
	unsigned outside = 0;

	CHECK(obk_g2_on_curve(&obk_g2_generator));
	CHECK(obk_g2_in_subgroup(&obk_g2_generator));
	obk_g2_mul(&t, &obk_g2_generator, obk_fr_modulus.l, 255);
	CHECK(obk_g2_is_infinity(&t));
	for (unsigned i = 0; i < 20; i++) {
		multiples(&p, &q, 1, next());
		CHECK(obk_g2_on_curve(&q) && obk_g2_in_subgroup(&q));
		obk_g2_encode_compressed(bytes, &q);
		CHECK_INT(obk_g2_decode_compressed(&back, bytes, 0, NULL), OB_ERR_NONE);
		CHECK(obk_fp2_equal(&q.x, &back.x) && obk_fp2_equal(&q.y, &back.y));
		/* another x: about half of them belong to a point, which is never in G2 */
		bytes[95] ^= 1;
		if (obk_g2_decode_compressed(&back, bytes, 7, &fault) == OB_ERR_NONE) {
			CHECK(obk_g2_on_curve(&back) && !obk_g2_in_subgroup(&back));
			outside++;
		} else {
			CHECK_INT(fault.item, 7);
		}
	}
	CHECK(outside > 2 && outside < 18);
	memset(bytes, 0, 96);
	bytes[0] = 0xc0;
	CHECK_INT(obk_g2_decode_compressed(&back, bytes, 0, NULL), OB_ERR_NONE);
	CHECK(obk_g2_affine_is_infinity(&back));
	bytes[50] = 1;
	CHECK_INT(obk_g2_decode_compressed(&back, bytes, 0, &fault), OB_ERR_ARGUMENT);
	memset(bytes, 0xff, 96);
	bytes[0] = 0x9f;
	CHECK_INT(obk_g2_decode_compressed(&back, bytes, 0, &fault), OB_ERR_ARGUMENT);
	bytes[0] = 0x1f;
	CHECK_INT(obk_g2_decode_compressed(&back, bytes, 0, &fault), OB_ERR_ARGUMENT);
}

TEST(bilinear)
{
	struct obk_g1_affine p[3];
	struct obk_g2_affine q;
	struct obk_g2_lines lines[3];
	const struct obk_g2_lines *list[3] = { &lines[0], &lines[1], &lines[2] };
	struct obk_fp12 e, f;

	/* e(G, H)^6 = e(2 G, 3 H), and it is not 1 */
	multiples(&p[0], &q, 1, 1);
	obk_g2_lines_make(&lines[0], &q);
	obk_pairing_product(&e, p, list, 1);
	CHECK(!obk_fp12_is_one(&e));
	obk_fp12_sqr(&f, &e);
	obk_fp12_mul(&e, &f, &e);
	obk_fp12_sqr(&e, &e);
	multiples(&p[0], &q, 2, 3);
	obk_g2_lines_make(&lines[0], &q);
	obk_pairing_product(&f, p, list, 1);
	CHECK(obk_fp12_equal(&e, &f));
	obk_fp12_sqr_cyclotomic(&f, &e);
	obk_fp12_sqr(&e, &e);
	CHECK(obk_fp12_equal(&e, &f));
	/* e(5 G, 7 H) e(-35 G, H) = 1, and not 1 with another factor */
	multiples(&p[0], &q, 5, 7);
	obk_g2_lines_make(&lines[0], &q);
	multiples(&p[1], &q, 35, 1);
	obk_g1_affine_neg(&p[1], &p[1]);
	obk_g2_lines_make(&lines[1], &q);
	CHECK(obk_pairing_product_is_one(p, list, 2));
	CHECK(!obk_pairing_product_is_one(p, list, 1));
	multiples(&p[1], &q, 36, 1);
	obk_g1_affine_neg(&p[1], &p[1]);
	CHECK(!obk_pairing_product_is_one(p, list, 2));
	/* a pair with infinity on either side contributes the factor 1 */
	memset(&q, 0, sizeof q);
	obk_g2_lines_make(&lines[2], &q);
	p[2] = obk_g1_generator;
	CHECK(obk_pairing_product_is_one(p + 2, list + 2, 1));
	memset(&p[0], 0, sizeof p[0]);
	CHECK(obk_pairing_product_is_one(p, list, 1));
	CHECK(obk_pairing_product_is_one(p, list, 0));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
