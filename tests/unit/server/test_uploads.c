/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The upload cache over the wire: a later session finds what an earlier one uploaded, a lost entry
 * is reported, and clients' claims are checked.
 */
#include <glob.h>
#include <unistd.h>

#include "tests/unit/server/peer.h"
#include "transport/tree.h"

#define CHUNK (100u << 10)

static struct server server;
static struct peer peer;
static uint64_t addr;
static _Alignas(8) uint8_t body[sizeof(struct obp_write_kept_req) + CHUNK];
static struct obp_write_kept_req *const kept = (struct obp_write_kept_req *)body;

static void session(void)
{
	struct obp_mem_alloc_plain_req req = { .size = 1 << 20 };

	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	peer_call(&peer, 0, OBP_OP_MEM_ALLOC_PLAIN, &req, sizeof req);
	CHECK_INT(peer_reply(&peer)->result, 0);
	addr = ((const struct obp_mem_alloc_plain_rep *)peer.item.body)->addr;
}

static void begin(const char *size)
{
	const char *driver = getenv("OUTBOARD_FAKE_DRIVER");

	if (!driver)
		TEST_SKIP("OUTBOARD_FAKE_DRIVER names no driver");
	server_start(&server,
		(const char *const[]){
			"--driver", driver, "--warm", "0", "--upload-cache", size, NULL });
	session();
	memset(body + sizeof *kept, 0x42, CHUNK);
	*kept = (struct obp_write_kept_req){ .dst = addr, .size = CHUNK };
	obt_tree_digest(body + sizeof *kept, CHUNK, kept->name);
}

static void end(void)
{
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

static struct obp_cache_ask_rep ask(uint32_t n, uint32_t right)
{
	static _Alignas(8) uint8_t question[sizeof(struct obp_cache_ask_req) + OBP_CACHE_NAMES_MAX];
	struct obp_cache_ask_rep rep;

	memset(question, 0x11, sizeof question);
	*(struct obp_cache_ask_req *)question = (struct obp_cache_ask_req){ .n = n };
	if (right < n)
		memcpy(question + sizeof(struct obp_cache_ask_req) + 32 * right, kept->name, 32);
	peer_call(&peer, 0, OBP_OP_CACHE_ASK, question, sizeof(struct obp_cache_ask_req) + 32 * n);
	CHECK_INT(peer_reply(&peer)->result, 0);
	memcpy(&rep, peer.item.body, sizeof rep);
	return rep;
}

TEST(kept_for_the_next_session)
{
	struct obp_write_cached_req cached;
	struct obp_cache_ask_rep rep;

	begin("16MiB");
	CHECK_INT(peer.got.welcome.cache, 16 << 20);
	rep = ask(256, 200);
	CHECK(!(rep.have[0] | rep.have[1] | rep.have[2] | rep.have[3]));
	peer_call(&peer, 0, OBP_OP_WRITE_KEPT, body, sizeof body);
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_close(&peer);
	session();
	rep = ask(256, 200);
	CHECK(rep.have[3] == 1ull << (200 - 192) && !(rep.have[0] | rep.have[1] | rep.have[2]));
	cached = (struct obp_write_cached_req){ .dst = addr, .size = CHUNK, .index = 200 };
	peer_call(&peer, 0, OBP_OP_WRITE_CACHED, &cached, sizeof cached);
	CHECK_INT(peer_ping(&peer, 0), 0);
	cached.dst = 0x1000; /* does not belong to this session */
	peer_call(&peer, 0, OBP_OP_WRITE_CACHED, &cached, sizeof cached);
	CHECK_INT(peer_ping(&peer, 0), CUDA_ERROR_INVALID_VALUE);
	rep = ask(0, 0);
	CHECK(!rep.lost[3]);
	cached.dst = addr; /* the last query named nothing */
	peer_call_fatal(&peer, OBP_OP_WRITE_CACHED, &cached, sizeof cached);
	end();
}

TEST(lost_between_the_answer_and_the_use)
{
	struct obp_write_cached_req cached;
	struct obp_cache_ask_rep rep;
	char path[128];
	glob_t found;

	begin("16MiB");
	peer_call(&peer, 0, OBP_OP_WRITE_KEPT, body, sizeof body);
	rep = ask(70, 66);
	CHECK_INT(rep.have[1], 4);
	snprintf(path, sizeof path, "%s/*/c*", server.dir);
	CHECK_INT(glob(path, 0, NULL, &found), 0);
	CHECK_INT(found.gl_pathc, 1);
	CHECK_INT(unlink(found.gl_pathv[0]), 0);
	globfree(&found);
	cached = (struct obp_write_cached_req){ .dst = addr, .size = CHUNK, .index = 66 };
	peer_call(&peer, 0, OBP_OP_WRITE_CACHED, &cached, sizeof cached);
	CHECK_INT(peer_ping(&peer, 0), 0);
	rep = ask(70, 66);
	CHECK(rep.lost[1] == 4 && !rep.lost[0] && !rep.have[1]);
	rep = ask(0, 0);
	CHECK(!rep.lost[1]);
	end();
}

TEST(a_size_that_is_not_the_chunks)
{
	struct obp_write_cached_req cached;
	struct obp_cache_ask_rep rep;

	begin("16MiB");
	peer_call(&peer, 0, OBP_OP_WRITE_KEPT, body, sizeof body);
	rep = ask(1, 0);
	CHECK_INT(rep.have[0], 1);
	cached = (struct obp_write_cached_req){ .dst = addr, .size = CHUNK + 8 };
	peer_call(&peer, 0, OBP_OP_WRITE_CACHED, &cached, sizeof cached);
	rep = ask(0, 0);
	CHECK_INT(rep.lost[0], 1);
	cached.size = 0x40001; /* two chunks */
	rep = ask(1, 0);
	peer_call_fatal(&peer, OBP_OP_WRITE_CACHED, &cached, sizeof cached);
	end();
}

TEST(a_run_with_a_hole)
{
	struct obp_write_cached_req cached;
	struct obp_cache_ask_rep rep;

	/*
	 * The only cached chunk at two places: its size is wrong for a full chunk at the first
	 * place and right for the rest at the second.
	 */
	begin("16MiB");
	peer_call(&peer, 0, OBP_OP_WRITE_KEPT, body, sizeof body);
	static _Alignas(8) uint8_t question[sizeof(struct obp_cache_ask_req) + 64];
	*(struct obp_cache_ask_req *)question = (struct obp_cache_ask_req){ .n = 2 };
	memcpy(question + sizeof(struct obp_cache_ask_req), kept->name, 32);
	memcpy(question + sizeof(struct obp_cache_ask_req) + 32, kept->name, 32);
	peer_call(&peer, 0, OBP_OP_CACHE_ASK, question, sizeof question);
	CHECK_INT(peer_reply(&peer)->result, 0);
	cached = (struct obp_write_cached_req){ .dst = addr, .size = OBP_CACHE_CHUNK + CHUNK };
	peer_call(&peer, 0, OBP_OP_WRITE_CACHED, &cached, sizeof cached);
	CHECK_INT(peer_ping(&peer, 0), 0);
	rep = ask(0, 0);
	/* the file was removed as damaged, so the second place fails, too */
	CHECK(rep.lost[0] & 1);
	end();
}

TEST(a_name_that_is_not_the_datas)
{
	/*
	 * As when one thread of the program writes memory that another is copying: it is copied,
	 * but not cached.
	 */
	begin("16MiB");
	kept->name[5] ^= 1;
	peer_call(&peer, 0, OBP_OP_WRITE_KEPT, body, sizeof body);
	CHECK_INT(peer_ping(&peer, 0), 0);
	CHECK_INT(ask(1, 0).have[0], 0);
	kept->name[5] ^= 1;
	CHECK_INT(ask(1, 0).have[0], 0);
	end();
}

TEST(a_place_beyond_the_question)
{
	struct obp_write_cached_req cached = { .size = 8, .index = 256 };

	begin("16MiB");
	peer_call_fatal(&peer, OBP_OP_WRITE_CACHED, &cached, sizeof cached);
	end();
}

TEST(a_server_that_keeps_nothing)
{
	struct obp_cache_ask_rep rep;

	begin("0");
	CHECK_INT(peer.got.welcome.cache, 0);
	peer_call(&peer, 0, OBP_OP_WRITE_KEPT, body, sizeof body);
	rep = ask(1, 0);
	CHECK_INT(rep.have[0], 0);
	end();
}

int main(int argc, char **argv)
{
	test_needs("cache");
	return test_main(argc, argv);
}
