/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A correct sender over an unreliable link. The input chooses how records are sized, framed and
 * packed, in what pieces the bytes arrive, where the connection breaks, also in the middle of a
 * large record, and from which record the sender repeats. Every record must be received once, in
 * order and complete.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/conn.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"

#define RECORDS_MAX   24u
#define BODY_MAX      (80u << 10)
#define FRAME_RECORDS 4u

static uint32_t body_sizes[RECORDS_MAX + 1];
static uint8_t bodies[FRAME_RECORDS * (BODY_MAX + sizeof(struct obp_record))];
static uint8_t wire[FRAME_RECORDS * (BODY_MAX + 1024u) + 4096u];

/*
 * The body of record n begins here at n * 64. No two bodies are alike, and all can be compressed.
 */
static uint8_t pattern[BODY_MAX + 64 * (RECORDS_MAX + 1)];

static void pattern_fill(void)
{
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i % 8 == 7 ? i / 8 * 37 : i / 64 + i / 16384);
}

/*
 * Makes the frame that carries the records from `from` on. Returns the number after its last one.
 */
static uint64_t frame_make(struct obp_packer *packer, uint64_t from, size_t *ret_size)
{
	uint64_t number = from, count = 1 + fuzz_take(FRAME_RECORDS);
	struct iovec iov[5];
	struct obp_frame frame;
	size_t size = 0, at = 0;
	int n = 2;

	for (; number < from + count && number <= RECORDS_MAX; number++) {
		struct obp_record record = { .size = (uint32_t)sizeof record + body_sizes[number],
			.opcode = 1 };

		memcpy(bodies + size, &record, sizeof record);
		memcpy(bodies + size + sizeof record, pattern + number * 64, body_sizes[number]);
		size += record.size;
	}
	obp_frame_fill(&frame, OBP_FRAME_CALLS, (uint32_t)size, (uint32_t)(number - from), from, 0);
	iov[0] = (struct iovec){ &frame, sizeof frame };
	iov[1] = (struct iovec){ bodies, size };
	if (packer->on)
		n = obp_packer_frame(packer, &frame, iov, n);
	for (int i = 0; i < n; i++) {
		if (at + iov[i].iov_len > sizeof wire)
			abort();
		memcpy(wire + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	*ret_size = at;
	return number;
}

static double rate(void *user)
{
	(void)user;
	return 1e6;
}

static uint64_t shown; /* number of the last record that was received completely */

static void compare(const struct obp_item *item, const uint8_t *body, size_t from, size_t n)
{
	if (item->number != shown + 1 || item->size != body_sizes[item->number])
		abort();
	if (memcmp(body, pattern + item->number * 64 + from, n) != 0)
		abort();
}

/* Reads everything in conn. False: the connection broke in the middle of a large record. */
static bool items_take(struct obp_conn *conn, const uint8_t **from, size_t *left)
{
	static uint8_t part[BODY_MAX];
	struct obp_item item;

	for (;;) {
		enum obp_event event = obp_conn_next(conn, &item);
		size_t done = 0, n;

		if (event == OBP_NEED)
			return true;
		if (event != OBP_RECORD && event != OBP_BIG)
			abort(); /* the sender kept to the protocol */
		if (event == OBP_RECORD)
			compare(&item, item.body, 0, item.size);
		while (event == OBP_BIG && obp_conn_body_left(conn)) {
			n = obp_conn_body_buffered(conn, part, sizeof part);
			if (n == 0) {
				n = fuzz_used_up() ? *left : (size_t)1 + 97u * fuzz_take(255);
				n = ob_min(n, ob_min(obp_conn_body_left(conn), *left));
				if (n == 0 || (!fuzz_used_up() && fuzz_take(8) == 0))
					return false;
				memcpy(part, *from, n);
				obp_conn_body_direct(conn, n);
				*from += n;
				*left -= n;
			}
			compare(&item, part, done, n);
			done += n;
		}
		shown++;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct obp_packer packer;
	uint64_t next = 1, floor = 1;
	struct obp_conn conn;
	unsigned codec;

	if (!pattern[7 + 8])
		pattern_fill();
	fuzz_input_start(data, ob_min(size, (size_t)1024));
	shown = 0;
	codec = fuzz_take(OBZ_CODEC_COUNT);
	if (obp_conn_init(&conn, OBP_ACCEPT_CALLS))
		return 0;
	conn.codecs = OBZ_ALL_CODECS;
	memset(&packer, 0, sizeof packer);
	if (codec)
		obp_packer_init(&packer, OBZ_ALL_CODECS, codec, true, rate, NULL);
	for (unsigned i = 1; i <= RECORDS_MAX; i++) {
		unsigned kind = fuzz_take(4), n = fuzz_take(255);

		body_sizes[i] = kind == 3 ? 8u * (4000u + n * 20u)
			: kind == 2       ? 8u * n * 16u
					  : 8u * (n % 32);
	}
	while (next <= RECORDS_MAX) {
		const uint8_t *p = wire;
		bool broke = false;
		size_t left;

		next = frame_make(&packer, next, &left);
		while (left && !broke) {
			size_t room, n, many;
			void *space;

			obp_conn_space(&conn, &space, &room);
			many = fuzz_take(255);
			n = fuzz_used_up() ? left : 1 + many * fuzz_take(255);
			n = ob_min(n, ob_min(room, left));
			memcpy(space, p, n);
			obp_conn_fed(&conn, n);
			p += n;
			left -= n;
			broke = !items_take(&conn, &p, &left) ||
				(!fuzz_used_up() && fuzz_take(16) == 0);
		}
		if (broke) {
			obp_conn_restart(&conn);
			/*
			 * The receiver reported its position, perhaps before it received the latest
			 * records. It never reports less than before.
			 */
			floor += fuzz_take((unsigned)(shown + 1 - floor) + 1);
			next = floor;
		}
	}
	if (shown != RECORDS_MAX)
		abort();
	if (codec)
		obp_packer_fini(&packer);
	obp_conn_fini(&conn);
	return 0;
}
