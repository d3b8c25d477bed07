/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The nodes of a graph. An error of the driver is kept until graph_make, whose reply has it.
 * Addresses are checked as for copies and fills. What is freed later is unmapped, and a launch that
 * uses it fails on the device.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/layers/hold.h"
#include "server/layers/quota.h"
#include "server/worker/ops/box.h"
#include "server/worker/ops/graph.h"

/* What one record says of a node. */
struct change {
	struct obs_graph *graph;
	enum obs_node_kind kind;
	uint32_t number;
	CUgraphNode deps[OBP_GRAPH_DEPS_MAX]; /* of a new node */
	uint32_t n_deps;
	struct obs_node *node; /* the one that gets other parameters; NULL: a new one */
};

/* The driver's nodes for the numbers in the record. False: the client broke the protocol. */
static bool deps_get(const struct obs_graph *graph, uint32_t below, const void *deps, uint32_t n,
	CUgraphNode *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t number;

		memcpy(&number, (const uint8_t *)deps + 4 * (size_t)i, sizeof number);
		if (number >= below || number >= graph->n ||
			graph->nodes[number].scope != graph->scope)
			return false;
		ret[i] = graph->nodes[number].driver;
	}
	return true;
}

static CUresult node_room(struct obs_graph *graph)
{
	CUresult result;

	if (graph->n == graph->room) {
		uint32_t room = graph->room ? graph->room * 2 : 64;
		struct obs_node *nodes = realloc(graph->nodes, room * sizeof *nodes);

		if (!nodes)
			return CUDA_ERROR_OUT_OF_MEMORY;
		graph->nodes = nodes;
		graph->room = room;
	}
	result = obs_quota_host(OBS_HOLD_HANDLES, OBS_NODE_BYTES);
	if (result == CUDA_SUCCESS)
		graph->nodes[graph->n] = (struct obs_node){ .scope = graph->scope };
	return result;
}

/* False: there is nothing to do, and the client has been or will be told. */
static bool change_begin(struct obs_exec *x, const struct obp_record *rec, uint64_t id,
	struct change *change, uint32_t n_deps, const void *deps)
{
	struct obs_graph *graph = change->graph = obs_graph_get(x, rec, id);

	change->node = NULL;
	change->n_deps = n_deps;
	if (!graph)
		return false;
	/* The client's front end makes the nodes' context current. */
	if (!x->context && change->kind != OBS_NODE_EMPTY) {
		if (graph->exec)
			obs_async_result(x, rec, CUDA_ERROR_INVALID_CONTEXT);
		else if (graph->failed == CUDA_SUCCESS)
			graph->failed = CUDA_ERROR_INVALID_CONTEXT;
		return false;
	}
	if (graph->exec) {
		if (change->number >= graph->n ||
			graph->nodes[change->number].kind != change->kind ||
			change->kind == OBS_NODE_EMPTY || change->kind == OBS_NODE_CONDITIONAL) {
			obs_violation(x, rec, "the graph has no such node");
			return false;
		}
		change->node = &graph->nodes[change->number];
		return true;
	}
	if (graph->failed != CUDA_SUCCESS)
		return false;
	if (change->number != graph->n || graph->n >= OBP_GRAPH_NODES_MAX ||
		!deps_get(graph, change->number, deps, n_deps, change->deps)) {
		obs_violation(
			x, rec, "a node of a graph is out of order or depends on a later one");
		return false;
	}
	graph->failed = node_room(graph);
	return graph->failed == CUDA_SUCCESS;
}

static void change_end(
	struct obs_exec *x, const struct obp_record *rec, struct change *change, CUresult result)
{
	struct obs_graph *graph = change->graph;

	if (change->node) {
		obs_async_result(x, rec, result);
		return;
	}
	if (result != CUDA_SUCCESS) {
		obs_hold_give(OBS_HOLD_HANDLES, OBS_NODE_BYTES);
		graph->failed = result;
		return;
	}
	graph->nodes[graph->n++].kind = change->kind;
}

/* Where the driver writes the new node. */
static CUgraphNode *node_new(const struct change *change)
{
	return &change->graph->nodes[change->graph->n].driver;
}

void obs_op_graph_empty(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_graph_empty_req *req, const void *deps)
{
	struct change change = { .kind = OBS_NODE_EMPTY, .number = req->node };

	if (change_begin(x, rec, req->graph, &change, req->n_deps, deps))
		change_end(x, rec, &change,
			x->drv->cuGraphAddEmptyNode(
				node_new(&change), change.graph->into, change.deps, change.n_deps));
}

static CUresult attrs_set(
	struct obs_exec *x, CUgraphNode node, const struct obp_graph_kernel_req *req)
{
	CUkernelNodeAttrValue value = { .cooperative = 1 };
	CUresult result = CUDA_SUCCESS;

	if (req->flags & OBP_LAUNCH_COOPERATIVE)
		result = x->drv->cuGraphKernelNodeSetAttribute(
			node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
	value = (CUkernelNodeAttrValue){ .priority = req->priority };
	if (result == CUDA_SUCCESS && req->flags & OBP_LAUNCH_PRIORITY)
		result = x->drv->cuGraphKernelNodeSetAttribute(
			node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
	value = (CUkernelNodeAttrValue){ .clusterDim = { req->cluster[0], req->cluster[1],
						 req->cluster[2] } };
	if (result == CUDA_SUCCESS && (req->cluster[0] | req->cluster[1] | req->cluster[2]))
		result = x->drv->cuGraphKernelNodeSetAttribute(
			node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
	return result;
}

void obs_op_graph_kernel(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_graph_kernel_req *req, const void *params, const void *deps)
{
	struct change change = { .kind = OBS_NODE_KERNEL, .number = req->node };
	size_t param_bytes = req->param_bytes;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)params,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &param_bytes, CU_LAUNCH_PARAM_END };
	CUDA_KERNEL_NODE_PARAMS kernel = {
		.gridDimX = req->grid[0],
		.gridDimY = req->grid[1],
		.gridDimZ = req->grid[2],
		.blockDimX = req->block[0],
		.blockDimY = req->block[1],
		.blockDimZ = req->block[2],
		.sharedMemBytes = req->shared,
		.extra = param_bytes ? extra : NULL,
	};
	struct obs_handle *function;
	CUresult result;

	if (!obs_handle_use(x, rec, &x->session->functions, req->func, &function) ||
		!change_begin(x, rec, req->graph, &change, req->n_deps, deps))
		return;
	kernel.func = function->driver;
	if (change.node) {
		result = x->drv->cuGraphExecKernelNodeSetParams_v2(
			change.graph->exec, change.node->driver, &kernel);
	} else {
		result = x->drv->cuGraphAddKernelNode_v2(
			node_new(&change), change.graph->into, change.deps, change.n_deps, &kernel);
		if (result == CUDA_SUCCESS)
			result = attrs_set(x, *node_new(&change), req);
	}
	change_end(x, rec, &change, result);
}

/* CUDA_ERROR_INVALID_VALUE: a byte is outside of the session's memory, or the form is impossible. */
static CUresult copy_make(
	struct obs_exec *x, const struct obp_graph_copy_req *req, CUDA_MEMCPY3D *ret)
{
	const struct box dst = { req->dst, req->dst_pitch, req->dst_slice, req->width, req->height,
		req->depth };
	const struct box src = { req->src, req->src_pitch, req->src_slice, req->width, req->height,
		req->depth };
	uint64_t dst_pitch = req->height > 1 || req->depth > 1 ? req->dst_pitch : req->width;
	uint64_t src_pitch = req->height > 1 || req->depth > 1 ? req->src_pitch : req->width;

	if (!req->width || !req->height || !req->depth || !dst_pitch || !src_pitch ||
		!box_inside(x, &dst) || !box_inside(x, &src))
		return CUDA_ERROR_INVALID_VALUE;
	if (req->depth > 1 && (req->dst_slice % dst_pitch || req->src_slice % src_pitch))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = req->src,
		.dstDevice = req->dst,
		.srcPitch = src_pitch,
		.dstPitch = dst_pitch,
		.srcHeight = req->depth > 1 ? req->src_slice / src_pitch : req->height,
		.dstHeight = req->depth > 1 ? req->dst_slice / dst_pitch : req->height,
		.WidthInBytes = req->width,
		.Height = req->height,
		.Depth = req->depth,
	};
	return CUDA_SUCCESS;
}

void obs_op_graph_copy(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_graph_copy_req *req, const void *deps)
{
	struct change change = { .kind = OBS_NODE_COPY, .number = req->node };
	CUDA_MEMCPY3D copy;
	CUresult result;

	if (!change_begin(x, rec, req->graph, &change, req->n_deps, deps))
		return;
	result = copy_make(x, req, &copy);
	if (result == CUDA_SUCCESS && change.node)
		result = x->drv->cuGraphExecMemcpyNodeSetParams(
			change.graph->exec, change.node->driver, &copy, x->context->driver);
	else if (result == CUDA_SUCCESS)
		result = x->drv->cuGraphAddMemcpyNode(node_new(&change), change.graph->into,
			change.deps, change.n_deps, &copy, x->context->driver);
	change_end(x, rec, &change, result);
}

void obs_op_graph_fill(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_graph_fill_req *req, const void *deps)
{
	struct box box = { req->dst, req->pitch, 0, 0, req->height, 1 };
	struct change change = { .kind = OBS_NODE_FILL, .number = req->node };
	const CUDA_MEMSET_NODE_PARAMS fill = { req->dst, req->pitch, req->value, req->element,
		req->width, req->height };
	CUresult result = CUDA_SUCCESS;

	if (req->element != 1 && req->element != 2 && req->element != 4)
		obs_violation(x, rec, "the element size of a fill is not 1, 2 or 4 bytes");
	if (!change_begin(x, rec, req->graph, &change, req->n_deps, deps))
		return;
	if (ob_mul_overflows(req->width, req->element, &box.width) || !box.width || !box.height ||
		!box_inside(x, &box))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && change.node)
		result = x->drv->cuGraphExecMemsetNodeSetParams(
			change.graph->exec, change.node->driver, &fill, x->context->driver);
	else if (result == CUDA_SUCCESS)
		result = x->drv->cuGraphAddMemsetNode(node_new(&change), change.graph->into,
			change.deps, change.n_deps, &fill, x->context->driver);
	change_end(x, rec, &change, result);
}

void obs_op_graph_depend(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_graph_depend_req *req, const void *deps)
{
	struct obs_graph *graph = obs_graph_get(x, rec, req->graph);
	CUgraphNode from[OBP_GRAPH_DEPS_MAX], to[OBP_GRAPH_DEPS_MAX];

	if (!graph || graph->failed != CUDA_SUCCESS)
		return;
	if (graph->exec || graph->n == 0 || req->node != graph->n - 1 ||
		!deps_get(graph, req->node, deps, req->n_deps, from)) {
		obs_violation(x, rec, "dependencies of a node that is not the last one");
		return;
	}
	for (uint32_t i = 0; i < req->n_deps; i++)
		to[i] = graph->nodes[req->node].driver;
	graph->failed = x->drv->cuGraphAddDependencies_v2(graph->into, from, to, NULL, req->n_deps);
}

static bool handle_known(const struct obs_graph *graph, uint64_t handle)
{
	for (uint32_t i = 0; i < graph->n_handles; i++)
		if (graph->handles[i] == handle)
			return true;
	return false;
}

void obs_op_graph_conditional(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_graph_conditional_req *req, const void *deps)
{
	struct change change = { .kind = OBS_NODE_CONDITIONAL, .number = req->node };
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	uint64_t bytes = (uint64_t)req->bodies * OBS_NODE_BYTES;
	struct obs_node *node;
	CUresult result;

	if (!change_begin(x, rec, req->graph, &change, req->n_deps, deps))
		return;
	if (!handle_known(change.graph, req->handle) || !req->bodies) {
		obs_violation(
			x, rec, "a conditional node without bodies, or with an unknown handle");
		return;
	}
	params.conditional.handle = req->handle;
	params.conditional.type = (CUgraphConditionalNodeType)req->type;
	params.conditional.size = req->bodies;
	params.conditional.ctx = x->context->driver;
	node = &change.graph->nodes[change.graph->n];
	result = obs_quota_host(OBS_HOLD_HANDLES, bytes);
	if (result == CUDA_SUCCESS) {
		result = x->drv->cuGraphAddNode_v2(&node->driver, change.graph->into, change.deps,
			NULL, change.n_deps, &params);
		if (result != CUDA_SUCCESS)
			obs_hold_give(OBS_HOLD_HANDLES, bytes);
	}
	if (result == CUDA_SUCCESS) {
		node->bodies = params.conditional.phGraph_out;
		node->n_bodies = req->bodies;
	}
	change_end(x, rec, &change, result);
}

void obs_op_graph_body(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_graph_body_req *req)
{
	struct obs_graph *graph = obs_graph_get(x, rec, req->graph);
	const CUgraph *bodies;

	if (!graph || graph->failed != CUDA_SUCCESS)
		return;
	if (graph->exec || req->node >= graph->n ||
		req->branch >= graph->nodes[req->node].n_bodies) {
		obs_violation(x, rec, "the graph has no such body");
		return;
	}
	/* The null driver has no bodies. */
	bodies = graph->nodes[req->node].bodies;
	graph->into = bodies ? bodies[req->branch] : graph->driver;
	graph->scope++;
}
