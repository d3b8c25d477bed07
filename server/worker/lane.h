/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A lane: one thread of the client. The executor creates it at the lane's first record and destroys
 * it with its lane_end record.
 */
#ifndef OBS_LANE_H
#define OBS_LANE_H

#include <stdint.h>

#include "server/worker/session.h"

/*
 * Creates a lane. Beyond the limit, or when out of memory, the result is a lane whose calls that
 * need a context all fail. Executor only, like everything here.
 */
struct obs_lane *obs_lane_new(struct obs_session *session, uint16_t index);
void obs_lane_end(struct obs_session *session, uint16_t index);

#endif
