/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* outboard ntt: number-theoretic transforms of files, on this machine's processor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kernels/ntt/ntt.h"
#include "tools/command.h"
#include "tools/input.h"
#include "tools/kernel_bench.h"
#include "tools/ntt_check.h"

#define NAME "ntt"
#define MAX_BYTES (OBK_NTT_MAX_BATCH * OBK_FR_BYTES)

static int usage(FILE *out)
{
	fprintf(out,
		"usage: outboard ntt --in FILE --out FILE [--log-n N] [--inverse] [--order nn|nr|rn|rr] [--coset HEX] [--verify] [--threads N] [--json]\n"
		"       outboard ntt bench [--from N] [--to N] [--runs N] [--threads N] [--json] [--plot F.svg]\n\n"
		"Transforms elements of the scalar field of BLS12-381, 32 bytes each, the highest first. FILE: raw or hex in, raw out.\n"
		"--log-n N: transforms of 2^N elements, as many as the file holds; default: the whole file is one.\n"
		"--order: natural or bit-reversed, in and out. --coset: the shift, 32 bytes. --device: auto, cpu or gpu.\n"
		"--verify: the polynomial's value at a random point, from what went in and from what came out, must be one.\n"
		"bench times transforms of 2^from to 2^to elements.\n");
	return out == stdout ? 0 : OBX_EXIT_USAGE;
}

/* Transforms x; check: its copy from before, room for it, is compared at a random point. False: said why. */
static bool transform(const struct obk_ntt_job *job, struct obk_fr *x, size_t elements, bool check)
{
	struct obk_fr *before = check ? malloc(elements * sizeof(*x)) : NULL;
	struct obk_fault fault = { .text = "no memory to verify" };
	bool fine = !check || before;

	if (before)
		memcpy(before, x, elements * sizeof(*x));
	fine = fine && obk_ntt_run(job, x, &fault) == OB_ERR_NONE;
	if (!fine)
		fprintf(stderr, "outboard ntt: %s\n", fault.text);
	for (size_t b = 0; check && fine && b < job->batch; b++)
		fine = obx_ntt_agrees(job, before + (b << job->log_n), x + (b << job->log_n));
	free(before);
	return fine;
}

static int run(struct obk_ntt_job *job, const char *in, const char *out, bool json, bool have_log, bool check)
{
	size_t n, elements;
	uint8_t *bytes = obx_input_file(NAME, in, MAX_BYTES, &n);
	struct obk_fr *x = bytes ? malloc(n + sizeof(*x)) : NULL;
	int code = OBX_EXIT_UNWELL;

	if (!x)
		goto out;
	elements = n / OBK_FR_BYTES;
	while (!have_log && (size_t)1 << job->log_n < elements)
		job->log_n++;
	if (n % OBK_FR_BYTES || !elements || elements & (((size_t)1 << job->log_n) - 1)) {
		fprintf(stderr, "outboard ntt: %s has %zu bytes, which are not transforms of 2^%u elements of 32 bytes\n", in, n, job->log_n);
		goto out;
	}
	job->batch = elements >> job->log_n;
	for (size_t i = 0; i < elements; i++) {
		if (!obk_fr_from_bytes(&x[i], bytes + i * OBK_FR_BYTES)) {
			fprintf(stderr, "outboard ntt: element %zu of %s is not below the field's prime\n", i, in);
			goto out;
		}
	}
	if (!transform(job, x, elements, check))
		goto out;
	for (size_t i = 0; i < elements; i++)
		obk_fr_to_bytes(bytes + i * OBK_FR_BYTES, &x[i]);
	if (!obx_output_file(NAME, out, bytes, n))
		goto out;
	printf(json ? "{\"log_n\": %u, \"batch\": %zu}\n" : "2^%u elements, %zu times\n", job->log_n, job->batch);
	code = 0;
out:
	free(x);
	free(bytes);
	return code;
}

int obx_ntt_main(int argc, char **argv)
{
	static const char *const orders[] = { "nn", "nr", "rn", "rr" };
	struct obk_ntt_job job = { .order = OBK_NTT_NN };
	const char *in = NULL, *out = NULL;
	uint8_t shift[OBK_FR_BYTES];
	struct obk_fr coset;
	bool json = false, have_log = false, check = false;
	enum obx_device device = OBX_DEVICE_AUTO;
	uint64_t threads = 0, number;
	size_t n;
	int code;

	if (argc > 1 && strcmp(argv[1], "bench") == 0)
		return obx_ntt_bench(argc, argv);
	for (int a = 1; a < argc; a++) {
		const char *value = a + 1 < argc ? argv[a + 1] : NULL;

		if (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0)
			return usage(stdout);
		if (strcmp(argv[a], "--json") == 0 || strcmp(argv[a], "--inverse") == 0 || strcmp(argv[a], "--verify") == 0) {
			json |= argv[a][2] == 'j';
			check |= argv[a][2] == 'v';
			job.direction = argv[a][2] == 'i' ? OBK_NTT_INVERSE : job.direction;
			continue;
		}
		if (!value)
			return obx_usage_error(NAME, "unknown option or missing value: '%s'", argv[a]);
		if (strcmp(argv[a], "--in") == 0) {
			in = value;
		} else if (strcmp(argv[a], "--out") == 0) {
			out = value;
		} else if (strcmp(argv[a], "--threads") == 0) {
			if (!ob_text_parse_number(value, 1, OBK_POOL_MAX_THREADS, &threads))
				return obx_usage_error(NAME, "--threads is a number from 1 to %d, not '%s'", OBK_POOL_MAX_THREADS, value);
		} else if (strcmp(argv[a], "--device") == 0) {
			if (!obx_device_take(NAME, value, &device))
				return OBX_EXIT_USAGE;
		} else if (strcmp(argv[a], "--log-n") == 0) {
			have_log = true;
			if (!ob_text_parse_number(value, 0, OBK_NTT_MAX_LOG_N, &number))
				return obx_usage_error(NAME, "--log-n is a number from 0 to %d, not '%s'", OBK_NTT_MAX_LOG_N, value);
			job.log_n = (unsigned)number;
		} else if (strcmp(argv[a], "--coset") == 0) {
			if (!obx_input_hex(value, strlen(value), shift, sizeof shift, &n) || n != sizeof shift || !obk_fr_from_bytes(&coset, shift))
				return obx_usage_error(NAME, "--coset is not 32 bytes of hex below the field's prime");
			job.coset = &coset;
		} else if (strcmp(argv[a], "--order") == 0) {
			unsigned order = 0;

			while (order < 4 && strcmp(value, orders[order]) != 0)
				order++;
			if (order == 4)
				return obx_usage_error(NAME, "--order is nn, nr, rn or rr");
			job.order = order;
		} else {
			return obx_usage_error(NAME, "unknown option '%s'", argv[a]);
		}
		a++;
	}
	if (!in || !out)
		return obx_usage_error(NAME, "--in and --out are needed");
	if (!obx_device_have(NAME, device))
		return OBX_EXIT_UNWELL;
	if (obk_pool_new((unsigned)threads, &job.pool) != OB_ERR_NONE)
		return obx_usage_error(NAME, "%u threads cannot be started", (unsigned)threads);
	code = run(&job, in, out, json, have_log, check);
	obk_pool_free(job.pool);
	return code;
}
