/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_control_link: the stream of the control connection. The control thread replaces it and alone
 * receives from it; any thread may send. The program may close the descriptor at any time, so each
 * operation checks first that it is still the library's. Owned by obc_control.
 */
#ifndef OBC_CONTROL_LINK_H
#define OBC_CONTROL_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/control.h"
#include "transport/stream.h"

struct obc_control_link {
	pthread_mutex_t lock; /* held to send and to replace the stream */
	struct obt_stream stream;
	bool connected;
	/* of the stream, for threads that do not hold the lock; fd -1: there is none */
	_Atomic int fd;
	_Atomic uint64_t ino;
	_Atomic uint64_t ack_wanted; /* replies to acknowledge; 0: none */
};

#define OBC_CONTROL_LINK_INIT                                                \
	{                                                                    \
		.lock = PTHREAD_MUTEX_INITIALIZER, .stream.fd = -1, .fd = -1 \
	}

/* Closes the stream and takes over *stream, if it is not NULL. Control thread only. */
void obc_control_link_set(struct obc_control_link *link, const struct obt_stream *stream);
/* Waits for other threads that send. False: not sent; there may be no connection. */
bool obc_control_link_send(
	struct obc_control_link *link, const struct obp_message *message, uint64_t deadline);
/* Sends nothing if another thread sends. */
void obc_control_link_try_send(
	struct obc_control_link *link, const struct obp_message *message, uint64_t deadline);
/*
 * Acknowledges replies up to a number. Does not wait: if another thread sends, that thread sends
 * the number afterwards. Without a connection the next join carries it.
 */
void obc_control_link_ack(struct obc_control_link *link, uint64_t replies);
/* False: the program has closed the descriptor. Takes no lock. */
bool obc_control_link_ours_or_none(struct obc_control_link *link);
/*
 * Ends the wait of the control thread, and a send that blocks. The connection is unusable
 * afterwards.
 */
void obc_control_link_wake(struct obc_control_link *link);
/* After fork, in the child: closes the descriptor and sends nothing. */
void obc_control_link_forget(struct obc_control_link *link);

#endif
