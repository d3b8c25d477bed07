/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Calls that instantiate graphs, and about executable graphs as a whole. */
#include <string.h>

#include "front/captured.h"
#include "front/graph_exec.h"
#include "front/private.h"
#include "front/stream.h"
#include "protocol/obf_calls.h"

#define FLAGS                                                                                    \
	((unsigned long long)(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |                  \
		CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | \
		CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY))

/* cannot be combined */
#define EXCLUSIVE                                                               \
	((unsigned long long)(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | \
		CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH))

/* It has conditions of the graph around it. */
static bool is_body(const struct obf_graph *graph)
{
	return graph->parent &&
		(graph->has_cond || graph->parent->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
}

static CUresult instantiate(
	CUgraphExec *ret, CUgraph handle, unsigned long long flags, CUgraphNode *ret_node)
{
	struct obf_graph *graph = obf_graph_find(handle);
	struct obf_exec *exec;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	*ret_node = NULL;
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !graph || flags & ~FLAGS || (flags & EXCLUSIVE) == EXCLUSIVE ||
		obf_capture_has(graph) || is_body(graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (obf_conds_unused(graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return obf_absent("cuGraphInstantiate: DEVICE_LAUNCH",
			"kernels cannot launch graphs here: launch them from the host");
	result = obf_exec_new(graph, flags, &exec, ret_node);
	if (result == CUDA_SUCCESS)
		*ret = exec->handle;
	return obf_ctx_result(ctx, result);
}

CUresult obf_cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph graph, unsigned long long flags)
{
	CUgraphNode node;

	/* The flag is for cuGraphInstantiateWithParams, which names a stream. */
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		return CUDA_ERROR_INVALID_VALUE;
	return instantiate(ret, graph, flags, &node);
}

CUresult obf_cuGraphInstantiate_v2(
	CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_node, char *log, size_t log_size)
{
	CUgraphNode node;
	CUresult result = instantiate(ret, graph, 0, &node);

	if (result != CUDA_SUCCESS && ret_node)
		*ret_node = node;
	if (log && log_size)
		log[0] = '\0';
	return result;
}

CUresult obf_cuGraphInstantiate(
	CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_node, char *log, size_t log_size)
{
	return obf_cuGraphInstantiate_v2(ret, graph, ret_node, log, log_size);
}

/* The default stream of the call, for params->hUploadStream 0. */
CUresult obf_cuGraphInstantiateWithParams(
	CUgraphExec *ret, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS *params, CUstream stream)
{
	const struct obf_graph *graph = obf_graph_find(handle);
	CUresult result;
	CUgraphNode node;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	result = instantiate(ret, handle, params->flags, &node);
	params->hErrNode_out = node;
	params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		params->result_out = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
	else if (result == CUDA_ERROR_INVALID_VALUE && graph && obf_conds_unused(graph))
		params->result_out = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
	else if (result == CUDA_ERROR_INVALID_VALUE && node)
		params->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
	else if (result != CUDA_SUCCESS)
		params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	if (result == CUDA_SUCCESS && params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		result = obf_cuGraphUpload(
			*ret, params->hUploadStream ? params->hUploadStream : stream);
	return result;
}

CUresult obf_cuGraphExecDestroy(CUgraphExec handle)
{
	struct obf_exec *exec = obf_exec_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	obf_exec_free(exec);
	return CUDA_SUCCESS;
}

CUresult obf_cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *ret)
{
	const struct obf_exec *exec = obf_exec_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!exec || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	/* Whether it was uploaded is no property of it. */
	*ret = exec->flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	return CUDA_SUCCESS;
}

/* A kernel, a copy or a fill that launches skip. */
static CUresult enable_enter(CUgraphExec handle, CUgraphNode node_handle, struct obf_exec **ret,
	struct obf_exec_node **ret_node)
{
	CUresult result = obf_ready();
	uint32_t at;

	if (result != CUDA_SUCCESS)
		return result;
	*ret = obf_exec_find(handle);
	if (!*ret || !obf_exec_node_at(*ret, node_handle, &at))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_node = &(*ret)->nodes[at];
	switch ((int)(*ret_node)->params.type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult obf_cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node_handle, unsigned enabled)
{
	struct obf_exec_node *node;
	struct obf_exec *exec;
	CUresult result = enable_enter(handle, node_handle, &exec, &node);
	void *made;

	if (result != CUDA_SUCCESS)
		return result;
	made = exec->parts[node->part].made;
	if (made && node->disabled != !enabled)
		result = obf_process.backend->graph_enable(made, node->index, enabled != 0);
	if (result == CUDA_SUCCESS)
		node->disabled = !enabled;
	return result;
}

CUresult obf_cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node_handle, unsigned *ret)
{
	struct obf_exec_node *node;
	struct obf_exec *exec;
	CUresult result = enable_enter(handle, node_handle, &exec, &node);

	if (result == CUDA_SUCCESS && !ret)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*ret = !node->disabled;
	return result;
}
