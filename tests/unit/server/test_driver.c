/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A session over a driver that blocks, prints and calls back (fake_driver.c). */
#include <glob.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/opt.h"
#include "tests/unit/server/fake_driver.h"
#include "tests/unit/server/peer.h"
#include "transport/digest.h"

#define MODULE   0x0300000000000001ull
#define FUNCTION 0x0400000000000002ull

static struct server server;
static struct peer peer;

/* outstanding: of --max-outstanding. grace: seconds; 0: the client cannot resume. */
static void begin_limited(const char *outstanding, uint32_t grace)
{
	const char *driver = getenv("OUTBOARD_FAKE_DRIVER");

	if (!driver)
		TEST_SKIP("OUTBOARD_FAKE_DRIVER names no driver");
	server_start(&server,
		(const char *const[]){ "--driver", driver, "--warm", "0", "--max-outstanding",
			outstanding, NULL });
	if (grace)
		peer_session_grace(&peer, &server, grace);
	else
		peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	peer_use_context(&peer, 1, 1);
	peer_call(&peer, 1, OBP_OP_LANE_END, NULL, 0);
}

static void begin(void)
{
	begin_limited("32MiB", 0);
}

static void end(void)
{
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

static uint64_t alloc_plain(uint64_t size)
{
	struct obp_mem_alloc_plain_req req = { .size = size };

	peer_call(&peer, 0, OBP_OP_MEM_ALLOC_PLAIN, &req, sizeof req);
	CHECK_INT(peer_reply(&peer)->result, 0);
	return ((const struct obp_mem_alloc_plain_rep *)peer.item.body)->addr;
}

static void fill_with(uint16_t lane, uint64_t addr, uint64_t size, uint8_t value)
{
	struct obp_memset_req req = {
		.dst = addr, .value = value, .element = 1, .width = size, .height = 1
	};

	peer_call(&peer, lane, OBP_OP_MEMSET, &req, sizeof req);
}

static void fill(uint16_t lane, uint64_t addr, uint64_t size)
{
	fill_with(lane, addr, size, 0x5a);
}

TEST(a_driver_without_vmm)
{
	struct obp_read_req read;
	struct obp_mem_free_req release;
	uint64_t addr;

	begin();
	CHECK(!peer.got.welcome.vmm);
	addr = alloc_plain(1000);
	fill(0, addr, 1000);
	read = (struct obp_read_req){ .src = addr + 900, .size = 100 };
	peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
	CHECK_INT(peer_reply(&peer)->body, 100);
	CHECK_INT(peer.item.body[99], 0x5a);
	/* One byte past the allocation does not belong to the session: it is never read. */
	read.size = 101;
	peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_VALUE);
	release = (struct obp_mem_free_req){ .addr = addr };
	peer_call(&peer, 0, OBP_OP_MEM_FREE, &release, sizeof release);
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_call(&peer, 0, OBP_OP_MEM_FREE, &release, sizeof release);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_VALUE);
	read = (struct obp_read_req){ .src = addr, .size = 1 };
	peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_VALUE);
	end();
}

static uint32_t readable(uint64_t addr, uint64_t size)
{
	struct obp_read_req read = { .src = addr, .size = size };

	peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
	return peer_reply(&peer)->result;
}

static uint32_t placed(uint64_t addr, uint64_t size)
{
	struct obp_mem_alloc_req req = { .addr = addr, .size = size };

	peer_call(&peer, 0, OBP_OP_MEM_ALLOC, &req, sizeof req);
	return peer_ping(&peer, 0);
}

static uint32_t freed(uint64_t addr)
{
	struct obp_mem_free_req req = { .addr = addr };

	peer_call(&peer, 0, OBP_OP_MEM_FREE, &req, sizeof req);
	return peer_ping(&peer, 0);
}

/* Also waits for work. */
static uint32_t freed_fenced(uint64_t addr)
{
	struct obp_mem_free_req req = { .addr = addr, .fence = 1 };

	peer_call(&peer, 0, OBP_OP_MEM_FREE, &req, sizeof req);
	return peer_ping(&peer, 0);
}

static uint32_t slab_freed(uint64_t addr)
{
	struct obp_mem_slab_free_req req = { .addr = addr };

	peer_call(&peer, 0, OBP_OP_MEM_SLAB_FREE, &req, sizeof req);
	return peer_ping(&peer, 0);
}

/* Asks for a slab in a context; *ret: where it is. Returns the result. */
static uint32_t slab(uint64_t ctx, uint64_t size, uint64_t least, struct obp_range *ret)
{
	struct obp_mem_slab_req req = { .ctx = ctx, .size = size, .least = least };
	const struct obp_mem_slab_rep *rep;

	peer_call(&peer, 0, OBP_OP_MEM_SLAB, &req, sizeof req);
	peer_reply(&peer);
	rep = (const struct obp_mem_slab_rep *)peer.item.body;
	if (peer.item.reply.result == 0)
		*ret = (struct obp_range){ rep->addr, rep->bytes };
	return peer.item.reply.result;
}

/* Any driver, with the calls for virtual memory management missing, and these faults. */
static void begin_without_vmm(const char *faults)
{
	char all[128];

	if (!ob_opt_on(OB_OPT_GRANT))
		TEST_SKIP("OUTBOARD_OPT turns slabs off");
	snprintf(all, sizeof all, "cuMemAddressReserve:*=801%s", faults);
	server_start_env(&server, NULL, "OUTBOARD_FAULT", all);
	peer_session_slabs(&peer, &server);
	peer_use_context(&peer, 0, 1);
	CHECK(!peer.got.welcome.vmm);
}

TEST(slabs)
{
	struct obp_range first, more = { 0 };

	begin_without_vmm("");
	CHECK_INT(peer.got.welcome.slabs, OBP_SLAB_MAX);
	first = peer.got.welcome.devices[0].range;
	CHECK_INT(peer.got.welcome.devices[0].grant, first.size);
	CHECK(first.base && first.size >= 32 << 20);
	CHECK_INT(placed(first.base, 1000), 0);
	CHECK_INT(readable(first.base + 999, 1), 0);
	CHECK_INT(readable(first.base, 1025), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(freed(first.base), 0);
	CHECK_INT(readable(first.base, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab(1, OBP_SLAB_MAX, 1000, &more), 0);
	CHECK_INT(more.size, OBP_SLAB_MAX);
	CHECK_INT(placed(more.base, more.size), 0);
	CHECK_INT(readable(more.base + more.size - 1, 1), 0);
	/* A slab is returned with all that is in it, and its context takes the others with it. */
	CHECK_INT(slab_freed(more.base), 0);
	CHECK_INT(readable(more.base, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(placed(first.base, 1000), 0);
	peer_call(&peer, 0, OBP_OP_CTX_DESTROY, &(struct obp_ctx_destroy_req){ .ctx = 1 },
		sizeof(struct obp_ctx_destroy_req));
	CHECK_INT(readable(first.base, 1), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(slabs_and_a_hostile_client)
{
	struct obp_range first, more;
	uint64_t end_of;

	begin_without_vmm("");
	first = peer.got.welcome.devices[0].range;
	end_of = first.base + first.size;
	CHECK_INT(placed(first.base + 512, 512), 0);
	CHECK_INT(placed(first.base, 513), CUDA_ERROR_INVALID_VALUE); /* reaches into the first */
	CHECK_INT(placed(first.base + 1, 16), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(placed(end_of - 512, 513), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(placed(end_of, 512), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(placed(0, 512), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(readable(first.base, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(readable(first.base + 512, first.size), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(freed(first.base), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(freed(first.base + 513), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab_freed(first.base + 512), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab_freed(0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab(1, 0, 0, &more), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(slab(1, 1000, 0, &more), CUDA_ERROR_INVALID_VALUE); /* no whole page */
	CHECK_INT(slab(1, OBP_SLAB_PAGE, OBP_SLAB_PAGE + 1, &more), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(readable(first.base + 512, 512), 0);
	peer_call_fatal(&peer, OBP_OP_MEM_SLAB,
		&(struct obp_mem_slab_req){ .ctx = 99, .size = OBP_SLAB_PAGE },
		sizeof(struct obp_mem_slab_req));
	end();
	begin_without_vmm("");
	peer_call_fatal(&peer, OBP_OP_MEM_SLAB,
		&(struct obp_mem_slab_req){ .ctx = 1, .size = OBP_SLAB_MAX + OBP_SLAB_PAGE },
		sizeof(struct obp_mem_slab_req));
	end();
}

/* A slab is returned as a whole only, so most of the device stays outside slabs. */
TEST(slabs_take_a_quarter_of_the_device)
{
	uint64_t total, all, small = 2 * OBP_SLAB_PAGE;
	struct obp_range more = { 0 };
	uint32_t result;

	begin_without_vmm("");
	total = peer.got.welcome.devices[0].total_mem;
	all = peer.got.welcome.devices[0].range.size;
	/* the last ones are smaller than what is asked for */
	while ((result = slab(1, OBP_SLAB_MAX, OBP_SLAB_PAGE, &more)) == 0)
		all += more.size;
	CHECK_INT(result, CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_INT(all, total / 4);
	CHECK_INT(slab_freed(more.base), 0);
	all -= more.size;
	CHECK_INT(slab(1, small, small, &more), 0);
	CHECK_INT(more.size, small);
	CHECK_INT(slab(1, total / 4 - all, total / 4 - all, &more), CUDA_ERROR_OUT_OF_MEMORY);
	/* a single allocation is none of a slab */
	CHECK(alloc_plain(total / 4) != 0);
	end();
}

/* As cuMemFree does for an allocation of its own: work in both contexts may use the memory. */
TEST(a_free_waits_for_the_slab_s_context)
{
	uint64_t first;

	begin_without_vmm(",cuCtxSynchronize:2=700,cuCtxSynchronize:3=719");
	first = peer.got.welcome.devices[0].range.base;
	CHECK_INT(placed(first, 512), 0);
	CHECK_INT(freed_fenced(first), 0); /* the first wait; they are the same context */
	CHECK_INT(placed(first, 512), 0);
	peer_call(&peer, 0, OBP_OP_CTX_CREATE, &(struct obp_ctx_create_req){ .ctx = 1000 },
		sizeof(struct obp_ctx_create_req));
	peer_use_context(&peer, 0, 1000);
	CHECK_INT(freed_fenced(first), 700);
	end();
	begin_without_vmm(",cuCtxSynchronize:2=700");
	first = peer.got.welcome.devices[0].range.base;
	peer_call(&peer, 0, OBP_OP_CTX_CREATE, &(struct obp_ctx_create_req){ .ctx = 1000 },
		sizeof(struct obp_ctx_create_req));
	peer_use_context(&peer, 0, 1000);
	CHECK_INT(placed(first, 512), 0);
	CHECK_INT(freed_fenced(first), 700); /* one wait in each context */
	end();
}

/* A client that does not know slabs gets none; one with a range needs none. */
TEST(slabs_that_nobody_wants)
{
	struct obp_range more;

	server_start_env(&server, NULL, "OUTBOARD_FAULT", "cuMemAddressReserve:*=801");
	peer_session(&peer, &server);
	CHECK_INT(peer.got.welcome.slabs, 0);
	CHECK_INT(peer.got.welcome.devices[0].range.size, 0);
	CHECK_INT(slab(1, OBP_SLAB_PAGE, 1, &more), CUDA_ERROR_NOT_SUPPORTED);
	end();
	server_start(&server, NULL);
	peer_session_slabs(&peer, &server);
	CHECK(peer.got.welcome.vmm);
	CHECK_INT(slab(1, OBP_SLAB_PAGE, 1, &more), CUDA_ERROR_NOT_SUPPORTED);
	end();
}

TEST(rows_there_and_back)
{
	enum { WIDTH = 7, HEIGHT = 5, DEPTH = 3, PITCH = 16, SLICE = PITCH * 6 };
	uint64_t addr;
	uint8_t body[sizeof(struct obp_write_rows_req) + WIDTH * HEIGHT * DEPTH];
	struct obp_read_rows_req read;

	begin();
	addr = alloc_plain(SLICE * DEPTH);
	*(struct obp_write_rows_req *)body = (struct obp_write_rows_req){ .dst = addr,
		.dst_pitch = PITCH,
		.dst_slice = SLICE,
		.width = WIDTH,
		.height = HEIGHT,
		.depth = DEPTH };
	for (unsigned i = 0; i < WIDTH * HEIGHT * DEPTH; i++)
		body[sizeof(struct obp_write_rows_req) + i] = (uint8_t)(i + 1);
	peer_call(&peer, 0, OBP_OP_WRITE_ROWS, body, sizeof body);
	read = (struct obp_read_rows_req){ .src = addr,
		.src_pitch = PITCH,
		.src_slice = SLICE,
		.width = WIDTH,
		.height = HEIGHT,
		.depth = DEPTH };
	peer_call(&peer, 0, OBP_OP_READ_ROWS, &read, sizeof read);
	CHECK_INT(peer_reply(&peer)->body, WIDTH * HEIGHT * DEPTH);
	CHECK(memcmp(peer.item.body, body + sizeof(struct obp_write_rows_req),
		      WIDTH * HEIGHT * DEPTH) == 0);
	/* Reads one row of the second slice. */
	read = (struct obp_read_rows_req){ .src = addr + SLICE + PITCH,
		.src_pitch = PITCH,
		.src_slice = SLICE,
		.width = WIDTH,
		.height = 1,
		.depth = 1 };
	peer_call(&peer, 0, OBP_OP_READ_ROWS, &read, sizeof read);
	CHECK_INT(peer_reply(&peer)->body, WIDTH);
	CHECK_INT(peer.item.body[0], WIDTH * HEIGHT + WIDTH + 1);
	end();
}

static void await_exit(pid_t pid)
{
	UNTIL(!process_alive(pid));
}

/* The only lane waits for an action of a new lane: another thread must become the executor. */
TEST(a_second_lane_is_served_while_the_first_one_blocks)
{
	uint64_t addr;

	begin();
	addr = alloc_plain(16);
	for (int round = 0; round < 3; round++) {
		fill_with(0, addr, 16, FAKE_BEGIN);
		peer_call(&peer, 0, OBP_OP_CTX_SYNCHRONIZE, NULL, 0);
		peer_await_taken(&peer);
		peer_use_context(&peer, 1, 1);
		CHECK_INT(peer_ping(&peer, 1), 0);
		fill(1, addr, 16);
		CHECK_INT(peer_reply(&peer)->lane, 0);
		peer_call(&peer, 1, OBP_OP_LANE_END, NULL, 0);
		CHECK_INT(peer_ping(&peer, 0), 0);
	}
	end();
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

	begin();
	addr = alloc_plain(16);
	for (uint16_t lane = 1; lane < 4; lane++)
		peer_use_context(&peer, lane, 1);
	with_stream_and_event(3);
	for (size_t i = 0; i < n * n; i++) {
		bool first;

		fill_with(3, addr, 16, FAKE_BEGIN);
		event_op(3, OBP_OP_EVENT_RECORD);
		wait_op(1, ops[i % n], addr);
		wait_op(2, ops[i / n], addr);
		CHECK_INT(peer_ping(&peer, 3), 0);
		fill(3, addr, 16);
		CHECK_INT(peer_reply(&peer)->result, 0);
		first = peer.item.reply.lane == 1;
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK_INT(peer.item.reply.lane, first ? 2 : 1);
	}
	end();
}

/*
 * Results that are not acknowledged leave fewer slots than a read needs: further reads wait for
 * acknowledgements, and none is cut short.
 */
TEST(more_reads_than_slots)
{
	enum { READS = 12, BYTES = 100000 };
	struct obp_read_req read = { .size = BYTES };

	begin_limited("8MiB", 1);
	peer.acknowledges = true;
	read.src = alloc_plain(BYTES);
	peer_use_context(&peer, 1, 1);
	for (int i = 0; i < READS; i++)
		peer_call(&peer, 1, OBP_OP_READ, &read, sizeof read);
	for (int i = 0; i < READS; i++) {
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK_INT(peer.item.reply.body, BYTES);
		/* Acknowledges what has arrived. */
		peer_use_context(&peer, 0, 1);
	}
	end();
}

/* Nobody waits for a watch: calls of the same lane go on, also when it is the only one. */
TEST(a_watch_holds_nothing_up)
{
	static const uint16_t ops[] = { OBP_OP_EVENT_WATCH, OBP_OP_STREAM_WATCH };
	uint64_t addr, number;

	begin();
	addr = alloc_plain(16);
	with_stream_and_event(0);
	for (int i = 0; i < 2; i++) {
		fill_with(0, addr, 16, FAKE_BEGIN);
		event_op(0, OBP_OP_EVENT_RECORD);
		number = peer.next;
		wait_op(0, ops[i], addr);
		CHECK_INT(peer_ping(&peer, 0), 0);
		event_op(0, OBP_OP_EVENT_QUERY);
		CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_NOT_READY);
		fill(0, addr, 16);
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK_INT(peer.item.reply.call, number);
		/* Complete at once. */
		wait_op(0, ops[i], addr);
		CHECK_INT(peer_reply(&peer)->result, 0);
	}
	end();
}

/* A wait is for the recording that it found, whatever happens to the event. */
TEST(an_event_is_recorded_again_and_destroyed_while_calls_wait)
{
	uint64_t addr;

	begin();
	addr = alloc_plain(16);
	for (uint16_t lane = 1; lane < 4; lane++)
		peer_use_context(&peer, lane, 1);
	for (int round = 0; round < 3; round++) {
		event_op(3, OBP_OP_EVENT_CREATE);
		fill_with(3, addr, 16, FAKE_BEGIN);
		event_op(3, OBP_OP_EVENT_RECORD);
		event_op(1, OBP_OP_EVENT_SYNCHRONIZE);
		event_op(2, OBP_OP_EVENT_SYNCHRONIZE);
		fill_with(3, addr, 16, FAKE_BEGIN);
		event_op(3, OBP_OP_EVENT_RECORD);
		fill_with(3, addr, 16, FAKE_END);
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK(peer.item.reply.lane == 1 || peer.item.reply.lane == 2);
		CHECK_INT(peer_reply(&peer)->result, 0);
		event_op(3, OBP_OP_EVENT_QUERY);
		CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_NOT_READY);
		event_op(1, OBP_OP_EVENT_SYNCHRONIZE);
		event_op(2, OBP_OP_EVENT_WATCH);
		event_op(3, OBP_OP_EVENT_DESTROY);
		CHECK_INT(peer_ping(&peer, 3), 0);
		fill(3, addr, 16);
		CHECK_INT(peer_reply(&peer)->result, 0);
		CHECK_INT(peer_reply(&peer)->result, 0);
	}
	end();
}

/* Work of a destroyed stream still counts for its context. */
TEST(a_context_waits_for_the_work_of_a_destroyed_stream)
{
	const struct obp_stream_create_req create = { .stream = STREAM };
	const struct obp_stream_destroy_req destroy = { .stream = STREAM };
	struct obp_memset_req work = {
		.value = FAKE_BEGIN, .element = 1, .width = 16, .height = 1, .stream = STREAM
	};

	begin();
	work.dst = alloc_plain(16);
	peer_use_context(&peer, 1, 1);
	peer_call(&peer, 1, OBP_OP_STREAM_CREATE, &create, sizeof create);
	peer_call(&peer, 1, OBP_OP_MEMSET, &work, sizeof work);
	peer_call(&peer, 1, OBP_OP_STREAM_DESTROY, &destroy, sizeof destroy);
	peer_call(&peer, 1, OBP_OP_CTX_SYNCHRONIZE, NULL, 0);
	CHECK_INT(peer_ping(&peer, 0), 0);
	fill(0, work.dst, 16);
	CHECK_INT(peer_reply(&peer)->result, 0);
	CHECK_INT(peer.item.reply.lane, 1);
	end();
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
	fill_with(0, addr, 16, FAKE_BEGIN);
	event_op(0, OBP_OP_EVENT_RECORD);
	wait_op(1, opcode, addr);
	wait_op(1, opcode, addr);
	CHECK_INT(peer_ping(&peer, 0), 0);
}

static void two_calls_end(uint64_t addr)
{
	fill(0, addr, 16);
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

	begin();
	addr = alloc_plain(16);
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
	end();
}

TEST(a_client_that_leaves_while_its_call_blocks)
{
	pid_t pids[4];

	begin();
	CHECK_INT(server_children(&server, pids, 4), 1);
	fill_with(0, alloc_plain(16), 16, FAKE_BEGIN);
	peer_call(&peer, 0, OBP_OP_CTX_SYNCHRONIZE, NULL, 0);
	peer_await_taken(&peer);
	close(peer.fd);
	await_exit(pids[0]);
	peer.fd = dup(0);
	end();
}

static void load(const char *text, uint64_t id)
{
	uint8_t body[sizeof(struct obp_module_load_req) + 256] = { 0 };
	struct obp_module_load_req *req = (struct obp_module_load_req *)body;

	req->mod = id;
	req->size = (uint32_t)strlen(text);
	obt_digest_sha256(text, strlen(text), req->sha256);
	memcpy(body + sizeof *req, text, strlen(text));
	peer_call(&peer, 0, OBP_OP_MODULE_LOAD, body, sizeof *req + strlen(text));
}

static void get_function(uint64_t module, uint64_t function, const char *name)
{
	uint8_t body[sizeof(struct obp_func_get_req) + 64] = { 0 };

	*(struct obp_func_get_req *)body = (struct obp_func_get_req){
		.func = function, .mod = module, .name_size = (uint32_t)strlen(name) + 1
	};
	strcpy((char *)body + sizeof(struct obp_func_get_req), name);
	peer_call(&peer, 0, OBP_OP_FUNC_GET, body,
		sizeof(struct obp_func_get_req) + strlen(name) + 1);
}

TEST(what_kernels_print_comes_before_the_reply)
{
	uint8_t body[sizeof(struct obp_launch_req) + 8] = { 0 };
	struct obp_stream_synchronize_req synchronize = { 0 };
	const struct obp_reply *reply;

	begin();
	load("a module with vprintf inside", MODULE);
	get_function(MODULE, FUNCTION, "kernel");
	*(struct obp_launch_req *)body = (struct obp_launch_req){ .func = FUNCTION,
		.grid = { 1, 2, 3 },
		.block = { 4, 5, 6 },
		.shared = 7,
		.param_bytes = 5 };
	memcpy(body + sizeof(struct obp_launch_req), "hello", 5);
	peer_call(&peer, 0, OBP_OP_LAUNCH, body, sizeof body);
	for (int round = 0; round < 2; round++) {
		static const char text[] = "grid 1 2 3 block 4 5 6 shared 7 params 5: hello\n";

		peer_call(&peer, 0, OBP_OP_STREAM_SYNCHRONIZE, &synchronize, sizeof synchronize);
		if (round == 0) {
			reply = peer_reply(&peer);
			CHECK_INT(reply->flags, OBP_REPLY_TEXT);
			CHECK_INT(reply->body, strlen(text));
			CHECK(memcmp(peer.item.body, text, strlen(text)) == 0);
			CHECK_INT(peer_reply(&peer)->flags, OBP_REPLY_TEXT | OBP_REPLY_TEXT_STDERR);
		}
		reply = peer_reply(&peer);
		CHECK_INT(reply->flags, 0);
		CHECK_INT(reply->deferred, 0);
	}
	end();
}

TEST(a_module_that_does_not_load)
{
	uint8_t body[sizeof(struct obp_launch_req)] = { 0 };

	begin();
	load("a broken module", MODULE);
	get_function(MODULE, FUNCTION, "kernel");
	*(struct obp_launch_req *)body = (struct obp_launch_req){
		.func = FUNCTION, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }
	};
	peer_call(&peer, 0, OBP_OP_LAUNCH, body, sizeof body);
	/* The first cause is reported, once. */
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_PTX);
	CHECK_INT(peer_ping(&peer, 0), 0);
	end();
}

#define IMAGE_MAX (100u << 10)

static void put_image(const char *text, uint8_t ret_hash[32])
{
	static _Alignas(8) uint8_t body[sizeof(struct obp_image_put_req) + IMAGE_MAX];
	struct obp_image_put_req *req = (struct obp_image_put_req *)body;
	size_t size = strlen(text), half = size / 2;

	obt_digest_sha256(text, size, ret_hash);
	for (int i = 0; i < 2; i++) {
		memset(body, 0, sizeof body);
		req->total = size;
		req->offset = i ? half : 0;
		req->size = i ? size - half : half;
		memcpy(req->sha256, ret_hash, 32);
		memcpy(body + sizeof *req, text + req->offset, req->size);
		peer_call(&peer, 0, OBP_OP_IMAGE_PUT, body, sizeof *req + req->size);
	}
}

static int have_image(const uint8_t hash[32])
{
	struct obp_image_query_req query;

	memcpy(query.sha256, hash, 32);
	peer_call(&peer, 0, OBP_OP_IMAGE_QUERY, &query, sizeof query);
	CHECK_INT(peer_reply(&peer)->result, 0);
	return (int)((const struct obp_image_query_rep *)peer.item.body)->have;
}

TEST(an_image_is_put_once_and_kept_for_later_sessions)
{
	struct obp_module_use_req use = { .mod = MODULE };
	char path[256], name[65], text[100001];
	glob_t found;

	begin();
	memset(text, 'x', sizeof text - 1); /* smaller ones are sent without a query */
	text[sizeof text - 1] = '\0';
	put_image(text, use.sha256);
	CHECK_INT(have_image(use.sha256), 1);
	peer_call(&peer, 0, OBP_OP_MODULE_USE, &use, sizeof use);
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_close(&peer);
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	CHECK_INT(have_image(use.sha256), 1);
	/* A damaged file is not used, and is removed. */
	peer_close(&peer);
	for (int i = 0; i < 32; i++)
		snprintf(name + 2 * i, 3, "%02x", use.sha256[i]);
	snprintf(path, sizeof path, "%s/*/i%s", server.dir, name);
	CHECK_INT(glob(path, 0, NULL, &found), 0); /* in this client's folder */
	CHECK_INT(found.gl_pathc, 1);
	snprintf(path, sizeof path, "%s", found.gl_pathv[0]);
	globfree(&found);
	FILE *file = fopen(path, "r+");
	CHECK(file);
	fputc('X', file);
	fclose(file);
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	CHECK_INT(have_image(use.sha256), 0);
	CHECK(access(path, F_OK) != 0);
	end();
}

TEST(a_checked_load_shows_the_compilers_words)
{
	uint8_t body[sizeof(struct obp_module_load_checked_req)] = { 0 };
	struct obp_module_load_checked_req *req = (struct obp_module_load_checked_req *)body;
	const struct obp_module_load_checked_rep *rep;

	begin();
	req->mod = MODULE;
	req->error_cap = 100;
	put_image("broken text", req->sha256);
	peer_call(&peer, 0, OBP_OP_MODULE_LOAD_CHECKED, body, sizeof body);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_PTX);
	rep = (const void *)peer.item.body;
	CHECK_INT(rep->info_log_size, 0);
	CHECK_STR((const char *)(rep + 1), "line 1: broken");
	end();
}

TEST(an_image_with_a_hole_or_a_wrong_hash)
{
	uint8_t body[sizeof(struct obp_image_put_req) + 16] = { 0 };
	struct obp_image_put_req *req = (struct obp_image_put_req *)body;

	begin();
	*req = (struct obp_image_put_req){ .total = 16, .size = 8, .offset = 8 };
	peer_call_fatal(&peer, OBP_OP_IMAGE_PUT, body, sizeof *req + 8);
	end();
	begin();
	*req = (struct obp_image_put_req){ .total = 16, .size = 16 };
	peer_call_fatal(&peer, OBP_OP_IMAGE_PUT, body, sizeof *req + 16);
	end();
}

TEST(a_host_function_is_asked_for_and_waited_for)
{
	struct obp_message *message = calloc(1, sizeof *message);
	struct obp_host_func_req req = { .callback = 99 };
	struct peer control;

	begin();
	/* Before the control connection exists: the call waits for it. */
	peer_call(&peer, 0, OBP_OP_HOST_FUNC, &req, sizeof req);
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_connect(&control, &server);
	peer_preface(&control, OBP_INTENT_JOIN, peer.got.welcome.route);
	message->type = OBP_MSG_JOIN;
	memcpy(message->secret, peer.got.welcome.secret, sizeof message->secret);
	peer_message(&control, message);
	CHECK(peer_control(&control));
	if (control.got.type == OBP_MSG_JOINED)
		CHECK(peer_control(&control));
	CHECK_INT(control.got.type, OBP_MSG_CALLBACK);
	CHECK_INT(control.got.value, 99);
	message->type = OBP_MSG_CALLBACK_DONE;
	message->value = 99;
	peer_message(&control, message);
	CHECK_INT(peer_ping(&peer, 0), 0);
	/* A second completion of one request. */
	peer_message(&control, message);
	CHECK(peer_ended(&peer));
	peer_close(&control);
	free(message);
	end();
}

int main(int argc, char **argv)
{
	test_needs("cache");
	return test_main(argc, argv);
}
