/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_transfer: which carrier is chosen in each case; and copies through carriers that are replaced
 * by the test, of which the stripes break: every byte is carried once, and a piece that did not
 * arrive is repeated over the log, with the rest of the copy.
 */
#include "client-shim/session/transfer.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "client-shim/session/background.h"
#include "client-shim/session/cache.h"
#include "client-shim/session/log.h"
#include "protocol/obc_calls.h"
#include "tests/test.h"

#define MIB (1ull << 20)

/* ---- the choice ---- */

static const struct obc_cache_view cache_slow = { .capacity = 1ull << 30,
	.link = 100e6,
	.naming = 2e9,
	.rtt_s = 1e-4 };
static const struct obc_cache_view cache_fast = { .capacity = 1ull << 30,
	.link = 10e9,
	.naming = 2e9,
	.rtt_s = 1e-4 };
static const struct obc_cache_view cache_stale = { .capacity = 1ull << 30,
	.link = 100e6,
	.naming = 2e9,
	.rtt_s = 1e-4,
	.unmeasured = OBC_CACHE_STALE };
static const struct obc_cache_view cache_forced = { .capacity = 1ull << 30,
	.link = 10e9,
	.naming = 2e9,
	.forced = true };
static const struct obc_cache_view cache_none = { .forced = true };

static const struct obc_choice choice_new = { 0 };
static const struct obc_choice choice_faster = { .rate = { 1e9, 3e9 },
	.samples = { 9, 9 },
	.best = OBC_STRIPES };
static const struct obc_choice choice_slower = { .rate = { 3e9, 1e9 },
	.samples = { 9, 9 },
	.best = OBC_LOG };
static const struct obc_stripe_view stripes_new = { .ready = true, .choice = &choice_new };
static const struct obc_stripe_view stripes_faster = { .ready = true, .choice = &choice_faster };
static const struct obc_stripe_view stripes_slower = { .ready = true, .choice = &choice_slower };
static const struct obc_stripe_view stripes_closed = { .choice = &choice_faster };
static const struct obc_stripe_view stripes_forced = { .ready = true,
	.forced = true,
	.choice = &choice_slower };
static const struct obc_stripe_view stripes_forced_closed = { .forced = true,
	.choice = &choice_faster };

TEST(choice)
{
	static const struct {
		struct obc_transfer_view view;
		enum obc_carrier carrier;
	} cases[] = {
		/* by size alone */
		{ { OBC_UPLOAD, 0, 8 * MIB, NULL, NULL }, OBC_CARRY_INLINE },
		{ { OBC_UPLOAD, 4, 8 * MIB, NULL, NULL }, OBC_CARRY_INLINE },
		{ { OBC_UPLOAD, 8 * MIB - 1, 8 * MIB, NULL, NULL }, OBC_CARRY_INLINE },
		{ { OBC_UPLOAD, 8 * MIB, 8 * MIB, NULL, NULL }, OBC_CARRY_BYREF },
		{ { OBC_UPLOAD, 256 << 10, 256 << 10, NULL, NULL }, OBC_CARRY_BYREF },
		/* sending by reference is switched off */
		{ { OBC_UPLOAD, 1ull << 40, UINT64_MAX, NULL, NULL }, OBC_CARRY_INLINE },
		/* a download has no bytes to refer to */
		{ { OBC_DOWNLOAD, 64 * MIB, 8 * MIB, NULL, NULL }, OBC_CARRY_INLINE },
		/* the cache: worth asking, not worth it, unknown, no capacity, copy too small */
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, &cache_slow, NULL }, OBC_CARRY_CACHED },
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, &cache_fast, NULL }, OBC_CARRY_BYREF },
		{ { OBC_UPLOAD, 4 * MIB, 8 * MIB, &cache_fast, NULL }, OBC_CARRY_INLINE },
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, &cache_stale, NULL }, OBC_CARRY_TIMED },
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, &cache_none, NULL }, OBC_CARRY_BYREF },
		{ { OBC_UPLOAD, MIB - 1, 8 * MIB, &cache_slow, NULL }, OBC_CARRY_INLINE },
		{ { OBC_UPLOAD, 64 << 10, 8 * MIB, &cache_forced, NULL }, OBC_CARRY_CACHED },
		{ { OBC_UPLOAD, 65535, 8 * MIB, &cache_forced, NULL }, OBC_CARRY_INLINE },
		{ { OBC_DOWNLOAD, 64 * MIB, 8 * MIB, &cache_forced, NULL }, OBC_CARRY_INLINE },
		/* the cache comes before the stripes */
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, &cache_slow, &stripes_forced },
			OBC_CARRY_CACHED },
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, &cache_fast, &stripes_forced },
			OBC_CARRY_STRIPED },
		/* stripes: measured, not measured, not open, required */
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, NULL, &stripes_new }, OBC_CARRY_BYREF },
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, NULL, &stripes_faster }, OBC_CARRY_STRIPED },
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, NULL, &stripes_slower }, OBC_CARRY_BYREF },
		{ { OBC_UPLOAD, 64 * MIB, 8 * MIB, NULL, &stripes_closed }, OBC_CARRY_BYREF },
		{ { OBC_UPLOAD, 4 * MIB, 8 * MIB, NULL, &stripes_closed }, OBC_CARRY_INLINE },
		{ { OBC_UPLOAD, 64, 8 * MIB, NULL, &stripes_forced }, OBC_CARRY_STRIPED },
		{ { OBC_UPLOAD, 64, 8 * MIB, NULL, &stripes_forced_closed }, OBC_CARRY_INLINE },
		{ { OBC_DOWNLOAD, 64 * MIB, 8 * MIB, NULL, &stripes_faster }, OBC_CARRY_STRIPED },
		{ { OBC_DOWNLOAD, 64 * MIB, 8 * MIB, NULL, &stripes_slower }, OBC_CARRY_INLINE },
		{ { OBC_DOWNLOAD, 64 * MIB, 8 * MIB, NULL, &stripes_forced_closed },
			OBC_CARRY_INLINE },
	};

	for (size_t i = 0; i < ob_count(cases); i++)
		if (obc_transfer_choose(&cases[i].view) != cases[i].carrier) {
			printf("case %zu\n", i);
			CHECK_INT(obc_transfer_choose(&cases[i].view), cases[i].carrier);
		}
}

/* ---- the carriers, replaced ---- */

#define BASE 0x200000000000ull

_Thread_local volatile unsigned obc_inside;
uint64_t obc_stripe_min_first, obc_cache_min_first = UINT64_MAX;
static const struct obc_stripe_view *stripes;
static struct obc_cache_view cache;
static uint64_t carried_cached, fast_after, timing, timed, passed;
static unsigned finished;
static uint64_t carried_inline, carried_byref, carried_striped, carried_read, repeated, next;
static unsigned pieces, break_at, held, learned[OBC_WAYS];
static CUresult stripe_result;
static const uint8_t *host;

static void take(uint64_t addr, const void *data, uint64_t size)
{
	CHECK_INT(addr, BASE + next);
	CHECK(data == host + next);
	next += size;
}

CUresult obc_log_write_inline(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size)
{
	const struct obp_write_req *req = head;

	CHECK_INT(opcode, OBP_OP_WRITE);
	CHECK_INT(head_size, sizeof *req);
	CHECK_INT(req->stream, 7);
	take(req->dst, data, size);
	carried_inline += size;
	return CUDA_SUCCESS;
}

bool obc_background_pending(void)
{
	return false;
}

CUresult obc_log_write_byref(uint16_t opcode, const void *head, uint32_t head_size,
	const void *data, size_t size, obc_settle *settle, void *user)
{
	CUresult result = obc_log_write_inline(opcode, head, head_size, data, size);

	carried_inline -= size;
	carried_byref += size;
	return settle ? settle(user) : result;
}

size_t obc_log_byref_min(bool waits)
{
	return waits ? MIB : 8 * MIB;
}

CUresult obc_log_read(uint16_t opcode, const void *head, uint32_t head_size, void *dst, size_t size)
{
	const struct obp_read_req *req = head;

	CHECK_INT(opcode, OBP_OP_READ);
	CHECK_INT(head_size, sizeof *req);
	CHECK_INT(req->stream, 7);
	take(req->src, dst, size);
	carried_read += size;
	return CUDA_SUCCESS;
}

bool obc_stripe_enter(enum obc_direction direction, struct obc_stripe_view *ret)
{
	(void)direction;
	if (!stripes)
		return false;
	held++;
	*ret = *stripes;
	return true;
}

void obc_stripe_leave(void)
{
	CHECK_INT(held, 1);
	held--;
}

CUresult obc_stripe_carry(enum obc_direction direction, uint64_t addr, void *data, uint64_t size,
	uint64_t stream, bool *ret_complete)
{
	(void)direction;
	CHECK_INT(held, 1);
	CHECK_INT(stream, 7);
	CHECK(size <= OBP_TRANSFER_MAX);
	*ret_complete = ++pieces != break_at && stripe_result == CUDA_SUCCESS;
	if (*ret_complete) {
		take(addr, data, size);
		carried_striped += size;
	}
	return stripe_result;
}

bool obc_stripe_ready(void)
{
	return true;
}

void obc_stripe_count(enum obc_direction direction, uint64_t size, bool complete)
{
	(void)direction;
	repeated += complete ? 0 : size;
}

void obc_stripe_learn(enum obc_direction direction, enum obc_way way, uint64_t size, uint64_t ns)
{
	(void)direction;
	(void)size;
	(void)ns;
	CHECK_INT(held, 1);
	learned[way]++;
}

const struct obc_cache_view *obc_cache_enter(void)
{
	CHECK_INT(held, 0);
	held++;
	return &cache;
}

void obc_cache_leave(void)
{
	CHECK_INT(held, 1);
	held--;
}

CUresult obc_cache_carry(
	uint64_t dst, const void *src, uint64_t left, uint64_t stream, uint64_t *ret_size)
{
	CHECK_INT(stream, 7);
	*ret_size = ob_min(left, 4 * MIB);
	take(dst, src, *ret_size);
	carried_cached += *ret_size;
	if (carried_cached == fast_after)
		cache.link = cache_fast.link;
	return CUDA_SUCCESS;
}

CUresult obc_cache_timing_begin(void)
{
	CHECK_INT(held, 1);
	timing = next;
	return CUDA_SUCCESS;
}

CUresult obc_cache_timing_end(uint64_t size)
{
	CHECK_INT(next - timing, size);
	timed += size;
	cache.unmeasured = 0;
	return CUDA_SUCCESS;
}

void obc_cache_passed(uint64_t size)
{
	passed += size;
}

CUresult obc_cache_finish(CUresult result)
{
	CHECK_INT(held, 1);
	finished++;
	return result;
}

/* ---- copies ---- */

static void begin(const struct obc_stripe_view *view, unsigned stripe_breaks)
{
	stripes = view;
	break_at = stripe_breaks;
	obc_stripe_min = MIB;
	obc_cache_min = UINT64_MAX;
	stripe_result = CUDA_SUCCESS;
	carried_inline = carried_byref = carried_striped = carried_read = repeated = next = 0;
	pieces = held = 0;
	memset(learned, 0, sizeof learned);
}

static void begin_cached(const struct obc_cache_view *view, const struct obc_stripe_view *also)
{
	begin(also, 0);
	obc_cache_min = MIB;
	cache = *view;
	carried_cached = fast_after = timing = timed = passed = finished = 0;
}

static CUresult copy_write(uint64_t size)
{
	return obc_transfer_write(BASE, host, size, 7, NULL, NULL);
}

static CUresult count_settle(void *user)
{
	++*(unsigned *)user;
	return CUDA_SUCCESS;
}

/* A call that waits for its copy sends from the caller's memory earlier, and waits once. */
TEST(a_call_that_waits)
{
	unsigned settled = 0;

	begin(NULL, 0);
	CHECK_INT(obc_transfer_write(BASE, host, MIB - 1, 7, count_settle, &settled), CUDA_SUCCESS);
	CHECK_INT(carried_inline, MIB - 1);
	CHECK_INT(settled, 0);
	begin(NULL, 0);
	CHECK_INT(obc_transfer_write(BASE, host, MIB, 7, count_settle, &settled), CUDA_SUCCESS);
	CHECK_INT(carried_byref, MIB);
	CHECK_INT(settled, 1);
	begin(NULL, 0);
	CHECK_INT(copy_write(MIB), CUDA_SUCCESS);
	CHECK_INT(carried_inline, MIB);
}

TEST(small_copies_use_the_log)
{
	begin(&stripes_forced, 0);
	CHECK_INT(copy_write(MIB - 1), CUDA_SUCCESS);
	CHECK_INT(carried_inline, MIB - 1);
	begin(&stripes_forced, 0);
	CHECK_INT(obc_transfer_read((void *)(uintptr_t)host, BASE, MIB - 1, 7), CUDA_SUCCESS);
	CHECK_INT(carried_read, MIB - 1);
	CHECK_INT(learned[OBC_LOG] + learned[OBC_STRIPES], 0);
}

/* Both ways of a copy that could use stripes are measured; one beside another copy is not. */
TEST(both_ways_are_measured)
{
	begin(&stripes_slower, 0);
	CHECK_INT(copy_write(9 * MIB), CUDA_SUCCESS);
	CHECK_INT(carried_byref, 9 * MIB);
	CHECK_INT(learned[OBC_LOG], 1);
	begin(&stripes_faster, 0);
	CHECK_INT(obc_transfer_read((void *)(uintptr_t)host, BASE, 9 * MIB, 7), CUDA_SUCCESS);
	CHECK_INT(carried_striped, 9 * MIB);
	CHECK_INT(learned[OBC_STRIPES], 1);
	begin(NULL, 0);
	CHECK_INT(copy_write(9 * MIB), CUDA_SUCCESS);
	CHECK_INT(carried_byref, 9 * MIB);
	CHECK_INT(learned[OBC_LOG] + learned[OBC_STRIPES], 0);
	CHECK_INT(held, 0);
}

TEST(broken_stripes_are_repeated)
{
	const uint64_t size = 3 * (uint64_t)OBP_TRANSFER_MAX + 5;

	for (unsigned at = 1; at <= 5; at++) {
		uint64_t good = ob_min((at - 1) * (uint64_t)OBP_TRANSFER_MAX, size);

		begin(&stripes_forced, at);
		CHECK_INT(copy_write(size), CUDA_SUCCESS);
		CHECK_INT(next, size);
		CHECK_INT(carried_striped, good);
		CHECK_INT(carried_byref + carried_inline, size - good);
		CHECK_INT(repeated, size - good);
		CHECK_INT(pieces, ob_min(at, 4u));
		begin(&stripes_forced, at);
		CHECK_INT(obc_transfer_read((void *)(uintptr_t)host, BASE, size, 7), CUDA_SUCCESS);
		CHECK_INT(carried_striped, good);
		CHECK_INT(carried_read, size - good);
	}
}

/* An error of the call itself is the copy's result; nothing is repeated or learned. */
TEST(errors_end_a_copy)
{
	begin(&stripes_forced, 0);
	stripe_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	CHECK_INT(copy_write(2 * (uint64_t)OBP_TRANSFER_MAX), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(pieces, 1);
	CHECK_INT(next, 0);
	CHECK_INT(learned[OBC_LOG] + learned[OBC_STRIPES], 0);
	CHECK_INT(held, 0);
}

/* Each piece is decided anew: timed, through the cache, and without it when that is faster. */
TEST(cached_copies)
{
	begin_cached(&cache_stale, &stripes_forced);
	fast_after = 12 * MIB;
	CHECK_INT(copy_write(64 * MIB), CUDA_SUCCESS);
	CHECK_INT(timed, OBC_CACHE_PROBE);
	CHECK_INT(carried_cached, 12 * MIB);
	CHECK_INT(passed, 64 * MIB - 12 * MIB - OBC_CACHE_PROBE);
	CHECK_INT(carried_byref, passed);
	CHECK_INT(next, 64 * MIB);
	CHECK_INT(finished, 1);
	CHECK_INT(pieces, 0);
}

/* The stripes carry what the cache does not; a download does not enter the cache. */
TEST(uncached_copies)
{
	begin_cached(&cache_fast, &stripes_forced);
	CHECK_INT(copy_write(64 * MIB), CUDA_SUCCESS);
	CHECK_INT(passed, 64 * MIB);
	CHECK_INT(carried_striped, 64 * MIB);
	CHECK_INT(finished, 0);
	begin_cached(&cache_slow, &stripes_forced);
	CHECK_INT(obc_transfer_read((void *)(uintptr_t)host, BASE, 64 * MIB, 7), CUDA_SUCCESS);
	CHECK_INT(carried_striped, 64 * MIB);
	CHECK_INT(passed, 0);
}

int main(int argc, char **argv)
{
	static uint8_t start;

	host = &start; /* never read: the carriers above look at addresses only */
	return test_main(argc, argv);
}
