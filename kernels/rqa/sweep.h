/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A sweep in progress: what its threads share (job) and what each one owns (task). Created and ended by obk_rqa_sweep in job.c, worked on in sweep.c. */
#ifndef OBK_RQA_SWEEP_H
#define OBK_RQA_SWEEP_H

#include <pthread.h>

#include "kernels/rqa/internal.h"

#define OBK_RQA_LOOK 1024u /* slots of the table that finds a distance's level */

struct obk_rqa_job;

struct obk_rqa_task {
	struct obk_rqa_job *job;
	uint64_t series;
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
	struct obk_rqa_task *tasks;
	unsigned crew; /* threads of a task: more than one where there are fewer tasks than threads */
	int *series_status;
	uint32_t *order; /* places in grid.m by rising m */
	pthread_mutex_t lock; /* one delivery of rows at a time */
};

/* Buffers for a series of that length; false: no memory. */
bool obk_rqa_task_room(struct obk_rqa_task *task, uint64_t length, uint32_t channels);
uint64_t obk_rqa_job_cells(const struct obk_rqa_sweep *sweep);
void obk_rqa_job_run(struct obk_rqa_job *job, unsigned threads);

#endif
