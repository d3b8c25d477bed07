/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "compute/rqa/gpu.h"

struct obk_rqa_result {
	struct obk_rqa_options options;
	struct obk_rqa_counts counts;
	double radius;
	struct obk_rqa_rate rate[2]; /* for radii given as rates */
	unsigned rates;
	char device[160];
	pthread_mutex_t lock; /* held while shown[] is filled */
	uint64_t *shown[OBK_RQA_HIST_COUNT];
};

static int control_check(const struct obk_rqa_control *control, bool gpu,
	const struct obk_rqa_ops **ret_ops, struct obk_rqa_error *ret_error)
{
	static const char *const names[] = { "auto", "c", "avx2", "avx512" };
	int isa = control ? control->isa : OBK_RQA_ISA_AUTO,
	    device = control ? control->device : OBK_RQA_DEVICE_AUTO;

	if (isa < 0 || isa > OBK_RQA_ISA_AVX512 || device < 0 || device > OBK_RQA_DEVICE_CUDA)
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"the control asks for an instruction set or a device that does not exist");
	if (control && control->threads > OBK_RQA_MAX_THREADS)
		return obk_rqa_fail(ret_error, OBK_RQA_LIMIT, 0, 0,
			"%u threads were asked for: at most %u are possible", control->threads,
			OBK_RQA_MAX_THREADS);
	if (device == OBK_RQA_DEVICE_CUDA && !gpu)
		return obk_rqa_fail(ret_error, OBK_RQA_UNSUPPORTED, 0, 0,
			"this call runs on the CPU only: ask for device auto or cpu");
	*ret_ops = obk_rqa_ops_find(isa);
	if (!*ret_ops)
		return obk_rqa_fail(ret_error, OBK_RQA_UNSUPPORTED, 0, 0,
			"this CPU lacks %s: ask for instruction set auto", names[isa]);
	return OBK_RQA_OK;
}

int obk_rqa_control_check(const struct obk_rqa_control *control, const struct obk_rqa_ops **ret_ops,
	struct obk_rqa_error *ret_error)
{
	return control_check(control, false, ret_ops, ret_error);
}

int obk_rqa_control_check_gpu(const struct obk_rqa_control *control,
	const struct obk_rqa_ops **ret_ops, struct obk_rqa_error *ret_error)
{
	return control_check(control, true, ret_ops, ret_error);
}

/* A hash of everything that the counts depend on, so that only the same run resumes from a file. */
static uint64_t run_hash(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *o)
{
	uint64_t hash = OB_HASH_START;
	uint64_t numbers[] = { matrix->n1, matrix->n2, matrix->plots, o->m, o->tau,
		(uint64_t)o->kind, o->want, o->theiler_rr, o->theiler_diag, o->theiler_vert,
		o->theiler_white, (uint64_t)o->triangle };

	hash = ob_hash_words(hash, numbers, sizeof numbers);
	for (uint32_t p = 0; p < matrix->plots; p++) {
		const struct obk_rqa_plot *plot = &matrix->plot[p];
		size_t size = plot->f64 ? sizeof(double) : sizeof(float);
		uint64_t more[] = { plot->channels, (uint64_t)plot->norm, plot->f64 };

		hash = ob_hash_words(hash, more, sizeof more);
		hash = ob_hash_words(hash, &plot->limit, sizeof plot->limit);
		for (uint32_t c = 0; c < plot->channels; c++) {
			hash = ob_hash_words(hash, plot->x.channel[c], plot->x.length * size);
			if (!plot->same)
				hash = ob_hash_words(
					hash, plot->y.channel[c], plot->y.length * size);
		}
		if (plot->x.valid)
			hash = ob_hash_words(hash, plot->x.valid, (plot->x.n + 7) / 8);
		if (plot->y.valid)
			hash = ob_hash_words(hash, plot->y.valid, (plot->y.n + 7) / 8);
	}
	return hash;
}

/*
 * Counts on a GPU or the CPU, depending on the control and the size. AUTO continues on the CPU if
 * the GPU fails; a run with a file stays on the device on which it started.
 */
static int counted(struct obk_rqa_result *result, const struct obk_rqa_matrix *matrix,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	const struct obk_rqa_ops *ops, struct obk_rqa_watch *watch, struct obk_rqa_error *ret_error)
{
	bool automatic = !control || control->device == OBK_RQA_DEVICE_AUTO,
	     file = control && control->state_path;
	uint64_t hash = file ? run_hash(matrix, options) : 0;

	if (!(automatic && file) &&
		obk_rqa_gpu_wanted(control, obk_rqa_count_cells(matrix, options))) {
		int status = obk_rqa_gpu_count(matrix, options, watch, &result->counts, control,
			hash, result->device, sizeof result->device, ret_error);

		if (!automatic ||
			(status != OBK_RQA_DEVICE && status != OBK_RQA_NO_MEMORY &&
				status != OBK_RQA_UNSUPPORTED))
			return status;
		result->device[0] = 0;
	}
	return obk_rqa_count(matrix, options, ops, watch, obk_rqa_threads(control), &result->counts,
		control, hash, ret_error);
}

static int run_counted(struct obk_rqa_result *result, const struct obk_rqa_series *x,
	const struct obk_rqa_series *y, const struct obk_rqa_options *options,
	const struct obk_rqa_control *control, const struct obk_rqa_ops *ops,
	struct obk_rqa_watch *watch, struct obk_rqa_error *ret_error)
{
	struct obk_rqa_matrix matrix;
	unsigned threads = obk_rqa_threads(control);
	int status = obk_rqa_matrix_init(&matrix, x, y, options, ret_error);

	if (status != OBK_RQA_OK)
		return status;
	obk_rqa_watch_total(watch, obk_rqa_count_cells(&matrix, options), 0);
	status = obk_rqa_matrix_radius(&matrix, x, y, options, ops, watch, ret_error);
	if (status == OBK_RQA_OK &&
		obk_rqa_counts_init(&result->counts, &matrix, options->want) != OBK_RQA_OK)
		status = obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0,
			"no memory for the histograms of %llu vectors",
			(unsigned long long)matrix.n1);
	if (status == OBK_RQA_OK)
		status = counted(result, &matrix, options, control, ops, watch, ret_error);
	if (status == OBK_RQA_OK && options->want & OBK_RQA_WANT_NETWORK) {
		status = obk_rqa_network(&matrix, options, ops, watch, threads, &result->counts);
		if (status != OBK_RQA_OK)
			obk_rqa_fail(ret_error, status, 0, 0, "%s", obk_rqa_status_what(status));
	}
	result->radius = matrix.radius;
	result->rates = options->radius_kind == OBK_RQA_RADIUS_RATE && !options->categorical
		? matrix.plots
		: 0;
	for (unsigned p = 0; p < result->rates; p++)
		result->rate[p] = matrix.plot[p].rate;
	obk_rqa_matrix_fini(&matrix);
	return status;
}

int obk_rqa_run(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	struct obk_rqa_result **ret_result, struct obk_rqa_error *ret_error)
{
	const struct obk_rqa_ops *ops;
	struct obk_rqa_watch *watch;
	struct obk_rqa_result *result;
	int status = obk_rqa_control_check_gpu(control, &ops, ret_error);

	if (status != OBK_RQA_OK)
		return status;
	if (!ret_result)
		return obk_rqa_fail(
			ret_error, OBK_RQA_ARGUMENT, 0, 0, "there is no place for the result");
	result = calloc(1, sizeof *result);
	watch = obk_rqa_watch_new(control);
	if (result && watch) {
		pthread_mutex_init(&result->lock, NULL);
		status = run_counted(result, x, y, options, control, ops, watch, ret_error);
	} else {
		free(result);
		result = NULL;
		status = obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory");
	}
	if (status == OBK_RQA_OK) {
		result->options = *options;
		if (!result->device[0])
			snprintf(result->device, sizeof result->device, "cpu %s", ops->name);
		obk_rqa_watch_end(watch);
		if (control && control->state_path)
			unlink(control->state_path);
		*ret_result = result;
	} else {
		obk_rqa_result_free(result);
	}
	obk_rqa_watch_free(watch);
	return status;
}

void obk_rqa_result_free(struct obk_rqa_result *result)
{
	if (!result)
		return;
	obk_rqa_counts_fini(&result->counts);
	for (unsigned h = 0; h < OBK_RQA_HIST_COUNT; h++)
		free(result->shown[h]);
	pthread_mutex_destroy(&result->lock);
	free(result);
}

/* True if the options differ only in how measures are computed from the counts. */
static bool same_counts(const struct obk_rqa_options *a, const struct obk_rqa_options *b)
{
	struct obk_rqa_options c = *b;

	c.lmin = a->lmin;
	c.vmin = a->vmin;
	c.wmin = a->wmin;
	c.rr_denominator = a->rr_denominator;
	c.det_denominator = a->det_denominator;
	c.lam_denominator = a->lam_denominator;
	c.lmax_excludes_loi = a->lmax_excludes_loi;
	c.log_base = a->log_base;
	c.entropy_norm = a->entropy_norm;
	c.entropy_all = a->entropy_all;
	c.white = a->white;
	c.border = a->border;
	c.border_semi = a->border_semi;
	c.times = a->times;
	c.trend = a->trend;
	c.trend_margin = a->trend_margin;
	c.percent = a->percent;
	c.transitivity = a->transitivity;
	c.quirks = a->quirks;
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): no padding, NaN equals itself */
	return memcmp(a, &c, sizeof c) == 0;
}

int obk_rqa_result_measures(const struct obk_rqa_result *result,
	const struct obk_rqa_options *options, double *ret_values, struct obk_rqa_error *ret_error)
{
	double values[OBK_RQA_MEASURE_COUNT];
	int status = OBK_RQA_OK;

	if (!result || !ret_values)
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"there is no result, or no place for the measures");
	if (options) {
		status = obk_rqa_options_check(options, ret_error);
		if (status != OBK_RQA_OK)
			return status;
		if (!same_counts(&result->options, options))
			return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
				"these options need a new run: after a run only the shortest lines "
				"and the options of how measures are computed may change");
	}
	status = obk_rqa_counts_measures(
		&result->counts, options ? options : &result->options, result->radius, values);
	if (status != OBK_RQA_OK)
		return obk_rqa_fail(ret_error, status, 0, 0, "no memory for the measures");
	memcpy(ret_values, values, sizeof values);
	return OBK_RQA_OK;
}

int obk_rqa_measure(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	double *ret_values, struct obk_rqa_error *ret_error)
{
	struct obk_rqa_result *result;
	int status = obk_rqa_run(x, y, options, control, &result, ret_error);

	if (status != OBK_RQA_OK)
		return status;
	status = obk_rqa_result_measures(result, NULL, ret_values, ret_error);
	obk_rqa_result_free(result);
	return status;
}

const char *obk_rqa_result_device(const struct obk_rqa_result *result)
{
	return result->device;
}

const struct obk_rqa_rate *obk_rqa_result_rate(const struct obk_rqa_result *result, unsigned series)
{
	return series < result->rates ? &result->rate[series] : NULL;
}

static const struct obk_rqa_hist *hist_of(const struct obk_rqa_counts *counts, int histogram)
{
	switch (histogram) {
	case OBK_RQA_HIST_DIAGONAL:
	case OBK_RQA_HIST_DIAGONAL_BORDER:
		return &counts->diagonal[OBK_RQA_INNER];
	case OBK_RQA_HIST_VERTICAL:
		return &counts->vertical;
	case OBK_RQA_HIST_WHITE:
		return &counts->white;
	case OBK_RQA_HIST_WHITE_BORDER:
		return &counts->white_border;
	case OBK_RQA_HIST_TIMES_START:
		return &counts->start;
	case OBK_RQA_HIST_TIMES_MIDPOINT:
		return &counts->middle;
	case OBK_RQA_HIST_PROFILE:
		return &counts->profile;
	default:
		return NULL;
	}
}

static uint64_t shown_value(const struct obk_rqa_result *result, int histogram, uint64_t l)
{
	const struct obk_rqa_counts *counts = &result->counts;
	uint64_t value,
		times = counts->symmetric && result->options.triangle == OBK_RQA_BOTH ? 2 : 1;

	if (histogram == OBK_RQA_HIST_WHITE)
		return obk_rqa_hist_get(&counts->white, l) +
			obk_rqa_hist_get(&counts->white_border, l);
	if (histogram != OBK_RQA_HIST_DIAGONAL && histogram != OBK_RQA_HIST_DIAGONAL_BORDER)
		return obk_rqa_hist_get(hist_of(counts, histogram), l);
	value = obk_rqa_hist_get(&counts->diagonal[OBK_RQA_SEMI], l) +
		obk_rqa_hist_get(&counts->diagonal[OBK_RQA_FULL], l);
	if (histogram == OBK_RQA_HIST_DIAGONAL)
		value += obk_rqa_hist_get(&counts->diagonal[OBK_RQA_INNER], l);
	value *= times;
	if (counts->symmetric && result->options.theiler_diag == 0)
		value += obk_rqa_hist_get(&counts->loi_border, l) +
			(histogram == OBK_RQA_HIST_DIAGONAL ? obk_rqa_hist_get(&counts->loi, l)
							    : 0);
	return value;
}

const uint64_t *obk_rqa_result_histogram(
	const struct obk_rqa_result *result, int histogram, uint64_t *ret_length)
{
	/* Filled at the first request: a cache of values that never change. */
	struct obk_rqa_result *cache = (struct obk_rqa_result *)(uintptr_t)result;
	const struct obk_rqa_hist *hist = result ? hist_of(&result->counts, histogram) : NULL;

	*ret_length = 0;
	if (!hist || !hist->count)
		return NULL;
	pthread_mutex_lock(&cache->lock);
	if (!cache->shown[histogram]) {
		cache->shown[histogram] = calloc(hist->length + 1, 8);
		for (uint64_t l = 0; cache->shown[histogram] && l <= hist->length; l++)
			cache->shown[histogram][l] = shown_value(result, histogram, l);
	}
	pthread_mutex_unlock(&cache->lock);
	*ret_length = cache->shown[histogram] ? hist->length + 1 : 0;
	return cache->shown[histogram];
}

int obk_rqa_radius(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, const struct obk_rqa_control *control,
	double *ret_radius, struct obk_rqa_error *ret_error)
{
	const struct obk_rqa_ops *ops;
	struct obk_rqa_matrix matrix;
	struct obk_rqa_watch *watch;
	int status = obk_rqa_control_check(control, &ops, ret_error);

	if (status == OBK_RQA_OK)
		status = obk_rqa_matrix_init(&matrix, x, y, options, ret_error);
	if (status != OBK_RQA_OK)
		return status;
	watch = obk_rqa_watch_new(control);
	status = watch ? obk_rqa_matrix_radius(&matrix, x, y, options, ops, watch, ret_error)
		       : obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory");
	if (status == OBK_RQA_OK)
		*ret_radius = matrix.radius;
	obk_rqa_matrix_fini(&matrix);
	obk_rqa_watch_free(watch);
	return status;
}

/* The samples from `first` on, with the same name. */
static struct obk_rqa_series series_part(
	const struct obk_rqa_series *series, uint64_t first, uint64_t length)
{
	struct obk_rqa_series part = *series;

	part.data += first * (series->step ? series->step : series->channels);
	part.length = length;
	return part;
}

int obk_rqa_windows(const struct obk_rqa_series *x, const struct obk_rqa_series *y,
	const struct obk_rqa_options *options, uint64_t window, uint64_t step,
	const struct obk_rqa_control *control, obk_rqa_window_fn *on_window, void *arg,
	struct obk_rqa_error *ret_error)
{
	struct obk_rqa_control inner = control ? *control : (struct obk_rqa_control){ 0 };
	uint64_t length, windows;
	struct obk_rqa_watch *watch;
	int status = obk_rqa_options_check(options, ret_error);

	if (status != OBK_RQA_OK)
		return status;
	if (!x || !x->data || !on_window || window < 2 || step < 1)
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"windows need a series, a callback, a window of 2 samples or more and a "
			"step of 1 or more");
	length = y && y->length < x->length ? y->length : x->length;
	if (window > length)
		return obk_rqa_fail(ret_error, OBK_RQA_TOO_SHORT, 0, 0,
			"a window of %llu samples does not fit into %llu: take a smaller one",
			(unsigned long long)window, (unsigned long long)length);
	windows = (length - window) / step + 1;
	watch = obk_rqa_watch_new(control);
	if (!watch)
		return obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory");
	obk_rqa_watch_total(watch, windows, 0);
	inner.progress = NULL; /* progress is reported per window */
	inner.state_path = NULL;
	for (uint64_t w = 0; w < windows && status == OBK_RQA_OK; w++) {
		struct obk_rqa_series part = series_part(x, w * step, window),
				      other = y ? series_part(y, w * step, window) : part;
		struct obk_rqa_error error;
		double values[OBK_RQA_MEASURE_COUNT];
		int done =
			obk_rqa_measure(&part, y ? &other : NULL, options, &inner, values, &error);

		if (done == OBK_RQA_OK ? on_window(arg, w, w * step, values, NULL)
				       : done != OBK_RQA_CANCELLED &&
					on_window(arg, w, w * step, NULL, &error))
			done = OBK_RQA_CANCELLED;
		if (done == OBK_RQA_CANCELLED || obk_rqa_watch_add(watch, 1, 0, 0, 0))
			status = obk_rqa_fail(ret_error, OBK_RQA_CANCELLED, 0, 0, "cancelled");
	}
	if (status == OBK_RQA_OK)
		obk_rqa_watch_end(watch);
	obk_rqa_watch_free(watch);
	return status;
}
