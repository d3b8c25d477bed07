/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Operations that switch the timing of records and the timeline on and off and read them. */
#include <string.h>

#include "base/clock.h"
#include "server/worker/device_calls.h"
#include "server/worker/device_times.h"
#include "server/worker/ops/ops.h"
#include "server/worker/timeline.h"
#include "server/worker/times.h"

static const struct obs_driver *timed; /* by op times_switch; NULL: not used yet */

static void driver_choose(struct obs_exec *x)
{
	const struct obs_driver *table = timed ? timed : &x->session->lib.table;

	x->session->drv = obs_timeline_on ? obs_device_calls(table) : table;
	x->drv = x->session->drv;
}

void obs_op_times_switch(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_times_switch_req *req)
{
	timed = obs_times_switch(&x->session->lib.table, req->on != 0);
	driver_choose(x);
	obs_reply(x, rec, CUDA_SUCCESS, NULL, 0);
}

void obs_op_times_read(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_times_read_req *req)
{
	struct obp_times_read_rep rep = { 0 };
	struct obs_record_time times[OBP_TIMES_MAX];

	_Static_assert(
		sizeof times == sizeof rep.times, "a record's five numbers go out as they lie");
	rep.count = obs_times_read(req->first, times, OBP_TIMES_MAX);
	memcpy(rep.times, times, rep.count * sizeof *times);
	obs_reply(x, rec, CUDA_SUCCESS, &rep, sizeof rep);
}

void obs_op_timeline_switch(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_timeline_switch_req *req)
{
	obs_device_switch(req->on != 0);
	obs_times_timeline(req->on != 0);
	driver_choose(x);
	obs_reply(x, rec, CUDA_SUCCESS, NULL, 0);
}

void obs_op_timeline_read(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_timeline_read_req *req)
{
	struct {
		struct obp_timeline_read_rep rep;
		struct obp_timeline_event
			events[OBP_TIMELINE_BYTES / sizeof(struct obp_timeline_event)];
	} answer;
	uint32_t n;

	_Static_assert(sizeof answer == sizeof answer.rep + sizeof answer.events, "no gap");
	obs_device_collect(x);
	n = obs_timeline_read(
		answer.events, req->room / (uint32_t)sizeof *answer.events, &answer.rep.lost);
	answer.rep = (struct obp_timeline_read_rep){ .lost = answer.rep.lost,
		.clock = ob_clock_ns(),
		.events_size = n * (uint32_t)sizeof *answer.events };
	obs_reply(x, rec, CUDA_SUCCESS, &answer,
		(uint32_t)(sizeof answer.rep + answer.rep.events_size));
}
