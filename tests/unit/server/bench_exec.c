/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures how many records per second a worker executes over the null driver. The bytes are
 * prepared before; one thread sends without waiting for replies.
 */
#include <pthread.h>

#include "base/clock.h"
#include "tests/unit/server/peer.h"

#define PER_FRAME 1000u
#define FRAMES    4000u

static struct peer peer;
static uint8_t *bytes;
static size_t frame_bytes;

static void *drain(void *unused)
{
	(void)unused;
	peer_reply(&peer);
	return NULL;
}

static void run(const char *name, uint16_t opcode, const void *body, size_t size)
{
	struct obp_record record = { .size = (uint32_t)(sizeof record + size), .opcode = opcode };
	uint32_t payload = PER_FRAME * record.size;
	uint64_t start;
	pthread_t reader;
	double seconds;

	frame_bytes = sizeof(struct obp_frame) + payload;
	bytes = malloc(frame_bytes);
	for (unsigned i = 0; i < PER_FRAME; i++) {
		uint8_t *at = bytes + sizeof(struct obp_frame) + i * record.size;

		memcpy(at, &record, sizeof record);
		memcpy(at + sizeof record, body, size);
	}
	pthread_create(&reader, NULL, drain, NULL);
	start = ob_clock_ns();
	for (unsigned f = 0; f < FRAMES; f++) {
		obp_frame_fill((struct obp_frame *)bytes, OBP_FRAME_CALLS, payload, PER_FRAME,
			peer.next, 0);
		peer.next += PER_FRAME;
		peer_send(&peer, bytes, frame_bytes);
	}
	peer_call(&peer, 0, OBP_OP_PING, NULL, 0);
	pthread_join(reader, NULL);
	seconds = (double)(ob_clock_ns() - start) / 1e9;
	printf("%-14s %6.2f million/s  (%.0f ns each)\n", name, PER_FRAME * FRAMES / seconds / 1e6,
		seconds * 1e9 / (PER_FRAME * FRAMES));
	free(bytes);
}

int main(void)
{
	struct obp_mem_alloc_req alloc = { .addr = 0x200000000000ull, .size = 4096 };
	struct obp_event_create_req create = { .event = 7 };
	struct obp_event_record_req record = { .event = 7 };
	struct server server;

	server_start(&server, NULL);
	peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	peer_call(&peer, 0, OBP_OP_EVENT_CREATE, &create, sizeof create);
	run("mem_alloc", OBP_OP_MEM_ALLOC, &alloc, sizeof alloc);
	run("event_record", OBP_OP_EVENT_RECORD, &record, sizeof record);
	peer_close(&peer);
	return server_stop(&server);
}
