/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Operations on values that are linear in the lane, by their bases. */
#include "softdevice/core/engine/exec.h"
#include "softdevice/core/native/unit.h"

/* Exits before instruction i if RAX + by exceeds its 32-bit type. */
static void check_lane(struct obn_unit *u, uint32_t i, int64_t by, bool is_signed)
{
	struct x_buf *x = &u->x;

	x_lea(x, true, RCX, (struct x_mem){ RAX, (int32_t)by });
	if (is_signed)
		x_movsxd(x, RDX, RCX);
	else
		x_mov(x, false, RDX, RCX);
	x_alu(x, X_CMP, true, RDX, RCX);
	obn_exit(u, CC_NE, i);
}

void obn_check_wrap(struct obn_unit *u, uint32_t i, uint32_t slot, bool is_signed)
{
	struct obn_form f = u->forms[u->state[slot]];
	int64_t lane = (int64_t)f.lane * (OBN_HALF - 1), half = f.half;
	int64_t high = (lane > 0 ? lane : 0) + (half > 0 ? half : 0),
		low = (lane < 0 ? lane : 0) + (half < 0 ? half : 0);
	int a = obn_scalar_get(u, slot);

	if (is_signed)
		x_movsxd(&u->x, RAX, a);
	else
		x_mov(&u->x, false, RAX, a);
	if (high)
		check_lane(u, i, high, is_signed);
	if (low)
		check_lane(u, i, low, is_signed);
}

static bool small_const(const struct obn_unit *u, uint32_t slot, bool w, int32_t *ret)
{
	if (!u->const_at[slot])
		return false;
	uint64_t v = obn_const(u, slot);

	*ret = (int32_t)v;
	return !w || (uint64_t)(int64_t)*ret == v;
}

static void two(struct obn_unit *u, int op, bool w, int d, uint32_t a, uint32_t b)
{
	int32_t v;

	x_mov(&u->x, w, d, obn_scalar_get(u, a));
	if (small_const(u, b, w, &v))
		x_alu_imm(&u->x, op, w, d, v);
	else
		x_alu(&u->x, op, w, d, obn_scalar_get(u, b));
}

static void multiply(struct obn_unit *u, bool w, int d, uint32_t a, uint32_t b)
{
	int32_t v;

	if (small_const(u, b, w, &v)) {
		x_imul_imm(&u->x, w, d, obn_scalar_get(u, a), v);
	} else {
		x_mov(&u->x, w, d, obn_scalar_get(u, a));
		x_imul(&u->x, w, d, obn_scalar_get(u, b));
	}
}

static void multiply_wide(struct obn_unit *u, bool is_signed, int d, uint32_t a, uint32_t b)
{
	struct x_buf *x = &u->x;
	int ra = obn_scalar_get(u, a), rb = obn_scalar_get(u, b);

	if (is_signed) {
		x_movsxd(x, d, ra);
		x_movsxd(x, RAX, rb);
	} else {
		x_mov(x, false, d, ra);
		x_mov(x, false, RAX, rb);
	}
	x_imul(x, true, d, RAX);
}

static void shift(struct obn_unit *u, int kind, bool w, int d, uint32_t a, uint32_t by)
{
	struct x_buf *x = &u->x;
	uint32_t bits = w ? 64 : 32;
	int ra = obn_scalar_get(u, a);

	if (u->const_at[by]) {
		uint32_t n = (uint32_t)obn_const(u, by);

		if (n >= bits && kind != X_SAR) {
			x_mov_imm(x, d, 0);
			return;
		}
		x_mov(x, w, d, ra);
		x_shift(x, kind, w, d, n < bits ? n : bits - 1);
		return;
	}
	int rb = obn_scalar_get(u, by);

	if (kind == X_SAR) {
		x_mov(x, false, RAX, rb);
		x_mov_imm(x, RCX, bits - 1);
		x_alu(x, X_CMP, false, RAX, RCX);
		x_cmov(x, CC_A, false, RAX, RCX);
		x_shiftx(x, kind, w, d, ra, RAX);
	} else {
		x_shiftx(x, kind, w, d, ra, rb);
		x_mov_imm(x, RAX, 0);
		x_alu_imm(x, X_CMP, false, rb, (int32_t)bits);
		x_cmov(x, CC_AE, true, d, RAX);
	}
}

static void choose(struct obn_unit *u, int cc, bool w, int d, uint32_t a, uint32_t b)
{
	int ra = obn_scalar_get(u, a), rb = obn_scalar_get(u, b);

	x_mov(&u->x, w, d, rb);
	x_alu(&u->x, X_CMP, w, ra, rb);
	x_cmov(&u->x, cc, w, d, ra);
}

/*
 * d = pred ? a : b. All operands are loaded before the test, since loading a constant changes the
 * flags.
 */
static void select_by(struct obn_unit *u, int d, uint32_t a, uint32_t b, int pred)
{
	int ra = obn_scalar_get(u, a), rb = obn_scalar_get(u, b);

	x_mov(&u->x, true, d, rb);
	x_test(&u->x, false, pred, pred);
	x_cmov(&u->x, CC_NE, true, d, ra);
}

/* The operand of a product, or of an extension, that is not the same in all lanes. */
static uint32_t linear_operand(const struct obn_unit *u, const struct obd_insn *in)
{
	const struct obn_op *o = obn_op_info(in->op);

	return u->state[in->a] == 0 && o->bytes[2] ? in->b : in->a;
}

static bool is_signed(uint32_t op)
{
	return op == OBD_OP_mulw_s32 || op == OBD_OP_madw_s32 || op == OBD_OP_sext32_64;
}

bool obn_scalar(struct obn_unit *u, uint32_t i, int32_t form, bool check)
{
	const struct obd_insn *in = &u->f->code[i];
	struct x_buf *x = &u->x;
	uint32_t a = in->a, b = in->b, c = in->c;

	if (!obn_op_info(in->op)->scalar)
		return false;
	if (check)
		obn_check_wrap(u, i, linear_operand(u, in), is_signed(in->op));
	int d = obn_scalar_new(u);

	switch (in->op) {
	case OBD_OP_mov_32:
	case OBD_OP_lo_64:
	case OBD_OP_zext32_64:
		x_mov(x, false, d, obn_scalar_get(u, a));
		break;
	case OBD_OP_mov_64:
		x_mov(x, true, d, obn_scalar_get(u, a));
		break;
	case OBD_OP_sext32_64:
		x_movsxd(x, d, obn_scalar_get(u, a));
		break;
	case OBD_OP_hi_64:
		x_mov(x, true, d, obn_scalar_get(u, a));
		x_shift(x, X_SHR, true, d, 32);
		break;
	case OBD_OP_pack_64:
		x_mov(x, false, d, obn_scalar_get(u, b));
		x_shift(x, X_SHL, true, d, 32);
		x_alu(x, X_OR, true, d, obn_scalar_get(u, a));
		break;
	case OBD_OP_add_u32:
		two(u, X_ADD, false, d, a, b);
		break;
	case OBD_OP_add_u64:
		two(u, X_ADD, true, d, a, b);
		break;
	case OBD_OP_sub_u32:
		two(u, X_SUB, false, d, a, b);
		break;
	case OBD_OP_sub_u64:
		two(u, X_SUB, true, d, a, b);
		break;
	case OBD_OP_and_32:
		two(u, X_AND, false, d, a, b);
		break;
	case OBD_OP_and_64:
		two(u, X_AND, true, d, a, b);
		break;
	case OBD_OP_or_32:
		two(u, X_OR, false, d, a, b);
		break;
	case OBD_OP_or_64:
		two(u, X_OR, true, d, a, b);
		break;
	case OBD_OP_xor_32:
		two(u, X_XOR, false, d, a, b);
		break;
	case OBD_OP_xor_64:
		two(u, X_XOR, true, d, a, b);
		break;
	case OBD_OP_not_32:
	case OBD_OP_not_64:
		x_mov(x, true, d, obn_scalar_get(u, a));
		x_not(x, in->op == OBD_OP_not_64, d);
		break;
	case OBD_OP_neg_u32:
	case OBD_OP_neg_u64:
		x_mov(x, true, d, obn_scalar_get(u, a));
		x_neg(x, in->op == OBD_OP_neg_u64, d);
		break;
	case OBD_OP_mul_u32:
	case OBD_OP_mul_u64:
		multiply(u, in->op == OBD_OP_mul_u64, d, a, b);
		break;
	case OBD_OP_mad_u32:
	case OBD_OP_mad_u64:
		multiply(u, in->op == OBD_OP_mad_u64, d, a, b);
		x_alu(x, X_ADD, in->op == OBD_OP_mad_u64, d, obn_scalar_get(u, c));
		break;
	case OBD_OP_mulw_u32:
	case OBD_OP_mulw_s32:
		multiply_wide(u, in->op == OBD_OP_mulw_s32, d, a, b);
		break;
	case OBD_OP_madw_u32:
	case OBD_OP_madw_s32:
		multiply_wide(u, in->op == OBD_OP_madw_s32, d, a, b);
		x_alu(x, X_ADD, true, d, obn_scalar_get(u, c));
		break;
	case OBD_OP_min_u32:
	case OBD_OP_min_u64:
		choose(u, CC_B, in->op == OBD_OP_min_u64, d, a, b);
		break;
	case OBD_OP_max_u32:
	case OBD_OP_max_u64:
		choose(u, CC_A, in->op == OBD_OP_max_u64, d, a, b);
		break;
	case OBD_OP_min_s32:
	case OBD_OP_min_s64:
		choose(u, CC_L, in->op == OBD_OP_min_s64, d, a, b);
		break;
	case OBD_OP_max_s32:
	case OBD_OP_max_s64:
		choose(u, CC_G, in->op == OBD_OP_max_s64, d, a, b);
		break;
	case OBD_OP_shl_32:
	case OBD_OP_shl_64:
		shift(u, X_SHL, in->op == OBD_OP_shl_64, d, a, b);
		break;
	case OBD_OP_shr_u32:
	case OBD_OP_shr_u64:
		shift(u, X_SHR, in->op == OBD_OP_shr_u64, d, a, b);
		break;
	case OBD_OP_shr_s32:
	case OBD_OP_shr_s64:
		shift(u, X_SAR, in->op == OBD_OP_shr_s64, d, a, b);
		break;
	case OBD_OP_zext8:
	case OBD_OP_zext16:
		x_mov(x, false, d, obn_scalar_get(u, a));
		x_alu_imm(x, X_AND, false, d, in->op == OBD_OP_zext8 ? 0xff : 0xffff);
		break;
	case OBD_OP_sext8_32:
	case OBD_OP_sext16_32:
		x_mov(x, false, d, obn_scalar_get(u, a));
		x_shift(x, X_SHL, false, d, in->op == OBD_OP_sext8_32 ? 24 : 16);
		x_shift(x, X_SAR, false, d, in->op == OBD_OP_sext8_32 ? 24 : 16);
		break;
	case OBD_OP_bits_32:
		x_mov(x, false, d, obn_scalar_get(u, a));
		x_shift(x, X_SHR, false, d, in->e & 31);
		x_alu_imm(x, X_AND, false, d, (int32_t)in->u.imm);
		break;
	case OBD_OP_selp_32:
	case OBD_OP_selp_64:
		select_by(u, d, a, b, obn_pred_get(u, c));
		break;
	default:
		u->failed = true;
		break;
	}
	obn_scalar_set(u, in->d, d, form);
	return true;
}
