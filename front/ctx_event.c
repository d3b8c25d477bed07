/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuCtxRecordEvent, cuCtxWaitEvent and their twins for green contexts: an event for all streams of a
 * context. Recording joins the streams in a stream made for that call. Waiting also concerns streams
 * that do not exist yet: the context gets a gate, a stream that waits for the same events, and each
 * new stream waits for what the gate has passed. Nothing here waits for the device.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "front/captured.h"
#include "front/event.h"
#include "front/green_view.h"
#include "front/private.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

/* A context or one of its green contexts. */
struct whole {
	struct obf_context *context;
	struct obf_green *green; /* NULL: the context with all of them */
};

struct list {
	const struct obf_green *green;
	uint64_t *handles;
	size_t n, room;
	bool failed;
};

static void list_add(void *user, struct obf_stream *stream)
{
	struct list *list = user;

	if (list->failed || (list->green && stream->green != list->green))
		return;
	if (list->n == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		uint64_t *more = realloc(list->handles, room * sizeof *more);

		list->failed = !more;
		if (!more)
			return;
		list->handles = more;
		list->room = room;
	}
	list->handles[list->n++] = stream->handle;
}

/* Later work of `to` waits for what is in `from` now. */
static CUresult follow(struct obf_stream *to, struct obf_stream *from)
{
	struct obf_event *event;
	CUresult result = obf_event_mark(from, &event);

	if (result != CUDA_SUCCESS)
		return result;
	result = obf_process.backend->stream_wait_event(to, event);
	obf_event_drop(event);
	return result;
}

/*
 * Calls fn for each stream of the whole but `except`. The list is made first, because fn may open
 * and end objects of the same table.
 */
static CUresult each_stream(const struct whole *whole, const struct obf_stream *except,
	CUresult (*fn)(struct obf_stream *stream, void *arg), void *arg)
{
	OB_CLEANUP(ob_freep) uint64_t *handles = NULL;
	struct obf_ctx *ctx = &whole->context->pub;
	struct list list = { .green = whole->green };
	CUresult result = CUDA_SUCCESS;

	obf_streams_each(ctx, list_add, &list);
	handles = list.handles;
	if (list.failed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!whole->green)
		result = fn(ctx->legacy, arg);
	for (size_t i = 0; i < list.n && result == CUDA_SUCCESS; i++) {
		struct obf_stream *stream = ob_ids_get(&obf_stream_ids, list.handles[i]);

		if (stream && stream != except)
			result = fn(stream, arg);
	}
	return result;
}

static CUresult join(struct obf_stream *stream, void *to)
{
	return follow(to, stream);
}

static CUresult wait(struct obf_stream *stream, void *event)
{
	return obf_process.backend->stream_wait_event(stream, event);
}

static struct obf_stream **gate_of(const struct whole *whole)
{
	return whole->green ? &whole->green->gate : &whole->context->gate;
}

void obf_gates_pass(struct obf_stream *stream)
{
	struct obf_stream *gates[] = { obf_context_of(stream->ctx)->gate,
		stream->green ? stream->green->gate : NULL };

	for (size_t i = 0; i < ob_count(gates); i++)
		if (ob_unlikely(gates[i] != NULL))
			obf_ctx_note(stream->ctx, follow(stream, gates[i]));
}

static CUresult all_record(const struct whole *whole, struct obf_event *event)
{
	struct obf_ctx *ctx = &whole->context->pub;
	struct obf_stream *joined;
	CUresult result;

	if (event->ctx != ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	result = obf_stream_new(ctx, whole->green, CU_STREAM_NON_BLOCKING, 0, &joined);
	if (result != CUDA_SUCCESS)
		return result;
	result = each_stream(whole, joined, join, joined);
	if (result == CUDA_SUCCESS)
		result = obf_event_record(event, joined);
	obf_stream_end(joined->handle); /* its work goes on */
	return result;
}

static CUresult all_wait(const struct whole *whole, struct obf_event *event)
{
	struct obf_stream **gate = gate_of(whole);
	CUresult result = CUDA_SUCCESS;

	if (!atomic_load_explicit(&event->recorded, memory_order_acquire))
		return CUDA_SUCCESS;
	if (!*gate)
		result = obf_stream_new(
			&whole->context->pub, whole->green, CU_STREAM_NON_BLOCKING, 0, gate);
	return result == CUDA_SUCCESS ? each_stream(whole, NULL, wait, event) : result;
}

/* Runs fn with the context current. */
static CUresult within(const struct whole *whole, CUevent handle,
	CUresult (*fn)(const struct whole *whole, struct obf_event *event))
{
	struct obf_event *event;
	CUresult result = obf_context_check(whole->context);

	if (result == CUDA_SUCCESS)
		result = obf_event_find(handle, NULL, &event);
	if (result == CUDA_SUCCESS)
		result = obf_capture_context(&whole->context->pub);
	if (result == CUDA_SUCCESS)
		result = obf_stack_push(whole->context);
	if (result != CUDA_SUCCESS)
		return result;
	result = fn(whole, event);
	obf_stack_pop(NULL);
	return obf_ctx_result(&whole->context->pub, result);
}

static CUresult ctx_call(CUcontext ctx, CUevent event,
	CUresult (*fn)(const struct whole *whole, struct obf_event *event))
{
	struct whole whole;
	CUresult result = obf_ready();

	if (result == CUDA_SUCCESS)
		result = obf_context_find(ctx, &whole.context);
	if (result != CUDA_SUCCESS)
		return result;
	whole.green = obf_green_find((CUgreenCtx)(ctx ? ctx : obf_stack_handle()));
	return within(&whole, event, fn);
}

static CUresult green_call(CUgreenCtx green, CUevent event,
	CUresult (*fn)(const struct whole *whole, struct obf_event *event))
{
	struct whole whole = { .green = obf_green_find(green) };
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!whole.green)
		return CUDA_ERROR_INVALID_CONTEXT;
	whole.context = whole.green->primary;
	return within(&whole, event, fn);
}

CUresult obf_cuCtxRecordEvent(CUcontext ctx, CUevent event)
{
	return ctx_call(ctx, event, all_record);
}

CUresult obf_cuCtxWaitEvent(CUcontext ctx, CUevent event)
{
	return ctx_call(ctx, event, all_wait);
}

CUresult obf_cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event)
{
	return green_call(green, event, all_record);
}

CUresult obf_cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event)
{
	return green_call(green, event, all_wait);
}
