/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The worker processes: started in advance, one for each session, ended with it. */
#ifndef OBS_POOL_H
#define OBS_POOL_H

#include "server/supervisor/super.h"

void obs_pool_refill(struct obs_super *super);
/*
 * Passes the connection to an idle worker, which becomes busy and holds the reservation (NULL:
 * none). False: none is idle. The caller keeps the descriptors.
 */
bool obs_pool_start_session(struct obs_super *super, struct obs_handoff *handoff,
	struct obs_reservation *reservation, const int fds[OBS_HANDOFF_FDS]);
/*
 * Passes a join to the session's worker. OB_ERR_NOT_FOUND: no session has this route. OB_ERR_LIMIT:
 * its worker does not take the connection now.
 */
enum ob_err obs_pool_join_session(
	struct obs_super *super, const struct obs_handoff *handoff, const int fds[OBS_HANDOFF_FDS]);
/*
 * Handles one message of a worker, which its client may have taken over: obs_handoff_recv has
 * checked its form, and nothing else in it is trusted. Takes or closes the descriptors.
 */
void obs_pool_take(struct obs_proc *proc, struct obs_handoff *message, int fds[OBS_HANDOFF_FDS]);
void obs_pool_kill(struct obs_super *super, bool busy_too);
/* Tells a worker to end its session, and the client why. It is killed if it does not. */
void obs_pool_end(struct obs_proc *proc, const char *why);
/* Kills those whose time is over. */
void obs_pool_end_overdue(struct obs_super *super);

#endif
