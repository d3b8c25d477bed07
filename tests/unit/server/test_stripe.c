/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Correct and incorrect use of stripes: invalid frames, transfers that never existed, connections
 * that close in the middle.
 */
#include <sys/socket.h>

#include "base/clock.h"
#include "protocol/stripe.h"
#include "tests/unit/server/peer.h"

#define PART 4096u

struct session {
	struct server server;
	struct peer data;
	uint64_t route, base;
	uint8_t secret[OBP_SECRET_BYTES];
};

static void session_start(struct session *s, const char *const *options)
{
	server_start(&s->server, options);
	peer_session_grace(&s->data, &s->server, 20);
	s->route = s->data.got.welcome.route;
	s->base = s->data.got.welcome.range.base;
	memcpy(s->secret, s->data.got.welcome.secret, sizeof s->secret);
	peer_use_context(&s->data, 0, 1);
	peer_ping(&s->data, 0);
}

static void session_stop(struct session *s)
{
	peer_close(&s->data);
	kill(s->server.pid, SIGTERM);
	server_await_log(&s->server, "shutting down"); /* pending signals merge */
	kill(s->server.pid, SIGTERM);
	server_wait(&s->server, 60000);
}

static void joined(struct session *s, struct peer *stripe, uint64_t set)
{
	CHECK(peer_join(stripe, &s->server, s->route, s->secret, OBP_JOIN_STRIPE, set, 1));
	CHECK_INT(stripe->got.type, OBP_MSG_JOINED);
}

static void not_joined(struct session *s, uint64_t set)
{
	struct peer stripe;

	CHECK(peer_join(&stripe, &s->server, s->route, s->secret, OBP_JOIN_STRIPE, set, 1));
	CHECK_INT(stripe.got.type, OBP_MSG_REFUSED);
	CHECK_INT(stripe.got.code, OB_ERR_LIMIT);
	peer_close(&stripe);
}

static void part_send(struct peer *stripe, uint64_t transfer, uint64_t offset, uint32_t n)
{
	uint8_t *bytes = calloc(1, sizeof(struct obp_frame) + n + 8);
	struct obp_frame *frame = (struct obp_frame *)bytes;

	obp_stripe_fill(frame, OBP_FRAME_PART, transfer, offset, n);
	peer_send(stripe, bytes, sizeof *frame + frame->size);
	free(bytes);
}

static void write_call(struct session *s, uint64_t transfer, uint64_t size)
{
	struct obp_write_striped_req req = { .dst = s->base, .size = size, .transfer = transfer };

	peer_call(&s->data, 0, OBP_OP_WRITE_STRIPED, &req, sizeof req);
}

/* Receives the reply to a striped copy: complete or not. */
static uint32_t whole(struct session *s)
{
	struct obp_write_striped_rep rep;

	CHECK_INT(peer_reply(&s->data)->result, 0);
	CHECK_INT(s->data.item.size, sizeof rep);
	memcpy(&rep, s->data.item.body, sizeof rep);
	return rep.whole;
}

static void frame_next(struct peer *stripe, struct obp_frame *ret)
{
	CHECK_INT(recv(stripe->fd, ret, sizeof *ret, MSG_WAITALL), sizeof *ret);
	CHECK(!obp_stripe_check(ret, 0, UINT64_MAX, NULL));
}

TEST(parts_of_two_stripes_make_a_copy)
{
	struct peer a, b;
	struct session s;

	session_start(&s, NULL);
	CHECK_INT(s.data.got.welcome.stripes, 8);
	joined(&s, &a, 1);
	joined(&s, &b, 1);
	part_send(&a, 1, PART, PART); /* arrives before its record: it waits */
	part_send(&b, 1, 0, PART);
	write_call(&s, 1, 2 * PART + 5);
	peer_await_taken(&a);
	peer_await_taken(&s.data);
	part_send(&a, 1, 2 * PART, 5);
	CHECK_INT(whole(&s), 1);
	/* Another copy, on one stripe. */
	write_call(&s, 2, PART);
	part_send(&b, 2, 0, PART);
	CHECK_INT(whole(&s), 1);
	peer_close(&a);
	peer_close(&b);
	session_stop(&s);
}

TEST(parts_that_are_asked_for)
{
	struct obp_read_striped_req req = { .size = 3 * OBP_CHUNK_MAX + 13, .transfer = 1 };
	uint8_t *bytes = malloc(OBP_CHUNK_MAX + 8);
	struct obp_frame frame;
	struct peer stripe;
	struct session s;
	uint64_t got = 0;

	session_start(&s, NULL);
	req.src = s.base;
	joined(&s, &stripe, 1);
	obp_stripe_fill(&frame, OBP_FRAME_GIVE, 1, 0, 0);
	peer_send(&stripe, &frame, sizeof frame);
	peer_call(&s.data, 0, OBP_OP_READ_STRIPED, &req, sizeof req);
	for (frame_next(&stripe, &frame); frame.type == OBP_FRAME_PART;
		frame_next(&stripe, &frame)) {
		CHECK(!obp_stripe_check(&frame, 0, req.size, NULL));
		CHECK_INT(recv(stripe.fd, bytes, frame.size, MSG_WAITALL), frame.size);
		got += frame.count;
	}
	CHECK_INT(frame.type, OBP_FRAME_GIVEN);
	CHECK_INT(got, req.size);
	CHECK_INT(whole(&s), 1);
	free(bytes);
	peer_close(&stripe);
	session_stop(&s);
}

/* No stripes; a stripe that closes in the middle; a part of a transfer that has ended. */
TEST(copies_that_are_not_whole)
{
	struct peer a, b;
	struct session s;

	session_start(&s, NULL);
	write_call(&s, 1, PART);
	CHECK_INT(whole(&s), 0);
	joined(&s, &a, 1);
	joined(&s, &b, 1);
	part_send(&a, 1, 0, PART); /* the part is dropped */
	write_call(&s, 2, 2 * PART);
	part_send(&a, 2, 0, PART);
	peer_await_taken(&a);
	peer_close(&b);
	CHECK_INT(whole(&s), 0);
	CHECK(peer_ended(&a)); /* the other stripes are closed, too */
	peer_close(&a);
	/* New stripes with a newer set; the old number is not valid any more. */
	joined(&s, &a, 2);
	not_joined(&s, 1);
	write_call(&s, 3, PART);
	part_send(&a, 3, 0, PART);
	CHECK_INT(whole(&s), 1);
	/* A newer set ends the previous one. */
	joined(&s, &b, 3);
	CHECK(peer_ended(&a));
	write_call(&s, 4, PART);
	part_send(&b, 4, 0, PART);
	CHECK_INT(whole(&s), 1);
	CHECK_INT(peer_ping(&s.data, 0), 0);
	peer_close(&a);
	peer_close(&b);
	session_stop(&s);
}

/* No bytes arrive: the copy fails after a time, and the session continues. */
TEST(a_stripe_that_is_silent)
{
	struct peer stripe;
	struct session s;

	session_start(&s, NULL);
	joined(&s, &stripe, 1);
	write_call(&s, 1, PART);
	CHECK_INT(whole(&s), 0);
	CHECK(peer_ended(&stripe));
	CHECK_INT(peer_ping(&s.data, 0), 0);
	peer_close(&stripe);
	session_stop(&s);
}

TEST(no_more_than_allowed)
{
	const char *none[] = { "--max-stripes", "0", NULL },
		   *two[] = { "--max-stripes", "2", NULL };
	struct peer a, b;
	struct session s;

	session_start(&s, none);
	CHECK_INT(s.data.got.welcome.stripes, 0);
	not_joined(&s, 1);
	session_stop(&s);
	session_start(&s, two);
	CHECK_INT(s.data.got.welcome.stripes, 2);
	joined(&s, &a, 1);
	joined(&s, &b, 1);
	not_joined(&s, 1);
	peer_close(&a);
	peer_close(&b);
	session_stop(&s);
}

/* Expects the session to end: its data connection is closed. */
static void violates(struct session *s, struct peer *stripe, const void *bytes, size_t size)
{
	joined(s, stripe, 1);
	write_call(s, 1, PART);
	peer_await_taken(&s->data);
	peer_send(stripe, bytes, size);
	CHECK(peer_ended(&s->data));
	peer_close(stripe);
	session_stop(s);
}

TEST(frames_that_cannot_be)
{
	struct obp_frame frames[5];
	uint8_t bytes[sizeof frames[0] + PART] = { 0 };
	struct peer stripe;
	struct session s;

	for (unsigned i = 0; i < 5; i++)
		obp_stripe_fill(&frames[i], OBP_FRAME_PART, 1, 0, PART);
	frames[0].magic = 0;
	frames[1].ack = 8; /* beyond the transfer's end */
	frames[2].type = OBP_FRAME_CALLS;
	frames[3].count = 17;
	/* a transfer in the other direction */
	obp_stripe_fill(&frames[4], OBP_FRAME_GIVE, 1, 0, 0);
	for (unsigned i = 0; i < 5; i++) {
		session_start(&s, NULL);
		memcpy(bytes, &frames[i], sizeof frames[i]);
		violates(&s, &stripe, bytes, sizeof bytes);
	}
}

TEST(transfers_go_forward)
{
	struct peer stripe;
	struct session s;
	struct obp_write_striped_req req = { .size = PART, .transfer = 5 };

	session_start(&s, NULL);
	joined(&s, &stripe, 1);
	write_call(&s, 5, PART);
	part_send(&stripe, 5, 0, PART);
	CHECK_INT(whole(&s), 1);
	req.dst = s.base;
	peer_call_fatal(&s.data, OBP_OP_WRITE_STRIPED, &req, sizeof req);
	peer_close(&stripe);
	session_stop(&s);
}

int main(int argc, char **argv)
{
	test_needs("stripe");
	return test_main(argc, argv);
}
