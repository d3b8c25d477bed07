/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/unit/server/driver_session.h"

struct server server;
struct peer peer;

void driver_begin_limited(const char *outstanding, uint32_t grace)
{
	const char *driver = getenv("OUTBOARD_FAKE_DRIVER");

	if (!driver)
		TEST_SKIP("OUTBOARD_FAKE_DRIVER names no driver");
	server_start(&server,
		(const char *const[]){ "--driver", driver, "--warm", "0", "--max-outstanding",
			outstanding, NULL });
	if (grace)
		peer_session_grace(&peer, &server, grace);
	else
		peer_session(&peer, &server);
	peer_use_context(&peer, 0, 1);
	peer_use_context(&peer, 1, 1);
	peer_call(&peer, 1, OBP_OP_LANE_END, NULL, 0);
}

void driver_begin(void)
{
	driver_begin_limited("32MiB", 0);
}

void driver_end(void)
{
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

uint64_t driver_alloc_plain(uint64_t size)
{
	struct obp_mem_alloc_plain_req req = { .size = size };

	peer_call(&peer, 0, OBP_OP_MEM_ALLOC_PLAIN, &req, sizeof req);
	CHECK_INT(peer_reply(&peer)->result, 0);
	return ((const struct obp_mem_alloc_plain_rep *)peer.item.body)->addr;
}

void driver_fill_with(uint16_t lane, uint64_t addr, uint64_t size, uint8_t value)
{
	struct obp_memset_req req = {
		.dst = addr, .value = value, .element = 1, .width = size, .height = 1
	};

	peer_call(&peer, lane, OBP_OP_MEMSET, &req, sizeof req);
}

void driver_fill(uint16_t lane, uint64_t addr, uint64_t size)
{
	driver_fill_with(lane, addr, size, 0x5a);
}
