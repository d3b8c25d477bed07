/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Times proofs of cells on a GPU: sums and transforms of 1 to 256 blobs, with scalars in host
 * memory. The first and the last blob of a call are compared with the CPU's proofs.
 *
 *     obk-cells-bench [-l LIBRARY] [-g GPU] [-r REPEATS] [-c LOG_COLUMNS] [-w WINDOW] [-b BLOBS]
 *
 * -c: a blob has 2^7 columns of 64 terms; smaller values are for quick trials. -w: bits of a digit
 * (8). -b: the largest number of blobs in a call (256).
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "compute/kzg/g1_ntt.h"
#include "compute/kzg/gpu.h"

#define MAX_REPEATS 100
#define MAX_COLUMNS ((size_t)1 << OBK_FK20_LOG_COLUMNS)
#define POINTS      (MAX_COLUMNS * OBK_FK20_TERMS)

static struct obk_gpu *gpu;
static struct obk_pool *pool;
static struct obk_fault fault;
static unsigned repeats = 5;
static struct obk_g1_affine points[POINTS]; /* point i is (i + 1) G */
static struct obk_fr *scalars;
static struct obk_g1_affine *proofs;

static void need(enum ob_err err)
{
	if (err) {
		fprintf(stderr, "obk-cells-bench: %s\n", fault.text);
		exit(1);
	}
}

static double now_ms(void)
{
	return (double)ob_clock_ns() / 1e6;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void make_input(size_t n, size_t blobs)
{
	static struct obk_g1 sum[POINTS];
	static struct obk_fp scratch[2 * POINTS];
	uint64_t state = 88172645463325252u, plain[4];

	obk_g1_from_affine(&sum[0], &obk_g1_generator);
	for (size_t i = 1; i < n; i++)
		obk_g1_add_affine(&sum[i], &sum[i - 1], &obk_g1_generator);
	obk_g1_to_affine_batch(points, sum, n, scratch);
	scalars = malloc(n * blobs * sizeof(*scalars));
	proofs = malloc(blobs * MAX_COLUMNS * sizeof(*proofs));
	if (!scalars || !proofs)
		exit(1);
	for (size_t i = 0; i < n * blobs; i++) {
		for (unsigned j = 0; j < 4; j++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			plain[j] = state >> (j == 3 ? 2 : 0);
		}
		obk_fr_from_plain(&scalars[i], plain);
	}
}

static void check(const struct obk_fk20_gpu_args *args, size_t blob)
{
	static struct obk_g1 sums[MAX_COLUMNS];
	static struct obk_fp scratch[2 * MAX_COLUMNS];
	static struct obk_g1_affine want[MAX_COLUMNS];
	size_t columns = (size_t)1 << args->log_columns;

	for (size_t i = 0; i < columns; i++) {
		struct obk_fr all = obk_fr_zero, k, s;
		uint64_t plain[4];

		for (size_t at = i * args->terms; at < (i + 1) * args->terms; at++) {
			obk_fr_from_plain(&k, (uint64_t[4]){ at + 1 });
			obk_fr_mul(&s, &scalars[blob * columns * args->terms + at], &k);
			obk_fr_add(&all, &all, &s);
		}
		obk_fr_to_plain(plain, &all);
		obk_g1_mul(&sums[i], &obk_g1_generator, plain, 255);
	}
	obk_g1_ntt_gather_low(sums, args->log_columns, true, pool);
	obk_g1_ntt_scatter_low(sums, args->log_columns, false, pool);
	obk_g1_to_affine_batch(want, sums, columns, scratch);
	if (memcmp(want, proofs + blob * columns, columns * sizeof(*want)) != 0) {
		fprintf(stderr, "obk-cells-bench: the proofs of blob %zu are wrong\n", blob);
		exit(1);
	}
}

static void bench(const struct obk_fk20_gpu_args *args, size_t most)
{
	struct obk_fk20_gpu_info info;
	struct obk_fk20_gpu *fk;
	double start = now_ms(), ms[MAX_REPEATS];

	need(obk_fk20_gpu_new(gpu, args, &fk, &fault));
	obk_fk20_gpu_info(fk, &info);
	printf("Cell proofs, 2^%u columns of %u terms: tables of %.2f GB by digits of %u bits, "
	       "made in %.0f ms; transforms wait for %u products\n\n",
		args->log_columns, args->terms, (double)info.bytes / 1e9, info.window,
		now_ms() - start, info.depth);
	printf("| blobs | ms | ms a blob |\n|---|---|---|\n");
	for (size_t blobs = 1; blobs <= most; blobs *= 4) {
		/* the first run allocates memory and is not counted */
		for (unsigned i = 0; i <= repeats; i++) {
			start = now_ms();
			need(obk_fk20_gpu_prove(fk, scalars, blobs, proofs, pool, &fault));
			ms[i ? i - 1 : 0] = now_ms() - start;
		}
		qsort(ms, repeats, sizeof(*ms), ascending);
		check(args, 0);
		check(args, blobs - 1);
		printf("| %zu | %.3f | %.3f |\n", blobs, ms[repeats / 2],
			ms[repeats / 2] / (double)blobs);
		fflush(stdout);
	}
	obk_fk20_gpu_free(fk);
}

int main(int argc, char **argv)
{
	struct obk_fk20_gpu_args args = { .points = points,
		.log_columns = OBK_FK20_LOG_COLUMNS,
		.terms = OBK_FK20_TERMS,
		.window = 8 };
	const struct obk_gpu_driver *driver;
	const char *path = NULL;
	uint64_t n, ordinal = 0, most = 256;
	int option;

	while ((option = getopt(argc, argv, "l:g:r:c:w:b:")) >= 0) {
		bool fine = option != '?' &&
			(option == 'l' ||
				ob_text_parse_number(optarg, 0, OBK_FK20_GPU_MAX_BLOBS, &n));

		if (fine && option == 'l')
			path = optarg;
		else if (fine && option == 'g')
			ordinal = n;
		else if (fine && option == 'r' && n >= 1 && n <= MAX_REPEATS)
			repeats = (unsigned)n;
		else if (fine && option == 'c' && n >= 1 && n <= OBK_FK20_LOG_COLUMNS)
			args.log_columns = (unsigned)n;
		else if (fine && option == 'w')
			args.window = (unsigned)n;
		else if (fine && option == 'b' && n >= 1)
			most = n;
		else {
			fprintf(stderr,
				"obk-cells-bench [-l LIBRARY] [-g GPU] [-r 1..%d] [-c 1..%d] [-w "
				"4..8] [-b 1..%d]\n",
				MAX_REPEATS, OBK_FK20_LOG_COLUMNS, OBK_FK20_GPU_MAX_BLOBS);
			return 2;
		}
	}
	need(obk_gpu_driver_open(path, &driver, &fault));
	need(obk_gpu_open(driver, (unsigned)ordinal, &gpu, &fault));
	need(obk_pool_new(0, &pool));
	make_input((size_t)args.terms << args.log_columns, most);
	bench(&args, most);
	free(scalars);
	free(proofs);
	obk_pool_free(pool);
	obk_gpu_close(gpu);
	return 0;
}
