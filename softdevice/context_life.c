/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/context_life.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/core/texture.h"
#include "softdevice/graph.h"
#include "softdevice/memory.h"
#include "softdevice/module.h"
#include "softdevice/sched.h"
#include "softdevice/scratch.h"

/* time for running work to finish by itself, and as much again to stop after it was asked to */
#define END_NS           (2 * OB_SECOND)
/* the limits of the device runtime and of the L2 cache, as CUDA documents them */
#define LAUNCHES_DEFAULT 2048
#define FETCH_DEFAULT    64 /* bytes */
#define FETCH_MAX        128

static void env_print(void *user, const char *text, size_t size)
{
	struct obd_ctx *ctx = user;

	obd_print_append(&ctx->print, text, size);
}

/* Device code asks (cudaDeviceGetAttribute, cudaDeviceGetLimit). */
static bool env_ask(void *user, bool limit, uint32_t which, uint64_t *ret)
{
	struct obd_ctx *ctx = user;
	size_t value;

	if (!limit) {
		if (which == 0 || which >= CU_DEVICE_ATTRIBUTE_MAX)
			return false;
		*ret = (uint32_t)obf_device_at(ctx->front->device)->attr[which];
		return true;
	}
	if (obd_ctx_limit(ctx->front, (CUlimit)which, false, &value))
		return false;
	*ret = value;
	return true;
}

static void env_fill(struct obd_ctx *ctx)
{
	ctx->env = (struct obd_env){
		.user = ctx,
		.alloc = obd_memory_env_alloc,
		.free = obd_memory_env_free,
		.window_base = obd_window.base,
		.window_size = obd_window.size,
		.scratch_alloc = obd_scratch_alloc,
		.scratch_free = obd_scratch_free,
		.check = obd_config.memcheck ? obd_memory_env_check : NULL,
		.check_texture = obd_memory_env_check_texture,
		.heap_alloc = obd_memory_heap_alloc,
		.heap_free = obd_memory_heap_free,
		.print = env_print,
		.ask = env_ask,
		.ordinal = ctx->front->device,
		.compute_capability = obd_config.cc,
		.sm_count = obd_config.sms,
	};
}

CUresult obd_ctx_create(struct obf_ctx *front)
{
	struct obd_ctx *ctx;

	if (!obd_module_pool())
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx = calloc(1, sizeof *ctx);
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->front = front;
	ctx->device = &obd_devices[front->device];
	pthread_mutex_init(&ctx->lock, NULL);
	obd_print_init(&ctx->print);
	ctx->heap_limit = OBD_HEAP_DEFAULT;
	ctx->print_limit = OBD_PRINT_DEFAULT;
	ctx->stack_limit = OBD_STACK_DEFAULT;
	ctx->fetch_limit = FETCH_DEFAULT;
	ctx->launches_limit = LAUNCHES_DEFAULT;
	env_fill(ctx);
	ctx->env.textures = obd_textures_new();
	if (!ctx->env.textures) {
		obd_print_fini(&ctx->print);
		free(ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	front->backend = ctx;
	return CUDA_SUCCESS;
}

CUresult obd_ctx_destroy(struct obf_ctx *front)
{
	struct obd_ctx *ctx = front->backend;

	if (!ctx)
		return CUDA_SUCCESS;
	if (!obd_ctx_drain(ctx, ob_clock_ns() + END_NS)) {
		atomic_store(&ctx->abort, 1);
		ctx->abandoned = !obd_ctx_drain(ctx, ob_clock_ns() + END_NS);
	}
	obd_print_flush(&ctx->print);
	if (ctx->abandoned)
		ob_warn("a context was destroyed while one of its host functions still runs: the "
			"context's memory is not freed. Let host functions return before "
			"cuCtxDestroy");
	else if (!atomic_load(&front->sticky_reported) && !atomic_load(&ctx->abort))
		return obd_ctx_result(ctx);
	return CUDA_SUCCESS;
}

void obd_ctx_release(struct obf_ctx *front)
{
	struct obd_ctx *ctx = front->backend;

	if (!ctx || ctx->abandoned)
		return;
	obd_graphs_forget(ctx);
	obd_module_forget(ctx);
	obd_memory_forget(ctx);
	obd_textures_free(ctx->env.textures);
	obd_print_fini(&ctx->print);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

CUresult obd_ctx_synchronize(struct obf_ctx *front)
{
	struct obd_ctx *ctx = front->backend;

	if (!ctx) /* a primary context that has not been used yet */
		return CUDA_SUCCESS;
	obd_ctx_wait(ctx, false);
	obd_print_flush(&ctx->print);
	return obd_ctx_result(ctx);
}

/* Where the value of a limit is stored. NULL: the device does not have the limit. */
static uint64_t *limit_at(struct obd_ctx *ctx, CUlimit limit, uint64_t *ret_max)
{
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		*ret_max = OBD_STACK_MAX;
		return &ctx->stack_limit;
	case CU_LIMIT_PRINTF_FIFO_SIZE:
		*ret_max = OBD_PRINT_MAX;
		return &ctx->print_limit;
	case CU_LIMIT_MALLOC_HEAP_SIZE:
		*ret_max = ctx->device->total;
		return &ctx->heap_limit;
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
		*ret_max = UINT32_MAX;
		return &ctx->launches_limit;
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		*ret_max = FETCH_MAX;
		return &ctx->fetch_limit;
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
		*ret_max = (uint32_t)obf_device_at(ctx->front->device)
				   ->attr[CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE];
		return *ret_max ? &ctx->l2_limit : NULL;
	default:
		return NULL;
	}
}

CUresult obd_ctx_limit(struct obf_ctx *front, CUlimit limit, bool set, size_t *value)
{
	struct obd_ctx *ctx = front->backend;
	uint64_t max, *at;
	CUresult result = CUDA_SUCCESS;

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (limit == CU_LIMIT_CIG_ENABLED && !set) {
		/*
		 * 0: no context shares its device with a graphics API. The query must succeed:
		 * cuBLASLt leaves its handle uninitialised when it fails.
		 */
		*value = 0;
		return CUDA_SUCCESS;
	}
	at = limit_at(ctx, limit, &max);
	if (!at)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	pthread_mutex_lock(&ctx->lock);
	if (!set)
		*value = *at;
	else if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		*at = ob_min(*value, max); /* as CUDA documents */
	else if (*value > max)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		*at = *value;
	pthread_mutex_unlock(&ctx->lock);
	return result;
}
