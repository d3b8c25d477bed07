/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The call obk_rqa_sweep: checks, memory, threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/rqa/gpu.h"
#include "compute/rqa/sweep.h"

/*
 * single runs on one device at the same time: each needs up to 128 MiB there and its series as
 * floats; more runs do not use the device better
 */
#define SINGLES       4u
/* number of radii that a pass on the CPU counts in the time of one single run */
#define RADII_AT_ONCE 4u

bool obk_rqa_task_room(struct obk_rqa_task *task, uint64_t length, uint32_t channels)
{
	if (length <= task->room_length && channels <= task->room_channels)
		return true;
	free(task->gaps);
	free(task->distance);
	free(task->sum);
	free(task->sum_vertical);
	task->room_length = length > task->room_length ? length : task->room_length;
	task->room_channels = channels > task->room_channels ? channels : task->room_channels;
	task->stride = task->room_length + OBK_RQA_PAD;
	task->gaps = calloc(task->stride * task->room_channels + OBK_RQA_PAD, sizeof(double));
	task->distance = calloc(task->stride + OBK_RQA_PAD, sizeof(double));
	task->sum = calloc(task->room_length + 2, sizeof *task->sum);
	task->sum_vertical = calloc(task->room_length + 2, sizeof *task->sum_vertical);
	if (task->gaps && task->distance && task->sum && task->sum_vertical)
		return true;
	task->room_length = 0;
	return false;
}

static void task_fini(struct obk_rqa_task *task)
{
	free(task->order);
	free(task->rows);
	free(task->values);
	free(task->statuses);
	free(task->level);
	free(task->levels.limit);
	free(task->levels.limit_f32);
	free(task->levels.look);
	free(task->from_min);
	free(task->gaps);
	free(task->distance);
	free(task->sum);
	free(task->sum_vertical);
}

static bool task_init(struct obk_rqa_task *task, struct obk_rqa_job *job)
{
	const struct obk_rqa_grid *grid = job->sweep->grid;
	size_t rows = (size_t)grid->radius_count * grid->lmin_count;

	task->job = job;
	task->lmin_most = job->sweep->options->vmin;
	for (uint32_t s = 0; s < grid->lmin_count; s++)
		task->lmin_most = grid->lmin[s] > task->lmin_most ? grid->lmin[s] : task->lmin_most;
	task->order = calloc(grid->m_count, sizeof *task->order);
	task->rows = calloc(rows, sizeof *task->rows);
	task->values = calloc(rows * OBK_RQA_MEASURE_COUNT, sizeof *task->values);
	task->statuses = calloc(rows, sizeof *task->statuses);
	task->level = calloc(grid->radius_count, sizeof *task->level);
	task->levels.limit = calloc(grid->radius_count, sizeof *task->levels.limit);
	task->levels.limit_f32 = calloc(grid->radius_count, sizeof *task->levels.limit_f32);
	task->levels.look = calloc(OBK_RQA_LOOK + 2, sizeof *task->levels.look);
	task->levels.look_count = OBK_RQA_LOOK + 2;
	task->from_min = calloc(grid->lmin_count, sizeof *task->from_min);
	return task->order && task->rows && task->values && task->statuses && task->level &&
		task->levels.limit && task->levels.limit_f32 && task->levels.look && task->from_min;
}

static int list_check(const char *name, const uint32_t *list, uint32_t count, uint32_t most,
	struct obk_rqa_error *ret_error)
{
	if (!list || !count)
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"the grid has no value for %s: give at least one", name);
	if (count > OBK_RQA_MAX_VALUES)
		return obk_rqa_fail(ret_error, OBK_RQA_LIMIT, 0, 0,
			"the grid has %u values for %s: at most %u are possible", count, name,
			OBK_RQA_MAX_VALUES);
	for (uint32_t i = 0; i < count; i++)
		if (list[i] < 1 || list[i] > most)
			return obk_rqa_fail(ret_error, list[i] ? OBK_RQA_LIMIT : OBK_RQA_ARGUMENT,
				0, 0, "the grid's %s has the value %u: 1 to %u are possible", name,
				list[i], most);
	return OBK_RQA_OK;
}

static int modes_check(const struct obk_rqa_grid *grid, struct obk_rqa_error *ret_error)
{
	if (grid->modes && (grid->mode_count < 1 || grid->mode_count > OBK_RQA_MAX_MODES))
		return obk_rqa_fail(ret_error, OBK_RQA_LIMIT, 0, 0,
			"the grid has %u modes: 1 to %u are possible", grid->mode_count,
			OBK_RQA_MAX_MODES);
	for (uint32_t i = 0; grid->modes && i < grid->mode_count; i++) {
		const struct obk_rqa_mode *mode = &grid->modes[i];

		if (mode->channel_count > OBK_RQA_MAX_CHANNELS || mode->norm < -1 ||
			mode->norm > OBK_RQA_NORM_GAZE)
			return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
				"the mode %s has %u channels and norm %d: at most %u channels and "
				"a norm of -1 to %d",
				mode->name ? mode->name : "?", mode->channel_count, mode->norm,
				OBK_RQA_MAX_CHANNELS, OBK_RQA_NORM_GAZE);
	}
	return OBK_RQA_OK;
}

static int grid_check(const struct obk_rqa_sweep *sweep, struct obk_rqa_error *ret_error)
{
	const struct obk_rqa_grid *grid = sweep->grid;
	double rows;
	int status = list_check("m", grid->m, grid->m_count, OBK_RQA_MAX_M, ret_error);

	if (status == OBK_RQA_OK)
		status = list_check("tau", grid->tau, grid->tau_count, OBK_RQA_MAX_TAU, ret_error);
	if (status == OBK_RQA_OK)
		status = list_check(
			"lmin", grid->lmin, grid->lmin_count, OBK_RQA_MAX_LENGTH, ret_error);
	if (status == OBK_RQA_OK)
		status = modes_check(grid, ret_error);
	if (status != OBK_RQA_OK)
		return status;
	if (!grid->radius || !grid->radius_count)
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"the grid has no radius: give at least one");
	if (grid->radius_count > OBK_RQA_MAX_VALUES)
		return obk_rqa_fail(ret_error, OBK_RQA_LIMIT, 0, 0,
			"the grid has %u radii: at most %u are possible", grid->radius_count,
			OBK_RQA_MAX_VALUES);
	for (uint32_t r = 0; r < grid->radius_count; r++)
		if (!(grid->radius[r] >= 0))
			return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
				"the grid has a radius of %g: it must be 0 or more",
				grid->radius[r]);
	rows = (double)grid->m_count * grid->tau_count * grid->radius_count * grid->lmin_count *
		(grid->modes ? grid->mode_count : 1) * (double)sweep->series_count;
	if (rows > OBK_RQA_MAX_ROWS)
		return obk_rqa_fail(ret_error, OBK_RQA_LIMIT, 0, 0,
			"the grid over %llu series has %.0f rows: at most %u are possible; split "
			"it",
			(unsigned long long)sweep->series_count, rows, OBK_RQA_MAX_ROWS);
	return OBK_RQA_OK;
}

static int sweep_check(const struct obk_rqa_sweep *sweep, struct obk_rqa_error *ret_error)
{
	int status;

	if (!sweep || !sweep->grid || !sweep->rows || (sweep->series_count && !sweep->series))
		return obk_rqa_fail(ret_error, OBK_RQA_ARGUMENT, 0, 0,
			"a sweep needs series, options, a grid and a callback for its rows");
	status = obk_rqa_options_check(sweep->options, ret_error);
	if (status != OBK_RQA_OK)
		return status;
	if (!sweep->series_count)
		return obk_rqa_fail(
			ret_error, OBK_RQA_ARGUMENT, 0, 0, "there is no series to sweep over");
	if (sweep->series_count > OBK_RQA_MAX_SERIES)
		return obk_rqa_fail(ret_error, OBK_RQA_LIMIT, 0, 0,
			"%llu series were given: at most %u are possible",
			(unsigned long long)sweep->series_count, OBK_RQA_MAX_SERIES);
	if (sweep->options->kind != OBK_RQA_AUTO)
		return obk_rqa_fail(ret_error, OBK_RQA_UNSUPPORTED, 0, 0,
			"sweeps are of auto recurrence: set the option `kind` to auto");
	if (sweep->options->radius_kind != OBK_RQA_RADIUS_ABSOLUTE &&
		sweep->options->radius_kind != OBK_RQA_RADIUS_SD)
		return obk_rqa_fail(ret_error, OBK_RQA_UNSUPPORTED, 0, 0,
			"the radii of a sweep are absolute or in standard deviations");
	return grid_check(sweep, ret_error);
}

static bool job_init(struct obk_rqa_job *job, unsigned threads)
{
	const struct obk_rqa_grid *grid = job->sweep->grid;

	job->tasks = calloc(threads + 1, sizeof *job->tasks);
	job->series_status = calloc(job->sweep->series_count, sizeof *job->series_status);
	job->order = calloc(grid->m_count, sizeof *job->order);
	if (!job->tasks || !job->series_status || !job->order)
		return false;
	job->ahead = &job->tasks[threads];
	for (unsigned t = 0; t <= threads; t++)
		if (!task_init(&job->tasks[t], job))
			return false;
	for (uint64_t s = 0; s < job->sweep->series_count; s++)
		job->series_status[s] =
			obk_rqa_series_check(&job->sweep->series[s], s, job->sweep->options, NULL);
	/* In ascending order of m; equal values in the order of the grid. */
	for (uint32_t i = 0; i < grid->m_count; i++) {
		uint32_t at = i;

		for (; at > 0 && grid->m[job->order[at - 1]] > grid->m[i]; at--)
			job->order[at] = job->order[at - 1];
		job->order[at] = i;
	}
	return true;
}

int obk_rqa_sweep(const struct obk_rqa_sweep *sweep, const struct obk_rqa_control *control,
	struct obk_rqa_error *ret_error)
{
	struct obk_rqa_job job = { .sweep = sweep, .control = control, .crew = 1 };
	unsigned threads = obk_rqa_threads(control);
	uint64_t rows;
	int status = obk_rqa_control_check_gpu(control, &job.ops, ret_error);

	if (status == OBK_RQA_OK)
		status = sweep_check(sweep, ret_error);
	if (status != OBK_RQA_OK)
		return status;
	rows = (uint64_t)sweep->grid->m_count * sweep->grid->tau_count * sweep->grid->radius_count *
		sweep->grid->lmin_count * (sweep->grid->modes ? sweep->grid->mode_count : 1) *
		sweep->series_count;
	pthread_mutex_init(&job.lock, NULL);
	sem_init(&job.singles, 0, SINGLES);
	job.watch = obk_rqa_watch_new(control);
	if (job.watch && job_init(&job, threads)) {
		obk_rqa_watch_total(job.watch, obk_rqa_job_cells(sweep), rows);
		if (obk_rqa_gpu_wanted(control,
			    obk_rqa_job_cells(sweep) * sweep->grid->radius_count / RADII_AT_ONCE))
			status = obk_rqa_gpu_job_run(&job, threads, ret_error);
		else
			obk_rqa_job_run(&job, threads);
		if (status == OBK_RQA_OK && obk_rqa_watch_stopped(job.watch))
			status = obk_rqa_fail(ret_error, OBK_RQA_CANCELLED, 0, 0, "cancelled");
		else if (status == OBK_RQA_OK)
			obk_rqa_watch_end(job.watch);
	} else {
		status = obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0,
			"no memory for a sweep with %u threads", threads);
	}
	for (unsigned t = 0; t <= threads && job.tasks; t++)
		task_fini(&job.tasks[t]);
	free(job.tasks);
	free(job.series_status);
	free(job.order);
	obk_rqa_watch_free(job.watch);
	sem_destroy(&job.singles);
	pthread_mutex_destroy(&job.lock);
	return status;
}
