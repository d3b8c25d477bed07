/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/captured.h"

#include <stdlib.h>
#include <string.h>

#include "front/capture_inside.h"
#include "front/event.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

pthread_mutex_t obf_capture_lock = PTHREAD_MUTEX_INITIALIZER;
struct obf_capture obf_capture_implicit;
_Atomic unsigned obf_captures;

static struct obf_capture *captures; /* under the lock */

uint64_t obf_capture_thread(void)
{
	static _Atomic uint64_t last;
	static _Thread_local uint64_t mine;

	if (!mine)
		mine = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
	return mine;
}

struct obf_capture *obf_capture_find(unsigned long long id)
{
	struct obf_capture *capture = captures;

	while (capture && capture->id != id)
		capture = capture->next;
	return capture;
}

/* ---- tails ---- */

CUresult obf_tail_add(struct obf_tail *tail, CUgraphNode node, const CUgraphEdgeData *edge)
{
	for (size_t i = 0; i < tail->n; i++)
		if (tail->nodes[i] == node)
			return CUDA_SUCCESS;
	if (tail->n == tail->room) {
		size_t room = tail->room ? tail->room * 2 : 4;
		CUgraphNode *nodes = realloc(tail->nodes, room * sizeof(CUgraphNode));
		CUgraphEdgeData *edges;

		if (!nodes)
			return CUDA_ERROR_OUT_OF_MEMORY;
		tail->nodes = nodes;
		edges = realloc(tail->edges, room * sizeof *edges);
		if (!edges)
			return CUDA_ERROR_OUT_OF_MEMORY;
		tail->edges = edges;
		tail->room = room;
	}
	tail->nodes[tail->n] = node;
	tail->edges[tail->n++] = edge ? *edge : (CUgraphEdgeData){ .type = 0 };
	return CUDA_SUCCESS;
}

void obf_tail_free(struct obf_tail *tail)
{
	if (!tail)
		return;
	free(tail->nodes);
	free(tail->edges);
}

/* ---- members ---- */

/* Marks the legacy stream of the context if one of the streams that it waits for is captured. */
static void legacy_mark(const struct obf_ctx *ctx)
{
	bool any = false;

	if (!ctx->legacy)
		return;
	for (const struct obf_capture *c = captures; c; c = c->next)
		for (size_t i = 0; i < c->n; i++)
			any |= c->members[i]->ctx == ctx && c->members[i]->blocking;
	ctx->legacy->capture = any ? &obf_capture_implicit : NULL;
}

CUresult obf_capture_join(struct obf_capture *capture, struct obf_stream *stream)
{
	struct obf_tail *tail = calloc(1, sizeof *tail);

	if (tail && capture->n == capture->room) {
		size_t room = capture->room ? capture->room * 2 : 4;
		struct obf_stream **members =
			realloc(capture->members, room * sizeof(struct obf_stream *));

		if (members) {
			capture->members = members;
			capture->room = room;
		}
	}
	if (!tail || capture->n == capture->room) {
		free(tail);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	capture->members[capture->n++] = stream;
	stream->tail = tail;
	stream->capture = capture;
	legacy_mark(stream->ctx);
	return CUDA_SUCCESS;
}

static void member_leave(struct obf_capture *capture, size_t at)
{
	struct obf_stream *stream = capture->members[at];

	capture->members[at] = capture->members[--capture->n];
	obf_tail_free(stream->tail);
	free(stream->tail);
	stream->tail = NULL;
	stream->capture = NULL;
	legacy_mark(stream->ctx);
}

CUresult obf_capture_begin(struct obf_stream *stream, struct obf_graph *graph, bool own,
	CUstreamCaptureMode mode, struct obf_capture **ret)
{
	static unsigned long long last;
	struct obf_capture *capture = calloc(1, sizeof *capture);
	CUresult result;

	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*capture = (struct obf_capture){ .next = captures,
		.id = ++last,
		.graph = graph,
		.own = own,
		.mode = mode,
		.thread = obf_capture_thread(),
		.origin = stream };
	captures = capture;
	result = obf_capture_join(capture, stream);
	if (result != CUDA_SUCCESS) {
		captures = capture->next;
		free(capture);
		return result;
	}
	atomic_fetch_add(&obf_captures, 1);
	*ret = capture;
	return CUDA_SUCCESS;
}

void obf_capture_end(struct obf_capture *capture)
{
	struct obf_capture **at = &captures;

	while (*at != capture)
		at = &(*at)->next;
	*at = capture->next;
	while (capture->n)
		member_leave(capture, capture->n - 1);
	obf_tail_free(&capture->ended);
	free(capture->members);
	free(capture);
	atomic_fetch_sub(&obf_captures, 1);
}

/* ---- checks ---- */

/* Invalidates the captures with a stream that the legacy stream of the context waits for. */
static void implicit_invalidate(const struct obf_ctx *ctx, bool only_blocking)
{
	for (struct obf_capture *c = captures; c; c = c->next)
		for (size_t i = 0; i < c->n; i++)
			c->invalid |= c->members[i]->ctx == ctx &&
				(c->members[i]->blocking || !only_blocking);
}

CUresult obf_capture_enter(struct obf_stream *stream, struct obf_capture **ret)
{
	*ret = stream->capture;
	if (*ret == &obf_capture_implicit) {
		implicit_invalidate(stream->ctx, true);
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	return *ret && !(*ret)->invalid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult obf_capture_refuse(struct obf_stream *stream)
{
	struct obf_capture *capture;
	CUresult result;

	pthread_mutex_lock(&obf_capture_lock);
	result = obf_capture_enter(stream, &capture);
	if (result == CUDA_SUCCESS) {
		capture->invalid = true;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}

CUresult obf_capture_context(const struct obf_ctx *ctx)
{
	bool any = false;

	if (atomic_load_explicit(&obf_captures, memory_order_relaxed) == 0)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&obf_capture_lock);
	for (const struct obf_capture *c = captures; c; c = c->next)
		for (size_t i = 0; i < c->n; i++)
			any |= c->members[i]->ctx == ctx;
	implicit_invalidate(ctx, false);
	pthread_mutex_unlock(&obf_capture_lock);
	return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

bool obf_capture_has(const struct obf_graph *graph)
{
	bool has = false;

	if (atomic_load_explicit(&obf_captures, memory_order_relaxed) == 0)
		return false;
	pthread_mutex_lock(&obf_capture_lock);
	for (const struct obf_capture *c = captures; c; c = c->next)
		for (const struct obf_graph *g = c->graph; g && !has; g = obf_graph_outer(g))
			has = g == graph;
	pthread_mutex_unlock(&obf_capture_lock);
	return has;
}

/* The nodes stay. The end of the capture requires that its stream has waited for them. */
static void tail_keep(struct obf_capture *capture, const struct obf_tail *tail)
{
	for (size_t i = 0; i < tail->n; i++)
		if (obf_tail_add(&capture->ended, tail->nodes[i], NULL) != CUDA_SUCCESS)
			capture->invalid = true;
}

void obf_capture_stream_end(struct obf_stream *stream)
{
	struct obf_capture *capture;

	pthread_mutex_lock(&obf_capture_lock);
	capture = stream->capture == &obf_capture_implicit ? NULL : stream->capture;
	for (size_t i = 0; capture && i < capture->n; i++) {
		if (capture->members[i] != stream)
			continue;
		tail_keep(capture, stream->tail);
		member_leave(capture, i);
		break;
	}
	if (capture && capture->origin == stream) {
		/* No call can end it any more. */
		if (capture->own)
			obf_graph_free(capture->graph);
		obf_capture_end(capture);
	}
	stream->capture = NULL;
	pthread_mutex_unlock(&obf_capture_lock);
}

void obf_capture_event_end(struct obf_event *event)
{
	struct obf_captured *captured;

	pthread_mutex_lock(&obf_capture_lock);
	captured = event->captured;
	event->captured = NULL;
	pthread_mutex_unlock(&obf_capture_lock);
	if (captured)
		obf_tail_free(&captured->tail);
	free(captured);
}

CUresult obf_capture_event_query(struct obf_event *event)
{
	struct obf_capture *capture = NULL;

	pthread_mutex_lock(&obf_capture_lock);
	if (event->captured)
		capture = obf_capture_find(event->captured->id);
	if (capture)
		capture->invalid = true;
	pthread_mutex_unlock(&obf_capture_lock);
	return CUDA_ERROR_CAPTURED_EVENT;
}

/* ---- modes ---- */

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult obf_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUresult result = obf_ready();
	CUstreamCaptureMode before = thread_mode;

	if (result != CUDA_SUCCESS)
		return result;
	if (!mode || (int)*mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
		(int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

CUresult obf_capture_unsafe_check(void)
{
	const uint64_t me = obf_capture_thread();
	CUresult result = CUDA_SUCCESS;

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&obf_capture_lock);
	for (struct obf_capture *c = captures; c; c = c->next) {
		bool forbids = c->thread == me ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
					       : c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
				thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;

		if (!forbids)
			continue;
		c->invalid = true;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}
