/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "compute/command/kernel_bench.h"
#include "compute/command/kzg_check.h"
#include "tools/command.h"

#define NAME            "kzg"
#define CELL_WINDOW_MAX 10
#define BLOBS_MAX       1024

static bool agreed(const char *what, int status, bool valid, const struct outboard_error *error)
{
	if (status == OUTBOARD_OK && valid)
		return true;
	fprintf(stderr,
		"outboard kzg: %s that was just computed does not verify%s%s: this machine or this "
		"program is faulty; try OUTBOARD_OPT=-all, and\nreport it\n",
		what, status != OUTBOARD_OK ? ": " : "", status != OUTBOARD_OK ? error->text : "");
	return false;
}

bool obx_kzg_check_commitment(
	struct outboard_kzg *kzg, const uint8_t *blob, const uint8_t *commitment)
{
	uint8_t proof[OUTBOARD_COMMITMENT_BYTES];
	struct outboard_error error;
	int valid = 0,
	    status = outboard_kzg_prove_blobs(kzg, blob, commitment, 1, proof, NULL, &error);

	if (status == OUTBOARD_OK)
		status = outboard_kzg_verify_blobs(
			kzg, blob, commitment, proof, 1, &valid, NULL, &error);
	return agreed("the commitment", status, valid, &error);
}

bool obx_kzg_check_proof(struct outboard_kzg *kzg, const uint8_t *blob, const uint8_t *commitment,
	const uint8_t *z, const uint8_t *y, const uint8_t *proof)
{
	uint8_t own[OUTBOARD_COMMITMENT_BYTES];
	struct outboard_error error;
	int valid = 0, status;

	if (commitment) {
		status = outboard_kzg_verify_blobs(
			kzg, blob, commitment, proof, 1, &valid, NULL, &error);
	} else {
		status = outboard_kzg_commit(kzg, blob, 1, own, NULL, &error);
		if (status == OUTBOARD_OK)
			status = outboard_kzg_verify(kzg, own, z, y, proof, &valid, NULL, &error);
	}
	return agreed("the proof (for this commitment)", status, valid, &error);
}

/* The first half of the cells is the blob itself. */
bool obx_kzg_check_cells(struct outboard_kzg *kzg, const uint8_t *cells, const uint8_t *proofs)
{
	uint8_t commitments[OUTBOARD_CELLS * OUTBOARD_COMMITMENT_BYTES];
	uint64_t indices[OUTBOARD_CELLS];
	struct outboard_error error;
	int valid = 0, status = outboard_kzg_commit(kzg, cells, 1, commitments, NULL, &error);

	for (size_t i = 0; i < OUTBOARD_CELLS; i++) {
		indices[i] = i;
		if (i)
			memcpy(commitments + i * OUTBOARD_COMMITMENT_BYTES, commitments,
				OUTBOARD_COMMITMENT_BYTES);
	}
	if (status == OUTBOARD_OK)
		status = outboard_kzg_verify_cells(kzg, commitments, indices, cells, proofs,
			OUTBOARD_CELLS, &valid, NULL, &error);
	return agreed("a cell's proof", status, valid, &error);
}

/* ---- bench ---- */

static struct bench {
	struct obx_kernel_bench b;
	const char *setup;
	uint64_t window, blob_count;
	struct outboard_kzg *kzg[OBX_SIDES];
	uint8_t *blobs;             /* blob_count of them */
	uint8_t *points[OBX_SIDES]; /* the results of each side */
	uint8_t cells[OUTBOARD_CELLS * OUTBOARD_CELL_BYTES],
		out[OUTBOARD_CELLS * OUTBOARD_CELL_BYTES];
	uint8_t proofs[OUTBOARD_CELLS * OUTBOARD_COMMITMENT_BYTES],
		commitments[OUTBOARD_CELLS * OUTBOARD_COMMITMENT_BYTES];
	uint8_t proof[OUTBOARD_COMMITMENT_BYTES];
	uint64_t indices[OUTBOARD_CELLS], half[OUTBOARD_CELLS / 2];
} bench;

static bool done(int status, const struct outboard_error *error)
{
	if (status != OUTBOARD_OK)
		obx_devices_refused(&bench.b.asked, error);
	return status == OUTBOARD_OK;
}

static bool work_commit(void *arg, enum obx_side side)
{
	struct outboard_error error;
	struct bench *b = arg;

	return done(outboard_kzg_commit(b->kzg[side], b->blobs, 1, b->points[side], NULL, &error),
		&error);
}

static bool work_prove(void *arg, enum obx_side side)
{
	struct outboard_error error;
	struct bench *b = arg;

	return done(outboard_kzg_prove_blobs(b->kzg[side], b->blobs, b->commitments, 1,
			    b->points[side], NULL, &error),
		&error);
}

static bool work_commit_all(void *arg, enum obx_side side)
{
	struct outboard_error error;
	struct bench *b = arg;

	return done(outboard_kzg_commit(
			    b->kzg[side], b->blobs, b->blob_count, b->points[side], NULL, &error),
		&error);
}

static bool work_verify(void *arg, enum obx_side side)
{
	struct outboard_error error;
	struct bench *b = arg;
	int valid = 0;

	return done(outboard_kzg_verify_blobs(b->kzg[side], b->blobs, b->commitments, b->proof, 1,
			    &valid, NULL, &error),
		       &error) &&
		agreed("the proof", OUTBOARD_OK, valid, &error);
}

static bool work_cells(void *arg, enum obx_side side)
{
	struct outboard_error error;
	struct bench *b = arg;

	return done(outboard_kzg_cells(b->kzg[side], b->blobs, 1, b->cells, NULL, NULL, &error),
		&error);
}

static bool work_cells_and_proofs(void *arg, enum obx_side side)
{
	struct outboard_error error;
	struct bench *b = arg;

	return done(outboard_kzg_cells(
			    b->kzg[side], b->blobs, 1, b->cells, b->points[side], NULL, &error),
		&error);
}

static bool work_prove_all_cells(void *arg, enum obx_side side)
{
	struct outboard_error error;
	struct bench *b = arg;

	return done(outboard_kzg_cells(b->kzg[side], b->blobs, b->blob_count, NULL, b->points[side],
			    NULL, &error),
		&error);
}

static bool work_recover(void *arg, enum obx_side side)
{
	struct outboard_error error;
	struct bench *b = arg;

	return done(outboard_kzg_recover(b->kzg[side], b->half, b->cells, OUTBOARD_CELLS / 2,
			    b->out, NULL, NULL, &error),
		&error);
}

static bool work_verify_cells(void *arg, enum obx_side side)
{
	struct outboard_error error;
	struct bench *b = arg;
	int valid = 0;

	return done(outboard_kzg_verify_cells(b->kzg[side], b->commitments, b->indices, b->cells,
			    b->proofs, OUTBOARD_CELLS, &valid, NULL, &error),
		       &error) &&
		agreed("a cell's proof", OUTBOARD_OK, valid, &error);
}

/* Elements below r: the highest byte of each stays 0. */
static void fill_blobs(uint8_t *blobs, size_t n)
{
	uint64_t state = 1;

	for (size_t i = 0; i < n * OUTBOARD_BLOB_BYTES; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		blobs[i] = i % OUTBOARD_ELEMENT_BYTES ? (uint8_t)(state >> 56) : 0;
	}
}

static bool run_rows(struct bench *b)
{
	char all[32], all_cells[48];
	const struct {
		const char *name;
		/* results that must be equal on both sides; 0: only the CPU does this work */
		size_t points;
		obx_kernel_work *work;
	} rows[] = {
		{ "commit", 1, work_commit },
		{ "prove a blob", 1, work_prove },
		{ all, b->blob_count, work_commit_all },
		{ "verify a blob", 0, work_verify },
		{ "cells", 0, work_cells },
		{ "cells and proofs", OUTBOARD_CELLS, work_cells_and_proofs },
		{ all_cells, b->blob_count * OUTBOARD_CELLS, work_prove_all_cells },
		{ "recover 64 of 128 cells", 0, work_recover },
		{ "verify 128 cells", 0, work_verify_cells },
	};

	snprintf(all, sizeof all, "commit to %u blobs", (unsigned)b->blob_count);
	snprintf(all_cells, sizeof all_cells, "proofs of %u blobs' cells", (unsigned)b->blob_count);
	for (size_t i = 0; i < ob_count(rows); i++) {
		if (!obx_kernel_bench_row(&b->b, rows[i].name, 0, rows[i].points, rows[i].work, b))
			return false;
		if (b->b.side[OBX_GPU] &&
			memcmp(b->points[OBX_CPU], b->points[OBX_GPU],
				rows[i].points * OUTBOARD_COMMITMENT_BYTES) != 0) {
			obx_kernel_bench_differ(&b->b, rows[i].name);
			return false;
		}
		if (rows[i].work == work_prove)
			memcpy(b->proof, b->points[OBX_CPU], sizeof b->proof);
		if (rows[i].work == work_cells_and_proofs)
			memcpy(b->proofs, b->points[OBX_CPU], sizeof b->proofs);
		for (size_t j = 0; i == 0 && j < OUTBOARD_CELLS; j++) {
			memcpy(b->commitments + j * OUTBOARD_COMMITMENT_BYTES, b->points[OBX_CPU],
				OUTBOARD_COMMITMENT_BYTES);
			b->indices[j] = j;
			if (j < OUTBOARD_CELLS / 2)
				b->half[j] = j;
		}
	}
	return true;
}

static bool open_sides(struct bench *b)
{
	struct outboard_kzg_options options = { .cell_window = (uint32_t)b->window,
		.table_bytes = b->b.table << 20 };
	struct outboard_error error;

	b->blobs = malloc(b->blob_count * OUTBOARD_BLOB_BYTES);
	for (unsigned side = 0; side < OBX_SIDES; side++) {
		b->points[side] =
			malloc(b->blob_count * OUTBOARD_CELLS * OUTBOARD_COMMITMENT_BYTES);
		if (!b->blobs || !b->points[side]) {
			fprintf(stderr, "outboard kzg: no memory for %u blobs\n",
				(unsigned)b->blob_count);
			return false;
		}
		if (b->b.side[side] &&
			!done(outboard_kzg_load_file(
				      b->b.side[side], b->setup, &options, &b->kzg[side], &error),
				&error))
			return false;
	}
	fill_blobs(b->blobs, b->blob_count);
	return true;
}

static const struct ob_option options[] = {
	{ OB_OPTION("setup", OB_FILE, struct bench, setup), .arg = "FILE",
		.help = "a trusted setup in c-kzg-4844's text" },
	{ OB_OPTION("window", OB_NUMBER, struct bench, window), .arg = "N", .min = 2,
		.max = CELL_WINDOW_MAX, .fallback = "8",
		.help = "bits of the windows of the table for proofs of cells" },
	{ OB_OPTION("blobs", OB_NUMBER, struct bench, blob_count), .arg = "N", .min = 1,
		.max = BLOBS_MAX, .fallback = "8", .help = "blobs of the batches" },
	OBX_KERNEL_BENCH_OPTIONS(struct bench, b),
	{ 0 },
};

static int bench_main(int argc, char **argv)
{
	char what[80];
	int code;

	bench = (struct bench){
		.b = { .verb = NAME, .what = what, .runs = 5 }, .window = 8, .blob_count = 8
	};
	code = obx_kernel_bench_parse(&obx_kzg_bench_command, &bench, &bench.b, argc, argv);
	if (code != OB_OPTIONS_GO)
		return code;
	snprintf(what, sizeof what, "one blob, cell proofs by a table of windows of %u bits",
		(unsigned)bench.window);
	if (!bench.setup)
		return ob_usage_error(
			&obx_kzg_bench_command, "--setup is missing: the file of a trusted setup");
	code = obx_kernel_bench_open(&bench.b);
	if (!code)
		code = open_sides(&bench) && run_rows(&bench) ? obx_kernel_bench_show(&bench.b)
							      : OBX_EXIT_UNWELL;
	for (unsigned side = 0; side < OBX_SIDES; side++) {
		outboard_kzg_free(bench.kzg[side]);
		free(bench.points[side]);
	}
	obx_kernel_bench_close(&bench.b);
	free(bench.blobs);
	return code;
}

const struct ob_command obx_kzg_bench_command = {
	.name = "outboard kzg bench",
	.summary = "time the operations by the CPU and a GPU, and compare the results",
	.usage = "--setup FILE [OPTION]...",
	.options = options,
	.main = bench_main,
};
