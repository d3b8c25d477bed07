/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/terminal.h"

static const char *log_name = "outboard";
static int log_fd = STDERR_FILENO;
static _Atomic unsigned lines_lost; /* since the last line that got through */
static _Atomic int log_level = -1; /* -1: the environment was not read yet */

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static int level_get(void)
{
	int level = atomic_load_explicit(&log_level, memory_order_relaxed);
	const char *text;

	if (level >= 0)
		return level;
	level = OB_LOG_WARN;
	text = getenv("OUTBOARD_LOG");
	for (int i = 0; text && i <= OB_LOG_DEBUG; i++)
		if (strcmp(text, level_names[i]) == 0)
			level = i;
	atomic_store_explicit(&log_level, level, memory_order_relaxed);
	return level;
}

void ob_log_set_name(const char *name)
{
	log_name = name;
}

void ob_log_set_fd(int fd)
{
	log_fd = fd;
}

void ob_log_set_level(enum ob_log_level level)
{
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

bool ob_log_on(enum ob_log_level level)
{
	return (int)level <= level_get();
}

/*
 * A pipe or terminal that nobody reads must not stop the program: a line that would have to wait is counted and dropped. A log line that
 * cannot be written has nowhere else to go.
 */
static bool put(const char *line, size_t size)
{
	struct pollfd fd = { .fd = log_fd, .events = POLLOUT };

	return poll(&fd, 1, 0) != 0 && write(log_fd, line, size) >= 0;
}

static void write_line(const char *line, size_t size)
{
	unsigned lost = atomic_exchange_explicit(&lines_lost, 0, memory_order_relaxed);
	char note[128];
	int n;

	if (lost) {
		n = snprintf(note, sizeof note, "%s: warn: %u log lines were lost: nobody read them\n", log_name, lost);
		if (!put(note, (size_t)n)) {
			atomic_fetch_add_explicit(&lines_lost, lost + 1, memory_order_relaxed);
			return;
		}
	}
	if (!put(line, size))
		atomic_fetch_add_explicit(&lines_lost, 1, memory_order_relaxed);
}

void ob_log(enum ob_log_level level, const char *format, ...)
{
	char line[OB_LOG_LINE_MAX];
	int saved = errno, n, m;
	va_list args;

	if (!ob_log_on(level))
		return;
	if (level == OB_LOG_INFO)
		n = snprintf(line, sizeof line, "%s: ", log_name);
	else
		n = snprintf(line, sizeof line, "%s: %s: ", log_name, level_names[level]);
	va_start(args, format);
	m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
	va_end(args);
	if (m < 0)
		m = 0;
	n += m;
	if (n > (int)sizeof line - 2)
		n = (int)sizeof line - 2;
	/* Names and words in it come from files, drivers and peers. */
	n = (int)ob_text_clean(line, (size_t)n);
	line[n++] = '\n';
	write_line(line, (size_t)n);
	errno = saved;
}
