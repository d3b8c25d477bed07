/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Loads a module: parses it, resolves addresses, lays out shared memory and stacks for each kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/compile/builder.h"
#include "softdevice/core/compile/cooperative.h"
#include "softdevice/core/compile/device_rt.h"
#include "softdevice/core/compile/module.h"
#include "softdevice/core/compile/reloc.h"
#include "softdevice/core/engine/native.h"
#include "softdevice/core/texture.h"

/* total of all kernels, over the functions that they reach */
#define MAX_SHARED_REFS (1u << 22)

/* ---- functions that a kernel reaches ---- */

struct reach {
	struct obd_program *p;
	uint8_t *seen;
	uint8_t *removed; /* used by has_cycle */
	uint32_t *order;  /* functions reached, without duplicates */
	uint32_t n;
	bool indirect;
};

static void reach_add(struct reach *r, uint32_t index)
{
	if (r->seen[index])
		return;
	r->seen[index] = 1;
	r->order[r->n++] = index;
}

static void reach_from(struct reach *r, const struct obd_func *f)
{
	for (uint32_t i = 0; i < r->n; i++)
		r->seen[r->order[i]] = 0;
	r->n = 0;
	r->indirect = false;
	reach_add(r, f->index);
	for (uint32_t next = 0; next < r->n; next++) {
		const struct obd_func *g = r->p->funcs[r->order[next]];

		for (uint32_t i = 0; i < g->n_callees; i++)
			reach_add(r, g->callees[i]);
		if (g->calls_indirect && !r->indirect) {
			r->indirect = true;
			for (uint32_t i = 0; i < r->p->n_funcs; i++)
				if (r->p->funcs[i]->address_taken)
					reach_add(r, i);
		}
	}
}

static int by_variable(const void *a, const void *b)
{
	const struct obd_shared_at *x = a, *y = b;

	return x->var < y->var ? -1 : x->var > y->var;
}

/*
 * Collects the shared variables that the kernel's functions refer to, without duplicates and sorted
 * by index. There is no table over all variables of the program: its size would be kernels times
 * variables, quadratic in the size of the text.
 */
static void shared_collect(struct obd_loader *ld, struct obd_entry *e, const struct reach *r)
{
	struct obd_program *p = ld->prog;
	uint32_t kept = 0;
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n; i++)
		n += p->funcs[r->order[i]]->n_shared_refs;
	/*
	 * Kernels that share functions refer to the same variables, so this sum is not bounded by
	 * the size of the text.
	 */
	if (n > ld->shared_refs_left)
		obd_ptx_fail(ld,
			"the kernels of the module refer to shared variables more than %u times in "
			"total",
			MAX_SHARED_REFS);
	ld->shared_refs_left -= (uint32_t)n;
	e->shared = n ? obd_ptx_alloc(ld, n * sizeof(*e->shared)) : NULL;
	n = 0;
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t k = 0; k < p->funcs[r->order[i]]->n_shared_refs; k++)
			e->shared[n++].var = p->funcs[r->order[i]]->shared_refs[k];
	if (n)
		qsort(e->shared, n, sizeof(*e->shared), by_variable);
	for (uint64_t i = 0; i < n; i++)
		if (kept == 0 || e->shared[kept - 1].var != e->shared[i].var)
			e->shared[kept++] = e->shared[i];
	e->n_shared = kept;
}

static void layout_shared(struct obd_loader *ld, struct obd_entry *e, const struct reach *r)
{
	struct obd_program *p = ld->prog;
	uint64_t at = 0;
	uint32_t dynamic_align = 1;
	bool any_dynamic = false;

	shared_collect(ld, e, r);
	for (uint32_t i = 0; i < e->n_shared; i++) {
		const struct obd_shared_var *v = &p->shared[e->shared[i].var];

		if (v->dynamic) {
			any_dynamic = true;
			if (v->align > dynamic_align)
				dynamic_align = v->align;
			continue;
		}
		at = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
		e->shared[i].offset = (uint32_t)at;
		at += v->size;
		if (at > OBD_BLOCK_MAX_SHARED)
			obd_ptx_fail(ld, "kernel %s has more than %u bytes of static shared memory",
				e->pub.name, OBD_BLOCK_MAX_SHARED);
	}
	/* all dynamic variables have the same offset, after the static ones */
	if (any_dynamic)
		at = (at + dynamic_align - 1) & ~(uint64_t)(dynamic_align - 1);
	for (uint32_t i = 0; i < e->n_shared; i++)
		if (p->shared[e->shared[i].var].dynamic)
			e->shared[i].offset = (uint32_t)at;
	e->pub.static_shared = (uint32_t)at;
}

/*
 * The number of bytes of stack that each function needs, over its deepest chain of calls. The
 * computation is iterative, so that deep call graphs do not overflow the stack of the loader. It
 * does not converge with recursion or indirect calls; kernels that use them get additional stack of
 * a fixed size.
 */
static uint32_t *stack_depths(struct obd_loader *ld)
{
	struct obd_program *p = ld->prog;
	uint32_t *depth = obd_ptx_scratch(ld, (p->n_funcs + 1) * sizeof(uint32_t));
	bool changed = true;

	for (uint32_t i = 0; i < p->n_funcs; i++)
		depth[i] = p->funcs[i]->local_bytes;
	for (uint32_t pass = 0; changed && pass < 64; pass++) {
		changed = false;
		for (uint32_t i = p->n_funcs; i-- > 0;) {
			const struct obd_func *f = p->funcs[i];
			uint64_t most = f->local_bytes;

			for (uint32_t k = 0; k < f->n_callees; k++) {
				uint64_t d = (uint64_t)f->local_bytes + depth[f->callees[k]];

				most = d > most ? d : most;
			}
			if (most > OBD_MAX_LOCAL_BYTES)
				most = OBD_MAX_LOCAL_BYTES;
			changed |= most != depth[i];
			depth[i] = (uint32_t)most;
		}
	}
	return depth;
}

/*
 * Is there a cycle among the reached functions? Functions without callees are removed repeatedly,
 * until none is left or every one has a callee.
 */
static bool has_cycle(const struct reach *r)
{
	const struct obd_program *p = r->p;
	uint8_t *removed = r->removed;

	for (uint32_t k = 0; k < r->n; k++)
		removed[r->order[k]] = 0;
	for (uint32_t pass = 0; pass < 64; pass++) {
		bool changed = false, left = false;

		for (uint32_t n = r->n; n-- > 0;) {
			uint32_t i = r->order[n];
			bool waits = false;

			if (removed[i])
				continue;
			for (uint32_t k = 0; k < p->funcs[i]->n_callees; k++)
				waits |= !removed[p->funcs[i]->callees[k]];
			removed[i] = !waits;
			changed |= !waits;
			left |= waits;
		}
		if (!left)
			return false;
		if (!changed)
			return true;
	}
	return true; /* a very long chain is treated as a cycle: it only gets a larger stack */
}

static void layout_kernels(struct obd_loader *ld)
{
	struct obd_program *p = ld->prog;
	struct reach r = { .p = p };
	uint32_t *depth = stack_depths(ld);

	ld->shared_refs_left = MAX_SHARED_REFS;
	r.seen = obd_ptx_scratch(ld, p->n_funcs + 1);
	r.removed = obd_ptx_scratch(ld, p->n_funcs + 1);
	r.order = obd_ptx_scratch(ld, (p->n_funcs + 1) * sizeof(uint32_t));
	for (uint32_t i = 0; i < p->n_entries; i++) {
		struct obd_entry *e = &p->entries[i];
		bool more;

		reach_from(&r, e->func);
		for (uint32_t k = 0; k < r.n && !e->pub.refused; k++)
			e->pub.refused = p->funcs[r.order[k]]->refused;
		layout_shared(ld, e, &r);
		more = r.indirect;
		for (uint32_t k = 0; k < r.n; k++)
			more |= p->funcs[r.order[k]]->uses_alloca;
		if (e->func->n_callees && !more)
			more = has_cycle(&r);
		e->stack_bytes =
			(depth[e->func->index] + (more ? OBD_STACK_BYTES : 0) + 255) & ~255u;
		e->pub.local_bytes = depth[e->func->index];
		e->pub.const_bytes = p->const_bytes;
	}
}

/* Marks undefined functions as refused. A kernel that reaches one cannot run; the others can. */
static void resolve_builtins(struct obd_loader *ld)
{
	struct obd_program *p = ld->prog;

	for (uint32_t i = 0; i < p->n_funcs; i++) {
		struct obd_func *f = p->funcs[i];
		size_t size = strlen(f->name) + 80;
		char *why;

		if (f->defined || f->builtin)
			continue;
		f->builtin = OBD_BUILTIN_UNRESOLVED;
		why = obd_ptx_alloc(ld, size);
		snprintf(why, size,
			obd_device_rt_is_graph(f->name)
				? "it calls %s: graphs cannot be launched or changed by device code"
				: "it calls the undefined function %s",
			f->name);
		f->refused = why;
	}
}

/* ---- load and free ---- */

static void loader_fini(struct obd_loader *ld)
{
	if (ld->b)
		obd_build_fini(ld->b);
	free(ld->builder);
	obd_arena_free(ld->scratch);
}

CUresult obd_program_load(const char *text, size_t size, const struct obd_env *env,
	struct obd_program **ret, char *log, size_t log_size)
{
	struct obd_program *p = calloc(1, sizeof(*p));
	struct obd_loader *ld = calloc(1, sizeof(*ld));
	CUresult result;

	if (log && log_size)
		log[0] = 0;
	if (p)
		p->arena = obd_arena_new();
	if (ld) {
		ld->scratch = obd_arena_new();
		ld->builder = calloc(1, sizeof(*ld->builder));
	}
	if (!p || !ld || !p->arena || !ld->scratch || !ld->builder) {
		if (ld)
			loader_fini(ld);
		free(ld);
		obd_program_free(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p->env = *env;
	ld->prog = p;
	ld->arena = p->arena;
	ld->log = log;
	ld->log_size = log_size;
	if (setjmp(ld->fail) == 0) {
		if (size > OBD_PTX_MAX_TEXT)
			obd_ptx_fail(ld, "the PTX text is longer than %u bytes", OBD_PTX_MAX_TEXT);
		obd_lex_init(&ld->lex, text, size);
		obd_module_parse(ld);
		obd_cooperative_define(ld);
		resolve_builtins(ld);
		obd_reloc_apply(ld);
		layout_kernels(ld);
	}
	result = ld->result;
	loader_fini(ld);
	free(ld);
	if (result) {
		obd_program_free(p);
		return result;
	}
	*ret = p;
	return CUDA_SUCCESS;
}

void obd_program_free(struct obd_program *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->n_globals; i++)
		p->env.free(p->env.user, p->globals[i].addr);
	for (uint32_t i = 0; i < p->n_refs && p->env.textures; i++)
		obd_textures_end(p->env.textures, p->refs[i].handle);
	for (uint32_t i = 0; i < p->n_funcs; i++)
		obd_native_free(p->funcs[i]);
	free(p->refs);
	free(p->globals);
	free(p->entries);
	free(p->funcs);
	free(p->shared);
	obd_arena_free(p->arena);
	free(p);
}

size_t obd_program_kernel_count(const struct obd_program *p)
{
	return p->n_entries;
}

const struct obd_kernel *obd_program_kernel_at(const struct obd_program *p, size_t i)
{
	return i < p->n_entries ? &p->entries[i].pub : NULL;
}

const struct obd_kernel *obd_program_kernel(const struct obd_program *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_entries; i++)
		if (strcmp(p->entries[i].pub.name, name) == 0)
			return &p->entries[i].pub;
	return NULL;
}

size_t obd_program_global_count(const struct obd_program *p)
{
	return p->n_globals;
}

const struct obd_global *obd_program_global_at(const struct obd_program *p, size_t i)
{
	return i < p->n_globals ? &p->globals[i] : NULL;
}

const struct obd_global *obd_program_global(const struct obd_program *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_globals; i++)
		if (strcmp(p->globals[i].name, name) == 0)
			return &p->globals[i];
	return NULL;
}

uint64_t obd_program_ref(const struct obd_program *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_refs; i++)
		if (strcmp(p->refs[i].name, name) == 0)
			return p->refs[i].handle;
	return 0;
}
