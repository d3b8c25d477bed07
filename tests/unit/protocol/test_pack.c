/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Packed frames are received like unpacked ones; invalid fields in a packed frame end the
 * connection.
 */
#include "base/check.h"
#include "protocol/conn.h"
#include "protocol/pack.h"
#include "tests/test.h"

#define BODY     (200u << 10)
#define WIRE_MAX (4u << 20)

static uint8_t body[BODY], wire[WIRE_MAX];
static size_t wire_size;
static double rate_now;
/* memory is given back before each frame, and whenever the receiver needs more bytes */
static bool releases;

static double rate(void *unused)
{
	(void)unused;
	return rate_now;
}

static void put(const struct iovec *iov, int n)
{
	for (int i = 0; i < n; i++) {
		CHECK(wire_size + iov[i].iov_len <= sizeof wire);
		memcpy(wire + wire_size, iov[i].iov_base, iov[i].iov_len);
		wire_size += iov[i].iov_len;
	}
}

/*
 * Sends one record as a copy by reference is sent: head, 16 bytes, `size` bytes of body, padding.
 * True: it was packed.
 */
static bool put_record(struct obp_packer *packer, uint64_t number, uint32_t size)
{
	static const uint8_t zeros[8];
	uint8_t fixed[16] = "fixed part here";
	uint32_t pad = (8 - size % 8) % 8,
		 all = (uint32_t)sizeof(struct obp_record) + 16 + size + pad;
	struct obp_record record = { all, 7, 3 };
	struct obp_frame frame;
	struct iovec iov[5] = { { &frame, sizeof frame }, { &record, sizeof record },
		{ fixed, sizeof fixed }, { body, size }, { (void *)(uintptr_t)zeros, pad } };
	int n;

	obp_frame_fill(&frame, OBP_FRAME_CALLS, all, 1, number, 0);
	if (releases)
		obp_packer_release(packer);
	n = obp_packer_frame(packer, &frame, iov, 5);
	put(iov, n);
	CHECK(n == 5 ||
		(n == 2 && frame.size == iov[1].iov_len && frame.size % 8 == 0 &&
			frame.raw_size == all));
	return n == 2;
}

/*
 * Reads everything on the wire in pieces of `step` and compares each record with what put_record
 * sent. Returns the number of records.
 */
static unsigned take(struct obp_conn *conn, size_t step, const uint32_t *sizes)
{
	static uint8_t got[BODY + 64];
	struct obp_item item;
	unsigned n = 0;
	size_t at = 0, have, space;
	void *p;

	for (;;) {
		enum obp_event event = obp_conn_next(conn, &item);

		if (event == OBP_BROKEN)
			return n;
		if (event == OBP_NEED) {
			if (at == wire_size)
				return n;
			if (releases)
				obp_conn_release(conn);
			obp_conn_space(conn, &p, &space);
			CHECK(space > 0);
			space = ob_min(space, ob_min(step, wire_size - at));
			memcpy(p, wire + at, space);
			obp_conn_fed(conn, space);
			at += space;
			continue;
		}
		CHECK(event == OBP_RECORD || event == OBP_BIG);
		CHECK(item.size <= sizeof got);
		if (event == OBP_RECORD)
			memcpy(got, item.body, item.size);
		for (size_t done = 0; event == OBP_BIG && done < item.size; done += have) {
			have = obp_conn_body_buffered(conn, got + done, item.size - done);
			if (have)
				continue;
			have = ob_min(item.size - done, wire_size - at);
			CHECK(have > 0);
			memcpy(got + done, wire + at, have);
			obp_conn_body_direct(conn, have);
			at += have;
		}
		CHECK_INT(item.record.lane, 3);
		CHECK(memcmp(got, "fixed part here", 16) == 0);
		CHECK_INT(item.size, 16 + ob_round_up(sizes[n], 8));
		CHECK(memcmp(got + 16, body, sizes[n]) == 0);
		for (size_t i = 16 + sizes[n]; i < item.size; i++)
			CHECK_INT(got[i], 0);
		n++;
	}
}

static void conn_make(struct obp_conn *conn, unsigned codecs)
{
	CHECK_INT(obp_conn_init(conn, OBP_ACCEPT_CALLS), OB_ERR_NONE);
	conn->codecs = codecs;
}

static void body_fill(void)
{
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = (uint8_t)(i % 4 == 3 ? i / 4096 : i % 4 * 31 + i / 777);
}

static void mixed(void)
{
	static const uint32_t sizes[] = { 100, 20000, 20001, OBP_PACK_MIN - 1, OBP_PACK_MIN, 40003,
		8, BODY - 5, BODY };
	static const size_t steps[] = { 1, 7, 48, 568, 4096, 65536, WIRE_MAX };

	body_fill();
	for (unsigned codec = 1; codec < OBZ_CODEC_COUNT; codec++) {
		struct obp_packer packer;
		unsigned packed = 0;

		obp_packer_init(&packer, OBZ_ALL_CODECS, codec, true, rate, NULL);
		wire_size = 0;
		for (unsigned i = 0; i < ob_count(sizes); i++)
			packed += put_record(&packer, i + 1, sizes[i]);
		CHECK_INT(packed, 6);
		CHECK_INT(packer.stats.chunks[codec], 6);
		CHECK(packer.stats.wire[codec] < packer.stats.raw[codec]);
		for (unsigned s = 0; s < ob_count(steps); s++) {
			struct obp_conn conn;

			conn_make(&conn, 1u << codec);
			CHECK_INT(take(&conn, steps[s], sizes), ob_count(sizes));
			CHECK(!conn.cause.code);
			CHECK_INT(conn.unpacker.stats.chunks[codec], 6);
			obp_conn_fini(&conn);
		}
		obp_packer_fini(&packer);
	}
}

TEST(packed_and_plain_frames_mixed)
{
	mixed();
}

TEST(memory_given_back_between_frames)
{
	releases = true;
	mixed();
}

TEST(what_was_not_agreed_on_is_refused)
{
	struct obp_packer packer;
	struct obp_conn conn;
	uint32_t size = 30000;

	body_fill();
	obp_packer_init(&packer, OBZ_ALL_CODECS, OBZ_LZ4, true, rate, NULL);
	wire_size = 0;
	CHECK(put_record(&packer, 1, size));
	for (unsigned codecs = 0; codecs < 16; codecs++) {
		conn_make(&conn, codecs);
		CHECK_INT(take(&conn, WIRE_MAX, &size), codecs >> OBZ_LZ4 & 1);
		CHECK_INT(conn.cause.code, codecs >> OBZ_LZ4 & 1 ? OB_ERR_NONE : OB_ERR_PROTOCOL);
		obp_conn_fini(&conn);
	}
	obp_packer_fini(&packer);
}

TEST(lies_in_packed_frames)
{
	struct obp_packer packer;
	struct obp_conn conn;
	uint32_t size = 30000, value;
	static uint8_t good[WIRE_MAX];
	size_t good_size;

	body_fill();
	obp_packer_init(&packer, OBZ_ALL_CODECS, OBZ_ZSTD, true, rate, NULL);
	wire_size = 0;
	CHECK(put_record(&packer, 1, size));
	good_size = wire_size;
	memcpy(good, wire, wire_size);
	/*
	 * Sets each field of the frame's and the payload's head to each of these values. The result
	 * must be an error or, for the original value, the record.
	 */
	for (size_t at = 4; at < sizeof(struct obp_frame) + sizeof(struct obp_packed); at += 4) {
		const uint32_t values[] = { 0, 1, 7, 8, 16, 24, size, size + 8, 4u << 20,
			(4u << 20) + 8, 0x7fffffff, 0xfffffff8, 0xffffffff };

		if (at >= 24 && at < 40)
			continue; /* the acknowledgement and the time: any value is valid */
		for (size_t v = 0; v < ob_count(values); v++) {
			memcpy(wire, good, good_size);
			memcpy(&value, wire + at, 4);
			if (value == values[v])
				continue;
			memcpy(wire + at, &values[v], 4);
			conn_make(&conn, OBZ_ALL_CODECS);
			take(&conn, WIRE_MAX, &size);
			/*
			 * An error, or waiting for more bytes because the frame's size was
			 * increased.
			 */
			CHECK(conn.cause.code || obp_conn_gathers(&conn) || conn.frame_left);
			obp_conn_fini(&conn);
		}
	}
	obp_packer_fini(&packer);
}

TEST(off_when_local_or_switched_off)
{
	struct obp_packer packer;

	obp_packer_init(&packer, OBZ_ALL_CODECS, OBP_CODEC_CHOOSE, true, rate, NULL);
	CHECK(!packer.on);
	obp_packer_init(&packer, OBZ_ALL_CODECS, OBP_CODEC_CHOOSE, false, rate, NULL);
	CHECK(packer.on);
	obp_packer_init(&packer, OBZ_ALL_CODECS, OBP_CODEC_MEASURE, true, rate, NULL);
	CHECK(packer.on);
	obp_packer_init(&packer, 0, OBZ_LZ4, false, rate, NULL);
	CHECK(!packer.on);
	obp_packer_init(&packer, 1u << OBZ_ZSTD, OBZ_LZ4, false, rate, NULL);
	CHECK(!packer.on);
}

TEST(chooses_by_the_rate)
{
	struct obp_packer packer;
	unsigned packed = 0;

	body_fill();
	obp_packer_init(&packer, OBZ_ALL_CODECS, OBP_CODEC_MEASURE, true, rate, NULL);
	wire_size = 0;
	rate_now = 0;
	for (unsigned i = 0; i < 16; i++)
		packed += put_record(&packer, i + 1, 20000);
	CHECK_INT(packed, 0);
	CHECK_INT(packer.stats.chunks[OBZ_NONE], 16);
	rate_now = 1e6;
	for (unsigned i = 0; i < 16; i++)
		packed += put_record(&packer, i + 17, 20000);
	CHECK_INT(packed, 16);
	rate_now = 1e15;
	packed = 0;
	wire_size = 0;
	for (unsigned i = 0; i < 16; i++)
		packed += put_record(&packer, i + 33, 20000);
	CHECK_INT(packed, 1); /* the rate is measured when a frame is sent, for later ones */
	obp_packer_fini(&packer);
}

TEST(an_earlier_rate_decides_for_the_first_chunk)
{
	struct obp_packer packer;

	for (size_t i = 0; i < BODY; i++)
		body[i] = (uint8_t)(i * 2654435761u >> 24 & 15);
	/* the meter would say: so fast that no codec pays */
	rate_now = 1e12;
	obp_packer_init(&packer, OBZ_ALL_CODECS, OBP_CODEC_CHOOSE, false, rate, NULL);
	obp_packer_expect(&packer, 1e6);
	CHECK(put_record(&packer, 1, BODY));
	CHECK(!put_record(&packer, 2, BODY)); /* the meter's figure counts from then on */
	obp_packer_fini(&packer);
	rate_now = 1e6;
	obp_packer_init(&packer, OBZ_ALL_CODECS, OBP_CODEC_CHOOSE, false, rate, NULL);
	obp_packer_expect(&packer, 1e12);
	CHECK(!obp_packer_cuts(&packer));
	CHECK(!put_record(&packer, 1, BODY));
	CHECK(put_record(&packer, 2, BODY));
	obp_packer_fini(&packer);
	/* unknown, or forced */
	obp_packer_init(&packer, OBZ_ALL_CODECS, OBP_CODEC_CHOOSE, false, rate, NULL);
	obp_packer_expect(&packer, 0);
	CHECK(put_record(&packer, 1, BODY));
	obp_packer_fini(&packer);
	obp_packer_init(&packer, OBZ_ALL_CODECS, OBZ_LZ4, false, rate, NULL);
	obp_packer_expect(&packer, 1e12);
	CHECK(put_record(&packer, 1, BODY));
	obp_packer_fini(&packer);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
