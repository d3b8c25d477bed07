/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Control messages, a server's load report, messages of a pool and tickets: what can be decoded must
 * encode again, and then decode to the same.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/control.h"
#include "protocol/load.h"
#include "protocol/pool.h"
#include "tests/fuzz/fuzz.h"

static void load(const uint8_t *data, size_t size)
{
	static struct obp_load load, again;
	struct ob_buf buf;

	if (obp_load_decode(data, size, &load))
		return;
	ob_buf_init(&buf, 1u << 20);
	if (obp_load_encode(&load, &buf)) {
		const struct obp_frame *frame = (const struct obp_frame *)buf.data;

		if (obp_load_decode(frame + 1, frame->raw_size, &again) ||
			again.n_devices != load.n_devices || again.n_sessions != load.n_sessions ||
			memcmp(again.devices, load.devices, sizeof load.devices) != 0 ||
			(load.n_sessions &&
				memcmp(again.listed, load.listed,
					load.n_sessions * sizeof *load.listed) != 0))
			abort();
		obp_load_fini(&again);
	}
	ob_buf_fini(&buf);
	obp_load_fini(&load);
}

static void pool(const uint8_t *data, size_t size)
{
	static struct obp_pool_message message, again;
	struct ob_buf buf;

	if (obp_pool_decode(data, size, &message))
		return;
	ob_buf_init(&buf, 1u << 20);
	if (obp_pool_encode(&message, &buf)) {
		const struct obp_frame *frame = (const struct obp_frame *)buf.data;

		if (obp_pool_decode(frame + 1, frame->raw_size, &again) ||
			again.type != message.type)
			abort();
		obp_pool_fini(&again);
	}
	ob_buf_fini(&buf);
	obp_pool_fini(&message);
}

static void ticket(const uint8_t *data, size_t size)
{
	struct obp_ticket ticket, again;
	struct ob_buf buf;

	if (obp_ticket_decode(data, size, &ticket))
		return;
	ob_buf_init(&buf, OBP_TICKET_BODY_MAX);
	if (!obp_ticket_encode(&ticket, &buf) || obp_ticket_decode(buf.data, buf.size, &again) ||
		again.fence != ticket.fence || again.n_devices != ticket.n_devices ||
		memcmp(again.devices, ticket.devices, sizeof ticket.devices) != 0)
		abort();
	ob_buf_fini(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct obp_message message, again;
	struct ob_buf buf;

	load(data, size);
	pool(data, size);
	ticket(data, size);
	if (obp_message_decode(data, size, &message))
		return 0;
	ob_buf_init(&buf, 1u << 20);
	if (obp_message_encode(&message, &buf)) {
		const struct obp_frame *frame = (const struct obp_frame *)buf.data;

		if (obp_message_decode(frame + 1, frame->raw_size, &again) ||
			again.type != message.type)
			abort();
		obp_message_fini(&again);
	}
	ob_buf_fini(&buf);
	obp_message_fini(&message);
	return 0;
}
