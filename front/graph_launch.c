/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Launches of executable graphs, and the nodes that are given to a stream in turn. */
#include "front/captured.h"
#include "front/event.h"
#include "front/fill.h"
#include "front/graph_exec.h"
#include "front/mirror.h"
#include "front/private.h"
#include "front/stream.h"
#include "front/value.h"
#include "protocol/obf_calls.h"

/* ---- one node ---- */

static CUresult kernel_run(
	const struct obf_exec *exec, struct obf_stream *stream, struct obf_node_params *params)
{
	struct obf_func *func;
	uint8_t *args;
	CUresult result = obf_params_func(params, &func);

	if (result == CUDA_SUCCESS)
		result = obf_exec_args(exec, &params->kernel, func, &args);
	if (result == CUDA_SUCCESS)
		result = obf_mirrors_launch(stream, func, args);
	return result == CUDA_SUCCESS
		? obf_process.backend->launch(stream, func, &params->kernel.launch, args)
		: result;
}

static bool is_pageable(uint64_t addr)
{
	return obf_mem_classify(addr, 1, NULL).kind == OBF_PLACE_HOST;
}

/*
 * host_writes: a node before it in the graph may write host memory. Host memory is read when the
 * stream has come here; a backend may read pageable memory at once, so the stream is waited for.
 */
static CUresult copy_run(struct obf_stream *stream, const struct obf_copy *copy, bool host_writes)
{
	const struct obf_backend *backend = obf_process.backend;
	bool row = copy->height == 1 && copy->depth == 1;
	CUresult result = CUDA_SUCCESS;

	if (!copy->src_device && (host_writes || is_pageable(copy->src)))
		result = backend->stream_wait(stream);
	if (result == CUDA_SUCCESS)
		result = obf_mirrors_copy(stream, copy->src_device, copy->src);
	if (result != CUDA_SUCCESS)
		return result;
	if (row && copy->dst_device && !copy->src_device)
		result = backend->write(
			stream, copy->dst, (const void *)(uintptr_t)copy->src, copy->width, false);
	else if (row && copy->src_device && !copy->dst_device)
		result = backend->read(
			stream, (void *)(uintptr_t)copy->dst, copy->src, copy->width, false);
	else
		result = backend->copy(stream, copy, false);
	return result == CUDA_SUCCESS ? obf_mirrors_copied(stream, copy->dst_device, copy->dst)
				      : result;
}

static CUresult batch_run(struct obf_stream *stream, const struct obf_batch_params *batch)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned i = 0; i < batch->count && result == CUDA_SUCCESS; i++) {
		struct obf_value value;

		result = obf_value_take(stream->ctx, &batch->ops[i], &value);
		if (result == CUDA_SUCCESS && value.bytes)
			result = obf_process.backend->stream_value(stream, &value);
	}
	return result;
}

static CUresult event_run(struct obf_stream *stream, const struct obf_node_params *params)
{
	struct obf_event *event = obf_event_look(params->event);

	if (!event || event->ctx != stream->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	return params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? obf_event_record(event, stream)
							       : obf_event_wait_put(event, stream);
}

static CUresult node_run(const struct obf_exec *exec, struct obf_stream *stream,
	struct obf_node_params *params, bool *host_writes)
{
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernel_run(exec, stream, params);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		if (params->copy.empty)
			return CUDA_SUCCESS;
		if (!params->copy.copy.dst_device) {
			CUresult result = copy_run(stream, &params->copy.copy, *host_writes);

			*host_writes = true;
			return result;
		}
		return copy_run(stream, &params->copy.copy, *host_writes);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return params->fill.empty
			? CUDA_SUCCESS
			: obf_fill_put(stream, &params->fill.fill, params->fill.device);
	case CU_GRAPH_NODE_TYPE_HOST:
		*host_writes = true;
		return obf_process.backend->host_function(stream,
			&(struct obf_host_function){
				.fn = params->host.fn,
				.user = params->host.userData,
				.ctx = stream->ctx,
			});
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return event_run(stream, params);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return batch_run(stream, &params->batch);
	default:
		return CUDA_SUCCESS; /* orders only */
	}
}

/* ---- launches ---- */

/* A launch waits for the one before it. Within a stream it does so anyway. */
static CUresult turn_wait(struct obf_exec *exec, struct obf_stream *stream)
{
	struct obf_event *done = exec->done ? obf_event_look(exec->done) : NULL;

	return done && done->ctx == stream->ctx && exec->stream_id != stream->id
		? obf_event_wait_put(done, stream)
		: CUDA_SUCCESS;
}

static CUresult turn_end(struct obf_exec *exec, struct obf_stream *stream)
{
	CUresult result = CUDA_SUCCESS;
	struct obf_event *done;

	if (!exec->done)
		result = obf_event_new(stream->ctx, CU_EVENT_DISABLE_TIMING, NULL, &exec->done);
	done = result == CUDA_SUCCESS ? obf_event_look(exec->done) : NULL;
	exec->stream_id = stream->id;
	return done && done->ctx == stream->ctx ? obf_event_record(done, stream) : result;
}

static CUresult memory_pass(struct obf_exec *exec)
{
	bool auto_free = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	CUresult result = CUDA_SUCCESS;

	if (!exec->has_memory)
		return CUDA_SUCCESS;
	for (uint32_t i = 0; i < exec->n && result == CUDA_SUCCESS; i++)
		result = obf_graph_memory_check(&exec->nodes[exec->order[i]].params, auto_free);
	for (uint32_t i = 0; i < exec->n && result == CUDA_SUCCESS; i++)
		obf_graph_memory_apply(&exec->nodes[exec->order[i]].params);
	return result;
}

static CUresult part_run(struct obf_exec *exec, struct obf_exec_part *part,
	struct obf_stream *stream, bool *host_writes)
{
	CUresult result = CUDA_SUCCESS;

	if (part->made) {
		if (ob_unlikely(part->mirrored &&
			    part->mirror_ends !=
				    atomic_load_explicit(&obf_mirror_ends, memory_order_relaxed)))
			result = obf_exec_part_renew(exec, part);
		if (result != CUDA_SUCCESS)
			return result;
		if (ob_unlikely(atomic_load_explicit(&obf_mirrors, memory_order_relaxed) > 0))
			result = obf_mirrors_launch_replaced(stream, part->mirrored);
		return result == CUDA_SUCCESS
			? obf_process.backend->graph_launch(part->made, stream, part->prints)
			: result;
	}
	for (uint32_t i = 0; i < part->n && result == CUDA_SUCCESS; i++) {
		struct obf_exec_node *node = &exec->nodes[exec->order[part->first + i]];

		if (!node->disabled)
			result = node_run(exec, stream, &node->params, host_writes);
	}
	return result;
}

CUresult obf_exec_launch(struct obf_exec *exec, struct obf_stream *stream)
{
	/* The backend orders launches of a single prepared part. */
	bool turns = exec->n_parts > 1 || (exec->n_parts == 1 && !exec->parts[0].made);
	bool host_writes = false;
	CUresult result;

	if (exec->ctx && exec->ctx != stream->ctx)
		return CUDA_ERROR_INVALID_VALUE;
	result = memory_pass(exec);
	if (turns && result == CUDA_SUCCESS)
		result = turn_wait(exec, stream);
	for (uint32_t i = 0; i < exec->n_parts && result == CUDA_SUCCESS; i++)
		result = part_run(exec, &exec->parts[i], stream, &host_writes);
	if (turns && result == CUDA_SUCCESS)
		result = turn_end(exec, stream);
	return result;
}

/* Launched into a captured stream, it becomes a child graph. */
static CUresult capture_launch(struct obf_exec *exec, struct obf_stream *stream)
{
	CUgraph graph;
	CUresult result = exec->graph ? CUDA_ERROR_NOT_SUPPORTED : obf_exec_graph(exec, &graph);

	return result == CUDA_SUCCESS ? obf_capture_graph(stream, graph) : result;
}

struct launch {
	struct obf_exec *exec;
	struct obf_stream *stream;
};

static CUresult launch_in(struct obf_ctx *ctx, void *user)
{
	const struct launch *launch = user;

	(void)ctx;
	return obf_exec_launch(launch->exec, launch->stream);
}

/* With the stream's context current, which kernels need. */
static CUresult launch_within(struct obf_exec *exec, struct obf_stream *stream)
{
	struct launch launch = { exec, stream };

	return obf_ctx_run(stream->ctx, launch_in, &launch);
}

CUresult obf_cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
	struct obf_exec *exec = obf_exec_find(handle);
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(stream_handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_unlikely(stream->capture != NULL))
		return capture_launch(exec, stream);
	result = obf_ctx_result(stream->ctx, launch_within(exec, stream));
	return obf_launch_end(result, stream_handle);
}

CUresult obf_cuGraphUpload(CUgraphExec handle, CUstream stream_handle)
{
	struct obf_exec *exec = obf_exec_find(handle);
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(stream_handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!exec || (exec->ctx && exec->ctx != stream->ctx))
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture)
		return obf_capture_refuse(stream);
	for (uint32_t i = 0; i < exec->n_parts && result == CUDA_SUCCESS; i++)
		if (exec->parts[i].made)
			result = obf_process.backend->graph_upload(exec->parts[i].made, stream);
	return obf_ctx_result(stream->ctx, result);
}
