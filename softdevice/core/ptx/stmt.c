/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Parses statements: guard, opcode with its set of qualifiers, operands. */
#include <string.h>

#include "softdevice/core/ptx/ptx.h"

#define MAX_EXPR_DEPTH 64u

static struct obd_token *tok(struct obd_loader *ld)
{
	return &ld->lex.tok;
}

static void next(struct obd_loader *ld)
{
	obd_lex_next(&ld->lex);
}

static bool accept(struct obd_loader *ld, uint16_t ch)
{
	if (!obd_tok_is(tok(ld), ch))
		return false;
	next(ld);
	return true;
}

static _Noreturn void unexpected(struct obd_loader *ld, const char *wanted)
{
	obd_ptx_fail(ld, "%s expected before '%.*s'", wanted,
		(int)(tok(ld)->size < 40 ? tok(ld)->size : 40), tok(ld)->text);
}

static bool token_is(const struct obd_token *t, const char *name)
{
	return t->size == strlen(name) && memcmp(t->text, name, t->size) == 0;
}

/* ---- constant expressions ---- */

#define TWO(a, b) ((uint16_t)((uint8_t)(a) | (uint16_t)((uint8_t)(b) << 8)))

static int precedence(const struct obd_token *t)
{
	if (t->kind != OBD_TOK_PUNCT)
		return 0;
	switch (t->ch) {
	case '*':
	case '/':
	case '%':
		return 10;
	case '+':
	case '-':
		return 9;
	case TWO('<', '<'):
	case TWO('>', '>'):
		return 8;
	case '<':
	case '>':
	case TWO('<', '='):
	case TWO('>', '='):
		return 7;
	case TWO('=', '='):
	case TWO('!', '='):
		return 6;
	case '&':
		return 5;
	case '^':
		return 4;
	case '|':
		return 3;
	case TWO('&', '&'):
		return 2;
	case TWO('|', '|'):
		return 1;
	default:
		return 0;
	}
}

static uint64_t apply(struct obd_loader *ld, uint16_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case '*':
		return a * b;
	case '/':
	case '%':
		if (!b)
			obd_ptx_fail(ld, "division by zero in a constant expression");
		if (b == ~0ull)
			return op == '/' ? 0 - a : 0;
		return (uint64_t)(op == '/' ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
	case '+':
		return a + b;
	case '-':
		return a - b;
	case TWO('<', '<'):
		return b < 64 ? a << b : 0;
	case TWO('>', '>'):
		return b < 64 ? a >> b : 0;
	case '<':
		return (int64_t)a < (int64_t)b;
	case '>':
		return (int64_t)a > (int64_t)b;
	case TWO('<', '='):
		return (int64_t)a <= (int64_t)b;
	case TWO('>', '='):
		return (int64_t)a >= (int64_t)b;
	case TWO('=', '='):
		return a == b;
	case TWO('!', '='):
		return a != b;
	case '&':
		return a & b;
	case '^':
		return a ^ b;
	case '|':
		return a | b;
	case TWO('&', '&'):
		return a && b;
	default:
		return a || b;
	}
}

static uint64_t expr(struct obd_loader *ld, int least, uint32_t depth);

static uint64_t primary(struct obd_loader *ld, uint32_t depth)
{
	uint64_t v;

	if (depth > MAX_EXPR_DEPTH)
		obd_ptx_fail(ld, "a constant expression is nested too deep");
	if (accept(ld, '-'))
		return 0 - primary(ld, depth + 1);
	if (accept(ld, '+'))
		return primary(ld, depth + 1);
	if (accept(ld, '~'))
		return ~primary(ld, depth + 1);
	if (accept(ld, '!'))
		return !primary(ld, depth + 1);
	if (accept(ld, '(')) {
		/* casts to .s64 and .u64 have no effect here */
		if (tok(ld)->kind == OBD_TOK_DOT) {
			next(ld);
			if (!accept(ld, ')'))
				unexpected(ld, "')'");
			return primary(ld, depth + 1);
		}
		v = expr(ld, 0, depth + 1);
		if (!accept(ld, ')'))
			unexpected(ld, "')'");
		return v;
	}
	if (tok(ld)->kind == OBD_TOK_WORD && token_is(tok(ld), "WARP_SZ")) {
		next(ld);
		return OBD_LANES;
	}
	if (tok(ld)->kind != OBD_TOK_INT)
		unexpected(ld, "a number");
	v = tok(ld)->value;
	next(ld);
	return v;
}

static uint64_t expr(struct obd_loader *ld, int least, uint32_t depth)
{
	uint64_t v = primary(ld, depth);

	for (;;) {
		int p = precedence(tok(ld));
		uint16_t op = tok(ld)->ch;

		if (p <= least)
			break;
		next(ld);
		v = apply(ld, op, v, expr(ld, p, depth + 1));
	}
	if (least == 0 && accept(ld, '?')) {
		uint64_t a = expr(ld, 0, depth + 1);

		if (!accept(ld, ':'))
			unexpected(ld, "':'");
		uint64_t b = expr(ld, 0, depth + 1);

		return v ? a : b;
	}
	return v;
}

/*
 * In initial values ',' ends an expression. A '|' between operands of setp never follows a number.
 */
uint64_t obd_ptx_const_expr(struct obd_loader *ld)
{
	return expr(ld, 0, 0);
}

/* ---- labels ---- */

static struct obd_symbol *new_label(struct obd_loader *ld, const char *name, uint32_t size)
{
	struct obd_symbol *s = obd_sym_add(ld, name, size, OBD_SYM_LABEL);

	s->index = obd_label_new(ld->b);
	return s;
}

/*
 * A label belongs to the block that defines it. A name that is not defined yet may be defined later
 * in this block or in an outer one. It is entered here and passed to the outer block if this block
 * ends without a definition.
 */
struct obd_symbol *obd_ptx_label(struct obd_loader *ld, const char *name, uint32_t size)
{
	struct obd_symbol *s = obd_sym_find(ld, name, size);

	if (s && s->kind == OBD_SYM_LABEL &&
		(s->scope == ld->scope || ld->b->labels[s->index] != OBD_NONE))
		return s;
	return new_label(ld, name, size);
}

void obd_ptx_label_define(struct obd_loader *ld, const char *name, uint32_t size)
{
	struct obd_symbol *s = obd_sym_find(ld, name, size);

	if (!s || s->kind != OBD_SYM_LABEL || s->scope != ld->scope)
		s = new_label(ld, name, size);
	if (ld->b->labels[s->index] != OBD_NONE)
		obd_ptx_fail(ld, "label %.*s is defined twice", (int)(size < 60 ? size : 60), name);
	obd_label_here(ld->b, s->index);
}

void obd_ptx_branchtargets(struct obd_loader *ld, const struct obd_token *name)
{
	struct obd_symbol *s = obd_sym_add(ld, name->text, name->size, OBD_SYM_TARGETS);
	struct obd_builder *b = ld->b;
	uint32_t at = b->n_tables, n = 0;

	s->index = at;
	obd_ptx_grow(ld, &b->tables, &b->cap_tables, b->n_tables, sizeof(*b->tables), OBD_MAX_CODE);
	b->n_tables++;
	do {
		if (tok(ld)->kind != OBD_TOK_WORD)
			unexpected(ld, "a label");
		obd_ptx_grow(ld, &b->tables, &b->cap_tables, b->n_tables, sizeof(*b->tables),
			OBD_MAX_CODE);
		b->tables[b->n_tables++] = obd_ptx_label(ld, tok(ld)->text, tok(ld)->size)->index;
		n++;
		next(ld);
	} while (accept(ld, ','));
	b->tables[at] = n;
	if (!accept(ld, ';'))
		unexpected(ld, "';'");
}

/* ---- qualifiers ---- */

static const struct {
	const char *name;
	uint8_t q;
} qualifiers[] = {
#define Q(name) { #name, OBD_Q_##name },
	OBD_QUALIFIERS(Q)
#undef Q
		{ "volatile", OBD_Q_volatile },
	{ "const", OBD_Q_const },
	{ "mbarrier::complete_tx::bytes", OBD_Q_unsupported },
	{ "cluster::", OBD_Q_cluster },
	{ "shared::cta", OBD_Q_shared },
	{ "shared::cluster", OBD_Q_shared },
	{ "param::entry", OBD_Q_param },
	{ "param::func", OBD_Q_param },
};

#define N_QUALIFIERS (sizeof(qualifiers) / sizeof(qualifiers[0]))

static bool is_hint(const struct obd_token *t)
{
	/* cache and eviction hints: they have no observable effect */
	static const char *const prefixes[] = { "L1::", "L2::", "level::", "evict_",
		"no_allocate" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t n = strlen(prefixes[i]);

		if (t->size >= n && memcmp(t->text, prefixes[i], n) == 0)
			return true;
	}
	return false;
}

/* Does the opcode have qualifiers that name shapes, proxies and the like? */
static bool has_free_words(const struct obd_stmt *s)
{
	static const char *const names[] = { "mma", "ldmatrix", "stmatrix", "mbarrier", "fence",
		"cp", "prefetch", "prefetchu", "createpolicy", "applypriority", "discard",
		"griddepcontrol", "setmaxnreg" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == s->op_size && memcmp(names[i], s->op, s->op_size) == 0)
			return true;
	return false;
}

static bool is_ordered(uint32_t q)
{
	return (q >= OBD_Q_eq && q <= OBD_Q_cas) || q == OBD_Q_lo || q == OBD_Q_hi;
}

static void add_qualifier(struct obd_loader *ld, struct obd_stmt *s)
{
	const struct obd_token *t = tok(ld);
	enum obd_type type = obd_type_named(t->text, t->size);

	if (type) {
		if (s->n_types < OBD_MAX_TYPES)
			s->types[s->n_types++] = type;
		return;
	}
	for (uint32_t i = 0; i < N_QUALIFIERS; i++) {
		if (qualifiers[i].name[0] != t->text[0] || !token_is(t, qualifiers[i].name))
			continue;
		uint32_t q = qualifiers[i].q;

		s->quals[q / 64] |= 1ull << (q % 64);
		if (is_ordered(q) && s->n_order < sizeof(s->order))
			s->order[s->n_order++] = (uint8_t)q;
		return;
	}
	if (is_hint(t))
		return;
	if (obd_ptx_unimplemented(s->op, s->op_size))
		obd_ptx_refuse(ld, "instruction %.*s is not supported by the software device",
			(int)s->op_size, s->op);
	if (!has_free_words(s) || s->n_words >= OBD_MAX_FREE_WORDS) {
		if (obd_ptx_unimplemented_word(t->text, t->size))
			obd_ptx_refuse(ld,
				"qualifier .%.*s of %.*s is not supported by the software device",
				(int)(t->size < 40 ? t->size : 40), t->text, (int)s->op_size,
				s->op);
		obd_ptx_fail(ld, "unknown qualifier .%.*s of %.*s",
			(int)(t->size < 40 ? t->size : 40), t->text,
			(int)(s->op_size < 20 ? s->op_size : 20), s->op);
	}
	s->words[s->n_words].text = t->text;
	s->words[s->n_words++].size = t->size;
}

/* ---- operands ---- */

static const struct {
	const char *name;
	uint8_t sreg;
	uint8_t wide;
} sregs[] = {
	{ "%laneid", OBD_SREG_LANEID, 0 },
	{ "%warpid", OBD_SREG_WARPID, 0 },
	{ "%nwarpid", OBD_SREG_NWARPID, 0 },
	{ "%smid", OBD_SREG_SMID, 0 },
	{ "%nsmid", OBD_SREG_NSMID, 0 },
	{ "%gridid", OBD_SREG_GRIDID, 1 },
	{ "%lanemask_eq", OBD_SREG_LM_EQ, 0 },
	{ "%lanemask_le", OBD_SREG_LM_LE, 0 },
	{ "%lanemask_lt", OBD_SREG_LM_LT, 0 },
	{ "%lanemask_ge", OBD_SREG_LM_GE, 0 },
	{ "%lanemask_gt", OBD_SREG_LM_GT, 0 },
	{ "%clock", OBD_SREG_CLOCK, 0 },
	{ "%clock_hi", OBD_SREG_CLOCK_HI, 0 },
	{ "%clock64", OBD_SREG_CLOCK64, 1 },
	{ "%globaltimer", OBD_SREG_GLOBALTIMER, 1 },
	{ "%globaltimer_lo", OBD_SREG_GLOBALTIMER_LO, 0 },
	{ "%globaltimer_hi", OBD_SREG_GLOBALTIMER_HI, 0 },
	{ "%envreg1", OBD_SREG_ENVREG1, 0 },
	{ "%envreg2", OBD_SREG_ENVREG2, 0 },
	{ "%dynamic_smem_size", OBD_SREG_DYN_SMEM, 0 },
	{ "%total_smem_size", OBD_SREG_TOTAL_SMEM, 0 },
	{ "%aggr_smem_size", OBD_SREG_TOTAL_SMEM, 0 },
	{ "%is_explicit_cluster", OBD_SREG_ZERO, 0 },
	{ "%cluster_ctarank", OBD_SREG_ZERO, 0 },
	{ "%cluster_nctarank", OBD_SREG_ONE, 0 },
	{ "%reserved_smem_offset_begin", OBD_SREG_ZERO, 0 },
};

static const struct {
	const char *name;
	uint8_t first; /* number for x; y and z follow */
	bool same;     /* x, y and z have the same number */
} vector_sregs[] = {
	{ "%tid", OBD_SREG_TID_X, false },
	{ "%ntid", OBD_SREG_NTID_X, false },
	{ "%ctaid", OBD_SREG_CTAID_X, false },
	{ "%nctaid", OBD_SREG_NCTAID_X, false },
	{ "%clusterid", OBD_SREG_CTAID_X, false },
	{ "%nclusterid", OBD_SREG_NCTAID_X, false },
	{ "%cluster_ctaid", OBD_SREG_ZERO, true },
	{ "%cluster_nctaid", OBD_SREG_ONE, true },
};

static bool special_register(
	struct obd_loader *ld, const struct obd_token *name, struct obd_operand *o)
{
	for (size_t i = 0; i < sizeof(vector_sregs) / sizeof(vector_sregs[0]); i++) {
		if (!token_is(name, vector_sregs[i].name))
			continue;
		if (tok(ld)->kind != OBD_TOK_DOT || tok(ld)->size != 1 || tok(ld)->text[0] < 'w' ||
			tok(ld)->text[0] > 'z')
			unexpected(ld, ".x, .y or .z");
		uint32_t axis = (uint32_t)(tok(ld)->text[0] - 'x');

		o->kind = OBD_OPD_SREG;
		o->type = OBD_T_U32;
		o->value = tok(ld)->text[0] == 'w' ? OBD_SREG_ZERO
			: vector_sregs[i].same     ? vector_sregs[i].first
						   : vector_sregs[i].first + axis;
		next(ld);
		return true;
	}
	for (size_t i = 0; i < sizeof(sregs) / sizeof(sregs[0]); i++) {
		if (!token_is(name, sregs[i].name))
			continue;
		o->kind = OBD_OPD_SREG;
		o->type = sregs[i].wide ? OBD_T_U64 : OBD_T_U32;
		o->value = sregs[i].sreg;
		return true;
	}
	if ((name->size > 7 && memcmp(name->text, "%envreg", 7) == 0) ||
		(name->size > 3 && memcmp(name->text, "%pm", 3) == 0)) {
		o->kind = OBD_OPD_SREG;
		o->type = OBD_T_U32;
		o->value = OBD_SREG_ZERO;
		return true;
	}
	return false;
}

/* Resolves a register, symbol or special register whose name has been read. */
static void resolve(struct obd_loader *ld, const struct obd_token *name, struct obd_operand *o)
{
	struct obd_symbol *sym;

	o->vreg = obd_sym_register(ld, name->text, name->size, &o->type);
	if (o->vreg != OBD_NONE) {
		o->kind = OBD_OPD_REG;
		return;
	}
	if (name->text[0] == '%' && special_register(ld, name, o))
		return;
	if (name->size == 1 && name->text[0] == '_') {
		o->kind = OBD_OPD_SINK;
		return;
	}
	if (token_is(name, "WARP_SZ")) {
		o->kind = OBD_OPD_IMM;
		o->value = OBD_LANES;
		return;
	}
	sym = obd_sym_find(ld, name->text, name->size);
	if (!sym && name->text[0] == '%')
		obd_ptx_fail(ld, "unknown register %.*s", (int)(name->size < 60 ? name->size : 60),
			name->text);
	o->kind = OBD_OPD_SYMBOL;
	o->sym = sym ? sym : obd_ptx_label(ld, name->text, name->size);
}

static int64_t parse_offset(struct obd_loader *ld)
{
	int64_t v = 0;

	while (obd_tok_is(tok(ld), '+') || obd_tok_is(tok(ld), '-')) {
		bool minus = obd_tok_is(tok(ld), '-');

		next(ld);
		uint64_t n = primary(ld, 0);

		v = (int64_t)(minus ? (uint64_t)v - n : (uint64_t)v + n);
	}
	return v;
}

static void parse_address(struct obd_loader *ld, struct obd_operand *o)
{
	struct obd_operand base = { .vreg = OBD_NONE, .pair = OBD_NONE };

	next(ld); /* [ */
	if (tok(ld)->kind == OBD_TOK_WORD) {
		struct obd_token name = *tok(ld);

		next(ld);
		resolve(ld, &name, &base);
	} else {
		base.offset = (int64_t)obd_ptx_const_expr(ld);
	}
	o->kind = OBD_OPD_ADDRESS;
	o->vreg = base.kind == OBD_OPD_REG ? base.vreg : OBD_NONE;
	o->type = base.type;
	o->sym = base.sym;
	o->offset = base.offset + parse_offset(ld);
	if (!accept(ld, ']'))
		unexpected(ld, "']'");
}

static void parse_operand(struct obd_loader *ld, struct obd_operand *o, uint32_t depth);

static void parse_list(struct obd_loader *ld, struct obd_operand *o, uint16_t close, uint32_t depth)
{
	uint32_t cap = 0;

	next(ld); /* { or ( */
	o->kind = OBD_OPD_LIST;
	while (!obd_tok_is(tok(ld), close)) {
		if (o->n_items && !accept(ld, ','))
			unexpected(ld, "','");
		if (o->n_items >= 1024)
			obd_ptx_fail(ld, "more than 1024 operands");
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
	next(ld);
}

static void parse_word_operand(struct obd_loader *ld, struct obd_operand *o)
{
	struct obd_token name = *tok(ld);

	next(ld);
	resolve(ld, &name, o);
	if (accept(ld, '|')) { /* p|q */
		struct obd_operand second = { .vreg = OBD_NONE };
		struct obd_token n2 = *tok(ld);

		next(ld);
		resolve(ld, &n2, &second);
		if (second.kind != OBD_OPD_REG && second.kind != OBD_OPD_SINK)
			unexpected(ld, "a predicate");
		o->pair = second.vreg;
		o->pair_sink = second.kind == OBD_OPD_SINK;
	}
	if (o->kind == OBD_OPD_SYMBOL)
		o->offset = parse_offset(ld);
}

static void parse_operand(struct obd_loader *ld, struct obd_operand *o, uint32_t depth)
{
	*o = (struct obd_operand){ .vreg = OBD_NONE, .pair = OBD_NONE };
	if (depth > 3)
		obd_ptx_fail(ld, "operands nested too deep");
	struct obd_token *t = tok(ld);

	if (obd_tok_is(t, '!')) {
		struct obd_lex save = ld->lex;

		next(ld);
		if (tok(ld)->kind == OBD_TOK_WORD) {
			parse_word_operand(ld, o);
			o->negated = true;
			return;
		}
		ld->lex = save;
	}
	if (t->kind == OBD_TOK_WORD && !token_is(t, "WARP_SZ")) {
		parse_word_operand(ld, o);
	} else if (obd_tok_is(t, '[')) {
		parse_address(ld, o);
	} else if (obd_tok_is(t, '{')) {
		parse_list(ld, o, '}', depth);
	} else if (t->kind == OBD_TOK_F32 || t->kind == OBD_TOK_F64) {
		o->kind = t->kind == OBD_TOK_F32 ? OBD_OPD_F32 : OBD_OPD_F64;
		o->value = t->value;
		next(ld);
	} else {
		if (obd_tok_is(t, '-')) { /* -1.5 */
			struct obd_lex save = ld->lex;

			next(ld);
			if (tok(ld)->kind == OBD_TOK_F32 || tok(ld)->kind == OBD_TOK_F64) {
				o->kind = tok(ld)->kind == OBD_TOK_F32 ? OBD_OPD_F32 : OBD_OPD_F64;
				o->value = tok(ld)->value ^
					(o->kind == OBD_OPD_F32 ? 1ull << 31 : 1ull << 63);
				next(ld);
				return;
			}
			ld->lex = save;
		}
		o->kind = OBD_OPD_IMM;
		o->value = obd_ptx_const_expr(ld);
	}
}

static void parse_guard(struct obd_loader *ld)
{
	struct obd_builder *b = ld->b;
	struct obd_operand o = { .vreg = OBD_NONE };

	b->guard_negated = accept(ld, '!');
	if (tok(ld)->kind != OBD_TOK_WORD)
		unexpected(ld, "a predicate");
	struct obd_token name = *tok(ld);

	next(ld);
	o.vreg = obd_sym_register(ld, name.text, name.size, &o.type);
	if (o.vreg == OBD_NONE || o.type != OBD_T_PRED)
		obd_ptx_fail(ld, "%.*s is no predicate", (int)(name.size < 60 ? name.size : 60),
			name.text);
	b->guard = o.vreg;
}

void obd_stmt_parse(struct obd_loader *ld)
{
	struct obd_stmt s;
	bool is_call;

	memset(s.quals, 0, sizeof(s.quals));
	s.n_types = s.n_order = s.n_opd = s.n_words = 0;
	s.line = tok(ld)->line;
	ld->b->guard = OBD_NONE;
	if (accept(ld, '@'))
		parse_guard(ld);
	if (tok(ld)->kind != OBD_TOK_WORD)
		unexpected(ld, "an instruction");
	s.op = tok(ld)->text;
	s.op_size = tok(ld)->size;
	is_call = token_is(tok(ld), "call");
	for (next(ld); tok(ld)->kind == OBD_TOK_DOT; next(ld))
		add_qualifier(ld, &s);
	while (!obd_tok_is(tok(ld), ';')) {
		if (s.n_opd && !accept(ld, ','))
			unexpected(ld, "',' or ';'");
		if (s.n_opd >= OBD_MAX_OPERANDS)
			obd_ptx_fail(ld, "more than %u operands", OBD_MAX_OPERANDS);
		struct obd_operand *o = &s.opd[s.n_opd];

		if (is_call && obd_tok_is(tok(ld), '(')) {
			*o = (struct obd_operand){ .vreg = OBD_NONE, .pair = OBD_NONE };
			parse_list(ld, o, ')', 0);
		} else {
			parse_operand(ld, o, 0);
		}
		s.n_opd++;
	}
	next(ld);
	ld->stmt_line = s.line;
	obd_lower(ld->b, &s);
	ld->stmt_line = 0;
	ld->b->guard = OBD_NONE;
	ld->b->round = OBD_RN;
}
