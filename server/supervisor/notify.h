/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tells systemd, when it started the server (Type=notify), how the server is: one datagram to the
 * socket named in NOTIFY_SOCKET.
 */
#ifndef OBS_NOTIFY_H
#define OBS_NOTIFY_H

/* "READY=1", "STOPPING=1", ... Does nothing without NOTIFY_SOCKET. Any thread. */
void obs_notify(const char *state);

#endif
