/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The internal state of the scheduler, shared by its two files: sched.c (the ready queue,
 * executors, completion) and order.c (dependencies, submission, waiting). obd_sched.lock guards
 * everything here.
 */
#ifndef OBD_SCHED_INSIDE_H
#define OBD_SCHED_INSIDE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/clock.h"
#include "softdevice/op.h"
#include "softdevice/sched.h"

struct obd_queue {
	struct obd_op *first[OBD_PRIORITIES], *last[OBD_PRIORITIES];
	uint32_t n;
};

struct obd_sched {
	pthread_mutex_t lock;
	pthread_cond_t work; /* idle executors wait for it */
	struct obd_queue others, kernels;
	/* signalled when a context has no ops left and, while stopping, when an op has ended */
	pthread_cond_t drained;
	uint32_t threads, starting, idle, running_kernels;
	struct obd_op *running; /* list, linked by `next` */
	uint64_t submitted;     /* number of ops so far */
	bool stopping;
	pid_t pid; /* the process that the threads belong to */
};

extern struct obd_sched obd_sched;

/*
 * What completion leaves to be freed after the lock is released: ops linked by `next`, one
 * reference each, and unreferenced streams linked by `busy_next`.
 */
struct obd_garbage {
	struct obd_op *ops;
	struct obd_stream *streams;
};

void obd_garbage_drop(struct obd_garbage *garbage); /* the caller does not hold the lock */

/*
 * Queues an op that has no unfinished dependencies. A mark is put on the list `marks` instead; the
 * caller completes it.
 */
void obd_sched_ready(struct obd_op *op, struct obd_op **marks);
/* Marks the op as done, and every mark that becomes ready by it. self: see obd_sched_wake. */
void obd_sched_complete(struct obd_op *op, struct obd_garbage *garbage, uint32_t self);
/*
 * Provides a thread for each op that can run now. `self` is 1 if the calling executor takes one
 * itself. A sleeping executor that was signalled counts as idle until it holds the lock again. The
 * number of ops is therefore compared with the number of sleepers, and a new thread is started if
 * there are more ops.
 */
void obd_sched_wake(uint32_t self);
/* Runs the op on the calling thread. The lock is held at entry and at return. */
void obd_sched_run(struct obd_op *op, uint32_t self);
/* Removes `op` from the queue if it is the first of its priority. False: it is not. */
bool obd_queue_take(struct obd_queue *q, struct obd_op *op);
void obd_busy_add(struct obd_ctx *ctx, struct obd_stream *stream);

static inline struct timespec obd_deadline_at(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / OB_SECOND),
		.tv_nsec = (long)(ns % OB_SECOND) };
}

#endif
