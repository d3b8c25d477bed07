/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 *     ntt_large [-t threads] [-r] FROM TO
 *
 * Transforms of 2^FROM .. 2^TO elements, in natural order on both sides; with -r the output of the
 * forward transform is in bit-reversed order. Some output elements are compared with the value of
 * the polynomial, computed by Horner's rule, and the inverse must return the input. Each element is
 * computed from its index, so only the data needs memory: 32 bytes per element. Prints the time in
 * seconds. Exits with 1 at the first wrong element.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "compute/ntt/ntt.h"
#include "compute/ntt/reverse.h"

#define PLACES 4

static struct obk_fr element(uint64_t seed)
{
	struct obk_fr x;

	for (unsigned i = 0; i < 4; i++) { /* splitmix64 */
		uint64_t z = (4 * seed + i + 1) * 0x9e3779b97f4a7c15u;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		x.l[i] = z ^ z >> 31;
	}
	x.l[3] >>= 2; /* below r */
	return x;
}

/* Computes the values at w^place[i] of the polynomial whose coefficients are the elements. */
static void values(unsigned log_n, const uint64_t place[PLACES], struct obk_fr value[PLACES])
{
	struct obk_fr root, at[PLACES], x;

	obk_fr_root(&root, log_n);
	for (unsigned i = 0; i < PLACES; i++) {
		obk_fr_pow(&at[i], &root, &place[i], 1);
		value[i] = obk_fr_zero;
	}
	for (size_t j = (size_t)1 << log_n; j-- > 0;) {
		x = element(j);
		for (unsigned i = 0; i < PLACES; i++) {
			obk_fr_mul(&value[i], &value[i], &at[i]);
			obk_fr_add(&value[i], &value[i], &x);
		}
	}
}

static bool is_primitive(unsigned log_n)
{
	struct obk_fr root, minus;

	obk_fr_root(&root, log_n);
	obk_fr_neg(&minus, &obk_fr_one);
	for (unsigned i = 1; i < log_n; i++)
		obk_fr_sqr(&root, &root);
	return obk_fr_equal(&root, &minus);
}

static double run(const struct obk_ntt_job *job, struct obk_fr *data)
{
	uint64_t from = ob_clock_ns();
	struct obk_fault fault;

	if (obk_ntt_run(job, data, &fault)) {
		fprintf(stderr, "%s\n", fault.text);
		exit(1);
	}
	return (double)(ob_clock_ns() - from) / 1e9;
}

static void one(unsigned log_n, bool reversed, struct obk_pool *pool)
{
	struct obk_ntt_job job = { .log_n = log_n,
		.batch = 1,
		.order = reversed ? OBK_NTT_NR : OBK_NTT_NN,
		.pool = pool };
	size_t n = (size_t)1 << log_n;
	uint64_t place[PLACES] = { 1, n - 1, n / 3, n / 2 + n / 7 };
	struct obk_fr value[PLACES], *data = malloc(n * sizeof(*data)), x;
	double forward, inverse;

	if (!data || !is_primitive(log_n)) {
		fprintf(stderr, "2^%u: %s\n", log_n,
			data ? "the root is none of that order" : "no memory");
		exit(1);
	}
	for (size_t j = 0; j < n; j++)
		data[j] = element(j);
	forward = run(&job, data);
	values(log_n, place, value);
	for (unsigned i = 0; i < PLACES; i++) {
		if (!obk_fr_equal(&value[i],
			    &data[reversed ? obk_ntt_reverse_bits((uint32_t)place[i], log_n)
					   : place[i]])) {
			fprintf(stderr, "2^%u: output %llu is not the polynomial's value\n", log_n,
				(unsigned long long)place[i]);
			exit(1);
		}
	}
	job.direction = OBK_NTT_INVERSE;
	job.order = reversed ? OBK_NTT_RN : OBK_NTT_NN;
	inverse = run(&job, data);
	for (size_t j = 0; j < n; j++) {
		x = element(j);
		if (!obk_fr_equal(&x, &data[j])) {
			fprintf(stderr, "2^%u: element %zu does not come back\n", log_n, j);
			exit(1);
		}
	}
	printf("2^%u: forward %.2f s, inverse %.2f s\n", log_n, forward, inverse);
	fflush(stdout);
	free(data);
}

int main(int argc, char **argv)
{
	unsigned threads = 0, from, to;
	struct obk_pool *pool;
	bool reversed = false;

	for (int c; (c = getopt(argc, argv, "t:r")) != -1;) {
		if (c == '?')
			return 2;
		if (c == 't')
			threads = (unsigned)strtoul(optarg, NULL, 10);
		else
			reversed = true;
	}
	if (optind + 2 != argc)
		return 2;
	from = (unsigned)strtoul(argv[optind], NULL, 10);
	to = (unsigned)strtoul(argv[optind + 1], NULL, 10);
	if (from < 1 || to > OBK_NTT_MAX_LOG_N || obk_pool_new(threads, &pool))
		return 2;
	for (unsigned log_n = from; log_n <= to; log_n++)
		one(log_n, reversed, pool);
	obk_pool_free(pool);
	return 0;
}
