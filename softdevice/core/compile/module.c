/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Parses a module: directives, functions with their parameters, and bodies. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/ptx/ptx.h"

#define MAX_PARAMS 4096u

void obd_ptx_fail_with(struct obd_loader *ld, CUresult result, const char *format, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (ld->log && ld->log_size)
		snprintf(ld->log, ld->log_size, "line %u: %s\n",
			ld->stmt_line ? ld->stmt_line : ld->lex.tok.line, text);
	ld->result = result;
	longjmp(ld->fail, 1);
}

void obd_ptx_fail(struct obd_loader *ld, const char *format, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	obd_ptx_fail_with(ld, CUDA_ERROR_INVALID_PTX, "%s", text);
}

void *obd_ptx_alloc(struct obd_loader *ld, size_t size)
{
	void *p = obd_arena_alloc(ld->arena, size);

	if (!p)
		obd_ptx_fail_with(ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
	return p;
}

void *obd_ptx_scratch(struct obd_loader *ld, size_t size)
{
	void *p = obd_arena_alloc(ld->scratch, size);

	if (!p)
		obd_ptx_fail_with(ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
	return p;
}

/* ---- token helpers ---- */

static struct obd_token *tok(struct obd_loader *ld)
{
	return &ld->lex.tok;
}

static bool dot_is(struct obd_loader *ld, const char *name)
{
	struct obd_token *t = tok(ld);

	return t->kind == OBD_TOK_DOT && t->size == strlen(name) &&
		memcmp(t->text, name, t->size) == 0;
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

static uint64_t integer(struct obd_loader *ld)
{
	if (tok(ld)->kind != OBD_TOK_INT)
		obd_ptx_fail(ld, "a number expected before '%.*s'",
			(int)(tok(ld)->size < 40 ? tok(ld)->size : 40), tok(ld)->text);
	uint64_t v = tok(ld)->value;

	next(ld);
	return v;
}

/* ---- parameters ---- */

static void parse_param(struct obd_loader *ld, struct obd_param_decl *p)
{
	uint64_t bytes;

	*p = (struct obd_param_decl){ .align = 1 };
	p->is_register = dot_is(ld, "reg");
	if (!p->is_register && !dot_is(ld, "param"))
		obd_ptx_fail(ld, "a parameter starts with .param or .reg");
	next(ld);
	for (; tok(ld)->kind == OBD_TOK_DOT; next(ld)) {
		if (dot_is(ld, "align")) {
			next(ld);
			p->align = (uint32_t)tok(ld)->value;
			if (tok(ld)->kind != OBD_TOK_INT || !p->align || p->align > 4096 ||
				(p->align & (p->align - 1)))
				obd_ptx_fail(ld, "an alignment is a power of two up to 4096");
		} else if (dot_is(ld, "ptr") || dot_is(ld, "global") || dot_is(ld, "shared") ||
			dot_is(ld, "local") || dot_is(ld, "const") || dot_is(ld, "generic")) {
			continue;
		} else {
			enum obd_type t = obd_type_named(tok(ld)->text, tok(ld)->size);

			if (!t)
				obd_ptx_fail(ld, "unknown parameter type .%.*s",
					(int)(tok(ld)->size < 40 ? tok(ld)->size : 40),
					tok(ld)->text);
			p->type = t;
			/* the alignment after .ptr is that of the memory pointed to */
			struct obd_lex save = ld->lex;

			next(ld);
			if (dot_is(ld, "ptr")) {
				for (next(ld); tok(ld)->kind == OBD_TOK_DOT; next(ld))
					if (dot_is(ld, "align"))
						next(ld);
				break;
			}
			ld->lex = save;
		}
	}
	if (!p->type)
		obd_ptx_fail(ld, "a parameter without a type");
	if (tok(ld)->kind == OBD_TOK_WORD) {
		p->name = tok(ld)->text;
		p->name_size = tok(ld)->size;
		next(ld);
	}
	bytes = obd_type_bytes(p->type);
	if (p->align < bytes)
		p->align = (uint32_t)bytes;
	while (accept(ld, '[')) {
		uint64_t n = obd_tok_is(tok(ld), ']') ? 0 : integer(ld);

		expect(ld, ']');
		p->is_array = true;
		if (n > OBD_KERNEL_MAX_PARAM_BYTES || bytes * n > OBD_KERNEL_MAX_PARAM_BYTES)
			obd_ptx_fail(ld, "a parameter of more than %u bytes",
				OBD_KERNEL_MAX_PARAM_BYTES);
		bytes *= n;
	}
	p->bytes = (uint32_t)bytes;
	p->words = (p->bytes + 3) / 4;
}

static struct obd_param_decl *parse_params(struct obd_loader *ld, uint32_t *ret_n)
{
	struct obd_param_decl *list = NULL;
	uint32_t n = 0, cap = 0;

	expect(ld, '(');
	while (!obd_tok_is(tok(ld), ')')) {
		struct obd_param_decl p;

		if (n)
			expect(ld, ',');
		parse_param(ld, &p);
		if (n >= MAX_PARAMS)
			obd_ptx_fail(ld, "more than %u parameters", MAX_PARAMS);
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
	next(ld);
	*ret_n = n;
	return list;
}

static uint32_t count_words(struct obd_loader *ld, const struct obd_param_decl *p, uint32_t n)
{
	uint32_t words = 0;

	for (uint32_t i = 0; i < n; i++)
		words += p[i].words;
	if (words > OBD_MAX_WORDS)
		obd_ptx_fail(
			ld, "a function with more than %u bytes of parameters", OBD_MAX_WORDS * 4);
	return words;
}

/* ---- functions ---- */

static const struct {
	const char *name;
	enum obd_builtin id;
} builtins[] = {
	{ "vprintf", OBD_BUILTIN_VPRINTF },
	{ "malloc", OBD_BUILTIN_MALLOC },
	{ "free", OBD_BUILTIN_FREE },
	{ "__assertfail", OBD_BUILTIN_ASSERTFAIL },
};

static struct obd_func *new_func(struct obd_loader *ld, const char *name, uint32_t size)
{
	struct obd_program *p = ld->prog;
	struct obd_func *f = obd_ptx_alloc(ld, sizeof(*f));

	obd_ptx_grow(ld, &p->funcs, &ld->cap_funcs, p->n_funcs, sizeof(*p->funcs), 1u << 24);
	f->name = obd_arena_copy(ld->arena, name, size);
	if (!f->name)
		obd_ptx_fail_with(ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
	f->index = p->n_funcs;
	p->funcs[p->n_funcs++] = f;
	return f;
}

struct header {
	bool is_entry, is_extern, is_weak, noreturn;
	uint32_t maxntid[3], reqntid[3];
	uint32_t maxnreg[3], minnctapersm[3]; /* only [0] is used */
};

static void parse_limits(struct obd_loader *ld, struct header *h)
{
	while (tok(ld)->kind == OBD_TOK_DOT) {
		uint32_t *dim = dot_is(ld, "maxntid") ? h->maxntid
			: dot_is(ld, "reqntid")       ? h->reqntid
			: dot_is(ld, "maxnreg")       ? h->maxnreg
			: dot_is(ld, "minnctapersm")  ? h->minnctapersm
						      : NULL;
		bool flag = dot_is(ld, "noreturn") || dot_is(ld, "explicitcluster") ||
			dot_is(ld, "blocksareclusters");

		if (dot_is(ld, "noreturn"))
			h->noreturn = true;
		if (dot_is(ld, "pragma")) {
			next(ld);
			while (tok(ld)->kind == OBD_TOK_STRING || obd_tok_is(tok(ld), ','))
				next(ld);
			accept(ld, ';');
			continue;
		}
		next(ld);
		if (flag)
			continue;
		if (dim)
			dim[1] = dim[2] = 1;
		for (uint32_t i = 0; tok(ld)->kind == OBD_TOK_INT || obd_tok_is(tok(ld), ',');) {
			if (accept(ld, ','))
				continue;
			uint64_t v = integer(ld);

			if (dim && i < 3)
				dim[i] = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
			i++;
		}
	}
}

/*
 * Estimates how many registers a GPU's compiler would allocate for this number of virtual
 * registers. The estimate respects launch bounds as the compiler does: the required number of
 * blocks of max_threads threads fits in a register file of 65536 registers, of which a warp takes a
 * multiple of 256. Warps are allocated in groups of four.
 */
static uint32_t guess_registers(uint32_t virtual, uint32_t max_threads, const struct header *h)
{
	uint64_t regs = virtual / 2 + 8, most = 255;

	if (h->maxntid[0] || h->reqntid[0]) {
		uint64_t warps = (uint64_t)((max_threads + 127) / 128 * 4) *
			(h->minnctapersm[0] ? h->minnctapersm[0] : 1);
		uint64_t fit = 65536 / warps / 256 * 256 / 32;

		most = fit < 8 ? 8 : fit < most ? fit : most;
	}
	if (h->maxnreg[0] && h->maxnreg[0] < most)
		most = h->maxnreg[0];
	return (uint32_t)(regs < most ? regs : most);
}

static void layout_kernel(struct obd_loader *ld, struct obd_entry *e, struct obd_param_decl *params,
	uint32_t n, const struct header *h)
{
	struct obd_kernel *k = &e->pub;
	struct obd_param *out = obd_ptx_alloc(ld, (n + 1) * sizeof(*out));
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		at = (at + params[i].align - 1) & ~(uint64_t)(params[i].align - 1);
		params[i].offset = (uint32_t)at;
		out[i] = (struct obd_param){ (uint32_t)at, params[i].bytes };
		at += params[i].bytes;
		if (at > OBD_KERNEL_MAX_PARAM_BYTES)
			obd_ptx_fail(ld, "a kernel with more than %u bytes of parameters",
				OBD_KERNEL_MAX_PARAM_BYTES);
	}
	k->n_params = n;
	k->params = out;
	k->param_bytes = (uint32_t)at;
	uint64_t most = OBD_BLOCK_MAX_THREADS;
	const uint32_t *d = h->reqntid[0] ? h->reqntid : h->maxntid;

	if (d[0]) {
		uint64_t product = (uint64_t)d[0] * d[1];

		product = product > OBD_BLOCK_MAX_THREADS ? OBD_BLOCK_MAX_THREADS : product * d[2];
		if (product && product < most)
			most = product;
	}
	k->max_threads = (uint32_t)most;
	memcpy(k->reqntid, h->reqntid, sizeof(k->reqntid));
	k->ptx_version = ld->prog->ptx_version;
	k->target_arch = ld->prog->target_arch;
}

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
				obd_ptx_fail(ld,
					"functions with .reg parameters or results of 64 bits are "
					"not supported; use .param");
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

static void skip_section(struct obd_loader *ld)
{
	uint32_t depth = 0;

	next(ld); /* .section */
	while (tok(ld)->kind != OBD_TOK_END && !obd_tok_is(tok(ld), '{'))
		next(ld);
	for (; tok(ld)->kind != OBD_TOK_END; next(ld)) {
		if (obd_tok_is(tok(ld), '{'))
			depth++;
		if (obd_tok_is(tok(ld), '}') && --depth == 0) {
			next(ld);
			return;
		}
	}
}

static void parse_reg(struct obd_loader *ld)
{
	enum obd_type t = OBD_T_NONE;
	uint32_t lanes = 1;

	for (next(ld); tok(ld)->kind == OBD_TOK_DOT; next(ld)) {
		if (dot_is(ld, "v2") || dot_is(ld, "v4")) {
			lanes = 2;
			continue;
		}
		t = obd_type_named(tok(ld)->text, tok(ld)->size);
		if (!t)
			obd_ptx_fail(ld, "unknown register type .%.*s",
				(int)(tok(ld)->size < 40 ? tok(ld)->size : 40), tok(ld)->text);
	}
	if (!t)
		obd_ptx_fail(ld, "a register without a type");
	if (lanes > 1)
		obd_ptx_fail(ld, "vector registers are not supported; use { } of scalars");
	do {
		if (tok(ld)->kind != OBD_TOK_WORD)
			obd_ptx_fail(ld, "a register's name expected");
		const char *name = tok(ld)->text;
		uint32_t size = tok(ld)->size;
		uint64_t count = 0;

		next(ld);
		if (accept(ld, '<')) {
			count = integer(ld);
			expect(ld, '>');
			if (count > OBD_MAX_REGISTERS)
				obd_ptx_fail(ld, "more than %u registers in one function",
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
	} while (accept(ld, ','));
	expect(ld, ';');
}

static bool parse_directive(struct obd_loader *ld)
{
	if (dot_is(ld, "reg")) {
		parse_reg(ld);
	} else if (dot_is(ld, "loc")) {
		/*
		 * Ends at the end of the line. The next statement may follow its numbers without a
		 * separator.
		 */
		uint32_t line = tok(ld)->line;

		while (tok(ld)->kind != OBD_TOK_END && tok(ld)->line == line)
			next(ld);
	} else if (dot_is(ld, "pragma")) {
		while (tok(ld)->kind != OBD_TOK_END && !obd_tok_is(tok(ld), ';'))
			next(ld);
		expect(ld, ';');
	} else if (dot_is(ld, "file")) {
		uint32_t line = tok(ld)->line;

		while (tok(ld)->kind != OBD_TOK_END && tok(ld)->line == line)
			next(ld);
	} else if (dot_is(ld, "section")) {
		skip_section(ld);
	} else if (dot_is(ld, "param")) {
		struct obd_param_decl p;

		parse_param(ld, &p);
		expect(ld, ';');
		if (!p.name)
			obd_ptx_fail(ld, "a .param variable without a name");
		struct obd_symbol *s = obd_sym_add(ld, p.name, p.name_size, OBD_SYM_PARAM);

		s->type = p.type;
		s->bytes = p.bytes;
		s->count = p.words;
		s->vreg = obd_vreg_range(ld->b, OBD_CLASS_32, p.words);
		/* an array of small elements is written in pieces, so its words are initialised */
		if (p.is_array && obd_type_bytes(p.type) < 4)
			for (uint32_t i = 0; i < p.words; i++)
				obd_emit(ld->b, OBD_OP_mov_32, s->vreg + i,
					obd_const_new(ld->b, OBD_CLASS_32, 0, NULL), OBD_NONE,
					OBD_NONE);
	} else if (dot_is(ld, "local") || dot_is(ld, "shared") || dot_is(ld, "global") ||
		dot_is(ld, "const")) {
		struct obd_token t = *tok(ld);

		next(ld);
		obd_ptx_variable(ld, t.text, t.size, false, false);
	} else {
		return false;
	}
	return true;
}

static void parse_proto(struct obd_loader *ld, const struct obd_token *name)
{
	uint32_t n;
	struct obd_symbol *s = obd_sym_add(ld, name->text, name->size, OBD_SYM_PROTO);

	(void)s;
	next(ld); /* .callprototype */
	if (obd_tok_is(tok(ld), '('))
		parse_params(ld, &n);
	if (tok(ld)->kind == OBD_TOK_WORD)
		next(ld); /* _ */
	if (obd_tok_is(tok(ld), '('))
		parse_params(ld, &n);
	while (tok(ld)->kind == OBD_TOK_DOT)
		next(ld);
	expect(ld, ';');
}

static void parse_calltargets(struct obd_loader *ld, const struct obd_token *name)
{
	obd_sym_add(ld, name->text, name->size, OBD_SYM_PROTO);
	while (tok(ld)->kind != OBD_TOK_END && !obd_tok_is(tok(ld), ';'))
		next(ld);
	expect(ld, ';');
}

static void parse_labelled(struct obd_loader *ld, const struct obd_token *name)
{
	if (dot_is(ld, "callprototype")) {
		parse_proto(ld, name);
	} else if (dot_is(ld, "calltargets")) {
		parse_calltargets(ld, name);
	} else if (dot_is(ld, "branchtargets")) {
		next(ld);
		obd_ptx_branchtargets(ld, name);
	} else {
		obd_ptx_label_define(ld, name->text, name->size);
	}
}

static void parse_body(struct obd_loader *ld)
{
	uint32_t base = ld->scope;

	obd_sym_push(ld);
	for (;;) {
		struct obd_token *t = tok(ld);

		ld->b->line = t->line;
		if (t->kind == OBD_TOK_END)
			obd_ptx_fail(ld, "the text ends inside function %s", ld->b->func->name);
		if (accept(ld, '{')) {
			obd_sym_push(ld);
		} else if (accept(ld, '}')) {
			obd_sym_pop(ld);
			if (ld->scope == base)
				return;
		} else if (accept(ld, ';')) {
			continue;
		} else if (t->kind == OBD_TOK_DOT) {
			if (!parse_directive(ld))
				obd_ptx_fail(ld, "unknown directive .%.*s",
					(int)(t->size < 40 ? t->size : 40), t->text);
		} else if (t->kind == OBD_TOK_WORD) {
			struct obd_token name = *t;
			struct obd_lex save = ld->lex;

			next(ld);
			if (obd_tok_is(tok(ld), ':')) {
				next(ld);
				parse_labelled(ld, &name);
				continue;
			}
			ld->lex = save;
			obd_stmt_parse(ld);
		} else {
			obd_stmt_parse(ld);
		}
	}
}

static void check_redeclaration(struct obd_loader *ld, const struct obd_symbol *s,
	const struct obd_function_decl *d, uint32_t args, uint32_t rets)
{
	if (s->kind != OBD_SYM_FUNC)
		obd_ptx_fail(
			ld, "%.*s is no function", (int)(s->size < 60 ? s->size : 60), s->name);
	if (d->func->n_arg_words != args || d->func->n_ret_words != rets)
		obd_ptx_fail(
			ld, "function %s is declared with other parameters before", d->func->name);
}

static struct obd_function_decl *declare_function(struct obd_loader *ld,
	const struct obd_token *name, struct obd_param_decl *params, uint32_t n_params,
	struct obd_param_decl *rets, uint32_t n_rets, bool is_entry)
{
	struct obd_symbol *s = obd_sym_find(ld, name->text, name->size);
	uint32_t args = is_entry ? 0 : count_words(ld, params, n_params),
		 results = count_words(ld, rets, n_rets);
	struct obd_function_decl *d;

	if (s) {
		d = s->decl;
		check_redeclaration(ld, s, d, args, results);
	} else {
		s = obd_sym_add(ld, name->text, name->size, OBD_SYM_FUNC);
		d = s->decl = obd_ptx_scratch(ld, sizeof(*d));
		d->func = new_func(ld, name->text, name->size);
		s->index = d->func->index;
		for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
			if (strcmp(builtins[i].name, d->func->name) == 0)
				d->func->builtin = builtins[i].id;
	}
	d->func->is_entry = is_entry;
	d->func->n_arg_words = args;
	d->func->n_ret_words = results;
	d->params = params;
	d->n_params = n_params;
	d->rets = rets;
	d->n_rets = n_rets;
	return d;
}

static struct obd_entry *new_entry(struct obd_loader *ld, struct obd_func *f)
{
	struct obd_program *p = ld->prog;

	obd_ptx_grow(
		ld, &p->entries, &ld->cap_entries, p->n_entries, sizeof(*p->entries), 1u << 24);
	struct obd_entry *e = &p->entries[p->n_entries++];

	memset(e, 0, sizeof(*e));
	e->func = f;
	e->pub.name = f->name;
	return e;
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
	for (ld->lex = *start; depth; next(ld)) {
		if (tok(ld)->kind == OBD_TOK_END)
			obd_ptx_fail(ld, "the text ends inside function %s", f->name);
		if (obd_tok_is(tok(ld), '{'))
			depth++;
		else if (obd_tok_is(tok(ld), '}') && --depth == 0)
			break;
	}
	next(ld);
}

/* Called after .entry or .func. */
static void parse_function(struct obd_loader *ld, struct header *h)
{
	struct obd_param_decl *params = NULL, *rets = NULL;
	uint32_t n_params = 0, n_rets = 0;

	while (dot_is(ld, "attribute")) {
		next(ld);
		expect(ld, '(');
		while (tok(ld)->kind != OBD_TOK_END && !obd_tok_is(tok(ld), ')'))
			next(ld);
		expect(ld, ')');
	}
	if (!h->is_entry && obd_tok_is(tok(ld), '('))
		rets = parse_params(ld, &n_rets);
	struct obd_token name = *tok(ld);

	if (name.kind != OBD_TOK_WORD)
		obd_ptx_fail(ld, "a function's name expected");
	next(ld);
	if (obd_tok_is(tok(ld), '('))
		params = parse_params(ld, &n_params);
	parse_limits(ld, h);
	struct obd_function_decl *d =
		declare_function(ld, &name, params, n_params, rets, n_rets, h->is_entry);

	d->is_weak |= h->is_weak;
	d->func->noreturn |= h->noreturn;
	if (accept(ld, ';'))
		return;
	if (!obd_tok_is(tok(ld), '{'))
		obd_ptx_fail(ld, "a function's body or ';' expected");
	next(ld);
	const struct obd_lex start = ld->lex;
	const uint32_t scope = ld->scope;
	struct obd_builder *b = ld->builder;
	bool discard = d->func->defined;
	struct obd_func *target = d->func;

	if (discard && !d->is_weak)
		obd_ptx_fail(ld, "function %s is defined twice", d->func->name);
	/* the first of several weak definitions is used; the others are parsed but discarded */
	if (discard)
		*(target = obd_ptx_scratch(ld, sizeof(*target))) = *d->func;
	else
		d->func->builtin = OBD_BUILTIN_NONE;
	obd_build_init(b, ld, target);
	b->decl = d;
	b->is_entry = h->is_entry;
	ld->b = b; /* freed by loader_fini if the load ends early */
	if (h->is_entry && !discard) {
		struct obd_entry *e = new_entry(ld, d->func);

		layout_kernel(ld, e, params, n_params, h);
	}
	if (!body_try(ld, d, h->is_entry))
		body_skip(ld, scope, &start);
	if (h->is_entry && !discard) {
		struct obd_kernel *k = &ld->prog->entries[ld->prog->n_entries - 1].pub;

		k->registers = guess_registers(b->registers, k->max_threads, h);
		k->local_bytes = b->func->local_bytes;
	}
	ld->b = NULL;
	obd_build_fini(b);
}

/* ---- module ---- */

static void parse_version(struct obd_loader *ld)
{
	next(ld);
	double v = 0;

	if (tok(ld)->kind == OBD_TOK_F64)
		memcpy(&v, &tok(ld)->value, sizeof(v));
	if (!(v >= 1.0 && v < 100.0))
		obd_ptx_fail(ld, ".version needs a number such as 8.0");
	uint32_t version = (uint32_t)(v * 10 + 0.5);

	if (version > 99)
		obd_ptx_fail_with(ld, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
			"PTX version %u.%u is newer than this driver", version / 10, version % 10);
	if (version > ld->prog->ptx_version)
		ld->prog->ptx_version = version;
	next(ld);
}

static void parse_target(struct obd_loader *ld)
{
	next(ld);
	for (;; next(ld)) {
		struct obd_token *t = tok(ld);

		if (t->kind != OBD_TOK_WORD)
			obd_ptx_fail(ld, ".target needs a name such as sm_75");
		if (t->size > 3 && memcmp(t->text, "sm_", 3) == 0) {
			uint32_t arch = 0;

			for (uint32_t i = 3; i < t->size && t->text[i] >= '0' &&
				t->text[i] <= '9' && arch < 10000;
				i++)
				arch = arch * 10 + (uint32_t)(t->text[i] - '0');
			if (arch > ld->prog->env.compute_capability)
				obd_ptx_fail_with(ld, CUDA_ERROR_NO_BINARY_FOR_GPU,
					"the module is for sm_%u, the device is sm_%u", arch,
					ld->prog->env.compute_capability);
			if (arch > ld->prog->target_arch)
				ld->prog->target_arch = arch;
		}
		struct obd_lex save = ld->lex;

		next(ld);
		if (!obd_tok_is(tok(ld), ',')) {
			ld->lex = save;
			break;
		}
	}
	next(ld);
}

static void parse_alias(struct obd_loader *ld)
{
	next(ld);
	struct obd_token a = *tok(ld);

	next(ld);
	expect(ld, ',');
	struct obd_symbol *s = obd_sym_find(ld, a.text, a.size),
			  *t = obd_sym_find(ld, tok(ld)->text, tok(ld)->size);

	if (!s || !t || s->kind != OBD_SYM_FUNC || t->kind != OBD_SYM_FUNC)
		obd_ptx_fail(ld, ".alias needs two functions that are declared before");
	next(ld);
	expect(ld, ';');
	ld->prog->funcs[s->decl->func->index] = t->decl->func;
	s->decl = t->decl;
	s->index = t->decl->func->index;
}

static void parse_linked(struct obd_loader *ld)
{
	struct header h = { 0 };

	for (;; next(ld)) {
		if (dot_is(ld, "extern"))
			h.is_extern = true;
		else if (dot_is(ld, "weak") || dot_is(ld, "common"))
			h.is_weak = true;
		else if (!dot_is(ld, "visible"))
			break;
	}
	if (dot_is(ld, "entry") || dot_is(ld, "func")) {
		h.is_entry = dot_is(ld, "entry");
		next(ld);
		while (dot_is(ld, "noreturn")) {
			h.noreturn = true;
			next(ld);
		}
		parse_function(ld, &h);
		return;
	}
	if (!dot_is(ld, "global") && !dot_is(ld, "const") && !dot_is(ld, "shared") &&
		!dot_is(ld, "local"))
		obd_ptx_fail(ld, "unknown directive '%.*s'",
			(int)(tok(ld)->size < 40 ? tok(ld)->size : 40), tok(ld)->text);
	struct obd_token space = *tok(ld);

	next(ld);
	obd_ptx_variable(ld, space.text, space.size, h.is_extern, h.is_weak);
}

void obd_ptx_parse(struct obd_loader *ld)
{
	while (tok(ld)->kind != OBD_TOK_END) {
		if (accept(ld, ';'))
			continue;
		if (tok(ld)->kind != OBD_TOK_DOT)
			obd_ptx_fail(ld, "a directive expected before '%.*s'",
				(int)(tok(ld)->size < 40 ? tok(ld)->size : 40), tok(ld)->text);
		if (dot_is(ld, "version")) {
			parse_version(ld);
		} else if (dot_is(ld, "target")) {
			parse_target(ld);
		} else if (dot_is(ld, "address_size")) {
			next(ld);
			if (integer(ld) != 64)
				obd_ptx_fail(ld, "only 64-bit modules are supported");
		} else if (dot_is(ld, "file") || dot_is(ld, "loc")) {
			uint32_t line = tok(ld)->line;

			while (tok(ld)->kind != OBD_TOK_END && tok(ld)->line == line)
				next(ld);
		} else if (dot_is(ld, "pragma")) {
			while (tok(ld)->kind != OBD_TOK_END && !obd_tok_is(tok(ld), ';'))
				next(ld);
		} else if (dot_is(ld, "section")) {
			skip_section(ld);
		} else if (dot_is(ld, "alias")) {
			parse_alias(ld);
		} else {
			parse_linked(ld);
		}
	}
	if (!ld->prog->ptx_version)
		obd_ptx_fail(ld, "no .version directive");
}
