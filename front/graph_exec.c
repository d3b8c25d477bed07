/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Instantiation: the list of nodes, their order, their parts. */
#include "front/graph_exec.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "front/mirror.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define NONE     UINT32_MAX
/* Fewer nodes are cheaper as single records. */
#define PART_MIN 2u

static struct ob_ids exec_ids = OB_IDS_INIT(OBF_KIND_GRAPH_EXEC, OBF_GRAPH_MAX);

struct obf_exec *obf_exec_find(CUgraphExec handle)
{
	return ob_ids_get(&exec_ids, (uint64_t)(uintptr_t)handle);
}

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
	exec->nodes[exec->n] = (struct obf_exec_node){ .params = *params, .handle = handle };
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

static CUresult node_list(
	struct obf_exec *exec, const struct obf_node *node, struct span *ret, CUgraphNode *ret_node)
{
	struct obf_node_params params;
	CUresult result;
	uint32_t at;

	if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
		return child_list(exec, node, ret, ret_node);
	result = obf_params_clone(&node->params, &params);
	if (result != CUDA_SUCCESS) {
		*ret_node = node->handle;
		return result;
	}
	at = list_add(exec, &params, node->handle);
	*ret = (struct span){ at, at };
	return at == NONE ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
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

/* ---- the order ---- */

bool obf_exec_is_task(const struct obf_node_params *params)
{
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return true;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return params->copy.empty ||
			(params->copy.copy.src_device && params->copy.copy.dst_device &&
				params->copy.copy.src_ctx == params->copy.copy.dst_ctx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return params->fill.empty || params->fill.device;
	default:
		return false;
	}
}

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

/* Nodes of one kind follow one another as long as possible, so that there are few parts. */
static CUresult order_make(struct obf_exec *exec, CUgraphNode *ret_node)
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
		return CUDA_SUCCESS;
	/* There is a circle. */
	for (uint32_t i = 0; i < exec->n; i++)
		if (sort.waits[i] && exec->nodes[i].handle)
			*ret_node = exec->nodes[i].handle;
	return CUDA_ERROR_INVALID_VALUE;
}

/* ---- parts ---- */

CUresult obf_exec_task(const struct obf_node_params *params, struct obf_graph_task *ret)
{
	CUresult result;

	*ret = (struct obf_graph_task){ .kind = OBF_TASK_EMPTY };
	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		ret->kind = OBF_TASK_KERNEL;
		ret->launch = &params->kernel.launch;
		ret->packed = params->kernel.packed;
		result = obf_params_func(params, &ret->func);
		if (result == CUDA_SUCCESS)
			ret->mirrored =
				obf_mirrors_replace(params->ctx, ret->func, params->kernel.packed);
		return result;
	}
	if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY && !params->copy.empty) {
		ret->kind = OBF_TASK_COPY;
		ret->copy = &params->copy.copy;
	} else if (params->type == CU_GRAPH_NODE_TYPE_MEMSET && !params->fill.empty) {
		ret->kind = OBF_TASK_FILL;
		ret->fill = &params->fill.fill;
	}
	return CUDA_SUCCESS;
}

/* The tasks of a part. Nodes of earlier parts come before it anyway. */
static CUresult tasks_make(struct obf_exec *exec, const struct obf_exec_part *part,
	struct obf_graph_task *tasks, uint32_t *deps, CUgraphNode *ret_node)
{
	uint32_t number = (uint32_t)(part - exec->parts);

	for (uint32_t i = 0; i < part->n; i++) {
		const struct obf_exec_node *node = &exec->nodes[exec->order[part->first + i]];
		CUresult result = obf_exec_task(&node->params, &tasks[i]);

		if (result != CUDA_SUCCESS) {
			*ret_node = node->handle;
			return result;
		}
		exec->parts[number].mirrored |= tasks[i].mirrored;
		tasks[i].deps = deps;
		for (uint32_t k = 0; k < node->n_deps; k++) {
			const struct obf_exec_node *dep = &exec->nodes[node->deps[k]];

			if (dep->part == number)
				deps[tasks[i].n_deps++] = dep->index;
		}
		deps += tasks[i].n_deps;
	}
	return CUDA_SUCCESS;
}

static CUresult part_prepare(
	struct obf_exec *exec, struct obf_exec_part *part, CUgraphNode *ret_node)
{
	OB_CLEANUP(ob_freep) struct obf_graph_task *tasks = calloc(part->n, sizeof *tasks);
	OB_CLEANUP(ob_freep) uint32_t *deps = NULL;
	const struct obf_graph_part made = { part->n,
		(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0, tasks };
	size_t n_deps = 0;
	CUresult result;

	for (uint32_t i = 0; i < part->n; i++)
		n_deps += exec->nodes[exec->order[part->first + i]].n_deps;
	deps = calloc(n_deps + 1, sizeof *deps);
	if (!tasks || !deps)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = tasks_make(exec, part, tasks, deps, ret_node);
	return result == CUDA_SUCCESS
		? obf_process.backend->graph_make(exec->ctx, &made, &part->made)
		: result;
}

/* Cuts the order where the kind of the nodes changes. */
static CUresult parts_make(struct obf_exec *exec, CUgraphNode *ret_node)
{
	bool prepares = obf_process.backend->graph_make != NULL, task = false;
	CUresult result = CUDA_SUCCESS;

	exec->parts = calloc(exec->n + 1, sizeof *exec->parts);
	if (!exec->parts)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < exec->n; i++) {
		struct obf_exec_node *node = &exec->nodes[exec->order[i]];
		bool is_task = prepares && obf_exec_is_task(&node->params);
		struct obf_exec_part *part;

		if (i == 0 || is_task != task)
			exec->parts[exec->n_parts++] = (struct obf_exec_part){ .first = i };
		task = is_task;
		part = &exec->parts[exec->n_parts - 1];
		node->part = exec->n_parts - 1;
		node->index = part->n++;
		part->prints |= node->params.type == CU_GRAPH_NODE_TYPE_KERNEL &&
			node->params.kernel.prints;
	}
	for (uint32_t i = 0; i < exec->n_parts && result == CUDA_SUCCESS; i++) {
		struct obf_exec_part *part = &exec->parts[i];
		const struct obf_exec_node *node = &exec->nodes[exec->order[part->first]];

		if (prepares && part->n >= PART_MIN && obf_exec_is_task(&node->params))
			result = part_prepare(exec, part, ret_node);
	}
	return result;
}

/* ---- the object ---- */

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
	CUresult result = exec ? graph_list(exec, graph, NONE, &node) : CUDA_ERROR_OUT_OF_MEMORY;

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

	for (size_t i = 0; i < graph->n_nodes && result == CUDA_SUCCESS; i++)
		if (graph->nodes[i]->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
			result = users_take(exec, graph->nodes[i]->params.child);
	return result;
}

static CUresult exec_fill(struct obf_exec *exec, struct obf_graph *graph, CUgraphNode *ret_node)
{
	CUresult result = graph_list(exec, graph, NONE, ret_node);

	if (result == CUDA_SUCCESS)
		result = ctx_choose(exec, ret_node);
	if (result == CUDA_SUCCESS)
		result = names_make(exec);
	if (result == CUDA_SUCCESS)
		result = order_make(exec, ret_node);
	if (result == CUDA_SUCCESS)
		result = parts_make(exec, ret_node);
	if (result == CUDA_SUCCESS)
		result = obf_graph_new(&exec->users);
	return result == CUDA_SUCCESS ? users_take(exec, graph) : result;
}

CUresult obf_exec_new(struct obf_graph *graph, unsigned long long flags, struct obf_exec **ret,
	CUgraphNode *ret_node)
{
	struct obf_exec *exec;
	CUresult result;
	uint64_t id;

	*ret_node = NULL;
	/* As in CUDA: the addresses of its allocations can be used by one only. */
	if (graph->has_memory && graph->execs)
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
	if (graph->has_memory) {
		graph->execs++;
		exec->graph = graph->handle;
	}
	*ret = exec;
	return CUDA_SUCCESS;
}

void obf_exec_free(struct obf_exec *exec)
{
	struct obf_graph *graph;

	if (!exec)
		return;
	if (exec->handle)
		ob_ids_remove(&exec_ids, (uint64_t)(uintptr_t)exec->handle);
	for (uint32_t i = 0; i < exec->n_parts; i++)
		if (exec->parts[i].made)
			obf_process.backend->graph_drop(exec->parts[i].made);
	for (uint32_t i = 0; i < exec->n; i++) {
		obf_params_free(&exec->nodes[i].params);
		free(exec->nodes[i].deps);
	}
	graph = exec->graph ? obf_graph_find(exec->graph) : NULL;
	if (graph)
		graph->execs--;
	if (exec->done)
		obf_cuEventDestroy_v2(exec->done);
	obf_graph_free(exec->users);
	free(exec->nodes);
	free(exec->order);
	free(exec->parts);
	free(exec->names);
	free(exec);
}
