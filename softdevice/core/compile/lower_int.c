/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Integer arithmetic, logic, comparisons and selection. */
#include "softdevice/core/ptx/ptx.h"

#define N OBD_NONE

/* Operations by width and sign. 0: there is no such operation. */
struct by_type {
	uint16_t u16, s16, u32, s32, u64, s64, f32, f64;
};

static uint32_t choose(
	struct obd_builder *b, const struct obd_stmt *s, const struct by_type *o, enum obd_type t)
{
	uint32_t op = 0;

	switch (t) {
	case OBD_T_U16:
	case OBD_T_B16:
		op = o->u16;
		break;
	case OBD_T_S16:
		op = o->s16;
		break;
	case OBD_T_U32:
	case OBD_T_B32:
		op = o->u32;
		break;
	case OBD_T_S32:
		op = o->s32;
		break;
	case OBD_T_U64:
	case OBD_T_B64:
		op = o->u64;
		break;
	case OBD_T_S64:
		op = o->s64;
		break;
	case OBD_T_F32:
		op = o->f32;
		break;
	case OBD_T_F64:
		op = o->f64;
		break;
	default:
		break;
	}
	if (!op && !(o->u16 == 0 && t == OBD_T_NONE))
		obd_bad(b, s, "no such type");
	return op;
}

#define SAME(o16, o32, o64)                                                           \
	{                                                                             \
		OBD_OP_##o16, OBD_OP_##o16, OBD_OP_##o32, OBD_OP_##o32, OBD_OP_##o64, \
			OBD_OP_##o64, 0, 0                                            \
	}
#define SIX(u16, s16, u32, s32, u64, s64)                                             \
	{                                                                             \
		OBD_OP_##u16, OBD_OP_##s16, OBD_OP_##u32, OBD_OP_##s32, OBD_OP_##u64, \
			OBD_OP_##s64, 0, 0                                            \
	}

static const struct by_type op_add = SAME(add_u16, add_u32, add_u64),
			    op_sub = SAME(sub_u16, sub_u32, sub_u64);
static const struct by_type op_mul_lo = SAME(mul_u16, mul_u32, mul_u64);
static const struct by_type op_mul_hi =
	SIX(mulhi_u16, mulhi_s16, mulhi_u32, mulhi_s32, mulhi_u64, mulhi_s64);
static const struct by_type op_mad_lo = SAME(mad_u16, mad_u32, mad_u64);
static const struct by_type op_mad_hi =
	SIX(madhi_u16, madhi_s16, madhi_u32, madhi_s32, madhi_u64, madhi_s64);
static const struct by_type op_min = SIX(min_u32, min_s16, min_u32, min_s32, min_u64, min_s64);
static const struct by_type op_max = SIX(max_u32, max_s16, max_u32, max_s32, max_u64, max_s64);
static const struct by_type op_sad = SIX(sad_u16, sad_s16, sad_u32, sad_s32, sad_u64, sad_s64);
static const struct by_type op_shr = SIX(shr_u32, shr_s16, shr_u32, shr_s32, shr_u64, shr_s64);

/* Arithmetic opcodes that also have a floating-point form. */
void obd_lower_float2(struct obd_builder *b, struct obd_stmt *s, uint32_t arg);

enum { ADD, SUB, MUL, MAD, DIV, REM, MIN, MAX, ABS, NEG };

static void carry(struct obd_builder *b, const struct obd_stmt *s, uint32_t out, uint32_t in,
	uint32_t both, bool take)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool cc = obd_q(s, OBD_Q_cc);

	obd_want(b, s, 3, 3);
	obd_emit(b, take ? (cc ? both : in) : out, obd_dst(b, s, 0, t), obd_src(b, s, 1, t),
		obd_src(b, s, 2, t), N);
}

static void lower_addsub(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool wide = obd_type_class(t) == OBD_CLASS_64;

	if (obd_type_float(t) || t == OBD_T_F16X2 || t == OBD_T_BF16X2) {
		obd_lower_float2(b, s, which);
		return;
	}
	if (obd_q(s, OBD_Q_cc)) {
		if (which == ADD)
			carry(b, s, wide ? OBD_OP_addcc_64 : OBD_OP_addcc_32, 0, 0, false);
		else
			carry(b, s, wide ? OBD_OP_subcc_64 : OBD_OP_subcc_32, 0, 0, false);
		return;
	}
	obd_want(b, s, 3, 3);
	uint32_t op = t == OBD_T_U16X2 || t == OBD_T_S16X2
		? OBD_OP_addh_u16x2
		: choose(b, s, which == ADD ? &op_add : &op_sub, t);

	if (op == OBD_OP_addh_u16x2 && which == SUB)
		obd_bad(b, s, "no such type");
	if (obd_q(s, OBD_Q_sat)) {
		if (t != OBD_T_S32)
			obd_bad(b, s, ".sat needs .s32");
		op = which == ADD ? OBD_OP_addsat_s32 : OBD_OP_subsat_s32;
	}
	obd_emit(b, op, obd_dst(b, s, 0, t), obd_src(b, s, 1, t), obd_src(b, s, 2, t), N);
}

static void lower_carry_in(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	bool wide = obd_type_class(obd_type_at(b, s, 0)) == OBD_CLASS_64;

	if (which == ADD)
		carry(b, s, 0, wide ? OBD_OP_addc_64 : OBD_OP_addc_32,
			wide ? OBD_OP_addccc_64 : OBD_OP_addccc_32, true);
	else
		carry(b, s, 0, wide ? OBD_OP_subc_64 : OBD_OP_subc_32,
			wide ? OBD_OP_subccc_64 : OBD_OP_subccc_32, true);
}

static void lower_mul(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);

	if (obd_type_float(t) || t == OBD_T_F16X2 || t == OBD_T_BF16X2) {
		obd_lower_float2(b, s, which);
		return;
	}
	obd_want(b, s, 3, 3);
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t);

	if (obd_q(s, OBD_Q_wide)) {
		bool is16 = obd_type_bytes(t) == 2, sign = obd_type_signed(t);

		if (obd_type_bytes(t) > 4)
			obd_bad(b, s, ".wide needs a 16- or 32-bit type");
		obd_emit(b,
			is16           ? (sign ? OBD_OP_mulw_s16 : OBD_OP_mul_u32)
				: sign ? OBD_OP_mulw_s32
				       : OBD_OP_mulw_u32,
			obd_dst(b, s, 0, is16 ? OBD_T_U32 : OBD_T_U64), x, y, N);
		return;
	}
	obd_emit(b, choose(b, s, obd_q(s, OBD_Q_hi) ? &op_mul_hi : &op_mul_lo, t),
		obd_dst(b, s, 0, t), x, y, N);
}

static uint32_t mad_carry_op(
	struct obd_builder *b, const struct obd_stmt *s, enum obd_type t, bool in, bool out)
{
	bool hi = obd_q(s, OBD_Q_hi), wide = obd_type_class(t) == OBD_CLASS_64,
	     sign = obd_type_signed(t);

	if (obd_type_bytes(t) < 4)
		obd_bad(b, s, "carry needs a 32- or 64-bit type");
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
		obd_lower_float2(b, s, MAD);
		return;
	}
	obd_want(b, s, 4, 4);
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t);

	if (obd_q(s, OBD_Q_wide)) {
		bool is16 = obd_type_bytes(t) == 2, sign = obd_type_signed(t);
		enum obd_type wt = is16 ? OBD_T_U32 : OBD_T_U64;
		uint32_t z = obd_src(b, s, 3, wt), d = obd_dst(b, s, 0, wt);

		if (obd_type_bytes(t) > 4 || which || cc)
			obd_bad(b, s, ".wide does not go with this");
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
		op = choose(b, s, obd_q(s, OBD_Q_hi) ? &op_mad_hi : &op_mad_lo, t);
	obd_emit(b, op, obd_dst(b, s, 0, t), x, y, z);
}

/* which: 0 mul24, 1 mad24 */
static void lower_mul24(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool sign = obd_type_signed(t), hi = obd_q(s, OBD_Q_hi);
	uint32_t d = obd_dst(b, s, 0, t), m = which ? obd_temp(b, t) : d;

	obd_want(b, s, 3 + which, 3 + which);
	if (obd_type_bytes(t) != 4)
		obd_bad(b, s, "needs a 32-bit type");
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
static uint32_t widened(
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
	static const struct by_type div = SIX(div_u32, div_s32, div_u32, div_s32, div_u64, div_s64);
	static const struct by_type rem = SIX(rem_u32, rem_s32, rem_u32, rem_s32, rem_u64, rem_s64);
	enum obd_type t = obd_type_at(b, s, 0);

	if (obd_type_float(t)) {
		obd_lower_float2(b, s, DIV);
		return;
	}
	obd_want(b, s, 3, 3);
	uint32_t d = obd_dst(b, s, 0, t), x = widened(b, s, 1, t), y = widened(b, s, 2, t);

	obd_emit(b, choose(b, s, which == DIV ? &div : &rem, t), d, x, y, N);
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
	obd_want(b, s, 3, 4);
	uint32_t d = obd_dst(b, s, 0, t), op;

	if (t == OBD_T_U16X2)
		op = which == MIN ? OBD_OP_min_u16x2 : OBD_OP_max_u16x2;
	else if (t == OBD_T_S16X2)
		op = which == MIN ? OBD_OP_min_s16x2 : OBD_OP_max_s16x2;
	else
		op = choose(b, s, which == MIN ? &op_min : &op_max, t);
	obd_emit(b, op, d, obd_src(b, s, 1, t), obd_src(b, s, 2, t), N);
	if (obd_q(s, OBD_Q_relu))
		obd_emit(b, t == OBD_T_S16X2 ? OBD_OP_relu_16x2 : OBD_OP_relu_32, d, d, N, N);
}

static void lower_absneg(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	static const struct by_type abs_op = { 0, OBD_OP_abs_s16, 0, OBD_OP_abs_s32, 0,
		OBD_OP_abs_s64, 0, 0 };
	static const struct by_type neg_op = SAME(neg_u16, neg_u32, neg_u64);
	enum obd_type t = obd_type_at(b, s, 0);

	if (obd_type_float(t) || t == OBD_T_F16X2 || t == OBD_T_BF16X2) {
		obd_lower_float2(b, s, which);
		return;
	}
	obd_want(b, s, 2, 2);
	obd_emit(b, choose(b, s, which == ABS ? &abs_op : &neg_op, t), obd_dst(b, s, 0, t),
		obd_src(b, s, 1, t), N, N);
}

static void lower_sad(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_want(b, s, 4, 4);
	obd_emit(b, choose(b, s, &op_sad, t), obd_dst(b, s, 0, t), obd_src(b, s, 1, t),
		obd_src(b, s, 2, t), obd_src(b, s, 3, t));
}

/* ---- bits ---- */

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

	obd_want(b, s, unary ? 2 : 3, unary ? 2 : 3);
	if (t == OBD_T_PRED) {
		if (which == CNOT)
			obd_bad(b, s, "no such type");
		uint32_t x = obd_pred_value(b, s, 1), y = unary ? N : obd_pred_value(b, s, 2);

		obd_emit(b, opsp[which], obd_dst(b, s, 0, t), x, y, N);
		return;
	}
	if (obd_type_float(t))
		obd_bad(b, s, "no such type");
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

	obd_want(b, s, 3, 3);
	if (which)
		op = choose(b, s, &op_shr, t);
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
	obd_want(b, s, 4, 4);
	obd_emit(b,
		left           ? (wrap ? OBD_OP_shf_lw : OBD_OP_shf_lc)
			: wrap ? OBD_OP_shf_rw
			       : OBD_OP_shf_rc,
		obd_dst(b, s, 0, OBD_T_B32), obd_src(b, s, 1, OBD_T_B32),
		obd_src(b, s, 2, OBD_T_B32), obd_src(b, s, 3, OBD_T_U32));
}

static void lower_bfe(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	static const struct by_type op = { 0, 0, OBD_OP_bfe_u32, OBD_OP_bfe_s32, OBD_OP_bfe_u64,
		OBD_OP_bfe_s64, 0, 0 };
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_want(b, s, 4, 4);
	obd_emit(b, choose(b, s, &op, t), obd_dst(b, s, 0, t), obd_src(b, s, 1, t),
		obd_src(b, s, 2, OBD_T_U32), obd_src(b, s, 3, OBD_T_U32));
}

static void lower_bfi(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_want(b, s, 5, 5);
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
	obd_want(b, s, 3, 3);
	obd_emit(b, obd_type_signed(t) ? OBD_OP_szext_s32 : OBD_OP_szext_u32, obd_dst(b, s, 0, t),
		obd_src(b, s, 1, t), obd_src(b, s, 2, OBD_T_U32), N)
		->e_raw = obd_q(s, OBD_Q_wrap);
}

static void lower_bmsk(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	(void)arg;
	obd_want(b, s, 3, 3);
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

	obd_want(b, s, 2, 2);
	obd_emit(b, ops[which][wide], obd_dst(b, s, 0, which == BREV ? t : OBD_T_U32),
		obd_src(b, s, 1, t), N, N);
}

static void lower_bfind(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	static const struct by_type find = { 0, 0, OBD_OP_bfind_u32, OBD_OP_bfind_s32,
		OBD_OP_bfind_u64, OBD_OP_bfind_s64, 0, 0 };
	static const struct by_type shift = { 0, 0, OBD_OP_bfind_shift_u32, OBD_OP_bfind_shift_s32,
		OBD_OP_bfind_shift_u64, OBD_OP_bfind_shift_s64, 0, 0 };
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_want(b, s, 2, 2);
	obd_emit(b, choose(b, s, obd_q(s, OBD_Q_shiftamt) ? &shift : &find, t),
		obd_dst(b, s, 0, OBD_T_U32), obd_src(b, s, 1, t), N, N);
}

static void lower_three32(struct obd_builder *b, struct obd_stmt *s, uint32_t op)
{
	obd_want(b, s, 4, 4);
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
	obd_want(b, s, 5, 6);
	if (s->opd[4].kind != OBD_OPD_IMM)
		obd_bad(b, s, "the table must be a number");
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

	obd_want(b, s, 4, 4);
	if (set) {
		at = dt;
		cmp = s->n_order ? (uint32_t)s->order[0] - OBD_Q_eq : 6;
		if (cmp > 5)
			obd_bad(b, s, "a comparison is missing");
	}
	what = arg | (uint32_t)obd_type_signed(at) << 4 | (uint32_t)obd_q(s, OBD_Q_sat) << 5 |
		(uint32_t)obd_q(s, OBD_Q_add) << 6 | cmp << 8;
	lower_three32(b, s, OBD_OP_simd_video);
	b->code[b->n_code - 1].e_raw = (uint16_t)what;
}

/* ---- comparisons ---- */

/*
 * Emits p = x cmp y. Every comparison is one of a few operations, with the operands exchanged or
 * the result negated.
 */
void obd_lower_compare(struct obd_builder *b, const struct obd_stmt *s, uint32_t cmp,
	enum obd_type t, uint32_t p, uint32_t x, uint32_t y);

static void compare_float(struct obd_builder *b, const struct obd_stmt *s, uint32_t cmp, bool wide,
	uint32_t p, uint32_t x, uint32_t y)
{
	uint32_t eq = wide ? OBD_OP_eq_f64 : OBD_OP_eq_f32,
		 lt = wide ? OBD_OP_lt_f64 : OBD_OP_lt_f32,
		 le = wide ? OBD_OP_le_f64 : OBD_OP_le_f32,
		 un = wide ? OBD_OP_un_f64 : OBD_OP_un_f32,
		 equ = wide ? OBD_OP_equ_f64 : OBD_OP_equ_f32, op;
	bool swap = false, neg = false;

	switch (cmp) {
	case OBD_Q_eq:
		op = eq;
		break;
	case OBD_Q_ne:
		op = equ;
		neg = true;
		break;
	case OBD_Q_lt:
		op = lt;
		break;
	case OBD_Q_le:
		op = le;
		break;
	case OBD_Q_gt:
		op = lt;
		swap = true;
		break;
	case OBD_Q_ge:
		op = le;
		swap = true;
		break;
	case OBD_Q_equ:
		op = equ;
		break;
	case OBD_Q_neu:
		op = eq;
		neg = true;
		break;
	case OBD_Q_ltu:
		op = le;
		swap = neg = true;
		break;
	case OBD_Q_leu:
		op = lt;
		swap = neg = true;
		break;
	case OBD_Q_gtu:
		op = le;
		neg = true;
		break;
	case OBD_Q_geu:
		op = lt;
		neg = true;
		break;
	case OBD_Q_num:
		op = un;
		neg = true;
		break;
	case OBD_Q_nan:
		op = un;
		break;
	default:
		obd_bad(b, s, "no such comparison");
	}
	obd_emit(b, op, p, swap ? y : x, swap ? x : y, N)->e_raw = neg;
}

void obd_lower_compare(struct obd_builder *b, const struct obd_stmt *s, uint32_t cmp,
	enum obd_type t, uint32_t p, uint32_t x, uint32_t y)
{
	bool wide = obd_type_class(t) == OBD_CLASS_64, sign = obd_type_signed(t), swap = false,
	     neg = false;
	uint32_t lt = wide ? (sign ? OBD_OP_lt_s64 : OBD_OP_lt_u64)
		: sign     ? OBD_OP_lt_s32
			   : OBD_OP_lt_u32;
	uint32_t le = wide ? (sign ? OBD_OP_le_s64 : OBD_OP_le_u64)
		: sign     ? OBD_OP_le_s32
			   : OBD_OP_le_u32;
	uint32_t eq = wide ? OBD_OP_eq_64 : OBD_OP_eq_32, op;

	if (obd_type_float(t)) {
		compare_float(b, s, cmp, wide, p, x, y);
		return;
	}
	switch (cmp) {
	case OBD_Q_eq:
		op = eq;
		break;
	case OBD_Q_ne:
		op = eq;
		neg = true;
		break;
	case OBD_Q_lt:
	case OBD_Q_lo:
		op = lt;
		break;
	case OBD_Q_le:
	case OBD_Q_ls:
		op = le;
		break;
	case OBD_Q_gt:
	case OBD_Q_hi:
		op = lt;
		swap = true;
		break;
	case OBD_Q_ge:
	case OBD_Q_hs:
		op = le;
		swap = true;
		break;
	default:
		obd_bad(b, s, "no such comparison");
	}
	obd_emit(b, op, p, swap ? y : x, swap ? x : y, N)->e_raw = neg;
}

/*
 * Prepares a source for comparison: widens 16-bit signed, f16 and bf16 values and flushes
 * subnormals. half: of a packed pair, 0 the low one, 1 the high one.
 */
static uint32_t comparable(struct obd_builder *b, const struct obd_stmt *s, uint32_t i,
	enum obd_type t, uint32_t half, enum obd_type *ret_type)
{
	uint32_t v = obd_src(b, s, i, t), w;

	*ret_type = t;
	switch (t) {
	case OBD_T_S16:
		*ret_type = OBD_T_S32;
		w = obd_temp(b, OBD_T_S32);
		obd_emit(b, OBD_OP_sext16_32, w, v, N, N);
		return w;
	case OBD_T_F16:
	case OBD_T_BF16:
	case OBD_T_F16X2:
	case OBD_T_BF16X2:
		*ret_type = OBD_T_F32;
		if (obd_q(s, OBD_Q_ftz)) {
			w = obd_temp(b, t);
			obd_emit(b, OBD_OP_ftz_h, w, v, N, N)->e_raw = obd_half_how(t);
			v = w;
		}
		if (half) {
			w = obd_temp(b, OBD_T_B32);
			obd_emit(b, OBD_OP_hi_32, w, v, N, N);
			v = w;
		}
		w = obd_temp(b, OBD_T_F32);
		obd_emit(b,
			t == OBD_T_F16 || t == OBD_T_F16X2 ? OBD_OP_cvt_f32_f16
							   : OBD_OP_cvt_f32_bf16,
			w, v, N, N);
		return w;
	case OBD_T_F32:
		if (!obd_q(s, OBD_Q_ftz))
			return v;
		w = obd_temp(b, OBD_T_F32);
		obd_emit(b, OBD_OP_ftz_f32, w, v, N, N);
		return w;
	default:
		return v;
	}
}

static uint32_t bool_op(const struct obd_stmt *s)
{
	for (uint32_t i = 1; i < s->n_order; i++)
		if (s->order[i] >= OBD_Q_and && s->order[i] <= OBD_Q_xor)
			return s->order[i] == OBD_Q_and   ? OBD_OP_pand
				: s->order[i] == OBD_Q_or ? OBD_OP_por
							  : OBD_OP_pxor;
	return 0;
}

/*
 * Emits the comparison of operands 1 and 2, combined with operand 3 if there is a boolean operator.
 * Returns the predicate. *ret_other is the same with the comparison negated.
 */
static uint32_t comparison(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	uint32_t half, bool want_other, uint32_t *ret_other)
{
	uint32_t combine = bool_op(s), p = obd_temp(b, OBD_T_PRED), r;
	enum obd_type ct;

	if (!s->n_order)
		obd_bad(b, s, "a comparison is missing");
	obd_want(b, s, combine ? 4 : 3, combine ? 4 : 3);
	uint32_t x = comparable(b, s, 1, t, half, &ct), y = comparable(b, s, 2, t, half, &ct);

	obd_lower_compare(b, s, s->order[0], ct, p, x, y);
	if (want_other) {
		*ret_other = obd_temp(b, OBD_T_PRED);
		obd_emit(b, OBD_OP_pnot, *ret_other, p, N, N);
	}
	if (!combine)
		return p;
	r = obd_pred_value(b, s, 3);
	uint32_t q = obd_temp(b, OBD_T_PRED);

	obd_emit(b, combine, q, p, r, N);
	if (want_other) {
		uint32_t o = obd_temp(b, OBD_T_PRED);

		obd_emit(b, combine, o, *ret_other, r, N);
		*ret_other = o;
	}
	return q;
}

static void lower_setp(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool pair = t == OBD_T_F16X2 || t == OBD_T_BF16X2,
	     second = s->n_opd && (s->opd[0].pair != N || s->opd[0].pair_sink);
	uint32_t other = N, p, d = obd_dst(b, s, 0, OBD_T_PRED);

	(void)arg;
	/* write the comparison directly to the destination */
	if (!bool_op(s) && !second && !pair && s->n_order && s->n_opd == 3) {
		enum obd_type ct;
		uint32_t x = comparable(b, s, 1, t, 0, &ct), y = comparable(b, s, 2, t, 0, &ct);

		obd_lower_compare(b, s, s->order[0], ct, d, x, y);
		return;
	}
	p = comparison(b, s, t, 0, second && !pair, &other);
	if (pair)
		other = comparison(b, s, t, 1, false, NULL);
	obd_emit(b, OBD_OP_pmov, d, p, N, N);
	if (s->opd[0].pair != N)
		obd_emit(b, OBD_OP_pmov, s->opd[0].pair, other, N, N);
}

static void lower_set(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type dt = obd_type_at(b, s, 0), t = obd_type_at(b, s, 1);
	uint64_t one = dt == OBD_T_F32    ? 0x3f800000
		: dt == OBD_T_F16         ? 0x3c00
		: dt == OBD_T_BF16        ? 0x3f80
		: dt == OBD_T_F16X2       ? 0x3c00
		: dt == OBD_T_BF16X2      ? 0x3f80
		: obd_type_bytes(dt) == 2 ? 0xffff
					  : 0xffffffff;
	uint32_t d = obd_dst(b, s, 0, dt), zero = obd_const_new(b, OBD_CLASS_32, 0, NULL);

	(void)arg;
	if (t == OBD_T_F16X2 || t == OBD_T_BF16X2) {
		uint32_t lo = obd_temp(b, OBD_T_B32), hi = obd_temp(b, OBD_T_B32), unit;

		if (dt != OBD_T_F16X2 && dt != OBD_T_BF16X2)
			one = 0xffff;
		unit = obd_const_new(b, OBD_CLASS_32, one, NULL);
		uint32_t pl = comparison(b, s, t, 0, false, NULL),
			 ph = comparison(b, s, t, 1, false, NULL);

		obd_emit(b, OBD_OP_selp_32, lo, unit, zero, pl);
		obd_emit(b, OBD_OP_selp_32, hi, unit, zero, ph);
		obd_emit(b, OBD_OP_pack_32, d, lo, hi, N);
		return;
	}
	if (obd_type_class(dt) != OBD_CLASS_32)
		obd_bad(b, s, "the result has 16 or 32 bits");
	uint32_t p = comparison(b, s, t, 0, false, NULL);

	obd_emit(b, OBD_OP_selp_32, d, obd_const_new(b, OBD_CLASS_32, one, NULL), zero, p);
}

static void lower_selp(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool negated;

	(void)arg;
	obd_want(b, s, 4, 4);
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t), p = obd_pred(b, s, 3, &negated);

	obd_emit(b, obd_type_class(t) == OBD_CLASS_64 ? OBD_OP_selp_64 : OBD_OP_selp_32,
		obd_dst(b, s, 0, t), negated ? y : x, negated ? x : y, p);
}

static void lower_slct(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0), ct = obd_type_at(b, s, 1);
	bool wide = obd_type_class(t) == OBD_CLASS_64;

	(void)arg;
	obd_want(b, s, 4, 4);
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t), c = obd_src(b, s, 3, ct),
		 d = obd_dst(b, s, 0, t);

	if (ct == OBD_T_F32) { /* c >= 0, so that -0 selects a and NaN selects b */
		uint32_t p = obd_temp(b, OBD_T_PRED);

		if (obd_q(s, OBD_Q_ftz)) {
			uint32_t flushed = obd_temp(b, OBD_T_F32);

			obd_emit(b, OBD_OP_ftz_f32, flushed, c, N, N);
			c = flushed;
		}
		obd_emit(b, OBD_OP_le_f32, p, obd_const_new(b, OBD_CLASS_32, 0, NULL), c, N);
		obd_emit(b, wide ? OBD_OP_selp_64 : OBD_OP_selp_32, d, x, y, p);
		return;
	}
	obd_emit(b, wide ? OBD_OP_slct_64 : OBD_OP_slct_32, d, x, y, c);
}

const struct obd_opcode obd_opcodes_int[] = {
	{ "add", lower_addsub, ADD },
	{ "sub", lower_addsub, SUB },
	{ "addc", lower_carry_in, ADD },
	{ "subc", lower_carry_in, SUB },
	{ "mul", lower_mul, MUL },
	{ "mad", lower_mad, 0 },
	{ "madc", lower_mad, 1 },
	{ "mul24", lower_mul24, 0 },
	{ "mad24", lower_mul24, 1 },
	{ "div", lower_divrem, DIV },
	{ "rem", lower_divrem, REM },
	{ "min", lower_minmax, MIN },
	{ "max", lower_minmax, MAX },
	{ "abs", lower_absneg, ABS },
	{ "neg", lower_absneg, NEG },
	{ "sad", lower_sad, 0 },
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
	{ "setp", lower_setp, 0 },
	{ "set", lower_set, 0 },
	{ "selp", lower_selp, 0 },
	{ "slct", lower_slct, 0 },
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
