/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* How a session ends, and its process with it. Any thread. */
#ifndef OBS_END_H
#define OBS_END_H

#include "base/err.h"
#include "server/worker/session.h"

/* Tells the client why on the data connection, logs it, ends the process. Any thread. */
_Noreturn void obs_session_fatal(struct obs_session *session, enum ob_err code, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* Ends the process without a word to the client: it has left. Any thread. */
_Noreturn void obs_session_exit(struct obs_session *session, int status);
/*
 * Before a close, after a last message: a close with unread bytes resets the connection and could
 * take the message with it. Reads on for a moment.
 */
void obs_session_linger(int fd);
/* Loop thread, each tick, and at the end: what the session has counted goes to the stats page. */
void obs_session_publish(const struct obs_session *session);

#endif
