/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What streams and contexts know of green contexts. A green context is a device's primary context on
 * a part of its multiprocessors. All objects belong to the primary context; a green context has
 * streams of its own, among them its default stream. Its handle as a CUcontext is the same number as
 * its CUgreenCtx. While it is current in a thread, obf_ctx_enter returns the primary context, and
 * stream 0 is its default stream.
 *
 * The objects are static and reused, so a pointer stays valid after the end. Any thread. The
 * functions are in green.c, obf_gates_pass in ctx_event.c.
 */
#ifndef OBF_GREEN_VIEW_H
#define OBF_GREEN_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"

struct obf_context;
struct obf_stream;

/* A number of multiprocessors, and how it can be divided. As CUdevSmResource. */
struct obf_sms {
	uint32_t count, least, alignment;
};

struct obf_green {
	CUgreenCtx handle;
	unsigned long long id; /* cuGreenCtxGetId; never repeats */
	struct obf_context *primary;
	struct obf_stream *stream; /* its default stream */
	struct obf_stream *gate;   /* as that of a context */
	struct obf_sms sms;
	void *backend;          /* the backend's, set by its green_create */
	_Atomic bool converted; /* by cuCtxFromGreenCtx */
};

/* NULL: no such green context. */
struct obf_green *obf_green_find(CUgreenCtx handle);
/* As a context; from then on calls accept the handle as one. */
CUcontext obf_green_context(struct obf_green *green);
/* The primary context of a green context that was converted to `handle`; NULL: there is none. */
struct obf_context *obf_green_primary(CUcontext handle);
/* That context, of a green context. */
struct obf_ctx *obf_green_ctx(const struct obf_green *green);
/* The calling thread's current green context; NULL: none. */
struct obf_green *obf_green_in_thread(const struct obf_ctx *ctx);

/* The green context that is current in the thread, where `ctx` is current; NULL: none. */
static inline struct obf_green *obf_green_current(const struct obf_ctx *ctx)
{
	return ob_likely(!atomic_load_explicit(&ctx->greens, memory_order_relaxed))
		? NULL
		: obf_green_in_thread(ctx);
}

/* The context ends: ends its green contexts. */
void obf_greens_end(struct obf_context *context);

/*
 * A new stream: makes it wait for the events for which its context, or its green context, waits
 * (ctx_event.c).
 */
void obf_gates_pass(struct obf_stream *stream);

#endif
