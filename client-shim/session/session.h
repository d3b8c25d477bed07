/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_session: the session with the current server (client-shim/session/server.h): finding the
 * server, the hello, the common address range, the control connection with its thread (pings, host
 * functions), and the goodbye. Started by the first cuInit.
 *
 * Environment: OUTBOARD_TIMEOUT (seconds, default 5: connecting and the
 * hello), OUTBOARD_DEAD (seconds without received bytes after which a connection is dead, default
 * 20), OUTBOARD_GRACE (grace period in seconds, default 60; 0: a broken connection ends the
 * session).
 */
#ifndef OBC_SESSION_H
#define OBC_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "protocol/control.h"

#define OBC_DEFAULT_SERVER "tcp://127.0.0.1:14800"
/*
 * The ranges proposed for the session's addresses, base and bytes, best first. They hold the memory
 * of every device several times.
 */
#define OBC_RANGE_BYTES    (1ull << 40)
#define OBC_RANGE_PLACES                                                                \
	{ 0x200000000000ull, OBC_RANGE_BYTES }, { 0x300000000000ull, OBC_RANGE_BYTES }, \
	{                                                                               \
		0x100000000000ull, OBC_RANGE_BYTES                                      \
	}
/*
 * The same for the second of several servers. A software device has addresses for reservations
 * below 0x220000000000 only: there, the second server and those after it share what the first one
 * leaves.
 */
#define OBC_RANGE_FURTHER                                                               \
	{ 0x300000000000ull, OBC_RANGE_BYTES }, { 0x100000000000ull, OBC_RANGE_BYTES }, \
	{                                                                               \
		0x210000000000ull, OBC_RANGE_BYTES / 8                                  \
	}

/*
 * Connects to one of `servers`, a list with commas, and sends the hello. On success *ret_welcome points to data of the session, valid until
 * exit. On failure one line with the remedy has been logged, and a later call tries again. Must not
 * be called again after success.
 */
enum ob_err obc_session_start(const char *servers, const struct obp_welcome **ret_welcome);
/*
 * At exit: sends what is committed, makes the goodbye round trip (at most 2 s) and stops the
 * thread. May be called in any state, once.
 */
void obc_session_stop(void);
/* In a forked child: drops the session and sends nothing to the server. */
void obc_session_forget(void);
bool obc_session_started(void);

/*
 * fn runs host function `id`; status is that of the stream. The session's control thread calls it,
 * and replies to the server when fn returns. Set before start.
 */
void obc_session_on_callback(void (*fn)(uint64_t id, CUresult status));

#endif
