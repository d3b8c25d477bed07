/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a warm worker prepares before a client comes; greet.h is about what follows. Main thread.
 */
#ifndef OBS_START_H
#define OBS_START_H

#include "server/worker/session.h"

/*
 * Prepares everything that does not depend on the client; a warm worker calls it before it reports
 * that it is ready. OB_ERR_DRIVER, _UNSUPPORTED (the sandbox), _NO_MEMORY: *ret_cause.
 */
enum ob_err obs_session_init(
	struct obs_session *session, const struct obs_options *options, struct ob_cause *ret_cause);
/* The driver library's file name, for the sandbox; NULL: it is a part of the server. */
const char *obs_session_driver_name(const struct obs_session *session);

#endif
