/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A sweep in progress: what its threads share (job) and what each one owns (task). Created and
 * ended by obk_rqa_sweep in job.c, worked on in sweep.c.
 */
#ifndef OBK_RQA_SWEEP_H
#define OBK_RQA_SWEEP_H

#include <pthread.h>
#include <semaphore.h>

#include "compute/rqa/internal.h"

#define OBK_RQA_LOOK 1024u /* slots of the table that finds a distance's level */

struct obk_rqa_job;
struct obk_rqa_gpu_batch;

struct obk_rqa_task {
	struct obk_rqa_job *job;
	uint64_t unit, series; /* unit: which (tau, series, mode) */
	uint32_t mode, tau_index;
	uint32_t *order, order_count; /* places in grid.m that are left to do, by rising m */
	uint32_t lmin_most;
	struct obk_rqa_row *rows;
	double *values;
	int *statuses;
	uint32_t *level; /* of each radius */
	struct obk_rqa_levels levels;
	struct obk_rqa_sums *from_min;
	/* grow with the longest series seen */
	void *gaps, *distance;
	uint64_t *sum, *sum_vertical;
	uint64_t stride, room_length;
	uint32_t room_channels;
};

struct obk_rqa_job {
	const struct obk_rqa_sweep *sweep;
	const struct obk_rqa_control *control;
	const struct obk_rqa_ops *ops;
	struct obk_rqa_watch *watch;
	struct obk_rqa_task *tasks; /* one a thread, and behind them: */
	struct obk_rqa_task *ahead; /* for what prepares a device's next batch */
	/* threads of a task: more than one where there are fewer tasks than threads */
	unsigned crew;
	int *series_status;
	uint32_t *order; /* places in grid.m by rising m */
	/* what a device counted of the units in work; NULL: nothing */
	struct obk_rqa_gpu_batch *batch;
	sem_t singles;        /* single runs that may still begin on the control's device */
	pthread_mutex_t lock; /* one delivery of rows at a time */
};

/* Buffers for a series of that length; false: no memory. */
bool obk_rqa_task_room(struct obk_rqa_task *task, uint64_t length, uint32_t channels);
/* Series, mode and tau of a unit. */
void obk_rqa_task_place(struct obk_rqa_task *task, uint64_t unit);
/* The channels of the task's mode, as the series has them. */
int obk_rqa_task_channels(const struct obk_rqa_task *task, const struct obk_rqa_series *series,
	uint32_t *ret_channels, uint32_t *ret_count, struct obk_rqa_error *ret_error);
/*
 * The task's series, ready to be walked with m 1, and what a radius of 1 is; its planes are the
 * caller's to end.
 */
int obk_rqa_task_plot(const struct obk_rqa_task *task, const struct obk_rqa_series *series,
	const uint32_t *channels, uint32_t count, struct obk_rqa_plot *ret_plot, double *ret_unit,
	struct obk_rqa_error *error);
/*
 * Distinct limits in rising order; task->level[radius index] tells where each radius went. False:
 * no memory.
 */
bool obk_rqa_task_levels(struct obk_rqa_task *task, const struct obk_rqa_plot *plot, double unit);
/* Does the pass over all radii know everything that these options count? */
bool obk_rqa_pass_suffices(const struct obk_rqa_options *options);
/* A unit, from its check to its rows; arg: the job. */
void obk_rqa_task_run(void *arg, unsigned thread, uint64_t unit);
/*
 * Lengths and counts, in pairs, by rising length, of one level of the task's unit; false: the
 * device has not counted it.
 */
bool obk_rqa_gpu_found(const struct obk_rqa_task *task, uint32_t m_index, uint32_t level,
	bool columns, const uint32_t **ret_pairs, uint32_t *ret_count);
uint64_t obk_rqa_job_units(const struct obk_rqa_job *job);
uint64_t obk_rqa_job_cells(const struct obk_rqa_sweep *sweep);
void obk_rqa_job_run(struct obk_rqa_job *job, unsigned threads);
/*
 * The rows of one m go to the caller, all of this status unless that is OBK_RQA_OK; then each has
 * its own.
 */
void obk_rqa_rows_give(struct obk_rqa_task *task, uint32_t m_index, int status, const char *reason);
/*
 * All dimensions of a task, a chunk of them at a time. On failure those whose rows were given are
 * gone from task->order. enum obk_rqa_status.
 */
int obk_rqa_task_pass(struct obk_rqa_task *task, const struct obk_rqa_plot *plot, double unit);

#endif
