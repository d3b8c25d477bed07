/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/finish.h"

#include <string.h>

#include "softdevice/core/compile/regalloc.h"
#include "softdevice/core/compile/reloc.h"
#include "softdevice/core/compile/shorten.h"

static uint16_t slot_of(const struct obd_builder *b, uint32_t vreg, bool use, uint32_t half)
{
	if (vreg == OBD_NONE)
		return use ? 0 : OBD_NO_SLOT;
	return (uint16_t)(b->vregs[vreg].slot + (half ? 2 : 0));
}

static void *copy_to_program(struct obd_builder *b, const void *p, uint32_t n, size_t size)
{
	void *ret = obd_ptx_alloc(b->ld, n ? n * size : 1);

	if (n)
		memcpy(ret, p, n * size);
	return ret;
}

/* `i`: place of l in the code, for branches */
static void write_insn(
	struct obd_builder *b, const struct obd_lin *l, uint32_t i, struct obd_insn *out)
{
	out->op = l->op;
	out->d = slot_of(b, l->d, false, l->d_half);
	/*
	 * A handler with fewer operands may load the unused ones and ignore the values. They get
	 * slot 0, which always exists.
	 */
	bool wants_none = l->op == OBD_OP_sync || l->op == OBD_OP_gather || l->op == OBD_OP_bar ||
		l->op == OBD_OP_atom || l->op == OBD_OP_mbarrier;

	out->a = slot_of(b, l->a, !wants_none, l->a_half);
	out->b = slot_of(b, l->b, !wants_none, 0);
	out->c = slot_of(b, l->c, !wants_none, 0);
	out->e = l->e != OBD_NONE ? slot_of(b, l->e, true, 0) : l->e_raw;
	out->u.imm = l->imm;
	if (l->flags & OBD_BRANCH) {
		if (b->labels.at[l->imm] == OBD_NONE)
			obd_ptx_fail(b->ld, "branch to an undefined label in function %s, line %u",
				b->func->name, l->line);
		out->u.imm = b->labels.at[l->imm] - i;
	}
	if (l->op == OBD_OP_sync || l->op == OBD_OP_gather) {
		out->u.x.f = slot_of(b, l->f, false, 0);
		out->u.x.g = slot_of(b, l->g, false, 0);
	}
	/* the callee's index, or the form of a texture's instruction, is in d and a */
	if (l->op == OBD_OP_call || l->op == OBD_OP_texture) {
		out->d = (uint16_t)(l->g >> 16);
		out->a = (uint16_t)l->g;
	}
	/* ldmatrix: the address offset is in d; c says whether the address is shared */
	if (l->op == OBD_OP_ldmatrix || l->op == OBD_OP_mma || l->op == OBD_OP_wmma_move) {
		out->d = (uint16_t)l->g;
		out->c = (uint16_t)(l->g >> 16);
	}
	if (l->op == OBD_OP_wgmma)
		out->d = (uint16_t)l->g;
	if (l->op == OBD_OP_ld_strong || l->op == OBD_OP_st_strong)
		out->c = (uint16_t)l->g;
}

/* Follows the labels that stand for labels of an outer scope. */
static void resolve_aliases(struct obd_builder *b)
{
	uint32_t *at = b->labels.at;

	for (uint32_t i = 0; i < b->labels.n; i++)
		for (uint32_t hops = 0;
			at[i] != OBD_NONE && at[i] & OBD_LABEL_ALIAS && hops < OBD_MAX_SCOPES;
			hops++)
			at[i] = at[at[i] & ~OBD_LABEL_ALIAS];
}

static void assign_slots(struct obd_builder *b)
{
	struct obd_func *f = b->func;

	f->arg_slot = 2;
	f->ret_slot = 2 + f->n_arg_words;
	for (uint32_t i = 0; i < f->n_arg_words; i++)
		b->vregs[b->arg_vreg + i].slot = f->arg_slot + i;
	for (uint32_t i = 0; i < f->n_ret_words; i++)
		b->vregs[b->ret_vreg + i].slot = f->ret_slot + i;
	f->n_slots = obd_regalloc(b, f->ret_slot + f->n_ret_words);
	if (f->n_slots > OBD_MAX_SLOTS)
		obd_ptx_refuse(b->ld,
			"function %s needs %u register slots; the software device has %u", f->name,
			f->n_slots, OBD_MAX_SLOTS);
}

static uint32_t class_of(const struct obd_builder *b, uint32_t vreg)
{
	return vreg == OBD_NONE ? 0 : b->vregs[vreg].cls;
}

static uint32_t shape_of(const struct obd_builder *b, const struct obd_lin *l)
{
	return l->flags | class_of(b, l->a) << OBD_SHAPE_A | class_of(b, l->b) << OBD_SHAPE_B |
		class_of(b, l->c) << OBD_SHAPE_C | class_of(b, l->d) << OBD_SHAPE_D |
		class_of(b, l->e) << OBD_SHAPE_E |
		(l->flags & OBD_USE_F ? class_of(b, l->f) << OBD_SHAPE_F : 0) |
		(l->flags & OBD_DEF_G ? class_of(b, l->g) << OBD_SHAPE_G : 0);
}

static void write_code(struct obd_builder *b)
{
	struct obd_func *f = b->func;

	f->code = obd_ptx_alloc(b->ld, b->n_code * sizeof(*f->code));
	f->lines = obd_ptx_alloc(b->ld, b->n_code * sizeof(*f->lines));
	f->shapes = obd_ptx_alloc(b->ld, b->n_code * sizeof(*f->shapes));
	f->n_code = b->n_code;
	for (uint32_t i = 0; i < b->n_code; i++) {
		write_insn(b, &b->code[i], i, &f->code[i]);
		f->lines[i] = b->code[i].line;
		f->shapes[i] = shape_of(b, &b->code[i]);
	}
	f->prologue = obd_ptx_alloc(b->ld, (b->n_prologue + 1) * sizeof(*f->prologue));
	f->n_prologue = b->n_prologue;
	for (uint32_t i = 0; i < b->n_prologue; i++)
		write_insn(b, &b->prologue[i], i, &f->prologue[i]);
	f->prologue_shapes =
		obd_ptx_alloc(b->ld, (b->n_prologue + 1) * sizeof(*f->prologue_shapes));
	for (uint32_t i = 0; i < b->n_prologue; i++)
		f->prologue_shapes[i] = shape_of(b, &b->prologue[i]);
}

static void write_consts(struct obd_builder *b)
{
	struct obd_func *f = b->func;

	f->consts = obd_ptx_alloc(b->ld, (b->n_consts + 1) * sizeof(*f->consts));
	f->n_consts = b->n_consts;
	for (uint32_t i = 0; i < b->n_consts; i++) {
		const struct obd_const_ref *c = &b->consts[i];

		f->consts[i] = (struct obd_const){ b->vregs[c->vreg].slot, c->cls == OBD_CLASS_64,
			c->value };
		if (c->sym)
			obd_reloc_add(b->ld,
				(struct obd_reloc){ .sym = c->sym,
					.func = f,
					.const_index = i,
					.offset = (int64_t)c->value,
					.mask = ~0ull,
					.line = b->line });
	}
}

/* Branch tables: for each table its length, then the instructions' indices. */
static void write_tables(struct obd_builder *b)
{
	struct obd_func *f = b->func;

	f->tables = copy_to_program(b, b->tables, b->n_tables, sizeof(uint32_t));
	f->n_tables = b->n_tables;
	for (uint32_t i = 0; i < b->n_tables;) {
		uint32_t n = b->tables[i++];

		for (uint32_t k = 0; k < n; k++, i++) {
			f->tables[i] = b->labels.at[b->tables[i]];
			if (f->tables[i] == OBD_NONE)
				obd_ptx_fail(b->ld,
					"a .branchtargets table of function %s names an undefined "
					"label",
					f->name);
		}
	}
}

/* Operand lists of calls: the numbers of arguments and results, then their slots. */
static void write_calls(struct obd_builder *b)
{
	struct obd_func *f = b->func;

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
}

void obd_build_finish(struct obd_builder *b)
{
	struct obd_func *f = b->func;

	b->guard = OBD_NONE;
	b->round = OBD_RN;
	obd_emit_raw(b, OBD_OP_ret)->flags = OBD_STOP;
	resolve_aliases(b);
	obd_shorten(b);
	assign_slots(b);
	write_code(b);
	write_consts(b);
	write_tables(b);
	write_calls(b);
	f->callees = copy_to_program(b, b->callees, b->n_callees, sizeof(uint32_t));
	f->n_callees = b->n_callees;
	f->shared_refs = copy_to_program(b, b->shared_refs, b->n_shared_refs, sizeof(uint32_t));
	f->n_shared_refs = b->n_shared_refs;
	f->local_bytes = (b->local_bytes + 15) & ~15u;
	f->defined = true;
}
