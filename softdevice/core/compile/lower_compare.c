/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Comparisons and selection. */
#include "softdevice/core/compile/lower_float.h"

#define N OBD_NONE

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
		obd_invalid(b, s, "invalid comparison operator for this type");
	}
	obd_emit(b, op, p, swap ? y : x, swap ? x : y, N)->e_raw = neg;
}

/*
 * Emits p = x cmp y. Every comparison is one of a few operations, with the operands exchanged or
 * the result negated.
 */
static void compare(struct obd_builder *b, const struct obd_stmt *s, uint32_t cmp, enum obd_type t,
	uint32_t p, uint32_t x, uint32_t y)
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
		obd_invalid(b, s, "invalid comparison operator for this type");
	}
	obd_emit(b, op, p, swap ? y : x, swap ? x : y, N)->e_raw = neg;
}

/*
 * Prepares a source for comparison: widens 16-bit signed, f16 and bf16 values and flushes
 * subnormals. half: of a packed pair, 0 the low one, 1 the high one.
 */
static uint32_t comparison_source(struct obd_builder *b, const struct obd_stmt *s, uint32_t i,
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
			obd_emit(b, OBD_OP_ftz_h, w, v, N, N)->e_raw = obd_half_format(t);
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
 * Returns the predicate. *ret_negated is the same with the comparison negated.
 */
static uint32_t comparison(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	uint32_t half, bool with_negated, uint32_t *ret_negated)
{
	uint32_t combine = bool_op(s), p = obd_temp(b, OBD_T_PRED), r;
	enum obd_type ct;

	if (!s->n_order)
		obd_invalid(b, s, "missing comparison operator, such as .lt");
	obd_operand_count(b, s, combine ? 4 : 3, combine ? 4 : 3);
	uint32_t x = comparison_source(b, s, 1, t, half, &ct),
		 y = comparison_source(b, s, 2, t, half, &ct);

	compare(b, s, s->order[0], ct, p, x, y);
	if (with_negated) {
		*ret_negated = obd_temp(b, OBD_T_PRED);
		obd_emit(b, OBD_OP_pnot, *ret_negated, p, N, N);
	}
	if (!combine)
		return p;
	r = obd_pred_value(b, s, 3);
	uint32_t q = obd_temp(b, OBD_T_PRED);

	obd_emit(b, combine, q, p, r, N);
	if (with_negated) {
		uint32_t o = obd_temp(b, OBD_T_PRED);

		obd_emit(b, combine, o, *ret_negated, r, N);
		*ret_negated = o;
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
		uint32_t x = comparison_source(b, s, 1, t, 0, &ct),
			 y = comparison_source(b, s, 2, t, 0, &ct);

		compare(b, s, s->order[0], ct, d, x, y);
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
		obd_invalid(b, s, "the type of the result must have 16 or 32 bits");
	uint32_t p = comparison(b, s, t, 0, false, NULL);

	obd_emit(b, OBD_OP_selp_32, d, obd_const_new(b, OBD_CLASS_32, one, NULL), zero, p);
}

static void lower_selp(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	bool negated;

	(void)arg;
	obd_operand_count(b, s, 4, 4);
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t), p = obd_pred(b, s, 3, &negated);

	obd_emit(b, obd_type_class(t) == OBD_CLASS_64 ? OBD_OP_selp_64 : OBD_OP_selp_32,
		obd_dst(b, s, 0, t), negated ? y : x, negated ? x : y, p);
}

static void lower_slct(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0), ct = obd_type_at(b, s, 1);
	bool wide = obd_type_class(t) == OBD_CLASS_64;

	(void)arg;
	obd_operand_count(b, s, 4, 4);
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

const struct obd_opcode obd_opcodes_compare[] = {
	{ "setp", lower_setp, 0 },
	{ "set", lower_set, 0 },
	{ "selp", lower_selp, 0 },
	{ "slct", lower_slct, 0 },
	{ 0 },
};
