/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/context.h"

#include <pthread.h>

#include "base/opt.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/hostfunc.h"
#include "client-shim/session/background.h"
#include "client-shim/session/log.h"
#include "client-shim/cuda/plain.h"
#include "client-shim/cuda/stream.h"
#include "protocol/obc_calls.h"

static pthread_mutex_t ctx_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Returns an id whose entry in the table is free; the protocol fixes the ids of primary contexts.
 * An id is never used twice, because each lane stores the id that it sent to the server last. 0:
 * the table is full.
 */
static uint64_t ctx_number(const struct obf_ctx *ctx)
{
	static uint64_t uses; /* under ctx_lock */

	if (ctx->primary)
		return OBP_CTX_PRIMARY + obc_device_number(ctx->device);
	for (uint64_t place = OBP_CTX_PRIMARY + OBP_DEVICE_MAX; place <= OBC_CTX_MAX; place++)
		if (!obc_ctxs[place - 1].id)
			return place + OBC_CTX_MAX * ++uses;
	return 0;
}

CUresult obc_ctx_create(struct obf_ctx *ctx)
{
	struct obc_ctx *home;
	uint64_t id;

	pthread_mutex_lock(&ctx_lock);
	id = ctx_number(ctx);
	home = &obc_ctxs[(id - 1) % OBC_CTX_MAX];
	if (id) {
		*home = (struct obc_ctx){ .id = id, .settled = obc_ctx_launches() };
		ctx->backend = (void *)(uintptr_t)id;
	}
	pthread_mutex_unlock(&ctx_lock);
	if (!id)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The server creates a primary context when its id is first used. */
	return ctx->primary
		? CUDA_SUCCESS
		: obc_call_op_ctx_create(id, obc_device_number(ctx->device), ctx->flags);
}

CUresult obc_ctx_destroy(struct obf_ctx *ctx)
{
	struct obc_ctx *home = obc_ctx_of(ctx);
	bool launched = obc_ctx_launched(ctx);
	CUresult result;

	obc_background_wait();
	obc_plain_end(ctx);
	/* In this order the server waits for the context's work before the memory is reused. */
	result = obc_call_op_ctx_destroy(home->id);
	/*
	 * The driver reports the error of unfinished kernels, or repeats the error of the context,
	 * with the next reply. It is received here so that it is not attributed to a later context.
	 * Host functions have returned by then.
	 */
	if (result == CUDA_SUCCESS && (launched || atomic_load(&ctx->sticky)))
		result = obc_call_op_ping();
	obf_ctx_note(ctx, result);
	result = atomic_load(&ctx->sticky_reported) ? CUDA_SUCCESS
						    : (CUresult)atomic_load(&ctx->sticky);
	return result;
}

void obc_ctx_release(struct obf_ctx *ctx)
{
	obc_plain_release(ctx);
	pthread_mutex_lock(&ctx_lock);
	obc_ctx_of(ctx)->id = 0;
	pthread_mutex_unlock(&ctx_lock);
}

/* ---- waiting ---- */

bool obc_ctx_launched(struct obf_ctx *ctx)
{
	struct obc_ctx *home = obc_ctx_of(ctx);

	return (obc_hostfunc_pending() || obc_background_pending() ||
		       obc_ctx_launches() != atomic_load(&home->settled)) &&
		obc_ctx_busy(home) && !obc_streams_idle(ctx);
}

/* The record is executed in the current context, for which it waits. */
static CUresult wait_all(struct obf_ctx *ctx)
{
	struct obc_ctx *home = obc_ctx_of(ctx);
	uint64_t launches = obc_ctx_launches();
	struct obc_slot slot;
	CUresult result;

	if (!obc_log_begin(&slot, OBP_OP_CTX_SYNCHRONIZE, 0))
		return obc_log_error();
	result = obc_log_call(&slot, NULL, 0, NULL);
	if (result == CUDA_SUCCESS) {
		obc_raise(&home->done, slot.number);
		obc_ctx_settled(home, launches, true);
	}
	return obf_ctx_result(ctx, result);
}

CUresult obc_ctx_synchronize(struct obf_ctx *ctx)
{
	return ob_opt_on(OB_OPT_LOCAL) && !obc_ctx_busy(obc_ctx_of(ctx)) ? CUDA_SUCCESS
									 : wait_all(ctx);
}

CUresult obc_ctx_settle(struct obf_ctx *ctx)
{
	return obc_ctx_launched(ctx) ? wait_all(ctx) : CUDA_SUCCESS;
}

CUresult obc_ctx_limit(struct obf_ctx *ctx, CUlimit limit, bool set, size_t *value)
{
	uint64_t now = 0;
	CUresult result = obc_call_op_ctx_limit((uint32_t)limit, set, set ? *value : 0, &now);

	if (result == CUDA_SUCCESS)
		*value = now;
	return obf_ctx_result(ctx, result);
}
