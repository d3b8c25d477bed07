/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Floating-point arithmetic. Modifiers become operations before and after the plain one. */
#include "softdevice/core/compile/lower_float.h"
#include "softdevice/core/compile/lower_pair.h"

#define N OBD_NONE

static void set_rounding(struct obd_builder *b, const struct obd_stmt *s)
{
	b->round = obd_q(s, OBD_Q_rz) ? OBD_RZ
		: obd_q(s, OBD_Q_rm)  ? OBD_RM
		: obd_q(s, OBD_Q_rp)  ? OBD_RP
				      : OBD_RN;
}

/* An f32 source; subnormals are flushed to zero if .ftz is set. */
static uint32_t source32(struct obd_builder *b, const struct obd_stmt *s, uint32_t i)
{
	uint32_t v = obd_src(b, s, i, OBD_T_F32), w;

	if (!obd_q(s, OBD_Q_ftz))
		return v;
	w = obd_temp(b, OBD_T_F32);
	obd_emit(b, OBD_OP_ftz_f32, w, v, N, N);
	return w;
}

static void finish32(struct obd_builder *b, const struct obd_stmt *s, uint32_t d)
{
	b->round = OBD_RN;
	if (obd_q(s, OBD_Q_ftz))
		obd_emit(b, OBD_OP_ftz_f32, d, d, N, N);
	if (obd_q(s, OBD_Q_sat))
		obd_emit(b, OBD_OP_sat_f32, d, d, N, N);
	if (obd_q(s, OBD_Q_relu))
		obd_emit(b, OBD_OP_relu_f32, d, d, N, N);
}

/*
 * Does the statement need several operations? The result then needs a register of its own, which is
 * not also a source.
 */
static bool needs_result_register(const struct obd_stmt *s)
{
	return obd_q(s, OBD_Q_ftz) || obd_q(s, OBD_Q_sat) || obd_q(s, OBD_Q_relu) ||
		obd_q(s, OBD_Q_xorsign);
}

static void copy32(struct obd_builder *b, uint32_t d, uint32_t v)
{
	if (d != v)
		obd_emit(b, OBD_OP_mov_32, d, v, N, N);
}

static void arithmetic32(struct obd_builder *b, const struct obd_stmt *s, uint32_t which)
{
	static const uint16_t plain[] = { [OBD_ARITH_ADD] = OBD_OP_add_f32,
		[OBD_ARITH_SUB] = OBD_OP_sub_f32,
		[OBD_ARITH_MUL] = OBD_OP_mul_f32,
		[OBD_ARITH_MAD] = OBD_OP_fma_f32,
		[OBD_ARITH_FMA] = OBD_OP_fma_f32 };
	static const uint16_t flush[] = { [OBD_ARITH_ADD] = OBD_OP_add_ftz_f32,
		[OBD_ARITH_SUB] = OBD_OP_sub_ftz_f32,
		[OBD_ARITH_MUL] = OBD_OP_mul_ftz_f32,
		[OBD_ARITH_MAD] = OBD_OP_fma_ftz_f32,
		[OBD_ARITH_FMA] = OBD_OP_fma_ftz_f32 };
	bool has_c = which == OBD_ARITH_MAD || which == OBD_ARITH_FMA,
	     more = obd_q(s, OBD_Q_sat) || obd_q(s, OBD_Q_relu);
	uint32_t d = obd_dst(b, s, 0, OBD_T_F32), r = more ? obd_temp(b, OBD_T_F32) : d;
	/* mixed precision, such as add.f32.f16 */
	enum obd_type other = s->n_types > 1 ? s->types[1] : OBD_T_F32;
	uint32_t x = obd_src(b, s, 1, other), y, z = N;

	obd_operand_count(b, s, has_c ? 4 : 3, has_c ? 4 : 3);
	y = obd_src(b, s, 2, has_c ? other : OBD_T_F32);
	if (has_c)
		z = obd_src(b, s, 3, OBD_T_F32);
	if (other == OBD_T_F16 || other == OBD_T_BF16) {
		uint32_t op = other == OBD_T_F16 ? OBD_OP_cvt_f32_f16 : OBD_OP_cvt_f32_bf16,
			 w = obd_temp(b, OBD_T_F32);

		obd_emit(b, op, w, x, N, N);
		x = w;
		if (has_c) {
			w = obd_temp(b, OBD_T_F32);
			obd_emit(b, op, w, y, N, N);
			y = w;
		}
	}
	set_rounding(b, s);
	obd_emit(b, obd_q(s, OBD_Q_ftz) ? flush[which] : plain[which], r, x, y, z);
	b->round = OBD_RN;
	if (obd_q(s, OBD_Q_sat))
		obd_emit(b, OBD_OP_sat_f32, r, r, N, N);
	if (obd_q(s, OBD_Q_relu))
		obd_emit(b, OBD_OP_relu_f32, r, r, N, N);
	copy32(b, d, r);
}

static void arithmetic64(struct obd_builder *b, const struct obd_stmt *s, uint32_t which)
{
	static const uint16_t ops[] = { [OBD_ARITH_ADD] = OBD_OP_add_f64,
		[OBD_ARITH_SUB] = OBD_OP_sub_f64,
		[OBD_ARITH_MUL] = OBD_OP_mul_f64,
		[OBD_ARITH_MAD] = OBD_OP_fma_f64,
		[OBD_ARITH_FMA] = OBD_OP_fma_f64,
		[OBD_ARITH_DIV] = OBD_OP_div_f64,
		[OBD_ARITH_MIN] = OBD_OP_min_f64,
		[OBD_ARITH_MAX] = OBD_OP_max_f64 };
	bool has_c = which == OBD_ARITH_MAD || which == OBD_ARITH_FMA;
	uint32_t x = obd_src(b, s, 1, OBD_T_F64), y = obd_src(b, s, 2, OBD_T_F64),
		 z = has_c ? obd_src(b, s, 3, OBD_T_F64) : N;

	obd_operand_count(b, s, has_c ? 4 : 3, has_c ? 4 : 3);
	set_rounding(b, s);
	obd_emit(b, ops[which], obd_dst(b, s, 0, OBD_T_F64), x, y, z);
	b->round = OBD_RN;
}

static void divide32(struct obd_builder *b, const struct obd_stmt *s)
{
	uint32_t x = source32(b, s, 1), y = source32(b, s, 2), d = obd_dst(b, s, 0, OBD_T_F32);

	obd_operand_count(b, s, 3, 3);
	set_rounding(b, s);
	obd_emit(b, obd_q(s, OBD_Q_approx) ? OBD_OP_divfast_f32 : OBD_OP_div_f32, d, x, y, N);
	finish32(b, s, d);
}

static void minmax32(struct obd_builder *b, const struct obd_stmt *s, bool max)
{
	bool nan = obd_q(s, OBD_Q_NaN);
	uint32_t op = max ? (nan ? OBD_OP_maxnan_f32 : OBD_OP_max_f32)
		: nan     ? OBD_OP_minnan_f32
			  : OBD_OP_min_f32;
	uint32_t x = source32(b, s, 1), y = source32(b, s, 2), d = obd_dst(b, s, 0, OBD_T_F32),
		 sign = N, r;

	obd_operand_count(b, s, 3, 4);
	r = needs_result_register(s) || s->n_opd == 4 ? obd_temp(b, OBD_T_F32) : d;
	/* compare the magnitudes; the result gets the product of the signs */
	if (obd_q(s, OBD_Q_xorsign)) {
		uint32_t ax = obd_temp(b, OBD_T_F32), ay = obd_temp(b, OBD_T_F32);

		sign = obd_temp(b, OBD_T_F32);
		obd_emit(b, OBD_OP_xorsign_f32, sign, x, y, N);
		obd_emit(b, OBD_OP_abs_f32, ax, x, N, N);
		obd_emit(b, OBD_OP_abs_f32, ay, y, N, N);
		x = ax;
		y = ay;
	}
	obd_emit(b, op, r, x, y, N);
	if (s->n_opd == 4)
		obd_emit(b, op, r, r, source32(b, s, 3), N);
	if (sign != N)
		obd_emit(b, OBD_OP_or_32, r, r, sign, N);
	copy32(b, d, r);
}

uint16_t obd_half_format(enum obd_type t)
{
	switch (t) {
	case OBD_T_F16:
		return 0;
	case OBD_T_BF16:
		return 1;
	case OBD_T_F16X2:
		return 2;
	default:
		return 3;
	}
}

static void half_op(struct obd_builder *b, uint32_t op, uint16_t format, uint32_t d, uint32_t x,
	uint32_t y, uint32_t z)
{
	obd_emit(b, op, d, x, y, z)->e_raw = format;
}

/* Flushes subnormals. */
static uint32_t flush_half(struct obd_builder *b, enum obd_type t, uint32_t v)
{
	uint32_t w = obd_temp(b, t);

	half_op(b, OBD_OP_ftz_h, obd_half_format(t), w, v, N, N);
	return w;
}

/* Operations on halves: f16, f16 with .ftz, bf16. */
static const uint16_t half_ops[][3] = {
	[OBD_ARITH_ADD] = { OBD_OP_add_f16, OBD_OP_addz_f16, OBD_OP_add_bf16 },
	[OBD_ARITH_SUB] = { OBD_OP_sub_f16, OBD_OP_subz_f16, OBD_OP_sub_bf16 },
	[OBD_ARITH_MUL] = { OBD_OP_mul_f16, OBD_OP_mulz_f16, OBD_OP_mul_bf16 },
	[OBD_ARITH_MAD] = { OBD_OP_fma_f16, OBD_OP_fmaz_f16, OBD_OP_fma_bf16 },
	[OBD_ARITH_FMA] = { OBD_OP_fma_f16, OBD_OP_fmaz_f16, OBD_OP_fma_bf16 },
};

static void arithmetic_half(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t which, enum obd_type t)
{
	bool has_c = which == OBD_ARITH_MAD || which == OBD_ARITH_FMA, ftz = obd_q(s, OBD_Q_ftz);
	uint16_t format = obd_half_format(t);
	uint32_t d = obd_dst(b, s, 0, t), r = obd_temp(b, t);

	obd_operand_count(b, s, has_c ? 4 : 3, has_c ? 4 : 3);
	if (which >= sizeof(half_ops) / sizeof(half_ops[0]) || !half_ops[which][0])
		obd_invalid(b, s, "invalid type for this instruction");
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t),
		 z = has_c ? obd_src(b, s, 3, t) : N;

	half_op(b, half_ops[which][format & 1 ? 2 : ftz], format, r, x, y, z);
	if (obd_q(s, OBD_Q_sat))
		half_op(b, OBD_OP_sat_h, format, r, r, N, N);
	if (obd_q(s, OBD_Q_relu))
		half_op(b, OBD_OP_relu_h, format, r, r, N, N);
	copy32(b, d, r);
}

static void minmax_half(struct obd_builder *b, const struct obd_stmt *s, bool max, enum obd_type t)
{
	bool nan = obd_q(s, OBD_Q_NaN);
	uint32_t op = max ? (nan ? OBD_OP_maxnan_h : OBD_OP_max_h)
		: nan     ? OBD_OP_minnan_h
			  : OBD_OP_min_h;
	uint16_t format = obd_half_format(t);
	uint32_t d = obd_dst(b, s, 0, t), r = obd_temp(b, t), sign = N;

	obd_operand_count(b, s, 3, 3);
	uint32_t x = obd_src(b, s, 1, t), y = obd_src(b, s, 2, t);

	if (obd_q(s, OBD_Q_ftz)) {
		x = flush_half(b, t, x);
		y = flush_half(b, t, y);
	}
	/* compare the magnitudes; the result gets the product of the signs */
	if (obd_q(s, OBD_Q_xorsign)) {
		uint32_t mask =
			obd_const_new(b, OBD_CLASS_32, format & 2 ? 0x7fff7fff : 0x7fff, NULL);
		uint32_t top = obd_const_new(
				 b, OBD_CLASS_32, format & 2 ? 0x80008000 : 0x8000, NULL),
			 ax = obd_temp(b, t), ay = obd_temp(b, t);

		sign = obd_temp(b, t);
		obd_emit(b, OBD_OP_xor_32, sign, x, y, N);
		obd_emit(b, OBD_OP_and_32, sign, sign, top, N);
		obd_emit(b, OBD_OP_and_32, ax, x, mask, N);
		obd_emit(b, OBD_OP_and_32, ay, y, mask, N);
		x = ax;
		y = ay;
	}
	half_op(b, op, format, r, x, y, N);
	if (sign != N)
		obd_emit(b, OBD_OP_or_32, r, r, sign, N);
	copy32(b, d, r);
}

static void sign_op(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t which, enum obd_type t)
{
	uint32_t d = obd_dst(b, s, 0, t), x = obd_src(b, s, 1, t);
	uint64_t bits = t == OBD_T_F16 || t == OBD_T_BF16 ? 0x8000 : 0x80008000;

	obd_operand_count(b, s, 2, 2);
	switch (t) {
	case OBD_T_F32:
		x = source32(b, s, 1);
		obd_emit(b, which == OBD_ARITH_ABS ? OBD_OP_abs_f32 : OBD_OP_neg_f32, d, x, N, N);
		return;
	case OBD_T_F64:
		obd_emit(b, which == OBD_ARITH_ABS ? OBD_OP_abs_f64 : OBD_OP_neg_f64, d, x, N, N);
		return;
	default:
		break;
	}
	if (obd_q(s, OBD_Q_ftz))
		x = flush_half(b, t, x);
	if (which == OBD_ARITH_ABS)
		obd_emit(b, OBD_OP_and_32, d, x,
			obd_const_new(b, OBD_CLASS_32, bits >> 16 ? 0x7fff7fff : 0x7fff, NULL), N);
	else
		obd_emit(b, OBD_OP_xor_32, d, x, obd_const_new(b, OBD_CLASS_32, bits, NULL), N);
}

void obd_lower_float2(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	enum obd_type t = obd_type_at(b, s, 0);

	if (which == OBD_ARITH_ABS || which == OBD_ARITH_NEG) {
		sign_op(b, s, which, t);
		return;
	}
	switch (t) {
	case OBD_T_F32:
		if (which == OBD_ARITH_DIV)
			divide32(b, s);
		else if (which == OBD_ARITH_MIN || which == OBD_ARITH_MAX)
			minmax32(b, s, which == OBD_ARITH_MAX);
		else
			arithmetic32(b, s, which);
		return;
	case OBD_T_F64:
		arithmetic64(b, s, which);
		return;
	case OBD_T_F16:
	case OBD_T_BF16:
	case OBD_T_F16X2:
	case OBD_T_BF16X2:
		if (which == OBD_ARITH_MIN || which == OBD_ARITH_MAX)
			minmax_half(b, s, which == OBD_ARITH_MAX, t);
		else
			arithmetic_half(b, s, which, t);
		return;
	default:
		obd_invalid(b, s, "invalid type for this instruction");
	}
}

enum { RCP, SQRT, RSQRT, EX2, LG2, SIN, COS, TANH };

static void function_half(
	struct obd_builder *b, const struct obd_stmt *s, bool ex2, enum obd_type t, uint32_t d)
{
	uint16_t format = obd_half_format(t);
	bool bf16 = format & 1, scalar = !(format & 2);
	uint32_t op = !ex2            ? (bf16 ? OBD_OP_tanh_bf16 : OBD_OP_tanh_f16)
		: !bf16               ? OBD_OP_ex2_f16
		: obd_q(s, OBD_Q_ftz) ? OBD_OP_ex2z_bf16
				      : OBD_OP_ex2_bf16;
	uint32_t r = ex2 && scalar ? obd_temp(b, t) : d;

	half_op(b, op, format, r, obd_src(b, s, 1, t), N, N);
	if (r != d) /* 2^0 in the upper half */
		obd_emit(b, OBD_OP_zext16, d, r, N, N);
}

static void lower_unary(struct obd_builder *b, struct obd_stmt *s, uint32_t which)
{
	static const uint16_t ops[] = { OBD_OP_rcp_f32, OBD_OP_sqrt_f32, OBD_OP_rsqrt_f32,
		OBD_OP_ex2_f32, OBD_OP_lg2_f32, OBD_OP_sin_f32, OBD_OP_cos_f32, OBD_OP_tanh_f32 };
	enum obd_type t = obd_type_at(b, s, 0);
	bool approx = obd_q(s, OBD_Q_approx);
	uint32_t d = obd_dst(b, s, 0, t), op;

	obd_operand_count(b, s, 2, 2);
	if (t == OBD_T_F64) {
		if (which > RSQRT)
			obd_invalid(b, s, "invalid type for this instruction");
		op = which == RCP             ? (approx ? OBD_OP_rcpfast_f64 : OBD_OP_rcp_f64)
			: which == SQRT       ? OBD_OP_sqrt_f64
			: obd_q(s, OBD_Q_ftz) ? OBD_OP_rsqrtfast_f64
					      : OBD_OP_rsqrt_f64;
		uint32_t x = obd_src(b, s, 1, t);

		set_rounding(b, s);
		obd_emit(b, op, d, x, N, N);
		b->round = OBD_RN;
		return;
	}
	if (t != OBD_T_F32) {
		if ((which != EX2 && which != TANH) ||
			(t != OBD_T_F16 && t != OBD_T_BF16 && t != OBD_T_F16X2 &&
				t != OBD_T_BF16X2))
			obd_invalid(b, s, "invalid type for this instruction");
		function_half(b, s, which == EX2, t, d);
		return;
	}
	/* .ftz: only where a subnormal operand matters, or a result can be subnormal */
	bool ftz = obd_q(s, OBD_Q_ftz);
	uint32_t x = which == EX2 || which == COS ? obd_src(b, s, 1, t) : source32(b, s, 1);

	set_rounding(b, s);
	obd_emit(b, ops[which], d, x, N, N);
	b->round = OBD_RN;
	if (ftz && (which == EX2 || which == RCP))
		obd_emit(b, OBD_OP_ftz_f32, d, d, N, N);
}

static void lower_fma(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	(void)arg;
	if (obd_type_at(b, s, 0) == OBD_T_F32X2)
		obd_lower_pair(b, s);
	else
		obd_lower_float2(b, s, OBD_ARITH_FMA);
}

static void lower_copysign(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);

	(void)arg;
	obd_operand_count(b, s, 3, 3);
	obd_emit(b, t == OBD_T_F64 ? OBD_OP_copysign_f64 : OBD_OP_copysign_f32, obd_dst(b, s, 0, t),
		obd_src(b, s, 1, t), obd_src(b, s, 2, t), N);
}

static void lower_testp(struct obd_builder *b, struct obd_stmt *s, uint32_t arg)
{
	enum obd_type t = obd_type_at(b, s, 0);
	uint32_t what = obd_q(s, OBD_Q_finite) ? 0
		: obd_q(s, OBD_Q_infinite)     ? 1
		: obd_q(s, OBD_Q_number)       ? 2
		: obd_q(s, OBD_Q_notanumber)   ? 3
		: obd_q(s, OBD_Q_normal)       ? 4
					       : 5;

	(void)arg;
	obd_operand_count(b, s, 2, 2);
	obd_emit(b, OBD_OP_testp, obd_dst(b, s, 0, OBD_T_PRED), obd_src(b, s, 1, t), N, N)->e_raw =
		(uint16_t)(what | (t == OBD_T_F64 ? 8u : 0u));
}

const struct obd_opcode obd_opcodes_float[] = {
	{ "fma", lower_fma, 0 },
	{ "rcp", lower_unary, RCP },
	{ "sqrt", lower_unary, SQRT },
	{ "rsqrt", lower_unary, RSQRT },
	{ "ex2", lower_unary, EX2 },
	{ "lg2", lower_unary, LG2 },
	{ "sin", lower_unary, SIN },
	{ "cos", lower_unary, COS },
	{ "tanh", lower_unary, TANH },
	{ "copysign", lower_copysign, 0 },
	{ "testp", lower_testp, 0 },
	{ 0 },
};
