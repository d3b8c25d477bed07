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
#define LOG_ALL   UINT32_MAX
#define MAX_BYTES (OBK_NTT_MAX_BATCH * OBK_FR_BYTES)

struct options {
	const char *in, *out;
	uint32_t log_n; /* LOG_ALL: the whole file is one transform */
	bool json, check;
	struct obk_fr coset;
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
	o->job.log_n = o->log_n == LOG_ALL ? 0 : o->log_n;
	while (o->log_n == LOG_ALL && (size_t)1 << o->job.log_n < elements)
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

static enum ob_err take_inverse(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	(void)option;
	(void)text;
	(void)ret_cause;
	((struct options *)target)->job.direction = OBK_NTT_INVERSE;
	return OB_ERR_NONE;
}

static enum ob_err take_coset(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	struct options *o = target;
	uint8_t shift[OBK_FR_BYTES];
	size_t n;

	(void)option;
	(void)ret_cause;
	if (!obx_input_hex(text, strlen(text), shift, sizeof shift, &n) || n != sizeof shift ||
		!obk_fr_from_bytes(&o->coset, shift))
		return OB_ERR_ARGUMENT;
	o->job.coset = &o->coset;
	return OB_ERR_NONE;
}

static const struct ob_option options[] = {
	{ OB_OPTION("in", OB_FILE, struct options, in), .arg = "FILE",
		.help = "elements of 32 bytes, the highest first; raw or hex" },
	{ OB_OPTION("out", OB_FILE, struct options, out), .arg = "FILE",
		.help = "where the result goes, raw" },
	{ OB_OPTION("log-n", OB_NUMBER, struct options, log_n), .arg = "N",
		.max = OBK_NTT_MAX_LOG_N, .fallback = "the whole file is one transform",
		.help = "transforms of 2^N elements, as many as the file holds" },
	{ .name = "inverse",
		.kind = OB_PARSED,
		.take = take_inverse,
		.help = "the inverse transform" },
	{ OB_OPTION("order", OB_CHOICE, struct options, job.order), .arg = "nn|nr|rn|rr",
		.words = "nn|nr|rn|rr", .fallback = "nn",
		.help = "order of the elements in and out: n: natural, r: bit-reversed" },
	{ .name = "coset",
		.kind = OB_PARSED,
		.take = take_coset,
		.arg = "HEX",
		.takes = "32 bytes of hex below the field's prime",
		.help = "the shift of a coset, 32 bytes" },
	{ OB_OPTION("verify", OB_FLAG, struct options, check),
		.help = "compare the polynomial's value at a random point, computed from the input "
			"and from the result" },
	{ OB_OPTION("json", OB_FLAG, struct options, json), .help = "print one JSON object" },
	OBX_DEVICES_OPTIONS(struct options, device),
	{ 0 },
};

static int ntt_main(int argc, char **argv)
{
	struct options o = { .log_n = LOG_ALL, .job.order = OBK_NTT_NN, .device.verb = NAME };
	int code = ob_options_parse(&obx_ntt_command, &o, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	return o.in && o.out ? run(&o)
			     : ob_usage_error(&obx_ntt_command, "--in and --out are needed");
}

const struct ob_command obx_ntt_command = {
	.name = "outboard ntt",
	.group = OBX_GROUP_COMPUTE,
	.summary = "number-theoretic transforms of files",
	.usage = "--in FILE --out FILE [OPTION]...\nbench [OPTION]...",
	.about = "Transforms elements of the scalar field of BLS12-381.",
	.options = options,
	.commands = (const struct ob_command *const[]){ &obx_ntt_bench_command, NULL },
	.main = ntt_main,
};
