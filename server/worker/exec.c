/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/exec.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/spin.h"
#include "base/thread.h"
#include "server/common/stats_page.h"
#include "server/layers/trace.h"
#include "server/worker/aside.h"
#include "server/worker/device_times.h"
#include "server/worker/end.h"
#include "server/worker/held.h"
#include "server/worker/lane.h"
#include "server/worker/record.h"
#include "server/worker/reply.h"
#include "server/worker/resume.h"
#include "server/worker/times.h"

/* ---- receiving ---- */

static struct ob_spin spin; /* the executor's */

/* bytes; the limit of the body of a call in which the executor blocks */
#define BLOCKING_BODY 256u

/* Blocks until at least one byte has come. link.idle is set meanwhile. */
static ssize_t receive_block(struct obs_session *session, void *data, size_t size)
{
	struct obt_stream *stream = &session->data;
	ssize_t n;

	atomic_store_explicit(&session->link.idle, true, memory_order_relaxed);
	do
		n = stream->ops->recv(stream, data, size, true);
	while (n < 0 && errno == EAGAIN);
	atomic_store_explicit(&session->link.idle, false, memory_order_relaxed);
	return n;
}

/*
 * After a receive: n > 0 bytes, or 0 if the connection broke and the session waits for another.
 * Ends the process when the client has left for good.
 */
static size_t received(struct obs_session *session, ssize_t n)
{
	if (n <= 0 && !session->link.on)
		obs_session_exit(session, 0);
	/* With the connection broken, the executor is still waiting. */
	atomic_store_explicit(&obs_stats_page->waiting, n <= 0, memory_order_relaxed);
	return n > 0 ? (size_t)n : 0;
}

/* Bytes that were sent to the client since the last call. */
static uint64_t sent_lately(void)
{
	static uint64_t before;
	uint64_t now = atomic_load_explicit(&obs_stats_page->bytes_out, memory_order_relaxed),
		 sent = now - before;

	before = now;
	return sent;
}

/*
 * Receives at least one byte. 0: the connection broke. begun: the rest of what has begun to arrive.
 *
 * After a reply the client's next call may come at once, so polling pays. Without a reply the
 * program does not wait for what comes next, and polling for each frame of asynchronous calls would
 * only keep a core busy, which on a machine with few cores delays what the calls are for.
 */
static size_t receive(struct obs_session *session, void *data, size_t size, bool begun)
{
	struct obt_stream *stream = &session->data;
	uint64_t sent = sent_lately(), start = ob_clock_ns(), budget = 0;
	ssize_t n = -1;

	if (begun || sent || stream->shm)
		budget = ob_spin_budget(&spin, sent);

	atomic_store_explicit(&obs_stats_page->waiting, true, memory_order_relaxed);
	errno = EAGAIN;
	while (budget && n < 0 && errno == EAGAIN && ob_clock_ns() - start < budget) {
		n = stream->ops->recv(stream, data, size, false);
		if (n < 0)
			ob_clock_relax();
	}
	if (n < 0 && errno == EAGAIN)
		n = receive_block(session, data, size);
	ob_spin_learn(&spin, ob_clock_ns() - start, sent);
	return received(session, n);
}

#define HELD_NS 100000 /* between checks whether an open copy has ended */

/* Through shared memory a descriptor that is readable does not mean bytes. */
static void pause_for_bytes(struct obs_session *session)
{
	const struct timespec pause = { .tv_nsec = HELD_NS };
	struct pollfd fd = { .fd = session->data.fd, .events = POLLIN };

	if (session->data.shm)
		nanosleep(&pause, NULL);
	else
		ppoll(&fd, 1, &pause, NULL);
}

/*
 * Receives while a copy is open that may end without a byte of the client. True: it has ended.
 * False: as receive.
 */
static bool receive_unless_changed(
	struct obs_session *session, void *data, size_t size, size_t *ret_got)
{
	struct obt_stream *stream = &session->data;
	uint64_t start = ob_clock_ns(), budget = ob_spin_budget(&spin, 0);
	ssize_t n = -1;
	bool changed;

	atomic_store_explicit(&obs_stats_page->waiting, true, memory_order_relaxed);
	atomic_store_explicit(&session->link.idle, true, memory_order_relaxed);
	errno = EAGAIN;
	while (!(changed = obs_held_changed(session))) {
		n = stream->ops->recv(stream, data, size, false);
		if (n >= 0 || errno != EAGAIN)
			break;
		if (ob_clock_ns() - start < budget)
			ob_clock_relax();
		else
			pause_for_bytes(session);
	}
	atomic_store_explicit(&session->link.idle, false, memory_order_relaxed);
	if (changed)
		atomic_store_explicit(&obs_stats_page->waiting, false, memory_order_relaxed);
	else
		*ret_got = received(session, n);
	return changed;
}

bool obs_exec_receive(struct obs_exec *x, void *dst, size_t size)
{
	uint8_t *p = dst;
	size_t n = obp_conn_body_buffered(x->conn, p, size);

	while (n < size) {
		size_t got = receive(x->session, p + n, size - n, true);

		if (!got)
			return false;
		obp_conn_body_direct(x->conn, got);
		atomic_store_explicit(
			&x->session->link.bytes, x->conn->bytes, memory_order_relaxed);
		n += got;
	}
	return true;
}

/* ---- executing ---- */

static struct obs_lane *lane_of(struct obs_exec *x, const struct obp_record *rec)
{
	struct obs_lane *lane = x->session->lanes[rec->lane];

	return ob_likely(lane != NULL) ? lane : obs_lane_new(x->session, rec->lane);
}

/* Calls that may wait long for the device and change no table. */
static bool may_wait(uint16_t opcode)
{
	switch (opcode) {
	case OBP_OP_CTX_SYNCHRONIZE:
	case OBP_OP_STREAM_SYNCHRONIZE:
	case OBP_OP_EVENT_SYNCHRONIZE:
	case OBP_OP_EVENT_SYNCHRONIZE_SINCE:
	case OBP_OP_READ:
	case OBP_OP_READ_ROWS:
	case OBP_OP_ARRAY_READ:
	case OBP_OP_READ_STRIPED:
	case OBP_OP_READ_LATER:
		return true;
	default:
		return false;
	}
}

static inline void begin(struct obs_exec *x, const struct obp_item *item)
{
	x->call = item->number;
	x->opcode = item->record.opcode;
	x->lane_index = item->record.lane;
	x->lane = lane_of(x, &item->record);
	x->session->replies.bytes_unacked += item->record.size;
}

/* Fully received: mark as accepted so that the client may drop its copy. */
static inline void taken(struct obs_session *session, uint64_t number)
{
	atomic_store_explicit(&session->replies.executed, number, memory_order_relaxed);
}

/*
 * A blocking call of the only lane runs on the executor's thread: no hand-over. If another lane
 * sends calls meanwhile, the loop thread sees unread bytes and starts a successor, which takes the
 * executor's role by clearing `blocking`. This thread then only answers its call.
 */
static void block_here(struct obs_exec *x, const struct obp_item *item)
{
	struct obs_session *session = x->session;
	_Alignas(8) uint8_t body[BLOCKING_BODY];
	uint64_t call = item->number;

	memcpy(body, item->body, item->size); /* a successor would reuse the connection's buffer */
	atomic_store_explicit(&session->blocking, call, memory_order_release);
	obs_exec_record(x, &item->record, body, (uint32_t)item->size);
	if (!atomic_compare_exchange_strong(&session->blocking, &call, 0)) {
		atomic_fetch_sub_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
		for (;;)
			/* the successor is the executor now; this thread ends with the process */
			pause();
	}
}

/* Other threads of the program must not wait for this call. */
static void beside_others(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size)
{
	if (rec->opcode == OBP_OP_READ_STRIPED && obs_aside_run(x, rec, body, size))
		return;
	x->later = true;
	obs_exec_record(x, rec, body, size);
	x->later = false;
}

/* See obs_held_execute. */
static void execute_held(struct obs_exec *x, uint64_t call, const struct obp_record *rec,
	const void *body, uint32_t size, struct obs_lane *lane)
{
	x->call = call;
	x->opcode = rec->opcode;
	x->lane_index = rec->lane;
	x->lane = lane ? lane : lane_of(x, rec);
	if (obp_op_blocks(rec->opcode) && may_wait(rec->opcode))
		beside_others(x, rec, body, size);
	else
		obs_exec_record(x, rec, body, size);
}

/* Only while copies are open or records are held back: true if this one is held back now. */
static __attribute__((noinline)) bool held_back(
	struct obs_exec *x, const struct obp_item *item, const void *body)
{
	struct obs_lane *lane = x->lane;
	bool held;

	if (obs_held_changed(x->session)) {
		obs_held_run(x, execute_held);
		x->call = item->number;
		x->opcode = item->record.opcode;
		x->lane_index = item->record.lane;
		x->lane = lane = lane_of(x, &item->record);
	}
	held = obs_held_active(x->session) &&
		obs_held_take(x, &item->record, body, (uint32_t)item->size);
	if (held && ob_unlikely(obs_times_on))
		obs_times_end();
	return held;
}

/* Whether the executor may block in this call: no other call of the program can come meanwhile. */
static bool blocks_here(const struct obs_exec *x, const struct obp_item *item)
{
	return x->session->n_lanes == 1 && item->size <= BLOCKING_BODY &&
		!obs_held_active(x->session) && item->record.opcode != OBP_OP_READ_LATER;
}

/* Takes up what the client has acknowledged in the frames received so far. */
static void acks_take(struct obs_session *session)
{
	if (!obs_link_acked(session, session->conn.peer_ack))
		obs_session_fatal(session, OB_ERR_PROTOCOL,
			"the client acknowledges replies that were never sent");
}

static void small(struct obs_exec *x, const struct obp_item *item)
{
	const struct obp_record *rec = &item->record;

	begin(x, item);
	taken(x->session, item->number);
	if (ob_unlikely(obs_times_on))
		obs_times_begin(item->number, rec->opcode);
	if (ob_unlikely(obs_trace_on))
		obs_trace_record(
			item->number, rec->lane, rec->opcode, item->body, (uint32_t)item->size);
	if (obs_held_active(x->session) && held_back(x, item, item->body))
		return;
	if (!obp_op_blocks(rec->opcode) || !may_wait(rec->opcode)) {
		obs_exec_record(x, rec, item->body, (uint32_t)item->size);
	} else {
		acks_take(x->session); /* a read reuses the slots of earlier ones */
		if (blocks_here(x, item))
			block_here(x, item);
		else
			beside_others(x, rec, item->body, (uint32_t)item->size);
	}
	if (ob_unlikely(obs_times_on))
		obs_times_end();
}

/*
 * A record that does not fit the connection's buffer. The data of an OBP_OP_WRITE and of a part of
 * an upload is received into page-locked memory, any other body into the scratch buffer. False: the
 * connection broke before the whole record was received.
 */
static bool big(struct obs_exec *x, const struct obp_item *item)
{
	struct obs_session *session = x->session;
	bool whole, done = false;

	begin(x, item);
	x->conn = &session->conn;
	if (ob_unlikely(obs_trace_on))
		obs_trace_record(item->number, item->record.lane, item->record.opcode, item->body,
			(uint32_t)item->have);
	if (ob_unlikely(obs_times_on))
		obs_times_begin(item->number, item->record.opcode);
	whole = item->record.opcode != OBP_OP_UPLOAD_PART || obs_big_part(x, item, &done);
	if (whole && !done && item->record.opcode == OBP_OP_WRITE && !obs_held_active(session)) {
		whole = obs_big_write(x, item);
		done = true;
	}
	if (whole && !done)
		whole = obs_exec_receive(x, session->scratch, item->size);
	if (whole)
		taken(session, item->number);
	x->conn = NULL;
	if (whole && !done && !(obs_held_active(session) && held_back(x, item, session->scratch)))
		obs_exec_record(x, &item->record, session->scratch, (uint32_t)item->size);
	x->conn = NULL;
	if (ob_unlikely(obs_times_on))
		obs_times_end();
	return whole;
}

/* Waits for the client's next data connection and continues where the broken one ended. */
static void data_resume(struct obs_session *session)
{
	obs_link_await(session);
	obp_conn_restart(&session->conn);
}

/* Receives more bytes into the connection's buffer. */
static void fill(struct obs_exec *x, bool bulk)
{
	struct obs_session *session = x->session;
	struct obp_conn *conn = &session->conn;
	bool waits = false;
	void *data;
	size_t size, got;

	acks_take(session);
	obs_reply_ack(session);
	if (obs_held_active(session))
		obs_held_run(x, execute_held);
	obp_conn_space(conn, &data, &size);
	if (size == 0)
		obs_session_fatal(session, OB_ERR_PROTOCOL,
			"a frame does not fit the connection's buffer: client and server "
			"versions may differ, see 'outboard check'");
	if (bulk && !obp_conn_gathers(conn))
		size = ob_min(size, OBP_CONN_BIG_FRAME);
	if (obs_held_active(session) && obs_held_reads(session))
		waits = receive_unless_changed(session, data, size, &got);
	else
		got = receive(session, data, size, bulk);
	if (waits)
		return;
	if (ob_unlikely(!got)) {
		data_resume(session);
		return;
	}
	obp_conn_fed(conn, got);
	if (ob_unlikely(obs_times_on))
		obs_times_arrived();
	atomic_store_explicit(&obs_stats_page->bytes_in,
		conn->bytes +
			atomic_load_explicit(&session->stripes.bytes_in, memory_order_relaxed),
		memory_order_relaxed);
	atomic_store_explicit(&session->link.bytes, conn->bytes, memory_order_relaxed);
}

_Noreturn static void run(struct obs_session *session, struct obs_context *current)
{
	struct obs_exec x = {
		.session = session, .drv = session->drv, .context = current, .executor = true
	};
	struct obp_item item;
	/*
	 * Above 0: one of the last records was a large copy and the next one probably is too: read
	 * only its headers into the buffer, so that the data can be received in place.
	 */
	unsigned bulk = 0;

	obs_device_thread(&x);
	for (;;) {
		switch (obp_conn_next(&session->conn, &item)) {
		case OBP_RECORD:
			small(&x, &item);
			break;
		case OBP_NEED:
			fill(&x, bulk > 0);
			bulk -= bulk > 0;
			break;
		case OBP_BIG:
			if (ob_unlikely(!big(&x, &item)))
				data_resume(session);
			bulk = OBP_CONN_BIG_RECENT;
			break;
		case OBP_ACK:
			break;
		case OBP_BROKEN:
			obs_session_fatal(session, session->conn.cause.code, "%s",
				session->identity.scope != OBT_SCOPE_USE
					? "this token's scope is not 'use': it may list the "
					  "devices but run nothing; create one with --scope use"
					: session->conn.cause.text);
		case OBP_CONTROL:
		case OBP_REPLY:
			obs_session_fatal(session, OB_ERR_PROTOCOL,
				"unexpected frame type on the data connection: client and server "
				"versions may differ, see 'outboard check'");
		}
	}
}

_Noreturn void obs_exec_run(struct obs_session *session)
{
	run(session, session->warm_context);
}

static void *successor(void *argument)
{
	struct obs_session *session = argument;
	uint64_t call = atomic_load(&session->succeeding);

	atomic_fetch_add_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
	if (!atomic_compare_exchange_strong(&session->blocking, &call, 0)) {
		atomic_fetch_sub_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
		return NULL; /* the call has returned, and its thread is still the executor */
	}
	run(session, NULL);
}

bool obs_exec_succeed(struct obs_session *session, uint64_t call)
{
	if (atomic_load(&session->blocking) != call || atomic_load(&session->succeeding) == call)
		return true; /* the call has returned, or the successor is starting */
	atomic_store(&session->succeeding, call);
	if (ob_thread_start(successor, session, 0, NULL))
		return true;
	atomic_store(&session->succeeding, 0);
	return false;
}
