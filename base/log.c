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

#include "base/clock.h"
#include "base/hash.h"
#include "base/terminal.h"

static const char *log_name = "outboard";
static int log_fd = STDERR_FILENO;
static _Atomic unsigned lines_lost; /* since the last line that was written */
static _Atomic int log_level = -1;  /* -1: the environment has not been read */

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

static void (*log_listener)(enum ob_log_level level, const char *text, size_t size);

void ob_log_set_listener(void (*listener)(enum ob_log_level level, const char *text, size_t size))
{
	log_listener = listener;
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
 * A pipe or terminal that is not read must not block the program: a line that would have to wait is
 * counted and dropped. Other errors of a write are ignored, since there is no place to report them.
 */
static bool put(const char *line, size_t size)
{
	struct pollfd fd = { .fd = log_fd, .events = POLLOUT };

	return poll(&fd, 1, 0) != 0 && write(log_fd, line, size) >= 0;
}

/* ---- equal lines ---- */

#define REPEAT_SLOTS  64u
#define REPEAT_PROBES 4u
#define REPEAT_BURST  3u /* number of equal lines that are written without delay */
/* then one per interval, which reports how many were held back */
#define REPEAT_NS     (10 * OB_SECOND)
#define REPEAT_TEXT   160u /* bytes of a line that are kept for a report when the process ends */

static struct repeat {
	uint64_t hash;
	uint64_t written_ns;
	unsigned written;   /* lines since it was last quiet for REPEAT_NS */
	unsigned held_back; /* lines since the last one that was written */
	char text[REPEAT_TEXT];
} repeats[REPEAT_SLOTS];
static atomic_flag repeats_busy = ATOMIC_FLAG_INIT;
static pid_t repeats_pid; /* a child after fork does not report its parent's lines */

static uint64_t line_hash(const char *line, size_t size)
{
	uint64_t hash = ob_hash(OB_HASH_START, line, size);

	return hash ? hash : 1;
}

/*
 * Returns the line's slot, or takes an unused one or one without lines held back among its
 * REPEAT_PROBES slots. NULL: all of them have lines held back.
 */
static struct repeat *repeat_find(uint64_t hash, const char *line, size_t size)
{
	struct repeat *unused = NULL;

	for (unsigned i = 0; i < REPEAT_PROBES; i++) {
		struct repeat *r = &repeats[(hash + i) % REPEAT_SLOTS];

		if (r->hash == hash)
			return r;
		if (!r->held_back && (!unused || r->written_ns < unused->written_ns))
			unused = r;
	}
	if (unused) {
		*unused = (struct repeat){ .hash = hash };
		snprintf(unused->text, sizeof unused->text, "%.*s",
			(int)(size < sizeof unused->text ? size : sizeof unused->text - 1), line);
	}
	return unused;
}

/*
 * True if the line should be written; *ret_held_back: how many equal lines were held back since the
 * last one written. When another thread holds the table, or no slot is free, the line is written:
 * an extra line does no harm.
 */
static bool repeat_admit(const char *line, size_t size, unsigned *ret_held_back)
{
	uint64_t now;
	struct repeat *r;
	bool admit = true;

	*ret_held_back = 0;
	if (atomic_flag_test_and_set_explicit(&repeats_busy, memory_order_acquire))
		return true;
	now = ob_clock_ns();
	if (repeats_pid != getpid()) {
		memset(repeats, 0, sizeof repeats);
		repeats_pid = getpid();
	}
	r = repeat_find(line_hash(line, size), line, size);
	if (r) {
		bool quiet = now - r->written_ns >= REPEAT_NS;

		admit = quiet || r->written < REPEAT_BURST;
		if (admit) {
			*ret_held_back = r->held_back;
			r->written = quiet ? 1 : r->written + 1;
			r->written_ns = now;
			r->held_back = 0;
		} else {
			r->held_back++;
		}
	}
	atomic_flag_clear_explicit(&repeats_busy, memory_order_release);
	return admit;
}

__attribute__((destructor)) static void repeats_tell(void)
{
	char note[REPEAT_TEXT + 128];

	if (repeats_pid != getpid())
		return;
	for (unsigned i = 0; i < REPEAT_SLOTS; i++)
		if (repeats[i].held_back) {
			int n = snprintf(note, sizeof note, "%s (repeated %u times more)\n",
				repeats[i].text, repeats[i].held_back);

			put(note, (size_t)n);
		}
}

static void write_line(const char *line, size_t size)
{
	unsigned lost = atomic_exchange_explicit(&lines_lost, 0, memory_order_relaxed);
	char note[128];
	int n;

	if (lost) {
		n = snprintf(note, sizeof note,
			"%s: warn: %u log lines were lost: nobody read them\n", log_name, lost);
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
	/* It may contain text from files, drivers and peers. */
	n = (int)ob_text_clean(line, (size_t)n);
	if (level <= OB_LOG_WARN) {
		unsigned held_back;

		if (!repeat_admit(line, (size_t)n, &held_back)) {
			errno = saved;
			return;
		}
		if (held_back) {
			m = snprintf(line + n, sizeof line - (size_t)n - 1, " (repeated %u times)",
				held_back);
			n += m < (int)sizeof line - n - 1 ? m : 0;
		}
		line[n] = '\0';
		if (log_listener)
			log_listener(level, line, (size_t)n);
	}
	line[n++] = '\n';
	write_line(line, (size_t)n);
	errno = saved;
}
