/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/conn.h"
#include "protocol/control.h"
#include "tests/test.h"

static struct obp_message out, in;

static enum ob_err round_trip(size_t cut)
{
	const struct obp_frame *frame;
	struct ob_buf buf;
	enum ob_err err;

	ob_buf_init(&buf, 1 << 20);
	CHECK(obp_message_encode(&out, &buf));
	frame = (const struct obp_frame *)buf.data;
	CHECK_INT(frame->size % 8, 0);
	CHECK_INT(buf.size, sizeof *frame + frame->size);
	err = obp_message_decode(frame + 1, frame->raw_size - cut, &in);
	ob_buf_fini(&buf);
	return err;
}

TEST(hello_goes_around)
{
	out = (struct obp_message){ .type = OBP_MSG_HELLO,
		.hello = { .version = "1.2.3",
			.program = "a program",
			.pid = 77,
			.n_ranges = 2,
			.ranges = { { 1ull << 45, 1ull << 40 }, { 8, 16 } } } };
	CHECK_INT(round_trip(0), OB_ERR_NONE);
	CHECK_INT(in.type, OBP_MSG_HELLO);
	CHECK_STR(in.hello.version, "1.2.3");
	CHECK_STR(in.hello.program, "a program");
	CHECK_INT(in.hello.pid, 77);
	CHECK_INT(in.hello.n_ranges, 2);
	CHECK(in.hello.ranges[0].base == 1ull << 45 && in.hello.ranges[1].size == 16);
	CHECK(in.hello.link_rate == 0);
	out.hello.link_rate = 125000000;
	CHECK_INT(round_trip(0), OB_ERR_NONE);
	CHECK(in.hello.link_rate == 125000000 && in.hello.n_ranges == 2);
}

TEST(a_ticket_fits_and_no_more)
{
	out = (struct obp_message){ .type = OBP_MSG_HELLO,
		.hello = { .ticket_size = OBP_HELLO_TICKET } };
	memset(out.hello.ticket, 0x5a, sizeof out.hello.ticket);
	CHECK_INT(round_trip(0), OB_ERR_NONE);
	CHECK_INT(in.hello.ticket_size, OBP_HELLO_TICKET);
	CHECK(memcmp(in.hello.ticket, out.hello.ticket, sizeof in.hello.ticket) == 0);
	out.hello.ticket_size = 1;
	CHECK_INT(round_trip(0), OB_ERR_NONE);
	CHECK_INT(in.hello.ticket_size, 1);
	out.hello.ticket_size = OBP_HELLO_TICKET + 1; /* the next bytes of the structure */
	CHECK_INT(round_trip(0), OB_ERR_PROTOCOL);
}

TEST(welcome_goes_around)
{
	static struct obp_device devices[OBP_DEVICE_MAX];

	for (unsigned i = 0; i < OBP_DEVICE_MAX; i++) {
		snprintf(devices[i].name, sizeof devices[i].name, "device %u", i);
		devices[i].total_mem = 1ull << 37;
		devices[i].range = (struct obp_range){ 1ull << 45, 1ull << 36 };
		devices[i].grant = 1ull << 28;
		for (unsigned a = 0; a < OBP_ATTR_MAX; a++) {
			devices[i].attr_known[a] = a % 2;
			devices[i].attr[a] = (int32_t)a * (a % 3 ? 1 : -100000);
		}
	}
	out = (struct obp_message){ .type = OBP_MSG_WELCOME,
		.welcome = { .version = "9",
			.driver = "soft",
			.route = 5,
			.secret = { 1, 2, 3 },
			.driver_version = 13000,
			.opcodes = 77,
			.vmm = true,
			.free_memory = true,
			.range_ok = true,
			.range = { 1ull << 45, 1ull << 40 },
			.n_devices = OBP_DEVICE_MAX,
			.devices = devices } };
	CHECK_INT(round_trip(0), OB_ERR_NONE);
	CHECK_INT(in.welcome.n_devices, OBP_DEVICE_MAX);
	CHECK(in.welcome.free_memory && !in.welcome.times);
	CHECK(in.welcome.vmm && in.welcome.range_ok && in.welcome.route == 5 &&
		in.welcome.secret[2] == 3);
	CHECK_INT(in.welcome.driver_version, 13000);
	CHECK_INT(in.welcome.opcodes, 77);
	for (unsigned a = 0; a < OBP_ATTR_MAX; a++) {
		CHECK_INT(in.welcome.devices[3].attr_known[a], a % 2);
		if (a % 2)
			CHECK_INT(in.welcome.devices[3].attr[a], devices[3].attr[a]);
	}
	CHECK_STR(in.welcome.devices[15].name, "device 15");
	obp_message_fini(&in);
	devices[0].grant = devices[0].range.size + 1;
	CHECK_INT(round_trip(0), OB_ERR_PROTOCOL); /* grant larger than the range */
}

TEST(free_memory_goes_around)
{
	out = (struct obp_message){ .type = OBP_MSG_MEMORY_ASK, .value = 1ull << 60, .code = 15 };
	CHECK_INT(round_trip(0), OB_ERR_NONE);
	CHECK(in.type == OBP_MSG_MEMORY_ASK && in.value == 1ull << 60 && in.code == 15);
	out = (struct obp_message){ .type = OBP_MSG_MEMORY,
		.value = 7,
		.code = 2,
		.received = 1ull << 40,
		.free_bytes = UINT64_MAX,
		.total_bytes = UINT64_MAX };
	CHECK_INT(round_trip(0), OB_ERR_NONE);
	CHECK(in.type == OBP_MSG_MEMORY && in.value == 7 && in.code == 2 &&
		in.received == 1ull << 40);
	CHECK(in.free_bytes == UINT64_MAX && in.total_bytes == UINT64_MAX);
	out.total_bytes--; /* more is free than there is */
	CHECK_INT(round_trip(0), OB_ERR_PROTOCOL);
}

TEST(every_cut_is_refused)
{
	out = (struct obp_message){ .type = OBP_MSG_FATAL, .code = 7, .text = "because" };
	CHECK_INT(round_trip(0), OB_ERR_NONE);
	CHECK_STR(in.text, "because");
	for (size_t cut = 1; cut < 40; cut++)
		CHECK_INT(round_trip(cut), OB_ERR_PROTOCOL);
}

TEST(text_from_a_peer_moves_no_cursor)
{
	out = (struct obp_message){ .type = OBP_MSG_REFUSED, .text = "a\033[2Jb\nc" };
	CHECK_INT(round_trip(0), OB_ERR_NONE);
	CHECK_STR(in.text, "a?[2Jb?c");
}

TEST(wrong_types_and_numbers)
{
	/*
	 * {"type": 99}, {"type": "x"}, [], {"type": 7, "value": -1}, {"type": 1, "ranges": [[1]]}
	 */
	static const struct {
		const char *map;
		size_t size;
	} maps[] = {
		{ "\x81\xa4type\x63", 7 },
		{ "\x81\xa4type\xa1x", 8 },
		{ "\x90", 1 },
		{ "\x82\xa4type\x07\xa5value\xff", 14 },
		{ "\x82\xa4type\x01\xa6ranges\x91\x91\x01", 17 },
		{ "\xc0", 1 },
		{ "", 0 },
		{ "\xdd\xff\xff\xff\xff", 5 },
		{ "\xdf\xff\xff\xff\xff", 5 },
	};

	for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
		CHECK(obp_message_decode(maps[i].map, maps[i].size, &in) != OB_ERR_NONE);
}

TEST(unknown_keys_are_skipped)
{
	/* {"type": 6, "later": {"a": [1,2]}, "value": 5} */
	static const char map[] = "\x83\xa4type\x06\xa5later\x81\xa1"
				  "a\x92\x01\x02\xa5value\x05";

	CHECK_INT(obp_message_decode(map, sizeof map - 1, &in), OB_ERR_NONE);
	CHECK_INT(in.value, 5);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
