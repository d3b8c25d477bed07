/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A session over a driver that blocks, prints and calls back (fake_driver.c). */
#include <glob.h>

#include "tests/unit/server/driver_session.h"
#include "transport/digest.h"

#define MODULE   0x0300000000000001ull
#define FUNCTION 0x0400000000000002ull

TEST(a_driver_without_vmm)
{
	struct obp_read_req read;
	struct obp_mem_free_req release;
	uint64_t addr;

	driver_begin();
	CHECK(!peer.got.welcome.vmm);
	addr = driver_alloc_plain(1000);
	driver_fill(0, addr, 1000);
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
	driver_end();
}

TEST(rows_there_and_back)
{
	enum { WIDTH = 7, HEIGHT = 5, DEPTH = 3, PITCH = 16, SLICE = PITCH * 6 };
	uint64_t addr;
	uint8_t body[sizeof(struct obp_write_rows_req) + WIDTH * HEIGHT * DEPTH];
	struct obp_read_rows_req read;

	driver_begin();
	addr = driver_alloc_plain(SLICE * DEPTH);
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
	driver_end();
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

	driver_begin();
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
	driver_end();
}

TEST(a_module_that_does_not_load)
{
	uint8_t body[sizeof(struct obp_launch_req)] = { 0 };

	driver_begin();
	load("a broken module", MODULE);
	get_function(MODULE, FUNCTION, "kernel");
	*(struct obp_launch_req *)body = (struct obp_launch_req){
		.func = FUNCTION, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }
	};
	peer_call(&peer, 0, OBP_OP_LAUNCH, body, sizeof body);
	/* The first cause is reported, once. */
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_PTX);
	CHECK_INT(peer_ping(&peer, 0), 0);
	driver_end();
}

/*
 * The reply of a call that makes something tells of that alone: a client that took an earlier failure for
 * the call's own would use the id again.
 */
TEST(an_earlier_failure_leaves_what_is_made)
{
	static const char text[] = "a module";
	uint8_t body[sizeof(struct obp_module_load_now_req) + 16] = { 0 };
	struct obp_module_load_now_req *req = (struct obp_module_load_now_req *)body;
	const struct obp_reply *reply;

	driver_begin();
	load("a broken module", MODULE);
	req->mod = MODULE + 1;
	req->size = sizeof text - 1;
	obt_digest_sha256(text, req->size, req->sha256);
	memcpy(body + sizeof *req, text, req->size);
	peer_call(&peer, 0, OBP_OP_MODULE_LOAD_NOW, body, sizeof *req + req->size);
	reply = peer_reply(&peer);
	CHECK_INT(reply->result, 0);
	CHECK_INT(reply->deferred, 0);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_PTX);
	driver_end();
}

/* The same of memory to map and of peers, whatever becomes of the call itself. */
TEST(an_earlier_failure_leaves_what_is_mapped)
{
	struct obp_cuMemCreate_req create = { .handle = MODULE + 1, .bytes = 2 << 20 };
	struct obp_peer_enable_req enable = { .peer = 1 };

	driver_begin();
	load("a broken module", MODULE);
	peer_call(&peer, 0, OBP_CALL_cuMemCreate, &create, sizeof create);
	CHECK_INT(peer_reply(&peer)->deferred, 0);
	peer_call(&peer, 0, OBP_OP_PEER_ENABLE, &enable, sizeof enable);
	CHECK_INT(peer_reply(&peer)->deferred, 0);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_PTX);
	driver_end();
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

	driver_begin();
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
	driver_end();
}

TEST(a_checked_load_shows_the_compilers_words)
{
	uint8_t body[sizeof(struct obp_module_load_checked_req)] = { 0 };
	struct obp_module_load_checked_req *req = (struct obp_module_load_checked_req *)body;
	const struct obp_module_load_checked_rep *rep;

	driver_begin();
	req->mod = MODULE;
	req->error_cap = 100;
	put_image("broken text", req->sha256);
	peer_call(&peer, 0, OBP_OP_MODULE_LOAD_CHECKED, body, sizeof body);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_PTX);
	rep = (const void *)peer.item.body;
	CHECK_INT(rep->info_log_size, 0);
	CHECK_STR((const char *)(rep + 1), "line 1: broken");
	driver_end();
}

TEST(an_image_with_a_hole_or_a_wrong_hash)
{
	uint8_t body[sizeof(struct obp_image_put_req) + 16] = { 0 };
	struct obp_image_put_req *req = (struct obp_image_put_req *)body;

	driver_begin();
	*req = (struct obp_image_put_req){ .total = 16, .size = 8, .offset = 8 };
	peer_call_fatal(&peer, OBP_OP_IMAGE_PUT, body, sizeof *req + 8);
	driver_end();
	driver_begin();
	*req = (struct obp_image_put_req){ .total = 16, .size = 16 };
	peer_call_fatal(&peer, OBP_OP_IMAGE_PUT, body, sizeof *req + 16);
	driver_end();
}

TEST(a_host_function_is_asked_for_and_waited_for)
{
	struct obp_message *message = calloc(1, sizeof *message);
	struct obp_host_func_req req = { .callback = 99 };
	struct peer control;

	driver_begin();
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
	driver_end();
}

/* This driver has neither; the session goes on. */
TEST(green_contexts_and_peers_that_do_not_exist)
{
	struct obp_green_split_req split = { .least = OBP_GREEN_NO_SPLIT };
	struct obp_green_create_req create = { .green = 0x2900000000000001ull };
	struct obp_green_destroy_req destroy = { .green = create.green };
	struct obp_green_stream_req stream = { .stream = 0x0600000000000005ull,
		.green = create.green };
	struct obp_stream_query_req query = { .stream = stream.stream };
	struct obp_peer_enable_req enable = { .peer = 77 };
	struct obp_peer_disable_req disable = { .peer = 77 };
	struct obp_peer_query_req pair = { .device = 0, .peer = 0 };

	driver_begin();
	peer_call(&peer, 0, OBP_OP_GREEN_SPLIT, &split, sizeof split);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_NOT_SUPPORTED);
	split.base = create.green;
	peer_call(&peer, 0, OBP_OP_GREEN_SPLIT, &split, sizeof split);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	peer_call(&peer, 0, OBP_OP_GREEN_CREATE, &create, sizeof create);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_NOT_SUPPORTED);
	/* A stream of a green context that has ended: its id is known and names nothing. */
	peer_call(&peer, 0, OBP_OP_GREEN_STREAM, &stream, sizeof stream);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	peer_call(&peer, 0, OBP_OP_STREAM_QUERY, &query, sizeof query);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_HANDLE);
	peer_call(&peer, 0, OBP_OP_GREEN_DESTROY, &destroy, sizeof destroy);
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_call(&peer, 0, OBP_OP_PEER_ENABLE, &enable, sizeof enable);
	CHECK_INT(peer_reply(&peer)->result, CUDA_ERROR_INVALID_CONTEXT);
	peer_call(&peer, 0, OBP_OP_PEER_DISABLE, &disable, sizeof disable);
	CHECK_INT(peer_ping(&peer, 0), 0);
	/* A device is not its own peer. */
	peer_call(&peer, 0, OBP_OP_PEER_QUERY, &pair, sizeof pair);
	CHECK(peer_ended(&peer));
	driver_end();
}

int main(int argc, char **argv)
{
	test_needs("cache");
	return test_main(argc, argv);
}
