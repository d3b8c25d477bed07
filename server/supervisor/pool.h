/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The workers: started ahead, one for each session, gone with it. */
#ifndef OBS_POOL_H
#define OBS_POOL_H

#include "server/supervisor/super.h"

void obs_pool_refill(struct obs_super *super);
/*
 * Gives the connection to an idle worker: the worker is now busy. False: none is idle. The
 * descriptors stay the caller's.
 */
bool obs_pool_start_session(
	struct obs_super *super, struct obs_handoff *handoff, const int fds[OBS_HANDOFF_FDS]);
/*
 * OB_ERR_NOT_FOUND: no session has this route. OB_ERR_LIMIT: its worker does not take the
 * connection now.
 */
enum ob_err obs_pool_join_session(
	struct obs_super *super, const struct obs_handoff *handoff, const int fds[OBS_HANDOFF_FDS]);
/*
 * One message of a worker, which its client may have taken over: obs_handoff_recv has checked its
 * form, and nothing else of it is believed.
 */
void obs_pool_take(struct obs_proc *proc, const struct obs_handoff *message);
void obs_pool_kill(struct obs_super *super, bool busy_too);

#endif
