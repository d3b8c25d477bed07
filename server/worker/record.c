/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/record.h"

#include <stddef.h>

#include "base/check.h"
#include "server/worker/context.h"
#include "server/worker/end.h"
#include "server/worker/reply.h"
#include "server/worker/work.h"

void obs_exec_result(struct obs_exec *x, const struct obp_record *rec, CUresult result)
{
	/* Nobody waits for the reply of a later read. */
	if (ob_unlikely(rec->opcode == OBP_OP_READ_LATER && result != CUDA_SUCCESS))
		obs_reply_defer(x->session, rec->opcode, result);
	if (obp_op_replies(rec->opcode))
		obs_reply(x, rec, result, NULL, 0);
	else
		obs_async_result(x, rec, result);
}

/* Operations that create a handle. The client uses the handle's id before it knows the result. */
static bool makes_handle(uint16_t opcode)
{
	switch (opcode) {
	case OBP_OP_STREAM_CREATE:
	case OBP_OP_EVENT_CREATE:
	case OBP_OP_MODULE_LOAD:
	case OBP_OP_MODULE_USE:
	case OBP_OP_FUNC_GET:
	case OBP_OP_GRAPH_BEGIN:
	case OBP_OP_TEXREF_OPEN:
	case OBP_OP_TEXREF_CREATE:
	case OBP_OP_UPLOAD_BEGIN:   /* its parts follow in any case */
	case OBP_OP_LAUNCH_CHANGED: /* later launches count on its changes */
		return true;
	default:
		return obp_op_makes(opcode);
	}
}

/*
 * A record whose context cannot be entered. An operation that creates a handle still enters the id,
 * marked as failed.
 */
static void refuse(struct obs_exec *x, const struct obp_record *rec, const void *body,
	uint32_t size, CUresult why)
{
	if (!makes_handle(rec->opcode)) {
		obs_exec_result(x, rec, why);
		return;
	}
	x->refused = why;
	obs_dispatch(x, rec, body, size);
	x->refused = CUDA_SUCCESS;
}

void obs_exec_record_elsewhere(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size)
{
	CUresult result = obs_context_enter(x, x->lane->context);

	if (result == CUDA_SUCCESS)
		obs_dispatch(x, rec, body, size);
	else
		refuse(x, rec, body, size, result);
}

/* ---- hooks of the generated dispatch ---- */

void obs_violation(struct obs_exec *x, const struct obp_record *rec, const char *why)
{
	const struct obp_call_info *info = obp_call_info(rec->opcode);

	obs_session_fatal(x->session, OB_ERR_PROTOCOL, "call %llu (%s, opcode 0x%04x): %s",
		(unsigned long long)x->call, info ? info->name : "?", rec->opcode, why);
}

const struct obs_driver *obs_exec_driver(struct obs_exec *x)
{
	return x->drv;
}

void obs_reply(struct obs_exec *x, const struct obp_record *rec, CUresult result, const void *body,
	uint32_t size)
{
	(void)rec;
	obs_reply_send(x, result, body, size);
}

void obs_async_result(struct obs_exec *x, const struct obp_record *rec, CUresult result)
{
	if (ob_unlikely(result != CUDA_SUCCESS))
		obs_reply_defer(x->session, rec->opcode, result);
}

bool obs_handle_use(struct obs_exec *x, const struct obp_record *rec, struct obs_handles *table,
	uint64_t id, struct obs_handle **ret)
{
	struct obs_handle *handle = obs_handles_find(table, id);

	if (ob_unlikely(!handle)) {
		obs_violation(x, rec, "unknown handle");
		return false;
	}
	if (ob_unlikely(!handle->driver)) {
		obs_exec_result(x, rec, CUDA_ERROR_INVALID_HANDLE);
		return false;
	}
	*ret = handle;
	return true;
}

bool obs_stream_get(struct obs_exec *x, const struct obp_record *rec, uint64_t id, CUstream *ret)
{
	struct obs_handle *handle;

	if (id <= 1) {
		if (x->executor && x->context)
			x->context->legacy_busy = true;
		*ret = id ? CU_STREAM_LEGACY : NULL;
		if (x->context && x->context->part.stream)
			*ret = x->context->part.stream;
		return true;
	}
	if (!obs_handle_use(x, rec, &x->session->streams, id, &handle))
		return false;
	if (x->executor)
		obs_work_mark(x->session, handle);
	*ret = handle->driver;
	return true;
}

bool obs_handle_get(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind,
	uint64_t id, void **ret_handle)
{
	struct obs_handle *handle;
	CUstream stream;

	if (kind == OBS_KIND_STREAM) {
		if (!obs_stream_get(x, rec, id, &stream))
			return false;
		*ret_handle = stream;
		return true;
	}
	if (!obs_handle_use(x, rec, &x->session->made[kind], id, &handle))
		return false;
	*ret_handle = handle->driver;
	return true;
}

static void text_send(void *x, uint16_t flags, const void *text, uint32_t size)
{
	obs_reply_text(x, flags, text, size);
}

void obs_exec_print(struct obs_exec *x)
{
	obs_output_forward(&x->session->output, text_send, x);
}

void obs_exec_output(struct obs_exec *x, CUresult result)
{
	if (ob_unlikely(result != CUDA_SUCCESS ||
		    atomic_load_explicit(&x->session->prints, memory_order_relaxed)))
		obs_exec_print(x);
}
