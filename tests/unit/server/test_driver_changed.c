/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Launches whose parameters are kept by the session (op launch_changed). */
#include "tests/unit/server/driver_session.h"
#include "transport/digest.h"

#define MODULE   0x0300000000000001ull
#define FUNCTION 0x0400000000000002ull
#define BROKEN   0x0300000000000003ull
#define FAILED   0x0400000000000004ull

static void load(const char *text, uint64_t module, uint64_t function)
{
	uint8_t body[sizeof(struct obp_module_load_req) + 64] = { 0 };
	uint8_t get[sizeof(struct obp_func_get_req) + 8] = { 0 };
	struct obp_module_load_req *req = (struct obp_module_load_req *)body;

	req->mod = module;
	req->size = (uint32_t)strlen(text);
	obt_digest_sha256(text, strlen(text), req->sha256);
	memcpy(body + sizeof *req, text, strlen(text));
	peer_call(&peer, 0, OBP_OP_MODULE_LOAD, body, sizeof *req + strlen(text));
	*(struct obp_func_get_req *)get = (struct obp_func_get_req){
		.func = function, .mod = module, .name_size = sizeof "kernel"
	};
	strcpy((char *)get + sizeof(struct obp_func_get_req), "kernel");
	peer_call(
		&peer, 0, OBP_OP_FUNC_GET, get, sizeof(struct obp_func_get_req) + sizeof "kernel");
}

struct changed {
	struct obp_launch_changed_req req;
	uint64_t words[8];
};

static uint64_t run(uint64_t first, uint64_t count)
{
	return first | count << 32;
}

static uint64_t word(const char text[8])
{
	uint64_t word;

	memcpy(&word, text, sizeof word);
	return word;
}

static struct changed changed(uint64_t func, uint32_t kept, uint32_t bytes, uint32_t n_words)
{
	return (struct changed){ .req = { .func = func,
					 .grid = { 1, 1, 1 },
					 .block = { 1, 1, 1 },
					 .kept = kept,
					 .param_bytes = bytes,
					 .n_words = n_words } };
}

static void send(const struct changed *body)
{
	peer_call(&peer, 0, OBP_OP_LAUNCH_CHANGED, body,
		sizeof body->req + body->req.n_words * sizeof body->words[0]);
}

/* What the fake driver's kernel prints of its parameters. */
static void printed(uint32_t bytes, const char *params)
{
	struct obp_stream_synchronize_req synchronize = { 0 };
	const struct obp_reply *reply;
	char text[256];

	snprintf(text, sizeof text, "grid 1 1 1 block 1 1 1 shared 0 params %u: %s\n", bytes,
		params);
	peer_call(&peer, 0, OBP_OP_STREAM_SYNCHRONIZE, &synchronize, sizeof synchronize);
	reply = peer_reply(&peer);
	CHECK_INT(reply->flags, OBP_REPLY_TEXT);
	CHECK_INT(reply->body, strlen(text));
	CHECK(memcmp(peer.item.body, text, strlen(text)) == 0);
	CHECK_INT(peer_reply(&peer)->flags, OBP_REPLY_TEXT | OBP_REPLY_TEXT_STDERR);
	CHECK_INT(peer_reply(&peer)->flags, 0);
}

TEST(a_block_keeps_what_is_not_changed)
{
	struct changed body = changed(FUNCTION, 0, 24, 4);

	driver_begin();
	load("a module with vprintf inside", MODULE, FUNCTION);
	body.words[0] = run(0, 3);
	body.words[1] = word("abcdefgh");
	body.words[2] = word("ijklmnop");
	body.words[3] = word("qrstuvwx");
	send(&body);
	printed(24, "abcdefghijklmnopqrstuvwx");
	body = changed(FUNCTION, 0, 24, 2);
	body.words[0] = run(1, 1);
	body.words[1] = word("IJKLMNOP");
	send(&body);
	printed(24, "abcdefghIJKLMNOPqrstuvwx");
	/* another block, whose words are zeros at first; a run of no words at its very end */
	body = changed(FUNCTION, OBP_LAUNCH_KEPT_LAST, 24, 3);
	body.words[0] = run(0, 1);
	body.words[1] = word("ABCDEFGH");
	body.words[2] = run(OBP_PARAM_BYTES_MAX / 8, 0);
	send(&body);
	printed(24, "ABCDEFGH");
	body = changed(FUNCTION, 0, 20, 0);
	send(&body);
	printed(20, "abcdefghIJKLMNOPqrst");
	driver_end();
}

TEST(a_launch_that_fails_changes_its_block)
{
	struct changed body = changed(FAILED, 5, 8, 2);

	driver_begin();
	load("a broken module", BROKEN, FAILED);
	load("a module with vprintf inside", MODULE, FUNCTION);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_PTX);
	body.words[0] = run(0, 1);
	body.words[1] = word("abcdefgh");
	send(&body);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_HANDLE);
	body = changed(FUNCTION, 5, 8, 0);
	send(&body);
	printed(8, "abcdefgh");
	driver_end();
}

/* The first launch waits for an upload. One of a thread beyond --max-lanes must not overtake it. */
TEST(changes_of_a_refused_thread_keep_their_order)
{
	const char *driver = getenv("OUTBOARD_FAKE_DRIVER");
	const struct obp_upload_begin_req upload = { .upload = 9 };
	struct obp_mem_alloc_plain_req alloc = { .size = 4096 };
	struct changed body = changed(FUNCTION, 0, 8, 2);
	struct {
		struct obp_upload_part_req req;
		uint64_t data;
	} part = { .req = { .upload = 9, .size = 8, .last = 1 } };

	if (!driver)
		TEST_SKIP("OUTBOARD_FAKE_DRIVER names no driver");
	server_start(&server,
		(const char *const[]){
			"--driver", driver, "--warm", "0", "--max-lanes", "1", NULL });
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	load("a module with vprintf inside", MODULE, FUNCTION);
	peer_call(&peer, 0, OBP_OP_MEM_ALLOC_PLAIN, &alloc, sizeof alloc);
	CHECK_INT(peer_reply(&peer)->result, CUDA_SUCCESS);
	part.req.dst = ((const struct obp_mem_alloc_plain_rep *)peer.item.body)->addr;
	peer_call(&peer, 0, OBP_OP_UPLOAD_BEGIN, &upload, sizeof upload);
	body.words[0] = run(0, 1);
	body.words[1] = word("abcdefgh");
	send(&body);
	body.words[1] = word("ABCDEFGH");
	peer_call(&peer, 1, OBP_OP_LAUNCH_CHANGED, &body, sizeof body.req + 16);
	peer_call(&peer, OBP_TRANSFER_LANE, OBP_OP_UPLOAD_PART, &part, sizeof part);
	CHECK_INT(peer_reply(&peer)->result, CUDA_SUCCESS);
	printed(8, "abcdefgh");
	body = changed(FUNCTION, 0, 8, 0);
	send(&body);
	printed(8, "ABCDEFGH");
	driver_end();
}

static void refused(struct changed body, size_t size)
{
	driver_begin();
	load("a module with vprintf inside", MODULE, FUNCTION);
	peer_call_fatal(&peer, OBP_OP_LAUNCH_CHANGED, &body, size);
	driver_end();
}

/* Changes with these first two words. */
static void refused_run(uint64_t first_word, uint64_t second_word)
{
	struct changed body = changed(FUNCTION, 0, 8, 2);

	body.words[0] = first_word;
	body.words[1] = second_word;
	refused(body, sizeof body.req + 2 * sizeof body.words[0]);
}

TEST(malformed_changes)
{
	const uint64_t words = OBP_PARAM_BYTES_MAX / 8;

	refused_run(run(0, 2), 0);
	refused_run(run(0, UINT32_MAX), 0);
	refused_run(run(words, 1), 0);
	refused_run(run(UINT32_MAX, 1), 0);
	refused_run(run(0, 0), run(words + 1, 0));
	refused_run(run(0, 0), run(0, 1));
}

TEST(blocks_and_sizes_that_do_not_exist)
{
	refused(changed(FUNCTION, OBP_LAUNCH_KEPT, 8, 0), sizeof(struct obp_launch_changed_req));
	refused(changed(FUNCTION, 0, OBP_PARAM_BYTES_MAX + 1, 0),
		sizeof(struct obp_launch_changed_req));
	refused(changed(FUNCTION, 0, 8, 4), sizeof(struct changed) - 5 * sizeof(uint64_t));
	refused(changed(FUNCTION, 0, 8, UINT32_MAX), sizeof(struct changed));
	refused(changed(FUNCTION, 0, 8, OBP_CHANGES_MAX + 1), sizeof(struct changed));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
