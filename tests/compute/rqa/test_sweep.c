/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Each row of a sweep equals a single run to the last bit. A failure affects only its own rows. */
#include <malloc.h>
#include <math.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "base/opt.h"
#include "compute/rqa/rqa.h"
#include "tests/test.h"

#define SERIES 6
#define LENGTH 400

static double data[SERIES][2 * LENGTH];
static struct obk_rqa_series series[SERIES];
static uint64_t seed = 3;

static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

static void series_make(void)
{
	static const unsigned lengths[SERIES] = { 46, 99, 64, 200, 129, LENGTH };

	for (unsigned s = 0; s < SERIES; s++) {
		double x = 0.5, y = 0.5;

		for (unsigned t = 0; t < lengths[s]; t++) {
			if (below(10) == 0) {
				x = below(1000) * 1e-3;
				y = below(1000) * 1e-3;
			}
			data[s][2 * t] = x + (double)below(9) * 0.005;
			data[s][2 * t + 1] = y + (double)below(9) * 0.005;
		}
		series[s] = (struct obk_rqa_series){
			.name = "gaze", .data = data[s], .length = lengths[s], .channels = 2
		};
	}
}

static const uint32_t ms[] = { 3, 1, 2, 10, 2 }, taus[] = { 2, 1, 7 }, lmins[] = { 3, 2, 2, 9 };
static const double radii[] = { 0.05, 0.01, 0.07, 0.0699, 0.05, 0, 0.3, 2, 1e300 };
static const struct obk_rqa_mode modes[] = {
	{ .name = "1D-x", .channel_count = 1, .channels = { 0 }, .norm = OBK_RQA_NORM_L1 },
	{ .name = "2D-xy", .channel_count = 2, .channels = { 0, 1 }, .norm = OBK_RQA_NORM_L2 },
	{ .name = "2D-yx", .channel_count = 2, .channels = { 1, 0 }, .norm = OBK_RQA_NORM_MAX },
};
static const struct obk_rqa_grid grid = { ms, taus, lmins, radii, 5, 3, 9, 4, modes, 3 };

struct seen {
	struct obk_rqa_options options;
	unsigned char once[SERIES][3][5][3][9][4];
	unsigned rows, failed, skipped, checked;
	uint64_t last_done, cells;
	unsigned reports, stop_after;
	unsigned check_every;
	bool sd;
};

static int rows_check(void *arg, const struct obk_rqa_row *rows, uint32_t count)
{
	struct seen *seen = arg;

	CHECK_INT(count, 9 * 4);
	for (uint32_t r = 0; r < count; r++) {
		const struct obk_rqa_row *row = &rows[r];
		struct obk_rqa_options o = seen->options;
		struct obk_rqa_series part = { .data = series[row->series].data,
			.length = series[row->series].length,
			.channels = modes[row->mode].channel_count,
			.step = 2 };
		double v[OBK_RQA_MEASURE_COUNT], flipped[2 * LENGTH];
		struct obk_rqa_error error;
		int status;

		CHECK(!seen->once[row->series][row->mode][row->m_index][row->tau_index]
				 [row->radius_index][row->lmin_index]++);
		CHECK(row->m == ms[row->m_index] && row->tau == taus[row->tau_index] &&
			row->lmin == lmins[row->lmin_index] &&
			row->radius == radii[row->radius_index]);
		CHECK_INT(row->radius_index * 4 + row->lmin_index, r);
		seen->rows++;
		seen->failed += row->status != OBK_RQA_OK && row->status != OBK_RQA_SKIPPED;
		seen->skipped += row->status == OBK_RQA_SKIPPED;
		CHECK((row->status == OBK_RQA_OK) == (row->values != NULL));
		CHECK((row->status == OBK_RQA_OK) == (row->reason == NULL));
		if (seen->check_every == 0 || seen->rows % seen->check_every)
			continue;
		if (row->mode == 2) {
			for (uint64_t t = 0; t < part.length; t++) {
				flipped[2 * t] = part.data[2 * t + 1];
				flipped[2 * t + 1] = part.data[2 * t];
			}
			part.data = flipped;
		}
		o.m = row->m;
		o.tau = row->tau;
		o.radius = row->radius;
		o.lmin = row->lmin;
		o.norm = modes[row->mode].norm;
		status = obk_rqa_measure(&part, NULL, &o, NULL, v, &error);
		CHECK_INT(row->status, status);
		for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT && status == OBK_RQA_OK; i++) {
			if (!(v[i] == row->values[i] || (isnan(v[i]) && isnan(row->values[i]))))
				fprintf(stderr,
					"series %u mode %u m %u tau %u radius %g lmin %u: %s is "
					"%.17g, alone %.17g\n",
					(unsigned)row->series, row->mode, row->m, row->tau,
					row->radius, row->lmin, obk_rqa_measure_name(i),
					row->values[i], v[i]);
			CHECK(v[i] == row->values[i] || (isnan(v[i]) && isnan(row->values[i])));
		}
		seen->checked++;
	}
	return seen->stop_after && seen->rows >= seen->stop_after;
}

static int progress_check(void *arg, const struct obk_rqa_progress *progress)
{
	struct seen *seen = arg;

	CHECK(progress->done >= seen->last_done && progress->done <= progress->total &&
		progress->rows_done <= progress->rows_total);
	seen->last_done = progress->done;
	seen->cells = progress->total;
	seen->reports++;
	return 0;
}

/*
 * Number of series. With the switch `levels` off each combination is a separate run, which takes
 * long, so only the short series are used. The first call decides, before a test changes switches.
 */
static unsigned series_count(void)
{
	static unsigned count;

	if (!count)
		count = ob_opt_on(OB_OPT_LEVELS) ? SERIES : 3;
	return count;
}

static void sweep_check(struct seen *seen, int isa, unsigned threads)
{
	struct obk_rqa_control control = {
		.threads = threads, .isa = isa, .arg = seen, .progress = progress_check
	};
	struct obk_rqa_sweep sweep = { series, series_count(), &seen->options, &grid, rows_check,
		NULL };
	struct obk_rqa_error error;
	int status;

	series_make();
	status = obk_rqa_sweep(&sweep, &control, &error);
	if (status == OBK_RQA_UNSUPPORTED)
		return;
	CHECK_INT(status, OBK_RQA_OK);
	CHECK_INT(seen->rows, series_count() * 3 * 5 * 3 * 9 * 4);
	CHECK(seen->checked > 16 * series_count() / TEST_SLOWER && seen->reports > 0 &&
		seen->last_done == seen->cells);
	/* m 10 with tau 7 needs 65 samples; the series with 46 and 64 are too short. */
	CHECK_INT(seen->failed, 2 * 3 * 9 * 4);
}

TEST(gaze_sweep_is_a_loop)
{
	static struct seen seen = { .check_every = 7 };

	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &seen.options);
	sweep_check(&seen, OBK_RQA_ISA_AUTO, 2);
}

TEST(every_instruction_set)
{
	static struct seen seen[3];

	for (int isa = 0; isa < 3; isa++) {
		seen[isa].check_every = 31 * TEST_SLOWER;
		obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &seen[isa].options);
		seen[isa].options.precision =
			isa == 1 ? OBK_RQA_PRECISION_F32 : OBK_RQA_PRECISION_F64;
		seen[isa].options.want = OBK_RQA_WANT_VERTICAL;
		sweep_check(&seen[isa], OBK_RQA_ISA_C + isa, 1);
	}
}

TEST(vertical_lines_without_the_loi)
{
	static struct seen seen = { .check_every = 23 };

	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &seen.options);
	seen.options.want = OBK_RQA_WANT_VERTICAL;
	sweep_check(&seen, OBK_RQA_ISA_AUTO, 2);
}

struct kept {
	double values[5 * 9 * 4][OBK_RQA_MEASURE_COUNT];
	unsigned rows;
};

static int rows_keep(void *arg, const struct obk_rqa_row *rows, uint32_t count)
{
	struct kept *kept = arg;

	for (uint32_t r = 0; r < count; r++, kept->rows++) {
		unsigned place =
			(rows[r].m_index * 9 + rows[r].radius_index) * 4 + rows[r].lmin_index;

		CHECK_INT(rows[r].status, OBK_RQA_OK);
		memcpy(kept->values[place], rows[r].values, sizeof kept->values[place]);
	}
	return 0;
}

TEST(threads_share_a_task_when_there_are_more_of_them)
{
	static struct kept kept[2];
	struct obk_rqa_grid small = grid;
	struct obk_rqa_options o;
	struct obk_rqa_error error;

	series_make();
	small.tau_count = 1;
	small.mode_count = 1;
	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.want = OBK_RQA_WANT_VERTICAL;
	for (unsigned t = 0; t < 2; t++) {
		struct obk_rqa_control control = { .threads = t ? 5 : 1, .arg = &kept[t] };
		struct obk_rqa_sweep sweep = { &series[SERIES - 1], 1, &o, &small, rows_keep,
			NULL };

		CHECK_INT(obk_rqa_sweep(&sweep, &control, &error), OBK_RQA_OK);
		CHECK_INT(kept[t].rows, 5 * 9 * 4);
	}
	CHECK(memcmp(kept[0].values, kept[1].values, sizeof kept[0].values) == 0);
}

static uint64_t space_used(void)
{
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "r");

	CHECK(file && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void space_limit(uint64_t bytes)
{
	struct rlimit limit;

	CHECK_INT(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = bytes;
	CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
}

/*
 * number of radii; with LONG samples the counters of a dimension take 4.8 MB, and 13 of the 16
 * dimensions are counted together
 */
#define MANY 4000u
#define LONG 300u

struct tight {
	unsigned once[16], failed;
	bool closed; /* no memory after the first rows */
};

static int rows_tight(void *arg, const struct obk_rqa_row *rows, uint32_t count)
{
	struct tight *t = arg;

	CHECK_INT(count, MANY);
	CHECK_INT(t->once[rows[0].m_index]++, 0);
	CHECK(rows[0].status == OBK_RQA_OK || rows[0].status == OBK_RQA_NO_MEMORY);
	t->failed += rows[0].status == OBK_RQA_NO_MEMORY;
	if (t->closed)
		space_limit(1u << 20);
	return 0;
}

/*
 * With little memory fewer threads share a task. If memory runs out in the middle of a task, no row
 * is delivered twice.
 */
TEST(little_memory)
{
	static double radius[MANY], line[LONG];
	uint32_t m[16], one = 1;
	struct obk_rqa_grid narrow = { m, &one, &one, radius, 16, 1, MANY, 1, NULL, 0 };
	struct obk_rqa_series x = { .name = "x", .data = line, .length = LONG, .channels = 1 };
	struct obk_rqa_options o;
	struct obk_rqa_error error;

	if (TEST_SLOWER > 1)
		TEST_SKIP("a sanitizer needs the address space");
	test_needs("levels,simd");          /* the pass that counts all radii needs the memory */
	mallopt(M_MMAP_THRESHOLD, 1 << 20); /* freed memory returns to the system */
	for (unsigned r = 0; r < MANY; r++)
		radius[r] = 0.001 * (1 + r);
	for (unsigned t = 0; t < LONG; t++)
		line[t] = 4 * sin(0.3 * t * t);
	for (uint32_t i = 0; i < 16; i++)
		m[i] = i + 1;
	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.want = 0;
	for (int closed = 0; closed < 2; closed++) {
		struct tight tight = { .closed = closed };
		struct obk_rqa_control control = { .threads = closed ? 1 : 4, .arg = &tight };
		struct obk_rqa_sweep sweep = { &x, 1, &o, &narrow, rows_tight, NULL };

		/* room for the counters of one thread, 64 MiB, and for everything else */
		space_limit(space_used() + (110u << 20));
		CHECK_INT(obk_rqa_sweep(&sweep, &control, &error), OBK_RQA_OK);
		for (unsigned i = 0; i < 16; i++)
			CHECK_INT(tight.once[i], 1);
		CHECK_INT(tight.failed, closed ? 3 : 0);
	}
}

TEST(strict_radius_and_float)
{
	static struct seen seen = { .check_every = 19 };

	obk_rqa_options_preset(OBK_RQA_PRESET_PYRQA, &seen.options);
	seen.options.want = OBK_RQA_WANT_VERTICAL;
	seen.options.precision = OBK_RQA_PRECISION_F32;
	sweep_check(&seen, OBK_RQA_ISA_AUTO, 3);
}

/*
 * Sweeps that one pass cannot do, and all sweeps with the switch off, run each combination
 * separately.
 */
TEST(combination_by_combination)
{
	static struct seen all = { .check_every = 61 }, off = { .check_every = 61 };

	obk_rqa_options_preset(OBK_RQA_PRESET_RP, &all.options);
	all.options.theiler_diag = 3;
	sweep_check(&all, OBK_RQA_ISA_AUTO, 2);
	ob_opt_set(OB_OPT_LEVELS, false);
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &off.options);
	sweep_check(&off, OBK_RQA_ISA_AUTO, 2);
}

static int want_odd(void *arg, uint64_t s, uint32_t mode, uint32_t m, uint32_t tau)
{
	(void)arg;
	(void)mode;
	(void)tau;
	return (s + m) % 2;
}

TEST(skipped_and_failed_are_told_apart)
{
	static struct seen seen;
	struct obk_rqa_control control = { .arg = &seen };
	struct obk_rqa_sweep sweep = { series, SERIES, &seen.options, &grid, rows_check, want_odd };
	struct obk_rqa_error error;

	series_make();
	/* in the second channel: the whole series is refused in every mode */
	data[1][2 * 30 + 1] = NAN;
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &seen.options);
	CHECK_INT(obk_rqa_sweep(&sweep, &control, &error), OBK_RQA_OK);
	CHECK_INT(seen.rows, SERIES * 3 * 5 * 3 * 9 * 4);
	CHECK(seen.skipped > 0 && seen.failed > 0 && seen.skipped + seen.failed < seen.rows);
	/*
	 * series 1 is wanted for m 2, 10 and 2, which all fail; series 0 and 2 (even) only for odd
	 * m, which fit.
	 */
	CHECK_INT(seen.failed, 3 * 3 * 3 * 9 * 4);
}

TEST(a_callback_stops_it)
{
	static struct seen seen = { .stop_after = 360 };
	struct obk_rqa_control control = { .arg = &seen, .threads = 2 };
	struct obk_rqa_sweep sweep = { series, SERIES, &seen.options, &grid, rows_check, NULL };
	struct obk_rqa_error error;

	series_make();
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &seen.options);
	CHECK_INT(obk_rqa_sweep(&sweep, &control, &error), OBK_RQA_CANCELLED);
	CHECK_INT(seen.rows, 360);
}

TEST(bad_grids_are_named)
{
	static struct seen seen;
	struct obk_rqa_grid bad = grid;
	struct obk_rqa_sweep sweep = { series, SERIES, &seen.options, &bad, rows_check, NULL };
	struct obk_rqa_error error;
	static const uint32_t zero[] = { 0 };
	static const double negative[] = { -0.5 };

	series_make();
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &seen.options);
	bad.m_count = 0;
	CHECK_INT(obk_rqa_sweep(&sweep, NULL, &error), OBK_RQA_ARGUMENT);
	CHECK(strstr(error.text, "no value for m"));
	bad = grid;
	bad.tau = zero;
	bad.tau_count = 1;
	CHECK_INT(obk_rqa_sweep(&sweep, NULL, &error), OBK_RQA_ARGUMENT);
	bad = grid;
	bad.radius = negative;
	bad.radius_count = 1;
	CHECK_INT(obk_rqa_sweep(&sweep, NULL, &error), OBK_RQA_ARGUMENT);
	CHECK(strstr(error.text, "-0.5"));
	bad = grid;
	bad.lmin_count = OBK_RQA_MAX_VALUES + 1;
	CHECK_INT(obk_rqa_sweep(&sweep, NULL, &error), OBK_RQA_LIMIT);
	bad = grid;
	sweep.series_count = 0;
	CHECK_INT(obk_rqa_sweep(&sweep, NULL, &error), OBK_RQA_ARGUMENT);
	CHECK_INT(seen.rows, 0);
}

TEST(ranges)
{
	double v[100];

	CHECK_INT(obk_rqa_range(0.05, 0.1, 0.001, 3, v, 100), 51);
	CHECK(v[0] == 0.05 && v[50] == 0.1 && v[17] == 0.067);
	CHECK_INT(obk_rqa_range(0.05, 0.1, 0.01, 3, v, 100), 6);
	CHECK_INT(obk_rqa_range(0, 1, 0.001, 3, v, 100), 0);
	CHECK_INT(obk_rqa_range(0, 1, 0, 3, v, 100), 0);
	CHECK_INT(obk_rqa_range(1, 0, 0.1, 3, v, 100), 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
