/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "compute/command/kernel_bench.h"
#include "compute/command/ntt_check.h"
#include "compute/ntt/reverse.h"
#include "tools/command.h"

#define NAME  "ntt"
#define BLOCK 4096

static size_t place(size_t i, unsigned log_n, bool reversed)
{
	return reversed ? obk_ntt_reverse_bits((uint32_t)i, log_n) : i;
}

static struct obk_fr value_of_coefficients(
	const struct obk_fr *c, unsigned log_n, bool reversed, const struct obk_fr *z)
{
	struct obk_fr sum = obk_fr_zero;

	for (size_t j = (size_t)1 << log_n; j-- > 0;) {
		obk_fr_mul(&sum, &sum, z);
		obk_fr_add(&sum, &sum, &c[place(j, log_n, reversed)]);
	}
	return sum;
}

/*
 * (z^n - g^n) / (n g^n) times the sum of X_k x_k / (z - x_k), where x_k = g w^k and z is none of
 * the x_k.
 */
static struct obk_fr value_of_values(const struct obk_fr *values, unsigned log_n, bool reversed,
	const struct obk_fr *shift, const struct obk_fr *z)
{
	static struct obk_fr inverse[BLOCK], scratch[BLOCK], x[BLOCK];
	struct obk_fr sum = obk_fr_zero, w, at = *shift, t, gn = *shift, zn = *z;
	size_t n = (size_t)1 << log_n;

	obk_fr_root(&w, log_n);
	for (size_t first = 0; first < n; first += BLOCK) {
		size_t count = ob_min(n - first, BLOCK);

		for (size_t i = 0; i < count; i++) {
			x[i] = at;
			obk_fr_sub(&inverse[i], z, &at);
			obk_fr_mul(&at, &at, &w);
		}
		obk_fr_inv_batch(inverse, count, scratch);
		for (size_t i = 0; i < count; i++) {
			obk_fr_mul(&t, &inverse[i], &x[i]);
			obk_fr_mul(&t, &t, &values[place(first + i, log_n, reversed)]);
			obk_fr_add(&sum, &sum, &t);
		}
	}
	for (unsigned i = 0; i < log_n; i++) {
		obk_fr_sqr(&gn, &gn);
		obk_fr_sqr(&zn, &zn);
	}
	obk_fr_sub(&zn, &zn, &gn);
	obk_fr_from_plain(&t, (uint64_t[4]){ n });
	obk_fr_mul(&t, &t, &gn);
	obk_fr_inv(&t, &t);
	obk_fr_mul(&t, &t, &zn);
	obk_fr_mul(&sum, &sum, &t);
	return sum;
}

bool obx_ntt_agrees(
	const struct obk_ntt_job *job, const struct obk_fr *in, const struct obk_fr *out)
{
	bool inverse = job->direction == OBK_NTT_INVERSE,
	     in_reversed = job->order == OBK_NTT_RN || job->order == OBK_NTT_RR;
	bool out_reversed = job->order == OBK_NTT_NR || job->order == OBK_NTT_RR;
	const struct obk_fr *shift = job->coset ? job->coset : &obk_fr_one;
	struct obk_fr z, have, want;
	uint64_t plain[4];

	/* the probability that a random point is one of the transform's is n / r */
	if (getrandom(plain, sizeof plain, 0) != sizeof plain) {
		fprintf(stderr, "outboard ntt: no random numbers to verify with\n");
		return false;
	}
	obk_fr_from_plain(&z, plain);
	want = value_of_coefficients(
		inverse ? out : in, job->log_n, inverse ? out_reversed : in_reversed, &z);
	have = value_of_values(
		inverse ? in : out, job->log_n, inverse ? in_reversed : out_reversed, shift, &z);
	if (obk_fr_equal(&have, &want))
		return true;
	fprintf(stderr,
		"outboard ntt: the transform does not verify: this machine or this program is "
		"faulty; try OUTBOARD_OPT=-all, and report it\n");
	return false;
}

struct bench {
	const struct obx_kernel_bench *b;
	unsigned log_n;
	struct outboard_ntt *ntt[OBX_SIDES];
	struct obk_fr *data[OBX_SIDES]; /* the same numbers, transformed the same number of times */
};

static bool work(void *arg, enum obx_side side)
{
	struct bench *w = arg;
	struct outboard_error error;

	if (outboard_ntt_run(w->ntt[side], w->data[side], 1, OUTBOARD_HOST, NULL, &error) ==
		OUTBOARD_OK)
		return true;
	obx_devices_refused(&w->b->asked, &error);
	return false;
}

static bool bench_size(struct obx_kernel_bench *b, struct bench *w, unsigned log_n)
{
	struct outboard_ntt_shape shape = {
		.log_n = log_n, .order = OUTBOARD_NR, .format = OUTBOARD_SCALAR_MONTGOMERY
	};
	size_t n = (size_t)1 << log_n;
	struct outboard_error error;
	bool fine = true;
	char name[16];

	for (unsigned side = 0; side < OBX_SIDES && fine; side++) {
		fine = !b->side[side] ||
			outboard_ntt_new(b->side[side], &shape, &w->ntt[side], &error) ==
				OUTBOARD_OK;
		if (!fine)
			obx_devices_refused(&b->asked, &error);
	}
	snprintf(name, sizeof name, "2^%u", log_n);
	fine = fine && obx_kernel_bench_row(b, name, (double)n, true, work, w);
	for (unsigned side = 0; side < OBX_SIDES; side++) {
		outboard_ntt_free(w->ntt[side]);
		w->ntt[side] = NULL;
	}
	if (fine && b->side[OBX_GPU] &&
		memcmp(w->data[OBX_CPU], w->data[OBX_GPU], n * sizeof(*w->data[0])) != 0) {
		obx_kernel_bench_differ(b, name);
		fine = false;
	}
	return fine;
}

static const struct ob_option options[] = {
	OBX_KERNEL_BENCH_SIZES(struct obx_kernel_bench_alone, b, OBK_NTT_MAX_LOG_N, "10", "18"),
	OBX_KERNEL_BENCH_OPTIONS(struct obx_kernel_bench_alone, b),
	{ 0 },
};

static int bench_main(int argc, char **argv)
{
	struct obx_kernel_bench b = { .verb = NAME,
		.what = "forward transforms over Fr of BLS12-381, natural order in, bit-reversed "
			"out",
		.from = 10,
		.to = 18,
		.runs = 5 };
	int code = obx_kernel_bench_parse(&obx_ntt_bench_command, &b, &b, argc, argv);
	struct bench w = { .b = &b };
	bool fine = true;

	if (code != OB_OPTIONS_GO)
		return code;
	code = obx_kernel_bench_open(&b);
	for (unsigned side = 0; side < OBX_SIDES && !code; side++) {
		w.data[side] = b.side[side] ? malloc(sizeof(*w.data[side]) << b.to) : NULL;
		if (b.side[side] && !w.data[side]) {
			fprintf(stderr, "outboard ntt: no memory for 2^%u elements\n", b.to);
			code = OBX_EXIT_UNWELL;
		}
		for (size_t i = 0; w.data[side] && i < (size_t)1 << b.to; i++)
			obk_fr_from_plain(&w.data[side][i],
				(uint64_t[4]){ i * i, ~i, i * 0x9e3779b97f4a7c15u, i });
	}
	for (unsigned log_n = b.from; log_n <= b.to && fine && !code; log_n++)
		fine = bench_size(&b, &w, log_n);
	if (!code)
		code = fine ? obx_kernel_bench_show(&b) : OBX_EXIT_UNWELL;
	obx_kernel_bench_close(&b);
	free(w.data[OBX_CPU]);
	free(w.data[OBX_GPU]);
	return code;
}

const struct ob_command obx_ntt_bench_command = {
	.name = "outboard ntt bench",
	.summary = "time transforms by the CPU and a GPU, and compare the results",
	.about = "Times transforms of 2^from to 2^to elements by the CPU and a GPU, from host "
		 "memory "
		 "to host memory, and compares the results.",
	.options = options,
	.main = bench_main,
};
