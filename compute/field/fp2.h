/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fp2 = Fp[u] / (u^2 + 1) over the base field of BLS12-381: the field of G2's coordinates and the
 * lowest extension in the pairing's tower. Elements in Montgomery form. Pure functions, any thread;
 * results may alias operands. Not constant time.
 */
#ifndef OBK_FP2_H
#define OBK_FP2_H

#include "compute/field/fp.h"

/* c[0] + c[1] u */
struct obk_fp2 {
	struct obk_fp c[2];
};

extern const struct obk_fp2 obk_fp2_zero, obk_fp2_one;

static inline bool obk_fp2_is_zero(const struct obk_fp2 *a)
{
	return obk_fp_is_zero(&a->c[0]) && obk_fp_is_zero(&a->c[1]);
}

static inline bool obk_fp2_equal(const struct obk_fp2 *a, const struct obk_fp2 *b)
{
	return obk_fp_equal(&a->c[0], &b->c[0]) && obk_fp_equal(&a->c[1], &b->c[1]);
}

static inline void obk_fp2_add(struct obk_fp2 *r, const struct obk_fp2 *a, const struct obk_fp2 *b)
{
	obk_fp_add(&r->c[0], &a->c[0], &b->c[0]);
	obk_fp_add(&r->c[1], &a->c[1], &b->c[1]);
}

static inline void obk_fp2_sub(struct obk_fp2 *r, const struct obk_fp2 *a, const struct obk_fp2 *b)
{
	obk_fp_sub(&r->c[0], &a->c[0], &b->c[0]);
	obk_fp_sub(&r->c[1], &a->c[1], &b->c[1]);
}

void obk_fp2_neg(struct obk_fp2 *r, const struct obk_fp2 *a);
/* a^p: changes the sign of u */
void obk_fp2_conjugate(struct obk_fp2 *r, const struct obk_fp2 *a);
void obk_fp2_mul(struct obk_fp2 *r, const struct obk_fp2 *a, const struct obk_fp2 *b);
void obk_fp2_sqr(struct obk_fp2 *r, const struct obk_fp2 *a);
void obk_fp2_mul_fp(struct obk_fp2 *r, const struct obk_fp2 *a, const struct obk_fp *b);
/* times xi = 1 + u, which is neither a square nor a cube */
void obk_fp2_mul_xi(struct obk_fp2 *r, const struct obk_fp2 *a);
/* The inverse; 0 for 0. */
void obk_fp2_inv(struct obk_fp2 *r, const struct obk_fp2 *a);
/* A square root; false, and nothing written, if there is none. */
bool obk_fp2_sqrt(struct obk_fp2 *ret, const struct obk_fp2 *a);
/*
 * The sign of a y coordinate in the encodings: whether c[1], or c[0] if c[1] is 0, is above (p - 1)
 * / 2.
 */
bool obk_fp2_is_large(const struct obk_fp2 *a);

#endif
