/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Recurrence on a device: the same integers as on the CPU, for every kind, norm, window and
 * precision. Uses the first libcuda.so.1 that the loader finds; in the suite it is the software
 * device.
 */
#include <math.h>
#include <unistd.h>

#include "base/opt.h"
#include "compute/gpu/gpu.h"
#include "compute/rqa/rqa.h"
#include "tests/test.h"

#define CASES 45
#define MOST  400

static uint64_t seed = 20;

static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

static void fill(double *data, unsigned count, unsigned kind)
{
	for (unsigned t = 0; t < count; t++)
		data[t] = kind == 0 ? (double)below(20) * 0.05
			: kind == 1 ? (double)(t % 7) * 0.1
				    : sin(0.3 * t) + (double)below(1000) * 1e-4;
}

static void options_draw(struct obk_rqa_options *o)
{
	obk_rqa_options_preset((enum obk_rqa_preset)below(OBK_RQA_PRESET_COUNT), o);
	o->quirks = 0;
	o->want = OBK_RQA_WANT_ALL & ~OBK_RQA_WANT_NETWORK;
	o->kind = (int)below(3);
	o->m = 1 + below(4);
	o->tau = 1 + below(5);
	o->norm = (int)below(4);
	o->test = (int)below(2);
	o->precision = below(2) ? OBK_RQA_PRECISION_F32 : OBK_RQA_PRECISION_F64;
	o->radius = 0.05 * (double)(1 + below(12));
	o->triangle = (int)below(3);
	o->theiler_rr = below(3);
	o->theiler_diag = below(4);
	o->theiler_vert = below(4);
	o->theiler_white = below(3);
}

static void same(const struct obk_rqa_result *a, const struct obk_rqa_result *b)
{
	double values[2][OBK_RQA_MEASURE_COUNT];
	struct obk_rqa_error error;

	for (int h = 0; h < OBK_RQA_HIST_COUNT; h++) {
		uint64_t lengths[2];
		const uint64_t *one = obk_rqa_result_histogram(a, h, &lengths[0]),
			       *other = obk_rqa_result_histogram(b, h, &lengths[1]);

		CHECK_INT(lengths[0], lengths[1]);
		for (uint64_t l = 0; l < lengths[0]; l++)
			CHECK_INT(one[l], other[l]);
	}
	CHECK_INT(obk_rqa_result_measures(a, NULL, values[0], &error), OBK_RQA_OK);
	CHECK_INT(obk_rqa_result_measures(b, NULL, values[1], &error), OBK_RQA_OK);
	CHECK(memcmp(values[0], values[1], sizeof values[0]) == 0);
}

TEST(device_counts_as_the_processor)
{
	static double a[2 * MOST], b[2 * MOST];
	unsigned on = 0;

	for (unsigned round = 0; round < CASES; round++) {
		struct obk_rqa_series x = { .name = "x", .data = a, .channels = 1 + below(2) },
				      y = { .name = "y", .data = b, .channels = x.channels };
		struct obk_rqa_control cpu = { .device = OBK_RQA_DEVICE_CPU },
				       gpu = { .device = OBK_RQA_DEVICE_CUDA };
		struct obk_rqa_result *result[2];
		struct obk_rqa_options o;
		struct obk_rqa_error error;
		int status;

		options_draw(&o);
		/* bands of one slab or of a few, so that lines cross bands */
		gpu.gpu_band = round % 3 ? 1 + below(4000) : 0;
		x.length = 20 + below(round == 7 ? 330 : 90) + (o.m - 1) * o.tau;
		y.length = 20 + below(90) + (o.m - 1) * o.tau;
		fill(a, (unsigned)x.length * x.channels, below(3));
		fill(b, (unsigned)y.length * y.channels, below(3));
		if (round % 5 == 4) {
			o.missing = 1;
			a[below((unsigned)x.length)] = NAN;
		}
		CHECK_INT(obk_rqa_run(&x, o.kind == OBK_RQA_AUTO ? NULL : &y, &o, &cpu, &result[0],
				  &error),
			OBK_RQA_OK);
		status = obk_rqa_run(
			&x, o.kind == OBK_RQA_AUTO ? NULL : &y, &o, &gpu, &result[1], &error);
		if (status != OBK_RQA_OK)
			fprintf(stderr, "%s\n", error.text);
		CHECK_INT(status, OBK_RQA_OK);
		CHECK(strncmp(obk_rqa_result_device(result[1]), "cuda ", 5) == 0);
		same(result[0], result[1]);
		on++;
		obk_rqa_result_free(result[0]);
		obk_rqa_result_free(result[1]);
	}
	CHECK_INT(on, CASES);
}

/*
 * Only diagonal and vertical lines, of a symmetric plot: computed from one triangle, in tiles.
 * Lengths near the edges of a tile, and several rows of tiles.
 */
TEST(one_triangle_has_all_lines)
{
	static const unsigned lengths[] = { 2, 3, 31, 33, 255, 256, 257, 290, 511, 513, 600, 770 };
	static double a[2 * 800], b[2 * 800];

	for (unsigned round = 0; round < 2 * sizeof lengths / sizeof *lengths; round++) {
		struct obk_rqa_series x = { .name = "x", .data = a, .channels = 1 + round % 2 },
				      y = { .name = "y", .data = b, .channels = x.channels };
		struct obk_rqa_control cpu = { .device = OBK_RQA_DEVICE_CPU },
				       gpu = { .device = OBK_RQA_DEVICE_CUDA,
					       .gpu_band = round % 3 == 1 };
		struct obk_rqa_result *result[2];
		struct obk_rqa_options o;
		struct obk_rqa_error error;

		options_draw(&o);
		o.kind = round % 7 == 5 ? OBK_RQA_JOINT : OBK_RQA_AUTO;
		o.m = round % 5 == 4 ? 9 : o.m; /* more pairs (delay, channel) than fit a tile */
		o.want = round % 4 == 3
			? 0
			: OBK_RQA_WANT_VERTICAL | (round % 4 == 2 ? OBK_RQA_WANT_TREND : 0);
		o.theiler_vert = round % 6 == 5 ? 300 : o.theiler_vert;
		x.length = y.length = lengths[round / 2] + (o.m - 1) * o.tau;
		fill(a, (unsigned)x.length * x.channels, below(3));
		fill(b, (unsigned)y.length * y.channels, below(3));
		o.missing = round % 8 == 6;
		if (o.missing)
			a[below((unsigned)x.length)] = NAN;
		CHECK_INT(obk_rqa_run(&x, o.kind == OBK_RQA_AUTO ? NULL : &y, &o, &cpu, &result[0],
				  &error),
			OBK_RQA_OK);
		CHECK_INT(obk_rqa_run(&x, o.kind == OBK_RQA_AUTO ? NULL : &y, &o, &gpu, &result[1],
				  &error),
			OBK_RQA_OK);
		same(result[0], result[1]);
		obk_rqa_result_free(result[0]);
		obk_rqa_result_free(result[1]);
	}
}

/*
 * The Euclidean norm in tiles, decided by approximate distances first. The offsets and scales
 * include some for which approximation must be off. Some series have gaps.
 */
TEST(near_results_are_exact)
{
	static const double offsets[] = { 0, 1e3, 1e9 }, scales[] = { 1, 1e-3, 1e4 };
	static double a[2 * 420];

	for (unsigned round = 0; round < 18; round++) {
		double offset = offsets[round % 3], scale = scales[round / 3 % 3];
		struct obk_rqa_series x = { .name = "x", .data = a, .channels = 1 + round % 2 };
		struct obk_rqa_control cpu = { .device = OBK_RQA_DEVICE_CPU },
				       gpu = { .device = OBK_RQA_DEVICE_CUDA };
		struct obk_rqa_result *result[2];
		struct obk_rqa_options o;
		struct obk_rqa_error error;

		options_draw(&o);
		o.kind = OBK_RQA_AUTO;
		o.norm = OBK_RQA_NORM_L2;
		o.want = OBK_RQA_WANT_VERTICAL;
		o.radius *= scale;
		o.missing = round % 4 == 3;
		x.length = 150 + below(200) + (o.m - 1) * o.tau;
		fill(a, (unsigned)x.length * x.channels, round / 9);
		for (unsigned t = 0; t < x.length * x.channels; t++)
			a[t] = offset + scale * a[t];
		if (o.missing)
			a[below((unsigned)x.length)] = NAN;
		CHECK_INT(obk_rqa_run(&x, NULL, &o, &cpu, &result[0], &error), OBK_RQA_OK);
		CHECK_INT(obk_rqa_run(&x, NULL, &o, &gpu, &result[1], &error), OBK_RQA_OK);
		same(result[0], result[1]);
		obk_rqa_result_free(result[0]);
		obk_rqa_result_free(result[1]);
	}
}

/* In single precision the sample would be infinite, and the distance of two such samples NaN. */
TEST(a_sample_beyond_floats_is_refused_alike)
{
	double data[60];
	struct obk_rqa_series x = { .name = "x", .data = data, .length = 60, .channels = 1 };
	struct obk_rqa_options o;

	fill(data, 60, 2);
	data[20] = data[30] = 1e300;
	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.radius = 0.5;
	for (unsigned i = 0; i < 4; i++) {
		struct obk_rqa_control control = { .device = i % 2 ? OBK_RQA_DEVICE_CUDA
								   : OBK_RQA_DEVICE_CPU };
		struct obk_rqa_result *result = NULL;
		struct obk_rqa_error error;

		o.precision = i / 2 ? OBK_RQA_PRECISION_F64 : OBK_RQA_PRECISION_F32;
		CHECK_INT(obk_rqa_run(&x, NULL, &o, &control, &result, &error),
			i / 2 ? OBK_RQA_OK : OBK_RQA_NOT_FINITE);
		if (i / 2)
			obk_rqa_result_free(result);
		else
			CHECK(error.where == 20 && strstr(error.text, "f64"));
	}
}

static int within_the_whole(void *arg, const struct obk_rqa_progress *progress)
{
	(void)arg;
	CHECK(progress->done <= progress->total);
	return 0;
}

/* bands: the number of pieces of the run. */
static void stop_and_go(unsigned length, uint32_t want, unsigned bands)
{
	static double a[600];
	char path[] = "/tmp/obk-rqa-gpu-XXXXXX";
	obk_rqa_flag cancel = 1; /* the run reads it after each band */
	struct obk_rqa_series x = { .name = "x", .data = a, .length = length, .channels = 1 };
	struct obk_rqa_control cpu = { .device = OBK_RQA_DEVICE_CPU },
			       gpu = { .device = OBK_RQA_DEVICE_CUDA,
				       .gpu_band = 1,
				       .state_path = path,
				       .cancel = &cancel,
				       .progress = within_the_whole };
	struct obk_rqa_result *result[2];
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	int file = mkstemp(path), status;
	unsigned tries = 0;

	CHECK(file >= 0);
	close(file);
	unlink(path);
	fill(a, length, 2);
	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.m = 3;
	o.tau = 4;
	o.radius = 0.5;
	o.want = want;
	CHECK_INT(obk_rqa_run(&x, NULL, &o, &cpu, &result[0], &error), OBK_RQA_OK);
	while ((status = obk_rqa_run(&x, NULL, &o, &gpu, &result[1], &error)) ==
			OBK_RQA_CANCELLED &&
		tries < 100) {
		struct obk_rqa_options other = o;

		other.radius = 0.4;
		if (tries++ == 0)
			CHECK_INT(obk_rqa_run(&x, NULL, &other, &gpu, &result[1], &error),
				OBK_RQA_STATE);
	}
	CHECK_INT(tries, bands - 1);
	CHECK_INT(status, OBK_RQA_OK);
	CHECK(access(path, F_OK) != 0);
	same(result[0], result[1]);
	obk_rqa_result_free(result[0]);
	obk_rqa_result_free(result[1]);
}

TEST(a_stopped_run_goes_on_where_it_was)
{
	stop_and_go(200, OBK_RQA_WANT_ALL & ~OBK_RQA_WANT_NETWORK, 6); /* 192 rows, 32 per band */
	ob_opt_set(OB_OPT_BANDS, true);
	stop_and_go(600, OBK_RQA_WANT_VERTICAL, 3); /* 592 rows, 256 per band */
}

/* ---- sweeps ---- */

#define ROWS 4096

struct table {
	double values[ROWS][OBK_RQA_MEASURE_COUNT];
	int status[ROWS];
	unsigned rows;
	const struct obk_rqa_grid *grid;
	bool first_m; /* only the grid's first m is wanted */
};

static int want_first_m(void *arg, uint64_t series, uint32_t mode, uint32_t m, uint32_t tau)
{
	const struct table *t = arg;

	(void)series;
	(void)mode;
	(void)tau;
	return m == t->grid->m[0];
}

static int rows_keep(void *arg, const struct obk_rqa_row *rows, uint32_t count)
{
	struct table *t = arg;

	for (uint32_t r = 0; r < count; r++) {
		const struct obk_rqa_grid *g = t->grid;
		uint64_t at = rows[r].series * (g->modes ? g->mode_count : 1) + rows[r].mode;

		t->rows++;
		if (t->first_m && rows[r].status == OBK_RQA_SKIPPED)
			continue;
		at = ((at * (t->first_m ? 1 : g->m_count) + rows[r].m_index) * g->tau_count +
			     rows[r].tau_index) *
				g->radius_count +
			rows[r].radius_index;
		at = at * g->lmin_count + rows[r].lmin_index;
		CHECK(at < ROWS);
		t->status[at] = rows[r].status;
		if (rows[r].status == OBK_RQA_OK)
			memcpy(t->values[at], rows[r].values, sizeof t->values[at]);
	}
	return 0;
}

static void sweeps_agree(const struct obk_rqa_series *series, unsigned count,
	const struct obk_rqa_options *o, const struct obk_rqa_grid *grid, bool first_m)
{
	static struct table tables[2];
	struct obk_rqa_sweep sweep = { .series = series,
		.series_count = count,
		.options = o,
		.grid = grid,
		.rows = rows_keep,
		.want = first_m ? want_first_m : NULL };

	for (int i = 0; i < 2; i++) {
		struct obk_rqa_control control = { .threads = 2,
			.device = i ? OBK_RQA_DEVICE_CUDA : OBK_RQA_DEVICE_CPU,
			.arg = &tables[i] };
		struct obk_rqa_error error;
		int status;

		memset(&tables[i], 0, sizeof tables[i]);
		tables[i].grid = grid;
		tables[i].first_m = first_m;
		status = obk_rqa_sweep(&sweep, &control, &error);
		if (status != OBK_RQA_OK)
			fprintf(stderr, "%s\n", error.text);
		CHECK_INT(status, OBK_RQA_OK);
	}
	CHECK(tables[0].rows > 0);
	CHECK_INT(tables[0].rows, tables[1].rows);
	CHECK(memcmp(tables[0].status, tables[1].status, sizeof tables[0].status) == 0);
	CHECK(memcmp(tables[0].values, tables[1].values, sizeof tables[0].values) == 0);
}

TEST(sweeps_are_the_same_to_the_last_bit)
{
	static double data[4][2 * 620];
	static const unsigned lengths[4] = { 46, 9, 99, 70 };
	static const uint32_t m[] = { 3, 1, 2, 2, 8 }, tau[] = { 1, 5 }, lmin[] = { 2, 3 };
	static const struct obk_rqa_mode modes[] = {
		{ .name = "1D-x", .channel_count = 1, .channels = { 0 }, .norm = OBK_RQA_NORM_L1 },
		{ .name = "2D-xy",
			.channel_count = 2,
			.channels = { 0, 1 },
			.norm = OBK_RQA_NORM_L2 }
	};
	double radius[70];
	struct obk_rqa_series series[4];
	struct obk_rqa_options o;
	struct obk_rqa_grid grid = { .m = m,
		.tau = tau,
		.lmin = lmin,
		.radius = radius,
		.m_count = 5,
		.tau_count = 2,
		.lmin_count = 2,
		.radius_count = 3,
		.modes = modes,
		.mode_count = 2 };

	for (unsigned i = 0; i < 70; i++)
		radius[i] = 0.05 * (double)((i * 7) % 71);
	for (unsigned i = 0; i < 4; i++) {
		fill(data[i], 2 * 620, i % 3);
		series[i] = (struct obk_rqa_series){
			.name = "s", .data = data[i], .length = lengths[i], .channels = 2
		};
	}
	data[3][20] = NAN;
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	o.missing = 1; /* the last series has a gap: the CPU computes it, not the device */
	sweeps_agree(series, 4, &o, &grid, false);
	o.want = OBK_RQA_WANT_VERTICAL;
	o.theiler_vert = 2;
	o.theiler_diag = o.theiler_rr = 3;
	o.norm = OBK_RQA_NORM_MAX;
	o.precision = OBK_RQA_PRECISION_F32;
	grid.modes = NULL;
	sweeps_agree(series, 3, &o, &grid, false);
	/* More radii, and then more lines, than one block processes. */
	grid.radius_count = 70;
	grid.m_count = grid.tau_count = 1;
	sweeps_agree(series, 1, &o, &grid, false);
	series[0].length = 560;
	grid.radius_count = 2;
	sweeps_agree(series, 1, &o, &grid, false);
}

/* Each use of a column is a separate plane on the device. */
TEST(a_mode_may_name_a_column_again)
{
	static double data[2][90];
	static const uint32_t m[] = { 1, 2 }, one[] = { 1 }, lmin[] = { 2 };
	static const double radius[] = { 0.1, 0.4 };
	static const struct obk_rqa_mode mode = { .name = "x+x+x",
		.channel_count = 3,
		.channels = { 0, 0, 0 },
		.norm = OBK_RQA_NORM_L2 };
	static const struct obk_rqa_grid grid = { .m = m,
		.tau = one,
		.lmin = lmin,
		.radius = radius,
		.m_count = 2,
		.tau_count = 1,
		.lmin_count = 1,
		.radius_count = 2,
		.modes = &mode,
		.mode_count = 1 };
	struct obk_rqa_series series[2];
	struct obk_rqa_options o;

	for (unsigned i = 0; i < 2; i++) {
		fill(data[i], 90, 2);
		series[i] = (struct obk_rqa_series){
			.name = "s", .data = data[i], .length = 90, .channels = 1
		};
	}
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	sweeps_agree(series, 2, &o, &grid, false);
}

/*
 * Histograms of all m and radii of the long series would take more than 1 GiB, so the CPU computes
 * it. The device computes the other two in several batches; later batches find their series on the
 * device.
 */
TEST(a_unit_too_large_is_none_of_the_devices)
{
	enum { MS = 4096, RADII = 70, SERIES = 3 };
	static double data[SERIES][520];
	static uint32_t m[MS];
	static const uint32_t tau[] = { 2, 1 }, lmin[] = { 2 };
	double radius[RADII];
	struct obk_rqa_grid grid = { .m = m,
		.tau = tau,
		.lmin = lmin,
		.radius = radius,
		.m_count = MS,
		.tau_count = 2,
		.lmin_count = 1,
		.radius_count = RADII };
	struct obk_rqa_series series[SERIES];
	struct obk_rqa_options o;

	for (unsigned i = 0; i < MS; i++)
		m[i] = i ? 2 : 1;
	for (unsigned i = 0; i < RADII; i++)
		radius[i] = 0.01 * (double)(1 + i);
	for (unsigned i = 0; i < SERIES; i++) {
		fill(data[i], 520, 2);
		series[i] = (struct obk_rqa_series){
			.name = "s", .data = data[i], .length = i == 1 ? 520 : 40, .channels = 1
		};
	}
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	o.want = OBK_RQA_WANT_VERTICAL;
	sweeps_agree(series, SERIES, &o, &grid, true);
}

/*
 * The planes of all series need more memory than the software device has here; those of a batch
 * fit.
 */
TEST(series_that_do_not_fit_together_go_with_their_batches)
{
	enum { MS = 4096, SERIES = 2000 };
	static const uint32_t tau[] = { 2, 1 }, lmin[] = { 2 };
	static const double radius[] = { 0.3 };
	static struct obk_rqa_series series[SERIES];
	static double data[SERIES][10];
	static uint32_t m[MS];
	struct obk_rqa_mode mode = {
		.name = "x+x", .channel_count = 40, .channels = { 0 }, .norm = OBK_RQA_NORM_L2
	};
	struct obk_rqa_grid grid = { .m = m,
		.tau = tau,
		.lmin = lmin,
		.radius = radius,
		.m_count = MS,
		.tau_count = 2,
		.lmin_count = 1,
		.radius_count = 1,
		.modes = &mode,
		.mode_count = 1 };
	struct obk_rqa_options o;

	if (TEST_SANITIZED)
		TEST_SKIP("sixteen million rows take a sanitizer too long");
	CHECK(setenv("OUTBOARD_SOFT_MEMORY", "40M", 1) == 0);
	ob_opt_set(OB_OPT_LEVELS, true);
	for (unsigned i = 0; i < MS; i++)
		m[i] = i ? 2 : 1;
	for (unsigned i = 0; i < SERIES; i++) {
		fill(data[i], 10, 2);
		series[i] = (struct obk_rqa_series){
			.name = "s", .data = data[i], .length = 10, .channels = 1
		};
	}
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	o.want = OBK_RQA_WANT_VERTICAL;
	sweeps_agree(series, SERIES, &o, &grid, true);
}

/* Returns the bytes that a sweep of `taus` delays sends to a device. */
static uint64_t sweep_upload(uint32_t taus)
{
	static double data[2 * 2000];
	static const uint32_t one[] = { 1 }, tau[] = { 1, 2, 3, 4 };
	static const double radius[] = { 0.2 };
	struct obk_rqa_grid grid = { .m = one,
		.tau = tau,
		.lmin = one,
		.radius = radius,
		.m_count = 1,
		.tau_count = taus,
		.lmin_count = 1,
		.radius_count = 1 };
	struct obk_rqa_series x = { .name = "x", .data = data, .length = 2000, .channels = 2 };
	static struct table table;
	const struct obk_gpu_driver *driver;
	struct obk_fault fault = { .text = "" };
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	struct obk_gpu_stats stats;
	struct obk_gpu *gpu;
	struct obk_rqa_control control = {
		.threads = 1, .device = OBK_RQA_DEVICE_CUDA, .arg = &table
	};
	struct obk_rqa_sweep sweep = {
		.series = &x, .series_count = 1, .options = &o, .grid = &grid, .rows = rows_keep
	};

	ob_opt_set(OB_OPT_LEVELS, true); /* otherwise each combination is a separate run */
	table.grid = &grid;
	fill(data, 2 * 2000, 2);
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	CHECK_INT(obk_gpu_driver_open(NULL, &driver, &fault), OB_ERR_NONE);
	CHECK_INT(obk_gpu_open(driver, 0, &gpu, &fault), OB_ERR_NONE);
	control.gpu = gpu;
	CHECK_INT(obk_rqa_sweep(&sweep, &control, &error), OBK_RQA_OK);
	obk_gpu_stats(gpu, &stats);
	CHECK_INT(stats.in_use, 0);
	obk_gpu_close(gpu);
	return stats.bytes_to;
}

TEST(a_series_goes_to_the_device_once)
{
	uint64_t one = sweep_upload(1), four = sweep_upload(4);

	CHECK(one >= 2 * 2000 * sizeof(double));
	CHECK(four - one < 2 * 2000 * sizeof(double) / 4);
}

TEST(what_a_device_cannot_do_is_said)
{
	double data[50], radius;
	struct obk_rqa_series x = { .name = "x", .data = data, .length = 50, .channels = 1 };
	struct obk_rqa_control gpu = { .device = OBK_RQA_DEVICE_CUDA };
	struct obk_rqa_options o;
	struct obk_rqa_error error;

	fill(data, 50, 2);
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	CHECK_INT(obk_rqa_radius(&x, NULL, &o, &gpu, &radius, &error), OBK_RQA_UNSUPPORTED);
	CHECK(strstr(error.text, "cpu"));
}

int main(int argc, char **argv)
{
	if (getenv("OUTBOARD_TEST_LIBCUDA"))
		test_fds_allowed = 4096; /* NVIDIA's driver keeps files open */
	return test_main(argc, argv);
}
