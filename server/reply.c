/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/reply.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "server/session.h"

void obs_replies_init(struct obs_replies *replies)
{
	*replies = (struct obs_replies){ .next = 1 };
	pthread_mutex_init(&replies->lock, NULL);
}

/* Under the lock. One sendmsg in the usual case. A client that is gone ends the process here. */
static void send_all(struct obs_session *session, struct iovec *iov, int n, size_t size)
{
	ssize_t done = session->data.ops->send(&session->data, iov, n, false);
	enum ob_err err;

	if (ob_unlikely(done != (ssize_t)size)) {
		if (done < 0 && errno != EAGAIN)
			obs_session_exit(session, 0);
		if (done > 0)
			obt_iov_advance(iov, n, (size_t)done);
		err = obt_stream_send_all(&session->data, iov, n, ob_clock_ns() + OBS_SEND_TIMEOUT_S * OB_SECOND);
		if (err)
			obs_session_exit(session, err == OB_ERR_CLOSED ? 0 : 1);
	}
	session->replies.sent_frames++;
	session->replies.sent_bytes += size;
}

/* Under the lock. What an acknowledgement says: every record up to here is in this process's hands. */
static uint64_t ack_number(struct obs_replies *replies)
{
	uint64_t executed = atomic_load_explicit(&replies->executed, memory_order_relaxed);

	atomic_store_explicit(&replies->acked, executed, memory_order_relaxed);
	return executed;
}

/* Under the lock. Frame and reply head are one piece until here; packed, only the frame's header leaves as it is. */
static void send_packed(struct obs_session *session, struct obp_frame *frame, struct obp_reply *head, const struct iovec *iov, int n, size_t size)
{
	struct iovec pieces[4] = { { frame, sizeof *frame }, { head, sizeof *head } };
	int count = 2;

	for (int i = 1; i < n; i++)
		pieces[count++] = iov[i];
	if (obp_packer_frame(&session->packer, frame, pieces, count) != count) {
		count = 2;
		size = sizeof *frame + frame->size;
	}
	send_all(session, pieces, count, size);
}

static void reply(struct obs_exec *x, struct obp_reply *head, const void *body)
{
	static const uint8_t zeros[8];
	struct obs_session *session = x->session;
	struct obs_replies *replies = &session->replies;
	uint32_t pad = (8 - head->body % 8) % 8;
	struct {
		struct obp_frame frame;
		struct obp_reply reply;
		uint8_t small[256];
	} out;
	struct iovec iov[3] = { { &out, sizeof out.frame + sizeof out.reply } };
	size_t size = sizeof out.frame + sizeof out.reply + head->body + pad;
	int n = 1;

	head->size = (uint32_t)(sizeof out.reply + head->body + pad);
	if (head->body + pad <= sizeof out.small) {
		if (head->body)
			memcpy(out.small, body, head->body);
		memset(out.small + head->body, 0, pad);
		iov[0].iov_len = size;
	} else {
		iov[n++] = (struct iovec){ (void *)(uintptr_t)body, head->body };
		if (pad)
			iov[n++] = (struct iovec){ (void *)(uintptr_t)zeros, pad };
	}
	pthread_mutex_lock(&replies->lock);
	if (!(head->flags & (OBP_REPLY_MORE | OBP_REPLY_TEXT)) &&
	    ob_unlikely(atomic_load_explicit(&replies->deferred, memory_order_relaxed))) {
		uint64_t deferred = atomic_exchange(&replies->deferred, 0);

		head->deferred = (uint32_t)deferred;
		head->deferred_opcode = (uint32_t)(deferred >> 32);
	}
	out.reply = *head;
	obp_frame_fill(&out.frame, OBP_FRAME_REPLIES, head->size, 1, replies->next++, ack_number(replies));
	if (ob_unlikely(session->packer.on) && head->body >= OBP_PACK_MIN)
		send_packed(session, &out.frame, &out.reply, iov, n, size);
	else
		send_all(session, iov, n, size);
	pthread_mutex_unlock(&replies->lock);
}

/* Large bodies in smaller frames when those are packed: packing, sending and unpacking overlap. What is left for the last piece. */
static const uint8_t *reply_cut(struct obs_exec *x, const uint8_t *body, uint32_t *size)
{
	while (obp_packer_cuts(&x->session->packer) && *size > OBP_PACK_CHUNK) {
		struct obp_reply head = { .lane = x->lane_index, .flags = OBP_REPLY_MORE, .call = x->call, .body = OBP_PACK_CHUNK };

		reply(x, &head, body);
		body += OBP_PACK_CHUNK;
		*size -= OBP_PACK_CHUNK;
	}
	return body;
}

void obs_reply_send(struct obs_exec *x, CUresult result, const void *body, uint32_t size)
{
	struct obp_reply head = { .lane = x->lane_index, .result = (uint32_t)result, .call = x->call };

	body = reply_cut(x, body, &size);
	head.body = size;
	x->replied = true;
	reply(x, &head, body);
}

void obs_reply_more(struct obs_exec *x, const void *body, uint32_t size)
{
	struct obp_reply head = { .lane = x->lane_index, .flags = OBP_REPLY_MORE, .call = x->call };

	body = reply_cut(x, body, &size);
	head.body = size;
	reply(x, &head, body);
}

void obs_reply_text(struct obs_exec *x, uint16_t flags, const void *text, uint32_t size)
{
	struct obp_reply head = { .lane = x->lane_index, .flags = flags | OBP_REPLY_TEXT, .body = size };

	reply(x, &head, text);
}

void obs_reply_defer(struct obs_session *session, uint16_t opcode, CUresult result)
{
	uint64_t none = 0;

	atomic_compare_exchange_strong(&session->replies.deferred, &none, (uint64_t)opcode << 32 | (uint32_t)result);
}

void obs_reply_ack(struct obs_session *session)
{
	struct obs_replies *replies = &session->replies;
	uint64_t executed = atomic_load_explicit(&replies->executed, memory_order_relaxed);
	struct obp_frame frame;
	struct iovec iov = { &frame, sizeof frame };

	if (replies->bytes_unacked < OBS_ACK_BYTES &&
	    executed - atomic_load_explicit(&replies->acked, memory_order_relaxed) < OBS_ACK_RECORDS)
		return;
	replies->bytes_unacked = 0;
	pthread_mutex_lock(&replies->lock);
	obp_frame_fill(&frame, OBP_FRAME_ACK, 0, 0, 0, ack_number(replies));
	send_all(session, &iov, 1, sizeof frame);
	pthread_mutex_unlock(&replies->lock);
}

_Static_assert(sizeof(struct obp_frame) + sizeof(struct obp_reply) == 80, "the two are sent as one piece");
