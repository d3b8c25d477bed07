/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/lane.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "server/layers/throttle.h"

static struct obs_lane refused_lane = { .refused = true };

/*
 * The lane stays refused until the client's thread has ended, because its context changes are not
 * tracked.
 */
static struct obs_lane *lane_refuse(struct obs_session *session, uint16_t index)
{
	static bool told;

	obs_throttle_refused("threads");
	if (!told)
		ob_warn("session %016llx: limit of %u threads that use CUDA at once reached "
			"(--max-lanes): calls of further threads fail",
			(unsigned long long)session->id,
			ob_min(session->n_lanes, obs_limits_now.lanes));
	told = true;
	refused_lane.context = &session->refused;
	session->lanes[index] = &refused_lane;
	return &refused_lane;
}

struct obs_lane *obs_lane_new(struct obs_session *session, uint16_t index)
{
	struct obs_lane *lane;

	/* Not a thread of the program. */
	if (index == OBP_TRANSFER_LANE) {
		session->lanes[index] = &session->transfer_lane;
		return &session->transfer_lane;
	}
	lane = session->n_lanes < obs_limits_now.lanes ? calloc(1, sizeof *lane) : NULL;

	if (!lane)
		return lane_refuse(session, index);
	session->lanes[index] = lane;
	session->n_lanes++;
	return lane;
}

void obs_lane_end(struct obs_session *session, uint16_t index)
{
	struct obs_lane *lane = session->lanes[index];

	session->lanes[index] = NULL;
	if (lane->refused || lane == &session->transfer_lane)
		return;
	session->n_lanes--;
	free(lane);
}
