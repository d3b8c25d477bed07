/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/terminal.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * Length in bytes of the character whose first byte is c; 0: no character starts with c (RFC 3629).
 */
static size_t utf8_length(unsigned char c)
{
	return c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
}

/*
 * Decodes the character at p, of `length` bytes, all of which are present. UINT32_MAX: invalid
 * UTF-8: no continuation byte, overlong, a surrogate, or beyond U+10FFFF.
 */
static uint32_t utf8_decode(const unsigned char *p, size_t length)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c = length == 1 ? p[0] : p[0] & (0xffu >> (length + 1));

	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return UINT32_MAX;
		c = c << 6 | (p[i] & 0x3fu);
	}
	return c < least[length] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? UINT32_MAX : c;
}

/* C0, DEL, C1. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/*
 * Separators of lines and paragraphs; embeddings, overrides, isolates and marks of the direction of
 * writing.
 */
static bool is_layout(uint32_t c)
{
	return c == 0x2028 || c == 0x2029 || (c >= 0x202a && c <= 0x202e) ||
		(c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x61c;
}

size_t ob_text_clean(char *text, size_t n)
{
	size_t at = 0, to = 0;

	while (at < n) {
		const unsigned char *p = (const unsigned char *)text + at;
		size_t length = utf8_length(*p);
		uint32_t c = length && length <= n - at ? utf8_decode(p, length) : UINT32_MAX;

		if (c == UINT32_MAX) {
			text[to++] = '?';
			at++;
			continue;
		}
		if (is_control(c) || is_layout(c))
			text[to++] = '?';
		else
			for (size_t i = 0; i < length; i++)
				text[to++] = text[at + i];
		at += length;
	}
	return to;
}

#define BAD  0
#define PART SIZE_MAX

/* Recognises ESC [ numbers m. Result as in screen_fit. */
static size_t colour_fit(const unsigned char *p, size_t n)
{
	if (n == 1)
		return PART;
	if (p[1] != '[')
		return BAD;
	for (size_t i = 2; i < n; i++) {
		if (p[i] == 'm')
			return i + 1;
		if ((p[i] < '0' || p[i] > '9') && p[i] != ';' && p[i] != ':')
			return BAD;
	}
	return n < OB_SCREEN_HELD ? PART : BAD;
}

/*
 * Returns the length of the permitted character or sequence at p, of n bytes. BAD: the first byte
 * is not permitted; PART: the decision needs more bytes.
 */
static size_t screen_fit(const unsigned char *p, size_t n)
{
	size_t length = utf8_length(*p);
	uint32_t c;

	if (*p == 0x1b)
		return colour_fit(p, n);
	if (length == 0)
		return BAD;
	for (size_t i = 1; i < n && i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return BAD;
	if (n < length)
		return PART;
	c = utf8_decode(p, length);
	if (c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\a' || c == '\f')
		return length;
	return c == UINT32_MAX || is_control(c) ? BAD : length;
}

size_t ob_screen_text(struct ob_screen *screen, const char *text, size_t size, char *dst)
{
	size_t to = 0, fit;

	for (size_t at = 0; at < size; at++) {
		screen->held[screen->n++] = (unsigned char)text[at];
		while (screen->n && (fit = screen_fit(screen->held, screen->n)) != PART) {
			if (fit == BAD) {
				dst[to++] = '?';
				fit = 1;
			} else {
				memcpy(dst + to, screen->held, fit);
				to += fit;
			}
			screen->n -= fit;
			memmove(screen->held, screen->held + fit, screen->n);
		}
	}
	return to;
}
