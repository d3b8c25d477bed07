/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Transforms of points of G1 with roots of unity as scalars, sizes up to 2^12, in place; networks
 * and roots as in compute/ntt/ntt.c. Points must be in G1 (products go by its endomorphism).
 * inverse: with the inverse roots; the division by n is the caller's. Any thread, each on its own
 * data.
 */
#ifndef OBK_G1_NTT_H
#define OBK_G1_NTT_H

#include <stdbool.h>

#include "compute/curve/g1.h"
#include "compute/pool/pool.h"

/* r = k P for P in G1 and any k, by halves of k. */
void obk_g1_mul_endo(struct obk_g1 *r, const struct obk_g1 *p, const struct obk_fr *k);
/*
 * Of a table of obk_roots_get, what block i of a level multiplies by: root i, or its inverse turned
 * by half a circle, for which the block's signs make up.
 */
const struct obk_fr *obk_g1_ntt_root(const struct obk_fr *roots, size_t i, bool inverse);
/* Natural to bit-reversed order. */
void obk_g1_ntt_scatter(struct obk_g1 *x, unsigned log_n, bool inverse, struct obk_pool *pool);
/* The same where the upper half of x counts as infinity, whatever it holds. */
void obk_g1_ntt_scatter_low(struct obk_g1 *x, unsigned log_n, bool inverse, struct obk_pool *pool);
/* Bit-reversed to natural order, the lower half of the result only; the upper half is undefined. */
void obk_g1_ntt_gather_low(struct obk_g1 *x, unsigned log_n, bool inverse, struct obk_pool *pool);

#endif
