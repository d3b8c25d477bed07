/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The end of reservations. What a reservation holds on a server is credited when
 *
 *   the server reports that it has ended, or that its ticket is void (heartbeats, OBEYED), or
 *   the server has another incarnation than the part.
 *
 * Nothing else ends a part: no clock, no silence. A ticket that was not used in OBL_UNUSED_NS is
 * made void by an order to its server. All balancers with a connection to the server see the same
 * reports; the transaction of one of them succeeds. Loop's thread only.
 */
#ifndef OBL_CREDITS_H
#define OBL_CREDITS_H

#include "base/clock.h"
#include "loadbalancer/balancer/members.h"

/*
 * How long a reservation may be unused, from when its value came into this balancer's mirror: its
 * ticket's life and a little more. No clock that can be set is asked: neither the balancer's that
 * made it nor this one's need be right.
 */
#define OBL_UNUSED_NS ((OBP_POOL_TICKET_S + 2) * OB_SECOND)

/* Credits one part that has ended. True: a transaction was begun. */
bool obl_credits_start(struct obl_core *core);
/* Every second: orders VOID for tickets that nobody has used, and CREDITED for what was credited. */
void obl_credits_sweep(struct obl_core *core);
/* The server's answer to an order VOID or END. */
void obl_credits_obeyed(struct obl_member *member, const struct obp_pool_obeyed *obeyed);
/* The client does not want its grant: orders VOID for all its parts. */
void obl_credits_cancel(struct obl_core *core, const uint8_t id[OBP_RESERVATION_BYTES]);
/* The client's program has ended: orders END for all its parts. */
void obl_credits_end(struct obl_core *core, const uint8_t id[OBP_RESERVATION_BYTES]);

#endif
