/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The sending side of the data connection: replies in one order, each frame one system call. Any
 * thread; a mutex makes frames whole. The first failure of an async call is kept here and travels
 * with the next reply, once.
 */
#ifndef OBS_REPLY_H
#define OBS_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "server/worker/session.h"

/* executed since the last acknowledgement before one is sent by itself */
#define OBS_ACK_BYTES      (1u << 20)
#define OBS_ACK_BYTES_MIN  (16u << 10) /* likewise, however little room the client has */
#define OBS_ACK_RECORDS    4096u
#define OBS_SEND_TIMEOUT_S 300 /* a client that takes no byte of a reply for so long is gone */

void obs_replies_init(struct obs_replies *replies);
/*
 * client_ring: bytes of calls that the client keeps until they are acknowledged, as its hello says;
 * 0: it does not say.
 */
void obs_replies_settle(struct obs_replies *replies, uint64_t client_ring);
/* The answer to the current call: `size` exact body bytes. */
void obs_reply_send(struct obs_exec *x, CUresult result, const void *body, uint32_t size);
/*
 * The same, or a piece of an answer that has more (OBP_REPLY_MORE), with device data in a staging
 * slot: it may have to be sent again, and then stays in the slot, which is marked (struct obs_slot,
 * kept).
 */
void obs_reply_slot(
	struct obs_exec *x, CUresult result, struct obs_slot *slot, uint32_t size, bool more);
/*
 * The data connection is broken: ends the process when the session does not outlive it. Under the
 * lock.
 */
void obs_link_broken_locked(struct obs_session *session);
/* Slots of session->staging are kept until the client has what was sent from them. */
void obs_replies_keep_slots(struct obs_session *session);
/* Under the lock: lets go of what the client has acknowledged. */
void obs_replies_trim(struct obs_session *session);
/* Text for the program's stdout or stderr. */
void obs_reply_text(struct obs_exec *x, uint16_t flags, const void *text, uint32_t size);
/* Keeps the first failure. */
void obs_reply_defer(struct obs_session *session, uint16_t opcode, CUresult result);
/*
 * Sends an acknowledgement when enough has been executed since the last. Executor only, after each
 * batch.
 */
void obs_reply_ack(struct obs_session *session);

#endif
