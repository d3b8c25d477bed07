/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The loop thread of a worker: notices that the client has left while the executor is busy, admits
 * connections that join, reads the control connection (control.h), and ends the process when the
 * supervisor is gone. It waits in poll() and holds no lock for long.
 */
#ifndef OBS_LOOP_H
#define OBS_LOOP_H

#include <stdbool.h>

struct obs_session;

/* connections that are joining at the same time; a set of stripes joins at once */
#define OBS_JOINING_MAX 20u

/* Starts the thread. channel: to the supervisor. False: no thread can be started. */
bool obs_loop_start(struct obs_session *session, int channel);

#endif
