/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_op: one piece of work on a stream; obd_sched: runs each when all it depends on is done.
 *
 * The order CUDA promises is written down as dependencies at submission:
 *   an op depends on its stream's last op;
 *   on a blocking stream also on the context's last op on the legacy stream;
 *   on the legacy stream also on the last op of each blocking stream of the context;
 *   a wait for an event also on the op that the event recorded.
 * An op without work (an event's mark) completes in place. Others are run by executor threads, which are started when none is idle
 * (a host function may block for ever without holding up others) and end when idle; or by a thread that waits for them anyway,
 * unless they are host functions.
 *
 * One lock for the process, held for a few instructions, never while an op runs. Ops are counted: one reference for the scheduler while
 * the op is not done, one for each holder. The process owns the scheduler. Any thread.
 */
#ifndef OBD_SCHED_H
#define OBD_SCHED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OBD_EXECUTORS_MAX 512u  /* threads */
#define OBD_KERNELS_MAX 32u     /* that run at once; more wait, by priority */
#define OBD_PRIORITIES 6        /* 0 (least) to -5 (greatest) */
#define OBD_PRIORITY_GREATEST (-5)

#define OBD_OP_DONE 1u

struct obd_ctx;
struct obd_stream;

enum obd_op_kind {
	OBD_OP_MARK,            /* no work: event record, event wait */
	OBD_OP_COPY,            /* copies, sets, frees */
	OBD_OP_KERNEL,
	OBD_OP_HOST,            /* runs even when the context has failed: it is for the function to know */
};

struct obd_op {
	/* Release when the op has run: who sees DONE sees its effects and its time. */
	_Atomic uint32_t state; /* OBD_OP_DONE or not; a futex word */
	_Atomic int refs;
	enum obd_op_kind kind;
	struct obd_ctx *ctx;
	void (*run)(struct obd_op *op);  /* NULL for a mark; no lock held */
	void (*fini)(struct obd_op *op); /* lets go of what it holds: after run, before it counts as done, or unsubmitted; may be NULL */
	uint64_t time_ns;       /* when it was done */
	/* Below: the scheduler's, under its lock. */
	uint64_t number;        /* in order of submission */
	int priority;
	uint32_t waits;         /* ops it depends on that are not done */
	uint32_t n_after, max_after;
	struct obd_op **after;  /* ops that depend on it */
	struct obd_op *few[2];  /* `after` until it needs more */
	struct obd_stream *stream;
	struct obd_op *next;    /* in the ready queue; among those that run */
};

/* size: of the struct that begins with an obd_op. One reference, the caller's. NULL: out of memory. */
void *obd_op_new(size_t size, enum obd_op_kind kind, struct obd_ctx *ctx);
struct obd_op *obd_op_ref(struct obd_op *op);
void obd_op_unref(struct obd_op *op); /* NULL is nothing */

static inline bool obd_op_done(struct obd_op *op)
{
	return atomic_load_explicit(&op->state, memory_order_acquire) == OBD_OP_DONE;
}

/* False: not even one thread could be started. */
bool obd_sched_start(void);
/* At exit of the process: running kernels are told to stop and are waited for up to 2 s. */
void obd_sched_stop(void);

/* Puts the op at the end of the stream; also after `event` when that is not NULL. The caller keeps its reference. CUDA_ERROR_OUT_OF_MEMORY: not submitted. */
CUresult obd_sched_submit(struct obd_op *op, struct obd_stream *stream, struct obd_op *event);
/* The same, and waits until it has run, running it on this thread when it can. */
CUresult obd_sched_perform(struct obd_op *op, struct obd_stream *stream);
/* Blocks until the op is done. */
void obd_op_wait(struct obd_op *op);

/* The last op of the stream, referenced; NULL when it is idle. Legacy: its own last op only. */
struct obd_op *obd_stream_last(struct obd_stream *stream);
/* Waits for all work submitted to the context so far. `legacy_only`: only what the legacy stream would wait for. */
void obd_ctx_wait(struct obd_ctx *ctx, bool legacy_only);
bool obd_ctx_idle(struct obd_ctx *ctx, bool legacy_only);
/* Waits until nothing of the context is queued or running; false when `deadline` (ob_clock_ns) came first. */
bool obd_ctx_drain(struct obd_ctx *ctx, uint64_t deadline);

/* True in a thread that is running a host function: CUDA calls are not permitted there. */
bool obd_sched_in_callback(void);

#endif
