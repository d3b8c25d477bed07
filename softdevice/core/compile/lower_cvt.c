/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cvt: common conversions have their own operations, all others a packed description. */
#include "softdevice/core/compile/lower.h"

#define N OBD_NONE

static bool is_pair(enum obd_type t)
{
	return t >= OBD_T_F16X2 && t <= OBD_T_E5M2X2;
}

static uint32_t mode_of(const struct obd_stmt *s)
{
	if (obd_q(s, OBD_Q_rni))
		return OBD_CVT_RNI;
	if (obd_q(s, OBD_Q_rzi))
		return OBD_CVT_RZI;
	if (obd_q(s, OBD_Q_rmi))
		return OBD_CVT_RMI;
	if (obd_q(s, OBD_Q_rpi))
		return OBD_CVT_RPI;
	if (obd_q(s, OBD_Q_rz))
		return OBD_CVT_RZ;
	if (obd_q(s, OBD_Q_rm))
		return OBD_CVT_RM;
	if (obd_q(s, OBD_Q_rp))
		return OBD_CVT_RP;
	if (obd_q(s, OBD_Q_rna))
		return OBD_CVT_RNA;
	return OBD_CVT_RN;
}

/* Integer to integer without saturation, by extension or truncation. */
static bool plain_integer(struct obd_builder *b, enum obd_type dt, enum obd_type st, uint32_t d,
	enum obd_type dreg, uint32_t v)
{
	uint32_t from = obd_type_bytes(st), to = obd_type_bytes(dt);
	bool sign = obd_type_signed(st);
	uint32_t x = v;

	if (from == 8) {
		if (to == 8) {
			obd_emit(b, OBD_OP_mov_64, d, v, N, N);
			return true;
		}
		x = obd_temp(b, OBD_T_U32);
		obd_emit(b, OBD_OP_lo_64, x, v, N, N);
	} else if (from < 4) { /* extend the source to 32 bits */
		x = obd_temp(b, OBD_T_U32);
		obd_emit(b,
			from == 1      ? (sign ? OBD_OP_sext8_32 : OBD_OP_zext8)
				: sign ? OBD_OP_sext16_32
				       : OBD_OP_zext16,
			x, v, N, N);
	}
	if (to == 8) {
		obd_emit(b, sign ? OBD_OP_sext32_64 : OBD_OP_zext32_64, d, x, N, N);
		return true;
	}
	/* a narrow result in a wider register is extended according to its own sign */
	uint32_t have = obd_type_bytes(dreg);

	if (to == 4)
		obd_emit(b, OBD_OP_mov_32, d, x, N, N);
	else if (to == 2)
		obd_emit(b, obd_type_signed(dt) && have >= 4 ? OBD_OP_sext16_32 : OBD_OP_zext16, d,
			x, N, N);
	else
		obd_emit(b,
			!obd_type_signed(dt) ? OBD_OP_zext8
				: have >= 4  ? OBD_OP_sext8_32
					     : OBD_OP_sext8_16,
			d, x, N, N);
	return true;
}

static uint32_t fast_op(enum obd_type dt, enum obd_type st, uint32_t mode)
{
	if (dt == OBD_T_F32 && st == OBD_T_S32 && mode == OBD_CVT_RN)
		return OBD_OP_cvt_f32_s32;
	if (dt == OBD_T_F64 && st == OBD_T_S32)
		return OBD_OP_cvt_f64_s32;
	if (dt == OBD_T_F64 && st == OBD_T_U32)
		return OBD_OP_cvt_f64_u32;
	if (dt == OBD_T_F64 && st == OBD_T_F32 && mode < OBD_CVT_RNI)
		return OBD_OP_cvt_f64_f32;
	if (dt == OBD_T_F32 && st == OBD_T_F64 && mode < OBD_CVT_RNA)
		return OBD_OP_cvt_f32_f64;
	if (dt == OBD_T_S32 && st == OBD_T_F32 && mode == OBD_CVT_RZI)
		return OBD_OP_cvt_s32_f32;
	if (dt == OBD_T_U32 && st == OBD_T_F32 && mode == OBD_CVT_RZI)
		return OBD_OP_cvt_u32_f32;
	if (dt == OBD_T_F32 && st == OBD_T_F16 && mode < OBD_CVT_RNI)
		return OBD_OP_cvt_f32_f16;
	if (dt == OBD_T_F32 && st == OBD_T_BF16 && mode < OBD_CVT_RNI)
		return OBD_OP_cvt_f32_bf16;
	if (dt == OBD_T_F16 && st == OBD_T_F32 && mode == OBD_CVT_RN)
		return OBD_OP_cvt_f16_f32;
	if (dt == OBD_T_BF16 && st == OBD_T_F32 && mode == OBD_CVT_RN)
		return OBD_OP_cvt_bf16_f32;
	if (dt == OBD_T_F32 && st == OBD_T_F32) {
		switch (mode) {
		case OBD_CVT_RNI:
			return OBD_OP_rint_f32;
		case OBD_CVT_RZI:
			return OBD_OP_trunc_f32;
		case OBD_CVT_RMI:
			return OBD_OP_floor_f32;
		case OBD_CVT_RPI:
			return OBD_OP_ceil_f32;
		default:
			return OBD_OP_mov_32;
		}
	}
	if (dt == OBD_T_F64 && st == OBD_T_F64) {
		switch (mode) {
		case OBD_CVT_RNI:
			return OBD_OP_rint_f64;
		case OBD_CVT_RZI:
			return OBD_OP_trunc_f64;
		case OBD_CVT_RMI:
			return OBD_OP_floor_f64;
		case OBD_CVT_RPI:
			return OBD_OP_ceil_f64;
		default:
			return OBD_OP_mov_64;
		}
	}
	return 0;
}

static uint32_t hardware_rounding(uint32_t mode)
{
	return mode == OBD_CVT_RZ    ? OBD_RZ
		: mode == OBD_CVT_RM ? OBD_RM
		: mode == OBD_CVT_RP ? OBD_RP
				     : OBD_RN;
}

static void lower_pair(
	struct obd_builder *b, struct obd_stmt *s, enum obd_type dt, enum obd_type st)
{
	uint32_t d = obd_dst(b, s, 0, dt),
		 code = OBD_CVT_CODE(
			 dt, st, mode_of(s), obd_q(s, OBD_Q_satfinite), 0, obd_q(s, OBD_Q_relu));
	uint32_t a = obd_src(b, s, 1, st), second = s->n_opd > 2 ? obd_src(b, s, 2, st) : a;

	obd_operand_count(b, s, is_pair(st) ? 2 : 3, is_pair(st) ? 2 : 3);
	obd_emit(b, OBD_OP_cvt, d, a, second, N)->imm = code;
}

static void lower_cvt(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type dt = obd_type_at(b, s, 0), st = obd_type_at(b, s, 1);
	uint32_t mode = mode_of(s), op;
	bool sat = obd_q(s, OBD_Q_sat) || obd_q(s, OBD_Q_satfinite), ftz = obd_q(s, OBD_Q_ftz),
	     relu = obd_q(s, OBD_Q_relu);

	(void)arg;
	if (is_pair(dt) || is_pair(st)) {
		lower_pair(b, s, dt, st);
		return;
	}
	obd_operand_count(b, s, 2, 2);
	if (s->opd[0].kind == OBD_OPD_SINK)
		return;
	if (s->opd[0].kind != OBD_OPD_REG)
		obd_invalid(b, s, "the destination must be a register");
	if (st == OBD_T_PRED || dt == OBD_T_PRED || st == OBD_T_B128 || dt == OBD_T_B128)
		obd_invalid(b, s, "invalid type for this instruction");
	enum obd_type dreg = s->opd[0].type;
	uint32_t v = obd_src(b, s, 1, st), d = s->opd[0].vreg, r = d;

	if (obd_type_class(dreg) != OBD_CLASS_32 && obd_type_class(dreg) != OBD_CLASS_64)
		obd_invalid(b, s, "the destination register has the wrong type");
	if (obd_type_class(dreg) != obd_type_class(dt)) /* a narrow value in a wide register */
		r = obd_temp(b, dt);
	if (obd_type_class(dreg) == OBD_CLASS_32 && obd_type_class(dt) == OBD_CLASS_64)
		obd_invalid(b, s, "the destination register is too small");
	bool ints = !obd_type_float(dt) && !obd_type_float(st);

	if (ints && !sat) {
		plain_integer(b, dt, st, r, r == d ? dreg : OBD_T_B32, v);
	} else if ((op = fast_op(dt, st, mode)) != 0 && !relu &&
		!(sat && dt != OBD_T_F32 && dt != OBD_T_F64 && obd_type_float(dt))) {
		if (ftz && st == OBD_T_F32) {
			uint32_t w = obd_temp(b, OBD_T_F32);

			obd_emit(b, OBD_OP_ftz_f32, w, v, N, N);
			v = w;
		}
		uint32_t x = r;

		b->round = dt == OBD_T_F32 && st == OBD_T_F64 ? hardware_rounding(mode) : OBD_RN;
		obd_emit(b, op, x, v, N, N);
		b->round = OBD_RN;
		if (ftz && dt == OBD_T_F32)
			obd_emit(b, OBD_OP_ftz_f32, x, x, N, N);
		if (sat && dt == OBD_T_F32)
			obd_emit(b, OBD_OP_sat_f32, x, x, N, N);
		if (sat && dt == OBD_T_F64)
			obd_emit(b, OBD_OP_sat_f64, x, x, N, N);
	} else {
		obd_emit(b, OBD_OP_cvt, r, v, N, N)->imm =
			OBD_CVT_CODE(dt, st, mode, sat, ftz, relu);
		if (obd_type_signed(dt) && obd_type_bytes(dt) < 4 &&
			obd_type_bytes(dreg) > obd_type_bytes(dt) && r == d)
			obd_emit(b,
				obd_type_bytes(dt) == 1
					? (obd_type_bytes(dreg) == 2 ? OBD_OP_sext8_16
								     : OBD_OP_sext8_32)
					: OBD_OP_sext16_32,
				d, d, N, N);
	}
	if (r != d) {
		if (obd_type_signed(dt) && obd_type_bytes(dt) < 4 && !(ints && !sat)) {
			uint32_t w = obd_temp(b, OBD_T_B32);

			obd_emit(b, obd_type_bytes(dt) == 1 ? OBD_OP_sext8_32 : OBD_OP_sext16_32, w,
				r, N, N);
			r = w;
		}
		obd_emit(b, obd_type_signed(dt) ? OBD_OP_sext32_64 : OBD_OP_zext32_64, d, r, N, N);
	}
}

const struct obd_opcode obd_opcodes_cvt[] = { { "cvt", lower_cvt, 0 }, { 0 } };
