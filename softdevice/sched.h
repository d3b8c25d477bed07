/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_sched: runs each op (op.h) when all ops that it depends on are done.
 *
 * The order that CUDA guarantees is expressed as dependencies at submission:
 *   an op depends on the last op of its stream;
 *   on a blocking stream also on the context's last op on the legacy stream;
 *   on the legacy stream also on the last op of each blocking stream of the context;
 *   a wait for an event also on the op that the event recorded.
 * An op without work (an event's mark) completes without a thread. Other ops are run by executor
 * threads. An executor is started when none is idle, so that a host function that blocks does not
 * delay other work, and it ends after some idle time. A thread that waits for an op may run the ops
 * before it itself, except host functions.
 *
 * One lock for the process. It is held for a few instructions and never while an op runs. The
 * process owns the scheduler. Any thread.
 */
#ifndef OBD_SCHED_H
#define OBD_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "front/stream.h"
#include "softdevice/op.h"

#define OBD_EXECUTORS_MAX     512u /* threads */
#define OBD_KERNELS_MAX       32u  /* running at once; further ones wait, by priority */
#define OBD_PRIORITIES        6    /* from 0 (lowest) to -5 (highest) */
#define OBD_PRIORITY_GREATEST (-5)

struct obd_ctx;

/*
 * The software device's part of a stream of the front end. Only the last op of the stream's work is
 * kept. The object of a closed stream is freed when its last op is done.
 */
struct obd_stream {
	struct obf_stream base;
	struct obd_ctx *ctx;
	/* The fields below are guarded by the scheduler's lock. */
	struct obd_op *last;                      /* one reference; NULL when idle */
	struct obd_stream *busy_next, *busy_prev; /* in ctx->busy */
	uint64_t end_ns; /* when its completed work ends on the device's clock (dry.h) */
	bool closed;
};

static inline struct obd_stream *obd_stream_of(struct obf_stream *stream)
{
	return (struct obd_stream *)stream;
}

/* False: no executor thread could be started. */
bool obd_sched_start(void);
/* Called when the process exits. Stops the running kernels and waits for them, at most 2 s. */
void obd_sched_stop(void);

/*
 * Appends the op to the stream. It also runs after `event` if that is not NULL. The caller keeps
 * its reference. CUDA_ERROR_OUT_OF_MEMORY: the op was not submitted.
 */
CUresult obd_sched_submit(struct obd_op *op, struct obd_stream *stream, struct obd_op *event);
/*
 * The same, but if the op does not depend on unfinished ops, it runs on the calling thread before
 * the call returns. For short work this is cheaper than waking another thread.
 */
CUresult obd_sched_run_or_submit(struct obd_op *op, struct obd_stream *stream);
/* The same, and always waits until the op has run. */
CUresult obd_sched_run_and_wait(struct obd_op *op, struct obd_stream *stream);
/* Blocks until the op is done, in a dry run also on the device's clock. */
void obd_op_wait(struct obd_op *op);
/* Whether obd_op_wait would return at once. */
bool obd_op_over(struct obd_op *op);

/*
 * The last op of the stream, as a new reference; NULL when the stream is idle. For the legacy
 * stream only its own ops count.
 */
struct obd_op *obd_stream_last(struct obd_stream *stream);
/* When the stream's completed work ends on the device's clock; 0: it has ended. */
uint64_t obd_stream_end(struct obd_stream *stream);
/*
 * Closes the stream: no more work is submitted to it. False: it still has work and is recycled when
 * that is done.
 */
bool obd_sched_close(struct obd_stream *stream);
/*
 * Waits for all work submitted to the context so far. `legacy_only`: only for the work that the
 * legacy stream would wait for.
 */
void obd_ctx_wait(struct obd_ctx *ctx, bool legacy_only);
/*
 * Waits until no copy or fill that has been submitted by now runs or can run, in any context. Those
 * behind a kernel, a host function or a value that the program sets do not count: that wait could
 * be without end.
 */
void obd_sched_copies_wait(void);
bool obd_ctx_idle(struct obd_ctx *ctx, bool legacy_only);
/*
 * Waits until nothing of the context is queued or running. False: `deadline` (ob_clock_ns) has
 * passed.
 */
bool obd_ctx_drain(struct obd_ctx *ctx, uint64_t deadline);

#endif
