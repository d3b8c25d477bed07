/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/ptx_declarator.h"

#include "base/check.h"

/* Returns the size in bytes of a fundamental type directive; 0 when it is not one. */
static uint32_t type_size(const struct obi_ptx_lexer *lexer)
{
	static const struct {
		char name[12];
		uint8_t size;
	} types[] = {
		{ ".b8", 1 },
		{ ".u8", 1 },
		{ ".s8", 1 },
		{ ".b16", 2 },
		{ ".u16", 2 },
		{ ".s16", 2 },
		{ ".f16", 2 },
		{ ".bf16", 2 },
		{ ".b32", 4 },
		{ ".u32", 4 },
		{ ".s32", 4 },
		{ ".f32", 4 },
		{ ".f16x2", 4 },
		{ ".bf16x2", 4 },
		{ ".b64", 8 },
		{ ".u64", 8 },
		{ ".s64", 8 },
		{ ".f64", 8 },
		{ ".f32x2", 8 },
		{ ".b128", 16 },
		{ ".texref", 8 },
		{ ".surfref", 8 },
	};
	for (size_t i = 0; i < ob_count(types); i++)
		if (obi_ptx_is_text(lexer, types[i].name))
			return types[i].size;
	return obi_ptx_is_text(lexer, ".samplerref") ? 8 : 0;
}

/* The type is one of those that textures and surfaces are used by. */
static enum obi_declarator_ref ref_kind(const struct obi_ptx_lexer *lexer)
{
	if (obi_ptx_is_text(lexer, ".texref"))
		return OBI_DECLARATOR_TEXTURE;
	if (obi_ptx_is_text(lexer, ".surfref"))
		return OBI_DECLARATOR_SURFACE;
	return obi_ptx_is_text(lexer, ".samplerref") ? OBI_DECLARATOR_SAMPLER
						     : OBI_DECLARATOR_PLAIN;
}

bool obi_declarator_head(
	struct obi_declarator *d, struct obi_ptx_lexer *lexer, struct obi_plain *plain)
{
	*d = (struct obi_declarator){ .align = 1, .vector = 1 };
	while (lexer->token.kind == OBI_PTX_DIRECTIVE) {
		uint32_t size = type_size(lexer);

		obi_plain_outside(plain, lexer);
		if (size) {
			d->element = size;
			d->ref = ref_kind(lexer);
			obi_ptx_next(lexer);
		} else if (obi_ptx_is_text(lexer, ".align")) {
			obi_ptx_next(lexer);
			/* after .ptr it is the alignment of the pointee */
			if (lexer->token.kind == OBI_PTX_NUMBER && !d->pointer_seen)
				d->align = obi_ptx_number(lexer);
			obi_ptx_next(lexer);
		} else if (obi_ptx_is_text(lexer, ".v2") || obi_ptx_is_text(lexer, ".v4") ||
			obi_ptx_is_text(lexer, ".v8")) {
			d->vector = (uint32_t)(lexer->token.text[2] - '0');
			obi_ptx_next(lexer);
		} else if (obi_ptx_is_text(lexer, ".ptr")) {
			d->pointer_seen = true;
			obi_ptx_next(lexer);
		} else if (obi_ptx_is_text(lexer, ".attribute")) {
			obi_ptx_next(lexer);
			while (!obi_ptx_is_punct(lexer, ')') && lexer->token.kind != OBI_PTX_END) {
				d->is_managed |= obi_ptx_is_text(lexer, ".managed");
				obi_ptx_next(lexer);
			}
			obi_ptx_next(lexer);
		} else {
			obi_ptx_next(lexer);
		}
	}
	return d->align && !(d->align & (d->align - 1)) && d->align <= 1u << 16;
}

bool obi_declarator_name(struct obi_declarator *d, struct obi_ptx_lexer *lexer)
{
	if (lexer->token.kind != OBI_PTX_WORD)
		return false;
	d->name = lexer->token.text;
	d->name_size = lexer->token.size;
	d->size = (uint64_t)d->element * d->vector;
	d->align = ob_max(d->align, ob_max(d->size, (uint64_t)1));
	obi_ptx_next(lexer);
	/*
	 * <N>, as used by .reg, does not occur in these spaces; [] means that another declaration
	 * gives the size
	 */
	while (obi_ptx_is_punct(lexer, '[')) {
		uint64_t count = 0;

		obi_ptx_next(lexer);
		if (lexer->token.kind == OBI_PTX_NUMBER) {
			count = obi_ptx_number(lexer);
			obi_ptx_next(lexer);
		}
		if (!obi_ptx_is_punct(lexer, ']') || ob_mul_overflows(d->size, count, &d->size))
			return false;
		obi_ptx_next(lexer);
	}
	return true;
}
