/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/ptx_lexer.h"

#include <string.h>

#include "base/check.h"

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || c == '%';
}

size_t obi_ptx_blank_size(const char *text, const char *end)
{
	const char *p = text;

	while (p < end) {
		if (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r' || *p == '\f' ||
			*p == '\v') {
			p++;
		} else if (*p == '/' && end - p > 1 && p[1] == '/') {
			p = memchr(p, '\n', (size_t)(end - p));
			if (!p)
				return (size_t)(end - text);
		} else if (*p == '/' && end - p > 1 && p[1] == '*') {
			p += 2;
			while (p < end && !(*p == '*' && end - p > 1 && p[1] == '/'))
				p++;
			p = end - p > 1 ? p + 2 : end;
		} else {
			break;
		}
	}
	return (size_t)(p - text);
}

void obi_ptx_next(struct obi_ptx_lexer *lexer)
{
	const char *end = lexer->end, *p = lexer->p + obi_ptx_blank_size(lexer->p, end), *start = p;
	struct obi_ptx_token *token = &lexer->token;

	if (p == end) {
		*token = (struct obi_ptx_token){ OBI_PTX_END, end, 0 };
		lexer->p = end;
		return;
	}
	if (*p == '"') {
		token->kind = OBI_PTX_STRING;
		for (p++; p < end && *p != '"'; p++)
			p += *p == '\\' && end - p > 1;
		p += p < end;
	} else if (is_word_char(*p) || (*p == '.' && end - p > 1 && is_word_char(p[1]))) {
		token->kind = *p == '.'          ? OBI_PTX_DIRECTIVE
			: *p >= '0' && *p <= '9' ? OBI_PTX_NUMBER
						 : OBI_PTX_WORD;
		p++;
		/*
		 * Dots are part of a word: "ld.shared.u32" is an instruction and not a declaration,
		 * "9.0" is one number.
		 */
		while (p < end && (is_word_char(*p) || *p == '.') &&
			!(token->kind == OBI_PTX_DIRECTIVE && *p == '.'))
			p++;
	} else {
		token->kind = OBI_PTX_PUNCT;
		p++;
	}
	token->text = start;
	token->size = (size_t)(p - start);
	lexer->p = p;
}

bool obi_ptx_is_text(const struct obi_ptx_lexer *lexer, const char *text)
{
	size_t n = strlen(text);

	return lexer->token.size == n && memcmp(lexer->token.text, text, n) == 0;
}

bool obi_ptx_is_punct(const struct obi_ptx_lexer *lexer, char c)
{
	return lexer->token.kind == OBI_PTX_PUNCT && *lexer->token.text == c;
}

uint64_t obi_ptx_number(const struct obi_ptx_lexer *lexer)
{
	const char *p = lexer->token.text, *end = p + lexer->token.size;
	unsigned base = 10;
	uint64_t value = 0;

	if (p < end && *p == '0') {
		base = 8;
		if (end - p > 1 && (p[1] == 'x' || p[1] == 'X'))
			base = 16;
		else if (end - p > 1 && (p[1] == 'b' || p[1] == 'B'))
			base = 2;
		p += base != 8 ? 2 : 0;
	}
	for (; p < end; p++) {
		unsigned digit = *p >= '0' && *p <= '9' ? (unsigned)(*p - '0')
			: *p >= 'a' && *p <= 'f'        ? (unsigned)(*p - 'a') + 10
			: *p >= 'A' && *p <= 'F'        ? (unsigned)(*p - 'A') + 10
							: 99;
		if (digit >= base)
			break;
		if (ob_mul_overflows(value, base, &value) || ob_add_overflows(value, digit, &value))
			return UINT64_MAX;
	}
	return value;
}
