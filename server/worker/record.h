/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Executing one record, and what the operations (ops/) need for that. Runs on the executor's thread
 * or on a lane's, with that thread's obs_exec. The hooks of the generated dispatch are here too.
 */
#ifndef OBS_RECORD_H
#define OBS_RECORD_H

#include "base/check.h"
#include "protocol/obp_calls.h"
#include "protocol/obs_dispatch.h"
#include "server/worker/session.h"

/* For obs_exec_record: the record's context is not the thread's current one. */
void obs_exec_record_elsewhere(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size);

/* Makes the record's context current in this thread, then executes the operation. */
static inline void obs_exec_record(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size)
{
	if (ob_unlikely(x->lane->context != x->context) && !obp_op_noctx(rec->opcode))
		obs_exec_record_elsewhere(x, rec, body, size);
	else
		obs_dispatch(x, rec, body, size);
}

/* ---- for operations ---- */

/*
 * The driver's stream for the client's id; 0 and 1 are the legacy stream. False: the id is unknown
 * (the session is ended) or its creation failed (the call was answered).
 */
bool obs_stream_get(struct obs_exec *x, const struct obp_record *rec, uint64_t id, CUstream *ret);
/* The same for the other tables. */
bool obs_handle_use(struct obs_exec *x, const struct obp_record *rec, struct obs_handles *table,
	uint64_t id, struct obs_handle **ret);
/*
 * Forwards what kernels have printed, before the reply of a call at which CUDA flushes it. Also
 * after a failed call: the driver may explain it there.
 */
void obs_exec_output(struct obs_exec *x, CUresult result);
/* Answers a call of either kind: a reply without a body, or an asynchronous result. */
void obs_exec_result(struct obs_exec *x, const struct obp_record *rec, CUresult result);
/* Forwards what kernels have printed to the client. */
void obs_exec_print(struct obs_exec *x);

#endif
