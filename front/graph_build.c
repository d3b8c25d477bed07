/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Calls that make graphs and add nodes and edges. Wrong handles are CUDA_ERROR_INVALID_VALUE. */
#include "front/captured.h"
#include "front/graph.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

/* Finishes a call that adds a node. made: the result of making the parameters. */
static CUresult add(CUresult made, struct obf_node_params *params, CUgraphNode *ret, CUgraph handle,
	const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n)
{
	struct obf_graph *graph = obf_graph_find(handle);
	struct obf_node *node;
	CUresult result = made;

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph || !ret) {
		obf_params_free(params);
		return CUDA_ERROR_INVALID_VALUE;
	}
	result = obf_node_add(graph, params, deps, edges, n, &node);
	if (result == CUDA_SUCCESS)
		*ret = node->handle;
	return result;
}

/* Each call: makes the parameters, then adds the node. */
#define ADD(make)                      \
	struct obf_node_params params; \
	CUresult result = obf_ready(); \
                                       \
	return result == CUDA_SUCCESS ? add(make, &params, ret, graph, deps, NULL, n) : result

CUresult obf_cuGraphAddKernelNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps,
	size_t n, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	ADD(obf_params_kernel(kernel, &params));
}

CUresult obf_cuGraphAddKernelNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps,
	size_t n, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel)
{
	CUDA_KERNEL_NODE_PARAMS now;

	return obf_cuGraphAddKernelNode_v2(
		ret, graph, deps, n, kernel ? obf_kernel_params_now(kernel, &now) : NULL);
}

CUresult obf_cuGraphAddMemcpyNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps,
	size_t n, const CUDA_MEMCPY3D *copy, CUcontext ctx)
{
	ADD(obf_params_copy(copy, ctx, &params));
}

CUresult obf_cuGraphAddMemsetNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps,
	size_t n, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext ctx)
{
	ADD(obf_params_fill(fill, ctx, &params));
}

CUresult obf_cuGraphAddHostNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps, size_t n,
	const CUDA_HOST_NODE_PARAMS *host)
{
	ADD(obf_params_host(host, &params));
}

CUresult obf_cuGraphAddChildGraphNode(
	CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps, size_t n, CUgraph child)
{
	ADD(obf_params_child(child, false, &params));
}

CUresult obf_cuGraphAddEmptyNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps, size_t n)
{
	ADD((params = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_EMPTY }, CUDA_SUCCESS));
}

CUresult obf_cuGraphAddEventRecordNode(
	CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps, size_t n, CUevent event)
{
	ADD(obf_params_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &params));
}

CUresult obf_cuGraphAddEventWaitNode(
	CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps, size_t n, CUevent event)
{
	ADD(obf_params_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &params));
}

CUresult obf_cuGraphAddBatchMemOpNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps,
	size_t n, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	ADD(obf_params_batch(batch, &params));
}

CUresult obf_cuGraphAddMemAllocNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps,
	size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
	ADD(obf_params_alloc(alloc, &params));
}

CUresult obf_cuGraphAddMemFreeNode(
	CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps, size_t n, CUdeviceptr addr)
{
	ADD(obf_params_release(addr, &params));
}

CUresult obf_cuGraphAddNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps,
	const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *any)
{
	struct obf_node_params params;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (any && any->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return obf_params_unused_zero(any)
			? obf_cond_node_add(ret, graph, deps, edges, n, &any->conditional)
			: CUDA_ERROR_INVALID_VALUE;
	return add(obf_params_any(any, &params), &params, ret, graph, deps, edges, n);
}

CUresult obf_cuGraphAddNode(
	CUgraphNode *ret, CUgraph graph, const CUgraphNode *deps, size_t n, CUgraphNodeParams *any)
{
	return obf_cuGraphAddNode_v2(ret, graph, deps, NULL, n, any);
}

/* ---- graphs ---- */

CUresult obf_cuGraphCreate(CUgraph *ret, unsigned flags)
{
	struct obf_graph *graph;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || flags)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_graph_new(&graph);
	if (result == CUDA_SUCCESS)
		*ret = graph->handle;
	return result;
}

/* A child graph belongs to its node. */
CUresult obf_cuGraphDestroy(CUgraph handle)
{
	struct obf_graph *graph = obf_graph_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph || graph->parent || obf_capture_has(graph))
		return CUDA_ERROR_INVALID_VALUE;
	obf_graph_free(graph);
	return CUDA_SUCCESS;
}

CUresult obf_cuGraphClone(CUgraph *ret, CUgraph handle)
{
	const struct obf_graph *graph = obf_graph_find(handle);
	struct obf_graph *clone;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_graph_clone(graph, &clone);
	if (result == CUDA_SUCCESS)
		*ret = clone->handle;
	return result;
}

/* As in CUDA, a graph with memory nodes keeps its nodes and edges. */
CUresult obf_cuGraphDestroyNode(CUgraphNode handle)
{
	struct obf_node *node = obf_node_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!node || obf_capture_has(node->graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (node->graph->has_memory)
		return CUDA_ERROR_NOT_SUPPORTED;
	obf_node_free(node);
	return CUDA_SUCCESS;
}

/* ---- edges ---- */

CUresult obf_cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t n)
{
	struct obf_graph *graph = obf_graph_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph || (n && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	return obf_graph_connect(graph, from, to, edges, n);
}

CUresult obf_cuGraphAddDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return obf_cuGraphAddDependencies_v2(graph, from, to, NULL, n);
}

CUresult obf_cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t n)
{
	struct obf_graph *graph = obf_graph_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph || (n && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	if (graph->has_memory)
		return CUDA_ERROR_NOT_SUPPORTED;
	return obf_graph_disconnect(graph, from, to, edges, n);
}

CUresult obf_cuGraphRemoveDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return obf_cuGraphRemoveDependencies_v2(graph, from, to, NULL, n);
}
