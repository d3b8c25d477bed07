/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Transforms of points of G1 with roots of unity as scalars, sizes up to 2^12, in place. Networks
 * and roots are those of compute/ntt/ntt.c. Points must be in G1, because multiplications use its
 * endomorphism. inverse: use the inverse roots; the caller divides by n. Any thread; each on its
 * own data.
 */
#ifndef OBK_G1_NTT_H
#define OBK_G1_NTT_H

#include <stdbool.h>

#include "compute/curve/g1.h"
#include "compute/pool/pool.h"

/* r = k P for P in G1 and any k, with the endomorphism. */
void obk_g1_mul_endo(struct obk_g1 *r, const struct obk_g1 *p, const struct obk_fr *k);
/*
 * The factor of block i of a level, from a table of obk_roots_get: root i, or minus the inverse of
 * root i. The block compensates for that sign.
 */
const struct obk_fr *obk_g1_ntt_root(const struct obk_fr *roots, size_t i, bool inverse);
/* Natural to bit-reversed order. */
void obk_g1_ntt_scatter(struct obk_g1 *x, unsigned log_n, bool inverse, struct obk_pool *pool);
/* The same, with the upper half of x treated as infinity, whatever it contains. */
void obk_g1_ntt_scatter_low(struct obk_g1 *x, unsigned log_n, bool inverse, struct obk_pool *pool);
/*
 * Bit-reversed to natural order. Computes only the lower half of the result; the upper half is
 * undefined.
 */
void obk_g1_ntt_gather_low(struct obk_g1 *x, unsigned log_n, bool inverse, struct obk_pool *pool);

#endif
