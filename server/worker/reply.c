/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/reply.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/common/stats_page.h"
#include "server/worker/end.h"
#include "server/worker/held.h"
#include "server/worker/times.h"

void obs_replies_init(struct obs_replies *replies)
{
	*replies = (struct obs_replies){ .next = 1, .stream.fd = -1, .ack_bytes = OBS_ACK_BYTES };
	pthread_mutex_init(&replies->lock, NULL);
	pthread_cond_init(&replies->room, NULL);
}

void obs_replies_settle(struct obs_replies *replies, uint64_t client_ring)
{
	/*
	 * A quarter of the client's ring: with less than that unacknowledged, the client has room
	 * for any record, and neither side waits for the other.
	 */
	if (client_ring)
		replies->ack_bytes = ob_min(ob_max(client_ring / 4, (uint64_t)OBS_ACK_BYTES_MIN),
			(uint64_t)OBS_ACK_BYTES);
}

void obs_link_broken_locked(struct obs_session *session)
{
	struct obs_link *link = &session->link;

	if (!link->on)
		obs_session_exit(session, 0);
	atomic_store(&link->down_since, ob_clock_ns());
	if (atomic_exchange(&link->down, true))
		return;
	ob_info("session %016llx: the data connection broke; the client has %u s to come back",
		(unsigned long long)session->id, (unsigned)(link->grace_ns / OB_SECOND));
	shutdown(session->replies.stream.fd, SHUT_RDWR); /* so that the executor notices it too */
}

/*
 * Under the lock. Normally one sendmsg. If the client is gone: ends the process, unless the session
 * can be resumed.
 */
static void send_all(struct obs_session *session, struct iovec *iov, int n, size_t size)
{
	struct obt_stream *stream = &session->replies.stream;
	enum ob_err err = OB_ERR_NONE;
	ssize_t done;

	if (ob_unlikely(atomic_load_explicit(&session->link.down, memory_order_relaxed)))
		return;
	done = stream->ops->send(stream, iov, n, false);
	if (ob_unlikely(done != (ssize_t)size)) {
		if (done < 0 && errno != EAGAIN)
			err = OB_ERR_CLOSED;
		if (done > 0)
			obt_iov_advance(iov, n, (size_t)done);
		obs_stats_page_hold_begin();
		if (!err)
			err = obt_stream_send_all(
				stream, iov, n, ob_clock_ns() + OBS_SEND_TIMEOUT_S * OB_SECOND);
		obs_stats_page_hold_end();
		if (err)
			obs_link_broken_locked(session);
	}
	session->replies.sent_frames++;
	session->replies.sent_bytes += size;
	atomic_store_explicit(&obs_stats_page->bytes_out,
		session->replies.sent_bytes +
			atomic_load_explicit(&session->stripes.bytes_out, memory_order_relaxed),
		memory_order_relaxed);
	atomic_store_explicit(
		&obs_stats_page->replies, session->replies.next - 1, memory_order_relaxed);
}

/*
 * Under the lock. iov[0] begins with the frame's header. With packing, a packed copy is sent; the
 * retransmit queue holds the original.
 */
static void send_reply(struct obs_session *session, struct iovec *iov, int n, size_t size)
{
	struct obp_frame frame;
	struct iovec pieces[5] = { { &frame, sizeof frame } };
	int count = 1;

	if (ob_likely(!session->packer.on) || size < OBP_PACK_MIN ||
		atomic_load_explicit(&session->link.down, memory_order_relaxed)) {
		send_all(session, iov, n, size);
		return;
	}
	memcpy(&frame, iov[0].iov_base, sizeof frame);
	pieces[count++] = (struct iovec){ (char *)iov[0].iov_base + sizeof frame,
		iov[0].iov_len - sizeof frame };
	for (int i = 1; i < n; i++)
		pieces[count++] = iov[i];
	n = obp_packer_frame(&session->packer, &frame, pieces, count);
	send_all(session, pieces, n, sizeof frame + frame.size);
}

/* Under the lock. The number to acknowledge: all records up to it have been fully received. */
static uint64_t ack_number(struct obs_replies *replies)
{
	uint64_t executed = atomic_load_explicit(&replies->executed, memory_order_relaxed);

	atomic_store_explicit(&replies->acked, executed, memory_order_relaxed);
	return executed;
}

void obs_replies_trim(struct obs_session *session)
{
	struct obs_replies *replies = &session->replies;
	uint64_t acked = atomic_load_explicit(&session->link.client_ack, memory_order_relaxed);
	bool slots = obs_retransmit_drop(&replies->retransmit, acked);

	if (ob_likely(!atomic_load(&replies->waiting)))
		return;
	pthread_cond_broadcast(&replies->room);
	if (slots)
		obs_staging_returned(&session->staging);
}

void obs_replies_release(struct obs_session *session)
{
	if (!session->link.on)
		return;
	pthread_mutex_lock(&session->replies.lock);
	obs_replies_trim(session);
	pthread_mutex_unlock(&session->replies.lock);
}

static void slot_wait(void *owner, bool begins)
{
	struct obs_session *session = owner;

	if (!begins) {
		atomic_fetch_sub(&session->replies.waiting, 1);
		return;
	}
	atomic_fetch_add(&session->replies.waiting, 1);
	pthread_mutex_lock(&session->replies.lock);
	obs_replies_trim(session);
	pthread_mutex_unlock(&session->replies.lock);
}

static bool link_is_down(void *owner)
{
	return atomic_load(&((struct obs_session *)owner)->link.down);
}

void obs_replies_own_slots(struct obs_session *session)
{
	static const struct obs_staging_owner owner = { slot_wait, link_is_down };

	session->staging.owner = &owner;
	session->staging.owner_data = session;
}

/* Calls whose reply goes to no caller: it carries no failure of an asynchronous call. */
static bool is_unheard(uint16_t opcode)
{
	return opcode == OBP_OP_UPLOAD_PART || opcode == OBP_OP_READ_LATER;
}

/*
 * Calls that make something whose id or address the client knows from then on, or end it. Their reply carries no
 * failure of an earlier asynchronous call: the client would take it for the call's own, and use the id
 * again that is in use here.
 */
static bool makes_for_caller(uint16_t opcode)
{
	switch (opcode) {
	case OBP_OP_MEM_GROW:
	case OBP_OP_MEM_ALLOC_PLAIN:
	case OBP_OP_MEM_SLAB:
	case OBP_OP_MODULE_LOAD_CHECKED:
	case OBP_OP_MODULE_LOAD_NOW:
	case OBP_OP_GRAPH_MAKE:
	case OBP_OP_GRAPH_CONDITION:
	case OBP_OP_ARRAY_CREATE:
	case OBP_OP_TEXTURE_CREATE:
	case OBP_OP_SURFACE_CREATE:
	case OBP_OP_SHARE_MAP:
	case OBP_OP_EVENT_OPEN:
	case OBP_OP_POOL_OPEN:
	case OBP_OP_GREEN_CREATE:
	case OBP_OP_PEER_ENABLE:
	case OBP_CALL_cuMemCreate:
	case OBP_CALL_cuMemMap:
	case OBP_CALL_cuMemUnmap:
	case OBP_CALL_cuMemImportFromShareableHandle:
	case OBP_CALL_cuMemRetainAllocationHandle:
		return true;
	default:
		return false;
	}
}

/*
 * Under the lock. Moves the first failure of an asynchronous call into this reply, if it is one
 * that ends a call.
 */
static void deferred_take(struct obs_replies *replies, struct obp_reply *head, uint16_t opcode)
{
	uint64_t deferred;

	if (head->flags & (OBP_REPLY_MORE | OBP_REPLY_TEXT) || ob_unlikely(is_unheard(opcode)) ||
		ob_likely(!atomic_load_explicit(&replies->deferred, memory_order_relaxed)) ||
		makes_for_caller(opcode))
		return;
	deferred = atomic_exchange(&replies->deferred, 0);
	head->deferred = (uint32_t)deferred;
	head->deferred_opcode = (uint32_t)(deferred >> 32);
}

/*
 * Under the lock. What waits for a copy that ends with this reply may go on, but is answered after
 * it: its replies need the lock.
 */
static void copy_ends(struct obs_exec *x, const struct obp_reply *head)
{
	if (ob_likely(!x->closes) || head->flags & (OBP_REPLY_MORE | OBP_REPLY_TEXT))
		return;
	obs_open_over(x->session, x->closes);
	x->closes = NULL;
}

/* Builds the reply inside the retransmit queue, where it stays until the client acknowledges it. */
static void reply_queued(
	struct obs_exec *x, struct obp_reply *head, const void *body, struct obs_slot *slot)
{
	struct obs_session *session = x->session;
	struct obs_replies *replies = &session->replies;
	struct obs_retransmit_entry *entry;
	struct obp_frame frame;
	struct iovec iov[3];
	int n;

	if (ob_unlikely(obs_times_on))
		obs_times_answer(head->call);
	pthread_mutex_lock(&replies->lock);
	deferred_take(replies, head, x->opcode);
	obs_replies_trim(session);
	entry = obs_retransmit_add(&replies->retransmit, body, head->body, slot);
	while (ob_unlikely(!entry)) {
		atomic_fetch_add(&replies->waiting, 1);
		obs_replies_trim(session);
		entry = obs_retransmit_add(&replies->retransmit, body, head->body, slot);
		/*
		 * No time-out: either an acknowledgement comes, or the loop ends the process
		 * because the client is gone.
		 */
		if (!entry) {
			obs_stats_page_hold_begin();
			pthread_cond_wait(&replies->room, &replies->lock);
			obs_stats_page_hold_end();
		}
		atomic_fetch_sub(&replies->waiting, 1);
	}
	obp_frame_fill(&frame, OBP_FRAME_REPLIES, head->size, 1, replies->retransmit.next - 1,
		ack_number(replies));
	copy_ends(x, head);
	memcpy(entry->bytes, &frame, sizeof frame);
	memcpy(entry->bytes + sizeof frame, head, sizeof *head);
	atomic_store_explicit(&replies->next, replies->retransmit.next, memory_order_release);
	n = obs_retransmit_iov(entry, iov);
	send_reply(session, iov, n, sizeof frame + head->size);
	pthread_mutex_unlock(&replies->lock);
}

static void reply(
	struct obs_exec *x, struct obp_reply *head, const void *body, struct obs_slot *slot)
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
	if (session->link.on) {
		reply_queued(x, head, body, slot);
		return;
	}
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
	if (ob_unlikely(obs_times_on))
		obs_times_answer(head->call);
	pthread_mutex_lock(&replies->lock);
	deferred_take(replies, head, x->opcode);
	copy_ends(x, head);
	out.reply = *head;
	obp_frame_fill(
		&out.frame, OBP_FRAME_REPLIES, head->size, 1, replies->next++, ack_number(replies));
	send_reply(session, iov, n, size);
	pthread_mutex_unlock(&replies->lock);
}

void obs_reply_send(struct obs_exec *x, CUresult result, const void *body, uint32_t size)
{
	struct obp_reply head = {
		.lane = x->lane_index, .result = (uint32_t)result, .call = x->call, .body = size
	};

	x->replied = true;
	reply(x, &head, body, NULL);
}

void obs_reply_slot(
	struct obs_exec *x, CUresult result, struct obs_slot *slot, uint32_t size, bool more)
{
	struct obp_reply head = { .lane = x->lane_index,
		.flags = more ? OBP_REPLY_MORE : 0,
		.result = (uint32_t)result,
		.call = x->call,
		.body = size };

	x->replied = x->replied || !more;
	reply(x, &head, slot->data, slot);
}

void obs_reply_text(struct obs_exec *x, uint16_t flags, const void *text, uint32_t size)
{
	struct obp_reply head = {
		.lane = x->lane_index, .flags = flags | OBP_REPLY_TEXT, .body = size
	};

	reply(x, &head, text, NULL);
}

void obs_reply_defer(struct obs_session *session, uint16_t opcode, CUresult result)
{
	uint64_t none = 0;

	atomic_compare_exchange_strong(
		&session->replies.deferred, &none, (uint64_t)opcode << 32 | (uint32_t)result);
}

void obs_reply_ack(struct obs_session *session)
{
	struct obs_replies *replies = &session->replies;
	uint64_t executed = atomic_load_explicit(&replies->executed, memory_order_relaxed);
	struct obp_frame frame;
	struct iovec iov = { &frame, sizeof frame };

	if (replies->bytes_unacked < replies->ack_bytes &&
		executed - atomic_load_explicit(&replies->acked, memory_order_relaxed) <
			OBS_ACK_RECORDS)
		return;
	replies->bytes_unacked = 0;
	/* While the connection is down nothing is sent; the next join carries the number. */
	pthread_mutex_lock(&replies->lock);
	obp_frame_fill(&frame, OBP_FRAME_ACK, 0, 0, 0, ack_number(replies));
	send_all(session, &iov, 1, sizeof frame);
	pthread_mutex_unlock(&replies->lock);
}

_Static_assert(
	sizeof(struct obp_frame) + sizeof(struct obp_reply) == 80, "the two are sent as one piece");
