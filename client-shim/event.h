/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_event: what the client keeps of an event beside the front end's object. An event remembers
 * the place in the stream where it was recorded, so one whose stream or context has been waited for
 * since is known to be complete without asking. The event's id is its name on the wire. Any thread.
 */
#ifndef OBC_EVENT_H
#define OBC_EVENT_H

#include "front/event.h"
#include "front/stream.h"

/* The front end's backend table (front/backend.h). */
extern const size_t obc_event_size;
CUresult obc_event_open(struct obf_event *event);
CUresult obc_event_close(struct obf_event *event, bool ctx_ended);
CUresult obc_event_record(struct obf_event *event, struct obf_stream *stream);
CUresult obc_event_query(struct obf_event *event);
CUresult obc_event_wait(struct obf_event *event);
CUresult obc_event_elapsed(struct obf_event *start, struct obf_event *end, float *ret_ms);
CUresult obc_stream_wait_event(struct obf_stream *stream, struct obf_event *event);

#endif
