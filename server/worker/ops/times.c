/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Operations that switch the timing of records on and off and read it. */
#include <string.h>

#include "server/worker/ops/ops.h"
#include "server/worker/times.h"

void obs_op_times_switch(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_times_switch_req *req)
{
	x->session->drv = obs_times_switch(&x->session->lib.table, req->on != 0);
	x->drv = x->session->drv;
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
