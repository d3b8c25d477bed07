/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Provided by capture.c and capture_work.c.
 *
 * Stream capture: what is given to a captured stream becomes a node of a graph. A stream's `capture`
 * is not NULL while it is captured; each call that gives work to a stream tests it once and calls
 * one of the functions below. The legacy stream of a context has a mark there while a stream that
 * it waits for is captured, since a call with it would depend on captured work: such a call
 * invalidates these captures with CUDA_ERROR_STREAM_CAPTURE_IMPLICIT.
 *
 * One lock for all captures, under which nodes are added too: several threads may give work to one
 * capture. Errors, for all functions with a stream: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: an
 * earlier error ended the capture. Any thread.
 */
#ifndef OBF_CAPTURED_H
#define OBF_CAPTURED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "front/front.h"

struct obf_event;
struct obf_graph;
struct obf_stream;

/* ---- work ---- */

CUresult obf_capture_launch(struct obf_stream *stream, CUfunction func,
	const struct obf_launch *launch, void **params, void **extra);
/* blocking: not an "Async" call, which is refused. */
CUresult obf_capture_copy(struct obf_stream *stream, const struct obf_copy *copy, bool blocking);
CUresult obf_capture_fill(struct obf_stream *stream, const struct obf_fill *fill);
CUresult obf_capture_value(struct obf_stream *stream, const struct obf_value *value);
CUresult obf_capture_batch(
	struct obf_stream *stream, unsigned count, CUstreamBatchMemOpParams *ops);
CUresult obf_capture_host(struct obf_stream *stream, CUhostFn fn, void *user);
CUresult obf_capture_alloc(
	struct obf_stream *stream, int device, size_t size, CUdeviceptr *ret_addr);
CUresult obf_capture_free(struct obf_stream *stream, CUdeviceptr addr);
CUresult obf_capture_record(struct obf_stream *stream, struct obf_event *event, unsigned flags);
/* The stream or the event is captured. A stream that is not joins the event's capture. */
CUresult obf_capture_wait(struct obf_stream *stream, struct obf_event *event, unsigned flags);
/* The graph becomes a child graph; takes over the graph. */
CUresult obf_capture_graph(struct obf_stream *stream, CUgraph graph);
/* A call that cannot be captured: invalidates the capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */
CUresult obf_capture_refuse(struct obf_stream *stream);

/* ---- ends of objects ---- */

void obf_capture_stream_end(struct obf_stream *stream);
void obf_capture_event_end(struct obf_event *event);

/* ---- calls that captures forbid ---- */

extern _Atomic unsigned obf_captures; /* under way */

CUresult obf_capture_unsafe_check(void);
/* For a call that may be unsafe while a stream is captured, by the mode of capture and thread. */
static inline CUresult obf_capture_unsafe(void)
{
	return ob_likely(atomic_load_explicit(&obf_captures, memory_order_relaxed) == 0)
		? CUDA_SUCCESS
		: obf_capture_unsafe_check();
}
/*
 * Whether a capture adds nodes to the graph or to one in it. Such a graph cannot be destroyed or
 * instantiated.
 */
bool obf_capture_has(const struct obf_graph *graph);
/* For a call that waits for a context: invalidates the captures in it. */
CUresult obf_capture_context(const struct obf_ctx *ctx);
/* CUDA_ERROR_CAPTURED_EVENT; invalidates the capture, if it is under way. */
CUresult obf_capture_event_query(struct obf_event *event);

#endif
