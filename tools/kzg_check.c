/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "kernels/kzg/kzg.h"
#include "kernels/msm/tune.h"
#include "tools/command.h"
#include "tools/kernel_bench.h"
#include "tools/kzg_check.h"

#define NAME "kzg"

static bool agreed(const char *what, enum ob_err err, bool valid, const struct obk_fault *fault)
{
	if (!err && valid)
		return true;
	fprintf(stderr, "outboard kzg: %s that was just computed does not verify%s%s: this machine or this program is at fault; try OUTBOARD_OPT=-all, and\n"
			"report it\n", what, err ? ": " : "", err ? fault->text : "");
	return false;
}

bool obx_kzg_check_commitment(const struct obk_kzg *kzg, const uint8_t *blob, const uint8_t *commitment)
{
	uint8_t proof[OBK_KZG_POINT_BYTES];
	struct obk_fault fault;
	bool valid = false;
	enum ob_err err = obk_kzg_prove_blob(kzg, blob, commitment, proof, &fault);

	if (!err)
		err = obk_kzg_verify_blob(kzg, blob, commitment, proof, &valid, &fault);
	return agreed("the commitment", err, valid, &fault);
}

bool obx_kzg_check_proof(const struct obk_kzg *kzg, const uint8_t *blob, const uint8_t *commitment, const uint8_t *z, const uint8_t *y, const uint8_t *proof)
{
	uint8_t own[OBK_KZG_POINT_BYTES];
	struct obk_fault fault;
	bool valid = false;
	enum ob_err err;

	if (commitment) {
		err = obk_kzg_verify_blob(kzg, blob, commitment, proof, &valid, &fault);
	} else {
		err = obk_kzg_commit(kzg, blob, own, &fault);
		if (!err)
			err = obk_kzg_verify(kzg, own, z, y, proof, &valid, &fault);
	}
	return agreed("the proof (for this commitment)", err, valid, &fault);
}

/* The first half of the cells is the blob itself. */
bool obx_kzg_check_cells(const struct obk_kzg *kzg, const uint8_t *cells, const uint8_t *proofs)
{
	uint8_t commitments[OBK_KZG_CELLS * OBK_KZG_POINT_BYTES];
	uint64_t indices[OBK_KZG_CELLS];
	struct obk_fault fault;
	bool valid = false;
	enum ob_err err = obk_kzg_commit(kzg, cells, commitments, &fault);

	for (size_t i = 0; i < OBK_KZG_CELLS; i++) {
		indices[i] = i;
		if (i)
			memcpy(commitments + i * OBK_KZG_POINT_BYTES, commitments, OBK_KZG_POINT_BYTES);
	}
	if (!err)
		err = obk_kzg_verify_cells(kzg, commitments, indices, cells, proofs, OBK_KZG_CELLS, &valid, &fault);
	return agreed("a cell's proof", err, valid, &fault);
}

/* ---- bench ---- */

static struct bench {
	const char *setup;
	uint64_t window;
	struct obk_pool *pool;
	struct obk_kzg *kzg;
	uint8_t blob[OBK_KZG_BLOB_BYTES], cells[OBK_KZG_CELLS * OBK_KZG_CELL_BYTES], out[OBK_KZG_CELLS * OBK_KZG_CELL_BYTES];
	uint8_t commitment[OBK_KZG_POINT_BYTES], proof[OBK_KZG_POINT_BYTES], y[OBK_KZG_ELEMENT_BYTES], proofs[OBK_KZG_CELLS * OBK_KZG_POINT_BYTES];
	uint8_t commitments[OBK_KZG_CELLS * OBK_KZG_POINT_BYTES];
	uint64_t indices[OBK_KZG_CELLS], half[OBK_KZG_CELLS / 2];
} bench;

static bool done(enum ob_err err, const struct obk_fault *fault)
{
	if (err)
		fprintf(stderr, "outboard kzg: %s\n", fault->text);
	return !err;
}

static bool work_commit(void *arg)
{
	struct obk_fault fault;
	struct bench *b = arg;

	return done(obk_kzg_commit(b->kzg, b->blob, b->commitment, &fault), &fault);
}

static bool work_prove(void *arg)
{
	struct obk_fault fault;
	struct bench *b = arg;

	return done(obk_kzg_prove_blob(b->kzg, b->blob, b->commitment, b->proof, &fault), &fault);
}

static bool work_verify(void *arg)
{
	struct obk_fault fault;
	struct bench *b = arg;
	bool valid = false;

	return done(obk_kzg_verify_blob(b->kzg, b->blob, b->commitment, b->proof, &valid, &fault), &fault) && valid;
}

static bool work_cells(void *arg)
{
	struct obk_fault fault;
	struct bench *b = arg;

	return done(obk_kzg_cells(b->kzg, b->blob, b->cells, NULL, &fault), &fault);
}

static bool work_cells_and_proofs(void *arg)
{
	struct obk_fault fault;
	struct bench *b = arg;

	return done(obk_kzg_cells(b->kzg, b->blob, b->cells, b->proofs, &fault), &fault);
}

static bool work_recover(void *arg)
{
	struct obk_fault fault;
	struct bench *b = arg;

	return done(obk_kzg_recover(b->kzg, b->half, b->cells, OBK_KZG_CELLS / 2, b->out, NULL, &fault), &fault);
}

static bool work_verify_cells(void *arg)
{
	struct obk_fault fault;
	struct bench *b = arg;
	bool valid = false;

	return done(obk_kzg_verify_cells(b->kzg, b->commitments, b->indices, b->cells, b->proofs, OBK_KZG_CELLS, &valid, &fault), &fault) && valid;
}

/* Elements below r: the highest byte of each stays 0. */
static void fill_blob(uint8_t *blob)
{
	uint64_t state = 1;

	for (size_t i = 0; i < OBK_KZG_BLOB_BYTES; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		blob[i] = i % OBK_KZG_ELEMENT_BYTES ? (uint8_t)(state >> 56) : 0;
	}
}

static bool take_setup(void *arg, const char *option, const char *value)
{
	struct bench *b = arg;

	if (strcmp(option, "--window") == 0)
		return ob_text_parse_number(value, 1, OBK_KZG_MAX_CELL_WINDOW, &b->window);
	if (strcmp(option, "--setup") != 0)
		return false;
	b->setup = value;
	return true;
}

static bool run_rows(struct obx_kernel_bench *b)
{
	const struct { const char *name; bool (*work)(void *arg); } rows[] = {
		{ "commit", work_commit }, { "prove a blob", work_prove }, { "verify a blob", work_verify }, { "cells", work_cells },
		{ "cells and proofs", work_cells_and_proofs }, { "recover 64 of 128 cells", work_recover }, { "verify 128 cells", work_verify_cells },
	};

	for (size_t i = 0; i < ob_count(rows); i++) {
		if (!obx_kernel_bench_row(b, rows[i].name, 0, rows[i].work, &bench))
			return false;
		for (size_t j = 0; i == 0 && j < OBK_KZG_CELLS; j++) {
			memcpy(bench.commitments + j * OBK_KZG_POINT_BYTES, bench.commitment, OBK_KZG_POINT_BYTES);
			bench.indices[j] = j;
			if (j < OBK_KZG_CELLS / 2)
				bench.half[j] = j;
		}
	}
	return true;
}

int obx_kzg_bench(int argc, char **argv)
{
	struct obk_kzg_options options;
	char what[80];
	struct obx_kernel_bench b = { .verb = NAME, .what = what, .runs = 5 };
	int code = obx_kernel_bench_options(&b, argc, argv, 2, 0, 0, take_setup, &bench);
	struct obk_fault fault;

	if (code)
		return code;
	bench.window = bench.window ? bench.window : 8;
	snprintf(what, sizeof what, "one blob, cell proofs by a table of windows of %u bits", (unsigned)bench.window);
	if (!bench.setup)
		return obx_usage_error(NAME, "--setup is missing: the file of a trusted setup");
	if (obk_pool_new(b.threads, &bench.pool) != OB_ERR_NONE)
		return obx_usage_error(NAME, "%u threads cannot be started", b.threads);
	obk_tune_load_default();
	b.threads = obk_pool_threads(bench.pool);
	fill_blob(bench.blob);
	code = OBX_EXIT_UNWELL;
	options = (struct obk_kzg_options){ .pool = bench.pool, .cell_window = (unsigned)bench.window };
	if (done(obk_kzg_load_file(bench.setup, &options, &bench.kzg, &fault), &fault) && run_rows(&b))
		code = obx_kernel_bench_show(&b);
	obk_kzg_free(bench.kzg);
	obk_pool_free(bench.pool);
	return code;
}
