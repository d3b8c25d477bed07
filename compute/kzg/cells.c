/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * EIP-7594: a blob is extended to 8192 values and cut into 128 cells of 64 values. The points of
 * cell k are a coset: h_k times the 64th roots of unity, in bit-reversed order, where h_k is the
 * 8192th root with the bit-reversed index of k.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "compute/kzg/setup.h"
#include "compute/ntt/ntt.h"
#include "compute/ntt/reverse.h"

#define N            OBK_KZG_BLOB_ELEMENTS
#define EXTENDED     (2 * N)
#define CELLS        OBK_KZG_CELLS
#define CELL         OBK_KZG_CELL_ELEMENTS
#define LOG_CELLS    7
#define CELLS_DOMAIN "RCKZGCBATCH__V1_"

static enum ob_err no_memory(struct obk_fault *fault)
{
	return obk_fault_set(
		fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM, "no memory for the numbers of cells");
}

static enum ob_err transform(const struct obk_kzg *kzg, struct obk_fr *x, unsigned log_n,
	bool inverse, const struct obk_fr *coset)
{
	/* values are in bit-reversed order, coefficients in natural order */
	const struct obk_ntt_job job = { .log_n = log_n,
		.direction = inverse ? OBK_NTT_INVERSE : OBK_NTT_FORWARD,
		.order = inverse ? OBK_NTT_RN : OBK_NTT_NR,
		.batch = 1,
		.coset = coset,
		.pool = kzg->pool };

	return obk_ntt_run(&job, x, NULL);
}

/* h_k */
static void coset_of(struct obk_fr *ret, size_t cell)
{
	uint64_t e = obk_ntt_reverse_bits((uint32_t)cell, LOG_CELLS);

	obk_fr_root(ret, OBK_KZG_LOG_EXTENDED);
	obk_fr_pow(ret, ret, &e, 1);
}

/* x: 4096 coefficients and room for 8192 values; contains the values afterwards. */
static enum ob_err write_cells(const struct obk_kzg *kzg, struct obk_fr *x, uint8_t *ret_cells)
{
	enum ob_err err;

	memset(x + N, 0, N * sizeof(*x));
	err = transform(kzg, x, OBK_KZG_LOG_EXTENDED, false, NULL);
	for (size_t i = 0; i < EXTENDED && !err; i++)
		obk_fr_to_bytes(ret_cells + i * OBK_KZG_ELEMENT_BYTES, &x[i]);
	return err;
}

/* Writes the outputs for a polynomial; x as for write_cells. */
static enum ob_err finish(const struct obk_kzg *kzg, struct obk_fr *x, uint8_t *ret_cells,
	uint8_t *ret_proofs, struct obk_fault *fault)
{
	struct obk_g1_affine proofs[CELLS];
	enum ob_err err = OB_ERR_NONE;

	if (ret_proofs)
		err = obk_fk20_prove(kzg->fk20, x, proofs, kzg->pool);
	if (!err && ret_cells)
		err = write_cells(kzg, x, ret_cells);
	if (err)
		return no_memory(fault);
	for (size_t i = 0; i < CELLS && ret_proofs; i++)
		obk_g1_encode_compressed(ret_proofs + i * OBK_KZG_POINT_BYTES, &proofs[i]);
	return OB_ERR_NONE;
}

/* Coefficients of a blob, followed by room for 8192 values; NULL: the fault has the reason. */
static struct obk_fr *coefficients_of(const struct obk_kzg *kzg, const uint8_t *blob,
	struct obk_fault *fault, enum ob_err *ret_err)
{
	struct obk_fr *x = malloc(EXTENDED * sizeof(*x));

	*ret_err = x ? obk_kzg_read_elements(x, blob, N, "the blob", fault) : no_memory(fault);
	if (!*ret_err && transform(kzg, x, OBK_KZG_LOG_BLOB, true, NULL))
		*ret_err = no_memory(fault);
	if (!*ret_err)
		return x;
	free(x);
	return NULL;
}

enum ob_err obk_kzg_cells(const struct obk_kzg *kzg, const uint8_t *blob, uint8_t *ret_cells,
	uint8_t *ret_proofs, struct obk_fault *fault)
{
	enum ob_err err;
	struct obk_fr *x = coefficients_of(kzg, blob, fault, &err);

	if (x)
		err = finish(kzg, x, ret_cells, ret_proofs, fault);
	free(x);
	return err;
}

enum ob_err obk_kzg_cell_points(
	const struct obk_kzg *kzg, struct obk_g1_affine *ret_points, struct obk_fault *fault)
{
	return obk_fk20_points(kzg->fk20, ret_points, kzg->pool) ? no_memory(fault) : OB_ERR_NONE;
}

enum ob_err obk_kzg_cell_scalars(const struct obk_kzg *kzg, const uint8_t *blob,
	struct obk_fr *ret_scalars, uint8_t *ret_cells, struct obk_fault *fault)
{
	enum ob_err err;
	struct obk_fr *x = coefficients_of(kzg, blob, fault, &err);

	if (x &&
		(obk_fk20_scalars(x, ret_scalars, kzg->pool) ||
			(ret_cells && write_cells(kzg, x, ret_cells))))
		err = no_memory(fault);
	free(x);
	return err;
}

static enum ob_err check_indices(const uint64_t *indices, size_t n, struct obk_fault *fault)
{
	if (n < CELLS / 2 || n > CELLS)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"%zu cells are given; a blob is recovered from %u to %u", n, CELLS / 2,
			CELLS);
	for (size_t i = 0; i < n; i++) {
		if (indices[i] >= CELLS)
			return obk_fault_set(fault, OB_ERR_ARGUMENT, i,
				"the index %llu of cell %zu in the list is not below %u",
				(unsigned long long)indices[i], i, CELLS);
		if (i && indices[i] <= indices[i - 1])
			return obk_fault_set(fault, OB_ERR_ARGUMENT, i,
				"the index %llu of cell %zu in the list does not rise above the "
				"one before: sort the cells",
				(unsigned long long)indices[i], i);
	}
	return OB_ERR_NONE;
}

static enum ob_err read_cell(
	struct obk_fr *x, const uint8_t *bytes, size_t i, struct obk_fault *fault)
{
	char what[64];
	enum ob_err err;

	snprintf(what, sizeof(what), "cell %zu in the list", i);
	err = obk_kzg_read_elements(x, bytes, CELL, what, fault);
	if (err && fault)
		fault->item = i;
	return err;
}

/*
 * Computes the polynomial in y = x^64 that is 0 exactly at the missing cells: its values at y_k for
 * every coset, and its coefficients.
 */
static void vanish_on(const bool *present, struct obk_fr coefficients[CELLS])
{
	size_t degree = 0;
	struct obk_fr root, t;

	memset(coefficients, 0, CELLS * sizeof(*coefficients));
	coefficients[0] = obk_fr_one;
	for (size_t k = 0; k < CELLS; k++) {
		uint64_t e = obk_ntt_reverse_bits((uint32_t)k, LOG_CELLS);

		if (present[k])
			continue;
		obk_fr_root(&root, LOG_CELLS);
		obk_fr_pow(&root, &root, &e, 1);
		degree++;
		for (size_t i = degree + 1; i-- > 0;) { /* times (y - root) */
			obk_fr_mul(&t, &coefficients[i], &root);
			coefficients[i] = i ? coefficients[i - 1] : obk_fr_zero;
			obk_fr_sub(&coefficients[i], &coefficients[i], &t);
		}
	}
}

/*
 * x holds the values of the present cells, and 0 elsewhere. Replaces it by the polynomial's
 * coefficients. Let Z be zero at the missing points. Then x Z = p Z at all points, so p = (x Z) / Z
 * on a coset where Z has no zero. z: room for 2 x 8192 elements.
 */
static enum ob_err fill_gaps(
	const struct obk_kzg *kzg, struct obk_fr *x, const bool *present, struct obk_fr *z)
{
	static const uint64_t seven[4] = { 7 };
	struct obk_fr short_z[CELLS], shift;
	enum ob_err err = OB_ERR_NONE;

	vanish_on(present, short_z);
	memset(z, 0, EXTENDED * sizeof(*z));
	for (size_t i = 0; i < CELLS; i++)
		z[i * CELL] = short_z[i];
	obk_fr_from_plain(&shift, seven);
	memcpy(z + EXTENDED, z, EXTENDED * sizeof(*z));
	err = transform(kzg, z + EXTENDED, OBK_KZG_LOG_EXTENDED, false, NULL);
	for (size_t i = 0; i < EXTENDED; i++)
		obk_fr_mul(&x[i], &x[i], &z[EXTENDED + i]);
	err = err ? err : transform(kzg, x, OBK_KZG_LOG_EXTENDED, true, NULL);
	err = err ? err : transform(kzg, x, OBK_KZG_LOG_EXTENDED, false, &shift);
	err = err ? err : transform(kzg, z, OBK_KZG_LOG_EXTENDED, false, &shift);
	if (err)
		return err;
	obk_fr_inv_batch(z, EXTENDED, z + EXTENDED);
	for (size_t i = 0; i < EXTENDED; i++)
		obk_fr_mul(&x[i], &x[i], &z[i]);
	return transform(kzg, x, OBK_KZG_LOG_EXTENDED, true, &shift);
}

enum ob_err obk_kzg_recover(const struct obk_kzg *kzg, const uint64_t *indices,
	const uint8_t *cells, size_t n, uint8_t *ret_cells, uint8_t *ret_proofs,
	struct obk_fault *fault)
{
	struct obk_fr *x;
	bool present[CELLS] = { false };
	enum ob_err err = check_indices(indices, n, fault);

	if (err)
		return err;
	x = calloc(3 * EXTENDED, sizeof(*x));
	if (!x)
		return no_memory(fault);
	for (size_t i = 0; i < n && !err; i++) {
		err = read_cell(x + indices[i] * CELL, cells + i * OBK_KZG_CELL_BYTES, i, fault);
		present[indices[i]] = true;
	}
	if (err)
		goto out;
	if (n == CELLS ? transform(kzg, x, OBK_KZG_LOG_EXTENDED, true, NULL)
		       : fill_gaps(kzg, x, present, x + EXTENDED)) {
		err = no_memory(fault);
		goto out;
	}
	for (size_t i = N; i < EXTENDED && !err; i++) {
		if (!obk_fr_is_zero(&x[i]))
			err = obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
				"the cells do not belong to one blob: at least one is damaged; "
				"verify them with their proofs");
	}
	if (!err)
		err = finish(kzg, x, ret_cells, ret_proofs, fault);
out:
	free(x);
	return err;
}

static void hash_number(struct ob_sha256 *hash, uint64_t number)
{
	number = htobe64(number);
	ob_sha256_update(hash, &number, sizeof(number));
}

void obk_kzg_cells_challenge(const uint8_t *commitments, size_t commitment_count,
	const uint64_t *commitment_indices, const uint64_t *cell_indices, const uint8_t *cells,
	const uint8_t *proofs, size_t n, uint8_t *ret_challenge)
{
	uint8_t digest[OB_SHA256_BYTES];
	struct ob_sha256 hash;
	struct obk_fr t;

	ob_sha256_init(&hash);
	ob_sha256_update(&hash, CELLS_DOMAIN, 16);
	hash_number(&hash, N);
	hash_number(&hash, CELL);
	hash_number(&hash, commitment_count);
	hash_number(&hash, n);
	ob_sha256_update(&hash, commitments, commitment_count * OBK_KZG_POINT_BYTES);
	for (size_t i = 0; i < n; i++) {
		hash_number(&hash, commitment_indices[i]);
		hash_number(&hash, cell_indices[i]);
		ob_sha256_update(&hash, cells + i * OBK_KZG_CELL_BYTES, OBK_KZG_CELL_BYTES);
		ob_sha256_update(&hash, proofs + i * OBK_KZG_POINT_BYTES, OBK_KZG_POINT_BYTES);
	}
	ob_sha256_final(&hash, digest);
	obk_kzg_hash_element(&t, digest);
	obk_fr_to_bytes(ret_challenge, &t);
}

/* State of a verification. */
struct check {
	const struct obk_kzg *kzg;
	const uint64_t *indices;
	const uint8_t *commitments, *cells, *proofs;
	size_t n, distinct;
	uint8_t *unique;               /* the distinct commitments, in order of appearance */
	uint64_t *which;               /* [n] index of each cell's commitment in unique */
	struct obk_g1_affine *p;       /* [n proofs][distinct commitments][64 monomial points] */
	struct obk_fr *k;              /* the scalars for p, for the left side of the equation */
	struct obk_fr *weight;         /* [n] */
	struct obk_fr (*column)[CELL]; /* [CELLS] weighted sums of cells with the same index */
	bool used[CELLS];
};

/* A hash table of commitments with open addressing, to avoid quadratic time for many blobs. */
static enum ob_err find_distinct(struct check *c, struct obk_fault *fault)
{
	size_t size = 1;
	uint32_t *table;

	while (size < 2 * c->n)
		size *= 2;
	table = calloc(size, sizeof(*table));
	if (!table)
		return no_memory(fault);
	for (size_t i = 0; i < c->n; i++) {
		const uint8_t *bytes = c->commitments + i * OBK_KZG_POINT_BYTES;
		uint64_t h;
		size_t at;

		memcpy(&h, bytes + 8, sizeof(h));
		h *= 0x9e3779b97f4a7c15u;
		for (at = (h >> 32) & (size - 1); table[at]; at = (at + 1) & (size - 1)) {
			if (memcmp(c->unique + (table[at] - 1) * OBK_KZG_POINT_BYTES, bytes,
				    OBK_KZG_POINT_BYTES) == 0)
				break;
		}
		if (!table[at]) {
			memcpy(c->unique + c->distinct * OBK_KZG_POINT_BYTES, bytes,
				OBK_KZG_POINT_BYTES);
			table[at] = (uint32_t)++c->distinct;
		}
		c->which[i] = table[at] - 1;
	}
	free(table);
	return OB_ERR_NONE;
}

/* Collects points, weights and the sums of the columns. */
static enum ob_err collect(struct check *c, struct obk_fault *fault)
{
	uint8_t challenge[OBK_KZG_ELEMENT_BYTES];
	struct obk_fr step, w = obk_fr_one, cell[CELL], t;
	enum ob_err err = OB_ERR_NONE;

	for (size_t i = 0; i < c->n; i++) {
		if (c->indices[i] >= CELLS)
			return obk_fault_set(fault, OB_ERR_ARGUMENT, i,
				"the index %llu of cell %zu in the list is not below %u",
				(unsigned long long)c->indices[i], i, CELLS);
	}
	err = find_distinct(c, fault);
	for (size_t i = 0; i < c->distinct && !err; i++)
		err = obk_kzg_read_point(&c->p[c->n + i], c->unique + i * OBK_KZG_POINT_BYTES,
			"distinct commitment", i, fault);
	for (size_t i = 0; i < c->n && !err; i++)
		err = obk_kzg_read_point(
			&c->p[i], c->proofs + i * OBK_KZG_POINT_BYTES, "proof", i, fault);
	if (err)
		return err;
	obk_kzg_cells_challenge(
		c->unique, c->distinct, c->which, c->indices, c->cells, c->proofs, c->n, challenge);
	obk_fr_from_bytes(&step, challenge);
	for (size_t i = 0; i < c->n; i++) {
		struct obk_fr *sum = c->column[c->indices[i]], *total = &c->k[c->n + c->which[i]];

		err = read_cell(cell, c->cells + i * OBK_KZG_CELL_BYTES, i, fault);
		if (err)
			return err;
		for (size_t j = 0; j < CELL; j++) {
			obk_fr_mul(&t, &cell[j], &w);
			obk_fr_add(&sum[j], &sum[j], &t);
		}
		c->used[c->indices[i]] = true;
		obk_fr_add(total, total, &w);
		c->weight[i] = w;
		/* the factor of the proof on the left side is h_k^64 */
		coset_of(&t, c->indices[i]);
		for (unsigned s = 0; s < OBK_KZG_LOG_CELL; s++)
			obk_fr_sqr(&t, &t);
		obk_fr_mul(&c->k[i], &t, &w);
		obk_fr_mul(&w, &w, &step);
	}
	return OB_ERR_NONE;
}

/*
 * Subtracts the sum of the interpolation polynomials of all columns, on the first 64 monomial
 * points.
 */
static enum ob_err interpolate(struct check *c, struct obk_fault *fault)
{
	struct obk_fr *k = c->k + c->n + c->distinct, h;

	for (size_t i = 0; i < CELL; i++)
		c->p[c->n + c->distinct + i] = c->kzg->monomial[i];
	for (size_t cell = 0; cell < CELLS; cell++) {
		if (!c->used[cell])
			continue;
		coset_of(&h, cell);
		if (transform(c->kzg, c->column[cell], OBK_KZG_LOG_CELL, true, &h))
			return no_memory(fault);
		for (size_t i = 0; i < CELL; i++)
			obk_fr_sub(&k[i], &k[i], &c->column[cell][i]);
	}
	return OB_ERR_NONE;
}

enum ob_err obk_kzg_verify_cells(const struct obk_kzg *kzg, const uint8_t *commitments,
	const uint64_t *indices, const uint8_t *cells, const uint8_t *proofs, size_t n,
	bool *ret_valid, struct obk_fault *fault)
{
	struct check c = { .kzg = kzg,
		.indices = indices,
		.commitments = commitments,
		.cells = cells,
		.proofs = proofs,
		.n = n };
	struct obk_g1_affine left, right;
	enum ob_err err;

	if (n > OBK_KZG_MAX_BATCH)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"%zu cells are more than the %u of a batch: split it", n,
			OBK_KZG_MAX_BATCH);
	if (n == 0) {
		*ret_valid = true;
		return OB_ERR_NONE;
	}
	c.unique = malloc(n * OBK_KZG_POINT_BYTES);
	c.which = malloc(n * sizeof(*c.which));
	c.p = malloc((2 * n + CELL) * sizeof(*c.p));
	c.k = calloc(2 * n + CELL, sizeof(*c.k));
	c.weight = malloc(n * sizeof(*c.weight));
	c.column = calloc(CELLS, sizeof(*c.column));
	err = c.unique && c.which && c.p && c.k && c.weight && c.column ? OB_ERR_NONE
									: no_memory(fault);
	if (!err)
		err = collect(&c, fault);
	if (!err)
		err = interpolate(&c, fault);
	/* e(sum of w_i (C_i - I_i + h_i^64 P_i), [1]) = e(sum of w_i P_i, [s^64]) */
	if (!err)
		err = obk_kzg_sum(kzg, &left, c.p, c.k, n + c.distinct + CELL, fault);
	if (!err)
		err = obk_kzg_sum(kzg, &right, c.p, c.weight, n, fault);
	if (!err)
		*ret_valid = obk_kzg_pairs(&left, &kzg->h, &right, &kzg->s64h);
	free(c.unique);
	free(c.which);
	free(c.p);
	free(c.k);
	free(c.weight);
	free(c.column);
	return err;
}
