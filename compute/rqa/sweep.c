/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A grid over many series. A task is one (tau, series, mode) and is counted in one pass over all
 * radii (sweep_levels.c). What the pass does not support (white lines, times, trends, networks,
 * border corrections, gaps, different Theiler windows) is counted one combination at a time.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "compute/rqa/sweep.h"

static uint64_t vectors(const struct obk_rqa_series *series, uint32_t m, uint32_t tau)
{
	uint64_t span = (uint64_t)(m - 1) * tau;

	return series->length > span ? series->length - span : 0;
}

static uint64_t group_cells(const struct obk_rqa_series *series, uint32_t m, uint32_t tau)
{
	uint64_t n = vectors(series, m, tau);

	return n * (n + 1) / 2 + 1;
}

/* ---- rows ---- */

void obk_rqa_rows_give(struct obk_rqa_task *task, uint32_t m_index, int status, const char *reason)
{
	struct obk_rqa_job *job = task->job;
	const struct obk_rqa_grid *grid = job->sweep->grid;
	uint32_t count = grid->radius_count * grid->lmin_count;
	uint64_t cells = group_cells(
		&job->sweep->series[task->series], grid->m[m_index], grid->tau[task->tau_index]);

	for (uint32_t r = 0; r < count; r++) {
		uint32_t radius = r / grid->lmin_count, lmin = r % grid->lmin_count;
		int own = status != OBK_RQA_OK ? status : task->statuses[r];

		task->rows[r] = (struct obk_rqa_row){
			.series = task->series,
			.mode = task->mode,
			.m = grid->m[m_index],
			.tau = grid->tau[task->tau_index],
			.lmin = grid->lmin[lmin],
			.m_index = m_index,
			.tau_index = task->tau_index,
			.radius_index = radius,
			.lmin_index = lmin,
			.radius = grid->radius[radius],
			.status = own,
			.reason = own == OBK_RQA_OK ? NULL : reason,
			.values = own == OBK_RQA_OK
				? task->values + (size_t)r * OBK_RQA_MEASURE_COUNT
				: NULL,
		};
	}
	pthread_mutex_lock(&job->lock);
	/* Nothing is delivered after a callback has returned non-zero. */
	if (!obk_rqa_watch_stopped(job->watch) &&
		job->sweep->rows(job->control ? job->control->arg : NULL, task->rows, count))
		obk_rqa_watch_stop(job->watch);
	pthread_mutex_unlock(&job->lock);
	obk_rqa_watch_add(job->watch, cells, count,
		status != OBK_RQA_OK && status != OBK_RQA_SKIPPED ? count : 0,
		status == OBK_RQA_SKIPPED ? count : 0);
}

/* ---- combination by combination ---- */

/* Whether every single run uses the one device of the control, where each needs its own memory. */
static bool singles_gated(const struct obk_rqa_job *job)
{
	return job->control && job->control->gpu && job->control->device == OBK_RQA_DEVICE_CUDA;
}

static void single_begin(struct obk_rqa_job *job)
{
	while (singles_gated(job) && sem_wait(&job->singles) != 0 && errno == EINTR)
		;
}

static void single_end(struct obk_rqa_job *job)
{
	if (singles_gated(job))
		sem_post(&job->singles);
}

static void task_singly(
	struct obk_rqa_task *task, const struct obk_rqa_series *part, uint32_t m_index)
{
	struct obk_rqa_job *job = task->job;
	const struct obk_rqa_grid *grid = job->sweep->grid;
	struct obk_rqa_control control = { .threads = job->crew,
		.isa = job->control ? job->control->isa : 0,
		.cancel = job->control ? job->control->cancel : NULL,
		.device = job->control ? job->control->device : 0,
		.gpu = job->control ? job->control->gpu : NULL };
	struct obk_rqa_error error = { .text = "" };
	uint64_t failed = 0;

	for (uint32_t r = 0; r < grid->radius_count && !obk_rqa_watch_stopped(job->watch); r++) {
		struct obk_rqa_options options = *job->sweep->options;
		struct obk_rqa_result *result = NULL;
		int status;

		options.m = grid->m[m_index];
		options.tau = grid->tau[task->tau_index];
		options.radius = grid->radius[r];
		options.lmin = grid->lmin[0];
		options.norm = grid->modes && grid->modes[task->mode].norm >= 0
			? grid->modes[task->mode].norm
			: options.norm;
		single_begin(job);
		status = obk_rqa_run(part, NULL, &options, &control, &result, &error);
		single_end(job);
		for (uint32_t s = 0; s < grid->lmin_count; s++) {
			uint32_t row = r * grid->lmin_count + s;

			options.lmin = grid->lmin[s];
			task->statuses[row] = status != OBK_RQA_OK
				? status
				: obk_rqa_result_measures(result, &options,
					  task->values + (size_t)row * OBK_RQA_MEASURE_COUNT,
					  &error);
			failed += task->statuses[row] != OBK_RQA_OK;
		}
		obk_rqa_result_free(result);
	}
	if (obk_rqa_watch_stopped(job->watch))
		return;
	obk_rqa_rows_give(task, m_index, OBK_RQA_OK, error.text);
	obk_rqa_watch_add(job->watch, 0, 0, failed, 0);
}

/* ---- tasks ---- */

bool obk_rqa_pass_suffices(const struct obk_rqa_options *o)
{
	bool same = o->theiler_rr == o->theiler_diag || (o->theiler_rr < 2 && o->theiler_diag < 2);

	return ob_opt_on(OB_OPT_LEVELS) && !(o->want & ~OBK_RQA_WANT_VERTICAL) && same &&
		o->border == OBK_RQA_BORDER_NONE && !o->quirks;
}

/* The channels of the mode in this series. */
int obk_rqa_task_channels(const struct obk_rqa_task *task, const struct obk_rqa_series *series,
	uint32_t *ret_channels, uint32_t *ret_count, struct obk_rqa_error *ret_error)
{
	const struct obk_rqa_grid *grid = task->job->sweep->grid;
	const struct obk_rqa_mode *mode = grid->modes ? &grid->modes[task->mode] : NULL;

	*ret_count = mode && mode->channel_count ? mode->channel_count : series->channels;
	for (uint32_t c = 0; c < *ret_count; c++) {
		ret_channels[c] = mode && mode->channel_count ? mode->channels[c] : c;
		if (ret_channels[c] >= series->channels)
			return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, task->series, 0,
				"%s has %u channels; the mode %s needs channel %u",
				series->name ? series->name : "the series", series->channels,
				mode->name ? mode->name : "?", ret_channels[c]);
	}
	return OBK_RQA_OK;
}

/* Copies the mode's channels side by side, the layout that single runs need. */
static int part_make(const struct obk_rqa_series *series, const uint32_t *channels, uint32_t count,
	struct obk_rqa_series *ret_part)
{
	uint64_t step = series->step ? series->step : series->channels,
		 channel_step = series->channel_step ? series->channel_step : 1;
	double *data = malloc(series->length * count * sizeof *data);

	if (!data)
		return OBK_RQA_NO_MEMORY;
	for (uint64_t t = 0; t < series->length; t++)
		for (uint32_t c = 0; c < count; c++)
			data[t * count + c] = series->data[t * step + channels[c] * channel_step];
	*ret_part = (struct obk_rqa_series){
		.name = series->name, .data = data, .length = series->length, .channels = count
	};
	return OBK_RQA_OK;
}

static void task_fail(struct obk_rqa_task *task, int status, const char *reason)
{
	for (uint32_t o = 0; o < task->order_count && !obk_rqa_watch_stopped(task->job->watch); o++)
		obk_rqa_rows_give(task, task->order[o], status, reason);
}

int obk_rqa_task_plot(const struct obk_rqa_task *task, const struct obk_rqa_series *series,
	const uint32_t *channels, uint32_t count, struct obk_rqa_plot *ret_plot, double *ret_unit,
	struct obk_rqa_error *error)
{
	const struct obk_rqa_job *job = task->job;
	const struct obk_rqa_options *options = job->sweep->options;
	const struct obk_rqa_grid *grid = job->sweep->grid;
	int norm = grid->modes && grid->modes[task->mode].norm >= 0 ? grid->modes[task->mode].norm
								    : options->norm;
	int status;

	*ret_plot = (struct obk_rqa_plot){
		.channels = count, .tau = grid->tau[task->tau_index], .m = 1, .same = true
	};
	*ret_unit = 1;
	if (options->radius_kind == OBK_RQA_RADIUS_SD) {
		double spread = obk_rqa_spread(series, channels, count);

		if (!(spread > 0))
			return obk_rqa_fail(error, OBK_RQA_CONSTANT, task->series, 0,
				"%s is constant: a radius in standard deviations has no meaning; "
				"give absolute ones",
				series->name ? series->name : "the series");
		*ret_unit = options->scale == OBK_RQA_SCALE_NONE ? spread : 1;
	}
	ret_plot->f64 = obk_rqa_use_f64(options, series->length);
	ret_plot->norm = obk_rqa_norm_of(norm, count);
	status = obk_rqa_planes_init(&ret_plot->x, series, series->length, channels, count, options,
		ret_plot->f64, error, task->series);
	ret_plot->y = ret_plot->x;
	return status;
}

static int task_work(struct obk_rqa_task *task, const struct obk_rqa_series *series,
	const uint32_t *channels, uint32_t count, struct obk_rqa_error *error)
{
	struct obk_rqa_job *job = task->job;
	const struct obk_rqa_options *options = job->sweep->options;
	struct obk_rqa_plot plot;
	double unit;
	int status;

	status = obk_rqa_task_plot(task, series, channels, count, &plot, &unit, error);
	if (status != OBK_RQA_OK)
		return status;
	if (!plot.x.valid && !options->categorical && obk_rqa_pass_suffices(options) &&
		series->length < OBK_RQA_GROUP && obk_rqa_task_room(task, series->length, count)) {
		status = obk_rqa_task_pass(task, &plot, unit);
		if (status != OBK_RQA_OK)
			obk_rqa_fail(
				error, status, task->series, 0, "%s", obk_rqa_status_what(status));
	} else {
		struct obk_rqa_series part;

		status = part_make(series, channels, count, &part);
		for (uint32_t o = 0; o < task->order_count && status == OBK_RQA_OK &&
			!obk_rqa_watch_stopped(job->watch);
			o++)
			task_singly(task, &part, task->order[o]);
		if (status == OBK_RQA_OK)
			free((void *)(uintptr_t)part.data);
	}
	obk_rqa_planes_fini(&plot.x);
	return status;
}

void obk_rqa_task_place(struct obk_rqa_task *task, uint64_t unit)
{
	const struct obk_rqa_sweep *sweep = task->job->sweep;
	uint32_t modes = sweep->grid->modes ? sweep->grid->mode_count : 1;

	task->unit = unit;
	task->mode = (uint32_t)(unit % modes);
	task->series = unit / modes % sweep->series_count;
	task->tau_index = (uint32_t)(unit / modes / sweep->series_count);
}

void obk_rqa_task_run(void *arg, unsigned thread, uint64_t unit)
{
	struct obk_rqa_job *job = arg;
	const struct obk_rqa_sweep *sweep = job->sweep;
	const struct obk_rqa_grid *grid = sweep->grid;
	struct obk_rqa_task *task = &job->tasks[thread];
	uint32_t channels[OBK_RQA_MAX_CHANNELS], count;
	struct obk_rqa_error error = { .text = "" };
	const struct obk_rqa_series *series;
	int status;

	obk_rqa_task_place(task, unit);
	task->order_count = 0;
	series = &sweep->series[task->series];
	for (uint32_t o = 0; o < grid->m_count; o++) {
		uint32_t m_index = job->order[o], m = grid->m[m_index],
			 tau = grid->tau[task->tau_index];

		if (sweep->want &&
			!sweep->want(job->control ? job->control->arg : NULL, task->series,
				task->mode, m, tau)) {
			obk_rqa_rows_give(task, m_index, OBK_RQA_SKIPPED,
				obk_rqa_status_what(OBK_RQA_SKIPPED));
		} else if (job->series_status[task->series] == OBK_RQA_OK &&
			vectors(series, m, tau) < 2) {
			obk_rqa_fail(&error, OBK_RQA_TOO_SHORT, task->series, 0,
				"%s has %llu samples; m %u with tau %u needs at least %llu: "
				"take a smaller m or tau",
				series->name ? series->name : "the series",
				(unsigned long long)series->length, m, tau,
				(unsigned long long)(m - 1) * tau + 2);
			obk_rqa_rows_give(task, m_index, OBK_RQA_TOO_SHORT, error.text);
		} else {
			task->order[task->order_count++] = m_index;
		}
	}
	if (!task->order_count)
		return;
	/* A bad series is checked again to get the text of the error. */
	status = job->series_status[task->series] == OBK_RQA_OK
		? OBK_RQA_OK
		: obk_rqa_series_check(series, task->series, sweep->options, &error);
	if (status == OBK_RQA_OK)
		status = obk_rqa_task_channels(task, series, channels, &count, &error);
	if (status == OBK_RQA_OK)
		status = task_work(task, series, channels, count, &error);
	if (status != OBK_RQA_OK && status != OBK_RQA_CANCELLED)
		task_fail(task, status, error.text);
}

uint64_t obk_rqa_job_cells(const struct obk_rqa_sweep *sweep)
{
	const struct obk_rqa_grid *grid = sweep->grid;
	uint64_t cells = 0;

	for (uint64_t s = 0; s < sweep->series_count; s++)
		for (uint32_t m = 0; m < grid->m_count; m++)
			for (uint32_t t = 0; t < grid->tau_count; t++)
				cells += group_cells(&sweep->series[s], grid->m[m], grid->tau[t]);
	return cells * (grid->modes ? grid->mode_count : 1);
}

uint64_t obk_rqa_job_units(const struct obk_rqa_job *job)
{
	const struct obk_rqa_grid *grid = job->sweep->grid;

	return (uint64_t)grid->tau_count * job->sweep->series_count *
		(grid->modes ? grid->mode_count : 1);
}

void obk_rqa_job_run(struct obk_rqa_job *job, unsigned threads)
{
	uint64_t units = obk_rqa_job_units(job);

	job->crew = units < threads ? (unsigned)(threads / units) : 1;
	obk_rqa_each(job->watch, threads, 0, units, obk_rqa_task_run, job);
}
