/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_stream: what the client keeps of a stream beside the front end's object, and obc_point, a
 * place in a stream. A stream's id is its name on the wire; the legacy stream of the current context
 * is 0 there. Creating a stream costs no round trip.
 *
 * Progress is counted in record numbers, see obc_ctx. The legacy stream has no counts of its own
 * for work that was put in: `last_blocking` of its context counts that of the streams that wait for
 * it, too. Any thread.
 */
#ifndef OBC_STREAM_H
#define OBC_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client-shim/progress.h"
#include "front/backend.h"
#include "front/stream.h"

#define OBC_STREAM_MAX (1u << 16) /* live streams of a session */

struct obc_stream {
	struct obf_stream base;
	struct obc_ctx *home;
	_Atomic uint64_t last;  /* newest work; of no use in the legacy stream */
	_Atomic uint64_t done;  /* all its own work before this record is complete */
	_Atomic bool untracked; /* work went in that is not counted: ask the server */
};

/* A place in a stream: behind record `number`. Stays valid when the stream has ended. */
struct obc_point {
	struct obc_stream *stream; /* its object; another stream's when the id differs */
	struct obc_ctx *home;
	uint64_t id; /* the stream's on the wire */
	uint64_t number;
	bool blocking;
};

static inline struct obc_stream *obc_stream_of(struct obf_stream *stream)
{
	return (struct obc_stream *)stream;
}

/* Work was put into it as record `number`. */
static inline void obc_stream_mark(struct obc_stream *stream, uint64_t number)
{
	if (!stream->base.legacy)
		obc_raise(&stream->last, number);
	obc_raise(stream->base.blocking ? &stream->home->last_blocking : &stream->home->last_other,
		number);
}

/*
 * All its work before record `number` is complete. waited_as_work: by an operation in the stream, so
 * the work of blocking streams is complete, too.
 */
void obc_stream_done(struct obc_stream *stream, uint64_t number, bool waited_as_work);
/* The same for an operation in the stream; `launches` as obc_ctx_settled has it. */
void obc_stream_arrived(struct obc_stream *stream, uint64_t number, uint64_t launches);
/* Every piece of its work is known to be complete. */
bool obc_stream_idle(struct obc_stream *stream);
/* Each stream of the context is, the legacy one included. Takes a lock, looks at every stream. */
bool obc_streams_idle(struct obf_ctx *ctx);

struct obc_point obc_point_at(struct obc_stream *stream, uint64_t number);
/* The work before the point is known to be complete. */
bool obc_point_passed(const struct obc_point *point);
/* The server said that it is complete. */
void obc_point_arrived(const struct obc_point *point);

/* The front end's backend table (front/backend.h). */
CUresult obc_stream_open(struct obf_stream *stream);
void obc_stream_close(struct obf_stream *stream, bool ctx_ended);
CUresult obc_stream_query(struct obf_stream *stream);
CUresult obc_stream_wait(struct obf_stream *stream);
CUresult obc_point_take(struct obf_stream *stream, struct obf_point *ret);
bool obc_point_over(const struct obf_point *point);
void obc_point_drop(struct obf_point *point);

#endif
