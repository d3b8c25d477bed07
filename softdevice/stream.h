/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_stream: what the software device keeps of a stream beside the front end's object. Of the
 * stream's work only the last op is kept (sched.h). A closed stream's object is given back when its
 * last op is done. Any thread.
 */
#ifndef OBD_STREAM_H
#define OBD_STREAM_H

#include <stdbool.h>

#include "front/stream.h"

struct obd_ctx;
struct obd_op;

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

/*
 * The start of most public calls: the current context and the stream in it. `same`: the stream must
 * be the current context's.
 */
CUresult obd_stream_enter(
	CUstream handle, bool same, struct obd_ctx **ret_ctx, struct obd_stream **ret);

/* The front end's backend table (front/backend.h). */
CUresult obd_stream_open(struct obf_stream *stream);
void obd_stream_close(struct obf_stream *stream, bool ctx_ended);
CUresult obd_stream_query(struct obf_stream *stream);
CUresult obd_stream_wait(struct obf_stream *stream);

#endif
