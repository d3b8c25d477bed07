/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The optimal ate pairing of BLS12-381, G1 x G2 -> Fp12. The lines of the Miller loop depend only
 * on the G2 point. The caller computes them once and keeps them, because it always uses the same
 * few points of G2. Pure functions, any thread.
 */
#ifndef OBK_PAIRING_H
#define OBK_PAIRING_H

#include "compute/curve/g1.h"
#include "compute/curve/g2.h"
#include "compute/field/fp12.h"

/* 63 doublings and 5 additions: the bits of the curve's parameter */
#define OBK_PAIRING_LINES     68
#define OBK_PAIRING_MAX_TERMS 16

/* The line y - slope x = -offset through points of the Miller loop. */
struct obk_g2_lines {
	bool infinity;
	struct {
		struct obk_fp2 slope, offset; /* offset = slope X - Y */
	} line[OBK_PAIRING_LINES];
};

/* q must be in G2 (checked by the caller). */
void obk_g2_lines_make(struct obk_g2_lines *lines, const struct obk_g2_affine *q);
/*
 * The product of e(p[i], q[i])^3, n <= OBK_PAIRING_MAX_TERMS. The third power takes less time than
 * the pairing and serves the same purpose.
 */
void obk_pairing_product(struct obk_fp12 *r, const struct obk_g1_affine *p,
	const struct obk_g2_lines *const *q, size_t n);
/* Whether the product of e(p[i], q[i]) is one. */
bool obk_pairing_product_is_one(
	const struct obk_g1_affine *p, const struct obk_g2_lines *const *q, size_t n);

#endif
