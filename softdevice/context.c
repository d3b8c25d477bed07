/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/context.h"

#include "base/check.h"

CUresult obd_ctx_enter(struct obd_ctx **ret)
{
	struct obf_ctx *front;
	CUresult result = obf_ctx_enter(&front);

	if (ob_unlikely(result))
		return result;
	*ret = front->backend;
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult obd_ctx_none(void)
{
	if (obf_in_host_function)
		return CUDA_ERROR_NOT_PERMITTED;
	/* A forked child has no devices, even if its parent has initialised the driver. */
	return obf_device_count() > 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult obd_ctx_result(const struct obd_ctx *ctx)
{
	return obf_ctx_report(ctx->front);
}

CUresult obd_ctx_failed(const struct obd_ctx *ctx)
{
	return (CUresult)atomic_load_explicit(&ctx->front->sticky, memory_order_acquire);
}

void obd_ctx_fail(struct obd_ctx *ctx, CUresult result)
{
	int healthy = 0;

	atomic_compare_exchange_strong(&ctx->front->sticky, &healthy, (int)result);
}
