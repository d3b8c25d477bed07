/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The client's thread of a stripe while it receives a copy: frames of parts with fields from the
 * input, into memory that ends where the copy ends. Only that memory may be written, and the count
 * of bytes received must be that of the accepted parts. The client's source file is included, for
 * its inner functions.
 */
#define obc_stripe_min_first    fuzz_stripe_min_first
#define obc_stripe_enter        fuzz_stripe_enter
#define obc_stripe_leave        fuzz_stripe_leave
#define obc_stripe_carry        fuzz_stripe_carry
#define obc_stripe_ready        fuzz_stripe_ready
#define obc_stripe_count        fuzz_stripe_count
#define obc_stripe_learn        fuzz_stripe_learn
#define obc_stripe_init         fuzz_stripe_init
#define obc_stripe_recall       fuzz_stripe_recall
#define obc_stripe_release_idle fuzz_stripe_release_idle
#define obc_stripe_learned      fuzz_stripe_learned
#define obc_stripe_stop         fuzz_stripe_stop
#define obc_stripe_forget       fuzz_stripe_forget
#define obc_stripe_stats        fuzz_stripe_stats /* renames the structure, too */
/* Before the source, which gives names such as `stripes` a meaning of its own. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_stream.h"

#include "client-shim/session/stripe.c"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define GUARD 0u /* the sanitizer detects overflows */
#else
#define GUARD 64u /* bytes after the copy */
#endif
#define TRANSFER  7u
#define FRAME_MAX (sizeof(struct obp_frame) + OBP_CHUNK_MAX + 64)

static uint64_t a_number(uint64_t size)
{
	const uint64_t numbers[] = { 0, 1, 7, 8, size - 1, size, size + 1, OBP_CHUNK_MAX,
		OBP_CHUNK_MAX + 1, UINT32_MAX, 1ull << 63, UINT64_MAX };

	return fuzz_take(2) ? fuzz_take(256) : numbers[fuzz_take(ob_count(numbers))];
}

/*
 * Makes a frame that is valid except for one or two fields. It is followed by as many bytes as it
 * announces, up to a limit.
 */
static void frame_make(uint64_t size)
{
	struct obp_frame frame;
	uint64_t offset = fuzz_take(4) ? (uint64_t)fuzz_take(256) * size / 256 : a_number(size);
	uint64_t some = (uint64_t)fuzz_take(256) * 16;
	uint32_t n = (uint32_t)(fuzz_take(4) ? ob_min(size - ob_min(offset, size), some)
					     : a_number(size));
	enum obp_frame_type type = fuzz_take(16) == 15 ? (enum obp_frame_type)fuzz_take(9)
		: fuzz_take(16) == 14                  ? OBP_FRAME_GIVEN
						       : OBP_FRAME_PART;

	obp_stripe_fill(&frame, type, TRANSFER + (fuzz_take(16) == 15), offset, n);
	if (frame.type != OBP_FRAME_PART && fuzz_take(4))
		frame.ack = frame.count = frame.raw_size = frame.size = 0;
	if (fuzz_take(8) == 7) {
		frame.flags = (uint16_t)fuzz_take(5);
		frame.size = fuzz_take(64) * 8;
	}
	fuzz_wire_clear();
	fuzz_wire_put(&frame, sizeof frame);
	for (unsigned i = fuzz_take(8) == 7 ? fuzz_take(4) : 0; i; i--)
		fuzz_take_change(fuzz_wire.data, sizeof frame, 256);
	/*
	 * The payload is what earlier frames left in the buffer. A packed one begins with bytes of
	 * the input.
	 */
	fuzz_wire.size = ob_min(sizeof frame + frame.size, FRAME_MAX);
	if (frame.flags)
		fuzz_take_bytes(fuzz_wire.data + sizeof frame,
			ob_min(fuzz_wire.size - sizeof frame, (size_t)64));
}

static uint64_t copy_size;

static ssize_t parts_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	if (fuzz_wire.at == fuzz_wire.size) {
		if (fuzz_used_up())
			return 0;
		frame_make(copy_size);
	}
	return fuzz_stream_recv(stream, data, size, block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t sizes[] = { 1, 8, 4096, 100000, 1u << 20 };
	static const struct obt_ops ops = { .name = "fuzz",
		.send = fuzz_stream_send,
		.recv = parts_recv,
		.close = fuzz_stream_close };
	const struct obt_stream stream = { .ops = &ops, .fd = -1 };
	static struct worker worker;
	uint8_t *memory;

	fuzz_input_start(data, ob_min(size, (size_t)4096));
	fuzz_wire_clear();
	copy_size = sizes[fuzz_take(ob_count(sizes))];
	memory = malloc(copy_size + GUARD);
	if (!memory)
		return 0;
	memset(memory, 0x5a, copy_size + GUARD);
	own_stripes.codecs = OBZ_ALL_CODECS;
	own_stripes.job = (struct job){
		.id = TRANSFER, .direction = OBC_DOWNLOAD, .data = memory, .size = copy_size
	};
	memset(&worker, 0, sizeof worker);
	atomic_store(&own_stripes.gate.closed, false);
	obt_stripe_init(&worker.link, &own_stripes.gate, &stream, OBZ_ALL_CODECS, 0);
	parts_receive(&worker);
	obt_stripe_fini(&worker.link);
	for (size_t i = copy_size; i < copy_size + GUARD; i++)
		if (memory[i] != 0x5a)
			abort();
	free(memory);
	return 0;
}
