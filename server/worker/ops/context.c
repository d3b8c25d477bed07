/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Session and context operations. */
#include <string.h>

#include "base/check.h"
#include "server/layers/throttle.h"
#include "server/layers/hold.h"
#include "server/layers/keep.h"
#include "server/layers/quota.h"
#include "server/worker/completion.h"
#include "server/worker/device_times.h"
#include "server/worker/free_memory.h"
#include "server/worker/ipc.h"
#include "server/worker/lane.h"
#include "server/worker/ops/array.h"
#include "server/worker/ops/ops.h"

/*
 * As obs_context_find. A client learns only later that a context was refused, and names it until
 * then.
 */
static struct obs_context *context_named(struct obs_session *session, uint64_t id)
{
	struct obs_context *context = obs_context_find(session, id);

	return context || !session->contexts_refused || id == 0 ? context : &session->refused;
}

void obs_op_ctx_use(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_ctx_use_req *req)
{
	struct obs_context *context = context_named(x->session, req->ctx);

	if (req->ctx && !context)
		obs_violation(x, rec, "unknown context");
	if (!x->lane->refused)
		x->lane->context = context;
}

static struct obs_context *context_entry(struct obs_session *session)
{
	for (uint32_t i = (uint32_t)session->n_devices; i < session->n_contexts; i++)
		if (atomic_load_explicit(&session->contexts[i].id, memory_order_relaxed) == 0)
			return &session->contexts[i];
	return session->n_contexts < OBS_CONTEXTS_MAX ? &session->contexts[session->n_contexts++]
						      : NULL;
}

static CUresult context_make(struct obs_exec *x, struct obs_context *context)
{
	CUresult result = obs_quota_host(OBS_HOLD_HANDLES, OBS_CONTEXT_BYTES);
	CUcontext popped;

	if (result != CUDA_SUCCESS)
		return result;
	result =
		x->drv->cuCtxCreate_v2(&context->driver, context->flags, (CUdevice)context->device);
	/*
	 * The driver pushed it. The stacks of the program's threads are kept by the client; this
	 * one would only grow.
	 */
	if (result == CUDA_SUCCESS) {
		x->drv->cuCtxPopCurrent_v2(&popped);
	} else {
		context->driver = NULL;
		obs_hold_give(OBS_HOLD_HANDLES, OBS_CONTEXT_BYTES);
	}
	return result;
}

void obs_op_ctx_create(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_ctx_create_req *req)
{
	struct obs_context *context = obs_context_find(x->session, req->ctx);

	if (req->device >= (uint32_t)x->session->n_devices)
		obs_violation(x, rec, "there is no such device");
	/* a primary being used for the first time, or after a reset */
	if (context && context->primary) {
		context->flags = req->flags;
		/* an active one keeps its flags */
		x->drv->cuDevicePrimaryCtxSetFlags_v2((CUdevice)req->device, req->flags);
		obs_async_result(x, rec, obs_context_ready(x->session, context));
		return;
	}
	if (context || req->ctx == 0)
		obs_violation(x, rec, "the context's id is in use");
	context = context_entry(x->session);
	if (!context) {
		x->session->contexts_refused = true;
		obs_throttle_refused("contexts");
		obs_async_result(x, rec, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	context->device = req->device;
	context->flags = req->flags;
	context->primary = false;
	context->driver = NULL;
	context->error = context_make(x, context);
	atomic_store_explicit(&context->id, req->ctx, memory_order_release);
	obs_async_result(x, rec, context->error);
}

struct forget {
	struct obs_handles *table;
	struct obs_context *context;
};

static void forget_one(void *user, struct obs_handle *handle)
{
	const struct forget *forget = user;

	if (handle->context == forget->context)
		obs_handles_remove(forget->table,
			atomic_load_explicit(&handle->id, memory_order_relaxed), NULL);
}

static void forget_module(void *user, struct obs_handle *handle)
{
	const struct forget *forget = user;
	struct obs_session *session;
	uint64_t id;

	if (handle->context != forget->context)
		return;
	session = (struct obs_session *)((char *)forget->table -
		offsetof(struct obs_session, modules));
	id = atomic_load_explicit(&handle->id, memory_order_relaxed);
	obs_module_forget(session, id, handle);
	obs_handles_remove(forget->table, id, NULL);
}

static void forget_green(void *user, struct obs_handle *handle)
{
	const struct forget *forget = user;
	struct obs_session *session = (struct obs_session *)((char *)forget->table -
		offsetof(struct obs_session, greens));

	if (handle->context == forget->context)
		session->drv->cuGreenCtxDestroy(handle->driver);
	forget_one(user, handle);
}

static void forget_event(void *user, struct obs_handle *handle)
{
	const struct forget *forget = user;

	if (handle->context == forget->context)
		obs_ipc_ended(
			OBS_IPC_EVENT, atomic_load_explicit(&handle->id, memory_order_relaxed));
	forget_one(user, handle);
}

/* The driver destroys what lived in the context; here its handles are removed. */
static void context_forget(struct obs_session *session, struct obs_context *context)
{
	struct obs_handles *const tables[] = { &session->streams, &session->textures,
		&session->surfaces, &session->texrefs };
	struct forget forget = { .table = &session->modules, .context = context };

	obs_handles_each(&session->modules, forget_module, &forget);
	obs_arrays_forget(session, context);
	forget.table = &session->greens;
	obs_handles_each(&session->greens, forget_green, &forget);
	forget.table = &session->events;
	obs_handles_each(&session->events, forget_event, &forget);
	for (size_t i = 0; i < ob_count(tables); i++) {
		forget.table = tables[i];
		obs_handles_each(tables[i], forget_one, &forget);
	}
}

void obs_op_ctx_destroy(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_ctx_destroy_req *req)
{
	struct obs_session *session = x->session;
	struct obs_context *context = context_named(session, req->ctx);
	CUresult result = CUDA_SUCCESS;

	if (!context)
		obs_violation(x, rec, "unknown context");
	if (context == &session->refused)
		return;
	obs_exec_output(x, result);
	obs_completion_forget(session, context);
	context->legacy_busy = context->orphans = false;
	obs_staging_forget(&session->staging, context);
	obs_free_memory_forget(session, context);
	obs_device_forget(x, context);
	obs_graphs_forget(x, context);
	context_forget(session, context);
	if (context->driver && context->primary) {
		if (context->part.green)
			obs_keep_part_ended(context->driver);
		obs_partition_end(x->drv, &context->part);
		result = x->drv->cuDevicePrimaryCtxReset_v2((CUdevice)context->device);
	} else if (context->driver) {
		result = x->drv->cuCtxDestroy_v2(context->driver);
		obs_hold_give(OBS_HOLD_HANDLES, OBS_CONTEXT_BYTES);
	}
	context->driver = NULL;
	context->error = CUDA_SUCCESS;
	if (!context->primary) {
		for (uint32_t i = 0; i < OBP_LANE_MAX; i++)
			if (session->lanes[i] && session->lanes[i]->context == context)
				session->lanes[i]->context = NULL;
		atomic_store_explicit(&context->id, 0, memory_order_release);
	}
	/*
	 * The driver may have left the thread without a current context: the next record sets it
	 * again.
	 */
	x->drv->cuCtxSetCurrent(NULL);
	x->context = NULL;
	obs_slabs_forget(&session->memory.slabs, context);
	obs_async_result(x, rec, result);
}

void obs_op_ctx_limit(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_ctx_limit_req *req)
{
	struct obp_ctx_limit_rep rep = { 0 };
	CUresult result = CUDA_SUCCESS;
	size_t now = 0;

	if (req->set)
		result = x->drv->cuCtxSetLimit((CUlimit)req->limit, req->value);
	if (result == CUDA_SUCCESS)
		result = x->drv->cuCtxGetLimit(&now, (CUlimit)req->limit);
	rep.now = now;
	obs_reply(x, rec, result, &rep, sizeof rep);
}

void obs_op_ping(struct obs_exec *x, const struct obp_record *rec)
{
	obs_reply(x, rec, CUDA_SUCCESS, NULL, 0);
}

static void goodbye(
	struct obs_exec *x, const struct obp_record *rec, const void *rep, uint32_t size)
{
	obs_exec_print(x);
	atomic_store(&x->session->ending, true);
	obs_reply(x, rec, CUDA_SUCCESS, rep, size);
	memcpy(x->session->end_reason, "bye", sizeof "bye");
	obs_session_exit(x->session, 0);
}

void obs_op_bye(struct obs_exec *x, const struct obp_record *rec)
{
	goodbye(x, rec, NULL, 0);
}

void obs_op_bye_link(struct obs_exec *x, const struct obp_record *rec)
{
	struct obp_bye_link_rep rep = { 0 };

	pthread_mutex_lock(&x->session->replies.lock);
	rep.rate = obt_meter_learned(&x->session->meter);
	pthread_mutex_unlock(&x->session->replies.lock);
	goodbye(x, rec, &rep, sizeof rep);
}

void obs_op_lane_end(struct obs_exec *x, const struct obp_record *rec)
{
	obs_lane_end(x->session, rec->lane);
	x->lane = NULL;
}
