/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuDevicePrimaryCtx* and cuCtx*. */
#include <string.h>

#include "base/log.h"
#include "protocol/obf_calls.h"
#include "front/green_view.h"
#include "front/captured.h"
#include "front/private.h"
#include "front/waited.h"

#define API_VERSION       3020 /* the value that drivers return for contexts of every later API */
#define PRIORITY_GREATEST (-5)

static CUresult device_check(CUdevice dev)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	return obf_device_valid(dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* Valid flags: at most one scheduling flag, and no unknown flag. */
static bool flags_valid(unsigned flags)
{
	unsigned wait = flags & CU_CTX_SCHED_MASK;

	return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 && (wait & (wait - 1)) == 0;
}

/* ---- primary contexts ---- */

CUresult obf_cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	struct obf_context *context;
	CUresult result = device_check(dev);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_primary_retain(dev, &context);
	if (result == CUDA_SUCCESS)
		*ctx = context->pub.handle;
	return result;
}

CUresult obf_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult result = device_check(dev);

	return result != CUDA_SUCCESS ? result : obf_primary_release(dev);
}

CUresult obf_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags)
{
	CUresult result = device_check(dev);

	if (result != CUDA_SUCCESS)
		return result;
	if (!flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	obf_ctx_primary(dev)->flags = flags;
	return CUDA_SUCCESS;
}

CUresult obf_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active)
{
	CUresult result = device_check(dev);
	const struct obf_ctx *ctx;

	if (result != CUDA_SUCCESS)
		return result;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	ctx = obf_ctx_primary(dev);
	*flags = ctx->flags;
	*active = atomic_load(&ctx->active);
	return CUDA_SUCCESS;
}

CUresult obf_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	CUresult result = device_check(dev);

	return result != CUDA_SUCCESS ? result : obf_primary_reset(dev);
}

/* ---- created contexts ---- */

CUresult obf_cuCtxCreate_v2(CUcontext *ctx, unsigned flags, CUdevice dev)
{
	struct obf_context *context;
	CUresult result = device_check(dev);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx || !flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_context_new(dev, flags, &context);
	if (result != CUDA_SUCCESS)
		return result;
	result = obf_stack_push(context);
	if (result != CUDA_SUCCESS) {
		obf_context_end(context);
		return result;
	}
	*ctx = context->pub.handle;
	return CUDA_SUCCESS;
}

CUresult obf_cuCtxCreate_v3(
	CUcontext *ctx, CUexecAffinityParam *params, int n_params, unsigned flags, CUdevice dev)
{
	CUresult result = device_check(dev);

	if (result != CUDA_SUCCESS)
		return result;
	if (n_params < 0 || (n_params > 0 && !params))
		return CUDA_ERROR_INVALID_VALUE;
	/* NVIDIA's driver offers it to clients of its MPS service only (cuDeviceGetExecAffinitySupport). */
	if (n_params > 0)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return obf_cuCtxCreate_v2(ctx, flags, dev);
}

CUresult obf_cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params, unsigned flags, CUdevice dev)
{
	if (params && params->cigParams && params->execAffinityParams)
		return CUDA_ERROR_INVALID_VALUE;
	if (params && params->cigParams) /* a graphics API of this machine */
		return CUDA_ERROR_NOT_SUPPORTED;
	return obf_cuCtxCreate_v3(ctx, params ? params->execAffinityParams : NULL,
		params ? params->numExecAffinityParams : 0, flags, dev);
}

CUresult obf_cuCtxDestroy_v2(CUcontext ctx)
{
	struct obf_context *context, *top;
	CUcontext top_handle;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx || obf_context_find(ctx, &context) != CUDA_SUCCESS || context->pub.primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (obf_stack_top(&top, &top_handle) == CUDA_SUCCESS && top == context)
		obf_stack_pop(NULL);
	return obf_context_end(context);
}

CUresult obf_cuCtxAttach(CUcontext *ctx, unsigned flags)
{
	struct obf_context *context;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_context_find(NULL, &context);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&context->lock);
	context->usage++;
	pthread_mutex_unlock(&context->lock);
	*ctx = context->pub.handle;
	return CUDA_SUCCESS;
}

CUresult obf_cuCtxDetach(CUcontext ctx)
{
	struct obf_context *context;
	CUresult result = obf_ready();
	int left;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx || obf_context_find(ctx, &context) != CUDA_SUCCESS || context->pub.primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&context->lock);
	left = --context->usage;
	pthread_mutex_unlock(&context->lock);
	return left > 0 ? CUDA_SUCCESS : obf_cuCtxDestroy_v2(ctx);
}

/* ---- the calling thread's stack ---- */

CUresult obf_cuCtxPushCurrent_v2(CUcontext ctx)
{
	struct obf_context *context;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx || obf_context_find(ctx, &context) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	return obf_stack_push_as(context, ctx);
}

CUresult obf_cuCtxPopCurrent_v2(CUcontext *ctx)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	return obf_stack_pop(ctx) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult obf_cuCtxSetCurrent(CUcontext ctx)
{
	struct obf_context *context;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx) {
		obf_stack_pop(NULL);
		return CUDA_SUCCESS;
	}
	if (obf_context_find(ctx, &context) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	obf_stack_pop(NULL);
	return obf_stack_push_as(context, ctx);
}

CUresult obf_cuCtxGetCurrent(CUcontext *ctx)
{
	struct obf_context *context;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	/* A destroyed context remains visible to the threads in which it is current. */
	obf_stack_top(&context, ctx);
	return CUDA_SUCCESS;
}

/* ---- questions about a context ---- */

/* For queries that need no working context. NULL means the current context. */
static CUresult find(CUcontext ctx, const void *ret, struct obf_context **ret_context)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	return obf_context_find(ctx, ret_context);
}

static CUresult enter(struct obf_context **ret)
{
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	*ret = obf_context_of(ctx);
	return result;
}

/* The common checks of a query of the current context. */
static CUresult getter_enter(const void *ret, struct obf_context **ret_context)
{
	CUresult result = enter(ret_context);

	return result == CUDA_SUCCESS && !ret ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult obf_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	struct obf_context *context;
	CUresult result = find(ctx, device, &context);

	if (result == CUDA_SUCCESS)
		*device = context->pub.device;
	return result;
}

CUresult obf_cuCtxGetDevice(CUdevice *device)
{
	return obf_cuCtxGetDevice_v2(device, NULL);
}

CUresult obf_cuCtxGetFlags(unsigned *flags)
{
	struct obf_context *context;
	CUresult result = find(NULL, flags, &context);

	if (result == CUDA_SUCCESS)
		*flags = context->pub.flags;
	return result;
}

CUresult obf_cuCtxSetFlags(unsigned flags)
{
	struct obf_context *context;
	CUresult result = enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	context->pub.flags = flags;
	return CUDA_SUCCESS;
}

CUresult obf_cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	struct obf_context *context;
	CUresult result = find(ctx, id, &context);

	if (result == CUDA_SUCCESS)
		*id = context->pub.id;
	return result;
}

CUresult obf_cuCtxGetApiVersion(CUcontext ctx, unsigned *version)
{
	struct obf_context *context;
	CUresult result = find(ctx, version, &context);

	if (result == CUDA_SUCCESS)
		*version = API_VERSION;
	return result;
}

CUresult obf_cuCtxSynchronize_v2(CUcontext ctx)
{
	struct obf_context *context;
	CUresult result = obf_ready();

	if (result == CUDA_SUCCESS)
		result = obf_context_find(ctx, &context);
	if (result == CUDA_SUCCESS)
		result = obf_context_check(context);
	if (result == CUDA_SUCCESS)
		result = obf_capture_context(&context->pub);
	if (result == CUDA_SUCCESS) {
		obf_waits(false);
		result = obf_context_within(context, obf_process.backend->ctx_synchronize);
	}
	return obf_waited_heard() ? obf_waited(result, NULL, true) : result;
}

CUresult obf_cuCtxSynchronize(void)
{
	return obf_cuCtxSynchronize_v2(NULL);
}

CUresult obf_cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct obf_context *context;
	CUresult result = enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if ((int)limit < 0 || (int)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	/* The device may round the value, so the next query asks the backend again. */
	atomic_store(&context->limit_known[limit], false);
	return obf_process.backend->ctx_limit
		? obf_process.backend->ctx_limit(&context->pub, limit, true, &value)
		: CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CUresult obf_cuCtxGetLimit(size_t *value, CUlimit limit)
{
	struct obf_context *context;
	CUresult result = getter_enter(value, &context);
	size_t got = 0;

	if (result != CUDA_SUCCESS)
		return result;
	if ((int)limit < 0 || (int)limit >= CU_LIMIT_MAX || !obf_process.backend->ctx_limit)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	if (!atomic_load(&context->limit_known[limit])) {
		result = obf_process.backend->ctx_limit(&context->pub, limit, false, &got);
		if (result != CUDA_SUCCESS)
			return result;
		atomic_store(&context->limit[limit], got);
		atomic_store(&context->limit_known[limit], true);
	}
	*value = atomic_load(&context->limit[limit]);
	return CUDA_SUCCESS;
}

CUresult obf_cuCtxGetCacheConfig(CUfunc_cache *config)
{
	struct obf_context *context;
	CUresult result = getter_enter(config, &context);

	if (result == CUDA_SUCCESS)
		*config = context->cache_config;
	return result;
}

CUresult obf_cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct obf_context *context;
	CUresult result = enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if ((int)config < CU_FUNC_CACHE_PREFER_NONE || (int)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	context->cache_config = config; /* a hint that current devices ignore */
	return CUDA_SUCCESS;
}

CUresult obf_cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	struct obf_context *context;
	CUresult result = getter_enter(config, &context);

	if (result == CUDA_SUCCESS)
		*config = context->shared_config;
	return result;
}

CUresult obf_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct obf_context *context;
	CUresult result = enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if ((int)config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
		(int)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS; /* current devices have four-byte banks, which cannot be changed */
}

CUresult obf_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct obf_context *context;
	CUresult result = enter(&context);
	bool has;

	if (result != CUDA_SUCCESS)
		return result;
	has = obf_device_attr(obf_ctx_device(&context->pub),
		      CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1) != 0;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = has ? PRIORITY_GREATEST : 0;
	return CUDA_SUCCESS;
}

CUresult obf_cuCtxResetPersistingL2Cache(void)
{
	struct obf_context *context;

	/* no cache line is ever persistent: access policies are hints and are ignored */
	return enter(&context);
}

CUresult obf_cuCtxGetExecAffinity(CUexecAffinityParam *affinity, CUexecAffinityType type)
{
	struct obf_context *context;
	const struct obf_green *green;
	CUresult result = enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!affinity || (int)type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return affinity ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : CUDA_ERROR_INVALID_VALUE;
	affinity->type = type;
	green = obf_green_current(&context->pub);
	affinity->param.smCount.val = green
		? green->sms.count
		: (unsigned)obf_device_attr(obf_ctx_device(&context->pub),
			  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
	return CUDA_SUCCESS;
}
