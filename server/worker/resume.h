/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_link: a session survives the loss of its data connection. The thread that sees the loss marks
 * the link as down. Replies then only go to the retransmit queue (retransmit.h), the executor
 * executes what has been received and waits, and the loop counts the grace period. A new connection
 * joins (loop.c checks secret and attempt): it is told the highest record received, unacknowledged
 * replies are sent again, and the executor continues on it. protocol/conn skips records that arrive
 * twice. So no record is executed twice and no reply is lost.
 *
 * If `on` is false (not wanted by the client or by an option), a broken connection ends the
 * process.
 */
#ifndef OBS_RESUME_H
#define OBS_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

/*
 * Finds the client's process if it runs on this machine, so that its end is noticed. Reads /proc:
 * call before the sandbox is closed, and before obs_link_agree.
 */
void obs_link_watch(struct obs_session *session, const struct obp_hello *hello);
/*
 * Settles whether and for how long the session can be resumed, and puts that into the welcome.
 * Before the welcome is sent. False: no memory.
 */
bool obs_link_agree(struct obs_session *session, const struct obp_hello *hello);
/*
 * After the executor has read an end or an error: waits for the next connection and makes it
 * session->data. No time-out: the loop ends the process.
 */
void obs_link_await(struct obs_session *session);
/*
 * A connection with the right secret is to become the data connection. Loop thread; takes the
 * stream. False: refused, and the client was told.
 */
bool obs_link_attach(struct obs_session *session, struct obt_stream *stream,
	const struct obp_message *join, int old_fd);
/*
 * Notes that the client has received all replies up to `number`. Executor, loop. False: the number
 * is higher than any reply sent.
 */
bool obs_link_acked(struct obs_session *session, uint64_t number);

#endif
