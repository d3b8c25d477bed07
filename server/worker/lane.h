/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A lane: one thread of the client. The executor creates it at the lane's first record and destroys
 * it with its lane_end record. It gets a thread here when it makes a call that may block while
 * other lanes exist. The executor passes it one record at a time.
 */
#ifndef OBS_LANE_H
#define OBS_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

/*
 * Creates a lane. Beyond the limit, or when out of memory, the result is a lane whose calls that
 * need a context all fail. Executor only, like everything here.
 */
struct obs_lane *obs_lane_new(struct obs_session *session, uint16_t index);
/*
 * Passes the current record to the lane's thread. False: no thread can be started, or the body is
 * too large; the caller runs the record itself.
 */
bool obs_lane_run(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size);
/*
 * Waits until the lane's thread has answered; returns at once when it is idle. A client sends
 * nothing more on a lane that waits for an answer.
 */
void obs_lane_wait(struct obs_lane *lane);
void obs_lane_end(struct obs_session *session, uint16_t index);

#endif
