/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Begins a session: what a warm worker prepares before a client comes, and the handshake. Main
 * thread.
 */
#ifndef OBS_START_H
#define OBS_START_H

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
/*
 * Prepares everything that does not depend on the client; a warm worker calls it before it reports
 * that it is ready. OB_ERR_DRIVER, _UNSUPPORTED (the sandbox), _NO_MEMORY: *ret_cause.
 */
enum ob_err obs_session_init(
	struct obs_session *session, const struct obs_options *options, struct ob_cause *ret_cause);

#endif
