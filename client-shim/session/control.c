/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "client-shim/session/background.h"
#include "client-shim/session/control_link.h"
#include "client-shim/session/free_memory.h"
#include "client-shim/session/log.h"
#include "client-shim/session/resume.h"
#include "client-shim/session/server.h"
#include "client-shim/session/stripe.h"
#include "client-shim/session/timeline.h"
#include "client-shim/session/timeline_server.h"
#include "protocol/call.h"
#include "protocol/conn.h"
#include "protocol/control.h"
#include "transport/connect.h"
#include "transport/message.h"

/* for the last message of a program that exits within a call */
#define GIVE_UP_NS      (200 * OB_MS)
/* without resuming: only when a thread waits and nothing was received */
#define PING_WAITING_NS (5 * OB_SECOND)

struct control_state {
	struct obt_url url;
	uint64_t timeout_ns, dead_ns;
	pthread_t thread;
	bool thread_running;
	_Atomic bool stopping;
	struct obc_control_link link;
	/* used only by the control thread */
	struct obp_conn conn;
	struct obp_quality quality;
	struct obp_stall stall;
	uint64_t heard, pinged; /* ns */
	uint64_t last_sent;     /* number of records at the last check */
	bool ping_pending;
	/* a host function ran since that ping: its round trip is not valid */
	bool callback_ran;
	bool joined; /* the server has accepted the connection */
	/* the last pong reported that the server has lost the data connection */
	bool peer_lost_data;
	uint64_t resumed; /* number of resumes at that time */
};

static OBC_PER_SERVER struct control_state control_first = { .link = OBC_CONTROL_LINK_INIT };
#define control OBC_HERE(control_first)

static void (*callback_fn)(uint64_t id, CUresult status);

void obc_control_on_callback(void (*fn)(uint64_t id, CUresult status))
{
	callback_fn = fn;
}

void obc_control_quality(struct obp_quality *ret)
{
	*ret = control.quality;
}

/* ---- sending ---- */

static bool control_send(enum obp_message_type type, uint64_t value, uint32_t code)
{
	OB_CLEANUP(ob_freep) struct obp_message *message = calloc(1, sizeof *message);
	struct obp_progress progress = { 0 };

	if (!message)
		return false;
	obc_log_progress(&progress);
	message->type = type;
	message->value = value;
	message->code = code;
	message->received = progress.received;
	message->sent = progress.sent;
	message->bytes = progress.bytes_in;
	return obc_control_link_send(&control.link, message, ob_clock_ns() + control.dead_ns);
}

/* ---- receiving ---- */

/*
 * The server has lost the data connection, but it looks intact here: a device on the network path
 * has dropped one side. A single report may concern a break that the client has already detected.
 * Two reports without a new connection in between show that it has not.
 */
static bool data_lost_twice(bool now)
{
	struct obc_resume_stats stats;
	bool before = control.peer_lost_data;

	obc_resume_stats(&stats);
	before = before && stats.resumed == control.resumed;
	control.peer_lost_data = now;
	control.resumed = stats.resumed;
	return now && before;
}

/* clock: the server's, when it made the frame. */
static void pong_note(uint64_t clock, uint64_t now)
{
	obc_timeline_server_ping(control.pinged, clock, now);
	obc_timeline_add(OBC_TRACK_CONTROL,
		&(struct obc_timeline_event){ .at = control.pinged,
			.took = now - control.pinged,
			.kind = OBC_EVENT_PING });
}

static void pong_take(const struct obp_message *message, uint64_t clock)
{
	uint64_t now = ob_clock_ns();
	struct obp_progress progress = { 0 };

	if (control.ping_pending && message->value == control.pinged && obc_timeline_on)
		pong_note(clock, now);
	if (control.ping_pending && message->value == control.pinged && !control.callback_ran)
		obp_quality_rtt(&control.quality, now - control.pinged);
	control.ping_pending = false;
	obc_log_progress(&progress);
	obp_quality_bytes(&control.quality, now, progress.bytes_out, progress.bytes_in);
	if (!obc_resume_grace())
		return;
	progress.peer_sent = message->sent;
	progress.peer_received = message->received;
	progress.peer_bytes_in = message->bytes;
	progress.peer_idle = message->code == OBP_PEER_IDLE;
	if (data_lost_twice(message->code == OBP_PEER_CUT_OFF)) {
		ob_info("the server has lost the data connection; reconnecting");
		obc_log_link_broken();
	}
	if (obp_stall_check(&control.stall, &progress, now,
		    obp_quality_timeout(&control.quality, control.dead_ns))) {
		ob_info("the data connection is open but transfers nothing; reconnecting");
		control.stall = (struct obp_stall){ 0 };
		obc_log_link_broken();
	}
}

enum verdict { GOOD, BROKEN, OVER };

static enum verdict protocol_broken(const char *why)
{
	if (!atomic_load(&control.stopping))
		ob_error("the server broke the protocol on the control connection: %s", why);
	obc_log_fail(OB_ERR_PROTOCOL);
	return OVER;
}

/* A repeated request for a function that has run finds no function and is only answered again. */
static enum verdict callback_take(const struct obp_message *message)
{
	if (message->code > OBP_RESULT_MAX)
		return protocol_broken("the status of a host function is out of range");
	/* The bytes of a read may still be on their way; they come on the data connection. */
	switch (obc_background_received(message->sent)) {
	case OBC_RECEIVED:
		break;
	case OBC_ABANDONED: /* the function may rely on the bytes; the server waits for nothing */
		return GOOD;
	case OBC_SILENT:
		return protocol_broken("the replies before a host function did not arrive");
	}
	if (callback_fn)
		callback_fn(message->value, (CUresult)message->code);
	control.callback_ran = true;
	return control_send(OBP_MSG_CALLBACK_DONE, message->value, 0) ? GOOD : BROKEN;
}

/*
 * `joined` arrives once per connection. Requests for host functions that have been waiting may
 * arrive before it. A message that only a client may send is a protocol error.
 */
static enum verdict message_take(const struct obp_item *item)
{
	OB_CLEANUP(ob_freep) struct obp_message *message = malloc(sizeof *message);
	enum verdict verdict = GOOD;

	if (!message)
		return OVER;
	if (obp_message_decode(item->body, item->size, message))
		return protocol_broken("a message cannot be decoded");
	if (message->type == OBP_MSG_FATAL || message->type == OBP_MSG_REFUSED) {
		/*
		 * The join was sent while the goodbye was under way: the server no longer knows the
		 * session.
		 */
		if (!obc_log_ending())
			ob_error("the server ended the session: %s", message->text);
		verdict = OVER;
	} else if (message->type == OBP_MSG_JOINED && !control.joined) {
		control.joined = true;
	} else if (message->type == OBP_MSG_PING && control.joined) {
		verdict = control_send(OBP_MSG_PONG, message->value, 0) ? GOOD : BROKEN;
	} else if (message->type == OBP_MSG_PONG && control.joined) {
		pong_take(message, item->time_ns);
	} else if (message->type == OBP_MSG_CALLBACK) {
		verdict = callback_take(message);
	} else if (message->type == OBP_MSG_MEMORY && control.joined) {
		if (!obc_free_memory_answer(message))
			verdict = protocol_broken("it reports the memory of a device without being "
						  "asked for it");
	} else {
		verdict = protocol_broken(
			"unexpected message type on the control connection: client and "
			"server versions may differ, see 'outboard check'");
	}
	obp_message_fini(message);
	return verdict;
}

static enum verdict control_read(void)
{
	enum verdict verdict = GOOD;
	struct obp_item item;
	enum obp_event event;
	ssize_t done;
	size_t size;
	void *data;

	obp_conn_space(&control.conn, &data, &size);
	done = control.link.stream.ops->recv(&control.link.stream, data, size, false);
	if (done == 0 || (done < 0 && errno != EAGAIN))
		return BROKEN;
	if (done > 0) {
		obp_conn_fed(&control.conn, (size_t)done);
		control.heard = ob_clock_ns();
	}
	while (verdict == GOOD && (event = obp_conn_next(&control.conn, &item)) != OBP_NEED)
		if (event == OBP_CONTROL)
			verdict = message_take(&item);
		else if (event != OBP_ACK)
			verdict = protocol_broken(control.conn.cause.code
					? control.conn.cause.text
					: "unexpected frame type on the control connection: client "
					  "and server versions may differ, see 'outboard check'");
	if (control.callback_ran)
		control.heard = ob_clock_ns();
	return verdict;
}

/* ---- checking the connections ---- */

static bool ping(uint64_t now)
{
	control.pinged = now;
	control.ping_pending = true;
	control.callback_ran = false;
	return control_send(OBP_MSG_PING, now, 0);
}

/*
 * Without resuming: while a thread waits for a reply, the time without received bytes is measured,
 * so that a server that disappeared does not block the program forever.
 */
static enum verdict watch_without_resume(uint64_t now)
{
	uint64_t ping_ns = ob_min(PING_WAITING_NS, control.dead_ns / 4);

	if (!obc_log_waiting()) {
		control.heard = now;
		return GOOD;
	}
	if (now - control.heard > control.dead_ns) {
		obc_log_fail(OB_ERR_TIMEOUT);
		return OVER;
	}
	if (now - control.heard > ping_ns && now - control.pinged > ping_ns)
		return ping(now) ? GOOD : BROKEN;
	return GOOD;
}

static enum verdict watch(void)
{
	uint64_t now = ob_clock_ns(), interval;
	struct obp_progress progress = { 0 };
	bool busy;

	if (!obc_resume_grace())
		return watch_without_resume(now);
	obc_log_progress(&progress);
	busy = progress.waiting || progress.sent != control.last_sent;
	control.last_sent = progress.sent;
	interval = ob_min(busy ? OBP_PING_BUSY_NS : OBP_PING_IDLE_NS,
		ob_min(control.dead_ns, obc_resume_grace()) / 4);
	/*
	 * Everything received since counts, for example a callback request or a ping of the server.
	 */
	if (control.ping_pending &&
		now - ob_max(control.pinged, control.heard) >
			obp_quality_timeout(&control.quality, control.dead_ns)) {
		ob_info("the server has not answered for %u ms; reconnecting",
			(unsigned)((now - control.pinged) / OB_MS));
		obc_log_link_broken();
		return BROKEN;
	}
	if (!control.ping_pending && now - control.pinged >= interval)
		return ping(now) ? GOOD : BROKEN;
	return GOOD;
}

/* Gives back memory that the session no longer uses. */
static void release_idle(void)
{
	uint64_t now = ob_clock_ns();

	obc_log_release_idle(now);
	obc_stripe_release_idle(now);
}

/* ---- the connection ---- */

static bool control_open(void)
{
	uint64_t deadline = ob_clock_ns() + control.timeout_ns;
	struct obt_stream stream;
	enum ob_err err;

	if (obt_stream_connect(&control.url, deadline, &stream, NULL))
		return false;
	stream.fd = ob_fd_raise(stream.fd);
	/*
	 * No other thread sends before the join: with TLS the connection does not exist before it.
	 */
	err = obc_dial_join(&stream, OBP_JOIN_CONTROL, 0, deadline);
	obc_control_link_set(&control.link, &stream);
	return err == OB_ERR_NONE;
}

/* False: the session has ended. */
static bool control_reconnect(void)
{
	struct obp_progress progress = { 0 };
	struct obt_stream stream;
	uint64_t received;
	struct obc_dial dial;
	enum ob_err err;

	obc_control_link_set(&control.link, NULL);
	control.joined = false;
	if (atomic_load(&control.stopping))
		return false;
	obc_log_progress(&progress);
	obc_dial_begin(&dial, OBP_JOIN_CONTROL, progress.received);
	err = obc_dial_run(&dial, &stream, &received);
	if (err) {
		if (!atomic_load(&control.stopping))
			obc_log_fail(err);
		return false;
	}
	obp_conn_restart(&control.conn);
	control.joined = true;
	control.ping_pending = control.callback_ran = false;
	control.heard = ob_clock_ns();
	obc_control_link_set(&control.link, &stream);
	/* Handles what arrived during the join. */
	obc_log_progress(&progress);
	if (progress.received)
		obc_control_link_ack(&control.link, progress.received);
	return true;
}

/*
 * Asks for the free memory of devices that the program wants to know. ret_wait: ns until the next
 * question.
 */
static enum verdict memory_ask(uint64_t *ret_wait)
{
	uint64_t now = ob_clock_ns(), value;
	uint32_t device;

	*ret_wait = OB_NEVER;
	while (control.joined && obc_free_memory_due(now, &device, &value, ret_wait))
		if (!control_send(OBP_MSG_MEMORY_ASK, value, device))
			return BROKEN;
	return GOOD;
}

static enum verdict turn(void)
{
	struct pollfd pfd = { .fd = control.link.stream.fd, .events = POLLIN };
	enum verdict verdict;
	uint64_t wait;

	if (!obt_stream_ours(&control.link.stream))
		return BROKEN;
	verdict = memory_ask(&wait);
	if (verdict != GOOD)
		return verdict;
	wait = ob_min(ob_min(control.dead_ns / 4, wait), OB_SECOND);
	if (obt_stream_pending(&control.link.stream) ||
		poll(&pfd, 1, (int)((wait + OB_MS - 1) / OB_MS)) > 0)
		verdict = obt_stream_ours(&control.link.stream) ? control_read() : BROKEN;
	if (verdict != GOOD || atomic_load(&control.stopping))
		return verdict;
	release_idle();
	return watch();
}

/*
 * The connection is lost for good: names the cause. Without resuming, the server answers the end
 * of one connection by closing the other, so a descriptor that the program closed can be that of
 * either.
 */
static void loss_report(void)
{
	if (!obc_resume_grace() && !obc_log_descriptors_ours())
		obc_log_descriptor_gone();
	else
		obc_log_fail(OB_ERR_CLOSED);
}

static void *control_main(void *unused)
{
	bool ok = obp_conn_init(&control.conn, OBP_ACCEPT_CONTROL) == OB_ERR_NONE;

	(void)unused;
	control.heard = control.pinged = ob_clock_ns();
	/* The program may close the descriptor as early as during the join. */
	if (ok && !control_open())
		ok = obc_resume_grace() && control_reconnect();
	/* Sends the first ping at once, so that the round trip is known from the start. */
	if (ok && obc_resume_grace())
		ping(ob_clock_ns());
	while (ok && !atomic_load(&control.stopping)) {
		enum verdict verdict = turn();

		if (verdict == BROKEN)
			ok = obc_resume_grace() && control_reconnect();
		else if (verdict == OVER)
			ok = false;
	}
	if (!ok && !atomic_load(&control.stopping))
		loss_report();
	return NULL;
}

void obc_control_give_up(void)
{
	static struct obp_message message = { .type = OBP_MSG_FATAL,
		.text = "the program ended within a call" };

	obc_control_link_try_send(&control.link, &message, ob_clock_ns() + GIVE_UP_NS);
}

static void ack_send(uint64_t replies)
{
	obc_control_link_ack(&control.link, replies);
}

static bool descriptor_ours(void)
{
	return obc_control_link_ours_or_none(&control.link);
}

bool obc_control_start(const struct obt_url *url, uint64_t timeout_ns, uint64_t dead_ns)
{
	control.url = *url;
	control.timeout_ns = timeout_ns;
	control.dead_ns = dead_ns;
	obc_log_on_ack(ack_send);
	obc_log_on_control_check(descriptor_ours);
	control.thread_running = obc_thread_start(control_main, NULL, 0, &control.thread);
	return control.thread_running;
}

void obc_control_stop(void)
{
	atomic_store(&control.stopping, true);
	obc_control_link_wake(&control.link);
	/* A host function may still run on the thread; it gets no more time than the goodbye. */
	if (control.thread_running) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 2;
		pthread_timedjoin_np(control.thread, NULL, &until);
	}
}

void obc_control_forget(void)
{
	obc_control_link_forget(&control.link);
	obc_free_memory_forget();
	control = (struct control_state){ .link = OBC_CONTROL_LINK_INIT };
}
