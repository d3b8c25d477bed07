/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A running sweep: the job, which its threads share, and the tasks, one for each thread.
 * obk_rqa_sweep in job.c creates and ends it; sweep.c does the work.
 */
#ifndef OBK_RQA_SWEEP_H
#define OBK_RQA_SWEEP_H

#include <pthread.h>
#include <semaphore.h>

#include "compute/rqa/internal.h"

#define OBK_RQA_LOOK 1024u /* entries in the table that finds the level of a distance */

struct obk_rqa_job;
struct obk_rqa_gpu_batch;

struct obk_rqa_task {
	struct obk_rqa_job *job;
	uint64_t unit, series; /* unit: index of the (tau, series, mode) */
	uint32_t mode, tau_index;
	/* indices into grid.m that are not done yet, by ascending m */
	uint32_t *order, order_count;
	uint32_t lmin_most;
	struct obk_rqa_row *rows;
	double *values;
	int *statuses;
	uint32_t *level; /* one per radius */
	struct obk_rqa_levels levels;
	struct obk_rqa_sums *from_min;
	/* grow with the longest series so far */
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
	struct obk_rqa_task *tasks; /* one per thread, followed by `ahead` */
	struct obk_rqa_task *ahead; /* prepares the next batch for a device */
	/* threads per task; more than one if there are fewer tasks than threads */
	unsigned crew;
	int *series_status;
	uint32_t *order; /* indices into grid.m by ascending m */
	/* counts from a device for the current units; NULL: none */
	struct obk_rqa_gpu_batch *batch;
	sem_t singles;        /* single runs that may still start on the control's device */
	pthread_mutex_t lock; /* serialises the delivery of rows */
};

/* Allocates buffers for a series of that length; false: out of memory. */
bool obk_rqa_task_room(struct obk_rqa_task *task, uint64_t length, uint32_t channels);
/* Sets series, mode and tau of a unit. */
void obk_rqa_task_place(struct obk_rqa_task *task, uint64_t unit);
/* The channels of the task's mode in this series. */
int obk_rqa_task_channels(const struct obk_rqa_task *task, const struct obk_rqa_series *series,
	uint32_t *ret_channels, uint32_t *ret_count, struct obk_rqa_error *ret_error);
/*
 * Prepares the task's series for a walk with m 1, and computes the unit of the radius. The caller
 * frees its planes.
 */
int obk_rqa_task_plot(const struct obk_rqa_task *task, const struct obk_rqa_series *series,
	const uint32_t *channels, uint32_t count, struct obk_rqa_plot *ret_plot, double *ret_unit,
	struct obk_rqa_error *error);
/*
 * Computes the distinct limits in ascending order; task->level[radius index] is the level of each
 * radius. False: out of memory.
 */
bool obk_rqa_task_levels(struct obk_rqa_task *task, const struct obk_rqa_plot *plot, double unit);
/* True if the pass over all radii counts everything that these options need. */
bool obk_rqa_pass_suffices(const struct obk_rqa_options *options);
/* Processes a unit from checking to delivery of the rows. arg: the job. */
void obk_rqa_task_run(void *arg, unsigned thread, uint64_t unit);
/*
 * Pairs of length and count, by ascending length, for one level of the task's unit. False: the
 * device has not counted it.
 */
bool obk_rqa_gpu_found(const struct obk_rqa_task *task, uint32_t m_index, uint32_t level,
	bool columns, const uint32_t **ret_pairs, uint32_t *ret_count);
uint64_t obk_rqa_job_units(const struct obk_rqa_job *job);
uint64_t obk_rqa_job_cells(const struct obk_rqa_sweep *sweep);
void obk_rqa_job_run(struct obk_rqa_job *job, unsigned threads);
/*
 * Delivers the rows of one m to the caller. All get this status, unless it is OBK_RQA_OK: then each
 * row has its own.
 */
void obk_rqa_rows_give(struct obk_rqa_task *task, uint32_t m_index, int status, const char *reason);
/*
 * Computes all dimensions of a task, several at a time. On failure, dimensions whose rows have been
 * delivered are no longer in task->order. Returns enum obk_rqa_status.
 */
int obk_rqa_task_pass(struct obk_rqa_task *task, const struct obk_rqa_plot *plot, double unit);

#endif
