/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * All 128 proofs of a blob's cells at once (D. Feist, D. Khovratovich, eprint 2023/033). The proof
 * of cell k is the value at y_k of the polynomial with coefficients h_0 .. h_62, where the y_k are
 * the 128th roots of unity and h_m = sum over a of c_(a + 64 (m + 1)) [s^a]. This correlation is
 * computed as 128 sums of 64 products with fixed points, between transforms of size 128. A setup
 * owns the object; any number of threads may use it.
 */
#ifndef OBK_FK20_H
#define OBK_FK20_H

#include "compute/curve/g1.h"
#include "compute/pool/pool.h"

#define OBK_FK20_LOG_COLUMNS 7
#define OBK_FK20_COLUMNS     128 /* sums, and points in a transform */
#define OBK_FK20_TERMS       64  /* products in a sum */

struct obk_fk20;

/*
 * Keeps a copy of the 4096 points [s^i] of G1. The first proof makes the tables. window:
 * 2..OBK_KZG_MAX_CELL_WINDOW. NULL: out of memory.
 */
struct obk_fk20 *obk_fk20_new(const struct obk_g1_affine *monomial, unsigned window);
void obk_fk20_free(struct obk_fk20 *fk);
/*
 * Computes the proofs, in the order of cells, for the polynomial with these 4096 coefficients.
 * OB_ERR_NO_MEMORY.
 */
enum ob_err obk_fk20_prove(struct obk_fk20 *fk, const struct obk_fr *coefficients,
	struct obk_g1_affine proofs[OBK_FK20_COLUMNS], struct obk_pool *pool);

/*
 * For computing the sums elsewhere, for example on a GPU: sum i is the sum of scalars[i][j]
 * points[i][j], 128 sums of 64 products each. Applying obk_g1_ntt_gather_low(.., 7, true, ..) and
 * then obk_g1_ntt_scatter_low(.., 7, false, ..) to the sums gives the proofs. OB_ERR_NO_MEMORY.
 */
enum ob_err obk_fk20_points(
	const struct obk_fk20 *fk, struct obk_g1_affine *ret_points, struct obk_pool *pool);
enum ob_err obk_fk20_scalars(
	const struct obk_fr *coefficients, struct obk_fr *ret_scalars, struct obk_pool *pool);

#endif
