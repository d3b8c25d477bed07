/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * How a session begins: what a warm worker makes ready before a client comes, and the handshake.
 * Main thread.
 */
#ifndef OBS_START_H
#define OBS_START_H

#include <stdbool.h>
#include <stddef.h>

#include "server/common/handoff.h"
#include "server/worker/session.h"

/* Who the session is of, as admission found out, and its names. */
void obs_session_name(struct obs_session *session, const struct obs_handoff *first);
/*
 * The handshake on a new data connection, whose client has proved itself and said this hello (a
 * message's map): welcome, range. On failure the client was told, and the process shall exit.
 */
bool obs_session_greet(struct obs_session *session, const void *hello, size_t size);
/*
 * Makes ready what does not depend on the client; called by a warm worker before it says that it is
 * ready. False: *ret_why.
 */
bool obs_session_init(struct obs_session *session, const struct obs_options *options, char *ret_why,
	size_t why_size);

#endif
