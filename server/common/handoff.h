/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Messages between the supervisor and its children, over SOCK_SEQPACKET pairs: one pair for the
 * admission process, one for each worker. Each end is used by one thread. All ends are one program
 * of one build, so the structure is the format; only the used part of `body` travels.
 *
 *   admission --> supervisor --> worker    NEW, JOIN: a connection that has proved itself
 *
 * What the supervisor has to tell the admission process lies in memory that the two share
 * (routes.h).
 */
#ifndef OBS_HANDOFF_H
#define OBS_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/control.h"
#include "server/common/identity.h"
#include "transport/tls.h"

#define OBS_HANDOFF_FD   3 /* the child's end, in the child */
/* bytes of a client's first message; also the most that admission reads of one */
#define OBS_HANDOFF_BODY 8192u
#define OBS_HANDOFF_FDS  2

enum obs_handoff_type {
	/*
	 * admission to supervisor, supervisor to a worker; with the socket, and on a unix socket
	 * the memory that came with the message
	 */
	OBS_HANDOFF_NEW = 1, /* a new session: the hello without its token, who the client is */
	OBS_HANDOFF_JOIN,    /* a further connection of session `route`: its join */
	/* admission to supervisor */
	/* with the socket: answer it with the load; route is what it wants */
	OBS_HANDOFF_LOAD,
	/*
	 * the token file is wanted; answered by the same, with the file, or with count, the errno
	 * of opening it
	 */
	OBS_HANDOFF_TOKENS,
	/* count connections of identity.address were refused; text says why */
	OBS_HANDOFF_REFUSED,
	/* worker to supervisor */
	/* the driver is loaded, a session may come; text names the driver */
	OBS_HANDOFF_READY,
	OBS_HANDOFF_FAILED, /* the driver cannot be used; text says why */
	OBS_HANDOFF_ENDED,  /* the session is over; text says how */
};

struct obs_handoff {
	uint32_t type;
	uint32_t secure; /* NEW, JOIN: the connection goes on with TLS, by psk */
	uint32_t count;  /* REFUSED */
	uint32_t size;   /* bytes of body */
	/* NEW to a worker: the session's name in logs; it opens nothing */
	uint64_t id;
	uint64_t route;
	uint64_t pid; /* NEW: the client's, as it says */
	uint8_t secret[OBP_SECRET_BYTES];
	uint8_t psk[OBT_TLS_PSK_BYTES];
	struct obs_identity identity;   /* NEW */
	char program[OBP_NAME_MAX];     /* NEW */
	char text[OBP_SANDBOX_MAX];     /* of NEW what confines admission, else as said above */
	uint8_t body[OBS_HANDOFF_BODY]; /* NEW, JOIN: the map of the client's message */
};

/* A connected pair, close-on-exec, the first end non-blocking. 0 or -1 with errno. */
int obs_handoff_pair(int ret_fds[2]);
/*
 * fds: -1 for none. They stay the caller's. Never blocks. 0, or -1 with errno, EAGAIN when the
 * other side does not read.
 */
int obs_handoff_send(
	int channel, const struct obs_handoff *message, const int fds[OBS_HANDOFF_FDS]);
/* A child: the same to the supervisor. */
bool obs_handoff_send_up(const struct obs_handoff *message, int fd, int memfd);
/*
 * 1: got one (ret_fds are the receiver's to close, -1: none); its texts are terminated and clean
 * (base/terminal.h), its numbers are the sender's. 0: the other end is closed, or sent nothing as a
 * message. -1: errno: EAGAIN, EPROTO for what is no message. Nothing is in ret_fds then. Blocks
 * when the channel does.
 */
int obs_handoff_recv(int channel, struct obs_handoff *ret, int ret_fds[OBS_HANDOFF_FDS]);
/*
 * Closes it when it is there: one that the message has no use for, as memory on a connection with
 * TLS.
 */
void obs_handoff_drop(int *fd);
/* Closes those that are there. */
void obs_handoff_close(int fds[OBS_HANDOFF_FDS]);

#endif
