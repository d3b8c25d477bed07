/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arrays, textures and surfaces of a client that tells the server anything: sizes, ids and positions
 * that are wrong are refused before the driver sees them, memory is charged, and nothing outlives
 * its array.
 */
#include "tests/unit/server/peer.h"

#define ARRAY   0x2000000000000001ull
#define PART    0x2000000000000002ull
#define TEXTURE 0x2100000000000001ull
#define MIB     (1ull << 20)

static struct server server;
static struct peer peer;

static const struct obp_array_create_req usual = { .array = ARRAY,
	.width = 8,
	.height = 4,
	.depth = 2,
	.format = 3,
	.channels = 4 }; /* rows of 128 bytes */

/* Returns where the session's memory begins; 0: at other addresses than this client proposes. */
static uint64_t begin(void)
{
	static const char *const options[] = { "--driver", "soft", "--max-memory", "64MiB", NULL };

	server_start(&server, options);
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	return peer.got.welcome.range_ok ? peer.got.welcome.range.base : 0;
}

static void end(void)
{
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

static unsigned create(struct obp_array_create_req req)
{
	peer_call(&peer, 0, OBP_OP_ARRAY_CREATE, &req, sizeof req);
	return peer_reply(&peer)->result;
}

static void destroy(uint64_t id)
{
	const struct obp_array_destroy_req req = { .array = id };

	peer_call(&peer, 0, OBP_OP_ARRAY_DESTROY, &req, sizeof req);
}

TEST(sizes)
{
	struct obp_array_create_req req = usual;

	begin();
	req.width = 0;
	CHECK_INT(create(req), CUDA_ERROR_INVALID_VALUE);
	req = usual;
	req.format = 0xffffffff;
	CHECK_INT(create(req), CUDA_ERROR_INVALID_VALUE);
	req = usual;
	req.width = req.height = req.depth = OBP_ARRAY_ROWS_MAX;
	CHECK_INT(create(req), CUDA_ERROR_INVALID_VALUE);
	req.width = req.height = 4096;
	req.depth = 0;
	CHECK_INT(create(req), CUDA_ERROR_OUT_OF_MEMORY); /* 256 MiB */
	CHECK_INT(create(usual), 0);
	peer_call_fatal(&peer, OBP_OP_ARRAY_CREATE, &usual, sizeof usual); /* the id is in use */
	end();
	begin();
	req = usual;
	req.width = OBP_ARRAY_ROWS_MAX + 1ull;
	peer_call_fatal(&peer, OBP_OP_ARRAY_CREATE, &req, sizeof req);
	end();
	begin();
	req = usual;
	req.levels = OBP_ARRAY_LEVELS_MAX + 1;
	peer_call_fatal(&peer, OBP_OP_ARRAY_CREATE, &req, sizeof req);
	end();
}

/* The limit of the session: 64 MiB. */
TEST(memory_is_charged)
{
	struct obp_array_create_req req = {
		.width = 1024, .height = 1024, .format = 0x20, .channels = 4
	}; /* 16 MiB */
	unsigned n = 0;

	begin();
	for (uint64_t i = 1; i < 20; i++) {
		req.array = ARRAY + i;
		if (create(req) != 0)
			break;
		n++;
	}
	CHECK(n > 0 && n <= 4);
	/* as often again, after each was given back */
	for (uint64_t i = 1; i <= n; i++)
		destroy(ARRAY + i);
	for (uint64_t i = 1; i <= n; i++) {
		req.array = ARRAY + i;
		CHECK_INT(create(req), 0);
	}
	CHECK_INT(peer_ping(&peer, 0), 0);
	end();
}

/* 2048 layers of one byte take at least a block each. */
TEST(small_layers_are_charged)
{
	struct obp_array_create_req req = { .width = 1,
		.depth = 2048,
		.format = CU_AD_FORMAT_UNSIGNED_INT8,
		.channels = 1,
		.flags = CUDA_ARRAY3D_LAYERED };
	unsigned n = 0;

	begin();
	for (uint64_t i = 1; i <= 100; i++) {
		req.array = ARRAY + i;
		if (create(req) != 0)
			break;
		n++;
	}
	CHECK(n > 32 && n <= 64);
	end();
}

static unsigned read_box(struct obp_array_read_req req)
{
	const struct obp_reply *reply;

	peer_call(&peer, 0, OBP_OP_ARRAY_READ, &req, sizeof req);
	reply = peer_reply(&peer);
	CHECK(reply->result != 0 || reply->body == req.width * req.height * req.depth);
	return reply->result;
}

/* The error of a write without data bytes beyond the record, as the next reply reports it. */
static unsigned write_box(struct obp_array_write_req req)
{
	uint8_t body[sizeof req + 4096] = { 0 };
	size_t bytes = req.width * req.height * req.depth;

	CHECK(bytes <= 4096);
	memcpy(body, &req, sizeof req);
	peer_call(&peer, 0, OBP_OP_ARRAY_WRITE, body, sizeof req + bytes);
	return peer_ping(&peer, 0);
}

TEST(positions)
{
	const struct obp_array_read_req whole = {
		.array = ARRAY, .width = 128, .height = 4, .depth = 2
	};
	const struct obp_array_write_req row = {
		.array = ARRAY, .pos = { 64, 3, 1 }, .width = 64, .height = 1, .depth = 1
	};
	struct obp_array_read_req req = whole;
	struct obp_array_write_req out = row;

	begin();
	CHECK_INT(create(usual), 0);
	CHECK_INT(read_box(whole), 0);
	req.width = 129;
	CHECK_INT(read_box(req), CUDA_ERROR_INVALID_VALUE);
	req = whole;
	req.height = 5;
	CHECK_INT(read_box(req), CUDA_ERROR_INVALID_VALUE);
	req = whole;
	req.pos[2] = UINT64_MAX;
	CHECK_INT(read_box(req), CUDA_ERROR_INVALID_VALUE);
	req = whole;
	req.pos[0] = 1;
	CHECK_INT(read_box(req), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(write_box(row), 0);
	out.pos[0] = 68;
	CHECK_INT(write_box(out), CUDA_ERROR_INVALID_VALUE);
	out = row;
	out.pos[1] = UINT64_MAX;
	CHECK_INT(write_box(out), CUDA_ERROR_INVALID_VALUE);
	out = row;
	out.depth = 2;
	CHECK_INT(write_box(out), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(read_box(whole), 0);
	req = whole;
	req.array = ARRAY + 5;
	peer_call_fatal(&peer, OBP_OP_ARRAY_READ, &req, sizeof req);
	end();
}

static unsigned copy(struct obp_array_copy_req req)
{
	peer_call(&peer, 0, OBP_OP_ARRAY_COPY, &req, sizeof req);
	return peer_ping(&peer, 0);
}

TEST(copies_within_the_device)
{
	const uint64_t base = begin();
	const struct obp_mem_alloc_req alloc = { .addr = base, .size = 4096 };
	const struct obp_array_copy_req usual_copy = { .dst = ARRAY,
		.addr = base,
		.pitch = 128,
		.slice = 512,
		.width = 128,
		.height = 4,
		.depth = 2 };
	struct obp_array_copy_req req = usual_copy;

	if (!base)
		TEST_SKIP("the server cannot reserve the proposed addresses");
	CHECK_INT(create(usual), 0);
	peer_call(&peer, 0, OBP_OP_MEM_ALLOC, &alloc, sizeof alloc);
	CHECK_INT(copy(usual_copy), 0);
	req.addr = 0x1000; /* in the server's own memory */
	CHECK_INT(copy(req), CUDA_ERROR_INVALID_VALUE);
	req = usual_copy;
	req.pitch = 0;
	CHECK_INT(copy(req), CUDA_ERROR_INVALID_VALUE);
	req = usual_copy;
	req.slice = 500; /* no multiple of the pitch */
	CHECK_INT(copy(req), CUDA_ERROR_INVALID_VALUE);
	req = usual_copy;
	req.slice = 1ull << 62;
	CHECK_INT(copy(req), CUDA_ERROR_INVALID_VALUE);
	req = usual_copy;
	req.dst_at[2] = 1;
	CHECK_INT(copy(req), CUDA_ERROR_INVALID_VALUE);
	req = usual_copy;
	req.dst = 0; /* no array at all */
	CHECK_INT(copy(req), CUDA_ERROR_INVALID_VALUE);
	req = usual_copy;
	req.src = ARRAY;
	CHECK_INT(copy(req), 0);
	end();
}

TEST(parts_end_with_their_array)
{
	struct obp_array_create_req mip = usual;
	struct obp_array_part_req part = { .part = PART, .array = ARRAY, .number = 1 };
	const struct obp_array_read_req level = {
		.array = PART, .width = 64, .height = 2, .depth = 1
	};
	struct obp_array_read_req whole = level;

	begin();
	mip.levels = 2;
	CHECK_INT(create(mip), 0);
	peer_call(&peer, 0, OBP_OP_ARRAY_PART, &part, sizeof part);
	CHECK_INT(read_box(level), 0);
	/* a mipmapped array is copied level by level */
	whole.array = ARRAY;
	CHECK_INT(read_box(whole), CUDA_ERROR_INVALID_VALUE);
	part = (struct obp_array_part_req){ .part = PART + 1, .array = ARRAY, .number = 2 };
	peer_call(&peer, 0, OBP_OP_ARRAY_PART, &part, sizeof part);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_VALUE);
	whole.array = PART + 1;
	CHECK_INT(read_box(whole), CUDA_ERROR_INVALID_HANDLE);
	destroy(ARRAY);
	destroy(ARRAY); /* may come twice: the context may have ended it */
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_call_fatal(&peer, OBP_OP_ARRAY_READ, &level, sizeof level);
	end();
}

static unsigned texture(struct obp_texture_create_req req)
{
	peer_call(&peer, 0, OBP_OP_TEXTURE_CREATE, &req, sizeof req);
	return peer_reply(&peer)->result;
}

TEST(textures)
{
	const uint64_t base = begin();
	const struct obp_mem_alloc_req alloc = { .addr = base, .size = 4096 };
	const struct obp_texture_create_req linear = { .texture = TEXTURE,
		.type = CU_RESOURCE_TYPE_LINEAR,
		.addr = base,
		.width = 4096,
		.format = 0x20,
		.channels = 1 };
	struct obp_texture_create_req req = linear;
	const struct obp_texture_destroy_req release = { .texture = TEXTURE };
	struct obp_surface_create_req surface = { .surface = TEXTURE, .array = ARRAY };

	if (!base)
		TEST_SKIP("the server cannot reserve the proposed addresses");
	CHECK_INT(create(usual), 0);
	peer_call(&peer, 0, OBP_OP_MEM_ALLOC, &alloc, sizeof alloc);
	req.addr = 0x10000; /* in the server's own memory */
	CHECK_INT(texture(req), CUDA_ERROR_INVALID_VALUE);
	req = linear;
	req.width = UINT64_MAX;
	CHECK_INT(texture(req), CUDA_ERROR_INVALID_VALUE);
	req = linear;
	req.type = 4;
	CHECK_INT(texture(req), CUDA_ERROR_INVALID_VALUE);
	req = linear;
	req.type = CU_RESOURCE_TYPE_PITCH2D;
	req.width = UINT64_MAX / 4;
	req.height = 2;
	req.pitch = 128;
	CHECK_INT(texture(req), CUDA_ERROR_INVALID_VALUE);
	req.width = 32;
	req.height = 1 << 19;
	req.pitch = 1ull << 45;
	CHECK_INT(texture(req), CUDA_ERROR_INVALID_VALUE);
	req = linear;
	req.type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	req.array = ARRAY; /* it is none */
	CHECK_INT(texture(req), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(texture(linear), 0);
	CHECK(((const struct obp_texture_create_rep *)peer.item.body)->value != 0);
	peer_call(&peer, 0, OBP_OP_SURFACE_CREATE, &surface, sizeof surface);
	CHECK_INT(peer_reply(&peer)->result, CUDA_SUCCESS);
	peer_call(&peer, 0, OBP_OP_TEXTURE_DESTROY, &release, sizeof release);
	peer_call(&peer, 0, OBP_OP_TEXTURE_DESTROY, &release, sizeof release);
	CHECK_INT(texture(linear), 0);
	peer_call_fatal(&peer, OBP_OP_TEXTURE_CREATE, &linear, sizeof linear);
	end();
}

int main(int argc, char **argv)
{
	test_needs("grant"); /* memory of the session that is there without a request */
	return test_main(argc, argv);
}
