/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/context.h"

#include <stddef.h>

#include "server/layers/keep.h"

struct obs_context *obs_context_find(struct obs_session *session, uint64_t id)
{
	if (id == 0)
		return NULL;
	for (uint32_t i = 0; i < session->n_contexts; i++)
		if (atomic_load_explicit(&session->contexts[i].id, memory_order_relaxed) == id)
			return &session->contexts[i];
	return NULL;
}

/* Gives the context its part of the device, if the session's share is kept so. */
static void part_make(struct obs_session *session, struct obs_context *context)
{
	struct ob_cause cause;

	if (!context->driver || !context->primary || context->part.green ||
		obs_keep_by() != OBP_SHARE_BY_GREEN)
		return;
	if (obs_partition_make(session->drv, (CUdevice)context->device, context->driver,
		    obs_limits_now.share, &context->part, &cause))
		obs_keep_fall_back(&cause);
	else
		obs_keep_part_made(context->driver);
}

CUresult obs_context_ready(struct obs_session *session, struct obs_context *context)
{
	if (context == &session->refused)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (context->primary && !context->driver)
		context->error = session->drv->cuDevicePrimaryCtxRetain(
			&context->driver, (CUdevice)context->device);
	part_make(session, context);
	return context->driver   ? CUDA_SUCCESS
		: context->error ? context->error
				 : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult obs_context_enter(struct obs_exec *x, struct obs_context *context)
{
	CUresult result = CUDA_SUCCESS;

	if (context)
		result = obs_context_ready(x->session, context);
	if (result == CUDA_SUCCESS)
		result = x->drv->cuCtxSetCurrent(context ? context->driver : NULL);
	if (result == CUDA_SUCCESS)
		x->context = context;
	return result;
}
