/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/buf.h"
#include "base/check.h"
#include "protocol/conn.h"
#include "tests/test.h"

static struct ob_buf wire;

static void put_frame(enum obp_frame_type type, uint32_t size, uint32_t count, uint64_t sequence)
{
	struct obp_frame frame;

	obp_frame_fill(&frame, type, size, count, sequence, 0);
	CHECK(ob_buf_append(&wire, &frame, sizeof frame));
}

static void put_record(uint16_t opcode, uint32_t body, uint8_t fill)
{
	struct obp_record record = { (uint32_t)sizeof record + body, opcode, 0 };

	CHECK(ob_buf_append(&wire, &record, sizeof record));
	memset(ob_buf_extend(&wire, body), fill, body);
}

/*
 * Feeds the wire in pieces of `step` bytes and counts records whose bodies are right. OBP_BIG
 * bodies are read through a small buffer.
 */
static enum ob_err feed(size_t step, unsigned *ret_records)
{
	struct obp_conn conn;
	struct obp_item item;
	size_t at = 0;
	enum ob_err err;

	CHECK_INT(obp_conn_init(&conn, OBP_ACCEPT_CALLS | OBP_ACCEPT_CONTROL), OB_ERR_NONE);
	*ret_records = 0;
	for (;;) {
		enum obp_event event = obp_conn_next(&conn, &item);

		if (event == OBP_NEED) {
			void *p;
			size_t n;

			if (at == wire.size)
				break;
			obp_conn_space(&conn, &p, &n);
			CHECK(n > 0);
			n = ob_min(n, ob_min(step, wire.size - at));
			memcpy(p, wire.data + at, n);
			obp_conn_fed(&conn, n);
			at += n;
		} else if (event == OBP_RECORD) {
			for (size_t i = 0; i < item.size; i++)
				CHECK_INT(item.body[i], item.record.opcode & 0xff);
			CHECK_INT((uintptr_t)item.body % 8, 0);
			++*ret_records;
		} else if (event == OBP_BIG) {
			uint8_t part[1000];
			size_t total = 0, have;

			CHECK(item.have >= ob_min((size_t)OBP_CONN_BIG_HEAD, item.size));
			while (obp_conn_body_left(&conn)) {
				have = obp_conn_body_buffered(&conn, part, sizeof part);
				if (!have) {
					have = ob_min(sizeof part, obp_conn_body_left(&conn));
					memcpy(part, wire.data + at, have);
					at += have;
					obp_conn_body_direct(&conn, have);
				}
				for (size_t i = 0; i < have; i++)
					CHECK_INT(part[i], item.record.opcode & 0xff);
				total += have;
			}
			CHECK_INT(total, item.size);
			++*ret_records;
		} else if (event == OBP_BROKEN) {
			break;
		}
	}
	err = conn.cause.code;
	CHECK(!err == !conn.cause.text[0]);
	obp_conn_fini(&conn);
	return err;
}

static enum ob_err feed_all(size_t step)
{
	unsigned records;

	return feed(step, &records);
}

static void start(void)
{
	ob_buf_fini(&wire);
	ob_buf_init(&wire, 32u << 20);
}

TEST(records_come_out_whatever_the_pieces)
{
	static const size_t steps[] = { 1, 3, 7, 48, 49, 1000, 65536, 1u << 20 };
	uint32_t sizes[] = { 0, 8, 64, 1000, OBP_CONN_BIG - 8, OBP_CONN_BIG, 200000 };
	uint64_t sequence = 1;

	start();
	for (int frame = 0; frame < 6; frame++) {
		size_t header = wire.size;
		uint32_t count = 0;

		put_frame(OBP_FRAME_CALLS, 0, 0, sequence);
		for (size_t i = 0; i < ob_count(sizes); i++, count++)
			put_record((uint16_t)(frame * 10 + (int)i + 1), sizes[i],
				(uint8_t)(frame * 10 + (int)i + 1));
		((struct obp_frame *)(wire.data + header))->size =
			(uint32_t)(wire.size - header - sizeof(struct obp_frame));
		((struct obp_frame *)(wire.data + header))->raw_size =
			((struct obp_frame *)(wire.data + header))->size;
		((struct obp_frame *)(wire.data + header))->count = count;
		sequence += count;
	}
	for (size_t i = 0; i < ob_count(steps); i++) {
		unsigned records;

		CHECK_INT(feed(steps[i], &records), OB_ERR_NONE);
		CHECK_INT(records, 6 * ob_count(sizes));
	}
}

static struct obp_frame *one_record(void)
{
	start();
	put_frame(OBP_FRAME_CALLS, 16, 1, 1);
	put_record(5, 8, 5);
	return (struct obp_frame *)wire.data;
}

TEST(every_field_of_a_frame_is_checked)
{
	one_record();
	CHECK_INT(feed_all(1000), OB_ERR_NONE);
	one_record()->magic ^= 1;
	CHECK_INT(feed_all(1000), OB_ERR_MAGIC);
	one_record()->version = 99;
	CHECK_INT(feed_all(1000), OB_ERR_VERSION);
	one_record()->type = 77;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	one_record()->type = OBP_FRAME_REPLIES; /* not allowed in this direction */
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	one_record()->flags = 1;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	one_record()->reserved = 1;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	one_record()->size = 12;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	one_record()->size = OBP_FRAME_PAYLOAD_MAX + 8;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	one_record()->raw_size = 24;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	one_record()->count = 0;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	one_record()->count = 3;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	one_record()->sequence = 2;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	/* the count fits the frame's size for minimum records, but the first record is larger */
	one_record()->count = 2;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
}

TEST(every_field_of_a_record_is_checked)
{
	struct obp_record *record = (struct obp_record *)(one_record() + 1);

	record->size = 0;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	record = (struct obp_record *)(one_record() + 1);
	record->size = 12;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	record = (struct obp_record *)(one_record() + 1);
	record->size = 24;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	record = (struct obp_record *)(one_record() + 1);
	record->size = 8; /* leaves bytes after the last record */
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
	record = (struct obp_record *)(one_record() + 1);
	record->lane = OBP_LANE_MAX - 1;
	CHECK_INT(feed_all(1000), OB_ERR_NONE);
	record->lane = OBP_LANE_MAX;
	CHECK_INT(feed_all(1000), OB_ERR_PROTOCOL);
}

TEST(sizes_at_the_maximum)
{
	start();
	put_frame(OBP_FRAME_CALLS, OBP_FRAME_PAYLOAD_MAX, 1, 1);
	put_record(9, OBP_FRAME_PAYLOAD_MAX - 8, 9);
	CHECK_INT(feed_all(100000), OB_ERR_NONE);
	start();
	put_frame(OBP_FRAME_CONTROL, OBP_CONTROL_MAX, 0, 0);
	memset(ob_buf_extend(&wire, OBP_CONTROL_MAX), 0, OBP_CONTROL_MAX);
	CHECK_INT(feed_all(100000), OB_ERR_NONE);
	start();
	put_frame(OBP_FRAME_CONTROL, OBP_CONTROL_MAX + 8, 0, 0);
	CHECK_INT(feed_all(100000), OB_ERR_PROTOCOL);
}

TEST(an_error_stays)
{
	struct obp_conn conn;
	struct obp_item item;
	void *p;
	size_t n;

	CHECK_INT(obp_conn_init(&conn, OBP_ACCEPT_CALLS), OB_ERR_NONE);
	obp_conn_space(&conn, &p, &n);
	memset(p, 0x55, 48);
	obp_conn_fed(&conn, 48);
	CHECK_INT(obp_conn_next(&conn, &item), OBP_BROKEN);
	CHECK_INT(obp_conn_next(&conn, &item), OBP_BROKEN);
	CHECK_INT(conn.cause.code, OB_ERR_MAGIC);
	CHECK(conn.cause.text[0]);
	obp_conn_fini(&conn);
}

TEST(prefaces)
{
	struct obp_preface p = { OBP_MAGIC, OBP_VERSION, OBP_INTENT_NEW, 0, 0 };

	CHECK_INT(obp_preface_check(&p), OB_ERR_NONE);
	p.route = 1;
	CHECK_INT(obp_preface_check(&p), OB_ERR_PROTOCOL);
	p.intent = OBP_INTENT_JOIN;
	CHECK_INT(obp_preface_check(&p), OB_ERR_NONE);
	p.intent = 9;
	CHECK_INT(obp_preface_check(&p), OB_ERR_PROTOCOL);
	p = (struct obp_preface){ OBP_MAGIC, OBP_VERSION + 1, OBP_INTENT_NEW, 0, 0 };
	CHECK_INT(obp_preface_check(&p), OB_ERR_VERSION);
	p.magic = 0;
	CHECK_INT(obp_preface_check(&p), OB_ERR_MAGIC);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
