/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Messages between the supervisor and a member process (server/member/member.h) over a
 * SOCK_SEQPACKET pair. Both ends are the same build of one program, so the structure is the format;
 * only the used part of `frame` is sent. Each end is used by one thread.
 */
#ifndef OBS_MEMBER_CHANNEL_H
#define OBS_MEMBER_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/format.h"
#include "protocol/pool.h"

#define OBS_MEMBER_FD    3 /* descriptor of the process's end */
#define OBS_MEMBER_FRAME (OBP_CONTROL_MAX + 64u)

enum obs_member_type {
	/* ---- member to supervisor ---- */
	OBS_MEMBER_REGISTERED = 1, /* the balancer has registered the server */
	OBS_MEMBER_LOST,           /* the connection is gone; text of order: why */
	OBS_MEMBER_ORDER,
	/* ---- supervisor to member ---- */
	OBS_MEMBER_BEAT,   /* frame: a BEAT, whose number the member sets */
	OBS_MEMBER_OBEYED, /* the answer to an order */
};

struct obs_member_message {
	uint32_t type, size; /* size: bytes of frame */
	union {
		struct obp_pool_registered registered;
		struct obp_pool_order order;
		struct obp_pool_obeyed obeyed;
	} u;
	uint8_t frame[OBS_MEMBER_FRAME];
};

/* A connected pair, close-on-exec, the first end non-blocking. 0 or -1 with errno. */
int obs_member_pair(int ret_fds[2]);
/* Never blocks. False: errno, EAGAIN when the other side does not read. */
bool obs_member_send(int channel, const struct obs_member_message *message);
/*
 * 1: received one; its texts are terminated and clean, its numbers unchecked. 0: the other end is
 * closed. -1: errno, EAGAIN or EPROTO. Never blocks.
 */
int obs_member_recv(int channel, struct obs_member_message *ret);

#endif
