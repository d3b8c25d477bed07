/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The log: one line per event to stderr, written with one write() so that lines of several
 * processes are not mixed. Control characters are replaced (base/terminal.h). Logging never blocks:
 * when a pipe is full, lines are dropped and counted, and the next line reports the number. Equal
 * errors and warnings are limited: after three of them, one line is written every ten seconds and
 * reports how many were held back. OUTBOARD_LOG=error|warn|info|debug sets the level (default
 * warn). Any thread. Only the first function that knows a cause logs it.
 */
#ifndef OB_LOG_H
#define OB_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum ob_log_level { OB_LOG_ERROR, OB_LOG_WARN, OB_LOG_INFO, OB_LOG_DEBUG };

#define OB_LOG_LINE_MAX 2048 /* bytes; longer lines are cut */

/* The name at the start of each line; the string is not copied. Set once before threads start. */
void ob_log_set_name(const char *name);
/* Writes lines to fd instead of descriptor 2. Set once before threads start. */
void ob_log_set_fd(int fd);
void ob_log_set_level(enum ob_log_level level);
bool ob_log_on(enum ob_log_level level);
void ob_log(enum ob_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Sets a function that receives the text of each error and warning that is written, NUL-terminated
 * and without the newline. It must not block, and must not log. Set once before threads start.
 */
void ob_log_set_listener(void (*listener)(enum ob_log_level level, const char *text, size_t size));

#define ob_error(...) ob_log(OB_LOG_ERROR, __VA_ARGS__)
#define ob_warn(...)  ob_log(OB_LOG_WARN, __VA_ARGS__)
#define ob_info(...)  ob_log(OB_LOG_INFO, __VA_ARGS__)
#define ob_debug(...)                                      \
	do {                                               \
		if (ob_log_on(OB_LOG_DEBUG))               \
			ob_log(OB_LOG_DEBUG, __VA_ARGS__); \
	} while (0)

#endif
