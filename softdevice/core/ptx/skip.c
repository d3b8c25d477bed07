/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/skip.h"

#include "softdevice/core/ptx/token.h"

static void skip_section(struct obd_loader *ld)
{
	uint32_t depth = 0;

	obd_tok_next(ld); /* .section */
	while (obd_tok(ld)->kind != OBD_TOK_END && !obd_tok_is(obd_tok(ld), '{'))
		obd_tok_next(ld);
	for (; obd_tok(ld)->kind != OBD_TOK_END; obd_tok_next(ld)) {
		if (obd_tok_is(obd_tok(ld), '{'))
			depth++;
		if (obd_tok_is(obd_tok(ld), '}') && --depth == 0) {
			obd_tok_next(ld);
			return;
		}
	}
}

/* .loc and .file end at the end of the line: the next statement may follow without a separator. */
static void skip_line(struct obd_loader *ld)
{
	uint32_t line = obd_tok(ld)->line;

	while (obd_tok(ld)->kind != OBD_TOK_END && obd_tok(ld)->line == line)
		obd_tok_next(ld);
}

bool obd_skip_directive(struct obd_loader *ld)
{
	if (obd_tok_dot_is(ld, "loc") || obd_tok_dot_is(ld, "file")) {
		skip_line(ld);
	} else if (obd_tok_dot_is(ld, "pragma")) {
		while (obd_tok(ld)->kind != OBD_TOK_END && !obd_tok_is(obd_tok(ld), ';'))
			obd_tok_next(ld);
	} else if (obd_tok_dot_is(ld, "section")) {
		skip_section(ld);
	} else {
		return false;
	}
	return true;
}
