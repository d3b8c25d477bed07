/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/control.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/common/refuse.h"
#include "server/worker/end.h"
#include "server/worker/free_memory.h"
#include "server/worker/hostfunc.h"
#include "server/worker/resume.h"
#include "transport/message.h"
#include "transport/shm.h"

void obs_connection_close(struct obs_connection *connection)
{
	obp_conn_fini(&connection->conn);
	obt_stream_close(&connection->stream);
	connection->fd = -1;
}

void obs_control_init(struct obs_control *control, struct obs_session *session)
{
	control->session = session;
	control->connection.fd = -1;
	control->gone_deadline = OB_NEVER;
}

static struct obp_message *answer_new(
	const struct obs_control *control, enum obp_message_type type, uint64_t value)
{
	struct obp_message *message = calloc(1, sizeof *message);

	if (!message)
		return NULL;
	message->type = type;
	message->value = value;
	message->received = atomic_load(&control->session->replies.executed);
	message->sent = atomic_load(&control->session->replies.next) - 1;
	message->bytes = atomic_load(&control->session->link.bytes);
	message->code = atomic_load(&control->session->link.down) ? OBP_PEER_CUT_OFF
		: atomic_load(&control->session->link.idle)       ? OBP_PEER_IDLE
								  : OBP_PEER_BUSY;
	return message;
}

static bool control_answer(struct obs_control *control, enum obp_message_type type, uint64_t value)
{
	struct obp_message *message = answer_new(control, type, value);
	bool sent = message && obs_control_send(&control->session->hostfuncs, message);

	free(message);
	return sent;
}

/*
 * Sends the first message on the control connection before other threads can send on it: the client
 * expects it ahead of any call of a host function.
 */
static bool control_joined(struct obs_control *control)
{
	struct obp_message *message = answer_new(control, OBP_MSG_JOINED, 0);
	bool sent = message &&
		obt_message_send(&control->connection.stream, message, NULL, 0,
			ob_clock_ns() + OBS_CONTROL_SEND_S * OB_SECOND) == OB_ERR_NONE;

	free(message);
	return sent;
}

/* Drops the control connection. Nobody sends on it any more once this returns. */
static void control_drop(struct obs_control *control)
{
	if (control->connection.fd < 0)
		return;
	shutdown(control->connection.fd, SHUT_RDWR); /* wakes a sender that is blocked in it */
	obs_hostfunc_control(&control->session->hostfuncs, NULL);
	obs_connection_close(&control->connection);
	control->lost = ob_clock_ns();
}

void obs_control_client_left(struct obs_control *control)
{
	if (control->gone_deadline == OB_NEVER)
		control->gone_deadline = ob_clock_ns() + OBS_GONE_MS * OB_MS;
}

/* The control connection has ended or cannot be used any more. */
static void control_end(struct obs_control *control)
{
	if (control->session->link.on) {
		control_drop(control);
		return;
	}
	/*
	 * Shut down but not closed: another thread may be about to send on it, and a new file could
	 * get the same descriptor. The process ends soon.
	 */
	if (control->connection.fd >= 0)
		shutdown(control->connection.fd, SHUT_RDWR);
	control->connection.fd = -1;
	obs_control_client_left(control);
}

void obs_control_join(
	struct obs_control *control, struct obs_connection *connection, uint64_t received)
{
	struct obs_link *link = &control->session->link;
	bool joined;

	if (!link->on && (control->connection.fd >= 0 || control->gone_deadline != OB_NEVER)) {
		obs_refuse_stream(&connection->stream, OB_ERR_REFUSED,
			"the session cannot be resumed and already has or had a control "
			"connection");
		obs_connection_close(connection);
		return;
	}
	if (!obs_link_acked(control->session, received)) {
		obs_refuse_stream(&connection->stream, OB_ERR_REFUSED,
			"the client acknowledges replies that were never sent");
		obs_connection_close(connection);
		return;
	}
	control_drop(control);
	obt_shm_settle(&connection->stream, 0);
	control->connection = *connection;
	control->lost = 0;
	connection->fd = -1;
	joined = control_joined(control);
	obs_hostfunc_control(&control->session->hostfuncs, &control->connection.stream);
	if (!joined || (link->on && !obs_hostfunc_ask_again(&control->session->hostfuncs)))
		control_end(control);
}

static void acknowledged(struct obs_control *control, uint64_t replies)
{
	if (!obs_link_acked(control->session, replies))
		obs_session_fatal(control->session, OB_ERR_PROTOCOL,
			"the client acknowledges replies that were never sent");
}

static void control_message(struct obs_control *control, const struct obp_message *message)
{
	switch (message->type) {
	case OBP_MSG_PING:
		acknowledged(control, message->received);
		if (!control_answer(control, OBP_MSG_PONG, message->value))
			control_end(control);
		break;
	case OBP_MSG_CALLBACK_DONE:
		if (!obs_hostfunc_done(&control->session->hostfuncs, message->value))
			obs_session_fatal(control->session, OB_ERR_PROTOCOL,
				"the client reports a host function as done that was not called");
		break;
	case OBP_MSG_MEMORY_ASK:
		if (!obs_free_memory_ask(control->session, message->code, message->value))
			obs_session_fatal(control->session, OB_ERR_PROTOCOL,
				"the client asks for the memory of a device that it does not have");
		break;
	case OBP_MSG_PONG:
		break;
	case OBP_MSG_FATAL:
		ob_warn("session %016llx: ended by the client: %s",
			(unsigned long long)control->session->id, message->text);
		obs_control_client_left(control);
		break;
	default:
		obs_session_fatal(control->session, OB_ERR_PROTOCOL,
			"unexpected type of control message: client and server versions may "
			"differ, see 'outboard check'");
	}
}

/* Receives what is there. False: the connection has ended. */
static bool connection_fill(struct obs_connection *connection)
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

static void control_items(struct obs_control *control)
{
	enum obp_event event = OBP_NEED;
	struct obp_item item;

	while (control->connection.fd >= 0 &&
		((event = obp_conn_next(&control->connection.conn, &item)) == OBP_CONTROL ||
			event == OBP_ACK)) {
		if (event == OBP_ACK) {
			acknowledged(control, control->connection.conn.peer_ack);
			continue;
		}
		if (obp_message_decode(item.body, item.size, &control->message) != OB_ERR_NONE)
			obs_session_fatal(control->session, OB_ERR_PROTOCOL,
				"a control message cannot be decoded");
		control_message(control, &control->message);
		obp_message_fini(&control->message);
	}
	if (control->connection.fd >= 0 && event == OBP_BROKEN)
		obs_session_fatal(control->session, control->connection.conn.cause.code,
			"control connection: %s", control->connection.conn.cause.text);
}

void obs_control_read(struct obs_control *control)
{
	if (connection_fill(&control->connection))
		control_items(control);
	else
		control_end(control);
}
