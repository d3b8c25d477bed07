/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Builds one function: virtual registers, constants, operations, and the final code. */
#include <stdlib.h>
#include <string.h>

#include "softdevice/core/ptx/ptx.h"

void obd_ptx_grow(struct obd_loader *ld, void *array_pointer, uint32_t *cap, uint32_t n,
	size_t size, uint32_t most)
{
	void *p;

	memcpy(&p, array_pointer, sizeof(p));
	if (n < *cap)
		return;
	if (n >= most)
		obd_ptx_fail(ld, "the function is too large");
	uint32_t fresh = *cap ? *cap * 2 : 64;

	p = realloc(p, fresh * size);
	if (!p)
		obd_ptx_fail_with(ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
	memcpy(array_pointer, &p, sizeof(p));
	*cap = fresh;
}

void obd_build_init(struct obd_builder *b, struct obd_loader *ld, struct obd_func *f)
{
	memset(b, 0, sizeof(*b));
	b->ld = ld;
	b->func = f;
	b->guard = OBD_NONE;
	memset(b->const_bucket, 0xff, sizeof(b->const_bucket));
}

void obd_build_fini(struct obd_builder *b)
{
	free(b->code);
	free(b->vregs);
	free(b->consts);
	free(b->labels);
	free(b->tables);
	free(b->calls);
	free(b->callees);
	free(b->shared_refs);
}

uint32_t obd_vreg_range(struct obd_builder *b, enum obd_reg_class cls, uint32_t count)
{
	uint32_t first = b->n_vregs;

	if (count > OBD_MAX_REGISTERS - b->n_vregs)
		obd_ptx_fail(b->ld, "more than %u registers in one function", OBD_MAX_REGISTERS);
	while (b->n_vregs + count > b->cap_vregs) {
		uint32_t fresh = b->cap_vregs ? b->cap_vregs * 2 : 256;
		struct obd_vreg *p = realloc(b->vregs, fresh * sizeof(*p));

		if (!p)
			obd_ptx_fail_with(b->ld, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
		b->vregs = p;
		b->cap_vregs = fresh;
	}
	for (uint32_t i = 0; i < count; i++)
		b->vregs[first + i] =
			(struct obd_vreg){ .cls = (uint8_t)cls, .slot = OBD_NONE, .bits = 32 };
	b->n_vregs += count;
	return first;
}

uint32_t obd_vreg_new(struct obd_builder *b, enum obd_reg_class cls)
{
	return obd_vreg_range(b, cls, 1);
}

uint32_t obd_const_new(
	struct obd_builder *b, enum obd_reg_class cls, uint64_t value, struct obd_symbol *sym)
{
	if (cls != OBD_CLASS_64)
		value = (uint32_t)value;
	uint64_t h = (value ^ (value >> 29) ^ (uint64_t)(uintptr_t)sym ^ (uint64_t)cls) *
		0x9e3779b97f4a7c15ull;
	uint32_t *bucket = &b->const_bucket[(h >> 40) % OBD_CONST_BUCKETS];

	for (uint32_t i = *bucket; i != OBD_NONE; i = b->consts[i].next)
		if (b->consts[i].value == value && b->consts[i].sym == sym &&
			b->consts[i].cls == (uint32_t)cls)
			return b->consts[i].vreg;
	obd_ptx_grow(
		b->ld, &b->consts, &b->cap_consts, b->n_consts, sizeof(*b->consts), OBD_MAX_SLOTS);
	uint32_t v = obd_vreg_new(b, cls);

	b->vregs[v].is_const = 1;
	b->consts[b->n_consts] = (struct obd_const_ref){ value, sym, v, (uint32_t)cls, *bucket };
	*bucket = b->n_consts++;
	return v;
}

struct obd_lin *obd_emit_raw(struct obd_builder *b, uint32_t op)
{
	obd_ptx_grow(b->ld, &b->code, &b->cap_code, b->n_code, sizeof(*b->code), OBD_MAX_CODE);
	struct obd_lin *l = &b->code[b->n_code++];

	*l = (struct obd_lin){ .op = (uint16_t)op,
		.line = b->line,
		.d = OBD_NONE,
		.a = OBD_NONE,
		.b = OBD_NONE,
		.c = OBD_NONE,
		.e = OBD_NONE,
		.f = OBD_NONE,
		.g = OBD_NONE };
	return l;
}

struct obd_lin *obd_emit(
	struct obd_builder *b, uint32_t op, uint32_t d, uint32_t a, uint32_t bb, uint32_t c)
{
	uint16_t partial = 0;

	if (b->guard != OBD_NONE) {
		struct obd_lin *g = obd_emit_raw(b, OBD_OP_guard);

		g->a = b->guard;
		g->flags = OBD_USE_A;
		g->e_raw = b->guard_negated;
		/*
		 * Lanes that the guard excludes keep the old value of d. A temporary has no old
		 * value that is used later.
		 */
		partial = d != OBD_NONE && d < b->first_temp ? OBD_PARTIAL : 0;
	}
	if (b->round)
		obd_emit_raw(b, OBD_OP_round)->e_raw = (uint16_t)b->round;
	struct obd_lin *l = obd_emit_raw(b, op);

	l->d = d;
	l->a = a;
	l->b = bb;
	l->c = c;
	l->flags = (uint16_t)((d != OBD_NONE ? OBD_DEF_D : 0) | (a != OBD_NONE ? OBD_USE_A : 0) |
		(bb != OBD_NONE ? OBD_USE_B : 0) | (c != OBD_NONE ? OBD_USE_C : 0) | partial);
	return l;
}

uint32_t obd_label_new(struct obd_builder *b)
{
	obd_ptx_grow(
		b->ld, &b->labels, &b->cap_labels, b->n_labels, sizeof(*b->labels), OBD_MAX_CODE);
	b->labels[b->n_labels] = OBD_NONE;
	return b->n_labels++;
}

void obd_label_here(struct obd_builder *b, uint32_t label)
{
	b->labels[label] = b->n_code;
}

static void add_once(
	struct obd_builder *b, uint32_t **list, uint32_t *n, uint32_t *cap, uint32_t index)
{
	/* only the last 64 entries are checked: duplicates are harmless */
	for (uint32_t i = *n; i-- > 0 && *n - i < 64;)
		if ((*list)[i] == index)
			return;
	obd_ptx_grow(b->ld, list, cap, *n, sizeof(**list), OBD_MAX_CODE);
	(*list)[(*n)++] = index;
}

void obd_build_shared_ref(struct obd_builder *b, uint32_t index)
{
	add_once(b, &b->shared_refs, &b->n_shared_refs, &b->cap_shared_refs, index);
}

void obd_build_callee(struct obd_builder *b, uint32_t index)
{
	add_once(b, &b->callees, &b->n_callees, &b->cap_callees, index);
}

static uint16_t slot_of(const struct obd_builder *b, uint32_t vreg, bool use, uint32_t half)
{
	if (vreg == OBD_NONE)
		return use ? 0 : OBD_NO_SLOT;
	return (uint16_t)(b->vregs[vreg].slot + (half ? 2 : 0));
}

static void *keep(struct obd_builder *b, const void *p, uint32_t n, size_t size)
{
	void *ret = obd_ptx_alloc(b->ld, n ? n * size : 1);

	if (n)
		memcpy(ret, p, n * size);
	return ret;
}

static void write_insn(struct obd_builder *b, uint32_t i, struct obd_insn *out)
{
	const struct obd_lin *l = &b->code[i];

	out->op = l->op;
	out->d = slot_of(b, l->d, false, l->d_half);
	/*
	 * A handler with fewer operands may load the unused ones and ignore the values. They get
	 * slot 0, which always exists.
	 */
	bool wants_none = l->op == OBD_OP_sync || l->op == OBD_OP_bar || l->op == OBD_OP_atom ||
		l->op == OBD_OP_mbarrier;

	out->a = slot_of(b, l->a, !wants_none, l->a_half);
	out->b = slot_of(b, l->b, !wants_none, 0);
	out->c = slot_of(b, l->c, !wants_none, 0);
	out->e = l->e != OBD_NONE ? slot_of(b, l->e, true, 0) : l->e_raw;
	out->u.imm = l->imm;
	if (l->flags & OBD_BRANCH) {
		if (b->labels[l->imm] == OBD_NONE)
			obd_ptx_fail(b->ld,
				"a branch to a label that is not defined, in function %s, line %u",
				b->func->name, l->line);
		out->u.imm = b->labels[l->imm] - i;
	}
	if (l->op == OBD_OP_sync) {
		out->u.x.f = slot_of(b, l->f, false, 0);
		out->u.x.g = slot_of(b, l->g, false, 0);
	}
	if (l->op == OBD_OP_call) { /* the callee's index is in d and a */
		out->d = (uint16_t)(l->g >> 16);
		out->a = (uint16_t)l->g;
	}
	/* the address offset is in d; c says whether the address is shared */
	if (l->op == OBD_OP_ldmatrix) {
		out->d = (uint16_t)l->g;
		out->c = (uint16_t)(l->g >> 16);
	}
	if (l->op == OBD_OP_ld_strong || l->op == OBD_OP_st_strong)
		out->c = (uint16_t)l->g;
}

void obd_build_finish(struct obd_builder *b)
{
	struct obd_func *f = b->func;
	uint32_t n_args = f->n_arg_words, n_rets = f->n_ret_words;

	b->guard = OBD_NONE;
	b->round = OBD_RN;
	obd_emit_raw(b, OBD_OP_ret)->flags = OBD_STOP;
	for (uint32_t i = 0; i < b->n_labels; i++)
		for (uint32_t hops = 0; b->labels[i] != OBD_NONE &&
			b->labels[i] & OBD_LABEL_ALIAS && hops < OBD_MAX_SCOPES;
			hops++)
			b->labels[i] = b->labels[b->labels[i] & ~OBD_LABEL_ALIAS];
	f->arg_slot = 2;
	f->ret_slot = 2 + n_args;
	for (uint32_t i = 0; i < n_args; i++)
		b->vregs[b->arg_vreg + i].slot = f->arg_slot + i;
	for (uint32_t i = 0; i < n_rets; i++)
		b->vregs[b->ret_vreg + i].slot = f->ret_slot + i;
	f->n_slots = obd_regalloc(b, 2 + n_args + n_rets);
	if (f->n_slots > OBD_MAX_SLOTS)
		obd_ptx_refuse(b->ld,
			"function %s needs %u register slots, the software device has %u", f->name,
			f->n_slots, OBD_MAX_SLOTS);
	f->code = obd_ptx_alloc(b->ld, b->n_code * sizeof(*f->code));
	f->lines = obd_ptx_alloc(b->ld, b->n_code * sizeof(*f->lines));
	f->n_code = b->n_code;
	for (uint32_t i = 0; i < b->n_code; i++) {
		write_insn(b, i, &f->code[i]);
		f->lines[i] = b->code[i].line;
	}
	f->consts = obd_ptx_alloc(b->ld, (b->n_consts + 1) * sizeof(*f->consts));
	for (uint32_t i = 0; i < b->n_consts; i++) {
		f->consts[i] = (struct obd_const){ b->vregs[b->consts[i].vreg].slot,
			b->consts[i].cls == OBD_CLASS_64, b->consts[i].value };
		if (b->consts[i].sym) {
			struct obd_reloc *r = obd_ptx_scratch(b->ld, sizeof(*r));

			*r = (struct obd_reloc){ .next = b->ld->relocs,
				.sym = b->consts[i].sym,
				.func = f,
				.const_index = i,
				.offset = (int64_t)b->consts[i].value,
				.mask = ~0ull,
				.line = b->line };
			b->ld->relocs = r;
		}
	}
	f->n_consts = b->n_consts;
	f->tables = keep(b, b->tables, b->n_tables, sizeof(uint32_t));
	f->n_tables = b->n_tables;
	for (uint32_t i = 0; i < b->n_tables;) {
		uint32_t n = b->tables[i++];

		for (uint32_t k = 0; k < n; k++, i++) {
			if (b->labels[b->tables[i]] == OBD_NONE)
				obd_ptx_fail(b->ld,
					"a branch table names a label that is not defined, in "
					"function %s",
					f->name);
			f->tables[i] = b->labels[b->tables[i]];
		}
	}
	f->call_ops = obd_ptx_alloc(b->ld, (b->n_calls + 1) * sizeof(uint16_t));
	f->n_call_ops = b->n_calls;
	for (uint32_t i = 0; i < b->n_calls;) {
		uint32_t n = b->calls[i] + b->calls[i + 1];

		f->call_ops[i] = (uint16_t)b->calls[i];
		f->call_ops[i + 1] = (uint16_t)b->calls[i + 1];
		for (uint32_t k = 0; k < n; k++)
			f->call_ops[i + 2 + k] = (uint16_t)b->vregs[b->calls[i + 2 + k]].slot;
		i += 2 + n;
	}
	f->callees = keep(b, b->callees, b->n_callees, sizeof(uint32_t));
	f->n_callees = b->n_callees;
	f->shared_refs = keep(b, b->shared_refs, b->n_shared_refs, sizeof(uint32_t));
	f->n_shared_refs = b->n_shared_refs;
	f->local_bytes = (b->local_bytes + 15) & ~15u;
	f->defined = true;
}
