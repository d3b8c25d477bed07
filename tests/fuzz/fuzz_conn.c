/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Raw bytes for the frame decoder, in pieces whose sizes come from the input; every item is read to
 * its last byte. If the first byte's top bit is set, the connection sometimes breaks and resumes,
 * also in the middle of a large item.
 */
#include <string.h>

#include "base/check.h"
#include "protocol/conn.h"
#include "tests/fuzz/fuzz.h"

static volatile unsigned sink;

static void touch(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sink += data[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct obp_conn conn;
	struct obp_item item;
	size_t at = 1, step = size ? 1 + data[0] * 7u : 1;

	if (size == 0 || obp_conn_init(&conn, 1 + data[0] % 7u))
		return 0;
	conn.codecs = data[0] & 0x80 ? OBZ_ALL_CODECS : 0;
	for (;;) {
		enum obp_event event = obp_conn_next(&conn, &item);
		size_t n;
		void *p;

		if (event == OBP_BROKEN)
			break;
		if (event == OBP_NEED) {
			if (at >= size)
				break;
			obp_conn_space(&conn, &p, &n);
			n = ob_min(n, ob_min(step, size - at));
			memcpy(p, data + at, n);
			obp_conn_fed(&conn, n);
			at += n;
			if (data[0] & 0x80 && data[at - 1] % 5 == 0)
				obp_conn_restart(&conn);
			continue;
		}
		if (event != OBP_ACK)
			touch(item.body, event == OBP_BIG ? item.have : item.size);
		while (event == OBP_BIG && obp_conn_body_left(&conn)) {
			uint8_t part[333];

			if (data[0] & 0x80 && at < size && data[at] % 3 == 0) {
				obp_conn_restart(&conn);
				break;
			}
			n = obp_conn_body_buffered(&conn, part, sizeof part);
			if (n == 0) {
				n = ob_min(obp_conn_body_left(&conn),
					ob_max(size - ob_min(at, size), (size_t)1));
				obp_conn_body_direct(&conn, n);
				at += n;
			}
		}
	}
	obp_conn_fini(&conn);
	return 0;
}
