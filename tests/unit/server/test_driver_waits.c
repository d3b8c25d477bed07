/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Calls that wait for the device, in sessions of several threads (fake_driver.c). */

#include "server/worker/staging.h"
#include "tests/unit/server/driver_session.h"
#include "tests/unit/server/fake_driver.h"

static void await_exit(pid_t pid)
{
	UNTIL(!process_alive(pid));
}

/* The only lane waits for an action of a new lane: another thread must become the executor. */
TEST(a_second_lane_is_served_while_the_first_one_blocks)
{
	uint64_t addr;

	driver_begin();
	addr = driver_alloc_plain(16);
	for (int round = 0; round < 3; round++) {
		driver_fill_with(0, addr, 16, FAKE_BEGIN);
		peer_call(&peer, 0, OBP_OP_CTX_SYNCHRONIZE, NULL, 0);
		peer_await_taken(&peer);
		peer_use_context(&peer, 1, 1);
		CHECK_INT(peer_ping(&peer, 1), 0);
		driver_fill(1, addr, 16);
		CHECK_INT(peer_reply(&peer)->lane, 0);
		peer_call(&peer, 1, OBP_OP_LANE_END, NULL, 0);
		CHECK_INT(peer_ping(&peer, 0), 0);
	}
	driver_end();
}

#define EVENT  0x0700000000000005ull
#define STREAM 0x0600000000000006ull

static void event_op(uint16_t lane, uint16_t opcode)
{
	const struct obp_event_record_req record = { .event = EVENT };

	/* The other operations take the first words of it. */
	peer_call(&peer, lane, opcode, &record,
		opcode == OBP_OP_EVENT_RECORD           ? sizeof record
			: opcode == OBP_OP_EVENT_CREATE ? sizeof(struct obp_event_create_req)
							: sizeof(struct obp_event_query_req));
}

/* One of the calls that wait for the device. */
static void wait_op(uint16_t lane, uint16_t opcode, uint64_t addr)
{
	const struct obp_read_req read = { .src = addr, .size = 16, .stream = STREAM };
	const struct obp_read_rows_req rows = {
		.src = addr, .width = 4, .height = 2, .depth = 2, .src_pitch = 4, .src_slice = 8
	};
	const struct obp_stream_query_req stream = { .stream = STREAM };

	switch (opcode) {
	case OBP_OP_CTX_SYNCHRONIZE:
		peer_call(&peer, lane, opcode, NULL, 0);
		break;
	case OBP_OP_READ:
		peer_call(&peer, lane, opcode, &read, sizeof read);
		break;
	case OBP_OP_READ_ROWS:
		peer_call(&peer, lane, opcode, &rows, sizeof rows);
		break;
	case OBP_OP_STREAM_SYNCHRONIZE:
	case OBP_OP_STREAM_WATCH:
		peer_call(&peer, lane, opcode, &stream, sizeof stream);
		break;
	default:
		event_op(lane, opcode);
	}
}

static void with_stream_and_event(uint16_t lane)
{
	const struct obp_stream_create_req stream = { .stream = STREAM };

	peer_call(&peer, lane, OBP_OP_STREAM_CREATE, &stream, sizeof stream);
	event_op(lane, OBP_OP_EVENT_CREATE);
}

TEST(two_lanes_wait_and_a_third_releases_them)
{
	static const uint16_t ops[] = { OBP_OP_CTX_SYNCHRONIZE, OBP_OP_STREAM_SYNCHRONIZE,
		OBP_OP_EVENT_SYNCHRONIZE, OBP_OP_READ, OBP_OP_READ_ROWS, OBP_OP_EVENT_WATCH,
		OBP_OP_STREAM_WATCH };
	const size_t n = sizeof ops / sizeof *ops;
	uint64_t addr;

	driver_begin();
	addr = driver_alloc_plain(16);
	for (uint16_t lane = 1; lane < 4; lane++)
		peer_use_context(&peer, lane, 1);
	with_stream_and_event(3);
	for (size_t i = 0; i < n * n; i++) {
		bool first;

		driver_fill_with(3, addr, 16, FAKE_BEGIN);
		event_op(3, OBP_OP_EVENT_RECORD);
		wait_op(1, ops[i % n], addr);
		wait_op(2, ops[i / n], addr);
		CHECK_INT(peer_ping(&peer, 3), 0);
		driver_fill(3, addr, 16);
		CHECK_INT(peer_reply(&peer)->result, 0);
		first = peer.item.reply.lane == 1;
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK_INT(peer.item.reply.lane, first ? 2 : 1);
	}
	driver_end();
}

/*
 * Results that are not acknowledged leave fewer slots than a read needs: further reads wait for
 * acknowledgements, and none is cut short.
 */
TEST(more_reads_than_slots)
{
	enum { READS = 12, BYTES = 100000 };
	struct obp_read_req read = { .size = BYTES };

	driver_begin_limited("8MiB", 1);
	peer.acknowledges = true;
	read.src = driver_alloc_plain(BYTES);
	peer_use_context(&peer, 1, 1);
	for (int i = 0; i < READS; i++)
		peer_call(&peer, 1, OBP_OP_READ, &read, sizeof read);
	for (int i = 0; i < READS; i++) {
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK_INT(peer.item.reply.body, BYTES);
		/* Acknowledges what has arrived. */
		peer_use_context(&peer, 0, 1);
	}
	driver_end();
}

/* Returns the number of slots that reads have used. */
static uint64_t slots_used(uint64_t addr)
{
	const struct obp_read_req read = { .src = addr, .size = sizeof(uint64_t) };
	uint64_t used;

	driver_fill_with(0, addr, sizeof used, FAKE_COUNT);
	peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
	CHECK_INT(peer_reply(&peer)->body, sizeof used);
	memcpy(&used, peer.item.body, sizeof used);
	return used;
}

/*
 * A call acknowledges the replies before it, so each read finds the slots of the last one free: few
 * slots stay in a core's cache.
 */
TEST(a_read_reuses_the_slots_of_the_last_one)
{
	enum { READS = 12, PIECES = 3, BYTES = PIECES * OBS_STAGING_READ };
	struct obp_read_req read = { .size = BYTES };

	driver_begin_limited("64MiB", 1);
	peer.acknowledges = true;
	read.src = driver_alloc_plain(BYTES);
	for (int i = 0; i < READS; i++) {
		peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
		for (int piece = 0; piece < PIECES; piece++) {
			CHECK_INT(peer_reply(&peer)->body, OBS_STAGING_READ);
			CHECK_INT(peer.item.reply.flags, piece + 1 < PIECES ? OBP_REPLY_MORE : 0);
		}
	}
	/* Without resuming, two slots in turn. */
	CHECK_RANGE(slots_used(read.src), 1u, PIECES);
	driver_end();
}

/* Nobody waits for a watch: calls of the same lane go on, also when it is the only one. */
TEST(a_watch_holds_nothing_up)
{
	static const uint16_t ops[] = { OBP_OP_EVENT_WATCH, OBP_OP_STREAM_WATCH };
	uint64_t addr, number;

	driver_begin();
	addr = driver_alloc_plain(16);
	with_stream_and_event(0);
	for (int i = 0; i < 2; i++) {
		driver_fill_with(0, addr, 16, FAKE_BEGIN);
		event_op(0, OBP_OP_EVENT_RECORD);
		number = peer.next;
		wait_op(0, ops[i], addr);
		CHECK_INT(peer_ping(&peer, 0), 0);
		event_op(0, OBP_OP_EVENT_QUERY);
		CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_NOT_READY);
		driver_fill(0, addr, 16);
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK_INT(peer.item.reply.call, number);
		/* Complete at once. */
		wait_op(0, ops[i], addr);
		CHECK_INT(peer_reply(&peer)->result, 0);
	}
	driver_end();
}

/* A wait is for the recording that it found, whatever happens to the event. */
TEST(an_event_is_recorded_again_and_destroyed_while_calls_wait)
{
	uint64_t addr;

	driver_begin();
	addr = driver_alloc_plain(16);
	for (uint16_t lane = 1; lane < 4; lane++)
		peer_use_context(&peer, lane, 1);
	for (int round = 0; round < 3; round++) {
		event_op(3, OBP_OP_EVENT_CREATE);
		driver_fill_with(3, addr, 16, FAKE_BEGIN);
		event_op(3, OBP_OP_EVENT_RECORD);
		event_op(1, OBP_OP_EVENT_SYNCHRONIZE);
		event_op(2, OBP_OP_EVENT_SYNCHRONIZE);
		driver_fill_with(3, addr, 16, FAKE_BEGIN);
		event_op(3, OBP_OP_EVENT_RECORD);
		driver_fill_with(3, addr, 16, FAKE_END);
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK(peer.item.reply.lane == 1 || peer.item.reply.lane == 2);
		CHECK_INT(peer_reply(&peer)->result, 0);
		event_op(3, OBP_OP_EVENT_QUERY);
		CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_NOT_READY);
		event_op(1, OBP_OP_EVENT_SYNCHRONIZE);
		event_op(2, OBP_OP_EVENT_WATCH);
		event_op(3, OBP_OP_EVENT_DESTROY);
		CHECK_INT(peer_ping(&peer, 3), 0);
		driver_fill(3, addr, 16);
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK_INT(peer_reply(&peer)->result, 0);
	}
	driver_end();
}

/* Work of a destroyed stream still counts for its context. */
TEST(a_context_waits_for_the_work_of_a_destroyed_stream)
{
	const struct obp_stream_create_req create = { .stream = STREAM };
	const struct obp_stream_destroy_req destroy = { .stream = STREAM };
	struct obp_memset_req work = {
		.value = FAKE_BEGIN, .element = 1, .width = 16, .height = 1, .stream = STREAM
	};

	driver_begin();
	work.dst = driver_alloc_plain(16);
	peer_use_context(&peer, 1, 1);
	peer_call(&peer, 1, OBP_OP_STREAM_CREATE, &create, sizeof create);
	peer_call(&peer, 1, OBP_OP_MEMSET, &work, sizeof work);
	peer_call(&peer, 1, OBP_OP_STREAM_DESTROY, &destroy, sizeof destroy);
	peer_call(&peer, 1, OBP_OP_CTX_SYNCHRONIZE, NULL, 0);
	CHECK_INT(peer_ping(&peer, 0), 0);
	driver_fill(0, work.dst, 16);
	CHECK_INT(peer_reply(&peer)->result, 0);
	CHECK_INT(peer.item.reply.lane, 1);
	driver_end();
}

static void context_begin(uint64_t id)
{
	const struct obp_ctx_create_req req = { .ctx = id };

	peer_call(&peer, 0, OBP_OP_CTX_CREATE, &req, sizeof req);
	peer_use_context(&peer, 1, id);
}

static void context_end(uint64_t id)
{
	const struct obp_ctx_destroy_req req = { .ctx = id };

	peer_call(&peer, 0, OBP_OP_CTX_DESTROY, &req, sizeof req);
	CHECK_INT(peer_ping(&peer, 0), 0);
}

/* In the context begun last: two calls wait for work, which then ends. */
static void two_calls_begin(uint16_t opcode, uint64_t addr)
{
	driver_fill_with(0, addr, 16, FAKE_BEGIN);
	event_op(0, OBP_OP_EVENT_RECORD);
	wait_op(1, opcode, addr);
	wait_op(1, opcode, addr);
	CHECK_INT(peer_ping(&peer, 0), 0);
}

static void two_calls_end(uint64_t addr)
{
	driver_fill(0, addr, 16);
	CHECK_INT(peer_reply(&peer)->result, 0);
	CHECK_INT(peer_reply(&peer)->result, 0);
}

/*
 * A context ends and another gets its place in the server's table, and an entry of the completion
 * thread serves calls of several contexts, of which one ends meanwhile.
 */
TEST(contexts_come_and_go_while_calls_wait)
{
	enum { FIRST = 4000, SECOND };
	uint64_t addr;

	driver_begin();
	addr = driver_alloc_plain(16);
	with_stream_and_event(0);
	for (int round = 0; round < 3; round++) {
		context_begin(FIRST);
		two_calls_begin(OBP_OP_STREAM_SYNCHRONIZE, addr); /* makes events in it */
		two_calls_end(addr);
		context_end(FIRST);
	}
	for (int round = 0; round < 3; round++) {
		context_begin(FIRST);
		two_calls_begin(OBP_OP_STREAM_SYNCHRONIZE, addr);
		two_calls_end(addr);
		context_begin(SECOND);
		two_calls_begin(OBP_OP_EVENT_SYNCHRONIZE, addr); /* makes none */
		context_end(FIRST);
		two_calls_end(addr);
		two_calls_begin(OBP_OP_STREAM_SYNCHRONIZE, addr);
		two_calls_end(addr);
		context_end(SECOND);
	}
	driver_end();
}

TEST(a_client_that_leaves_while_its_call_blocks)
{
	pid_t pids[4];

	driver_begin();
	CHECK_INT(server_children(&server, pids, 4), 1);
	driver_fill_with(0, driver_alloc_plain(16), 16, FAKE_BEGIN);
	peer_call(&peer, 0, OBP_OP_CTX_SYNCHRONIZE, NULL, 0);
	peer_await_taken(&peer);
	close(peer.fd);
	await_exit(pids[0]);
	peer.fd = dup(0);
	driver_end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
