/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The calls that overhead.py compares with Python's, in C. Prints the seconds of each call.
 *     overhead rqa N RUNS | msm POINTS SCALARS N RUNS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <outboard.h>

static struct outboard_error error;

static void check(int status)
{
	if (!status)
		return;
	fprintf(stderr, "%s\n", error.text);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void rqa(size_t n)
{
	double *x = malloc(n * sizeof(*x)), *values;
	struct outboard_series series = { .data = x, .length = n, .channels = 1 };
	struct outboard_rqa_options *options;
	struct outboard_series_set *set;

	if (!x)
		exit(1);
	for (size_t i = 0; i < n; i++)
		x[i] = sin((double)i * 0.1);
	values = calloc(outboard_rqa_measure_count(), sizeof(*values));
	check(outboard_series_new(NULL, &series, 1, &set, &error));
	check(outboard_rqa_options_new(NULL, &options, &error));
	check(outboard_rqa_options_set(options, "m", "3", &error));
	check(outboard_rqa_options_set(options, "tau", "5", &error));
	check(outboard_rqa_options_set(options, "eps", "0.2", &error));
	check(outboard_rqa_options_set(options, "want", "vertical", &error));
	check(outboard_rqa_run(set, 0, OUTBOARD_NO_ITEM, options, values, NULL, &error));
	outboard_rqa_options_free(options);
	outboard_series_free(set);
	free(values);
	free(x);
}

static void *load(const char *path, size_t bytes)
{
	FILE *f = fopen(path, "rb");
	void *data = malloc(bytes);

	if (!f || !data || fread(data, 1, bytes, f) != bytes)
		exit(1);
	fclose(f);
	return data;
}

int main(int argc, char **argv)
{
	struct outboard_bases *bases = NULL;
	uint8_t sum[48];
	struct outboard_msm msm = { .result = sum };
	long runs = strtol(argv[argc - 1], NULL, 10);

	if (strcmp(argv[1], "msm") == 0) {
		struct outboard_points p = { .count = strtoul(argv[4], NULL, 10),
			.trust = OUTBOARD_TRUST_SUBGROUP };

		p.points = load(argv[2], p.count * 48);
		msm.scalars = load(argv[3], p.count * 32);
		msm.count = p.count;
		check(outboard_bases_new(NULL, &p, &bases, &error));
	}
	for (long i = 0; i < runs; i++) {
		double begun = now();

		if (bases)
			check(outboard_msm_run(bases, &msm, NULL, &error));
		else
			rqa(strtoul(argv[2], NULL, 10));
		printf("%.9f\n", now() - begun);
	}
	return 0;
}
