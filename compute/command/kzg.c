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
#define TABLE_MAX_MIB   65536
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

static int usage(FILE *out)
{
	fprintf(out,
		"usage: outboard kzg ACTION --setup FILE ...\n"
		"       outboard kzg bench --setup FILE [--window 2..10] [--blobs N] [--table MIB] "
		"[--runs N] [--plot F.svg]\n\n"
		"KZG commitments over BLS12-381 as in EIP-4844 and EIP-7594. FILE: a trusted setup "
		"in c-kzg-4844's text.\n\n"
		"  commit  --blob F                                the commitment\n"
		"  commit  --blobs F                               the commitments of all blobs in "
		"the file\n"
		"  prove   --blob F --z X                          the proof and the value at z\n"
		"  prove   --blob F --commitment X                 the proof of the blob\n"
		"  prove   --blobs F --commitments F               the proofs of all blobs in the "
		"file\n"
		"  verify  --commitment X --z X --y X --proof X    exit code 0 if valid, 1 if not\n"
		"  verify  --blob F --commitment X --proof X       likewise\n"
		"  verify-batch --blobs F --commitments F --proofs F          as many blobs as the "
		"file holds, all at once\n"
		"  cells   --blob F --out F                        writes the 128 cells; prints "
		"their 128 proofs\n"
		"  recover --cells F --indices 0,5,.. --out F      all cells from at least 64, "
		"which F holds one after the other\n"
		"  verify-cells --commitment X --cells F --indices 0,5,.. --proofs F    cells of "
		"one blob\n"
		"  verify-cells --commitments F --cells F --indices 0,5,.. --proofs F   cells of "
		"many blobs; F: a commitment for each cell\n\n"
		"X: hex, with or without 0x. F: a file, raw or hex. --json prints one object. "
		"--table MIB: memory for a table of the setup, on each device.\n" OBX_DEVICES_USAGE
		"GPUs do commit, prove and cells; the rest is the CPU's.\n"
		"--verify: what commit, prove, cells and recover computed is proven and checked by "
		"pairings before it is given out.\n");
	return out == stdout ? 0 : OBX_EXIT_USAGE;
}

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
	{ "commit", commit },
	{ "prove", prove },
	{ "verify", verify },
	{ "cells", extend },
	{ "recover", extend },
	{ "verify-batch", verify_batch },
	{ "verify-cells", verify_cells },
};

/* Takes the options after the action; returns 0 or an exit code. */
static int take_options(struct options *o, int argc, char **argv)
{
	const struct {
		const char *name, **value;
	} texts[] = {
		{ "--setup", &o->setup },
		{ "--blob", &o->blob },
		{ "--commitment", &o->commitment },
		{ "--proof", &o->proof },
		{ "--z", &o->z },
		{ "--y", &o->y },
		{ "--cells", &o->cells },
		{ "--indices", &o->indices },
		{ "--out", &o->out },
		{ "--blobs", &o->blobs },
		{ "--commitments", &o->commitments },
		{ "--proofs", &o->proofs },
	};
	const struct {
		const char *name;
		bool *at;
	} flags[] = { { "--json", &o->json }, { "--verify", &o->verify },
		{ "--stats", &o->device.stats } };

	for (int a = 2; a < argc; a++) {
		const char **value = NULL;
		bool *flag = NULL;
		int code = 0;

		for (size_t i = 0; i < ob_count(texts); i++)
			value = strcmp(argv[a], texts[i].name) == 0 ? texts[i].value : value;
		for (size_t i = 0; i < ob_count(flags); i++)
			flag = strcmp(argv[a], flags[i].name) == 0 ? flags[i].at : flag;
		if (flag) {
			*flag = true;
			continue;
		}
		if (a + 1 == argc)
			return obx_option_unknown(NAME, argv[a]);
		if (value)
			*value = argv[a + 1];
		else if (strcmp(argv[a], "--table") == 0 &&
			!ob_text_parse_number(argv[a + 1], 0, TABLE_MAX_MIB, &o->table))
			return obx_usage_error(NAME,
				"--table is a number of MiB up to %d, not '%s'", TABLE_MAX_MIB,
				argv[a + 1]);
		else if (strcmp(argv[a], "--table") != 0 &&
			!obx_devices_take(&o->device, argv[a], argv[a + 1], &code))
			return code ? code : obx_option_unknown(NAME, argv[a]);
		a++;
	}
	return 0;
}

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

int obx_kzg_main(int argc, char **argv)
{
	struct options o = { .device.verb = NAME };
	struct outboard_kzg_options options = { 0 };
	int (*run)(struct options *) = NULL;
	struct outboard_error error;
	int code;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return usage(stdout);
	if (argc > 1 && strcmp(argv[1], "bench") == 0)
		return obx_kernel_bench_help(argc, argv) ? usage(stdout)
							 : obx_kzg_bench(argc, argv);
	for (size_t i = 0; argc > 1 && i < ob_count(actions); i++) {
		if (strcmp(argv[1], actions[i].name) == 0)
			run = actions[i].run;
	}
	if (!run && argc > 1) {
		const char *names[ob_count(actions)];

		for (size_t i = 0; i < ob_count(actions); i++)
			names[i] = actions[i].name;
		return obx_word_unknown(NAME, "action", argv[1], names, ob_count(names));
	}
	if (!run)
		return obx_usage_error(NAME, "an action is missing");
	o.action = argv[1];
	code = take_options(&o, argc, argv);
	if (code)
		return code;
	if (!o.setup)
		return obx_usage_error(NAME, "--setup is missing: the file of a trusted setup");
	if (!obx_devices_open(&o.device, guess(&o), &code))
		return code;
	options.table_bytes = o.table << 20;
	if (outboard_kzg_load_file(o.device.context, o.setup, &options, &o.kzg, &error) !=
		OUTBOARD_OK)
		code = obx_devices_refused(&o.device, &error);
	else
		code = run(&o);
	outboard_kzg_free(o.kzg);
	obx_devices_close(&o.device);
	return code;
}
