/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Every histogram and every measure, compared with the independent reference in brute.c, over
 * random series, sizes and options, on every instruction set of this machine.
 */
#include <math.h>

#include "base/opt.h"
#include "tests/compute/rqa/brute.h"
#include "tests/test.h"

static uint64_t seed = 0x9e3779b97f4a7c15ull;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static unsigned below(unsigned n)
{
	return (unsigned)(draw() >> 33) % n;
}

static const unsigned sizes[] = { 2, 3, 5, 31, 32, 33, 63, 64, 65, 66, 127, 128, 129, 191, 193, 255,
	257, 300 };

/*
 * Makes values on a coarse grid, so that some distances equal the radius: smooth, noisy, constant
 * or periodic.
 */
static void fill(double *data, unsigned count, unsigned kind)
{
	double walk = 0;

	for (unsigned t = 0; t < count; t++) {
		walk += (double)below(7) - 3;
		data[t] = kind == 0 ? (double)below(20) * 0.05
			: kind == 1 ? walk * 0.05
			: kind == 2 ? 0.25
			: kind == 3 ? (double)(t % 7) * 0.1
				    : sin(0.3 * t) + (double)below(1000) * 1e-4;
	}
}

static void options_draw(struct obk_rqa_options *o)
{
	static const double radii[] = { 0, 0.05, 0.1, 0.15, 0.3, 1, 0.5 };

	obk_rqa_options_preset((enum obk_rqa_preset)below(OBK_RQA_PRESET_COUNT), o);
	o->quirks = 0;
	o->want = OBK_RQA_WANT_ALL;
	o->kind = (int)below(3);
	o->m = 1 + below(below(4) ? 3 : 10);
	o->tau = 1 + below(below(4) ? 6 : 20);
	o->norm = (int)below(4);
	o->norm_y = (int)below(5) - 1;
	o->test = (int)below(2);
	o->precision = below(2) ? OBK_RQA_PRECISION_F32 : OBK_RQA_PRECISION_F64;
	o->radius = radii[below(7)];
	o->radius_y = below(2) ? NAN : radii[below(7)];
	o->categorical = below(12) == 0;
	if (below(2)) {
		o->theiler_rr = below(4);
		o->theiler_diag = below(5);
		o->theiler_vert = below(4);
		o->theiler_white = below(3);
		o->rr_denominator = (int)below(2);
		o->det_denominator = (int)below(2);
		o->lam_denominator = (int)below(2);
		o->entropy_norm = (int)below(3);
		o->entropy_all = (int)below(2);
		o->white = (int)below(2);
		o->times = (int)below(3);
		o->trend = (int)below(2);
		o->trend_margin = below(12);
		o->triangle = (int)below(3);
		o->transitivity = (int)below(2);
		o->lmax_excludes_loi = (int)below(2);
	}
	o->lmin = 1 + below(4);
	o->vmin = 1 + below(4);
	o->wmin = 1 + below(4);
}

static void same_histogram(
	const struct obk_rqa_result *result, int which, const unsigned long *want, unsigned entries)
{
	uint64_t length;
	const uint64_t *have = obk_rqa_result_histogram(result, which, &length);

	CHECK(have);
	for (unsigned l = 0; l < entries; l++) {
		if ((l < length ? have[l] : 0) != want[l])
			fprintf(stderr, "histogram %d, entry %u: %llu, should be %lu\n", which, l,
				l < length ? (unsigned long long)have[l] : 0ull, want[l]);
		CHECK((l < length ? have[l] : 0) == want[l]);
	}
}

static void same_values(const double *have, const double *want)
{
	for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++) {
		double scale = fabs(want[i]) > 1 ? fabs(want[i]) : 1;
		int same = (isnan(have[i]) && isnan(want[i])) ||
			fabs(have[i] - want[i]) <= 1e-11 * scale;

		if (!same)
			fprintf(stderr, "%s is %.17g, should be %.17g\n", obk_rqa_measure_name(i),
				have[i], want[i]);
		CHECK(same);
	}
}

/* Compares runs of only diagonal and vertical lines, which count both in one pass. */
static void compare_lines(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *o, const struct brute *b,
	const struct obk_rqa_control *control)
{
	struct obk_rqa_options lines = *o;
	struct obk_rqa_result *result;
	struct obk_rqa_error error;
	double values[OBK_RQA_MEASURE_COUNT];

	lines.want = OBK_RQA_WANT_VERTICAL | (below(4) ? 0 : OBK_RQA_WANT_TREND);
	CHECK_INT(obk_rqa_run(
			  x, o->kind == OBK_RQA_AUTO ? NULL : y, &lines, control, &result, &error),
		OBK_RQA_OK);
	same_histogram(result, OBK_RQA_HIST_DIAGONAL, b->diagonal, BRUTE_MAX + 1);
	same_histogram(result, OBK_RQA_HIST_DIAGONAL_BORDER, b->diagonal_border, BRUTE_MAX + 1);
	same_histogram(result, OBK_RQA_HIST_VERTICAL, b->vertical, BRUTE_MAX + 1);
	CHECK_INT(obk_rqa_result_measures(result, NULL, values, &error), OBK_RQA_OK);
	CHECK(values[OBK_RQA_POINTS] == b->value[OBK_RQA_POINTS]);
	obk_rqa_result_free(result);
}

static void compare(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *o)
{
	static struct brute b;
	struct obk_rqa_error error;

	brute_matrix(&b, x, y, o);
	brute_count(&b, o);
	for (int isa = OBK_RQA_ISA_C; isa <= OBK_RQA_ISA_AVX512; isa++) {
		struct obk_rqa_control control = { .isa = isa, .threads = 1 + below(3) };
		struct obk_rqa_result *result;
		double values[OBK_RQA_MEASURE_COUNT];
		int status = obk_rqa_run(
			x, o->kind == OBK_RQA_AUTO ? NULL : y, o, &control, &result, &error);

		if (status == OBK_RQA_UNSUPPORTED && isa != OBK_RQA_ISA_C)
			continue;
		if (status != OBK_RQA_OK)
			fprintf(stderr, "%s\n", error.text);
		CHECK_INT(status, OBK_RQA_OK);
		same_histogram(result, OBK_RQA_HIST_DIAGONAL, b.diagonal, BRUTE_MAX + 1);
		same_histogram(
			result, OBK_RQA_HIST_DIAGONAL_BORDER, b.diagonal_border, BRUTE_MAX + 1);
		same_histogram(result, OBK_RQA_HIST_VERTICAL, b.vertical, BRUTE_MAX + 1);
		same_histogram(result, OBK_RQA_HIST_WHITE, b.white, BRUTE_MAX + 1);
		same_histogram(result, OBK_RQA_HIST_WHITE_BORDER, b.white_border, BRUTE_MAX + 1);
		same_histogram(result, OBK_RQA_HIST_TIMES_START, b.start, BRUTE_MAX + 1);
		same_histogram(result, OBK_RQA_HIST_TIMES_MIDPOINT, b.middle, BRUTE_MAX + 1);
		if (o->triangle == OBK_RQA_BOTH || b.symmetric)
			same_histogram(result, OBK_RQA_HIST_PROFILE, b.profile,
				b.symmetric ? b.n1 : b.n1 + b.n2 - 1);
		CHECK_INT(obk_rqa_result_measures(result, NULL, values, &error), OBK_RQA_OK);
		/* only one triangle was counted: the trend is not compared */
		if (o->triangle != OBK_RQA_BOTH && !b.symmetric)
			values[OBK_RQA_TREND] = b.value[OBK_RQA_TREND] = NAN;
		same_values(values, b.value);
		obk_rqa_result_free(result);
		compare_lines(x, y, o, &b, &control);
	}
}

static void random_cases(unsigned count, unsigned gaps)
{
	static double a[3 * 700], b[3 * 700];

	for (unsigned round = 0; round < count; round++) {
		struct obk_rqa_options o;
		struct obk_rqa_series x = { .name = "x", .data = a, .channels = 1 + below(3) },
				      y = { .name = "y", .data = b, .channels = x.channels };
		unsigned span;

		options_draw(&o);
		o.missing = gaps != 0;
		span = (o.m - 1) * o.tau;
		x.length = sizes[below(sizeof sizes / sizeof sizes[0])] + span;
		y.length = sizes[below(sizeof sizes / sizeof sizes[0])] + span;
		fill(a, (unsigned)x.length * x.channels, below(5));
		fill(b, (unsigned)y.length * y.channels, below(5));
		for (unsigned g = 0; g < gaps; g++) {
			a[below((unsigned)x.length * x.channels)] = below(2) ? NAN : INFINITY;
			b[below((unsigned)y.length * y.channels)] = NAN;
		}
		compare(&x, &y, &o);
	}
}

TEST(random_series_and_options)
{
	seed = 1;
	random_cases(220 / TEST_SLOWER, 0);
}

TEST(random_series_with_gaps)
{
	seed = 77;
	random_cases(80 / TEST_SLOWER, 3);
}

TEST(every_size_around_a_word)
{
	static double a[700];

	seed = 5;
	for (unsigned n = 2; n < 140; n++) {
		struct obk_rqa_options o;
		struct obk_rqa_series x = { .name = "x", .data = a, .channels = 1, .length = n };

		options_draw(&o);
		o.kind = OBK_RQA_AUTO;
		o.m = 1;
		fill(a, n, n % 5);
		compare(&x, &x, &o);
	}
}

static void same_result(const struct obk_rqa_result *a, const struct obk_rqa_result *b)
{
	for (int h = 0; h < OBK_RQA_HIST_COUNT; h++) {
		uint64_t lengths[2];
		const uint64_t *one = obk_rqa_result_histogram(a, h, &lengths[0]),
			       *other = obk_rqa_result_histogram(b, h, &lengths[1]);

		CHECK_INT(lengths[0], lengths[1]);
		CHECK(!lengths[0] || memcmp(one, other, lengths[0] * sizeof *one) == 0);
	}
}

/*
 * Runs with a switch off, then on; the switch remains on. Returns false, and no results, if this
 * CPU lacks the instruction set.
 */
static bool off_and_on(enum ob_opt opt, const struct obk_rqa_series *x,
	const struct obk_rqa_series *y, const struct obk_rqa_options *o,
	const struct obk_rqa_control *control, struct obk_rqa_result *ret_result[2])
{
	struct obk_rqa_error error;

	for (int on = 0; on < 2; on++) {
		int status;

		ob_opt_set(opt, on);
		status = obk_rqa_run(
			x, o->kind == OBK_RQA_AUTO ? NULL : y, o, control, &ret_result[on], &error);
		if (status == OBK_RQA_UNSUPPORTED) {
			ob_opt_set(opt, true);
			return false;
		}
		CHECK_INT(status, OBK_RQA_OK);
	}
	return true;
}

/*
 * The sieve decides most cells with coarse numbers, the exact walk decides the rest. The wide range
 * of scales gives every ratio of the two.
 */
TEST(sieve_and_exact_walk_agree)
{
	static double a[2 * 4400], b[2 * 4400];
	unsigned compared = 0;

	seed = 31;
	for (unsigned round = 0; round < 60 / TEST_SLOWER; round++) {
		struct obk_rqa_series x = { .name = "x", .data = a, .channels = 1 + below(2) },
				      y = { .name = "y", .data = b, .channels = x.channels };
		struct obk_rqa_options o;

		options_draw(&o);
		o.want &= ~OBK_RQA_WANT_NETWORK;
		o.radius = round % 3 ? o.radius * (double)(1 + below(1000)) * 0.01
				     : ldexp(1.0, (int)below(16) - 12);
		x.length = 500 + below(1500) + (o.m - 1) * o.tau;
		y.length = 500 + below(1500) + (o.m - 1) * o.tau;
		fill(a, (unsigned)x.length * x.channels, below(5));
		fill(b, (unsigned)y.length * y.channels, below(5));
		for (int isa = OBK_RQA_ISA_AVX2; isa <= OBK_RQA_ISA_AVX512; isa++) {
			struct obk_rqa_control control = { .isa = isa, .threads = 1 + below(3) };
			struct obk_rqa_result *result[2];

			if (!off_and_on(OB_OPT_SIEVE, &x, &y, &o, &control, result))
				continue;
			compared++;
			same_result(result[0], result[1]);
			obk_rqa_result_free(result[0]);
			obk_rqa_result_free(result[1]);
		}
	}
	if (!compared)
		TEST_SKIP("this CPU has neither AVX2 nor AVX-512, and plain C has no sieve");
}

/*
 * Several bands, each for several threads. Lines cross bands; some series are constant or periodic.
 */
TEST(bands_and_columns_agree)
{
	static double a[2 * 2200], b[2 * 2200];

	seed = 5;
	for (unsigned round = 0; round < 50 / TEST_SLOWER; round++) {
		struct obk_rqa_series x = { .name = "x", .data = a, .channels = 1 + below(2) },
				      y = { .name = "y", .data = b, .channels = x.channels };
		struct obk_rqa_options o;
		struct obk_rqa_error error;
		struct obk_rqa_control control = { .isa = (int)below(4), .threads = 1 + below(4) };
		struct obk_rqa_result *result[2];
		double values[2][OBK_RQA_MEASURE_COUNT];

		options_draw(&o);
		o.kind = below(3) ? OBK_RQA_AUTO : OBK_RQA_JOINT;
		o.want = OBK_RQA_WANT_VERTICAL;
		o.theiler_vert = below(4) ? o.theiler_vert : below(200);
		o.quirks = below(3) ? 0 : OBK_RQA_QUIRK_LAST_COLUMN;
		x.length = y.length = 200 + below(1800) + (o.m - 1) * o.tau;
		fill(a, (unsigned)x.length * x.channels, below(5));
		fill(b, (unsigned)y.length * y.channels, below(5));
		if (!off_and_on(OB_OPT_BANDS, &x, &y, &o, &control, result))
			continue;
		for (int on = 0; on < 2; on++)
			CHECK_INT(obk_rqa_result_measures(result[on], NULL, values[on], &error),
				OBK_RQA_OK);
		same_result(result[0], result[1]);
		CHECK(memcmp(values[0], values[1], sizeof values[0]) == 0);
		obk_rqa_result_free(result[0]);
		obk_rqa_result_free(result[1]);
	}
}

TEST(columns_side_by_side)
{
	static double a[2 * 200], b[2 * 200];
	double values[2][OBK_RQA_MEASURE_COUNT];
	struct obk_rqa_series rows = { .data = a, .length = 200, .channels = 2 },
			      columns = { .data = b,
				      .length = 200,
				      .channels = 2,
				      .step = 1,
				      .channel_step = 200 };
	struct obk_rqa_options o;

	seed = 9;
	fill(a, 400, 1);
	for (unsigned t = 0; t < 200; t++) {
		b[t] = a[2 * t];
		b[200 + t] = a[2 * t + 1];
	}
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	o.m = 2;
	o.radius = 0.5;
	CHECK_INT(obk_rqa_measure(&rows, NULL, &o, NULL, values[0], NULL), OBK_RQA_OK);
	CHECK_INT(obk_rqa_measure(&columns, NULL, &o, NULL, values[1], NULL), OBK_RQA_OK);
	CHECK(memcmp(values[0], values[1], sizeof values[0]) == 0);
	CHECK(values[0][OBK_RQA_RR] > 0 && values[0][OBK_RQA_RR] < 1);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
