/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Pending connections: they are authenticated and wait for a worker, or are being refused. */
#ifndef OBS_PENDING_H
#define OBS_PENDING_H

#include "server/supervisor/super.h"

/*
 * An authenticated connection from admission: a new session, or a join. Both take over the
 * descriptors.
 */
void obs_pending_admit(
	struct obs_super *super, struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS]);
void obs_pending_join(
	struct obs_super *super, const struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS]);
/* Gives idle workers to waiting connections, the oldest first. */
void obs_pending_serve_waiting(struct obs_super *super);
void obs_pending_refuse_waiting(struct obs_super *super, enum ob_err code, const char *text);
/* Refuses waiting connections whose reservation was killed. */
void obs_pending_refuse_killed(struct obs_super *super);
void obs_pending_close_all(struct obs_super *super);

#endif
