/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Launches. The hot path of the whole library: look-ups in arrays, CUDA's checks, and the
 * parameters packed straight into the log. No allocation, no lock but the log's, no system call.
 */
#include <string.h>

#include "client-shim/log.h"
#include "client-shim/stream.h"
#include "protocol/obc_calls.h"
#include "protocol/obc_locals.h"

/*
 * What could fail while packing, found before the record is begun: a begun record must be finished.
 */
static inline CUresult params_check(const struct obf_func *func, void **params)
{
	if (!func->n_params)
		return CUDA_SUCCESS;
	if (ob_unlikely(!params))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < func->n_params; i++)
		if (ob_unlikely(!params[i]))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static inline uint32_t launch_flags(const struct obf_func *func, const struct obf_launch *launch)
{
	return (launch->cooperative ? OBP_LAUNCH_COOPERATIVE : 0) |
		(launch->has_priority ? OBP_LAUNCH_PRIORITY : 0) |
		(func->mod->symbols->prints ? OBP_LAUNCH_PRINTS : 0);
}

static inline CUresult launch_write(struct obf_ctx *ctx, const struct obc_lane_of *at,
	const struct obf_func *func, const struct obf_launch *launch, void **params,
	const void *packed)
{
	struct obp_launch_req *req;
	struct obc_slot slot;
	void *data;

	req = obc_begin_op_launch(&slot, func->param_bytes, &data);
	if (ob_unlikely(!req))
		return obc_log_error();
	req->func = func->backend_id;
	req->stream = at->wire;
	memcpy(req->grid, launch->grid, sizeof req->grid);
	memcpy(req->block, launch->block, sizeof req->block);
	memcpy(req->cluster, launch->cluster, sizeof req->cluster);
	req->shared = launch->dynamic_shared;
	req->flags = launch_flags(func, launch);
	req->priority = launch->priority;
	if (ob_unlikely(packed != NULL))
		memcpy(data, packed, func->param_bytes);
	else
		obf_launch_pack(func, params, NULL, data);
	obc_stream_mark(at, slot.number);
	return obc_ctx_result(ctx, obc_log_commit(&slot));
}

/* Parameters in one buffer of the program's: packed aside first, because its form can be wrong. */
static __attribute__((noinline)) CUresult launch_extra(struct obf_ctx *ctx,
	const struct obc_lane_of *at, const struct obf_func *func, const struct obf_launch *launch,
	void **params, void **extra)
{
	uint8_t packed[OBP_PARAM_BYTES_MAX];
	CUresult result = obf_launch_pack(func, params, extra, packed);

	return result == CUDA_SUCCESS ? launch_write(ctx, at, func, launch, NULL, packed) : result;
}

static inline CUresult launch_put(CUfunction handle, const struct obf_launch *launch,
	CUstream stream, void **params, void **extra)
{
	struct obc_lane_of at;
	struct obf_func *func;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	result = obf_func_resolve(handle, ctx, &func);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	result = obc_stream_enter(stream, ctx, &at);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	result = obf_launch_check(ctx, func, launch);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	if (ob_unlikely(extra != NULL))
		return launch_extra(ctx, &at, func, launch, params, extra);
	result = params_check(func, params);
	return ob_likely(result == CUDA_SUCCESS)
		? launch_write(ctx, &at, func, launch, params, NULL)
		: result;
}

static inline CUresult launch_go(CUfunction func, const struct obf_launch *launch, CUstream stream,
	void **params, void **extra)
{
	return obf_launch_end(launch_put(func, launch, stream, params, extra), stream);
}

CUresult obc_cuLaunchKernel(CUfunction func, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
	void **params, void **extra)
{
	const struct obf_launch launch = { .grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.dynamic_shared = shared };

	return launch_go(func, &launch, stream, params, extra);
}

CUresult obc_cuLaunchCooperativeKernel(CUfunction func, unsigned grid_x, unsigned grid_y,
	unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
	CUstream stream, void **params)
{
	const struct obf_launch launch = { .grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.dynamic_shared = shared,
		.cooperative = true };

	return launch_go(func, &launch, stream, params, NULL);
}

CUresult obc_cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction func, void **params, void **extra)
{
	struct obf_launch launch;
	CUresult result = obf_launch_from_config(config, &launch);

	if (result != CUDA_SUCCESS)
		return result;
	/* One block is what no cluster means. */
	if (launch.cluster[0] <= 1 && launch.cluster[1] <= 1 && launch.cluster[2] <= 1)
		memset(launch.cluster, 0, sizeof launch.cluster);
	return launch_go(func, &launch, config->hStream, params, extra);
}
