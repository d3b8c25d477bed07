/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Logic, shifts, bit fields, and operations on the bytes of a word. */
#include "softdevice/core/compile/by_type.h"

#define N OBD_NONE

static const struct obd_by_type op_shr =
	OBD_BY_SIGN(shr_u32, shr_s16, shr_u32, shr_s32, shr_u64, shr_s64);

enum { AND, OR, XOR, NOT, CNOT };

static void lower_logic(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	static const uint16_t ops32[] = { OBD_OP_and_32, OBD_OP_or_32, OBD_OP_xor_32, OBD_OP_not_32,
		OBD_OP_cnot_32 };
	static const uint16_t ops64[] = { OBD_OP_and_64, OBD_OP_or_64, OBD_OP_xor_64, OBD_OP_not_64,
		OBD_OP_cnot_64 };
	static const uint16_t opsp[] = { OBD_OP_pand, OBD_OP_por, OBD_OP_pxor, OBD_OP_pnot, 0 };
	enum obd_type t = obd_type_at(b, s, 0);
	bool unary = which >= NOT;

	obd_operand_count(b, s, unary ? 2 : 3, unary ? 2 : 3);
	if (t == OBD_T_PRED) {
		if (which == CNOT)
			obd_invalid(b, s, "invalid type for this instruction");
		uint32_t x = obd_pred_value(b, s, 1), y = unary ? N : obd_pred_value(b, s, 2);

		obd_emit(b, opsp[which], obd_dst(b, s, 0, t), x, y, N);
		return;
	}
	if (obd_type_float(t))
		obd_invalid(b, s, "invalid type for this instruction");
	bool wide = obd_type_class(t) == OBD_CLASS_64;
	uint32_t op = wide ? ops64[which] : ops32[which];

	if (which == NOT && obd_type_bytes(t) == 2)
		op = OBD_OP_not_16;
	uint32_t x = obd_src(b, s, 1, t), y = unary ? N : obd_src(b, s, 2, t);

	obd_emit(b, op, obd_dst(b, s, 0, t), x, y, N);
}

/* which: 0 shl, 1 shr */
static void lower_shift(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint32_t op;

	obd_operand_count(b, s, 3, 3);
	if (which)
		op = obd_by_type(b, s, &op_shr, t);
	else
		op = obd_type_bytes(t) == 8      ? OBD_OP_shl_64
			: obd_type_bytes(t) == 2 ? OBD_OP_shl_16
						 : OBD_OP_shl_32;
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, OBD_T_U32);

	obd_emit(b, op, obd_dst(b, s, 0, t), x, y, N);
}

static void lower_shf(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	bool left = obd_q(s, OBD_Q_l), wrap = obd_q(s, OBD_Q_wrap);

	(void)arg;
	obd_operand_count(b, s, 4, 4);
	obd_emit(b,
		left           ? (wrap ? OBD_OP_shf_lw : OBD_OP_shf_lc)
			: wrap ? OBD_OP_shf_rw
			       : OBD_OP_shf_rc,
		obd_dst(b, s, 0, OBD_T_B32), obd_src(b, s, 1, OBD_T_B32),
		obd_src(b, s, 2, OBD_T_B32), obd_src(b, s, 3, OBD_T_U32));
}

static void lower_bfe(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	static const struct obd_by_type op = { 0, 0, OBD_OP_bfe_u32, OBD_OP_bfe_s32, OBD_OP_bfe_u64,
		OBD_OP_bfe_s64, 0, 0 };
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_operand_count(b, s, 4, 4);
	obd_emit(b, obd_by_type(b, s, &op, t), obd_dst(b, s, 0, t), obd_src(b, s, 1, t),
		obd_src(b, s, 2, OBD_T_U32), obd_src(b, s, 3, OBD_T_U32));
}

static void lower_bfi(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_operand_count(b, s, 5, 5);
	uint32_t d = obd_dst(b, s, 0, t), x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t);
	uint32_t pos = obd_src(b, s, 3, OBD_T_U32), len = obd_src(b, s, 4, OBD_T_U32);
	struct obd_lin *l =
		obd_emit(b, obd_type_bytes(t) == 8 ? OBD_OP_bfi_64 : OBD_OP_bfi_32, d, x, y, pos);

	l->e = len;
	l->flags |= OBD_USE_E;
}

static void lower_szext(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_operand_count(b, s, 3, 3);
	obd_emit(b, obd_type_signed(t) ? OBD_OP_szext_s32 : OBD_OP_szext_u32, obd_dst(b, s, 0, t),
		obd_src(b, s, 1, t), obd_src(b, s, 2, OBD_T_U32), N)
		->e_raw = obd_q(s, OBD_Q_wrap);
}

static void lower_bmsk(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	(void)arg;
	obd_operand_count(b, s, 3, 3);
	obd_emit(b, obd_q(s, OBD_Q_wrap) ? OBD_OP_bmsk_wrap : OBD_OP_bmsk_clamp,
		obd_dst(b, s, 0, OBD_T_B32), obd_src(b, s, 1, OBD_T_U32),
		obd_src(b, s, 2, OBD_T_U32), N);
}

enum { BREV, CLZ, POPC };

static void lower_count(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	static const uint16_t ops[][2] = { { OBD_OP_brev_32, OBD_OP_brev_64 },
		{ OBD_OP_clz_32, OBD_OP_clz_64 }, { OBD_OP_popc_32, OBD_OP_popc_64 } };
	enum obd_type t = obd_type_at(b, s, 0);
	bool wide = obd_type_class(t) == OBD_CLASS_64;

	obd_operand_count(b, s, 2, 2);
	obd_emit(b, ops[which][wide], obd_dst(b, s, 0, which == BREV ? t : OBD_T_U32),
		obd_src(b, s, 1, t), N, N);
}

static void lower_bfind(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	static const struct obd_by_type find = { 0, 0, OBD_OP_bfind_u32, OBD_OP_bfind_s32,
		OBD_OP_bfind_u64, OBD_OP_bfind_s64, 0, 0 };
	static const struct obd_by_type shift = { 0, 0, OBD_OP_bfind_shift_u32,
		OBD_OP_bfind_shift_s32, OBD_OP_bfind_shift_u64, OBD_OP_bfind_shift_s64, 0, 0 };
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	obd_emit(b, obd_by_type(b, s, obd_q(s, OBD_Q_shiftamt) ? &shift : &find, t),
		obd_dst(b, s, 0, OBD_T_U32), obd_src(b, s, 1, t), N, N);
}

static void lower_three32(struct obd_builder *b, struct obd_stmt *s, uint32_t op)
{
	obd_operand_count(b, s, 4, 4);
	obd_emit(b, op, obd_dst(b, s, 0, OBD_T_B32), obd_src(b, s, 1, OBD_T_B32),
		obd_src(b, s, 2, OBD_T_B32), obd_src(b, s, 3, OBD_T_B32));
}

static void lower_prmt(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	uint32_t mode = obd_q(s, OBD_Q_f4e) ? 1
		: obd_q(s, OBD_Q_b4e)       ? 2
		: obd_q(s, OBD_Q_rc8)       ? 3
		: obd_q(s, OBD_Q_ecl)       ? 4
		: obd_q(s, OBD_Q_ecr)       ? 5
		: obd_q(s, OBD_Q_rc16)      ? 6
					    : 0;

	(void)arg;
	lower_three32(b, s, mode ? OBD_OP_prmt_mode : OBD_OP_prmt);
	b->code[b->n_code - 1].e_raw = (uint16_t)mode;
}

static void lower_lop3(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	(void)arg;
	obd_operand_count(b, s, 5, 6);
	if (s->opd[4].kind != OBD_OPD_IMM)
		obd_invalid(b, s, "the look-up table must be a constant");
	uint32_t d = obd_dst(b, s, 0, OBD_T_B32);

	obd_emit(b, OBD_OP_lop3, d, obd_src(b, s, 1, OBD_T_B32), obd_src(b, s, 2, OBD_T_B32),
		obd_src(b, s, 3, OBD_T_B32))
		->e_raw = (uint16_t)(s->opd[4].value & 0xff);
	if (s->opd[0].pair == N && !s->opd[0].pair_sink)
		return;
	uint32_t p = s->opd[0].pair == N ? obd_temp(b, OBD_T_PRED) : s->opd[0].pair,
		 nz = obd_temp(b, OBD_T_PRED);

	obd_emit(b, OBD_OP_eq_32, nz, d, obd_const_new(b, OBD_CLASS_32, 0, NULL), N)->e_raw = 1;
	obd_emit(b, obd_q(s, OBD_Q_and) ? OBD_OP_pand : OBD_OP_por, p, nz, obd_pred_value(b, s, 5),
		N);
}

static void lower_dp(struct obd_builder *b, struct obd_stmt *s, uint32_t two)
{
	enum obd_type ta = obd_type_at(b, s, 0), tb = obd_type_at(b, s, 1);

	lower_three32(b, s, two ? OBD_OP_dp2a : OBD_OP_dp4a);
	b->code[b->n_code - 1].e_raw = (uint16_t)(obd_type_signed(ta) | obd_type_signed(tb) << 1 |
		(two && obd_q(s, OBD_Q_hi)) << 2);
}

/* SIMD video instructions, vadd2 to vset4. arg: operation; +8: four bytes */
static void lower_video(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type dt = obd_type_at(b, s, 0), at = s->n_types > 1 ? s->types[1] : dt;
	bool set = (arg & 7) == 6;
	uint32_t cmp = 0, what;

	obd_operand_count(b, s, 4, 4);
	if (set) {
		at = dt;
		cmp = s->n_order ? (uint32_t)s->order[0] - OBD_Q_eq : 6;
		if (cmp > 5)
			obd_invalid(b, s, "missing comparison operator, such as .lt");
	}
	what = arg | (uint32_t)obd_type_signed(at) << 4 | (uint32_t)obd_q(s, OBD_Q_sat) << 5 |
		(uint32_t)obd_q(s, OBD_Q_add) << 6 | cmp << 8;
	lower_three32(b, s, OBD_OP_simd_video);
	b->code[b->n_code - 1].e_raw = (uint16_t)what;
}

const struct obd_opcode obd_opcodes_bits[] = {
	{ "and", lower_logic, AND },
	{ "or", lower_logic, OR },
	{ "xor", lower_logic, XOR },
	{ "not", lower_logic, NOT },
	{ "cnot", lower_logic, CNOT },
	{ "shl", lower_shift, 0 },
	{ "shr", lower_shift, 1 },
	{ "shf", lower_shf, 0 },
	{ "bfe", lower_bfe, 0 },
	{ "bfi", lower_bfi, 0 },
	{ "szext", lower_szext, 0 },
	{ "bmsk", lower_bmsk, 0 },
	{ "brev", lower_count, BREV },
	{ "clz", lower_count, CLZ },
	{ "popc", lower_count, POPC },
	{ "bfind", lower_bfind, 0 },
	{ "fns", lower_three32, OBD_OP_fns },
	{ "prmt", lower_prmt, 0 },
	{ "lop3", lower_lop3, 0 },
	{ "dp4a", lower_dp, 0 },
	{ "dp2a", lower_dp, 1 },
	{ "vadd2", lower_video, 0 },
	{ "vsub2", lower_video, 1 },
	{ "vavrg2", lower_video, 2 },
	{ "vabsdiff2", lower_video, 3 },
	{ "vmin2", lower_video, 4 },
	{ "vmax2", lower_video, 5 },
	{ "vset2", lower_video, 6 },
	{ "vadd4", lower_video, 8 },
	{ "vsub4", lower_video, 9 },
	{ "vavrg4", lower_video, 10 },
	{ "vabsdiff4", lower_video, 11 },
	{ "vmin4", lower_video, 12 },
	{ "vmax4", lower_video, 13 },
	{ "vset4", lower_video, 14 },
	{ 0 },
};
