/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * EIP-4844: blobs, their commitments and the proofs of values. Like blobs, polynomials are stored
 * as their values at the 4096 roots of unity.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/sha256.h"
#include "compute/kzg/setup.h"
#include "compute/ntt/roots.h"

#define N            OBK_KZG_BLOB_ELEMENTS
#define BLOB_DOMAIN  "FSBLOBVERIFY_V1_"
#define BATCH_DOMAIN "RCKZGBATCH___V1_"

void obk_kzg_hash_element(struct obk_fr *ret, const uint8_t hash[32])
{
	uint64_t plain[4];

	for (unsigned i = 0; i < 4; i++) {
		memcpy(&plain[3 - i], hash + 8 * i, 8);
		plain[3 - i] = be64toh(plain[3 - i]);
	}
	obk_fr_from_plain(ret, plain);
}

static enum ob_err no_memory(struct obk_fault *fault)
{
	return obk_fault_set(
		fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM, "no memory for the numbers of a blob");
}

static enum ob_err not_below(size_t i, const char *what, struct obk_fault *fault)
{
	return obk_fault_set(fault, OB_ERR_ARGUMENT, i,
		"element %zu of %s is not below the field's prime r", i, what);
}

enum ob_err obk_kzg_read_elements(struct obk_fr *ret, const uint8_t *bytes, size_t n,
	const char *what, struct obk_fault *fault)
{
	for (size_t i = 0; i < n; i++) {
		if (!obk_fr_from_bytes(&ret[i], bytes + i * OBK_KZG_ELEMENT_BYTES))
			return n == 1 ? obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
						"%s is not below the field's prime r", what)
				      : not_below(i, what, fault);
	}
	return OB_ERR_NONE;
}

enum ob_err obk_kzg_read_point(struct obk_g1_affine *ret, const uint8_t *bytes, const char *what,
	size_t item, struct obk_fault *fault)
{
	struct obk_fault inner;
	struct obk_g1_affine p;
	const char *why = "the point is not in the subgroup G1";
	char name[64];

	if (obk_g1_decode_compressed(&p, bytes, OBK_FAULT_NO_ITEM, &inner) != OB_ERR_NONE)
		why = inner.text;
	else if (obk_g1_in_subgroup(&p))
		why = NULL;
	if (!why) {
		*ret = p;
		return OB_ERR_NONE;
	}
	if (item == OBK_FAULT_NO_ITEM)
		snprintf(name, sizeof(name), "%s", what);
	else
		snprintf(name, sizeof(name), "%s %zu", what, item);
	return obk_fault_set(fault, OB_ERR_ARGUMENT, item, "%s: %s", name, why);
}

enum ob_err obk_kzg_sum(const struct obk_kzg *kzg, struct obk_g1_affine *ret,
	const struct obk_g1_affine *p, const struct obk_fr *k, size_t n, struct obk_fault *fault)
{
	const struct obk_msm_bases_args bases = { .points = p,
		.count = n,
		.format = OBK_POINT_AFFINE,
		.trust = OBK_TRUST_SUBGROUP,
		.pool = kzg->pool };
	const struct obk_msm_job job = {
		.count = n, .scalars = k, .format = OBK_SCALAR_MONT, .batch = 1, .pool = kzg->pool
	};

	if (n <= OBK_MSM_FEW && ob_opt_on(OB_OPT_GLV)) {
		obk_msm_few(ret, p, k, n);
		return OB_ERR_NONE;
	}
	return obk_msm_once(&bases, &job, ret, fault);
}

bool obk_kzg_pairs(const struct obk_g1_affine *a, const struct obk_g2_lines *h,
	const struct obk_g1_affine *b, const struct obk_g2_lines *q)
{
	struct obk_g1_affine p[2] = { *a };
	const struct obk_g2_lines *lines[2] = { h, q };

	obk_g1_affine_neg(&p[1], b);
	return obk_pairing_product_is_one(p, lines, 2);
}

static enum ob_err commit_values(const struct obk_kzg *kzg, const struct obk_fr *values,
	uint8_t *ret, struct obk_fault *fault)
{
	const struct obk_msm_job job = { .count = N,
		.scalars = values,
		.format = OBK_SCALAR_MONT,
		.batch = 1,
		.pool = kzg->pool };
	struct obk_g1_affine p;
	enum ob_err err = obk_msm_run(kzg->lagrange, &job, &p, fault);

	if (!err)
		obk_g1_encode_compressed(ret, &p);
	return err;
}

enum ob_err obk_kzg_check_blob(const uint8_t *blob, struct obk_fault *fault)
{
	for (size_t i = 0; i < N; i++) {
		uint64_t plain[4];

		for (unsigned k = 0; k < 4; k++) {
			memcpy(&plain[3 - k], blob + i * OBK_KZG_ELEMENT_BYTES + 8 * k, 8);
			plain[3 - k] = be64toh(plain[3 - k]);
		}
		if (!obk_fr_plain_is_canonical(plain))
			return not_below(i, "the blob", fault);
	}
	return OB_ERR_NONE;
}

enum ob_err obk_kzg_commit(const struct obk_kzg *kzg, const uint8_t *blob, uint8_t *ret_commitment,
	struct obk_fault *fault)
{
	struct obk_fr *values = malloc(N * sizeof(*values));
	enum ob_err err;

	if (!values)
		return no_memory(fault);
	err = obk_kzg_read_elements(values, blob, N, "the blob", fault);
	if (!err)
		err = commit_values(kzg, values, ret_commitment, fault);
	free(values);
	return err;
}

/*
 * Computes 1 / (z - w_i) in `inverse` (scratch has the same length). Returns the i with w_i = z,
 * whose entry is 0, or N.
 */
static size_t invert_distances(const struct obk_kzg *kzg, const struct obk_fr *z,
	struct obk_fr *inverse, struct obk_fr *scratch)
{
	size_t at = N;

	for (size_t i = 0; i < N; i++) {
		obk_fr_sub(&inverse[i], z, &kzg->points[i]);
		if (obk_fr_is_zero(&inverse[i]))
			at = i;
	}
	obk_fr_inv_batch(inverse, N, scratch);
	return at;
}

/* The value at z: f_i if z = w_i, else (z^n - 1) / n times the sum of f_i w_i / (z - w_i). */
static void evaluate(const struct obk_kzg *kzg, const struct obk_fr *f, const struct obk_fr *z,
	const struct obk_fr *inverse, size_t at, struct obk_fr *ret)
{
	struct obk_fr sum = obk_fr_zero, t;

	if (at < N) {
		*ret = f[at];
		return;
	}
	for (size_t i = 0; i < N; i++) {
		obk_fr_mul(&t, &inverse[i], &kzg->points[i]);
		obk_fr_mul(&t, &t, &f[i]);
		obk_fr_add(&sum, &sum, &t);
	}
	t = *z;
	for (unsigned i = 0; i < OBK_KZG_LOG_BLOB; i++)
		obk_fr_sqr(&t, &t);
	obk_fr_sub(&t, &t, &obk_fr_one);
	obk_fr_mul(&sum, &sum, &t);
	obk_fr_from_plain(&t, (uint64_t[4]){ N });
	obk_fr_inv(&t, &t);
	obk_fr_mul(ret, &sum, &t);
}

/*
 * The value at z without inversions; overwrites f. Neighbours are the values at w and -w. (a + b) +
 * z (a - b) / w is twice the value at w^2 of a polynomial of half the degree, whose value at z^2 is
 * that of this one at z. Twelve such steps leave one number. OB_ERR_NO_MEMORY.
 */
static enum ob_err fold(struct obk_fr *f, const struct obk_fr *z, struct obk_fr *ret)
{
	const struct obk_fr *roots = obk_roots_get(OBK_KZG_LOG_BLOB);
	struct obk_fr power = *z, sum, part;

	if (!roots)
		return OB_ERR_NO_MEMORY;
	for (size_t n = N / 2; n > 0; n /= 2) {
		for (size_t k = 0; k < n; k++) {
			obk_fr_add(&sum, &f[2 * k], &f[2 * k + 1]);
			if (k == 0) {
				obk_fr_sub(&part, &f[0], &f[1]);
			} else { /* 1 / w is minus another root of the table */
				obk_fr_sub(&part, &f[2 * k + 1], &f[2 * k]);
				obk_fr_mul(&part, &part,
					&roots[k ^ (((size_t)1 << (63 - __builtin_clzll(k))) - 1)]);
			}
			obk_fr_mul(&part, &part, &power);
			obk_fr_add(&f[k], &sum, &part);
		}
		obk_fr_sqr(&power, &power);
	}
	obk_fr_from_plain(&part, (uint64_t[4]){ N });
	obk_fr_inv(&part, &part);
	obk_fr_mul(ret, &f[0], &part);
	return OB_ERR_NONE;
}

/*
 * Replaces f by the quotient (f - y) / (X - z), value by value. At a root z = w_m the value is
 * computed from the others: the sum of (f_i - y) w_i / (z (z - w_i)).
 */
static void divide(const struct obk_kzg *kzg, struct obk_fr *f, const struct obk_fr *z,
	const struct obk_fr *y, const struct obk_fr *inverse, size_t at)
{
	struct obk_fr sum = obk_fr_zero, t;

	for (size_t i = 0; i < N; i++) {
		obk_fr_sub(&t, y, &f[i]);
		obk_fr_mul(&f[i], &t, &inverse[i]); /* (f_i - y) / (w_i - z); 0 at the root */
		if (at < N) {
			obk_fr_mul(&t, &f[i], &kzg->points[i]);
			obk_fr_sub(&sum, &sum, &t);
		}
	}
	if (at < N) {
		obk_fr_inv(&t, z);
		obk_fr_mul(&f[at], &sum, &t);
	}
}

/* Computes the quotient by X - z, value by value, in f, and the value at z. */
static enum ob_err quotient(const struct obk_kzg *kzg, const uint8_t *blob, const struct obk_fr *z,
	struct obk_fr *f, struct obk_fr *ret_y, struct obk_fault *fault)
{
	struct obk_fr *scratch = malloc(2 * N * sizeof(*scratch));
	enum ob_err err;
	size_t at;

	if (!scratch)
		return no_memory(fault);
	err = obk_kzg_read_elements(f, blob, N, "the blob", fault);
	if (!err) {
		at = invert_distances(kzg, z, scratch, scratch + N);
		evaluate(kzg, f, z, scratch, at, ret_y);
		divide(kzg, f, z, ret_y, scratch, at);
	}
	free(scratch);
	return err;
}

enum ob_err obk_kzg_prove_scalars(const struct obk_kzg *kzg, const uint8_t *blob, const uint8_t *z,
	struct obk_fr *ret_scalars, uint8_t *ret_y, struct obk_fault *fault)
{
	struct obk_fr point, y;
	enum ob_err err = obk_kzg_read_elements(&point, z, 1, "the point z", fault);

	if (!err)
		err = quotient(kzg, blob, &point, ret_scalars, &y, fault);
	if (!err)
		obk_fr_to_bytes(ret_y, &y);
	return err;
}

enum ob_err obk_kzg_prove(const struct obk_kzg *kzg, const uint8_t *blob, const uint8_t *z,
	uint8_t *ret_proof, uint8_t *ret_y, struct obk_fault *fault)
{
	struct obk_fr *f = malloc(N * sizeof(*f));
	uint8_t y[OBK_KZG_ELEMENT_BYTES];
	enum ob_err err;

	if (!f)
		return no_memory(fault);
	err = obk_kzg_prove_scalars(kzg, blob, z, f, y, fault);
	if (!err)
		err = commit_values(kzg, f, ret_proof, fault);
	if (!err)
		memcpy(ret_y, y, sizeof(y));
	free(f);
	return err;
}

static void blob_challenge(struct obk_fr *ret, const uint8_t *blob, const uint8_t *commitment)
{
	uint64_t degree[2] = { 0, htobe64(N) };
	uint8_t digest[OB_SHA256_BYTES];
	struct ob_sha256 hash;

	ob_sha256_init(&hash);
	ob_sha256_update(&hash, BLOB_DOMAIN, 16);
	ob_sha256_update(&hash, degree, sizeof(degree));
	ob_sha256_update(&hash, blob, OBK_KZG_BLOB_BYTES);
	ob_sha256_update(&hash, commitment, OBK_KZG_POINT_BYTES);
	ob_sha256_final(&hash, digest);
	obk_kzg_hash_element(ret, digest);
}

void obk_kzg_blob_challenge(const uint8_t *blob, const uint8_t *commitment, uint8_t *ret_challenge)
{
	struct obk_fr t;

	blob_challenge(&t, blob, commitment);
	obk_fr_to_bytes(ret_challenge, &t);
}

enum ob_err obk_kzg_prove_blob_scalars(const struct obk_kzg *kzg, const uint8_t *blob,
	const uint8_t *commitment, struct obk_fr *ret_scalars, struct obk_fault *fault)
{
	struct obk_g1_affine c;
	struct obk_fr z, y;
	enum ob_err err =
		obk_kzg_read_point(&c, commitment, "the commitment", OBK_FAULT_NO_ITEM, fault);

	if (err)
		return err;
	blob_challenge(&z, blob, commitment);
	return quotient(kzg, blob, &z, ret_scalars, &y, fault);
}

enum ob_err obk_kzg_prove_blob(const struct obk_kzg *kzg, const uint8_t *blob,
	const uint8_t *commitment, uint8_t *ret_proof, struct obk_fault *fault)
{
	struct obk_fr *f = malloc(N * sizeof(*f));
	enum ob_err err;

	if (!f)
		return no_memory(fault);
	err = obk_kzg_prove_blob_scalars(kzg, blob, commitment, f, fault);
	if (!err)
		err = commit_values(kzg, f, ret_proof, fault);
	free(f);
	return err;
}

/* A claim: the polynomial of commitment c has the value y at z, according to the proof. */
struct claim {
	struct obk_g1_affine c, proof;
	struct obk_fr z, y;
};

/*
 * Checks all claims at once; claim i has the weight w_i = weight^i. With L the sum of w_i (C_i -
 * y_i G + z_i P_i) and R the sum of w_i P_i, e(L, [1]) = e(R, [s]) must hold.
 */
static enum ob_err check_claims(const struct obk_kzg *kzg, const struct claim *claims, size_t n,
	const struct obk_fr *weight, bool *ret_valid, struct obk_fault *fault)
{
	struct obk_g1_affine *p = malloc((2 * n + 1) * sizeof(*p)), left, right;
	struct obk_fr *k = malloc((2 * n + 1) * sizeof(*k)), w = obk_fr_one, t;
	enum ob_err err = OB_ERR_NO_MEMORY;

	if (!p || !k) {
		no_memory(fault);
		goto out;
	}
	/* proofs, commitments, the generator */
	p[2 * n] = obk_g1_generator;
	k[2 * n] = obk_fr_zero;
	for (size_t i = 0; i < n; i++) {
		p[i] = claims[i].proof;
		p[n + i] = claims[i].c;
		k[n + i] = w;
		obk_fr_mul(&k[i], &w, &claims[i].z);
		obk_fr_mul(&t, &w, &claims[i].y);
		obk_fr_sub(&k[2 * n], &k[2 * n], &t);
		obk_fr_mul(&w, &w, weight);
	}
	err = obk_kzg_sum(kzg, &left, p, k, 2 * n + 1, fault);
	if (!err)
		err = obk_kzg_sum(kzg, &right, p, k + n, n, fault);
	if (!err)
		*ret_valid = obk_kzg_pairs(&left, &kzg->h, &right, &kzg->sh);
out:
	free(p);
	free(k);
	return err;
}

enum ob_err obk_kzg_verify(const struct obk_kzg *kzg, const uint8_t *commitment, const uint8_t *z,
	const uint8_t *y, const uint8_t *proof, bool *ret_valid, struct obk_fault *fault)
{
	struct claim claim;
	enum ob_err err = obk_kzg_read_point(
		&claim.c, commitment, "the commitment", OBK_FAULT_NO_ITEM, fault);

	if (!err)
		err = obk_kzg_read_elements(&claim.z, z, 1, "the point z", fault);
	if (!err)
		err = obk_kzg_read_elements(&claim.y, y, 1, "the value y", fault);
	if (!err)
		err = obk_kzg_read_point(
			&claim.proof, proof, "the proof", OBK_FAULT_NO_ITEM, fault);
	return err ? err : check_claims(kzg, &claim, 1, &obk_fr_one, ret_valid, fault);
}

/*
 * The claim that the proof of a blob makes: its challenge and the value there. item: index in the
 * batch, or OBK_FAULT_NO_ITEM.
 */
static enum ob_err make_claim(const uint8_t *blob, const uint8_t *commitment, const uint8_t *proof,
	size_t item, struct claim *ret, struct obk_fault *fault)
{
	bool single = item == OBK_FAULT_NO_ITEM;
	char what[64] = "the blob";
	struct obk_fr *f;
	enum ob_err err = obk_kzg_read_point(
		&ret->c, commitment, single ? "the commitment" : "commitment", item, fault);

	if (!err)
		err = obk_kzg_read_point(
			&ret->proof, proof, single ? "the proof" : "proof", item, fault);
	if (err)
		return err;
	f = malloc(N * sizeof(*f));
	if (!f)
		return no_memory(fault);
	if (!single)
		snprintf(what, sizeof(what), "blob %zu", item);
	err = obk_kzg_read_elements(f, blob, N, what, fault);
	if (err) {
		if (fault && !single)
			fault->item = item;
	} else {
		blob_challenge(&ret->z, blob, commitment);
		if (fold(f, &ret->z, &ret->y))
			err = no_memory(fault);
	}
	free(f);
	return err;
}

enum ob_err obk_kzg_verify_blob(const struct obk_kzg *kzg, const uint8_t *blob,
	const uint8_t *commitment, const uint8_t *proof, bool *ret_valid, struct obk_fault *fault)
{
	struct claim claim;
	enum ob_err err = make_claim(blob, commitment, proof, OBK_FAULT_NO_ITEM, &claim, fault);

	return err ? err : check_claims(kzg, &claim, 1, &obk_fr_one, ret_valid, fault);
}

struct batch {
	const struct obk_kzg *kzg;
	const uint8_t *blobs, *commitments, *proofs;
	struct claim *claims;
	struct obk_fault *faults;
};

static void claim_body(void *arg, size_t i, unsigned thread)
{
	struct batch *b = arg;

	(void)thread;
	make_claim(b->blobs + i * OBK_KZG_BLOB_BYTES, b->commitments + i * OBK_KZG_POINT_BYTES,
		b->proofs + i * OBK_KZG_POINT_BYTES, i, &b->claims[i], &b->faults[i]);
}

/* The weight for a batch, from a hash of everything it claims. */
static void batch_weight(const struct batch *b, size_t n, struct obk_fr *ret)
{
	uint64_t counts[2] = { htobe64(N), htobe64(n) };
	uint8_t digest[OB_SHA256_BYTES], element[OBK_KZG_ELEMENT_BYTES];
	struct ob_sha256 hash;

	ob_sha256_init(&hash);
	ob_sha256_update(&hash, BATCH_DOMAIN, 16);
	ob_sha256_update(&hash, counts, sizeof(counts));
	for (size_t i = 0; i < n; i++) {
		ob_sha256_update(
			&hash, b->commitments + i * OBK_KZG_POINT_BYTES, OBK_KZG_POINT_BYTES);
		obk_fr_to_bytes(element, &b->claims[i].z);
		ob_sha256_update(&hash, element, sizeof(element));
		obk_fr_to_bytes(element, &b->claims[i].y);
		ob_sha256_update(&hash, element, sizeof(element));
		ob_sha256_update(&hash, b->proofs + i * OBK_KZG_POINT_BYTES, OBK_KZG_POINT_BYTES);
	}
	ob_sha256_final(&hash, digest);
	obk_kzg_hash_element(ret, digest);
}

enum ob_err obk_kzg_verify_blob_batch(const struct obk_kzg *kzg, const uint8_t *blobs,
	const uint8_t *commitments, const uint8_t *proofs, size_t n, bool *ret_valid,
	struct obk_fault *fault)
{
	struct batch b = {
		.kzg = kzg, .blobs = blobs, .commitments = commitments, .proofs = proofs
	};
	enum ob_err err = OB_ERR_NONE;
	struct obk_fr weight;

	if (n > OBK_KZG_MAX_BATCH)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"%zu blobs are more than the %u of a batch: split it", n,
			OBK_KZG_MAX_BATCH);
	if (n == 0) {
		*ret_valid = true;
		return OB_ERR_NONE;
	}
	b.claims = malloc(n * sizeof(*b.claims));
	b.faults = calloc(n, sizeof(*b.faults));
	if (!b.claims || !b.faults) {
		err = no_memory(fault);
		goto out;
	}
	obk_pool_run(kzg->pool, n, claim_body, &b);
	for (size_t i = 0; i < n && !err; i++) {
		err = b.faults[i].err;
		if (err && fault)
			*fault = b.faults[i];
	}
	if (!err) {
		batch_weight(&b, n, &weight);
		err = check_claims(kzg, b.claims, n, &weight, ret_valid, fault);
	}
out:
	free(b.claims);
	free(b.faults);
	return err;
}
