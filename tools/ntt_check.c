/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "tools/command.h"
#include "tools/kernel_bench.h"
#include "tools/ntt_check.h"

#define NAME "ntt"
#define BLOCK 4096

static size_t place(size_t i, unsigned log_n, bool reversed)
{
	return reversed ? obk_ntt_reverse_bits((uint32_t)i, log_n) : i;
}

static struct obk_fr value_of_coefficients(const struct obk_fr *c, unsigned log_n, bool reversed, const struct obk_fr *z)
{
	struct obk_fr sum = obk_fr_zero;

	for (size_t j = (size_t)1 << log_n; j-- > 0;) {
		obk_fr_mul(&sum, &sum, z);
		obk_fr_add(&sum, &sum, &c[place(j, log_n, reversed)]);
	}
	return sum;
}

/* (z^n - g^n) / (n g^n) times the sum of X_k x_k / (z - x_k), x_k = g w^k; z is none of them. */
static struct obk_fr value_of_values(const struct obk_fr *values, unsigned log_n, bool reversed, const struct obk_fr *shift, const struct obk_fr *z)
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

bool obx_ntt_agrees(const struct obk_ntt_job *job, const struct obk_fr *in, const struct obk_fr *out)
{
	bool inverse = job->direction == OBK_NTT_INVERSE, in_reversed = job->order == OBK_NTT_RN || job->order == OBK_NTT_RR;
	bool out_reversed = job->order == OBK_NTT_NR || job->order == OBK_NTT_RR;
	const struct obk_fr *shift = job->coset ? job->coset : &obk_fr_one;
	struct obk_fr z, have, want;
	uint64_t plain[4];

	/* a random point is one of the transform's with a chance of n / r */
	if (getrandom(plain, sizeof plain, 0) != sizeof plain) {
		fprintf(stderr, "outboard ntt: no random numbers to verify with\n");
		return false;
	}
	obk_fr_from_plain(&z, plain);
	want = value_of_coefficients(inverse ? out : in, job->log_n, inverse ? out_reversed : in_reversed, &z);
	have = value_of_values(inverse ? in : out, job->log_n, inverse ? in_reversed : out_reversed, shift, &z);
	if (obk_fr_equal(&have, &want))
		return true;
	fprintf(stderr, "outboard ntt: the transform does not verify: this machine or this program is at fault; try OUTBOARD_OPT=-all, and report it\n");
	return false;
}

struct bench {
	struct obk_ntt_job job;
	struct obk_fr *data;
};

static bool work(void *arg)
{
	struct bench *b = arg;
	struct obk_fault fault;

	if (obk_ntt_run(&b->job, b->data, &fault) == OB_ERR_NONE)
		return true;
	fprintf(stderr, "outboard ntt: %s\n", fault.text);
	return false;
}

int obx_ntt_bench(int argc, char **argv)
{
	struct obx_kernel_bench b = { .verb = NAME, .what = "forward transforms over Fr of BLS12-381, natural order in, bit-reversed out", .from = 10, .to = 18,
		.runs = 5 };
	int code = obx_kernel_bench_options(&b, argc, argv, 2, 0, OBK_NTT_MAX_LOG_N, NULL, NULL);
	struct bench w = { .job = { .order = OBK_NTT_NR, .batch = 1 } };
	bool fine = true;

	if (code)
		return code;
	w.data = malloc(sizeof(*w.data) << b.to);
	if (!w.data || obk_pool_new(b.threads, &w.job.pool) != OB_ERR_NONE) {
		fprintf(stderr, "outboard ntt: no memory for 2^%u elements, or no threads\n", b.to);
		free(w.data);
		return OBX_EXIT_UNWELL;
	}
	b.threads = obk_pool_threads(w.job.pool);
	for (size_t i = 0; i < (size_t)1 << b.to; i++)
		obk_fr_from_plain(&w.data[i], (uint64_t[4]){ i * i, ~i, i * 0x9e3779b97f4a7c15u, i });
	for (unsigned log_n = b.from; log_n <= b.to && fine; log_n++) {
		char name[16];

		w.job.log_n = log_n;
		snprintf(name, sizeof name, "2^%u", log_n);
		fine = obx_kernel_bench_row(&b, name, (double)((size_t)1 << log_n), work, &w);
	}
	code = fine ? obx_kernel_bench_show(&b) : OBX_EXIT_UNWELL;
	obk_pool_free(w.job.pool);
	free(w.data);
	return code;
}
