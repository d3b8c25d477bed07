/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Commands of operators: COMMAND to DONE. What concerns the pool is a transaction on the registry,
 * from where every balancer tells the servers that are connected to it; ending sessions is an order
 * to a server, which only a balancer with a connection to it can give. Loop's thread only.
 *
 *   cordon NAME, uncordon NAME    no new reservations; again
 *   drain NAME [SECONDS]          the same, and sessions end after the grace time
 *   kill RESERVATION | SESSION    ends its sessions
 *   quota TENANT LIMITS           as quota.h writes them; "" removes the quota
 *   forget NAME                   a server that will not come back, with all that it holds
 *   move RESERVATION [SERVER]     offers its program another place (moves.h)
 */
#ifndef OBL_COMMANDS_H
#define OBL_COMMANDS_H

#include "loadbalancer/balancer/members.h"

#define OBL_COMMANDS_MAX    256u
#define OBL_COMMAND_WAIT_MS 5000u /* for the registry, or for servers to obey */
#define OBL_DRAIN_DEFAULT_S 3600u

void obl_command(struct obl_core *core, struct obl_link *link, struct obp_pool_command *message);
/*
 * The same for a caller without a connection, whose rights were checked. who: for events. told is
 * called exactly once, also from inside: code 0, or enum obp_pool_refusal with a text.
 */
void obl_command_run(struct obl_core *core, const struct obp_pool_command *message, const char *who,
	void (*told)(void *user, uint32_t code, const char *text), void *user);
/* A server's answer to an order KILL or KILL_SESSION. */
void obl_commands_obeyed(struct obl_member *member, const struct obp_pool_obeyed *obeyed);
void obl_commands_link_gone(struct obl_core *core, const struct obl_link *link);
/* True: a transaction was begun. */
bool obl_commands_start(struct obl_core *core);
/* Every second: time-outs. */
void obl_commands_sweep(struct obl_core *core);
void obl_commands_free(struct obl_core *core);

#endif
