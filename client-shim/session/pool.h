/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_pool: the session's servers under OUTBOARD_POOL. A program that `outboard run --pool` has
 * started brings a reservation (OUTBOARD_SERVER, OUTBOARD_TICKET). One that was started without, or
 * whose reservation has ended since, asks the pool itself: then each process has a reservation of
 * its own. The wishes are those of client-shim/session/request.h. One per process; called while the session starts, by one thread.
 */
#ifndef OBC_POOL_H
#define OBC_POOL_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Returns the servers: those that the pool has granted, or the text of OUTBOARD_SERVER, or
 * `otherwise`. Blocks for OUTBOARD_WAIT at most, and for the balancers' time-outs. The text is
 * valid until the next call. After an error one line has been logged.
 */
enum ob_err obc_pool_servers(const char *otherwise, const char **ret_servers);
/* The tickets for these servers, in the form of OUTBOARD_TICKET. NULL: none. */
const char *obc_pool_tickets(void);
/*
 * The first server has refused the session with these words. True: the reservation has ended, and
 * the next obc_pool_servers will ask the pool for another one; once for each reservation of the
 * environment.
 */
bool obc_pool_again(const char *words);
/* Whether the next obc_pool_servers asks because of that. */
bool obc_pool_wanted(void);

#endif
