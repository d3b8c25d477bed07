/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/terminal.h"

#define TEXT_BYTES 319u  /* of a text in a line; longer ones are cut */
#define LINE_BYTES 8064u /* four texts of characters that are escaped by six bytes, and the rest */
#define PATH_BYTES 4096u

static struct audit {
	const char *path; /* NULL: no audit */
	int fd;
	uint64_t size, written; /* bytes: limit of a file, and of this one so far */
	uint32_t files;
	bool complained;
	/* refusals of this second */
	uint64_t second_ns;
	uint32_t lines, more; /* lines written; connections not listed one by one */
} audit = { .fd = -1 };

struct line {
	char text[LINE_BYTES];
	FILE *file; /* writes to text */
	struct ob_json json;
};

/* ---- files ---- */

static void complain(const char *what)
{
	if (!audit.complained)
		ob_error("audit: %s: %s: %s", audit.path, what, strerror(errno));
	audit.complained = true;
}

static bool file_open(void)
{
	struct stat st;

	audit.fd = open(audit.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	audit.written = audit.fd >= 0 && fstat(audit.fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	return audit.fd >= 0;
}

/* FILE becomes FILE.1, FILE.1 becomes FILE.2; the last one is overwritten. */
static void file_rotate(void)
{
	char from[PATH_BYTES], to[PATH_BYTES];

	for (uint32_t i = audit.files - 1; i > 0; i--) {
		if (i > 1)
			snprintf(from, sizeof from, "%.4000s.%u", audit.path, i - 1);
		else
			snprintf(from, sizeof from, "%.4000s", audit.path);
		snprintf(to, sizeof to, "%.4000s.%u", audit.path, i);
		if (rename(from, to) != 0 && errno != ENOENT)
			complain("cannot be renamed");
	}
	/*
	 * If renaming failed, or only one file is allowed, start the file again: it is bounded in
	 * any case.
	 */
	close(audit.fd);
	if (!file_open())
		complain("cannot be opened");
	else if (audit.written >= audit.size && ftruncate(audit.fd, 0) == 0)
		audit.written = 0;
}

enum ob_err obs_audit_open(
	const char *path, uint64_t size, uint32_t files, struct ob_cause *ret_cause)
{
	audit = (struct audit){ .path = path, .fd = -1, .size = size, .files = files };
	if (!path || file_open())
		return OB_ERR_NONE;
	return ob_cause_set_system(
		ret_cause, OB_ERR_IO, errno, "cannot open the audit log %.200s", path);
}

/* ---- lines ---- */

/* A text may come from a client, so it is cut: escaped, it takes up to six times as many bytes. */
static void put_text(struct line *line, const char *key, const char *text)
{
	ob_json_textf(&line->json, key, "%.*s", (int)TEXT_BYTES, text);
}

/* False: there is no memory for the line. */
static bool begin(struct line *line, const char *event)
{
	time_t now = time(NULL);
	struct tm utc;
	char text[32];

	line->file = fmemopen(line->text, sizeof line->text, "w");
	if (!line->file) {
		complain("cannot be written");
		return false;
	}
	gmtime_r(&now, &utc);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	ob_json_begin(&line->json, line->file, OB_JSON_COMPACT);
	ob_json_object(&line->json, NULL);
	ob_json_text(&line->json, "time", text);
	ob_json_text(&line->json, "event", event);
	return true;
}

static bool begin_session(struct line *line, const char *event, uint64_t id)
{
	if (!begin(line, event))
		return false;
	ob_json_textf(&line->json, "session", "%016llx", (unsigned long long)id);
	return true;
}

static void finish(struct line *line)
{
	size_t size;
	ssize_t n;

	ob_json_end(&line->json);
	size = (size_t)ftell(line->file);
	fclose(line->file);
	/* Removes control characters beyond ASCII, which JSON permits in a text. */
	size = ob_text_clean(line->text, size);
	line->text[size++] = '\n';
	if (audit.written && audit.written + size > audit.size)
		file_rotate();
	/* a rotation may have failed to open the file, for lack of descriptors */
	else if (audit.fd < 0 && !file_open())
		complain("cannot be opened");
	if (audit.fd < 0)
		return;
	do
		n = write(audit.fd, line->text, size);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		complain("cannot be written");
		return;
	}
	audit.written += (uint64_t)n;
	audit.complained = false;
}

void obs_audit_opened(uint64_t id, const struct obs_identity *identity, const char *transport,
	const char *program, uint64_t pid, const char *device)
{
	struct line line;

	if (!audit.path || !begin_session(&line, "open", id))
		return;
	put_text(&line, "who", identity->who);
	put_text(&line, "from", identity->from);
	put_text(&line, "transport", transport);
	put_text(&line, "program", program);
	ob_json_uint(&line.json, "pid", pid);
	put_text(&line, "device", device);
	finish(&line);
}

void obs_audit_closed(
	uint64_t id, const char *who, const struct obs_audit_counts *counts, const char *reason)
{
	struct line line;

	if (!audit.path || !begin_session(&line, "close", id))
		return;
	put_text(&line, "who", who);
	ob_json_fixed(&line.json, "seconds", counts->seconds, 3);
	ob_json_uint(&line.json, "calls", counts->calls);
	ob_json_uint(&line.json, "bytes_in", counts->bytes_in);
	ob_json_uint(&line.json, "bytes_out", counts->bytes_out);
	put_text(&line, "how", reason);
	finish(&line);
}

void obs_audit_killed(uint64_t id, const char *reason)
{
	struct line line;

	if (!audit.path || !begin_session(&line, "killed", id))
		return;
	put_text(&line, "how", reason);
	finish(&line);
}

static void refused_write(const char *from, const char *who, const char *reason, uint32_t count)
{
	struct line line;

	ob_info("%u connection%s from %s (%s) refused: %s", count, count == 1 ? "" : "s", from, who,
		reason);
	if (!audit.path || !begin(&line, "refused"))
		return;
	put_text(&line, "who", who);
	put_text(&line, "from", from);
	ob_json_uint(&line.json, "count", count);
	put_text(&line, "how", reason);
	finish(&line);
}

static void rest_write(void)
{
	uint32_t more = audit.more;

	audit.more = audit.lines = 0;
	if (more)
		refused_write("others", "others", "too many refusals to list one by one", more);
}

void obs_audit_refused(const char *from, const char *who, const char *reason, uint32_t count)
{
	uint64_t now = ob_clock_ns();

	if (now - audit.second_ns >= OB_SECOND) {
		audit.second_ns = now;
		rest_write();
	}
	if (audit.lines++ < OBS_AUDIT_REFUSED_PER_S)
		refused_write(from, who, reason, count);
	else
		audit.more += count;
}

void obs_audit_close(void)
{
	rest_write();
	if (audit.fd >= 0)
		close(audit.fd);
	audit.path = NULL;
	audit.fd = -1;
}
