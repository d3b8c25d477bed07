/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Queries to a server other than those of a program's library: for its load, by placement and by
 * `outboard top`; for a ping, by `outboard check`; and for one message on a stream, as in every
 * handshake. Answers are messages with fields of the input, with bytes changed, in valid or invalid
 * frames, or raw bytes. Text in accepted answers must be safe for a terminal. The source files that
 * send the queries are included, for their inner functions.
 */
#include "loadbalancer/ask.c"
#include "tools/probe.c"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_peer.h"
#include "tests/fuzz/fuzz_stream.h"

static const struct obt_stream server = { .ops = &fuzz_stream_ops, .fd = -1 };

static void load_put(void)
{
	static struct obp_load_session sessions[4];
	static struct obp_load load;
	struct ob_buf frame;

	memset(&load, 0, sizeof load);
	memset(sessions, 0, sizeof sessions);
	load.sessions = (uint32_t)fuzz_number();
	load.max_sessions = (uint32_t)fuzz_number();
	load.busy = (uint32_t)fuzz_number();
	fuzz_text(load.version, sizeof load.version - 1);
	fuzz_text(load.driver, sizeof load.driver - 1);
	load.n_devices = fuzz_take(OBP_DEVICE_MAX + 1);
	for (uint32_t i = 0; i < ob_min(load.n_devices, 3u); i++) {
		load.devices[i].total = fuzz_number();
		fuzz_text(load.devices[i].name, sizeof load.devices[i].name - 1);
	}
	load.n_sessions = fuzz_take(ob_count(sessions) + 1);
	load.listed = sessions;
	for (uint32_t i = 0; i < load.n_sessions; i++) {
		sessions[i].throttle = (uint32_t)fuzz_number();
		fuzz_text(sessions[i].program, sizeof sessions[i].program - 1);
	}
	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_load_encode(&load, &frame))
		fuzz_wire_put(frame.data, frame.size);
	ob_buf_fini(&frame);
}

static void message_put(void)
{
	static struct obp_message m;

	memset(&m, 0, sizeof m);
	m.type = (enum obp_message_type)(1 + fuzz_take(11));
	m.value = fuzz_number();
	m.code = (uint32_t)fuzz_number();
	fuzz_text(m.text, sizeof m.text - 1);
	fuzz_wire_put_message(&m);
}

static void frame_put(void)
{
	struct obp_frame frame;
	uint32_t size = fuzz_take(4) ? fuzz_take(256) * 8 : (uint32_t)fuzz_number();
	uint32_t type = 1 + fuzz_take(8), count = fuzz_take(4), sequence = fuzz_take(4);

	obp_frame_fill(&frame, (enum obp_frame_type)type, size, count, sequence, 0);
	if (fuzz_take(4) == 3)
		fuzz_spoil(&frame, sizeof frame);
	fuzz_wire_put(&frame, sizeof frame);
	fuzz_wire.size = ob_min(fuzz_wire.size + frame.size, (size_t)FUZZ_WIRE_MAX);
}

static void wire_fill(void)
{
	const uint8_t *raw;
	size_t n;

	fuzz_wire_clear();
	for (unsigned i = 1 + fuzz_take(3); i; i--) {
		switch (fuzz_take(4)) {
		case 0:
			load_put();
			break;
		case 1:
			message_put();
			break;
		case 2:
			frame_put();
			break;
		default:
			n = fuzz_take(256);
			raw = fuzz_take_span(n, &n);
			fuzz_wire_put(raw, n);
			break;
		}
	}
	if (fuzz_wire.size && fuzz_take(4) == 3)
		fuzz_spoil(fuzz_wire.data, fuzz_wire.size);
}

/* ---- queries ---- */

static void load_ask(uint64_t deadline)
{
	static struct obp_load load;
	struct obt_stream stream = server;

	if (ask_on(&stream, OBP_LOAD_WANT_SESSIONS, deadline, &load) != OB_ERR_NONE)
		return;
	if (load.n_devices > OBP_DEVICE_MAX || load.n_sessions > OBP_LOAD_SESSIONS_MAX)
		abort();
	fuzz_text_check(load.version, sizeof load.version);
	fuzz_text_check(load.driver, sizeof load.driver);
	for (uint32_t i = 0; i < load.n_devices; i++)
		fuzz_text_check(load.devices[i].name, sizeof load.devices[i].name);
	for (uint32_t i = 0; i < load.n_sessions; i++) {
		fuzz_text_check(load.listed[i].program, sizeof load.listed[i].program);
		fuzz_text_check(load.listed[i].client, sizeof load.listed[i].client);
		obp_throttle_name(load.listed[i].throttle);
	}
	obp_load_fini(&load);
}

static void ping(uint64_t deadline)
{
	struct obx_probe probe = { .stream = server };

	call(&probe, OBP_OP_PING, deadline);
}

static void message_await(uint64_t deadline)
{
	static struct obp_message m;
	struct obt_stream stream = server;

	if (obt_message_receive(&stream, &m, deadline) != OB_ERR_NONE)
		return;
	fuzz_text_check(m.text, sizeof m.text);
	obp_message_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const asks[])(uint64_t) = { load_ask, ping, message_await };
	unsigned which;

	fuzz_input_start(data, ob_min(size, (size_t)8192));
	which = fuzz_take(ob_count(asks));
	wire_fill();
	asks[which](ob_clock_ns() + OB_SECOND);
	return 0;
}
