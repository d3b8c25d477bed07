/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/operand.h"

#include <string.h>

#include "softdevice/core/code.h"
#include "softdevice/core/ptx/expr.h"
#include "softdevice/core/ptx/special.h"
#include "softdevice/core/ptx/token.h"

#define MAX_PLACE 2u /* operands after the first in [ ] */

/* Resolves a register, symbol or special register whose name has been read. */
static void resolve(struct obd_loader *ld, const struct obd_token *name, struct obd_operand *o)
{
	struct obd_symbol *sym;

	o->vreg = obd_sym_register(ld, name->text, name->size, &o->type);
	if (o->vreg != OBD_NONE) {
		o->kind = OBD_OPD_REG;
		return;
	}
	if (name->text[0] == '%' && obd_special_parse(ld, name, &o->value, &o->type)) {
		o->kind = OBD_OPD_SREG;
		return;
	}
	if (name->size == 1 && name->text[0] == '_') {
		o->kind = OBD_OPD_SINK;
		return;
	}
	if (obd_tok_text_is(name, "WARP_SZ")) {
		o->kind = OBD_OPD_IMM;
		o->value = OBD_LANES;
		return;
	}
	sym = obd_sym_find(ld, name->text, name->size);
	if (!sym && name->text[0] == '%')
		obd_ptx_fail(ld, "unknown register %.*s", OBD_TOK_ARG(name));
	o->kind = OBD_OPD_SYMBOL;
	o->sym = sym ? sym : obd_label_use(ld, name->text, name->size);
}

static int64_t parse_offset(struct obd_loader *ld)
{
	int64_t v = 0;

	while (obd_tok_is(obd_tok(ld), '+') || obd_tok_is(obd_tok(ld), '-')) {
		bool minus = obd_tok_is(obd_tok(ld), '-');

		obd_tok_next(ld);
		uint64_t n = obd_expr_primary(ld);

		v = (int64_t)(minus ? (uint64_t)v - n : (uint64_t)v + n);
	}
	return v;
}

static void parse_operand(struct obd_loader *ld, struct obd_operand *o, uint32_t depth);

/* What follows the first operand in [ ]: the coordinates of a texture. */
static void parse_place(struct obd_loader *ld, struct obd_operand *o, uint32_t depth)
{
	o->items = obd_ptx_scratch(ld, MAX_PLACE * sizeof(*o->items));
	while (obd_tok_accept(ld, ',')) {
		if (o->n_items == MAX_PLACE)
			obd_ptx_fail(ld, "more than %u operands in [ ]", MAX_PLACE + 1);
		parse_operand(ld, &o->items[o->n_items++], depth + 1);
	}
}

static void parse_address(struct obd_loader *ld, struct obd_operand *o, uint32_t depth)
{
	struct obd_operand base = { .vreg = OBD_NONE, .pair = OBD_NONE };

	obd_tok_next(ld); /* [ */
	if (obd_tok(ld)->kind == OBD_TOK_WORD) {
		struct obd_token name = *obd_tok(ld);

		obd_tok_next(ld);
		resolve(ld, &name, &base);
	} else {
		base.offset = (int64_t)obd_expr_parse(ld);
	}
	o->kind = OBD_OPD_ADDRESS;
	o->vreg = base.kind == OBD_OPD_REG ? base.vreg : OBD_NONE;
	o->type = base.type;
	o->sym = base.sym;
	o->offset = base.offset + parse_offset(ld);
	if (obd_tok_is(obd_tok(ld), ','))
		parse_place(ld, o, depth);
	if (!obd_tok_accept(ld, ']'))
		obd_tok_unexpected(ld, "']'");
}

static void parse_list(struct obd_loader *ld, struct obd_operand *o, uint16_t close, uint32_t depth)
{
	uint32_t cap = 0;

	obd_tok_next(ld); /* { or ( */
	o->kind = OBD_OPD_LIST;
	while (!obd_tok_is(obd_tok(ld), close)) {
		if (o->n_items && !obd_tok_accept(ld, ','))
			obd_tok_unexpected(ld, "','");
		if (o->n_items >= 1024)
			obd_ptx_fail(ld, "an operand list has more than 1024 elements");
		if (o->n_items == cap) {
			struct obd_operand *fresh =
				obd_ptx_scratch(ld, (cap ? cap * 2 : 4) * sizeof(*fresh));

			if (cap)
				memcpy(fresh, o->items, cap * sizeof(*fresh));
			o->items = fresh;
			cap = cap ? cap * 2 : 4;
		}
		parse_operand(ld, &o->items[o->n_items++], depth + 1);
	}
	obd_tok_next(ld);
}

/* p|q */
static void parse_second(struct obd_loader *ld, struct obd_operand *o)
{
	struct obd_operand second = { .vreg = OBD_NONE };

	if (!obd_tok_accept(ld, '|'))
		return;
	struct obd_token n2 = *obd_tok(ld);

	obd_tok_next(ld);
	resolve(ld, &n2, &second);
	if (second.kind != OBD_OPD_REG && second.kind != OBD_OPD_SINK)
		obd_tok_unexpected(ld, "a predicate");
	o->pair = second.vreg;
	o->pair_sink = second.kind == OBD_OPD_SINK;
}

static void parse_word_operand(struct obd_loader *ld, struct obd_operand *o)
{
	struct obd_token name = *obd_tok(ld);

	obd_tok_next(ld);
	resolve(ld, &name, o);
	parse_second(ld, o);
	if (o->kind == OBD_OPD_SYMBOL)
		o->offset = parse_offset(ld);
}

static void parse_operand(struct obd_loader *ld, struct obd_operand *o, uint32_t depth)
{
	*o = (struct obd_operand){ .vreg = OBD_NONE, .pair = OBD_NONE };
	if (depth > 3)
		obd_ptx_fail(ld, "operand lists nested more than 3 levels deep");
	struct obd_token *t = obd_tok(ld);

	if (obd_tok_is(t, '!')) {
		struct obd_lex save = ld->lex;

		obd_tok_next(ld);
		if (obd_tok(ld)->kind == OBD_TOK_WORD) {
			parse_word_operand(ld, o);
			o->negated = true;
			return;
		}
		ld->lex = save;
	}
	if (t->kind == OBD_TOK_WORD && !obd_tok_text_is(t, "WARP_SZ")) {
		parse_word_operand(ld, o);
	} else if (obd_tok_is(t, '[')) {
		parse_address(ld, o, depth);
	} else if (obd_tok_is(t, '{')) {
		parse_list(ld, o, '}', depth);
		parse_second(ld, o);
	} else if (t->kind == OBD_TOK_F32 || t->kind == OBD_TOK_F64) {
		o->kind = t->kind == OBD_TOK_F32 ? OBD_OPD_F32 : OBD_OPD_F64;
		o->value = t->value;
		obd_tok_next(ld);
	} else {
		if (obd_tok_is(t, '-')) { /* -1.5 */
			struct obd_lex save = ld->lex;

			obd_tok_next(ld);
			if (obd_tok(ld)->kind == OBD_TOK_F32 || obd_tok(ld)->kind == OBD_TOK_F64) {
				o->kind = obd_tok(ld)->kind == OBD_TOK_F32 ? OBD_OPD_F32
									   : OBD_OPD_F64;
				o->value = obd_tok(ld)->value ^
					(o->kind == OBD_OPD_F32 ? 1ull << 31 : 1ull << 63);
				obd_tok_next(ld);
				return;
			}
			ld->lex = save;
		}
		o->kind = OBD_OPD_IMM;
		o->value = obd_expr_parse(ld);
	}
}

void obd_operand_parse(struct obd_loader *ld, struct obd_operand *o)
{
	parse_operand(ld, o, 0);
}

void obd_operand_parse_arguments(struct obd_loader *ld, struct obd_operand *o)
{
	*o = (struct obd_operand){ .vreg = OBD_NONE, .pair = OBD_NONE };
	parse_list(ld, o, ')', 0);
}
