/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Mistakes that other tools make or made: each test checks that this library does not make one.
 * Also series whose results are known in closed form.
 */
#include <math.h>

#include "tests/compute/rqa/brute.h"
#include "tests/test.h"

static double random_unit(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(*seed >> 11) * 0x1p-53;
}

static void noise_make(double *data, unsigned n, uint64_t seed)
{
	for (unsigned t = 0; t < n; t++)
		data[t] = random_unit(&seed);
}

static int row_keep(void *arg, const struct obk_rqa_row *rows, uint32_t count)
{
	double(*det)[3] = arg;

	/* Stored by the values in the row, not by its position. */
	for (uint32_t r = 0; r < count; r++)
		det[(int)(rows[r].radius * 10 + 0.5)][rows[r].lmin - 2] =
			rows[r].values[OBK_RQA_DET];
	return 0;
}

/*
 * Another tool stores DET of (radius, lmin) in the slot of (lmin, radius) if both lists have more
 * than one entry.
 */
TEST(lists_in_any_order_keep_their_labels)
{
	static const uint32_t one[] = { 1 }, lmins[][3] = { { 2, 3, 4 }, { 4, 2, 3 } };
	static const double radii[][3] = { { 0.1, 0.2, 0.3 }, { 0.3, 0.1, 0.2 } };
	static double data[200], det[2][10][3];
	struct obk_rqa_series x = { .data = data, .length = 200, .channels = 1 };
	struct obk_rqa_options o;

	noise_make(data, 200, 1);
	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.want = 0;
	for (unsigned p = 0; p < 2; p++) {
		struct obk_rqa_grid grid = { one, one, lmins[p], radii[p], 1, 1, 3, 3, NULL, 0 };
		struct obk_rqa_control control = { .arg = det[p] };
		struct obk_rqa_sweep sweep = { &x, 1, &o, &grid, row_keep, NULL };

		CHECK_INT(obk_rqa_sweep(&sweep, &control, NULL), OBK_RQA_OK);
	}
	CHECK(memcmp(det[0], det[1], sizeof det[0]) == 0);
	for (unsigned r = 1; r < 4; r++)
		for (unsigned l = 0; l < 3; l++) {
			double v[OBK_RQA_MEASURE_COUNT];

			o.radius = r * 0.1 == 0.30000000000000004 ? 0.3 : r * 0.1;
			o.lmin = l + 2;
			CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
			CHECK(v[OBK_RQA_DET] == det[0][r][l]);
		}
	CHECK(det[0][1][0] > det[0][1][1] && det[0][1][1] > det[0][1][2]);
}

/*
 * Another tool's fast path reads uninitialised memory when (m - 1) tau exceeds 992, divides RR by
 * (n - 1)^2, and omits ENTR and Lmax.
 */
TEST(long_delays)
{
	static const unsigned spans[][2] = { { 10, 120 }, { 2, 993 }, { 3, 1500 }, { 2, 5000 } };
	static struct brute b;
	static double data[6000];

	for (unsigned s = 0; s < 4; s++) {
		unsigned span = (spans[s][0] - 1) * spans[s][1];
		struct obk_rqa_series x = { .data = data, .length = span + 300, .channels = 1 };
		struct obk_rqa_options o;
		double v[OBK_RQA_MEASURE_COUNT];

		noise_make(data, span + 300, s);
		obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
		o.m = spans[s][0];
		o.tau = spans[s][1];
		o.radius = 0.3 * sqrt(o.m);
		brute_matrix(&b, &x, NULL, &o);
		brute_count(&b, &o);
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
		CHECK(v[OBK_RQA_RR] == v[OBK_RQA_POINTS] / (300. * 300.) &&
			v[OBK_RQA_POINTS] == b.value[OBK_RQA_POINTS]);
		CHECK(v[OBK_RQA_LMAX] == b.value[OBK_RQA_LMAX] &&
			fabs(v[OBK_RQA_ENTR] - b.value[OBK_RQA_ENTR]) < 1e-12);
		CHECK(fabs(v[OBK_RQA_LAM] - b.value[OBK_RQA_LAM]) < 1e-12);
	}
}

/* Another tool rounds double distances to float in the maximum norm. */
TEST(double_distances_stay_double)
{
	static const double data[] = { 0, 1 + 1e-12, 0, 1 - 1e-12 };
	struct obk_rqa_series x = { .data = data, .length = 4, .channels = 1 };
	struct obk_rqa_options o;
	double v[OBK_RQA_MEASURE_COUNT];

	for (int norm = OBK_RQA_NORM_L1; norm <= OBK_RQA_NORM_MAX; norm++) {
		obk_rqa_options_preset(OBK_RQA_PRESET_CRP, &o);
		o.norm = norm;
		o.radius = 1;
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
		/* 0-2, 0-3, 2-3 and 1-3 are near, 0-1 and 1-2 are not. */
		CHECK(v[OBK_RQA_POINTS] == 8);
	}
}

/* Another tool compares squares with eps * eps, so the rounding of that product decides ties. */
TEST(ties_are_decided_by_the_distance)
{
	struct obk_rqa_options o;
	double v[OBK_RQA_MEASURE_COUNT], data[2];
	struct obk_rqa_series x = { .data = data, .length = 2, .channels = 1 };

	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	for (int precision = OBK_RQA_PRECISION_F64; precision <= OBK_RQA_PRECISION_F32; precision++)
		for (unsigned i = 1; i < 2000; i += 7) {
			data[0] = 0;
			data[1] = o.radius = precision == OBK_RQA_PRECISION_F32
				? (double)(float)(i * 1e-3)
				: i * 1e-3;
			o.precision = precision;
			o.test = OBK_RQA_TEST_LE;
			CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
			CHECK(v[OBK_RQA_POINTS] == 2);
			o.test = OBK_RQA_TEST_LT;
			CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
			CHECK(v[OBK_RQA_POINTS] == 0);
			o.radius = precision == OBK_RQA_PRECISION_F32
				? (double)nextafterf((float)o.radius, 9)
				: nextafter(o.radius, 9);
			CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
			CHECK(v[OBK_RQA_POINTS] == 2);
		}
}

/*
 * Denominators for wide Theiler windows: other tools use two closed forms. A full plot has RR = 1
 * for every window.
 */
TEST(theiler_denominators)
{
	double data[40] = { 0 }, v[OBK_RQA_MEASURE_COUNT];
	struct obk_rqa_series x = { .data = data, .length = 40, .channels = 1 };
	struct obk_rqa_options o;

	obk_rqa_options_preset(OBK_RQA_PRESET_RP, &o);
	for (unsigned w = 0; w < 40; w++) {
		o.theiler_rr = o.theiler_diag = o.theiler_vert = w;
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
		/* the two corners are lines of length 1 */
		CHECK(v[OBK_RQA_RR] == 1 &&
			fabs(v[OBK_RQA_DET] * v[OBK_RQA_POINTS] - (v[OBK_RQA_POINTS] - 2)) < 1e-9);
		CHECK(v[OBK_RQA_POINTS] ==
			(w ? 40. * 40 - (40. * (2 * w - 1) - w * (w - 1.)) : 1600));
	}
	o.theiler_rr = o.theiler_diag = o.theiler_vert = 40;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	CHECK(isnan(v[OBK_RQA_RR]) && isnan(v[OBK_RQA_DET]) && v[OBK_RQA_LMAX] == 0);
}

/* More than 2^31 and 2^32 cells, which other tools count in 32 bits. */
TEST(more_cells_than_32_bits_hold)
{
	unsigned n = TEST_SLOWER > 1 ? 47000 : 66000;
	double *data = calloc(n, sizeof *data), v[OBK_RQA_MEASURE_COUNT];
	struct obk_rqa_series x = { .data = data, .length = n, .channels = 1 };
	struct obk_rqa_options o;

	CHECK(data);
	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &o);
	o.norm = OBK_RQA_NORM_L1;
	o.precision = OBK_RQA_PRECISION_F32;
	o.want = 0;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_POINTS] == (double)n * n && v[OBK_RQA_RR] == 1 && v[OBK_RQA_LMAX] == n - 1);
	CHECK(v[OBK_RQA_L] == ((double)n * n - 2) / (2 * (n - 2.) + 1));
	free(data);
}

/*
 * Neighbouring samples of a smooth series recur: without a Theiler window the first diagonal is one
 * line.
 */
TEST(smooth_series_need_a_window)
{
	static double data[500];
	struct obk_rqa_series x = { .data = data, .length = 500, .channels = 1 };
	struct obk_rqa_options o;
	double v[OBK_RQA_MEASURE_COUNT];

	for (unsigned t = 0; t < 500; t++)
		data[t] = sin(0.02 * t) + sin(0.031 * t + 1);
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	o.radius = 0.1;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_LMAX] == 499);
	o.theiler_diag = o.theiler_rr = 20;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_LMAX] < 400);
}

/* Period p: only diagonals at multiples of p, all full, so all are border lines. */
TEST(periodic_orbit)
{
	enum { N = 210, P = 7 };
	static double data[N];
	struct obk_rqa_series x = { .data = data, .length = N, .channels = 1 };
	struct obk_rqa_options o;
	struct obk_rqa_result *result;
	const uint64_t *hist, *border;
	uint64_t length;
	double v[OBK_RQA_MEASURE_COUNT];

	for (unsigned t = 0; t < N; t++)
		data[t] = t % P;
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	o.radius = 0.5;
	CHECK_INT(obk_rqa_run(&x, NULL, &o, NULL, &result, NULL), OBK_RQA_OK);
	hist = obk_rqa_result_histogram(result, OBK_RQA_HIST_DIAGONAL, &length);
	border = obk_rqa_result_histogram(result, OBK_RQA_HIST_DIAGONAL_BORDER, &length);
	for (unsigned l = 1; l < length; l++) {
		CHECK_INT(hist[l], l < N && l % P == 0 ? 2 : 0);
		CHECK_INT(border[l], hist[l]);
	}
	CHECK_INT(obk_rqa_result_measures(result, NULL, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_DET] == 1 && v[OBK_RQA_L] == (double)N / 2 && v[OBK_RQA_LMAX] == N - P &&
		v[OBK_RQA_LAM] == 0 && v[OBK_RQA_VMAX] == 1);
	CHECK(fabs(v[OBK_RQA_ENTR] - log(N / P - 1)) < 1e-14);
	/*
	 * The border corrections leave: no line; all lines, which are as long as the longest; one
	 * line per triangle.
	 */
	o.border = OBK_RQA_BORDER_DIBO;
	CHECK_INT(obk_rqa_result_measures(result, &o, v, NULL), OBK_RQA_OK);
	CHECK(isnan(v[OBK_RQA_L]) && v[OBK_RQA_LMAX] == 0 && v[OBK_RQA_ENTR] == 0);
	o.border = OBK_RQA_BORDER_CENSI;
	CHECK_INT(obk_rqa_result_measures(result, &o, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_L] == N - P && v[OBK_RQA_ENTR] == 0);
	o.border = OBK_RQA_BORDER_KELO;
	CHECK_INT(obk_rqa_result_measures(result, &o, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_L] == N - P && v[OBK_RQA_DET] == 1);
	obk_rqa_result_free(result);
}

/* Border corrections, computed from a list of all lines. */
TEST(border_corrections)
{
	static struct brute b;
	static double data[300];
	struct obk_rqa_series x = { .data = data, .length = 300, .channels = 1 };

	for (unsigned t = 0; t < 300; t++)
		data[t] = sin(2 * M_PI * t / 50) + 0.3 * sin(6 * M_PI * t / 50 + 1);
	for (unsigned round = 0; round < 12; round++) {
		double lines = 0, points = 0, border_count = 0, longest = 0,
		       v[OBK_RQA_MEASURE_COUNT];
		unsigned semi = round / 6, which = OBK_RQA_BORDER_DIBO + round % 3,
			 loi = round / 3 % 2;
		struct obk_rqa_options o;

		obk_rqa_options_preset(loi ? OBK_RQA_PRESET_ACCRQA : OBK_RQA_PRESET_JULIA, &o);
		o.radius = 0.15;
		o.lmin = 1;
		o.border = (int)which;
		o.border_semi = (int)semi;
		brute_matrix(&b, &x, NULL, &o);
		for (unsigned k = 1; k < 300; k++)
			for (unsigned p = 0, start = 0; p <= 300 - k; p++) {
				unsigned ends;

				if (p < 300 - k && b.cell[p][p + k])
					continue;
				ends = (unsigned)(start == 0) + (unsigned)(p == 300 - k);
				if (p > start && (ends == 2 || (ends == 1 && semi))) {
					border_count += 2;
					longest = p - start > longest ? p - start : longest;
				} else if (p > start) {
					lines += 2;
					points += 2. * (p - start);
				}
				start = p + 1;
			}
		if (which == OBK_RQA_BORDER_CENSI) {
			lines += border_count;
			points += border_count * longest;
		}
		if (which == OBK_RQA_BORDER_KELO && longest > 0) {
			lines += 2;
			points += 2 * longest;
		}
		if (loi && which == OBK_RQA_BORDER_CENSI) {
			lines++;
			points += 300;
		}
		CHECK(border_count > 0);
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
		CHECK(fabs(v[OBK_RQA_L] - points / lines) < 1e-12);
	}
}

TEST(constant_series)
{
	double data[64], v[OBK_RQA_MEASURE_COUNT];
	struct obk_rqa_series x = { .name = "flat.csv", .data = data, .length = 64, .channels = 1 };
	struct obk_rqa_options o;
	struct obk_rqa_error error;

	for (unsigned t = 0; t < 64; t++)
		data[t] = 3.25;
	obk_rqa_options_preset(OBK_RQA_PRESET_GAZE, &o);
	o.radius = 0;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_OK);
	CHECK(v[OBK_RQA_RR] == 1 && v[OBK_RQA_LMAX] == 64);
	o.radius_kind = OBK_RQA_RADIUS_SD;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_CONSTANT);
	CHECK(strstr(error.text, "flat.csv") && strstr(error.text, "absolute"));
	o.radius_kind = OBK_RQA_RADIUS_ABSOLUTE;
	o.scale = OBK_RQA_SCALE_ZSCORE;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_CONSTANT);
}

/* Independent uniform numbers: the distance of two is below eps with probability 2 eps - eps^2. */
TEST(uniform_noise)
{
	static double data[4000];
	struct obk_rqa_series x = { .data = data, .length = 4000, .channels = 1 };
	struct obk_rqa_options o;
	double v[OBK_RQA_MEASURE_COUNT];

	noise_make(data, 4000, 5);
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	for (o.radius = 0.1; o.radius < 0.6; o.radius += 0.2) {
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
		CHECK(fabs(v[OBK_RQA_RR] - (2 * o.radius - o.radius * o.radius)) < 0.01);
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
