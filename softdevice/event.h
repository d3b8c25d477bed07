/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_event: refers to the op that the event was last recorded with. A wait or a query refers to
 * the op recorded at that time, even if the event is recorded again afterwards. Any thread.
 */
#ifndef OBD_EVENT_H
#define OBD_EVENT_H

#include "front/backend.h"
#include "front/event.h"
#include "front/stream.h"

/* The front end's backend table (front/backend.h). */
extern const size_t obd_event_size;
CUresult obd_event_open(struct obf_event *event);
CUresult obd_event_close(struct obf_event *event, bool ctx_ended);
/* Events that several processes use (front/share.h). */
struct obf_share;
CUresult obd_event_import(struct obf_event *event, const struct obf_share *share);
CUresult obd_event_export(struct obf_event *event, struct obf_share *ret);
CUresult obd_event_record(struct obf_event *event, struct obf_stream *stream);
CUresult obd_event_query(struct obf_event *event);
CUresult obd_event_wait(struct obf_event *event);
CUresult obd_event_elapsed(struct obf_event *start, struct obf_event *end, float *ret_ms);
CUresult obd_stream_wait_event(struct obf_stream *stream, struct obf_event *event);
CUresult obd_point_take(struct obf_stream *stream, struct obf_point *ret);
bool obd_point_passed(const struct obf_point *point);
void obd_point_drop(struct obf_point *point);

#endif
