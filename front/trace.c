/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define LINE_MAX_BYTES 1024
#define TEXT_MAX       64 /* limit of a printed string in bytes */
/* larger unsigned numbers are printed in hexadecimal, as in the client's trace */
#define DECIMAL_MAX    0x100000u

bool obf_trace_on;

static int trace_fd;
static struct ob_file trace_file;
static _Atomic uint64_t last_number;
static _Atomic unsigned last_lane;
static _Thread_local unsigned lane; /* counted from 1; 0: none yet */

void obf_trace_open(void)
{
	const char *path = getenv("OUTBOARD_TRACE");
	int fd;

	if (!path || !*path || obf_trace_on)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		ob_warn("OUTBOARD_TRACE: cannot open %s (%s): calls are not traced", path,
			strerror(errno));
		return;
	}
	trace_fd = ob_fd_raise(fd);
	trace_file = ob_fd_file(trace_fd);
	obf_trace_on = true;
}

struct line {
	char text[LINE_MAX_BYTES];
	size_t used;
};

static __attribute__((format(printf, 2, 3))) void put(struct line *line, const char *format, ...)
{
	size_t room = sizeof line->text - 1 - line->used; /* one byte is reserved for the newline */
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line->text + line->used, room, format, args);
	va_end(args);
	if (n > 0)
		line->used += (size_t)n < room ? (size_t)n : room - 1;
}

static void put_text(struct line *line, const char *text)
{
	if (!text) {
		put(line, "0");
		return;
	}
	put(line, "\"");
	for (size_t i = 0; text[i] && i < TEXT_MAX; i++) {
		unsigned char c = (unsigned char)text[i];

		put(line, c >= ' ' && c < 127 && c != '"' && c != '\\' ? "%c" : "\\x%02x", c);
	}
	put(line, strnlen(text, TEXT_MAX + 1) > TEXT_MAX ? "...\"" : "\"");
}

static void put_args(struct line *line, const struct obf_trace_arg *args, unsigned n)
{
	put(line, "(");
	for (unsigned i = 0; i < n; i++) {
		put(line, i ? ", %s=" : "%s=", args[i].name);
		if (args[i].kind == OBF_TRACE_TEXT)
			put_text(line, (const char *)(uintptr_t)args[i].value);
		else if (args[i].kind == OBF_TRACE_SIGNED)
			put(line, "%" PRId64, (int64_t)args[i].value);
		else if (args[i].kind == OBF_TRACE_ADDRESS || args[i].value >= DECIMAL_MAX)
			put(line, "0x%" PRIx64, args[i].value);
		else
			put(line, "%" PRIu64, args[i].value);
	}
	put(line, ")");
}

static void begin(struct line *line, uint64_t number, const char *name)
{
	uint64_t now = ob_clock_ns();

	if (!lane)
		lane = atomic_fetch_add(&last_lane, 1) + 1;
	line->used = 0;
	put(line, "%llu.%09llu #%llu lane %u %s", (unsigned long long)(now / OB_SECOND),
		(unsigned long long)(now % OB_SECOND), (unsigned long long)number, lane - 1, name);
}

static void end(struct line *line)
{
	ssize_t written;

	line->text[line->used++] = '\n';
	/*
	 * A line that cannot be written is dropped, and the program continues. The program may have
	 * reused the descriptor's number for another file, to which nothing is written.
	 */
	written = ob_fd_is(trace_fd, &trace_file) ? write(trace_fd, line->text, line->used) : 0;
	(void)written;
}

uint64_t obf_trace_call(const char *name, const struct obf_trace_arg *args, unsigned n)
{
	uint64_t number = atomic_fetch_add(&last_number, 1) + 1;
	int saved = errno;
	struct line line;

	begin(&line, number, name);
	put_args(&line, args, n);
	end(&line);
	errno = saved;
	return number;
}

void obf_trace_result(uint64_t number, const char *name, CUresult result,
	const struct obf_trace_arg *outs, unsigned n)
{
	int saved = errno;
	struct line line;

	if (result == CUDA_SUCCESS && !n)
		return;
	begin(&line, number, name);
	put(&line, " = %d", (int)result);
	if (result == CUDA_SUCCESS) {
		put(&line, " ");
		put_args(&line, outs, n);
	}
	end(&line);
	errno = saved;
}
