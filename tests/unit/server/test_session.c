/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A session over the null driver: replies, limits, and errors that end it. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "tests/unit/server/peer.h"

#define BASE     0x200000000000ull
#define STREAM   0x0100000000000005ull
#define EVENT    0x0200000000000007ull
#define MODULE   0x0300000000000001ull
#define FUNCTION 0x0400000000000002ull

static struct server server;
static struct peer peer;

static void begin(void)
{
	server_start(&server, NULL);
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
}

static void end(void)
{
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

TEST(ping_and_bye)
{
	begin();
	CHECK_INT(peer_ping(&peer, 0), 0);
	CHECK_INT(peer_ping(&peer, 7), 0);
	peer_call(&peer, 0, OBP_OP_BYE, NULL, 0);
	CHECK_INT(peer_reply(&peer)->result, 0);
	CHECK(peer_ended(&peer));
	end();
}

TEST(the_other_bye_says_what_was_measured)
{
	begin();
	peer_call(&peer, 0, OBP_OP_BYE_LINK, NULL, 0);
	CHECK_INT(peer_reply(&peer)->result, 0);
	CHECK_INT(((const struct obp_bye_link_rep *)peer.item.body)->rate, 0); /* too little */
	CHECK(peer_ended(&peer));
	end();
}

TEST(memory_calls)
{
	struct obp_mem_alloc_req alloc = { .addr = BASE, .size = 4096 };
	struct obp_mem_grow_req grow = { .addr = BASE + (1ull << 30), .size = 3 << 20 };
	struct obp_mem_free_req release = { .addr = BASE, .fence = 1 };
	struct obp_mem_trim_req trim = { .addr = grow.addr, .size = 4 << 20 };

	begin();
	peer_call(&peer, 0, OBP_OP_MEM_ALLOC, &alloc, sizeof alloc);
	peer_call(&peer, 0, OBP_OP_MEM_FREE, &release, sizeof release);
	peer_call(&peer, 0, OBP_OP_MEM_GROW, &grow, sizeof grow);
	CHECK_INT(peer_reply(&peer)->result, 0);
	peer_call(&peer, 0, OBP_OP_MEM_TRIM, &trim, sizeof trim);
	peer_call(&peer, 0, OBP_OP_MEM_INFO, NULL, 0);
	CHECK_INT(peer_reply(&peer)->result, 0);
	CHECK_INT(((const struct obp_mem_info_rep *)peer.item.body)->total, 80ll << 30);
	CHECK_INT(peer_ping(&peer, 0), 0);
	end();
}

TEST(addresses_outside_the_range)
{
	struct obp_mem_grow_req grow = { .addr = BASE - 4096, .size = 4096 };
	struct obp_mem_alloc_req alloc = { .addr = BASE + (1ull << 40) - 4096, .size = 8192 };
	struct obp_read_req read = { .src = 0x1000, .size = 16 };
	struct obp_memset_req set = {
		.dst = BASE, .element = 4, .width = UINT64_MAX / 4, .height = 1
	};

	begin();
	peer_call(&peer, 0, OBP_OP_MEM_GROW, &grow, sizeof grow);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_VALUE);
	grow = (struct obp_mem_grow_req){ .addr = BASE, .size = 1ull << 41 };
	peer_call(&peer, 0, OBP_OP_MEM_GROW, &grow, sizeof grow);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_VALUE);
	grow = (struct obp_mem_grow_req){ .addr = BASE, .size = 4096, .device = 1 };
	peer_call(&peer, 0, OBP_OP_MEM_GROW, &grow, sizeof grow);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_VALUE);
	peer_call(&peer, 0, OBP_OP_MEM_ALLOC, &alloc, sizeof alloc);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_VALUE);
	/* Reported once. */
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_VALUE);
	peer_call(&peer, 0, OBP_OP_MEMSET, &set, sizeof set);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(reads_of_every_kind_of_size)
{
	static const uint64_t sizes[] = { 0, 1, 8, 300, 32768, 65537, OBP_CHUNK_MAX,
		OBP_CHUNK_MAX + 1, 5 * OBP_CHUNK_MAX + 3 };

	begin();
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct obp_read_req req = { .src = BASE, .size = sizes[i] };
		uint64_t got = 0;
		uint16_t flags;

		peer_call(&peer, 0, OBP_OP_READ, &req, sizeof req);
		do {
			const struct obp_reply *reply = peer_reply(&peer);

			CHECK_INT(reply->result, 0);
			CHECK_INT(reply->call, peer.next - 1);
			CHECK(reply->body <= OBP_CHUNK_MAX);
			got += reply->body;
			flags = reply->flags;
		} while (flags & OBP_REPLY_MORE);
		CHECK_INT(got, sizes[i]);
	}
	end();
}

TEST(rows_are_read_whole)
{
	static const uint64_t boxes[][3] = { { 10, 7, 3 }, { 1000, 3000, 2 }, { 3u << 20, 2, 2 },
		{ 64, 64, 200 }, { 5, 1, 1 } };

	begin();
	for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
		struct obp_read_rows_req req = { .src = BASE,
			.src_pitch = boxes[i][0] + 24,
			.width = boxes[i][0],
			.height = boxes[i][1],
			.depth = boxes[i][2] };
		uint64_t got = 0;
		uint16_t flags;

		req.src_slice = req.src_pitch * (req.height + 1);
		peer_call(&peer, 0, OBP_OP_READ_ROWS, &req, sizeof req);
		do {
			const struct obp_reply *reply = peer_reply(&peer);

			CHECK_INT(reply->result, 0);
			got += reply->body;
			flags = reply->flags;
		} while (flags & OBP_REPLY_MORE);
		CHECK_INT(got, req.width * req.height * req.depth);
	}
	end();
}

/* A write of `claimed` bytes in a record that has room for `real`. */
static void send_write(uint64_t claimed, size_t real)
{
	uint8_t *body = calloc(1, sizeof(struct obp_write_req) + real);

	*(struct obp_write_req *)body = (struct obp_write_req){ .dst = BASE, .size = claimed };
	peer_call(&peer, 0, OBP_OP_WRITE, body, sizeof(struct obp_write_req) + real);
	free(body);
}

TEST(writes_up_to_the_maximum)
{
	static const size_t sizes[] = { 0, 1, 8, 4096, 32000, 40000, OBP_CHUNK_MAX - 1,
		OBP_CHUNK_MAX };

	begin();
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
			send_write(sizes[i], sizes[i]);
	CHECK_INT(peer_ping(&peer, 0), 0);
	end();
}

TEST(a_write_above_the_maximum)
{
	begin();
	send_write(OBP_CHUNK_MAX + 8, OBP_CHUNK_MAX + 8);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.type, OBP_MSG_FATAL);
	end();
}

TEST(a_write_that_claims_more_than_it_has)
{
	begin();
	send_write(100, 8);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.type, OBP_MSG_FATAL);
	end();
}

TEST(a_large_write_that_claims_less_than_it_has)
{
	begin();
	send_write(100, 100000);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.type, OBP_MSG_FATAL);
	end();
}

TEST(unknown_opcodes)
{
	static const uint16_t opcodes[] = { 0, 0x010f, 0x0fff, 0xffff };

	for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
		begin();
		peer_call_fatal(&peer, opcodes[i], NULL, 0);
		end();
	}
}

/*
 * Sends each call with a body of every wrong size up to 256: the session must end, and another must
 * continue.
 */
TEST(bodies_of_wrong_sizes)
{
	struct peer other;
	uint8_t zeros[4096] = { 0 };

	begin();
	peer_session(&other, &server);
	for (uint16_t opcode = 0x0100; opcode < OBP_OPCODE_END; opcode++) {
		const struct obp_call_info *info = obp_call_info(opcode);

		if (!info)
			continue;
		for (size_t size = 0; size <= 256; size += 64) {
			if (obp_check_req(opcode, zeros, (uint32_t)size))
				continue;
			peer_close(&peer);
			peer_session(&peer, &server);
			peer_use_context(&peer, 0, 1);
			peer_call_fatal(&peer, opcode, zeros, size);
		}
	}
	CHECK_INT(peer_ping(&other, 0), 0);
	peer_close(&other);
	end();
}

TEST(frames_cut_anywhere)
{
	uint8_t bytes[sizeof(struct obp_frame) + sizeof(struct obp_record)];
	struct obp_record record = { .size = sizeof record, .opcode = OBP_OP_PING };

	begin();
	obp_frame_fill((struct obp_frame *)bytes, OBP_FRAME_CALLS, sizeof record, 1, 2, 0);
	memcpy(bytes + sizeof(struct obp_frame), &record, sizeof record);
	for (size_t n = 1; n < sizeof bytes; n += 5) {
		peer_send(&peer, bytes, n);
		peer_close(&peer);
		peer_session(&peer, &server);
		peer_use_context(&peer, 0, 1);
	}
	/* In several pieces, complete. */
	for (size_t n = 0; n < sizeof bytes; n++) {
		peer_send(&peer, bytes + n, 1);
		if (n % 7 == 0)
			peer_await_taken(&peer);
	}
	CHECK_INT(peer_reply(&peer)->result, 0);
	end();
}

TEST(a_frame_out_of_sequence)
{
	begin();
	peer.next += 3;
	peer_call_fatal(&peer, OBP_OP_PING, NULL, 0);
	end();
}

TEST(a_lane_above_the_maximum)
{
	begin();
	CHECK_INT(peer_ping(&peer, OBP_LANE_MAX - 1), 0);
	peer_call(&peer, OBP_LANE_MAX, OBP_OP_PING, NULL, 0);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.type, OBP_MSG_FATAL);
	end();
}

TEST(every_lane_at_once)
{
	begin();
	for (uint16_t lane = 0; lane < OBP_LANE_MAX; lane++)
		CHECK_INT(peer_ping(&peer, lane), 0);
	for (uint16_t lane = 1; lane < OBP_LANE_MAX; lane++)
		peer_call(&peer, lane, OBP_OP_LANE_END, NULL, 0);
	CHECK_INT(peer_ping(&peer, 0), 0);
	end();
}

static void misuse(uint16_t opcode, const void *body, size_t size)
{
	begin();
	peer_call_fatal(&peer, opcode, body, size);
	end();
}

TEST(handles_that_do_not_exist)
{
	struct obp_stream_synchronize_req synchronize = { .stream = STREAM };
	struct obp_event_record_req record = { .event = EVENT };
	struct obp_stream_wait_req wait = { .event = EVENT };
	struct obp_launch_req launch = {
		.func = FUNCTION, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }
	};
	struct obp_ctx_use_req context = { .ctx = 77 };
	struct obp_func_attrs_req attrs = { .func = UINT64_MAX };

	misuse(OBP_OP_STREAM_SYNCHRONIZE, &synchronize, sizeof synchronize);
	misuse(OBP_OP_EVENT_RECORD, &record, sizeof record);
	misuse(OBP_OP_STREAM_WAIT, &wait, sizeof wait);
	misuse(OBP_OP_LAUNCH, &launch, sizeof launch);
	misuse(OBP_OP_CTX_USE, &context, sizeof context);
	misuse(OBP_OP_FUNC_ATTRS, &attrs, sizeof attrs);
}

TEST(handles_used_twice_or_out_of_range)
{
	struct obp_stream_create_req stream = { .stream = STREAM };
	struct obp_event_create_req event = { .event = 0x02000000ffffffffull };
	struct obp_stream_create_req legacy = { .stream = 1 };

	begin();
	peer_call(&peer, 0, OBP_OP_STREAM_CREATE, &stream, sizeof stream);
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_call_fatal(&peer, OBP_OP_STREAM_CREATE, &stream, sizeof stream);
	end();
	misuse(OBP_OP_EVENT_CREATE, &event, sizeof event);
	misuse(OBP_OP_STREAM_CREATE, &legacy, sizeof legacy);
}

TEST(a_destroyed_handle_is_gone)
{
	struct obp_stream_create_req create = { .stream = STREAM };
	struct obp_stream_destroy_req destroy = { .stream = STREAM };
	struct obp_stream_query_req query = { .stream = STREAM };

	begin();
	peer_call(&peer, 0, OBP_OP_STREAM_CREATE, &create, sizeof create);
	peer_call(&peer, 0, OBP_OP_STREAM_QUERY, &query, sizeof query);
	CHECK_INT(peer_reply(&peer)->result, 0);
	peer_call(&peer, 0, OBP_OP_STREAM_DESTROY, &destroy, sizeof destroy);
	/* The same index with another generation. */
	create.stream = query.stream = STREAM + (1ull << 32);
	peer_call(&peer, 0, OBP_OP_STREAM_CREATE, &create, sizeof create);
	peer_call(&peer, 0, OBP_OP_STREAM_QUERY, &query, sizeof query);
	CHECK_INT(peer_reply(&peer)->result, 0);
	query.stream = STREAM;
	peer_call_fatal(&peer, OBP_OP_STREAM_QUERY, &query, sizeof query);
	end();
}

TEST(an_image_with_a_wrong_hash)
{
	uint8_t body[sizeof(struct obp_module_load_req) + 16] = { 0 };

	*(struct obp_module_load_req *)body =
		(struct obp_module_load_req){ .mod = MODULE, .size = 16 };
	misuse(OBP_OP_MODULE_LOAD, body, sizeof body);
}

TEST(an_unknown_image)
{
	struct obp_image_query_req query = { .sha256 = { 1, 2, 3 } };
	struct obp_module_use_req use = { .mod = MODULE, .sha256 = { 1, 2, 3 } };
	struct obp_module_unload_req unload = { .mod = MODULE };

	begin();
	peer_call(&peer, 0, OBP_OP_IMAGE_QUERY, &query, sizeof query);
	CHECK_INT(peer_reply(&peer)->result, 0);
	CHECK_INT(((const struct obp_image_query_rep *)peer.item.body)->have, 0);
	peer_call(&peer, 0, OBP_OP_MODULE_USE, &use, sizeof use);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_IMAGE);
	peer_call(&peer, 0, OBP_OP_MODULE_UNLOAD, &unload, sizeof unload);
	CHECK_INT(peer_ping(&peer, 0), 0);
	end();
}

TEST(acknowledgements_come_without_being_asked)
{
	struct obp_mem_alloc_req alloc = { .addr = BASE, .size = 4096 };
	struct obp_frame frame;

	begin();
	for (int i = 0; i < 5000; i++)
		peer_call(&peer, 0, OBP_OP_MEM_ALLOC, &alloc, sizeof alloc);
	CHECK(recv(peer.fd, &frame, sizeof frame, MSG_WAITALL) == sizeof frame);
	CHECK_INT(frame.type, OBP_FRAME_ACK);
	CHECK(frame.ack >= 4096 && frame.ack <= 5001);
	end();
}

/*
 * The first failure is reported in the next reply. An injected fault in the driver replaces a real
 * one.
 */
TEST(an_asynchronous_failure_is_told_once)
{
	struct obp_event_create_req create = { .event = EVENT };
	struct obp_event_record_req record = { .event = EVENT };

	server_start_env(&server, NULL, "OUTBOARD_FAULT", "cuEventRecord:2=719,cuEventRecord:3=1");
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	peer_call(&peer, 0, OBP_OP_EVENT_CREATE, &create, sizeof create);
	for (int i = 0; i < 4; i++)
		peer_call(&peer, 0, OBP_OP_EVENT_RECORD, &record, sizeof record);
	CHECK_INT(peer_ping(&peer, 0), 719);
	CHECK_INT(peer_ping(&peer, 0), 0);
	end();
}

TEST(a_failed_creation_is_told_and_survived)
{
	struct obp_stream_create_req create = { .stream = STREAM };
	struct obp_stream_synchronize_req use = { .stream = STREAM };

	server_start_env(&server, NULL, "OUTBOARD_FAULT", "cuStreamCreateWithPriority:1=2");
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	peer_call(&peer, 0, OBP_OP_STREAM_CREATE, &create, sizeof create);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_OUT_OF_MEMORY);
	peer_call(&peer, 0, OBP_OP_STREAM_SYNCHRONIZE, &use, sizeof use);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_HANDLE);
	end();
}

TEST(held_calls)
{
	struct obp_event_create_req create = { .event = EVENT };
	char file[] = "/tmp/outboard-hold-XXXXXX", fault[128];
	int fd = mkstemp(file);

	CHECK(fd >= 0);
	close(fd);
	unlink(file);
	snprintf(fault, sizeof fault,
		"cuEventCreate:1=hold@%s,cuEventCreate:x=hold,cuEventCreate:1=holdup", file);
	server_start_env(&server, NULL, "OUTBOARD_FAULT", fault);
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	peer_call(&peer, 0, OBP_OP_EVENT_CREATE, &create, sizeof create);
	peer_call(&peer, 0, OBP_OP_PING, NULL, 0);
	server_await_log(&server, "call 1 of cuEventCreate is held");
	let_pass(20000,
		"nothing may come as long as the file is missing; a machine that is slow makes "
		"this no stricter");
	CHECK(poll(&(struct pollfd){ .fd = peer.fd, .events = POLLIN }, 1, 0) == 0);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(peer_reply(&peer)->result, 0);
	unlink(file);
	end();
}

TEST(blocking_calls_of_several_lanes)
{
	begin();
	for (uint16_t lane = 0; lane < 8; lane++)
		peer_use_context(&peer, lane, 1);
	for (int round = 0; round < 20; round++) {
		bool answered[8] = { false };

		for (uint16_t lane = 0; lane < 8; lane++)
			peer_call(&peer, lane, OBP_OP_CTX_SYNCHRONIZE, NULL, 0);
		for (int i = 0; i < 8; i++) {
			const struct obp_reply *reply = peer_reply(&peer);

			CHECK_INT(reply->result, 0);
			CHECK(reply->lane < 8 && !answered[reply->lane]);
			answered[reply->lane] = true;
		}
	}
	for (uint16_t lane = 1; lane < 8; lane++)
		peer_call(&peer, lane, OBP_OP_LANE_END, NULL, 0);
	CHECK_INT(peer_ping(&peer, 0), 0);
	end();
}

/* Makes one call of each kind. False: the session ended. */
static bool use_everything(void)
{
	struct obp_message *hello = calloc(1, sizeof *hello);
	struct obp_stream_create_req stream = { .stream = STREAM };
	struct obp_event_create_req event = { .event = EVENT };
	struct obp_event_record_req record = { .event = EVENT, .stream = STREAM };
	struct obp_mem_grow_req grow = { .addr = BASE + (1ull << 32), .size = 200 << 20 };
	struct obp_read_req read = { .src = BASE, .size = 3 * OBP_CHUNK_MAX, .stream = STREAM };
	bool welcome;

	peer_connect(&peer, &server);
	peer_preface(&peer, OBP_INTENT_NEW, 0);
	hello->type = OBP_MSG_HELLO;
	hello->hello.n_ranges = 1;
	hello->hello.ranges[0] = (struct obp_range){ BASE, 1ull << 40 };
	peer_message(&peer, hello);
	free(hello);
	welcome = peer_control(&peer) && peer.got.type == OBP_MSG_WELCOME;
	if (!welcome)
		return false;
	/* the server could not reserve our range; its own one is not used */
	if (!peer.got.welcome.range_ok) {
		struct obp_message range = { .type = OBP_MSG_RANGE };

		peer_message(&peer, &range);
	}
	peer_use_context(&peer, 0, 1);
	peer_call(&peer, 0, OBP_OP_STREAM_CREATE, &stream, sizeof stream);
	peer_call(&peer, 0, OBP_OP_EVENT_CREATE, &event, sizeof event);
	peer_call(&peer, 0, OBP_OP_EVENT_RECORD, &record, sizeof record);
	send_write(500, 500);
	send_write(100000, 100000);
	send_write(100000, 100000);
	peer_call(&peer, 0, OBP_OP_MEM_GROW, &grow, sizeof grow);
	peer_reply(&peer);
	peer_call(&peer, 0, OBP_OP_READ, &read, sizeof read);
	while (peer_reply(&peer)->flags & OBP_REPLY_MORE)
		;
	peer_call(&peer, 0, OBP_OP_CTX_SYNCHRONIZE, NULL, 0);
	peer_reply(&peer);
	peer_ping(&peer, 0);
	return true;
}

/*
 * Whichever driver call fails, the client gets an answer without a hang, and the next session
 * works.
 */
TEST(every_driver_call_may_fail)
{
	static const struct {
		const char *call;
		bool served; /* the session continues */
	} cases[] = {
		{ "cuMemAddressReserve", true },
		{ "cuMemCreate", true },
		{ "cuMemMap", true },
		{ "cuMemSetAccess", true },
		{ "cuMemHostRegister_v2", true },
		{ "cuEventCreate", true },
		{ "cuEventRecord", true },
		{ "cuEventSynchronize", true },
		{ "cuStreamSynchronize", true },
		{ "cuStreamCreateWithPriority", true },
		{ "cuMemcpyHtoD_v2", true },
		{ "cuMemcpyHtoDAsync_v2", true },
		{ "cuMemcpyDtoHAsync_v2", true },
		{ "cuCtxSynchronize", true },
		{ "cuDevicePrimaryCtxRetain", true },
		{ "cuCtxSetCurrent", true },
		{ "cuMemGetInfo_v2", true },
		{ "cuDeviceGetUuid_v2", true },
		{ "cuDeviceGetAttribute", true },
		{ "cuDeviceGetName", false },
		{ "cuDeviceTotalMem_v2", false },
		{ "cuDriverGetVersion", false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char fault[64];

		snprintf(fault, sizeof fault, "%s:1=2", cases[i].call);
		server_start_env(&server, NULL, "OUTBOARD_FAULT", fault);
		if (use_everything() != cases[i].served) {
			fprintf(stderr, "%s\n", cases[i].call);
			exit(1);
		}
		end();
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
