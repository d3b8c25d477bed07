/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/timeline_json.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define LINE_BYTES 512u

/* By hand: most of what is written are stamps. */
struct obc_stamp obc_timeline_stamp(uint64_t ns)
{
	bool before = (int64_t)ns < 0; /* only if a server's clock makes no sense */
	uint64_t left = before ? 0 - ns : ns;
	struct obc_stamp ret;
	char digits[24];
	unsigned n = 0, out = 0;

	for (; left || n < 4; left /= 10)
		digits[n++] = (char)('0' + left % 10);
	if (before)
		ret.text[out++] = '-';
	while (n) {
		ret.text[out++] = digits[--n];
		if (n == 3)
			ret.text[out++] = '.';
	}
	ret.text[out] = '\0';
	return ret;
}

/* An event as one line. The texts in it need no escapes. */
static __attribute__((format(printf, 2, 3))) void line(
	struct obc_timeline_file *file, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	ob_json_break(&file->json);
	ob_json_raw(&file->json, NULL, text);
}

void obc_timeline_slice(struct obc_timeline_file *file, const struct obc_slice *slice)
{
	line(file,
		"{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%s,"
		"\"dur\":%s,\"args\":{\"number\":%llu%s}}",
		slice->name, slice->category, slice->pid, slice->tid,
		obc_timeline_stamp(slice->at - file->began).text,
		obc_timeline_stamp(slice->took).text, (unsigned long long)slice->number,
		slice->more);
}

void obc_timeline_about(struct obc_timeline_file *file, const char *what, uint32_t pid,
	uint32_t tid, const char *key, const char *value)
{
	ob_json_break(&file->json);
	ob_json_object(&file->json, NULL);
	ob_json_text(&file->json, "ph", "M");
	ob_json_text(&file->json, "name", what);
	ob_json_uint(&file->json, "pid", pid);
	ob_json_uint(&file->json, "tid", tid);
	ob_json_object(&file->json, "args");
	ob_json_text(&file->json, key, value);
	ob_json_end(&file->json);
	ob_json_end(&file->json);
}

void obc_timeline_process(
	struct obc_timeline_file *file, uint32_t pid, unsigned order, const char *name)
{
	obc_timeline_about(file, "process_name", pid, 0, "name", name);
	line(file,
		"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%u,\"tid\":0,"
		"\"args\":{\"sort_index\":%u}}",
		pid, order);
}

void obc_timeline_thread(
	struct obc_timeline_file *file, uint32_t pid, uint32_t tid, const char *name)
{
	obc_timeline_about(file, "thread_name", pid, tid, "name", name);
}

void obc_timeline_flow(struct obc_timeline_file *file, const char *phase, uint32_t pid,
	uint32_t tid, uint64_t at, uint64_t number)
{
	line(file,
		"{\"ph\":\"%s\",\"name\":\"record\",\"cat\":\"flow\",\"pid\":%u,\"tid\":%u,"
		"\"ts\":%s,\"id\":%llu%s}",
		phase, pid, tid, obc_timeline_stamp(at - file->began).text,
		(unsigned long long)number, *phase == 's' ? "" : ",\"bp\":\"e\"");
}
