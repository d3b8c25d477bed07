/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Checks that frames stored at the release of a version still decode, with the same meaning:
 *
 *     stored_frames FILE                  FILE has pairs of lines: "name frame-in-hex", then the
 *                                         call as obp_print_call must print it
 *     stored_frames --frames-only FILE    FILE has only the lines with names and frames
 *     stored_frames --write FILE          prints such a FILE with the second lines added
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/conn.h"
#include "protocol/obp_calls.h"

#define FRAME_MAX      4096
#define LINE_MAX_BYTES (2 * FRAME_MAX + 256)

static unsigned line_number;

__attribute__((noreturn)) static void fail(const char *what, const char *detail)
{
	fprintf(stderr, "line %u: %s %s\n", line_number, what, detail);
	exit(1);
}

static size_t from_hex(const char *hex, uint8_t *ret, size_t capacity)
{
	size_t n = 0;
	unsigned byte;
	for (; sscanf(hex, "%2x", &byte) == 1 && n < capacity; hex += 2)
		ret[n++] = (uint8_t)byte;
	return n;
}

/* Decodes one frame, `step` bytes at a time. Prints its only record to ret_text. */
static void decode(const char *name, const uint8_t *frame, size_t size, size_t step, char *ret_text,
	size_t capacity)
{
	struct obp_conn conn;
	struct obp_item item;
	bool shown = false;
	size_t at = 0;
	if (obp_conn_init(&conn, OBP_ACCEPT_CALLS))
		fail("no memory", "");
	for (;;) {
		enum obp_event event = obp_conn_next(&conn, &item);
		if (event == OBP_NEED && at < size) {
			void *space;
			size_t room;
			obp_conn_space(&conn, &space, &room);
			size_t n = size - at < step ? size - at : step;
			n = n < room ? n : room;
			memcpy(space, frame + at, n);
			obp_conn_fed(&conn, n);
			at += n;
			continue;
		}
		if (event != OBP_RECORD)
			break;
		const struct obp_call_info *info = obp_call_info(item.record.opcode);
		if (!info || strcmp(info->name, name))
			fail("another call than", name);
		if (!obp_check_req(item.record.opcode, item.body, (uint32_t)item.size))
			fail("the check refuses", name);
		obp_print_call(
			ret_text, capacity, item.record.opcode, item.body, (uint32_t)item.size);
		shown = true;
	}
	if (conn.cause.code)
		fail(name, conn.cause.text);
	if (!shown || at != size)
		fail("no record in the frame of", name);
	obp_conn_fini(&conn);
}

int main(int argc, char **argv)
{
	bool only = argc == 3 && !strcmp(argv[1], "--frames-only"),
	     write = argc == 3 && !strcmp(argv[1], "--write");
	FILE *file = argc == (only || write ? 3 : 2) ? fopen(argv[argc - 1], "r") : NULL;
	static char line[LINE_MAX_BYTES], text[2048], again[2048];
	static uint8_t frame[FRAME_MAX];
	unsigned calls = 0;
	if (!file) {
		fprintf(stderr, "usage: stored_frames [--frames-only | --write] FILE\n");
		return 2;
	}
	while (fgets(line, sizeof(line), file)) {
		line_number++;
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '#')
			continue;
		char *hex = strchr(line, ' ');
		if (!hex)
			fail("not 'name frame':", line);
		*hex++ = 0;
		size_t size = from_hex(hex, frame, sizeof(frame));
		decode(line, frame, size, size, text, sizeof(text));
		decode(line, frame, size, 1, again, sizeof(again));
		if (strcmp(text, again))
			fail("byte by byte it reads", again);
		if (write)
			printf("%s %s\n%s\n", line, hex, text);
		calls++;
		if (only || write)
			continue;
		line_number++;
		if (!fgets(line, sizeof(line), file))
			fail("the file ends before", text);
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, text))
			fail("this frame now reads", text);
	}
	fclose(file);
	if (!write)
		printf("%u frames\n", calls);
	return calls == 0;
}
