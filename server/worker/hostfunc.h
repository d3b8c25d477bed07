/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Host functions (cuLaunchHostFunc, cuStreamAddCallback). When a stream reaches one, the driver
 * calls this process on a thread of its own. The worker asks the client over the control connection
 * to run the function, and blocks the driver's thread until the client says that it is done. All
 * sending on the control connection goes through here: senders wait until the client has joined it.
 */
#ifndef OBS_HOSTFUNC_H
#define OBS_HOSTFUNC_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

#define OBS_HOSTFUNC_MAX   (1u << 16) /* launched and not yet done */
/* a client that has not joined its control connection within this time is broken */
#define OBS_CONTROL_JOIN_S 30
#define OBS_CONTROL_SEND_S 10

void obs_hostfuncs_init(struct obs_hostfuncs *hostfuncs);
/* Puts the client's host function `callback` into the stream. */
CUresult obs_hostfunc_launch(
	struct obs_session *session, CUstream stream, uint64_t callback, bool with_status);
/* The client has run the function. False: no such function is running. Loop thread. */
bool obs_hostfunc_done(struct obs_hostfuncs *hostfuncs, uint64_t callback);
/*
 * Sets the control connection: a new one, or NULL when it is broken. Nobody sends on the old stream
 * any more when this returns; closing it is the caller's. obs_hostfunc_ask_again then asks again
 * for functions that were asked for and are not done. Loop thread.
 */
void obs_hostfunc_control(struct obs_hostfuncs *hostfuncs, const struct obt_stream *stream);
bool obs_hostfunc_ask_again(struct obs_hostfuncs *hostfuncs);
/* A host function has been asked for and is not done: the client may be running it. */
bool obs_hostfunc_running(struct obs_hostfuncs *hostfuncs);
/*
 * Sends one message on the control connection. Waits for the first join. False: it was not joined
 * in time, or it is broken.
 */
bool obs_control_send(struct obs_hostfuncs *hostfuncs, const struct obp_message *message);

#endif
