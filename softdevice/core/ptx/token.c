/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/token.h"

#include <string.h>

bool obd_tok_text_is(const struct obd_token *t, const char *text)
{
	return t->size == strlen(text) && memcmp(t->text, text, t->size) == 0;
}

bool obd_tok_dot_is(struct obd_loader *ld, const char *name)
{
	return ld->lex.tok.kind == OBD_TOK_DOT && obd_tok_text_is(&ld->lex.tok, name);
}

bool obd_tok_accept(struct obd_loader *ld, uint16_t ch)
{
	if (!obd_tok_is(&ld->lex.tok, ch))
		return false;
	obd_lex_next(&ld->lex);
	return true;
}

void obd_tok_unexpected(struct obd_loader *ld, const char *wanted)
{
	obd_ptx_fail(ld, "expected %s before '%.*s'", wanted, OBD_TOK_ARG(&ld->lex.tok));
}

void obd_tok_expect(struct obd_loader *ld, uint16_t ch)
{
	char wanted[] = { '\'', (char)ch, '\'', 0 };

	if (!obd_tok_accept(ld, ch))
		obd_tok_unexpected(ld, wanted);
}

uint64_t obd_tok_integer(struct obd_loader *ld)
{
	uint64_t v = ld->lex.tok.value;

	if (ld->lex.tok.kind != OBD_TOK_INT)
		obd_tok_unexpected(ld, "a number");
	obd_lex_next(&ld->lex);
	return v;
}
