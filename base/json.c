/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 352 /* the largest double has 309 digits before the point */
#define TEXT_BYTES   4096

void ob_json_begin(struct ob_json *json, FILE *file, enum ob_json_style style)
{
	*json = (struct ob_json){ .file = file, .style = style };
}

/* Length of the UTF-8 sequence that starts at text (RFC 3629); 0 if it is invalid. */
static unsigned sequence_length(const unsigned char *text)
{
	unsigned char low = 0x80, high = 0xbf; /* what the second byte may be */
	unsigned n = text[0] < 0x80                 ? 1
		: text[0] >= 0xc2 && text[0] < 0xe0 ? 2
		: (text[0] & 0xf0) == 0xe0          ? 3
		: text[0] >= 0xf0 && text[0] < 0xf5 ? 4
						    : 0;

	if (text[0] == 0xe0) /* overlong */
		low = 0xa0;
	else if (text[0] == 0xed) /* surrogates */
		high = 0x9f;
	else if (text[0] == 0xf0) /* overlong */
		low = 0x90;
	else if (text[0] == 0xf4) /* above U+10FFFF */
		high = 0x8f;
	if (n > 1 && (text[1] < low || text[1] > high))
		return 0;
	for (unsigned i = 2; i < n; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

static void string_write(FILE *file, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	putc('"', file);
	while (*p) {
		unsigned n = sequence_length(p);

		if (n == 0) {
			fputs("\\ufffd", file);
			p++;
		} else if (*p == '"' || *p == '\\') {
			fprintf(file, "\\%c", *p++);
		} else if (*p < 0x20 || *p == 0x7f) {
			fprintf(file, "\\u%04x", *p++);
		} else {
			fwrite(p, 1, n, file);
			p += n;
		}
	}
	putc('"', file);
}

static uint64_t level(const struct ob_json *json)
{
	return (uint64_t)1 << (json->depth - 1);
}

static void line_start(struct ob_json *json)
{
	fprintf(json->file, "\n%*s", (int)(2 * json->depth), "");
}

void ob_json_break(struct ob_json *json)
{
	assert(json->depth > 0);
	json->line = true;
}

/* Writes what precedes a value: comma, white space, key. */
static void value_start(struct ob_json *json, const char *key)
{
	const char *blank = json->style == OB_JSON_COMPACT ? "" : " ";

	assert(json->depth ? !!(json->objects & level(json)) == (key != NULL)
			   : !key && !json->more);
	if (json->more)
		putc(',', json->file);
	if (json->line || (json->depth && json->style == OB_JSON_PRETTY)) {
		line_start(json);
		json->broken |= level(json);
	} else if (json->more) {
		fputs(blank, json->file);
	}
	if (key) {
		string_write(json->file, key);
		fprintf(json->file, ":%s", blank);
	}
	json->more = true;
	json->line = false;
}

static void nest(struct ob_json *json, const char *key, bool object)
{
	value_start(json, key);
	assert(json->depth < OB_JSON_DEPTH_MAX);
	json->depth++;
	json->broken &= ~level(json);
	json->objects &= ~level(json);
	json->objects |= object ? level(json) : 0;
	json->more = false;
	putc(object ? '{' : '[', json->file);
}

void ob_json_object(struct ob_json *json, const char *key)
{
	nest(json, key, true);
}

void ob_json_array(struct ob_json *json, const char *key)
{
	nest(json, key, false);
}

void ob_json_end(struct ob_json *json)
{
	bool object, broken;

	assert(json->depth > 0 && !json->line);
	object = json->objects & level(json);
	broken = json->broken & level(json);
	json->depth--;
	if (broken)
		line_start(json);
	putc(object ? '}' : ']', json->file);
	json->more = true;
}

bool ob_json_whole(const struct ob_json *json)
{
	return json->depth == 0 && json->more;
}

void ob_json_raw(struct ob_json *json, const char *key, const char *value)
{
	value_start(json, key);
	fputs(value, json->file);
}

void ob_json_text(struct ob_json *json, const char *key, const char *text)
{
	if (!text) {
		ob_json_null(json, key);
		return;
	}
	value_start(json, key);
	string_write(json->file, text);
}

void ob_json_textf(struct ob_json *json, const char *key, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	ob_json_text(json, key, text);
}

void ob_json_bool(struct ob_json *json, const char *key, bool value)
{
	ob_json_raw(json, key, value ? "true" : "false");
}

void ob_json_null(struct ob_json *json, const char *key)
{
	ob_json_raw(json, key, "null");
}

void ob_json_uint(struct ob_json *json, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, value);
	ob_json_raw(json, key, text);
}

void ob_json_int(struct ob_json *json, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, value);
	ob_json_raw(json, key, text);
}

void ob_json_double(struct ob_json *json, const char *key, double value, int digits)
{
	char text[NUMBER_BYTES];

	if (!isfinite(value)) {
		ob_json_null(json, key);
		return;
	}
	value = value == 0 ? 0 : value; /* no -0 */
	for (int n = digits ? digits : 15; n <= (digits ? digits : 17); n++) {
		snprintf(text, sizeof text, "%.*g", n, value);
		if (strtod(text, NULL) == value)
			break;
	}
	ob_json_raw(json, key, text);
}

void ob_json_fixed(struct ob_json *json, const char *key, double value, int decimals)
{
	char text[NUMBER_BYTES];

	if (!isfinite(value)) {
		ob_json_null(json, key);
		return;
	}
	snprintf(text, sizeof text, "%.*f", decimals, value);
	ob_json_raw(json, key, text);
}
