/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cvt. Most conversions are a chain of operations: an integer source is extended, a 16-bit float
 * widened, then rounded to an integer or clamped as the modifiers say, then converted. All others
 * are one operation with a packed description (engine/cvt.c).
 */
#include "softdevice/core/compile/lower_cvt.h"

#define N OBD_NONE

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

static void chain_emit(struct obd_chain *c, uint32_t d)
{
	c->b->round = c->round;
	obd_emit(c->b, c->op, d, c->v, c->second, N)->e_raw = c->e;
	c->b->round = OBD_RN;
	c->pending = false;
}

struct obd_chain *obd_chain_add(struct obd_chain *c, uint32_t op, enum obd_type type)
{
	if (c->pending) {
		uint32_t t = obd_temp(c->b, c->type);

		chain_emit(c, t);
		c->v = t;
	}
	c->pending = true;
	c->op = op;
	c->type = type;
	c->second = N;
	c->round = OBD_RN;
	c->e = 0;
	return c;
}

void obd_chain_end(struct obd_chain *c, uint32_t d)
{
	if (!c->pending)
		obd_chain_add(
			c, obd_type_bytes(c->type) == 8 ? OBD_OP_mov_64 : OBD_OP_mov_32, c->type);
	chain_emit(c, d);
}

/* The same as op with an integer constant as second operand. */
static void chain_constant(struct obd_chain *c, uint32_t op, enum obd_type type, uint64_t value)
{
	obd_chain_add(c, op, type)->second = obd_const_new(c->b, obd_type_class(type), value, NULL);
}

static bool is_half(enum obd_type t)
{
	return t == OBD_T_F16 || t == OBD_T_BF16;
}

bool obd_cvt_directed(uint32_t mode)
{
	return mode == OBD_CVT_RZ || mode == OBD_CVT_RM || mode == OBD_CVT_RP;
}

static uint32_t direction(uint32_t mode)
{
	return mode == OBD_CVT_RZ    ? OBD_RZ
		: mode == OBD_CVT_RM ? OBD_RM
		: mode == OBD_CVT_RP ? OBD_RP
				     : OBD_RN;
}

void obd_chain_to_half(struct obd_chain *c, enum obd_type dt, uint32_t mode)
{
	bool f16 = dt == OBD_T_F16;
	uint32_t plain = f16 ? OBD_OP_cvt_f16_f32 : OBD_OP_cvt_bf16_f32,
		 other = f16 ? OBD_OP_cvt_f16m_f32 : OBD_OP_cvt_bf16m_f32;

	obd_chain_add(c, obd_cvt_directed(mode) ? other : plain, dt)->e = (uint16_t)direction(mode);
}

/* Extends a narrow integer to 32 bits. *type becomes the type of the result. */
static void widen(struct obd_chain *c, enum obd_type *type)
{
	uint32_t bytes = obd_type_bytes(*type);
	bool sign = obd_type_signed(*type);

	if (bytes >= 4)
		return;
	obd_chain_add(c,
		bytes == 1     ? (sign ? OBD_OP_sext8_32 : OBD_OP_zext8)
			: sign ? OBD_OP_sext16_32
			       : OBD_OP_zext16,
		OBD_T_U32);
	*type = OBD_T_S32; /* the value of an unsigned one fits */
}

/*
 * Clamps a 32-bit or 64-bit integer of type st to the range of dt; the result keeps type st.
 * Bounds that st cannot pass are left out.
 */
static void clamp(struct obd_chain *c, enum obd_type dt, enum obd_type st)
{
	bool wide = obd_type_bytes(st) == 8, sign = obd_type_signed(st);
	uint32_t bits = obd_type_bytes(dt) * 8, have = wide ? 64 : 32;
	enum obd_type t = wide ? OBD_T_U64 : OBD_T_U32;
	uint64_t most = UINT64_MAX >> (64 - bits + obd_type_signed(dt)),
		 ours = UINT64_MAX >> (64 - have + sign);

	if (sign && (!obd_type_signed(dt) || bits < have)) {
		uint64_t least = obd_type_signed(dt) ? ~most : 0;

		chain_constant(c, wide ? OBD_OP_max_s64 : OBD_OP_max_s32, t,
			wide ? least : (uint32_t)least);
	}
	if (most < ours)
		chain_constant(c,
			wide           ? (sign ? OBD_OP_min_s64 : OBD_OP_min_u64)
				: sign ? OBD_OP_min_s32
				       : OBD_OP_min_u32,
			t, most);
}

/* From an integer to a float; false: the chain has no operations for it. */
static bool from_integer(struct obd_chain *c, const struct obd_conversion *k)
{
	enum obd_type st = k->st;
	bool half = is_half(k->dt), wide = obd_type_bytes(st) == 8, narrow = obd_type_bytes(st) < 4;

	if (k->mode > OBD_CVT_RP || k->relu || k->satfinite || (half && k->sat) ||
		(k->dt != OBD_T_F32 && k->dt != OBD_T_F64 && !half) ||
		(k->dt == OBD_T_BF16 && wide))
		return false;
	widen(c, &st);
	bool sign = obd_type_signed(st);

	if (half && k->dt == OBD_T_BF16 && !narrow) {
		obd_chain_add(c, sign ? OBD_OP_cvt_f64_s32 : OBD_OP_cvt_f64_u32, OBD_T_F64);
		obd_chain_add(c, OBD_OP_odd_f32_f64, OBD_T_F32);
		obd_chain_to_half(c, k->dt, k->mode);
		return true;
	}
	if (half) {
		/* 2^18 and more are all rounded alike, and fewer bits are exact in f32 */
		if (sign && !narrow)
			chain_constant(c, wide ? OBD_OP_max_s64 : OBD_OP_max_s32,
				wide ? OBD_T_S64 : OBD_T_S32,
				wide ? 0ull - (1 << 18) : 0u - (1 << 18));
		if (!narrow)
			chain_constant(c,
				wide           ? (sign ? OBD_OP_min_s64 : OBD_OP_min_u64)
					: sign ? OBD_OP_min_s32
					       : OBD_OP_min_u32,
				wide ? OBD_T_S64 : OBD_T_S32, 1 << 18);
		if (wide)
			obd_chain_add(c, OBD_OP_lo_64, OBD_T_S32);
		obd_chain_add(c, OBD_OP_cvt_f32_s32, OBD_T_F32);
		obd_chain_to_half(c, k->dt, k->mode);
		return true;
	}
	static const uint16_t ops[2][2][2] = {
		{ { OBD_OP_cvt_f32_u32, OBD_OP_cvt_f32_s32 },
			{ OBD_OP_cvt_f32_u64, OBD_OP_cvt_f32_s64 } },
		{ { OBD_OP_cvt_f64_u32, OBD_OP_cvt_f64_s32 },
			{ OBD_OP_cvt_f64_u64, OBD_OP_cvt_f64_s64 } },
	};
	bool f64 = k->dt == OBD_T_F64;

	/* the rounding prefix is slow: not for conversions that are exact */
	obd_chain_add(c, ops[f64][wide][sign], k->dt)->round =
		narrow || (f64 && !wide) ? OBD_RN : direction(k->mode);
	if (k->sat)
		obd_chain_add(c, f64 ? OBD_OP_sat_f64 : OBD_OP_sat_f32, k->dt);
	return true;
}

/* Rounds to an integral value of the same type. */
static void round_integral(struct obd_chain *c, uint32_t mode)
{
	static const uint16_t ops[4][2] = {
		{ OBD_OP_rint_f32, OBD_OP_rint_f64 },
		{ OBD_OP_trunc_f32, OBD_OP_trunc_f64 },
		{ OBD_OP_floor_f32, OBD_OP_floor_f64 },
		{ OBD_OP_ceil_f32, OBD_OP_ceil_f64 },
	};
	uint32_t which = mode == OBD_CVT_RZI || mode == OBD_CVT_RZ ? 1
		: mode == OBD_CVT_RMI || mode == OBD_CVT_RM        ? 2
		: mode == OBD_CVT_RPI || mode == OBD_CVT_RP        ? 3
								   : 0;

	obd_chain_add(c, ops[which][c->type == OBD_T_F64], c->type);
}

static void to_integer(struct obd_chain *c, const struct obd_conversion *k)
{
	static const uint16_t ops[2][2][2] = {
		{ { OBD_OP_cvt_u32_f32, OBD_OP_cvt_s32_f32 },
			{ OBD_OP_cvt_u64_f32, OBD_OP_cvt_s64_f32 } },
		{ { OBD_OP_cvt_u32_f64, OBD_OP_cvt_s32_f64 },
			{ OBD_OP_cvt_u64_f64, OBD_OP_cvt_s64_f64 } },
	};
	bool f64 = c->type == OBD_T_F64, sign = obd_type_signed(k->dt);
	uint32_t bytes = obd_type_bytes(k->dt);

	if (k->mode != OBD_CVT_RZI) /* the conversion rounds toward zero */
		round_integral(c, k->mode);
	if (bytes >= 4)
		obd_chain_add(c, ops[f64][bytes == 8][sign], k->dt);
	else
		obd_chain_add(c, f64 ? OBD_OP_cvt_small_f64 : OBD_OP_cvt_small_f32, OBD_T_U32)->e =
			OBD_SMALL(bytes * 8, sign);
}

/* From a float; false: the chain has no operations for it. */
static bool from_float(struct obd_chain *c, const struct obd_conversion *k)
{
	bool integer = !obd_type_float(k->dt), half = is_half(k->dt);

	if ((k->st != OBD_T_F32 && k->st != OBD_T_F64 && !is_half(k->st)) ||
		(!integer && k->dt != OBD_T_F32 && k->dt != OBD_T_F64 && !half &&
			(k->dt != OBD_T_TF32 || k->st != OBD_T_F32)) ||
		(!integer && k->mode >= OBD_CVT_RNI && k->dt != k->st) ||
		(k->mode == OBD_CVT_RNA && k->dt != OBD_T_TF32) ||
		((k->satfinite || (k->relu && k->st == OBD_T_F64)) && !half))
		return false;
	c->type = k->st == OBD_T_F64 ? OBD_T_F64 : OBD_T_F32;
	if (is_half(k->st))
		obd_chain_add(c, k->st == OBD_T_F16 ? OBD_OP_cvt_f32_f16 : OBD_OP_cvt_f32_bf16,
			OBD_T_F32);
	else if (k->ftz && k->st == OBD_T_F32)
		obd_chain_add(c, OBD_OP_ftz_f32, OBD_T_F32);
	if (integer) {
		to_integer(c, k);
		return true;
	}
	if (k->mode >= OBD_CVT_RNI)
		round_integral(c, k->mode);
	/* clamping before the rounding gives the same as after it */
	if (k->sat)
		obd_chain_add(c, c->type == OBD_T_F64 ? OBD_OP_sat_f64 : OBD_OP_sat_f32, c->type);
	if (k->dt == OBD_T_F64 && c->type == OBD_T_F32)
		obd_chain_add(c, OBD_OP_cvt_f64_f32, OBD_T_F64);
	if (k->dt == OBD_T_F32 && c->type == OBD_T_F64) {
		obd_chain_add(c, OBD_OP_cvt_f32_f64, OBD_T_F32)->round = direction(k->mode);
		if (k->ftz)
			obd_chain_add(c, OBD_OP_ftz_f32, OBD_T_F32);
	}
	if (half && c->type == OBD_T_F64)
		obd_chain_add(c, OBD_OP_odd_f32_f64, OBD_T_F32);
	if (half)
		obd_chain_to_half(c, k->dt, k->mode);
	if (half && k->satfinite)
		obd_chain_add(c, OBD_OP_finite_h, k->dt)->e = k->dt == OBD_T_BF16;
	if (k->relu)
		obd_chain_add(c, half ? OBD_OP_relu_h : OBD_OP_relu_f32, k->dt)->e =
			k->dt == OBD_T_BF16;
	if (k->dt == OBD_T_TF32)
		obd_chain_add(c, OBD_OP_cvt_tf32_f32, OBD_T_F32)->e =
			(uint16_t)(k->mode == OBD_CVT_RNA ? OBD_RNA : direction(k->mode));
	return true;
}

/* Extends a narrow signed value in register r to its register d of type dreg. */
static void extend_result(struct obd_builder *b, const struct obd_conversion *k, enum obd_type dreg,
	uint32_t d, uint32_t r, bool extended)
{
	uint32_t bytes = obd_type_bytes(k->dt);
	bool narrow = obd_type_signed(k->dt) && bytes < 4 && !extended;

	if (r == d) {
		if (narrow && obd_type_bytes(dreg) > bytes)
			obd_emit(b,
				bytes == 2                          ? OBD_OP_sext16_32
					: obd_type_bytes(dreg) == 2 ? OBD_OP_sext8_16
								    : OBD_OP_sext8_32,
				d, d, N, N);
		return;
	}
	if (narrow) {
		uint32_t w = obd_temp(b, OBD_T_B32);

		obd_emit(b, bytes == 1 ? OBD_OP_sext8_32 : OBD_OP_sext16_32, w, r, N, N);
		r = w;
	}
	obd_emit(b, obd_type_signed(k->dt) ? OBD_OP_sext32_64 : OBD_OP_zext32_64, d, r, N, N);
}

/* The class of the destination register is checked; d has type dreg. */
static void scalar(struct obd_builder *b, const struct obd_conversion *k, enum obd_type dreg,
	uint32_t d, uint32_t v)
{
	uint32_t r = d;
	struct obd_chain c = { .b = b, .v = v, .type = k->st };
	bool extended = false;

	if (obd_type_class(dreg) != obd_type_class(k->dt)) /* a narrow value in a wide register */
		r = obd_temp(b, k->dt);
	if (!obd_type_float(k->dt) && !obd_type_float(k->st)) {
		enum obd_type st = k->st;

		if (k->sat) {
			widen(&c, &st);
			clamp(&c, k->dt, st);
			if (c.pending) {
				v = obd_temp(b, c.type);
				obd_chain_end(&c, v);
			}
		}
		plain_integer(b, k->dt, st, r, r == d ? dreg : OBD_T_B32, v);
		extended = true;
	} else if (obd_type_float(k->st) ? from_float(&c, k) : from_integer(&c, k)) {
		obd_chain_end(&c, r);
	} else {
		obd_emit(b, OBD_OP_cvt, r, v, N, N)->imm = OBD_CVT_CODE(
			k->dt, k->st, k->mode, k->sat || k->satfinite, k->ftz, k->relu);
	}
	extend_result(b, k, dreg, d, r, extended);
}

static void lower_cvt(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	struct obd_conversion k = { .dt = obd_type_at(b, s, 0),
		.st = obd_type_at(b, s, 1),
		.mode = mode_of(s),
		.sat = obd_q(s, OBD_Q_sat),
		.satfinite = obd_q(s, OBD_Q_satfinite),
		.ftz = obd_q(s, OBD_Q_ftz),
		.relu = obd_q(s, OBD_Q_relu) };

	(void)arg;
	if (k.dt >= OBD_T_E2M1X2 || k.st >= OBD_T_E2M1X2) {
		obd_lower_cvt_narrow(b, s, &k);
		return;
	}
	if (obd_cvt_is_pair(k.dt) || obd_cvt_is_pair(k.st)) {
		obd_lower_cvt_pair(b, s, &k);
		return;
	}
	obd_operand_count(b, s, 2, 2);
	if (s->opd[0].kind == OBD_OPD_SINK)
		return;
	if (s->opd[0].kind != OBD_OPD_REG)
		obd_invalid(b, s, "the destination must be a register");
	if (k.st == OBD_T_PRED || k.dt == OBD_T_PRED || k.st == OBD_T_B128 || k.dt == OBD_T_B128)
		obd_invalid(b, s, "invalid type for this instruction");
	enum obd_type dreg = s->opd[0].type;

	if (obd_type_class(dreg) != OBD_CLASS_32 && obd_type_class(dreg) != OBD_CLASS_64)
		obd_invalid(b, s, "the destination register has the wrong type");
	if (obd_type_class(dreg) == OBD_CLASS_32 && obd_type_class(k.dt) == OBD_CLASS_64)
		obd_invalid(b, s, "the destination register is too small");
	scalar(b, &k, dreg, s->opd[0].vreg, obd_src(b, s, 1, k.st));
}

const struct obd_opcode obd_opcodes_cvt[] = { { "cvt", lower_cvt, 0 }, { 0 } };
