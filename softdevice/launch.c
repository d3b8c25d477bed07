/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernel launches and host functions: checked and packed by the front end, queued here, run by the core.
 */
#include <string.h>

#include "base/cleanup.h"
#include "protocol/obd_locals.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
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

static void kernel_run(struct obd_op *op)
{
	struct kernel_op *k = (struct kernel_op *)op;
	struct obd_fault fault = { .result = CUDA_SUCCESS };
	CUresult result = obd_grid_run(obd_module_pool(), &k->grid, &fault);

	if (!result)
		return;
	if (!atomic_load_explicit(&op->ctx->abort, memory_order_relaxed))
		obd_notice_fault(&fault);
	obd_ctx_fail(op->ctx, result);
}

static void kernel_fini(struct obd_op *op)
{
	obd_module_unref(((struct kernel_op *)op)->module);
}

static struct kernel_op *kernel_op_new(
	struct obd_ctx *ctx, const struct obf_func *func, const struct obf_launch *launch)
{
	struct kernel_op *k = obd_op_new(sizeof *k + func->param_bytes, OBD_OP_KERNEL, ctx);

	if (!k)
		return NULL;
	k->module = func->mod->backend;
	obd_module_ref(k->module);
	k->op.run = kernel_run;
	k->op.fini = kernel_fini;
	k->grid.program = k->module->program;
	k->grid.kernel = func->backend;
	memcpy(k->grid.grid, launch->grid, sizeof k->grid.grid);
	memcpy(k->grid.block, launch->block, sizeof k->grid.block);
	for (int i = 0; i < 3; i++)
		k->grid.cluster[i] = launch->cluster[i] ? launch->cluster[i] : 1;
	k->grid.dynamic_shared = launch->dynamic_shared;
	k->grid.cooperative = launch->cooperative;
	k->grid.params = k->params;
	k->grid.grid_id = atomic_fetch_add_explicit(&ctx->grids, 1, memory_order_relaxed) + 1;
	k->grid.abort = &ctx->abort;
	return k;
}

static CUresult launch_put(CUfunction function, const struct obf_launch *launch, CUstream stream,
	void **params, void **extra)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	struct obf_func *func;
	struct kernel_op *op;
	CUresult result = obd_ctx_enter(&ctx);

	if (!result)
		result = obf_func_resolve(function, ctx->front, &func);
	if (!result)
		result = obf_launch_check(ctx->front, func, launch);
	if (!result)
		result = obd_stream_get(ctx, stream, &s);
	if (!result && s->ctx != ctx)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result)
		return result;
	op = kernel_op_new(ctx, func, launch);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obf_launch_pack(func, params, extra, op->params);
	if (!result) {
		obd_print_flush(&ctx->print);
		result = obd_sched_submit(&op->op, s, NULL);
	}
	obd_op_unref(&op->op);
	return result;
}

static CUresult launch_do(CUfunction func, const struct obf_launch *launch, CUstream stream,
	void **params, void **extra)
{
	return obf_launch_end(launch_put(func, launch, stream, params, extra), stream);
}

CUresult obd_cuLaunchKernel(CUfunction func, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
	struct obf_launch launch = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.dynamic_shared = shared_bytes,
	};

	return launch_do(func, &launch, stream, params, extra);
}

CUresult obd_cuLaunchCooperativeKernel(CUfunction func, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int shared_bytes, CUstream stream, void **params)
{
	struct obf_launch launch = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.dynamic_shared = shared_bytes,
		.cooperative = true,
	};

	return launch_do(func, &launch, stream, params, NULL);
}

CUresult obd_cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction func, void **params, void **extra)
{
	struct obf_launch launch;
	CUresult result =
		config ? obf_launch_from_config(config, &launch) : CUDA_ERROR_INVALID_VALUE;

	return result ? result : launch_do(func, &launch, config->hStream, params, extra);
}

/* ---- host functions ---- */

struct host_op {
	struct obd_op op;
	CUhostFn function; /* one of the two */
	CUstreamCallback callback;
	CUstream stream;
	void *user;
};

static void host_run(struct obd_op *op)
{
	struct host_op *h = (struct host_op *)op;
	CUresult status = obd_ctx_failed(op->ctx);

	/*
	 * A host function is not called in a context that has failed; a callback is, and is told.
	 */
	if (h->callback)
		h->callback(h->stream, status, h->user);
	else if (!status && !atomic_load_explicit(&op->ctx->abort, memory_order_relaxed))
		h->function(h->user);
}

static CUresult host_submit(
	CUstream stream, CUhostFn function, CUstreamCallback callback, void *user)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	struct host_op *op;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (result)
		return result;
	op = obd_op_new(sizeof *op, OBD_OP_HOST, s->ctx);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = host_run;
	op->function = function;
	op->callback = callback;
	op->stream = stream;
	op->user = user;
	result = obd_sched_submit(&op->op, s, NULL);
	obd_op_unref(&op->op);
	return result;
}

CUresult obd_cuLaunchHostFunc(CUstream stream, CUhostFn callback, void *user_data)
{
	return callback ? host_submit(stream, callback, NULL, user_data) : CUDA_ERROR_INVALID_VALUE;
}

CUresult obd_cuStreamAddCallback(
	CUstream stream, CUstreamCallback callback, void *user_data, unsigned int flags)
{
	return callback && flags == 0 ? host_submit(stream, NULL, callback, user_data)
				      : CUDA_ERROR_INVALID_VALUE;
}
