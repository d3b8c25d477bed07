/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The supervisor's side of the admission process: starts it, restarts it when it dies, takes the
 * connections that it hands on. Loop's thread only.
 */
#ifndef OBS_ADMIT_H
#define OBS_ADMIT_H

#include <stdbool.h>

#include "server/supervisor/super.h"

/*
 * Call once the listening sockets are open. False: it cannot be started; the reason is in the log.
 */
bool obs_admit_start(struct obs_super *super);
/*
 * Handles one message of the process, which a client may have taken over: obs_handoff_recv has
 * checked its form, and nothing else in it is trusted.
 */
void obs_admit_take(struct obs_super *super, struct obs_handoff *message, int fds[OBS_HANDOFF_FDS]);
/* Ends the process; it is not restarted. */
void obs_admit_stop(struct obs_super *super);

#endif
