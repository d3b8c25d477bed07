/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/session.h"
#include "transport/tls.h"

#define LINE_BYTES 4096u

static int audit_fd = -1;
static _Atomic bool opened, closed, complained;

struct line {
	char text[LINE_BYTES];
	size_t n;
};

bool obs_audit_open(const char *path)
{
	if (!path)
		return true;
	audit_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (audit_fd < 0)
		ob_error("audit: %s: %s", path, strerror(errno));
	return audit_fd >= 0;
}

static __attribute__((format(printf, 2, 3))) void put(struct line *line, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line->text + line->n, LINE_BYTES - 4 - line->n, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < LINE_BYTES - 4 - line->n)
		line->n += (size_t)n;
}

/* Names come from clients: what JSON or a terminal would take for something else is escaped. */
static void put_text(struct line *line, const char *key, const char *text)
{
	put(line, ",\"%s\":\"", key);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			put(line, "\\%c", c);
		else if (c < ' ' || c == 0x7f)
			put(line, "\\u%04x", c);
		else
			put(line, "%c", c);
	}
	put(line, "\"");
}

static void begin(struct line *line, const char *event, uint64_t route)
{
	time_t now = time(NULL);
	struct tm utc;
	char text[32];

	gmtime_r(&now, &utc);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	line->n = 0;
	put(line, "{\"time\":\"%s\",\"event\":\"%s\",\"session\":\"%016llx\"", text, event, (unsigned long long)route);
}

static void finish(struct line *line)
{
	ssize_t n;

	memcpy(line->text + line->n, "}\n", 2);
	do
		n = write(audit_fd, line->text, line->n + 2);
	while (n < 0 && errno == EINTR);
	if (n < 0 && !atomic_exchange(&complained, true))
		ob_error("audit: cannot be written: %s", strerror(errno));
}

void obs_audit_session_open(const struct obs_session *session, const char *program, uint64_t pid)
{
	struct line line;

	if (audit_fd < 0)
		return;
	atomic_store(&opened, true);
	begin(&line, "open", session->route);
	put_text(&line, "who", session->identity.who);
	put_text(&line, "from", session->identity.from);
	put(&line, ",\"transport\":\"%s\"", session->data.tls ? "tls" : strcmp(session->identity.from, "unix") == 0 ? "unix" : "tcp");
	put_text(&line, "program", program);
	put(&line, ",\"pid\":%llu", (unsigned long long)pid);
	put_text(&line, "device", session->welcome->welcome.n_devices ? session->welcome->welcome.devices[0].name : "");
	finish(&line);
}

void obs_audit_session_close(const struct obs_session *session, const char *how)
{
	struct line line;

	if (audit_fd < 0 || !atomic_load(&opened) || atomic_exchange(&closed, true))
		return;
	begin(&line, "close", session->route);
	put_text(&line, "who", session->identity.who);
	put(&line, ",\"seconds\":%.3f,\"calls\":%llu,\"bytes_in\":%llu,\"bytes_out\":%llu", (double)(ob_clock_ns() - session->since_ns) / 1e9,
		(unsigned long long)atomic_load(&session->replies.executed), (unsigned long long)session->conn.bytes,
		(unsigned long long)session->replies.sent_bytes);
	put_text(&line, "how", how);
	finish(&line);
}

void obs_audit_refused(const struct obs_session *session, const char *why)
{
	struct line line;

	if (audit_fd < 0)
		return;
	begin(&line, "refused", session->route);
	put_text(&line, "who", session->identity.who);
	put_text(&line, "from", session->identity.from);
	put_text(&line, "how", why);
	finish(&line);
}

void obs_audit_killed(uint64_t route, const char *how)
{
	struct line line;

	if (audit_fd < 0)
		return;
	begin(&line, "killed", route);
	put_text(&line, "how", how);
	finish(&line);
}
