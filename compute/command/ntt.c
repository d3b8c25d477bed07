/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* outboard ntt: number-theoretic transforms of files, on the CPU and GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "compute/command/answer.h"
#include "compute/command/devices.h"
#include "compute/command/input.h"
#include "compute/command/kernel_bench.h"
#include "compute/command/ntt_check.h"
#include "compute/command/progress.h"
#include "compute/ntt/ntt.h"
#include "tools/command.h"

#define NAME      "ntt"
#define MAX_BYTES (OBK_NTT_MAX_BATCH * OBK_FR_BYTES)

static int usage(FILE *out)
{
	fprintf(out,
		"usage: outboard ntt --in FILE --out FILE [--log-n N] [--inverse] [--order "
		"nn|nr|rn|rr] [--coset HEX] [--verify] [--json]\n"
		"       outboard ntt bench [--from N] [--to N] [--runs N] [--json] [--plot "
		"F.svg]\n\n"
		"Transforms elements of the scalar field of BLS12-381, 32 bytes each, the highest "
		"first. FILE: raw or hex in, raw out.\n"
		"--log-n N: transforms of 2^N elements, as many as the file holds; default: the "
		"whole file is one.\n"
		"--order: natural or bit-reversed, in and out. --coset: the shift, 32 bytes.\n"
		"--verify: the polynomial's value at a random point, from what went in and from "
		"what came out, must be one.\n" OBX_DEVICES_USAGE
		"bench times transforms of 2^from to 2^to elements by the CPU and a GPU, from host "
		"memory to host memory, and compares the results.\n");
	return out == stdout ? 0 : OBX_EXIT_USAGE;
}

struct options {
	const char *in, *out;
	bool json, have_log, check;
	struct obk_ntt_job job; /* the requested transform, without a pool */
	struct obx_devices device;
};

static bool run_job(struct options *o, struct obk_fr *x)
{
	struct obx_progress bar;
	struct outboard_ticket *ticket = NULL;
	struct outboard_call call = {
		.ticket = &ticket, .progress = obx_devices_progress, .arg = &bar
	};
	struct outboard_ntt_shape shape = { .log_n = o->job.log_n,
		.inverse = o->job.direction == OBK_NTT_INVERSE,
		.order = o->job.order,
		.format = OUTBOARD_SCALAR_MONTGOMERY,
		.coset = o->job.coset };
	struct outboard_error error;
	struct outboard_ntt *ntt = NULL;
	int status = outboard_ntt_new(o->device.context, &shape, &ntt, &error);

	if (status == OUTBOARD_OK) {
		obx_progress_begin(&bar, "transforming");
		status = outboard_ntt_run(ntt, x, o->job.batch, OUTBOARD_HOST, &call, &error);
		status = obx_devices_wait(&o->device, status, ticket, &error);
		obx_progress_end(&bar);
	}
	outboard_ntt_free(ntt);
	if (status != OUTBOARD_OK)
		obx_devices_refused(&o->device, &error);
	return status == OUTBOARD_OK;
}

/*
 * Transforms x. To check the result, compares it with a copy of the input at a random point. False:
 * a message was printed.
 */
static bool transform(struct options *o, struct obk_fr *x, size_t elements)
{
	struct obk_fr *before = o->check ? malloc(elements * sizeof(*x)) : NULL;
	bool fine = !o->check || before;

	if (before)
		memcpy(before, x, elements * sizeof(*x));
	else if (o->check)
		fprintf(stderr, "outboard ntt: no memory to verify\n");
	fine = fine && run_job(o, x);
	for (size_t b = 0; o->check && fine && b < o->job.batch; b++)
		fine = obx_ntt_agrees(
			&o->job, before + (b << o->job.log_n), x + (b << o->job.log_n));
	free(before);
	return fine;
}

static void print_done(const struct options *o)
{
	struct obx_answer answer;

	obx_answer_begin(&answer, o->json, &o->device);
	if (!o->json) {
		printf("2^%u elements, %zu times\n", o->job.log_n, o->job.batch);
		return;
	}
	ob_json_uint(&answer.json, "log_n", o->job.log_n);
	ob_json_uint(&answer.json, "batch", o->job.batch);
	obx_answer_verified(&answer, o->check);
	obx_answer_end(&answer);
}

static int run(struct options *o)
{
	size_t n, elements;
	uint8_t *bytes = obx_input_file(NAME, o->in, MAX_BYTES, &n);
	struct obk_fr *x = bytes ? malloc(n + sizeof(*x)) : NULL;
	int code = OBX_EXIT_UNWELL;

	if (!x)
		goto out;
	elements = n / OBK_FR_BYTES;
	while (!o->have_log && (size_t)1 << o->job.log_n < elements)
		o->job.log_n++;
	if (n % OBK_FR_BYTES || !elements || elements & (((size_t)1 << o->job.log_n) - 1)) {
		fprintf(stderr,
			"outboard ntt: %s has %zu bytes, which are not transforms of 2^%u elements "
			"of 32 bytes\n",
			o->in, n, o->job.log_n);
		goto out;
	}
	o->job.batch = elements >> o->job.log_n;
	for (size_t i = 0; i < elements; i++) {
		if (!obk_fr_from_bytes(&x[i], bytes + i * OBK_FR_BYTES)) {
			fprintf(stderr,
				"outboard ntt: element %zu of %s is not below the field's prime\n",
				i, o->in);
			goto out;
		}
	}
	if (!obx_devices_open(&o->device,
		    obx_devices_guess_ntt(&o->device, o->job.log_n, o->job.batch), &code) ||
		!transform(o, x, elements))
		goto out;
	for (size_t i = 0; i < elements; i++)
		obk_fr_to_bytes(bytes + i * OBK_FR_BYTES, &x[i]);
	if (!obx_output_file(NAME, o->out, bytes, n))
		goto out;
	print_done(o);
	code = 0;
out:
	obx_devices_close(&o->device);
	free(x);
	free(bytes);
	return code;
}

/* Takes one option with its value; returns 0 or an exit code. */
static int take(struct options *o, const char *option, const char *value, struct obk_fr *coset)
{
	static const char *const orders[] = { "nn", "nr", "rn", "rr" };
	uint8_t shift[OBK_FR_BYTES];
	unsigned order = 0;
	uint64_t number;
	int code = 0;
	size_t n;

	if (strcmp(option, "--in") == 0) {
		o->in = value;
	} else if (strcmp(option, "--out") == 0) {
		o->out = value;
	} else if (strcmp(option, "--log-n") == 0) {
		o->have_log = true;
		if (!ob_text_parse_number(value, 0, OBK_NTT_MAX_LOG_N, &number))
			return obx_usage_error(NAME, "--log-n is a number from 0 to %d, not '%s'",
				OBK_NTT_MAX_LOG_N, value);
		o->job.log_n = (unsigned)number;
	} else if (strcmp(option, "--coset") == 0) {
		if (!obx_input_hex(value, strlen(value), shift, sizeof shift, &n) ||
			n != sizeof shift || !obk_fr_from_bytes(coset, shift))
			return obx_usage_error(
				NAME, "--coset is not 32 bytes of hex below the field's prime");
		o->job.coset = coset;
	} else if (strcmp(option, "--order") == 0) {
		while (order < ob_count(orders) && strcmp(value, orders[order]) != 0)
			order++;
		if (order == ob_count(orders))
			return obx_usage_error(NAME, "--order is nn, nr, rn or rr");
		o->job.order = order;
	} else if (!obx_devices_take(&o->device, option, value, &code) && !code) {
		return obx_option_unknown(NAME, option);
	}
	return code;
}

static bool take_flag(struct options *o, const char *name)
{
	const struct {
		const char *name;
		bool *at;
	} flags[] = { { "--json", &o->json }, { "--verify", &o->check },
		{ "--stats", &o->device.stats } };

	for (size_t i = 0; i < ob_count(flags); i++) {
		if (strcmp(name, flags[i].name) == 0) {
			*flags[i].at = true;
			return true;
		}
	}
	if (strcmp(name, "--inverse") != 0)
		return false;
	o->job.direction = OBK_NTT_INVERSE;
	return true;
}

int obx_ntt_main(int argc, char **argv)
{
	struct options o = { .job.order = OBK_NTT_NN, .device.verb = NAME };
	struct obk_fr coset;
	int code;

	if (argc > 1 && strcmp(argv[1], "bench") == 0)
		return obx_kernel_bench_help(argc, argv) ? usage(stdout)
							 : obx_ntt_bench(argc, argv);
	for (int a = 1; a < argc; a++) {
		if (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0)
			return usage(stdout);
		if (take_flag(&o, argv[a]))
			continue;
		if (a + 1 == argc)
			return obx_option_unknown(NAME, argv[a]);
		code = take(&o, argv[a], argv[a + 1], &coset);
		if (code)
			return code;
		a++;
	}
	return o.in && o.out ? run(&o) : obx_usage_error(NAME, "--in and --out are needed");
}
