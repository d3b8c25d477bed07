/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Variables. .global and .const variables get memory and their initial values at once, .shared and
 * .local variables a place in a layout.
 */
#include <string.h>

#include "softdevice/core/ptx/ptx.h"

#define MAX_ALIGN 65536u
#define MAX_DIMS  8u

struct variable {
	enum obd_type type;
	uint32_t align, lanes;
	bool managed, is_extern, is_weak, is_array, unsized;
	uint64_t bytes;
	struct obd_token name;
};

static struct obd_token *tok(struct obd_loader *ld)
{
	return &ld->lex.tok;
}

static bool token_is(const struct obd_token *t, const char *name)
{
	return t->size == strlen(name) && memcmp(t->text, name, t->size) == 0;
}

static bool dot_is(struct obd_loader *ld, const char *name)
{
	return tok(ld)->kind == OBD_TOK_DOT && token_is(tok(ld), name);
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

static void expect(struct obd_loader *ld, uint16_t ch)
{
	if (!accept(ld, ch))
		obd_ptx_fail(ld, "'%c' expected before '%.*s'", ch,
			(int)(tok(ld)->size < 40 ? tok(ld)->size : 40), tok(ld)->text);
}

static void parse_attribute(struct obd_loader *ld, struct variable *v)
{
	next(ld);
	expect(ld, '(');
	for (uint32_t depth = 1; depth; next(ld)) {
		if (tok(ld)->kind == OBD_TOK_END)
			obd_ptx_fail(ld, "the text ends inside an attribute");
		if (dot_is(ld, "managed"))
			v->managed = true;
		depth += obd_tok_is(tok(ld), '(');
		if (obd_tok_is(tok(ld), ')') && --depth == 0) {
			next(ld);
			break;
		}
	}
}

/* Parses .align, attributes and the type, which precede the names. */
static void parse_head(struct obd_loader *ld, struct variable *v)
{
	while (tok(ld)->kind == OBD_TOK_DOT) {
		if (dot_is(ld, "align")) {
			next(ld);
			uint64_t a = tok(ld)->kind == OBD_TOK_INT ? tok(ld)->value : 0;

			if (!a || a > MAX_ALIGN || (a & (a - 1)))
				obd_ptx_fail(
					ld, "an alignment is a power of two up to %u", MAX_ALIGN);
			v->align = (uint32_t)a;
			next(ld);
		} else if (dot_is(ld, "attribute")) {
			parse_attribute(ld, v);
		} else if (dot_is(ld, "v2") || dot_is(ld, "v4")) {
			v->lanes = dot_is(ld, "v2") ? 2 : 4;
			next(ld);
		} else if (dot_is(ld, "visible") || dot_is(ld, "unified")) {
			next(ld);
		} else {
			enum obd_type t = obd_type_named(tok(ld)->text, tok(ld)->size);

			if (!t || t == OBD_T_PRED)
				obd_ptx_fail(ld, "unknown type .%.*s of a variable",
					(int)(tok(ld)->size < 40 ? tok(ld)->size : 40),
					tok(ld)->text);
			v->type = t;
			next(ld);
		}
	}
	if (!v->type)
		obd_ptx_fail(ld, "a variable without a type");
}

static void parse_name(struct obd_loader *ld, struct variable *v)
{
	uint32_t dims = 0;

	if (tok(ld)->kind != OBD_TOK_WORD)
		obd_ptx_fail(ld, "a variable's name expected");
	v->name = *tok(ld);
	next(ld);
	v->bytes = (uint64_t)obd_type_bytes(v->type) * v->lanes;
	if (v->align < v->bytes)
		v->align = (uint32_t)v->bytes;
	v->is_array = v->unsized = false;
	while (accept(ld, '[')) {
		v->is_array = true;
		if (++dims > MAX_DIMS)
			obd_ptx_fail(ld, "more than %u array dimensions", MAX_DIMS);
		if (accept(ld, ']')) {
			v->unsized = true;
			continue;
		}
		uint64_t n = obd_ptx_const_expr(ld);

		expect(ld, ']');
		if (n > OBD_MAX_VAR_BYTES || (n && v->bytes > OBD_MAX_VAR_BYTES / n))
			obd_ptx_fail(ld, "a variable of more than %llu bytes",
				(unsigned long long)OBD_MAX_VAR_BYTES);
		v->bytes *= n;
	}
}

/* ---- initial values ---- */

struct init {
	struct obd_loader *ld;
	struct variable *v;
	char *at, *end; /* NULL: only the number of elements is needed */
	uint64_t count; /* number of elements */
	uint32_t cell;
};

static void put(
	struct init *in, const void *p, struct obd_symbol *sym, int64_t offset, uint64_t mask)
{
	in->count++;
	if (!in->at)
		return;
	if ((size_t)(in->end - in->at) < in->cell)
		obd_ptx_fail(in->ld, "more initial values than the variable holds");
	memcpy(in->at, p, in->cell);
	if (sym) {
		struct obd_reloc *r = obd_ptx_scratch(in->ld, sizeof(*r));

		*r = (struct obd_reloc){ .next = in->ld->relocs,
			.sym = sym,
			.cell = in->at,
			.size = in->cell,
			.offset = offset,
			.mask = mask,
			.line = tok(in->ld)->line };
		in->ld->relocs = r;
		if (sym->kind == OBD_SYM_FUNC)
			in->ld->prog->funcs[sym->index]->address_taken = true;
	}
	in->at += in->cell;
}

static void put_symbol(struct init *in, uint64_t mask)
{
	struct obd_loader *ld = in->ld;
	bool generic = tok(ld)->kind == OBD_TOK_WORD && token_is(tok(ld), "generic");
	uint8_t zero[16] = { 0 };
	int64_t offset = 0;

	if (generic) {
		next(ld);
		expect(ld, '(');
	}
	struct obd_symbol *s = obd_sym_find(ld, tok(ld)->text, tok(ld)->size);

	if (!s || (s->kind != OBD_SYM_GLOBAL && s->kind != OBD_SYM_FUNC))
		obd_ptx_fail(ld, "initial value %.*s is no variable or function",
			(int)(tok(ld)->size < 60 ? tok(ld)->size : 60), tok(ld)->text);
	next(ld);
	if (generic)
		expect(ld, ')');
	if (obd_tok_is(tok(ld), '+') || obd_tok_is(tok(ld), '-')) {
		bool minus = obd_tok_is(tok(ld), '-');

		next(ld);
		uint64_t n = tok(ld)->kind == OBD_TOK_INT ? tok(ld)->value : 0;

		next(ld);
		offset = (int64_t)(minus ? 0 - n : n);
	}
	put(in, zero, s, offset, mask);
}

static void put_number(struct init *in)
{
	struct obd_loader *ld = in->ld;
	uint8_t cell[16] = { 0 };
	bool minus = false;

	if (tok(ld)->kind == OBD_TOK_PUNCT) {
		struct obd_lex save = ld->lex;

		minus = obd_tok_is(tok(ld), '-');
		if (minus)
			next(ld);
		if (tok(ld)->kind != OBD_TOK_F32 && tok(ld)->kind != OBD_TOK_F64) {
			minus = false;
			ld->lex = save;
		}
	}
	if (tok(ld)->kind == OBD_TOK_F32 || tok(ld)->kind == OBD_TOK_F64) {
		double d;
		float f;

		memcpy(&d, &tok(ld)->value, 8);
		if (tok(ld)->kind == OBD_TOK_F32) {
			uint32_t bits = (uint32_t)tok(ld)->value;

			memcpy(&f, &bits, 4);
			d = (double)f;
		} else {
			f = (float)d;
		}
		d = minus ? -d : d;
		f = minus ? -f : f;
		if (in->cell == 8)
			memcpy(cell, &d, 8);
		else if (in->cell == 4)
			memcpy(cell, &f, 4);
		else
			obd_ptx_fail(ld,
				"a floating-point value for a variable that is neither .f32 nor "
				".f64");
		next(ld);
	} else {
		uint64_t v = obd_ptx_const_expr(ld);

		if (in->v->type == OBD_T_F64 || in->v->type == OBD_T_F32) {
			double d = (double)(int64_t)v;
			float f = (float)d;

			memcpy(cell, in->cell == 8 ? (void *)&d : (void *)&f, in->cell);
		} else {
			memcpy(cell, &v, 8);
		}
	}
	put(in, cell, NULL, 0, 0);
}

static void parse_values(struct init *in)
{
	struct obd_loader *ld = in->ld;
	uint32_t depth = 0;

	do {
		while (accept(ld, '{'))
			depth++;
		if (depth > MAX_DIMS + 1)
			obd_ptx_fail(ld, "initial values nested too deep");
		if (!obd_tok_is(tok(ld), '}')) {
			uint64_t mask = ~0ull;

			if (tok(ld)->kind == OBD_TOK_WORD && token_is(tok(ld), "mask")) {
				next(ld);
				expect(ld, '(');
				mask = obd_ptx_const_expr(ld);
				expect(ld, ')');
			}
			if (tok(ld)->kind == OBD_TOK_WORD)
				put_symbol(in, mask);
			else if (mask != ~0ull && accept(ld, '(')) {
				put_symbol(in, mask);
				expect(ld, ')');
			} else
				put_number(in);
		}
		while (depth && accept(ld, '}'))
			depth--;
	} while (accept(ld, ','));
	if (depth)
		obd_ptx_fail(ld, "'}' expected behind the initial values");
}

/* ---- state spaces ---- */

static void add_global(
	struct obd_loader *ld, struct obd_symbol *s, struct variable *v, bool is_const)
{
	struct obd_program *p = ld->prog;
	const struct obd_env *env = &p->env;
	void *mem = env->alloc(
		env->user, v->bytes ? (size_t)v->bytes : 1, v->align < 16 ? 16 : v->align);

	if (!mem)
		obd_ptx_fail_with(ld, CUDA_ERROR_OUT_OF_MEMORY,
			"out of device memory for variable %.*s of %llu bytes",
			(int)(s->size < 60 ? s->size : 60), s->name, (unsigned long long)v->bytes);
	/* from here on obd_program_free frees the memory */
	s->addr = mem;
	obd_ptx_grow(
		ld, &p->globals, &ld->cap_globals, p->n_globals, sizeof(*p->globals), 1u << 24);
	struct obd_global *g = &p->globals[p->n_globals];

	*g = (struct obd_global){ .name = "",
		.addr = mem,
		.size = (size_t)v->bytes,
		.is_const = is_const,
		.is_managed = v->managed };
	p->n_globals++;
	g->name = obd_arena_copy(ld->arena, s->name, s->size);
	if (!g->name) {
		g->name = "";
		obd_ptx_fail_with(ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
	}
	if (is_const)
		p->const_bytes += (uint32_t)v->bytes;
}

static void global_variable(struct obd_loader *ld, struct variable *v, bool is_const)
{
	struct obd_symbol *s = obd_sym_find(ld, v->name.text, v->name.size);

	if (s && s->kind != OBD_SYM_GLOBAL)
		s = NULL;
	if (!s || (ld->scope && s->scope != ld->scope)) {
		s = obd_sym_add(ld, v->name.text, v->name.size, OBD_SYM_GLOBAL);
		s->is_const = is_const;
	}
	struct init in = { .ld = ld, .v = v, .cell = obd_type_bytes(v->type) };
	struct obd_lex value = ld->lex;
	bool has_value = obd_tok_is(tok(ld), '=');

	if (has_value && v->unsized) { /* the size is the number of values */
		next(ld);
		parse_values(&in);
		v->bytes = (v->bytes ? v->bytes : 1) * in.count;
		ld->lex = value;
	}
	s->bytes = v->bytes;
	s->is_array = v->is_array;
	bool fresh = !v->is_extern && !s->addr;

	if (!v->is_extern && s->addr && !v->is_weak)
		obd_ptx_fail(ld, "variable %.*s is defined twice",
			(int)(s->size < 60 ? s->size : 60), s->name);
	if (fresh)
		add_global(ld, s, v, is_const);
	if (!has_value)
		return;
	next(ld);
	in.count = 0;
	if (fresh) {
		in.at = s->addr;
		in.end = in.at + v->bytes;
	}
	parse_values(&in);
}

static void shared_variable(struct obd_loader *ld, struct variable *v)
{
	struct obd_program *p = ld->prog;
	struct obd_symbol *s = obd_sym_find(ld, v->name.text, v->name.size);

	if (s && s->kind == OBD_SYM_SHARED && s->scope == ld->scope)
		return; /* the variable is declared .extern in several modules */
	if (v->bytes > OBD_BLOCK_MAX_SHARED && !v->unsized)
		obd_ptx_fail(ld, "a shared variable of more than %u bytes", OBD_BLOCK_MAX_SHARED);
	s = obd_sym_add(ld, v->name.text, v->name.size, OBD_SYM_SHARED);
	obd_ptx_grow(ld, &p->shared, &ld->cap_shared, p->n_shared, sizeof(*p->shared), 1u << 20);
	s->index = p->n_shared;
	s->bytes = v->bytes;
	p->shared[p->n_shared++] = (struct obd_shared_var){ .size = v->unsized ||
				(v->is_extern && v->is_array && !v->bytes)
			? 0
			: (uint32_t)v->bytes,
		.align = v->align,
		.dynamic = v->unsized };
}

static void local_variable(struct obd_loader *ld, struct variable *v)
{
	struct obd_symbol *s;

	if (!ld->b)
		obd_ptx_fail(ld, ".local variables belong inside functions");
	uint64_t at = ((uint64_t)ld->b->local_bytes + v->align - 1) & ~(uint64_t)(v->align - 1);

	if (v->unsized || at + v->bytes > OBD_MAX_LOCAL_BYTES)
		obd_ptx_fail(ld, "more than %u bytes of local memory in a function",
			OBD_MAX_LOCAL_BYTES);
	s = obd_sym_add(ld, v->name.text, v->name.size, OBD_SYM_LOCAL);
	s->offset = at;
	s->bytes = v->bytes;
	ld->b->local_bytes = (uint32_t)(at + v->bytes);
}

void obd_ptx_variable(
	struct obd_loader *ld, const char *space, uint32_t space_size, bool is_extern, bool is_weak)
{
	struct variable v = { .align = 1, .lanes = 1, .is_extern = is_extern, .is_weak = is_weak };

	(void)space_size;
	parse_head(ld, &v);
	do {
		parse_name(ld, &v);
		switch (space[0]) {
		case 'g':
			global_variable(ld, &v, false);
			break;
		case 'c':
			global_variable(ld, &v, true);
			break;
		case 's':
			shared_variable(ld, &v);
			break;
		default:
			local_variable(ld, &v);
			break;
		}
	} while (accept(ld, ','));
	expect(ld, ';');
}
