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
/* Ends the process without a message to the client, which has left. Any thread. */
_Noreturn void obs_session_exit(struct obs_session *session, int status);
/*
 * Call before closing a connection on which a last message was sent. A close with unread bytes
 * resets the connection, and the message could be lost: reads and drops bytes for a short time.
 */
void obs_session_linger(int fd);
/* Copies the session's counters to the stats page. Loop thread, at each tick and at the end. */
void obs_session_publish(const struct obs_session *session);

#endif
