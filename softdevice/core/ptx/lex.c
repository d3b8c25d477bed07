/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/lex.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER 64u

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
		c == '$' || c == '%';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static uint32_t hex_value(char c)
{
	return is_digit(c) ? (uint32_t)(c - '0') : (uint32_t)((c | 32) - 'a' + 10);
}

void obd_lex_init(struct obd_lex *l, const char *text, size_t size)
{
	*l = (struct obd_lex){ .at = text, .end = text + size, .line = 1 };
	obd_lex_next(l);
}

static void skip_blank(struct obd_lex *l)
{
	while (l->at < l->end) {
		char c = *l->at;

		if (c == '\n') {
			l->line++;
			l->at++;
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' ||
			c == '\0') {
			l->at++; /* some tools leave the final NUL in the text */
		} else if (c == '/' && l->end - l->at > 1 && l->at[1] == '/') {
			while (l->at < l->end && *l->at != '\n')
				l->at++;
		} else if (c == '/' && l->end - l->at > 1 && l->at[1] == '*') {
			for (l->at += 2; l->at < l->end; l->at++) {
				if (*l->at == '\n')
					l->line++;
				if (*l->at == '*' && l->end - l->at > 1 && l->at[1] == '/') {
					l->at += 2;
					break;
				}
			}
		} else {
			return;
		}
	}
}

static void lex_hex_float(struct obd_lex *l, struct obd_token *t, bool wide)
{
	uint32_t n = 0, want = wide ? 16 : 8;

	l->at += 2;
	while (l->at < l->end && is_hex(*l->at) && n < want) {
		t->value = t->value << 4 | hex_value(*l->at++);
		n++;
	}
	t->kind = n == want ? (wide ? OBD_TOK_F64 : OBD_TOK_F32) : OBD_TOK_BAD;
}

static void lex_decimal_float(struct obd_lex *l, struct obd_token *t)
{
	char text[MAX_NUMBER];
	size_t n = 0;
	double v;

	while (l->at < l->end && n < sizeof(text) - 1 &&
		(is_digit(*l->at) || *l->at == '.' || (*l->at | 32) == 'e' ||
			((*l->at == '+' || *l->at == '-') && n && (text[n - 1] | 32) == 'e')))
		text[n++] = *l->at++;
	text[n] = 0;
	v = strtod(text, NULL);
	memcpy(&t->value, &v, sizeof(v));
	t->kind = OBD_TOK_F64;
}

static void lex_number(struct obd_lex *l, struct obd_token *t)
{
	const char *p = l->at;
	size_t left = (size_t)(l->end - p);
	uint32_t base = 10;

	if (left > 2 && p[0] == '0') {
		char c = (char)(p[1] | 32);

		if (c == 'f' && is_hex(p[2])) {
			lex_hex_float(l, t, false);
			return;
		}
		if (c == 'd' && is_hex(p[2])) {
			lex_hex_float(l, t, true);
			return;
		}
		base = c == 'x' ? 16 : c == 'b' ? 2 : 10;
	}
	if (base != 10)
		p += 2;
	else
		for (const char *q = p;
			q < l->end && (is_digit(*q) || *q == '.' || (*q | 32) == 'e'); q++)
			if (*q == '.' || (*q | 32) == 'e') {
				lex_decimal_float(l, t);
				return;
			}
	if (base == 10 && left > 1 && p[0] == '0' && is_digit(p[1]))
		base = 8;
	for (; p < l->end && (base == 16 ? is_hex(*p) : is_digit(*p)); p++)
		t->value = t->value * base + hex_value(*p);
	if (p < l->end && (*p == 'U' || *p == 'u'))
		p++;
	l->at = p;
	t->kind = OBD_TOK_INT;
}

static void lex_punct(struct obd_lex *l, struct obd_token *t)
{
	char c = *l->at++;

	t->kind = OBD_TOK_PUNCT;
	t->ch = (uint8_t)c;
	if (l->at >= l->end)
		return;
	char d = *l->at;
	bool twin = (c == '<' && d == '<') || (c == '>' && d == '>') || (c == '&' && d == '&') ||
		(c == '|' && d == '|');

	if (twin || (d == '=' && (c == '<' || c == '>' || c == '=' || c == '!'))) {
		t->ch = (uint16_t)((uint8_t)c | (uint16_t)((uint8_t)d << 8));
		l->at++;
	}
}

void obd_lex_next(struct obd_lex *l)
{
	struct obd_token *t = &l->tok;

	skip_blank(l);
	*t = (struct obd_token){ .kind = OBD_TOK_END, .text = l->at, .line = l->line };
	if (l->at >= l->end)
		return;
	char c = *l->at;

	if (is_digit(c)) {
		lex_number(l, t);
	} else if (is_word(c)) {
		while (l->at < l->end && is_word(*l->at))
			l->at++;
		t->kind = OBD_TOK_WORD;
	} else if (c == '.' && l->end - l->at > 1 && is_word(l->at[1])) {
		t->text = ++l->at;
		while (l->at < l->end &&
			(is_word(*l->at) ||
				(*l->at == ':' && l->end - l->at > 2 && l->at[1] == ':' &&
					is_word(l->at[2])) ||
				(*l->at == ':' && l->at[-1] == ':')))
			l->at++;
		t->kind = OBD_TOK_DOT;
	} else if (c == '"') {
		for (l->at++; l->at < l->end && *l->at != '"'; l->at++)
			if (*l->at == '\n')
				l->line++;
		if (l->at < l->end)
			l->at++;
		t->kind = OBD_TOK_STRING;
	} else {
		lex_punct(l, t);
	}
	size_t size = (size_t)(l->at - t->text);

	t->size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}
