/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Every reference vector of c-kzg-4844, then cases without vectors: bad setups, threads, tables,
 * limits.
 */
#include "base/opt.h"
#include "compute/kzg/kzg.h"
#include "compute/pool/pool.h"
#include "tests/compute/kernels/vectors.h"
#include "tests/test.h"

#define TIMEOUT_S 280 /* takes seconds on an idle machine, minutes on a busy one */

static struct vectors v;

static struct obk_kzg *load(const struct obk_kzg_options *options)
{
	struct obk_kzg *kzg = NULL;
	struct obk_fault fault;

	if (obk_kzg_load_file(OBK_TEST_KZG "/trusted_setup.txt", options, &kzg, &fault) !=
		OB_ERR_NONE) {
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

/*
 * Checks that the call was refused if and only if the vector expects it. fits: false if the input
 * does not have the size of an argument, which counts as refused.
 */
static void check_refused(bool fits, enum ob_err err, const struct obk_fault *fault)
{
	bool want = vectors_field(&v, "output", 0)->null;

	if (want != (!fits || err == OB_ERR_ARGUMENT) || (!want && err)) {
		fprintf(stderr, "%s %s: %s refused; %s %s\n", v.handler, v.name,
			want ? "not" : "was", ob_err_name(err), err ? fault->text : "");
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
	const uint8_t *blob = bytes("blob", 0, OBK_KZG_BLOB_BYTES, &fits),
		      *z = bytes("z", 0, 32, &fits);
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
	const uint8_t *blob = bytes("blob", 0, OBK_KZG_BLOB_BYTES, &fits),
		      *commitment = bytes("commitment", 0, 48, &fits);
	struct obk_fault fault;
	uint8_t out[48];
	enum ob_err err =
		fits ? obk_kzg_prove_blob(kzg, blob, commitment, out, &fault) : OB_ERR_NONE;

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
	const uint8_t *c = bytes("commitment", 0, 48, &fits), *z = bytes("z", 0, 32, &fits),
		      *y = bytes("y", 0, 32, &fits), *p = bytes("proof", 0, 48, &fits);
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
	const uint8_t *blob = bytes("blob", 0, OBK_KZG_BLOB_BYTES, &fits),
		      *c = bytes("commitment", 0, 48, &fits), *p = bytes("proof", 0, 48, &fits);
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
	const uint8_t *blobs = bytes("blobs", 0, OBK_KZG_BLOB_BYTES, &fits),
		      *c = bytes("commitments", 0, 48, &fits), *p = bytes("proofs", 0, 48, &fits);
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

static uint8_t cells[OBK_KZG_CELLS * OBK_KZG_CELL_BYTES],
	proofs[OBK_KZG_CELLS * OBK_KZG_POINT_BYTES];

static void one_extension(const struct obk_kzg *kzg)
{
	bool fits = true, with_proofs = strcmp(v.handler, "compute_cells") != 0;
	const uint8_t *blob = bytes("blob", 0, OBK_KZG_BLOB_BYTES, &fits);
	struct obk_fault fault;
	enum ob_err err = fits
		? obk_kzg_cells(kzg, blob, cells, with_proofs ? proofs : NULL, &fault)
		: OB_ERR_NONE;

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
		err = obk_kzg_recover(kzg, vectors_field(&v, "cell_indices", 0)->numbers, some,
			count("cells"), cells, proofs, &fault);
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
	const uint8_t *c = bytes("commitments", 0, 48, &fits),
		      *some = bytes("cells", 0, OBK_KZG_CELL_BYTES, &fits),
		      *p = bytes("proofs", 0, 48, &fits);
	size_t n = count("cells");
	struct obk_fault fault;
	enum ob_err err = OB_ERR_NONE;

	fits &= n == count("commitments") && n == count("proofs") && n == count("cell_indices");
	if (fits)
		err = obk_kzg_verify_cells(kzg, c, vectors_field(&v, "cell_indices", 0)->numbers,
			some, p, n, &valid, &fault);
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
		obk_kzg_blob_challenge(vectors_field(&v, "blob", 0)->bytes,
			vectors_field(&v, "commitment", 0)->bytes, out);
		check_bytes(out, 0, 32);
	}
	CHECK_INT(n, 9);
	vectors_open(&v, OBK_TEST_KZG);
	for (n = 0; vectors_next(&v, "compute_verify_cell_kzg_proof_batch_challenge"); n++) {
		obk_kzg_cells_challenge(vectors_field(&v, "commitments", 0)->bytes,
			count("commitments"), vectors_field(&v, "commitment_indices", 0)->numbers,
			vectors_field(&v, "cell_indices", 0)->numbers,
			vectors_field(&v, "cosets_evals", 0)->bytes,
			vectors_field(&v, "proofs", 0)->bytes, count("cell_indices"), out);
		check_bytes(out, 0, 32);
	}
	CHECK_INT(n, 10);
}

static char *setup_text(size_t *ret_length)
{
	FILE *f = fopen(OBK_TEST_KZG "/trusted_setup.txt", "rbe");
	char *text = malloc(1 << 20);

	CHECK(f && text);
	*ret_length = fread(text, 1, (1 << 20) - 1, f);
	text[*ret_length] = 0;
	fclose(f);
	return text;
}

static void refuse_setup(const char *text, size_t length, size_t item, const char *words)
{
	struct obk_kzg *kzg = NULL;
	struct obk_fault fault = { .item = 1234567 };

	CHECK_INT(obk_kzg_load(text, length, NULL, &kzg, &fault), OB_ERR_ARGUMENT);
	CHECK(kzg == NULL);
	if (fault.item != item || !strstr(fault.text, words)) {
		fprintf(stderr, "item %zu: '%s' lacks '%s'\n", fault.item, fault.text, words);
		exit(1);
	}
}

/* offset of point i: after "4096\n65\n", one line per point */
#define LAGRANGE(i) (8 + (size_t)(i)*97)

TEST(bad_setups)
{
	size_t n, g2 = LAGRANGE(4096), monomial = g2 + 65 * 193;
	char *text = setup_text(&n), *copy = malloc(n + 4);
	char keep[200];
	struct obk_kzg *kzg;

	alarm(TIMEOUT_S);
	CHECK(copy != NULL);
	refuse_setup("", 0, OBK_FAULT_NO_ITEM, "4096");
	refuse_setup("4095\n65\n", 8, OBK_FAULT_NO_ITEM, "4095");
	refuse_setup(text, 5000, 51, "Lagrange point 51");
	refuse_setup(text, n - 40, 4095, "monomial point 4095");
	memcpy(copy, text, n);
	memcpy(copy + n, " 00", 3);
	refuse_setup(copy, n + 3, OBK_FAULT_NO_ITEM, "goes on");
	memcpy(copy, text, n);
	copy[LAGRANGE(7) + 5] = 'g';
	refuse_setup(copy, n, 7, "not hexadecimal");
	memcpy(copy, text, n);
	memcpy(copy + LAGRANGE(9), "e0", 2);
	refuse_setup(copy, n, 9, "Lagrange point 9");
	memcpy(copy, text, n);
	copy[g2 + 193 * 3] = '0';
	refuse_setup(copy, n, 3, "G2 point 3");
	/* two points swapped: each is valid, but the setup is not */
	memcpy(copy, text, n);
	memcpy(keep, copy + LAGRANGE(1), 96);
	memcpy(copy + LAGRANGE(1), copy + LAGRANGE(2), 96);
	memcpy(copy + LAGRANGE(2), keep, 96);
	refuse_setup(copy, n, OBK_FAULT_NO_ITEM, "do not belong");
	memcpy(copy, text, n);
	memcpy(copy + monomial + 97, copy + monomial + 2 * 97, 96);
	refuse_setup(copy, n, OBK_FAULT_NO_ITEM, "inconsistent");
	memcpy(copy, text, n);
	memcpy(copy + g2 + 193 * 64, copy + g2 + 193 * 63, 192);
	refuse_setup(copy, n, OBK_FAULT_NO_ITEM, "point 64");
	CHECK_INT(obk_kzg_load(text, OBK_KZG_MAX_SETUP_BYTES + 1, NULL, &kzg, NULL), OB_ERR_LIMIT);
	CHECK_INT(obk_kzg_load(text, n,
			  &(struct obk_kzg_options){ .cell_window = OBK_KZG_MAX_CELL_WINDOW + 1 },
			  &kzg, NULL),
		OB_ERR_LIMIT);
	CHECK_INT(obk_kzg_load(NULL, 0, NULL, &kzg, NULL), OB_ERR_ARGUMENT);
	CHECK_INT(obk_kzg_load_file("/nowhere/setup", NULL, &kzg, NULL), OB_ERR_IO);
	free(text);
	free(copy);
}

/* Threads and other windows and tables give the same bytes. Then damaged cells. */
TEST(tables_and_threads)
{
	static uint8_t blob[OBK_KZG_BLOB_BYTES], other[sizeof proofs], c[2][48], back[sizeof cells];
	uint64_t indices[OBK_KZG_CELLS];
	struct obk_kzg *plain, *tuned, *slow;
	struct obk_fault fault;
	struct obk_pool *pool;
	bool valid;

	alarm(TIMEOUT_S);
	for (size_t i = 0; i < sizeof blob; i++)
		blob[i] = i % 32 ? (uint8_t)(i * i >> 5 ^ i * 7) : 0;
	CHECK_INT(obk_pool_new(3, &pool), OB_ERR_NONE);
	plain = load(NULL);
	tuned = load(&(struct obk_kzg_options){
		.pool = pool, .cell_window = 5, .commit_table = 4 << 20 });
	CHECK_INT(obk_kzg_commit(plain, blob, c[0], NULL), OB_ERR_NONE);
	CHECK_INT(obk_kzg_commit(tuned, blob, c[1], NULL), OB_ERR_NONE);
	CHECK(memcmp(c[0], c[1], 48) == 0);
	CHECK_INT(obk_kzg_cells(plain, blob, cells, proofs, NULL), OB_ERR_NONE);
	CHECK_INT(obk_kzg_cells(tuned, blob, NULL, other, NULL), OB_ERR_NONE);
	CHECK(memcmp(proofs, other, sizeof proofs) == 0);
	ob_opt_set(OB_OPT_CELLS, false);
	slow = load(NULL);
	CHECK_INT(obk_kzg_cells(slow, blob, NULL, other, NULL), OB_ERR_NONE);
	CHECK(memcmp(proofs, other, sizeof proofs) == 0);
	obk_kzg_free(slow);
	ob_opt_set(OB_OPT_CELLS, true);
	for (unsigned i = 0; i < OBK_KZG_CELLS; i++)
		indices[i] = i;
	/*
	 * 65 cells are one more than needed, so damage is detected; 64 damaged cells give another
	 * blob
	 */
	CHECK_INT(obk_kzg_recover(tuned, indices, cells, 65, back, NULL, NULL), OB_ERR_NONE);
	CHECK(memcmp(cells, back, sizeof cells) == 0);
	cells[5 * OBK_KZG_CELL_BYTES + 31] ^= 1;
	CHECK_INT(obk_kzg_recover(tuned, indices, cells, 65, back, NULL, &fault), OB_ERR_ARGUMENT);
	CHECK(strstr(fault.text, "one blob") != NULL);
	CHECK_INT(obk_kzg_recover(tuned, indices, cells, 64, back, NULL, NULL), OB_ERR_NONE);
	for (unsigned i = 0; i < 128; i++)
		memcpy(other + 48 * i, c[0], 48);
	CHECK_INT(obk_kzg_verify_cells(tuned, other, indices, cells, proofs, 128, &valid, NULL),
		OB_ERR_NONE);
	CHECK(!valid);
	cells[5 * OBK_KZG_CELL_BYTES + 31] ^= 1;
	CHECK_INT(obk_kzg_verify_cells(tuned, other, indices, cells, proofs, 128, &valid, NULL),
		OB_ERR_NONE);
	CHECK(valid);
	memset(cells + 77 * OBK_KZG_CELL_BYTES, 0xff, 32);
	CHECK_INT(obk_kzg_verify_cells(tuned, other, indices, cells, proofs, 128, &valid, &fault),
		OB_ERR_ARGUMENT);
	CHECK_INT(fault.item, 77);
	CHECK_INT(obk_kzg_verify_cells(tuned, other, indices, cells, proofs, OBK_KZG_MAX_BATCH + 1,
			  &valid, NULL),
		OB_ERR_LIMIT);
	CHECK_INT(obk_kzg_verify_blob_batch(
			  tuned, blob, other, proofs, OBK_KZG_MAX_BATCH + 1, &valid, NULL),
		OB_ERR_LIMIT);
	obk_kzg_free(plain);
	obk_kzg_free(tuned);
	obk_pool_free(pool);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
