/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Formulas: the Explicit-Formulas Database, short Weierstrass curves with a = 0, XYZZ coordinates.
 */
#include <string.h>

#include "compute/curve/g2.h"

#define FLAG_COMPRESSED 0x80
#define FLAG_INFINITY   0x40
#define FLAG_LARGE      0x20
#define FLAGS           (FLAG_COMPRESSED | FLAG_INFINITY | FLAG_LARGE)

const struct obk_g2_affine obk_g2_generator = {
	{ { { { 0xf5f28fa202940a10, 0xb3f5fb2687b4961a, 0xa1a893b53e2ae580, 0x9894999d1a3caee9,
		    0x6f67b7631863366b, 0x058191924350bcd7 } },
		{ { 0xa5a9c0759e23f606, 0xaaa0c59dbccd60c3, 0x3bb17e18e2867806, 0x1b1ab6cc8541b367,
			0xc2b6ed0ef2158547, 0x11922a097360edf3 } } } },
	{ { { { 0x4c730af860494c4a, 0x597cfa1f5e369c5a, 0xe7e6856caa0a635a, 0xbbefb5e96e0d495f,
		    0x07d3a975f0ef25a2, 0x0083fd8e7e80dae5 } },
		{ { 0xadc0fc92df64b05d, 0x18aa270a2b1461dc, 0x86adac6a3be4eba0, 0x79495c4ec93da33a,
			0xe7175850a43ccaed, 0x0b2bc2a163de1bf2 } } } },
};

/* 4 (1 + u) */
static const struct obk_fp2 curve_b = {
	{ { { 0xaa270000000cfff3, 0x53cc0032fc34000a, 0x478fe97a6b0a807f, 0xb1d37ebee6ba24d7,
		  0x8ec9733bbf78ab2f, 0x09d645513d83de7e } },
		{ { 0xaa270000000cfff3, 0x53cc0032fc34000a, 0x478fe97a6b0a807f, 0xb1d37ebee6ba24d7,
			0x8ec9733bbf78ab2f, 0x09d645513d83de7e } } }
};

void obk_g2_set_infinity(struct obk_g2 *r)
{
	*r = (struct obk_g2){ .x = obk_fp2_one, .y = obk_fp2_one };
}

void obk_g2_from_affine(struct obk_g2 *r, const struct obk_g2_affine *p)
{
	if (obk_g2_affine_is_infinity(p)) {
		obk_g2_set_infinity(r);
		return;
	}
	*r = (struct obk_g2){ .x = p->x, .y = p->y, .zz = obk_fp2_one, .zzz = obk_fp2_one };
}

void obk_g2_to_affine(struct obk_g2_affine *r, const struct obk_g2 *p)
{
	struct obk_fp2 t, s;

	obk_fp2_inv(&t, &p->zzz); /* 0 for infinity, and so are x and y */
	obk_fp2_mul(&s, &t, &p->zz);
	obk_fp2_sqr(&s, &s);
	obk_fp2_mul(&r->x, &p->x, &s);
	obk_fp2_mul(&r->y, &p->y, &t);
}

void obk_g2_double(struct obk_g2 *r, const struct obk_g2 *p)
{
	struct obk_fp2 u, v, w, s, m, t;

	obk_fp2_add(&u, &p->y, &p->y);
	obk_fp2_sqr(&v, &u);
	obk_fp2_mul(&w, &u, &v);
	obk_fp2_mul(&s, &p->x, &v);
	obk_fp2_sqr(&t, &p->x);
	obk_fp2_add(&m, &t, &t);
	obk_fp2_add(&m, &m, &t);
	obk_fp2_mul(&u, &w, &p->y);
	obk_fp2_mul(&r->zz, &v, &p->zz);
	obk_fp2_mul(&r->zzz, &w, &p->zzz);
	obk_fp2_sqr(&t, &m);
	obk_fp2_sub(&t, &t, &s);
	obk_fp2_sub(&r->x, &t, &s);
	obk_fp2_sub(&s, &s, &r->x);
	obk_fp2_mul(&s, &s, &m);
	obk_fp2_sub(&r->y, &s, &u);
}

void obk_g2_add(struct obk_g2 *r, const struct obk_g2 *p, const struct obk_g2 *q)
{
	struct obk_fp2 u1, u2, s1, s2, pp, ppp, t;

	if (obk_g2_is_infinity(p) || obk_g2_is_infinity(q)) {
		*r = obk_g2_is_infinity(p) ? *q : *p;
		return;
	}
	obk_fp2_mul(&u1, &p->x, &q->zz);
	obk_fp2_mul(&u2, &q->x, &p->zz);
	obk_fp2_mul(&s1, &p->y, &q->zzz);
	obk_fp2_mul(&s2, &q->y, &p->zzz);
	obk_fp2_sub(&u2, &u2, &u1);
	obk_fp2_sub(&s2, &s2, &s1);
	if (obk_fp2_is_zero(&u2)) {
		if (obk_fp2_is_zero(&s2))
			obk_g2_double(r, p);
		else
			obk_g2_set_infinity(r);
		return;
	}
	obk_fp2_sqr(&pp, &u2);
	obk_fp2_mul(&ppp, &u2, &pp);
	obk_fp2_mul(&u1, &u1, &pp);
	obk_fp2_mul(&s1, &s1, &ppp);
	obk_fp2_mul(&t, &p->zz, &q->zz);
	obk_fp2_mul(&r->zz, &t, &pp);
	obk_fp2_mul(&t, &p->zzz, &q->zzz);
	obk_fp2_mul(&r->zzz, &t, &ppp);
	obk_fp2_sqr(&t, &s2);
	obk_fp2_sub(&t, &t, &ppp);
	obk_fp2_sub(&t, &t, &u1);
	obk_fp2_sub(&t, &t, &u1);
	obk_fp2_sub(&u1, &u1, &t);
	obk_fp2_mul(&u1, &u1, &s2);
	r->x = t;
	obk_fp2_sub(&r->y, &u1, &s1);
}

bool obk_g2_equal(const struct obk_g2 *p, const struct obk_g2 *q)
{
	struct obk_fp2 a, b;

	if (obk_g2_is_infinity(p) || obk_g2_is_infinity(q))
		return obk_g2_is_infinity(p) && obk_g2_is_infinity(q);
	obk_fp2_mul(&a, &p->x, &q->zz);
	obk_fp2_mul(&b, &q->x, &p->zz);
	if (!obk_fp2_equal(&a, &b))
		return false;
	obk_fp2_mul(&a, &p->y, &q->zzz);
	obk_fp2_mul(&b, &q->y, &p->zzz);
	return obk_fp2_equal(&a, &b);
}

void obk_g2_mul(struct obk_g2 *r, const struct obk_g2_affine *p, const uint64_t *k, unsigned bits)
{
	struct obk_g2 t, base;

	obk_g2_from_affine(&base, p);
	obk_g2_set_infinity(&t);
	for (unsigned at = bits; at-- > 0;) {
		if (!obk_g2_is_infinity(&t))
			obk_g2_double(&t, &t);
		if (k[at / 64] >> at % 64 & 1)
			obk_g2_add(&t, &t, &base);
	}
	*r = t;
}

bool obk_g2_on_curve(const struct obk_g2_affine *p)
{
	struct obk_fp2 l, s;

	if (obk_g2_affine_is_infinity(p))
		return true;
	obk_fp2_sqr(&l, &p->y);
	obk_fp2_sqr(&s, &p->x);
	obk_fp2_mul(&s, &s, &p->x);
	obk_fp2_add(&s, &s, &curve_b);
	return obk_fp2_equal(&l, &s);
}

bool obk_g2_in_subgroup(const struct obk_g2_affine *p)
{
	/*
	 * psi(x, y) = (conj(x) / xi^((p-1)/3), conj(y) / xi^((p-1)/2)): from the twist to the
	 * curve, the p-th power, and back
	 */
	static const struct obk_fp2 psi_x = { { { { 0 } },
		{ { 0x890dc9e4867545c3, 0x2af322533285a5d5, 0x50880866309b7e2c, 0xa20d1b8c7e881024,
			0x14e4f04fe2db9068, 0x14e56d3f1564853a } } } };
	static const struct obk_fp2 psi_y = {
		{ { { 0x3e2f585da55c9ad1, 0x4294213d86c18183, 0x382844c88b623732,
			  0x92ad2afd19103e18, 0x1d794e4fac7cf0b9, 0x0bd592fc7d825ec8 } },
			{ { 0x7bcfa7a25aa30fda, 0xdc17dec12a927e7c, 0x2f088dd86b4ebef1,
				0xd1ca2087da74d4a7, 0x2da2596696cebc1d, 0x0e2b7eedbbfd87d2 } } }
	};
	static const uint64_t parameter = 0xd201000000010000; /* of -x */
	struct obk_g2_affine mapped;
	struct obk_g2 have, want;

	if (obk_g2_affine_is_infinity(p))
		return true;
	obk_fp2_conjugate(&mapped.x, &p->x);
	obk_fp2_mul(&mapped.x, &mapped.x, &psi_x);
	obk_fp2_conjugate(&mapped.y, &p->y);
	obk_fp2_mul(&mapped.y, &mapped.y, &psi_y);
	obk_g2_from_affine(&want, &mapped);
	obk_g2_mul(&have, p, &parameter, 64);
	obk_fp2_neg(&have.y, &have.y);
	return obk_g2_equal(&have, &want);
}

static enum ob_err refuse(struct obk_fault *fault, size_t item, const char *why)
{
	return obk_fault_set(fault, OB_ERR_ARGUMENT, item, "G2 point %zu %s", item, why);
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= bytes[i];
	return any == 0;
}

enum ob_err obk_g2_decode_compressed(struct obk_g2_affine *ret,
	const uint8_t bytes[OBK_G2_COMPRESSED_BYTES], size_t item, struct obk_fault *fault)
{
	uint8_t plain[OBK_G2_COMPRESSED_BYTES], flags = bytes[0] & FLAGS;
	struct obk_g2_affine p;
	struct obk_fp2 t;

	memcpy(plain, bytes, sizeof(plain));
	plain[0] &= (uint8_t)~FLAGS;
	if (!(flags & FLAG_COMPRESSED))
		return refuse(fault, item,
			"lacks the flag 0x80 of the compressed form in its first byte");
	if (flags & FLAG_INFINITY) {
		if (flags & FLAG_LARGE || !all_zero(plain, sizeof(plain)))
			return refuse(fault, item,
				"has the flag 0x40 of infinity but is not zero otherwise");
		*ret = (struct obk_g2_affine){ .x = obk_fp2_zero, .y = obk_fp2_zero };
		return OB_ERR_NONE;
	}
	if (!obk_fp_from_bytes(&p.x.c[1], plain) ||
		!obk_fp_from_bytes(&p.x.c[0], plain + OBK_FP_BYTES))
		return refuse(
			fault, item, "has a coordinate x that is not below the field's prime");
	obk_fp2_sqr(&t, &p.x);
	obk_fp2_mul(&t, &t, &p.x);
	obk_fp2_add(&t, &t, &curve_b);
	if (!obk_fp2_sqrt(&p.y, &t))
		return refuse(fault, item, "is not on the curve: its x belongs to no point");
	if (obk_fp2_is_large(&p.y) != !!(flags & FLAG_LARGE))
		obk_fp2_neg(&p.y, &p.y);
	*ret = p;
	return OB_ERR_NONE;
}

void obk_g2_encode_compressed(uint8_t bytes[OBK_G2_COMPRESSED_BYTES], const struct obk_g2_affine *p)
{
	if (obk_g2_affine_is_infinity(p)) {
		memset(bytes, 0, OBK_G2_COMPRESSED_BYTES);
		bytes[0] = FLAG_COMPRESSED | FLAG_INFINITY;
		return;
	}
	obk_fp_to_bytes(bytes, &p->x.c[1]);
	obk_fp_to_bytes(bytes + OBK_FP_BYTES, &p->x.c[0]);
	bytes[0] |= (uint8_t)(FLAG_COMPRESSED | (obk_fp2_is_large(&p->y) ? FLAG_LARGE : 0));
}
