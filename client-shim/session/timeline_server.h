/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The server's half of a timeline (timeline.h): asks the server to keep its events, takes them over
 * before it has to drop some, and aligns its clock. Enabled by obc_timeline_on; a server that lacks
 * the operations leaves the timeline without a server's half.
 */
#ifndef OBC_TIMELINE_SERVER_H
#define OBC_TIMELINE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-shim/session/clock_fit.h"
#include "protocol/timeline.h"

struct obc_timeline_rows {
	const struct obp_timeline_event *rows; /* as the server sent them: not trusted */
	size_t n;
	uint64_t dropped; /* by the server, or here because the limit was reached */
	struct obc_fit fit;
	bool offered;
};

/* The session has begun. One round trip. */
void obc_timeline_server_start(void);
/* The session is about to end: takes over the rest, for OBC_TIMELINE_END_NS at most. */
void obc_timeline_server_end(void);
/* After fork, in the child. */
void obc_timeline_server_forget(void);
/* A ping was answered. sent, received: own clock; clock: the server's; ns. Any thread. */
void obc_timeline_server_ping(uint64_t sent, uint64_t clock, uint64_t received);
/* What was taken over, and the clocks' difference by pings and calls. After obc_timeline_server_end. */
void obc_timeline_server_rows(struct obc_timeline_rows *ret);

#define OBC_TIMELINE_END_NS 10000000000ull

#endif
