/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Instantiation: the list of nodes and their order. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "front/graph_exec.h"
#include "front/private.h"

#define NONE UINT32_MAX

/* ---- the list of nodes ---- */

/* Takes over *params. NONE: out of memory. */
static uint32_t list_add(struct obf_exec *exec, struct obf_node_params *params, CUgraphNode handle)
{
	if (exec->n == exec->room) {
		uint32_t room = exec->room ? exec->room * 2 : 16;
		struct obf_exec_node *nodes = room <= OBF_GRAPH_NODE_MAX * 2
			? realloc(exec->nodes, room * sizeof *nodes)
			: NULL;

		if (!nodes) {
			obf_params_free(params);
			return NONE;
		}
		exec->nodes = nodes;
		exec->room = room;
	}
	exec->nodes[exec->n] =
		(struct obf_exec_node){ .params = *params, .handle = handle, .scope = exec->scope };
	return exec->n++;
}

static uint32_t empty_add(struct obf_exec *exec, CUgraphNode handle)
{
	struct obf_node_params params = { .type = CU_GRAPH_NODE_TYPE_EMPTY };

	return list_add(exec, &params, handle);
}

static bool dep_add(struct obf_exec_node *node, uint32_t dep)
{
	if (node->n_deps == node->room) {
		uint32_t room = node->room ? node->room * 2 : 2;
		uint32_t *deps = realloc(node->deps, room * sizeof *deps);

		if (!deps)
			return false;
		node->deps = deps;
		node->room = room;
	}
	node->deps[node->n_deps++] = dep;
	return true;
}

/* A node's first and last place in the list; they differ for a child graph. */
struct span {
	uint32_t head, tail;
};

static CUresult graph_list(struct obf_exec *exec, const struct obf_graph *graph, uint32_t entry,
	CUgraphNode *ret_node);

/* The child's nodes are between two empty ones. */
static CUresult child_list(
	struct obf_exec *exec, const struct obf_node *node, struct span *ret, CUgraphNode *ret_node)
{
	uint32_t head = empty_add(exec, node->handle), tail;
	CUresult result;

	if (head == NONE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = graph_list(exec, node->params.child, head, ret_node);
	if (result != CUDA_SUCCESS)
		return result;
	tail = empty_add(exec, NULL);
	if (tail == NONE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->nodes[head].end = tail;
	/* It waits for all of them; those without dependents would do. */
	for (uint32_t i = head; i < tail; i++)
		if (!dep_add(&exec->nodes[tail], i))
			return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = (struct span){ head, tail };
	return CUDA_SUCCESS;
}

/* Which nodes a body may have. The rest needs the client, or CUDA refuses it. */
static CUresult body_check(const struct obf_node *node)
{
	if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH ||
		node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return CUDA_SUCCESS;
	if (node->params.type == CU_GRAPH_NODE_TYPE_MEMCPY && !obf_exec_is_task(&node->params))
		return obf_absent("cuGraphInstantiate: copies of host memory in a conditional body",
			"the server cannot ask for host memory within a launch: copy it before "
			"the conditional node, or after it");
	return obf_exec_is_task(&node->params) &&
			node->params.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
			node->params.type != CU_GRAPH_NODE_TYPE_MEM_FREE
		? CUDA_SUCCESS
		: CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult scope_add(struct obf_exec *exec, uint32_t node, uint32_t branch)
{
	struct obf_exec_scope *scopes =
		realloc(exec->scopes, (exec->n_scopes + 1) * sizeof *scopes);

	if (!scopes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->scopes = scopes;
	scopes[exec->n_scopes] = (struct obf_exec_scope){ .node = node, .branch = branch };
	exec->scope = exec->n_scopes++;
	return CUDA_SUCCESS;
}

/* The nodes of the bodies follow the conditional node, each body in a scope of its own. */
static CUresult bodies_list(
	struct obf_exec *exec, const struct obf_node *node, uint32_t at, CUgraphNode *ret_node)
{
	const struct obf_cond_params *cond = &node->params.cond;
	uint32_t scope = exec->scope;
	CUresult result = CUDA_SUCCESS;

	for (unsigned i = 0; i < cond->size && result == CUDA_SUCCESS; i++) {
		result = scope_add(exec, at, i);
		if (result == CUDA_SUCCESS)
			result = graph_list(exec, cond->bodies[i], NONE, ret_node);
	}
	exec->scope = scope;
	return result;
}

static CUresult node_list(
	struct obf_exec *exec, const struct obf_node *node, struct span *ret, CUgraphNode *ret_node)
{
	struct obf_node_params params;
	CUresult result;
	uint32_t at;

	result = exec->scope ? body_check(node) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS && node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
		return child_list(exec, node, ret, ret_node);
	if (result == CUDA_SUCCESS)
		result = obf_params_clone(&node->params, &params);
	if (result != CUDA_SUCCESS) {
		*ret_node = node->handle;
		return result;
	}
	at = list_add(exec, &params, node->handle);
	*ret = (struct span){ at, at };
	if (at == NONE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? bodies_list(exec, node, at, ret_node)
							     : CUDA_SUCCESS;
}

static CUresult graph_list(
	struct obf_exec *exec, const struct obf_graph *graph, uint32_t entry, CUgraphNode *ret_node)
{
	OB_CLEANUP(ob_freep) struct span *spans = calloc(ob_max(graph->n_nodes, 1u), sizeof *spans);
	CUresult result = spans ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (size_t i = 0; i < graph->n_nodes && result == CUDA_SUCCESS; i++)
		result = node_list(exec, graph->nodes[i], &spans[i], ret_node);
	for (size_t i = 0; i < graph->n_nodes && result == CUDA_SUCCESS; i++) {
		const struct obf_edges *in = &graph->nodes[i]->in;
		struct obf_exec_node *node = &exec->nodes[spans[i].head];
		bool fits = in->n > 0 || entry == NONE || dep_add(node, entry);

		for (size_t k = 0; k < in->n && fits; k++)
			fits = dep_add(node, spans[in->list[k].node->index].tail);
		if (!fits)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return result;
}

CUresult obf_exec_list_make(
	struct obf_exec *exec, const struct obf_graph *graph, CUgraphNode *ret_node)
{
	CUresult result = scope_add(exec, NONE, 0);

	return result == CUDA_SUCCESS ? graph_list(exec, graph, NONE, ret_node) : result;
}

/* ---- the order ---- */

/* Nodes that are ready, of both kinds: first in, first out. */
struct ready {
	uint32_t *list, head, tail;
};

struct sort {
	struct ready tasks, others;
	uint32_t *waits; /* by node: dependencies that are not in the order yet */
	uint32_t *first,
		*after; /* the dependents of node i: after[first[i]] to after[first[i + 1]] */
};

static void sort_free(struct sort *sort)
{
	free(sort->tasks.list);
	free(sort->others.list);
	free(sort->waits);
	free(sort->first);
	free(sort->after);
}

static bool sort_make(const struct obf_exec *exec, struct sort *sort)
{
	size_t edges = 0, n = exec->n;

	for (uint32_t i = 0; i < n; i++)
		edges += exec->nodes[i].n_deps;
	sort->tasks.list = calloc(n + 1, sizeof(uint32_t));
	sort->others.list = calloc(n + 1, sizeof(uint32_t));
	sort->waits = calloc(n + 1, sizeof(uint32_t));
	sort->first = calloc(n + 2, sizeof(uint32_t));
	sort->after = calloc(edges + 1, sizeof(uint32_t));
	if (edges >= NONE || !sort->tasks.list || !sort->others.list || !sort->waits ||
		!sort->first || !sort->after)
		return false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < exec->nodes[i].n_deps; k++)
			sort->first[exec->nodes[i].deps[k] + 2]++;
	for (uint32_t i = 2; i <= n; i++)
		sort->first[i] += sort->first[i - 1];
	/* first[i + 1] is where the next dependent of node i goes. */
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < exec->nodes[i].n_deps; k++)
			sort->after[sort->first[exec->nodes[i].deps[k] + 1]++] = i;
	return true;
}

static void ready_put(const struct obf_exec *exec, struct sort *sort, uint32_t node)
{
	struct ready *ready =
		obf_exec_is_task(&exec->nodes[node].params) ? &sort->tasks : &sort->others;

	ready->list[ready->tail++] = node;
}

/* Moves the nodes of each scope together. Within a scope the order stays. */
static CUresult scopes_part(struct obf_exec *exec)
{
	OB_CLEANUP(ob_freep) uint32_t *next = calloc(exec->n_scopes, sizeof *next);
	uint32_t *order = calloc(exec->n + 1, sizeof *order), first = 0;

	if (!next || !order) {
		free(order);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (uint32_t i = 0; i < exec->n; i++)
		exec->scopes[exec->nodes[i].scope].n++;
	for (uint32_t i = 0; i < exec->n_scopes; i++) {
		exec->scopes[i].first = next[i] = first;
		first += exec->scopes[i].n;
	}
	for (uint32_t i = 0; i < exec->n; i++)
		order[next[exec->nodes[exec->order[i]].scope]++] = exec->order[i];
	free(exec->order);
	exec->order = order;
	return CUDA_SUCCESS;
}

CUresult obf_exec_order_make(struct obf_exec *exec, CUgraphNode *ret_node)
{
	OB_CLEANUP(sort_free) struct sort sort = { .waits = NULL };
	struct ready *ready = &sort.tasks;
	uint32_t n = 0;

	exec->order = calloc(exec->n + 1, sizeof *exec->order);
	if (!exec->order || !sort_make(exec, &sort))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < exec->n; i++) {
		sort.waits[i] = exec->nodes[i].n_deps;
		if (!sort.waits[i])
			ready_put(exec, &sort, i);
	}
	for (;;) {
		uint32_t node;

		if (ready->head == ready->tail)
			ready = ready == &sort.tasks ? &sort.others : &sort.tasks;
		if (ready->head == ready->tail)
			break;
		node = ready->list[ready->head++];
		exec->order[n++] = node;
		for (uint32_t k = sort.first[node]; k < sort.first[node + 1]; k++)
			if (--sort.waits[sort.after[k]] == 0)
				ready_put(exec, &sort, sort.after[k]);
	}
	if (n == exec->n)
		return scopes_part(exec);
	/* There is a circle. */
	for (uint32_t i = 0; i < exec->n; i++)
		if (sort.waits[i] && exec->nodes[i].handle)
			*ret_node = exec->nodes[i].handle;
	return CUDA_ERROR_INVALID_VALUE;
}
