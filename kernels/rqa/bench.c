/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obk-rqa-bench [threads [singles|sweeps|gpu|gpu-small]]: cells per second of one series on each instruction set, and the sweep of 10,200 combinations over
 * 310 gaze-like series. Cells are those of one triangle. Medians of several runs, by the clock and by the processor's time, which differ on a busy machine;
 * the series are synthetic, of the lengths that one published data set of gaze recordings has. gpu: series and sweeps on the device of the first
 * libcuda.so.1 that the loader finds, each beside what is aimed at on an H200; gpu-small: the same code on sizes that the software device bears. Neither
 * runs unless it is named.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/rqa/rqa.h"

#define RUNS 7
#define SERIES 310
#define LONGEST 3260

static uint64_t seed = 12345;

static double uniform(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 11) * 0x1p-53;
}

static double seconds(void)
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

static int double_compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

/* Roessler, Euler steps of 0.05, every fourth kept. */
static void rossler_make(double *data, unsigned n)
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

static void single(const char *name, const double *data, unsigned n, int isa, int precision, uint32_t want, unsigned threads, double radius)
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
		double start = seconds(), begun = processor();

		if (obk_rqa_measure(&x, NULL, &o, &control, v, &error) != OBK_RQA_OK) {
			printf("%-34s %s\n", name, error.text);
			return;
		}
		times[r] = seconds() - start;
		busy[r] = processor() - begun;
	}
	qsort(times, RUNS, sizeof *times, double_compare);
	qsort(busy, RUNS, sizeof *busy, double_compare);
	cells = 0.5 * (n - 12.) * (n - 12.);
	printf("%-28s N %6u  RR %.3f  clock: median %9.3f ms, best %6.2f e9 cells/s; processor: median %9.3f ms, %6.2f e9 cells/s, best %6.2f\n", name, n,
	       v[OBK_RQA_RR], times[RUNS / 2] * 1e3, cells / times[0] * 1e-9, busy[RUNS / 2] * 1e3, cells / busy[RUNS / 2] * 1e-9, cells / busy[0] * 1e-9);
}

static void singles(unsigned threads)
{
	static const char *const isas[] = { "auto", "c", "avx2", "avx512" };
	static double data[20000], noise[5000];
	char name[64];

	rossler_make(data, 20000);
	for (unsigned t = 0; t < 5000; t++)
		noise[t] = uniform();
	for (int isa = OBK_RQA_ISA_C; isa <= OBK_RQA_ISA_AVX512; isa++)
		for (int precision = OBK_RQA_PRECISION_F32; precision >= OBK_RQA_PRECISION_F64; precision--)
			for (unsigned n = 5000; n <= 20000; n *= 4) {
				snprintf(name, sizeof name, "diagonals %s %s", isas[isa], precision == OBK_RQA_PRECISION_F32 ? "fp32" : "fp64");
				single(name, data, n, isa, precision, 0, threads, 1.2);
			}
	single("and verticals, best, fp32", data, 20000, 0, OBK_RQA_PRECISION_F32, OBK_RQA_WANT_VERTICAL, threads, 1.2);
	single("and verticals, best, fp64", data, 20000, 0, OBK_RQA_PRECISION_F64, OBK_RQA_WANT_VERTICAL, threads, 1.2);
	single("noise, dense, best, fp32", noise, 5000, 0, OBK_RQA_PRECISION_F32, 0, threads, 0.9);
}

/* Lengths between low and high, half of them below the median, bent so that few are long. */
static void lengths_make(unsigned *lengths, unsigned count, double low, double median, double high, double bend)
{
	for (unsigned i = 0; i < count; i++) {
		double q = (i + 0.5) / count;

		lengths[i] = (unsigned)(q < 0.5 ? low + (median - low) * pow(2 * q, 0.7) : median + (high - median) * pow(2 * q - 1, bend));
	}
	lengths[0] = (unsigned)low;
	lengths[count - 1] = (unsigned)high;
}

/* Fixations with tremor and saccades between them, in the unit square, six decimals. */
static void gaze_make(double *data, unsigned n)
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

static bool sweep_time(const char *name, const struct obk_rqa_series *series, unsigned count, uint32_t want, int precision, const struct obk_rqa_control *how,
		       unsigned runs, uint32_t embeddings, double *times, double *busy, uint64_t counts[2])
{
	static const uint32_t steps[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, lmins[] = { 2, 3 };
	static const struct obk_rqa_mode modes[] = {
		{ .name = "1D-x", .channel_count = 1, .channels = { 0 }, .norm = OBK_RQA_NORM_L1 },
		{ .name = "2D-xy", .channel_count = 2, .channels = { 0, 1 }, .norm = OBK_RQA_NORM_L2 },
	};
	double radii[51];
	struct obk_rqa_grid grid = { steps, steps, lmins, radii, embeddings, embeddings, obk_rqa_range(0.05, 0.1, 0.001, 3, radii, 51), 2, modes, 2 };
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	struct obk_rqa_control control = *how;
	struct obk_rqa_sweep job = { series, count, &o, &grid, rows_count, NULL };

	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	o.precision = precision;
	o.want = want;
	control.arg = counts;
	for (unsigned r = 0; r < runs; r++) {
		double start = seconds(), begun = processor();

		counts[0] = counts[1] = 0;
		if (obk_rqa_sweep(&job, &control, &error) != OBK_RQA_OK) {
			printf("%s: %s\n", name, error.text);
			return false;
		}
		times[r] = seconds() - start;
		busy[r] = processor() - begun;
	}
	qsort(times, runs, sizeof *times, double_compare);
	qsort(busy, runs, sizeof *busy, double_compare);
	return true;
}

static void sweep(const char *name, const struct obk_rqa_series *series, unsigned count, uint32_t want, int precision, unsigned threads, unsigned runs)
{
	struct obk_rqa_control control = { .threads = threads };
	double times[RUNS], busy[RUNS];
	uint64_t counts[2];

	if (!sweep_time(name, series, count, want, precision, &control, runs, 10, times, busy, counts))
		return;
	printf("%-28s %u series, %llu rows, %llu failed  clock: median %.2f s, best %.2f s; processor: median %.2f s, best %.2f s\n", name,
	       count, (unsigned long long)(counts[0] + counts[1]), (unsigned long long)counts[0], times[runs / 2], times[0], busy[runs / 2],
	       busy[0]);
}

static void sweeps(const struct obk_rqa_series *series, double squares, unsigned threads)
{
	printf("sweep of m 1-10, tau 1-10, 51 radii, lmin 2-3, 1D-x and 2D-xy; sum of N squared %.3g; threads %u (0: all cores)\n", squares, threads);
	sweep("10,200 combinations, fp64", series, SERIES, 0, OBK_RQA_PRECISION_F64, threads, 3);
	sweep("10,200 combinations, fp32", series, SERIES, 0, OBK_RQA_PRECISION_F32, threads, 3);
	sweep("and verticals, fp64", series, SERIES, OBK_RQA_WANT_VERTICAL, OBK_RQA_PRECISION_F64, threads, 1);
}

/* One series of n points, three dimensions, diagonal and vertical lines, fp32, as one call; aims in ms. False: a device did not do it. */
static bool gpu_single(const double *data, unsigned n, double aim, double beat)
{
	struct obk_rqa_series x = { .name = "series", .data = data, .length = n, .channels = 1 };
	struct obk_rqa_control control = { .device = OBK_RQA_DEVICE_CUDA };
	struct obk_rqa_result *result;
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	double times[RUNS], cells = 0.5 * (n - 12.) * (n - 12.);

	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.m = 3;
	o.tau = 6;
	o.radius = 1.2;
	o.precision = OBK_RQA_PRECISION_F32;
	o.want = OBK_RQA_WANT_VERTICAL;
	for (unsigned r = 0; r <= RUNS; r++) { /* the first finds memory and is not counted */
		double start = seconds();

		if (obk_rqa_run(&x, NULL, &o, &control, &result, &error) != OBK_RQA_OK) {
			printf("| %u points | %s |\n", n, error.text);
			return false;
		}
		times[r ? r - 1 : 0] = (seconds() - start) * 1e3;
		obk_rqa_result_free(result);
	}
	qsort(times, RUNS, sizeof *times, double_compare);
	printf("| %u points | %.3f | %.2f | %.3f | %.1f |\n", n, times[RUNS / 2], cells / times[RUNS / 2] * 1e-6, aim, beat);
	return true;
}

static bool gpu_sweep(const char *name, const struct obk_rqa_series *series, unsigned count, uint32_t embeddings, double aim)
{
	struct obk_rqa_control control = { .device = OBK_RQA_DEVICE_CUDA };
	double times[RUNS], busy[RUNS];
	uint64_t counts[2];

	if (!sweep_time(name, series, count, 0, OBK_RQA_PRECISION_F32, &control, 3, embeddings, times, busy, counts))
		return false;
	printf("| %s | %.3f | %llu rows, %llu failed | %.3f |\n", name, times[1], (unsigned long long)(counts[0] + counts[1]),
	       (unsigned long long)counts[0], aim);
	return counts[0] == 0;
}

/* Aims: 30 to 35 of a hundred of what an H200's multiply-adds and shifts allow; to be beaten: the fastest program known, with a margin. */
static int gpu(const struct obk_rqa_series *series, bool small)
{
	static const struct {
		unsigned n;
		double aim, beat;
	} sizes[] = { { 5000, 0.03, 0.2 }, { 100237, 2.5, 10 }, { 474275, 56, 200 }, { 1000000, 250, 800 } };
	unsigned largest = small ? 300 : 1000000, count = small ? 2 : 100, length = small ? 40 : 5000;
	double *data = malloc(largest * sizeof *data), *gaze = malloc(2 * (size_t)count * length * sizeof *gaze);
	struct obk_rqa_series many[100];
	bool good = data && gaze;

	if (good) {
		rossler_make(data, largest);
		if (small)
			puts("Small sizes, to try the program: the aims are those of the full ones.\n");
		puts("| one series, m 3, fp32, diagonals and verticals | ms, median | 10^9 cells/s | aim on an H200, ms | to be beaten, ms |\n"
		     "|---|---|---|---|---|");
		for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0] && (!small || i < 1); i++)
			good &= gpu_single(data, small ? largest : sizes[i].n, sizes[i].aim, sizes[i].beat);
		for (unsigned s = 0; s < count; s++) {
			gaze_make(gaze + 2 * (size_t)s * length, length);
			many[s] = (struct obk_rqa_series){ .name = "gaze", .data = gaze + 2 * (size_t)s * length, .length = length, .channels = 2 };
		}
		puts("\n| sweep of 10,200 combinations, fp32 | s, median | rows | aim on an H200, s |\n|---|---|---|---|");
		good &= gpu_sweep("one series", many, 1, small ? 2 : 10, 0.032);
		good &= gpu_sweep("many series", many, count, small ? 2 : 10, 4);
		if (!small)
			good &= gpu_sweep("310 recordings", series, SERIES, 10, 0.25);
	}
	free(data);
	free(gaze);
	return !good;
}

int main(int argc, char **argv)
{
	int code = 0;
	static struct obk_rqa_series series[SERIES];
	unsigned lengths[SERIES], threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	double squares = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	lengths_make(lengths, 105, 46, 99, LONGEST, 6);
	lengths_make(lengths + 105, 105, 48, 180, 693, 2);
	lengths_make(lengths + 210, 100, 99, 203, 615, 2);
	for (unsigned s = 0; s < SERIES; s++) {
		double *data = malloc(2 * lengths[s] * sizeof *data);

		if (!data)
			return 1;
		gaze_make(data, lengths[s]);
		series[s] = (struct obk_rqa_series){ .name = "gaze", .data = data, .length = lengths[s], .channels = 2 };
		squares += (double)lengths[s] * lengths[s];
	}
	if (argc < 3 || strcmp(argv[2], "singles") == 0) {
		printf("one thread:\n");
		singles(1);
	}
	if (argc < 3 || strcmp(argv[2], "sweeps") == 0)
		sweeps(series, squares, threads);
	if (argc > 2 && strncmp(argv[2], "gpu", 3) == 0)
		code = gpu(series, strcmp(argv[2], "gpu-small") == 0);
	for (unsigned s = 0; s < SERIES; s++)
		free((void *)(uintptr_t)series[s].data);
	return code;
}
