/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Host functions: a stream reaches one, the driver calls us on a thread of its own, we ask the
 * client to run it over the control connection, and hold the driver's thread until the client says
 * it is done. Sending on the control connection goes through here too, because it may not be joined
 * yet: senders wait for it.
 */
#ifndef OBS_HOSTFUNC_H
#define OBS_HOSTFUNC_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

#define OBS_HOSTFUNC_MAX   (1u << 16) /* launched and not yet done */
/* a client whose control connection has not come after this is broken */
#define OBS_CONTROL_JOIN_S 30
#define OBS_CONTROL_SEND_S 10

void obs_hostfuncs_init(struct obs_hostfuncs *hostfuncs);
/* Puts host function `callback` of the client into the stream. */
CUresult obs_hostfunc_launch(
	struct obs_session *session, CUstream stream, uint64_t callback, bool with_status);
/* The client ran it. False: no such function runs. Loop thread. */
bool obs_hostfunc_done(struct obs_hostfuncs *hostfuncs, uint64_t callback);
/*
 * The control connection has been joined (again), or is broken (NULL). The old stream is the
 * caller's to close afterwards: nobody sends on it any more. Functions that were asked for and are
 * not done are asked for again by obs_hostfunc_ask_again. Loop thread.
 */
void obs_hostfunc_control(struct obs_hostfuncs *hostfuncs, const struct obt_stream *stream);
bool obs_hostfunc_ask_again(struct obs_hostfuncs *hostfuncs);
/* A host function has been asked for and is not done: the client may be busy with it. */
bool obs_hostfunc_running(struct obs_hostfuncs *hostfuncs);
/*
 * One message on the control connection; waits for it to be joined the first time. False: it never
 * came, or it is broken.
 */
bool obs_control_send(struct obs_hostfuncs *hostfuncs, const struct obp_message *message);

#endif
