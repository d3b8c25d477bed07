/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Clients that want to be told when their reservation is to move (FOLLOW). One for each connection
 * and one for each restartable reservation, at most half of all connections, and of those of an
 * address, so that servers and requests have the rest. Any balancer can tell: the registry says which
 * reservation has a successor. One that has lost the registry sends its followers to another. Loop's
 * thread only.
 */
#ifndef OBL_FOLLOWS_H
#define OBL_FOLLOWS_H

#include "loadbalancer/balancer/core.h"

#define OBL_FOLLOW_UNKNOWN_S 10u /* a reservation that is not known for so long has ended */

#define OBL_FOLLOW_BLIND_S  5u /* a registry that cannot be read for so long is lost */
#define OBL_FOLLOW_RETRY_MS 5000u

/* The token in the message is erased. */
void obl_follow(struct obl_core *core, struct obl_link *link, struct obp_pool_follow *message);
/* The next reservation whose follower says that it cannot be started again; NULL: none. */
const struct obl_item *obl_follows_fixed(const struct obl_core *core);
void obl_follows_link_gone(struct obl_core *core, const struct obl_link *link);
/* Four times a second: tells those whose reservation has a successor, or has ended. */
void obl_follows_sweep(struct obl_core *core, uint64_t now_ns);

#endif
