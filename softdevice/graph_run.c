/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Launches of graphs: one op, which executes the nodes in turn on an executor. */
#include "base/check.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/copy.h"
#include "softdevice/core/engine/guard.h"
#include "softdevice/graph_inside.h"
#include "softdevice/launch.h"
#include "softdevice/memory.h"
#include "softdevice/sched.h"
#include "softdevice/window.h"

struct graph_op {
	struct obd_op op;
	struct obd_plan *plan;
};

static bool goes_on(const struct obd_ctx *ctx)
{
	return !atomic_load_explicit(&ctx->abort, memory_order_relaxed) &&
		obd_ctx_failed(ctx) == CUDA_SUCCESS;
}

static void tasks_run(struct graph_op *op, uint32_t first, uint32_t n);

static void body_run(struct graph_op *op, const struct obd_task *task, uint32_t branch)
{
	tasks_run(op, task->bodies[branch].first, task->bodies[branch].n);
}

static void conditional_run(struct graph_op *op, const struct obd_task *task)
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
	obd_copy_rows(&((const struct obd_task *)task)->copy);
}

static void fill_rows(void *task)
{
	obf_fill_rows(&((const struct obd_task *)task)->fill);
}

/* The memory may be unmapped meanwhile. */
static void guarded(
	const struct graph_op *op, void (*rows)(void *task), const struct obd_task *task)
{
	if (!obd_guard_try(rows, (void *)(uintptr_t)task, obd_window.base, obd_window.size))
		obd_ctx_fail(op->op.ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void tasks_run(struct graph_op *op, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n && goes_on(op->op.ctx); i++) {
		const struct obd_task *task = op->plan->nodes[i].task;

		if (op->plan->nodes[i].disabled)
			continue;
		switch (task->kind) {
		case OBF_TASK_KERNEL:
			obd_grid_run_in(&op->op, &task->grid);
			break;
		case OBF_TASK_COPY:
			check(op, obd_graph_copy_check(&task->copy));
			if (goes_on(op->op.ctx))
				guarded(op, copy_rows, task);
			break;
		case OBF_TASK_FILL:
			check(op, obd_graph_fill_check(&task->fill));
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
	const struct obd_plan *plan = op->plan;

	for (uint32_t i = 0; i < plan->n_conditions; i++)
		if (plan->conditions[i].flags & CU_GRAPH_COND_ASSIGN_DEFAULT)
			*(uint32_t *)plan->conditions[i].word->span.base =
				plan->conditions[i].start;
	tasks_run(op, 0, plan->n_top);
}

static void graph_fini(struct obd_op *op)
{
	obd_plan_unref(((struct graph_op *)op)->plan);
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
