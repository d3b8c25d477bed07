/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_stream: an in-order queue of a context. Of it only the last op is kept (sched.h).
 *
 * References: the handle, each caller that looked it up, and the scheduler while work is pending;
 * the legacy stream is part of its context and is not counted. A per-thread default stream belongs
 * to its thread and goes when that ends. Any thread.
 */
#ifndef OBD_STREAM_H
#define OBD_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "base/ids.h"

#define OBD_STREAM_MAX (1u << 20) /* live streams in the process */

struct obd_ctx;
struct obd_op;

struct obd_stream {
	CUstream handle;
	uint64_t id;
	struct obd_ctx *ctx;
	unsigned flags; /* CU_STREAM_NON_BLOCKING */
	int priority;
	bool legacy, per_thread;
	/* hints, kept for the program to read back */
	CUstreamAttrValue window, policy, domain_map, domain;
	_Atomic int refs;
	struct obd_op *last; /* referenced; NULL when idle; the scheduler's lock */
	struct obd_stream *busy_next, *busy_prev; /* in ctx->busy; the scheduler's lock */
	struct obd_stream *next, *prev;           /* in ctx->streams; the context's lock */
};

/*
 * The stream that a handle names for the calling thread: 0 and CU_STREAM_LEGACY,
 * CU_STREAM_PER_THREAD, or a created one. Referenced. CUDA_ERROR_INVALID_HANDLE when unknown;
 * CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult obd_stream_get(struct obd_ctx *ctx, CUstream handle, struct obd_stream **ret);
void obd_stream_ref(struct obd_stream *stream);
void obd_stream_unref(struct obd_stream *stream);
void obd_stream_free(struct obd_stream *stream); /* the last reference is gone */
/* The context goes: its streams' handles are no longer known. */
void obd_stream_forget(struct obd_ctx *ctx);
void obd_stream_init_legacy(struct obd_ctx *ctx);

/*
 * The start of most public calls: the current context and the stream in it. `same`: the stream must
 * be the current context's.
 */
CUresult obd_stream_enter(
	CUstream handle, bool same, struct obd_ctx **ret_ctx, struct obd_stream **ret);
/* For OB_CLEANUP. */
static inline void obd_stream_unrefp(struct obd_stream **stream)
{
	obd_stream_unref(*stream);
}

#endif
