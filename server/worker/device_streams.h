/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The streams whose works are measured, for device_times.h: the marks of each context, and the
 * works of each stream that are not reported yet. Under the lock of device_times.c, by a thread
 * with obs_device_exec; driver calls here do not block.
 */
#ifndef OBS_DEVICE_STREAMS_H
#define OBS_DEVICE_STREAMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "server/worker/device_clock.h"

#define OBS_DEVICE_MARKS    2048u /* of a context */
#define OBS_DEVICE_CONTEXTS 16u   /* measured at a time */
#define OBS_DEVICE_STREAMS  256u  /* measured at a time, without the legacy ones */
#define OBS_DEVICE_PASSING  4u    /* works looked at when another one begins */

struct obs_context;
struct obs_driver;
struct obs_exec;

struct obs_device_pool;

/* The end of a work, the start of the next one, the stream's tail: each counts in `uses`. */
struct obs_device_mark {
	CUevent event;
	struct obs_device_mark *next; /* free, or the stream's next work */
	unsigned uses;
	uint64_t at;    /* ns, server's clock; 0: not known yet */
	unsigned clock; /* count of the anchor by which it is known */
	bool far;
	/* of the work that ends here */
	struct obs_device_mark *start;
	uint64_t number, began;
	uint32_t works;
	uint16_t opcode;
};

struct obs_device_stream {
	struct obs_device_pool *pool; /* NULL: free */
	CUstream handle;
	uint32_t number;
	bool gone; /* destroyed; some of its works are not complete */
	bool open; /* a work is between begin and end */
	/* works that are not reported, oldest first */
	struct obs_device_mark *first, *newest;
	struct obs_device_mark *tail; /* the next work may begin here; NULL: it may not */
	/* pool's count of works that this stream waits for, when its last work began */
	uint64_t others;
	uint64_t ended; /* ns, of the last reported work */
};

/* What a context has. Never moves; a free one has no context. */
struct obs_device_pool {
	struct obs_context *context;
	_Atomic uint64_t turn; /* works that began in an earlier turn are forgotten */
	struct obs_device_clock clock;
	bool renewing;
	struct obs_device_mark marks[OBS_DEVICE_MARKS], *free;
	uint32_t made;
	struct obs_device_stream legacy;
	uint64_t legacy_works, stream_works;
	uint32_t look; /* the stream looked at next when no mark is free */
};

extern _Thread_local const struct obs_exec *obs_device_exec; /* what this thread executes with */

/* The driver without the calls of device_calls.h around it. */
const struct obs_driver *obs_device_driver(void);

/* NULL: none is free. Held by the caller. */
struct obs_device_mark *obs_device_mark_take(struct obs_device_pool *pool);
void obs_device_mark_drop(struct obs_device_pool *pool, struct obs_device_mark *mark);

/* The current context's; it is made if need be. NULL: too many contexts, or the driver cannot. */
struct obs_device_pool *obs_device_pool_get(void);
/* NULL: the context has none. */
struct obs_device_pool *obs_device_pool_find(const struct obs_context *context);
/* i < OBS_DEVICE_CONTEXTS. Without a context it is free. */
struct obs_device_pool *obs_device_pool_at(uint32_t i);
/* All works of the context are lost, and all marks are free. */
void obs_device_pool_reset(struct obs_device_pool *pool);
/* Without a free mark: looks at another stream's works. now: ns. */
void obs_device_pool_look(struct obs_device_pool *pool, uint64_t now);
/* Reports all works that are complete. The context is current. */
void obs_device_pool_collect(struct obs_device_pool *pool, uint64_t now);

/* NULL: nothing is known of it. */
struct obs_device_stream *obs_device_stream_find(struct obs_device_pool *pool, CUstream handle);
/* NULL: too many streams. */
struct obs_device_stream *obs_device_stream_get(struct obs_device_pool *pool, CUstream handle);
/* Whether all earlier works of the stream are complete. */
bool obs_device_stream_idle(struct obs_device_stream *stream);
/* Reports works that are complete, at most `max`. all: it is known that all of them are. */
void obs_device_stream_collect(
	struct obs_device_stream *stream, bool all, uint32_t max, uint64_t now);
/* Frees the entry of a destroyed stream once all of its works are reported. */
void obs_device_stream_tidy(struct obs_device_stream *stream);
/* The stream's next work begins at a mark of its own. */
void obs_device_tail_drop(struct obs_device_stream *stream);

#endif
