/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The supervisor's end of the admission process: starts it, starts another when it dies, lists for
 * it which sessions may be joined, takes what it hands on. Loop's thread only.
 */
#ifndef OBS_ADMIT_H
#define OBS_ADMIT_H

#include <stdbool.h>

#include "server/supervisor/super.h"

/* Once the listening sockets are open. False: it cannot be started; the reason is in the log. */
bool obs_admit_start(struct obs_super *super);
/*
 * One message of the process, which strangers may have taken over: obs_handoff_recv has checked its
 * form, and nothing else of it is believed.
 */
void obs_admit_take(struct obs_super *super, struct obs_handoff *message, int fds[OBS_HANDOFF_FDS]);
/* Ends it for good. */
void obs_admit_stop(struct obs_super *super);

#endif
