/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The executor: reads the data connection and executes its records in order. Calls that would wait
 * for the device are left to the completion thread when the program has several threads.
 */
#ifndef OBS_EXEC_H
#define OBS_EXEC_H

#include "server/worker/session.h"

/* Reads and executes until the client leaves; ends the process. */
_Noreturn void obs_exec_run(struct obs_session *session);
/*
 * Starts a thread that takes over from the executor, which is blocked in call number `call` while
 * unread bytes wait. Loop thread. False: no thread can be started now; call again later.
 */
bool obs_exec_succeed(struct obs_session *session, uint64_t call);
/*
 * Receives the rest of the current large record's body into dst. Executor only, x->conn set. False:
 * the connection broke. The client sends the whole record again, so the caller must return without
 * having done anything. Ends the process when the client has left for good.
 */
bool obs_exec_receive(struct obs_exec *x, void *dst, size_t size);

/*
 * Provided by ops/upload.c: a part of an open upload, whose bytes are still in the socket, is
 * received into page-locked memory. False: the connection broke and nothing was done. *ret_done
 * false: the upload is not open, and nothing was received.
 */
bool obs_big_part(struct obs_exec *x, const struct obp_item *item, bool *ret_done);

/*
 * Provided by ops/copy.c, as the handlers in obs_dispatch.h are provided by ops/: an OBP_OP_WRITE
 * whose data is still in the socket is received into page-locked memory. False: the connection
 * broke and nothing was done.
 */
bool obs_big_write(struct obs_exec *x, const struct obp_item *item);

#endif
