/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/common/stats_page.h"
#include "server/common/handoff.h"
#include "server/common/refuse.h"
#include "server/layers/throttle.h"
#include "server/worker/end.h"
#include "server/worker/exec.h"
#include "server/worker/hostfunc.h"
#include "server/worker/resume.h"
#include "server/worker/stripe.h"
#include "transport/message.h"
#include "transport/shm.h"
#include "transport/tls.h"

#define TICK_NS          (500 * OB_MS) /* of an idle session */
/* between attempts to start a successor of the executor */
#define SUCCEED_AGAIN_US 20000
/* of a busy session: bounds how late a blocked executor is noticed */
#define TICK_BUSY_NS     (50 * OB_MS)

struct connection {
	struct obp_conn conn;
	uint64_t deadline;
	int fd;                   /* -1: free */
	struct obt_stream stream; /* on it */
	struct obp_message join;  /* the join message that admission received */
};

static struct loop {
	struct obs_session *session;
	int channel;
	int data_fd; /* the last data connection that joined; -1: closed */
	/* since when the connection is missing, ns; 0: it is not */
	uint64_t data_lost, control_lost;
	bool client_gone; /* the client's process, which runs on this machine, has ended */
	uint64_t executed, blocked; /* at the last tick */
	/* the executor is blocked: watch for calls of other threads */
	bool watch_data;
	uint64_t gone_deadline; /* OB_NEVER: the client is here */
	struct connection joining[OBS_JOINING_MAX];
	struct connection control; /* joined */
	struct obp_message message;
} loop;

/* The data connection has ended; a resumable session waits for another. */
static void data_lost(void)
{
	shutdown(loop.data_fd, SHUT_RDWR); /* wakes threads that are blocked in it */
	loop.data_fd = -1;
	if (!loop.data_lost)
		loop.data_lost = ob_clock_ns();
}

static void client_left(void)
{
	if (loop.gone_deadline == OB_NEVER)
		loop.gone_deadline = ob_clock_ns() + OBS_GONE_MS * OB_MS;
}

static void connection_close(struct connection *connection)
{
	obp_conn_fini(&connection->conn);
	obt_stream_close(&connection->stream);
	connection->fd = -1;
}

static void join_refuse(int fds[OBS_HANDOFF_FDS], const char *why)
{
	obs_refuse_send(fds[0], OB_ERR_LIMIT, why); /* the client retries */
	obs_handoff_close(fds);
}

/* Makes the stream on a connection that joins. */
static enum ob_err join_stream(
	struct connection *connection, const struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS])
{
	if (handoff->secure) {
		obs_handoff_drop(&fds[1]);
		return obt_tls_accept_data(fds[0], handoff->psk, &connection->stream);
	}
	obt_stream_adopt(&connection->stream, fds[0]);
	obt_shm_expect(&connection->stream);
	obt_shm_put(&connection->stream, fds[1]);
	return OB_ERR_NONE;
}

static void joining_read(struct connection *connection);

/*
 * A connection that joins the session. Admission has checked that its client knows the session's
 * secret.
 */
static void join_admit(const struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS])
{
	struct connection *connection = NULL;

	for (unsigned i = 0; i < OBS_JOINING_MAX && !connection; i++)
		if (loop.joining[i].fd < 0)
			connection = &loop.joining[i];
	if (!atomic_load_explicit(&loop.session->welcomed, memory_order_acquire)) {
		join_refuse(fds, "the session has not begun yet; try again");
		return;
	}
	if (!connection) {
		join_refuse(fds, "too many connections join this session at once; try again");
		return;
	}
	if (obp_message_decode(handoff->body, handoff->size, &connection->join) != OB_ERR_NONE ||
		connection->join.type != OBP_MSG_JOIN) {
		join_refuse(fds, "the join message cannot be decoded");
		return;
	}
	if (obp_conn_init(&connection->conn, OBP_ACCEPT_CONTROL) != OB_ERR_NONE ||
		join_stream(connection, handoff, fds) != OB_ERR_NONE) {
		obp_conn_fini(&connection->conn);
		obp_message_fini(&connection->join);
		join_refuse(fds, "the worker is out of memory; try again");
		return;
	}
	connection->fd = fds[0];
	connection->deadline = ob_clock_ns() + loop.session->options->hello_timeout_s * OB_SECOND;
	joining_read(connection);
}

static void channel_read(void)
{
	static struct obs_handoff handoff;
	int fds[OBS_HANDOFF_FDS], got = obs_handoff_recv(loop.channel, &handoff, fds);

	if (got == 0)
		obs_session_exit(loop.session, 1); /* the supervisor is gone */
	if (got < 0)
		return;
	if (handoff.type == OBS_HANDOFF_JOIN && handoff.route == loop.session->route && fds[0] >= 0)
		join_admit(&handoff, fds);
	else
		obs_handoff_close(fds);
}

static void control_end(void);

static struct obp_message *answer_new(enum obp_message_type type, uint64_t value)
{
	struct obp_message *message = calloc(1, sizeof *message);

	if (!message)
		return NULL;
	message->type = type;
	message->value = value;
	message->received = atomic_load(&loop.session->replies.executed);
	message->sent = atomic_load(&loop.session->replies.next) - 1;
	message->bytes = atomic_load(&loop.session->link.bytes);
	message->code = atomic_load(&loop.session->link.down) ? OBP_PEER_CUT_OFF
		: atomic_load(&loop.session->link.idle)       ? OBP_PEER_IDLE
							      : OBP_PEER_BUSY;
	return message;
}

static bool control_answer(enum obp_message_type type, uint64_t value)
{
	struct obp_message *message = answer_new(type, value);
	bool sent = message && obs_control_send(&loop.session->hostfuncs, message);

	free(message);
	return sent;
}

/*
 * Sends the first message on the control connection before other threads can send on it: the client
 * expects it ahead of any call of a host function.
 */
static bool control_joined(struct obt_stream *stream)
{
	struct obp_message *message = answer_new(OBP_MSG_JOINED, 0);
	bool sent = message &&
		obt_message_send(stream, message, NULL, 0,
			ob_clock_ns() + OBS_CONTROL_SEND_S * OB_SECOND) == OB_ERR_NONE;

	free(message);
	return sent;
}

/* Drops the control connection. Nobody sends on it any more once this returns. */
static void control_drop(void)
{
	if (loop.control.fd < 0)
		return;
	shutdown(loop.control.fd, SHUT_RDWR); /* wakes a sender that is blocked in it */
	obs_hostfunc_control(&loop.session->hostfuncs, NULL);
	connection_close(&loop.control);
	loop.control_lost = ob_clock_ns();
}

/*
 * Makes the connection the session's control connection. Refused if the session cannot be resumed
 * and already has or had one.
 */
static void join_control(struct connection *connection)
{
	struct obs_link *link = &loop.session->link;
	bool joined;

	if (!link->on && (loop.control.fd >= 0 || loop.gone_deadline != OB_NEVER)) {
		obs_refuse_stream(&connection->stream, OB_ERR_REFUSED,
			"the session cannot be resumed and already has or had a control "
			"connection");
		connection_close(connection);
		return;
	}
	if (!obs_link_acked(loop.session, loop.message.received)) {
		obs_refuse_stream(&connection->stream, OB_ERR_REFUSED,
			"the client acknowledges replies that were never sent");
		connection_close(connection);
		return;
	}
	control_drop();
	obt_shm_settle(&connection->stream, 0);
	loop.control = *connection;
	loop.control_lost = 0;
	connection->fd = -1;
	joined = control_joined(&loop.control.stream);
	obs_hostfunc_control(&loop.session->hostfuncs, &loop.control.stream);
	if (!joined || (link->on && !obs_hostfunc_ask_again(&loop.session->hostfuncs)))
		control_end();
}

/* Makes the connection the session's data connection in place of one that broke. */
static void join_data(struct connection *connection)
{
	int fd = connection->fd, old = loop.data_fd;

	obp_conn_fini(&connection->conn);
	connection->fd = -1;
	if (obs_link_attach(loop.session, &connection->stream, &loop.message, old)) {
		loop.data_fd = fd;
		loop.data_lost = 0;
	}
}

static void join_apply(struct connection *connection)
{
	struct obs_link *link = &loop.session->link;
	uint32_t purpose = loop.message.code;

	/*
	 * Stripes join in parallel and so in any order: the number of their set identifies old
	 * ones.
	 */
	if (purpose == OBP_JOIN_STRIPE) {
		obp_conn_fini(&connection->conn);
		connection->fd = -1;
		obs_stripe_join(loop.session, &connection->stream, loop.message.received);
		return;
	}
	if (purpose >= OBP_JOIN_PURPOSES ||
		(loop.message.attempt && loop.message.attempt <= link->attempts[purpose])) {
		obs_refuse_stream(&connection->stream, OB_ERR_REFUSED,
			purpose < OBP_JOIN_PURPOSES
				? "this attempt to join is older than another"
				: "a join for a purpose this server does not know");
		connection_close(connection);
		return;
	}
	link->attempts[purpose] = loop.message.attempt;
	if (purpose == OBP_JOIN_CONTROL)
		join_control(connection);
	else
		join_data(connection);
}

/* The control connection has ended or cannot be used any more. */
static void control_end(void)
{
	if (loop.session->link.on) {
		control_drop();
		return;
	}
	/*
	 * Shut down but not closed: another thread may be about to send on it, and a new file could
	 * get the same descriptor. The process ends soon.
	 */
	if (loop.control.fd >= 0)
		shutdown(loop.control.fd, SHUT_RDWR);
	loop.control.fd = -1;
	client_left();
}

static void acknowledged(uint64_t replies)
{
	if (!obs_link_acked(loop.session, replies))
		obs_session_fatal(loop.session, OB_ERR_PROTOCOL,
			"the client acknowledges replies that were never sent");
}

static void control_message(const struct obp_message *message)
{
	switch (message->type) {
	case OBP_MSG_PING:
		acknowledged(message->received);
		if (!control_answer(OBP_MSG_PONG, message->value))
			control_end();
		break;
	case OBP_MSG_CALLBACK_DONE:
		if (!obs_hostfunc_done(&loop.session->hostfuncs, message->value))
			obs_session_fatal(loop.session, OB_ERR_PROTOCOL,
				"the client reports a host function as done that was not called");
		break;
	case OBP_MSG_PONG:
		break;
	case OBP_MSG_FATAL:
		ob_warn("session %016llx: ended by the client: %s",
			(unsigned long long)loop.session->id, message->text);
		client_left();
		break;
	default:
		obs_session_fatal(loop.session, OB_ERR_PROTOCOL,
			"unexpected type of control message: client and server versions may "
			"differ, see 'outboard check'");
	}
}

/* Receives what is there. False: the connection has ended. */
static bool connection_fill(struct connection *connection)
{
	void *data;
	size_t size;
	ssize_t n;

	obp_conn_space(&connection->conn, &data, &size);
	if (size == 0)
		return false;
	n = connection->stream.ops->recv(&connection->stream, data, size, false);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	obp_conn_fed(&connection->conn, (size_t)n);
	return true;
}

static void control_items(void)
{
	enum obp_event event = OBP_NEED;
	struct obp_item item;

	while (loop.control.fd >= 0 &&
		((event = obp_conn_next(&loop.control.conn, &item)) == OBP_CONTROL ||
			event == OBP_ACK)) {
		if (event == OBP_ACK) {
			acknowledged(loop.control.conn.peer_ack);
			continue;
		}
		if (obp_message_decode(item.body, item.size, &loop.message) != OB_ERR_NONE)
			obs_session_fatal(loop.session, OB_ERR_PROTOCOL,
				"a control message cannot be decoded");
		control_message(&loop.message);
		obp_message_fini(&loop.message);
	}
	if (loop.control.fd >= 0 && event == OBP_BROKEN)
		obs_session_fatal(loop.session, loop.control.conn.cause.code,
			"control connection: %s", loop.control.conn.cause.text);
}

/* On tls:// the join takes effect only after the session's own TLS layer has begun. */
static void joining_read(struct connection *connection)
{
	bool ready = !connection->stream.tls;

	if (!ready && obt_tls_answer(&connection->stream, &ready)) {
		obp_message_fini(&connection->join);
		connection_close(connection);
		return;
	}
	if (!ready)
		return;
	loop.message = connection->join;
	join_apply(connection);
	obp_message_fini(&loop.message);
}

static void control_read(void)
{
	if (connection_fill(&loop.control))
		control_items();
	else
		control_end();
}

/*
 * True while records are executed. Also notes whether the executor has been blocked in the same
 * call since the last tick.
 */
static bool busy_check(void)
{
	uint64_t executed =
		atomic_load_explicit(&loop.session->replies.executed, memory_order_relaxed);
	uint64_t blocking = atomic_load_explicit(&loop.session->blocking, memory_order_acquire);
	bool busy = executed != loop.executed || blocking;

	loop.watch_data = blocking && blocking == loop.blocked;
	loop.executed = executed;
	loop.blocked = blocking;
	return busy;
}

/*
 * Ends a session that has lacked a connection for the grace period, or whose client's process has
 * ended.
 */
static void grace_check(uint64_t now)
{
	struct obs_link *link = &loop.session->link;
	uint64_t since = OB_NEVER;

	if (!link->on)
		return;
	if (atomic_load(&link->down))
		since = atomic_load(&link->down_since);
	if (loop.data_lost)
		since = ob_min(since, loop.data_lost);
	if (loop.control_lost)
		since = ob_min(since, loop.control_lost);
	if (loop.client_gone)
		client_left();
	if (since == OB_NEVER || now < since || now - since < link->grace_ns)
		return;
	ob_warn("session %016llx: the client did not come back within %u s",
		(unsigned long long)loop.session->id, (unsigned)(link->grace_ns / OB_SECOND));
	obs_session_exit(loop.session, 0);
}

/*
 * Tells an idle client on the control connection, since it does not read its data connection
 * between calls.
 */
_Noreturn static void idle_end(uint32_t idle_s)
{
	struct obp_message *message = calloc(1, sizeof *message);
	char text[128];

	snprintf(text, sizeof text,
		"it made no call for %u s, the limit for idle sessions on this server "
		"(--idle-timeout)",
		idle_s);
	if (message) {
		message->type = OBP_MSG_FATAL;
		message->code = OB_ERR_TIMEOUT;
		snprintf(message->text, sizeof message->text, "%s", text);
		obs_control_send(&loop.session->hostfuncs, message);
	}
	obs_session_fatal(loop.session, OB_ERR_TIMEOUT, "%s", text);
}

/* Ends a session that has made no call for longer than its limit. */
static void idle_check(uint64_t now)
{
	static uint64_t since;
	uint32_t idle_s = atomic_load(&loop.session->idle_s);

	/*
	 * An executor that compiles, or waits for its share of the device, is not idle. The grace
	 * period ends a session without a connection.
	 */
	if (!since || !atomic_load_explicit(&obs_stats_page->introduced, memory_order_relaxed) ||
		!atomic_load_explicit(&obs_stats_page->waiting, memory_order_relaxed) ||
		atomic_load(&loop.session->link.down) ||
		loop.executed != obs_stats_page_read(&obs_stats_page->calls) || loop.blocked)
		since = now;
	obs_session_publish(loop.session);
	obs_throttle_tick(now);
	if (idle_s && now - since > idle_s * OB_SECOND)
		idle_end(idle_s);
}

static uint64_t deadlines_check(void)
{
	uint64_t now = ob_clock_ns(), next = now + (busy_check() ? TICK_BUSY_NS : TICK_NS);

	grace_check(now);
	idle_check(now);
	if (now >= loop.gone_deadline) {
		ob_info("session %016llx: the client has left",
			(unsigned long long)loop.session->id);
		obs_session_exit(loop.session, 0);
	}
	next = ob_min(next, loop.gone_deadline);
	for (unsigned i = 0; i < OBS_JOINING_MAX; i++) {
		struct connection *connection = &loop.joining[i];

		if (connection->fd >= 0 && now >= connection->deadline) {
			obp_message_fini(&connection->join);
			connection_close(connection);
		} else if (connection->fd >= 0) {
			next = ob_min(next, connection->deadline);
		}
	}
	return next;
}

/*
 * The descriptor that tells when the client's process has ended, or -1. Watched only while a
 * connection is missing, so that a goodbye that is still unread is handled first.
 */
static int client_fd(void)
{
	const struct obs_link *link = &loop.session->link;

	return link->on && !loop.client_gone && (loop.data_lost || loop.control_lost) ? link->client
										      : -1;
}

/*
 * True when calls of other threads are buffered inside TLS or shared memory, where poll does not
 * see them. If not, poll will see the next bytes. The lock prevents that another connection
 * replaces the stream meanwhile.
 */
static bool data_pending(void)
{
	pthread_mutex_t *lock = &loop.session->replies.lock;
	bool pending;

	if (!loop.watch_data || pthread_mutex_trylock(lock) != 0)
		return false;
	pending = obt_stream_arm(&loop.session->data);
	pthread_mutex_unlock(lock);
	return pending;
}

static void *loop_main(void *unused)
{
	enum { CHANNEL, DATA, CONTROL, CLIENT, JOINING, COUNT = JOINING + OBS_JOINING_MAX };
	struct pollfd fds[COUNT];

	(void)unused;
	for (;;) {
		uint64_t next = deadlines_check();
		bool pending = data_pending();

		fds[CHANNEL] = (struct pollfd){ .fd = loop.channel, .events = POLLIN };
		fds[DATA] = (struct pollfd){ .fd = loop.data_fd, .events = POLLRDHUP };
		if (loop.watch_data)
			fds[DATA].events |= POLLIN;
		fds[CONTROL] = (struct pollfd){ .fd = loop.control.fd, .events = POLLIN };
		fds[CLIENT] = (struct pollfd){ .fd = client_fd(), .events = POLLIN };
		for (unsigned i = 0; i < OBS_JOINING_MAX; i++)
			fds[JOINING + i] =
				(struct pollfd){ .fd = loop.joining[i].fd, .events = POLLIN };
		if (poll(fds, COUNT, pending ? 0 : ob_clock_poll_ms(next)) <= 0 && !pending)
			continue;
		if (fds[DATA].revents & ~POLLIN) {
			data_lost();
			if (!loop.session->link.on)
				client_left();
		} else if ((fds[DATA].revents || pending) &&
			!obs_exec_succeed(loop.session, loop.blocked)) {
			usleep(SUCCEED_AGAIN_US);
		}
		if (fds[CLIENT].revents)
			loop.client_gone = true;
		if (fds[CONTROL].revents)
			control_read();
		while (loop.control.fd >= 0 && obt_stream_pending(&loop.control.stream))
			control_read();
		for (unsigned i = 0; i < OBS_JOINING_MAX; i++)
			if (fds[JOINING + i].revents)
				joining_read(&loop.joining[i]);
		if (fds[CHANNEL].revents)
			channel_read();
	}
	return NULL;
}

bool obs_loop_start(struct obs_session *session, int channel)
{
	loop.session = session;
	loop.channel = channel;
	loop.control.fd = -1;
	loop.data_fd = session->data.fd;
	loop.gone_deadline = OB_NEVER;
	for (unsigned i = 0; i < OBS_JOINING_MAX; i++)
		loop.joining[i].fd = -1;
	return ob_thread_start(loop_main, NULL, 0, NULL);
}
