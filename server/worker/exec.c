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
 * Spinning pays when the next bytes come soon after the last were used up, which is how a program
 * of many short synchronous calls behaves, and hurts when they do not. So the executor counts: each
 * wait that spinning shortened (or would have) gives credit, each that it did not takes credit
 * away.
 */
static struct {
	bool allowed;
	int credit; /* above 0: spin */
} spin;

#define CREDIT_MAX 16

/*
 * Of a large record, this much goes through the connection's buffer: the frame's and the record's
 * heads and what OBP_BIG shows.
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

/* Blocks for at least one byte, and says meanwhile that nothing is executed. */
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
 * At least one byte; 0: the connection broke and there shall be another. Ends the process when the
 * client has left.
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
	/* Without a connection it goes on waiting, for the next one. */
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
 * Calls that may wait long and change no table: those run on their lane's thread when others could
 * be waiting meanwhile.
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

/* The record is whole in our hands: it will be executed, and the client need not keep it. */
static inline void taken(struct obs_session *session, uint64_t number)
{
	atomic_store_explicit(&session->replies.executed, number, memory_order_relaxed);
}

/*
 * A blocking call of the only lane runs right here: no hand-over. Should another lane appear
 * meanwhile, the loop thread sees bytes that nobody reads, takes the executor's role away by
 * clearing `blocking`, and gives it to a new thread: this one only answers its call.
 */
static void block_here(struct obs_exec *x, const struct obp_item *item)
{
	struct obs_session *session = x->session;
	_Alignas(8) uint8_t body[OBS_LANE_BODY];
	uint64_t call = item->number;

	memcpy(body, item->body, item->size); /* the connection's buffer goes with the role */
	atomic_store_explicit(&session->blocking, call, memory_order_release);
	obs_exec_record(x, &item->record, body, (uint32_t)item->size);
	if (!atomic_compare_exchange_strong(&session->blocking, &call, 0)) {
		atomic_fetch_sub_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
		for (;;)
			pause(); /* no thread needs this one; it ends with the process */
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
 * A record that is not whole in the connection's buffer: copy data goes straight to where it is
 * needed, anything else is put together. False: the connection broke before all of it was here.
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

/* The client's next connection of this session, from where the broken one ended. */
static void data_resume(struct obs_session *session)
{
	obs_link_await(session);
	obp_conn_restart(&session->conn);
}

/* More bytes into the connection's buffer. */
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
			"a frame that does not fit the connection's buffer");
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
	 * the last record was a large copy: the next probably is too, and its bytes are better not
	 * read into the buffer
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
			obs_session_fatal(session, session->conn.error, "%s",
				session->identity.scope == OBT_SCOPE_LOOK
					? "this token may look at the devices and run nothing"
					: session->conn.why);
		case OBP_CONTROL:
		case OBP_REPLY:
			obs_session_fatal(session, OB_ERR_PROTOCOL,
				"a frame of a type that has no place here");
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
		return NULL; /* it has just returned and reads again */
	}
	run(session, NULL);
}

bool obs_exec_succeed(struct obs_session *session, uint64_t call)
{
	if (atomic_load(&session->blocking) != call || atomic_load(&session->succeeding) == call)
		return true; /* it has returned, or the thread is on its way */
	atomic_store(&session->succeeding, call);
	if (ob_thread_start(successor, session, 0, NULL))
		return true;
	atomic_store(&session->succeeding, 0);
	return false;
}
