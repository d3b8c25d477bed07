/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_shared_event: an event that several processes record and wait for. A page of memory that they
 * share counts the recordings and says which are complete.
 *
 * A process that ends without completing its recordings must not block the others: each object that
 * records holds a lock on a byte of the page's file, which the system releases, and a waiting
 * process looks for that. Reference-counted: the event has one reference, and each op in a stream.
 * Any thread.
 */
#ifndef OBD_EVENT_SHARE_H
#define OBD_EVENT_SHARE_H

#include "base/cuda_types.h"
#include "front/share.h"
#include "front/stream.h"

struct obd_ctx;
struct obd_shared_event;

/* NULL: the system has no memory or descriptors for it. */
struct obd_shared_event *obd_shared_event_new(void);
void obd_shared_event_unref(struct obd_shared_event *event);
/*
 * What another process opens: the number of this process and of the file's descriptor. The event
 * owns the descriptor.
 */
void obd_shared_event_name(const struct obd_shared_event *event, struct obf_share *ret);
/*
 * Opens the event with this name; process 0: the descriptor is this process's own.
 * CUDA_ERROR_INVALID_HANDLE: there is none, or this process may not open it.
 * CUDA_ERROR_INVALID_CONTEXT: this process has exported it.
 */
CUresult obd_shared_event_open(const struct obf_share *share, struct obd_shared_event **ret);

CUresult obd_shared_event_record(struct obd_shared_event *event, struct obf_stream *stream);
/* The last recording: CUDA_ERROR_NOT_READY if it is not complete. */
CUresult obd_shared_event_query(const struct obd_shared_event *event);
/* Waits until the last recording at the time of the call is complete. */
void obd_shared_event_wait(const struct obd_shared_event *event, struct obd_ctx *ctx);
CUresult obd_shared_event_stream_wait(struct obd_shared_event *event, struct obf_stream *stream);

/* For a server, which passes descriptors itself: reads and changes the name in a handle. */
int obd_shared_event_fd(const CUipcEventHandle *handle);
void obd_shared_event_set_fd(CUipcEventHandle *handle, int fd);

#endif
