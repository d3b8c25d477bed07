/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Messages between the supervisor and one worker, over a SOCK_SEQPACKET pair: connections travel down, states travel up.
 * Each end is used by one thread. The two ends are one program of one build, so the structure is the format.
 */
#ifndef OBS_HANDOFF_H
#define OBS_HANDOFF_H

#include <stdint.h>

#include "transport/tls.h"

#define OBS_HANDOFF_FD 3 /* the worker's end, in the worker */

enum obs_handoff_type {
	OBS_HANDOFF_NEW = 1,    /* down, with a socket: serve a new session; route is its routing id */
	OBS_HANDOFF_JOIN = 2,   /* down, with a socket: a further connection of the session */
	OBS_HANDOFF_READY = 3,  /* up: the driver is loaded, a session may come; text names the driver */
	OBS_HANDOFF_FAILED = 4, /* up: the driver cannot be used; text says why */
};

struct obs_handoff {
	uint32_t type;
	uint32_t secure;         /* NEW, JOIN: the connection goes on with TLS */
	uint64_t route;
	char text[240];
	struct obt_tls_tickets tickets; /* NEW, JOIN, when secure */
};

/* A connected pair, close-on-exec, the first end non-blocking. 0 or -1 with errno. */
int obs_handoff_pair(int ret_fds[2]);
/* fd -1: none. The descriptor stays the caller's. Never blocks for long: messages are few. 0 or -1 with errno. */
int obs_handoff_send(int channel, const struct obs_handoff *message, int fd);
/* 1: got one (*ret_fd is the receiver's to close, -1: none came). 0: the other end is closed. -1: errno, EAGAIN included. */
int obs_handoff_recv(int channel, struct obs_handoff *ret, int *ret_fd);

#endif
