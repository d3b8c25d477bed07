/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/rqa/internal.h"

static const char *series_name(const struct obk_rqa_series *series)
{
	return series->name ? series->name : "series";
}

static double sample(const struct obk_rqa_series *series, uint64_t t, uint32_t channel)
{
	uint64_t step = series->step ? series->step : series->channels;
	uint64_t channel_step = series->channel_step ? series->channel_step : 1;

	return series->data[t * step + channel * channel_step];
}

int obk_rqa_series_check(const struct obk_rqa_series *series, uint64_t item,
	const struct obk_rqa_options *options, struct obk_rqa_error *ret_error)
{
	if (!series || !series->data)
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, item, 0,
			"series %llu has no data: pass its samples", (unsigned long long)item);
	if (series->channels < 1 || series->channels > OBK_RQA_MAX_CHANNELS)
		return obk_rqa_fail(ret_error, series->channels ? OBK_RQA_LIMIT : OBK_RQA_ARGUMENT,
			item, 0, "%s has %u channels: 1 to %u are possible", series_name(series),
			series->channels, OBK_RQA_MAX_CHANNELS);
	if (series->length > OBK_RQA_MAX_LENGTH)
		return obk_rqa_fail(ret_error, OBK_RQA_LIMIT, item, 0,
			"%s has %llu samples: at most %u are possible; cut it or use windows",
			series_name(series), (unsigned long long)series->length,
			OBK_RQA_MAX_LENGTH);
	if (series->length < 2)
		return obk_rqa_fail(ret_error, OBK_RQA_TOO_SHORT, item, 0,
			"%s has %llu samples: at least 2 are needed", series_name(series),
			(unsigned long long)series->length);
	if (!options->missing)
		for (uint64_t t = 0; t < series->length; t++)
			for (uint32_t c = 0; c < series->channels; c++)
				if (!isfinite(sample(series, t, c)))
					return obk_rqa_fail(ret_error, OBK_RQA_NOT_FINITE, item, t,
						"%s: sample %llu of channel %u is not a finite "
						"number: remove it, or set the "
						"option `missing` to treat it as a gap",
						series_name(series), (unsigned long long)t, c);
	return OBK_RQA_OK;
}

bool obk_rqa_use_f64(const struct obk_rqa_options *options, uint64_t length)
{
	return options->categorical || options->precision == OBK_RQA_PRECISION_F64 ||
		(options->precision == OBK_RQA_PRECISION_AUTO && length <= OBK_RQA_EXACT_LENGTH);
}

int obk_rqa_norm_of(int norm, uint32_t channels)
{
	if (norm == OBK_RQA_NORM_GAZE)
		return channels > 1 ? OBK_RQA_NORM_L2 : OBK_RQA_NORM_L1;
	return norm;
}

/* Two passes; gaps are left out. */
static void moments(const struct obk_rqa_series *series, const uint32_t *channels,
	uint32_t channel_count, double *ret_mean, double *ret_sd, double *ret_min, double *ret_max)
{
	double sum = 0, squares = 0, mean, low = INFINITY, high = -INFINITY;
	uint64_t count = 0;

	for (uint64_t t = 0; t < series->length; t++)
		for (uint32_t c = 0; c < channel_count; c++) {
			double v = sample(series, t, channels[c]);

			if (!isfinite(v))
				continue;
			sum += v;
			low = v < low ? v : low;
			high = v > high ? v : high;
			count++;
		}
	mean = count ? sum / (double)count : 0;
	for (uint64_t t = 0; t < series->length; t++)
		for (uint32_t c = 0; c < channel_count; c++) {
			double v = sample(series, t, channels[c]);

			if (isfinite(v))
				squares += (v - mean) * (v - mean);
		}
	*ret_mean = mean;
	*ret_sd = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
	*ret_min = low;
	*ret_max = high;
}

double obk_rqa_spread(
	const struct obk_rqa_series *series, const uint32_t *channels, uint32_t channel_count)
{
	double mean, sd, low, high;

	moments(series, channels, channel_count, &mean, &sd, &low, &high);
	return sd;
}

void obk_rqa_planes_fini(struct obk_rqa_planes *planes)
{
	for (uint32_t c = 0; c < OBK_RQA_MAX_CHANNELS; c++)
		free(planes->channel[c]);
	free(planes->valid);
	memset(planes, 0, sizeof *planes);
}

/*
 * Scaling of a channel: (v - shift) * 1 / divisor, as two operations, so that NONE changes no bit.
 */
static int plane_scale(const struct obk_rqa_series *series, uint32_t channel,
	const struct obk_rqa_options *options, uint64_t item, double *ret_shift,
	double *ret_divisor, struct obk_rqa_error *ret_error)
{
	double mean, sd, low, high;

	*ret_shift = 0;
	*ret_divisor = 1;
	if (options->scale == OBK_RQA_SCALE_NONE || options->categorical)
		return OBK_RQA_OK;
	moments(series, &channel, 1, &mean, &sd, &low, &high);
	*ret_shift = options->scale == OBK_RQA_SCALE_ZSCORE ? mean : low;
	*ret_divisor = options->scale == OBK_RQA_SCALE_ZSCORE ? sd : high - low;
	if (!(*ret_divisor > 0))
		return obk_rqa_fail(ret_error, OBK_RQA_CONSTANT, item, 0,
			"%s: channel %u is constant and cannot be scaled: set the option `scale` "
			"to none",
			series_name(series), channel);
	return OBK_RQA_OK;
}

/*
 * In single precision, or after scaling, a finite number may become infinite. Comparisons of its
 * differences would be meaningless and depend on the instruction set.
 */
static int overflow(const struct obk_rqa_series *series, uint64_t t, uint32_t channel, bool f64,
	uint64_t item, struct obk_rqa_error *ret_error)
{
	return obk_rqa_fail(ret_error, OBK_RQA_NOT_FINITE, item, t,
		"%s: sample %llu of channel %u is too large %s", series_name(series),
		(unsigned long long)t, channel,
		f64 ? "to be scaled: set the option `scale` to none"
		    : "for single precision: set the option `precision` to f64");
}

int obk_rqa_planes_init(struct obk_rqa_planes *planes, const struct obk_rqa_series *series,
	uint64_t length, const uint32_t *channels, uint32_t channel_count,
	const struct obk_rqa_options *options, bool f64, struct obk_rqa_error *ret_error,
	uint64_t item)
{
	uint64_t padded = length + OBK_RQA_PAD + 2, gaps = 0;
	uint64_t *valid = NULL;
	int status = OBK_RQA_NO_MEMORY;

	memset(planes, 0, sizeof *planes);
	planes->length = length;
	if (options->missing) {
		valid = calloc(length / 64 + 3, 8);
		if (!valid)
			goto fail;
		memset(valid, 255, length / 64 * 8);
		if (length & 63)
			valid[length / 64] = ((uint64_t)1 << (length & 63)) - 1;
	}
	for (uint32_t c = 0; c < channel_count; c++) {
		double shift, divisor;

		status = plane_scale(
			series, channels[c], options, item, &shift, &divisor, ret_error);
		if (status != OBK_RQA_OK)
			goto fail;
		status = OBK_RQA_NO_MEMORY;
		planes->channel[c] = calloc(padded, f64 ? sizeof(double) : sizeof(float));
		if (!planes->channel[c])
			goto fail;
		for (uint64_t t = 0; t < length; t++) {
			double v = sample(series, t, channels[c]);

			if (!isfinite(v)) {
				v = 0;
				gaps++;
				if (valid)
					valid[t / 64] &= ~((uint64_t)1 << (t & 63));
			} else if (shift != 0 || divisor != 1) {
				v = (v - shift) / divisor;
			}
			if (!isfinite(f64 ? v : (double)(float)v)) {
				status = overflow(series, t, channels[c], f64, item, ret_error);
				goto fail;
			}
			if (f64)
				((double *)planes->channel[c])[t] = v;
			else
				((float *)planes->channel[c])[t] = (float)v;
		}
	}
	if (gaps)
		planes->valid = valid;
	else
		free(valid);
	return OBK_RQA_OK;
fail:
	free(valid);
	obk_rqa_planes_fini(planes);
	return status == OBK_RQA_NO_MEMORY
		? obk_rqa_fail(ret_error, status, item, 0,
			  "%s: no memory for %llu samples of %u channels", series_name(series),
			  (unsigned long long)length, channel_count)
		: status;
}

int obk_rqa_planes_embed(struct obk_rqa_planes *planes, uint32_t m, uint64_t tau)
{
	uint64_t *embedded;

	planes->n = planes->length - (m - 1) * tau;
	if (!planes->valid)
		return OBK_RQA_OK;
	embedded = calloc(planes->n / 64 + 3, 8);
	if (!embedded)
		return OBK_RQA_NO_MEMORY;
	for (uint64_t p = 0; p < planes->n; p += 64) {
		uint64_t bits = ~(uint64_t)0;

		for (uint32_t lag = 0; lag < m; lag++)
			bits &= obk_rqa_bits_at(planes->valid, p + lag * tau);
		if (planes->n - p < 64)
			bits &= ((uint64_t)1 << (planes->n - p)) - 1;
		embedded[p / 64] = bits;
	}
	free(planes->valid);
	planes->valid = embedded;
	return OBK_RQA_OK;
}

/*
 * The largest square whose correctly rounded root passes the test. sqrt is monotone, so comparing
 * squares with it gives the same result for every cell.
 */
static double square_limit(double radius, int test)
{
	double t = radius * radius;

	if (isinf(t)) /* every finite square passes */
		return DBL_MAX;
	while (sqrt(t) > radius || (test == OBK_RQA_TEST_LT && sqrt(t) >= radius)) {
		if (t == 0)
			return -1;
		t = nextafter(t, -INFINITY);
	}
	for (;;) {
		double up = nextafter(t, INFINITY), root = sqrt(up);

		if (root > radius || (test == OBK_RQA_TEST_LT && root >= radius))
			return t;
		t = up;
	}
}

static double square_limit_f32(float radius, int test)
{
	float t = radius * radius;

	if (isinf(t))
		return (double)FLT_MAX;
	while (sqrtf(t) > radius || (test == OBK_RQA_TEST_LT && sqrtf(t) >= radius)) {
		if (t == 0)
			return -1;
		t = nextafterf(t, -INFINITY);
	}
	for (;;) {
		float up = nextafterf(t, INFINITY), root = sqrtf(up);

		if (root > radius || (test == OBK_RQA_TEST_LT && root >= radius))
			return (double)t;
		t = up;
	}
}

double obk_rqa_limit(int norm, int test, bool f64, double radius)
{
	if (norm == OBK_RQA_NORM_L2)
		return f64 ? square_limit(radius, test) : square_limit_f32((float)radius, test);
	if (isinf(f64 ? radius : (double)(float)radius))
		return f64 ? DBL_MAX : (double)FLT_MAX;
	if (f64)
		return test == OBK_RQA_TEST_LE ? radius : nextafter(radius, -INFINITY);
	return (double)(test == OBK_RQA_TEST_LE ? (float)radius
						: nextafterf((float)radius, -INFINITY));
}

static int plot_init(struct obk_rqa_plot *plot, const struct obk_rqa_series *x,
	const struct obk_rqa_series *y, uint64_t x_length, uint64_t y_length,
	const struct obk_rqa_options *options, int norm, bool f64, uint64_t item,
	struct obk_rqa_error *ret_error)
{
	uint32_t channels[OBK_RQA_MAX_CHANNELS];
	int status;

	for (uint32_t c = 0; c < OBK_RQA_MAX_CHANNELS; c++)
		channels[c] = c;
	plot->channels = x->channels;
	plot->m = options->m;
	plot->tau = options->tau;
	plot->norm = options->categorical ? OBK_RQA_NORM_MAX : obk_rqa_norm_of(norm, x->channels);
	plot->f64 = f64;
	plot->same = y == NULL;
	status = obk_rqa_planes_init(
		&plot->x, x, x_length, channels, x->channels, options, f64, ret_error, item);
	if (status == OBK_RQA_OK)
		status = obk_rqa_planes_embed(&plot->x, options->m, options->tau);
	if (status == OBK_RQA_OK && y) {
		status = obk_rqa_planes_init(
			&plot->y, y, y_length, channels, y->channels, options, f64, ret_error, 1);
		if (status == OBK_RQA_OK)
			status = obk_rqa_planes_embed(&plot->y, options->m, options->tau);
	} else if (status == OBK_RQA_OK) {
		plot->y = plot->x;
	}
	return status;
}

static int too_short(const struct obk_rqa_series *series, uint64_t item, uint64_t length,
	const struct obk_rqa_options *options, struct obk_rqa_error *ret_error)
{
	uint64_t span = (uint64_t)(options->m - 1) * options->tau;

	if (length >= span + 2)
		return OBK_RQA_OK;
	return obk_rqa_fail(ret_error, OBK_RQA_TOO_SHORT, item, 0,
		"%s has %llu samples; m %u with tau %u needs at least %llu: take a smaller m or "
		"tau",
		series_name(series), (unsigned long long)length, options->m, options->tau,
		(unsigned long long)span + 2);
}

int obk_rqa_matrix_init(struct obk_rqa_matrix *matrix, const struct obk_rqa_series *x,
	const struct obk_rqa_series *y, const struct obk_rqa_options *options,
	struct obk_rqa_error *ret_error)
{
	uint64_t x_length, y_length;
	int status, norm_y;
	bool f64;

	memset(matrix, 0, sizeof *matrix);
	status = obk_rqa_options_check(options, ret_error);
	if (status == OBK_RQA_OK)
		status = obk_rqa_series_check(x, 0, options, ret_error);
	if (status != OBK_RQA_OK)
		return status;
	if ((options->kind == OBK_RQA_AUTO) != (y == NULL))
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			y ? "auto recurrence takes one series: set the option `kind` to cross or "
			    "joint"
			  : "cross and joint recurrence need a second series");
	if (y) {
		status = obk_rqa_series_check(y, 1, options, ret_error);
		if (status != OBK_RQA_OK)
			return status;
		if (options->kind == OBK_RQA_CROSS && x->channels != y->channels)
			return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 1, 0,
				"cross recurrence needs equal numbers of channels: %s has %u, %s "
				"has %u",
				series_name(x), x->channels, series_name(y), y->channels);
	}
	x_length = x->length;
	y_length = y ? y->length : x_length;
	if (options->kind == OBK_RQA_JOINT)
		x_length = y_length = x_length < y_length ? x_length : y_length;
	status = too_short(x, 0, x_length, options, ret_error);
	if (status == OBK_RQA_OK && y)
		status = too_short(y, 1, y_length, options, ret_error);
	if (status != OBK_RQA_OK)
		return status;
	f64 = obk_rqa_use_f64(options, x_length > y_length ? x_length : y_length);
	matrix->plots = options->kind == OBK_RQA_JOINT ? 2 : 1;
	matrix->symmetric = options->kind != OBK_RQA_CROSS;
	status = plot_init(&matrix->plot[0], x, options->kind == OBK_RQA_CROSS ? y : NULL, x_length,
		y_length, options, options->norm, f64, 0, ret_error);
	norm_y = options->norm_y < 0 ? options->norm : options->norm_y;
	if (status == OBK_RQA_OK && matrix->plots == 2)
		status = plot_init(&matrix->plot[1], y, NULL, y_length, y_length, options, norm_y,
			f64, 1, ret_error);
	if (status != OBK_RQA_OK) {
		obk_rqa_matrix_fini(matrix);
		return status == OBK_RQA_NO_MEMORY
			? obk_rqa_fail(ret_error, status, 0, 0, "no memory for the series")
			: status;
	}
	matrix->n1 = matrix->plot[0].x.n;
	matrix->n2 = matrix->plot[0].y.n;
	return OBK_RQA_OK;
}

void obk_rqa_matrix_fini(struct obk_rqa_matrix *matrix)
{
	for (uint32_t p = 0; p < 2; p++) {
		if (!matrix->plot[p].same)
			obk_rqa_planes_fini(&matrix->plot[p].y);
		obk_rqa_planes_fini(&matrix->plot[p].x);
	}
	memset(matrix, 0, sizeof *matrix);
}
