/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* outboard kzg: commitments and proofs of files, on this machine's processor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kernels/kzg/kzg.h"
#include "kernels/msm/tune.h"
#include "kernels/pool/pool.h"
#include "tools/command.h"
#include "tools/input.h"
#include "tools/kernel_bench.h"
#include "tools/kzg_check.h"

#define MAX_CELLS_BYTES ((size_t)OBK_KZG_CELLS * OBK_KZG_CELL_BYTES)
#define MAX_FILE_BLOBS 4096
#define NAME "kzg"

struct options {
	const char *action, *setup, *blob, *commitment, *proof, *z, *y, *cells, *indices, *out;
	const char *blobs, *commitments, *proofs;
	bool json, verify;
	struct obk_pool *pool;
	struct obk_kzg *kzg;
};

static int usage(FILE *out)
{
	fprintf(out,
		"usage: outboard kzg ACTION --setup FILE ...\n"
		"       outboard kzg bench --setup FILE [--window 1..10] [--runs N] [--plot F.svg]\n\n"
		"KZG commitments over BLS12-381 as in EIP-4844 and EIP-7594. FILE: a trusted setup in c-kzg-4844's text.\n\n"
		"  commit  --blob F                                the commitment\n"
		"  prove   --blob F --z X                          the proof and the value at z\n"
		"  prove   --blob F --commitment X                 the proof of the blob\n"
		"  verify  --commitment X --z X --y X --proof X    exit code 0 if valid, 1 if not\n"
		"  verify  --blob F --commitment X --proof X       likewise\n"
		"  verify-batch --blobs F --commitments F --proofs F          as many blobs as the file holds, all at once\n"
		"  cells   --blob F --out F                        writes the 128 cells; prints their 128 proofs\n"
		"  recover --cells F --indices 0,5,.. --out F      all cells from at least 64, which F holds one after the other\n"
		"  verify-cells --commitment X --cells F --indices 0,5,.. --proofs F   cells of one blob; --commitments F: one for each cell\n\n"
		"X: hex, with or without 0x. F: a file, raw or hex. --json prints one object. --threads N, default all. --device auto, cpu or gpu.\n"
		"--verify: what commit, prove, cells and recover computed is proven and checked by pairings before it is given out.\n");
	return out == stdout ? 0 : OBX_EXIT_USAGE;
}

static int refused(const struct obk_fault *fault)
{
	fprintf(stderr, "outboard kzg: %s\n", fault->text);
	return OBX_EXIT_UNWELL;
}

static void print_bytes(const struct options *o, const char *name, const uint8_t *bytes, size_t n, bool last)
{
	printf(o->json ? "\"%s\": \"0x" : "%s 0x", name);
	for (size_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	printf(o->json ? last ? "\"}\n" : "\", " : "\n");
}

/* `want` bytes of hex from the command line; false: said why. */
static bool take_hex(const char *option, const char *text, uint8_t *out, size_t want)
{
	size_t n;

	if (!text) {
		obx_usage_error(NAME, "%s is missing", option);
		return false;
	}
	if (!obx_input_hex(text, strlen(text), out, want, &n) || n != want) {
		obx_usage_error(NAME, "%s is not %zu bytes of hex", option, want);
		return false;
	}
	return true;
}

static uint8_t *take_blob(const struct options *o)
{
	size_t n;
	uint8_t *blob = o->blob ? obx_input_file(NAME, o->blob, OBK_KZG_BLOB_BYTES, &n) : NULL;

	if (!o->blob)
		obx_usage_error(NAME, "--blob is missing");
	if (blob && n != OBK_KZG_BLOB_BYTES) {
		fprintf(stderr, "outboard kzg: %s has %zu bytes; a blob has %d\n", o->blob, n, OBK_KZG_BLOB_BYTES);
		free(blob);
		return NULL;
	}
	return blob;
}

static int commit(const struct options *o)
{
	uint8_t out[OBK_KZG_POINT_BYTES], *blob = take_blob(o);
	struct obk_fault fault;
	enum ob_err err;

	if (!blob)
		return OBX_EXIT_USAGE;
	err = obk_kzg_commit(o->kzg, blob, out, &fault);
	if (err) {
		free(blob);
		return refused(&fault);
	}
	if (o->verify && !obx_kzg_check_commitment(o->kzg, blob, out)) {
		free(blob);
		return OBX_EXIT_UNWELL;
	}
	free(blob);
	printf(o->json ? "{" : "");
	print_bytes(o, "commitment", out, sizeof out, true);
	return 0;
}

static int prove(const struct options *o)
{
	uint8_t z[OBK_KZG_POINT_BYTES], proof[OBK_KZG_POINT_BYTES], y[OBK_KZG_ELEMENT_BYTES], *blob;
	struct obk_fault fault;
	enum ob_err err;

	if (o->z ? !take_hex("--z", o->z, z, OBK_KZG_ELEMENT_BYTES) : !take_hex("--commitment or --z", o->commitment, z, OBK_KZG_POINT_BYTES))
		return OBX_EXIT_USAGE;
	blob = take_blob(o);
	if (!blob)
		return OBX_EXIT_USAGE;
	err = o->z ? obk_kzg_prove(o->kzg, blob, z, proof, y, &fault) : obk_kzg_prove_blob(o->kzg, blob, z, proof, &fault);
	if (!err && o->verify && !obx_kzg_check_proof(o->kzg, blob, o->z ? NULL : z, o->z ? z : NULL, y, proof)) {
		free(blob);
		return OBX_EXIT_UNWELL;
	}
	free(blob);
	if (err)
		return refused(&fault);
	printf(o->json ? "{" : "");
	print_bytes(o, "proof", proof, sizeof proof, !o->z);
	if (o->z)
		print_bytes(o, "y", y, sizeof y, true);
	return 0;
}

static int say_valid(const struct options *o, bool valid)
{
	printf(o->json ? "{\"valid\": %s}\n" : "%s\n", o->json ? valid ? "true" : "false" : valid ? "valid" : "not valid");
	return valid ? 0 : OBX_EXIT_UNWELL;
}

static int verify(const struct options *o)
{
	uint8_t c[OBK_KZG_POINT_BYTES], p[OBK_KZG_POINT_BYTES], z[OBK_KZG_ELEMENT_BYTES], y[OBK_KZG_ELEMENT_BYTES], *blob;
	struct obk_fault fault;
	bool valid = false;
	enum ob_err err;

	if (!take_hex("--commitment", o->commitment, c, sizeof c) || !take_hex("--proof", o->proof, p, sizeof p))
		return OBX_EXIT_USAGE;
	if (o->blob) {
		blob = take_blob(o);
		if (!blob)
			return OBX_EXIT_USAGE;
		err = obk_kzg_verify_blob(o->kzg, blob, c, p, &valid, &fault);
		free(blob);
	} else {
		if (!take_hex("--z", o->z, z, sizeof z) || !take_hex("--y", o->y, y, sizeof y))
			return OBX_EXIT_USAGE;
		err = obk_kzg_verify(o->kzg, c, z, y, p, &valid, &fault);
	}
	if (err)
		return refused(&fault);
	return say_valid(o, valid);
}

static int put_cells(const struct options *o, const uint8_t *cells, const uint8_t *proofs)
{
	if (!obx_output_file(NAME, o->out, cells, MAX_CELLS_BYTES))
		return OBX_EXIT_UNWELL;
	if (o->json)
		printf("{\"cells\": %d, ", OBK_KZG_CELLS);
	for (size_t i = 0; i < OBK_KZG_CELLS; i++) {
		char name[16];

		snprintf(name, sizeof name, "proof%zu", i);
		print_bytes(o, name, proofs + i * OBK_KZG_POINT_BYTES, OBK_KZG_POINT_BYTES, i + 1 == OBK_KZG_CELLS);
	}
	return 0;
}

/* At most `room` of them; 0: none, or no list of numbers. */
static size_t take_indices(const char *text, uint64_t *indices, size_t room)
{
	size_t n = 0;

	while (text && *text && n < room) {
		char *end;

		indices[n++] = strtoull(text, &end, 10);
		if (end == text || (*end && *end != ','))
			return 0;
		text = *end ? end + 1 : end;
	}
	return text && !*text ? n : 0;
}

static int extend(const struct options *o)
{
	bool recover = strcmp(o->action, "recover") == 0;
	uint8_t *out, *in, proofs[OBK_KZG_CELLS * OBK_KZG_POINT_BYTES];
	uint64_t indices[OBK_KZG_CELLS];
	size_t n = 0, given = recover ? take_indices(o->indices, indices, OBK_KZG_CELLS) : 0;
	struct obk_fault fault;
	enum ob_err err;
	int code;

	if (!o->out || (recover && (!o->cells || !given)))
		return obx_usage_error(NAME, recover ? "recover needs --cells, --indices with up to 128 numbers and --out" : "cells needs --out");
	in = recover ? obx_input_file(NAME, o->cells, MAX_CELLS_BYTES, &n) : take_blob(o);
	if (!in)
		return OBX_EXIT_USAGE;
	if (recover && n != given * OBK_KZG_CELL_BYTES) {
		fprintf(stderr, "outboard kzg: %s has %zu bytes; %zu indices need %zu cells of %d bytes\n", o->cells, n, given, given, OBK_KZG_CELL_BYTES);
		free(in);
		return OBX_EXIT_USAGE;
	}
	out = malloc(MAX_CELLS_BYTES);
	if (!out) {
		fprintf(stderr, "outboard kzg: no memory for the cells\n");
		free(in);
		return OBX_EXIT_UNWELL;
	}
	err = recover ? obk_kzg_recover(o->kzg, indices, in, given, out, proofs, &fault) : obk_kzg_cells(o->kzg, in, out, proofs, &fault);
	code = err ? refused(&fault) : o->verify && !obx_kzg_check_cells(o->kzg, out, proofs) ? OBX_EXIT_UNWELL : put_cells(o, out, proofs);
	free(out);
	free(in);
	return code;
}

/* A file of items of `each` bytes, *n of them (0: as many as it holds); NULL: said why. */
static uint8_t *take_items(const char *option, const char *path, size_t each, size_t most, size_t *n)
{
	size_t bytes, want = *n;
	uint8_t *data;

	if (!path) {
		obx_usage_error(NAME, "%s is missing", option);
		return NULL;
	}
	data = obx_input_file(NAME, path, most * each, &bytes);
	if (!data)
		return NULL;
	*n = bytes / each;
	if (bytes % each == 0 && (!want || *n == want))
		return data;
	if (want)
		fprintf(stderr, "outboard kzg: %s has %zu bytes; %zu items of %zu bytes each are needed\n", path, bytes, want, each);
	else
		fprintf(stderr, "outboard kzg: %s has %zu bytes, which are not items of %zu bytes each: item %zu is cut short\n", path, bytes, each, *n);
	free(data);
	return NULL;
}

static int verify_batch(const struct options *o)
{
	size_t n = 0;
	uint8_t *blobs = take_items("--blobs", o->blobs, OBK_KZG_BLOB_BYTES, MAX_FILE_BLOBS, &n);
	uint8_t *commitments = blobs ? take_items("--commitments", o->commitments, OBK_KZG_POINT_BYTES, n, &n) : NULL;
	uint8_t *proofs = commitments ? take_items("--proofs", o->proofs, OBK_KZG_POINT_BYTES, n, &n) : NULL;
	struct obk_fault fault;
	int code = OBX_EXIT_USAGE;
	bool valid = false;

	if (proofs)
		code = obk_kzg_verify_blob_batch(o->kzg, blobs, commitments, proofs, n, &valid, &fault) ? refused(&fault) : say_valid(o, valid);
	free(proofs);
	free(commitments);
	free(blobs);
	return code;
}

/* The commitment of each of n cells: one for all, or a file of them. */
static uint8_t *take_commitments(const struct options *o, size_t n)
{
	uint8_t one[OBK_KZG_POINT_BYTES], *all;

	if (o->commitments)
		return take_items("--commitments", o->commitments, OBK_KZG_POINT_BYTES, n, &n);
	if (!take_hex("--commitment or --commitments", o->commitment, one, sizeof one))
		return NULL;
	all = malloc(n * sizeof one);
	for (size_t i = 0; all && i < n; i++)
		memcpy(all + i * sizeof one, one, sizeof one);
	return all;
}

static int verify_cells(const struct options *o)
{
	uint64_t *indices = malloc(OBK_KZG_MAX_BATCH * sizeof(*indices));
	size_t n = indices ? take_indices(o->indices, indices, OBK_KZG_MAX_BATCH) : 0;
	uint8_t *cells = n ? take_items("--cells", o->cells, OBK_KZG_CELL_BYTES, n, &n) : NULL;
	uint8_t *commitments = cells ? take_commitments(o, n) : NULL;
	uint8_t *proofs = commitments ? take_items("--proofs", o->proofs, OBK_KZG_POINT_BYTES, n, &n) : NULL;
	struct obk_fault fault;
	int code = OBX_EXIT_USAGE;
	bool valid = false;

	if (!n)
		obx_usage_error(NAME, "verify-cells needs --indices, up to %u numbers with commas between", OBK_KZG_MAX_BATCH);
	if (proofs)
		code = obk_kzg_verify_cells(o->kzg, commitments, indices, cells, proofs, n, &valid, &fault) ? refused(&fault) : say_valid(o, valid);
	free(proofs);
	free(commitments);
	free(cells);
	free(indices);
	return code;
}

static const struct {
	const char *name;
	int (*run)(const struct options *o);
} actions[] = {
	{ "commit", commit }, { "prove", prove }, { "verify", verify }, { "cells", extend }, { "recover", extend }, { "verify-batch", verify_batch },
	{ "verify-cells", verify_cells },
};

/* The options behind the action; 0, or an exit code. */
static int take_options(struct options *o, int argc, char **argv, uint64_t *ret_threads)
{
	const struct { const char *name, **value; } texts[] = {
		{ "--setup", &o->setup }, { "--blob", &o->blob }, { "--commitment", &o->commitment }, { "--proof", &o->proof }, { "--z", &o->z },
		{ "--y", &o->y }, { "--cells", &o->cells }, { "--indices", &o->indices }, { "--out", &o->out }, { "--blobs", &o->blobs },
		{ "--commitments", &o->commitments }, { "--proofs", &o->proofs },
	};
	enum obx_device device = OBX_DEVICE_AUTO;

	for (int a = 2; a < argc; a++) {
		const char **value = NULL;

		for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
			if (strcmp(argv[a], texts[i].name) == 0)
				value = texts[i].value;
		}
		if (strcmp(argv[a], "--json") == 0 || strcmp(argv[a], "--verify") == 0) {
			*(argv[a][2] == 'j' ? &o->json : &o->verify) = true;
			continue;
		}
		if (a + 1 == argc)
			return obx_usage_error(NAME, value ? "%s needs a value" : "unknown option or missing value: '%s'", argv[a]);
		if (value) {
			*value = argv[++a];
		} else if (strcmp(argv[a], "--device") == 0) {
			if (!obx_device_take(NAME, argv[++a], &device))
				return OBX_EXIT_USAGE;
		} else if (strcmp(argv[a], "--threads") != 0) {
			return obx_usage_error(NAME, "unknown option or missing value: '%s'", argv[a]);
		} else if (!ob_text_parse_number(argv[++a], 1, OBK_POOL_MAX_THREADS, ret_threads)) {
			return obx_usage_error(NAME, "--threads is a number from 1 to %d, not '%s'", OBK_POOL_MAX_THREADS, argv[a]);
		}
	}
	return obx_device_have(NAME, device) ? 0 : OBX_EXIT_UNWELL;
}

int obx_kzg_main(int argc, char **argv)
{
	struct options o = { 0 };
	int (*run)(const struct options *) = NULL;
	uint64_t threads = 0;
	struct obk_fault fault;
	int code;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return usage(stdout);
	if (argc > 1 && strcmp(argv[1], "bench") == 0)
		return obx_kzg_bench(argc, argv);
	for (size_t i = 0; argc > 1 && i < sizeof actions / sizeof actions[0]; i++) {
		if (strcmp(argv[1], actions[i].name) == 0)
			run = actions[i].run;
	}
	if (!run)
		return obx_usage_error(NAME, argc > 1 ? "there is no action '%s'" : "an action is missing%s", argc > 1 ? argv[1] : "");
	o.action = argv[1];
	code = take_options(&o, argc, argv, &threads);
	if (code)
		return code;
	if (!o.setup)
		return obx_usage_error(NAME, "--setup is missing: the file of a trusted setup");
	if (obk_pool_new((unsigned)threads, &o.pool) != OB_ERR_NONE)
		return obx_usage_error(NAME, "%u threads cannot be started", (unsigned)threads);
	obk_tune_load_default();
	if (obk_kzg_load_file(o.setup, &(struct obk_kzg_options){ .pool = o.pool }, &o.kzg, &fault) != OB_ERR_NONE) {
		obk_pool_free(o.pool);
		return refused(&fault);
	}
	code = run(&o);
	obk_kzg_free(o.kzg);
	obk_pool_free(o.pool);
	return code;
}
