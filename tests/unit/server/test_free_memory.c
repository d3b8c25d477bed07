/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The questions of the control connection for the free memory of a device, over the null driver. */
#include "base/opt.h"
#include "tests/unit/server/peer.h"

static struct server server;
static struct peer data, control;

static void begin(void)
{
	uint8_t secret[OBP_SECRET_BYTES];
	uint64_t route;

	server_start(&server, NULL);
	peer_session(&data, &server);
	CHECK(data.got.welcome.free_memory);
	route = data.got.welcome.route;
	memcpy(secret, data.got.welcome.secret, sizeof secret);
	CHECK(peer_join(&control, &server, route, secret, OBP_JOIN_CONTROL, 0, 1));
	CHECK_INT(control.got.type, OBP_MSG_JOINED);
	peer_use_context(&data, 0, 1);
}

static void end(void)
{
	peer_close(&control);
	peer_close(&data);
	CHECK_INT(server_stop(&server), 0);
}

static void ask(uint64_t value, uint32_t device)
{
	const struct obp_message message = {
		.type = OBP_MSG_MEMORY_ASK, .value = value, .code = device
	};

	peer_message(&control, &message);
}

/* The same by a call. */
static void call(void)
{
	peer_call(&data, 0, OBP_OP_MEM_INFO, NULL, 0);
	CHECK_INT(peer_reply(&data)->result, 0);
}

/* Waits for the answer to this question; earlier ones may be answered too. */
static void answered(uint64_t value)
{
	do {
		CHECK(peer_control(&control));
		CHECK_INT(control.got.type, OBP_MSG_MEMORY);
		CHECK_INT(control.got.code, 0);
		CHECK(control.got.value <= value);
	} while (control.got.value != value);
	CHECK_INT(control.got.received, data.next - 1); /* all that was sent */
	CHECK_INT(control.got.total_bytes, 80ll << 30);
	CHECK_INT(control.got.free_bytes, 80ll << 30);
}

TEST(a_question_is_answered)
{
	begin();
	call();
	ask(UINT64_MAX - 1, 0);
	answered(UINT64_MAX - 1);
	CHECK_INT(peer_ping(&data, 0), 0);
	ask(UINT64_MAX, 0);
	answered(UINT64_MAX);
	end();
}

/* Before the first call, and after the end of its context, there is nothing to ask in. */
TEST(without_a_context_there_is_no_answer)
{
	const struct obp_message ping = { .type = OBP_MSG_PING, .value = 5 };
	const struct obp_ctx_destroy_req destroy = { .ctx = 1 };

	begin();
	ask(1, 0);
	peer_message(&control, &ping);
	CHECK(peer_control(&control));
	CHECK_INT(control.got.type, OBP_MSG_PONG);
	call();
	ask(2, 0);
	answered(2);
	peer_call(&data, 0, OBP_OP_CTX_DESTROY, &destroy, sizeof destroy);
	CHECK_INT(peer_ping(&data, 0), 0);
	ask(3, 0);
	peer_message(&control, &ping);
	CHECK(peer_control(&control));
	CHECK_INT(control.got.type, OBP_MSG_PONG);
	call();
	ask(4, 0);
	answered(4);
	end();
}

/* Questions that come faster than answers can be given do not queue up. */
TEST(many_questions)
{
	begin();
	call();
	for (uint64_t i = 1; i <= 2000; i++)
		ask(i, 0);
	answered(2000);
	end();
}

static void bad_question(uint64_t value, uint32_t device)
{
	begin();
	ask(value, device);
	CHECK(peer_ended(&data));
	end();
}

TEST(a_device_that_there_is_not)
{
	bad_question(1, 1);
}

TEST(the_largest_device_number)
{
	bad_question(1, UINT32_MAX);
}

TEST(a_question_without_a_value)
{
	bad_question(0, 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
