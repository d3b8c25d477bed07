/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opt.h"
#include "base/thread.h"
#include "server/common/stats_page.h"
#include "server/layers/trace.h"
#include "server/worker/end.h"
#include "server/worker/lane.h"
#include "server/worker/record.h"
#include "server/worker/reply.h"
#include "server/worker/resume.h"
#include "server/worker/times.h"

/* ---- receiving ---- */

/*
 * Spinning before blocking saves time when the next bytes come soon, as they do in a program of
 * many short synchronous calls, and wastes it otherwise. The executor keeps a credit: each wait
 * that spinning shortened, or would have shortened, adds to it, each other wait takes from it.
 */
static struct {
	bool allowed;
	int credit; /* above 0: spin */
} spin;

#define CREDIT_MAX 16

/*
 * The part of a large record that goes through the connection's buffer: the headers of the frame
 * and the record, and the bytes that OBP_BIG shows.
 */
#define BULK_HEAD (sizeof(struct obp_frame) + sizeof(struct obp_record) + OBP_CONN_BIG_HEAD)

static void spin_init(void)
{
	spin.allowed = ob_opt_on(OB_OPT_SPIN) && sysconf(_SC_NPROCESSORS_ONLN) > 1;
	spin.credit = 0;
}

static void spin_learn(uint64_t waited_ns)
{
	spin.credit += waited_ns < OBS_SPIN_NS ? 1 : -2;
	spin.credit = ob_min(ob_max(spin.credit, -CREDIT_MAX), CREDIT_MAX);
}

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
 * Receives at least one byte. 0: the connection broke and the session waits for another. Ends the
 * process when the client has left for good.
 */
static size_t receive(struct obs_session *session, void *data, size_t size)
{
	struct obt_stream *stream = &session->data;
	uint64_t start;
	ssize_t n;

	atomic_store_explicit(&obs_stats_page->waiting, true, memory_order_relaxed);
	if (!spin.allowed) {
		n = receive_block(session, data, size);
	} else {
		start = ob_clock_ns();
		n = -1;
		errno = EAGAIN;
		while (spin.credit > 0 && n < 0 && errno == EAGAIN &&
			ob_clock_ns() - start < OBS_SPIN_NS) {
			n = stream->ops->recv(stream, data, size, false);
			ob_clock_relax();
		}
		if (n < 0 && errno == EAGAIN)
			n = receive_block(session, data, size);
		spin_learn(ob_clock_ns() - start);
	}
	if (n <= 0 && !session->link.on)
		obs_session_exit(session, 0);
	/* With the connection broken, the executor is still waiting. */
	atomic_store_explicit(&obs_stats_page->waiting, n <= 0, memory_order_relaxed);
	return n > 0 ? (size_t)n : 0;
}

bool obs_exec_receive(struct obs_exec *x, void *dst, size_t size)
{
	uint8_t *p = dst;
	size_t n = obp_conn_body_buffered(x->conn, p, size);

	while (n < size) {
		size_t got = receive(x->session, p + n, size - n);

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

/*
 * Calls that may wait long and change no table. They run on their lane's thread when other lanes
 * could be held up.
 */
static bool may_leave(uint16_t opcode)
{
	switch (opcode) {
	case OBP_OP_CTX_SYNCHRONIZE:
	case OBP_OP_STREAM_SYNCHRONIZE:
	case OBP_OP_EVENT_SYNCHRONIZE:
	case OBP_OP_READ:
	case OBP_OP_READ_ROWS:
	case OBP_OP_READ_STRIPED:
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
	_Alignas(8) uint8_t body[OBS_LANE_BODY];
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

static void small(struct obs_exec *x, const struct obp_item *item)
{
	const struct obp_record *rec = &item->record;

	begin(x, item);
	taken(x->session, item->number);
	if (ob_unlikely(obs_times_on))
		obs_times_begin(item->number);
	if (ob_unlikely(obs_trace_on))
		obs_trace_record(
			item->number, rec->lane, rec->opcode, item->body, (uint32_t)item->size);
	if (!obp_op_blocks(rec->opcode) || !may_leave(rec->opcode) || item->size > OBS_LANE_BODY)
		obs_exec_record(x, rec, item->body, (uint32_t)item->size);
	else if (x->session->n_lanes == 1)
		block_here(x, item);
	else if (!obs_lane_run(x, rec, item->body, (uint32_t)item->size))
		obs_exec_record(x, rec, item->body, (uint32_t)item->size);
	if (ob_unlikely(obs_times_on))
		obs_times_end();
}

/*
 * A record that does not fit the connection's buffer. The data of an OBP_OP_WRITE is received into
 * page-locked memory, any other body into the scratch buffer. False: the connection broke before
 * the whole record was received.
 */
static bool big(struct obs_exec *x, const struct obp_item *item)
{
	struct obs_session *session = x->session;
	bool whole;

	begin(x, item);
	x->conn = &session->conn;
	if (ob_unlikely(obs_trace_on))
		obs_trace_record(item->number, item->record.lane, item->record.opcode, item->body,
			(uint32_t)item->have);
	if (item->record.opcode == OBP_OP_WRITE) {
		whole = obs_big_write(x, item);
		if (whole)
			taken(session, item->number);
	} else {
		whole = obs_exec_receive(x, session->scratch, item->size);
		if (whole) {
			taken(session, item->number);
			obs_exec_record(x, &item->record, session->scratch, (uint32_t)item->size);
		}
	}
	x->conn = NULL;
	return whole;
}

/* Waits for the client's next data connection and continues where the broken one ended. */
static void data_resume(struct obs_session *session)
{
	obs_link_await(session);
	obp_conn_restart(&session->conn);
}

/* Receives more bytes into the connection's buffer. */
static void fill(struct obs_session *session, bool bulk)
{
	struct obp_conn *conn = &session->conn;
	void *data;
	size_t size, got;

	if (!obs_link_acked(session, conn->peer_ack))
		obs_session_fatal(session, OB_ERR_PROTOCOL,
			"the client acknowledges replies that were never sent");
	obs_reply_ack(session);
	obp_conn_space(conn, &data, &size);
	if (size == 0)
		obs_session_fatal(session, OB_ERR_PROTOCOL,
			"a frame does not fit the connection's buffer: client and server "
			"versions may differ, see 'outboard check'");
	got = receive(
		session, data, bulk && !obp_conn_gathers(conn) ? ob_min(size, BULK_HEAD) : size);
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
	struct obs_exec x = { .session = session, .drv = session->drv, .context = current };
	struct obp_item item;
	/*
	 * The last record was a large copy and the next one probably is too: read only its headers
	 * into the buffer, so that the data can be received in place.
	 */
	bool bulk = false;

	for (;;) {
		switch (obp_conn_next(&session->conn, &item)) {
		case OBP_RECORD:
			small(&x, &item);
			bulk = false;
			break;
		case OBP_NEED:
			fill(session, bulk);
			break;
		case OBP_BIG:
			if (ob_unlikely(!big(&x, &item)))
				data_resume(session);
			bulk = true;
			break;
		case OBP_ACK:
			break;
		case OBP_BROKEN:
			obs_session_fatal(session, session->conn.cause.code, "%s",
				session->identity.scope == OBT_SCOPE_LOOK
					? "this token's scope is 'look': it may list the devices "
					  "but run nothing; create one with --scope use"
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
	spin_init();
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
