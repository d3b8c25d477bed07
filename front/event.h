/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_event: an event of the program. The backend's object begins with this struct;
 * obf_backend.event_size is its size. The front end owns the objects (object.h); any thread.
 */
#ifndef OBF_EVENT_H
#define OBF_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"
#include "front/object.h"

#define OBF_EVENT_MAX (1u << 20) /* live events of a process */

struct obf_stream;

struct obf_event {
	union {
		struct obf_object object;
		struct {
			struct obf_ctx *ctx; /* NULL: unused */
			uint64_t handle;     /* the id */
		};
	};
	unsigned flags; /* CU_EVENT_... */
	_Atomic bool recorded;
	struct obf_captured *captured; /* last recorded in a stream that is captured (captured.h) */
};

struct obf_share;

/* Creates an event, or opens another process's (share not NULL). */
CUresult obf_event_new(
	struct obf_ctx *ctx, unsigned flags, const struct obf_share *share, CUevent *ret);
/*
 * Resolves a handle. CUDA_ERROR_INVALID_HANDLE; else the error of the event's context, unless that is
 * ctx, whose error the caller has checked.
 */
CUresult obf_event_find(CUevent handle, const struct obf_ctx *ctx, struct obf_event **ret);
/* An event of the context, recorded in the stream. Ended by obf_event_drop. */
CUresult obf_event_mark(struct obf_stream *stream, struct obf_event **ret);
void obf_event_drop(struct obf_event *event);
/* The event of a handle, whatever its context; NULL: there is none. */
struct obf_event *obf_event_look(CUevent handle);
/*
 * A recording, and a wait for the last one, as work of a stream of the same context that is not
 * captured. The caller stores the error.
 */
CUresult obf_event_record(struct obf_event *event, struct obf_stream *stream);
CUresult obf_event_wait_put(struct obf_event *event, struct obf_stream *stream);

/* The context has ended in the backend: ends all its events. */
void obf_events_end(const struct obf_ctx *ctx);

#endif
