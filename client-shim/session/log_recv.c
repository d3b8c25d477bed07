/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/opt.h"
#include "base/terminal.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/server.h"
#include "client-shim/session/times.h"
#include "protocol/control.h"

static void (*ack_hook)(uint64_t replies);

void obc_log_on_ack(void (*fn)(uint64_t replies))
{
	ack_hook = fn;
}

/*
 * Writes the output of the device's printf to the program's stdio, so that it is ordered with the
 * program's own output. Files and pipes get it unchanged. For a terminal, control characters are
 * removed, because the server or an attacker in its place could send anything.
 */
static void print_text(const struct obp_item *item)
{
	/* with the receive right */
	static OBC_PER_SERVER char clean_first[OBP_CONN_BIG + OB_SCREEN_HELD];
	static OBC_PER_SERVER struct ob_screen screens_first[2];
	char *clean = OBC_HERE(clean_first);
	struct ob_screen *screens = OBC_HERE(screens_first);
	bool to_stderr = item->reply.flags & OBP_REPLY_TEXT_STDERR;
	FILE *out = to_stderr ? stderr : stdout;

	if (isatty(fileno(out)))
		fwrite(clean, 1,
			ob_screen_text(
				&screens[to_stderr], (const char *)item->body, item->size, clean),
			out);
	else
		fwrite(item->body, 1, item->size, out);
}

/*
 * The last reply of the call has arrived. Setting `done` is the last access to the wait: its thread
 * may then return, and its stack frame ends.
 */
static void complete(struct log_wait *wait, const struct obp_reply *reply)
{
	bool asleep, unwanted, background = wait->background;
	struct log *log = &obc_log_state;

	log_lock(&log->wait_lock);
	log_wait_unlist(wait);
	wait->result = (CUresult)reply->result;
	wait->deferred = (CUresult)reply->deferred;
	asleep = log_wait_rouse(wait);
	unwanted = wait->later && !background && log_later_answered(wait);
	/* Release: a waiter that sees `done` sees the bytes. */
	atomic_store_explicit(&wait->done, true, memory_order_release);
	log_unlock(&log->wait_lock);
	if (asleep)
		log_wait_wake(wait);
	if (ob_unlikely(unwanted))
		log_later_free(wait);
	if (ob_unlikely(background))
		log_background_landed(wait);
}

/*
 * The server keeps replies in its retransmit queue until they are acknowledged. Calls normally
 * carry the acknowledgement. A long copy from the server, or many threads that read and then make
 * no calls, would delay it, so a separate acknowledgement is sent, at the latest when the protocol
 * requires it. It wakes a thread of the server. After the last reply of a call it can wait longer,
 * because the next call probably carries it.
 */
#define ACK_BIG_EARLY 8u

static void ack_consider(const struct obp_item *item)
{
	struct log *log = &obc_log_state;
	bool more = item->reply.flags & OBP_REPLY_MORE;

	if (!log->resumable)
		return;
	if (atomic_load_explicit(&log->sent_ack, memory_order_relaxed) >= log->ack_first) {
		log->ack_first = item->number;
		log->ack_big = 0;
		log->ack_small = 0;
	}
	if (item->size > OBP_RETRANSMIT_SMALL)
		log->ack_big++;
	else
		log->ack_small += sizeof(struct obp_frame) + sizeof(struct obp_reply) + item->size;
	if (ob_likely(log->ack_big < (more ? ACK_BIG_EARLY : OBP_ACK_BIG) &&
		    log->ack_small < OBP_ACK_SMALL_BYTES))
		return;
	log->ack_first = item->number + 1;
	log->ack_big = 0;
	log->ack_small = 0;
	atomic_store_explicit(&log->replies, item->number, memory_order_relaxed);
	ack_hook(item->number);
}

static void reply_refuse(const struct obp_item *item, const struct log_wait *wait, const char *why)
{
	const struct obp_call_info *info = wait ? obp_call_info(wait->opcode) : NULL;

	ob_error("the server broke the protocol: reply to call %llu (%s): %s",
		(unsigned long long)item->reply.call, info ? info->name : "?", why);
	obc_log_fail(OB_ERR_PROTOCOL);
}

/*
 * Finds the wait that this reply belongs to and checks that its body fits at wait->dst + wait->got.
 * This is the only place where the size of a reply's body in a caller's memory is checked. NULL:
 * the reply does not match the call; the session has ended.
 */
static struct log_wait *reply_match(const struct obp_item *item)
{
	struct log_wait *wait = log_wait_find(item->reply.call);
	struct ob_cause cause;

	if (ob_unlikely(!wait)) {
		reply_refuse(item, NULL, "no thread waits for it");
		return NULL;
	}
	if (ob_unlikely(obp_check_reply(
		    wait->opcode, &item->reply, wait->got, wait->capacity, &cause))) {
		reply_refuse(item, wait, cause.text);
		return NULL;
	}
	return wait;
}

/* The body is complete in the caller's memory. */
static void reply_landed(struct log_wait *wait, const struct obp_item *item)
{
	wait->got += item->size;
	if (!(item->reply.flags & OBP_REPLY_MORE)) {
		if (ob_unlikely(!obp_check_rep(wait->opcode, wait->dst, wait->got))) {
			reply_refuse(item, wait, "a value exceeds its maximum");
			return;
		}
		complete(wait, &item->reply);
	}
	ack_consider(item);
}

/* Device output belongs to no call and has no result. */
static void text_take(const struct obp_item *item)
{
	const struct obp_reply *reply = &item->reply;

	if (reply->flags & ~(OBP_REPLY_TEXT | OBP_REPLY_TEXT_STDERR) || reply->call ||
		reply->result || reply->deferred) {
		reply_refuse(item, NULL, "device output with the fields of a reply");
		return;
	}
	print_text(item);
	ack_consider(item);
}

static void reply_take(const struct obp_item *item)
{
	struct log_wait *wait;

	if (ob_unlikely(obc_log_state.watched))
		log_watch_reply(item, 0);
	if (item->reply.flags & OBP_REPLY_TEXT) {
		text_take(item);
		return;
	}
	wait = reply_match(item);
	if (!wait)
		return;
	if (item->size)
		memcpy(wait->dst + wait->got, item->body, item->size);
	reply_landed(wait, item);
}

/* Under the receive right. The rest of a large reply is on its way: sleeping would cost more. */
static ssize_t body_recv(uint8_t *dst, size_t n)
{
	static OBC_PER_SERVER struct ob_spin spin_first;
	struct ob_spin *spin = &OBC_HERE(spin_first);
	struct obt_stream *stream = &obc_log_state.stream;
	uint64_t start = ob_clock_ns(), budget = ob_spin_budget(spin, 0), took;
	ssize_t done = -1;

	errno = EAGAIN;
	while (done < 0 && errno == EAGAIN && budget && ob_clock_ns() - start < budget) {
		done = stream->ops->recv(stream, dst, n, false);
		if (done < 0)
			ob_clock_relax();
	}
	if (done < 0 && errno == EAGAIN)
		done = stream->ops->recv(stream, dst, n, true);
	took = ob_clock_ns() - start;
	obc_log_state.body_ns += took;
	ob_spin_learn(spin, took, 0);
	return done;
}

/*
 * Reads the bytes of a large reply from the socket directly into the caller's memory. False: the
 * session is lost.
 */
static bool body_receive(uint8_t *dst, size_t n)
{
	while (n && !log_broken() && !log_down()) {
		ssize_t done = body_recv(dst, n);

		if (done == 0)
			log_io_failed(EPIPE, "receiving a large reply");
		else if (done < 0 && errno != EAGAIN)
			log_io_failed(errno, "receiving a large reply");
		if (done <= 0)
			continue;
		dst += done;
		n -= (size_t)done;
		obp_conn_body_direct(&obc_log_state.conn, (size_t)done);
		atomic_store_explicit(
			&obc_log_state.heard, obc_log_state.conn.bytes, memory_order_relaxed);
	}
	return n == 0;
}

/* Reads the padding after a large reply. */
static bool padding_drop(void)
{
	size_t n = obp_conn_body_left(&obc_log_state.conn);
	uint8_t scrap[8];

	if (n >= sizeof scrap)
		return false;
	n -= obp_conn_body_buffered(&obc_log_state.conn, NULL, n);
	return body_receive(scrap, n);
}

/*
 * False: the reply does not fit, or it is incomplete because the connection broke. In the latter
 * case the server sends it again, and it is stored at the same address.
 */
static bool big_take(const struct obp_item *item)
{
	struct obp_conn *conn = &obc_log_state.conn;
	/* device output is never that large: its flags do not match a call */
	struct log_wait *wait = reply_match(item);
	uint64_t began = obc_log_state.watched ? ob_clock_ns() : 0;
	uint8_t *dst;
	size_t have;

	if (!wait)
		return false;
	dst = wait->dst + wait->got;
	have = obp_conn_body_buffered(conn, dst, item->size);
	if (have < item->size && !body_receive(dst + have, item->size - have))
		return false;
	if (!padding_drop())
		return false;
	if (ob_unlikely(began))
		log_watch_reply(item, began);
	reply_landed(wait, item);
	return true;
}

/* The only control message on the data connection is the end of the session. */
static void control_take(const struct obp_item *item)
{
	struct obp_message *message = malloc(sizeof *message);
	enum ob_err err =
		message ? obp_message_decode(item->body, item->size, message) : OB_ERR_NO_MEMORY;

	if (!err && (message->type == OBP_MSG_FATAL || message->type == OBP_MSG_REFUSED)) {
		if (!obc_log_ending())
			ob_error("the server ended the session: %s", message->text);
		err = OB_ERR_REFUSED;
	} else if (err != OB_ERR_NO_MEMORY) {
		ob_error("the server broke the protocol: unexpected control message on the data "
			 "connection");
		err = OB_ERR_PROTOCOL;
	}
	if (message)
		obp_message_fini(message);
	free(message);
	obc_log_fail(err);
}

/*
 * Rejects an acknowledgement of records that were never sent: it would free memory that a thread is
 * still sending from. False: the session has ended.
 */
static bool ack_take(uint64_t number)
{
	struct log *log = &obc_log_state;
	bool good;

	log_lock(&log->wait_lock);
	good = obc_ring_ack(&log->ring, number);
	log_unlock(&log->wait_lock);
	if (ob_unlikely(!good)) {
		ob_error("the server broke the protocol: it acknowledges call %llu, which was not "
			 "sent",
			(unsigned long long)number);
		obc_log_fail(OB_ERR_PROTOCOL);
	}
	return good;
}

/* Handles everything that is buffered. False: more bytes are needed. */
static bool items_take(void)
{
	struct log *log = &obc_log_state;
	struct obp_conn *conn = &log->conn;
	struct obp_item item;
	bool any = false;

	while (!atomic_load_explicit(&log->error, memory_order_relaxed)) {
		enum obp_event event = obp_conn_next(conn, &item);

		/*
		 * Before a waiter sees its reply, so that memory that a record refers to is no
		 * longer needed at that time.
		 */
		if (conn->peer_ack > atomic_load_explicit(&log->ring.acked, memory_order_relaxed) &&
			!ack_take(conn->peer_ack))
			break;

		switch (event) {
		case OBP_NEED:
			/* Release: who sees the number sees the bytes of these replies. */
			atomic_store_explicit(
				&log->replies, conn->expect - 1, memory_order_release);
			return any;
		case OBP_REPLY:
			reply_take(&item);
			break;
		case OBP_BIG:
			if (!big_take(&item))
				return any;
			log->bulk = OBP_CONN_BIG_RECENT;
			break;
		case OBP_CONTROL:
			control_take(&item);
			break;
		case OBP_ACK:
			break;
		case OBP_RECORD:
		case OBP_BROKEN:
			ob_error("the server broke the protocol: %s",
				conn->cause.code ? conn->cause.text : "a call in place of a reply");
			obc_log_fail(conn->cause.code ? conn->cause.code : OB_ERR_PROTOCOL);
			break;
		}
		any = true;
	}
	return any;
}

void log_read_some(bool block)
{
	struct log *log = &obc_log_state;
	struct obt_stream *stream = &log->stream;
	ssize_t done;
	size_t size;
	void *data;

	/*
	 * The thread that had the receive right may have given up within a large reply, because the
	 * connection broke. Nothing more is read before the new connection, which brings the whole
	 * reply again.
	 */
	if (atomic_load_explicit(&log->down, memory_order_relaxed))
		return;
	if (items_take() || !log_works(log) || !log_stream_ours())
		return;
	obp_conn_space(&log->conn, &data, &size);
	if (log->bulk && !obp_conn_gathers(&log->conn))
		size = ob_min(size, OBP_CONN_BIG_FRAME);
	done = stream->ops->recv(stream, data, size, block);
	if (done > 0) {
		log->bulk -= log->bulk > 0;
		if (ob_unlikely(obc_times_on))
			obc_times_received();
		obp_conn_fed(&log->conn, (size_t)done);
		atomic_store_explicit(&log->heard, log->conn.bytes, memory_order_relaxed);
		items_take();
	} else if (done == 0) {
		/* the server closed it, or the program did, which ends shared memory as well */
		log_io_failed(EPIPE, "receiving replies");
	} else if (errno != EAGAIN) {
		log_io_failed(errno, "receiving replies");
	}
}
