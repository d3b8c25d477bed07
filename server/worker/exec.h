/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The executor: reads the data connection and executes its records in order, or hands them to their
 * lanes. The thread runs obs_exec_run for the session's whole life.
 */
#ifndef OBS_EXEC_H
#define OBS_EXEC_H

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
/*
 * The rest of the current large record's body, straight from the socket into dst. Executor only,
 * x->conn set. False: the connection broke; the record comes again as a whole, so whoever calls
 * leaves without having done anything. A client that leaves for good ends the process here.
 */
bool obs_exec_receive(struct obs_exec *x, void *dst, size_t size);

/*
 * Called by the executor, provided by the operations (ops/copy.c) as those of obs_dispatch.h are:
 * An OBP_OP_WRITE whose data is still in the socket: received straight into page-locked memory.
 * False: the connection broke, nothing was done.
 */
bool obs_big_write(struct obs_exec *x, const struct obp_item *item);

#endif
