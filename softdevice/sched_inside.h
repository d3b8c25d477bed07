/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The scheduler's state, for the two files that make it up: sched.c (the ready queue, executors,
 * completion) and order.c (dependencies, submission, waiting). Everything here is under
 * obd_sched.lock.
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
	pthread_cond_t work; /* an idle executor waits here */
	struct obd_queue others, kernels;
	/* a context has nothing left; while stopping: an op has ended */
	pthread_cond_t drained;
	uint32_t threads, starting, idle, running_kernels;
	struct obd_op *running; /* by next */
	uint64_t submitted;     /* ops so far */
	bool stopping;
	pid_t pid; /* the process whose threads these are */
};

extern struct obd_sched obd_sched;

/*
 * What completion leaves to be freed when the lock is free: ops by `next`, one reference each;
 * streams nobody holds by `busy_next`.
 */
struct obd_garbage {
	struct obd_op *ops;
	struct obd_stream *streams;
};

void obd_garbage_drop(struct obd_garbage *garbage); /* without the lock */

/* An op that waits for nothing goes into the queue; a mark goes on `marks`, to be completed. */
void obd_sched_ready(struct obd_op *op, struct obd_op **marks);
/* The op and every mark that becomes ready by it are done. self: as in obd_sched_call. */
void obd_sched_complete(struct obd_op *op, struct obd_garbage *garbage, uint32_t self);
/*
 * A thread for each op that can run now. `self`: the calling executor takes one itself. A sleeping
 * executor counts as idle until it has the lock again, so more ops than sleepers means that a new
 * thread is needed, however many of the sleepers are on their way.
 */
void obd_sched_call(uint32_t self);
/* Runs the op here; enters and leaves with the lock held. */
void obd_sched_run(struct obd_op *op, uint32_t self);
/* Takes `op` out if it is the next of its priority. */
bool obd_queue_take(struct obd_queue *q, struct obd_op *op);
void obd_busy_add(struct obd_ctx *ctx, struct obd_stream *stream);

static inline struct timespec obd_deadline_at(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / OB_SECOND),
		.tv_nsec = (long)(ns % OB_SECOND) };
}

#endif
