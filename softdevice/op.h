/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_op: one piece of work on a stream, and how its end is told. When it may run is the
 * scheduler's matter (sched.h).
 *
 * Counted: one reference for the scheduler while the op is not done, one for each holder. Any
 * thread.
 */
#ifndef OBD_OP_H
#define OBD_OP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBD_OP_DONE 1u

struct obd_ctx;
struct obd_stream;

enum obd_op_kind {
	OBD_OP_MARK, /* no work: event record, event wait */
	OBD_OP_COPY, /* copies, sets, frees */
	OBD_OP_KERNEL,
	/* runs even when the context has failed: it is for the function to know */
	OBD_OP_HOST,
};

struct obd_op {
	/* Release when the op has run: who sees DONE sees its effects and its time. */
	_Atomic uint32_t state; /* OBD_OP_DONE or not; a futex word */
	_Atomic int refs;
	enum obd_op_kind kind;
	struct obd_ctx *ctx;
	void (*run)(struct obd_op *op); /* NULL for a mark; no lock held */
	/*
	 * lets go of what it holds: after run, before it counts as done, or unsubmitted; may be
	 * NULL
	 */
	void (*fini)(struct obd_op *op);
	uint64_t time_ns; /* when it was done */
	/* Below: the scheduler's, under its lock. */
	uint64_t number; /* in order of submission */
	int priority;
	uint32_t waits; /* ops it depends on that are not done */
	/*
	 * among them, or before them, is code of the program or a wait for a value: it may take any
	 * time
	 */
	bool behind_code;
	uint32_t n_after, max_after;
	struct obd_op **after; /* ops that depend on it */
	struct obd_op *few[2]; /* `after` until it needs more */
	struct obd_stream *stream;
	struct obd_op *next; /* in the ready queue; among those that run */
};

/*
 * size: of the struct that begins with an obd_op. One reference, the caller's. NULL: out of memory.
 */
void *obd_op_new(size_t size, enum obd_op_kind kind, struct obd_ctx *ctx);
struct obd_op *obd_op_ref(struct obd_op *op);
void obd_op_unref(struct obd_op *op); /* NULL is nothing */

static inline bool obd_op_done(struct obd_op *op)
{
	return atomic_load_explicit(&op->state, memory_order_acquire) == OBD_OP_DONE;
}

/* Marks it done and wakes who waits. Once. */
void obd_op_finish(struct obd_op *op);
/* Sleeps until the op is done, or half a second: the caller looks again. */
void obd_op_sleep(struct obd_op *op);

#endif
