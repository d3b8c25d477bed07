/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/body.h"

#include "softdevice/core/compile/finish.h"
#include "softdevice/core/compile/lower.h"
#include "softdevice/core/compile/variable.h"
#include "softdevice/core/ptx/skip.h"
#include "softdevice/core/ptx/stmt.h"
#include "softdevice/core/ptx/token.h"

static void declare_formals(struct obd_loader *ld, struct obd_function_decl *d, bool is_entry)
{
	struct obd_builder *b = ld->b;
	uint32_t word = 0;

	if (!is_entry) {
		b->arg_vreg = obd_vreg_range(b, OBD_CLASS_32, d->func->n_arg_words);
		b->ret_vreg = obd_vreg_range(b, OBD_CLASS_32, d->func->n_ret_words);
		for (uint32_t i = 0; i < d->func->n_arg_words + d->func->n_ret_words; i++)
			b->vregs[b->arg_vreg + i].fixed = 1;
	}
	for (uint32_t side = 0; side < 2; side++) {
		struct obd_param_decl *list = side ? d->rets : d->params;
		uint32_t n = side ? d->n_rets : d->n_params,
			 base = side ? b->ret_vreg : b->arg_vreg;

		word = 0;
		for (uint32_t i = 0; i < n; i++) {
			struct obd_param_decl *p = &list[i];

			if (p->name) {
				struct obd_symbol *s = obd_sym_add(ld, p->name, p->name_size,
					is_entry ? OBD_SYM_KERNEL_PARAM : OBD_SYM_PARAM);

				s->type = p->type;
				s->bytes = p->bytes;
				s->offset = p->offset;
				s->vreg = base + word;
				s->count = p->words;
				s->is_formal = true;
				s->is_ret = side == 1;
			}
			word += p->words;
		}
	}
}

/*
 * .func (.reg .b32 r) f (.reg .b32 x): the registers are the words of the parameter and of the
 * result.
 */
static void declare_formal_registers(struct obd_loader *ld, struct obd_function_decl *d)
{
	for (uint32_t side = 0; side < 2; side++) {
		struct obd_param_decl *list = side ? d->rets : d->params;
		uint32_t n = side ? d->n_rets : d->n_params;

		for (uint32_t i = 0; i < n; i++) {
			struct obd_param_decl *p = &list[i];
			struct obd_symbol *words = p->is_register && p->name
				? obd_sym_find(ld, p->name, p->name_size)
				: NULL;

			if (p->is_register && p->words != 1)
				obd_ptx_refuse(ld,
					".reg parameters and results of 64 bits are not supported: "
					"use .param");
			if (!words)
				continue;
			uint32_t from = words->vreg;
			struct obd_symbol *s =
				obd_sym_add(ld, p->name, p->name_size, OBD_SYM_REGISTER);

			s->type = p->type;
			s->vreg = from;
		}
	}
}

static void parse_reg(struct obd_loader *ld)
{
	enum obd_type t = OBD_T_NONE;
	uint32_t lanes = 1;

	for (obd_tok_next(ld); obd_tok(ld)->kind == OBD_TOK_DOT; obd_tok_next(ld)) {
		if (obd_tok_dot_is(ld, "v2") || obd_tok_dot_is(ld, "v4")) {
			lanes = 2;
			continue;
		}
		t = obd_type_named(obd_tok(ld)->text, obd_tok(ld)->size);
		if (!t)
			obd_ptx_fail(ld, "unknown register type .%.*s", OBD_TOK_ARG(obd_tok(ld)));
	}
	if (!t)
		obd_ptx_fail(ld, "a .reg declaration has no type");
	if (lanes > 1)
		obd_ptx_refuse(
			ld, "vector registers are not supported: use scalar registers in { }");
	do {
		if (obd_tok(ld)->kind != OBD_TOK_WORD)
			obd_tok_unexpected(ld, "a register name");
		const char *name = obd_tok(ld)->text;
		uint32_t size = obd_tok(ld)->size;
		uint64_t count = 0;

		obd_tok_next(ld);
		if (obd_tok_accept(ld, '<')) {
			count = obd_tok_integer(ld);
			obd_tok_expect(ld, '>');
			if (count > OBD_MAX_REGISTERS)
				obd_ptx_fail(ld, "a function declares more than %u registers",
					OBD_MAX_REGISTERS);
			if (!count)
				continue;
		}
		struct obd_symbol *s = obd_sym_add(ld, name, size, OBD_SYM_REGISTER);

		s->type = t;
		s->count = (uint32_t)count;
		s->vreg = obd_vreg_range(ld->b, obd_type_class(t), count ? (uint32_t)count : 1);
		if (t != OBD_T_PRED)
			ld->b->registers += (count ? (uint32_t)count : 1) *
				(obd_type_class(t) == OBD_CLASS_64 ? 2 : 1);
	} while (obd_tok_accept(ld, ','));
	obd_tok_expect(ld, ';');
}

static void parse_param(struct obd_loader *ld)
{
	struct obd_param_decl p;

	obd_decl_param(ld, &p);
	obd_tok_expect(ld, ';');
	if (!p.name)
		obd_ptx_fail(ld, "a .param declaration has no name");
	struct obd_symbol *s = obd_sym_add(ld, p.name, p.name_size, OBD_SYM_PARAM);

	s->type = p.type;
	s->bytes = p.bytes;
	s->count = p.words;
	s->vreg = obd_vreg_range(ld->b, OBD_CLASS_32, p.words);
	/* an array of small elements is written in pieces, so its words are initialised */
	if (p.is_array && obd_type_bytes(p.type) < 4)
		for (uint32_t i = 0; i < p.words; i++)
			obd_emit(ld->b, OBD_OP_mov_32, s->vreg + i,
				obd_const_new(ld->b, OBD_CLASS_32, 0, NULL), OBD_NONE, OBD_NONE);
}

static bool parse_directive(struct obd_loader *ld)
{
	if (obd_tok_dot_is(ld, "reg")) {
		parse_reg(ld);
	} else if (obd_skip_directive(ld)) {
		return true;
	} else if (obd_tok_dot_is(ld, "param")) {
		parse_param(ld);
	} else if (obd_tok_dot_is(ld, "local") || obd_tok_dot_is(ld, "shared") ||
		obd_tok_dot_is(ld, "global") || obd_tok_dot_is(ld, "const")) {
		struct obd_token t = *obd_tok(ld);

		obd_tok_next(ld);
		obd_variable_parse(ld, t.text[0], false, false);
	} else {
		return false;
	}
	return true;
}

/* ---- labels and what looks like one ---- */

static void parse_proto(struct obd_loader *ld, const struct obd_token *name)
{
	uint32_t n;

	obd_sym_add(ld, name->text, name->size, OBD_SYM_PROTO);
	obd_tok_next(ld); /* .callprototype */
	if (obd_tok_is(obd_tok(ld), '('))
		obd_decl_params(ld, &n);
	if (obd_tok(ld)->kind == OBD_TOK_WORD)
		obd_tok_next(ld); /* _ */
	if (obd_tok_is(obd_tok(ld), '('))
		obd_decl_params(ld, &n);
	while (obd_tok(ld)->kind == OBD_TOK_DOT)
		obd_tok_next(ld);
	obd_tok_expect(ld, ';');
}

static void parse_calltargets(struct obd_loader *ld, const struct obd_token *name)
{
	obd_sym_add(ld, name->text, name->size, OBD_SYM_PROTO);
	while (obd_tok(ld)->kind != OBD_TOK_END && !obd_tok_is(obd_tok(ld), ';'))
		obd_tok_next(ld);
	obd_tok_expect(ld, ';');
}

static void parse_branchtargets(struct obd_loader *ld, const struct obd_token *name)
{
	struct obd_symbol *s = obd_sym_add(ld, name->text, name->size, OBD_SYM_TARGETS);
	struct obd_builder *b = ld->b;
	uint32_t at = b->n_tables, n = 0;

	s->index = at;
	obd_ptx_grow(ld, &b->tables, &b->cap_tables, b->n_tables, sizeof(*b->tables), OBD_MAX_CODE);
	b->n_tables++;
	do {
		if (obd_tok(ld)->kind != OBD_TOK_WORD)
			obd_tok_unexpected(ld, "a label");
		obd_ptx_grow(ld, &b->tables, &b->cap_tables, b->n_tables, sizeof(*b->tables),
			OBD_MAX_CODE);
		b->tables[b->n_tables++] =
			obd_label_use(ld, obd_tok(ld)->text, obd_tok(ld)->size)->index;
		n++;
		obd_tok_next(ld);
	} while (obd_tok_accept(ld, ','));
	b->tables[at] = n;
	if (!obd_tok_accept(ld, ';'))
		obd_tok_unexpected(ld, "';'");
}

static void parse_labelled(struct obd_loader *ld, const struct obd_token *name)
{
	if (obd_tok_dot_is(ld, "callprototype")) {
		parse_proto(ld, name);
	} else if (obd_tok_dot_is(ld, "calltargets")) {
		parse_calltargets(ld, name);
	} else if (obd_tok_dot_is(ld, "branchtargets")) {
		obd_tok_next(ld);
		parse_branchtargets(ld, name);
	} else {
		obd_label_define(ld, name->text, name->size, ld->b->n_code);
	}
}

/* ---- the body ---- */

static void parse_stmt(struct obd_loader *ld)
{
	struct obd_stmt s;

	obd_stmt_parse(ld, &s);
	ld->stmt_line = s.line;
	obd_lower(ld->b, &s);
	ld->stmt_line = 0;
}

static void parse_body(struct obd_loader *ld)
{
	uint32_t base = ld->scope;

	obd_sym_push(ld);
	for (;;) {
		struct obd_token *t = obd_tok(ld);

		ld->b->line = t->line;
		if (t->kind == OBD_TOK_END)
			obd_ptx_fail(
				ld, "unexpected end of text in function %s", ld->b->func->name);
		if (obd_tok_accept(ld, '{')) {
			obd_sym_push(ld);
		} else if (obd_tok_accept(ld, '}')) {
			obd_sym_pop(ld);
			if (ld->scope == base)
				return;
		} else if (obd_tok_accept(ld, ';')) {
			continue;
		} else if (t->kind == OBD_TOK_DOT) {
			if (!parse_directive(ld))
				obd_ptx_fail(ld, "unknown directive .%.*s", OBD_TOK_ARG(t));
		} else if (t->kind == OBD_TOK_WORD) {
			struct obd_token name = *t;
			struct obd_lex save = ld->lex;

			obd_tok_next(ld);
			if (obd_tok_is(obd_tok(ld), ':')) {
				obd_tok_next(ld);
				parse_labelled(ld, &name);
				continue;
			}
			ld->lex = save;
			parse_stmt(ld);
		} else {
			parse_stmt(ld);
		}
	}
}

/*
 * Parses a body, from the token after its '{' to the one after its '}'. False: obd_ptx_refuse ended
 * it.
 */
static bool body_try(struct obd_loader *ld, struct obd_function_decl *d, bool is_entry)
{
	if (setjmp(ld->refuse) != 0)
		return false;
	ld->in_body = true;
	obd_sym_push(ld);
	declare_formals(ld, d, is_entry);
	if (!is_entry)
		declare_formal_registers(ld, d);
	parse_body(ld);
	obd_sym_pop(ld);
	obd_build_finish(ld->b);
	ld->in_body = false;
	return true;
}

/* After a refusal: the function has no code. Leaves its scopes and continues after its '}'. */
static void body_skip(struct obd_loader *ld, uint32_t scope, const struct obd_lex *start)
{
	struct obd_func *f = ld->b->func;
	uint32_t depth = 1;

	ld->in_body = false;
	ld->stmt_line = 0;
	f->refused = ld->refused;
	f->defined = true;
	while (ld->scope > scope)
		obd_sym_pop(ld);
	for (ld->lex = *start; depth; obd_tok_next(ld)) {
		if (obd_tok(ld)->kind == OBD_TOK_END)
			obd_ptx_fail(ld, "unexpected end of text in function %s", f->name);
		if (obd_tok_is(obd_tok(ld), '{'))
			depth++;
		else if (obd_tok_is(obd_tok(ld), '}') && --depth == 0)
			break;
	}
	obd_tok_next(ld);
}

void obd_body_parse(struct obd_loader *ld, struct obd_function_decl *d, bool is_entry)
{
	const struct obd_lex start = ld->lex;
	const uint32_t scope = ld->scope;

	if (!body_try(ld, d, is_entry))
		body_skip(ld, scope, &start);
}
