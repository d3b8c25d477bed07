/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Operations on vectors of the width of the instruction set (engine/interp_float.h). The including
 * file defines HALF, HALFU, VEC and QUOT.
 *
 * HALF(name, format, value): f16 or bf16 in both halves of each element. a, b and c are vectors of
 * f32 with the exact values. The value is rounded to the format; it must be a number whose further
 * rounding gives the correctly rounded result. A scalar is a pair whose upper half is zero; each of
 * these operations except ex2 gives zero there.
 * HALFU(name, value): a and b are vectors of 16-bit halves as signed integers, and so is the value.
 * If in->e & 1 they are bf16, else f16; inf is the bit pattern of infinity, one that of 1.
 * VEC(name, value): a and b are vectors of 32-bit elements as integers, and so is the value.
 * QUOT(name, narrow, wide): a and b are 64-bit elements of one lane. `narrow` is right if both are
 * below 2^32, as most are in programs; it is used if that holds for all lanes.
 */
/* clang-format off */
/*
 * f32 has 24 bits of precision, f16 11, bf16 8. A sum or product that is rounded to f32 and then to
 * a format with p bits is correctly rounded if 24 >= 2 p + 2 (Figueroa, When is double rounding
 * innocuous?, 1995). Sums and products of f16 that are subnormal are exact in f32. A sum of bf16
 * that is subnormal is exact. A product of bf16 has 16 bits; double rounding of a subnormal product
 * would need one of 17 bits, or 65535 * 2^-150, which is no product of two 8-bit numbers.
 */
HALF(add_f16, f16, a + b)
HALF(sub_f16, f16, a - b)
HALF(mul_f16, f16, a * b)
HALF(fma_f16, f16, add_odd(a * b, c))
/* .ftz: the hardware decides before the rounding whether a result is subnormal, and so does f16z */
HALF(addz_f16, f16z, a + b)
HALF(subz_f16, f16z, a - b)
HALF(mulz_f16, f16z, a * b)
HALF(fmaz_f16, f16z, add_odd(a * b, c))
HALF(add_bf16, bf16, a + b)
HALF(sub_bf16, bf16, a - b)
HALF(mul_bf16, bf16, a * b)
HALF(fma_bf16, bf16, fma_bf16(a, b, c))
HALF(ex2_f16, f16, ex2_short_vf(a))
HALF(ex2z_bf16, bf16, flush_vf(ex2_short_vf(a)))
HALF(ex2_bf16, bf16, ex2_short_vf(a))
HALF(tanh_f16, f16, tanh_short_vf(a))
HALF(tanh_bf16, bf16, tanh_short_vf(a))
HALFU(min_h, pick_h(nan_h(a, inf), pick_h(nan_h(b, inf), splat_h(0x7fff), b), pick_h(nan_h(b, inf) | (key_h(a) < key_h(b)), a, b)))
HALFU(max_h, pick_h(nan_h(a, inf), pick_h(nan_h(b, inf), splat_h(0x7fff), b), pick_h(nan_h(b, inf) | (key_h(a) > key_h(b)), a, b)))
HALFU(minnan_h, pick_h(nan_h(a, inf) | nan_h(b, inf), splat_h(0x7fff), pick_h(key_h(a) < key_h(b), a, b)))
HALFU(maxnan_h, pick_h(nan_h(a, inf) | nan_h(b, inf), splat_h(0x7fff), pick_h(key_h(a) > key_h(b), a, b)))
HALFU(sat_h, pick_h(a > one, splat_h(one), a) & ~(a >> 15) & ~nan_h(a, inf))
HALFU(relu_h, pick_h(nan_h(a, inf), splat_h(0x7fff), a & ~(a >> 15)))
HALFU(ftz_h, pick_h((a & inf) == 0, a & splat_h(-0x8000), a))
/* .satfinite: infinity becomes the largest finite number */
HALFU(finite_h, a + ((a & 0x7fff) == inf))
/* f32 */
VEC(sat_f32, (vu)min_vf(splat(1), max_vf((vf)a, splat(0))))
VEC(relu_f32, (vu)pickf((vf)a != (vf)a, splat(QNAN32), max_vf((vf)a, splat(0))))
VEC(ex2_f32, (vu)nan_vf(ex2_vf((vf)a)))
VEC(lg2_f32, (vu)lg2_vf((vf)a))
VEC(sin_f32, (vu)sin_vf((vf)a, 0))
VEC(cos_f32, (vu)sin_vf((vf)a, 1))
VEC(tanh_f32, (vu)nan_vf(tanh_vf((vf)a)))
/* conversions; e of the m forms is the rounding mode, which is not RN */
VEC(cvt_f32_f16, (vu)nan_vf(f16_unpack(narrow(a & 0xffff))))
VEC(cvt_f16_f32, widen(f16_pack((vf)a)))
VEC(cvt_f16m_f32, f16_directed((vf)a, in->e))
VEC(cvt_bf16_f32, widen(bf16_pack((vf)a)))
VEC(cvt_bf16m_f32, bf16_directed((vf)a, in->e))
VEC(cvt_f16x2_f32, widen(f16_pack((vf)b)) | (widen(f16_pack((vf)a)) << 16))
VEC(cvt_bf16x2_f32, widen(bf16_pack((vf)b)) | (widen(bf16_pack((vf)a)) << 16))
VEC(cvt_e4m3x2_f32, e4m3_pack((vf)b) | (e4m3_pack((vf)a) << 8))
VEC(cvt_e5m2x2_f32, e5m2_pack((vf)b) | (e5m2_pack((vf)a) << 8))
VEC(cvt_f16x2_e4m3x2, e4m3_f16(a & 0xff) | (e4m3_f16((a >> 8) & 0xff) << 16))
VEC(cvt_f16x2_e5m2x2, e5m2_f16(a & 0xff) | (e5m2_f16((a >> 8) & 0xff) << 16))
/* to 8- and 16-bit integers, of a value that is one; e: OBD_SMALL */
VEC(cvt_small_f32, small_integer((vf)a, in->e))
VEC(cvt_tf32_f32, tf32_round((vf)a, in->e))
/* 64-bit integers */
QUOT(div_u64, b ? obd_div_u32((u32)a, (u32)b) : ~0ull, b ? a / b : ~0ull)
QUOT(div_s64, b ? obd_div_u32((u32)a, (u32)b) : ~0ull, obd_div_s64((i64)a, (i64)b))
QUOT(rem_u64, obd_rem_u32((u32)a, (u32)b), b ? a % b : a)
QUOT(rem_s64, obd_rem_u32((u32)a, (u32)b), obd_rem_s64((i64)a, (i64)b))
/* clang-format on */
