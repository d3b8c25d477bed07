/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Connections of a session that break, come back, come back twice, late, or with numbers that
 * cannot be.
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
 * A session that waits for its client holds the server's end up; the second signal does not wait
 * for it.
 */
static void session_stop(struct session *s)
{
	kill(s->server.pid, SIGTERM);
	server_await_log(&s->server, "shutting down"); /* two that wait are delivered as one */
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
 * Records sent again are passed over, replies not received are sent again, and both go on from
 * there.
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
	/* As if only the first reply had come. */
	CHECK(join(&s, &next, OBP_JOIN_DATA, 1, 1));
	CHECK_INT(next.got.type, OBP_MSG_JOINED);
	CHECK_INT(next.got.received, 3);
	CHECK_INT(peer_reply(&next)->call, 2);
	CHECK_INT(next.item.number, 2);
	CHECK_INT(peer_reply(&next)->call, 3);
	/* The records 2 and 3 again, then a new one: only that is answered. */
	next.next = 2;
	for (int i = 0; i < 3; i++)
		peer_call(&next, 0, OBP_OP_PING, NULL, 0);
	CHECK_INT(peer_reply(&next)->call, 4);
	CHECK_INT(next.item.number, 4);
	peer_close(&next);
	session_stop(&s);
}

/* Hundreds of times, at every stage of a call. */
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

/* A large record whose second half never came is executed once, when it comes whole. */
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
	CHECK_INT(peer_ping(&s.data, 0), 0); /* and nothing happened to the session */
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

/* False: refused, and closed. */
static bool joined_now(struct session *s, struct peer *peer, uint64_t attempt)
{
	CHECK(join(s, peer, OBP_JOIN_DATA, 1, attempt));
	if (peer->got.type == OBP_MSG_JOINED)
		return true;
	CHECK_INT(peer->got.type, OBP_MSG_REFUSED);
	peer_close(peer);
	return false;
}

/* The later attempt counts, whatever comes when; the connection of an earlier one ends. */
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
	 * While the first is still being taken over the second is told to come again, as a client
	 * would.
	 */
	UNTIL(joined_now(&s, &second, ++attempt));
	CHECK(peer_ended(&first));
	refused(&s, OBP_JOIN_DATA, 1, 5);
	refused(&s, OBP_JOIN_DATA, 1, attempt); /* recorded and played again */
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
	refused(&s, OBP_JOIN_DATA, 3, 4); /* acknowledged before: no longer there */
	/* Going on with a gap ends the session. */
	next.next = 9;
	peer_call(&next, 0, OBP_OP_PING, NULL, 0);
	CHECK(peer_control(&next));
	CHECK_INT(next.got.type, OBP_MSG_FATAL);
	CHECK(peer_ended(&next));
	peer_close(&next);
	peer_close(&s.data);
	session_stop(&s);
}

/* An acknowledgement of what was never sent ends the session, on either connection. */
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

/* The control connection is replaced too; pings tell how far the data connection is. */
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

/* The next request to run the host function; answers that the session is joined are passed over. */
static void asked(struct peer *control, uint64_t callback)
{
	do
		CHECK(peer_control(control));
	while (control->got.type == OBP_MSG_JOINED);
	CHECK_INT(control->got.type, OBP_MSG_CALLBACK);
	CHECK_INT(control->got.value, callback);
}

/*
 * Whatever the moment at which the control connection breaks, the function is asked for until it is
 * done, and a second answer is none too many.
 */
TEST(a_host_function_is_asked_for_again)
{
	struct obp_message done = { .type = OBP_MSG_CALLBACK_DONE, .value = 99 };
	struct obp_host_func_req req = { .callback = 99 };
	const char *const options[] = { "--driver", getenv("OUTBOARD_FAKE_DRIVER"), NULL };
	struct peer control;
	struct session s;

	if (!options[1])
		exit(TEST_SKIP_EXIT);
	session_start(&s, options, 20);
	peer_call(&s.data, 0, OBP_OP_HOST_FUNC, &req, sizeof req);
	/* The fake driver calls it on a thread of its own; that waits for the connection. */
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
 * Not sooner than that. A session that is kept for longer than the test waits is seen by the worker
 * that stays.
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
