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
	enum ob_err (*set)(void *user, const struct ob_option *option, char *value,
		struct ob_cause *ret_cause);
	void *user;
	const struct ob_option *options;
};

/* Whether an option is a key of the file. */
static bool is_key(const struct ob_option *option)
{
	return option->kind != OB_HEADING && !option->hidden && !option->not_in_file;
}

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

	for (const struct ob_option *o = r->options; o->name; o++)
		if (is_key(o) && ob_text_distance(key, o->name) < least) {
			least = ob_text_distance(key, o->name);
			best = o->name;
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

static int handle(void *user, const char *section, const char *key, const char *value)
{
	struct reading *r = user;
	const struct ob_option *option = ob_option_find(r->options, key);
	struct ob_cause cause = { .code = OB_ERR_NONE };
	char text[OB_CAUSE_TEXT + 256], *kept;

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
	if (!option || !is_key(option)) {
		unknown_key(r, key);
		return 1;
	}
	kept = strdup(value);
	if (!kept || r->set(r->user, option, kept, &cause)) {
		snprintf(text, sizeof text, "%s = '%.64s': it takes %s", key, value,
			kept ? cause.text : "more memory than there is");
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
	enum ob_err (*set)(void *user, const struct ob_option *option, char *value,
		struct ob_cause *ret_cause),
	void *user, const struct ob_option *options)
{
	struct reading r = {
		.file = file, .in = fopen(file, "r"), .set = set, .user = user, .options = options
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
