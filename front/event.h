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

struct obf_stream;

struct obf_event *obf_event_find(CUevent handle);
/* A recording, and a wait for the last one, as work of a stream that is not captured. */
CUresult obf_event_record(struct obf_event *event, struct obf_stream *stream);
CUresult obf_event_wait_put(struct obf_event *event, struct obf_stream *stream);

/* The context has ended in the backend: ends all its events. */
void obf_events_end(const struct obf_ctx *ctx);

#endif
