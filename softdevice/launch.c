/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernel launches and host functions. The front end checks and packs them, this file queues them,
 * and the core runs the kernels.
 */
#include <string.h>

#include "base/check.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/dry.h"
#include "softdevice/launch.h"
#include "softdevice/module.h"
#include "softdevice/notice.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"

struct kernel_op {
	struct obd_op op;
	struct obd_module *module;
	struct obd_grid grid;
	_Alignas(16) unsigned char params[];
};

static void grid_run(struct obd_ctx *ctx, const struct obd_grid *grid)
{
	struct obd_fault fault = { .result = CUDA_SUCCESS };
	CUresult result = obd_grid_run(obd_module_pool(), grid, &fault);

	if (!result)
		return;
	if (!atomic_load_explicit(&ctx->abort, memory_order_relaxed))
		obd_notice_fault(&fault);
	obd_ctx_fail(ctx, result);
}

static void kernel_run(struct obd_op *op)
{
	struct obd_grid *grid = &((struct kernel_op *)op)->grid;

	grid->limit = op->limit;
	grid_run(op->ctx, grid);
}

static void kernel_fini(struct obd_op *op)
{
	obd_module_unref(((struct kernel_op *)op)->module);
}

void obd_grid_run_in(struct obd_op *op, const struct obd_grid *grid)
{
	struct obd_grid now = *grid;

	if (ob_unlikely(obd_config.model != NULL)) {
		op->run_ns += obd_dry_grid_ns(grid->grid, grid->block);
		return;
	}
	now.grid_id = atomic_fetch_add_explicit(&op->ctx->grids, 1, memory_order_relaxed) + 1;
	now.abort = &op->ctx->abort;
	grid_run(op->ctx, &now);
}

void obd_grid_fill(
	struct obd_grid *ret, const struct obf_func *func, const struct obf_launch *launch)
{
	const struct obd_module *module = func->mod->backend;

	ret->program = module->program;
	ret->kernel = func->backend;
	memcpy(ret->grid, launch->grid, sizeof ret->grid);
	memcpy(ret->block, launch->block, sizeof ret->block);
	for (int i = 0; i < 3; i++)
		ret->cluster[i] =
			launch->cluster[0] ? launch->cluster[i] : (uint32_t)func->attrs.cluster[i];
	ret->dynamic_shared = launch->dynamic_shared;
	ret->cooperative = launch->cooperative;
	ret->pending_launches = (uint32_t)module->ctx->launches_limit;
}

static struct kernel_op *kernel_op_new(
	struct obd_ctx *ctx, const struct obf_func *func, const struct obf_launch *launch)
{
	struct kernel_op *k = obd_op_new(sizeof *k + func->param_bytes, OBD_OP_KERNEL, ctx);

	if (!k)
		return NULL;
	if (ob_unlikely(obd_config.model != NULL)) {
		k->op.run_ns = obd_dry_grid_ns(launch->grid, launch->block);
		return k;
	}
	k->module = func->mod->backend;
	obd_module_ref(k->module);
	k->op.run = kernel_run;
	k->op.fini = kernel_fini;
	obd_grid_fill(&k->grid, func, launch);
	k->grid.params = k->params;
	k->grid.grid_id = atomic_fetch_add_explicit(&ctx->grids, 1, memory_order_relaxed) + 1;
	k->grid.abort = &ctx->abort;
	return k;
}

static inline CUresult launch_enqueue(struct obf_stream *base, struct obf_func *func,
	const struct obf_launch *launch, void **params, void **extra)
{
	struct obd_stream *stream = obd_stream_of(base);
	struct kernel_op *op = kernel_op_new(stream->ctx, func, launch);
	CUresult result;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obf_launch_pack(func, params, extra, op->params);
	if (!result) {
		obd_print_flush(&stream->ctx->print);
		result = obd_sched_submit(&op->op, stream, NULL);
	}
	obd_op_unref(&op->op);
	return result;
}

CUresult obd_launch_packed(struct obf_stream *stream, struct obf_func *func,
	const struct obf_launch *launch, void *packed)
{
	size_t size = func->param_bytes;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size, CU_LAUNCH_PARAM_END };

	return launch_enqueue(stream, func, launch, NULL, extra);
}

#include "front/launch_calls.h"

/* ---- host functions ---- */

struct host_op {
	struct obd_op op;
	struct obf_host_function function;
};

static void host_run(struct obd_op *op)
{
	const struct obf_host_function *f = &((struct host_op *)op)->function;
	CUresult status = obd_ctx_failed(op->ctx);

	/*
	 * In a context that has failed a host function is not called. A callback is called with the
	 * error.
	 */
	if (f->callback || !atomic_load_explicit(&op->ctx->abort, memory_order_relaxed))
		obf_host_function_run(f, status);
}

CUresult obd_host_function(struct obf_stream *base, const struct obf_host_function *function)
{
	struct obd_stream *stream = obd_stream_of(base);
	struct host_op *op = obd_op_new(sizeof *op, OBD_OP_HOST, stream->ctx);
	CUresult result;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = host_run;
	op->function = *function;
	result = obd_sched_submit(&op->op, stream, NULL);
	obd_op_unref(&op->op);
	return result;
}
