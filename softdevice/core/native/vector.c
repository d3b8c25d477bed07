/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Operations on each lane, a chunk at a time. The results are those of interp_elt.h, bit for bit.
 */
#include "softdevice/core/native/unit.h"

#include <string.h>

static void v3(struct obn_unit *u, uint32_t op, int d, int a, int b)
{
	x_v(&u->x, op, obn_how(u), d, a, b);
}

static void v_imm(struct obn_unit *u, uint32_t op, int d, int a, int b, int imm)
{
	struct x_how how = obn_how(u);

	how.imm = imm;
	x_v(&u->x, op, how, d, a, b);
}

struct x_mem obn_splat32(struct obn_unit *u, uint32_t v)
{
	uint32_t all[16];

	for (int i = 0; i < 16; i++)
		all[i] = v;
	return (struct x_mem){ X_POOL, x_pool(&u->x, all, 64) };
}

struct x_mem obn_splat64(struct obn_unit *u, uint64_t v)
{
	uint64_t all[8];

	for (int i = 0; i < 8; i++)
		all[i] = v;
	return (struct x_mem){ X_POOL, x_pool(&u->x, all, 64) };
}

static void v_mem(struct obn_unit *u, uint32_t op, int d, int a, struct x_mem m)
{
	x_vm(&u->x, op, obn_how(u), d, a, m);
}

/* k1, or t0, = the comparison of floats with the predicate `how` of vcmpps */
static void compare_f32(struct obn_unit *u, int a, int b, int how)
{
	v_imm(u, V(1, 0, 0, 0xc2u), u->x.wide ? 1 : u->t0, a, b, how);
}

void obn_blend(struct obn_unit *u, int d, int a, int b, bool wide)
{
	struct x_how how = obn_how(u);

	if (u->x.wide) {
		how.k = 1;
		x_v(&u->x, V(2, P66, (uint32_t)wide, 0x64u), how, d, b, a); /* vpblendm */
	} else {
		how.imm = u->t0 << 4;
		x_v(&u->x, V(3, P66, 0, 0x4au), how, d, b, a); /* vblendvps */
	}
}

static void fix_nan(struct obn_unit *u, int d)
{
	int nan = obn_nan(u);

	compare_f32(u, d, d, 3);
	obn_blend(u, d, nan, d, false);
}

/* Half h of a chunk of 32-bit elements, extended to 64 bits. */
static void widen(struct obn_unit *u, int d, int s, uint32_t h, bool is_signed)
{
	uint32_t op = is_signed ? V(2, P66, 0, 0x25u) : V(2, P66, 0, 0x35u);

	if (h)
		v_imm(u, u->x.wide ? V(3, P66, 1, 0x3bu) : V(3, P66, 0, 0x39u), s, 0, d, 1);
	x_v(&u->x, op, obn_how(u), d, 0, h ? d : s);
}

/* The half of 32-bit chunk c / 2 that belongs to 64-bit chunk c, extended. */
static void widen_slot(struct obn_unit *u, int d, uint32_t slot, uint32_t c, bool is_signed)
{
	int s = obn_vector_get(u, slot, c / 2);

	widen(u, d, s, u->state[slot] == 0 ? 0 : c & 1, is_signed);
}

/* d = the lower (shift 0) or upper (32) halves of the elements of two 64-bit chunks */
static void narrow(struct obn_unit *u, int d, int low, int high, bool upper)
{
	if (!u->x.wide) {
		v_imm(u, V(1, 0, 0, 0xc6u), d, low, high, upper ? 0xdd : 0x88); /* vshufps */
		v_imm(u, V(3, P66, 1, 0x00u), d, 0, d, 0xd8);                   /* vpermq */
		return;
	}
	int parts[] = { low, high };

	for (int k = 0; k < 2; k++) {
		int t = k ? u->t1 : u->t0;

		if (upper) {
			v_imm(u, V(1, P66, 1, 0x73u), X_VSRL, t, parts[k], 32); /* vpsrlq */
			v3(u, V(2, PF3, 0, 0x35u), t, 0, t);                    /* vpmovqd */
		} else {
			v3(u, V(2, PF3, 0, 0x35u), parts[k], 0, t);
		}
	}
	v_imm(u, V(3, P66, 1, 0x3au), d, u->t0, u->t1, 1); /* vinserti64x4 */
}

/* vcvtpd2ps of two chunks */
static void narrow_f64(struct obn_unit *u, int d, int low, int high)
{
	x_v(&u->x, V(1, P66, 1, 0x5au), obn_how(u), u->t0, 0, low);
	x_v(&u->x, V(1, P66, 1, 0x5au), obn_how(u), u->t1, 0, high);
	v_imm(u, u->x.wide ? V(3, P66, 1, 0x3au) : V(3, P66, 0, 0x38u), d, u->t0, u->t1, 1);
}

/* kind: X_VSRL, X_VSRA or X_VSLL; op: the form with a count for each element */
static void shift(struct obn_unit *u, const struct obd_insn *in, uint32_t c, int d, uint32_t op,
	int kind, bool wide)
{
	int a = obn_vector_get(u, in->a, c);

	if (u->const_at[in->b]) {
		uint32_t bits = wide ? 64 : 32, n = (uint32_t)obn_const(u, in->b);
		uint32_t code = wide ? (kind == X_VSRA ? 0x72u : 0x73u) : 0x72u;

		n = n > bits ? bits : n;
		if (kind == X_VSRA && n == bits)
			n = bits - 1;
		v_imm(u, V(1, P66, (uint32_t)wide, code), kind, d, a, (int)n);
	} else if (wide) {
		widen_slot(u, u->t0, in->b, c, false);
		v3(u, op, d, a, u->t0);
	} else {
		v3(u, op, d, a, obn_vector_get(u, in->b, c));
	}
}

static void funnel(struct obn_unit *u, const struct obd_insn *in, uint32_t c, int d, bool left)
{
	int a = obn_vector_get(u, in->a, c), b = obn_vector_get(u, in->b, c),
	    n = obn_vector_get(u, in->c, c);

	/* left: b << n | a >> (32 - n); right: a >> n | b << (32 - n); a shift by 32 gives 0 */
	v_mem(u, VPAND, u->t0, n, obn_splat32(u, 31));
	v3(u, left ? V(2, P66, 0, 0x47u) : V(2, P66, 0, 0x45u), d, left ? b : a, u->t0);
	v3(u, VPXOR, u->t1, u->t1, u->t1);
	v3(u, V(1, P66, 0, 0xfau), u->t1, u->t1, u->t0);
	v_mem(u, VPADDD, u->t1, u->t1, obn_splat32(u, 32));
	v3(u, left ? V(2, P66, 0, 0x45u) : V(2, P66, 0, 0x47u), u->t1, left ? a : b, u->t1);
	v3(u, VPOR, d, d, u->t1);
}

/* See obd_min_f32: -0 is less than +0, and a number is preferred to a NaN. */
static void extreme(struct obn_unit *u, const struct obd_insn *in, uint32_t c, int d, bool least)
{
	int a = obn_vector_get(u, in->a, c), b = obn_vector_get(u, in->b, c);

	v3(u, V(1, 0, 0, least ? 0x5du : 0x5fu), d, a, b);
	v3(u, V(1, P66, 0, least ? 0xebu : 0xdbu), u->t1, a, b);
	compare_f32(u, a, b, 0);
	obn_blend(u, d, u->t1, d, false);
	compare_f32(u, b, b, 3);
	obn_blend(u, d, a, d, false);
	fix_nan(u, d);
}

static void fused(struct obn_unit *u, const struct obd_insn *in, uint32_t c, int d, bool wide)
{
	int a = obn_vector_get(u, in->a, c), b = obn_vector_get(u, in->b, c);

	obn_vec_move(u, d, obn_vector_get(u, in->c, c));
	v3(u, V(2, P66, (uint32_t)wide, 0xb8u), d, a, b); /* vfmadd231 */
}

/* Operations of two operands with one instruction. */
static const uint32_t simple[OBD_OP_COUNT] = {
	[OBD_OP_add_u32] = VPADDD,
	[OBD_OP_sub_u32] = V(1, P66, 0, 0xfau),
	[OBD_OP_mul_u32] = V(2, P66, 0, 0x40u),
	[OBD_OP_add_u64] = VPADDQ,
	[OBD_OP_sub_u64] = V(1, P66, 1, 0xfbu),
	[OBD_OP_mul_u64] = V(2, P66, 1, 0x40u),
	[OBD_OP_min_u32] = V(2, P66, 0, 0x3bu),
	[OBD_OP_max_u32] = V(2, P66, 0, 0x3fu),
	[OBD_OP_min_s32] = V(2, P66, 0, 0x39u),
	[OBD_OP_max_s32] = V(2, P66, 0, 0x3du),
	[OBD_OP_min_u64] = V(2, P66, 1, 0x3bu),
	[OBD_OP_max_u64] = V(2, P66, 1, 0x3fu),
	[OBD_OP_min_s64] = V(2, P66, 1, 0x39u),
	[OBD_OP_max_s64] = V(2, P66, 1, 0x3du),
	[OBD_OP_and_32] = VPAND,
	[OBD_OP_and_64] = VPAND,
	[OBD_OP_or_32] = VPOR,
	[OBD_OP_or_64] = VPOR,
	[OBD_OP_xor_32] = VPXOR,
	[OBD_OP_xor_64] = VPXOR,
	[OBD_OP_add_f32] = V(1, 0, 0, 0x58u),
	[OBD_OP_sub_f32] = V(1, 0, 0, 0x5cu),
	[OBD_OP_mul_f32] = V(1, 0, 0, 0x59u),
	[OBD_OP_div_f32] = V(1, 0, 0, 0x5eu),
	[OBD_OP_add_f64] = V(1, P66, 1, 0x58u),
	[OBD_OP_sub_f64] = V(1, P66, 1, 0x5cu),
	[OBD_OP_mul_f64] = V(1, P66, 1, 0x59u),
	[OBD_OP_div_f64] = V(1, P66, 1, 0x5eu),
};

/* Does it give an f32? These have no prefix. */
static bool is_f32(uint32_t op)
{
	return (simple[op] & 0xff) == 1;
}

static void round_f32(struct obn_unit *u, int d, int a, int how)
{
	v_imm(u, V(3, P66, 0, 0x08u), d, 0, a, how | 8);
	fix_nan(u, d);
}

/* Operations with one operand of the same width. */
static void unary(struct obn_unit *u, const struct obd_insn *in, uint32_t c, int d)
{
	int a = obn_vector_get(u, in->a, c);
	bool wide = u->wide[in->d];

	switch (in->op) {
	case OBD_OP_mov_32:
	case OBD_OP_mov_64:
		obn_vec_move(u, d, a);
		break;
	case OBD_OP_abs_s32:
		x_v(&u->x, V(2, P66, 0, 0x1eu), obn_how(u), d, 0, a);
		break;
	case OBD_OP_neg_u32:
	case OBD_OP_neg_u64:
		v3(u, VPXOR, u->t0, u->t0, u->t0);
		v3(u, wide ? V(1, P66, 1, 0xfbu) : V(1, P66, 0, 0xfau), d, u->t0, a);
		break;
	case OBD_OP_not_32:
	case OBD_OP_not_64:
		v_mem(u, VPXOR, d, a, obn_splat32(u, ~0u));
		break;
	case OBD_OP_zext8:
		v_mem(u, VPAND, d, a, obn_splat32(u, 0xff));
		break;
	case OBD_OP_zext16:
		v_mem(u, VPAND, d, a, obn_splat32(u, 0xffff));
		break;
	case OBD_OP_sext8_32:
	case OBD_OP_sext16_32:
		v_imm(u, V(1, P66, 0, 0x72u), X_VSLL, d, a, in->op == OBD_OP_sext8_32 ? 24 : 16);
		v_imm(u, V(1, P66, 0, 0x72u), X_VSRA, d, d, in->op == OBD_OP_sext8_32 ? 24 : 16);
		break;
	case OBD_OP_hi_32:
		v_imm(u, V(1, P66, 0, 0x72u), X_VSRL, d, a, 16);
		break;
	case OBD_OP_bits_32:
		v_imm(u, V(1, P66, 0, 0x72u), X_VSRL, d, a, in->e & 31);
		v_mem(u, VPAND, d, d, obn_splat32(u, in->u.imm));
		break;
	case OBD_OP_abs_f32:
		v_mem(u, VPAND, d, a, obn_splat32(u, 0x7fffffff));
		break;
	case OBD_OP_neg_f32:
		v_mem(u, VPXOR, d, a, obn_splat32(u, 0x80000000u));
		break;
	case OBD_OP_abs_f64:
		v_mem(u, VPAND, d, a, obn_splat64(u, 0x7fffffffffffffffull));
		break;
	case OBD_OP_neg_f64:
		v_mem(u, VPXOR, d, a, obn_splat64(u, 0x8000000000000000ull));
		break;
	case OBD_OP_rcp_f32:
		obn_vec_load(u, u->t0, obn_splat32(u, 0x3f800000));
		v3(u, V(1, 0, 0, 0x5eu), d, u->t0, a);
		fix_nan(u, d);
		break;
	case OBD_OP_sqrt_f32:
		x_v(&u->x, V(1, 0, 0, 0x51u), obn_how(u), d, 0, a);
		fix_nan(u, d);
		break;
	case OBD_OP_rsqrt_f32:
		x_v(&u->x, V(1, 0, 0, 0x51u), obn_how(u), d, 0, a);
		obn_vec_load(u, u->t0, obn_splat32(u, 0x3f800000));
		v3(u, V(1, 0, 0, 0x5eu), d, u->t0, d);
		fix_nan(u, d);
		break;
	case OBD_OP_sqrt_f64:
		x_v(&u->x, V(1, P66, 1, 0x51u), obn_how(u), d, 0, a);
		break;
	case OBD_OP_rint_f32:
		round_f32(u, d, a, 0);
		break;
	case OBD_OP_floor_f32:
		round_f32(u, d, a, 1);
		break;
	case OBD_OP_ceil_f32:
		round_f32(u, d, a, 2);
		break;
	case OBD_OP_trunc_f32:
		round_f32(u, d, a, 3);
		break;
	case OBD_OP_cvt_f32_s32:
		x_v(&u->x, V(1, 0, 0, 0x5bu), obn_how(u), d, 0, a);
		break;
	case OBD_OP_cvt_f32_u32:
		x_v(&u->x, V(1, PF2, 0, 0x7au), obn_how(u), d, 0, a);
		break;
	default:
		u->failed = true;
		break;
	}
}

/* Operations whose result is wider or narrower than an operand. False: not one of them. */
static bool resized(struct obn_unit *u, const struct obd_insn *in, uint32_t c, int d)
{
	bool is_signed = in->op == OBD_OP_mulw_s32 || in->op == OBD_OP_madw_s32;
	int s;

	switch (in->op) {
	case OBD_OP_zext32_64:
	case OBD_OP_sext32_64:
		widen_slot(u, d, in->a, c, in->op == OBD_OP_sext32_64);
		return true;
	case OBD_OP_mulw_u32:
	case OBD_OP_mulw_s32:
	case OBD_OP_madw_u32:
	case OBD_OP_madw_s32:
		widen_slot(u, d, in->a, c, is_signed);
		widen_slot(u, u->t0, in->b, c, is_signed);
		v3(u, is_signed ? V(2, P66, 1, 0x28u) : V(1, P66, 1, 0xf4u), d, d, u->t0);
		if (in->op == OBD_OP_madw_u32 || in->op == OBD_OP_madw_s32)
			v3(u, VPADDQ, d, d, obn_vector_get(u, in->c, c));
		return true;
	case OBD_OP_pack_64:
		widen_slot(u, u->t0, in->b, c, false);
		widen_slot(u, d, in->a, c, false);
		v_imm(u, V(1, P66, 1, 0x73u), X_VSLL, u->t0, u->t0, 32);
		v3(u, VPOR, d, d, u->t0);
		return true;
	case OBD_OP_lo_64:
	case OBD_OP_hi_64:
		s = obn_vector_get(u, in->a, 2 * c);
		narrow(u, d, s, obn_vector_get(u, in->a, 2 * c + 1), in->op == OBD_OP_hi_64);
		return true;
	case OBD_OP_cvt_f32_f64:
		s = obn_vector_get(u, in->a, 2 * c);
		narrow_f64(u, d, s, obn_vector_get(u, in->a, 2 * c + 1));
		fix_nan(u, d);
		return true;
	case OBD_OP_cvt_f64_f32:
	case OBD_OP_cvt_f64_s32:
	case OBD_OP_cvt_f64_u32:
		s = obn_vector_get(u, in->a, c / 2);
		if (c & 1 && u->state[in->a] != 0) {
			v_imm(u, u->x.wide ? V(3, P66, 1, 0x3bu) : V(3, P66, 0, 0x39u), s, 0, d, 1);
			s = d;
		}
		x_v(&u->x,
			in->op == OBD_OP_cvt_f64_f32           ? V(1, 0, 0, 0x5au)
				: in->op == OBD_OP_cvt_f64_s32 ? V(1, PF3, 0, 0xe6u)
							       : V(1, PF3, 0, 0x7au),
			obn_how(u), d, 0, s);
		return true;
	default:
		return false;
	}
}

void obn_lane_mask(struct obn_unit *u, int pred, uint32_t c, bool wide)
{
	struct x_buf *x = &u->x;
	uint32_t lanes = u->chunk_bytes / (wide ? 8 : 4);

	if (x->wide) {
		x_mov(x, false, RAX, pred);
		if (c)
			x_shift(x, X_SHR, false, RAX, lanes * c);
		x_v(x, V(1, PF2, 0, 0x92u), (struct x_how){ .len = 0, .imm = -1, .vex = true }, 1,
			0, RAX); /* kmovd */
		return;
	}
	union {
		uint32_t s[OBD_LANES];
		uint64_t g[OBD_LANES];
	} bits;

	for (uint32_t k = 0; k < OBD_LANES; k++)
		if (wide)
			bits.g[k] = 1ull << k;
		else
			bits.s[k] = 1u << k;
	struct x_mem m = { X_POOL,
		x_pool(x, &bits, wide ? 256 : 128) + (int32_t)(c * u->chunk_bytes) };

	x_v(x, V(1, P66, 0, 0x6eu), (struct x_how){ .len = 0, .imm = -1 }, u->t0, 0, pred);
	v3(u, VPBROADCASTD, u->t0, 0, u->t0);
	v_mem(u, VPAND, u->t0, u->t0, m);
	v_mem(u, wide ? V(2, P66, 0, 0x29u) : V(1, P66, 0, 0x76u), u->t0, u->t0, m);
}

void obn_vector_chunk(struct obn_unit *u, uint32_t i, uint32_t c, int d)
{
	const struct obd_insn *in = &u->f->code[i];
	uint32_t op = simple[in->op];
	int a, b;

	if (op) {
		a = obn_vector_get(u, in->a, c);
		v3(u, op, d, a, obn_vector_get(u, in->b, c));
		if (is_f32(in->op))
			fix_nan(u, d);
		return;
	}
	if (resized(u, in, c, d))
		return;
	switch (in->op) {
	case OBD_OP_fma_f32:
		fused(u, in, c, d, false);
		fix_nan(u, d);
		return;
	case OBD_OP_fma_f64:
		fused(u, in, c, d, true);
		return;
	case OBD_OP_mad_u32:
	case OBD_OP_mad_u64:
		a = obn_vector_get(u, in->a, c);
		v3(u, V(2, P66, in->op == OBD_OP_mad_u64, 0x40u), d, a,
			obn_vector_get(u, in->b, c));
		v3(u, in->op == OBD_OP_mad_u64 ? VPADDQ : VPADDD, d, d,
			obn_vector_get(u, in->c, c));
		return;
	case OBD_OP_shl_32:
		shift(u, in, c, d, V(2, P66, 0, 0x47u), X_VSLL, false);
		return;
	case OBD_OP_shl_64:
		shift(u, in, c, d, V(2, P66, 1, 0x47u), X_VSLL, true);
		return;
	case OBD_OP_shr_u32:
		shift(u, in, c, d, V(2, P66, 0, 0x45u), X_VSRL, false);
		return;
	case OBD_OP_shr_u64:
		shift(u, in, c, d, V(2, P66, 1, 0x45u), X_VSRL, true);
		return;
	case OBD_OP_shr_s32:
		shift(u, in, c, d, V(2, P66, 0, 0x46u), X_VSRA, false);
		return;
	case OBD_OP_shr_s64:
		shift(u, in, c, d, V(2, P66, 1, 0x46u), X_VSRA, true);
		return;
	case OBD_OP_shf_lw:
	case OBD_OP_shf_rw:
		funnel(u, in, c, d, in->op == OBD_OP_shf_lw);
		return;
	case OBD_OP_min_f32:
	case OBD_OP_max_f32:
		extreme(u, in, c, d, in->op == OBD_OP_min_f32);
		return;
	case OBD_OP_lop3:
		a = obn_vector_get(u, in->a, c);
		b = obn_vector_get(u, in->b, c);
		obn_vec_move(u, d, a);
		v_imm(u, V(3, P66, 0, 0x25u), d, b, obn_vector_get(u, in->c, c), in->e & 255);
		return;
	case OBD_OP_selp_32:
	case OBD_OP_selp_64:
		a = obn_vector_get(u, in->a, c);
		b = obn_vector_get(u, in->b, c);
		obn_lane_mask(u, obn_pred_get(u, in->c), c, in->op == OBD_OP_selp_64);
		obn_blend(u, d, a, b, in->op == OBD_OP_selp_64);
		return;
	default:
		unary(u, in, c, d);
		return;
	}
}

bool obn_vector(struct obn_unit *u, uint32_t i)
{
	const struct obd_insn *in = &u->f->code[i];
	uint32_t n = obn_chunks(u, in->d);

	if (!obn_has_vector(u, in->op))
		return false;
	for (uint32_t c = 0; c < n; c++) {
		obn_step(u);
		int d = obn_vector_new(u);

		obn_vector_chunk(u, i, c, d);
		obn_vector_set(u, in->d, c, d);
	}
	obn_vector_done(u, in->d);
	return true;
}

bool obn_guarded_vector(struct obn_unit *u, uint32_t guard)
{
	const struct obd_insn *in = &u->f->code[guard + 1];
	uint32_t p = u->f->code[guard].a, n;

	if (!obn_has_vector(u, in->op) || in->op == OBD_OP_selp_32 || in->op == OBD_OP_selp_64)
		return false;
	bool wide = u->wide[in->d];

	n = obn_chunks(u, in->d);
	for (uint32_t c = 0; c < n; c++) {
		obn_step(u);
		int d = obn_vector_new(u), pred = obn_pred_get(u, p);

		obn_vector_chunk(u, guard + 1, c, d);
		int old = obn_vector_get(u, in->d, c);

		obn_lane_mask(u, pred, c, wide);
		if (u->f->code[guard].e)
			obn_blend(u, d, old, d, wide);
		else
			obn_blend(u, d, d, old, wide);
		obn_vector_set(u, in->d, c, d);
	}
	obn_vector_done(u, in->d);
	return true;
}
