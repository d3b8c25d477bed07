/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The admission process: one for each server, one thread, one libuv loop. It accepts connections,
 * makes the first TLS handshake, reads the first message and authenticates the client. Only
 * authenticated connections go on to the supervisor, which finds a worker for them
 * (docs/adr/0008-admission.md). Only this process has the TLS key, the ticket keys and the token
 * file. The supervisor starts it with its end of a channel (handoff.h) as descriptor
 * OBS_HANDOFF_FD, then the table of sessions, then the listening sockets. The supervisor keeps
 * copies of these and restarts the process when it dies: connections that were not handed on are
 * lost then, sessions are not.
 *
 *   callers    connections that are not handed on yet              (caller.c)
 *   addresses  limits by where connections come from               (address.c)
 *   routes     the sessions that can be joined, and their secrets  (routes.c)
 */
#ifndef OBS_ADMISSION_H
#define OBS_ADMISSION_H

#include "server/common/options.h"

#define OBS_ACCEPTS_PER_TURN 256

/* Runs until the supervisor is gone. The exit status. */
int obs_admission_run(const struct obs_options *options);

#endif
