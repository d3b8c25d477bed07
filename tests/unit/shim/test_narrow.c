/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/nvml/narrow.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"
#include "protocol/ticket.h"
#include "tests/test.h"
#include "transport/sign.h"

static struct obp_load_session session;

static struct obp_load load_of(uint32_t n)
{
	struct obp_load load = { .n_devices = n, .n_sessions = 1, .listed = &session };

	session = (struct obp_load_session){ .id = 1 };
	for (uint32_t i = 0; i < n; i++) {
		load.devices[i].uuid[0] = (uint8_t)(10 + i);
		session.used[i] = 100 + i;
		obp_fact_set(&load.devices[i].facts, OBP_FACT_PEERS, 0xf & ~(1u << i));
	}
	return load;
}

TEST(kept_devices_close_up)
{
	struct obp_load load = load_of(4);
	uint64_t peers = 0;

	obc_nvml_keep(0xa, &load); /* 1 and 3 */
	CHECK_INT(load.n_devices, 2);
	CHECK(load.devices[0].uuid[0] == 11 && load.devices[1].uuid[0] == 13);
	CHECK(session.used[0] == 101 && session.used[1] == 103 && session.used[2] == 0 &&
		session.used[3] == 0);
	CHECK(obp_fact_get(&load.devices[0].facts, OBP_FACT_PEERS, &peers));
	CHECK_INT(peers, 2);
	CHECK(obp_fact_get(&load.devices[1].facts, OBP_FACT_PEERS, &peers));
	CHECK_INT(peers, 1);
	obc_nvml_keep(0, &load);
	CHECK_INT(load.n_devices, 0);
}

TEST(the_ticket_of_the_address_says_which)
{
	static char list[4 * OBP_TICKET_MAX];
	uint8_t sealed[OBP_TICKET_MAX] = { 0 };
	const struct obp_ticket ticket = {
		.server = "s", .tenant = "t", .n_devices = 2, .devices = { { 13 }, { 10 } }
	};
	struct obp_load load = load_of(4);
	struct ob_buf body;
	int n;

	ob_buf_init(&body, OBP_TICKET_BODY_MAX);
	CHECK(obp_ticket_encode(&ticket, &body));
	memcpy(sealed + OBT_SIGN_OVERHEAD, body.data, body.size);
	n = snprintf(list, sizeof list, "tcp://a:1 ");
	ob_text_hex(sealed, body.size + OBT_SIGN_OVERHEAD, list + n);
	ob_buf_fini(&body);
	setenv("OUTBOARD_TICKET", list, 1);
	obc_nvml_narrow("tcp://b:1", &load);
	CHECK_INT(load.n_devices, 4);
	obc_nvml_narrow("tcp://a:1", &load);
	CHECK_INT(load.n_devices, 2);
	CHECK(load.devices[0].uuid[0] == 10 && load.devices[1].uuid[0] == 13);
	setenv("OUTBOARD_TICKET", "tcp://a:1 00", 1); /* what is no ticket changes nothing */
	obc_nvml_narrow("tcp://a:1", &load);
	CHECK_INT(load.n_devices, 2);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
