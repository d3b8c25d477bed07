/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_cache and the copies that obc_transfer makes through it, against a model of a server that
 * stores chunks, loses some of them between its answer and their use, and at times reports an
 * earlier call's failure. What arrives is what was sent, whatever the server loses.
 */
#include "client-shim/session/background.h"
#include "client-shim/session/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "client-shim/session/control.h"
#include "client-shim/session/log.h"
#include "client-shim/session/transfer.h"
#include "protocol/obc_calls.h"
#include "transport/tree.h"
#include "tests/test.h"

#define BASE     0x200000000000ull
#define BYTES    (66u << 20)
#define KEPT_MAX 1024u

static struct {
	uint8_t names[KEPT_MAX][32];
	uint8_t *data[KEPT_MAX];
	size_t sizes[KEPT_MAX];
	unsigned n;
} kept;
static uint8_t *device, *host;
static struct {
	uint8_t names[OBP_CACHE_ASK_MAX][32];
	uint64_t have[4], lost[4];
	uint32_t n;
} asked;
static size_t sent, forget_every, used;
static unsigned questions;
static double link_rate; /* bytes/s; 0: at once */
static uint64_t clock_ns;
static CUresult earlier;

/* Time is what sending takes, and a bit for everything else: 4 MiB are named at 2 GB/s. */
uint64_t __wrap_ob_clock_ns(void);
uint64_t __wrap_ob_clock_ns(void)
{
	return clock_ns += 2000000;
}

static int find(const uint8_t *name)
{
	for (unsigned i = 0; i < kept.n; i++)
		if (memcmp(kept.names[i], name, 32) == 0)
			return (int)i;
	return -1;
}

CUresult obc_call_op_cache_ask(
	uint32_t n, const void *names, uint64_t ret_have[4], uint64_t ret_lost[4])
{
	CUresult result = earlier;

	memcpy(ret_lost, asked.lost, sizeof asked.lost);
	memset(&asked, 0, sizeof asked);
	memcpy(asked.names, names, 32 * n);
	asked.n = n;
	for (uint32_t i = 0; i < n; i++)
		if (find(asked.names[i]) >= 0)
			asked.have[i / 64] |= 1ull << i % 64;
	memcpy(ret_have, asked.have, sizeof asked.have);
	questions++;
	earlier = CUDA_SUCCESS;
	return result;
}

CUresult obc_call_op_write_cached(uint64_t dst, uint64_t size, uint64_t stream, uint32_t index)
{
	(void)stream;
	CHECK(size <= OBP_CHUNK_MAX);
	for (uint64_t at = 0; at < size; at += OBP_CACHE_CHUNK, index++) {
		int found = find(asked.names[index]);
		uint64_t n = size - at < OBP_CACHE_CHUNK ? size - at : OBP_CACHE_CHUNK;

		CHECK(index < asked.n && asked.have[index / 64] >> index % 64 & 1 && found >= 0);
		CHECK_INT(kept.sizes[found], n);
		if (forget_every && ++used % forget_every == 0)
			asked.lost[index / 64] |= 1ull << index % 64;
		else
			memcpy(device + (dst - BASE) + at, kept.data[found], n);
	}
	return CUDA_SUCCESS;
}

CUresult obc_call_op_write(uint64_t dst, uint64_t size, uint64_t stream, const void *data)
{
	(void)stream;
	memcpy(device + (dst - BASE), data, size);
	sent += size;
	clock_ns += link_rate > 0 ? (uint64_t)((double)size * 1e9 / link_rate) : 0;
	return CUDA_SUCCESS;
}

CUresult obc_call_op_write_kept(
	uint64_t dst, uint64_t size, uint64_t stream, const uint8_t name[32], const void *data)
{
	uint8_t right[32];

	CHECK(size <= OBP_CACHE_CHUNK && size >= OBC_CACHE_CHUNK_MIN);
	obt_tree_digest(data, size, right);
	CHECK_MEM(right, name, 32);
	if (find(name) < 0 && kept.n < KEPT_MAX) {
		memcpy(kept.names[kept.n], name, 32);
		kept.data[kept.n] = malloc(size);
		memcpy(kept.data[kept.n], data, size);
		kept.sizes[kept.n++] = size;
	}
	return obc_call_op_write(dst, size, stream, data);
}

/* Not by reference, and no stripes. */
CUresult obc_log_write_inline(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size)
{
	const struct obp_write_req *req = head;

	CHECK_INT(opcode, OBP_OP_WRITE);
	CHECK_INT(head_size, sizeof *req);
	CHECK_INT(req->size, size);
	return obc_call_op_write(req->dst, size, req->stream, data);
}

bool obc_background_pending(void)
{
	return false;
}

CUresult obc_log_write_byref(uint16_t opcode, const void *head, uint32_t head_size,
	const void *data, size_t size, obc_settle *settle, void *user)
{
	(void)settle;
	(void)user;
	CHECK(false); /* not by reference in this test */
	return obc_log_write_inline(opcode, head, head_size, data, size);
}

size_t obc_log_byref_min(bool waits)
{
	(void)waits;
	return SIZE_MAX;
}

CUresult obc_log_read(uint16_t opcode, const void *req, uint32_t req_size, void *dst, size_t size)
{
	(void)opcode;
	(void)req;
	(void)req_size;
	(void)dst;
	(void)size;
	CHECK(false); /* not by reference in this test */
	return CUDA_ERROR_UNKNOWN;
}

_Thread_local volatile unsigned obc_inside;
uint64_t obc_stripe_min_first = UINT64_MAX;

bool obc_stripe_enter(enum obc_direction direction, struct obc_stripe_view *ret)
{
	(void)direction;
	(void)ret;
	return false;
}

void obc_stripe_leave(void)
{
}

CUresult obc_stripe_carry(enum obc_direction direction, uint64_t addr, void *data, uint64_t size,
	uint64_t stream, bool *ret_complete)
{
	(void)direction;
	(void)addr;
	(void)data;
	(void)size;
	(void)stream;
	(void)ret_complete;
	CHECK(false); /* not by reference in this test */
	return CUDA_ERROR_UNKNOWN;
}

bool obc_stripe_ready(void)
{
	return false;
}

void obc_stripe_count(enum obc_direction direction, uint64_t size, bool complete)
{
	(void)direction;
	(void)size;
	(void)complete;
}

void obc_stripe_learn(enum obc_direction direction, enum obc_way way, uint64_t size, uint64_t ns)
{
	(void)direction;
	(void)way;
	(void)size;
	(void)ns;
}

CUresult obc_log_error(void)
{
	return CUDA_SUCCESS;
}

bool obc_log_path_local(void)
{
	return false;
}

void obc_control_quality(struct obp_quality *ret)
{
	*ret = (struct obp_quality){ 0 };
}

/* ---- whether it pays ---- */

TEST(when_asking_pays)
{
	const struct obc_cache_view slow = {
		.capacity = 1ull << 30, .link = 100e6, .naming = 2e9, .rtt_s = 1e-4
	};
	struct obc_cache_view v = slow;

	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_ASK);
	CHECK_INT(obc_cache_pays(&v, OBC_CACHE_COPY_MIN - 1), OBC_CACHE_PLAIN);
	v.capacity = 0;
	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_PLAIN);
	v = slow, v.link = 1.25e9; /* faster than names can be made */
	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_PLAIN);
	v.forced = true;
	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_ASK);
	v = slow, v.rtt_s = 0.01; /* a MiB takes 10 ms to send, asking as long */
	CHECK_INT(obc_cache_pays(&v, 1 << 20), OBC_CACHE_PLAIN);
	CHECK_INT(obc_cache_pays(&v, 8 << 20), OBC_CACHE_ASK);
	/* Nothing was ever there, and what is sent now would throw away what was sent first. */
	v = slow, v.stored = v.misses = 1ull << 30;
	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_PLAIN);
	v.hits = 400 << 20;
	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_ASK);
	/* The rate is not known: it is looked at after a while. */
	v = slow, v.link = 0;
	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_ASK);
	v.unmeasured = OBC_CACHE_BLIND;
	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_MEASURE);
	v = slow, v.unmeasured = OBC_CACHE_STALE - 1;
	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_ASK);
	v.unmeasured++;
	CHECK_INT(obc_cache_pays(&v, 64 << 20), OBC_CACHE_MEASURE);
}

/* ---- copies ---- */

static void begin(const char *how)
{
	obc_cache_forget();
	if (how)
		setenv("OUTBOARD_CACHE", how, 1);
	else
		unsetenv("OUTBOARD_CACHE");
	obc_cache_offered(1ull << 30);
	sent = used = forget_every = 0;
	questions = 0;
}

static CUresult copy(size_t at, size_t size)
{
	CUresult result;

	memset(device, 0xee, BYTES);
	result = obc_transfer_write(BASE + at, host + at, size, 0, NULL, NULL);
	CHECK_MEM(device + at, host + at, size);
	CHECK(at == 0 || device[at - 1] == 0xee);
	CHECK(at + size == BYTES || device[at + size] == 0xee);
	return result;
}

TEST(what_is_there_is_not_sent)
{
	const size_t size = (40u << 20) + 5000; /* several questions and a tail too small to keep */
	struct obc_cache_stats stats;

	begin("on");
	CHECK_INT(copy(3, size), CUDA_SUCCESS);
	CHECK_INT(sent, size);
	begin("on");
	CHECK_INT(copy(3, size), CUDA_SUCCESS);
	CHECK_INT(sent, 5000);
	obc_cache_stats(&stats);
	CHECK_INT(stats.bytes_saved, 40u << 20);
	CHECK_INT(stats.hits, 160);
	/* Some of it is forgotten between the answer and the use, in the middle and at the end. */
	for (size_t every = 1; every < 8; every += 3) {
		begin("on");
		forget_every = every;
		CHECK_INT(copy(3, size), CUDA_SUCCESS);
		obc_cache_stats(&stats);
		CHECK_INT(stats.lost, 160 / every);
		CHECK_INT(sent, 5000 + stats.lost * OBP_CACHE_CHUNK);
		CHECK_INT(stats.bytes_saved + sent, size);
	}
}

TEST(an_earlier_failure_is_told_and_the_copy_is_made)
{
	begin("on");
	earlier = CUDA_ERROR_INVALID_HANDLE;
	CHECK_INT(copy(3, 8 << 20), CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(copy(3, 8 << 20), CUDA_SUCCESS);
}

TEST(ways)
{
	unsigned n;

	begin("off");
	copy(3, 8 << 20);
	CHECK_INT(questions, 0);
	begin(NULL);
	/* A slow link: everything is named, and what was kept is not sent. */
	link_rate = 100e6;
	copy(1000, 32 << 20);
	CHECK(questions == 4 && sent == 32 << 20);
	begin(NULL);
	copy(1000, 32 << 20);
	CHECK_INT(sent, 0);
	/* A fast one: after the first chunks it is looked at, and the rest is sent as ever. */
	begin(NULL);
	link_rate = 10e9;
	copy(2000, 32 << 20);
	CHECK(questions == 4 && sent == 32 << 20);
	copy(3000, 32 << 20);
	CHECK_INT(questions, 4);
	/* It has become slow: that is seen the next time it is looked at. */
	link_rate = 50e6;
	for (n = 0; n < 100 && questions == 4; n++)
		copy(0, 64 << 20);
	CHECK_RANGE(n, 29, 33);
	begin(NULL);
	copy(0, 64 << 20);
	CHECK(sent < 8 << 20);
	begin("on");
	ob_opt_set(OB_OPT_CACHE, false);
	obc_cache_offered(1ull << 30);
	copy(3, 8 << 20);
	ob_opt_set(OB_OPT_CACHE, true);
	CHECK_INT(questions, 0);
}

TEST(an_earlier_session_is_continued)
{
	struct obt_link_memory fast = { .cache_link = 10000000000, .cache_naming = 1000000000 },
			       learned = { 0 };
	size_t all = 0;

	/* A fast link: nothing is named, */
	begin(NULL);
	link_rate = 10e9;
	obc_cache_recall(&fast);
	copy(0, 60 << 20);
	CHECK(questions == 0 && sent == 60 << 20);
	obc_cache_learned(&learned);
	CHECK(learned.cache_link == 0 && learned.cache_naming == 0);
	/* and the first copy after 64 MiB looks at the link. */
	copy(0, 60 << 20);
	CHECK_INT(questions, 0);
	copy(0, 60 << 20);
	CHECK_INT(questions, 2);
	obc_cache_learned(&learned);
	CHECK(learned.cache_link > 1000000000);
	/* The rate of the data connection does as well. */
	begin(NULL);
	link_rate = 10e9;
	obc_cache_recall(&(struct obt_link_memory){ .rate_out = 10000000000 });
	copy(0, 60 << 20);
	CHECK_INT(questions, 0);
	begin(NULL);
	obc_cache_recall(&(struct obt_link_memory){ .rate_out = 12500000 });
	copy(0, 8 << 20);
	CHECK(questions > 0);
	/* A link that has become slow: the next copies are named. */
	begin(NULL);
	link_rate = 50e6;
	obc_cache_recall(&fast);
	for (all = 0; questions == 0 && all < 1 << 30; all += 32 << 20)
		copy(0, 32 << 20);
	CHECK(all <= 128 << 20);
}

int main(int argc, char **argv)
{
	uint64_t x = 1;

	if (getenv("OUTBOARD_OPT"))
		setenv("OUTBOARD_OPT", "cache", 1); /* what is tested is on, whatever else is off */
	device = malloc(BYTES);
	host = malloc(BYTES);
	for (size_t i = 0; i < BYTES / 8; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		memcpy(host + 8 * i, &x, sizeof x);
	}
	return test_main(argc, argv);
}
