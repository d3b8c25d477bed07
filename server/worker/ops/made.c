/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Hooks of the generated dispatch (protocol/obs_dispatch.h): handles that calls make and end. Each
 * kind has a table of the session.
 */
#include "server/worker/ops/ops.h"

bool obs_handle_vacant(
	struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind, uint64_t id)
{
	if (obs_handles_vacant(&x->session->made[kind], id))
		return true;
	obs_violation(x, rec, "the id of its new handle is in use or out of range");
	return false;
}

void obs_handle_put(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind,
	uint64_t id, void *handle)
{
	const struct obs_handle entry = { .driver = handle };

	if (!obs_handles_put(&x->session->made[kind], id, &entry))
		obs_violation(x, rec, "there is no memory for its new handle");
}

bool obs_handle_drop(struct obs_exec *x, const struct obp_record *rec, enum obs_kind kind,
	uint64_t id, void **ret_handle)
{
	struct obs_handle *handle = obs_handles_find(&x->session->made[kind], id);

	if (handle && handle->driver) {
		*ret_handle = handle->driver;
		return true;
	}
	/* Two threads of the program ended it at once, or making it failed and was reported. */
	if (handle)
		obs_handle_gone(x, kind, id);
	if (obp_op_replies(rec->opcode))
		obs_exec_result(x, rec, handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
	return false;
}

void obs_handle_gone(struct obs_exec *x, enum obs_kind kind, uint64_t id)
{
	obs_handles_remove(&x->session->made[kind], id, NULL);
}
