/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The handshake with the client that a prepared worker (start.h) gets. Main thread.
 */
#ifndef OBS_GREET_H
#define OBS_GREET_H

#include <stdbool.h>
#include <stddef.h>

#include "server/common/handoff.h"
#include "server/worker/session.h"

/* Sets the session's id, route, secret and client, from the supervisor's message. */
void obs_session_name(struct obs_session *session, const struct obs_handoff *first);
/*
 * Makes the handshake on a new data connection: welcome, address range. The client is
 * authenticated, and this is its hello (a msgpack map). False: the client was told why, and the
 * process must exit.
 */
bool obs_session_greet(struct obs_session *session, const void *hello, size_t size);

#endif
