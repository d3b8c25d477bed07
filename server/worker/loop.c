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
#include "server/worker/ask.h"
#include "server/worker/control.h"
#include "server/worker/end.h"
#include "server/worker/exec.h"
#include "server/worker/hostfunc.h"
#include "server/worker/resume.h"
#include "server/worker/stripe.h"
#include "transport/shm.h"
#include "transport/tls.h"

#define TICK_NS          (500 * OB_MS) /* of an idle session */
/* between attempts to start a successor of the executor */
#define SUCCEED_AGAIN_US 20000
/* of a busy session: bounds how late a blocked executor is noticed */
#define TICK_BUSY_NS     (50 * OB_MS)

static struct loop {
	struct obs_session *session;
	int channel;
	int data_fd; /* the last data connection that joined; -1: closed */
	/* since when the data connection is missing, ns; 0: it is not */
	uint64_t data_lost;
	bool client_gone; /* the client's process, which runs on this machine, has ended */
	uint64_t executed, blocked; /* at the last tick */
	/* the executor is blocked: watch for calls of other threads */
	bool watch_data;
	struct obs_connection joining[OBS_JOINING_MAX];
	struct obs_control control;
} loop;

/* The data connection has ended; a resumable session waits for another. */
static void data_lost(void)
{
	shutdown(loop.data_fd, SHUT_RDWR); /* wakes threads that are blocked in it */
	loop.data_fd = -1;
	if (!loop.data_lost)
		loop.data_lost = ob_clock_ns();
}

static void join_refuse(int fds[OBS_HANDOFF_FDS], const char *why)
{
	obs_refuse_send(fds[0], OB_ERR_LIMIT, why); /* the client retries */
	obs_handoff_close(fds);
}

/* Makes the stream on a connection that joins. */
static enum ob_err join_stream(struct obs_connection *connection, const struct obs_handoff *handoff,
	int fds[OBS_HANDOFF_FDS])
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

static void joining_read(struct obs_connection *connection);

/*
 * A connection that joins the session. Admission has checked that its client knows the session's
 * secret.
 */
static void join_admit(const struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS])
{
	struct obs_connection *connection = NULL;

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
	else if (handoff.type == OBS_HANDOFF_IPC)
		obs_ask_answered(&handoff, fds);
	else
		obs_handoff_close(fds);
	if (handoff.type == OBS_HANDOFF_END)
		obs_session_fatal(loop.session, OB_ERR_REFUSED, "%s", handoff.text);
}

/* Makes the connection the session's data connection in place of one that broke. */
static void join_data(struct obs_connection *connection)
{
	int fd = connection->fd, old = loop.data_fd;

	obp_conn_fini(&connection->conn);
	connection->fd = -1;
	if (obs_link_attach(loop.session, &connection->stream, &connection->join, old)) {
		loop.data_fd = fd;
		loop.data_lost = 0;
	}
}

static void join_apply(struct obs_connection *connection)
{
	struct obs_link *link = &loop.session->link;
	const struct obp_message *join = &connection->join;
	uint32_t purpose = join->code;

	/*
	 * Stripes join in parallel and so in any order: the number of their set identifies old
	 * ones.
	 */
	if (purpose == OBP_JOIN_STRIPE) {
		obp_conn_fini(&connection->conn);
		connection->fd = -1;
		obs_stripe_join(loop.session, &connection->stream, join->received);
		return;
	}
	if (purpose >= OBP_JOIN_PURPOSES ||
		(join->attempt && join->attempt <= link->attempts[purpose])) {
		obs_refuse_stream(&connection->stream, OB_ERR_REFUSED,
			purpose < OBP_JOIN_PURPOSES
				? "this attempt to join is older than another"
				: "a join for a purpose this server does not know");
		obs_connection_close(connection);
		return;
	}
	link->attempts[purpose] = join->attempt;
	if (purpose == OBP_JOIN_CONTROL)
		obs_control_join(&loop.control, connection, join->received);
	else
		join_data(connection);
}

/* On tls:// the join takes effect only after the session's own TLS layer has begun. */
static void joining_read(struct obs_connection *connection)
{
	bool ready = !connection->stream.tls;

	if (!ready && obt_tls_answer(&connection->stream, &ready)) {
		obp_message_fini(&connection->join);
		obs_connection_close(connection);
		return;
	}
	if (!ready)
		return;
	join_apply(connection);
	obp_message_fini(&connection->join);
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
	if (loop.control.lost)
		since = ob_min(since, loop.control.lost);
	if (loop.client_gone)
		obs_control_client_left(&loop.control);
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
	 * An executor that compiles, or waits for its share of the device, is not idle, nor is a
	 * session with a call that waits for the device. The grace period ends a session without a
	 * connection.
	 */
	if (!since || obs_stats_page_read_word(&obs_stats_page->blocked) ||
		!atomic_load_explicit(&obs_stats_page->introduced, memory_order_relaxed) ||
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
	if (now >= loop.control.gone_deadline) {
		ob_info("session %016llx: the client has left",
			(unsigned long long)loop.session->id);
		obs_session_exit(loop.session, 0);
	}
	next = ob_min(next, loop.control.gone_deadline);
	for (unsigned i = 0; i < OBS_JOINING_MAX; i++) {
		struct obs_connection *connection = &loop.joining[i];

		if (connection->fd >= 0 && now >= connection->deadline) {
			obp_message_fini(&connection->join);
			obs_connection_close(connection);
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

	return link->on && !loop.client_gone && (loop.data_lost || loop.control.lost) ? link->client
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
		fds[CONTROL] =
			(struct pollfd){ .fd = loop.control.connection.fd, .events = POLLIN };
		fds[CLIENT] = (struct pollfd){ .fd = client_fd(), .events = POLLIN };
		for (unsigned i = 0; i < OBS_JOINING_MAX; i++)
			fds[JOINING + i] =
				(struct pollfd){ .fd = loop.joining[i].fd, .events = POLLIN };
		if (poll(fds, COUNT, pending ? 0 : ob_clock_poll_ms(next)) <= 0 && !pending)
			continue;
		if (fds[DATA].revents & ~POLLIN) {
			data_lost();
			if (!loop.session->link.on)
				obs_control_client_left(&loop.control);
		} else if ((fds[DATA].revents || pending) &&
			!obs_exec_succeed(loop.session, loop.blocked)) {
			usleep(SUCCEED_AGAIN_US);
		}
		if (fds[CLIENT].revents)
			loop.client_gone = true;
		if (fds[CONTROL].revents)
			obs_control_read(&loop.control);
		while (loop.control.connection.fd >= 0 &&
			obt_stream_pending(&loop.control.connection.stream))
			obs_control_read(&loop.control);
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
	obs_control_init(&loop.control, session);
	loop.data_fd = session->data.fd;
	for (unsigned i = 0; i < OBS_JOINING_MAX; i++)
		loop.joining[i].fd = -1;
	return ob_thread_start(loop_main, NULL, 0, NULL);
}
