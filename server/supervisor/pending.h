/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Pending connections: they have proved themselves to admission and wait for a worker, or are being
 * told why there is none for them.
 */
#ifndef OBS_PENDING_H
#define OBS_PENDING_H

#include "server/supervisor/super.h"

/* A connection that has proved itself, from admission; both take the descriptors. */
void obs_pending_admit(
	struct obs_super *super, struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS]);
void obs_pending_join(
	struct obs_super *super, const struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS]);
/* Guests that wait get workers while there are idle ones, oldest first. */
void obs_pending_serve_waiting(struct obs_super *super);
void obs_pending_refuse_waiting(struct obs_super *super, enum ob_err code, const char *text);
void obs_pending_close_all(struct obs_super *super);

#endif
