/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Single series of several lengths and sweeps on a GPU, end to end, compared with target times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/gpu/gpu.h"
#include "compute/rqa/bench.h"
#include "compute/rqa/rqa.h"

#define RUNS_MOST 99
/* longest series, in samples, whose measures are compared with the CPU's */
#define CHECKED   20000u

static const char usage[] = "obk-rqa-bench --device gpu [--driver PATH] [--gpu N] [--runs N] "
			    "[--divide N] [--most N] [--only single|sweep]\n"
			    "Recurrence on a GPU, from the series in memory to the measures in "
			    "memory: medians, beside the times to reach on an H200.\n"
			    "  --driver PATH  the CUDA driver library; libcuda.so.1\n"
			    "  --gpu N        which of its devices; 0\n"
			    "  --runs N       of each, after one to warm up; 5\n"
			    "  --divide N     all lengths by N: for a try on a slow device; 1\n"
			    "  --most N       longest single series; 1000000\n"
			    "  --only WHAT    single series, or sweeps\n"
			    "A line each: name, N, milliseconds, cells (of one triangle; of a "
			    "sweep times radii) a second, target, what it must\n"
			    "beat, and 'met', 'beats' or 'misses'.\n"
			    "Series of up to 20,000 samples are compared with the CPU first. Exit "
			    "code 1: a difference or a failure, 2: wrong usage.\n";

struct bench {
	struct obk_gpu *gpu;
	unsigned runs, divide, most;
	bool good;
};

static void report(struct bench *b, const char *name, unsigned n, double *times, double cells,
	double target, double beat)
{
	double s;

	qsort(times, b->runs, sizeof *times, bench_compare);
	s = times[b->runs / 2];
	printf("%-34s N %8u  %12.3f ms  %9.3g cells/s", name, n, s * 1e3, cells / s);
	if (b->divide == 1 && target > 0)
		printf("  target %g ms, must beat %g ms: %s", target * 1e3, beat * 1e3,
			s <= target         ? "met"
				: s <= beat ? "beats"
					    : "misses");
	printf("\n");
}

/* target and beat: times in seconds; 0: none. */
static void single(struct bench *b, const char *name, const double *data, unsigned n, int precision,
	uint32_t want, double target, double beat)
{
	struct obk_rqa_series x = {
		.name = "series", .data = data, .length = n / b->divide, .channels = 1
	};
	struct obk_rqa_control control = { .device = OBK_RQA_DEVICE_CUDA, .gpu = b->gpu },
			       cpu = { .device = OBK_RQA_DEVICE_CPU };
	double times[RUNS_MOST], v[OBK_RQA_MEASURE_COUNT], w[OBK_RQA_MEASURE_COUNT], side;
	struct obk_rqa_options o;
	struct obk_rqa_error error = { .text = "the CPU has other measures" };
	bool good = true;

	if (n > b->most)
		return;
	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.m = 3;
	o.tau = 6;
	o.radius = 1.2;
	o.precision = precision;
	o.want = want;
	if (x.length <= CHECKED)
		good = obk_rqa_measure(&x, NULL, &o, &cpu, w, &error) == OBK_RQA_OK;
	for (unsigned r = 0; r <= b->runs && good; r++) {
		double start = bench_seconds();

		good = obk_rqa_measure(&x, NULL, &o, &control, v, &error) == OBK_RQA_OK;
		if (r)
			times[r - 1] = bench_seconds() - start;
	}
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bit by bit, NaN too */
	if (!good || (x.length <= CHECKED && memcmp(v, w, sizeof v) != 0)) {
		printf("%-34s N %8u  %s\n", name, (unsigned)x.length, error.text);
		b->good = false;
		return;
	}
	side = (double)x.length - 12;
	report(b, name, (unsigned)x.length, times, 0.5 * side * side, target, beat);
}

static void singles(struct bench *b)
{
	static const struct {
		unsigned n;
		double target, beat;
	} sizes[] = { { 5000, 30e-6, 0.2e-3 }, { 100237, 2.5e-3, 10e-3 }, { 474275, 56e-3, 0.2 },
		{ 1000000, 0.25, 0.8 } };
	double *data = malloc(1000000 * sizeof *data);

	if (!data)
		return;
	bench_rossler(data, 1000000);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		single(b, "DET, LAM, ENTR, fp32", data, sizes[i].n, OBK_RQA_PRECISION_F32,
			OBK_RQA_WANT_VERTICAL, sizes[i].target, sizes[i].beat);
		single(b, "DET, ENTR, fp32", data, sizes[i].n, OBK_RQA_PRECISION_F32, 0, 0, 0);
		single(b, "DET, LAM, ENTR, fp64", data, sizes[i].n, OBK_RQA_PRECISION_F64,
			OBK_RQA_WANT_VERTICAL, 0, 0);
	}
	free(data);
}

static int rows_count(void *arg, const struct obk_rqa_row *rows, uint32_t count)
{
	uint64_t *counts = arg;

	for (uint32_t r = 0; r < count; r++)
		counts[rows[r].status == OBK_RQA_OK || rows[r].status == OBK_RQA_TOO_SHORT]++;
	return 0;
}

static void sweep(struct bench *b, const char *name, const struct obk_rqa_series *series,
	unsigned count, int precision, double target, double beat)
{
	static const uint32_t steps[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, lmins[] = { 2, 3 };
	static const struct obk_rqa_mode modes[] = {
		{ .name = "1D-x", .channel_count = 1, .channels = { 0 }, .norm = OBK_RQA_NORM_L1 },
		{ .name = "2D-xy",
			.channel_count = 2,
			.channels = { 0, 1 },
			.norm = OBK_RQA_NORM_L2 }
	};
	double radii[51], times[RUNS_MOST], cells = 0;
	struct obk_rqa_grid grid = { .m = steps,
		.tau = steps,
		.lmin = lmins,
		.radius = radii,
		.m_count = 10,
		.tau_count = 10,
		.lmin_count = 2,
		.modes = modes,
		.mode_count = 2 };
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	unsigned longest = 0;

	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	o.precision = precision;
	grid.radius_count = obk_rqa_range(0.05, 0.1, 0.001, 3, radii, 51);
	for (unsigned s = 0; s < count; s++) {
		longest = series[s].length > longest ? (unsigned)series[s].length : longest;
		for (unsigned m = 0; m < 10; m++)
			for (unsigned tau = 1; tau <= 10; tau++)
				if (series[s].length > m * tau) {
					double n = (double)(series[s].length - m * tau);

					cells += n * (n - 1) / 2 * grid.radius_count *
						grid.mode_count;
				}
	}
	for (unsigned r = 0; r <= b->runs; r++) {
		uint64_t counts[2] = { 0 };
		struct obk_rqa_control control = {
			.device = OBK_RQA_DEVICE_CUDA, .gpu = b->gpu, .arg = counts
		};
		struct obk_rqa_sweep job = { .series = series,
			.series_count = count,
			.options = &o,
			.grid = &grid,
			.rows = rows_count };
		double start = bench_seconds();

		if (obk_rqa_sweep(&job, &control, &error) != OBK_RQA_OK || counts[0]) {
			printf("%-34s %s\n", name, counts[0] ? "rows failed" : error.text);
			b->good = false;
			return;
		}
		if (r)
			times[r - 1] = bench_seconds() - start;
	}
	report(b, name, longest, times, cells, target, beat);
}

static void sweeps(struct bench *b)
{
	static struct obk_rqa_series series[BENCH_SERIES];
	unsigned lengths[BENCH_SERIES + 1], kept = b->divide > 1 ? 3 : BENCH_SERIES;
	double *data;

	bench_lengths(lengths);
	lengths[kept] = 5000;
	for (unsigned s = 0; s <= kept; s++) {
		struct obk_rqa_series one;

		data = malloc(2 * lengths[s] * sizeof *data);
		if (!data)
			return;
		bench_gaze(data, lengths[s]);
		one = (struct obk_rqa_series){ .name = "gaze",
			.data = data,
			.length = lengths[s] / b->divide < 46 ? 46 : lengths[s] / b->divide,
			.channels = 2 };
		if (s < kept)
			series[s] = one;
		else
			sweep(b, "10,200 combinations, 1 series", &one, 1, OBK_RQA_PRECISION_F64,
				32e-3, 3.75);
	}
	free(data);
	sweep(b, "10,200 combinations, gaze", series, kept, OBK_RQA_PRECISION_F64, 0.25, 6.7);
	sweep(b, "10,200 combinations, gaze, fp32", series, kept, OBK_RQA_PRECISION_F32, 0.25, 6.7);
	for (unsigned s = 0; s < kept; s++)
		free((void *)(uintptr_t)series[s].data);
}

int bench_gpu(int argc, char **argv)
{
	struct bench b = { .runs = 5, .divide = 1, .most = 1000000, .good = true };
	const char *driver_path = NULL, *only = "", *device = "";
	const struct obk_gpu_driver *driver;
	struct obk_fault fault;
	unsigned ordinal = 0;
	enum ob_err err;

	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
		unsigned number = (unsigned)strtoul(value, NULL, 10);

		if (strcmp(name, "--help") == 0)
			return fputs(usage, stdout) < 0;
		if (strcmp(name, "--device") == 0)
			device = value;
		else if (strcmp(name, "--driver") == 0)
			driver_path = value;
		else if (strcmp(name, "--only") == 0)
			only = value;
		else if (strcmp(name, "--gpu") == 0)
			ordinal = number;
		else if (strcmp(name, "--runs") == 0)
			b.runs = number;
		else if (strcmp(name, "--divide") == 0)
			b.divide = number;
		else if (strcmp(name, "--most") == 0)
			b.most = number;
		else
			device = "";
	}
	if (strcmp(device, "gpu") != 0 || b.runs < 1 || b.runs > RUNS_MOST || b.divide < 1 ||
		b.divide > 50 || (*only && !strstr("single sweep", only)))
		return fputs(usage, stderr), 2;
	err = obk_gpu_driver_open(driver_path, &driver, &fault);
	if (err == OB_ERR_NONE)
		err = obk_gpu_open(driver, ordinal, &b.gpu, &fault);
	if (err != OB_ERR_NONE) {
		fprintf(stderr, "obk-rqa-bench: %s\n", fault.text);
		return 1;
	}
	printf("%s, %u processors, driver %s\n", obk_gpu_info(b.gpu)->name,
		obk_gpu_info(b.gpu)->processors, driver->path);
	if (strcmp(only, "sweep") != 0)
		singles(&b);
	if (strcmp(only, "single") != 0)
		sweeps(&b);
	obk_gpu_close(b.gpu);
	return b.good ? 0 : 1;
}
