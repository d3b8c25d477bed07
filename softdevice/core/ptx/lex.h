/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_lex: splits PTX text into tokens. Owns nothing; tokens point into the text. The text need not
 * end in NUL and may contain any bytes.
 */
#ifndef OBD_CORE_PTX_LEX_H
#define OBD_CORE_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum obd_tok {
	OBD_TOK_END,
	OBD_TOK_WORD, /* name, %name, $name */
	OBD_TOK_DOT,  /* .name, including a :: and what follows it */
	OBD_TOK_INT,
	OBD_TOK_F32, /* 0f3f800000 */
	OBD_TOK_F64, /* 0d..., 1.5 */
	OBD_TOK_STRING,
	OBD_TOK_PUNCT, /* one character, or one of << >> <= >= == != && || */
	OBD_TOK_BAD,
};

struct obd_token {
	enum obd_tok kind;
	const char *text; /* without the dot if it is an OBD_TOK_DOT */
	uint32_t size;
	uint32_t line;
	uint16_t ch;    /* for OBD_TOK_PUNCT: first character, second one << 8 */
	uint64_t value; /* for numbers: the bits */
};

struct obd_lex {
	const char *at, *end;
	uint32_t line;
	struct obd_token tok; /* the current one */
};

void obd_lex_init(struct obd_lex *l, const char *text, size_t size);
/* Advances to the next token. */
void obd_lex_next(struct obd_lex *l);

static inline bool obd_tok_is(const struct obd_token *t, uint16_t ch)
{
	return t->kind == OBD_TOK_PUNCT && t->ch == ch;
}

#endif
