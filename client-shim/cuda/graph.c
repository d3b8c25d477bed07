/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/ids.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/cuda/stream.h"
#include "client-shim/session/log.h"
#include "client-shim/session/server.h"
#include "protocol/obc_calls.h"

#define GRAPH_KIND 0x30 /* of the ids that name parts on the wire */

struct obc_graph {
	uint64_t id;
	uint32_t server; /* its number */
};

static struct ob_ids graph_ids = OB_IDS_INIT(GRAPH_KIND, OBC_GRAPH_MAX);

/* ---- nodes ---- */

static uint32_t launch_flags(const struct obf_graph_task *task)
{
	return (task->launch->cooperative ? OBP_LAUNCH_COOPERATIVE : 0) |
		(task->launch->has_priority ? OBP_LAUNCH_PRIORITY : 0);
}

static CUresult copy_send(uint64_t graph, uint32_t node, const struct obf_copy *c, uint32_t n_deps,
	const uint32_t *deps)
{
	return obc_call_op_graph_copy(graph, c->dst, c->src, c->dst_pitch, c->src_pitch,
		c->dst_slice, c->src_slice, c->width, c->height, c->depth, node, n_deps, deps);
}

/* Sends one node with the dependencies that fit; *ret_sent is their number. */
static CUresult task_send(
	uint64_t graph, uint32_t node, const struct obf_graph_task *task, uint32_t *ret_sent)
{
	uint32_t n = ob_min(task->n_deps, (uint32_t)OBP_GRAPH_DEPS_MAX);
	const struct obf_launch *launch = task->launch;
	const struct obf_fill *fill = task->fill;

	*ret_sent = n;
	switch (task->kind) {
	case OBF_TASK_KERNEL:
		return obc_call_op_graph_kernel(graph, task->func->backend_id, node, launch->grid,
			launch->block, launch->cluster, launch->dynamic_shared, launch_flags(task),
			launch->priority, task->func->param_bytes, n, task->packed, task->deps);
	case OBF_TASK_COPY:
		return copy_send(graph, node, task->copy, n, task->deps);
	case OBF_TASK_CONDITIONAL:
		return obc_call_op_graph_conditional(graph, task->conditional.handle, node,
			(uint32_t)task->conditional.type, task->conditional.bodies, n, task->deps);
	case OBF_TASK_FILL:
		return obc_call_op_graph_fill(graph, fill->dst, fill->pitch, fill->width,
			fill->height, fill->value, fill->element, node, n, task->deps);
	default:
		return obc_call_op_graph_empty(graph, node, n, task->deps);
	}
}

static CUresult task_add(uint64_t graph, uint32_t node, const struct obf_graph_task *task)
{
	uint32_t sent;
	CUresult result = task_send(graph, node, task, &sent);

	while (result == CUDA_SUCCESS && sent < task->n_deps) {
		uint32_t n = ob_min(task->n_deps - sent, (uint32_t)OBP_GRAPH_DEPS_MAX);

		result = obc_call_op_graph_depend(graph, node, n, task->deps + sent);
		sent += n;
	}
	return result;
}

/* ---- the backend's functions ---- */

static CUresult graph_begin(struct obc_graph **ret)
{
	struct obc_graph *graph = calloc(1, sizeof *graph);
	CUresult result;

	if (graph) {
		graph->id = ob_ids_add(&graph_ids, graph);
		graph->server = obc_server_number();
	}
	if (!graph || !graph->id) {
		free(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = obc_call_op_graph_begin(graph->id);
	if (result == CUDA_SUCCESS)
		*ret = graph;
	else
		obc_graph_drop(graph);
	return result;
}

CUresult obc_graph_condition(struct obf_ctx *ctx, void **begun, unsigned start, unsigned flags,
	CUgraphConditionalHandle *ret)
{
	struct obc_graph *graph = *begun;
	CUresult result = graph ? CUDA_SUCCESS : graph_begin(&graph);

	(void)ctx;
	if (result != CUDA_SUCCESS)
		return result;
	*begun = graph;
	return obc_call_op_graph_condition(graph->id, start, flags, ret);
}

/* Says in which body the next tasks are, where that changes. */
static CUresult body_enter(uint64_t graph, const struct obf_graph_part *part, uint32_t i)
{
	const struct obf_graph_task *task = &part->tasks[i];

	if (task->parent == UINT32_MAX ||
		(part->tasks[i - 1].parent == task->parent &&
			part->tasks[i - 1].branch == task->branch))
		return CUDA_SUCCESS;
	return obc_call_op_graph_body(graph, task->parent, task->branch);
}

CUresult obc_graph_make(struct obf_ctx *ctx, const struct obf_graph_part *part, void **ret)
{
	struct obc_graph *graph = part->begun;
	CUresult result = CUDA_SUCCESS;

	(void)ctx;
	if (part->n > OBP_GRAPH_NODES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!graph)
		result = graph_begin(&graph);
	if (result != CUDA_SUCCESS)
		return result;
	for (uint32_t i = 0; i < part->n && result == CUDA_SUCCESS; i++) {
		result = body_enter(graph->id, part, i);
		if (result == CUDA_SUCCESS)
			result = task_add(graph->id, i, &part->tasks[i]);
	}
	if (result == CUDA_SUCCESS)
		result = obc_call_op_graph_make(
			graph->id, part->n, part->priorities ? OBP_GRAPH_PRIORITIES : 0);
	if (result == CUDA_SUCCESS)
		*ret = graph;
	else if (!part->begun)
		obc_graph_drop(graph);
	return result;
}

uint32_t obc_graph_server(const void *made)
{
	return ((const struct obc_graph *)made)->server;
}

/* The record is written before the id may be used again. */
void obc_graph_drop(void *made)
{
	struct obc_graph *graph = made;

	ob_ids_end(&graph_ids, graph->id);
	obc_call_op_graph_drop(graph->id);
	ob_ids_recycle(&graph_ids, graph->id);
	free(graph);
}

CUresult obc_graph_launch(void *made, struct obf_stream *base, bool prints)
{
	struct obc_stream *stream = obc_stream_of(base);
	const struct obc_graph *graph = made;
	struct obp_graph_launch_req *req;
	bool shared = obc_shared_exist();
	CUresult result = CUDA_SUCCESS;
	struct obc_slot slot;

	if (shared)
		result = obc_shared_launch(stream);
	if (result != CUDA_SUCCESS)
		return result;
	req = obc_log_begin(&slot, OBP_OP_GRAPH_LAUNCH, sizeof *req);
	if (req) {
		*req = (struct obp_graph_launch_req){ .graph = graph->id,
			.stream = base->handle,
			.flags = prints ? OBP_LAUNCH_PRINTS : 0 };
		obc_stream_mark(stream, slot.number);
		result = obc_log_commit(&slot);
	} else {
		result = obc_log_error();
	}
	if (shared)
		obc_shared_launched();
	return result;
}

CUresult obc_graph_upload(void *made, struct obf_stream *base)
{
	struct obc_stream *stream = obc_stream_of(base);
	const struct obc_graph *graph = made;
	struct obp_graph_upload_req *req;
	struct obc_slot slot;

	req = obc_log_begin(&slot, OBP_OP_GRAPH_UPLOAD, sizeof *req);
	if (!req)
		return obc_log_error();
	*req = (struct obp_graph_upload_req){ .graph = graph->id, .stream = base->handle };
	obc_stream_mark(stream, slot.number);
	return obc_log_commit(&slot);
}

CUresult obc_graph_set(void *made, uint32_t index, const struct obf_graph_task *task)
{
	const struct obc_graph *graph = made;
	uint32_t sent;

	return task_send(graph->id, index, task, &sent);
}

CUresult obc_graph_enable(void *made, uint32_t index, bool on)
{
	const struct obc_graph *graph = made;

	return obc_call_op_graph_enable(graph->id, index, on);
}
