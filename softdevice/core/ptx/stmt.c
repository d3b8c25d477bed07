/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/stmt.h"

#include <string.h>

#include "softdevice/core/ptx/token.h"
#include "softdevice/core/ptx/unimplemented.h"

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
	static const char *const names[] = { "mma", "wmma", "wgmma", "movmatrix", "ldmatrix",
		"stmatrix", "mbarrier", "fence", "cp", "prefetch", "prefetchu", "createpolicy",
		"applypriority", "discard", "griddepcontrol", "setmaxnreg", "tex", "tld4", "txq",
		"suld", "sust", "sured", "suq", "istypep", "tensormap" };

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
	const struct obd_token *t = obd_tok(ld);
	enum obd_type type = obd_type_named(t->text, t->size);

	if (type) {
		if (s->n_types < OBD_MAX_TYPES)
			s->types[s->n_types++] = type;
		return;
	}
	for (uint32_t i = 0; i < N_QUALIFIERS; i++) {
		if (qualifiers[i].name[0] != t->text[0] || !obd_tok_text_is(t, qualifiers[i].name))
			continue;
		uint32_t q = qualifiers[i].q;

		s->quals[q / 64] |= 1ull << (q % 64);
		if (obd_tok_text_is(t, "shared::cluster")) /* is shared memory, too */
			s->quals[OBD_Q_remote / 64] |= 1ull << (OBD_Q_remote % 64);
		if (is_ordered(q) && s->n_order < sizeof(s->order))
			s->order[s->n_order++] = (uint8_t)q;
		return;
	}
	if (is_hint(t))
		return;
	if (!has_free_words(s) || s->n_words >= OBD_MAX_FREE_WORDS) {
		if (obd_ptx_unimplemented_word(t->text, t->size) || obd_ptx_newer(ld->version))
			obd_ptx_refuse(ld,
				"qualifier .%.*s of %.*s is not supported by the software device",
				OBD_TOK_ARG(t), (int)s->op_size, s->op);
		obd_ptx_fail(ld, "unknown qualifier .%.*s of %.*s", OBD_TOK_ARG(t),
			(int)(s->op_size < 20 ? s->op_size : 20), s->op);
	}
	s->words[s->n_words].text = t->text;
	s->words[s->n_words++].size = t->size;
}

static void parse_guard(struct obd_loader *ld, struct obd_stmt *s)
{
	struct obd_operand o = { .vreg = OBD_NONE };

	s->guard_negated = obd_tok_accept(ld, '!');
	if (obd_tok(ld)->kind != OBD_TOK_WORD)
		obd_tok_unexpected(ld, "a predicate");
	struct obd_token name = *obd_tok(ld);

	obd_tok_next(ld);
	o.vreg = obd_sym_register(ld, name.text, name.size, &o.type);
	if (o.vreg == OBD_NONE || o.type != OBD_T_PRED)
		obd_ptx_fail(ld, "the guard %.*s is not a declared predicate register",
			OBD_TOK_ARG(&name));
	s->guard = o.vreg;
}

void obd_stmt_parse(struct obd_loader *ld, struct obd_stmt *s)
{
	bool is_call;

	memset(s->quals, 0, sizeof(s->quals));
	s->n_types = s->n_order = s->n_opd = s->n_words = 0;
	s->line = obd_tok(ld)->line;
	s->guard = OBD_NONE;
	s->guard_negated = false;
	if (obd_tok_accept(ld, '@'))
		parse_guard(ld, s);
	if (obd_tok(ld)->kind != OBD_TOK_WORD)
		obd_tok_unexpected(ld, "an instruction");
	s->op = obd_tok(ld)->text;
	s->op_size = obd_tok(ld)->size;
	/* before the operands, whose form may be unknown, too */
	if (obd_ptx_unimplemented(s->op, s->op_size))
		obd_ptx_refuse(ld, "instruction %.*s is not supported by the software device",
			(int)s->op_size, s->op);
	is_call = obd_tok_text_is(obd_tok(ld), "call");
	for (obd_tok_next(ld); obd_tok(ld)->kind == OBD_TOK_DOT; obd_tok_next(ld))
		add_qualifier(ld, s);
	while (!obd_tok_is(obd_tok(ld), ';')) {
		if (s->n_opd && !obd_tok_accept(ld, ','))
			obd_tok_unexpected(ld, "',' or ';'");
		if (s->n_opd >= OBD_MAX_OPERANDS)
			obd_ptx_fail(
				ld, "an instruction has more than %u operands", OBD_MAX_OPERANDS);
		struct obd_operand *o = &s->opd[s->n_opd];

		if (is_call && obd_tok_is(obd_tok(ld), '(')) {
			obd_operand_parse_arguments(ld, o);
		} else {
			obd_operand_parse(ld, o);
		}
		s->n_opd++;
	}
	obd_tok_next(ld);
}
