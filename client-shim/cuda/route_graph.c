/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Graphs: all nodes are in one context, and their memory is that server's. */
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/graph.h"
#include "client-shim/cuda/route_inside.h"

static bool task_is_at(const struct obf_graph_task *task, uint32_t server)
{
	switch (task->kind) {
	case OBF_TASK_KERNEL:
		obc_route_packed_look(task->func, task->packed, server);
		return true;
	case OBF_TASK_COPY:
		return obc_route_at(task->copy->src, server) == server &&
			obc_route_at(task->copy->dst, server) == server;
	case OBF_TASK_FILL:
		return obc_route_at(task->fill->dst, server) == server;
	default:
		return true;
	}
}

static CUresult graph_refuse(void)
{
	return obf_absent("a graph with memory of two servers",
		"a graph is executed by one server: copy between servers outside of graphs");
}

static CUresult route_graph_make(struct obf_ctx *ctx, const struct obf_graph_part *part, void **ret)
{
	/* No context: its nodes do no work. */
	uint32_t server = ctx ? obc_device_server(ctx->device) : obc_server_number();

	for (uint32_t i = 0; i < part->n; i++)
		if (!task_is_at(&part->tasks[i], server))
			return graph_refuse();
	OBC_VISIT(ctx);
	return obc_graph_make(ctx, part, ret);
}

static CUresult route_graph_set(void *made, uint32_t index, const struct obf_graph_task *task)
{
	if (!task_is_at(task, obc_graph_server(made)))
		return graph_refuse();
	OBC_AT_SERVER(obc_graph_server(made));
	return obc_graph_set(made, index, task);
}

OBC_IN_CONTEXT(CUresult, graph_condition,
	(struct obf_ctx * ctx, void **begun, unsigned start, unsigned flags,
		CUgraphConditionalHandle *ret),
	ctx, obc_graph_condition, ctx, begun, start, flags, ret)
OBC_ROUTE_AT(void, graph_drop, (void *made), obc_graph_server(made), obc_graph_drop, made)

/* Only a graph whose nodes do no work can have been made on another server. */
static bool graph_is_at(const void *made, const struct obf_stream *stream)
{
	return obc_graph_server(made) == obc_device_server(stream->ctx->device);
}

static CUresult route_graph_launch(void *made, struct obf_stream *stream, bool prints)
{
	if (!graph_is_at(made, stream))
		return CUDA_SUCCESS;
	OBC_VISIT(stream->ctx);
	return obc_graph_launch(made, stream, prints);
}

static CUresult route_graph_upload(void *made, struct obf_stream *stream)
{
	if (!graph_is_at(made, stream))
		return CUDA_SUCCESS;
	OBC_VISIT(stream->ctx);
	return obc_graph_upload(made, stream);
}

OBC_ROUTE_AT(CUresult, graph_enable, (void *made, uint32_t index, bool on), obc_graph_server(made),
	obc_graph_enable, made, index, on)

void obc_route_graph_install(struct obf_backend *b)
{
	b->graph_condition = route_graph_condition;
	b->graph_make = route_graph_make;
	b->graph_drop = route_graph_drop;
	b->graph_launch = route_graph_launch;
	b->graph_upload = route_graph_upload;
	b->graph_set = route_graph_set;
	b->graph_enable = route_graph_enable;
}
