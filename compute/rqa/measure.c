/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Computes measures from integer counts. Sums are formed from the longest length down, so that sums
 * for a smaller minimum length continue those for a larger one.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "compute/rqa/internal.h"

#define PLOGP_MAX 8192u

static long double plogp_table[PLOGP_MAX];
static pthread_once_t plogp_once = PTHREAD_ONCE_INIT;

static void plogp_fill(void)
{
	for (unsigned p = 1; p < PLOGP_MAX; p++)
		plogp_table[p] = (long double)p * logl((long double)p);
}

long double obk_rqa_plogp(uint64_t count)
{
	if (count >= PLOGP_MAX)
		return (long double)count * logl((long double)count);
	pthread_once(&plogp_once, plogp_fill);
	return plogp_table[count];
}

static double entropy_ln(const struct obk_rqa_sums *sums)
{
	long double lines = (long double)sums->lines, entropy;

	if (sums->bins < 2)
		return 0;
	entropy = logl(lines) - sums->weighted / lines;
	return entropy > 0 ? (double)entropy : 0;
}

double obk_rqa_entropy(
	const struct obk_rqa_sums *sums, uint64_t n, const struct obk_rqa_options *options)
{
	double entropy = entropy_ln(sums);

	if (options->entropy_norm == OBK_RQA_ENTROPY_PER_LOG_N && sums->bins > 1)
		return entropy / log((double)n);
	if (options->entropy_norm == OBK_RQA_ENTROPY_PER_LOG_BINS && sums->bins > 1)
		return entropy / log((double)sums->bins);
	return options->log_base == OBK_RQA_LOG2 ? entropy / log(2) : entropy;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : NAN;
}

void obk_rqa_measure_lines(const struct obk_rqa_options *options, uint64_t n,
	const struct obk_rqa_sums *from_min, const struct obk_rqa_sums *all, uint64_t longest,
	uint64_t points, double rr_cells, double *v)
{
	double rr = ratio((double)points, rr_cells);
	double det = ratio((double)from_min->points,
		(double)(options->det_denominator == OBK_RQA_PER_POINTS ? points : all->points));

	v[OBK_RQA_RR] = rr * options->percent;
	v[OBK_RQA_POINTS] = (double)points;
	v[OBK_RQA_VECTORS] = (double)n;
	v[OBK_RQA_DET] = det * options->percent;
	v[OBK_RQA_L] = ratio((double)from_min->points, (double)from_min->lines);
	v[OBK_RQA_LMAX] = (double)longest;
	v[OBK_RQA_DIV] = ratio(1, (double)longest);
	v[OBK_RQA_ENTR] = obk_rqa_entropy(options->entropy_all ? all : from_min, n, options);
	v[OBK_RQA_RENTR] =
		from_min->bins > 1 ? entropy_ln(from_min) / log((double)from_min->bins) : 0;
	v[OBK_RQA_RATIO] = ratio(det, rr);
}

void obk_rqa_measure_vertical(const struct obk_rqa_options *options, uint64_t n,
	const struct obk_rqa_sums *from_min, const struct obk_rqa_sums *all, uint64_t points,
	double *v)
{
	v[OBK_RQA_LAM] =
		ratio((double)from_min->points,
			(double)(options->lam_denominator == OBK_RQA_PER_POINTS ? points
										: all->points)) *
		options->percent;
	v[OBK_RQA_TT] = ratio((double)from_min->points, (double)from_min->lines);
	v[OBK_RQA_VMAX] = (double)all->longest;
	v[OBK_RQA_VENTR] = obk_rqa_entropy(options->entropy_all ? all : from_min, n, options);
}

/* A histogram as plain numbers. */
struct lengths {
	uint64_t *count;
	uint64_t longest; /* entries beyond it are 0 */
};

static int lengths_init(
	struct lengths *lengths, const struct obk_rqa_hist *a, const struct obk_rqa_hist *b)
{
	uint64_t longest = a->length;

	if (b && b->count && b->length > longest)
		longest = b->length;
	lengths->count = calloc(longest + 1, 8);
	if (!lengths->count)
		return OBK_RQA_NO_MEMORY;
	for (uint64_t l = 1; l <= longest; l++)
		lengths->count[l] = obk_rqa_hist_get(a, l) + (b ? obk_rqa_hist_get(b, l) : 0);
	lengths->longest = longest;
	return OBK_RQA_OK;
}

static void lengths_sum(const struct lengths *lengths, uint64_t shortest,
	struct obk_rqa_sums *ret_from_min, struct obk_rqa_sums *ret_all)
{
	struct obk_rqa_sums sums = { 0 };

	*ret_from_min = sums;
	for (uint64_t l = lengths->longest; l >= 1; l--) {
		uint64_t count = lengths->count[l];

		if (count) {
			sums.lines += count;
			sums.points += count * l;
			sums.bins++;
			sums.longest = sums.longest ? sums.longest : l;
			sums.weighted += obk_rqa_plogp(count);
		}
		if (l == shortest)
			*ret_from_min = sums;
	}
	if (shortest > lengths->longest)
		*ret_from_min = (struct obk_rqa_sums){ 0 };
	*ret_all = sums;
}

/*
 * Diagonal lines after the border correction, in both triangles and on the LOI as the options
 * require. Returns the longest one, excluding the LOI.
 */
static int diagonal_lengths(const struct obk_rqa_counts *counts,
	const struct obk_rqa_options *options, struct lengths *ret, uint64_t *ret_longest)
{
	const struct obk_rqa_hist *semi = &counts->diagonal[OBK_RQA_SEMI],
				  *full = &counts->diagonal[OBK_RQA_FULL];
	uint64_t times = counts->symmetric && options->triangle == OBK_RQA_BOTH ? 2 : 1,
		 borders = 0, longest = 0, second = 0;
	bool drops =
		options->border == OBK_RQA_BORDER_DIBO || options->border == OBK_RQA_BORDER_KELO;
	int status = lengths_init(ret, &counts->diagonal[OBK_RQA_INNER], NULL);

	if (status != OBK_RQA_OK)
		return status;
	for (uint64_t l = ret->longest; l >= 1; l--) {
		uint64_t border = obk_rqa_hist_get(full, l) +
			(options->border_semi ? obk_rqa_hist_get(semi, l) : 0);

		if (!options->border_semi || options->border == OBK_RQA_BORDER_NONE)
			ret->count[l] += obk_rqa_hist_get(semi, l);
		if (options->border == OBK_RQA_BORDER_NONE)
			ret->count[l] += obk_rqa_hist_get(full, l);
		if (border && !borders)
			longest = l;
		if (borders + border > 1 && borders < 2)
			second = l;
		borders += border;
		ret->count[l] *= times;
	}
	if (options->border == OBK_RQA_BORDER_CENSI && borders)
		ret->count[longest] += times * borders;
	/*
	 * One per triangle: mirror images of each other if the matrix is symmetric, else the two
	 * longest.
	 */
	if (options->border == OBK_RQA_BORDER_KELO && borders)
		ret->count[longest] += counts->symmetric ? times : 1;
	if (options->border == OBK_RQA_BORDER_KELO && borders > 1 && !counts->symmetric &&
		options->triangle == OBK_RQA_BOTH)
		ret->count[second]++;
	*ret_longest = 0;
	for (uint64_t l = 1; l <= ret->longest; l++)
		if (ret->count[l])
			*ret_longest = l;
	/* The LOI is a border line: corrections that drop border lines drop it too. */
	if (counts->symmetric && options->theiler_diag == 0)
		for (uint64_t l = 1; l <= counts->loi.length; l++)
			ret->count[l] += obk_rqa_hist_get(&counts->loi, l) +
				(drops ? 0 : obk_rqa_hist_get(&counts->loi_border, l));
	return OBK_RQA_OK;
}

/* The number of cells for which RR is computed. */
double obk_rqa_cells(
	uint64_t n1, uint64_t n2, bool symmetric, const struct obk_rqa_options *options)
{
	uint64_t width = options->rr_denominator == OBK_RQA_RR_VALID ? options->theiler_rr : 0;
	double cells = 0;

	if (symmetric) {
		double n = (double)n1, left = width >= n1 ? 0 : n - (double)width;

		if (width == 0)
			return options->triangle == OBK_RQA_BOTH ? n * n : n * (n + 1) / 2;
		return options->triangle == OBK_RQA_BOTH ? left * (left + 1)
							 : left * (left + 1) / 2;
	}
	if (width == 0 && options->triangle == OBK_RQA_BOTH)
		return (double)n1 * (double)n2;
	for (uint64_t k = width; k < n2 && options->triangle != OBK_RQA_LOWER; k++)
		cells += (double)(n1 < n2 - k ? n1 : n2 - k);
	for (uint64_t k = width ? width : options->triangle == OBK_RQA_BOTH;
		k < n1 && options->triangle != OBK_RQA_UPPER; k++)
		cells += (double)(n2 < n1 - k ? n2 : n1 - k);
	return cells;
}

static void measure_times(const struct obk_rqa_counts *counts,
	const struct obk_rqa_options *options, const struct lengths *white, double *v)
{
	struct lengths lengths;
	struct obk_rqa_sums all, from_min;

	if (lengths_init(&lengths, &counts->start, NULL) != OBK_RQA_OK)
		return;
	lengths_sum(&lengths, 1, &from_min, &all);
	v[OBK_RQA_T1] = ratio((double)counts->t1_sum, (double)counts->t1_count);
	v[OBK_RQA_T2] = ratio((double)all.points, (double)all.lines);
	if (options->times == OBK_RQA_TIMES_MIDPOINT) {
		free(lengths.count);
		if (lengths_init(&lengths, &counts->middle, NULL) != OBK_RQA_OK)
			return;
	}
	if (options->times == OBK_RQA_TIMES_WHITE) {
		free(lengths.count);
		lengths = *white;
	}
	lengths_sum(&lengths, 1, &from_min, &all);
	v[OBK_RQA_MRT] = ratio((double)all.points, (double)all.lines);
	v[OBK_RQA_RTE] = obk_rqa_entropy(&all, counts->n1, options);
	v[OBK_RQA_NMPRT] = 0;
	for (uint64_t l = 1; l <= lengths.longest; l++)
		if ((double)lengths.count[l] > v[OBK_RQA_NMPRT])
			v[OBK_RQA_NMPRT] = (double)lengths.count[l];
	if (options->times != OBK_RQA_TIMES_WHITE)
		free(lengths.count);
}

static void measure_white(
	const struct obk_rqa_counts *counts, const struct obk_rqa_options *options, double *v)
{
	struct lengths lengths;
	struct obk_rqa_sums from_min, all;

	if (lengths_init(&lengths, &counts->white,
		    options->white == OBK_RQA_WHITE_ALL ? &counts->white_border : NULL) !=
		OBK_RQA_OK)
		return;
	if (options->want & OBK_RQA_WANT_WHITE) {
		lengths_sum(&lengths, options->wmin, &from_min, &all);
		v[OBK_RQA_W] = ratio((double)from_min.points, (double)from_min.lines);
		v[OBK_RQA_WMAX] = (double)all.longest;
		v[OBK_RQA_WDIV] = ratio(1, (double)all.longest);
		v[OBK_RQA_WENTR] = obk_rqa_entropy(
			options->entropy_all ? &all : &from_min, counts->n1, options);
	}
	if (options->want & OBK_RQA_WANT_TIMES)
		measure_times(counts, options, &lengths, v);
	free(lengths.count);
}

/* The recurrence rate of the diagonals at distance k from the LOI, in the largest square. */
static double diagonal_rate(const struct obk_rqa_counts *counts, uint64_t n, uint64_t k)
{
	if (counts->symmetric)
		return (double)obk_rqa_hist_get(&counts->profile, k) / (double)(n - k);
	return (double)obk_rqa_hist_get(&counts->square, k) / (double)(n - k) / (k ? 2 : 1);
}

static void measure_trend(
	const struct obk_rqa_counts *counts, const struct obk_rqa_options *options, double *v)
{
	uint64_t n = counts->n1 < counts->n2 ? counts->n1 : counts->n2,
		 from = options->theiler_diag;
	double mean = 0, centre, above = 0, below = 0, moment = 0, points = 0;

	for (uint64_t k = 1; k < n && counts->symmetric; k++) {
		moment += (double)k * (double)obk_rqa_hist_get(&counts->profile, k);
		points += (double)obk_rqa_hist_get(&counts->profile, k);
	}
	if (counts->symmetric)
		v[OBK_RQA_CORM] = ratio(100 * moment, (double)(n - 1) * points);
	if (n < (uint64_t)options->trend_margin || from + 2 > n - options->trend_margin)
		return;
	for (uint64_t k = from; k < n - options->trend_margin; k++)
		mean += diagonal_rate(counts, n, k);
	mean /= (double)(n - options->trend_margin - from);
	centre = options->trend == OBK_RQA_TREND_WEIGHTED
		? (double)(n - options->trend_margin + from) / 2 - 1
		: (double)(from + n - options->trend_margin - 1) / 2;
	for (uint64_t k = from; k < n - options->trend_margin; k++) {
		double d = (double)k - centre;

		above += d * (diagonal_rate(counts, n, k) - mean);
		below += d * d;
	}
	v[OBK_RQA_TREND] = below > 0 ? 1000 * above / below : NAN;
}

int obk_rqa_counts_measures(const struct obk_rqa_counts *counts,
	const struct obk_rqa_options *options, double radius, double *v)
{
	struct obk_rqa_sums from_min, all;
	struct lengths lengths;
	uint64_t longest, points = counts->points;
	int status = diagonal_lengths(counts, options, &lengths, &longest);

	if (status != OBK_RQA_OK)
		return status;
	for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++)
		v[i] = NAN;
	if (counts->symmetric)
		points = points * (options->triangle == OBK_RQA_BOTH ? 2 : 1) +
			(options->theiler_rr ? 0 : counts->loi_points);
	lengths_sum(&lengths, options->lmin, &from_min, &all);
	obk_rqa_measure_lines(options, counts->n1, &from_min, &all,
		options->lmax_excludes_loi ? longest : all.longest, points,
		obk_rqa_cells(counts->n1, counts->n2, counts->symmetric, options), v);
	v[OBK_RQA_RADIUS] = radius;
	free(lengths.count);
	if (options->want & OBK_RQA_WANT_VERTICAL) {
		if (lengths_init(&lengths, &counts->vertical, NULL) != OBK_RQA_OK)
			return OBK_RQA_NO_MEMORY;
		if (options->quirks & OBK_RQA_QUIRK_LAST_COLUMN && counts->open_last)
			lengths.count[counts->open_last]--;
		lengths_sum(&lengths, options->vmin, &from_min, &all);
		if (options->quirks & OBK_RQA_QUIRK_RR_VERTICAL)
			v[OBK_RQA_RR] = ratio((double)all.points,
						obk_rqa_cells(counts->n1, counts->n2,
							counts->symmetric, options)) *
				options->percent;
		obk_rqa_measure_vertical(options, counts->n1, &from_min, &all, points, v);
		free(lengths.count);
	}
	if (options->want & (OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES))
		measure_white(counts, options, v);
	if (options->want & OBK_RQA_WANT_TREND)
		measure_trend(counts, options, v);
	if (options->want & OBK_RQA_WANT_NETWORK && counts->has_network) {
		v[OBK_RQA_TRANSITIVITY] = counts->transitivity[options->transitivity];
		v[OBK_RQA_CLUSTERING] = counts->clustering;
	}
	return OBK_RQA_OK;
}
