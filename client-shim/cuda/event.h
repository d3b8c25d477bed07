/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_event: the client's part of an event, beside the front end's object. An event stores the
 * point of the stream where it was recorded. If a later wait for the stream or the context has
 * succeeded, the event is known to be complete without a request to the server. The event's id is
 * its name on the wire. Any thread.
 */
#ifndef OBC_EVENT_H
#define OBC_EVENT_H

#include "front/event.h"
#include "front/stream.h"

/* For struct obf_backend. */
extern const size_t obc_event_size;
CUresult obc_event_open(struct obf_event *event);
CUresult obc_event_close(struct obf_event *event, bool ctx_ended);
CUresult obc_event_record(struct obf_event *event, struct obf_stream *stream);
CUresult obc_event_query(struct obf_event *event);
CUresult obc_event_wait(struct obf_event *event);
CUresult obc_event_elapsed(struct obf_event *start, struct obf_event *end, float *ret_ms);
CUresult obc_stream_wait_event(struct obf_stream *stream, struct obf_event *event);

#endif
