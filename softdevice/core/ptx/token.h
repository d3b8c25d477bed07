/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The loader's current token: tests, and steps to the next one. */
#ifndef OBD_CORE_TOKEN_H
#define OBD_CORE_TOKEN_H

#include "softdevice/core/ptx/loader.h"

/* The arguments of "%.*s" for a token or symbol name in a message; long names are cut. */
#define OBD_TEXT_ARG(text, size) (int)((size) < 60 ? (size) : 60), (text)
#define OBD_TOK_ARG(t)           OBD_TEXT_ARG((t)->text, (t)->size)

static inline struct obd_token *obd_tok(struct obd_loader *ld)
{
	return &ld->lex.tok;
}

static inline void obd_tok_next(struct obd_loader *ld)
{
	obd_lex_next(&ld->lex);
}

bool obd_tok_text_is(const struct obd_token *t, const char *text);
/* Is the current token the directive or qualifier .name? */
bool obd_tok_dot_is(struct obd_loader *ld, const char *name);
/* Steps over the punctuation character if it is the current token. */
bool obd_tok_accept(struct obd_loader *ld, uint16_t ch);
/* The same; any other token ends the load. */
void obd_tok_expect(struct obd_loader *ld, uint16_t ch);
/* Steps over an integer and returns its value; any other token ends the load. */
uint64_t obd_tok_integer(struct obd_loader *ld);
/* Ends the load: `wanted` should be in place of the current token. */
_Noreturn void obd_tok_unexpected(struct obd_loader *ld, const char *wanted);

#endif
