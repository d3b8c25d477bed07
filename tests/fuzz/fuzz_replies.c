/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The client's log against a server whose answers the input chooses: correct replies, replies with
 * one error, pieces, repetitions, answers to other calls, device output, acknowledgements, control
 * messages, raw frames. Calls are made through the generated functions, as programs make them.
 * Every answer goes into a block of exactly its size. A call may fail. If it succeeds, it must have
 * received all of its bytes, and its numbers must be within their bounds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/log.h"
#include "client-shim/session/log_inside.h"
#include "protocol/control.h"
#include "protocol/obc_calls.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_stream.h"

#define CALLS_MAX  16u
#define FRAMES_MAX 64u /* frames of the server in one run */
#define ANSWER     'D' /* value of each byte of copied data */
#define GUARD      64u

size_t __wrap_fwrite(const void *data, size_t size, size_t n, FILE *out);

/* ---- the server ---- */

static uint64_t sequence, n_frames;
static bool copying; /* the waiting call copies data: each byte must be ANSWER */

static void frame_put(
	enum obp_frame_type type, const void *payload, size_t size, uint32_t count, uint64_t ack)
{
	struct obp_frame frame;

	obp_frame_fill(&frame, type, (uint32_t)ob_round_up(size, 8), count,
		type == OBP_FRAME_REPLIES ? sequence : 0, ack);
	if (type == OBP_FRAME_CONTROL)
		frame.raw_size = (uint32_t)size;
	fuzz_wire_put_frame(&frame, payload, size);
}

static uint32_t a_number(void)
{
	static const uint32_t numbers[] = { 0, 1, 2, 7, 8, 16, 999, 1000, 4096, 32768, 65536,
		1u << 20, 1u << 31, UINT32_MAX };

	return fuzz_take(2) ? fuzz_take(255) : numbers[fuzz_take(ob_count(numbers))];
}

/* Sends one reply in a separate frame. */
static void reply_put(struct obp_reply reply, uint32_t body)
{
	static uint8_t payload[sizeof(struct obp_reply) + (2u << 20)];

	body = ob_min(body, 2u << 20);
	reply.body = body;
	reply.size = (uint32_t)(sizeof reply + ob_round_up(body, 8));
	memcpy(payload, &reply, sizeof reply);
	memset(payload + sizeof reply, ANSWER, body);
	if (!copying && body >= 8 && fuzz_take(2))
		/* sizes and counts are small numbers */
		for (unsigned i = 0; i + 4 <= body && i < 64; i += 4)
			memcpy(payload + sizeof reply + i,
				&(uint32_t){ fuzz_take(3) ? fuzz_take(64) : a_number() }, 4);
	frame_put(OBP_FRAME_REPLIES, payload, reply.size, 1, fuzz_take(4) ? 0 : a_number());
	sequence++;
}

/* Sends the correct answer to the waiting call; streamed data in pieces. */
static void honest(const struct log_wait *wait)
{
	const struct obp_call_info *info = obp_call_info(wait->opcode);
	struct obp_reply reply = { .call = wait->number, .result = fuzz_take(8) == 7 ? 2 : 0 };
	size_t left = wait->capacity - wait->got, n;

	if (!(info->flags & OBP_CALL_STREAMED)) {
		reply_put(reply, reply.result && fuzz_take(2) ? 0 : (uint32_t)left);
		return;
	}
	for (unsigned pieces = 1 + fuzz_take(4); left && pieces > 1; pieces--) {
		n = fuzz_take(255);
		n = 1 + n * fuzz_take(255);
		n = ob_min(left - 1, n);
		if (n == 0)
			break;
		reply.result = 0;
		reply.flags = OBP_REPLY_MORE;
		reply_put(reply, (uint32_t)n);
		left -= n;
	}
	reply.flags = 0;
	reply_put(reply, reply.result ? 0 : (uint32_t)left);
}

static void twisted(const struct log_wait *wait)
{
	struct obp_reply reply = { .call = wait->number + fuzz_take(3) };
	uint32_t body = (uint32_t)wait->capacity;

	reply.call -= fuzz_take(3);
	reply.flags = (uint16_t)(fuzz_take(2) ? fuzz_take(16) : a_number());
	reply.result = fuzz_take(2) ? 0 : a_number();
	reply.deferred = fuzz_take(4) ? 0 : a_number();
	reply.deferred_opcode = fuzz_take(2) ? 0 : a_number();
	if (fuzz_take(2)) {
		body = fuzz_take(2) ? body + fuzz_take(64) : a_number();
		body -= fuzz_take(64);
	}
	reply_put(reply, body);
	if (fuzz_take(4) == 3)
		reply_put(reply, body);
}

static void text(void)
{
	unsigned flags = OBP_REPLY_TEXT;
	struct obp_reply reply = { .size = 0 };

	flags |= fuzz_take(2) ? OBP_REPLY_TEXT_STDERR : 0;
	flags |= fuzz_take(8) == 7 ? OBP_REPLY_MORE : 0;
	reply.flags = (uint16_t)flags;
	reply.call = fuzz_take(8) == 7;
	reply_put(reply, fuzz_take(2) ? fuzz_take(255) : a_number());
}

static void message(void)
{
	static struct obp_message m;

	m.type = (enum obp_message_type)(1 + fuzz_take(11));
	m.code = a_number();
	fuzz_wire_put_message(&m);
}

/* Sends a header and a payload chosen by the input, or raw bytes of the input. */
static void raw(void)
{
	uint8_t bytes[128];
	size_t n = fuzz_take(sizeof bytes), before = fuzz_wire.size;
	unsigned type, count;

	fuzz_take_bytes(bytes, n);
	if (fuzz_take(2)) {
		type = 1 + fuzz_take(8);
		count = fuzz_take(4);
		frame_put((enum obp_frame_type)type, bytes, n, count, a_number());
		for (unsigned i = fuzz_take(3); i && fuzz_wire.size > before; i--)
			fuzz_take_change(fuzz_wire.data + before, sizeof(struct obp_frame), 256);
	} else {
		fuzz_wire_put(bytes, n);
	}
}

static void server_says(void)
{
	const struct log_wait *wait = obc_log_state.waits;
	uint64_t number;

	fuzz_wire_clear();
	copying = wait && obp_call_info(wait->opcode)->flags & OBP_CALL_STREAMED;
	switch (wait ? fuzz_take(10) : 9) {
	default:
		honest(wait);
		break;
	case 4:
	case 5:
		twisted(wait);
		break;
	case 6:
		text();
		break;
	case 7:
		number = fuzz_take(2) ? 0 : a_number();
		frame_put(OBP_FRAME_ACK, NULL, 0, 0,
			number ? number << fuzz_take(40)
			       : atomic_load(&obc_log_state.ring.sent_number));
		break;
	case 8:
		message();
		break;
	case 9:
		raw();
		break;
	}
}

/* Receives in pieces. When the wire is empty, the input chooses what the server sends next. */
static ssize_t server_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	size_t n = fuzz_take(4) ? size : (size_t)1 + fuzz_take(255);

	while (fuzz_wire.at == fuzz_wire.size) {
		if (fuzz_used_up() || n_frames++ == FRAMES_MAX)
			return 0;
		server_says();
	}
	return fuzz_stream_recv(stream, data, ob_min(n, size), block);
}

static const struct obt_ops server_ops = { .name = "fuzz",
	.send = fuzz_stream_send,
	.recv = server_recv,
	.close = fuzz_stream_close };

/* Device output passes through this function: every byte of it must be readable. */
size_t __wrap_fwrite(const void *data, size_t size, size_t n, FILE *out)
{
	const volatile uint8_t *p = data;

	(void)out;
	for (size_t i = 0; i < size * n; i++)
		(void)p[i];
	return n;
}

/* ---- the program ---- */

/*
 * Returns a block of exactly this size. Builds without a sanitizer add guard bytes on both sides.
 */
static uint8_t *block_new(size_t size)
{
	uint8_t *base = malloc(size + 2 * GUARD);

	if (!base)
		exit(1);
	memset(base, 0x5a, size + 2 * GUARD);
	return base + GUARD;
}

static void block_check(uint8_t *block, size_t size)
{
	uint8_t *base = block - GUARD;

	for (size_t i = 0; i < GUARD; i++)
		if (block[size + i] != 0x5a || base[i] != 0x5a)
			abort();
	free(base);
}

static void call_read(void)
{
	static const size_t sizes[] = { 1, 4, 24, 4096, 32768, 40000, 100000, 700000 };
	size_t size = sizes[fuzz_take(ob_count(sizes))];
	uint8_t *block = block_new(size), *exact = malloc(size);

	if (exact) {
		memset(exact, 0, size);
		/*
		 * Copies into memory of exactly that size, so that a sanitizer detects an overflow.
		 */
		if (obc_call_op_read(0x1000, size, 0, exact) == CUDA_SUCCESS)
			for (size_t i = 0; i < size; i++)
				if (exact[i] != ANSWER)
					abort();
	}
	if (obc_call_op_read_rows(0x1000, size, size, size, 1, 1, 0, block) == CUDA_SUCCESS)
		for (size_t i = 0; i < size; i++)
			if (block[i] != ANSWER)
				abort();
	free(exact);
	block_check(block, size);
}

static void call_module(void)
{
	static const uint8_t sha[32];
	uint32_t small = fuzz_take(255), caps[2] = { a_number() % (OBP_LOG_MAX + 1), small },
		 sizes[2] = { 0, 0 };
	uint8_t *logs[2] = { block_new(caps[0]), block_new(caps[1]) };

	if (obc_call_op_module_load_checked(1, sha, 0, 0, caps[0], caps[1], NULL, logs[0],
		    &sizes[0], logs[1], &sizes[1]) == CUDA_SUCCESS &&
		(sizes[0] > caps[0] || sizes[1] > caps[1]))
		abort();
	block_check(logs[0], caps[0]);
	block_check(logs[1], caps[1]);
}

static void call_times(void)
{
	uint64_t times[5 * OBP_TIMES_MAX];
	uint32_t count = 0;

	if (obc_call_op_times_read(1, &count, times) == CUDA_SUCCESS && count > OBP_TIMES_MAX)
		abort();
}

static void call_timeline(void)
{
	uint32_t room = (uint32_t)fuzz_take(OBP_TIMELINE_BYTES + 1), size = 0;
	uint8_t *events = block_new(room);
	uint64_t clock, lost;

	if (obc_call_op_timeline_read(room, &clock, &lost, events, &size) == CUDA_SUCCESS &&
		size > room)
		abort();
	block_check(events, room);
}

static void call_cached(void)
{
	CUatomicOperation operations[8] = { 0 };
	unsigned n = 1 + fuzz_take(8), capabilities[8];

	operations[0] = (CUatomicOperation)fuzz_take(4);
	obc_call_cuDeviceGetHostAtomicCapabilities(capabilities, operations, n, 0);
}

static void call_small(void)
{
	uint64_t a = 0, b = 0, have[4], lost[4];
	static const uint8_t names[32 * 4];
	int32_t attrs[16];
	uint32_t yes = 0;
	float ms = 0;

	switch (fuzz_take(8)) {
	case 0:
		obc_call_op_mem_info(&a, &b);
		break;
	case 1:
		obc_call_op_ping();
		break;
	case 2:
		obc_call_op_cache_ask(4, names, have, lost);
		break;
	case 3:
		obc_call_op_func_attrs(1, attrs);
		break;
	case 4:
		obc_call_op_event_elapsed(1, 2, &ms);
		break;
	case 5:
		obc_call_op_global_get(1, "x", &a, &b);
		break;
	case 6:
		obc_call_op_image_query(names, &yes);
		break;
	default:
		obc_call_op_mem_free(7, 0); /* has no answer */
		break;
	}
}

static void log_begin(void)
{
	static struct obc_ring ring;
	struct log *log = &obc_log_state;

	if (!ring.map) {
		if (obc_ring_init(&ring, OBC_RING_DEFAULT))
			exit(1);
		ob_log_set_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
	}
	memset(log, 0, sizeof *log);
	log->ring = ring;
	log->body_max = ring.record_max - (uint32_t)sizeof(struct obp_record);
	if (obp_conn_init(&log->conn, OBP_ACCEPT_REPLIES | OBP_ACCEPT_CONTROL))
		exit(1);
	log->conn.codecs = OBZ_ALL_CODECS;
	log->stream = (struct obt_stream){ .ops = &server_ops, .fd = -1 };
	log->byref_min = OBC_BYREF_MIN;
	log->open = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_input_start(data, ob_min(size, (size_t)4096));
	fuzz_wire_clear();
	n_frames = 0;
	sequence = 1;
	log_begin();
	for (unsigned i = 0; i < CALLS_MAX && obc_log_error() == CUDA_SUCCESS; i++) {
		static void (*const calls[])(void) = { call_small, call_read, call_small,
			call_module, call_times, call_timeline, call_cached };

		calls[fuzz_take(ob_count(calls))]();
		if (obc_log_state.waits)
			abort(); /* a wait must be off the list when its call returns */
	}
	obp_conn_fini(&obc_log_state.conn);
	return 0;
}
