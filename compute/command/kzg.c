/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* outboard kzg: commitments and proofs of files, on the CPU and GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "compute/command/answer.h"
#include "compute/command/devices.h"
#include "compute/command/input.h"
#include "compute/command/kernel_bench.h"
#include "compute/command/kzg_check.h"
#include "compute/command/kzg_input.h"
#include "compute/command/progress.h"
#include "tools/command.h"

#define ELEMENT_BYTES   OUTBOARD_ELEMENT_BYTES
#define POINT_BYTES     OUTBOARD_COMMITMENT_BYTES
#define MAX_CELLS_BYTES ((size_t)OUTBOARD_CELLS * OUTBOARD_CELL_BYTES)
#define MAX_FILE_BLOBS  4096
#define COMMIT_SECONDS  0.02 /* estimate for one thread, for a commitment or a proof */
/* for the proofs of cells; the CPU computes the points for them for GPUs too */
#define CELLS_SECONDS   0.15
#define NAME            "kzg"

struct options {
	const char *action, *setup, *blob, *commitment, *proof, *z, *y, *cells, *indices, *out;
	const char *blobs, *commitments, *proofs;
	uint64_t table;
	bool json, verify;
	struct obx_devices device;
	struct outboard_kzg *kzg;
};

/*
 * Prints the results for n blobs: under the name in JSON, else as lines, without the name if there
 * are several.
 */
static void print_points(const struct options *o, const char *name, const uint8_t *points, size_t n)
{
	struct obx_answer answer;
	char names[32];

	obx_answer_begin(&answer, o->json, &o->device);
	if (o->blobs) {
		snprintf(names, sizeof names, "%ss", name);
		obx_answer_array(&answer, names);
		for (size_t i = 0; i < n; i++)
			obx_answer_bytes(&answer, NULL, points + i * POINT_BYTES, POINT_BYTES);
		obx_answer_array_end(&answer);
	} else {
		obx_answer_bytes(&answer, name, points, POINT_BYTES);
	}
	obx_answer_end(&answer);
}

/* Reads one blob or a file of several; NULL: a message was printed. */
static uint8_t *take_blobs(const struct options *o, size_t *ret_n)
{
	*ret_n = o->blobs ? 0 : 1;
	return o->blobs ? obx_kzg_take_items(
				  "--blobs", o->blobs, OUTBOARD_BLOB_BYTES, MAX_FILE_BLOBS, ret_n)
			: obx_kzg_take_blob(o->blob);
}

/* Computes the commitments of the blobs, or the proofs for given commitments. */
static int over_blobs(struct options *o, const uint8_t *blobs, const uint8_t *commitments, size_t n)
{
	uint8_t *out = malloc(n * POINT_BYTES);
	struct obx_progress bar;
	struct outboard_ticket *ticket = NULL;
	struct outboard_call call = {
		.ticket = &ticket, .progress = obx_devices_progress, .arg = &bar
	};
	struct outboard_error error = { .text = "no memory for the results" };
	int status = OUTBOARD_NO_MEMORY;
	bool fine = true;

	if (out) {
		obx_progress_begin(&bar, commitments ? "proving" : "committing");
		status = commitments ? outboard_kzg_prove_blobs(
					       o->kzg, blobs, commitments, n, out, &call, &error)
				     : outboard_kzg_commit(o->kzg, blobs, n, out, &call, &error);
		status = obx_devices_wait(&o->device, status, ticket, &error);
		obx_progress_end(&bar);
	}
	if (status != OUTBOARD_OK) {
		free(out);
		return obx_devices_refused(&o->device, &error);
	}
	for (size_t i = 0; o->verify && i < n && fine; i++) {
		const uint8_t *blob = blobs + i * OUTBOARD_BLOB_BYTES;

		fine = commitments
			? obx_kzg_check_proof(o->kzg, blob, commitments + i * POINT_BYTES, NULL,
				  NULL, out + i * POINT_BYTES)
			: obx_kzg_check_commitment(o->kzg, blob, out + i * POINT_BYTES);
	}
	if (fine)
		print_points(o, commitments ? "proof" : "commitment", out, n);
	free(out);
	return fine ? 0 : OBX_EXIT_UNWELL;
}

static int commit(struct options *o)
{
	size_t n;
	uint8_t *blobs = take_blobs(o, &n);
	int code = blobs ? over_blobs(o, blobs, NULL, n) : OBX_EXIT_USAGE;

	free(blobs);
	return code;
}

static int prove_at(const struct options *o, const uint8_t *blob, const uint8_t *z)
{
	uint8_t proof[POINT_BYTES], y[ELEMENT_BYTES];
	struct outboard_error error;
	struct obx_answer answer;

	if (outboard_kzg_prove(o->kzg, blob, z, proof, y, NULL, &error) != OUTBOARD_OK)
		return obx_devices_refused(&o->device, &error);
	if (o->verify && !obx_kzg_check_proof(o->kzg, blob, NULL, z, y, proof))
		return OBX_EXIT_UNWELL;
	obx_answer_begin(&answer, o->json, &o->device);
	obx_answer_bytes(&answer, "proof", proof, sizeof proof);
	obx_answer_bytes(&answer, "y", y, sizeof y);
	obx_answer_end(&answer);
	return 0;
}

static int prove_files(struct options *o)
{
	size_t n;
	uint8_t *blobs = take_blobs(o, &n);
	uint8_t *commitments = blobs ? obx_kzg_take_items("--commitments", o->commitments,
					       POINT_BYTES, MAX_FILE_BLOBS, &n)
				     : NULL;
	int code = commitments ? over_blobs(o, blobs, commitments, n) : OBX_EXIT_USAGE;

	free(commitments);
	free(blobs);
	return code;
}

static int prove(struct options *o)
{
	uint8_t z[POINT_BYTES], *blob;
	int code;

	if (o->blobs)
		return prove_files(o);
	if (o->z ? !obx_kzg_take_hex("--z", o->z, z, ELEMENT_BYTES)
		 : !obx_kzg_take_hex("--commitment or --z", o->commitment, z, POINT_BYTES))
		return OBX_EXIT_USAGE;
	blob = obx_kzg_take_blob(o->blob);
	if (!blob)
		return OBX_EXIT_USAGE;
	code = o->z ? prove_at(o, blob, z) : over_blobs(o, blob, z, 1);
	free(blob);
	return code;
}

static int say_valid(const struct options *o, bool valid)
{
	struct obx_answer answer;

	obx_answer_begin(&answer, o->json, &o->device);
	if (o->json)
		ob_json_bool(&answer.json, "valid", valid);
	else
		puts(valid ? "valid" : "not valid");
	obx_answer_end(&answer);
	return valid ? 0 : OBX_EXIT_UNWELL;
}

static int verify(struct options *o)
{
	uint8_t c[POINT_BYTES], p[POINT_BYTES], z[ELEMENT_BYTES], y[ELEMENT_BYTES], *blob;
	struct outboard_error error;
	int valid = 0, status;

	if (!obx_kzg_take_hex("--commitment", o->commitment, c, sizeof c) ||
		!obx_kzg_take_hex("--proof", o->proof, p, sizeof p))
		return OBX_EXIT_USAGE;
	if (o->blob) {
		blob = obx_kzg_take_blob(o->blob);
		if (!blob)
			return OBX_EXIT_USAGE;
		status = outboard_kzg_verify_blobs(o->kzg, blob, c, p, 1, &valid, NULL, &error);
		free(blob);
	} else {
		if (!obx_kzg_take_hex("--z", o->z, z, sizeof z) ||
			!obx_kzg_take_hex("--y", o->y, y, sizeof y))
			return OBX_EXIT_USAGE;
		status = outboard_kzg_verify(o->kzg, c, z, y, p, &valid, NULL, &error);
	}
	return status != OUTBOARD_OK ? obx_devices_refused(&o->device, &error)
				     : say_valid(o, valid);
}

static int put_cells(const struct options *o, const uint8_t *cells, const uint8_t *proofs)
{
	struct obx_answer answer;

	if (!obx_output_file(NAME, o->out, cells, MAX_CELLS_BYTES))
		return OBX_EXIT_UNWELL;
	obx_answer_begin(&answer, o->json, &o->device);
	if (o->json)
		ob_json_uint(&answer.json, "cells", OUTBOARD_CELLS);
	for (size_t i = 0; i < OUTBOARD_CELLS; i++) {
		char name[16];

		snprintf(name, sizeof name, "proof%zu", i);
		obx_answer_bytes(&answer, name, proofs + i * POINT_BYTES, POINT_BYTES);
	}
	obx_answer_end(&answer);
	return 0;
}

static int extend(struct options *o)
{
	bool recover = strcmp(o->action, "recover") == 0;
	uint8_t *out, *in, proofs[OUTBOARD_CELLS * POINT_BYTES];
	uint64_t indices[OUTBOARD_CELLS];
	size_t n = 0,
	       given = recover ? obx_kzg_take_indices(o->indices, indices, OUTBOARD_CELLS) : 0;
	struct outboard_error error;
	int code, status;

	if (!o->out || (recover && (!o->cells || !given)))
		return obx_usage_error(NAME,
			recover ? "recover needs --cells, --indices with up to 128 numbers and "
				  "--out"
				: "cells needs --out");
	in = recover ? obx_input_file(NAME, o->cells, MAX_CELLS_BYTES, &n)
		     : obx_kzg_take_blob(o->blob);
	if (!in)
		return OBX_EXIT_USAGE;
	if (recover && n != given * OUTBOARD_CELL_BYTES) {
		fprintf(stderr,
			"outboard kzg: %s has %zu bytes; %zu indices need %zu cells of %d bytes\n",
			o->cells, n, given, given, OUTBOARD_CELL_BYTES);
		free(in);
		return OBX_EXIT_USAGE;
	}
	out = malloc(MAX_CELLS_BYTES);
	if (!out) {
		fprintf(stderr, "outboard kzg: no memory for the cells\n");
		free(in);
		return OBX_EXIT_UNWELL;
	}
	status = recover
		? outboard_kzg_recover(o->kzg, indices, in, given, out, proofs, NULL, &error)
		: outboard_kzg_cells(o->kzg, in, 1, out, proofs, NULL, &error);
	if (status != OUTBOARD_OK)
		code = obx_devices_refused(&o->device, &error);
	else
		code = o->verify && !obx_kzg_check_cells(o->kzg, out, proofs)
			? OBX_EXIT_UNWELL
			: put_cells(o, out, proofs);
	free(out);
	free(in);
	return code;
}

static int verify_batch(struct options *o)
{
	size_t n = 0;
	uint8_t *blobs =
		obx_kzg_take_items("--blobs", o->blobs, OUTBOARD_BLOB_BYTES, MAX_FILE_BLOBS, &n);
	uint8_t *commitments = blobs
		? obx_kzg_take_items("--commitments", o->commitments, POINT_BYTES, n, &n)
		: NULL;
	uint8_t *proofs =
		commitments ? obx_kzg_take_items("--proofs", o->proofs, POINT_BYTES, n, &n) : NULL;
	struct outboard_error error;
	int code = OBX_EXIT_USAGE, valid = 0;

	if (proofs)
		code = outboard_kzg_verify_blobs(o->kzg, blobs, commitments, proofs, n, &valid,
			       NULL, &error) != OUTBOARD_OK
			? obx_devices_refused(&o->device, &error)
			: say_valid(o, valid);
	free(proofs);
	free(commitments);
	free(blobs);
	return code;
}

/* The same commitment n times. */
static uint8_t *repeat_commitment(const uint8_t one[POINT_BYTES], size_t n)
{
	uint8_t *all = malloc(n * POINT_BYTES);

	if (!all)
		fprintf(stderr, "outboard kzg: no memory for %zu commitments\n", n);
	for (size_t i = 0; all && i < n; i++)
		memcpy(all + i * POINT_BYTES, one, POINT_BYTES);
	return all;
}

/*
 * Reads the commitments of n cells: an option or a file with one for all, or a file with one for
 * each.
 */
static uint8_t *take_commitments(const struct options *o, size_t n)
{
	uint8_t one[POINT_BYTES], *read, *all = NULL;
	size_t found = 0;

	if (o->commitment && o->commitments) {
		obx_usage_error(NAME, "--commitment and --commitments exclude each other");
		return NULL;
	}
	if (o->commitment)
		return obx_kzg_take_hex("--commitment", o->commitment, one, sizeof one)
			? repeat_commitment(one, n)
			: NULL;
	if (!o->commitments) {
		obx_usage_error(NAME, "--commitment or --commitments is missing");
		return NULL;
	}
	read = obx_kzg_take_items("--commitments", o->commitments, POINT_BYTES, n, &found);
	if (!read || found == n)
		return read;
	if (found == 1)
		all = repeat_commitment(read, n);
	else
		fprintf(stderr,
			"outboard kzg: %s has %zu commitments; %zu cells need one for each, or one "
			"for all\n",
			o->commitments, found, n);
	free(read);
	return all;
}

static int verify_cells(struct options *o)
{
	uint64_t *indices = malloc(OUTBOARD_MAX_BATCH * sizeof(*indices));
	size_t n = indices ? obx_kzg_take_indices(o->indices, indices, OUTBOARD_MAX_BATCH) : 0;
	uint8_t *cells =
		n ? obx_kzg_take_items("--cells", o->cells, OUTBOARD_CELL_BYTES, n, &n) : NULL;
	uint8_t *commitments = cells ? take_commitments(o, n) : NULL;
	uint8_t *proofs =
		commitments ? obx_kzg_take_items("--proofs", o->proofs, POINT_BYTES, n, &n) : NULL;
	struct outboard_error error;
	int code = OBX_EXIT_USAGE, valid = 0;

	if (!n)
		obx_usage_error(NAME,
			"verify-cells needs --indices, up to %d numbers with commas between",
			OUTBOARD_MAX_BATCH);
	if (proofs)
		code = outboard_kzg_verify_cells(o->kzg, commitments, indices, cells, proofs, n,
			       &valid, NULL, &error) != OUTBOARD_OK
			? obx_devices_refused(&o->device, &error)
			: say_valid(o, valid);
	free(proofs);
	free(commitments);
	free(cells);
	free(indices);
	return code;
}

static const struct {
	const char *name;
	int (*run)(struct options *o);
} actions[] = {
	/* in the order of `commands` */
	{ "commit", commit },
	{ "prove", prove },
	{ "verify", verify },
	{ "cells", extend },
	{ "recover", extend },
	{ "verify-batch", verify_batch },
	{ "verify-cells", verify_cells },
};

/* Estimates, from the size of the file of blobs, the CPU time of the part that GPUs can do. */
static double guess(const struct options *o)
{
	struct stat info;
	double blobs = o->blobs && stat(o->blobs, &info) == 0
		? (double)info.st_size / OUTBOARD_BLOB_BYTES
		: 1;

	double seconds = strcmp(o->action, "cells") == 0 ? CELLS_SECONDS : COMMIT_SECONDS;

	if (strcmp(o->action, "commit") != 0 && strcmp(o->action, "prove") != 0 &&
		strcmp(o->action, "cells") != 0)
		return 0;
	return blobs * seconds /
		(o->device.threads ? (double)o->device.threads
				   : (double)sysconf(_SC_NPROCESSORS_ONLN));
}

static int action_main(int argc, char **argv);

static const struct ob_option options[] = {
	{ OB_OPTION("setup", OB_FILE, struct options, setup), .arg = "FILE",
		.help = "a trusted setup in c-kzg-4844's text" },
	{ OB_OPTION("blob", OB_FILE, struct options, blob), .arg = "FILE", .help = "one blob" },
	{ OB_OPTION("blobs", OB_FILE, struct options, blobs), .arg = "FILE",
		.help = "blobs, one after the other" },
	{ OB_OPTION("commitment", OB_TEXT, struct options, commitment), .arg = "HEX",
		.help = "one commitment" },
	{ OB_OPTION("commitments", OB_FILE, struct options, commitments), .arg = "FILE",
		.help = "a commitment for each blob or cell" },
	{ OB_OPTION("proof", OB_TEXT, struct options, proof), .arg = "HEX", .help = "one proof" },
	{ OB_OPTION("proofs", OB_FILE, struct options, proofs), .arg = "FILE",
		.help = "a proof for each blob or cell" },
	{ OB_OPTION("z", OB_TEXT, struct options, z), .arg = "HEX",
		.help = "where the polynomial is evaluated" },
	{ OB_OPTION("y", OB_TEXT, struct options, y), .arg = "HEX", .help = "its value there" },
	{ OB_OPTION("cells", OB_FILE, struct options, cells), .arg = "FILE",
		.help = "cells, one after the other" },
	{ OB_OPTION("indices", OB_TEXT, struct options, indices), .arg = "0,5,...",
		.help = "which cells these are" },
	{ OB_OPTION("out", OB_FILE, struct options, out), .arg = "FILE",
		.help = "where cells are written" },
	{ OB_OPTION("table", OB_NUMBER, struct options, table), .arg = "MIB",
		.max = OBX_TABLE_MAX_MIB,
		.help = "memory for a table of the setup, on each device, in MiB" },
	{ OB_OPTION("verify", OB_FLAG, struct options, verify),
		.help = "check by pairings what commit, prove, cells and recover computed before "
			"it is given out" },
	{ OB_OPTION("json", OB_FLAG, struct options, json), .help = "print one JSON object" },
	OBX_DEVICES_OPTIONS(struct options, device),
	{ 0 },
};

#define HEX_AND_FILES                                                                           \
	"HEX: with or without 0x. Files: raw or hex. GPUs do commit, prove and cells; the CPU " \
	"does "                                                                                 \
	"the rest."
#define ACTION(word, text, usage_text)                                                  \
	{                                                                               \
		.name = "outboard kzg " word, .summary = (text), .usage = (usage_text), \
		.notes = HEX_AND_FILES, .options = options, .main = action_main         \
	}

static const struct ob_command commands[] = {
	ACTION("commit", "commitments of blobs",
		"--setup FILE --blob FILE [OPTION]...\n--setup FILE --blobs FILE [OPTION]..."),
	ACTION("prove", "proofs of blobs, or a proof and the value at a point",
		"--setup FILE --blob FILE --z HEX [OPTION]...\n"
		"--setup FILE --blob FILE --commitment HEX [OPTION]...\n"
		"--setup FILE --blobs FILE --commitments FILE [OPTION]..."),
	ACTION("verify", "check a proof; exit code 0 if it is valid, 1 if not",
		"--setup FILE --commitment HEX --z HEX --y HEX --proof HEX [OPTION]...\n"
		"--setup FILE --blob FILE --commitment HEX --proof HEX [OPTION]..."),
	ACTION("cells", "write the 128 cells of a blob, print their 128 proofs",
		"--setup FILE --blob FILE --out FILE [OPTION]..."),
	ACTION("recover", "all cells from at least 64",
		"--setup FILE --cells FILE --indices 0,5,... --out FILE [OPTION]..."),
	ACTION("verify-batch", "check the proofs of many blobs at once",
		"--setup FILE --blobs FILE --commitments FILE --proofs FILE [OPTION]..."),
	ACTION("verify-cells", "check cells of one blob or of many",
		"--setup FILE --commitment HEX --cells FILE --indices 0,5,... --proofs FILE "
		"[OPTION]...\n"
		"--setup FILE --commitments FILE --cells FILE --indices 0,5,... --proofs FILE "
		"[OPTION]..."),
};

static int action_main(int argc, char **argv)
{
	struct options o = { .action = argv[0], .device.verb = NAME };
	struct outboard_kzg_options setup = { 0 };
	struct outboard_error error;
	size_t i = 0;
	int code;

	while (strcmp(actions[i].name, argv[0]) != 0) /* one of them, or it would not be called */
		i++;
	code = ob_options_parse(&commands[i], &o, argc, argv);
	if (code != OB_OPTIONS_GO)
		return code;
	if (!o.setup)
		return ob_usage_error(
			&commands[i], "--setup is missing: the file of a trusted setup");
	if (!obx_devices_open(&o.device, guess(&o), &code))
		return code;
	setup.table_bytes = o.table << 20;
	if (outboard_kzg_load_file(o.device.context, o.setup, &setup, &o.kzg, &error) !=
		OUTBOARD_OK)
		code = obx_devices_refused(&o.device, &error);
	else
		code = actions[i].run(&o);
	outboard_kzg_free(o.kzg);
	obx_devices_close(&o.device);
	return code;
}

const struct ob_command obx_kzg_command = {
	.name = "outboard kzg",
	.group = OBX_GROUP_COMPUTE,
	.summary = "KZG commitments, proofs and cells of blobs",
	.about = "KZG commitments over BLS12-381 as in EIP-4844 and EIP-7594.",
	.commands = (const struct ob_command *const[]){ &commands[0], &commands[1], &commands[2],
		&commands[3], &commands[4], &commands[5], &commands[6], &obx_kzg_bench_command,
		NULL },
};
