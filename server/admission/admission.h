/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The admission process: one for each server, one thread, one libuv loop. It accepts connections,
 * makes the first TLS handshake, reads the first message and checks who the client is; only what
 * has proved itself goes on to the supervisor, which gives it a place and a worker
 * (docs/adr/0008-admission.md). It alone has the TLS key, the keys of tickets and the token file.
 * The supervisor starts it with its end of a channel (handoff.h) as descriptor OBS_HANDOFF_FD, the
 * table of sessions behind it, then the listening sockets, keeps copies of those, and starts
 * another when it dies: connections that have not been handed on are lost then, sessions are not.
 *
 *   callers    connections that are still here                     (caller.c)
 *   addresses  what they are allowed, by where they come from      (address.c)
 *   routes     the sessions that may be joined, and their secrets  (routes.c)
 */
#ifndef OBS_ADMISSION_H
#define OBS_ADMISSION_H

#include "server/common/options.h"

#define OBS_ACCEPTS_PER_TURN 256
#define OBS_SWEEP_MS         100 /* how often time-outs are looked at */

/* Runs until the supervisor is gone. The exit status. */
int obs_admission_run(const struct obs_options *options);

#endif
