/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Comparisons and predicates. A predicate is a word in a general register, bit i for lane i. */
#include "softdevice/core/native/unit.h"

enum test { EQ, LT, LE, UN, EQU };

struct comparison {
	enum test test;
	bool wide, is_float, is_signed;
};

static struct comparison comparison_of(uint32_t op)
{
	static const struct comparison all[] = {
		[0] = { EQ, false, false, false },
		[OBD_OP_lt_u32 - OBD_OP_eq_32] = { LT, false, false, false },
		[OBD_OP_le_u32 - OBD_OP_eq_32] = { LE, false, false, false },
		[OBD_OP_lt_s32 - OBD_OP_eq_32] = { LT, false, false, true },
		[OBD_OP_le_s32 - OBD_OP_eq_32] = { LE, false, false, true },
		[OBD_OP_eq_64 - OBD_OP_eq_32] = { EQ, true, false, false },
		[OBD_OP_lt_u64 - OBD_OP_eq_32] = { LT, true, false, false },
		[OBD_OP_le_u64 - OBD_OP_eq_32] = { LE, true, false, false },
		[OBD_OP_lt_s64 - OBD_OP_eq_32] = { LT, true, false, true },
		[OBD_OP_le_s64 - OBD_OP_eq_32] = { LE, true, false, true },
		[OBD_OP_eq_f32 - OBD_OP_eq_32] = { EQ, false, true, false },
		[OBD_OP_lt_f32 - OBD_OP_eq_32] = { LT, false, true, false },
		[OBD_OP_le_f32 - OBD_OP_eq_32] = { LE, false, true, false },
		[OBD_OP_un_f32 - OBD_OP_eq_32] = { UN, false, true, false },
		[OBD_OP_equ_f32 - OBD_OP_eq_32] = { EQU, false, true, false },
		[OBD_OP_eq_f64 - OBD_OP_eq_32] = { EQ, true, true, false },
		[OBD_OP_lt_f64 - OBD_OP_eq_32] = { LT, true, true, false },
		[OBD_OP_le_f64 - OBD_OP_eq_32] = { LE, true, true, false },
		[OBD_OP_un_f64 - OBD_OP_eq_32] = { UN, true, true, false },
		[OBD_OP_equ_f64 - OBD_OP_eq_32] = { EQU, true, true, false },
	};

	if (op >= OBD_OP_eq_32_and)
		op -= OBD_OP_eq_32_and - OBD_OP_eq_32;
	else if (op >= OBD_OP_eq_32_or)
		op -= OBD_OP_eq_32_or - OBD_OP_eq_32;
	return all[op - OBD_OP_eq_32];
}

/* d: the comparison, before it is inverted and combined with a predicate */
static void finish(struct obn_unit *u, const struct obd_insn *in, int d, bool same)
{
	if (in->e)
		x_not(&u->x, false, d);
	obn_step(u);
	u->gpr[d].used = u->clock;
	if (in->op >= OBD_OP_eq_32_or)
		x_alu(&u->x, in->op >= OBD_OP_eq_32_and ? X_AND : X_OR, false, d,
			obn_pred_get(u, in->c));
	obn_pred_set(u, in->d, d, same);
}

/* Values that are the same in all lanes: 0 or all ones. */
static void compare_same(struct obn_unit *u, const struct obd_insn *in, const struct comparison *c)
{
	struct x_buf *x = &u->x;
	int a = obn_scalar_get(u, in->a), b = obn_scalar_get(u, in->b), d = obn_scalar_new(u);

	x_alu(x, X_CMP, c->wide, a, b);
	x_setcc(x,
		c->test == EQ           ? CC_E
			: c->test == LT ? (c->is_signed ? CC_L : CC_B)
			: c->is_signed  ? CC_LE
					: CC_BE,
		d);
	x_neg(x, false, d);
	finish(u, in, d, true);
}

/* Predicates of vcmpps and vcmppd, by enum test. */
static const uint8_t as_float[] = { 0x00, 0x11, 0x12, 0x03, 0x08 };

/* k = the comparison of two chunks, with AVX-512 */
static void compare_wide(struct obn_unit *u, const struct comparison *c, int k, int a, int b)
{
	struct x_how how = obn_how(u);
	uint32_t w = c->wide;

	if (c->is_float) {
		how.imm = as_float[c->test];
		x_v(&u->x, c->wide ? V(1, P66, 1, 0xc2u) : V(1, 0, 0, 0xc2u), how, k, a, b);
	} else {
		how.imm = c->test == EQ ? 0 : c->test == LT ? 1 : 2;
		x_v(&u->x, c->is_signed ? V(3, P66, w, 0x1fu) : V(3, P66, w, 0x1eu), how, k, a, b);
	}
}

/* t0 = the comparison of two chunks, with AVX2; *ret_inverted: its opposite */
static void compare_narrow(
	struct obn_unit *u, const struct comparison *c, int a, int b, bool *ret_inverted)
{
	struct x_buf *x = &u->x;
	struct x_how how = obn_how(u);

	*ret_inverted = false;
	if (c->is_float) {
		how.imm = as_float[c->test];
		x_v(x, c->wide ? V(1, P66, 0, 0xc2u) : V(1, 0, 0, 0xc2u), how, u->t0, a, b);
		return;
	}
	if (c->test == EQ) {
		x_v(x, c->wide ? V(2, P66, 0, 0x29u) : V(1, P66, 0, 0x76u), how, u->t0, a, b);
		return;
	}
	/* a < b is b > a; a <= b is the opposite of a > b */
	int more = c->test == LT ? b : a, less = c->test == LT ? a : b;

	*ret_inverted = c->test == LE;
	if (!c->is_signed) {
		struct x_mem m = c->wide ? obn_splat64(u, 1ull << 63) : obn_splat32(u, 1u << 31);

		x_vm(x, VPXOR, how, u->t0, more, m);
		x_vm(x, VPXOR, how, u->t1, less, m);
		more = u->t0;
		less = u->t1;
	}
	x_v(x, c->wide ? V(2, P66, 0, 0x37u) : V(1, P66, 0, 0x66u), how, u->t0, more, less);
}

static void mask_op(struct obn_unit *u, uint32_t op, int d, int high, int low)
{
	x_v(&u->x, op, (struct x_how){ .len = 1, .imm = -1, .vex = true }, d, high, low);
}

static void collect_wide(
	struct obn_unit *u, const struct obd_insn *in, const struct comparison *c, int d)
{
	uint32_t n = c->wide ? 4 : 2;

	for (uint32_t k = 0; k < n; k++) {
		obn_step(u);
		u->gpr[d].used = u->clock;
		int a = obn_vector_get(u, in->a, k);

		compare_wide(u, c, 1 + (int)k, a, obn_vector_get(u, in->b, k));
	}
	if (c->wide) { /* kunpckbw, then kunpckwd */
		mask_op(u, V(1, P66, 0, 0x4bu), 1, 2, 1);
		mask_op(u, V(1, P66, 0, 0x4bu), 2, 4, 3);
	}
	mask_op(u, V(1, 0, 0, 0x4bu), 1, 2, 1);
	x_v(&u->x, V(1, PF2, 0, 0x93u), (struct x_how){ .len = 0, .imm = -1, .vex = true }, d, 0,
		1); /* kmovd */
}

static void collect_narrow(
	struct obn_unit *u, const struct obd_insn *in, const struct comparison *c, int d)
{
	struct x_buf *x = &u->x;
	uint32_t n = c->wide ? 8 : 4;
	bool inverted = false;

	for (uint32_t k = 0; k < n; k++) {
		obn_step(u);
		u->gpr[d].used = u->clock;
		int a = obn_vector_get(u, in->a, k);

		compare_narrow(u, c, a, obn_vector_get(u, in->b, k), &inverted);
		/* vmovmskps or vmovmskpd */
		x_v(x, c->wide ? V(1, P66, 0, 0x50u) : V(1, 0, 0, 0x50u), obn_how(u), RAX, 0,
			u->t0);
		if (k) {
			x_shift(x, X_SHL, false, RAX, 32 / n * k);
			x_alu(x, X_OR, false, d, RAX);
		} else {
			x_mov(x, false, d, RAX);
		}
	}
	if (inverted)
		x_not(x, false, d);
}

bool obn_compare(struct obn_unit *u, uint32_t i)
{
	const struct obd_insn *in = &u->f->code[i];
	struct comparison c = comparison_of(in->op);

	if (obn_result_same(u, i)) {
		compare_same(u, in, &c);
		return true;
	}
	int d = obn_scalar_new(u);

	if (u->x.wide)
		collect_wide(u, in, &c, d);
	else
		collect_narrow(u, in, &c, d);
	finish(u, in, d, false);
	return true;
}

bool obn_predicate(struct obn_unit *u, uint32_t i)
{
	const struct obd_insn *in = &u->f->code[i];
	struct x_buf *x = &u->x;
	bool same = obn_result_same(u, i);
	int d = obn_scalar_new(u);

	switch (in->op) {
	case OBD_OP_pset:
		x_mov_imm(x, d, in->u.imm);
		break;
	case OBD_OP_pmov:
	case OBD_OP_pnot:
		x_mov(x, false, d, obn_pred_get(u, in->a));
		if (in->op == OBD_OP_pnot)
			x_not(x, false, d);
		break;
	default:
		x_mov(x, false, d, obn_pred_get(u, in->a));
		x_alu(x,
			in->op == OBD_OP_pand          ? X_AND
				: in->op == OBD_OP_por ? X_OR
						       : X_XOR,
			false, d, obn_pred_get(u, in->b));
		break;
	}
	obn_pred_set(u, in->d, d, same);
	return true;
}
