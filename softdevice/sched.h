/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_sched: runs each op (op.h) when all it depends on is done.
 *
 * The order CUDA promises is written down as dependencies at submission:
 *   an op depends on its stream's last op;
 *   on a blocking stream also on the context's last op on the legacy stream;
 *   on the legacy stream also on the last op of each blocking stream of the context;
 *   a wait for an event also on the op that the event recorded.
 * An op without work (an event's mark) completes in place. Others are run by executor threads,
 * which are started when none is idle (a host function may block for ever without holding up
 * others) and end when idle; or by a thread that waits for them anyway, unless they are host
 * functions.
 *
 * One lock for the process, held for a few instructions, never while an op runs. The process owns
 * the scheduler. Any thread.
 */
#ifndef OBD_SCHED_H
#define OBD_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "front/stream.h"
#include "softdevice/op.h"

#define OBD_EXECUTORS_MAX     512u /* threads */
#define OBD_KERNELS_MAX       32u  /* that run at once; more wait, by priority */
#define OBD_PRIORITIES        6    /* 0 (least) to -5 (greatest) */
#define OBD_PRIORITY_GREATEST (-5)

struct obd_ctx;

/*
 * What the software device keeps of a stream beside the front end's object. Of the stream's work
 * only the last op is kept. A closed stream's object is given back when its last op is done.
 */
struct obd_stream {
	struct obf_stream base;
	struct obd_ctx *ctx;
	/* Below: under the scheduler's lock. */
	struct obd_op *last;                      /* referenced; NULL when idle */
	struct obd_stream *busy_next, *busy_prev; /* in ctx->busy */
	bool closed;
};

static inline struct obd_stream *obd_stream_of(struct obf_stream *stream)
{
	return (struct obd_stream *)stream;
}

/* False: not even one thread could be started. */
bool obd_sched_start(void);
/* At exit of the process: running kernels are told to stop and are waited for up to 2 s. */
void obd_sched_stop(void);

/*
 * Puts the op at the end of the stream; also after `event` when that is not NULL. The caller keeps
 * its reference. CUDA_ERROR_OUT_OF_MEMORY: not submitted.
 */
CUresult obd_sched_submit(struct obd_op *op, struct obd_stream *stream, struct obd_op *event);
/*
 * The same, but when nothing is in the way it has run on this thread before the call returns: for
 * short work, cheaper than waking another.
 */
CUresult obd_sched_soon(struct obd_op *op, struct obd_stream *stream);
/* The same, and waits until it has run. */
CUresult obd_sched_perform(struct obd_op *op, struct obd_stream *stream);
/* Blocks until the op is done. */
void obd_op_wait(struct obd_op *op);

/* The last op of the stream, referenced; NULL when it is idle. Legacy: its own last op only. */
struct obd_op *obd_stream_last(struct obd_stream *stream);
/* No more work comes into the stream. False: it has work, and is recycled when that is done. */
bool obd_sched_close(struct obd_stream *stream);
/*
 * Waits for all work submitted to the context so far. `legacy_only`: only what the legacy stream
 * would wait for.
 */
void obd_ctx_wait(struct obd_ctx *ctx, bool legacy_only);
bool obd_ctx_idle(struct obd_ctx *ctx, bool legacy_only);
/*
 * Waits until nothing of the context is queued or running; false when `deadline` (ob_clock_ns) came
 * first.
 */
bool obd_ctx_drain(struct obd_ctx *ctx, uint64_t deadline);

#endif
