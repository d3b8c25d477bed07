/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A stripe's thread in the client that receives a copy: frames of parts with fields from the input, into memory that ends where the copy does. Whatever
 * comes, only that memory is written; the count of bytes received is that of the parts that were taken. The client's own source is part of this file.
 */
#define obc_stripe_write  fuzz_stripe_write
#define obc_stripe_read   fuzz_stripe_read
#define obc_stripe_init   fuzz_stripe_init
#define obc_stripe_stop   fuzz_stripe_stop
#define obc_stripe_forget fuzz_stripe_forget
#define obc_stripe_stats  fuzz_stripe_stats /* the structure's name, too */
#include "client-shim/stripe.c"

#include "tests/fuzz/fuzz.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define GUARD 0u /* the sanitizer watches */
#else
#define GUARD 64u /* bytes behind the copy */
#endif
#define TRANSFER 7u

static const uint8_t *bytes;
static size_t left;
static uint8_t wire[sizeof(struct obp_frame) + OBP_CHUNK_MAX + 64];
static size_t wire_size, wire_at;

static unsigned take(unsigned below)
{
	unsigned value = left ? *bytes % below : 0;

	bytes += left > 0;
	left -= left > 0;
	return value;
}

static uint64_t a_number(uint64_t size)
{
	const uint64_t numbers[] = { 0,          1,          7,         8, size - 1, size, size + 1, OBP_CHUNK_MAX, OBP_CHUNK_MAX + 1,
				     UINT32_MAX, 1ull << 63, UINT64_MAX };

	return take(2) ? take(256) : numbers[take(ob_count(numbers))];
}

/* A frame that holds but for a field or two, with as many bytes behind it as it says, within reason. */
static void frame_make(uint64_t size)
{
	struct obp_frame frame;
	uint64_t offset = take(4) ? (uint64_t)take(256) * size / 256 : a_number(size);
	uint64_t some = (uint64_t)take(256) * 16;
	uint32_t n = (uint32_t)(take(4) ? ob_min(size - ob_min(offset, size), some) : a_number(size));

	obp_stripe_fill(&frame,
			take(16) == 15   ? (enum obp_frame_type)take(9)
			: take(16) == 14 ? OBP_FRAME_GIVEN
					 : OBP_FRAME_PART,
			TRANSFER + (take(16) == 15), offset, n);
	if (frame.type != OBP_FRAME_PART && take(4))
		frame.ack = frame.count = frame.raw_size = frame.size = 0;
	if (take(8) == 7) {
		frame.flags = (uint16_t)take(5);
		frame.size = take(64) * 8;
	}
	wire_at = 0;
	memcpy(wire, &frame, sizeof frame);
	for (unsigned i = take(8) == 7 ? take(4) : 0; i; i--)
		wire[take(sizeof frame)] = (uint8_t)take(256);
	wire_size = sizeof frame + ob_min((size_t)frame.size, sizeof wire - sizeof frame);
	for (unsigned i = 0; i < 64 && frame.flags && sizeof frame + i < wire_size; i++)
		wire[sizeof frame + i] = (uint8_t)take(256);
}

static uint64_t copy_size;

static ssize_t give(struct obt_stream *stream, void *data, size_t size, bool block)
{
	size_t n;

	(void)stream;
	(void)block;
	if (wire_at == wire_size) {
		if (!left)
			return 0;
		frame_make(copy_size);
	}
	n = ob_min(size, wire_size - wire_at);
	memcpy(data, wire + wire_at, n);
	wire_at += n;
	return (ssize_t)n;
}

static ssize_t take_all(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	size_t total = 0;

	(void)stream;
	(void)block;
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return (ssize_t)total;
}

static void forget(struct obt_stream *stream)
{
	stream->fd = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t sizes[] = { 1, 8, 4096, 100000, 1u << 20 };
	static const struct obt_ops ops = { "bytes", take_all, give, forget };
	const struct obt_stream stream = { .ops = &ops, .fd = -1 };
	static struct worker worker;
	uint8_t *memory;

	bytes = data;
	left = ob_min(size, (size_t)4096);
	wire_size = wire_at = 0;
	copy_size = sizes[take(ob_count(sizes))];
	memory = malloc(copy_size + GUARD);
	if (!memory)
		return 0;
	memset(memory, 0x5a, copy_size + GUARD);
	stripes.codecs = OBZ_ALL_CODECS;
	stripes.job = (struct job){ .id = TRANSFER, .direction = IN, .data = memory, .size = copy_size };
	memset(&worker, 0, sizeof worker);
	atomic_store(&stripes.gate.closed, false);
	obt_stripe_init(&worker.link, &stripes.gate, &stream, OBZ_ALL_CODECS, 0);
	parts_receive(&worker);
	obt_stripe_fini(&worker.link);
	for (size_t i = copy_size; i < copy_size + GUARD; i++)
		if (memory[i] != 0x5a)
			abort();
	free(memory);
	return 0;
}
