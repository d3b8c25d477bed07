/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/common/config.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

struct reading {
	const char *file;
	FILE *in;
	int line, errors;
	bool (*set)(void *user, const char *key, char *value, char *ret_why, size_t size);
	void *user;
	const char *const *names;
};

static void complain(struct reading *r, int line, const char *what)
{
	if (r->errors++ < OBS_CONFIG_ERRORS_MAX)
		fprintf(stderr, "%s:%d: %s\n", r->file, line, what);
}

static void unknown_key(struct reading *r, const char *key)
{
	const char *best = NULL;
	unsigned least = 4; /* with more changes than that it is another word */
	char text[256];

	for (const char *const *name = r->names; *name; name++)
		if (ob_text_distance(key, *name) < least) {
			least = ob_text_distance(key, *name);
			best = *name;
		}
	if (best)
		snprintf(text, sizeof text, "there is no setting '%.64s'; did you mean '%s'?", key,
			best);
	else
		snprintf(text, sizeof text,
			"there is no setting '%.64s'; 'outboard-server --help' lists them all, "
			"without the dashes",
			key);
	complain(r, r->line, text);
}

static bool known(const struct reading *r, const char *key)
{
	for (const char *const *name = r->names; *name; name++)
		if (strcmp(*name, key) == 0)
			return true;
	return false;
}

static int handle(void *user, const char *section, const char *key, const char *value)
{
	struct reading *r = user;
	char why[256] = "", text[400], *kept;

	if (strcmp(section, "server") != 0 && strcmp(section, "limits") != 0) {
		if (*section)
			snprintf(text, sizeof text,
				"there is no section [%.64s]; settings belong to [server] or "
				"[limits]",
				section);
		else
			snprintf(text, sizeof text,
				"'%.64s' is outside of any section; begin the file with [server]",
				key);
		complain(r, r->line, text);
		return 1;
	}
	if (!known(r, key)) {
		unknown_key(r, key);
		return 1;
	}
	kept = strdup(value);
	if (!kept || !r->set(r->user, key, kept, why, sizeof why)) {
		snprintf(text, sizeof text, "%s = '%.64s': it takes %s", key, value,
			kept ? why : "more memory than there is");
		complain(r, r->line, text);
	}
	return 1;
}

static char *read_line(char *text, int size, void *stream)
{
	struct reading *r = stream;

	if (r->errors > OBS_CONFIG_ERRORS_MAX || !fgets(text, size, r->in))
		return NULL;
	r->line++;
	return text;
}

/* libinih passes one pointer to both of its callbacks. */
int obs_config_read(const char *file,
	bool (*set)(void *user, const char *key, char *value, char *ret_why, size_t size),
	void *user, const char *const *names)
{
	struct reading r = {
		.file = file, .in = fopen(file, "r"), .set = set, .user = user, .names = names
	};
	int line;

	if (!r.in) {
		fprintf(stderr, "outboard-server: cannot read the configuration %s: %s\n", file,
			strerror(errno));
		return -1;
	}
	ini_allow_multiline = false; /* an indented key is a key */
	line = ini_parse_stream(read_line, &r, handle, &r);
	if (line > 0)
		complain(&r, line,
			"neither 'key = value' nor '[section]' nor a comment that begins with ';' "
			"or '#'");
	else if (line < 0 || ferror(r.in))
		complain(&r, r.line, "reading the file failed before its end");
	fclose(r.in);
	return r.errors;
}
