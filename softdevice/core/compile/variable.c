/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Variables. .global and .const variables get memory and their initial values at once, .shared and
 * .local variables a place in a layout.
 */
#include "softdevice/core/compile/variable.h"

#include <string.h>

#include "softdevice/core/compile/builder.h"
#include "softdevice/core/compile/reloc.h"
#include "softdevice/core/ptx/expr.h"
#include "softdevice/core/ptx/token.h"
#include "softdevice/core/texture.h"

#define MAX_ALIGN 65536u
#define MAX_BYTES ((uint64_t)1 << 36)
#define MAX_DIMS  8u

struct variable {
	enum obd_type type;
	uint32_t align, lanes;
	bool managed, is_extern, is_weak, is_array, unsized;
	uint64_t bytes;
	struct obd_token name;
};

static void parse_attribute(struct obd_loader *ld, struct variable *v)
{
	obd_tok_next(ld);
	obd_tok_expect(ld, '(');
	for (uint32_t depth = 1; depth; obd_tok_next(ld)) {
		if (obd_tok(ld)->kind == OBD_TOK_END)
			obd_ptx_fail(ld, "unexpected end of text in an attribute");
		if (obd_tok_dot_is(ld, "managed"))
			v->managed = true;
		depth += obd_tok_is(obd_tok(ld), '(');
		if (obd_tok_is(obd_tok(ld), ')') && --depth == 0) {
			obd_tok_next(ld);
			break;
		}
	}
}

static bool is_reference(struct obd_loader *ld)
{
	return obd_tok_dot_is(ld, "texref") || obd_tok_dot_is(ld, "surfref") ||
		obd_tok_dot_is(ld, "samplerref");
}

/*
 * Parses .align, attributes and the type, which precede the names. Ends before the type if that is
 * the type of references.
 */
static void parse_head(struct obd_loader *ld, struct variable *v)
{
	while (obd_tok(ld)->kind == OBD_TOK_DOT) {
		if (obd_tok_dot_is(ld, "align")) {
			obd_tok_next(ld);
			uint64_t a = obd_tok(ld)->kind == OBD_TOK_INT ? obd_tok(ld)->value : 0;

			if (!a || a > MAX_ALIGN || (a & (a - 1)))
				obd_ptx_fail(ld,
					"the alignment must be a power of two not above %u",
					MAX_ALIGN);
			v->align = (uint32_t)a;
			obd_tok_next(ld);
		} else if (obd_tok_dot_is(ld, "attribute")) {
			parse_attribute(ld, v);
		} else if (obd_tok_dot_is(ld, "v2") || obd_tok_dot_is(ld, "v4")) {
			v->lanes = obd_tok_dot_is(ld, "v2") ? 2 : 4;
			obd_tok_next(ld);
		} else if (obd_tok_dot_is(ld, "visible") || obd_tok_dot_is(ld, "unified")) {
			obd_tok_next(ld);
		} else if (is_reference(ld)) {
			return;
		} else {
			enum obd_type t = obd_type_named(obd_tok(ld)->text, obd_tok(ld)->size);

			if (!t || t == OBD_T_PRED)
				obd_ptx_fail(ld, "unknown type .%.*s of a variable",
					OBD_TOK_ARG(obd_tok(ld)));
			v->type = t;
			obd_tok_next(ld);
		}
	}
	if (!v->type)
		obd_ptx_fail(ld, "a variable declaration has no type");
}

static void parse_name(struct obd_loader *ld, struct variable *v)
{
	uint32_t dims = 0;

	if (obd_tok(ld)->kind != OBD_TOK_WORD)
		obd_tok_unexpected(ld, "a variable name");
	v->name = *obd_tok(ld);
	obd_tok_next(ld);
	v->bytes = (uint64_t)obd_type_bytes(v->type) * v->lanes;
	if (v->align < v->bytes)
		v->align = (uint32_t)v->bytes;
	v->is_array = v->unsized = false;
	while (obd_tok_accept(ld, '[')) {
		v->is_array = true;
		if (++dims > MAX_DIMS)
			obd_ptx_fail(ld, "an array has more than %u dimensions", MAX_DIMS);
		if (obd_tok_accept(ld, ']')) {
			v->unsized = true;
			continue;
		}
		uint64_t n = obd_expr_parse(ld);

		obd_tok_expect(ld, ']');
		if (n > MAX_BYTES || (n && v->bytes > MAX_BYTES / n))
			obd_ptx_fail(ld, "a variable takes more than %llu bytes",
				(unsigned long long)MAX_BYTES);
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
		obd_ptx_fail(in->ld, "more initial values than the variable has elements");
	memcpy(in->at, p, in->cell);
	if (sym) {
		obd_reloc_add(in->ld,
			(struct obd_reloc){ .sym = sym,
				.cell = in->at,
				.size = in->cell,
				.offset = offset,
				.mask = mask,
				.line = obd_tok(in->ld)->line });
		if (sym->kind == OBD_SYM_FUNC)
			in->ld->prog->funcs[sym->index]->address_taken = true;
	}
	in->at += in->cell;
}

static void put_symbol(struct init *in, uint64_t mask)
{
	struct obd_loader *ld = in->ld;
	bool generic = obd_tok(ld)->kind == OBD_TOK_WORD && obd_tok_text_is(obd_tok(ld), "generic");
	uint8_t zero[16] = { 0 };
	int64_t offset = 0;

	if (generic) {
		obd_tok_next(ld);
		obd_tok_expect(ld, '(');
	}
	struct obd_symbol *s = obd_sym_find(ld, obd_tok(ld)->text, obd_tok(ld)->size);

	if (!s || (s->kind != OBD_SYM_GLOBAL && s->kind != OBD_SYM_FUNC))
		obd_ptx_fail(ld, "initial value %.*s is not a declared variable or function",
			OBD_TOK_ARG(obd_tok(ld)));
	obd_tok_next(ld);
	if (generic)
		obd_tok_expect(ld, ')');
	if (obd_tok_is(obd_tok(ld), '+') || obd_tok_is(obd_tok(ld), '-')) {
		bool minus = obd_tok_is(obd_tok(ld), '-');

		obd_tok_next(ld);
		uint64_t n = obd_tok(ld)->kind == OBD_TOK_INT ? obd_tok(ld)->value : 0;

		obd_tok_next(ld);
		offset = (int64_t)(minus ? 0 - n : n);
	}
	put(in, zero, s, offset, mask);
}

static void put_number(struct init *in)
{
	struct obd_loader *ld = in->ld;
	uint8_t cell[16] = { 0 };
	bool minus = false;

	if (obd_tok(ld)->kind == OBD_TOK_PUNCT) {
		struct obd_lex save = ld->lex;

		minus = obd_tok_is(obd_tok(ld), '-');
		if (minus)
			obd_tok_next(ld);
		if (obd_tok(ld)->kind != OBD_TOK_F32 && obd_tok(ld)->kind != OBD_TOK_F64) {
			minus = false;
			ld->lex = save;
		}
	}
	if (obd_tok(ld)->kind == OBD_TOK_F32 || obd_tok(ld)->kind == OBD_TOK_F64) {
		double d;
		float f;

		memcpy(&d, &obd_tok(ld)->value, 8);
		if (obd_tok(ld)->kind == OBD_TOK_F32) {
			uint32_t bits = (uint32_t)obd_tok(ld)->value;

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
				"a floating-point initial value requires a variable of type .f32 "
				"or .f64");
		obd_tok_next(ld);
	} else {
		uint64_t v = obd_expr_parse(ld);

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
		while (obd_tok_accept(ld, '{'))
			depth++;
		if (depth > MAX_DIMS + 1)
			obd_ptx_fail(
				ld, "initial values nested more than %u levels deep", MAX_DIMS + 1);
		if (!obd_tok_is(obd_tok(ld), '}')) {
			uint64_t mask = ~0ull;

			if (obd_tok(ld)->kind == OBD_TOK_WORD &&
				obd_tok_text_is(obd_tok(ld), "mask")) {
				obd_tok_next(ld);
				obd_tok_expect(ld, '(');
				mask = obd_expr_parse(ld);
				obd_tok_expect(ld, ')');
			}
			if (obd_tok(ld)->kind == OBD_TOK_WORD)
				put_symbol(in, mask);
			else if (mask != ~0ull && obd_tok_accept(ld, '(')) {
				put_symbol(in, mask);
				obd_tok_expect(ld, ')');
			} else
				put_number(in);
		}
		while (depth && obd_tok_accept(ld, '}'))
			depth--;
	} while (obd_tok_accept(ld, ','));
	if (depth)
		obd_ptx_fail(ld, "expected '}' after the initial values");
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
			OBD_TEXT_ARG(s->name, s->size), (unsigned long long)v->bytes);
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
		obd_ptx_fail_with(
			ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory while the module is compiled");
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
	bool has_value = obd_tok_is(obd_tok(ld), '=');

	if (has_value && v->unsized) { /* the size is the number of values */
		obd_tok_next(ld);
		parse_values(&in);
		v->bytes = (v->bytes ? v->bytes : 1) * in.count;
		ld->lex = value;
	}
	s->bytes = v->bytes;
	s->is_array = v->is_array;
	bool fresh = !v->is_extern && !s->addr;

	if (!v->is_extern && s->addr && !v->is_weak)
		obd_ptx_fail(ld, "variable %.*s is defined twice", OBD_TEXT_ARG(s->name, s->size));
	if (fresh)
		add_global(ld, s, v, is_const);
	if (!has_value)
		return;
	obd_tok_next(ld);
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
		obd_ptx_fail(
			ld, "a .shared variable takes more than %u bytes", OBD_BLOCK_MAX_SHARED);
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
		obd_ptx_fail(ld, "a .local variable is declared outside a function");
	uint64_t at = ((uint64_t)ld->b->local_bytes + v->align - 1) & ~(uint64_t)(v->align - 1);

	if (v->unsized || at + v->bytes > OBD_MAX_LOCAL_BYTES)
		obd_ptx_fail(ld, "a function uses more than %u bytes of local memory",
			OBD_MAX_LOCAL_BYTES);
	s = obd_sym_add(ld, v->name.text, v->name.size, OBD_SYM_LOCAL);
	s->offset = at;
	s->bytes = v->bytes;
	ld->b->local_bytes = (uint32_t)(at + v->bytes);
}

/* It can be accessed once the program has bound it. */
static void add_reference(struct obd_loader *ld, enum obd_texture_kind kind)
{
	static const char *const refused[] = {
		"the texture reference is not bound",
		"the surface reference is not bound",
		"a sampler is no texture",
	};
	const struct obd_texture unbound = { .kind = kind, .refused = refused[kind] };
	const struct obd_token *name = obd_tok(ld);
	struct obd_program *p = ld->prog;
	struct obd_symbol *s;

	if (obd_sym_find(ld, name->text, name->size))
		return;
	s = obd_sym_add(ld, name->text, name->size, OBD_SYM_REF);
	if (!p->env.textures)
		return;
	obd_ptx_grow(ld, &p->refs, &ld->cap_refs, p->n_refs, sizeof(*p->refs), OBD_TEXTURES_MAX);
	struct obd_ref ref = { .name = obd_arena_copy(ld->arena, s->name, s->size),
		.handle = obd_textures_add(p->env.textures, &unbound) };

	if (ref.handle)
		p->refs[p->n_refs++] = ref; /* from here on obd_program_free ends the handle */
	if (!ref.handle || !ref.name)
		obd_ptx_fail_with(
			ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory while the module is compiled");
	s->offset = ref.handle;
}

/* Reads the names; the current token is the type. Dimensions and initial values have no meaning. */
static void parse_references(struct obd_loader *ld)
{
	enum obd_texture_kind kind = obd_tok_dot_is(ld, "texref") ? OBD_IS_TEXTURE
		: obd_tok_dot_is(ld, "surfref")                   ? OBD_IS_SURFACE
								  : OBD_IS_SAMPLER;
	uint32_t depth = 0;

	do {
		obd_tok_next(ld);
		if (obd_tok(ld)->kind != OBD_TOK_WORD)
			obd_tok_unexpected(ld, "a variable name");
		add_reference(ld, kind);
		while (obd_tok(ld)->kind != OBD_TOK_END &&
			(depth ||
				(!obd_tok_is(obd_tok(ld), ',') && !obd_tok_is(obd_tok(ld), ';')))) {
			depth += obd_tok_is(obd_tok(ld), '{') || obd_tok_is(obd_tok(ld), '[');
			depth -= depth &&
				(obd_tok_is(obd_tok(ld), '}') || obd_tok_is(obd_tok(ld), ']'));
			obd_tok_next(ld);
		}
	} while (obd_tok_is(obd_tok(ld), ','));
	obd_tok_expect(ld, ';');
}

void obd_variable_parse(struct obd_loader *ld, char space, bool is_extern, bool is_weak)
{
	struct variable v = { .align = 1, .lanes = 1, .is_extern = is_extern, .is_weak = is_weak };

	parse_head(ld, &v);
	if (space == 'g' && is_reference(ld)) {
		parse_references(ld);
		return;
	}
	do {
		parse_name(ld, &v);
		switch (space) {
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
	} while (obd_tok_accept(ld, ','));
	obd_tok_expect(ld, ';');
}
