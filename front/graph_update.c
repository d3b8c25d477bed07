/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Calls that change the parameters of an executable graph's nodes. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "front/graph_exec.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

/* As in CUDA, only a fill of one row may change its size, and stays one row. */
static CUresult fill_check(const struct obf_fill_params *before, const struct obf_fill_params *now)
{
	const struct obf_fill *a = &before->fill, *b = &now->fill;

	if (before->empty != now->empty || a->height != b->height)
		return CUDA_ERROR_INVALID_VALUE;
	if (a->height > 1 &&
		(a->width != b->width || a->element != b->element || a->pitch != b->pitch))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* May the node get these parameters? */
static CUresult set_check(const struct obf_exec_node *node, const struct obf_node_params *params)
{
	const struct obf_copy *a = &node->params.copy.copy, *b = &params->copy.copy;

	if (node->params.type != params->type || node->params.ctx != params->ctx ||
		obf_exec_is_task(&node->params) != obf_exec_is_task(params))
		return CUDA_ERROR_INVALID_VALUE;
	if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY && !node->params.copy.empty &&
		(params->copy.empty || a->src_device != b->src_device ||
			a->dst_device != b->dst_device))
		return CUDA_ERROR_INVALID_VALUE;
	return params->type == CU_GRAPH_NODE_TYPE_MEMSET
		? fill_check(&node->params.fill, &params->fill)
		: CUDA_SUCCESS;
}

struct task_set {
	void *made;
	uint32_t index;
	const struct obf_graph_task *task;
};

/* With the node's context current. */
static CUresult task_set(struct obf_ctx *ctx, void *user)
{
	const struct task_set *set = user;

	(void)ctx;
	return obf_process.backend->graph_set(set->made, set->index, set->task);
}

CUresult obf_exec_set(struct obf_exec *exec, uint32_t at, struct obf_node_params *params)
{
	struct obf_exec_node *node = &exec->nodes[at];
	struct obf_exec_part *part = &exec->parts[node->part];
	CUresult result = set_check(node, params);
	struct obf_graph_task task;

	if (result == CUDA_SUCCESS && part->made) {
		result = obf_exec_task(exec, params, &task);
		part->mirrored |= task.mirrored;
		if (result == CUDA_SUCCESS && task.kind != OBF_TASK_EMPTY) {
			struct task_set set = { part->made, node->index, &task };

			result = obf_ctx_run(params->ctx, task_set, &set);
		}
	}
	if (result != CUDA_SUCCESS) {
		obf_params_free(params);
		return result;
	}
	obf_params_free(&node->params);
	node->params = *params;
	return CUDA_SUCCESS;
}

/* Finishes a call. made: the result of making the parameters. */
static CUresult set(
	CUgraphExec handle, CUgraphNode node, CUresult made, struct obf_node_params *params)
{
	struct obf_exec *exec = obf_exec_find(handle);
	uint32_t at;

	if (made != CUDA_SUCCESS)
		return made;
	if (exec && obf_exec_node_at(exec, node, &at))
		return obf_exec_set(exec, at, params);
	obf_params_free(params);
	return CUDA_ERROR_INVALID_VALUE;
}

#define SET(make)                      \
	struct obf_node_params params; \
	CUresult result = obf_ready(); \
                                       \
	return result == CUDA_SUCCESS ? set(exec, node, make, &params) : result

/* The attributes of the node stay. */
static CUresult kernel_make(CUgraphExec handle, CUgraphNode node,
	const CUDA_KERNEL_NODE_PARAMS *kernel, struct obf_node_params *ret)
{
	const struct obf_exec *exec = obf_exec_find(handle);
	const struct obf_kernel_params *before;
	CUresult result;
	uint32_t at;

	if (!exec || !obf_exec_node_at(exec, node, &at) ||
		exec->nodes[at].params.type != CU_GRAPH_NODE_TYPE_KERNEL)
		return CUDA_ERROR_INVALID_VALUE;
	before = &exec->nodes[at].params.kernel;
	result = obf_params_kernel(kernel, ret);
	if (result != CUDA_SUCCESS)
		return result;
	for (unsigned i = 0; i < OBF_NODE_ATTRS && result == CUDA_SUCCESS; i++)
		if (before->attr_mask >> i & 1)
			result = obf_params_attr_set(ret, (CUkernelNodeAttrID)i, &before->attrs[i]);
	if (result != CUDA_SUCCESS)
		obf_params_free(ret);
	return result;
}

CUresult obf_cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	SET(kernel_make(exec, node, kernel, &params));
}

CUresult obf_cuGraphExecKernelNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel)
{
	CUDA_KERNEL_NODE_PARAMS now;

	return obf_cuGraphExecKernelNodeSetParams_v2(
		exec, node, kernel ? obf_kernel_params_now(kernel, &now) : NULL);
}

/* As in CUDA, the call is for copies of one row only. */
static bool is_row(const struct obf_node_params *params)
{
	return params->type == CU_GRAPH_NODE_TYPE_MEMCPY && params->copy.raw.Height <= 1 &&
		params->copy.raw.Depth <= 1;
}

static CUresult copy_make(CUgraphExec handle, CUgraphNode node, const CUDA_MEMCPY3D *copy,
	CUcontext ctx, struct obf_node_params *ret)
{
	const struct obf_exec *exec = obf_exec_find(handle);
	CUresult result;
	uint32_t at;

	if (!exec || !obf_exec_node_at(exec, node, &at) || !is_row(&exec->nodes[at].params))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_params_copy(copy, ctx, ret);
	return result == CUDA_SUCCESS && !is_row(ret) ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult obf_cuGraphExecMemcpyNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext ctx)
{
	SET(copy_make(exec, node, copy, ctx, &params));
}

CUresult obf_cuGraphExecMemsetNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext ctx)
{
	SET(obf_params_fill(fill, ctx, &params));
}

CUresult obf_cuGraphExecHostNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
	SET(obf_params_host(host, &params));
}

CUresult obf_cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	SET(obf_params_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &params));
}

CUresult obf_cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	SET(obf_params_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &params));
}

CUresult obf_cuGraphExecBatchMemOpNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	SET(obf_params_batch(batch, &params));
}

static CUresult any_set(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *any)
{
	SET(obf_params_any(any, &params));
}

CUresult obf_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *any)
{
	if (!any)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)any->type) {
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return CUDA_ERROR_NOT_SUPPORTED;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return obf_cuGraphExecChildGraphNodeSetParams(exec, node, any->graph.graph);
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return obf_cuGraphExecKernelNodeSetParams_v2(
			exec, node, (const void *)&any->kernel);
	default:
		return any_set(exec, node, any);
	}
}

/* ---- whole graphs ---- */

/* The attributes of kernels that an update cannot change. */
static bool same_attrs(const struct obf_exec *exec, const struct obf_node_params *a,
	const struct obf_node_params *b)
{
	const struct obf_launch *p = &a->kernel.launch, *q = &b->kernel.launch;

	if (a->type != CU_GRAPH_NODE_TYPE_KERNEL)
		return true;
	return p->cooperative == q->cooperative &&
		(!(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) ||
			(p->has_priority == q->has_priority && p->priority == q->priority));
}

/* Compares nodes [at, at + list->n) of the executable graph with a list of nodes. */
static CUgraphExecUpdateResult lists_compare(const struct obf_exec *exec, uint32_t at, uint32_t n,
	const struct obf_exec *list, uint32_t *ret_node)
{
	*ret_node = UINT32_MAX; /* none */
	if (list->n != n)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (uint32_t i = 0; i < n; i++) {
		const struct obf_exec_node *a = &exec->nodes[at + i], *b = &list->nodes[i];
		uint32_t inside = 0;

		*ret_node = i;
		if (a->params.type != b->params.type)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		/* All of a child graph is in one body. */
		if (at == 0 && a->scope != b->scope)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		/* The dependency on the node before a child graph does not count. */
		for (uint32_t k = 0; k < a->n_deps; k++) {
			if (a->deps[k] < at)
				continue;
			if (inside >= b->n_deps || b->deps[inside] != a->deps[k] - at)
				return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
			inside++;
		}
		if (inside != b->n_deps)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (a->params.ctx != b->params.ctx && a->params.type == CU_GRAPH_NODE_TYPE_KERNEL)
			return CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED;
		if (!same_attrs(exec, &a->params, &b->params))
			return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
		if ((a->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
			    a->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE) &&
			a->params.alloc.alloc != b->params.alloc.alloc)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
		if (a->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL &&
			!obf_params_equal(&a->params, &b->params))
			return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
		if (a->params.type != CU_GRAPH_NODE_TYPE_EMPTY &&
			set_check(a, &b->params) != CUDA_SUCCESS)
			return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
	}
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/*
 * The conditions are paired in the order of their creation. CUDA would take over other default values
 * and flags; a driver can be told so only with a graph of its own.
 */
static bool conds_match(const struct obf_exec *exec, const struct obf_graph *graph)
{
	if (exec->n_conds != graph->n_conds)
		return false;
	for (uint32_t i = 0; i < exec->n_conds; i++)
		if (exec->conds[i].start != graph->conds[i]->start ||
			exec->conds[i].flags != graph->conds[i]->flags)
			return false;
	return true;
}

/* Kernels of the list get the handles of the graph that was instantiated. */
static void list_rename(
	const struct obf_exec *exec, const struct obf_exec *list, const struct obf_graph *graph)
{
	for (uint32_t i = 0; i < list->n && exec->n_conds; i++) {
		const struct obf_node_params *params = &list->nodes[i].params;
		struct obf_func *func;

		if (params->type == CU_GRAPH_NODE_TYPE_KERNEL &&
			obf_params_func(params, &func) == CUDA_SUCCESS)
			obf_exec_handles_replace(func, params->kernel.packed, graph, exec);
	}
}

/* The nodes whose parameters differ get those of the list. */
static CUresult list_apply(struct obf_exec *exec, uint32_t at, struct obf_exec *list)
{
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = 0; i < list->n && result == CUDA_SUCCESS; i++) {
		struct obf_node_params *params = &list->nodes[i].params;
		struct obf_node_params taken = *params;

		if (obf_params_equal(&exec->nodes[at + i].params, params) ||
			params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
			params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			continue;
		*params = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
		result = obf_exec_set(exec, at + i, &taken);
	}
	return result;
}

static void exec_freep(struct obf_exec **exec)
{
	obf_exec_free(*exec);
}

CUresult obf_cuGraphExecUpdate_v2(
	CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *ret)
{
	struct obf_exec *exec = obf_exec_find(handle);
	struct obf_graph *graph = obf_graph_find(graph_handle);
	OB_CLEANUP(exec_freep) struct obf_exec *list = NULL;
	CUresult result = obf_ready();
	uint32_t at;

	if (result != CUDA_SUCCESS)
		return result;
	if (!exec || !graph || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_ERROR };
	result = obf_exec_list(graph, &list);
	if (result != CUDA_SUCCESS)
		return result;
	ret->result = lists_compare(exec, 0, exec->n, list, &at);
	if (ret->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
		ret->errorNode = at < list->n ? list->nodes[at].handle : NULL;
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	if (!conds_match(exec, graph)) {
		ret->result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	list_rename(exec, list, graph);
	result = list_apply(exec, 0, list);
	if (result != CUDA_SUCCESS)
		ret->result = CU_GRAPH_EXEC_UPDATE_ERROR;
	return result;
}

CUresult obf_cuGraphExecUpdate(
	CUgraphExec exec, CUgraph graph, CUgraphNode *ret_node, CUgraphExecUpdateResult *ret_result)
{
	CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_ERROR };
	CUresult result = obf_cuGraphExecUpdate_v2(exec, graph, &info);

	if (ret_node)
		*ret_node = info.errorNode;
	if (ret_result)
		*ret_result = info.result;
	return result;
}

CUresult obf_cuGraphExecChildGraphNodeSetParams(
	CUgraphExec handle, CUgraphNode node, CUgraph child_handle)
{
	struct obf_exec *exec = obf_exec_find(handle);
	struct obf_graph *child = obf_graph_find(child_handle);
	OB_CLEANUP(exec_freep) struct obf_exec *list = NULL;
	CUresult result = obf_ready();
	uint32_t head, at;

	if (result != CUDA_SUCCESS)
		return result;
	if (!exec || !child || !obf_exec_node_at(exec, node, &head) || !exec->nodes[head].end)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_exec_list(child, &list);
	if (result != CUDA_SUCCESS)
		return result;
	if (lists_compare(exec, head + 1, exec->nodes[head].end - head - 1, list, &at) !=
		CU_GRAPH_EXEC_UPDATE_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	return list_apply(exec, head + 1, list);
}

/* ---- into a capture ---- */

CUresult obf_exec_graph(const struct obf_exec *exec, CUgraph *ret)
{
	OB_CLEANUP(ob_freep) CUgraphNode *nodes = calloc(exec->n + 1, sizeof *nodes);
	struct obf_graph *graph;
	CUresult result = nodes ? obf_graph_new(&graph) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result != CUDA_SUCCESS)
		return result;
	/* In the order of the dependencies, so that those of a node exist. */
	for (uint32_t i = 0; i < exec->n && result == CUDA_SUCCESS; i++) {
		const struct obf_exec_node *from = &exec->nodes[exec->order[i]];
		OB_CLEANUP(ob_freep) CUgraphNode *deps = calloc(from->n_deps + 1, sizeof *deps);
		struct obf_node_params params = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
		struct obf_node *node;

		if (!deps)
			result = CUDA_ERROR_OUT_OF_MEMORY;
		for (uint32_t k = 0; deps && k < from->n_deps; k++)
			deps[k] = nodes[from->deps[k]];
		if (result == CUDA_SUCCESS && !from->disabled)
			result = obf_params_clone(&from->params, &params);
		if (result == CUDA_SUCCESS)
			result = obf_node_add(graph, &params, deps, NULL, from->n_deps, &node);
		if (result == CUDA_SUCCESS)
			nodes[exec->order[i]] = node->handle;
	}
	if (result == CUDA_SUCCESS)
		*ret = graph->handle;
	else
		obf_graph_free(graph);
	return result;
}
