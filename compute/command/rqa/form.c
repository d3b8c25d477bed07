/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/form.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 40

/* Decodes %41 and + in place; false: malformed, or a byte that is invalid in a form. */
static bool decode(char *text)
{
	char *out = text;

	for (const char *p = text; *p; p++) {
		char c = *p;

		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			char digits[3] = { p[1], p[1] ? p[2] : 0, 0 }, *end;

			c = (char)strtoul(digits, &end, 16);
			if (end != digits + 2 || digits[0] == '+' || digits[0] == '-' ||
				digits[0] == ' ' || c == 0)
				return false;
			p += 2;
		}
		if ((unsigned char)c < 0x20 && c != '\t' && c != '\n' && c != '\r')
			return false;
		*out++ = c;
	}
	*out = 0;
	return true;
}

static bool take_field(const char *name, char *value, const char *out_root, struct obx_sweep *sweep,
	struct obx_error *error)
{
	bool known = false;

	if (strcmp(name, "name") == 0) {
		char path[4096];
		size_t length = strlen(value);

		if (!length || length > NAME_MAX_BYTES ||
			strspn(value,
				"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
				"_") != length ||
			value[0] == '-')
			return obx_error_set(error, "a name has 1 to %d letters, digits, - or _",
				NAME_MAX_BYTES);
		if (snprintf(path, sizeof path, "%s/%s", out_root, value) >= (int)sizeof path)
			return obx_error_set(error, "the name is too long");
		free(sweep->out);
		sweep->out = strdup(path);
		return sweep->out ? true : obx_error_set(error, "out of memory");
	}
	if (strcmp(name, "m") == 0 || strcmp(name, "tau") == 0 || strcmp(name, "eps") == 0 ||
		strcmp(name, "lmin") == 0) {
		char *out = value;

		for (const char *p = value; *p; p++) /* users write 1..10, 12 */
			if (*p != ' ')
				*out++ = *p;
		*out = 0;
		return obx_grid_set(&sweep->grid, name, value, error);
	}
	if (strcmp(name, "write") == 0)
		return obx_sweep_parse_writes(value, &sweep->writes, error);
	if (strcmp(name, "fresh") == 0) {
		sweep->fresh = strcmp(value, "yes") == 0;
		return true;
	}
	if (!*value) /* keep the value of the preset */
		return true;
	return obx_setup_take(&sweep->setup, name, value, &known, error);
}

bool obx_form_sweep(char *body, const char *out_root, struct obx_sweep *sweep,
	char ret_field[OBX_FORM_FIELD_MAX], struct obx_error *error)
{
	char *rest = body, *pair;

	ret_field[0] = 0;
	while ((pair = strtok_r(rest, "&", &rest))) {
		char *equals = strchr(pair, '=');

		if (!equals)
			return obx_error_set(error, "the form is damaged; load the page again");
		*equals = 0;
		if (!decode(pair) || !decode(equals + 1) || strlen(pair) >= OBX_FORM_FIELD_MAX)
			return obx_error_set(error, "the form is damaged; load the page again");
		if (!take_field(pair, equals + 1, out_root, sweep, error)) {
			strcpy(ret_field, pair);
			return false;
		}
	}
	if (!sweep->out) {
		strcpy(ret_field, "name");
		return obx_error_set(error, "the sweep needs a name");
	}
	return obx_setup_finish(&sweep->setup, error) && obx_grid_check(&sweep->grid, error);
}
