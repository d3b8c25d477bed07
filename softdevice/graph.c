/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/graph_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "softdevice/address.h"
#include "softdevice/context.h"
#include "softdevice/copy.h"
#include "softdevice/launch.h"
#include "softdevice/memory.h"
#include "softdevice/module.h"
#include "softdevice/sched.h"

/* ---- references ---- */

static bool last_ref(_Atomic int *refs)
{
	return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

static void task_unref(struct obd_task *task)
{
	if (!task || !last_ref(&task->refs))
		return;
	if (task->module)
		obd_module_unref(task->module);
	free(task->bodies);
	free(task);
}

static void conditions_free(struct obd_graph *graph)
{
	for (uint32_t i = 0; i < graph->n_conditions; i++)
		obd_memory_free(graph->conditions[i].word);
	free(graph->conditions);
	graph->conditions = NULL;
	graph->n_conditions = 0;
}

static void list_remove(struct obd_graph *graph)
{
	struct obd_ctx *ctx = graph->ctx;

	pthread_mutex_lock(&ctx->lock);
	if (graph->prev)
		graph->prev->next = graph->next;
	else
		ctx->graphs = graph->next;
	if (graph->next)
		graph->next->prev = graph->prev;
	pthread_mutex_unlock(&ctx->lock);
}

static void graph_unref(struct obd_graph *graph)
{
	if (!last_ref(&graph->refs))
		return;
	if (graph->ctx)
		list_remove(graph);
	conditions_free(graph);
	obd_op_unref(graph->last);
	free(graph);
}

void obd_plan_unref(struct obd_plan *plan)
{
	if (!plan || !last_ref(&plan->refs))
		return;
	for (uint32_t i = 0; i < plan->n; i++)
		task_unref(plan->nodes[i].task);
	graph_unref(plan->graph);
	free(plan->conditions);
	free(plan);
}

static struct obd_graph *graph_new(struct obd_ctx *ctx)
{
	struct obd_graph *graph = calloc(1, sizeof *graph);

	if (!graph)
		return NULL;
	atomic_init(&graph->refs, 1);
	graph->ctx = ctx;
	pthread_mutex_lock(&ctx->lock);
	graph->next = ctx->graphs;
	if (graph->next)
		graph->next->prev = graph;
	ctx->graphs = graph;
	pthread_mutex_unlock(&ctx->lock);
	return graph;
}

/* No launch of the context is queued any more. */
void obd_graphs_forget(struct obd_ctx *ctx)
{
	while (ctx->graphs) {
		struct obd_graph *graph = ctx->graphs;
		struct obd_plan *plan = graph->plan;

		list_remove(graph);
		graph->ctx = NULL;
		graph->plan = NULL;
		conditions_free(graph);
		obd_plan_unref(plan);
	}
}

void obd_graph_drop(void *made)
{
	struct obd_graph *graph = made;
	struct obd_plan *plan = graph->plan;

	graph->plan = NULL;
	obd_plan_unref(plan);
	graph_unref(graph);
}

/* ---- conditions ---- */

CUresult obd_graph_condition(struct obf_ctx *front, void **begun, unsigned start, unsigned flags,
	CUgraphConditionalHandle *ret)
{
	struct obd_ctx *ctx = front->backend;
	struct obd_graph *graph = *begun ? *begun : graph_new(ctx);
	struct obd_condition *conditions;
	struct obd_alloc *word;

	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*begun = graph;
	if (!graph->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	conditions = realloc(graph->conditions, (graph->n_conditions + 1) * sizeof *conditions);
	if (!conditions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->conditions = conditions;
	word = obd_memory_new(ctx, sizeof(uint64_t), sizeof(uint64_t), OBD_ALLOC_WORD);
	if (!word)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(uint32_t *)word->span.base = start;
	conditions[graph->n_conditions++] = (struct obd_condition){ word, start, flags };
	*ret = word->span.base;
	return CUDA_SUCCESS;
}

/* ---- plans ---- */

CUresult obd_graph_copy_check(const struct obf_copy *c)
{
	CUresult result = obd_copy_side_check(true, c->src, c->src_pitch, c->src_slice, c);

	return result == CUDA_SUCCESS
		? obd_copy_side_check(true, c->dst, c->dst_pitch, c->dst_slice, c)
		: result;
}

CUresult obd_graph_fill_check(const struct obf_fill *fill)
{
	return obd_address_check(fill->dst,
		(fill->height - 1) * fill->pitch + (uint64_t)fill->width * fill->element);
}

static CUresult task_new(const struct obf_graph_task *what, struct obd_task **ret)
{
	size_t bytes = what->kind == OBF_TASK_KERNEL ? what->func->param_bytes : 0;
	struct obd_task *task =
		calloc(1, ob_round_up(sizeof *task + bytes, _Alignof(struct obd_task)));
	CUresult result = CUDA_SUCCESS;

	if (!task)
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_init(&task->refs, 1);
	task->kind = (int)what->kind;
	switch (what->kind) {
	case OBF_TASK_KERNEL:
		task->module = what->func->mod->backend;
		obd_module_ref(task->module);
		memcpy(task->params, what->packed, bytes);
		obd_grid_fill(&task->grid, what->func, what->launch);
		task->grid.params = task->params;
		break;
	case OBF_TASK_COPY:
		task->copy = *what->copy;
		result = obd_graph_copy_check(what->copy);
		break;
	case OBF_TASK_FILL:
		task->fill = *what->fill;
		result = obd_graph_fill_check(what->fill);
		break;
	case OBF_TASK_CONDITIONAL:
		task->type = what->conditional.type;
		task->condition = (const _Atomic uint32_t *)what->conditional.handle;
		task->n_bodies = what->conditional.bodies;
		task->bodies = calloc(task->n_bodies, sizeof *task->bodies);
		result = task->bodies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		break;
	default:
		break;
	}
	if (result == CUDA_SUCCESS)
		*ret = task;
	else
		task_unref(task);
	return result;
}

/* Takes a reference of the graph. NULL: out of memory. */
static struct obd_plan *plan_new(struct obd_graph *graph, uint32_t n,
	const struct obd_condition *conditions, uint32_t n_conditions)
{
	struct obd_plan *plan = calloc(1, sizeof *plan + n * sizeof plan->nodes[0]);
	struct obd_condition *own = calloc(n_conditions + 1u, sizeof *own);

	if (!plan || !own) {
		free(plan);
		free(own);
		return NULL;
	}
	for (uint32_t i = 0; i < n_conditions; i++)
		own[i] = conditions[i];
	atomic_init(&plan->refs, 1);
	plan->graph = graph;
	atomic_fetch_add(&graph->refs, 1);
	plan->n = n;
	plan->conditions = own;
	plan->n_conditions = n_conditions;
	return plan;
}

static CUresult plan_make(
	struct obd_graph *graph, const struct obf_graph_part *part, struct obd_plan **ret)
{
	struct obd_plan *plan = plan_new(graph, part->n, graph->conditions, graph->n_conditions);
	CUresult result = plan ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (uint32_t i = 0; i < part->n && result == CUDA_SUCCESS; i++) {
		const struct obf_graph_task *what = &part->tasks[i];
		struct obd_body *body;

		result = task_new(what, &plan->nodes[i].task);
		if (what->parent == UINT32_MAX)
			plan->n_top++;
		if (result != CUDA_SUCCESS || what->parent == UINT32_MAX)
			continue;
		body = &plan->nodes[what->parent].task->bodies[what->branch];
		if (!body->n++)
			body->first = i;
	}
	if (result == CUDA_SUCCESS)
		*ret = plan;
	else
		obd_plan_unref(plan);
	return result;
}

CUresult obd_graph_make(struct obf_ctx *front, const struct obf_graph_part *part, void **ret)
{
	struct obd_graph *graph = part->begun ? part->begun : graph_new(front->backend);
	CUresult result;

	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = graph->ctx ? plan_make(graph, part, &graph->plan) : CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS)
		*ret = graph;
	else if (!part->begun)
		obd_graph_drop(graph);
	return result;
}

/* Makes the plan one that no launch has. */
static CUresult plan_own(struct obd_graph *graph)
{
	struct obd_plan *old = graph->plan, *plan;

	if (!old)
		return CUDA_ERROR_INVALID_HANDLE;
	if (atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
		return CUDA_SUCCESS;
	plan = plan_new(graph, old->n, old->conditions, old->n_conditions);
	if (!plan)
		return CUDA_ERROR_OUT_OF_MEMORY;
	plan->n_top = old->n_top;
	for (uint32_t i = 0; i < old->n; i++) {
		plan->nodes[i] = old->nodes[i];
		atomic_fetch_add(&plan->nodes[i].task->refs, 1);
	}
	graph->plan = plan;
	obd_plan_unref(old);
	return CUDA_SUCCESS;
}

CUresult obd_graph_set(void *made, uint32_t index, const struct obf_graph_task *what)
{
	struct obd_graph *graph = made;
	struct obd_task *task;
	CUresult result = plan_own(graph);

	if (result == CUDA_SUCCESS)
		result = task_new(what, &task);
	if (result != CUDA_SUCCESS)
		return result;
	task_unref(graph->plan->nodes[index].task);
	graph->plan->nodes[index].task = task;
	return CUDA_SUCCESS;
}

CUresult obd_graph_enable(void *made, uint32_t index, bool on)
{
	struct obd_graph *graph = made;
	CUresult result = plan_own(graph);

	if (result == CUDA_SUCCESS)
		graph->plan->nodes[index].disabled = !on;
	return result;
}
