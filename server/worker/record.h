/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Executing one record, and what the operations (ops/) need for that. Runs on the executor's thread
 * or on a lane's, with that thread's obs_exec. The hooks of the generated dispatch are here too.
 */
#ifndef OBS_RECORD_H
#define OBS_RECORD_H

#include "protocol/obs_dispatch.h"
#include "server/worker/session.h"

/* The record's context becomes the thread's; then the operation. Used by both kinds of threads. */
void obs_exec_record(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size);

/* ---- for operations ---- */

/*
 * The driver's stream for the client's id: 0, 1 legacy. False: unknown (told) or its creation
 * failed (answered).
 */
bool obs_stream_get(struct obs_exec *x, const struct obp_record *rec, uint64_t id, CUstream *ret);
/* Likewise for the other tables. */
bool obs_handle_use(struct obs_exec *x, const struct obp_record *rec, struct obs_handles *table,
	uint64_t id, struct obs_handle **ret);
/*
 * After a call at which CUDA shows what kernels have printed: forward it, before the reply. A
 * driver may also explain a failed one.
 */
void obs_exec_output(struct obs_exec *x, CUresult result);
/* A result for a call of either kind: a reply without a body, or an asynchronous result. */
void obs_exec_result(struct obs_exec *x, const struct obp_record *rec, CUresult result);
/* What kernels have printed, to the client. */
void obs_exec_print(struct obs_exec *x);

#endif
