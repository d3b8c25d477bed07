/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/function.h"

#include <string.h>

#include "softdevice/core/compile/body.h"
#include "softdevice/core/compile/device_rt.h"
#include "softdevice/core/ptx/token.h"

static const struct {
	const char *name;
	enum obd_builtin id;
} builtins[] = {
	{ "vprintf", OBD_BUILTIN_VPRINTF },
	{ "malloc", OBD_BUILTIN_MALLOC },
	{ "free", OBD_BUILTIN_FREE },
	{ "__assertfail", OBD_BUILTIN_ASSERTFAIL },
	{ "cudaGraphSetConditional", OBD_BUILTIN_CONDITION },
};

static struct obd_func *new_func(struct obd_loader *ld, const char *name, uint32_t size)
{
	struct obd_program *p = ld->prog;
	struct obd_func *f = obd_ptx_alloc(ld, sizeof(*f));

	obd_ptx_grow(ld, &p->funcs, &ld->cap_funcs, p->n_funcs, sizeof(*p->funcs), 1u << 24);
	f->name = obd_arena_copy(ld->arena, name, size);
	if (!f->name)
		obd_ptx_fail_with(
			ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory while the module is compiled");
	f->index = p->n_funcs;
	p->funcs[p->n_funcs++] = f;
	return f;
}

static void parse_limits(struct obd_loader *ld, struct obd_function_head *h)
{
	while (obd_tok(ld)->kind == OBD_TOK_DOT) {
		uint32_t *dim = obd_tok_dot_is(ld, "maxntid")     ? h->maxntid
			: obd_tok_dot_is(ld, "reqntid")           ? h->reqntid
			: obd_tok_dot_is(ld, "maxnreg")           ? h->maxnreg
			: obd_tok_dot_is(ld, "minnctapersm")      ? h->minnctapersm
			: obd_tok_dot_is(ld, "reqnctapercluster") ? h->reqnctapercluster
								  : NULL;
		bool flag = obd_tok_dot_is(ld, "noreturn") ||
			obd_tok_dot_is(ld, "explicitcluster") ||
			obd_tok_dot_is(ld, "blocksareclusters");

		if (obd_tok_dot_is(ld, "noreturn"))
			h->noreturn = true;
		h->explicit_cluster |=
			obd_tok_dot_is(ld, "explicitcluster") || dim == h->reqnctapercluster;
		if (obd_tok_dot_is(ld, "pragma")) {
			obd_tok_next(ld);
			while (obd_tok(ld)->kind == OBD_TOK_STRING || obd_tok_is(obd_tok(ld), ','))
				obd_tok_next(ld);
			obd_tok_accept(ld, ';');
			continue;
		}
		obd_tok_next(ld);
		if (flag)
			continue;
		if (dim)
			dim[1] = dim[2] = 1;
		for (uint32_t i = 0;
			obd_tok(ld)->kind == OBD_TOK_INT || obd_tok_is(obd_tok(ld), ',');) {
			if (obd_tok_accept(ld, ','))
				continue;
			uint64_t v = obd_tok_integer(ld);

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
 * multiple of 256. Warps are allocated in groups of four. Without bounds a block of max_threads
 * fits too, because it runs here, and programs compute grids from what the occupancy calls say.
 */
static uint32_t estimate_registers(
	uint32_t virtual, uint32_t max_threads, const struct obd_function_head *h)
{
	bool bound = h->maxntid[0] || h->reqntid[0];
	uint64_t regs = virtual / 2 + 8, most = 255;
	uint64_t warps = (uint64_t)((max_threads + 127) / 128 * 4) *
		(bound && h->minnctapersm[0] ? h->minnctapersm[0] : 1);
	uint64_t fit = 65536 / warps / 256 * 256 / 32;

	most = fit < 8 ? 8 : fit < most ? fit : most;
	if (h->maxnreg[0] && h->maxnreg[0] < most)
		most = h->maxnreg[0];
	return (uint32_t)(regs < most ? regs : most);
}

static void layout_kernel(struct obd_loader *ld, struct obd_entry *e, struct obd_param_decl *params,
	uint32_t n, const struct obd_function_head *h)
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
			obd_ptx_fail(ld, "the parameters of a kernel take more than %u bytes",
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
	memcpy(k->cluster, h->reqnctapercluster, sizeof(k->cluster));
	k->explicit_cluster = h->explicit_cluster;
	k->ptx_version = ld->prog->ptx_version;
	k->target_arch = ld->prog->target_arch;
}

static void check_redeclaration(struct obd_loader *ld, const struct obd_symbol *s,
	const struct obd_function_decl *d, uint32_t args, uint32_t rets)
{
	if (s->kind != OBD_SYM_FUNC)
		obd_ptx_fail(ld, "%.*s is already declared, and is not a function",
			OBD_TEXT_ARG(s->name, s->size));
	if (d->func->n_arg_words != args || d->func->n_ret_words != rets)
		obd_ptx_fail(ld, "function %s was declared with other parameters", d->func->name);
}

static struct obd_function_decl *declare_function(struct obd_loader *ld,
	const struct obd_token *name, struct obd_param_decl *params, uint32_t n_params,
	struct obd_param_decl *rets, uint32_t n_rets, bool is_entry)
{
	struct obd_symbol *s = obd_sym_find(ld, name->text, name->size);
	uint32_t args = is_entry ? 0 : obd_decl_words(ld, params, n_params),
		 results = obd_decl_words(ld, rets, n_rets);
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
		if (!d->func->builtin) {
			d->func->builtin = obd_device_rt_find(d->func->name);
			ld->prog->launches |= d->func->builtin != OBD_BUILTIN_NONE;
		}
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

static void skip_attributes(struct obd_loader *ld)
{
	while (obd_tok_dot_is(ld, "attribute")) {
		obd_tok_next(ld);
		obd_tok_expect(ld, '(');
		while (obd_tok(ld)->kind != OBD_TOK_END && !obd_tok_is(obd_tok(ld), ')'))
			obd_tok_next(ld);
		obd_tok_expect(ld, ')');
	}
}

/* Compiles the body, from the token after its '{' on. */
static void define(
	struct obd_loader *ld, struct obd_function_decl *d, const struct obd_function_head *h)
{
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
	ld->b = b; /* freed at the end of the load if it ends early */
	ld->labels = &b->labels;
	if (h->is_entry && !discard) {
		struct obd_entry *e = new_entry(ld, d->func);

		layout_kernel(ld, e, d->params, d->n_params, h);
	}
	obd_body_parse(ld, d, h->is_entry);
	if (h->is_entry && !discard) {
		struct obd_kernel *k = &ld->prog->entries[ld->prog->n_entries - 1].pub;

		k->registers = estimate_registers(b->registers, k->max_threads, h);
		k->local_bytes = b->func->local_bytes;
	}
	ld->b = NULL;
	ld->labels = NULL;
	obd_build_fini(b);
}

void obd_function_parse(struct obd_loader *ld, struct obd_function_head *h)
{
	struct obd_param_decl *params = NULL, *rets = NULL;
	uint32_t n_params = 0, n_rets = 0;

	skip_attributes(ld);
	if (!h->is_entry && obd_tok_is(obd_tok(ld), '('))
		rets = obd_decl_params(ld, &n_rets);
	struct obd_token name = *obd_tok(ld);

	if (name.kind != OBD_TOK_WORD)
		obd_tok_unexpected(ld, "a function name");
	obd_tok_next(ld);
	if (obd_tok_is(obd_tok(ld), '('))
		params = obd_decl_params(ld, &n_params);
	parse_limits(ld, h);
	struct obd_function_decl *d =
		declare_function(ld, &name, params, n_params, rets, n_rets, h->is_entry);

	d->is_weak |= h->is_weak;
	d->func->noreturn |= h->noreturn;
	if (obd_tok_accept(ld, ';'))
		return;
	if (!obd_tok_is(obd_tok(ld), '{'))
		obd_tok_unexpected(ld, "a function body or ';'");
	obd_tok_next(ld);
	define(ld, d, h);
}
