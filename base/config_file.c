/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/config_file.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

struct reading {
	const struct ob_config_format *format;
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
	if (r->errors++ < OB_CONFIG_ERRORS_MAX)
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
			"there is no setting '%.64s'; '%s --help' lists them all, "
			"without the dashes",
			key, r->format->program);
	complain(r, r->line, text);
}

/* "[server] or [limits]". */
static void sections_print(const struct ob_config_format *format, char *ret_text, size_t size)
{
	size_t at = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; format->sections[i] && at < size; i++) {
		int n = snprintf(
			ret_text + at, size - at, "%s[%s]", i ? " or " : "", format->sections[i]);

		at += n > 0 ? (size_t)n : 0;
	}
}

static bool section_known(const struct ob_config_format *format, const char *section)
{
	for (size_t i = 0; format->sections[i]; i++)
		if (strcmp(section, format->sections[i]) == 0)
			return true;
	return false;
}

static int handle(void *user, const char *section, const char *key, const char *value)
{
	struct reading *r = user;
	const struct ob_option *option = ob_option_find(r->options, key);
	struct ob_cause cause = { .code = OB_ERR_NONE };
	char text[OB_CAUSE_TEXT + 256], *kept;

	if (!section_known(r->format, section)) {
		char sections[128];

		sections_print(r->format, sections, sizeof sections);
		if (*section)
			snprintf(text, sizeof text,
				"there is no section [%.64s]; settings belong to %s", section,
				sections);
		else
			snprintf(text, sizeof text,
				"'%.64s' is outside of any section; begin the file with [%s]", key,
				r->format->sections[0]);
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

	if (r->errors > OB_CONFIG_ERRORS_MAX || !fgets(text, size, r->in))
		return NULL;
	r->line++;
	return text;
}

/* libinih passes one pointer to both of its callbacks. */
int ob_config_read(const struct ob_config_format *format, const char *file,
	enum ob_err (*set)(void *user, const struct ob_option *option, char *value,
		struct ob_cause *ret_cause),
	void *user, const struct ob_option *options)
{
	struct reading r = { .format = format,
		.file = file,
		.in = fopen(file, "r"),
		.set = set,
		.user = user,
		.options = options };
	int line;

	if (!r.in) {
		fprintf(stderr, "%s: cannot read the configuration %s: %s\n", format->program, file,
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
