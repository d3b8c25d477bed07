/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The resource request and the choice of the server, from the environment: several servers
 * (OUTBOARD_SERVER=a,b,c; OUTBOARD_POLICY), the memory limit (OUTBOARD_VRAM), the share of the
 * device (OUTBOARD_SHARE) and the priority (OUTBOARD_PRIORITY). Called while the session starts.
 */
#ifndef OBC_REQUEST_H
#define OBC_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "protocol/control.h"
#include "protocol/pool.h"
#include "transport/url.h"

/* Fills the resource request of the hello. An invalid value is left out, and a warning names it. */
void obc_request_fill(struct obp_hello *hello);
/*
 * The same for a request to a pool, with OUTBOARD_GPUS (how many), OUTBOARD_WHERE (a selector),
 * OUTBOARD_APART (a word), OUTBOARD_EXCLUSIVE and OUTBOARD_ONE_SERVER (1: yes), OUTBOARD_POLICY,
 * OUTBOARD_WAIT (seconds in its queue) and OUTBOARD_HOLD (seconds without a session).
 */
void obc_request_ask(struct obp_pool_ask *ask);
/*
 * Returns the address to connect to: the only one of the list, or the one that the balancer
 * chooses. On error one line has been logged.
 */
enum ob_err obc_request_server(
	const char *list, uint64_t timeout_ns, char ret_url[OBT_URL_MAX + 1]);

#endif
