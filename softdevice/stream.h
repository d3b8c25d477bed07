/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Streams for the front end: opening, closing, waiting. The work of a stream is described in
 * sched.h. Any thread.
 */
#ifndef OBD_STREAM_H
#define OBD_STREAM_H

#include <stdbool.h>

#include "softdevice/sched.h"

struct obd_ctx;

/*
 * Called first by most public calls: returns the current context and the stream. `same`: the stream
 * must belong to the current context.
 */
CUresult obd_stream_enter(
	CUstream handle, bool same, struct obd_ctx **ret_ctx, struct obd_stream **ret);

/* The front end's backend table (front/backend.h). */
CUresult obd_stream_open(struct obf_stream *stream);
void obd_stream_close(struct obf_stream *stream, bool ctx_ended);
CUresult obd_stream_query(struct obf_stream *stream);
CUresult obd_stream_wait(struct obf_stream *stream);

#endif
