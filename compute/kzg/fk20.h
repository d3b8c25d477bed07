/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * All 128 proofs of a blob's cells at once (D. Feist, D. Khovratovich, eprint 2023/033): the proof
 * of cell k is the polynomial with coefficients h_0 .. h_62 at y_k, y_k the 128th roots of unity,
 * and h_m = sum over a of c_(a + 64 (m + 1)) [s^a], a correlation: 128 products of 64 fixed points
 * between transforms of size 128. Owned by a setup; any number of threads.
 */
#ifndef OBK_FK20_H
#define OBK_FK20_H

#include "compute/curve/g1.h"
#include "compute/pool/pool.h"

#define OBK_FK20_LOG_COLUMNS 7
#define OBK_FK20_COLUMNS     128 /* sums, and points of the transforms */
#define OBK_FK20_TERMS       64  /* products of a sum */

struct obk_fk20;

/*
 * Keeps a copy of the 4096 points [s^i] of G1. The tables are made by the first proof. window:
 * 2..OBK_KZG_MAX_CELL_WINDOW. NULL without memory.
 */
struct obk_fk20 *obk_fk20_new(const struct obk_g1_affine *monomial, unsigned window);
void obk_fk20_free(struct obk_fk20 *fk);
/*
 * The proofs, in the order of cells, of the polynomial with these 4096 coefficients.
 * OB_ERR_NO_MEMORY.
 */
enum ob_err obk_fk20_prove(struct obk_fk20 *fk, const struct obk_fr *coefficients,
	struct obk_g1_affine proofs[OBK_FK20_COLUMNS], struct obk_pool *pool);

/*
 * For those who compute the sums elsewhere, a GPU say: sum i is that of scalars[i][j] points[i][j],
 * 128 of 64 each. The proofs are these sums through obk_g1_ntt_gather_low(.., 7, true, ..) and
 * obk_g1_ntt_scatter_low(.., 7, false, ..). OB_ERR_NO_MEMORY.
 */
enum ob_err obk_fk20_points(
	const struct obk_fk20 *fk, struct obk_g1_affine *ret_points, struct obk_pool *pool);
enum ob_err obk_fk20_scalars(
	const struct obk_fr *coefficients, struct obk_fr *ret_scalars, struct obk_pool *pool);

#endif
