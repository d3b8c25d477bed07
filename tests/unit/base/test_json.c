/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/test.h"

static char *made;
static size_t made_size;

static struct ob_json begin(enum ob_json_style style)
{
	struct ob_json json;
	FILE *file = open_memstream(&made, &made_size);

	CHECK(file != NULL);
	ob_json_begin(&json, file, style);
	return json;
}

static void check(struct ob_json *json, const char *want)
{
	CHECK(ob_json_whole(json));
	CHECK_INT(fclose(json->file), 0);
	CHECK_STR(made, want);
	free(made);
}

static void nested(struct ob_json *json)
{
	ob_json_object(json, NULL);
	ob_json_text(json, "a", "b");
	ob_json_array(json, "list");
	ob_json_uint(json, NULL, 1);
	ob_json_object(json, NULL);
	ob_json_end(json);
	ob_json_array(json, NULL);
	ob_json_bool(json, NULL, true);
	ob_json_end(json);
	CHECK(!ob_json_whole(json));
	ob_json_end(json);
	ob_json_null(json, "n");
	ob_json_end(json);
}

TEST(styles_differ_in_white_space_only)
{
	struct ob_json json = begin(OB_JSON_COMPACT);

	nested(&json);
	check(&json, "{\"a\":\"b\",\"list\":[1,{},[true]],\"n\":null}");
	json = begin(OB_JSON_SPACED);
	nested(&json);
	check(&json, "{\"a\": \"b\", \"list\": [1, {}, [true]], \"n\": null}");
	json = begin(OB_JSON_PRETTY);
	nested(&json);
	check(&json,
		"{\n  \"a\": \"b\",\n  \"list\": [\n    1,\n    {},\n    [\n      true\n    ]\n  "
		"],\n"
		"  \"n\": null\n}");
}

TEST(rows_on_lines_of_their_own)
{
	struct ob_json json = begin(OB_JSON_SPACED);

	ob_json_array(&json, NULL);
	for (unsigned i = 0; i < 2; i++) {
		ob_json_break(&json);
		ob_json_object(&json, NULL);
		ob_json_uint(&json, "i", i);
		ob_json_uint(&json, "k", i);
		ob_json_end(&json);
	}
	ob_json_end(&json);
	check(&json, "[\n  {\"i\": 0, \"k\": 0},\n  {\"i\": 1, \"k\": 1}\n]");
	json = begin(OB_JSON_PRETTY); /* one line break, not two */
	ob_json_array(&json, NULL);
	ob_json_break(&json);
	ob_json_uint(&json, NULL, 1);
	ob_json_end(&json);
	check(&json, "[\n  1\n]");
}

TEST(text_is_escaped)
{
	struct ob_json json = begin(OB_JSON_COMPACT);

	ob_json_object(&json, NULL);
	ob_json_text(&json, "key \"1\"", "a\"b\\c\n\t\x01\x7f/");
	ob_json_text(&json, "utf", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	ob_json_text(&json, "none", NULL);
	ob_json_text(&json, "empty", "");
	ob_json_textf(&json, "hex", "0x%04x \"", 0xabu);
	ob_json_end(&json);
	check(&json,
		"{\"key \\\"1\\\"\":\"a\\\"b\\\\c\\u000a\\u0009\\u0001\\u007f/\","
		"\"utf\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\",\"none\":null,\"empty\":\"\","
		"\"hex\":\"0x00ab \\\"\"}");
}

/* RFC 3629: a stray byte, a sequence cut short, overlong forms, a surrogate, above U+10FFFF. */
TEST(bytes_that_are_not_utf8_are_replaced)
{
	static const struct {
		const char *bytes, *want;
	} rows[] = {
		{ "a\x80z", "\"a\\ufffdz\"" },
		{ "\xc3", "\"\\ufffd\"" },
		{ "\xe2\x82", "\"\\ufffd\\ufffd\"" },
		{ "\xc0\xaf", "\"\\ufffd\\ufffd\"" },
		{ "\xe0\x9f\xbf", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "\xf0\x8f\xbf\xbf", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
		{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
		{ "\xff", "\"\\ufffd\"" },
		{ "\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\"" },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct ob_json json = begin(OB_JSON_COMPACT);

		ob_json_text(&json, NULL, rows[i].bytes);
		check(&json, rows[i].want);
	}
}

TEST(numbers)
{
	struct ob_json json = begin(OB_JSON_COMPACT);

	ob_json_array(&json, NULL);
	ob_json_uint(&json, NULL, UINT64_MAX);
	ob_json_int(&json, NULL, INT64_MIN);
	ob_json_double(&json, NULL, 0.1, 0);
	ob_json_double(&json, NULL, 1.0 / 3, 0);
	ob_json_double(&json, NULL, 1.0 / 3, 4);
	ob_json_double(&json, NULL, 1e300, 0);
	ob_json_double(&json, NULL, -0.0, 0);
	ob_json_fixed(&json, NULL, 2.0 / 3, 3);
	ob_json_fixed(&json, NULL, 1e15, 0);
	ob_json_double(&json, NULL, NAN, 0);
	ob_json_double(&json, NULL, INFINITY, 4);
	ob_json_fixed(&json, NULL, -INFINITY, 2);
	ob_json_raw(&json, NULL, "{\"raw\":1}");
	ob_json_end(&json);
	check(&json,
		"[18446744073709551615,-9223372036854775808,0.1,0.3333333333333333,0.3333,1e+300,0,"
		"0.667,1000000000000000,null,null,null,{\"raw\":1}]");
}

TEST(doubles_are_read_again_exactly)
{
	static const double values[] = { 0.1, 1.0 / 3, DBL_MIN, DBL_MAX, DBL_TRUE_MIN, 5e-324, 0.3,
		123456789.123456789, 9007199254740993.0 };

	for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
		struct ob_json json = begin(OB_JSON_COMPACT);

		ob_json_double(&json, NULL, values[i], 0);
		CHECK_INT(fclose(json.file), 0);
		CHECK(strtod(made, NULL) == values[i]);
		free(made);
		json = begin(OB_JSON_COMPACT); /* the longest text */
		ob_json_fixed(&json, NULL, -values[i], 20);
		CHECK_INT(fclose(json.file), 0);
		CHECK(made_size < 352);
		free(made);
	}
}

TEST(depth_up_to_the_maximum)
{
	struct ob_json json = begin(OB_JSON_COMPACT);
	char want[4 * OB_JSON_DEPTH_MAX + 1], *to = want;

	for (unsigned i = 0; i < OB_JSON_DEPTH_MAX; i++) {
		if (i % 2)
			ob_json_array(&json, "k");
		else
			ob_json_object(&json, NULL);
		to = stpcpy(to, i % 2 ? "\"k\":[" : "{");
	}
	for (unsigned i = OB_JSON_DEPTH_MAX; i-- > 0;) {
		ob_json_end(&json);
		to = stpcpy(to, i % 2 ? "]" : "}");
	}
	check(&json, want);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
