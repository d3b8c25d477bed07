/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/decl.h"

#include <string.h>

#include "softdevice/core/ptx/token.h"

#define MAX_PARAMS 4096u

/* Steps over .ptr and what describes the memory that a pointer parameter points to. */
static bool skip_pointee(struct obd_loader *ld)
{
	if (!obd_tok_dot_is(ld, "ptr"))
		return false;
	for (obd_tok_next(ld); obd_tok(ld)->kind == OBD_TOK_DOT; obd_tok_next(ld))
		if (obd_tok_dot_is(ld, "align"))
			obd_tok_next(ld);
	return true;
}

static uint32_t parse_align(struct obd_loader *ld)
{
	uint64_t align = obd_tok(ld)->value;

	if (obd_tok(ld)->kind != OBD_TOK_INT || !align || align > 4096 || (align & (align - 1)))
		obd_ptx_fail(ld, "the alignment must be a power of two not above 4096");
	return (uint32_t)align;
}

/* Reads alignment, state spaces and type, which precede the name. */
static void parse_param_head(struct obd_loader *ld, struct obd_param_decl *p)
{
	for (; obd_tok(ld)->kind == OBD_TOK_DOT; obd_tok_next(ld)) {
		if (obd_tok_dot_is(ld, "align")) {
			obd_tok_next(ld);
			p->align = parse_align(ld);
			continue;
		}
		if (obd_tok_dot_is(ld, "ptr") || obd_tok_dot_is(ld, "global") ||
			obd_tok_dot_is(ld, "shared") || obd_tok_dot_is(ld, "local") ||
			obd_tok_dot_is(ld, "const") || obd_tok_dot_is(ld, "generic"))
			continue;
		p->type = obd_type_named(obd_tok(ld)->text, obd_tok(ld)->size);
		if (!p->type)
			obd_ptx_fail(ld, "unknown parameter type .%.*s", OBD_TOK_ARG(obd_tok(ld)));
		struct obd_lex save = ld->lex;

		obd_tok_next(ld);
		if (skip_pointee(ld))
			break;
		ld->lex = save;
	}
	if (!p->type)
		obd_ptx_fail(ld, "a parameter has no type");
}

void obd_decl_param(struct obd_loader *ld, struct obd_param_decl *p)
{
	uint64_t bytes;

	*p = (struct obd_param_decl){ .align = 1 };
	p->is_register = obd_tok_dot_is(ld, "reg");
	if (!p->is_register && !obd_tok_dot_is(ld, "param"))
		obd_tok_unexpected(ld, ".param or .reg");
	obd_tok_next(ld);
	parse_param_head(ld, p);
	if (obd_tok(ld)->kind == OBD_TOK_WORD) {
		p->name = obd_tok(ld)->text;
		p->name_size = obd_tok(ld)->size;
		obd_tok_next(ld);
	}
	bytes = obd_type_bytes(p->type);
	if (p->align < bytes)
		p->align = (uint32_t)bytes;
	while (obd_tok_accept(ld, '[')) {
		uint64_t n = obd_tok_is(obd_tok(ld), ']') ? 0 : obd_tok_integer(ld);

		obd_tok_expect(ld, ']');
		p->is_array = true;
		if (n > OBD_KERNEL_MAX_PARAM_BYTES || bytes * n > OBD_KERNEL_MAX_PARAM_BYTES)
			obd_ptx_fail(ld, "a parameter takes more than %u bytes",
				OBD_KERNEL_MAX_PARAM_BYTES);
		bytes *= n;
	}
	p->bytes = (uint32_t)bytes;
	p->words = (p->bytes + 3) / 4;
}

struct obd_param_decl *obd_decl_params(struct obd_loader *ld, uint32_t *ret_n)
{
	struct obd_param_decl *list = NULL;
	uint32_t n = 0, cap = 0;

	obd_tok_expect(ld, '(');
	while (!obd_tok_is(obd_tok(ld), ')')) {
		struct obd_param_decl p;

		if (n)
			obd_tok_expect(ld, ',');
		obd_decl_param(ld, &p);
		if (n >= MAX_PARAMS)
			obd_ptx_fail(ld, "a function has more than %u parameters", MAX_PARAMS);
		if (n == cap) {
			struct obd_param_decl *fresh =
				obd_ptx_scratch(ld, (cap ? cap * 2 : 8) * sizeof(*fresh));

			if (n)
				memcpy(fresh, list, n * sizeof(*fresh));
			list = fresh;
			cap = cap ? cap * 2 : 8;
		}
		list[n++] = p;
	}
	obd_tok_next(ld);
	*ret_n = n;
	return list;
}

uint32_t obd_decl_words(struct obd_loader *ld, const struct obd_param_decl *p, uint32_t n)
{
	uint32_t words = 0;

	for (uint32_t i = 0; i < n; i++)
		words += p[i].words;
	if (words > OBD_MAX_WORDS)
		obd_ptx_fail(ld, "the parameters of a function take more than %u bytes",
			OBD_MAX_WORDS * 4);
	return words;
}
