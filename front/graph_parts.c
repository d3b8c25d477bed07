/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The parts of an executable graph, and the nodes as the backend gets them. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/opt.h"
#include "front/graph_exec.h"
#include "front/mirror.h"
#include "front/private.h"

#define NONE       UINT32_MAX
/* Fewer nodes are cheaper as single records. */
#define PART_MIN   2u
/* Smaller handles can be numbers that a kernel uses for something else, so they are not replaced. */
#define HANDLE_LOW (UINT64_C(1) << 32)

/* ---- nodes ---- */

/* Whether work of the node's device can reach the memory. */
static bool is_near(const struct obf_node_params *params, uint64_t addr)
{
	const struct obf_backend *backend = obf_process.backend;
	struct obf_mem mem;

	return !backend->apart || !params->ctx || !obf_mem_find(addr, &mem) ||
		!backend->apart(params->ctx->device, mem.device);
}

bool obf_exec_is_task(const struct obf_node_params *params)
{
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return true;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return params->copy.empty ||
			(params->copy.copy.src_device && params->copy.copy.dst_device &&
				params->copy.copy.src_ctx == params->copy.copy.dst_ctx &&
				is_near(params, params->copy.copy.src) &&
				is_near(params, params->copy.copy.dst));
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return params->fill.empty ||
			(params->fill.device && is_near(params, params->fill.fill.dst));
	default:
		return false;
	}
}

/* Calls `fn` for each aligned word of 8 bytes in the arguments. */
static void words_each(const struct obf_func *func, uint8_t *args,
	void (*fn)(void *user, uint64_t *word), void *user)
{
	for (uint32_t i = 0; i < func->n_params; i++) {
		uint8_t *param = args + func->params[i].offset;

		for (uint32_t at = 0; at + sizeof(uint64_t) <= func->params[i].size;
			at += sizeof(uint64_t)) {
			uint64_t word;

			memcpy(&word, param + at, sizeof word);
			if (word < HANDLE_LOW)
				continue;
			fn(user, &word);
			memcpy(param + at, &word, sizeof word);
		}
	}
}

static void word_own(void *user, uint64_t *word)
{
	const struct obf_exec *exec = user;

	for (uint32_t i = 0; i < exec->n_conds; i++) {
		if (exec->conds[i].handle != *word)
			continue;
		*word = exec->conds[i].own;
		return;
	}
}

CUresult obf_exec_args(const struct obf_exec *exec, struct obf_kernel_params *kernel,
	const struct obf_func *func, uint8_t **ret)
{
	*ret = kernel->packed;
	if (!exec->translates && obf_pinned_bounds.low >= obf_pinned_bounds.high)
		return CUDA_SUCCESS;
	if (!kernel->sent)
		kernel->sent = malloc(ob_max(kernel->bytes, 1u));
	if (!kernel->sent)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(kernel->sent, kernel->packed, kernel->bytes);
	if (exec->translates)
		words_each(func, kernel->sent, word_own, (void *)(uintptr_t)exec);
	*ret = kernel->sent;
	return CUDA_SUCCESS;
}

CUresult obf_exec_task(
	const struct obf_exec *exec, struct obf_node_params *params, struct obf_graph_task *ret)
{
	const struct obf_cond_params *cond = &params->cond;
	uint8_t *args;
	CUresult result;

	*ret = (struct obf_graph_task){ .kind = OBF_TASK_EMPTY, .parent = NONE };
	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		ret->kind = OBF_TASK_KERNEL;
		ret->launch = &params->kernel.launch;
		result = obf_params_func(params, &ret->func);
		if (result == CUDA_SUCCESS)
			result = obf_exec_args(exec, &params->kernel, ret->func, &args);
		if (result != CUDA_SUCCESS)
			return result;
		ret->packed = args;
		/* The program's own copy stays as it is. */
		ret->mirrored = args != params->kernel.packed &&
			obf_mirrors_replace(params->ctx, ret->func, args);
	} else if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY && !params->copy.empty) {
		ret->kind = OBF_TASK_COPY;
		ret->copy = &params->copy.copy;
	} else if (params->type == CU_GRAPH_NODE_TYPE_MEMSET && !params->fill.empty) {
		ret->kind = OBF_TASK_FILL;
		ret->fill = &params->fill.fill;
	} else if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
		ret->kind = OBF_TASK_CONDITIONAL;
		ret->conditional.handle = exec->conds[cond->number].own;
		ret->conditional.type = cond->type;
		ret->conditional.bodies = cond->size;
	}
	return CUDA_SUCCESS;
}

/* ---- conditions ---- */

struct replace {
	const struct obf_graph *from;
	const struct obf_exec *to;
};

static void word_other(void *user, uint64_t *word)
{
	const struct replace *replace = user;

	for (uint32_t i = 0; i < replace->from->n_conds && i < replace->to->n_conds; i++) {
		if (replace->from->conds[i]->handle != *word)
			continue;
		*word = replace->to->conds[i].handle;
		return;
	}
}

void obf_exec_handles_replace(const struct obf_func *func, uint8_t *args,
	const struct obf_graph *from, const struct obf_exec *to)
{
	struct replace replace = { from, to };

	words_each(func, args, word_other, &replace);
}

static CUresult conds_make(struct obf_exec *exec, const struct obf_graph *graph)
{
	exec->conds = calloc(graph->n_conds + 1u, sizeof *exec->conds);
	if (!exec->conds)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < graph->n_conds; i++) {
		const struct obf_cond *cond = graph->conds[i];

		exec->conds[exec->n_conds++] = (struct obf_exec_cond){ cond->handle, cond->handle,
			cond->start, cond->flags, NONE };
	}
	return CUDA_SUCCESS;
}

/* The handles of a part that the graph's own handles cannot serve. */
static CUresult handles_make(struct obf_exec *exec, struct obf_exec_part *part)
{
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = 0; i < exec->n_conds && result == CUDA_SUCCESS; i++) {
		struct obf_exec_cond *cond = &exec->conds[i];

		if (cond->part != (uint32_t)(part - exec->parts))
			continue;
		result = obf_process.backend->graph_condition(
			exec->ctx, &part->begun, cond->start, cond->flags, &cond->own);
		if (result != CUDA_SUCCESS || cond->own == cond->handle)
			continue;
		exec->translates = true;
		if (cond->handle < HANDLE_LOW)
			result = obf_absent("cuGraphInstantiate: a second executable graph with "
					    "conditional nodes",
				"the driver's handles cannot be told from numbers: build the graph "
				"again");
	}
	return result;
}

static CUresult part_conds(
	struct obf_exec *exec, struct obf_exec_part *part, struct obf_graph *graph)
{
	if (!part->n_conds)
		return CUDA_SUCCESS;
	if (part->n_conds < exec->n_conds || graph->begun_used)
		return handles_make(exec, part);
	part->begun = graph->begun;
	part->lent = graph->begun_lent = graph->begun_used = true;
	return CUDA_SUCCESS;
}

struct misplaced {
	const struct obf_exec *exec;
	uint32_t part;
	bool found;
};

static void word_misplaced(void *user, uint64_t *word)
{
	struct misplaced *misplaced = user;
	const struct obf_exec *exec = misplaced->exec;

	for (uint32_t i = 0; i < exec->n_conds; i++)
		misplaced->found |=
			exec->conds[i].handle == *word && exec->conds[i].part != misplaced->part;
}

/*
 * A kernel sets a condition only within the part of the conditional node, which is a graph of its own
 * for the driver.
 */
static CUresult setters_check(const struct obf_exec *exec, CUgraphNode *ret_node)
{
	for (uint32_t i = 0; i < exec->n && exec->n_conds; i++) {
		const struct obf_exec_node *node = &exec->nodes[i];
		struct misplaced misplaced = { exec, node->part, false };
		struct obf_func *func;

		if (node->params.type != CU_GRAPH_NODE_TYPE_KERNEL ||
			obf_params_func(&node->params, &func) != CUDA_SUCCESS)
			continue;
		words_each(func, node->params.kernel.packed, word_misplaced, &misplaced);
		if (!misplaced.found)
			continue;
		*ret_node = node->handle;
		return obf_absent("cuGraphInstantiate: work of the host between a kernel and the "
				  "conditional node whose value it sets",
			"set the value in a kernel after that work");
	}
	return CUDA_SUCCESS;
}

/* ---- parts ---- */

/* Appends a node's task. Nodes of earlier parts come before it anyway. */
static CUresult task_make(struct obf_exec *exec, struct obf_exec_part *part, uint32_t at,
	struct obf_graph_task *tasks, uint32_t **deps, CUgraphNode *ret_node)
{
	struct obf_exec_node *node = &exec->nodes[at];
	struct obf_graph_task *task = &tasks[node->index];
	CUresult result = obf_exec_task(exec, &node->params, task);

	if (result != CUDA_SUCCESS) {
		*ret_node = node->handle;
		return result;
	}
	part->mirrored |= task->mirrored;
	if (node->scope) {
		task->parent = exec->nodes[exec->scopes[node->scope].node].index;
		task->branch = exec->scopes[node->scope].branch;
	}
	task->deps = *deps;
	for (uint32_t k = 0; k < node->n_deps; k++) {
		const struct obf_exec_node *dep = &exec->nodes[node->deps[k]];

		if (dep->part == node->part)
			(*deps)[task->n_deps++] = dep->index;
	}
	*deps += task->n_deps;
	return CUDA_SUCCESS;
}

/* Calls `fn` for each node of the part, those of the graph first. */
#define PART_EACH(exec, part, i, s)                                             \
	for (uint32_t s = 0; s < ((part)->n_conds ? (exec)->n_scopes : 1); s++) \
		for (uint32_t i = s ? (exec)->scopes[s].first : (part)->first,  \
			      end_ = i + (s ? (exec)->scopes[s].n : (part)->n); \
			i < end_; i++)                                          \
			if (&(exec)->parts[(exec)->nodes[(exec)->order[i]].part] == (part))

static CUresult part_prepare(
	struct obf_exec *exec, struct obf_exec_part *part, CUgraphNode *ret_node)
{
	OB_CLEANUP(ob_freep) struct obf_graph_task *tasks = calloc(part->total, sizeof *tasks);
	OB_CLEANUP(ob_freep) uint32_t *deps = NULL;
	const struct obf_graph_part made = { part->total,
		(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0, tasks,
		part->begun };
	CUresult result = CUDA_SUCCESS;
	size_t n_deps = 0;
	uint32_t *next;

	PART_EACH(exec, part, i, s)
	n_deps += exec->nodes[exec->order[i]].n_deps;
	deps = next = calloc(n_deps + 1, sizeof *deps);
	if (!tasks || !deps)
		return CUDA_ERROR_OUT_OF_MEMORY;
	part->mirror_ends = atomic_load(&obf_mirror_ends);
	PART_EACH(exec, part, i, s)
	if (result == CUDA_SUCCESS)
		result = task_make(exec, part, exec->order[i], tasks, &next, ret_node);
	return result == CUDA_SUCCESS
		? obf_process.backend->graph_make(exec->ctx, &made, &part->made)
		: result;
}

CUresult obf_exec_part_renew(struct obf_exec *exec, struct obf_exec_part *part)
{
	CUresult result = CUDA_SUCCESS;

	part->mirror_ends = atomic_load(&obf_mirror_ends);
	part->mirrored = false;
	PART_EACH(exec, part, i, s)
	{
		struct obf_exec_node *node = &exec->nodes[exec->order[i]];
		struct obf_graph_task task;

		if (result != CUDA_SUCCESS || node->params.type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		result = obf_exec_task(exec, &node->params, &task);
		part->mirrored |= task.mirrored;
		if (result == CUDA_SUCCESS)
			result = obf_process.backend->graph_set(part->made, node->index, &task);
	}
	return result;
}

/* Which part the nodes are in, and their places. */
static void parts_cut(struct obf_exec *exec, bool by_kind)
{
	bool task = false;

	for (uint32_t i = 0; i < exec->scopes[0].n; i++) {
		struct obf_exec_node *node = &exec->nodes[exec->order[i]];
		bool is_task = by_kind && obf_exec_is_task(&node->params);
		struct obf_exec_part *part;

		if (i == 0 || is_task != task)
			exec->parts[exec->n_parts++] = (struct obf_exec_part){ .first = i };
		task = is_task;
		part = &exec->parts[exec->n_parts - 1];
		node->part = exec->n_parts - 1;
		node->index = part->n++;
		part->total = part->n;
	}
	/* A body comes after the body that its conditional node is in. */
	for (uint32_t i = exec->scopes[0].n; i < exec->n; i++) {
		struct obf_exec_node *node = &exec->nodes[exec->order[i]];

		node->part = exec->nodes[exec->scopes[node->scope].node].part;
		node->index = exec->parts[node->part].total++;
	}
	for (uint32_t i = 0; i < exec->n; i++) {
		struct obf_exec_node *node = &exec->nodes[i];
		struct obf_exec_part *part = &exec->parts[node->part];

		if (node->params.type == CU_GRAPH_NODE_TYPE_KERNEL)
			part->prints |= node->params.kernel.prints;
		if (node->params.type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
			continue;
		part->n_conds++;
		exec->conds[node->params.cond.number].part = node->part;
	}
}

CUresult obf_exec_parts_make(struct obf_exec *exec, struct obf_graph *graph, CUgraphNode *ret_node)
{
	bool prepares = obf_process.backend->graph_all && ob_opt_on(OB_OPT_GRAPHS);
	CUresult result = conds_make(exec, graph);

	if (graph->begun)
		graph->begun_lent = false; /* the graph has no other executable graph now */
	exec->parts = calloc(exec->n + 1, sizeof *exec->parts);
	if (result != CUDA_SUCCESS || !exec->parts)
		return CUDA_ERROR_OUT_OF_MEMORY;
	parts_cut(exec, prepares || exec->n_conds);
	result = setters_check(exec, ret_node);
	for (uint32_t i = 0; i < exec->n_parts && result == CUDA_SUCCESS; i++)
		result = part_conds(exec, &exec->parts[i], graph);
	for (uint32_t i = 0; i < exec->n_parts && result == CUDA_SUCCESS; i++) {
		struct obf_exec_part *part = &exec->parts[i];
		const struct obf_exec_node *node = &exec->nodes[exec->order[part->first]];

		if (part->n_conds ||
			(prepares && part->n >= PART_MIN && obf_exec_is_task(&node->params)))
			result = part_prepare(exec, part, ret_node);
	}
	return result;
}
