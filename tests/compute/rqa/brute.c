/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/compute/rqa/brute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double value_of(const struct obk_rqa_series *s, unsigned t, unsigned c)
{
	return s->data[t * (s->step ? s->step : s->channels) +
		c * (s->channel_step ? s->channel_step : 1)];
}

static double distance_f64(const struct obk_rqa_series *x, unsigned i,
	const struct obk_rqa_series *y, unsigned j, const struct obk_rqa_options *o, int norm)
{
	volatile double sum = 0; /* volatile: no fused multiply-add with any compiler options */

	for (unsigned lag = 0; lag < o->m; lag++)
		for (unsigned c = 0; c < x->channels; c++) {
			volatile double d = value_of(x, i + lag * o->tau, c) -
				value_of(y, j + lag * o->tau, c),
					square = d * d;

			if (norm == OBK_RQA_NORM_L1)
				sum = sum + fabs(d);
			else if (norm == OBK_RQA_NORM_L2)
				sum = sum + square;
			else if (fabs(d) > sum)
				sum = fabs(d);
		}
	return norm == OBK_RQA_NORM_L2 ? sqrt(sum) : sum;
}

static float distance_f32(const struct obk_rqa_series *x, unsigned i,
	const struct obk_rqa_series *y, unsigned j, const struct obk_rqa_options *o, int norm)
{
	volatile float sum = 0;

	for (unsigned lag = 0; lag < o->m; lag++)
		for (unsigned c = 0; c < x->channels; c++) {
			volatile float d = (float)value_of(x, i + lag * o->tau, c) -
				(float)value_of(y, j + lag * o->tau, c),
				       square = d * d;

			if (norm == OBK_RQA_NORM_L1)
				sum = sum + fabsf(d);
			else if (norm == OBK_RQA_NORM_L2)
				sum = sum + square;
			else if (fabsf(d) > sum)
				sum = fabsf(d);
		}
	return norm == OBK_RQA_NORM_L2 ? sqrtf(sum) : sum;
}

static int usable(const struct obk_rqa_series *s, unsigned i, const struct obk_rqa_options *o)
{
	for (unsigned lag = 0; lag < o->m; lag++)
		for (unsigned c = 0; c < s->channels; c++)
			if (!isfinite(value_of(s, i + lag * o->tau, c)))
				return 0;
	return 1;
}

static void matrix_and(struct brute *b, const struct obk_rqa_series *x,
	const struct obk_rqa_series *y, const struct obk_rqa_options *o, int norm, double radius)
{
	int f32 = !o->categorical && o->precision == OBK_RQA_PRECISION_F32;

	norm = norm == OBK_RQA_NORM_GAZE ? (x->channels > 1 ? OBK_RQA_NORM_L2 : OBK_RQA_NORM_L1)
					 : norm;
	for (unsigned i = 0; i < b->n1; i++)
		for (unsigned j = 0; j < b->n2; j++) {
			int in;

			if (o->categorical)
				in = distance_f64(x, i, y, j, o, OBK_RQA_NORM_MAX) == 0;
			else if (f32)
				in = o->test == OBK_RQA_TEST_LE
					? distance_f32(x, i, y, j, o, norm) <= (float)radius
					: distance_f32(x, i, y, j, o, norm) < (float)radius;
			else
				in = o->test == OBK_RQA_TEST_LE
					? distance_f64(x, i, y, j, o, norm) <= radius
					: distance_f64(x, i, y, j, o, norm) < radius;
			if (!in || !usable(x, i, o) || !usable(y, j, o))
				b->cell[i][j] = 0;
		}
}

void brute_matrix(struct brute *b, const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *o)
{
	unsigned span = (o->m - 1) * o->tau, n = (unsigned)x->length;

	memset(b, 0, sizeof *b);
	memset(b->cell, 1, sizeof b->cell);
	b->symmetric = o->kind != OBK_RQA_CROSS;
	if (o->kind == OBK_RQA_JOINT && y->length < n)
		n = (unsigned)y->length;
	b->n1 = b->n2 = n - span;
	if (o->kind == OBK_RQA_CROSS)
		b->n2 = (unsigned)y->length - span;
	matrix_and(b, x, o->kind == OBK_RQA_CROSS ? y : x, o, o->norm, o->radius);
	if (o->kind == OBK_RQA_JOINT)
		matrix_and(b, y, y, o, o->norm_y < 0 ? o->norm : o->norm_y,
			isnan(o->radius_y) ? o->radius : o->radius_y);
}

static unsigned away(unsigned i, unsigned j)
{
	return i > j ? i - j : j - i;
}

static int in_triangle(const struct obk_rqa_options *o, unsigned i, unsigned j)
{
	return o->triangle == OBK_RQA_BOTH || (o->triangle == OBK_RQA_UPPER ? j >= i : i >= j);
}

static int cell_at(const struct brute *b, long i, long j)
{
	return i >= 0 && j >= 0 && i < (long)b->n1 && j < (long)b->n2 && b->cell[i][j];
}

/* A line starts where the cell before it is not set. */
static void count_diagonals(struct brute *b, const struct obk_rqa_options *o)
{
	for (unsigned i = 0; i < b->n1; i++)
		for (unsigned j = 0; j < b->n2; j++) {
			unsigned length = 0, touches;

			if (b->cell[i][j]) {
				if (b->symmetric && j >= i)
					b->profile[j - i]++;
				if (!b->symmetric)
					b->profile[j + b->n1 - 1 - i]++;
			}
			if (!b->cell[i][j] || cell_at(b, (long)i - 1, (long)j - 1) ||
				away(i, j) < o->theiler_diag || !in_triangle(o, i, j))
				continue;
			while (cell_at(b, i + length, j + length))
				length++;
			touches = (unsigned)(i == 0 || j == 0) +
				(unsigned)(i + length == b->n1 || j + length == b->n2);
			b->diagonal[length]++;
			if (touches)
				b->diagonal_border[length]++;
		}
}

static void count_columns(struct brute *b, const struct obk_rqa_options *o, double *ret_t1)
{
	double gaps = 0, gap_count = 0;

	for (unsigned j = 0; j < b->n2; j++) {
		long last_start = -1, last_end = -1, last_point = -1;

		for (unsigned i = 0; i < b->n1;) {
			unsigned end = i;
			int black = b->cell[i][j] && away(i, j) >= o->theiler_vert;

			while (black && end < b->n1 && b->cell[end][j] &&
				away(end, j) >= o->theiler_vert)
				end++;
			if (!black) {
				i++;
				continue;
			}
			b->vertical[end - i]++;
			if (last_start >= 0) {
				/*
				 * The midpoint of a line lies half its length, rounded down, from
				 * either end.
				 */
				b->start[i - last_start]++;
				b->middle[(i - last_end) + (last_end - last_start) / 2 +
					(end - i) / 2]++;
			}
			for (unsigned p = i; p < end; p++) {
				if (last_point >= 0) {
					gaps += (double)(p - last_point);
					gap_count++;
				}
				last_point = p;
			}
			last_start = i;
			last_end = end;
			i = end;
		}
		for (unsigned i = 0; i < b->n1;) {
			unsigned end = i;

			while (end < b->n1 &&
				!(b->cell[end][j] && away(end, j) >= o->theiler_white))
				end++;
			if (end > i) {
				b->white[end - i]++;
				if (i == 0 || end == b->n1)
					b->white_border[end - i]++;
			}
			i = end + (end == i);
		}
	}
	*ret_t1 = gap_count > 0 ? gaps / gap_count : NAN;
}

struct told {
	double lines, points, bins, longest, entropy;
};

static struct told tell(const unsigned long *count, unsigned shortest)
{
	struct told t = { 0 };

	for (unsigned l = shortest; l <= BRUTE_MAX; l++) {
		t.lines += (double)count[l];
		t.points += (double)count[l] * l;
		t.bins += count[l] != 0;
		t.longest = count[l] ? l : t.longest;
	}
	for (unsigned l = shortest; l <= BRUTE_MAX; l++)
		if (count[l])
			t.entropy -= (double)count[l] / t.lines * log((double)count[l] / t.lines);
	return t;
}

static double over(double a, double b)
{
	return b != 0 ? a / b : NAN;
}

static double entropy_as(const struct told *t, const struct obk_rqa_options *o, unsigned n)
{
	if (o->entropy_norm == OBK_RQA_ENTROPY_PER_LOG_N)
		return t->bins > 1 ? t->entropy / log(n) : 0;
	if (o->entropy_norm == OBK_RQA_ENTROPY_PER_LOG_BINS)
		return t->bins > 1 ? t->entropy / log(t->bins) : 0;
	return o->log_base == OBK_RQA_LOG2 ? t->entropy / log(2) : t->entropy;
}

static void tell_network(struct brute *b, const struct obk_rqa_options *o)
{
	unsigned width = o->theiler_vert > 1 ? o->theiler_vert : 1, n = b->n1;
	double closed = 0, triples = 0, paths = 0, local = 0, nodes = 0;

	for (unsigned i = 0; i < n; i++) {
		double degree = 0, own = 0;

		for (unsigned j = 0; j < n; j++) {
			if (!b->cell[i][j] || away(i, j) < width)
				continue;
			degree++;
			for (unsigned k = 0; k < n; k++)
				own += b->cell[j][k] && away(j, k) >= width && b->cell[k][i] &&
					away(k, i) >= width;
		}
		closed += own;
		triples += degree * (degree - 1);
		paths += degree * degree;
		if (degree > 1) {
			local += own / (degree * (degree - 1));
			nodes++;
		}
	}
	b->value[OBK_RQA_TRANSITIVITY] =
		over(closed, o->transitivity == OBK_RQA_PATHS ? paths : triples);
	b->value[OBK_RQA_CLUSTERING] = over(local, nodes);
}

static void tell_trend(struct brute *b, const struct obk_rqa_options *o)
{
	/* the range [from, to) */
	long n = b->n1 < b->n2 ? b->n1 : b->n2, from = o->theiler_diag,
	     to = n - (long)o->trend_margin;
	double mean_k = 0, mean_rate = 0, above = 0, below = 0,
	       *rate = calloc((size_t)n + 1, sizeof *rate), moment = 0, points = 0;

	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++)
			if (b->cell[i][j])
				rate[labs(i - j)] +=
					(i == j ? 1.0 : 0.5) / (double)(n - labs(i - j));
	for (long i = 0; i < n && b->symmetric; i++)
		for (long j = i + 1; j < n; j++) {
			moment += b->cell[i][j] ? (double)(j - i) : 0;
			points += b->cell[i][j];
		}
	b->value[OBK_RQA_CORM] = over(100 * moment, (double)(n - 1) * points);
	b->value[OBK_RQA_TREND] = NAN;
	if (to - from >= 2) {
		for (long k = from; k < to; k++) {
			mean_k += (double)k / (double)(to - from);
			mean_rate += rate[k] / (double)(to - from);
		}
		if (o->trend == OBK_RQA_TREND_WEIGHTED)
			mean_k = (double)(n - (long)o->trend_margin + from) / 2 - 1;
		for (long k = from; k < to; k++) {
			above += ((double)k - mean_k) * (rate[k] - mean_rate);
			below += ((double)k - mean_k) * ((double)k - mean_k);
		}
		b->value[OBK_RQA_TREND] = 1000 * over(above, below);
	}
	free(rate);
}

static void tell_times(
	struct brute *b, const struct obk_rqa_options *o, const unsigned long *white, double t1)
{
	const unsigned long *times = o->times == OBK_RQA_TIMES_START ? b->start
		: o->times == OBK_RQA_TIMES_MIDPOINT                 ? b->middle
								     : white;
	struct told t = tell(b->start, 1);
	double most = 0;

	b->value[OBK_RQA_T1] = t1;
	b->value[OBK_RQA_T2] = over(t.points, t.lines);
	t = tell(times, 1);
	for (unsigned l = 1; l <= BRUTE_MAX; l++)
		most = (double)times[l] > most ? (double)times[l] : most;
	b->value[OBK_RQA_MRT] = over(t.points, t.lines);
	b->value[OBK_RQA_RTE] = entropy_as(&t, o, b->n1);
	b->value[OBK_RQA_NMPRT] = most;
}

void brute_count(struct brute *b, const struct obk_rqa_options *o)
{
	double points = 0, cells = 0, t1;
	unsigned long inner[BRUTE_MAX + 1], without_loi[BRUTE_MAX + 1];
	const unsigned long *white = inner;
	struct told min, all;

	count_diagonals(b, o);
	count_columns(b, o, &t1);
	for (unsigned i = 0; i < b->n1; i++)
		for (unsigned j = 0; j < b->n2; j++)
			if (in_triangle(o, i, j)) {
				points += b->cell[i][j] && away(i, j) >= o->theiler_rr;
				cells += o->rr_denominator == OBK_RQA_RR_FULL ||
					away(i, j) >= o->theiler_rr;
			}
	for (unsigned l = 0; l <= BRUTE_MAX; l++)
		inner[l] = b->white[l] - (o->white == OBK_RQA_WHITE_INNER ? b->white_border[l] : 0);
	min = tell(b->diagonal, o->lmin);
	all = tell(b->diagonal, 1);
	b->value[OBK_RQA_RR] = over(points, cells) * o->percent;
	b->value[OBK_RQA_POINTS] = points;
	b->value[OBK_RQA_VECTORS] = b->n1;
	b->value[OBK_RQA_DET] =
		over(min.points, o->det_denominator == OBK_RQA_PER_POINTS ? points : all.points) *
		o->percent;
	b->value[OBK_RQA_L] = over(min.points, min.lines);
	b->value[OBK_RQA_LMAX] = all.longest;
	if (o->lmax_excludes_loi && b->symmetric && o->theiler_diag == 0) {
		memcpy(without_loi, b->diagonal, sizeof without_loi);
		for (unsigned i = 0, run = 0; i <= b->n1; i++) {
			if (i < b->n1 && b->cell[i][i]) {
				run++;
			} else if (run) {
				without_loi[run]--;
				run = 0;
			}
		}
		b->value[OBK_RQA_LMAX] = tell(without_loi, 1).longest;
	}
	b->value[OBK_RQA_DIV] = over(1, b->value[OBK_RQA_LMAX]);
	b->value[OBK_RQA_ENTR] = entropy_as(o->entropy_all ? &all : &min, o, b->n1);
	b->value[OBK_RQA_RENTR] = min.bins > 1 ? min.entropy / log(min.bins) : 0;
	b->value[OBK_RQA_RATIO] = over(b->value[OBK_RQA_DET], b->value[OBK_RQA_RR]);
	min = tell(b->vertical, o->vmin);
	all = tell(b->vertical, 1);
	b->value[OBK_RQA_LAM] =
		over(min.points, o->lam_denominator == OBK_RQA_PER_POINTS ? points : all.points) *
		o->percent;
	b->value[OBK_RQA_TT] = over(min.points, min.lines);
	b->value[OBK_RQA_VMAX] = all.longest;
	b->value[OBK_RQA_VENTR] = entropy_as(o->entropy_all ? &all : &min, o, b->n1);
	min = tell(white, o->wmin);
	all = tell(white, 1);
	b->value[OBK_RQA_W] = over(min.points, min.lines);
	b->value[OBK_RQA_WMAX] = all.longest;
	b->value[OBK_RQA_WDIV] = over(1, all.longest);
	b->value[OBK_RQA_WENTR] = entropy_as(o->entropy_all ? &all : &min, o, b->n1);
	b->value[OBK_RQA_RADIUS] = o->categorical ? 0 : o->radius;
	tell_times(b, o, white, t1);
	tell_trend(b, o);
	b->value[OBK_RQA_TRANSITIVITY] = b->value[OBK_RQA_CLUSTERING] = NAN;
	if (b->symmetric)
		tell_network(b, o);
}
