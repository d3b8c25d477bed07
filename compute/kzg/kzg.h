/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * KZG commitments over BLS12-381 as Ethereum uses them (EIP-4844 blobs, EIP-7594 cells), on the
 * CPU. The semantics are those of c-kzg-4844, except that obk_kzg_recover checks more.
 *
 * A setup holds the points of a ceremony and the tables made from them. The caller owns it and the
 * pool it was created with; the pool must outlive it. Once loaded it is read-only: any number of
 * threads may call these functions at once; they take turns on the pool.
 *
 * Formats: a field element is 32 bytes, big-endian and below r; a point of G1 is 48 bytes in the
 * compressed form of ZCash and the IETF; a blob is 4096 elements; a cell is 64 elements. Elements
 * out of range and points off the curve or outside G1 are OB_ERR_ARGUMENT, with a text that names
 * the item. A proof that does not hold is not an error: the function succeeds and *ret_valid is
 * false. All functions block until done. Outputs are written only on success.
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
/* of a blob and its extension; any 64 of them are enough to recover the blob */
#define OBK_KZG_CELLS           128
#define OBK_KZG_CELL_POINTS     8192
#define OBK_KZG_MAX_BATCH       65536 /* blobs or cells in one verification */
#define OBK_KZG_MAX_CELL_WINDOW 10
#define OBK_KZG_MAX_SETUP_BYTES ((size_t)16 << 20)

struct obk_kzg;
struct obk_pool;
struct obk_g1_affine;
struct obk_fr;

struct obk_kzg_options {
	struct obk_pool *pool; /* NULL: only the calling thread works */
	/*
	 * Window, in bits, of the table that the first cell proof makes: 8192 x 2^(cell_window - 1)
	 * points of 96 bytes or a little more; 0: 4 bits.
	 */
	unsigned cell_window;
	/*
	 * bytes that shifted copies of the setup may take, which make commitments faster; 0: none
	 */
	size_t commit_table;
};

/*
 * Loads a trusted setup in the text format of c-kzg-4844: "4096", "65", then 4096 points of G1 in
 * Lagrange form, 65 of G2, 4096 of G1 in monomial form, in hex. Checks every point (curve,
 * subgroup) and that the two forms belong together. options NULL: all zero. fault->item: the index
 * of the bad point in its list. OB_ERR_ARGUMENT, OB_ERR_NO_MEMORY, OB_ERR_LIMIT; OB_ERR_IO if the
 * file cannot be read.
 */
enum ob_err obk_kzg_load(const char *text, size_t length, const struct obk_kzg_options *options,
	struct obk_kzg **ret_kzg, struct obk_fault *fault);
enum ob_err obk_kzg_load_file(const char *path, const struct obk_kzg_options *options,
	struct obk_kzg **ret_kzg, struct obk_fault *fault);
/*
 * The same setup with another pool. It shares all tables with `kzg`, which must outlive it.
 * OB_ERR_NO_MEMORY.
 */
enum ob_err obk_kzg_share(const struct obk_kzg *kzg, struct obk_pool *pool,
	struct obk_kzg **ret_kzg, struct obk_fault *fault);
void obk_kzg_free(struct obk_kzg *kzg);

/* EIP-4844. fault->item: the index of the element in the blob. */
enum ob_err obk_kzg_commit(const struct obk_kzg *kzg, const uint8_t *blob, uint8_t *ret_commitment,
	struct obk_fault *fault);
/* Proves that the blob's polynomial has the value y at z. */
enum ob_err obk_kzg_prove(const struct obk_kzg *kzg, const uint8_t *blob, const uint8_t *z,
	uint8_t *ret_proof, uint8_t *ret_y, struct obk_fault *fault);
/*
 * The proof for the challenge that is computed from blob and commitment. The commitment is not
 * checked against the blob.
 */
enum ob_err obk_kzg_prove_blob(const struct obk_kzg *kzg, const uint8_t *blob,
	const uint8_t *commitment, uint8_t *ret_proof, struct obk_fault *fault);
enum ob_err obk_kzg_verify(const struct obk_kzg *kzg, const uint8_t *commitment, const uint8_t *z,
	const uint8_t *y, const uint8_t *proof, bool *ret_valid, struct obk_fault *fault);
enum ob_err obk_kzg_verify_blob(const struct obk_kzg *kzg, const uint8_t *blob,
	const uint8_t *commitment, const uint8_t *proof, bool *ret_valid, struct obk_fault *fault);
/*
 * n blobs, commitments and proofs, in packed lists. Valid if all are valid; n = 0 is valid.
 * fault->item: the index in the batch.
 */
enum ob_err obk_kzg_verify_blob_batch(const struct obk_kzg *kzg, const uint8_t *blobs,
	const uint8_t *commitments, const uint8_t *proofs, size_t n, bool *ret_valid,
	struct obk_fault *fault);

/*
 * For computing the sum behind a commitment or proof elsewhere, for example on a GPU. Element i
 * belongs to point i of obk_kzg_points, which are 4096 points owned by the setup. The sum in
 * compressed form is the result. For a commitment the elements are the blob's bytes, after a check;
 * for a proof they are in Montgomery form. Checks and errors as for the functions above.
 */
const struct obk_g1_affine *obk_kzg_points(const struct obk_kzg *kzg);
enum ob_err obk_kzg_check_blob(const uint8_t *blob, struct obk_fault *fault);
enum ob_err obk_kzg_prove_scalars(const struct obk_kzg *kzg, const uint8_t *blob, const uint8_t *z,
	struct obk_fr *ret_scalars, uint8_t *ret_y, struct obk_fault *fault);
enum ob_err obk_kzg_prove_blob_scalars(const struct obk_kzg *kzg, const uint8_t *blob,
	const uint8_t *commitment, struct obk_fr *ret_scalars, struct obk_fault *fault);

/*
 * The same for cell proofs; compute/kzg/gpu.h computes the sums and transforms. Returns 8192 points
 * of the setup (OB_ERR_NO_MEMORY), and the 8192 scalars of a blob. ret_cells: the blob's cells;
 * NULL: not wanted.
 */
enum ob_err obk_kzg_cell_points(
	const struct obk_kzg *kzg, struct obk_g1_affine *ret_points, struct obk_fault *fault);
enum ob_err obk_kzg_cell_scalars(const struct obk_kzg *kzg, const uint8_t *blob,
	struct obk_fr *ret_scalars, uint8_t *ret_cells, struct obk_fault *fault);

/* EIP-7594. ret_cells: 128 cells, ret_proofs: 128 points; either may be NULL. */
enum ob_err obk_kzg_cells(const struct obk_kzg *kzg, const uint8_t *blob, uint8_t *ret_cells,
	uint8_t *ret_proofs, struct obk_fault *fault);
/*
 * Computes all cells, and proofs unless ret_proofs is NULL, from n cells with rising indices, 64 <=
 * n <= 128. More than 64 cells that belong to no single blob are OB_ERR_ARGUMENT; c-kzg-4844
 * reports success for them (compute/engine/outboard.h). fault->item: the index in the list.
 */
enum ob_err obk_kzg_recover(const struct obk_kzg *kzg, const uint64_t *indices,
	const uint8_t *cells, size_t n, uint8_t *ret_cells, uint8_t *ret_proofs,
	struct obk_fault *fault);
/*
 * Cell i is cell number indices[i] of the blob with commitment commitments[i]; proofs[i] is its
 * proof. Valid if all are valid; n = 0 is valid.
 */
enum ob_err obk_kzg_verify_cells(const struct obk_kzg *kzg, const uint8_t *commitments,
	const uint64_t *indices, const uint8_t *cells, const uint8_t *proofs, size_t n,
	bool *ret_valid, struct obk_fault *fault);

/* The challenges alone, as the two EIPs define them. The inputs are hashed without a check. */
void obk_kzg_blob_challenge(const uint8_t *blob, const uint8_t *commitment, uint8_t *ret_challenge);
void obk_kzg_cells_challenge(const uint8_t *commitments, size_t commitment_count,
	const uint64_t *commitment_indices, const uint64_t *cell_indices, const uint8_t *cells,
	const uint8_t *proofs, size_t n, uint8_t *ret_challenge);

#endif
