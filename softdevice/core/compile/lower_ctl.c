/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Branches, calls, exit, and the stack. */
#include "softdevice/core/compile/lower.h"

#define N OBD_NONE

static void lower_bra(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t guard = b->guard;

	(void)arg;
	obd_operand_count(b, s, 1, 1);
	if (s->opd[0].kind != OBD_OPD_SYMBOL || s->opd[0].sym->kind != OBD_SYM_LABEL)
		obd_invalid(b, s, "the operand must be a label");
	b->guard = N;
	obd_build_branch(b, s->opd[0].sym->index, guard, b->guard_negated);
}

static void lower_brx(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b), index;

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	index = obd_src(b, s, 0, OBD_T_U32);
	if (s->opd[1].kind != OBD_OPD_SYMBOL || s->opd[1].sym->kind != OBD_SYM_TARGETS)
		obd_invalid(b, s, "the second operand must be a .branchtargets table");
	struct obd_lin *l = obd_emit_raw(b, OBD_OP_brx);

	l->a = index;
	l->imm = s->opd[1].sym->index;
	l->flags = OBD_USE_A | OBD_TABLE | OBD_STOP;
	obd_build_skip_end(b, label);
}

/* ---- calls ---- */

static uint32_t push_words(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_operand *o, bool is_result)
{
	uint32_t v, w;

	if (o->kind == OBD_OPD_SYMBOL && o->sym->kind == OBD_SYM_PARAM) {
		for (uint32_t i = 0; i < o->sym->count; i++)
			obd_build_list(b, o->sym->vreg + i);
		return o->sym->count;
	}
	if (is_result) {
		if (o->kind == OBD_OPD_SINK) {
			obd_build_list(b, obd_temp(b, OBD_T_U32));
			return 1;
		}
		if (o->kind != OBD_OPD_REG || obd_type_class(o->type) != OBD_CLASS_32)
			obd_invalid(b, s,
				"the result of a call must be a .param variable or a 32-bit "
				"register");
		obd_build_list(b, o->vreg);
		return 1;
	}
	if (o->kind == OBD_OPD_REG && obd_type_class(o->type) == OBD_CLASS_64) {
		v = obd_temp(b, OBD_T_U32);
		w = obd_temp(b, OBD_T_U32);
		obd_emit(b, OBD_OP_lo_64, v, o->vreg, N, N);
		obd_emit(b, OBD_OP_hi_64, w, o->vreg, N, N);
		obd_build_list(b, v);
		obd_build_list(b, w);
		return 2;
	}
	obd_build_list(b, obd_src_of(b, o, OBD_T_U32));
	return 1;
}

static void lower_call(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b), at = 0, list, n = 0, target = N;
	const struct obd_operand *rets = NULL, *args = NULL, *f;

	(void)arg;
	if (s->n_opd && s->opd[0].kind == OBD_OPD_LIST)
		rets = &s->opd[at++];
	if (at >= s->n_opd)
		obd_invalid(b, s, "missing function operand");
	f = &s->opd[at++];
	if (at < s->n_opd && s->opd[at].kind == OBD_OPD_LIST)
		args = &s->opd[at++];
	if (f->kind != OBD_OPD_REG && (f->kind != OBD_OPD_SYMBOL || f->sym->kind != OBD_SYM_FUNC))
		obd_invalid(b, s,
			"the callee must be a function, or a register with the address of one");
	if (f->kind == OBD_OPD_REG)
		target = obd_src_of(b, f, OBD_T_U64);
	list = b->n_calls;
	obd_build_list(b, 0);
	obd_build_list(b, 0);
	for (uint32_t i = 0; args && i < args->n_items; i++)
		n += push_words(b, s, &args->items[i], false);
	if (n > OBD_MAX_WORDS)
		obd_invalid(b, s, "too many arguments");
	b->calls[list] = n;
	n = 0;
	for (uint32_t i = 0; rets && i < rets->n_items; i++)
		n += push_words(b, s, &rets->items[i], true);
	if (n > OBD_MAX_WORDS)
		obd_invalid(b, s, "too many results");
	b->calls[list + 1] = n;
	if (f->kind == OBD_OPD_SYMBOL) {
		const struct obd_func *fn = b->ld->prog->funcs[f->sym->index];

		if (b->calls[list] != fn->n_arg_words || n > fn->n_ret_words)
			obd_invalid(b, s,
				"the arguments or results do not match the declaration of the "
				"function");
	}
	struct obd_lin *l = obd_emit_raw(b, target == N ? OBD_OP_call : OBD_OP_call_ind);

	l->imm = list;
	l->flags = OBD_CALL;
	if (target == N) {
		l->g = f->sym->index;
		obd_build_callee(b, f->sym->index);
	} else {
		l->a = target;
		l->flags |= OBD_USE_A;
		b->func->calls_indirect = true;
	}
	obd_build_skip_end(b, label);
}

/* arg: operation */
static void lower_end(struct obd_builder *b, struct obd_stmt *s, uint32_t op)
{
	uint32_t label;

	obd_operand_count(b, s, 0, 0);
	if (op == OBD_OP_trap) {
		obd_emit(b, op, N, N, N, N)->e_raw = s->op[0] == 'b';
		return;
	}
	label = obd_build_skip_begin(b);
	obd_emit_raw(b, op)->flags = OBD_STOP;
	obd_build_skip_end(b, label);
}

static void lower_nanosleep(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t label = obd_build_skip_begin(b);

	(void)arg;
	obd_operand_count(b, s, 1, 1);
	obd_emit_raw(b, OBD_OP_nanosleep);
	obd_build_skip_end(b, label);
}

/* ---- the stack ---- */

static void lower_alloca(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint64_t align = 16;

	(void)arg;
	obd_operand_count(b, s, 2, 3);
	if (s->n_opd > 2) {
		align = s->opd[2].value;
		if (s->opd[2].kind != OBD_OPD_IMM || !align || align > 4096 ||
			(align & (align - 1)))
			obd_invalid(b, s, "the alignment must be a power of two not above 4096");
	}
	uint32_t size = obd_src(b, s, 1, OBD_T_U64), d = obd_dst(b, s, 0, t),
		 w = obd_type_class(t) == OBD_CLASS_64 ? d : obd_temp(b, OBD_T_U64);

	obd_emit(b, OBD_OP_alloca, w, size, N, N)->imm = (uint32_t)align;
	if (w != d)
		obd_emit(b, OBD_OP_lo_64, d, w, N, N);
	b->func->uses_alloca = true;
}

/* which: 0 save, 1 restore */
static void lower_stack(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	obd_operand_count(b, s, 1, 1);
	if (which)
		obd_emit(b, OBD_OP_stack_restore, N, obd_src(b, s, 0, OBD_T_U64), N, N);
	else
		obd_emit(b, OBD_OP_stack_save, obd_dst(b, s, 0, OBD_T_U64), N, N, N);
}

const struct obd_opcode obd_opcodes_ctl[] = {
	{ "bra", lower_bra, 0 },
	{ "brx", lower_brx, 0 },
	{ "call", lower_call, 0 },
	{ "ret", lower_end, OBD_OP_ret },
	{ "exit", lower_end, OBD_OP_exit },
	{ "trap", lower_end, OBD_OP_trap },
	{ "brkpt", lower_end, OBD_OP_trap },
	{ "nanosleep", lower_nanosleep, 0 },
	{ "alloca", lower_alloca, 0 },
	{ "stacksave", lower_stack, 0 },
	{ "stackrestore", lower_stack, 1 },
	{ 0 },
};
