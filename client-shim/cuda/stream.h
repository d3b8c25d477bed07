/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_stream: the client's part of a stream, beside the front end's object, and obc_point, a point
 * of a stream. A stream's id is its name on the wire, where 0 is the legacy stream of the current
 * context. Creating a stream needs no round trip.
 *
 * Progress is counted in record numbers, see obc_ctx. The legacy stream does not use `last`:
 * `last_blocking` of its context counts its work together with that of the streams that wait for
 * it. Any thread.
 */
#ifndef OBC_STREAM_H
#define OBC_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client-shim/cuda/progress.h"
#include "client-shim/cuda/watch.h"
#include "front/backend.h"
#include "front/stream.h"

#define OBC_STREAM_MAX (1u << 16) /* live streams of a session */

/*
 * A recording of an event. Two threads that record at the same time may leave a mixture of two,
 * which matches no recording.
 */
struct obc_recording {
	_Atomic uint64_t event, number; /* handle; record. 0: none */
};

struct obc_stream {
	struct obf_stream base;
	struct obc_ctx *home;
	_Atomic uint64_t last;  /* newest work; unused in the legacy stream */
	_Atomic uint64_t done;  /* all work of the stream before this record is complete */
	_Atomic bool untracked; /* some work is not counted: the server must be asked */
	uint64_t uploads_seen;  /* of shared memory; of client-shim/cuda/shared.c, under its lock */
	struct obc_watch watch;
	/* the last two recordings of events in this stream, the newer one first (event.c) */
	struct obc_recording recordings[2];
};

/* A point of a stream: after record `number`. Stays valid after the stream was destroyed. */
struct obc_point {
	/* its object; if the id differs, another stream uses the object now */
	struct obc_stream *stream;
	struct obc_ctx *home;
	uint64_t id; /* the stream's id on the wire */
	uint64_t number;
	bool blocking;
};

static inline struct obc_stream *obc_stream_of(struct obf_stream *stream)
{
	return (struct obc_stream *)stream;
}

/* Record `number` has put work into the stream. */
static inline void obc_stream_mark(struct obc_stream *stream, uint64_t number)
{
	if (!stream->base.legacy)
		obc_raise(&stream->last, number);
	obc_raise(stream->base.blocking ? &stream->home->last_blocking : &stream->home->last_other,
		number);
}

/*
 * All work of the stream before record `number` is complete. waited_as_work: an operation in the
 * stream showed this, so for the legacy stream the work of blocking streams is complete as well.
 */
void obc_stream_done(struct obc_stream *stream, uint64_t number, bool waited_as_work);
/* The same for an operation in the stream; `launches` as for obc_ctx_settled. */
void obc_stream_arrived(struct obc_stream *stream, uint64_t number, uint64_t launches);
/* Whether all work of the stream is known to be complete. */
bool obc_stream_idle(struct obc_stream *stream);
/*
 * Whether all streams of the context are idle, including the legacy stream. Takes a lock and checks
 * every stream.
 */
bool obc_streams_idle(struct obf_ctx *ctx);

struct obc_point obc_point_at(struct obc_stream *stream, uint64_t number);
/* Whether the work before the point is known to be complete. */
bool obc_point_passed(const struct obc_point *point);
/* The server has reported that the work before the point is complete. */
void obc_point_arrived(const struct obc_point *point);

/* For struct obf_backend. */
CUresult obc_stream_open(struct obf_stream *stream);
void obc_stream_close(struct obf_stream *stream, bool ctx_ended);
CUresult obc_stream_query(struct obf_stream *stream);
CUresult obc_stream_wait(struct obf_stream *stream);
CUresult obc_point_take(struct obf_stream *stream, struct obf_point *ret);
bool obc_point_over(const struct obf_point *point);
void obc_point_drop(struct obf_point *point);

#endif
