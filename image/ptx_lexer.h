/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_ptx_lexer: the tokens of PTX text. Owns nothing: tokens point into the text, which need not
 * end in NUL and may hold any bytes. One thread.
 */
#ifndef OBI_PTX_LEXER_H
#define OBI_PTX_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum obi_ptx_token_kind {
	OBI_PTX_END,
	OBI_PTX_WORD,
	OBI_PTX_DIRECTIVE,
	OBI_PTX_NUMBER,
	OBI_PTX_STRING,
	OBI_PTX_PUNCT
};

struct obi_ptx_token {
	enum obi_ptx_token_kind kind;
	const char *text;
	size_t size;
};

struct obi_ptx_lexer {
	const char *p, *end;
	struct obi_ptx_token token; /* current */
};

/* Bytes of white space and comments at the beginning of the text. */
size_t obi_ptx_blank_size(const char *text, const char *end);
/* Advances to the next token. */
void obi_ptx_next(struct obi_ptx_lexer *lexer);
/* Tests of the current token. */
bool obi_ptx_is_text(const struct obi_ptx_lexer *lexer, const char *text);
bool obi_ptx_is_punct(const struct obi_ptx_lexer *lexer, char c);
/*
 * The value of the current token, a NUMBER: decimal, 0x, 0b or octal, with an optional suffix U;
 * saturates.
 */
uint64_t obi_ptx_number(const struct obi_ptx_lexer *lexer);

#endif
