/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 *     obk-msm-bench [-t threads] [-r runs] [-b library of blst] [-n] [from] [to]
 *
 * Times products of 2^from .. 2^to points: medians in milliseconds. Each of our runs is followed by
 * one of blst if its library is given.
 *
 *     ready   bases loaded before
 *     once    bases given with the call
 *     table   fixed bases with shifted copies, 8 times the memory. -n omits this column, because
 *             making the table takes long
 *
 * blst on several threads: the points are divided into as many parts, each part is computed by
 * Pippenger's method, and the sums of the parts are added.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compute/msm/msm.h"
#include "tests/compute/kernels/oracle.h"

#define MAX_RUNS    101
#define MAX_THREADS 256

struct jacobian {
	struct obk_fp x, y, z;
};

static struct rival {
	void (*msm)(struct jacobian *ret, const struct obk_g1_affine *const points[], size_t n,
		const uint8_t *const scalars[], size_t bits, uint64_t *scratch);
	size_t (*scratch_bytes)(size_t n);
	void (*add)(struct jacobian *r, const struct jacobian *a, const struct jacobian *b);
	void (*to_affine)(struct obk_g1_affine *r, const struct jacobian *a);
} blst;

struct setup {
	struct obk_pool *pool;
	struct obk_msm_bases *ready, *table;
	struct obk_g1_affine *points;
	uint8_t *scalars;
	size_t n;
	bool no_table;
	struct jacobian part[MAX_THREADS];
	uint64_t *scratch[MAX_THREADS];
	struct obk_g1_affine result;
};

static bool load_rival(const char *path)
{
	void *lib = path && *path ? dlopen(path, RTLD_NOW) : NULL;

	if (!lib)
		return false;
	*(void **)&blst.msm = dlsym(lib, "blst_p1s_mult_pippenger");
	*(void **)&blst.scratch_bytes = dlsym(lib, "blst_p1s_mult_pippenger_scratch_sizeof");
	*(void **)&blst.add = dlsym(lib, "blst_p1_add_or_double");
	*(void **)&blst.to_affine = dlsym(lib, "blst_p1_to_affine");
	return blst.msm && blst.scratch_bytes && blst.add && blst.to_affine;
}

static void run_ready(struct setup *s)
{
	struct obk_msm_job job = {
		.count = s->n, .scalars = s->scalars, .batch = 1, .pool = s->pool
	};

	if (obk_msm_run(s->ready, &job, &s->result, NULL))
		exit(1);
}

static void run_table(struct setup *s)
{
	struct obk_msm_job job = {
		.count = s->n, .scalars = s->scalars, .batch = 1, .pool = s->pool
	};

	if (obk_msm_run(s->table, &job, &s->result, NULL))
		exit(1);
}

static void run_once(struct setup *s)
{
	struct obk_msm_bases_args args = {
		.points = s->points, .count = s->n, .trust = OBK_TRUST_SUBGROUP, .pool = s->pool
	};
	struct obk_msm_job job = {
		.count = s->n, .scalars = s->scalars, .batch = 1, .pool = s->pool
	};

	if (obk_msm_once(&args, &job, &s->result, NULL))
		exit(1);
}

static void rival_part(void *arg, size_t part, unsigned thread)
{
	struct setup *s = arg;
	size_t parts = obk_pool_threads(s->pool), first = s->n * part / parts,
	       n = s->n * (part + 1) / parts - first;
	const struct obk_g1_affine *points[2] = { s->points + first, NULL };
	const uint8_t *scalars[2] = { s->scalars + 32 * first, NULL };

	(void)thread;
	blst.msm(&s->part[part], points, n, scalars, 255, s->scratch[part]);
}

static void run_rival(struct setup *s)
{
	unsigned parts = obk_pool_threads(s->pool);

	obk_pool_run(s->pool, parts, rival_part, s);
	for (unsigned i = 1; i < parts; i++)
		blst.add(&s->part[0], &s->part[0], &s->part[i]);
	blst.to_affine(&s->result, &s->part[0]);
}

/*
 * Makes points (k + i d) G, which is fast. The times are the same for any set of different points.
 */
static void make_points(struct setup *s, size_t n)
{
	struct obk_g1 *sums = malloc(n * sizeof(*sums)), run;
	struct obk_fp *scratch = malloc(2 * n * sizeof(*scratch));
	struct obk_g1_affine d;
	uint64_t state = 20;

	if (!sums || !scratch)
		exit(1);
	obk_g1_mul(&run, &obk_g1_generator, (uint64_t[]){ oracle_random(&state) }, 64);
	obk_g1_to_affine(&d, &run);
	for (size_t i = 0; i < n; i++) {
		obk_g1_add_affine(&run, &run, &d);
		sums[i] = run;
	}
	s->points = malloc(n * sizeof(*s->points));
	s->scalars = malloc(n * 32);
	if (!s->points || !s->scalars)
		exit(1);
	obk_g1_to_affine_batch(s->points, sums, n, scratch);
	for (size_t i = 0; i < n; i++) {
		uint64_t k[4] = { oracle_random(&state), oracle_random(&state),
			oracle_random(&state), oracle_random(&state) % 0x73eda753299d7d48 };

		memcpy(s->scalars + 32 * i, k, 32);
	}
	free(sums);
	free(scratch);
}

static struct obk_msm_bases *make_bases(const struct setup *s, size_t table_bytes)
{
	struct obk_msm_bases_args args = { .points = s->points,
		.count = s->n,
		.trust = OBK_TRUST_SUBGROUP,
		.table_bytes = table_bytes,
		.pool = s->pool };
	struct obk_msm_bases *bases;

	if (obk_msm_bases_new(&args, &bases, NULL))
		exit(1);
	return bases;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

static double timed(void (*fn)(struct setup *), struct setup *s)
{
	uint64_t from = ob_clock_ns();

	fn(s);
	return (double)(ob_clock_ns() - from) / 1e6;
}

static void one_size(struct setup *s, unsigned log_n, unsigned runs)
{
	void (*const fn[4])(struct setup *) = { run_ready, run_once, s->no_table ? NULL : run_table,
		blst.msm ? run_rival : NULL };
	double time[4][MAX_RUNS] = { 0 }, m[4];
	struct obk_g1_affine first = { 0 };

	s->n = (size_t)1 << log_n;
	s->ready = make_bases(s, 0);
	s->table = s->no_table ? NULL : make_bases(s, s->n * 2 * 128 * 8);
	for (unsigned i = 0; i < obk_pool_threads(s->pool) && blst.msm; i++)
		s->scratch[i] = malloc(blst.scratch_bytes(s->n));
	for (unsigned r = 0; r < runs; r++) {
		for (unsigned k = 0; k < 4; k++) {
			if (!fn[k])
				continue;
			time[k][r] = timed(fn[k], s);
			if (r == 0 && k == 0)
				first = s->result;
			else if (!obk_g1_affine_equal(&first, &s->result)) {
				fprintf(stderr, "2^%u: results differ\n", log_n);
				exit(1);
			}
		}
	}
	for (unsigned k = 0; k < 4; k++)
		m[k] = median(time[k], runs);
	printf("2^%-3u %10.3f %10.3f %10.3f", log_n, m[0], m[1], m[2]);
	if (blst.msm)
		printf(" %10.3f %8.2f %8.2f %8.2f", m[3], m[3] / m[0], m[3] / m[1],
			s->no_table ? 0 : m[3] / m[2]);
	printf("\n");
	fflush(stdout);
	obk_msm_bases_free(s->ready);
	obk_msm_bases_free(s->table);
	for (unsigned i = 0; i < obk_pool_threads(s->pool) && blst.msm; i++)
		free(s->scratch[i]);
}

static void print_machine(unsigned threads)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "r");
	struct obk_msm_bases_info info;
	struct obk_msm_bases_args args = { .count = 0 };
	struct obk_msm_bases *b;

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "model name", 10) == 0) {
			printf("%s", strchr(line, ':') + 2);
			break;
		}
	}
	if (f)
		fclose(f);
	if (obk_msm_bases_new(&args, &b, NULL))
		exit(1);
	obk_msm_bases_info(b, &info);
	obk_msm_bases_free(b);
	printf("%u threads, field %s, lanes %s; medians in ms\n", threads, obk_fp_now.name,
		info.lanes);
}

int main(int argc, char **argv)
{
	static struct setup s;
	unsigned threads = 1, runs = 7, from = 4, to = 16;
	const char *library = OBK_BLST;

	for (int c; (c = getopt(argc, argv, "t:r:b:n")) != -1;) {
		if (c == 't')
			threads = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			runs = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'b')
			library = optarg;
		else if (c == 'n')
			s.no_table = true;
		else
			return 2;
	}
	if (optind < argc)
		from = to = (unsigned)strtoul(argv[optind], NULL, 10);
	if (optind + 1 < argc)
		to = (unsigned)strtoul(argv[optind + 1], NULL, 10);
	if (runs < 1 || runs > MAX_RUNS || to > 24 || from > to || threads > MAX_THREADS ||
		obk_pool_new(threads, &s.pool)) {
		fprintf(stderr, "1 to %d runs, sizes up to 24, up to %d threads\n", MAX_RUNS,
			MAX_THREADS);
		return 2;
	}
	load_rival(library);
	make_points(&s, (size_t)1 << to);
	print_machine(obk_pool_threads(s.pool));
	printf("%-5s %10s %10s %10s%s\n", "size", "ready", "once", "table",
		blst.msm ? "       blst    ready     once    table   (times blst)" : "");
	for (unsigned log_n = from; log_n <= to; log_n++)
		one_size(&s, log_n, runs);
	obk_pool_free(s.pool);
	free(s.points);
	free(s.scalars);
	return 0;
}
