/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The supervisor's side of the pool: starts a member process for each balancer (server/member/member.h)
 * and restarts it when it dies, sends it the server's heartbeats, obeys the orders of the balancers.
 * Without a balancer nothing changes for sessions and for the tickets that were given. Loop's thread
 * only.
 */
#ifndef OBS_SUPERVISOR_MEMBER_H
#define OBS_SUPERVISOR_MEMBER_H

#include "server/common/member_channel.h"
#include "server/supervisor/super.h"

#define OBS_DEVICE_HOT_C 90u /* a hotter device gets no new sessions */

/*
 * Joins the pool of --pool, if there is one. Call it when the listening sockets are open. OB_ERR_URL,
 * _ARGUMENT: *ret_cause says which option is wrong.
 */
enum ob_err obs_member_start(struct obs_super *super, struct ob_cause *ret_cause);
/* Sends a last heartbeat and ends the processes. */
void obs_member_stop(struct obs_super *super);
/*
 * Obeys an order of a balancer, whose texts are clean and whose numbers are unchecked. The answer's
 * `result`.
 */
uint32_t obs_member_obey(struct obs_super *super, const struct obp_pool_order *order);
/* Fills in a heartbeat; obp_pool_fini frees it. False: no memory. */
bool obs_member_beat(struct obs_super *super, struct obp_pool_message *ret);

#endif
