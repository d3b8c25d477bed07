/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "compute/kzg/setup.h"
#include "compute/ntt/reverse.h"

#define DEFAULT_CELL_WINDOW 4
#define G1_POINTS           OBK_KZG_BLOB_ELEMENTS
#define CHUNK               64 /* points that a thread decodes together */

struct text {
	const char *at, *end;
};

struct loading {
	uint8_t (*bytes)[OBK_KZG_POINT_BYTES]; /* [2 G1_POINTS]: Lagrange, then monomial */
	struct obk_g1_affine *points;
	struct obk_g2_affine g2[OBK_KZG_G2_POINTS];
	struct obk_fault *faults; /* [chunks] */
	struct obk_fr rho;        /* computed from a hash of the text */
};

static bool next_token(struct text *t, const char **ret, size_t *ret_length)
{
	while (t->at < t->end &&
		(*t->at == ' ' || *t->at == '\n' || *t->at == '\r' || *t->at == '\t'))
		t->at++;
	*ret = t->at;
	while (t->at < t->end && *t->at != ' ' && *t->at != '\n' && *t->at != '\r' &&
		*t->at != '\t')
		t->at++;
	*ret_length = (size_t)(t->at - *ret);
	return *ret_length > 0;
}

static enum ob_err read_count(
	struct text *t, unsigned want, const char *what, struct obk_fault *fault)
{
	const char *token;
	char digits[16];
	size_t n;

	if (!next_token(t, &token, &n) || n >= sizeof(digits))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the trusted setup does not begin with the numbers of its points, '4096' "
			"and '65'");
	memcpy(digits, token, n);
	digits[n] = 0;
	if (strspn(digits, "0123456789") != n || strtoul(digits, NULL, 10) != want)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the trusted setup has '%s' %s where %u are needed", digits, what, want);
	return OB_ERR_NONE;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

static enum ob_err read_hex(struct text *t, uint8_t *bytes, size_t n, const char *what, size_t item,
	struct obk_fault *fault)
{
	const char *token;
	size_t length;

	if (!next_token(t, &token, &length))
		return obk_fault_set(fault, OB_ERR_ARGUMENT, item,
			"the trusted setup ends before %s point %zu", what, item);
	if (length != 2 * n)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, item,
			"%s point %zu of the trusted setup has %zu characters, not %zu", what, item,
			length, 2 * n);
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(token[2 * i]), low = hex_digit(token[2 * i + 1]);

		if (high < 0 || low < 0)
			return obk_fault_set(fault, OB_ERR_ARGUMENT, item,
				"%s point %zu of the trusted setup is not hexadecimal", what, item);
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return OB_ERR_NONE;
}

static enum ob_err read_g2(
	struct loading *l, const uint8_t *bytes, size_t i, struct obk_fault *fault)
{
	enum ob_err err = obk_g2_decode_compressed(&l->g2[i], bytes, i, fault);

	if (!err && !obk_g2_in_subgroup(&l->g2[i]))
		err = obk_fault_set(fault, OB_ERR_ARGUMENT, i,
			"G2 point %zu of the trusted setup is not in the subgroup G2", i);
	return err;
}

static enum ob_err read_text(
	struct loading *l, const char *data, size_t length, struct obk_fault *fault)
{
	struct text t = { data, data + length };
	enum ob_err err = read_count(&t, G1_POINTS, "points of G1", fault);
	const char *token;
	size_t n;

	if (!err)
		err = read_count(&t, OBK_KZG_G2_POINTS, "points of G2", fault);
	for (size_t i = 0; i < G1_POINTS && !err; i++)
		err = read_hex(&t, l->bytes[i], OBK_KZG_POINT_BYTES, "Lagrange", i, fault);
	for (size_t i = 0; i < OBK_KZG_G2_POINTS && !err; i++) {
		uint8_t bytes[OBK_G2_COMPRESSED_BYTES];

		err = read_hex(&t, bytes, sizeof(bytes), "G2", i, fault);
		if (!err)
			err = read_g2(l, bytes, i, fault);
	}
	for (size_t i = 0; i < G1_POINTS && !err; i++)
		err = read_hex(
			&t, l->bytes[G1_POINTS + i], OBK_KZG_POINT_BYTES, "monomial", i, fault);
	if (!err && next_token(&t, &token, &n))
		err = obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the trusted setup goes on after its last point");
	return err;
}

static void decode_body(void *arg, size_t item, unsigned thread)
{
	struct loading *l = arg;

	(void)thread;
	for (size_t i = item * CHUNK; i < (item + 1) * CHUNK && !l->faults[item].err; i++)
		obk_kzg_read_point(&l->points[i], l->bytes[i],
			i < G1_POINTS ? "Lagrange point" : "monomial point", i % G1_POINTS,
			&l->faults[item]);
}

static enum ob_err decode(struct loading *l, struct obk_pool *pool, struct obk_fault *fault)
{
	obk_pool_run(pool, 2 * G1_POINTS / CHUNK, decode_body, l);
	for (size_t i = 0; i < 2 * G1_POINTS / CHUNK; i++) {
		if (l->faults[i].err) {
			if (fault)
				*fault = l->faults[i];
			return l->faults[i].err;
		}
	}
	return OB_ERR_NONE;
}

static enum ob_err unfit(struct obk_fault *fault, const char *why)
{
	return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
		"the trusted setup is inconsistent: %s", why);
}

/*
 * Checks that both forms commit to the polynomial with coefficients rho^j, whose value at w is
 * (rho^n - 1) / (rho w - 1). rho is derived from a hash of the text, so two lists that do not
 * belong together cannot agree, not even if they were made on purpose.
 */
static enum ob_err check_forms(
	struct obk_kzg *kzg, const struct loading *l, struct obk_fault *fault)
{
	struct obk_fr *k = malloc(2 * G1_POINTS * sizeof(*k)), top = l->rho;
	struct obk_msm_job job = { .count = G1_POINTS,
		.scalars = k,
		.format = OBK_SCALAR_MONT,
		.batch = 1,
		.pool = kzg->pool };
	struct obk_g1_affine a, b;
	enum ob_err err = OB_ERR_NO_MEMORY;

	if (!k)
		return obk_fault_set(
			fault, err, OBK_FAULT_NO_ITEM, "no memory to check the trusted setup");
	k[0] = obk_fr_one;
	for (size_t i = 1; i < G1_POINTS; i++)
		obk_fr_mul(&k[i], &k[i - 1], &l->rho);
	err = obk_kzg_sum(kzg, &a, l->points + G1_POINTS, k, G1_POINTS, fault);
	if (err)
		goto out;
	for (unsigned i = 0; i < OBK_KZG_LOG_BLOB; i++)
		obk_fr_sqr(&top, &top);
	obk_fr_sub(&top, &top, &obk_fr_one);
	for (size_t i = 0; i < G1_POINTS; i++) {
		obk_fr_mul(&k[i], &l->rho, &kzg->points[i]);
		obk_fr_sub(&k[i], &k[i], &obk_fr_one);
	}
	obk_fr_inv_batch(k, G1_POINTS, k + G1_POINTS);
	for (size_t i = 0; i < G1_POINTS; i++)
		obk_fr_mul(&k[i], &k[i], &top);
	err = obk_msm_run(kzg->lagrange, &job, &b, fault);
	if (!err && !obk_g1_affine_equal(&a, &b))
		err = unfit(fault, "the Lagrange points do not belong to the monomial points");
out:
	free(k);
	return err;
}

static enum ob_err check_powers(
	const struct obk_kzg *kzg, const struct loading *l, struct obk_fault *fault)
{
	const struct obk_g1_affine *m = l->points + G1_POINTS;

	if (!obk_g1_affine_equal(&m[0], &obk_g1_generator))
		return unfit(fault, "the first monomial point is not the generator of G1");
	if (!obk_fp2_equal(&l->g2[0].x, &obk_g2_generator.x) ||
		!obk_fp2_equal(&l->g2[0].y, &obk_g2_generator.y))
		return unfit(fault, "the first point of G2 is not its generator");
	if (!obk_kzg_pairs(&m[1], &kzg->h, &m[0], &kzg->sh))
		return unfit(fault, "the second points of G1 and of G2 are different multiples");
	if (!obk_kzg_pairs(&m[OBK_KZG_CELL_ELEMENTS], &kzg->h, &m[0], &kzg->s64h))
		return unfit(fault, "point 64 of G1 and point 64 of G2 are different multiples");
	return OB_ERR_NONE;
}

static enum ob_err build(struct obk_kzg *kzg, struct loading *l,
	const struct obk_kzg_options *options, struct obk_fault *fault)
{
	struct obk_msm_bases_args args = { .count = G1_POINTS,
		.format = OBK_POINT_AFFINE,
		.trust = OBK_TRUST_SUBGROUP,
		.table_bytes = options->commit_table,
		.pool = kzg->pool };
	struct obk_g1_affine *reversed = malloc(G1_POINTS * sizeof(*reversed));
	struct obk_fr w;
	enum ob_err err;

	if (!reversed)
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for the trusted setup");
	for (uint32_t i = 0; i < G1_POINTS; i++)
		reversed[obk_ntt_reverse_bits(i, OBK_KZG_LOG_BLOB)] = l->points[i];
	kzg->lagrange_points = reversed;
	args.points = reversed;
	err = obk_msm_bases_new(&args, &kzg->lagrange, fault);
	if (err)
		return err;
	obk_fr_root(&w, OBK_KZG_LOG_BLOB);
	kzg->points[0] = obk_fr_one;
	for (size_t i = 1; i < G1_POINTS; i++)
		obk_fr_mul(&kzg->points[i], &kzg->points[i - 1], &w);
	obk_ntt_reverse(kzg->points, OBK_KZG_LOG_BLOB);
	memcpy(kzg->monomial, l->points + G1_POINTS, sizeof(kzg->monomial));
	obk_g2_lines_make(&kzg->h, &l->g2[0]);
	obk_g2_lines_make(&kzg->sh, &l->g2[1]);
	obk_g2_lines_make(&kzg->s64h, &l->g2[64]);
	err = check_powers(kzg, l, fault);
	return err ? err : check_forms(kzg, l, fault);
}

enum ob_err obk_kzg_load(const char *text, size_t length, const struct obk_kzg_options *options,
	struct obk_kzg **ret_kzg, struct obk_fault *fault)
{
	static const struct obk_kzg_options none;
	struct loading *l = calloc(1, sizeof(*l));
	struct obk_kzg *kzg = calloc(1, sizeof(*kzg));
	struct ob_sha256 hash;
	uint8_t digest[OB_SHA256_BYTES];
	enum ob_err err = OB_ERR_NO_MEMORY;

	if (!options)
		options = &none;
	if (!text || length > OBK_KZG_MAX_SETUP_BYTES || options->cell_window == 1 ||
		options->cell_window > OBK_KZG_MAX_CELL_WINDOW) {
		err = obk_fault_set(fault, text ? OB_ERR_LIMIT : OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the trusted setup is missing or larger than %zu bytes, or the cells' "
			"window is not 0 or 2 to %u bits",
			OBK_KZG_MAX_SETUP_BYTES, OBK_KZG_MAX_CELL_WINDOW);
		goto out;
	}
	if (l) {
		l->bytes = malloc(2 * G1_POINTS * sizeof(*l->bytes));
		l->points = malloc(2 * G1_POINTS * sizeof(*l->points));
		l->faults = calloc(2 * G1_POINTS / CHUNK, sizeof(*l->faults));
	}
	if (!kzg || !l || !l->bytes || !l->points || !l->faults) {
		obk_fault_set(fault, err, OBK_FAULT_NO_ITEM, "no memory for the trusted setup");
		goto out;
	}
	kzg->pool = options->pool;
	ob_sha256_init(&hash);
	ob_sha256_update(&hash, text, length);
	ob_sha256_final(&hash, digest);
	obk_kzg_hash_element(&l->rho, digest);
	err = read_text(l, text, length, fault);
	if (!err)
		err = decode(l, kzg->pool, fault);
	if (!err)
		err = build(kzg, l, options, fault);
	if (!err) {
		kzg->fk20 = obk_fk20_new(l->points + G1_POINTS,
			options->cell_window ? options->cell_window : DEFAULT_CELL_WINDOW);
		if (!kzg->fk20)
			err = obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
				"no memory for the points of the cells' proofs");
	}
	if (!err) {
		*ret_kzg = kzg;
		kzg = NULL;
	}
out:
	if (l) {
		free(l->bytes);
		free(l->points);
		free(l->faults);
	}
	free(l);
	obk_kzg_free(kzg);
	return err;
}

enum ob_err obk_kzg_load_file(const char *path, const struct obk_kzg_options *options,
	struct obk_kzg **ret_kzg, struct obk_fault *fault)
{
	FILE *f = fopen(path, "rbe");
	char *text = NULL;
	size_t n = 0;
	enum ob_err err;

	if (!f)
		return obk_fault_set(fault, OB_ERR_IO, OBK_FAULT_NO_ITEM,
			"the trusted setup %.100s cannot be opened: %s", path, strerror(errno));
	text = malloc(OBK_KZG_MAX_SETUP_BYTES + 1);
	if (!text) {
		fclose(f);
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory to read the trusted setup");
	}
	n = fread(text, 1, OBK_KZG_MAX_SETUP_BYTES + 1, f);
	if (ferror(f))
		err = obk_fault_set(fault, OB_ERR_IO, OBK_FAULT_NO_ITEM,
			"the trusted setup %.100s cannot be read", path);
	else
		err = obk_kzg_load(text, n, options, ret_kzg, fault);
	fclose(f);
	free(text);
	return err;
}

enum ob_err obk_kzg_share(const struct obk_kzg *kzg, struct obk_pool *pool,
	struct obk_kzg **ret_kzg, struct obk_fault *fault)
{
	struct obk_kzg *view = malloc(sizeof(*view));

	if (!view)
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for a view of the trusted setup");
	*view = *kzg;
	view->pool = pool;
	view->shared = true;
	*ret_kzg = view;
	return OB_ERR_NONE;
}

const struct obk_g1_affine *obk_kzg_points(const struct obk_kzg *kzg)
{
	return kzg->lagrange_points;
}

void obk_kzg_free(struct obk_kzg *kzg)
{
	if (!kzg)
		return;
	if (!kzg->shared) {
		obk_msm_bases_free(kzg->lagrange);
		free(kzg->lagrange_points);
		obk_fk20_free(kzg->fk20);
	}
	free(kzg);
}
