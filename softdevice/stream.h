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
 * For a public call that this folder implements: checks the current context and returns the stream,
 * which may belong to any context.
 */
CUresult obd_stream_enter(CUstream handle, struct obd_stream **ret);

/* The front end's backend table (front/backend.h). */
CUresult obd_stream_open(struct obf_stream *stream);
void obd_stream_close(struct obf_stream *stream, bool ctx_ended);
CUresult obd_stream_query(struct obf_stream *stream);
CUresult obd_stream_wait(struct obf_stream *stream);
/* A word that the stream writes or waits for (value.c). */
CUresult obd_stream_value(struct obf_stream *stream, const struct obf_value *value);

#endif
