/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "softdevice/address.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/copy.h"
#include "softdevice/core/engine/guard.h"
#include "softdevice/launch.h"
#include "softdevice/memory.h"
#include "softdevice/module.h"
#include "softdevice/sched.h"
#include "softdevice/window.h"

struct body {
	uint32_t first, n; /* tasks */
};

/* One node. Shared by the plans that have it. */
struct task {
	_Atomic int refs;
	int kind; /* OBF_TASK_* */
	struct obd_module *module;
	struct obd_grid grid;
	struct obf_copy copy;
	struct obf_fill fill;
	CUgraphConditionalNodeType type;
	const _Atomic uint32_t *condition;
	struct body *bodies; /* owned */
	uint32_t n_bodies;
	_Alignas(16) unsigned char params[];
};

struct condition {
	struct obd_alloc *word;
	uint32_t start;
	unsigned flags;
};

struct obd_graph {
	_Atomic int refs;              /* of its owner and of the plans */
	struct obd_ctx *ctx;           /* NULL: it has ended */
	struct obd_graph *next, *prev; /* in ctx->graphs; the context's lock */
	struct condition *conditions;
	uint32_t n_conditions;
	struct plan *plan;   /* NULL: obd_graph_make has not succeeded */
	struct obd_op *last; /* of its launches; one reference */
};

/* The nodes of a launch. Changed only while no launch has it. */
struct plan {
	_Atomic int refs;
	struct obd_graph *graph;
	uint32_t n, n_top;            /* those that are in no body come first */
	struct condition *conditions; /* owned; those of the graph when the plan was made */
	uint32_t n_conditions;
	struct {
		struct task *task;
		bool disabled;
	} nodes[];
};

struct graph_op {
	struct obd_op op;
	struct plan *plan;
};

/* ---- references ---- */

static bool last_ref(_Atomic int *refs)
{
	return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

static void task_unref(struct task *task)
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

static void plan_unref(struct plan *plan)
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
		struct plan *plan = graph->plan;

		list_remove(graph);
		graph->ctx = NULL;
		graph->plan = NULL;
		conditions_free(graph);
		plan_unref(plan);
	}
}

void obd_graph_drop(void *made)
{
	struct obd_graph *graph = made;
	struct plan *plan = graph->plan;

	graph->plan = NULL;
	plan_unref(plan);
	graph_unref(graph);
}

/* ---- conditions ---- */

CUresult obd_graph_condition(struct obf_ctx *front, void **begun, unsigned start, unsigned flags,
	CUgraphConditionalHandle *ret)
{
	struct obd_ctx *ctx = front->backend;
	struct obd_graph *graph = *begun ? *begun : graph_new(ctx);
	struct condition *conditions;
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
	conditions[graph->n_conditions++] = (struct condition){ word, start, flags };
	*ret = word->span.base;
	return CUDA_SUCCESS;
}

/* ---- plans ---- */

static CUresult copy_check(const struct obf_copy *c)
{
	CUresult result = obd_copy_side_check(true, c->src, c->src_pitch, c->src_slice, c);

	return result == CUDA_SUCCESS
		? obd_copy_side_check(true, c->dst, c->dst_pitch, c->dst_slice, c)
		: result;
}

static CUresult fill_check(const struct obf_fill *fill)
{
	return obd_address_check(fill->dst,
		(fill->height - 1) * fill->pitch + (uint64_t)fill->width * fill->element);
}

static CUresult task_new(const struct obf_graph_task *what, struct task **ret)
{
	size_t bytes = what->kind == OBF_TASK_KERNEL ? what->func->param_bytes : 0;
	struct task *task = calloc(1, ob_round_up(sizeof *task + bytes, _Alignof(struct task)));
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
		result = copy_check(what->copy);
		break;
	case OBF_TASK_FILL:
		task->fill = *what->fill;
		result = fill_check(what->fill);
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
static struct plan *plan_new(struct obd_graph *graph, uint32_t n,
	const struct condition *conditions, uint32_t n_conditions)
{
	struct plan *plan = calloc(1, sizeof *plan + n * sizeof plan->nodes[0]);
	struct condition *own = calloc(n_conditions + 1u, sizeof *own);

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
	struct obd_graph *graph, const struct obf_graph_part *part, struct plan **ret)
{
	struct plan *plan = plan_new(graph, part->n, graph->conditions, graph->n_conditions);
	CUresult result = plan ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (uint32_t i = 0; i < part->n && result == CUDA_SUCCESS; i++) {
		const struct obf_graph_task *what = &part->tasks[i];
		struct body *body;

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
		plan_unref(plan);
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
	struct plan *old = graph->plan, *plan;

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
	plan_unref(old);
	return CUDA_SUCCESS;
}

CUresult obd_graph_set(void *made, uint32_t index, const struct obf_graph_task *what)
{
	struct obd_graph *graph = made;
	struct task *task;
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

/* ---- launches ---- */

static bool goes_on(const struct obd_ctx *ctx)
{
	return !atomic_load_explicit(&ctx->abort, memory_order_relaxed) &&
		obd_ctx_failed(ctx) == CUDA_SUCCESS;
}

static void tasks_run(struct graph_op *op, uint32_t first, uint32_t n);

static void body_run(struct graph_op *op, const struct task *task, uint32_t branch)
{
	tasks_run(op, task->bodies[branch].first, task->bodies[branch].n);
}

static void conditional_run(struct graph_op *op, const struct task *task)
{
	uint32_t value = atomic_load(task->condition);

	switch (task->type) {
	case CU_GRAPH_COND_TYPE_IF:
		if (value)
			body_run(op, task, 0);
		else if (task->n_bodies > 1)
			body_run(op, task, 1);
		break;
	case CU_GRAPH_COND_TYPE_WHILE:
		while (atomic_load(task->condition) && goes_on(op->op.ctx)) {
			body_run(op, task, 0);
			/* In a dry run no kernel ever ends the loop. */
			if (obd_config.model)
				break;
		}
		break;
	default:
		if (value < task->n_bodies)
			body_run(op, task, value);
	}
}

/* Memory that was unmapped since is an error of the launch. */
static void check(const struct graph_op *op, CUresult result)
{
	if (result != CUDA_SUCCESS)
		obd_ctx_fail(op->op.ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void copy_rows(void *task)
{
	obd_copy_rows(&((const struct task *)task)->copy);
}

static void fill_rows(void *task)
{
	obf_fill_rows(&((const struct task *)task)->fill);
}

/* The memory may be unmapped meanwhile. */
static void guarded(const struct graph_op *op, void (*rows)(void *task), const struct task *task)
{
	if (!obd_guard_try(rows, (void *)(uintptr_t)task, obd_window.base, obd_window.size))
		obd_ctx_fail(op->op.ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void tasks_run(struct graph_op *op, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n && goes_on(op->op.ctx); i++) {
		const struct task *task = op->plan->nodes[i].task;

		if (op->plan->nodes[i].disabled)
			continue;
		switch (task->kind) {
		case OBF_TASK_KERNEL:
			obd_grid_run_in(&op->op, &task->grid);
			break;
		case OBF_TASK_COPY:
			check(op, copy_check(&task->copy));
			if (goes_on(op->op.ctx))
				guarded(op, copy_rows, task);
			break;
		case OBF_TASK_FILL:
			check(op, fill_check(&task->fill));
			if (goes_on(op->op.ctx))
				guarded(op, fill_rows, task);
			break;
		case OBF_TASK_CONDITIONAL:
			conditional_run(op, task);
			break;
		default:
			break;
		}
	}
}

static void graph_run(struct obd_op *base)
{
	struct graph_op *op = (struct graph_op *)base;
	const struct plan *plan = op->plan;

	for (uint32_t i = 0; i < plan->n_conditions; i++)
		if (plan->conditions[i].flags & CU_GRAPH_COND_ASSIGN_DEFAULT)
			*(uint32_t *)plan->conditions[i].word->span.base =
				plan->conditions[i].start;
	tasks_run(op, 0, plan->n_top);
}

static void graph_fini(struct obd_op *op)
{
	plan_unref(((struct graph_op *)op)->plan);
}

CUresult obd_graph_launch(void *made, struct obf_stream *base, bool prints)
{
	struct obd_stream *stream = obd_stream_of(base);
	struct obd_graph *graph = made;
	struct graph_op *op;
	CUresult result;

	(void)prints;
	if (!graph->plan)
		return CUDA_ERROR_INVALID_HANDLE;
	op = obd_op_new(sizeof *op, OBD_OP_KERNEL, stream->ctx);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = graph_run;
	op->op.fini = graph_fini;
	op->plan = graph->plan;
	atomic_fetch_add(&op->plan->refs, 1);
	obd_print_flush(&stream->ctx->print);
	/* A launch waits for the one before it, also in another stream. */
	result = obd_sched_submit(&op->op, stream, graph->last);
	if (result == CUDA_SUCCESS) {
		obd_op_unref(graph->last);
		graph->last = obd_op_ref(&op->op);
	}
	obd_op_unref(&op->op);
	return result;
}

CUresult obd_graph_upload(void *made, struct obf_stream *stream)
{
	(void)made;
	(void)stream;
	return CUDA_SUCCESS;
}
