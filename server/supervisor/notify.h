/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reports the server's state to systemd, if it started the server (Type=notify): one datagram to
 * the socket named in NOTIFY_SOCKET.
 */
#ifndef OBS_NOTIFY_H
#define OBS_NOTIFY_H

/* "READY=1", "STOPPING=1", ... Does nothing without NOTIFY_SOCKET. Any thread. */
void obs_notify(const char *state);

#endif
