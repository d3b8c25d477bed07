/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Messages between the supervisor and its children over SOCK_SEQPACKET pairs: one pair for the
 * admission process, one for each worker. Each end is used by one thread. All ends are the same
 * build of one program, so the structure is the format; only the used part of `body` is sent.
 *
 *   admission --> supervisor --> worker    NEW, JOIN: an authenticated connection
 *
 * The sessions that admission has to know are in shared memory (routes.h).
 */
#ifndef OBS_HANDOFF_H
#define OBS_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/control.h"
#include "protocol/ticket.h"
#include "server/common/identity.h"
#include "server/common/place.h"
#include "transport/tls.h"

#define OBS_HANDOFF_FD   3 /* descriptor of the child's end */
/* bytes of a client's first message; also the most that admission reads of one */
#define OBS_HANDOFF_BODY 8192u
#define OBS_HANDOFF_FDS  3

enum obs_handoff_type {
	/* ---- admission to supervisor, supervisor to a worker ---- */
	/*
	 * Both come with the socket, and on a unix socket with the shared memory that came with the
	 * message.
	 */
	/*
	 * a new session: its hello without token and ticket, and the client's identity. With a
	 * ticket (place.reserved) the page of its reservation comes last
	 */
	OBS_HANDOFF_NEW = 1,
	OBS_HANDOFF_JOIN, /* a further connection of session `route`: its join */
	/* ---- admission to supervisor ---- */
	/* with the socket, to be answered with the load; route: what is asked for */
	OBS_HANDOFF_LOAD,
	/*
	 * asks for the token file; answered by the same type with the file, or with the errno of
	 * opening it in count
	 */
	OBS_HANDOFF_TOKENS,
	/* count connections of identity.address were refused; text says why */
	OBS_HANDOFF_REFUSED,
	/* a ticket was refused, or a client without one; count: enum obs_ticket_refusal */
	OBS_HANDOFF_TICKET,
	/* ---- worker to supervisor ---- */
	/* the driver is loaded, a session may come; text names the driver */
	OBS_HANDOFF_READY,
	OBS_HANDOFF_FAILED, /* the driver cannot be used; text says why */
	OBS_HANDOFF_ENDED,  /* the session has ended; text says why */
	/* ---- supervisor to a worker ---- */
	OBS_HANDOFF_END, /* end the session; text says why, and goes to the client */
	/* ---- worker to supervisor, and the answer ---- */
	OBS_HANDOFF_IPC, /* body: a struct obs_ipc (ipc.h); id: number of the request */
};

struct obs_handoff {
	uint32_t type;
	uint32_t secure; /* NEW, JOIN: the connection goes on with TLS, by psk */
	uint32_t count;  /* REFUSED */
	uint32_t size;   /* bytes of body */
	/* NEW to a worker: the session's name in logs; gives no access */
	uint64_t id;
	uint64_t route;
	uint64_t pid; /* NEW: the client's, unchecked */
	uint8_t secret[OBP_SECRET_BYTES];
	uint8_t psk[OBT_TLS_PSK_BYTES];
	struct obs_identity identity; /* NEW */
	/* NEW from admission: the checked ticket, if `ticketed` */
	bool ticketed;
	struct obp_ticket ticket;
	int64_t ahead_s;            /* by how much the balancer's clock is ahead of this server's */
	struct obs_place place;     /* NEW to a worker */
	char program[OBP_NAME_MAX]; /* NEW */
	char text[OBP_SANDBOX_MAX]; /* NEW: sandbox of admission; other types as above */
	uint8_t body[OBS_HANDOFF_BODY]; /* NEW, JOIN: the client's message (msgpack map) */
};

/* A connected pair, close-on-exec, the first end non-blocking. 0 or -1 with errno. */
int obs_handoff_pair(int ret_fds[2]);
/*
 * fds: -1 for none; the caller keeps them. Never blocks. 0, or -1 with errno, EAGAIN when the other
 * side does not read.
 */
int obs_handoff_send(
	int channel, const struct obs_handoff *message, const int fds[OBS_HANDOFF_FDS]);
/* In a child: sends to the supervisor. */
bool obs_handoff_send_up(const struct obs_handoff *message, int fd, int memfd);
/*
 * 1: received one. The receiver closes ret_fds (-1: none). Its texts are terminated and clean
 * (base/terminal.h); its numbers are unchecked. 0: the other end is closed, or sent an empty
 * message. -1: errno: EAGAIN, or EPROTO for a malformed message. ret_fds is empty then. Blocks if
 * the channel does.
 */
int obs_handoff_recv(int channel, struct obs_handoff *ret, int ret_fds[OBS_HANDOFF_FDS]);
/* Closes the descriptor, if there is one, and sets it to -1. */
void obs_handoff_drop(int *fd);
/* Closes all that are not -1. */
void obs_handoff_close(int fds[OBS_HANDOFF_FDS]);

#endif
