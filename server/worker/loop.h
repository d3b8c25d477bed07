/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The loop thread of a worker: sees that the client has left while the executor is busy, serves the
 * control connection, admits connections that join, and ends the process when the supervisor is
 * gone. It waits in poll() and takes no lock for long.
 */
#ifndef OBS_LOOP_H
#define OBS_LOOP_H

#include <stdbool.h>

struct obs_session;

/* connections that have not yet shown the secret: a set of stripes joins at once */
#define OBS_JOINING_MAX 20u
/* between the client's leaving and the end of the process: the executor may still see it itself */
#define OBS_GONE_MS     200u

/* Starts the thread. channel: the supervisor's. False: no thread can be had. */
bool obs_loop_start(struct obs_session *session, int channel);

#endif
