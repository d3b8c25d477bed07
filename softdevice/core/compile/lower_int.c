/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Integer arithmetic. */
#include "softdevice/core/compile/by_type.h"
#include "softdevice/core/compile/lower_float.h"
#include "softdevice/core/compile/lower_pair.h"

#define N OBD_NONE

static const struct obd_by_type op_add = OBD_BY_WIDTH(add_u16, add_u32, add_u64),
				op_sub = OBD_BY_WIDTH(sub_u16, sub_u32, sub_u64);
static const struct obd_by_type op_mul_lo = OBD_BY_WIDTH(mul_u16, mul_u32, mul_u64);
static const struct obd_by_type op_mul_hi =
	OBD_BY_SIGN(mulhi_u16, mulhi_s16, mulhi_u32, mulhi_s32, mulhi_u64, mulhi_s64);
static const struct obd_by_type op_mad_lo = OBD_BY_WIDTH(mad_u16, mad_u32, mad_u64);
static const struct obd_by_type op_mad_hi =
	OBD_BY_SIGN(madhi_u16, madhi_s16, madhi_u32, madhi_s32, madhi_u64, madhi_s64);
static const struct obd_by_type op_min =
	OBD_BY_SIGN(min_u32, min_s16, min_u32, min_s32, min_u64, min_s64);
static const struct obd_by_type op_max =
	OBD_BY_SIGN(max_u32, max_s16, max_u32, max_s32, max_u64, max_s64);
static const struct obd_by_type op_sad =
	OBD_BY_SIGN(sad_u16, sad_s16, sad_u32, sad_s32, sad_u64, sad_s64);

static void carry(struct obd_builder *b, const struct obd_stmt *s, uint32_t out, uint32_t in,
	uint32_t both, bool take)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool cc = obd_q(s, OBD_Q_cc);

	obd_operand_count(b, s, 3, 3);
	obd_emit(b, take ? (cc ? both : in) : out, obd_dst(b, s, 0, t), obd_src(b, s, 1, t),
		obd_src(b, s, 2, t), N);
}

static void lower_addsub(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool wide = obd_type_class(t) == OBD_CLASS_64;

	if (t == OBD_T_F32X2) {
		obd_lower_pair(b, s);
		return;
	}
	if (obd_type_float(t) || t == OBD_T_F16X2 || t == OBD_T_BF16X2) {
		obd_lower_float2(b, s, which);
		return;
	}
	if (obd_q(s, OBD_Q_cc)) {
		if (which == OBD_ARITH_ADD)
			carry(b, s, wide ? OBD_OP_addcc_64 : OBD_OP_addcc_32, 0, 0, false);
		else
			carry(b, s, wide ? OBD_OP_subcc_64 : OBD_OP_subcc_32, 0, 0, false);
		return;
	}
	obd_operand_count(b, s, 3, 3);
	uint32_t op = t == OBD_T_U16X2 || t == OBD_T_S16X2
		? OBD_OP_addh_u16x2
		: obd_by_type(b, s, which == OBD_ARITH_ADD ? &op_add : &op_sub, t);

	if (op == OBD_OP_addh_u16x2 && which == OBD_ARITH_SUB)
		obd_invalid(b, s, "invalid type for this instruction");
	if (obd_q(s, OBD_Q_sat)) {
		if (t != OBD_T_S32)
			obd_invalid(b, s, ".sat requires type .s32");
		op = which == OBD_ARITH_ADD ? OBD_OP_addsat_s32 : OBD_OP_subsat_s32;
	}
	obd_emit(b, op, obd_dst(b, s, 0, t), obd_src(b, s, 1, t), obd_src(b, s, 2, t), N);
}

static void lower_carry_in(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	bool wide = obd_type_class(obd_type_at(b, s, 0)) == OBD_CLASS_64;

	if (which == OBD_ARITH_ADD)
		carry(b, s, 0, wide ? OBD_OP_addc_64 : OBD_OP_addc_32,
			wide ? OBD_OP_addccc_64 : OBD_OP_addccc_32, true);
	else
		carry(b, s, 0, wide ? OBD_OP_subc_64 : OBD_OP_subc_32,
			wide ? OBD_OP_subccc_64 : OBD_OP_subccc_32, true);
}

static void lower_mul(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);

	if (t == OBD_T_F32X2) {
		obd_lower_pair(b, s);
		return;
	}
	if (obd_type_float(t) || t == OBD_T_F16X2 || t == OBD_T_BF16X2) {
		obd_lower_float2(b, s, which);
		return;
	}
	obd_operand_count(b, s, 3, 3);
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t);

	if (obd_q(s, OBD_Q_wide)) {
		bool is16 = obd_type_bytes(t) == 2, sign = obd_type_signed(t);

		if (obd_type_bytes(t) > 4)
			obd_invalid(b, s, ".wide requires a 16- or 32-bit type");
		obd_emit(b,
			is16           ? (sign ? OBD_OP_mulw_s16 : OBD_OP_mul_u32)
				: sign ? OBD_OP_mulw_s32
				       : OBD_OP_mulw_u32,
			obd_dst(b, s, 0, is16 ? OBD_T_U32 : OBD_T_U64), x, y, N);
		return;
	}
	obd_emit(b, obd_by_type(b, s, obd_q(s, OBD_Q_hi) ? &op_mul_hi : &op_mul_lo, t),
		obd_dst(b, s, 0, t), x, y, N);
}

static uint32_t mad_carry_op(
	struct obd_builder *b, const struct obd_stmt *s, enum obd_type t, bool in, bool out)
{
	bool hi = obd_q(s, OBD_Q_hi), wide = obd_type_class(t) == OBD_CLASS_64,
	     sign = obd_type_signed(t);

	if (obd_type_bytes(t) < 4)
		obd_invalid(b, s, "carry requires a 32- or 64-bit type");
	if (!hi)
		return wide
			? (in ? (out ? OBD_OP_madcloccc_64 : OBD_OP_madcloc_64) : OBD_OP_madlocc_64)
			: (in ? (out ? OBD_OP_madcloccc_32 : OBD_OP_madcloc_32)
			      : OBD_OP_madlocc_32);
	if (sign)
		return wide ? (in ? (out ? OBD_OP_madchicc_s64 : OBD_OP_madchi_s64)
				  : OBD_OP_madhicc_s64)
			    : (in ? (out ? OBD_OP_madchicc_s32 : OBD_OP_madchi_s32)
				  : OBD_OP_madhicc_s32);
	return wide ? (in ? (out ? OBD_OP_madchicc_u64 : OBD_OP_madchi_u64) : OBD_OP_madhicc_u64)
		    : (in ? (out ? OBD_OP_madchicc_u32 : OBD_OP_madchi_u32) : OBD_OP_madhicc_u32);
}

/* which: 1 for madc */
static void lower_mad(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool cc = obd_q(s, OBD_Q_cc);

	if (obd_type_float(t)) {
		obd_lower_float2(b, s, OBD_ARITH_MAD);
		return;
	}
	obd_operand_count(b, s, 4, 4);
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t);

	if (obd_q(s, OBD_Q_wide)) {
		bool is16 = obd_type_bytes(t) == 2, sign = obd_type_signed(t);
		enum obd_type wt = is16 ? OBD_T_U32 : OBD_T_U64;
		uint32_t z = obd_src(b, s, 3, wt), d = obd_dst(b, s, 0, wt);

		if (obd_type_bytes(t) > 4 || which || cc)
			obd_invalid(b, s, ".wide cannot be combined with .cc or madc");
		if (is16) {
			uint32_t m = obd_temp(b, OBD_T_U32);

			obd_emit(b, sign ? OBD_OP_mulw_s16 : OBD_OP_mul_u32, m, x, y, N);
			obd_emit(b, OBD_OP_add_u32, d, m, z, N);
		} else {
			obd_emit(b, sign ? OBD_OP_madw_s32 : OBD_OP_madw_u32, d, x, y, z);
		}
		return;
	}
	uint32_t z = obd_src(b, s, 3, t), op;

	if (which || cc)
		op = mad_carry_op(b, s, t, which, cc);
	else if (obd_q(s, OBD_Q_sat))
		op = OBD_OP_madhisat_s32;
	else
		op = obd_by_type(b, s, obd_q(s, OBD_Q_hi) ? &op_mad_hi : &op_mad_lo, t);
	obd_emit(b, op, obd_dst(b, s, 0, t), x, y, z);
}

/* which: 0 mul24, 1 mad24 */
static void lower_mul24(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool sign = obd_type_signed(t), hi = obd_q(s, OBD_Q_hi);
	uint32_t d = obd_dst(b, s, 0, t), m = which ? obd_temp(b, t) : d;

	obd_operand_count(b, s, 3 + which, 3 + which);
	if (obd_type_bytes(t) != 4)
		obd_invalid(b, s, "needs a 32-bit type");
	obd_emit(b,
		hi             ? (sign ? OBD_OP_mul24hi_s32 : OBD_OP_mul24hi_u32)
			: sign ? OBD_OP_mul24lo_s32
			       : OBD_OP_mul24lo_u32,
		m, obd_src(b, s, 1, t), obd_src(b, s, 2, t), N);
	if (which)
		obd_emit(b, obd_q(s, OBD_Q_sat) ? OBD_OP_addsat_s32 : OBD_OP_add_u32, d, m,
			obd_src(b, s, 3, t), N);
}

/* Extends 16-bit signed operands to 32 bits. */
static uint32_t source_sign_extended(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i, enum obd_type t)
{
	uint32_t v = obd_src(b, s, i, t), w;

	if (t != OBD_T_S16)
		return v;
	w = obd_temp(b, OBD_T_U32);
	obd_emit(b, OBD_OP_sext16_32, w, v, N, N);
	return w;
}

static void lower_divrem(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	static const struct obd_by_type div =
		OBD_BY_SIGN(div_u32, div_s32, div_u32, div_s32, div_u64, div_s64);
	static const struct obd_by_type rem =
		OBD_BY_SIGN(rem_u32, rem_s32, rem_u32, rem_s32, rem_u64, rem_s64);
	enum obd_type t = obd_type_at(b, s, 0);

	if (obd_type_float(t)) {
		obd_lower_float2(b, s, OBD_ARITH_DIV);
		return;
	}
	obd_operand_count(b, s, 3, 3);
	uint32_t d = obd_dst(b, s, 0, t), x = source_sign_extended(b, s, 1, t),
		 y = source_sign_extended(b, s, 2, t);

	obd_emit(b, obd_by_type(b, s, which == OBD_ARITH_DIV ? &div : &rem, t), d, x, y, N);
	if (obd_type_is16(t)) {
		obd_emit(b, OBD_OP_zext16, d, d, N, N);
	}
}

static void lower_minmax(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);

	if (obd_type_float(t) || t == OBD_T_F16X2 || t == OBD_T_BF16X2) {
		obd_lower_float2(b, s, which);
		return;
	}
	obd_operand_count(b, s, 3, 4);
	uint32_t d = obd_dst(b, s, 0, t), op;

	if (t == OBD_T_U16X2)
		op = which == OBD_ARITH_MIN ? OBD_OP_min_u16x2 : OBD_OP_max_u16x2;
	else if (t == OBD_T_S16X2)
		op = which == OBD_ARITH_MIN ? OBD_OP_min_s16x2 : OBD_OP_max_s16x2;
	else
		op = obd_by_type(b, s, which == OBD_ARITH_MIN ? &op_min : &op_max, t);
	obd_emit(b, op, d, obd_src(b, s, 1, t), obd_src(b, s, 2, t), N);
	if (obd_q(s, OBD_Q_relu))
		obd_emit(b, t == OBD_T_S16X2 ? OBD_OP_relu_16x2 : OBD_OP_relu_32, d, d, N, N);
}

static void lower_absneg(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	static const struct obd_by_type abs_op = { 0, OBD_OP_abs_s16, 0, OBD_OP_abs_s32, 0,
		OBD_OP_abs_s64, 0, 0 };
	static const struct obd_by_type neg_op = OBD_BY_WIDTH(neg_u16, neg_u32, neg_u64);
	enum obd_type t = obd_type_at(b, s, 0);

	if (obd_type_float(t) || t == OBD_T_F16X2 || t == OBD_T_BF16X2) {
		obd_lower_float2(b, s, which);
		return;
	}
	obd_operand_count(b, s, 2, 2);
	obd_emit(b, obd_by_type(b, s, which == OBD_ARITH_ABS ? &abs_op : &neg_op, t),
		obd_dst(b, s, 0, t), obd_src(b, s, 1, t), N, N);
}

static void lower_sad(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_operand_count(b, s, 4, 4);
	obd_emit(b, obd_by_type(b, s, &op_sad, t), obd_dst(b, s, 0, t), obd_src(b, s, 1, t),
		obd_src(b, s, 2, t), obd_src(b, s, 3, t));
}

const struct obd_opcode obd_opcodes_int[] = {
	{ "add", lower_addsub, OBD_ARITH_ADD },
	{ "sub", lower_addsub, OBD_ARITH_SUB },
	{ "addc", lower_carry_in, OBD_ARITH_ADD },
	{ "subc", lower_carry_in, OBD_ARITH_SUB },
	{ "mul", lower_mul, OBD_ARITH_MUL },
	{ "mad", lower_mad, 0 },
	{ "madc", lower_mad, 1 },
	{ "mul24", lower_mul24, 0 },
	{ "mad24", lower_mul24, 1 },
	{ "div", lower_divrem, OBD_ARITH_DIV },
	{ "rem", lower_divrem, OBD_ARITH_REM },
	{ "min", lower_minmax, OBD_ARITH_MIN },
	{ "max", lower_minmax, OBD_ARITH_MAX },
	{ "abs", lower_absneg, OBD_ARITH_ABS },
	{ "neg", lower_absneg, OBD_ARITH_NEG },
	{ "sad", lower_sad, 0 },
	{ 0 },
};
