/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Radii that are relative to the data. The largest and the mean distance take one walk of the
 * matrix. A recurrence rate needs the k-th smallest distance. It is found exactly by counting
 * 16-bit digits of the bit patterns of the distances, whose order is that of the distances.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/rqa/internal.h"

#define DIGIT_BITS 16
#define DIGITS     (1u << DIGIT_BITS)

struct walk {
	const struct obk_rqa_plot *plot;
	const struct obk_rqa_ops *ops;
	struct obk_rqa_watch *watch;
	void *distance, *gap;
	/* task of one walk */
	uint64_t *histogram; /* NULL: largest and sum */
	uint64_t prefix;     /* of the digits found so far */
	unsigned shift;      /* of the digit counted now */
	double largest, sum, cells;
};

static void distances(struct walk *w, uint64_t i, uint64_t j, uint64_t cells)
{
	const struct obk_rqa_plot *plot = w->plot;
	bool first = true;

	for (uint32_t lag = 0; lag < plot->m; lag++)
		for (uint32_t c = 0; c < plot->channels; c++) {
			uint64_t shift = lag * plot->tau;

			w->ops->gaps(
				plot, c, i + shift, j + shift, cells, first ? w->distance : w->gap);
			if (!first)
				w->ops->join(plot, w->distance, w->gap, cells);
			first = false;
		}
}

static void walk_line(struct walk *w, uint64_t i, uint64_t j, uint64_t cells, unsigned times)
{
	const struct obk_rqa_plot *plot = w->plot;
	double sum = 0;

	distances(w, i, j, cells);
	for (uint64_t p = 0; p < cells; p++) {
		uint64_t key = 0;
		double d;

		if (plot->x.valid && !(plot->x.valid[(i + p) / 64] >> ((i + p) & 63) & 1))
			continue;
		if (plot->y.valid && !(plot->y.valid[(j + p) / 64] >> ((j + p) & 63) & 1))
			continue;
		if (plot->f64) {
			d = ((double *)w->distance)[p];
			memcpy(&key, &d, 8);
		} else {
			float f = ((float *)w->distance)[p];
			uint32_t bits;

			memcpy(&bits, &f, 4);
			key = bits;
			d = (double)f;
		}
		if (w->histogram) {
			if (w->shift + DIGIT_BITS >= 64 ||
				key >> (w->shift + DIGIT_BITS) == w->prefix)
				w->histogram[key >> w->shift & (DIGITS - 1)] += times;
			continue;
		}
		d = plot->norm == OBK_RQA_NORM_L2 ? sqrt(d) : d;
		w->largest = d > w->largest ? d : w->largest;
		sum += d;
		w->cells += times;
	}
	w->sum += sum * times;
}

static bool walk_all(struct walk *w)
{
	const struct obk_rqa_plot *plot = w->plot;
	uint64_t n1 = plot->x.n, n2 = plot->y.n;

	for (uint64_t k = 0; k < n2 && !obk_rqa_watch_stopped(w->watch); k++)
		walk_line(w, 0, k, n1 < n2 - k ? n1 : n2 - k, plot->same && k ? 2 : 1);
	for (uint64_t k = 1; k < n1 && !plot->same && !obk_rqa_watch_stopped(w->watch); k++)
		walk_line(w, k, 0, n2 < n1 - k ? n2 : n1 - k, 1);
	return !obk_rqa_watch_stopped(w->watch);
}

/*
 * The distance (squared for L2) at position `place` of all cells in ascending order, from 0.
 * INFINITY if there are fewer cells. ret_below, ret_up_to: how many cells have a smaller distance,
 * and how many have at most this one.
 */
static int select_place(
	struct walk *w, uint64_t place, double *ret, uint64_t *ret_below, uint64_t *ret_up_to)
{
	unsigned bits = w->plot->f64 ? 64 : 32;

	w->histogram = malloc(DIGITS * sizeof *w->histogram);
	if (!w->histogram)
		return OBK_RQA_NO_MEMORY;
	*ret_below = 0;
	w->prefix = 0;
	for (w->shift = bits - DIGIT_BITS;; w->shift -= DIGIT_BITS) {
		uint64_t digit = 0;

		memset(w->histogram, 0, DIGITS * sizeof *w->histogram);
		if (!walk_all(w))
			return OBK_RQA_CANCELLED;
		while (digit < DIGITS && place >= w->histogram[digit]) {
			*ret_below += w->histogram[digit];
			place -= w->histogram[digit++];
		}
		if (digit == DIGITS) {
			*ret = INFINITY;
			*ret_up_to = *ret_below;
			return OBK_RQA_OK;
		}
		*ret_up_to = *ret_below + w->histogram[digit];
		w->prefix = w->prefix << DIGIT_BITS | digit;
		if (!w->shift)
			break;
	}
	if (w->plot->f64) {
		memcpy(ret, &w->prefix, 8);
	} else {
		uint32_t key = (uint32_t)w->prefix;
		float f;

		memcpy(&f, &key, 4);
		*ret = (double)f;
	}
	return OBK_RQA_OK;
}

static int rate_limit(struct walk *w, const struct obk_rqa_options *options, double rate,
	struct obk_rqa_rate *ret_rate, double *ret_radius, double *ret_limit)
{
	bool with_equal = options->test == OBK_RQA_TEST_LE;
	uint64_t below, up_to;
	double cells = (double)w->plot->x.n * (double)w->plot->y.n,
	       place = options->test == OBK_RQA_TEST_LE ? ceil(rate * cells) - 1
							: floor(rate * cells),
	       d;
	int status;

	if (place < 0) { /* the requested rate includes no cell */
		*ret_rate = (struct obk_rqa_rate){ 0 };
		*ret_radius = 0;
		*ret_limit = -1;
		return OBK_RQA_OK;
	}
	status = select_place(w, (uint64_t)place, &d, &below, &up_to);
	free(w->histogram);
	w->histogram = NULL;
	if (status != OBK_RQA_OK)
		return status;
	*ret_rate = (struct obk_rqa_rate){ .asked = rate,
		.reached = (double)(with_equal ? up_to : below) / cells,
		.other = (double)(with_equal ? below : up_to) / cells };
	*ret_radius = w->plot->norm == OBK_RQA_NORM_L2 ? sqrt(d) : d;
	*ret_limit = options->test == OBK_RQA_TEST_LE
		? d
		: (w->plot->f64 ? nextafter(d, -INFINITY)
				: (double)nextafterf((float)d, -INFINITY));
	return OBK_RQA_OK;
}

static int plot_radius(struct obk_rqa_plot *plot, const struct obk_rqa_series *series,
	const struct obk_rqa_options *options, double value, const struct obk_rqa_ops *ops,
	struct obk_rqa_watch *watch, double *ret_radius, uint64_t item,
	struct obk_rqa_error *ret_error)
{
	struct walk w = { .plot = plot, .ops = ops, .watch = watch };
	uint32_t channels[OBK_RQA_MAX_CHANNELS];
	uint64_t n = plot->x.n > plot->y.n ? plot->x.n : plot->y.n;
	double radius = value;
	int status = OBK_RQA_OK;

	for (uint32_t c = 0; c < OBK_RQA_MAX_CHANNELS; c++)
		channels[c] = c;
	if (options->categorical) {
		*ret_radius = 0;
		plot->limit = 0;
		return OBK_RQA_OK;
	}
	if (options->radius_kind == OBK_RQA_RADIUS_SD) {
		double spread = obk_rqa_spread(series, channels, series->channels);

		if (!(spread > 0))
			return obk_rqa_fail(ret_error, OBK_RQA_CONSTANT, item, 0,
				"%s is constant: a radius in standard deviations has no meaning; "
				"give an absolute one",
				series->name ? series->name : "the series");
		radius = value * (options->scale == OBK_RQA_SCALE_NONE ? spread : 1);
	}
	if (options->radius_kind >= OBK_RQA_RADIUS_MAX_DISTANCE) {
		w.distance = malloc((n + OBK_RQA_PAD) * sizeof(double));
		w.gap = malloc((n + OBK_RQA_PAD) * sizeof(double));
		if (!w.distance || !w.gap)
			status = OBK_RQA_NO_MEMORY;
		else if (options->radius_kind == OBK_RQA_RADIUS_RATE)
			status = rate_limit(
				&w, options, value, &plot->rate, ret_radius, &plot->limit);
		else if (!walk_all(&w))
			status = OBK_RQA_CANCELLED;
		free(w.distance);
		free(w.gap);
		if (status != OBK_RQA_OK)
			return obk_rqa_fail(
				ret_error, status, item, 0, "%s", obk_rqa_status_what(status));
		if (options->radius_kind == OBK_RQA_RADIUS_RATE)
			return OBK_RQA_OK;
		radius = value *
			(options->radius_kind == OBK_RQA_RADIUS_MAX_DISTANCE ? w.largest
					: w.cells > 0                        ? w.sum / w.cells
									     : 0);
	}
	*ret_radius = radius;
	plot->limit = obk_rqa_limit(plot->norm, options->test, plot->f64, radius);
	return OBK_RQA_OK;
}

int obk_rqa_matrix_radius(struct obk_rqa_matrix *matrix, const struct obk_rqa_series *x,
	const struct obk_rqa_series *y, const struct obk_rqa_options *options,
	const struct obk_rqa_ops *ops, struct obk_rqa_watch *watch, struct obk_rqa_error *ret_error)
{
	double second;
	int status = plot_radius(&matrix->plot[0], x, options, options->radius, ops, watch,
		&matrix->radius, 0, ret_error);

	if (status == OBK_RQA_OK && matrix->plots == 2)
		status = plot_radius(&matrix->plot[1], y, options,
			isnan(options->radius_y) ? options->radius : options->radius_y, ops, watch,
			&second, 1, ret_error);
	return status;
}
