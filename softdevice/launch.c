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
	if (ob_unlikely(obd_config.model != NULL)) {
		k->op.run_ns = obd_dry_grid_ns(launch);
		return k;
	}
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
	if (f->callback)
		f->callback(f->stream, status, f->user);
	else if (!status && !atomic_load_explicit(&op->ctx->abort, memory_order_relaxed))
		f->fn(f->user);
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
