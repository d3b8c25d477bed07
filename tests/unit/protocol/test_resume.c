/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "protocol/conn.h"
#include "protocol/resume.h"
#include "tests/test.h"

/* ---- a resumed connection ---- */

#define BIG (OBP_CONN_BIG + 4096u)

static struct ob_buf wire;

static void put_frame(uint64_t first, const uint32_t *bodies, uint32_t n)
{
	struct obp_frame frame;
	uint32_t size = 0;

	for (uint32_t i = 0; i < n; i++)
		size += (uint32_t)sizeof(struct obp_record) + bodies[i];
	obp_frame_fill(&frame, OBP_FRAME_CALLS, size, n, first, 0);
	CHECK(ob_buf_append(&wire, &frame, sizeof frame));
	for (uint32_t i = 0; i < n; i++) {
		struct obp_record record = { (uint32_t)sizeof record + bodies[i],
			(uint16_t)(first + i), 0 };

		CHECK(ob_buf_append(&wire, &record, sizeof record));
		memset(ob_buf_extend(&wire, bodies[i]), (int)(first + i), bodies[i]);
	}
}

static void wire_new(void)
{
	ob_buf_fini(&wire);
	ob_buf_init(&wire, 1u << 24);
}

/*
 * Feeds up to `limit` bytes of the wire in pieces of `step` and reads every item, which must be the
 * expected next one. Returns the last event.
 */
static enum obp_event take(struct obp_conn *conn, size_t limit, size_t step, uint64_t *wanted)
{
	size_t at = 0, n;
	struct obp_item item;
	void *p;

	limit = ob_min(limit, wire.size);
	for (;;) {
		enum obp_event event = obp_conn_next(conn, &item);

		if (event == OBP_BROKEN)
			return event;
		if (event == OBP_NEED) {
			if (at == limit)
				return event;
			obp_conn_space(conn, &p, &n);
			n = ob_min(n, ob_min(step, limit - at));
			memcpy(p, wire.data + at, n);
			obp_conn_fed(conn, n);
			at += n;
			continue;
		}
		CHECK_INT(item.number, *wanted);
		CHECK_INT(item.record.opcode, *wanted);
		while (event == OBP_BIG && obp_conn_body_left(conn)) {
			uint8_t part[777];

			n = obp_conn_body_buffered(conn, part, sizeof part);
			if (n == 0) {
				n = ob_min(
					ob_min(sizeof part, obp_conn_body_left(conn)), limit - at);
				if (n == 0)
					return OBP_NEED; /* broken off in the middle of the body */
				memcpy(part, wire.data + at, n);
				at += n;
				obp_conn_body_direct(conn, n);
			}
			CHECK_INT(part[n - 1], (uint8_t)*wanted);
		}
		++*wanted;
	}
}

/*
 * Wherever the first connection ends, every record must arrive once. The second connection begins
 * at each number from 1 to the expected one.
 */
TEST(every_cut_and_every_restart)
{
	static const uint32_t bodies[] = { 8, 0, BIG, 64, BIG, 16 };
	struct obp_conn conn;
	size_t whole;

	wire_new();
	put_frame(1, bodies, 3);
	put_frame(4, bodies + 3, 3);
	whole = wire.size;
	for (size_t cut = 0; cut <= whole; cut += cut < 400 || cut > whole - 400 ? 8 : 4099) {
		uint64_t wanted = 1, again;

		CHECK_INT(obp_conn_init(&conn, OBP_ACCEPT_CALLS), OB_ERR_NONE);
		CHECK_INT(take(&conn, cut, 1000, &wanted), OBP_NEED);
		obp_conn_restart(&conn);
		CHECK_INT(conn.expect, wanted);
		again = 1 + cut % wanted;
		wire_new();
		if (again < 7)
			put_frame(again, bodies + again - 1, (uint32_t)(7 - again));
		CHECK_INT(take(&conn, SIZE_MAX, 3333, &wanted), OBP_NEED);
		CHECK_INT(wanted, 7);
		obp_conn_fini(&conn);
		wire_new();
		put_frame(1, bodies, 3);
		put_frame(4, bodies + 3, 3);
	}
	ob_buf_fini(&wire);
}

TEST(a_gap_after_a_restart_is_refused)
{
	static const uint32_t bodies[] = { 8, 8, 8 };
	struct obp_conn conn;
	uint64_t wanted = 1;

	for (uint64_t first = 0; first <= 6; first++) {
		bool good = first >= 1 && first <= 4;

		CHECK_INT(obp_conn_init(&conn, OBP_ACCEPT_CALLS), OB_ERR_NONE);
		wire_new();
		put_frame(1, bodies, 3);
		wanted = 1;
		CHECK_INT(take(&conn, SIZE_MAX, 64, &wanted), OBP_NEED);
		obp_conn_restart(&conn);
		wire_new();
		put_frame(first, bodies, 1);
		CHECK_INT(take(&conn, SIZE_MAX, 64, &wanted), good ? OBP_NEED : OBP_BROKEN);
		CHECK_INT(wanted, first == 4 ? 5 : 4);
		obp_conn_fini(&conn);
	}
	ob_buf_fini(&wire);
}

/* Only the first frame of a new connection may go back. */
TEST(a_second_frame_may_not_go_back)
{
	static const uint32_t bodies[] = { 8, 8, 8 };
	struct obp_conn conn;
	uint64_t wanted = 1;

	CHECK_INT(obp_conn_init(&conn, OBP_ACCEPT_CALLS), OB_ERR_NONE);
	wire_new();
	put_frame(1, bodies, 3);
	CHECK_INT(take(&conn, SIZE_MAX, 64, &wanted), OBP_NEED);
	obp_conn_restart(&conn);
	wire_new();
	put_frame(2, bodies, 2);
	put_frame(2, bodies, 2);
	CHECK_INT(take(&conn, SIZE_MAX, 64, &wanted), OBP_BROKEN);
	CHECK_INT(wanted, 4);
	obp_conn_fini(&conn);
	ob_buf_fini(&wire);
}

/* ---- quality ---- */

TEST(round_trips_are_smoothed)
{
	struct obp_quality quality = { 0 };

	obp_quality_rtt(&quality, 1000000);
	CHECK_INT(quality.rtt_ns, 1000000);
	CHECK_INT(quality.jitter_ns, 500000);
	for (int i = 0; i < 200; i++)
		obp_quality_rtt(&quality, 3000000);
	CHECK(quality.rtt_ns > 2990000 && quality.rtt_ns <= 3000000);
	CHECK(quality.jitter_ns < 20000);
	CHECK_INT(quality.min_ns, 1000000);
	CHECK_INT(quality.max_ns, 3000000);
	CHECK_INT(quality.samples, 201);
}

TEST(the_time_out_follows_the_link)
{
	struct obp_quality fast = { 0 }, slow = { 0 };

	for (int i = 0; i < 50; i++) {
		obp_quality_rtt(&fast, 100000);
		obp_quality_rtt(&slow, i % 2 ? 4 * OB_SECOND : 1 * OB_SECOND);
	}
	CHECK_INT(obp_quality_timeout(&fast, 20 * OB_SECOND), OBP_SILENCE_MIN_NS);
	CHECK(obp_quality_timeout(&slow, 60 * OB_SECOND) > 8 * OB_SECOND);
	CHECK_INT(obp_quality_timeout(&slow, 5 * OB_SECOND), 5 * OB_SECOND);
	CHECK_INT(obp_quality_timeout(&fast, 2 * OB_SECOND), 2 * OB_SECOND);
}

TEST(rates_remember_the_best_of_late)
{
	struct obp_quality quality = { 0 };
	double best;

	obp_quality_bytes(&quality, 1 * OB_SECOND, 0, 0);
	obp_quality_bytes(&quality, 2 * OB_SECOND, 100, 1000);
	CHECK_INT(quality.out_rate, 100);
	CHECK_INT(quality.in_rate, 1000);
	obp_quality_bytes(&quality, 3 * OB_SECOND, 100, 1000);
	best = quality.in_rate;
	CHECK(best < 1000 && best > 800);
	obp_quality_bytes(&quality, 4 * OB_SECOND, 100, 0); /* a counter that decreased */
	CHECK(quality.in_rate < best);
}

/* ---- attempts ---- */

TEST(waits_double_and_differ)
{
	struct obp_backoff a, b;
	bool differ = false;
	uint64_t whole = OBP_BACKOFF_FIRST_NS;

	obp_backoff_init(&a, 1);
	obp_backoff_init(&b, 2);
	CHECK_INT(obp_backoff_next(&a), 0);
	CHECK_INT(obp_backoff_next(&b), 0);
	for (int i = 0; i < 40; i++) {
		uint64_t wait = obp_backoff_next(&a);

		CHECK(wait >= whole / 2 && wait <= whole);
		differ = differ || wait != obp_backoff_next(&b);
		whole = ob_min(whole * 2, (uint64_t)OBP_BACKOFF_MAX_NS);
	}
	CHECK(differ);
}

/* ---- open but dead ---- */

TEST(connections_made_in_vain)
{
	struct obp_futile futile = { 0 };
	uint64_t now = 1000 * OB_SECOND, bytes = 0;
	unsigned n = 0;

	/* Connections that end at once: given up after a number of attempts. */
	for (n = 0; !obp_futile_broke(&futile, now, 7, bytes += 100, 60 * OB_SECOND); n++)
		obp_futile_made(&futile, now += OB_MS);
	CHECK_INT(n, OBP_FUTILE_DEAD_MAX);
	/* A connection that carried a complete item resets the count. */
	CHECK(!obp_futile_broke(&futile, now, 8, bytes, 60 * OB_SECOND));
	/* Slow ones: given up after a time. */
	for (n = 0; !obp_futile_broke(&futile, now, 8, bytes, 6 * OB_SECOND); n++)
		obp_futile_made(&futile, now += OB_SECOND);
	CHECK_INT(n, 7);
	/* They carry bytes but no complete item. */
	CHECK(!obp_futile_broke(&futile, now, 9, bytes, 60 * OB_SECOND));
	for (n = 0; !obp_futile_broke(&futile, now, 9, bytes += OBP_FUTILE_BYTES, 60 * OB_SECOND);
		n++)
		obp_futile_made(&futile, now += 10 * OB_SECOND);
	CHECK_INT(n, OBP_FUTILE_PARTIAL_MAX - 1);
	/* Of a large item, one connection in ten carries a part; the others end at once. */
	CHECK(!obp_futile_broke(&futile, now, 11, bytes, 60 * OB_SECOND));
	for (n = 0; n < 10 * (OBP_FUTILE_PARTIAL_MAX - 1); n++) {
		obp_futile_made(&futile, now += OB_SECOND);
		bytes += n % 10 == 9 ? OBP_FUTILE_BYTES : 100;
		CHECK(!obp_futile_broke(&futile, now, 11, bytes, 60 * OB_SECOND));
	}
	/* An idle session whose connections are closed after a time must not be given up. */
	CHECK(!obp_futile_broke(&futile, now, 10, bytes, 60 * OB_SECOND));
	for (n = 0; n < 5000; n++) {
		obp_futile_made(&futile, now);
		CHECK(!obp_futile_broke(
			&futile, now += 300 * OB_SECOND, 10, bytes, 60 * OB_SECOND));
	}
}

TEST(a_stall_is_seen_in_each_direction)
{
	struct obp_progress p = { .sent = 10,
		.received = 5,
		.bytes_in = 100,
		.peer_sent = 5,
		.peer_received = 10,
		.peer_bytes_in = 900 };
	struct obp_stall stall = { 0 };
	uint64_t now = OB_SECOND, limit = 3 * OB_SECOND;

	/* Nothing in flight: never dead, for any time and any waiter. */
	p.waiting = p.peer_idle = true;
	for (int i = 0; i < 20; i++)
		CHECK(!obp_stall_check(&stall, &p, now += OB_SECOND, limit));
	/* A reply in flight. */
	p.peer_sent = 6;
	for (int i = 0; i < 4; i++)
		CHECK(!obp_stall_check(&stall, &p, now += OB_SECOND, limit));
	CHECK(obp_stall_check(&stall, &p, now += OB_SECOND, limit));
	/* It makes slow progress. */
	stall = (struct obp_stall){ 0 };
	for (int i = 0; i < 20; i++) {
		p.bytes_in++;
		CHECK(!obp_stall_check(&stall, &p, now += OB_SECOND, limit));
	}
	/* This side does not read. */
	p.waiting = false;
	for (int i = 0; i < 20; i++)
		CHECK(!obp_stall_check(&stall, &p, now += OB_SECOND, limit));
	/* A record in flight to a server that waits, and to one that executes. */
	p.received = 6;
	p.sent = 11;
	p.peer_idle = false;
	for (int i = 0; i < 20; i++)
		CHECK(!obp_stall_check(&stall, &p, now += OB_SECOND, limit));
	p.peer_idle = true;
	for (int i = 0; i < 4; i++)
		CHECK(!obp_stall_check(&stall, &p, now += OB_SECOND, limit));
	CHECK(obp_stall_check(&stall, &p, now += OB_SECOND, limit));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
