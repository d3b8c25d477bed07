/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Clients that want to be told when their reservation is to move (FOLLOW). One for each connection
 * at most. Any balancer can tell: the registry says which reservation has a successor. Loop's thread
 * only.
 */
#ifndef OBL_FOLLOWS_H
#define OBL_FOLLOWS_H

#include "loadbalancer/balancer/core.h"

#define OBL_FOLLOW_UNKNOWN_S 10u /* a reservation that is not known for so long has ended */

/* The token in the message is erased. */
void obl_follow(struct obl_core *core, struct obl_link *link, struct obp_pool_follow *message);
/* The next reservation whose follower says that it cannot be started again; NULL: none. */
const struct obl_item *obl_follows_fixed(const struct obl_core *core);
void obl_follows_link_gone(struct obl_core *core, const struct obl_link *link);
/* Four times a second: tells those whose reservation has a successor, or has ended. */
void obl_follows_sweep(struct obl_core *core);

#endif
