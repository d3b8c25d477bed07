/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_copy_box: boxes of every shape between host and "device" memory, where the wire below is
 * replaced by one that applies each record to an ordinary array. What arrives is compared byte by
 * byte with the copy's definition, and nothing beside the box may change.
 */
#include "client-shim/cuda/copy.h"

#include <stdlib.h>
#include <string.h>

#include "client-shim/cuda/context.h"
#include "client-shim/cuda/hostfunc.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/session/log.h"
#include "client-shim/session/background.h"
#include "client-shim/session/transfer.h"
#include "protocol/obc_calls.h"
#include "tests/test.h"

#define DEVICE_BASE  0x200000000000ull
#define DEVICE_BYTES (8u << 20)

static uint8_t device[DEVICE_BYTES];
static unsigned n_records, n_waits;
static bool pending, launched;
static struct obc_ctx home;
static struct obc_stream stream = { .base = { .blocking = true }, .home = &home };

static uint8_t *at_device(uint64_t addr, uint64_t size)
{
	if (addr < DEVICE_BASE || size > DEVICE_BYTES || addr - DEVICE_BASE > DEVICE_BYTES - size) {
		TEST_FAIL("outside the device: %#llx, %llu bytes", (unsigned long long)addr,
			(unsigned long long)size);
	}
	return device + (addr - DEVICE_BASE);
}

/* ---- the wire ---- */

static union {
	struct obp_copy_d2d_req d2d;
	uint8_t bytes[sizeof(struct obp_write_rows_req) + OBP_ROWS_MAX];
} record;

CUresult obc_transfer_write(
	uint64_t dst, const void *data, uint64_t size, uint64_t on, obc_settle *settle, void *user)
{
	(void)on;
	(void)settle;
	(void)user;
	n_records++;
	memcpy(at_device(dst, size), data, size);
	return CUDA_SUCCESS;
}

CUresult obc_transfer_read(void *ret_data, uint64_t src, uint64_t size, uint64_t on)
{
	(void)on;
	n_records++;
	memcpy(ret_data, at_device(src, size), size);
	return CUDA_SUCCESS;
}

/* Nothing is pinned. */
struct obf_place obf_mem_classify(uint64_t addr, uint64_t size, struct obf_mem *ret)
{
	(void)addr;
	(void)size;
	(void)ret;
	return (struct obf_place){ .kind = OBF_PLACE_HOST };
}

bool obc_background_write(
	uint64_t dst, const void *src, uint64_t size, uint64_t on, uint64_t *ret_number)
{
	(void)dst;
	(void)src;
	(void)size;
	(void)on;
	(void)ret_number;
	return false;
}

bool obc_background_read(void *dst, uint64_t src, uint64_t size, uint64_t on, uint64_t *ret_number)
{
	return obc_background_write(src, dst, size, on, ret_number);
}

void obc_background_wait(void)
{
}

bool obc_background_pending(void)
{
	return false;
}

bool obc_streams_idle(struct obf_ctx *ctx)
{
	(void)ctx;
	return true;
}

CUresult obc_call_op_read_rows(uint64_t src, uint64_t pitch, uint64_t slice, uint64_t width,
	uint64_t height, uint64_t depth, uint64_t on, void *ret_data)
{
	uint8_t *out = ret_data;

	(void)on;
	n_records++;
	for (uint64_t z = 0; z < depth; z++)
		for (uint64_t y = 0; y < height; y++, out += width)
			memcpy(out, at_device(src + z * slice + y * pitch, width), width);
	return CUDA_SUCCESS;
}

struct obp_write_rows_req *obc_begin_op_write_rows(
	struct obc_slot *slot, uint64_t width, uint64_t height, uint64_t depth, void **ret_data)
{
	struct obp_write_rows_req *req = (void *)record.bytes;

	CHECK(width * height * depth <= OBP_ROWS_MAX);
	*slot = (struct obc_slot){ .opcode = OBP_OP_WRITE_ROWS };
	*req = (struct obp_write_rows_req){ .width = width, .height = height, .depth = depth };
	*ret_data = req + 1;
	return req;
}

void *obc_log_begin(struct obc_slot *slot, uint16_t opcode, uint32_t body_size)
{
	CHECK(body_size <= sizeof record);
	*slot = (struct obc_slot){ .opcode = opcode };
	return &record;
}

CUresult obc_log_commit(struct obc_slot *slot)
{
	n_records++;
	if (slot->opcode == OBP_OP_WRITE_ROWS) {
		const struct obp_write_rows_req *req = (void *)record.bytes;
		const uint8_t *in = (const uint8_t *)(req + 1);

		for (uint64_t z = 0; z < req->depth; z++)
			for (uint64_t y = 0; y < req->height; y++, in += req->width)
				memcpy(at_device(req->dst + z * req->dst_slice + y * req->dst_pitch,
					       req->width),
					in, req->width);
	} else {
		const struct obp_copy_d2d_req *req = &record.d2d;

		for (uint64_t z = 0; z < req->depth; z++)
			for (uint64_t y = 0; y < req->height; y++)
				memcpy(at_device(req->dst + z * req->dst_slice + y * req->dst_pitch,
					       req->width),
					at_device(
						req->src + z * req->src_slice + y * req->src_pitch,
						req->width),
					req->width);
	}
	return CUDA_SUCCESS;
}

uint64_t obc_log_last(void)
{
	return 1;
}

CUresult obc_log_error(void)
{
	return CUDA_SUCCESS;
}

/* ---- the rest of the shim and the front end: not called, or of no matter here ---- */

struct obc_ctx obc_ctxs_first[OBC_CTX_MAX];

CUresult obc_stream_wait(struct obf_stream *at)
{
	(void)at;
	n_waits++;
	return CUDA_SUCCESS;
}

void obc_stream_arrived(struct obc_stream *at, uint64_t number, uint64_t launches)
{
	(void)at;
	(void)number;
	(void)launches;
}

uint64_t obc_ctx_launches(void)
{
	return launched;
}

bool obc_ctx_launched(struct obf_ctx *ctx)
{
	(void)ctx;
	return launched;
}

_Atomic unsigned obc_shared_used;

CUresult obc_shared_work(struct obc_stream *at, uint64_t addr, uint64_t size, bool writes)
{
	(void)at;
	(void)addr;
	(void)size;
	(void)writes;
	return CUDA_SUCCESS;
}

bool obc_hostfunc_pending(void)
{
	return pending;
}

/* ---- the test ---- */

static uint8_t host[DEVICE_BYTES], expect[DEVICE_BYTES];

static void fill_random(uint8_t *p, size_t n, uint32_t seed)
{
	uint64_t word = seed;

	for (size_t i = 0; i + sizeof word <= n; i += sizeof word) {
		word = word * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(p + i, &word, sizeof word);
	}
}

/* The definition. */
static void model(uint8_t *dst, const uint8_t *src, const struct obf_copy *c)
{
	for (size_t z = 0; z < c->depth; z++)
		for (size_t y = 0; y < c->height; y++)
			memcpy(dst + z * c->dst_slice + y * c->dst_pitch,
				src + z * c->src_slice + y * c->src_pitch, c->width);
}

static void check(size_t width, size_t height, size_t depth, size_t src_gap, size_t dst_gap,
	size_t slice_gap, bool from, bool to)
{
	struct obf_copy c = { .src_device = from,
		.dst_device = to,
		.width = width,
		.height = height,
		.depth = depth };
	const size_t half = DEVICE_BYTES / 2;
	uint8_t *dst_array = to ? device : host, *src_array = from ? device : host;

	c.src_pitch = width + src_gap;
	c.dst_pitch = width + dst_gap;
	c.src_slice = c.src_pitch * (height + slice_gap);
	c.dst_slice = c.dst_pitch * (height + slice_gap);
	CHECK(c.src_slice * depth <= half && c.dst_slice * depth <= half);
	fill_random(device, DEVICE_BYTES, 1);
	fill_random(host, DEVICE_BYTES, 2);
	c.src = from ? DEVICE_BASE : (uintptr_t)host;
	c.dst = (to ? DEVICE_BASE : (uintptr_t)host) + half;
	memcpy(expect, dst_array, DEVICE_BYTES);
	model(expect + half, src_array, &c);
	CHECK_INT(obc_copy_box(&stream.base, &c, false), CUDA_SUCCESS);
	CHECK_INT(memcmp(dst_array, expect, DEVICE_BYTES), 0);
}

TEST(boxes)
{
	static const size_t shapes[][3] = { { 1, 1, 1 }, { 7, 3, 1 }, { 100, 1, 5 }, { 33, 17, 4 },
		{ 4096, 60, 2 }, { OBP_ROWS_MAX + 5, 3, 1 }, { OBP_ROWS_MAX, 2, 2 },
		{ 700000, 2, 1 }, { 3, 1000, 7 } };

	for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
		for (unsigned bits = 0; bits < 32; bits++) {
			size_t src_gap = bits & 1 ? 9 : 0, dst_gap = bits & 2 ? 31 : 0,
			       slice_gap = bits & 4 ? 1 : 0;

			check(shapes[s][0], shapes[s][1], shapes[s][2], src_gap, dst_gap, slice_gap,
				bits & 8, bits & 16);
		}
}

TEST(packed_is_one_record)
{
	n_records = 0;
	check(1000, 100, 10, 0, 0, 0, false, true);
	CHECK_INT(n_records, 1);
	check(1000, 100, 10, 0, 0, 0, true, false);
	CHECK_INT(n_records, 2);
	check(1000, 100, 10, 50, 0, 0, true, false);
	CHECK_INT(n_records, 3);
}

/* A host function may still be writing what is sent. */
TEST(waits_for_host_functions)
{
	n_waits = 0;
	check(10, 10, 1, 0, 3, 0, false, true);
	CHECK_INT(n_waits, 0);
	pending = true;
	check(10, 10, 1, 0, 3, 0, false, true);
	check(10, 10, 1, 0, 0, 0, false, true);
	CHECK_INT(n_waits, 2);
	check(10, 10, 1, 0, 0, 0, true, false);
	CHECK_INT(n_waits, 2);
	pending = false;
}

/*
 * An upload by a call that is not "Async" waits for unfinished kernels if it is large; copies
 * between device addresses do not.
 */
TEST(large_uploads_wait)
{
	const size_t large = OBF_COPY_SMALL + 1;
	const struct obf_copy on_device = {
		.src_device = true,
		.dst_device = true,
		.src = DEVICE_BASE + (1u << 20),
		.dst = DEVICE_BASE,
		.src_pitch = large,
		.dst_pitch = large,
		.width = large,
		.height = 1,
		.depth = 1,
	};

	n_waits = 0;
	CHECK_INT(obc_copy_write(&stream.base, DEVICE_BASE, host, large, true), CUDA_SUCCESS);
	CHECK_INT(n_waits, 0);
	launched = true;
	CHECK_INT(obc_copy_write(&stream.base, DEVICE_BASE, host, OBF_COPY_SMALL, true),
		CUDA_SUCCESS);
	CHECK_INT(obc_copy_write(&stream.base, DEVICE_BASE, host, large, false), CUDA_SUCCESS);
	CHECK_INT(obc_copy_box(&stream.base, &on_device, true), CUDA_SUCCESS);
	CHECK_INT(n_waits, 0);
	CHECK_INT(obc_copy_write(&stream.base, DEVICE_BASE, host, large, true), CUDA_SUCCESS);
	CHECK_INT(n_waits, 1);
	launched = false;
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
