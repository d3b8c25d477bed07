/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Writes JSON (RFC 8259) to a stream, value by value, without a tree in memory. The writer puts
 * commas, colons and white space; the caller opens and closes objects and arrays. It lives on the
 * caller's stack and owns nothing; one thread at a time. Errors are those of the stream: the caller
 * checks ferror or fclose at the end.
 *
 *     struct ob_json json;
 *
 *     ob_json_begin(&json, stdout, OB_JSON_SPACED);
 *     ob_json_object(&json, NULL);
 *     ob_json_text(&json, "name", "GPU 0");
 *     ob_json_array(&json, "ms");
 *     ob_json_fixed(&json, NULL, 1.5, 3);
 *     ob_json_end(&json);
 *     ob_json_end(&json);                     {"name": "GPU 0", "ms": [1.500]}
 *
 * key: the name of the member in an object, and NULL in an array and for the outermost value. It is
 * escaped as text is.
 */
#ifndef OB_JSON_H
#define OB_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OB_JSON_DEPTH_MAX 64u /* of nested objects and arrays; more is a fault of the caller */

enum ob_json_style {
	OB_JSON_COMPACT, /* no white space */
	OB_JSON_SPACED,  /* one line, blanks after commas and colons */
	OB_JSON_PRETTY,  /* every value on a line of its own, two blanks for each level */
};

struct ob_json {
	FILE *file;
	enum ob_json_style style;
	unsigned depth;
	uint64_t objects; /* bit i: level i + 1 is an object, not an array */
	uint64_t broken;  /* bit i: a value of level i + 1 is on a new line, so its end is, too */
	bool more;        /* a value precedes on this level */
	bool line;        /* the next value starts on a new line */
};

void ob_json_begin(struct ob_json *json, FILE *file, enum ob_json_style style);
void ob_json_object(struct ob_json *json, const char *key);
void ob_json_array(struct ob_json *json, const char *key);
/* Closes the innermost object or array. */
void ob_json_end(struct ob_json *json);
/* The outermost value is complete: all objects and arrays are closed. */
bool ob_json_whole(const struct ob_json *json);
/* The next value, which must follow on this level, starts on a new line, whatever the style. */
void ob_json_break(struct ob_json *json);

/* text NULL: null. Bytes that are not UTF-8 become U+FFFD; control characters are escaped. */
void ob_json_text(struct ob_json *json, const char *key, const char *text);
/* A string made by printf: at most 4,095 bytes, longer ones are cut. */
void ob_json_textf(struct ob_json *json, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ob_json_bool(struct ob_json *json, const char *key, bool value);
void ob_json_null(struct ob_json *json, const char *key);
void ob_json_uint(struct ob_json *json, const char *key, uint64_t value);
void ob_json_int(struct ob_json *json, const char *key, int64_t value);
/*
 * A number with `digits` significant digits (1..17), as printf's %g; digits 0: the fewest digits
 * from which the same number is read again. NaN and infinity are null, -0 is 0. The process must
 * have the C locale for numbers, which it has without setlocale.
 */
void ob_json_double(struct ob_json *json, const char *key, double value, int digits);
/* The same with `decimals` digits behind the point, as printf's %f. */
void ob_json_fixed(struct ob_json *json, const char *key, double value, int decimals);
/* A value that is JSON already. */
void ob_json_raw(struct ob_json *json, const char *key, const char *value);

#endif
