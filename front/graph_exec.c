/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Executable graphs: made, found, ended. */
#include "front/graph_exec.h"

#include <stdlib.h>

#include "front/private.h"
#include "protocol/obf_calls.h"

static struct ob_ids exec_ids = OB_IDS_INIT(OBF_KIND_GRAPH_EXEC, OBF_GRAPH_MAX);

struct obf_exec *obf_exec_find(CUgraphExec handle)
{
	return ob_ids_get(&exec_ids, (uint64_t)(uintptr_t)handle);
}

/* All nodes run in one context. */
static CUresult ctx_choose(struct obf_exec *exec, CUgraphNode *ret_node)
{
	for (uint32_t i = 0; i < exec->n; i++) {
		const struct obf_exec_node *node = &exec->nodes[i];

		if (!node->params.ctx)
			continue;
		if (!exec->ctx)
			exec->ctx = node->params.ctx;
		if (exec->ctx == node->params.ctx)
			continue;
		*ret_node = node->handle;
		return obf_absent("a graph with nodes in several contexts",
			"a graph is executed in one stream: make one graph for each context");
	}
	return CUDA_SUCCESS;
}

static int name_compare(const void *a, const void *b)
{
	uintptr_t p = (uintptr_t)((const struct obf_exec_name *)a)->handle;
	uintptr_t q = (uintptr_t)((const struct obf_exec_name *)b)->handle;

	return p < q ? -1 : p > q;
}

static CUresult names_make(struct obf_exec *exec)
{
	exec->names = calloc(exec->n + 1, sizeof *exec->names);
	if (!exec->names)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < exec->n; i++)
		if (exec->nodes[i].handle)
			exec->names[exec->n_names++] =
				(struct obf_exec_name){ exec->nodes[i].handle, i };
	qsort(exec->names, exec->n_names, sizeof *exec->names, name_compare);
	return CUDA_SUCCESS;
}

bool obf_exec_node_at(const struct obf_exec *exec, CUgraphNode handle, uint32_t *ret)
{
	const struct obf_exec_name key = { .handle = handle };
	const struct obf_exec_name *name =
		bsearch(&key, exec->names, exec->n_names, sizeof *exec->names, name_compare);

	if (name)
		*ret = name->node;
	return name != NULL;
}

CUresult obf_exec_list(struct obf_graph *graph, struct obf_exec **ret)
{
	struct obf_exec *exec = calloc(1, sizeof *exec);
	CUgraphNode node;
	CUresult result = exec ? obf_exec_list_make(exec, graph, &node) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result == CUDA_SUCCESS)
		*ret = exec;
	else
		obf_exec_free(exec);
	return result;
}

/* References to the user objects of the graph and of all graphs in it. */
static CUresult users_take(struct obf_exec *exec, const struct obf_graph *graph)
{
	CUresult result = obf_graph_users_clone(graph, exec->users);

	for (size_t i = 0; i < graph->n_nodes && result == CUDA_SUCCESS; i++) {
		const struct obf_node_params *params = &graph->nodes[i]->params;

		if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
			result = users_take(exec, params->child);
		for (unsigned k = 0; params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL &&
			k < params->cond.size && result == CUDA_SUCCESS;
			k++)
			result = users_take(exec, params->cond.bodies[k]);
	}
	return result;
}

struct parts_make {
	struct obf_exec *exec;
	struct obf_graph *graph;
	CUgraphNode *ret_node;
};

static CUresult parts_make(struct obf_ctx *ctx, void *user)
{
	struct parts_make *make = user;

	(void)ctx;
	return obf_exec_parts_make(make->exec, make->graph, make->ret_node);
}

/* Makes the parts with the context of the nodes current. */
static CUresult parts_make_within(
	struct obf_exec *exec, struct obf_graph *graph, CUgraphNode *ret_node)
{
	struct parts_make make = { exec, graph, ret_node };

	return exec->ctx ? obf_ctx_run(exec->ctx, parts_make, &make) : parts_make(NULL, &make);
}

static CUresult exec_fill(struct obf_exec *exec, struct obf_graph *graph, CUgraphNode *ret_node)
{
	CUresult result = obf_exec_list_make(exec, graph, ret_node);

	if (result == CUDA_SUCCESS)
		result = ctx_choose(exec, ret_node);
	if (result == CUDA_SUCCESS)
		result = names_make(exec);
	if (result == CUDA_SUCCESS)
		result = obf_exec_order_make(exec, ret_node);
	if (result == CUDA_SUCCESS)
		result = parts_make_within(exec, graph, ret_node);
	if (result == CUDA_SUCCESS)
		result = obf_graph_new(&exec->users);
	return result == CUDA_SUCCESS ? users_take(exec, graph) : result;
}

CUresult obf_exec_new(struct obf_graph *graph, unsigned long long flags, struct obf_exec **ret,
	CUgraphNode *ret_node)
{
	bool single = graph->has_memory || graph->n_conds;
	struct obf_exec *exec;
	CUresult result;
	uint64_t id;

	*ret_node = NULL;
	/* As in CUDA: the addresses of its allocations, and its conditions, can be used by one only. */
	if (single && graph->execs)
		return CUDA_ERROR_NOT_SUPPORTED;
	exec = calloc(1, sizeof *exec);
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->flags = flags;
	result = exec_fill(exec, graph, ret_node);
	id = result == CUDA_SUCCESS ? ob_ids_add(&exec_ids, exec) : 0;
	if (!id) {
		obf_exec_free(exec);
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
	}
	exec->handle = (CUgraphExec)(uintptr_t)id;
	exec->has_memory = graph->has_memory;
	if (single) {
		graph->execs++;
		exec->graph = graph->handle;
	}
	*ret = exec;
	return CUDA_SUCCESS;
}

/* What the graph has lent ends with the graph, if that is alive. */
static void part_end(const struct obf_exec_part *part, bool graph_alive)
{
	void *made = part->made ? part->made : part->begun;

	if (made && !(part->lent && graph_alive))
		obf_process.backend->graph_drop(made);
}

void obf_exec_free(struct obf_exec *exec)
{
	struct obf_graph *graph;

	if (!exec)
		return;
	if (exec->handle)
		ob_ids_remove(&exec_ids, (uint64_t)(uintptr_t)exec->handle);
	graph = exec->graph ? obf_graph_find(exec->graph) : NULL;
	for (uint32_t i = 0; i < exec->n_parts; i++)
		part_end(&exec->parts[i], graph != NULL || !exec->handle);
	for (uint32_t i = 0; i < exec->n; i++) {
		obf_params_free(&exec->nodes[i].params);
		free(exec->nodes[i].deps);
	}
	if (graph)
		graph->execs--;
	if (exec->done)
		obf_cuEventDestroy_v2(exec->done);
	obf_graph_free(exec->users);
	free(exec->nodes);
	free(exec->order);
	free(exec->scopes);
	free(exec->conds);
	free(exec->parts);
	free(exec->names);
	free(exec);
}
