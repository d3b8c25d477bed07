/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Work that is given to a captured stream. */
#include <stdlib.h>

#include "front/captured.h"
#include "front/capture_inside.h"
#include "front/event.h"
#include "front/private.h"

/* Adds a node behind the stream's last ones and takes over *params. */
static CUresult node_put(struct obf_stream *stream, struct obf_node_params *params)
{
	struct obf_capture *capture;
	struct obf_tail *tail;
	struct obf_node *node;
	CUresult result;

	pthread_mutex_lock(&obf_capture_lock);
	result = obf_capture_enter(stream, &capture);
	if (result == CUDA_SUCCESS) {
		tail = stream->tail;
		result = obf_node_add(
			capture->graph, params, tail->nodes, tail->edges, tail->n, &node);
		if (result == CUDA_SUCCESS) {
			tail->n = 0;
			result = obf_tail_add(tail, node->handle, NULL);
		}
		capture->invalid |= result != CUDA_SUCCESS;
	} else {
		obf_params_free(params);
	}
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}

/* The same with parameters whose making may have failed. */
static CUresult made_put(CUresult made, struct obf_stream *stream, struct obf_node_params *params)
{
	return made == CUDA_SUCCESS ? node_put(stream, params) : made;
}

/* The call's own checks come first, but a call that the capture refuses says so. */
static CUresult state_check(struct obf_stream *stream)
{
	struct obf_capture *capture;
	CUresult result;

	pthread_mutex_lock(&obf_capture_lock);
	result = obf_capture_enter(stream, &capture);
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}

CUresult obf_capture_launch(struct obf_stream *stream, CUfunction func,
	const struct obf_launch *launch, void **args, void **extra)
{
	struct obf_node_params params;
	CUresult result = state_check(stream);

	if (result != CUDA_SUCCESS)
		return result;
	return made_put(obf_params_launch(stream->ctx, func, launch, args, extra, &params), stream,
		&params);
}

CUresult obf_capture_copy(struct obf_stream *stream, const struct obf_copy *copy, bool blocking)
{
	struct obf_node_params params;

	if (blocking)
		return obf_capture_refuse(stream);
	return made_put(obf_params_copied(stream->ctx, copy, &params), stream, &params);
}

CUresult obf_capture_fill(struct obf_stream *stream, const struct obf_fill *fill)
{
	const CUDA_MEMSET_NODE_PARAMS raw = { fill->dst, fill->pitch, fill->value, fill->element,
		fill->width, fill->height };
	struct obf_node_params params;

	if (fill->blocking)
		return obf_capture_refuse(stream);
	return made_put(obf_params_fill(&raw, stream->ctx->handle, &params), stream, &params);
}

CUresult obf_capture_batch(struct obf_stream *stream, unsigned count, CUstreamBatchMemOpParams *ops)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS batch = { stream->ctx->handle, count, ops, 0 };
	struct obf_node_params params;

	return made_put(obf_params_batch(&batch, &params), stream, &params);
}

CUresult obf_capture_value(struct obf_stream *stream, const struct obf_value *value)
{
	CUstreamBatchMemOpParams op = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32 };

	if (value->wait) {
		op.waitValue.operation = value->bytes == 8 ? CU_STREAM_MEM_OP_WAIT_VALUE_64
							   : CU_STREAM_MEM_OP_WAIT_VALUE_32;
		op.waitValue.address = value->addr;
		op.waitValue.value64 = value->value;
		op.waitValue.flags = value->flags;
	} else {
		op.writeValue.operation = value->bytes == 8 ? CU_STREAM_MEM_OP_WRITE_VALUE_64
							    : CU_STREAM_MEM_OP_WRITE_VALUE_32;
		op.writeValue.address = value->addr;
		op.writeValue.value64 = value->value;
		op.writeValue.flags = value->flags;
	}
	return obf_capture_batch(stream, 1, &op);
}

CUresult obf_capture_host(struct obf_stream *stream, CUhostFn fn, void *user)
{
	const CUDA_HOST_NODE_PARAMS host = { fn, user };
	struct obf_node_params params;

	return made_put(obf_params_host(&host, &params), stream, &params);
}

CUresult obf_capture_alloc(
	struct obf_stream *stream, int device, size_t size, CUdeviceptr *ret_addr)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, device } },
		.bytesize = size,
	};
	struct obf_node_params params;
	CUresult result = state_check(stream);

	if (result != CUDA_SUCCESS)
		return result;
	result = made_put(obf_params_alloc(&alloc, &params), stream, &params);
	if (result == CUDA_SUCCESS)
		*ret_addr = alloc.dptr;
	return result;
}

CUresult obf_capture_free(struct obf_stream *stream, CUdeviceptr addr)
{
	struct obf_node_params params;
	CUresult result = state_check(stream);

	if (result != CUDA_SUCCESS)
		return result;
	return made_put(obf_params_release(addr, &params), stream, &params);
}

CUresult obf_capture_graph(struct obf_stream *stream, CUgraph graph)
{
	struct obf_node_params params;
	CUresult result = obf_params_child(graph, true, &params);

	if (result == CUDA_SUCCESS)
		return node_put(stream, &params);
	obf_graph_free(obf_graph_find(graph));
	return result;
}

/* ---- events ---- */

static CUresult event_node(CUgraphNodeType type, struct obf_stream *stream, struct obf_event *event)
{
	CUevent handle = (CUevent)(uintptr_t)event->handle;
	struct obf_node_params params;

	return made_put(obf_params_event(type, handle, &params), stream, &params);
}

/* The event holds the stream's last nodes. */
static CUresult tail_keep(struct obf_stream *stream, struct obf_event *event)
{
	const struct obf_tail *tail = stream->tail;
	struct obf_captured *captured = calloc(1, sizeof *captured);
	CUresult result = captured ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (size_t i = 0; result == CUDA_SUCCESS && i < tail->n; i++)
		result = obf_tail_add(&captured->tail, tail->nodes[i], &tail->edges[i]);
	if (result != CUDA_SUCCESS) {
		if (captured)
			obf_tail_free(&captured->tail);
		free(captured);
		return result;
	}
	captured->id = stream->capture->id;
	if (event->captured)
		obf_tail_free(&event->captured->tail);
	free(event->captured);
	event->captured = captured;
	return CUDA_SUCCESS;
}

CUresult obf_capture_record(struct obf_stream *stream, struct obf_event *event, unsigned flags)
{
	struct obf_capture *capture;
	CUresult result;

	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_RECORD_EXTERNAL)
		return event_node(CU_GRAPH_NODE_TYPE_EVENT_RECORD, stream, event);
	pthread_mutex_lock(&obf_capture_lock);
	result = obf_capture_enter(stream, &capture);
	if (result == CUDA_SUCCESS)
		result = tail_keep(stream, event);
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}

/* Under the lock. The stream's next node will depend on what the event recorded, too. */
static CUresult wait_join(struct obf_stream *stream, const struct obf_event *event)
{
	const struct obf_captured *captured = event->captured;
	struct obf_capture *capture = captured ? obf_capture_find(captured->id) : NULL;
	CUresult result = CUDA_SUCCESS;

	if (stream->capture) {
		struct obf_capture *own;

		result = obf_capture_enter(stream, &own);
		if (result != CUDA_SUCCESS)
			return result;
		if (!captured) {
			own->invalid = true;
			return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
		}
		if (capture != own) {
			own->invalid = true;
			if (capture)
				capture->invalid = true;
			return capture ? CUDA_ERROR_STREAM_CAPTURE_MERGE
				       : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
		}
	} else {
		if (!capture)
			return CUDA_ERROR_CAPTURED_EVENT; /* its capture has ended */
		if (capture->invalid)
			return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		if (stream->legacy) {
			capture->invalid = true;
			return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
		result = obf_capture_join(capture, stream);
	}
	for (size_t i = 0; result == CUDA_SUCCESS && i < captured->tail.n; i++)
		result = obf_tail_add(
			stream->tail, captured->tail.nodes[i], &captured->tail.edges[i]);
	return result;
}

CUresult obf_capture_wait(struct obf_stream *stream, struct obf_event *event, unsigned flags)
{
	CUresult result;

	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_WAIT_EXTERNAL)
		return stream->capture ? event_node(CU_GRAPH_NODE_TYPE_WAIT_EVENT, stream, event)
				       : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&obf_capture_lock);
	result = wait_join(stream, event);
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}
