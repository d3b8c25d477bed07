/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Graphs: the client sends a part of a graph node by node, and the driver makes a graph of it. */
#include "server/worker/ops/graph.h"

#include <stdlib.h>

#include "server/layers/hold.h"
#include "server/layers/quota.h"

struct obs_graph *obs_graph_get(struct obs_exec *x, const struct obp_record *rec, uint64_t id)
{
	struct obs_handle *handle = obs_handles_find(&x->session->graphs, id);

	if (handle && handle->driver)
		return handle->driver;
	obs_exec_result(x, rec, CUDA_ERROR_INVALID_HANDLE);
	return NULL;
}

static uint64_t charge_of(const struct obs_graph *graph)
{
	uint64_t n = graph->n;

	for (uint32_t i = 0; i < graph->n; i++)
		n += graph->nodes[i].n_bodies;
	return n * OBS_NODE_BYTES + (uint64_t)graph->n_handles * OBS_CONDITION_BYTES;
}

static void graph_end(struct obs_exec *x, struct obs_graph *graph)
{
	if (graph->exec)
		x->drv->cuGraphExecDestroy(graph->exec);
	x->drv->cuGraphDestroy(graph->driver);
	obs_hold_give(OBS_HOLD_HANDLES, charge_of(graph));
	free(graph->handles);
	free(graph->nodes);
	free(graph);
}

void obs_op_graph_begin(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_graph_begin_req *req)
{
	struct obs_handle handle = { .context = x->context };
	CUresult result = obs_handle_room(x);
	struct obs_graph *graph = result == CUDA_SUCCESS ? calloc(1, sizeof *graph) : NULL;

	if (result == CUDA_SUCCESS && !graph)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = x->drv->cuGraphCreate(&graph->driver, 0);
	if (result != CUDA_SUCCESS) {
		free(graph);
		graph = NULL;
	} else {
		graph->into = graph->driver;
	}
	handle.driver = graph;
	if (!obs_handles_put(&x->session->graphs, req->graph, &handle))
		obs_violation(x, rec, "the graph's id is in use or out of range");
	/* graph_make reports it. */
	obs_async_result(x, rec, result);
}

void obs_op_graph_drop(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_graph_drop_req *req)
{
	struct obs_handle handle;

	(void)rec;
	if (obs_handles_remove(&x->session->graphs, req->graph, &handle) && handle.driver)
		graph_end(x, handle.driver);
}

struct forget {
	struct obs_exec *x;
	const struct obs_context *context;
};

static void forget_one(void *user, struct obs_handle *handle)
{
	const struct forget *forget = user;
	struct obs_graph *graph = handle->driver;

	if (handle->context != forget->context)
		return;
	obs_handles_remove(&forget->x->session->graphs,
		atomic_load_explicit(&handle->id, memory_order_relaxed), NULL);
	if (graph)
		graph_end(forget->x, graph);
}

void obs_graphs_forget(struct obs_exec *x, const struct obs_context *context)
{
	struct forget forget = { x, context };

	obs_handles_each(&x->session->graphs, forget_one, &forget);
}

/* ---- conditions ---- */

static CUresult condition_make(struct obs_exec *x, struct obs_graph *graph,
	const struct obp_graph_condition_req *req, CUgraphConditionalHandle *ret)
{
	CUgraphConditionalHandle *handles;
	CUresult result;

	if (!x->context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (graph->n_handles >= OBP_GRAPH_CONDITIONS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handles = realloc(graph->handles, (graph->n_handles + 1) * sizeof *handles);
	if (!handles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->handles = handles;
	result = obs_quota_host(OBS_HOLD_HANDLES, OBS_CONDITION_BYTES);
	if (result != CUDA_SUCCESS)
		return result;
	result = x->drv->cuGraphConditionalHandleCreate(
		ret, graph->driver, x->context->driver, req->start, req->flags);
	if (result == CUDA_SUCCESS)
		handles[graph->n_handles++] = *ret;
	else
		obs_hold_give(OBS_HOLD_HANDLES, OBS_CONDITION_BYTES);
	return result;
}

void obs_op_graph_condition(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_graph_condition_req *req)
{
	struct obs_graph *graph = obs_graph_get(x, rec, req->graph);
	struct obp_graph_condition_rep rep = { 0 };
	CUgraphConditionalHandle handle = 0;
	CUresult result;

	if (!graph)
		return;
	result = condition_make(x, graph, req, &handle);
	rep.handle = handle;
	obs_reply(x, rec, result, &rep, sizeof rep);
}

/* ---- the whole ---- */

void obs_op_graph_make(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_graph_make_req *req)
{
	struct obs_graph *graph = obs_graph_get(x, rec, req->graph);
	unsigned long long flags = req->flags & OBP_GRAPH_PRIORITIES
		? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
		: 0;
	CUresult result;

	if (!graph)
		return;
	result = graph->failed;
	if (graph->exec || (result == CUDA_SUCCESS && graph->n != req->nodes)) {
		obs_violation(x, rec, "the graph is made, or has another number of nodes");
		return;
	}
	if (result == CUDA_SUCCESS)
		result = x->drv->cuGraphInstantiateWithFlags(&graph->exec, graph->driver, flags);
	if (result != CUDA_SUCCESS) {
		graph->exec = NULL;
		graph->failed = result;
	}
	obs_reply(x, rec, result, NULL, 0);
}

/* A graph that was made. NULL: the result was reported. */
static struct obs_graph *made_get(struct obs_exec *x, const struct obp_record *rec, uint64_t id)
{
	struct obs_graph *graph = obs_graph_get(x, rec, id);

	if (!graph || graph->exec)
		return graph;
	obs_violation(x, rec, "the graph is not made");
	return NULL;
}

void obs_op_graph_enable(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_graph_enable_req *req)
{
	struct obs_graph *graph = made_get(x, rec, req->graph);

	if (!graph)
		return;
	if (req->node >= graph->n || graph->nodes[req->node].kind == OBS_NODE_EMPTY ||
		graph->nodes[req->node].kind == OBS_NODE_CONDITIONAL) {
		obs_violation(x, rec, "the graph has no such node");
		return;
	}
	obs_async_result(x, rec,
		x->drv->cuGraphNodeSetEnabled(
			graph->exec, graph->nodes[req->node].driver, req->on != 0));
}

void obs_op_graph_launch(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_graph_launch_req *req)
{
	struct obs_graph *graph = made_get(x, rec, req->graph);
	CUstream stream;

	if (!graph || !obs_stream_get(x, rec, req->stream, &stream))
		return;
	if (ob_unlikely(req->flags & OBP_LAUNCH_PRINTS))
		atomic_store_explicit(&x->session->prints, true, memory_order_relaxed);
	obs_async_result(x, rec, x->drv->cuGraphLaunch(graph->exec, stream));
}

void obs_op_graph_upload(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_graph_upload_req *req)
{
	struct obs_graph *graph = made_get(x, rec, req->graph);
	CUstream stream;

	if (graph && obs_stream_get(x, rec, req->stream, &stream))
		obs_async_result(x, rec, x->drv->cuGraphUpload(graph->exec, stream));
}
