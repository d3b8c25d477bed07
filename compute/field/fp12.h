/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fp12 over BLS12-381, the field of the pairing's values: Fp6 = Fp2[v] / (v^3 - xi), Fp12 = Fp6[w]
 * / (w^2 - v), xi = 1 + u. Pure functions, any thread; results may alias operands. Not constant
 * time.
 */
#ifndef OBK_FP12_H
#define OBK_FP12_H

#include "compute/field/fp2.h"

/* c[0] + c[1] v + c[2] v^2 */
struct obk_fp6 {
	struct obk_fp2 c[3];
};

/* c[0] + c[1] w */
struct obk_fp12 {
	struct obk_fp6 c[2];
};

void obk_fp12_set_one(struct obk_fp12 *r);
bool obk_fp12_is_one(const struct obk_fp12 *a);
bool obk_fp12_equal(const struct obk_fp12 *a, const struct obk_fp12 *b);
void obk_fp12_mul(struct obk_fp12 *r, const struct obk_fp12 *a, const struct obk_fp12 *b);
void obk_fp12_sqr(struct obk_fp12 *r, const struct obk_fp12 *a);
/* r = r times a + b v + c v w, the form of a line of the Miller loop; c is in Fp */
void obk_fp12_mul_line(struct obk_fp12 *r, const struct obk_fp2 *a, const struct obk_fp2 *b,
	const struct obk_fp *c);
/* a^(p^6): changes the sign of w; the inverse of elements of norm 1 */
void obk_fp12_conjugate(struct obk_fp12 *r, const struct obk_fp12 *a);
/* The inverse; 0 for 0. */
void obk_fp12_inv(struct obk_fp12 *r, const struct obk_fp12 *a);
/* a^(p^power), power 1 or 2 */
void obk_fp12_frobenius(struct obk_fp12 *r, const struct obk_fp12 *a, unsigned power);
/*
 * a^2 for a in the cyclotomic subgroup, where a^(p^4 - p^2 + 1) = 1 (Granger, Scott, eprint
 * 2009/565); incorrect for other elements
 */
void obk_fp12_sqr_cyclotomic(struct obk_fp12 *r, const struct obk_fp12 *a);

#endif
