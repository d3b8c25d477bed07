/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_link: a session outlives its data connection. Whoever sees it break says so; replies are then
 * only kept (retransmit.h), the executor takes everything that had come, then waits; the loop counts the
 * grace period. A connection that joins (loop.c checks secret and attempt) is answered with the
 * highest record taken up, the kept replies go out again, and the executor goes on with it; records
 * that come a second time are passed over by protocol/conn. So no record is executed twice and no
 * reply is lost.
 *
 * `on` false (the client or an option does not want it): a broken connection ends the process, as the client is gone.
 */
#ifndef OBS_RESUME_H
#define OBS_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

/*
 * Finds the client's process when it runs on this machine, so that its end is noticed: /proc is
 * looked at, so before the sandbox closes, and before obs_link_agree.
 */
void obs_link_watch(struct obs_session *session, const struct obp_hello *hello);
/* What both sides agreed on; fills the welcome. Before the welcome is sent. False: no memory. */
bool obs_link_agree(struct obs_session *session, const struct obp_hello *hello);
/*
 * The executor read an end or an error: waits for the next connection and makes it session->data.
 * No time-out: the loop ends the process.
 */
void obs_link_await(struct obs_session *session);
/*
 * A connection with the right secret wants to carry the data. Loop thread; takes the stream. False:
 * refused, and told so.
 */
bool obs_link_attach(struct obs_session *session, struct obt_stream *stream,
	const struct obp_message *join, int old_fd);
/* The client has replies up to `number`. Executor, loop. False: more than were ever sent. */
bool obs_link_acked(struct obs_session *session, uint64_t number);

#endif
