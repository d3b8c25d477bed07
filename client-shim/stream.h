/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_stream: a stream of the program. Its handle is an id of ours and is its name on the wire too;
 * creating one asks nobody.
 *
 *   0, 1     legacy default stream of the context: 0 on the wire
 *   2        the calling thread's own stream in the context: an ordinary blocking stream made at
 *            first use, ended with the thread
 *   others   made by the program
 *
 * Objects are reused, never returned to the allocator, so that a look-up that races with
 * destruction reads a stream and no other memory. Owned by this file; any thread.
 */
#ifndef OBC_STREAM_H
#define OBC_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client-shim/context.h"
#include "front/front.h"

#define OBC_STREAM_MAX     (1u << 16) /* live streams of a process */
#define OBC_THREAD_STREAMS 8u         /* contexts in which one thread uses its own stream at once */

struct obc_stream {
	uint64_t wire; /* 0: the legacy stream */
	struct obf_ctx *ctx;
	unsigned flags;
	int priority;
	unsigned long long id; /* cuStreamGetId */
	bool per_thread;
	_Atomic uint64_t last, done; /* record numbers, see obc_ctx */
	_Atomic bool untracked;
	CUstreamAttrValue window, policy, domain_map, domain;
	struct obc_stream *next_free;
};

/* What a launch or copy needs of a stream. */
struct obc_lane_of {
	uint64_t wire;
	struct obc_stream *stream; /* NULL: legacy */
	struct obc_ctx *home;
	bool blocking; /* waits for the legacy stream */
};

/*
 * A stream in which the current context `ctx` may put work. CUDA_ERROR_INVALID_HANDLE: destroyed,
 * or of another context.
 */
CUresult obc_stream_enter(CUstream handle, struct obf_ctx *ctx, struct obc_lane_of *ret);
/*
 * Copies, fills, waits: the stream may be of another context than `ctx`, whose default streams the
 * default handles mean.
 */
CUresult obc_stream_any(CUstream handle, struct obf_ctx *ctx, struct obc_lane_of *ret);
/* Work was put into it as record `number`. */
static inline void obc_stream_mark(const struct obc_lane_of *at, uint64_t number)
{
	if (at->stream)
		obc_raise(&at->stream->last, number);
	obc_raise(at->blocking ? &at->home->last_blocking : &at->home->last_other, number);
}
/*
 * All its work before record `number` is complete. waited_as_work: by an operation in the stream,
 * so blocking streams' work is too.
 */
void obc_stream_done(const struct obc_lane_of *at, uint64_t number, bool waited_as_work);
/* The same for an operation in the stream; `launches` as obc_ctx_settled has it. */
void obc_stream_arrived(const struct obc_lane_of *at, uint64_t number, uint64_t launches);
/* Every piece of its work is known to be complete. */
bool obc_stream_idle(const struct obc_lane_of *at);
/* Each stream of the context is, the legacy one included. Takes a lock, looks at every stream. */
bool obc_streams_idle(struct obc_ctx *home);
/* Waits for it. */
CUresult obc_stream_wait(struct obf_ctx *ctx, const struct obc_lane_of *at);
/* The context ends. */
void obc_streams_end(const struct obf_ctx *ctx);
/* A client thread ends: its own streams with it. */
void obc_streams_thread_exit(void);

#endif
