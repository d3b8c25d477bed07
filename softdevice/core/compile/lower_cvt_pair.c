/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cvt with packed operands. */
#include "softdevice/core/compile/lower_cvt.h"

#define N OBD_NONE

bool obd_cvt_is_pair(enum obd_type t)
{
	return t >= OBD_T_F16X2 && t <= OBD_T_E5M2X2;
}

/* Two f32 into one packed register; the first is the upper half. */
static void pack_halves(
	struct obd_builder *b, const struct obd_conversion *k, uint32_t d, uint32_t hi, uint32_t lo)
{
	bool bf16 = k->dt == OBD_T_BF16X2;
	struct obd_chain c = { .b = b, .v = hi, .type = OBD_T_F32 };

	if (obd_cvt_directed(k->mode)) {
		enum obd_type t = bf16 ? OBD_T_BF16 : OBD_T_F16;
		struct obd_chain other = { .b = b, .v = lo, .type = OBD_T_F32 };
		uint32_t upper = obd_temp(b, t);

		obd_chain_to_half(&c, t, k->mode);
		obd_chain_end(&c, upper);
		obd_chain_to_half(&other, t, k->mode);
		c = other;
		obd_chain_add(&c, OBD_OP_pack_32, OBD_T_U32)->second = upper;
	} else {
		obd_chain_add(&c, bf16 ? OBD_OP_cvt_bf16x2_f32 : OBD_OP_cvt_f16x2_f32, OBD_T_U32)
			->second = lo;
	}
	if (k->satfinite)
		obd_chain_add(&c, OBD_OP_finite_h, OBD_T_U32)->e = bf16;
	if (k->relu)
		obd_chain_add(&c, OBD_OP_relu_h, OBD_T_U32)->e = bf16;
	obd_chain_end(&c, d);
}

static uint32_t one_op(struct obd_builder *b, uint32_t op, enum obd_type t, uint32_t v)
{
	uint32_t r = obd_temp(b, t);

	obd_emit(b, op, r, v, N, N);
	return r;
}

/*
 * Between pairs of 8-bit floats and pairs of f16 or f32, to nearest even and .satfinite. The first
 * operand is the upper element. false: another conversion.
 */
static bool pair_of_bytes(
	struct obd_builder *b, const struct obd_conversion *k, uint32_t d, uint32_t hi, uint32_t lo)
{
	bool from = k->st == OBD_T_E4M3X2 || k->st == OBD_T_E5M2X2,
	     to = k->dt == OBD_T_E4M3X2 || k->dt == OBD_T_E5M2X2;

	if (k->mode != OBD_CVT_RN || from == to || (from && k->dt != OBD_T_F16X2) ||
		(to && k->st != OBD_T_F16X2 && k->st != OBD_T_F32))
		return false;
	if (from) {
		uint32_t r = k->relu ? obd_temp(b, OBD_T_U32) : d;

		obd_emit(b,
			k->st == OBD_T_E4M3X2 ? OBD_OP_cvt_f16x2_e4m3x2 : OBD_OP_cvt_f16x2_e5m2x2,
			r, hi, N, N);
		if (k->relu)
			obd_emit(b, OBD_OP_relu_h, d, r, N, N)->e_raw = 0;
		return true;
	}
	if (k->st == OBD_T_F16X2) {
		lo = one_op(b, OBD_OP_cvt_f32_f16, OBD_T_F32, hi);
		hi = one_op(b, OBD_OP_hi_32, OBD_T_U32, hi);
		hi = one_op(b, OBD_OP_cvt_f32_f16, OBD_T_F32, hi);
	}
	if (k->relu) {
		hi = one_op(b, OBD_OP_relu_f32, OBD_T_F32, hi);
		lo = one_op(b, OBD_OP_relu_f32, OBD_T_F32, lo);
	}
	obd_emit(b, k->dt == OBD_T_E4M3X2 ? OBD_OP_cvt_e4m3x2_f32 : OBD_OP_cvt_e5m2x2_f32, d, hi,
		lo, N);
	return true;
}

void obd_lower_cvt_narrow(struct obd_builder *b, struct obd_stmt *s, const struct obd_conversion *k)
{
	bool from = k->st >= OBD_T_E2M1X2, power = (from ? k->st : k->dt) == OBD_T_UE8M0X2;
	enum obd_type wide = from ? k->dt : k->st;
	uint32_t n = wide == OBD_T_F32 ? 3 : 2, d = obd_dst(b, s, 0, k->dt), a, second,
		 flags = from ? OBD_NARROW_FROM : 0;

	obd_operand_count(b, s, n, n);
	if (k->st > OBD_T_UE8M0X2 || k->dt > OBD_T_UE8M0X2)
		obd_invalid(b, s, "there are conversions of pairs only");
	if (power ? wide != OBD_T_BF16X2 && (from || wide != OBD_T_F32)
		  : wide != OBD_T_F16X2 && (from || wide != OBD_T_F32))
		obd_invalid(b, s, "invalid combination of types");
	if (!from && !power && wide != OBD_T_F32)
		obd_unsupported(b, s, "this combination of types");
	if (!from && power && k->mode != OBD_CVT_RZ && k->mode != OBD_CVT_RP)
		obd_invalid(b, s, "the rounding must be .rz or .rp");
	flags |= k->relu ? OBD_NARROW_RELU : 0;
	flags |= k->mode == OBD_CVT_RP ? OBD_NARROW_UP : 0;
	flags |= k->satfinite ? OBD_NARROW_FINITE : 0;
	a = obd_src(b, s, 1, k->st);
	second = n > 2 ? obd_src(b, s, 2, k->st) : a;
	obd_emit(b, OBD_OP_cvt_narrow, d, a, second, N)->imm =
		OBD_NARROW_CODE(from ? k->st : k->dt, wide, flags);
}

void obd_lower_cvt_pair(struct obd_builder *b, struct obd_stmt *s, const struct obd_conversion *k)
{
	uint32_t d = obd_dst(b, s, 0, k->dt), a, second;

	obd_operand_count(b, s, obd_cvt_is_pair(k->st) ? 2 : 3, obd_cvt_is_pair(k->st) ? 2 : 3);
	a = obd_src(b, s, 1, k->st);
	second = s->n_opd > 2 ? obd_src(b, s, 2, k->st) : a;
	if (k->st == OBD_T_F32 && (k->dt == OBD_T_F16X2 || k->dt == OBD_T_BF16X2) &&
		k->mode <= OBD_CVT_RP) {
		pack_halves(b, k, d, a, second);
		return;
	}
	if (pair_of_bytes(b, k, d, a, second))
		return;
	obd_emit(b, OBD_OP_cvt, d, a, second, N)->imm =
		OBD_CVT_CODE(k->dt, k->st, k->mode, k->satfinite, 0, k->relu);
}
