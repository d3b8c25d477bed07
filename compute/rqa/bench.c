/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obk-rqa-bench [threads [singles|sweeps [NAME [RUNS]]]]: measures cells per second of one series
 * on each instruction set, and the sweep of 10,200 combinations over 310 gaze-like series. NAME:
 * only the sweeps whose names contain it. Cells are those of one triangle. Results are medians of
 * several runs, in elapsed time and in processor time, which differ on a busy machine. The series
 * are synthetic; their lengths are those of one published data set of gaze recordings.
 * obk-rqa-bench --help describes the measurements on a GPU (bench_gpu.c).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compute/rqa/bench.h"
#include "compute/rqa/rqa.h"

#define RUNS 7

static uint64_t seed = 12345;

static double uniform(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 11) * 0x1p-53;
}

double bench_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double processor(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int bench_compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

void bench_rossler(double *data, unsigned n)
{
	double x = 1, y = 1, z = 0;

	for (unsigned t = 0; t < 4 * n + 4000; t++) {
		double dx = -y - z, dy = x + 0.25 * y, dz = 0.25 + z * (x - 4);

		x += 0.05 * dx;
		y += 0.05 * dy;
		z += 0.05 * dz;
		if (t >= 4000 && (t - 4000) % 4 == 0)
			data[(t - 4000) / 4] = x;
	}
}

static void single(const char *name, const double *data, unsigned n, int isa, int precision,
	uint32_t want, unsigned threads, double radius)
{
	struct obk_rqa_series x = { .name = "series", .data = data, .length = n, .channels = 1 };
	struct obk_rqa_control control = { .threads = threads, .isa = isa };
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	double times[RUNS], busy[RUNS], v[OBK_RQA_MEASURE_COUNT], cells;

	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.m = 3;
	o.tau = 6;
	o.radius = radius;
	o.precision = precision;
	o.want = want;
	for (unsigned r = 0; r < RUNS; r++) {
		double start = bench_seconds(), begun = processor();

		if (obk_rqa_measure(&x, NULL, &o, &control, v, &error) != OBK_RQA_OK) {
			printf("%-34s %s\n", name, error.text);
			return;
		}
		times[r] = bench_seconds() - start;
		busy[r] = processor() - begun;
	}
	qsort(times, RUNS, sizeof *times, bench_compare);
	qsort(busy, RUNS, sizeof *busy, bench_compare);
	cells = 0.5 * (n - 12.) * (n - 12.);
	printf("%-28s N %6u  RR %.3f  clock: median %9.3f ms, best %6.2f e9 cells/s; processor: "
	       "median %9.3f ms, %6.2f e9 cells/s, best %6.2f\n",
		name, n, v[OBK_RQA_RR], times[RUNS / 2] * 1e3, cells / times[0] * 1e-9,
		busy[RUNS / 2] * 1e3, cells / busy[RUNS / 2] * 1e-9, cells / busy[0] * 1e-9);
}

static void singles(unsigned threads)
{
	static const char *const isas[] = { "auto", "c", "avx2", "avx512" };
	static double data[20000], noise[5000];
	char name[64];

	bench_rossler(data, 20000);
	for (unsigned t = 0; t < 5000; t++)
		noise[t] = uniform();
	for (int isa = OBK_RQA_ISA_C; isa <= OBK_RQA_ISA_AVX512; isa++)
		for (int precision = OBK_RQA_PRECISION_F32; precision >= OBK_RQA_PRECISION_F64;
			precision--)
			for (unsigned n = 5000; n <= 20000; n *= 4) {
				snprintf(name, sizeof name, "diagonals %s %s", isas[isa],
					precision == OBK_RQA_PRECISION_F32 ? "fp32" : "fp64");
				single(name, data, n, isa, precision, 0, threads, 1.2);
			}
	single("and verticals, best, fp32", data, 20000, 0, OBK_RQA_PRECISION_F32,
		OBK_RQA_WANT_VERTICAL, threads, 1.2);
	single("and verticals, best, fp64", data, 20000, 0, OBK_RQA_PRECISION_F64,
		OBK_RQA_WANT_VERTICAL, threads, 1.2);
	single("noise, dense, best, fp32", noise, 5000, 0, OBK_RQA_PRECISION_F32, 0, threads, 0.9);
}

/*
 * Makes lengths between low and high, half of them below the median, distributed so that few are
 * long.
 */
static void lengths_make(
	unsigned *lengths, unsigned count, double low, double median, double high, double bend)
{
	for (unsigned i = 0; i < count; i++) {
		double q = (i + 0.5) / count;

		lengths[i] = (unsigned)(q < 0.5 ? low + (median - low) * pow(2 * q, 0.7)
						: median + (high - median) * pow(2 * q - 1, bend));
	}
	lengths[0] = (unsigned)low;
	lengths[count - 1] = (unsigned)high;
}

void bench_lengths(unsigned *ret_lengths)
{
	lengths_make(ret_lengths, 105, 46, 99, BENCH_LONGEST, 6);
	lengths_make(ret_lengths + 105, 105, 48, 180, 693, 2);
	lengths_make(ret_lengths + 210, 100, 99, 203, 615, 2);
}

void bench_gaze(double *data, unsigned n)
{
	double x = 0.5, y = 0.5;

	for (unsigned t = 0; t < n; t++) {
		if (uniform() < 0.08) {
			x = 0.1 + 0.8 * uniform();
			y = 0.1 + 0.8 * uniform();
		}
		data[2 * t] = round((x + 0.02 * (uniform() - 0.5)) * 1e6) * 1e-6;
		data[2 * t + 1] = round((y + 0.02 * (uniform() - 0.5)) * 1e6) * 1e-6;
	}
}

static int rows_count(void *arg, const struct obk_rqa_row *rows, uint32_t count)
{
	uint64_t *counts = arg;

	for (uint32_t r = 0; r < count; r++)
		counts[rows[r].status == OBK_RQA_OK]++;
	return 0;
}

static void sweep(const char *name, const struct obk_rqa_series *series, unsigned count,
	uint32_t want, int precision, unsigned threads, unsigned runs)
{
	static const uint32_t steps[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, lmins[] = { 2, 3 };
	static const struct obk_rqa_mode modes[] = {
		{ .name = "1D-x", .channel_count = 1, .channels = { 0 }, .norm = OBK_RQA_NORM_L1 },
		{ .name = "2D-xy",
			.channel_count = 2,
			.channels = { 0, 1 },
			.norm = OBK_RQA_NORM_L2 },
	};
	double radii[51], times[RUNS], busy[RUNS];
	struct obk_rqa_grid grid = { steps, steps, lmins, radii, 10, 10,
		obk_rqa_range(0.05, 0.1, 0.001, 3, radii, 51), 2, modes, 2 };
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	uint64_t counts[2] = { 0, 0 };
	struct obk_rqa_control control = { .threads = threads, .arg = counts };
	struct obk_rqa_sweep job = { series, count, &o, &grid, rows_count, NULL };

	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	o.precision = precision;
	o.want = want;
	for (unsigned r = 0; r < runs; r++) {
		double start = bench_seconds(), begun = processor();

		counts[0] = counts[1] = 0;
		if (obk_rqa_sweep(&job, &control, &error) != OBK_RQA_OK) {
			printf("%s: %s\n", name, error.text);
			return;
		}
		times[r] = bench_seconds() - start;
		busy[r] = processor() - begun;
	}
	qsort(times, runs, sizeof *times, bench_compare);
	qsort(busy, runs, sizeof *busy, bench_compare);
	printf("%-28s %u series, %llu rows, %llu failed  clock: median %.2f s, best %.2f s; "
	       "processor: median %.2f s, best %.2f s\n",
		name, count, (unsigned long long)(counts[0] + counts[1]),
		(unsigned long long)counts[0], times[runs / 2], times[0], busy[runs / 2], busy[0]);
}

static void sweeps(const struct obk_rqa_series *series, double squares, unsigned threads,
	const char *name, unsigned runs)
{
	static const struct {
		const char *name;
		uint32_t want;
		int precision;
		unsigned runs;
	} list[] = {
		{ "10,200 combinations, fp64", 0, OBK_RQA_PRECISION_F64, 3 },
		{ "10,200 combinations, fp32", 0, OBK_RQA_PRECISION_F32, 3 },
		{ "and verticals, fp64", OBK_RQA_WANT_VERTICAL, OBK_RQA_PRECISION_F64, 1 },
		{ "and verticals, fp32", OBK_RQA_WANT_VERTICAL, OBK_RQA_PRECISION_F32, 1 },
	};

	printf("sweep of m 1-10, tau 1-10, 51 radii, lmin 2-3, 1D-x and 2D-xy; sum of N squared "
	       "%.3g; threads %u (0: all cores)\n",
		squares, threads);
	for (unsigned i = 0; i < sizeof list / sizeof *list; i++)
		if (!name || strstr(list[i].name, name))
			sweep(list[i].name, series, BENCH_SERIES, list[i].want, list[i].precision,
				threads,
				!runs                 ? list[i].runs
					: runs < RUNS ? runs
						      : RUNS);
}

int main(int argc, char **argv)
{
	static struct obk_rqa_series series[BENCH_SERIES];
	unsigned lengths[BENCH_SERIES],
		threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	double squares = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && strncmp(argv[1], "--", 2) == 0)
		return bench_gpu(argc, argv);
	bench_lengths(lengths);
	for (unsigned s = 0; s < BENCH_SERIES; s++) {
		double *data = malloc(2 * lengths[s] * sizeof *data);

		if (!data)
			return 1;
		bench_gaze(data, lengths[s]);
		series[s] = (struct obk_rqa_series){
			.name = "gaze", .data = data, .length = lengths[s], .channels = 2
		};
		squares += (double)lengths[s] * lengths[s];
	}
	if (argc < 3 || strcmp(argv[2], "singles") == 0) {
		printf("one thread:\n");
		singles(1);
	}
	if (argc < 3 || strcmp(argv[2], "sweeps") == 0)
		sweeps(series, squares, threads, argc > 3 ? argv[3] : NULL,
			argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 0);
	for (unsigned s = 0; s < BENCH_SERIES; s++)
		free((void *)(uintptr_t)series[s].data);
	return 0;
}
