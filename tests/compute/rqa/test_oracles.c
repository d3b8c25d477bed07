/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Numbers that other tools printed, computed with the preset of each tool and compared to all
 * printed digits.
 */
#include <math.h>

#include "compute/rqa/rqa.h"
#include "tests/test.h"

#define ROWS    3000
#define COLUMNS 24

static double rossler[ROWS][COLUMNS];

static void rossler_read(void)
{
	FILE *file = fopen(RQA_DATA "/rossler.txt", "r");

	CHECK(file);
	for (unsigned r = 0; r < ROWS; r++)
		for (unsigned c = 0; c < COLUMNS; c++)
			CHECK_INT(fscanf(file, "%lf", &rossler[r][c]), 1);
	fclose(file);
}

/*
 * Checks the printed number, within half a unit of its last digit and the rounding of a few
 * additions.
 */
static void same_printed(const char *what, double have, const char *printed)
{
	const char *point = strchr(printed, '.');
	double want = strtod(printed, NULL), unit = point ? pow(10, -(double)strlen(point + 1)) : 1;
	double off = fabs(have - want);

	if (!(off <= 0.5 * unit * (1 + 1e-6) + 8e-16 * fabs(want)))
		fprintf(stderr, "%s: %.17g, printed as %s\n", what, have, printed);
	CHECK(off <= 0.5 * unit * (1 + 1e-6) + 8e-16 * fabs(want));
}

static void file_check(
	const char *name, enum obk_rqa_preset preset, int norm, int first, unsigned quirks)
{
	static const unsigned measure[] = { OBK_RQA_RR, OBK_RQA_DET, OBK_RQA_L, OBK_RQA_LMAX,
		OBK_RQA_ENTR, OBK_RQA_LAM, OBK_RQA_TT };
	char path[512], word[9][64], what[600];
	unsigned lines = 0;
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", RQA_DATA, name);
	file = fopen(path, "r");
	CHECK(file);
	while (fscanf(file, "%63s %63s %63s %63s %63s %63s %63s %63s %63s", word[0], word[1],
		       word[2], word[3], word[4], word[5], word[6], word[7], word[8]) == 9) {
		unsigned r = (unsigned)atol(word[0]) - (unsigned)first;
		struct obk_rqa_series x = { .name = name,
			.data = &rossler[0][2 * r],
			.length = 250 * (r + 1),
			.channels = 1,
			.step = COLUMNS };
		struct obk_rqa_error error;
		struct obk_rqa_options o;
		double v[OBK_RQA_MEASURE_COUNT];

		CHECK(r < 12);
		obk_rqa_options_preset(preset, &o);
		o.m = 3;
		o.tau = 6;
		o.radius = 1.2;
		o.norm = norm;
		o.quirks |= quirks;
		CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, &error), OBK_RQA_OK);
		for (unsigned i = 0; i < 7; i++) {
			snprintf(what, sizeof what, "%s, series %u, %s", name, r + 1,
				obk_rqa_measure_name(measure[i]));
			same_printed(what, v[measure[i]], word[2 + i]);
		}
		lines++;
	}
	fclose(file);
	CHECK_INT(lines, 12);
}

TEST(julia)
{
	static const char *const folders[] = { "test_linux_180718", "test_linux_180812",
		"test_linux_190120", "test_win_180718" };
	char name[128];

	rossler_read();
	for (unsigned f = 0; f < 4; f++) {
		snprintf(name, sizeof name, "%s/benchmark_rqa_julia_euclidean.txt", folders[f]);
		file_check(name, f == 2 ? OBK_RQA_PRESET_JULIA : OBK_RQA_PRESET_JULIA_03,
			OBK_RQA_NORM_L2, 1, 0);
		snprintf(name, sizeof name, "%s/benchmark_rqa_julia_max.txt", folders[f]);
		file_check(name, f == 2 ? OBK_RQA_PRESET_JULIA : OBK_RQA_PRESET_JULIA_03,
			OBK_RQA_NORM_MAX, 1, 0);
	}
}

TEST(crqa)
{
	rossler_read();
	file_check("test_linux_180718/benchmark_rqa_R.txt", OBK_RQA_PRESET_CRQA, OBK_RQA_NORM_L2, 1,
		0);
	file_check(
		"test_win_180718/benchmark_rqa_R.txt", OBK_RQA_PRESET_CRQA, OBK_RQA_NORM_L2, 1, 0);
}

TEST(crp_toolbox)
{
	rossler_read();
	file_check("test_win_180718/benchmark_rqa_matlab_euclidean.txt", OBK_RQA_PRESET_CRP,
		OBK_RQA_NORM_L2, 1, 0);
	file_check("test_win_180718/benchmark_rqa_matlab_maxnorm.txt", OBK_RQA_PRESET_CRP,
		OBK_RQA_NORM_MAX, 1, 0);
}

TEST(pyunicorn_old)
{
	rossler_read();
	file_check("test_linux_180718/benchmark_rqa_python_euclidean.txt",
		OBK_RQA_PRESET_PYUNICORN_05, OBK_RQA_NORM_L2, 0, 0);
	file_check("test_linux_180718/benchmark_rqa_python_supremum.txt",
		OBK_RQA_PRESET_PYUNICORN_05, OBK_RQA_NORM_MAX, 0, OBK_RQA_QUIRK_RR_VERTICAL);
}

/* Values that follow three conventions, printed for the first and the last series. */
TEST(three_conventions)
{
	static const struct {
		unsigned r;
		const char *valid, *full, *inside, *lam_out, *lam_in, *tt_out, *tt_in;
	} cases[] = {
		{ 1, "0.0380810552", "0.0379210508", "0.0421227314", "0.9548417132", "0.9920368818",
			"3.8408239700", "6.2952127660" },
		{ 12, "0.0344975483", "0.0344860029", "0.0348206749", "0.9889573103",
			"0.9923379782", "5.3803583419", "5.62610789" },
	};

	rossler_read();
	for (unsigned c = 0; c < 2; c++) {
		struct obk_rqa_series x = { .data = &rossler[0][2 * (cases[c].r - 1)],
			.length = 250 * cases[c].r,
			.channels = 1,
			.step = COLUMNS };
		static const enum obk_rqa_preset presets[] = { OBK_RQA_PRESET_JULIA,
			OBK_RQA_PRESET_JULIA_03, OBK_RQA_PRESET_ACCRQA };
		double v[3][OBK_RQA_MEASURE_COUNT];

		for (unsigned p = 0; p < 3; p++) {
			struct obk_rqa_options o;

			obk_rqa_options_preset(presets[p], &o);
			o.m = 3;
			o.tau = 6;
			o.radius = 1.2;
			CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v[p], NULL), OBK_RQA_OK);
		}
		same_printed("RR valid", v[0][OBK_RQA_RR], cases[c].valid);
		same_printed("RR full", v[1][OBK_RQA_RR], cases[c].full);
		same_printed("RR with LOI", v[2][OBK_RQA_RR], cases[c].inside);
		same_printed("LAM", v[0][OBK_RQA_LAM], cases[c].lam_out);
		same_printed("LAM with LOI", v[2][OBK_RQA_LAM], cases[c].lam_in);
		same_printed("TT", v[0][OBK_RQA_TT], cases[c].tt_out);
		same_printed("TT with LOI", v[2][OBK_RQA_TT], cases[c].tt_in);
		CHECK(v[2][OBK_RQA_LMAX] == v[0][OBK_RQA_LMAX]);
	}
}

/* The example of PyRQA's manual. */
TEST(pyrqa_manual)
{
	static const double data[] = { 0.1, 0.5, 1.3, 0.7, 0.8, 1.4, 1.6, 1.2, 0.4, 1.1, 0.8, 0.2,
		1.3 };
	static const struct {
		unsigned measure;
		const char *printed;
	} want[] = {
		{ OBK_RQA_RR, "0.371901" },
		{ OBK_RQA_DET, "0.411765" },
		{ OBK_RQA_L, "2.333333" },
		{ OBK_RQA_LMAX, "3" },
		{ OBK_RQA_DIV, "0.333333" },
		{ OBK_RQA_ENTR, "0.636514" },
		{ OBK_RQA_LAM, "0.400000" },
		{ OBK_RQA_TT, "2.571429" },
		{ OBK_RQA_VMAX, "4" },
		{ OBK_RQA_VENTR, "0.955700" },
		{ OBK_RQA_W, "2.538462" },
		{ OBK_RQA_WMAX, "6" },
		{ OBK_RQA_WDIV, "0.166667" },
		{ OBK_RQA_WENTR, "0.839796" },
		{ OBK_RQA_POINTS, "45" },
	};
	struct obk_rqa_series x = { .data = data, .length = 13, .channels = 1 };
	struct obk_rqa_options o;
	double v[OBK_RQA_MEASURE_COUNT];

	obk_rqa_options_preset(OBK_RQA_PRESET_PYRQA, &o);
	o.m = o.tau = 2;
	o.radius = 0.65;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	for (unsigned i = 0; i < sizeof want / sizeof want[0]; i++)
		same_printed(
			obk_rqa_measure_name(want[i].measure), v[want[i].measure], want[i].printed);
}

static void same_counts(
	const struct obk_rqa_result *result, int which, const unsigned *want, unsigned entries)
{
	uint64_t length;
	const uint64_t *have = obk_rqa_result_histogram(result, which, &length);

	CHECK(have);
	for (unsigned l = 1; l < length || l <= entries; l++)
		CHECK_INT(l < length ? have[l] : 0, l <= entries ? want[l - 1] : 0);
}

/*
 * Any matrix can be made as a cross recurrence matrix with a channel per column: y has 1 in the
 * column's channel, x has 0.5 where the cell is set; radius 0.6 in the maximum norm.
 */
TEST(julia_analytic)
{
	static const unsigned char cells[][2] = {
		{ 1, 1 },
		{ 2, 2 },
		{ 3, 2 },
		{ 6, 2 },
		{ 7, 2 },
		{ 8, 2 },
		{ 6, 3 },
		{ 7, 3 },
		{ 10, 3 },
		{ 2, 4 },
		{ 4, 4 },
		{ 1, 5 },
		{ 2, 5 },
		{ 3, 5 },
		{ 5, 5 },
		{ 9, 5 },
		{ 10, 5 },
		{ 2, 6 },
		{ 3, 6 },
		{ 6, 6 },
		{ 7, 6 },
		{ 10, 6 },
		{ 3, 7 },
		{ 8, 7 },
		{ 4, 8 },
		{ 1, 9 },
		{ 5, 9 },
		{ 7, 9 },
		{ 9, 9 },
		{ 9, 10 },
		{ 10, 10 },
		{ 3, 11 },
		{ 7, 11 },
	};
	static const struct {
		unsigned theiler, lmin;
		double rr, det, l, entr, trend, lam, tt, mrt, rte, nmprt;
	} cases[] = {
		{ 0, 1, 33. / 110, 1, 33. / 20, 0.996, -33.8, 1, 33. / 23, 33. / 12, 1.286, 4 },
		{ 2, 1, 22. / 110, 1, 22. / 14, 0.830, -17.9, 1, 22. / 15, 24. / 6, 1.011, 3 },
		{ 0, 2, 33. / 110, 22. / 33, 22. / 9, 0.684, -33.8, 18. / 33, 18. / 8, 33. / 12,
			1.286, 4 },
		{ 2, 2, 22. / 110, 13. / 22, 13. / 5, 0.500, -17.9, 12. / 22, 12. / 5, 24. / 6,
			1.011, 3 },
	};
	static double x[10][11], y[11][11];
	struct obk_rqa_series sx = { .data = x[0], .length = 10, .channels = 11 },
			      sy = { .data = y[0], .length = 11, .channels = 11 };

	for (unsigned c = 0; c < sizeof cells / 2; c++)
		x[cells[c][0] - 1][cells[c][1] - 1] = 0.5;
	for (unsigned j = 0; j < 11; j++)
		y[j][j] = 1;
	for (unsigned c = 0; c < 4; c++) {
		struct obk_rqa_options o;
		struct obk_rqa_result *result;
		double v[OBK_RQA_MEASURE_COUNT];

		obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
		o.kind = OBK_RQA_CROSS;
		o.norm = OBK_RQA_NORM_MAX;
		o.radius = 0.6;
		o.theiler_rr = o.theiler_diag = o.theiler_vert = cases[c].theiler;
		o.rr_denominator = OBK_RQA_RR_FULL;
		o.lmin = o.vmin = cases[c].lmin;
		o.trend_margin = 1;
		CHECK_INT(obk_rqa_run(&sx, &sy, &o, NULL, &result, NULL), OBK_RQA_OK);
		same_counts(result, OBK_RQA_HIST_DIAGONAL,
			cases[c].theiler ? (const unsigned[]){ 9, 4, 0, 0, 1 }
					 : (const unsigned[]){ 11, 7, 1, 0, 1 },
			5);
		same_counts(result, OBK_RQA_HIST_VERTICAL,
			cases[c].theiler ? (const unsigned[]){ 10, 3, 2 }
					 : (const unsigned[]){ 15, 6, 2 },
			3);
		same_counts(result, OBK_RQA_HIST_TIMES_MIDPOINT,
			cases[c].theiler ? (const unsigned[]){ 1, 0, 3, 0, 0, 0, 2 }
					 : (const unsigned[]){ 3, 1, 4, 4, 0, 0, 0 },
			7);
		CHECK_INT(obk_rqa_result_measures(result, NULL, v, NULL), OBK_RQA_OK);
		CHECK(fabs(v[OBK_RQA_RR] - cases[c].rr) < 1e-15 &&
			fabs(v[OBK_RQA_DET] - cases[c].det) < 1e-15 &&
			fabs(v[OBK_RQA_L] - cases[c].l) < 1e-15);
		CHECK(v[OBK_RQA_LMAX] == 5 && v[OBK_RQA_DIV] == 0.2 && v[OBK_RQA_VMAX] == 3 &&
			v[OBK_RQA_NMPRT] == cases[c].nmprt);
		CHECK(fabs(v[OBK_RQA_ENTR] - cases[c].entr) < 1e-3);
		CHECK(fabs(v[OBK_RQA_RTE] - cases[c].rte) < 1e-3 &&
			fabs(v[OBK_RQA_TREND] - cases[c].trend) < 0.1);
		CHECK(fabs(v[OBK_RQA_LAM] - cases[c].lam) < 1e-15 &&
			fabs(v[OBK_RQA_TT] - cases[c].tt) < 1e-15 &&
			fabs(v[OBK_RQA_MRT] - cases[c].mrt) < 1e-15);
		obk_rqa_result_free(result);
	}
}

/*
 * An undirected graph as an auto recurrence matrix: each node has 1 in its own channel and 0.5 in
 * those of its neighbours.
 */
static void network_measures(const char *const *rows, unsigned n, double *v)
{
	static double x[16][16];
	struct obk_rqa_series series = { .data = x[0], .length = n, .channels = n, .step = 16 };
	struct obk_rqa_options o;

	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < n; j++)
			x[i][j] = i == j ? 1 : rows[i][j] == '1' ? 0.5 : 0;
	obk_rqa_options_preset(OBK_RQA_PRESET_JULIA, &o);
	o.norm = OBK_RQA_NORM_MAX;
	o.radius = 0.6;
	o.want = OBK_RQA_WANT_NETWORK;
	CHECK_INT(obk_rqa_measure(&series, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
}

TEST(julia_networks)
{
	static const char *const six[] = { "010100", "101110", "010000", "110001", "010001",
		"000110" };
	static const char *const ten[] = { "0001000100", "0000100010", "0000010001", "1000001000",
		"0100000100", "0010000010", "0001000001", "1000100000", "0100010000",
		"0010001000" };
	static const char *const nine[] = { "000010011", "000001001", "000100100", "001010110",
		"100100111", "010000000", "001110000", "100110001", "110010010" };
	double v[OBK_RQA_MEASURE_COUNT];

	network_measures(six, 6, v);
	CHECK(fabs(v[OBK_RQA_RR] - 7. / 15) < 1e-15 && v[OBK_RQA_TRANSITIVITY] == 0.25);
	network_measures(ten, 10, v);
	CHECK(fabs(v[OBK_RQA_RR] - 2. / 9) < 1e-15 && v[OBK_RQA_TRANSITIVITY] == 0 &&
		v[OBK_RQA_CLUSTERING] == 0);
	network_measures(nine, 9, v);
	CHECK(fabs(v[OBK_RQA_RR] - 7. / 18) < 1e-15);
	CHECK(fabs(v[OBK_RQA_TRANSITIVITY] -
		      (3 + 0 + 1 + 3 + 5 + 0 + 2 + 4 + 3) / (3 + 1 + 1 + 6 + 10 + 0 + 3 + 6 + 6.)) <
		1e-15);
}

static void sines(double *data)
{
	for (unsigned i = 0; i < 10; i++)
		for (unsigned c = 0; c < 6; c++)
			data[6 * i + c] = sin(i * M_PI / 10 + c * M_PI / 2);
}

TEST(pyunicorn_small)
{
	double data[60], v[OBK_RQA_MEASURE_COUNT];
	struct obk_rqa_series x = { .data = data, .length = 10, .channels = 6 };
	struct obk_rqa_options o;
	struct obk_rqa_result *result;

	sines(data);
	obk_rqa_options_preset(OBK_RQA_PRESET_PYUNICORN, &o);
	o.radius = 0.8;
	CHECK_INT(obk_rqa_run(&x, NULL, &o, NULL, &result, NULL), OBK_RQA_OK);
	same_counts(
		result, OBK_RQA_HIST_DIAGONAL, (const unsigned[]){ 4, 0, 0, 0, 0, 0, 0, 2, 2 }, 9);
	same_counts(result, OBK_RQA_HIST_VERTICAL, (const unsigned[]){ 0, 0, 1, 2, 5, 2 }, 6);
	same_counts(result, OBK_RQA_HIST_WHITE, (const unsigned[]){ 2, 1, 2, 2, 3, 2, 1 }, 7);
	CHECK_INT(obk_rqa_result_measures(result, NULL, v, NULL), OBK_RQA_OK);
	obk_rqa_result_free(result);
	same_printed("RR", v[OBK_RQA_RR], "0.48");
	same_printed("DET", v[OBK_RQA_DET], "0.8947");
	same_printed("L", v[OBK_RQA_L], "8.5000");
	same_printed("LAM", v[OBK_RQA_LAM], "1.0000");
	same_printed("TT", v[OBK_RQA_TT], "4.8000");
	same_printed("mean recurrence time", v[OBK_RQA_W], "4.0000");
	same_printed("diagonal entropy", v[OBK_RQA_ENTR], "0.6931");
	same_printed("vertical entropy", v[OBK_RQA_VENTR], "1.2206");
	CHECK(fabs(v[OBK_RQA_WENTR] - 1.8848) < 1e-4);
	o.radius = 0;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_LMAX] == 0 && v[OBK_RQA_VMAX] == 0 && v[OBK_RQA_WMAX] == 10);
	o.radius = 2;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	CHECK(v[OBK_RQA_LMAX] == 9 && v[OBK_RQA_VMAX] == 10 && v[OBK_RQA_WMAX] == 0);
}

/* Compares whole matrices, drawn as pixels. Row 0 of the picture is the last vector. */
static void matrix_check(unsigned channels, int norm, double radius, const char *const *want)
{
	double data[60];
	uint8_t pixels[100];
	struct obk_rqa_series x = { .data = data, .length = 10, .channels = channels, .step = 6 };
	struct obk_rqa_options o;

	sines(data);
	obk_rqa_options_preset(OBK_RQA_PRESET_PYUNICORN, &o);
	o.norm = norm;
	o.radius = radius;
	CHECK_INT(obk_rqa_plot(&x, NULL, &o, 10, 10, 0, NULL, pixels, NULL), OBK_RQA_OK);
	for (unsigned j = 0; j < 10; j++)
		for (unsigned i = 0; i < 10; i++)
			CHECK_INT(pixels[(9 - j) * 10 + i], want[j][i] == '1' ? 0 : 255);
}

TEST(pyunicorn_matrices)
{
	static const char *const euclid[] = { "1110000000", "1111100000", "1111110000",
		"0111111100", "0111111100", "0011111110", "0001111111", "0001111111", "0000011111",
		"0000001111" };
	static const char *const manhattan[] = { "1110000000", "1111000000", "1111100000",
		"0111111000", "0011111100", "0001111100", "0001111110", "0000111111", "0000001111",
		"0000000111" };

	matrix_check(3, OBK_RQA_NORM_L2, 1.2, euclid);
	matrix_check(6, OBK_RQA_NORM_L1, 3.5, manhattan);
}

/*
 * pucicu/rp: a sine of ten periods, m = 2, tau = 25; RR to TT, the longest lines, recurrence times,
 * network measures.
 */
TEST(rp_sine)
{
	static const char *const want[] = { "0.030091086", "1.0000000", "492.68966", "974",
		"0.48925920", "0.93120101", "3.1086449", "4", "97", "96.800886", "0.072528335",
		"0.72373327", "0.69912882" };
	static const unsigned measure[] = { OBK_RQA_RR, OBK_RQA_DET, OBK_RQA_L, OBK_RQA_LMAX,
		OBK_RQA_ENTR, OBK_RQA_LAM, OBK_RQA_TT, OBK_RQA_VMAX, OBK_RQA_WMAX, OBK_RQA_W,
		OBK_RQA_RTE, OBK_RQA_CLUSTERING, OBK_RQA_TRANSITIVITY };
	static double data[1000];
	struct obk_rqa_series x = { .data = data, .length = 1000, .channels = 1 };
	struct obk_rqa_options o;
	double v[OBK_RQA_MEASURE_COUNT];

	for (unsigned i = 0; i < 1000; i++)
		data[i] = sin(2 * M_PI * 10 * i / 999);
	obk_rqa_options_preset(OBK_RQA_PRESET_RP, &o);
	o.m = 2;
	o.tau = 25;
	o.radius = 0.1;
	o.want = OBK_RQA_WANT_ALL;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	for (unsigned i = 0; i < 13; i++)
		same_printed(obk_rqa_measure_name(measure[i]), v[measure[i]], want[i]);
}

/*
 * nonlinearTseries: each value of a ramp recurs only with itself; a radius above its range fills
 * the plot.
 */
TEST(ramp)
{
	static double data[11];
	struct obk_rqa_series x = { .data = data, .length = 11, .channels = 1 };
	struct obk_rqa_options o;
	struct obk_rqa_result *result;
	const uint64_t *hist;
	uint64_t length;
	double v[OBK_RQA_MEASURE_COUNT];

	for (unsigned i = 0; i < 11; i++)
		data[i] = i;
	obk_rqa_options_preset(OBK_RQA_PRESET_NONLINEARTSERIES, &o);
	o.m = 2;
	o.radius = 0.1;
	CHECK_INT(obk_rqa_measure(&x, NULL, &o, NULL, v, NULL), OBK_RQA_OK);
	CHECK(fabs(v[OBK_RQA_RR] - 0.1) < 1e-15 && v[OBK_RQA_DET] == 1 && v[OBK_RQA_LMAX] == 10 &&
		v[OBK_RQA_LAM] == 0 && v[OBK_RQA_VMAX] == 1);
	o.radius = 10;
	o.lmin = 1;
	CHECK_INT(obk_rqa_run(&x, NULL, &o, NULL, &result, NULL), OBK_RQA_OK);
	hist = obk_rqa_result_histogram(result, OBK_RQA_HIST_DIAGONAL, &length);
	for (unsigned l = 1; l <= 10; l++)
		CHECK_INT(hist[l], l == 10 ? 1 : 2);
	hist = obk_rqa_result_histogram(result, OBK_RQA_HIST_VERTICAL, &length);
	for (unsigned l = 1; l <= 10; l++)
		CHECK_INT(hist[l], l == 10 ? 10 : 0);
	obk_rqa_result_free(result);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
