/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Every reference vector of c-kzg-4844, then what they do not try: bad setups, threads, tables, limits. */
#include "base/opt.h"
#include "kernels/kzg/kzg.h"
#include "kernels/pool/pool.h"
#include "tests/kernels/vectors.h"
#include "tests/unit/test.h"

#define TIMEOUT_S 280 /* seconds of work on a machine of its own, minutes on one that is busy */

static struct vectors v;

static struct obk_kzg *load(const struct obk_kzg_options *options)
{
	struct obk_kzg *kzg = NULL;
	struct obk_fault fault;

	if (obk_kzg_load_file(OBK_TEST_KZG "/trusted_setup.txt", options, &kzg, &fault) != OB_ERR_NONE) {
		fprintf(stderr, "%s\n", fault.text);
		exit(1);
	}
	return kzg;
}

static const uint8_t *bytes(const char *name, unsigned nth, size_t length, bool *fits)
{
	const struct vector_field *f = vectors_field(&v, name, nth);

	*fits &= f->length == length || f->count == 0;
	return f->bytes;
}

static size_t count(const char *name)
{
	return vectors_field(&v, name, 0)->count;
}

/* The vector wants a refusal: an error, or bytes that are no argument of the function at all. */
static void check_refused(bool fits, enum ob_err err, const struct obk_fault *fault)
{
	bool want = vectors_field(&v, "output", 0)->null;

	if (want != (!fits || err == OB_ERR_ARGUMENT) || (!want && err)) {
		fprintf(stderr, "%s %s: %s refused; %s %s\n", v.handler, v.name, want ? "not" : "was", ob_err_name(err), err ? fault->text : "");
		exit(1);
	}
	if (err)
		CHECK(strlen(fault->text) > 10);
}

static void check_bytes(const void *have, unsigned nth, size_t n)
{
	const struct vector_field *f = vectors_field(&v, "output", nth);

	if (f->null)
		return;
	CHECK_INT(f->length * f->count, n);
	if (memcmp(have, f->bytes, n) != 0) {
		fprintf(stderr, "%s %s: output %u differs\n", v.handler, v.name, nth);
		exit(1);
	}
}

static void check_truth(bool valid)
{
	const struct vector_field *f = vectors_field(&v, "output", 0);

	if (!f->null && valid != f->truth) {
		fprintf(stderr, "%s %s: said %d\n", v.handler, v.name, valid);
		exit(1);
	}
}

/* Runs `body` for each vector of a handler; fails unless there are `want` of them. */
static void each(const char *handler, unsigned want, void (*body)(const struct obk_kzg *kzg))
{
	struct obk_kzg *kzg;
	unsigned n = 0;

	alarm(TIMEOUT_S);
	kzg = load(NULL);
	vectors_open(&v, OBK_TEST_KZG);
	for (; vectors_next(&v, handler); n++)
		body(kzg);
	CHECK_INT(n, want);
	obk_kzg_free(kzg);
}

static void one_commitment(const struct obk_kzg *kzg)
{
	bool fits = true;
	const uint8_t *blob = bytes("blob", 0, OBK_KZG_BLOB_BYTES, &fits);
	struct obk_fault fault;
	uint8_t out[48];
	enum ob_err err = fits ? obk_kzg_commit(kzg, blob, out, &fault) : OB_ERR_NONE;

	check_refused(fits, err, &fault);
	check_bytes(out, 0, 48);
	if (strcmp(v.name, "invalid_blob_1") == 0)
		CHECK_INT(fault.item, 2111);
}

TEST(blob_to_kzg_commitment)
{
	each("blob_to_kzg_commitment", 11, one_commitment);
}

static void one_proof(const struct obk_kzg *kzg)
{
	bool fits = true;
	const uint8_t *blob = bytes("blob", 0, OBK_KZG_BLOB_BYTES, &fits), *z = bytes("z", 0, 32, &fits);
	struct obk_fault fault;
	uint8_t out[48], y[32];
	enum ob_err err = fits ? obk_kzg_prove(kzg, blob, z, out, y, &fault) : OB_ERR_NONE;

	check_refused(fits, err, &fault);
	check_bytes(out, 0, 48);
	if (!vectors_field(&v, "output", 0)->null)
		check_bytes(y, 1, 32);
}

TEST(compute_kzg_proof)
{
	each("compute_kzg_proof", 52, one_proof);
}

static void one_blob_proof(const struct obk_kzg *kzg)
{
	bool fits = true;
	const uint8_t *blob = bytes("blob", 0, OBK_KZG_BLOB_BYTES, &fits), *commitment = bytes("commitment", 0, 48, &fits);
	struct obk_fault fault;
	uint8_t out[48];
	enum ob_err err = fits ? obk_kzg_prove_blob(kzg, blob, commitment, out, &fault) : OB_ERR_NONE;

	check_refused(fits, err, &fault);
	check_bytes(out, 0, 48);
}

TEST(compute_blob_kzg_proof)
{
	each("compute_blob_kzg_proof", 15, one_blob_proof);
}

static void one_verification(const struct obk_kzg *kzg)
{
	bool fits = true, valid = false;
	const uint8_t *c = bytes("commitment", 0, 48, &fits), *z = bytes("z", 0, 32, &fits), *y = bytes("y", 0, 32, &fits), *p = bytes("proof", 0, 48, &fits);
	struct obk_fault fault;
	enum ob_err err = fits ? obk_kzg_verify(kzg, c, z, y, p, &valid, &fault) : OB_ERR_NONE;

	check_refused(fits, err, &fault);
	check_truth(valid);
}

TEST(verify_kzg_proof)
{
	each("verify_kzg_proof", 122, one_verification);
}

static void one_blob_verification(const struct obk_kzg *kzg)
{
	bool fits = true, valid = false;
	const uint8_t *blob = bytes("blob", 0, OBK_KZG_BLOB_BYTES, &fits), *c = bytes("commitment", 0, 48, &fits), *p = bytes("proof", 0, 48, &fits);
	struct obk_fault fault;
	enum ob_err err = fits ? obk_kzg_verify_blob(kzg, blob, c, p, &valid, &fault) : OB_ERR_NONE;

	check_refused(fits, err, &fault);
	check_truth(valid);
}

TEST(verify_blob_kzg_proof)
{
	each("verify_blob_kzg_proof", 29, one_blob_verification);
}

static void one_batch(const struct obk_kzg *kzg)
{
	bool fits = true, valid = false;
	const uint8_t *blobs = bytes("blobs", 0, OBK_KZG_BLOB_BYTES, &fits), *c = bytes("commitments", 0, 48, &fits), *p = bytes("proofs", 0, 48, &fits);
	struct obk_fault fault;
	enum ob_err err = OB_ERR_NONE;

	fits &= count("blobs") == count("commitments") && count("blobs") == count("proofs");
	if (fits)
		err = obk_kzg_verify_blob_batch(kzg, blobs, c, p, count("blobs"), &valid, &fault);
	check_refused(fits, err, &fault);
	check_truth(valid);
}

TEST(verify_blob_kzg_proof_batch)
{
	each("verify_blob_kzg_proof_batch", 24, one_batch);
}

static uint8_t cells[OBK_KZG_CELLS * OBK_KZG_CELL_BYTES], proofs[OBK_KZG_CELLS * OBK_KZG_POINT_BYTES];

static void one_extension(const struct obk_kzg *kzg)
{
	bool fits = true, with_proofs = strcmp(v.handler, "compute_cells") != 0;
	const uint8_t *blob = bytes("blob", 0, OBK_KZG_BLOB_BYTES, &fits);
	struct obk_fault fault;
	enum ob_err err = fits ? obk_kzg_cells(kzg, blob, cells, with_proofs ? proofs : NULL, &fault) : OB_ERR_NONE;

	check_refused(fits, err, &fault);
	check_bytes(cells, 0, sizeof cells);
	if (with_proofs && !vectors_field(&v, "output", 0)->null)
		check_bytes(proofs, 1, sizeof proofs);
}

TEST(compute_cells)
{
	each("compute_cells", 11, one_extension);
}

TEST(compute_cells_and_kzg_proofs)
{
	each("compute_cells_and_kzg_proofs", 11, one_extension);
}

static void one_recovery(const struct obk_kzg *kzg)
{
	bool fits = true;
	const uint8_t *some = bytes("cells", 0, OBK_KZG_CELL_BYTES, &fits);
	struct obk_fault fault;
	enum ob_err err = OB_ERR_NONE;

	fits &= count("cells") == count("cell_indices");
	if (fits)
		err = obk_kzg_recover(kzg, vectors_field(&v, "cell_indices", 0)->numbers, some, count("cells"), cells, proofs, &fault);
	check_refused(fits, err, &fault);
	check_bytes(cells, 0, sizeof cells);
	if (!vectors_field(&v, "output", 0)->null)
		check_bytes(proofs, 1, sizeof proofs);
}

TEST(recover_cells_and_kzg_proofs)
{
	each("recover_cells_and_kzg_proofs", 18, one_recovery);
}

static void one_cells_verification(const struct obk_kzg *kzg)
{
	bool fits = true, valid = false;
	const uint8_t *c = bytes("commitments", 0, 48, &fits), *some = bytes("cells", 0, OBK_KZG_CELL_BYTES, &fits), *p = bytes("proofs", 0, 48, &fits);
	size_t n = count("cells");
	struct obk_fault fault;
	enum ob_err err = OB_ERR_NONE;

	fits &= n == count("commitments") && n == count("proofs") && n == count("cell_indices");
	if (fits)
		err = obk_kzg_verify_cells(kzg, c, vectors_field(&v, "cell_indices", 0)->numbers, some, p, n, &valid, &fault);
	check_refused(fits, err, &fault);
	check_truth(valid);
}

TEST(verify_cell_kzg_proof_batch)
{
	each("verify_cell_kzg_proof_batch", 32, one_cells_verification);
}

TEST(challenges)
{
	uint8_t out[32];
	unsigned n = 0;

	vectors_open(&v, OBK_TEST_KZG);
	for (; vectors_next(&v, "compute_challenge"); n++) {
		obk_kzg_blob_challenge(vectors_field(&v, "blob", 0)->bytes, vectors_field(&v, "commitment", 0)->bytes, out);
		check_bytes(out, 0, 32);
	}
	CHECK_INT(n, 9);
	vectors_open(&v, OBK_TEST_KZG);
	for (n = 0; vectors_next(&v, "compute_verify_cell_kzg_proof_batch_challenge"); n++) {
		obk_kzg_cells_challenge(vectors_field(&v, "commitments", 0)->bytes, count("commitments"), vectors_field(&v, "commitment_indices", 0)->numbers,
			vectors_field(&v, "cell_indices", 0)->numbers, vectors_field(&v, "cosets_evals", 0)->bytes, vectors_field(&v, "proofs", 0)->bytes,
			count("cell_indices"), out);
		check_bytes(out, 0, 32);
	}
	CHECK_INT(n, 10);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
