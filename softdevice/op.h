/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_op: one piece of work on a stream, and the notification of its completion. The scheduler
 * (sched.h) decides when it runs.
 *
 * Reference-counted: the scheduler has one reference while the op is not done, and each holder has
 * one. Any thread.
 */
#ifndef OBD_OP_H
#define OBD_OP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBD_OP_DONE 1u

struct obd_ctx;
struct obd_limit;
struct obd_stream;

enum obd_op_kind {
	OBD_OP_MARK, /* no work: event record, event wait */
	OBD_OP_COPY, /* copies, sets, frees */
	OBD_OP_KERNEL,
	/* runs even when the context has failed; its `run` checks for that */
	OBD_OP_HOST,
};

struct obd_op {
	/*
	 * Stored with release after the op has run: a thread that loads OBD_OP_DONE sees the op's
	 * effects and time_ns.
	 */
	_Atomic uint32_t state; /* OBD_OP_DONE or not; a futex word */
	_Atomic int refs;
	enum obd_op_kind kind;
	struct obd_ctx *ctx;
	/* called without locks; NULL: there is no work (a mark, a kernel of a dry run) */
	void (*run)(struct obd_op *op);
	/*
	 * Releases what the op holds. Called after `run` and before the op is marked as done, or
	 * when the op was not submitted. May be NULL.
	 */
	void (*fini)(struct obd_op *op);
	uint64_t time_ns; /* time of completion, ob_clock_ns; in a dry run the device's (dry.h) */
	/* The fields below belong to the scheduler and are guarded by its lock. */
	uint64_t number; /* increases in order of submission */
	int priority;
	uint32_t waits; /* number of unfinished ops that it depends on */
	/* on the device's clock of a dry run: when the ops that it depends on have ended */
	uint64_t ready_ns;
	uint64_t run_ns; /* the time that a kernel of a dry run takes on that clock */
	/*
	 * One of the ops that it depends on, directly or indirectly, runs code of the program or
	 * waits for a value. The wait for it has no upper bound.
	 */
	bool unbounded_wait;
	uint32_t n_after, max_after;
	struct obd_op **after;          /* ops that depend on it */
	struct obd_op *after_inline[2]; /* storage of `after` while two entries are enough */
	struct obd_stream *stream;
	struct obd_limit *limit; /* of the threads that run its kernels; NULL: none */
	struct obd_op *next;     /* link in the ready queue, or in the list of running ops */
};

/*
 * `size` is the size of the struct that begins with an obd_op. Returns one reference, owned by the
 * caller. NULL: out of memory.
 */
void *obd_op_new(size_t size, enum obd_op_kind kind, struct obd_ctx *ctx);
struct obd_op *obd_op_ref(struct obd_op *op);
void obd_op_unref(struct obd_op *op); /* NULL is allowed */

static inline bool obd_op_done(struct obd_op *op)
{
	return atomic_load_explicit(&op->state, memory_order_acquire) == OBD_OP_DONE;
}

/* Marks the op as done and wakes the waiting threads. Called once. */
void obd_op_finish(struct obd_op *op);
/* Sleeps until the op is done, or for half a second. The caller must check again. */
void obd_op_sleep(struct obd_op *op);

#endif
