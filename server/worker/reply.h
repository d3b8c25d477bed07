/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The sending side of the data connection. Replies have one order, and each frame is sent with one
 * system call. Any thread; a mutex keeps frames whole. The first failure of an asynchronous call is
 * stored here and sent once, with the next reply.
 */
#ifndef OBS_REPLY_H
#define OBS_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "server/worker/session.h"

/* bytes executed since the last acknowledgement before one is sent without a reply */
#define OBS_ACK_BYTES      (1u << 20)
#define OBS_ACK_BYTES_MIN  (16u << 10) /* lower bound of that for clients with a small ring */
#define OBS_ACK_RECORDS    4096u
#define OBS_SEND_TIMEOUT_S 300 /* a client that reads nothing for so long is gone */

void obs_replies_init(struct obs_replies *replies);
/*
 * client_ring: bytes of calls that the client keeps until they are acknowledged, from its hello; 0:
 * unknown.
 */
void obs_replies_settle(struct obs_replies *replies, uint64_t client_ring);
/* Answers the current call with a body of `size` bytes. */
void obs_reply_send(struct obs_exec *x, CUresult result, const void *body, uint32_t size);
/*
 * The same with device data in a staging slot, or one piece of an answer with several
 * (OBP_REPLY_MORE). If it may have to be sent again the data stays in the slot, which is marked
 * unacked.
 */
void obs_reply_slot(
	struct obs_exec *x, CUresult result, struct obs_slot *slot, uint32_t size, bool more);
/*
 * The data connection is broken: marks the link as down, or ends the process when the session
 * cannot be resumed. Under the lock.
 */
void obs_link_broken_locked(struct obs_session *session);
/*
 * Registers with session->staging: its slots are reused only after the client has acknowledged what
 * was sent from them.
 */
void obs_replies_own_slots(struct obs_session *session);
/* Gives back the memory of replies that the client has acknowledged since. Any thread. */
void obs_replies_release(struct obs_session *session);
/* Under the lock: drops replies that the client has acknowledged. */
void obs_replies_trim(struct obs_session *session);
/* Text for the program's stdout or stderr. */
void obs_reply_text(struct obs_exec *x, uint16_t flags, const void *text, uint32_t size);
/* Stores the first failure of an asynchronous call. */
void obs_reply_defer(struct obs_session *session, uint16_t opcode, CUresult result);
/*
 * Sends an acknowledgement if enough has been executed since the last. Executor only, after each
 * batch.
 */
void obs_reply_ack(struct obs_session *session);

#endif
