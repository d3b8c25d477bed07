/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Everything but counting: radii relative to the data, kinds, windows, plots, errors, cancelling,
 * resuming.
 */
#include <fcntl.h>
#include <math.h>

#include "tests/compute/rqa/brute.h"
#include "tests/test.h"

static double data[2000], other[2000];
static struct obk_rqa_series x = { .name = "left.csv", .data = data, .length = 300, .channels = 1 },
			     y = { .name = "right.csv",
				     .data = other,
				     .length = 280,
				     .channels = 1 };

static void series_make(uint64_t seed)
{
	double a = 0, b = 0;

	for (unsigned t = 0; t < 2000; t++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		a = 0.9 * a + (double)(seed >> 40) * 0x1p-24 - 0.5;
		b = 0.8 * b + (double)(seed >> 20 & 0xffff) * 0x1p-16 - 0.5;
		data[t] = a;
		other[t] = b;
	}
}

static int double_compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

TEST(radius_by_recurrence_rate)
{
	static double sorted[300 * 300];
	struct obk_rqa_options o;
	double v[OBK_RQA_MEASURE_COUNT];
	unsigned n = 298;

	series_make(1);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < n; j++)
			sorted[i * n + j] =
				fmax(fabs(data[i] - data[j]), fabs(data[i + 2] - data[j + 2]));
	qsort(sorted, n * n, sizeof *sorted, double_compare);
	obk_rqa_options_preset(OBK_RQA_PRESET_NONLINEARTSERIES, &o);
	o.m = o.tau = 2;
	o.radius_kind = OBK_RQA_RADIUS_RATE;
	for (o.radius = 0.01; o.radius < 1; o.radius += 0.0613) {
		unsigned place = (unsigned)ceil(o.radius * n * n) - 1;

		o.test = OBK_RQA_TEST_LE;
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
		CHECK(v[OBK_RQA_RADIUS] == sorted[place] && v[OBK_RQA_RR] >= o.radius &&
			v[OBK_RQA_RR] < o.radius + 4. / n / n);
		/*
		 * With the strict test: the radius is the value at that rank, and RR counts the
		 * values below it.
		 */
		o.test = OBK_RQA_TEST_LT;
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
		CHECK(v[OBK_RQA_RADIUS] == sorted[(unsigned)floor(o.radius * n * n)] &&
			v[OBK_RQA_RR] <= o.radius);
	}
	o.norm = OBK_RQA_NORM_L2;
	o.test = OBK_RQA_TEST_LE;
	o.radius = 0.1;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_RR] >= 0.1 && v[OBK_RQA_RR] < 0.1 + 4. / n / n);
	o.precision = OBK_RQA_PRECISION_F32;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_RR] >= 0.1 && v[OBK_RQA_RR] < 0.1 + 20. / n / n);
}

TEST(radius_by_spread_and_distance)
{
	struct obk_rqa_options o;
	double radius, mean = 0, squares = 0, largest = 0, sum = 0;

	series_make(2);
	for (unsigned t = 0; t < 300; t++)
		mean += data[t] / 300;
	for (unsigned t = 0; t < 300; t++)
		squares += (data[t] - mean) * (data[t] - mean);
	for (unsigned i = 0; i < 300; i++)
		for (unsigned j = 0; j < 300; j++) {
			largest = fmax(largest, fabs(data[i] - data[j]));
			sum += fabs(data[i] - data[j]);
		}
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	o.radius = 0.2;
	o.radius_kind = OBK_RQA_RADIUS_SD;
	CHECK_INT(obk_rqa_radius(&x, NULL, &o, NULL, &radius, NULL), OBK_RQA_OK);
	CHECK(fabs(radius - 0.2 * sqrt(squares / 299)) < 1e-12);
	o.radius_kind = OBK_RQA_RADIUS_MAX_DISTANCE;
	CHECK_INT(obk_rqa_radius(&x, NULL, &o, NULL, &radius, NULL), OBK_RQA_OK);
	CHECK(fabs(radius - 0.2 * largest) < 1e-12);
	o.radius_kind = OBK_RQA_RADIUS_MEAN_DISTANCE;
	CHECK_INT(obk_rqa_radius(&x, NULL, &o, NULL, &radius, NULL), OBK_RQA_OK);
	CHECK(fabs(radius - 0.2 * sum / 90000) < 1e-12);
}

/* The cross plot and the joint plot of a series with itself are equal to its auto plot. */
TEST(kinds_agree)
{
	struct obk_rqa_options o;
	double v[3][OBK_RQA_MEASURE_COUNT];

	series_make(3);
	for (int kind = 0; kind < 3; kind++) {
		obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
		o.kind = kind;
		o.m = 2;
		o.tau = 3;
		o.radius = 0.4;
		CHECK_INT(
			obk_rqa_measure(&x, kind ? &x : NULL, &o, NULL, v[kind], NULL), OBK_RQA_OK);
	}
	for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++) {
		CHECK(isnan(v[0][i]) ? isnan(v[2][i]) : v[0][i] == v[2][i]);
		if (i != OBK_RQA_CORM)
			CHECK(isnan(v[0][i]) ? isnan(v[1][i])
					     : fabs(v[0][i] - v[1][i]) <= 1e-12 * fabs(v[0][i]));
	}
}

TEST(measures_again_without_counting)
{
	struct obk_rqa_options o, changed;
	struct obk_rqa_result *result;
	struct obk_rqa_error error;
	double again[OBK_RQA_MEASURE_COUNT], fresh[OBK_RQA_MEASURE_COUNT];

	series_make(4);
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	o.radius = 0.3;
	CHECK_INT(obk_rqa_run(&x, NULL, &o, NULL, &result, &error), OBK_RQA_OK);
	CHECK(strncmp(obk_rqa_result_device(result), "cpu ", 4) == 0);
	changed = o;
	changed.lmin = 5;
	changed.vmin = 3;
	changed.log_base = OBK_RQA_LOG2;
	changed.white = OBK_RQA_WHITE_INNER;
	changed.percent = 100;
	CHECK_INT(obk_rqa_result_measures(result, &changed, again, &error), OBK_RQA_OK);
	CHECK_INT(obk_rqa_measure(&x, NULL, &changed, NULL, fresh, &error), OBK_RQA_OK);
	for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++)
		CHECK(again[i] == fresh[i] || (isnan(again[i]) && isnan(fresh[i])));
	changed.radius = 0.4;
	CHECK_INT(obk_rqa_result_measures(result, &changed, again, &error), OBK_RQA_ARGUMENT);
	CHECK(strstr(error.text, "need a new run"));
	obk_rqa_result_free(result);
}

struct windows {
	unsigned count, failed;
	struct obk_rqa_options options;
};

static int on_window(void *arg, uint64_t index, uint64_t first, const double *values,
	const struct obk_rqa_error *error)
{
	struct windows *windows = arg;
	struct obk_rqa_series part = { .data = data + first, .length = 100, .channels = 1 };
	double v[OBK_RQA_MEASURE_COUNT];

	CHECK_INT(index, windows->count++);
	CHECK_INT(first, index * 30);
	CHECK((values == NULL) == (error != NULL));
	if (!values) {
		windows->failed++;
		return 0;
	}
	CHECK_INT(obk_rqa_measure(&part, NULL, &windows->options, NULL, v, NULL), OBK_RQA_OK);
	for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++)
		CHECK(v[i] == values[i] || (isnan(v[i]) && isnan(values[i])));
	return 0;
}

TEST(windows)
{
	struct windows windows = { 0 };
	struct obk_rqa_error error;

	series_make(5);
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &windows.options);
	windows.options.radius = 0.3;
	CHECK_INT(obk_rqa_windows(
			  &x, NULL, &windows.options, 100, 30, NULL, on_window, &windows, &error),
		OBK_RQA_OK);
	CHECK_INT(windows.count, 7);
	data[45] = NAN;
	windows.count = 0;
	CHECK_INT(obk_rqa_windows(
			  &x, NULL, &windows.options, 100, 30, NULL, on_window, &windows, &error),
		OBK_RQA_OK);
	CHECK_INT(windows.count, 7);
	CHECK_INT(windows.failed, 2);
	CHECK_INT(obk_rqa_windows(
			  &x, NULL, &windows.options, 301, 30, NULL, on_window, &windows, &error),
		OBK_RQA_TOO_SHORT);
}

TEST(plots)
{
	static struct brute b;
	static uint8_t pixels[300 * 280], little[40 * 28];
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	uint64_t columns, rows;

	series_make(6);
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	o.kind = OBK_RQA_CROSS;
	o.radius = 0.3;
	brute_matrix(&b, &x, &y, &o);
	CHECK_INT(obk_rqa_plot_size(&x, &y, &o, &columns, &rows, &error), OBK_RQA_OK);
	CHECK(columns == 300 && rows == 280);
	CHECK_INT(obk_rqa_plot(&x, &y, &o, 300, 280, 0, NULL, pixels, &error), OBK_RQA_OK);
	for (unsigned i = 0; i < 300; i++)
		for (unsigned j = 0; j < 280; j++)
			CHECK_INT(pixels[(279 - j) * 300 + i], b.cell[i][j] ? 0 : 255);
	CHECK_INT(obk_rqa_plot(&x, &y, &o, 40, 28, 1, NULL, little, &error), OBK_RQA_OK);
	for (unsigned p = 0; p < 40; p++)
		for (unsigned q = 0; q < 28; q++) {
			unsigned set = 0, cells = 0;

			for (unsigned i = p * 300 / 40; i < (p + 1) * 300 / 40; i++)
				for (unsigned j = q * 10; j < q * 10 + 10; j++) {
					set += b.cell[i][j];
					cells++;
				}
			CHECK_INT(little[(27 - q) * 40 + p], 255 - (set * 255 + cells / 2) / cells);
		}
	CHECK_INT(obk_rqa_plot(&x, &y, &o, 301, 1, 0, NULL, pixels, &error), OBK_RQA_ARGUMENT);
}

/* A range of 65 units in the last place; its middle is not a floating-point number. */
TEST(a_middle_that_is_rounded_cuts_nothing_off)
{
	static double steps[700];
	struct obk_rqa_series series = { .name = "x", .data = steps, .length = 700, .channels = 1 };
	double v[2][OBK_RQA_MEASURE_COUNT];
	struct obk_rqa_options o;

	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.norm = OBK_RQA_NORM_L2;
	o.precision = OBK_RQA_PRECISION_F64;
	o.want = OBK_RQA_WANT_VERTICAL;
	o.radius = 20.75 * 0x1p-16;
	for (unsigned offset = 0; offset < 2; offset++) {
		for (unsigned t = 0; t < 700; t++)
			steps[t] = 1e11 * offset + (double)(t * 7 % 66) * 0x1p-16;
		CHECK_INT(obk_rqa_measure(&series, NULL, &o, NULL, v[offset], NULL), OBK_RQA_OK);
	}
	CHECK(v[0][OBK_RQA_POINTS] == v[1][OBK_RQA_POINTS]);
}

/* Each wrong input has its own status, and the text names the error and its place. */
TEST(errors_say_what_and_where)
{
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	struct obk_rqa_series bad;
	double v[OBK_RQA_MEASURE_COUNT] = { 42 };

	series_make(7);
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	bad = x;
	bad.length = 1;
	CHECK_INT(obk_rqa_measure(&bad, NULL, &o, NULL, v, &error), OBK_RQA_TOO_SHORT);
	bad.length = 0;
	CHECK_INT(obk_rqa_measure(&bad, NULL, &o, NULL, v, &error), OBK_RQA_TOO_SHORT);
	bad.length = 20;
	o.m = 10;
	o.tau = 3;
	CHECK_INT(obk_rqa_measure(&bad, NULL, &o, NULL, v, &error), OBK_RQA_TOO_SHORT);
	CHECK(strstr(error.text, "left.csv") && strstr(error.text, "29"));
	o.m = o.tau = 1;
	data[17] = INFINITY;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_NOT_FINITE);
	CHECK(error.where == 17 && strstr(error.text, "sample 17"));
	o.missing = 1;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_OK);
	CHECK(v[OBK_RQA_LMAX] == 282);
	series_make(7);
	data[23] = -1e300;
	for (int missing = 0; missing < 2; missing++) { /* infinity is not a gap */
		o.missing = missing;
		o.precision = OBK_RQA_PRECISION_F32;
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_NOT_FINITE);
		CHECK(error.where == 23 && strstr(error.text, "left.csv: sample 23 ") &&
			strstr(error.text, "f64"));
		o.precision = OBK_RQA_PRECISION_F64;
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_OK);
	}
	data[23] = 3.4e38;
	o.precision = OBK_RQA_PRECISION_F32;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_OK);
	o.precision = OBK_RQA_PRECISION_AUTO;
	data[23] = 1.7e308;
	data[29] = -1.7e308;
	o.scale = OBK_RQA_SCALE_UNIT;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_NOT_FINITE);
	CHECK(strstr(error.text, "`scale`"));
	o.scale = OBK_RQA_SCALE_NONE;
	series_make(7);
	v[0] = 42;
	bad = x;
	bad.channels = OBK_RQA_MAX_CHANNELS + 1;
	CHECK_INT(obk_rqa_measure(&bad, NULL, &o, NULL, v, &error), OBK_RQA_LIMIT);
	bad.channels = 0;
	CHECK_INT(obk_rqa_measure(&bad, NULL, &o, NULL, v, &error), OBK_RQA_ARGUMENT);
	o.m = OBK_RQA_MAX_M + 1;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_LIMIT);
	o.m = 0;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_ARGUMENT);
	o.m = 1;
	o.radius = NAN;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_ARGUMENT);
	o.radius = 0.1;
	CHECK_INT(obk_rqa_measure(&x, &y, &o, NULL, v, &error), OBK_RQA_ARGUMENT);
	o.kind = OBK_RQA_CROSS;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_ARGUMENT);
	bad = y;
	bad.channels = 2;
	bad.length /= 2;
	CHECK_INT(obk_rqa_measure(&x, &bad, &o, NULL, v, &error), OBK_RQA_ARGUMENT);
	CHECK_INT(error.item, 1);
	o.size = 7;
	CHECK_INT(obk_rqa_measure(&x, &y, &o, NULL, v, &error), OBK_RQA_ARGUMENT);
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	CHECK_INT(obk_rqa_measure(&x, NULL, &o,
			  &(struct obk_rqa_control){ .device = OBK_RQA_DEVICE_CUDA }, v, &error),
		OBK_RQA_UNSUPPORTED);
	CHECK_INT(
		obk_rqa_measure(&x, NULL, &o,
			&(struct obk_rqa_control){ .threads = OBK_RQA_MAX_THREADS + 1 }, v, &error),
		OBK_RQA_LIMIT);
	CHECK(v[0] == 42);
	for (int s = 0; s < OBK_RQA_STATUS_COUNT; s++)
		CHECK(strcmp(obk_rqa_status_name(s), "unknown"));
	CHECK_INT(obk_rqa_preset_find("julia"), OBK_RQA_PRESET_JULIA);
	CHECK_INT(obk_rqa_preset_find("none"), -1);
	CHECK_INT(obk_rqa_measure_find("lmax"), OBK_RQA_LMAX);
	CHECK_INT(obk_rqa_measure_find("T"), OBK_RQA_TRANSITIVITY);
	CHECK_INT(obk_rqa_options_preset(OBK_RQA_PRESET_COUNT, &o), OBK_RQA_ARGUMENT);
}

#if TEST_SLOWER > 1
/* One pass over fewer cells. */
#define BIG      4000
#define BIG_WANT OBK_RQA_WANT_VERTICAL
#else
#define BIG      6000
#define BIG_WANT (OBK_RQA_WANT_ALL & ~OBK_RQA_WANT_NETWORK)
#endif

/*
 * Set when the state of a run has been written. The program is linked with the static library, so
 * the library calls the rename() of this file. A run that is cancelled in it has written its state
 * and still has work left, on a machine of any speed.
 */
static obk_rqa_flag cancel;
static bool cancel_when_saved;

int rename(const char *from, const char *to)
{
	int failed = renameat(AT_FDCWD, from, AT_FDCWD, to);

	if (!failed && cancel_when_saved)
		cancel = 1;
	return failed;
}

/* Checks the bounds of the counts that a run reports, also after it was resumed. */
static int check_progress(void *arg, const struct obk_rqa_progress *progress)
{
	(void)arg;
	CHECK(progress->done <= progress->total);
	return 0;
}

/* Long enough for several pieces of work, between which the state is written. */
#define RESUMED 8000

/* Stops a run each time its state is written, and resumes it. Returns how often. */
static unsigned resume_from(const char *path, uint32_t want)
{
	static double big[2 * RESUMED];
	struct obk_rqa_series series = {
		.name = "big", .data = big, .length = RESUMED, .channels = 2
	};
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	double whole[OBK_RQA_MEASURE_COUNT], parts[OBK_RQA_MEASURE_COUNT];
	struct obk_rqa_control control = { .threads = 1,
		.progress = check_progress,
		.cancel = &cancel,
		.state_path = path,
		.state_period = 1e-9 };
	int status = OBK_RQA_CANCELLED;
	unsigned stopped = 0;

	for (unsigned t = 0; t < 2 * RESUMED; t++)
		big[t] = sin(0.01 * t) + 0.2 * sin(1.7 * t * t);
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	o.want = want;
	o.radius = sqrt(3);
	o.m = 3;
	o.tau = 2;
	CHECK_INT(obk_rqa_measure(&series, NULL, &o, NULL, whole, &error), OBK_RQA_OK);
	cancel_when_saved = true;
	while (status == OBK_RQA_CANCELLED) {
		/* after the first round a state exists, so the run resumes */
		CHECK((access(path, F_OK) == 0) == (stopped > 0));
		cancel = 0;
		status = obk_rqa_measure(&series, NULL, &o, &control, parts, &error);
		stopped += status == OBK_RQA_CANCELLED;
	}
	cancel_when_saved = false;
	CHECK_INT(status, OBK_RQA_OK);
	CHECK(access(path, F_OK) != 0);
	for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++)
		CHECK(whole[i] == parts[i] || (isnan(whole[i]) && isnan(parts[i])));
	return stopped;
}

TEST(stopped_runs_resume)
{
	char path[64];

	snprintf(path, sizeof path, "/tmp/rqa-state-%d", (int)getpid());
	CHECK(resume_from(path,
		      OBK_RQA_WANT_VERTICAL | OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES |
			      OBK_RQA_WANT_TREND) >= 2);
	CHECK(resume_from(path, OBK_RQA_WANT_VERTICAL) >= 1); /* two pieces of eight bands */
}

TEST(foreign_and_damaged_files_are_refused)
{
	static double big[BIG];
	struct obk_rqa_series series = { .name = "big", .data = big, .length = BIG, .channels = 1 };
	char path[64];
	struct obk_rqa_control control = {
		.threads = 1, .cancel = &cancel, .state_path = path, .state_period = 1e-9
	};
	struct obk_rqa_options o;
	struct obk_rqa_error error;
	double v[OBK_RQA_MEASURE_COUNT];
	int file;

	snprintf(path, sizeof path, "/tmp/rqa-state2-%d", (int)getpid());
	for (unsigned t = 0; t < BIG; t++)
		big[t] = sin(1.7 * t * t);
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	o.m = 70;
	o.want = BIG_WANT;
	o.radius = 0.5;
	cancel_when_saved = true;
	CHECK_INT(obk_rqa_measure(&series, NULL, &o, &control, v, &error), OBK_RQA_CANCELLED);
	cancel_when_saved = false;
	cancel = 0;
	o.radius = 0.51;
	CHECK_INT(obk_rqa_measure(&series, NULL, &o, &control, v, &error), OBK_RQA_STATE);
	CHECK(strstr(error.text, "another series"));
	o.radius = 0.5;
	file = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(file >= 0 && pwrite(file, "\x33", 1, 0) == 1 && close(file) == 0); /* a GPU's state */
	CHECK_INT(obk_rqa_measure(&series, NULL, &o, &control, v, &error), OBK_RQA_STATE);
	CHECK(strstr(error.text, "another device"));
	file = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(file >= 0 && pwrite(file, "\x32", 1, 0) == 1 && close(file) == 0);
	file = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(file >= 0 && pwrite(file, "\x55", 1, 100) == 1 && close(file) == 0);
	CHECK_INT(obk_rqa_measure(&series, NULL, &o, &control, v, &error), OBK_RQA_STATE);
	CHECK(strstr(error.text, "damaged"));
	CHECK(truncate(path, 3) == 0);
	CHECK_INT(obk_rqa_measure(&series, NULL, &o, &control, v, &error), OBK_RQA_STATE);
	unlink(path);
	control.state_path = "/nowhere/at/all";
	CHECK_INT(obk_rqa_measure(&series, NULL, &o, &control, v, &error), OBK_RQA_IO);
	cancel = 1;
	control.state_path = NULL;
	CHECK_INT(obk_rqa_measure(&series, NULL, &o, &control, v, &error), OBK_RQA_CANCELLED);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
