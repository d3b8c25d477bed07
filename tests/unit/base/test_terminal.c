/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "tests/test.h"

static bool cleans(const char *text, size_t n, const char *want)
{
	char copy[256];
	size_t got;

	memcpy(copy, text, n);
	got = ob_text_clean(copy, n);
	return got == strlen(want) && memcmp(copy, want, got) == 0;
}

#define CLEANS(text, want) CHECK(cleans((text), sizeof(text) - 1, (want)))

TEST(a_line_keeps_its_characters)
{
	CLEANS("", "");
	CLEANS("the token has expired", "the token has expired");
	CLEANS("Gerät \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0",
		"Gerät \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0");
}

TEST(a_line_loses_what_a_terminal_acts_on)
{
	CLEANS("\x1b[2J", "?[2J");
	CLEANS("\x9b"
	       "2J",
		"?2J"); /* C1, one byte */
	CLEANS("\xc2\x9b"
	       "2J",
		"?2J"); /* C1 in UTF-8 */
	CLEANS("\xc2\x80\xc2\x9f\x7f\n\t\0x", "??????x");
	CLEANS("a\xe2\x80\xae"
	       "b\xe2\x80\xa8"
	       "c\xe2\x81\xa6",
		"a?b?c?");
}

TEST(a_line_is_utf8)
{
	CLEANS("\xc0\xaf", "??");      /* overlong */
	CLEANS("\xe0\x82\x9b", "???"); /* U+009B, overlong */
	CLEANS("\xf0\x80\x82\x9b", "????");
	CLEANS("\xed\xa0\x80", "???");      /* a surrogate */
	CLEANS("\xf4\x90\x80\x80", "????"); /* beyond the last character */
	CLEANS("\xff\xfe", "??");
	CLEANS("cut \xe2\x82", "cut ??");
}

/* Tests every way to cut it into two pieces. */
static bool shows(const char *text, size_t n, const char *want)
{
	char out[256];

	for (size_t cut = 0; cut <= n; cut++) {
		struct ob_screen screen = { .n = 0 };
		size_t got = ob_screen_text(&screen, text, cut, out);

		got += ob_screen_text(&screen, text + cut, n - cut, out + got);
		if (got != strlen(want) || memcmp(out, want, got) != 0)
			return false;
	}
	return true;
}

#define SHOWS(text, want) CHECK(shows((text), sizeof(text) - 1, (want)))

TEST(a_screen_gets_lines_and_colours)
{
	SHOWS("x = 1\n\ty = 2\r\n", "x = 1\n\ty = 2\r\n");
	SHOWS("\x1b[1;31mred\x1b[0m\x1b[m", "\x1b[1;31mred\x1b[0m\x1b[m");
	SHOWS("\x1b[38:5:200m\xe2\x82\xac", "\x1b[38:5:200m\xe2\x82\xac");
}

TEST(a_screen_gets_nothing_else)
{
	SHOWS("\x1b]0;title\a!", "?]0;title\a!");
	SHOWS("\x1b]52;c;cm0gLXJm\x1b\\", "?]52;c;cm0gLXJm?\\");
	SHOWS("\x1b[2J\x1b[6n\x1b"
	      "c.",
		"?[2J?[6n?c.");
	SHOWS("\x1b[1\x1b[31m.", "?[1\x1b[31m.");
	SHOWS("\xc2\x9b"
	      "2J\x9b"
	      "2J\x90\xc2\x90",
		"??2J?2J???");
	SHOWS("\xe2\x82\x1b[2J", "???[2J");
	SHOWS("a\0b\x7f", "a?b?");
	SHOWS("\x1b[0000000000000000000000000000000000000000m",
		"?[0000000000000000000000000000000000000000m");
}

/*
 * Random bytes: the output of both functions never contains a control character in any form, and a
 * screen's text does not depend on how it was cut.
 */
TEST(random_bytes)
{
	uint64_t x = 88172645463325252ull;

	for (int round = 0; round < 20000; round++) {
		static const char some[] = "\x1b[m;0\xc2\x9b\xe2\x80\xae\x7f\n"
					   "a\xf0\x9f";
		char text[24], out[128], parts[128];
		struct ob_screen screen = { .n = 0 }, other = { .n = 0 };
		size_t n, m = 0;

		for (size_t i = 0; i < sizeof text; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			text[i] = x % 3 ? some[x / 3 % (sizeof some - 1)] : (char)(x >> 32);
		}
		n = ob_screen_text(&screen, text, sizeof text, out);
		for (size_t i = 0; i < sizeof text; i++)
			m += ob_screen_text(&other, text + i, 1, parts + m);
		CHECK(n == m && memcmp(out, parts, n) == 0);
		for (size_t i = 0; i < n; i++) {
			CHECK(out[i] != 0x7f && out[i] != 0);
			if (out[i] == 0x1b)
				CHECK(i + 2 < n && out[i + 1] == '[' &&
					memchr(out + i, 'm', n - i));
			if ((unsigned char)out[i] == 0xc2)
				CHECK(i + 1 < n && (unsigned char)out[i + 1] >= 0xa0);
		}
		n = ob_text_clean(text, sizeof text);
		m = n;
		CHECK(ob_text_clean(text, n) == m); /* cleaning is idempotent */
		for (size_t i = 0; i < n; i++)
			CHECK((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
