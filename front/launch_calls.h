/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The launch calls. They are not in the backend's table: the path from the call to the client's
 * ring is so short that an indirect call would add a noticeable part to its cost. Each backend
 * includes this file once, in launch.c, after its definition of
 *
 *   static inline CUresult launch_enqueue(struct obf_stream *stream, struct obf_func *func,
 *           const struct obf_launch *launch, void **params, void **extra);
 *
 * which packs the parameters (obf_launch_pack) and puts the launch into the stream.
 */
#ifndef OBF_LAUNCH_CALLS_H
#define OBF_LAUNCH_CALLS_H

#include <string.h>

#include "front/captured.h"
#include "front/front.h"
#include "front/launch_old.h"
#include "front/stream.h"
#include "front/mirror.h"
#include "protocol/obf_calls.h"

/*
 * The way of a launch while the program has memory that kernels may access too. The parameters are
 * packed first: they may lie in such memory, and pointers to pinned memory are replaced.
 */
static __attribute__((noinline)) CUresult launch_watched(struct obf_stream *stream,
	struct obf_func *func, const struct obf_launch *launch, void **params, void **extra)
{
	_Alignas(8) uint8_t packed[OBI_PARAM_BYTES_MAX];
	size_t size = func->param_bytes;
	void *buffer[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size, CU_LAUNCH_PARAM_END };
	CUresult result = obf_launch_pack(func, params, extra, packed);

	if (result == CUDA_SUCCESS)
		result = obf_mirrors_launch(stream, func, packed);
	return result == CUDA_SUCCESS ? launch_enqueue(stream, func, launch, NULL, buffer) : result;
}

/*
 * A launch into a captured stream, or one that is looked at: there is memory that kernels and the
 * program share, or there are several servers (obf_launch_watched).
 */
static __attribute__((noinline)) CUresult launch_unusual(struct obf_stream *stream,
	CUfunction handle, struct obf_func *func, const struct obf_launch *launch, void **params,
	void **extra)
{
	unsigned watched = atomic_load_explicit(&obf_launch_watched, memory_order_relaxed);

	if (stream->capture != NULL)
		return obf_capture_launch(stream, handle, launch, params, extra);
	if (watched & OBF_WATCH_APART)
		obf_launch_look(stream, func, params);
	if (watched & OBF_WATCH_SHARED || extra || obf_mirrors_concern(func, params))
		return launch_watched(stream, func, launch, params, extra);
	return launch_enqueue(stream, func, launch, params, extra);
}

static inline CUresult launch_put(CUfunction handle, const struct obf_launch *launch,
	CUstream stream_handle, void **params, void **extra)
{
	struct obf_stream *stream;
	struct obf_func *func;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	result = obf_func_resolve(handle, ctx, &func);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	result = obf_stream_get_current(stream_handle, ctx, &stream);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	result = obf_launch_check(ctx, func, launch);
	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	if (ob_unlikely(stream->capture != NULL ||
		    atomic_load_explicit(&obf_launch_watched, memory_order_relaxed)))
		result = launch_unusual(stream, handle, func, launch, params, extra);
	else
		result = launch_enqueue(stream, func, launch, params, extra);
	return obf_ctx_result(ctx, result);
}

static inline CUresult launch_call(CUfunction func, const struct obf_launch *launch,
	CUstream stream, void **params, void **extra)
{
	return obf_launch_end(launch_put(func, launch, stream, params, extra), stream);
}

CUresult obf_cuLaunchKernel(CUfunction func, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
	void **params, void **extra)
{
	const struct obf_launch launch = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.dynamic_shared = shared,
	};

	return launch_call(func, &launch, stream, params, extra);
}

CUresult obf_cuLaunchCooperativeKernel(CUfunction func, unsigned grid_x, unsigned grid_y,
	unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
	CUstream stream, void **params)
{
	const struct obf_launch launch = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.dynamic_shared = shared,
		.cooperative = true,
	};

	return launch_call(func, &launch, stream, params, NULL);
}

CUresult obf_cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction func, void **params, void **extra)
{
	struct obf_launch launch;
	CUresult result = obf_launch_from_config(config, &launch);

	if (result != CUDA_SUCCESS)
		return result;
	/* A cluster of one block is the same as no cluster. */
	if (launch.cluster[0] <= 1 && launch.cluster[1] <= 1 && launch.cluster[2] <= 1)
		memset(launch.cluster, 0, sizeof launch.cluster);
	return launch_call(func, &launch, config->hStream, params, extra);
}

CUresult obf_cuLaunchGridAsync(CUfunction func, int width, int height, CUstream stream)
{
	struct obf_launch launch;
	void *extra[5];
	CUresult result = obf_launch_old_take(func, width, height, &launch, extra);

	return result == CUDA_SUCCESS ? launch_call(func, &launch, stream, NULL, extra) : result;
}

CUresult obf_cuLaunchGrid(CUfunction func, int width, int height)
{
	return obf_cuLaunchGridAsync(func, width, height, NULL);
}

CUresult obf_cuLaunch(CUfunction func)
{
	return obf_cuLaunchGridAsync(func, 1, 1, NULL);
}

#endif
