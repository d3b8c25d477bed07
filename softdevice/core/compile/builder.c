/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/builder.h"

#include <stdlib.h>
#include <string.h>

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
	free(b->prologue);
	free(b->vregs);
	free(b->consts);
	free(b->labels.at);
	free(b->tables);
	free(b->calls);
	free(b->callees);
	free(b->shared_refs);
	obd_build_work_free(b);
}

void *obd_build_work(struct obd_builder *b, size_t n, size_t size)
{
	void *p = calloc(n, size);

	b->work[b->n_work++] = p;
	return p;
}

void obd_build_work_free(struct obd_builder *b)
{
	while (b->n_work)
		free(b->work[--b->n_work]);
}

uint32_t obd_vreg_range(struct obd_builder *b, enum obd_reg_class cls, uint32_t count)
{
	uint32_t first = b->n_vregs;

	if (count > OBD_MAX_REGISTERS - b->n_vregs)
		obd_ptx_fail(
			b->ld, "a function declares more than %u registers", OBD_MAX_REGISTERS);
	while (b->n_vregs + count > b->cap_vregs) {
		uint32_t fresh = b->cap_vregs ? b->cap_vregs * 2 : 256;
		struct obd_vreg *p = realloc(b->vregs, fresh * sizeof(*p));

		if (!p)
			obd_ptx_fail_with(b->ld, CUDA_ERROR_OUT_OF_MEMORY,
				"out of memory while the module is compiled");
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

	b->vregs[v].is_const = OBD_CONSTANT;
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
	return obd_label_add(b->ld);
}

void obd_label_here(struct obd_builder *b, uint32_t label)
{
	b->labels.at[label] = b->n_code;
}

void obd_build_branch(struct obd_builder *b, uint32_t label, uint32_t pred, bool negated)
{
	struct obd_lin *l = obd_emit_raw(b, pred == OBD_NONE ? OBD_OP_bra : OBD_OP_bra_p);

	l->imm = label;
	l->a = pred;
	l->e_raw = negated;
	l->flags = (uint16_t)(OBD_BRANCH | (pred == OBD_NONE ? OBD_STOP : OBD_USE_A));
}

uint32_t obd_build_skip_begin(struct obd_builder *b)
{
	uint32_t guard = b->guard, label;

	if (guard == OBD_NONE)
		return OBD_NONE;
	label = obd_label_new(b);
	b->guard = OBD_NONE;
	obd_build_branch(b, label, guard, !b->guard_negated);
	return label;
}

void obd_build_skip_end(struct obd_builder *b, uint32_t label)
{
	if (label != OBD_NONE)
		obd_label_here(b, label);
}

void obd_build_list(struct obd_builder *b, uint32_t v)
{
	obd_ptx_grow(b->ld, &b->calls, &b->cap_calls, b->n_calls, sizeof(*b->calls), OBD_MAX_CODE);
	b->calls[b->n_calls++] = v;
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
