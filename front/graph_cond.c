/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Conditional nodes: handles, nodes, bodies. */
#include "front/graph.h"

#include <stdlib.h>

#include "front/private.h"
#include "protocol/obf_calls.h"

struct obf_graph *obf_graph_root(const struct obf_graph *graph)
{
	while (graph->parent)
		graph = obf_graph_outer(graph);
	return (struct obf_graph *)(uintptr_t)graph;
}

/*
 * Whether the graph can have conditions. CUDA_ERROR_NOT_SUPPORTED: it is a child graph, or inside one;
 * CUDA_ERROR_INVALID_VALUE: bodies are nested too deep.
 */
static CUresult place_check(const struct obf_graph *graph)
{
	for (unsigned level = 0; graph->parent; level++, graph = obf_graph_outer(graph)) {
		if (graph->parent->params.type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (level + 1 >= OBF_GRAPH_DEPTH)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static bool is_inside(const struct obf_graph *graph, const struct obf_graph *around)
{
	while (graph != around && graph->parent)
		graph = obf_graph_outer(graph);
	return graph == around;
}

/* ---- handles ---- */

struct make {
	struct obf_graph *root;
	unsigned start, flags;
	CUgraphConditionalHandle ret;
};

static CUresult handle_make(struct obf_ctx *ctx, void *user)
{
	struct make *make = user;

	return obf_process.backend->graph_condition(
		ctx, &make->root->begun, make->start, make->flags, &make->ret);
}

static CUresult cond_new(const struct obf_graph *graph, struct obf_ctx *ctx, unsigned start,
	unsigned flags, struct obf_cond **ret)
{
	struct make make = { obf_graph_root(graph), start, flags, 0 };
	struct obf_graph *root = make.root;
	struct obf_cond **conds = realloc(root->conds, (root->n_conds + 1) * sizeof(void *));
	struct obf_cond *cond = calloc(1, sizeof *cond);
	CUresult result;

	if (conds)
		root->conds = conds;
	if (!conds || !cond || root->n_conds >= OBF_CONDS_MAX) {
		free(cond);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = obf_ctx_run(ctx, handle_make, &make);
	if (result != CUDA_SUCCESS) {
		free(cond);
		return result;
	}
	*cond = (struct obf_cond){ make.ret, graph, ctx, root->n_conds, start, flags, false,
		false };
	conds[root->n_conds++] = cond;
	*ret = cond;
	return CUDA_SUCCESS;
}

/* All conditions of a graph have one context, that of its nodes. */
CUresult obf_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *ret, CUgraph handle,
	CUcontext ctx_handle, unsigned start, unsigned flags)
{
	const struct obf_graph *graph = obf_graph_find(handle), *root;
	struct obf_cond *cond = NULL;
	struct obf_ctx *ctx;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || !graph || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_params_ctx(ctx_handle, &ctx);
	if (result == CUDA_SUCCESS)
		result = place_check(graph);
	if (result != CUDA_SUCCESS)
		return result;
	root = obf_graph_root(graph);
	if (root->n_conds && root->conds[0]->ctx != ctx)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_ctx_result(ctx, cond_new(graph, ctx, start, flags, &cond));
	if (result == CUDA_SUCCESS)
		*ret = cond->handle;
	return result;
}

bool obf_conds_unused(const struct obf_graph *graph)
{
	for (uint32_t i = 0; i < graph->n_conds; i++)
		if (!graph->conds[i]->used && !graph->conds[i]->ended)
			return true;
	return false;
}

void obf_conds_free(struct obf_graph *graph)
{
	for (uint32_t i = 0; i < graph->n_conds; i++)
		free(graph->conds[i]);
	free(graph->conds);
	/* An executable graph that was made of it ends it. */
	if (graph->begun && !(graph->begun_lent && graph->execs))
		obf_process.backend->graph_drop(graph->begun);
}

/* ---- nodes ---- */

static struct obf_cond *cond_find(const struct obf_graph *graph, CUgraphConditionalHandle handle)
{
	const struct obf_graph *root = obf_graph_root(graph);

	for (uint32_t i = 0; i < root->n_conds; i++)
		if (root->conds[i]->handle == handle && !root->conds[i]->ended &&
			is_inside(graph, root->conds[i]->graph))
			return root->conds[i];
	return NULL;
}

static bool size_valid(const CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	switch ((int)params->type) {
	case CU_GRAPH_COND_TYPE_IF:
		return params->size == 1 || params->size == 2;
	case CU_GRAPH_COND_TYPE_WHILE:
		return params->size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH:
		return params->size >= 1;
	default:
		return false;
	}
}

static CUresult params_make(struct obf_cond *cond, const CUDA_CONDITIONAL_NODE_PARAMS *from,
	struct obf_node_params *ret)
{
	struct obf_cond_params *params = &ret->cond;
	CUresult result = CUDA_SUCCESS;

	if (from->size > OBF_BODIES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .ctx = cond->ctx };
	*params = (struct obf_cond_params){ .number = cond->number, .type = from->type };
	params->bodies = calloc(from->size, sizeof(void *));
	params->handles = calloc(from->size, sizeof *params->handles);
	if (!params->bodies || !params->handles)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < from->size && result == CUDA_SUCCESS; i++) {
		result = obf_graph_new(&params->bodies[i]);
		if (result != CUDA_SUCCESS)
			break;
		params->handles[params->size++] = params->bodies[i]->handle;
	}
	if (result != CUDA_SUCCESS)
		obf_params_free(ret);
	return result;
}

CUresult obf_cond_node_add(CUgraphNode *ret, CUgraph handle, const CUgraphNode *deps,
	const CUgraphEdgeData *edges, size_t n, CUDA_CONDITIONAL_NODE_PARAMS *from)
{
	struct obf_graph *graph = obf_graph_find(handle);
	struct obf_node_params params;
	struct obf_node *node;
	struct obf_cond *cond;
	struct obf_ctx *ctx;
	CUresult result;

	if (!graph || !ret || !size_valid(from))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_params_ctx(from->ctx, &ctx);
	if (result == CUDA_SUCCESS)
		result = place_check(graph);
	if (result != CUDA_SUCCESS)
		return result;
	cond = cond_find(graph, from->handle);
	if (!cond || cond->used || cond->ctx != ctx)
		return CUDA_ERROR_INVALID_VALUE;
	result = params_make(cond, from, &params);
	if (result == CUDA_SUCCESS)
		result = obf_node_add(graph, &params, deps, edges, n, &node);
	if (result != CUDA_SUCCESS)
		return result;
	node->params.cond.cond = cond;
	cond->used = true;
	for (struct obf_graph *at = graph; at; at = obf_graph_outer(at))
		at->has_cond = true;
	for (unsigned i = 0; i < node->params.cond.size; i++)
		node->params.cond.bodies[i]->parent = node;
	from->phGraph_out = node->params.cond.handles;
	*ret = node->handle;
	return CUDA_SUCCESS;
}

static void body_free(struct obf_graph *body)
{
	const struct obf_graph *root = obf_graph_root(body);

	for (uint32_t i = 0; i < root->n_conds; i++)
		root->conds[i]->ended |= root->conds[i]->graph == body;
	obf_graph_free(body);
}

void obf_cond_params_free(struct obf_cond_params *params)
{
	for (unsigned i = 0; params->bodies && i < params->size; i++)
		body_free(params->bodies[i]);
	free(params->bodies);
	free(params->handles);
	if (params->cond)
		params->cond->used = false;
}

bool obf_cond_params_equal(const struct obf_cond_params *a, const struct obf_cond_params *b)
{
	return a->number == b->number && a->type == b->type && a->size == b->size;
}
