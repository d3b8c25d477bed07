/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * KZG commitments over BLS12-381 as Ethereum uses them (EIP-4844 blobs, EIP-7594 cells), with the
 * semantics of c-kzg-4844 (obk_kzg_recover checks more), on the CPU: no server, no GPU.
 *
 * A setup holds the points of a ceremony and the tables made of them. The caller owns it and the
 * pool it was given, which must outlive it. Once loaded it is read-only: any number of threads may
 * call at once, taking turns on the pool.
 *
 * Bytes: a field element is 32 bytes, the highest first, and below r; a point of G1 is 48 bytes in
 * the compressed form of ZCash and the IETF; a blob is 4096 elements; a cell is 64 elements.
 * Elements out of range and points that are off the curve or outside G1 are OB_ERR_ARGUMENT, with a
 * sentence that names the item. A proof that does not hold is no error: the function succeeds and
 * *ret_valid is false. All functions block until done. Outputs are written only on success.
 */
#ifndef OBK_KZG_H
#define OBK_KZG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/field/fault.h"

#define OBK_KZG_ELEMENT_BYTES   32
#define OBK_KZG_POINT_BYTES     48
#define OBK_KZG_BLOB_ELEMENTS   4096
#define OBK_KZG_BLOB_BYTES      (OBK_KZG_BLOB_ELEMENTS * OBK_KZG_ELEMENT_BYTES)
#define OBK_KZG_CELL_ELEMENTS   64
#define OBK_KZG_CELL_BYTES      (OBK_KZG_CELL_ELEMENTS * OBK_KZG_ELEMENT_BYTES)
/* of a blob and its extension: any half of them gives the blob back */
#define OBK_KZG_CELLS           128
#define OBK_KZG_CELL_POINTS     8192
#define OBK_KZG_MAX_BATCH       65536 /* blobs or cells of one verification */
#define OBK_KZG_MAX_CELL_WINDOW 10
#define OBK_KZG_MAX_SETUP_BYTES ((size_t)16 << 20)

struct obk_kzg;
struct obk_pool;
struct obk_g1_affine;
struct obk_fr;

struct obk_kzg_options {
	struct obk_pool *pool; /* NULL: the caller's thread only */
	/*
	 * Bits of a window of the table that the first cell proof makes: 8192 x 2^(cell_window - 1)
	 * points of 96 bytes or a little more; 0: 4 bits.
	 */
	unsigned cell_window;
	/* bytes allowed for shifted copies of the setup, which make commitments faster; 0: none */
	size_t commit_table;
};

/*
 * A trusted setup in c-kzg-4844's text: "4096", "65", then 4096 points of G1 in Lagrange form, 65
 * of G2, 4096 of G1 in monomial form, in hex. Every point is checked (curve, subgroup), and the two
 * forms must belong to each other. options NULL: all zero. fault->item: the index of the bad point
 * in its list. OB_ERR_ARGUMENT, OB_ERR_NO_MEMORY, OB_ERR_LIMIT; OB_ERR_IO if the file cannot be
 * read.
 */
enum ob_err obk_kzg_load(const char *text, size_t length, const struct obk_kzg_options *options,
	struct obk_kzg **ret_kzg, struct obk_fault *fault);
enum ob_err obk_kzg_load_file(const char *path, const struct obk_kzg_options *options,
	struct obk_kzg **ret_kzg, struct obk_fault *fault);
/*
 * The same setup with the threads of another pool: shares all tables, so `kzg` must outlive it.
 * OB_ERR_NO_MEMORY.
 */
enum ob_err obk_kzg_share(const struct obk_kzg *kzg, struct obk_pool *pool,
	struct obk_kzg **ret_kzg, struct obk_fault *fault);
void obk_kzg_free(struct obk_kzg *kzg);

/* EIP-4844. fault->item: the element of the blob. */
enum ob_err obk_kzg_commit(const struct obk_kzg *kzg, const uint8_t *blob, uint8_t *ret_commitment,
	struct obk_fault *fault);
/* The proof that the blob's polynomial has the value y at z. */
enum ob_err obk_kzg_prove(const struct obk_kzg *kzg, const uint8_t *blob, const uint8_t *z,
	uint8_t *ret_proof, uint8_t *ret_y, struct obk_fault *fault);
/*
 * The proof for the challenge drawn from blob and commitment. The commitment is not checked to be
 * the blob's.
 */
enum ob_err obk_kzg_prove_blob(const struct obk_kzg *kzg, const uint8_t *blob,
	const uint8_t *commitment, uint8_t *ret_proof, struct obk_fault *fault);
enum ob_err obk_kzg_verify(const struct obk_kzg *kzg, const uint8_t *commitment, const uint8_t *z,
	const uint8_t *y, const uint8_t *proof, bool *ret_valid, struct obk_fault *fault);
enum ob_err obk_kzg_verify_blob(const struct obk_kzg *kzg, const uint8_t *blob,
	const uint8_t *commitment, const uint8_t *proof, bool *ret_valid, struct obk_fault *fault);
/*
 * n blobs, commitments and proofs, each list packed. Valid if all are; none at all is valid.
 * fault->item: the index in the batch.
 */
enum ob_err obk_kzg_verify_blob_batch(const struct obk_kzg *kzg, const uint8_t *blobs,
	const uint8_t *commitments, const uint8_t *proofs, size_t n, bool *ret_valid,
	struct obk_fault *fault);

/*
 * For those who compute the sum behind a commitment or proof elsewhere, a GPU say. Element i
 * belongs to point i of obk_kzg_points, 4096 of them, the setup's own; the sum, compressed, is the
 * result. A commitment's elements are the blob's bytes as they are, once they are checked; a
 * proof's are in Montgomery form. Checks and errors as of the functions above.
 */
const struct obk_g1_affine *obk_kzg_points(const struct obk_kzg *kzg);
enum ob_err obk_kzg_check_blob(const uint8_t *blob, struct obk_fault *fault);
enum ob_err obk_kzg_prove_scalars(const struct obk_kzg *kzg, const uint8_t *blob, const uint8_t *z,
	struct obk_fr *ret_scalars, uint8_t *ret_y, struct obk_fault *fault);
enum ob_err obk_kzg_prove_blob_scalars(const struct obk_kzg *kzg, const uint8_t *blob,
	const uint8_t *commitment, struct obk_fr *ret_scalars, struct obk_fault *fault);

/*
 * The same for cell proofs, whose sums and transforms compute/kzg/gpu.h does: 8192 points of the
 * setup, OB_ERR_NO_MEMORY, and a blob's 8192 scalars for them. ret_cells: the blob's cells, NULL if
 * they are not wanted.
 */
enum ob_err obk_kzg_cell_points(
	const struct obk_kzg *kzg, struct obk_g1_affine *ret_points, struct obk_fault *fault);
enum ob_err obk_kzg_cell_scalars(const struct obk_kzg *kzg, const uint8_t *blob,
	struct obk_fr *ret_scalars, uint8_t *ret_cells, struct obk_fault *fault);

/*
 * EIP-7594. ret_cells: 128 cells, ret_proofs: 128 points; either may be NULL if it is not wanted.
 */
enum ob_err obk_kzg_cells(const struct obk_kzg *kzg, const uint8_t *blob, uint8_t *ret_cells,
	uint8_t *ret_proofs, struct obk_fault *fault);
/*
 * All cells, and proofs if wanted, from n of them, 64 <= n <= 128; indices rise. More than 64 cells
 * that belong to no single blob are OB_ERR_ARGUMENT, where c-kzg-4844 reports success
 * (compute/engine/outboard.h). fault->item: the index in the list.
 */
enum ob_err obk_kzg_recover(const struct obk_kzg *kzg, const uint64_t *indices,
	const uint8_t *cells, size_t n, uint8_t *ret_cells, uint8_t *ret_proofs,
	struct obk_fault *fault);
/*
 * Cell i is cell indices[i] of the blob committed to by commitments[i], proven by proofs[i]. Valid
 * if all are; none at all is valid.
 */
enum ob_err obk_kzg_verify_cells(const struct obk_kzg *kzg, const uint8_t *commitments,
	const uint64_t *indices, const uint8_t *cells, const uint8_t *proofs, size_t n,
	bool *ret_valid, struct obk_fault *fault);

/* The challenges by themselves, as the two EIPs define them; inputs are hashed as they are. */
void obk_kzg_blob_challenge(const uint8_t *blob, const uint8_t *commitment, uint8_t *ret_challenge);
void obk_kzg_cells_challenge(const uint8_t *commitments, size_t commitment_count,
	const uint64_t *commitment_indices, const uint64_t *cell_indices, const uint8_t *cells,
	const uint8_t *proofs, size_t n, uint8_t *ret_challenge);

#endif
