/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Executing records. The executor thread runs obs_exec_run for the session's whole life; a lane
 * thread runs single records. Helpers for the operations (ops_*.c) are here too: they run on either
 * thread with that thread's obs_exec.
 */
#ifndef OBS_EXEC_H
#define OBS_EXEC_H

#include "protocol/obs_dispatch.h"
#include "server/worker/session.h"

/* how long the executor looks for the next bytes before it sleeps */
#define OBS_SPIN_NS 50000u

/* Reads and executes until the client leaves; ends the process. */
_Noreturn void obs_exec_run(struct obs_session *session);
/*
 * A new thread takes over from the executor, which is blocked in this call while bytes wait. Loop
 * thread. False: none can be had now; they go on waiting.
 */
bool obs_exec_succeed(struct obs_session *session, uint64_t call);
/* The record's context becomes the thread's; then the operation. Used by both kinds of threads. */
void obs_exec_record(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size);

/* ---- for operations ---- */

/*
 * The context's entry, made at first sight when the id is a primary's; NULL: no such context.
 * Executor only.
 */
struct obs_context *obs_context_find(struct obs_session *session, uint64_t id);
/*
 * The driver's context, primaries being retained at first use. CUDA_SUCCESS or why there is none.
 */
CUresult obs_context_ready(struct obs_session *session, struct obs_context *context);
/* Makes `context` (NULL: none) the calling thread's current one in the driver, if it is not. */
CUresult obs_context_enter(struct obs_exec *x, struct obs_context *context);

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

/*
 * The rest of the current large record's body, straight from the socket into dst. Executor only,
 * x->conn set. False: the connection broke; the record comes again as a whole, so whoever calls
 * leaves without having done anything. A client that leaves for good ends the process here.
 */
bool obs_exec_receive(struct obs_exec *x, void *dst, size_t size);

#endif
