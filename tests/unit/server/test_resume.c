/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Connections of a session that break and are resumed: once, twice, late, or with invalid numbers.
 */
#include <sys/socket.h>

#include "base/clock.h"
#include "tests/unit/server/peer.h"

struct session {
	struct server server;
	struct peer data;
	uint64_t route;
	uint8_t secret[OBP_SECRET_BYTES];
};

static void session_start(struct session *s, const char *const *options, uint32_t grace)
{
	server_start(&s->server, options);
	peer_session_grace(&s->data, &s->server, grace);
	s->route = s->data.got.welcome.route;
	memcpy(s->secret, s->data.got.welcome.secret, sizeof s->secret);
}

/*
 * A session that waits for its client delays the server's end; after the second signal the server
 * does not wait for it.
 */
static void session_stop(struct session *s)
{
	kill(s->server.pid, SIGTERM);
	server_await_log(&s->server, "shutting down"); /* pending signals merge */
	kill(s->server.pid, SIGTERM);
	server_wait(&s->server, 60000);
}

static bool join(struct session *s, struct peer *peer, enum obp_join_purpose purpose,
	uint64_t received, uint64_t attempt)
{
	bool answered =
		peer_join(peer, &s->server, s->route, s->secret, purpose, received, attempt);

	peer->next = s->data.next;
	return answered;
}

static void refused(
	struct session *s, enum obp_join_purpose purpose, uint64_t received, uint64_t attempt)
{
	struct peer peer;

	CHECK(join(s, &peer, purpose, received, attempt));
	CHECK_INT(peer.got.type, OBP_MSG_REFUSED);
	CHECK_INT(peer.got.code, OB_ERR_REFUSED);
	CHECK(peer.got.text[0]);
	CHECK(peer_ended(&peer));
	peer_close(&peer);
}

/*
 * Repeated records are skipped, replies that were not received are sent again, and both sides
 * continue.
 */
TEST(the_session_goes_on_from_where_it_broke)
{
	struct session s;
	struct peer next;

	session_start(&s, NULL, 20);
	CHECK_INT(s.data.got.welcome.grace_s, 20);
	for (int i = 0; i < 3; i++)
		peer_call(&s.data, 0, OBP_OP_PING, NULL, 0);
	CHECK_INT(peer_reply(&s.data)->call, 1);
	CHECK_INT(peer_reply(&s.data)->call, 2);
	CHECK_INT(peer_reply(&s.data)->call, 3);
	peer_close(&s.data);
	/* As if only the first reply had arrived. */
	CHECK(join(&s, &next, OBP_JOIN_DATA, 1, 1));
	CHECK_INT(next.got.type, OBP_MSG_JOINED);
	CHECK_INT(next.got.received, 3);
	CHECK_INT(peer_reply(&next)->call, 2);
	CHECK_INT(next.item.number, 2);
	CHECK_INT(peer_reply(&next)->call, 3);
	/* Sends records 2 and 3 again, then a new one: only the new one is answered. */
	next.next = 2;
	for (int i = 0; i < 3; i++)
		peer_call(&next, 0, OBP_OP_PING, NULL, 0);
	CHECK_INT(peer_reply(&next)->call, 4);
	CHECK_INT(next.item.number, 4);
	peer_close(&next);
	session_stop(&s);
}

/* Breaks the connection hundreds of times, at every stage of a call. */
TEST(again_and_again)
{
	uint64_t attempt = 0, received = 0;
	struct session s;
	struct peer peer;

	session_start(&s, NULL, 20);
	peer = s.data;
	for (int i = 0; i < 200; i++) {
		peer_call(&peer, 0, OBP_OP_PING, NULL, 0);
		while (i % 3 && received + 1 < peer.next) {
			CHECK_INT(peer_reply(&peer)->call, ++received);
			CHECK_INT(peer.item.number, received);
		}
		if (i % 2)
			continue;
		s.data.next = peer.next;
		peer_close(&peer);
		CHECK(join(&s, &peer, OBP_JOIN_DATA, received, ++attempt));
		CHECK_INT(peer.got.type, OBP_MSG_JOINED);
		CHECK(peer.got.received >= received && peer.got.received < peer.next);
		for (peer.next = peer.got.received + 1; peer.next < s.data.next;)
			peer_call(&peer, 0, OBP_OP_PING, NULL, 0);
		while (received + 1 < peer.next) {
			peer_reply(&peer);
			CHECK_INT(peer.item.number, ++received);
			CHECK_INT(peer.item.reply.call, received);
		}
	}
	peer_close(&peer);
	session_stop(&s);
}

/*
 * A large record whose second half did not arrive is executed once, after it has arrived
 * completely.
 */
TEST(a_record_cut_in_its_middle)
{
	const uint32_t bytes = 200u << 10,
		       size = (uint32_t)(sizeof(struct obp_record) + sizeof(struct obp_write_req) +
			       bytes);
	struct obp_record record = { .size = size, .opcode = OBP_OP_WRITE };
	uint8_t *wire = calloc(1, sizeof(struct obp_frame) + size);
	struct obp_write_req req = { .size = bytes };
	struct session s;
	struct peer next;

	session_start(&s, NULL, 20);
	req.dst = s.data.got.welcome.range.base;
	peer_use_context(&s.data, 0, 1);
	peer_ping(&s.data, 0);
	obp_frame_fill((struct obp_frame *)wire, OBP_FRAME_CALLS, size, 1, s.data.next, 0);
	memcpy(wire + sizeof(struct obp_frame), &record, sizeof record);
	memcpy(wire + sizeof(struct obp_frame) + sizeof record, &req, sizeof req);
	peer_send(&s.data, wire, 100000);
	peer_await_taken(&s.data);
	peer_close(&s.data);
	CHECK(join(&s, &next, OBP_JOIN_DATA, 1, 1));
	CHECK_INT(next.got.received, s.data.next - 1);
	peer_send(&next, wire, sizeof(struct obp_frame) + size);
	next.next++;
	CHECK_INT(peer_ping(&next, 0), 0);
	peer_close(&next);
	session_stop(&s);
	free(wire);
}

TEST(who_does_not_know_the_secret_stays_out)
{
	enum obp_join_purpose purposes[] = { OBP_JOIN_CONTROL, OBP_JOIN_DATA };
	struct session s;

	session_start(&s, NULL, 20);
	for (int i = 0; i < 2; i++) {
		s.secret[7] ^= 1;
		refused(&s, purposes[i], 0, 1);
		s.secret[7] ^= 1;
	}
	CHECK_INT(peer_ping(&s.data, 0), 0); /* the session is not affected */
	peer_close(&s.data);
	session_stop(&s);
}

TEST(a_session_that_is_not_there)
{
	struct session s;
	struct peer peer;

	session_start(&s, NULL, 20);
	s.route ^= 1;
	CHECK(join(&s, &peer, OBP_JOIN_DATA, 0, 1));
	CHECK_INT(peer.got.type, OBP_MSG_REFUSED);
	CHECK_INT(peer.got.code, OB_ERR_NOT_FOUND);
	peer_close(&peer);
	peer_close(&s.data);
	session_stop(&s);
}

/* False: the server refused and closed the connection. */
static bool joined_now(struct session *s, struct peer *peer, uint64_t attempt)
{
	CHECK(join(s, peer, OBP_JOIN_DATA, 1, attempt));
	if (peer->got.type == OBP_MSG_JOINED)
		return true;
	CHECK_INT(peer->got.type, OBP_MSG_REFUSED);
	peer_close(peer);
	return false;
}

/*
 * The highest attempt wins in any order of arrival; the connection of an earlier attempt is closed.
 */
TEST(two_joins_at_once)
{
	struct session s;
	struct peer first, second;
	uint64_t attempt = 5;

	session_start(&s, NULL, 20);
	peer_ping(&s.data, 0);
	CHECK(join(&s, &first, OBP_JOIN_DATA, 1, 5));
	CHECK_INT(first.got.type, OBP_MSG_JOINED);
	CHECK(peer_ended(&s.data));
	/*
	 * While the first join is in progress, the second gets an answer to retry, as a client
	 * does.
	 */
	UNTIL(joined_now(&s, &second, ++attempt));
	CHECK(peer_ended(&first));
	refused(&s, OBP_JOIN_DATA, 1, 5);
	refused(&s, OBP_JOIN_DATA, 1, attempt); /* a replayed join */
	CHECK_INT(peer_ping(&second, 0), 0);
	peer_close(&first);
	peer_close(&second);
	peer_close(&s.data);
	session_stop(&s);
}

TEST(numbers_that_cannot_be)
{
	struct session s;
	struct peer next;

	session_start(&s, NULL, 20);
	for (int i = 0; i < 3; i++)
		peer_ping(&s.data, 0);
	refused(&s, OBP_JOIN_DATA, 4, 1); /* never sent */
	refused(&s, OBP_JOIN_DATA, UINT64_MAX, 2);
	refused(&s, OBP_JOIN_CONTROL, 4, 1);
	refused(&s, (enum obp_join_purpose)7, 0, 9);
	CHECK_INT(peer_ping(&s.data, 0), 0);
	CHECK(join(&s, &next, OBP_JOIN_DATA, 4, 3));
	CHECK_INT(next.got.type, OBP_MSG_JOINED);
	refused(&s, OBP_JOIN_DATA, 3, 4); /* acknowledged before: not kept any more */
	/* Continuing with a gap ends the session. */
	next.next = 9;
	peer_call(&next, 0, OBP_OP_PING, NULL, 0);
	CHECK(peer_control(&next));
	CHECK_INT(next.got.type, OBP_MSG_FATAL);
	CHECK(peer_ended(&next));
	peer_close(&next);
	peer_close(&s.data);
	session_stop(&s);
}

/* An acknowledgement of replies that were never sent ends the session, on either connection. */
TEST(acknowledgements_that_cannot_be)
{
	for (int on_control = 0; on_control < 2; on_control++) {
		struct obp_frame ack;
		struct peer control;
		struct session s;

		session_start(&s, NULL, 20);
		CHECK(join(&s, &control, OBP_JOIN_CONTROL, 0, 1));
		obp_frame_fill(&ack, OBP_FRAME_ACK, 0, 0, 0, 99);
		peer_send(on_control ? &control : &s.data, &ack, sizeof ack);
		CHECK(peer_control(&s.data));
		CHECK_INT(s.data.got.type, OBP_MSG_FATAL);
		CHECK(peer_ended(&s.data));
		peer_close(&control);
		peer_close(&s.data);
		session_stop(&s);
	}
}

/* The control connection is replaced, too; pings report the position of the data connection. */
TEST(the_control_connection_comes_back)
{
	struct obp_message ping = { .type = OBP_MSG_PING, .value = 77 };
	struct peer control, again;
	struct session s;

	session_start(&s, NULL, 20);
	peer_ping(&s.data, 0);
	CHECK(join(&s, &control, OBP_JOIN_CONTROL, 1, 1));
	/* The server closes its side once it has noticed. */
	shutdown(control.fd, SHUT_WR);
	CHECK(peer_ended(&control));
	peer_close(&control);
	CHECK_INT(peer_ping(&s.data, 0), 0);
	CHECK(join(&s, &again, OBP_JOIN_CONTROL, 1, 2));
	CHECK_INT(again.got.type, OBP_MSG_JOINED);
	peer_message(&again, &ping);
	CHECK(peer_control(&again));
	CHECK_INT(again.got.type, OBP_MSG_PONG);
	CHECK_INT(again.got.value, 77);
	CHECK_INT(again.got.received, 2);
	CHECK_INT(again.got.sent, 2);
	peer_close(&again);
	peer_close(&s.data);
	session_stop(&s);
}

/* Receives the next request to run the host function; skips `joined` messages. */
static void asked(struct peer *control, uint64_t callback)
{
	do
		CHECK(peer_control(control));
	while (control->got.type == OBP_MSG_JOINED);
	CHECK_INT(control->got.type, OBP_MSG_CALLBACK);
	CHECK_INT(control->got.value, callback);
}

/*
 * Whenever the control connection breaks, the request is repeated until the function is done, and a
 * second answer is accepted.
 */
TEST(a_host_function_is_asked_for_again)
{
	struct obp_message done = { .type = OBP_MSG_CALLBACK_DONE, .value = 99 };
	struct obp_host_func_req req = { .callback = 99 };
	const char *const options[] = { "--driver", getenv("OUTBOARD_FAKE_DRIVER"), NULL };
	struct peer control;
	struct session s;

	if (!options[1])
		TEST_SKIP("OUTBOARD_FAKE_DRIVER names no driver");
	session_start(&s, options, 20);
	peer_call(&s.data, 0, OBP_OP_HOST_FUNC, &req, sizeof req);
	/*
	 * The fake driver calls the function on a separate thread, which waits for the connection.
	 */
	CHECK_INT(peer_ping(&s.data, 0), 0);
	for (uint64_t attempt = 1; attempt <= 3; attempt++) {
		let_pass(20000,
			"the function may be asked for before the connection comes or after: both "
			"end alike");
		CHECK(join(&s, &control, OBP_JOIN_CONTROL, 1, attempt));
		if (control.got.type == OBP_MSG_JOINED)
			asked(&control, 99);
		if (attempt < 3)
			peer_close(&control);
	}
	peer_message(&control, &done);
	peer_message(&control, &done);
	CHECK_INT(peer_ping(&s.data, 0), 0);
	peer_close(&control);
	peer_close(&s.data);
	session_stop(&s);
}

/*
 * Checks that the session ends, and not before from_ms. A session that is kept for too long is
 * noticed by its worker, which remains.
 */
static void worker_ends(struct session *s, unsigned from_ms)
{
	uint64_t began = ob_clock_ns();
	struct peer late;

	peer_close(&s->data);
	/* The warm one stays. */
	server_await_children(&s->server, 1);
	CHECK((ob_clock_ns() - began) / OB_MS >= from_ms);
	CHECK(join(s, &late, OBP_JOIN_DATA, 0, 1));
	CHECK_INT(late.got.code, OB_ERR_NOT_FOUND);
	peer_close(&late);
	session_stop(s);
}

TEST(the_grace_period_ends)
{
	const char *const options[] = { "--grace", "1", NULL };
	struct session s;

	session_start(&s, options, 20);
	CHECK_INT(s.data.got.welcome.grace_s, 1); /* the shorter one */
	server_await_children(&s.server, 2);
	peer_ping(&s.data, 0);
	worker_ends(&s, 900);
}

TEST(without_resuming_the_session_ends_with_its_connection)
{
	const char *const options[] = { "--grace", "0", NULL },
			  *const longer[] = { "--grace", "600", NULL };
	struct session s;

	session_start(&s, options, 600);
	CHECK_INT(s.data.got.welcome.grace_s, 0);
	server_await_children(&s.server, 2);
	worker_ends(&s, 0);
	session_start(&s, longer, 0);
	CHECK_INT(s.data.got.welcome.grace_s, 0);
	server_await_children(&s.server, 2);
	worker_ends(&s, 0);
}

int main(int argc, char **argv)
{
	test_needs("resume,warm"); /* the tests count warm workers */
	return test_main(argc, argv);
}
