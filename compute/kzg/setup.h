/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Private to KZG: the contents of a loaded setup, and steps that several functions share. Read-only
 * after loading.
 */
#ifndef OBK_SETUP_H
#define OBK_SETUP_H

#include "compute/curve/pairing.h"
#include "compute/kzg/fk20.h"
#include "compute/kzg/kzg.h"
#include "compute/msm/msm.h"

#define OBK_KZG_LOG_BLOB     12
#define OBK_KZG_LOG_EXTENDED 13
#define OBK_KZG_LOG_CELL     6
#define OBK_KZG_G2_POINTS    65

struct obk_kzg {
	struct obk_pool *pool;
	/* bit-reversed, like the elements of blobs */
	struct obk_msm_bases *lagrange;
	struct obk_g1_affine *lagrange_points; /* the same, as plain points */
	struct obk_g1_affine monomial[OBK_KZG_CELL_ELEMENTS];
	struct obk_g2_lines h, sh, s64h; /* [1], [s], [s^64] of G2 */
	/*
	 * 4096th roots of unity, bit-reversed: the blob's polynomial has the value of element i at
	 * points[i]
	 */
	struct obk_fr points[OBK_KZG_BLOB_ELEMENTS];
	struct obk_fk20 *fk20;
	bool shared; /* the pointers refer to memory that another setup owns */
};

/*
 * Reads elements from bytes; `what` and `item` are for the error text: "element 7 of the blob ...".
 */
enum ob_err obk_kzg_read_elements(struct obk_fr *ret, const uint8_t *bytes, size_t n,
	const char *what, struct obk_fault *fault);
/*
 * Reads a point and checks that it is in G1. For the error text: "the commitment", or "proof 7" if
 * item is given.
 */
enum ob_err obk_kzg_read_point(struct obk_g1_affine *ret, const uint8_t *bytes, const char *what,
	size_t item, struct obk_fault *fault);
/* The sum of k[i] p[i]. */
enum ob_err obk_kzg_sum(const struct obk_kzg *kzg, struct obk_g1_affine *ret,
	const struct obk_g1_affine *p, const struct obk_fr *k, size_t n, struct obk_fault *fault);
/* Returns whether e(a, h) equals e(b, q). */
bool obk_kzg_pairs(const struct obk_g1_affine *a, const struct obk_g2_lines *h,
	const struct obk_g1_affine *b, const struct obk_g2_lines *q);
/* Converts a hash to a field element by reduction modulo r. */
void obk_kzg_hash_element(struct obk_fr *ret, const uint8_t hash[32]);

#endif
