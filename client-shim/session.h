/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_session: one process's session with a server: finding the server, the hello, the address
 * range held in common, the control connection with its quiet thread (pings, host callbacks), and
 * the goodbye. One per process; started by the first cuInit.
 *
 * Environment: OUTBOARD_SERVER (url), OUTBOARD_TIMEOUT (seconds, default 5: connecting and the
 * hello), OUTBOARD_DEAD (seconds without a sign of life that are never normal, default 20),
 * OUTBOARD_GRACE (seconds for which a broken connection is made again, default 60; 0: it ends the
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
 * The places proposed for the session's addresses, best first, and how many are asked for: room for
 * every device's memory several times over.
 */
#define OBC_RANGE_PLACES   0x200000000000ull, 0x300000000000ull, 0x100000000000ull
#define OBC_RANGE_BYTES    (1ull << 40)

/*
 * Connect and say hello. On success *ret_welcome is the session's own (valid until exit). On
 * failure one line has been logged that says what to do; a later call tries again. Not to be called
 * twice after success.
 */
enum ob_err obc_session_start(const struct obp_welcome **ret_welcome);
/*
 * At exit: drain, one goodbye round trip (bounded: 2 s), stop the thread. Safe to call in any
 * state, once.
 */
void obc_session_stop(void);
/* In a forked child: forget the session without a word to the server. */
void obc_session_forget(void);
bool obc_session_started(void);

/*
 * The server asks for host function `id` with the stream's status: called on the session's control
 * thread; answers when fn returns. Set before start.
 */
void obc_session_on_callback(void (*fn)(uint64_t id, CUresult status));

#endif
