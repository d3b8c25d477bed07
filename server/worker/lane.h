/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A lane: one thread of the client. Made by the executor at the lane's first record, gone with its
 * lane_end record. It has a thread of its own here once it makes a call that may block while other
 * lanes are alive. The executor hands over one record at a time.
 */
#ifndef OBS_LANE_H
#define OBS_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

/*
 * Beyond the limit, or when memory is out, a lane all of whose calls that need a context fail.
 * Executor only, like all here.
 */
struct obs_lane *obs_lane_new(struct obs_session *session, uint16_t index);
/*
 * Hands the current record to the lane's thread. False: no thread can be had, or the body is too
 * large; run it here.
 */
bool obs_lane_run(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size);
/*
 * Until the lane's thread has answered; true at once when it is idle. A client sends nothing more
 * on a lane that waits.
 */
void obs_lane_wait(struct obs_lane *lane);
void obs_lane_end(struct obs_session *session, uint16_t index);

#endif
