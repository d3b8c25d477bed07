/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Vectors of f32: formats with 16 bits, rounding, and the approximate functions of PTX. Included by
 * interp.c.
 *
 * The results are the same for every instruction set: each function is a fixed sequence of
 * correctly rounded operations (the file is compiled with -ffp-contract=off, and no operation is a
 * fused one), and the conversions of the processor that are used, vcvtph2ps and vcvtps2ph, are
 * exact or correctly rounded.
 */

typedef f32 vf __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef u16 vh __attribute__((vector_size(VECTOR_BYTES / 2), may_alias));

#define HALF_VECTORS (2 * VECTORS)

static inline vf splat(f32 x)
{
	return x - (vf){ 0 };
}

/* Each element of mask is 0 or all ones. */
static inline vu pick(vi mask, vu x, vu y)
{
	return ((vu)mask & x) | (~(vu)mask & y);
}

static inline vi is_nan(vf x)
{
	return x != x; /* NOLINT(misc-redundant-expression) */
}

static inline vf pickf(vi mask, vf x, vf y)
{
	return (vf)pick(mask, (vu)x, (vu)y);
}

static inline vf abs_vf(vf x)
{
	return (vf)((vu)x & 0x7fffffffu);
}

static inline bool any_vi(vi mask)
{
#if defined(__AVX512F__)
	return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
	return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#elif defined(__SSE4_1__)
	return !_mm_testz_si128((__m128i)mask, (__m128i)mask);
#else
	i32 r = 0;

	for (unsigned i = 0; i < VECTOR_BYTES / 4; i++)
		r |= mask[i];
	return r != 0;
#endif
}

/* The canonical NaN for every NaN. */
static inline vf nan_vf(vf x)
{
#if defined(__AVX512F__)
	return (vf)_mm512_mask_mov_ps((__m512)x,
		_mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q), (__m512)splat(QNAN32));
#else
	return pickf(is_nan(x), splat(QNAN32), x);
#endif
}

/* a < b ? a : b, and so b if one of them is NaN */
static inline vf min_vf(vf a, vf b)
{
#if defined(__AVX512F__)
	return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
	return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
	return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
	return pickf(a < b, a, b);
#endif
}

/* a > b ? a : b */
static inline vf max_vf(vf a, vf b)
{
#if defined(__AVX512F__)
	return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
	return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
	return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
	return pickf(a > b, a, b);
#endif
}

/* Numbers whose magnitude has a bit pattern below `least` become zero and keep their sign. */
static inline vf flush_below(vf x, i32 least)
{
	vu small = (vu)(((vi)abs_vf(x) - least) >> 31);

	return (vf)((vu)x & ~(small & 0x7fffffffu));
}

static inline vf flush_vf(vf x)
{
	return flush_below(x, 0x00800000);
}

/* 16-bit elements to 32-bit ones with the same value, and back; those are below 2^16. */
static inline vu widen(vh h)
{
#if defined(__SSE4_1__) && !defined(__AVX2__)
	return (vu)_mm_cvtepu16_epi32((__m128i){ (long long)h, 0 });
#else
	return __builtin_convertvector(h, vu);
#endif
}

static inline vh narrow(vu x)
{
#if defined(__AVX2__) && !defined(__AVX512F__)
	__m256i twice = _mm256_packus_epi32((__m256i)x, (__m256i)x);

	return (vh)_mm256_castsi256_si128(_mm256_permute4x64_epi64(twice, 8));
#elif defined(__SSE4_1__) && !defined(__AVX2__)
	return (vh)(((__m128i)_mm_packus_epi32((__m128i)x, (__m128i)x))[0]);
#else
	return __builtin_convertvector(x, vh);
#endif
}

static inline vf f16_unpack(vh h)
{
#if defined(__AVX512F__)
	return (vf)_mm512_cvtph_ps((__m256i)h);
#elif defined(__F16C__)
	return (vf)_mm256_cvtph_ps((__m128i)h);
#else
	vu w = widen(h), mag = w & 0x7fff, sign = (w & 0x8000) << 16;
	vf tiny = __builtin_convertvector((vi)mag, vf) * 0x1p-24f;
	vu normal = (mag << 13) + (112u << 23);

	normal += (vu)((vi)mag >= 0x7c00) & (112u << 23); /* infinity and NaN */
	return (vf)(pick((vi)mag < 0x400, (vu)tiny, normal) | sign);
#endif
}

/* Rounds to nearest even. */
static inline vh f16_pack(vf x)
{
#if defined(__AVX512F__)
	return (vh)_mm512_cvtps_ph(
		(__m512)nan_vf(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__F16C__)
	return (vh)_mm256_cvtps_ph(
		(__m256)nan_vf(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
	vu b = (vu)x, mag = b & 0x7fffffff, sign = (b >> 16) & 0x8000;
	vu up = mag + 0xfff + ((mag >> 13) & 1), r = (up - 0x38000000) >> 13;
	/* the unit of the sum's last place is 2^-24, that of a subnormal f16 */
	vu tiny = (vu)((vf)mag + 0.5f) - 0x3f000000;

	r = pick((vi)up >= 0x47800000, (vu){ 0 } + 0x7c00, r);
	r = pick((vi)mag < 0x38800000, tiny, r) | sign;
	r = pick((vi)mag > 0x7f800000, (vu){ 0 } + 0x7fff, r);
	return narrow(r);
#endif
}

/* The same with subnormal operands and results flushed to zero. */
static inline vf f16z_unpack(vh h)
{
	return f16_unpack(h & ~((vh)((h & 0x7c00) == 0) & 0x7fff));
}

static inline vh f16z_pack(vf x)
{
	return f16_pack(flush_below(x, 0x38800000));
}

/* Rounds to f16 in one of the directions OBD_RZ, OBD_RM, OBD_RP. */
static inline vu f16_directed(vf x, u32 mode)
{
	vu b = (vu)x, mag = b & 0x7fffffff, sign = (b >> 16) & 0x8000;
	vi neg = (vi)b >> 31;
	vi away = mode == OBD_RM ? neg : mode == OBD_RP ? ~neg : (vi){ 0 };
	vu up = mag + ((vu)away & 0x1fff), r = (up - 0x38000000) >> 13;
	/* rounded to nearest, then corrected by one in the direction */
	vu tiny = (vu)((vf)mag + 0.5f) - 0x3f000000;
	vf back = __builtin_convertvector((vi)tiny, vf) * 0x1p-24f;

	tiny -= (vu)((back < (vf)mag) & away);
	tiny += (vu)((back > (vf)mag) & ~away);
	r = pick((vi)up >= 0x47800000, ((vu)away & 1) + 0x7bff, r);
	r = pick((vi)mag < 0x38800000, tiny, r);
	r = pick((vi)mag == 0x7f800000, (vu){ 0 } + 0x7c00, r) | sign;
	return pick((vi)mag > 0x7f800000, (vu){ 0 } + 0x7fff, r);
}

static inline vf bf16_unpack(vh h)
{
	return (vf)(widen(h) << 16);
}

static inline vh bf16_pack(vf x)
{
	vu b = (vu)x, r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;

	return narrow(pick(is_nan(x), (vu){ 0 } + 0x7fff, r));
}

static inline vu bf16_directed(vf x, u32 mode)
{
	vu b = (vu)x;
	vi neg = (vi)b >> 31;
	vi away = mode == OBD_RM ? neg : mode == OBD_RP ? ~neg : (vi){ 0 };

	return pick(is_nan(x), (vu){ 0 } + 0x7fff, (b + ((vu)away & 0xffff)) >> 16);
}

/* The result is in the upper 19 bits; the others are zero. */
static inline vu tf32_round(vf x, u32 mode)
{
	vu b = (vu)x;

	b += mode == OBD_RN ? ((b >> 13) & 1) + 0xfff : (vu){ 0 } + (mode == OBD_RNA ? 0x1000u : 0);
	return pick(is_nan(x), (vu){ 0 } + 0x7fffffff, b) & ~0x1fffu;
}

/*
 * Rounds to nearest even in a format of 8 bits; numbers above `most` become that number. The format
 * has a fraction of 23 - shift bits and the exponent bias 127 - bias. `unit` is a number whose unit
 * of the last place is that of the format's subnormals, which end below `normal`.
 */
static inline vu f8_pack(vf x, f32 most, u32 shift, u32 bias, f32 unit, i32 normal)
{
	vu mag = (vu)min_vf(splat(most), abs_vf(x));
	vu up = mag + ((1u << (shift - 1)) - 1) + ((mag >> shift) & 1);
	vu tiny = (vu)((vf)mag + unit) - obd_f32_bits(unit);
	vu r = pick((vi)mag < normal, tiny, (up >> shift) - (bias << (23 - shift)));

	return pick(is_nan(x), (vu){ 0 } + 0x7f, r | (((vu)x >> 24) & 0x80));
}

static inline vu e4m3_pack(vf x)
{
	return f8_pack(x, 448.0f, 20, 120, 0x1p14f, 0x3c800000);
}

static inline vu e5m2_pack(vf x)
{
	return f8_pack(x, 57344.0f, 21, 112, 0x1p7f, 0x38800000);
}

/* The exact f16 of an 8-bit number. */
static inline vu e4m3_f16(vu b)
{
	vu mag = b & 0x7f, r = (mag << 7) + (8u << 10); /* the biases differ by 8 */
	vf tiny = __builtin_convertvector((vi)mag, vf) * 0x1p-9f;

	r = pick((vi)mag < 8, widen(f16_pack(tiny)), r) | ((b & 0x80) << 8);
	return pick((vi)mag == 0x7f, (vu){ 0 } + 0x7fff, r);
}

static inline vu e5m2_f16(vu b)
{
	return pick((vi)(b & 0x7f) > 0x7c, (vu){ 0 } + 0x7fff, b << 8);
}

/*
 * Converts to an integer of 8 or 16 bits, toward zero and clamped. NaN gives 0. what: OBD_SMALL.
 * The result is zero-extended.
 */
static inline vu small_integer(vf x, u32 what)
{
	u32 bits = what & 31, sign = what >> 5;
	f32 top = (f32)((1 << (bits - sign)) - 1), low = sign ? -top - 1 : 0;
	vf y = max_vf(min_vf(splat(top), x), splat(low));

	return (vu) __builtin_convertvector(y, vi) & (vu)~is_nan(x) & ((1u << bits) - 1);
}

/*
 * p + c, rounded to odd: an inexact sum becomes the neighbour whose last bit is 1. Rounding the
 * result to a format with at most 22 bits gives the correctly rounded sum (Boldo and Melquiond,
 * Emulation of FMA and correctly rounded sums, 2008). The error is that of Knuth's two-sum, which
 * is exact without overflow.
 */
static inline vf add_odd(vf p, vf c)
{
	vf s = p + c, back = s - p, error = (p - (s - back)) + (c - back);
	vi inexact = (error < 0) | (error > 0); /* false for NaN: s is infinite or NaN */
	vi even = ((vi)s & 1) - 1;
	vi step = (((vi)s ^ (vi)error) >> 31) | 1; /* away from zero, or toward it */

	return (vf)((vi)s + (step & inexact & even));
}

/* The elements of a * b + c for which fma_bf16 cannot use f32. */
static __attribute__((noinline)) void fma_bf16_rest(
	const f32 *a, const f32 *b, const f32 *c, const i32 *which, f32 *r)
{
	OUTSIDE();
	for (unsigned i = 0; i < VECTOR_BYTES / 4; i++) {
		if (!which[i])
			continue;
		f64 x = obd_fma_odd((f64)a[i], (f64)b[i], (f64)c[i]);

		r[i] = obd_bits_f32(obd_round_to(&obd_format_bf16, x, OBD_RN, false) << 16);
	}
}

/*
 * A product of bf16 has 16 bits, so it is exact in f32, and the two-sum is, too, unless the product
 * or the sum may leave the range of f32. Such elements are computed in f64.
 */
static inline vf fma_bf16(vf a, vf b, vf c)
{
	vf p = a * b, r = add_odd(p, c);
	/* 2^-110 <= |p| <= 2^126, |c| <= 2^126 */
	vi rest = ((vu)abs_vf(p) - 0x08800000u > 0x7e800000u - 0x08800000u) |
		((vu)abs_vf(c) > 0x7e800000u);

	if (UNLIKELY(any_vi(rest))) { /* zeros and NaN need no more */
		rest &= (a != 0) & (b != 0) & ~is_nan(p) & ~is_nan(c);
		if (any_vi(rest))
			fma_bf16_rest((const f32 *)&a, (const f32 *)&b, (const f32 *)&c,
				(const i32 *)&rest, (f32 *)&r);
	}
	return r;
}

/* Adding it rounds to an integer, which is then in the low bits. */
#define ROUNDER 0x1.8p23f

/*
 * 2^f for |f| <= 1/2, as 1 + f * polynomial. The coefficients interpolate at Chebyshev nodes;
 * relative error 2^-26.7 and the rounding errors.
 */
static inline vf ex2_part(vf f)
{
	vf q = splat(0x1.44138ap-13f);

	q = q * f + 0x1.5f0890p-10f;
	q = q * f + 0x1.3b2a54p-7f;
	q = q * f + 0x1.c6af6cp-5f;
	q = q * f + 0x1.ebfbe0p-3f;
	q = q * f + 0x1.62e430p-1f;
	return q * f + 1.0f;
}

/* The same with a relative error of 2^-17.1, for results of 16 bits. */
static inline vf ex2_short_part(vf f)
{
	vf q = splat(0x1.3c6e5cp-7f);

	q = q * f + 0x1.c96d5ep-5f;
	q = q * f + 0x1.ebfb3ep-3f;
	q = q * f + 0x1.62e2d2p-1f;
	return q * f + 1.0f;
}

/*
 * 2^x for x = n + f. The factor 2^n is applied in two steps, so that a subnormal result is rounded
 * once. A NaN remains one.
 */
#define EX2(name, part)                                                             \
	static inline vf name(vf x)                                                 \
	{                                                                           \
		vf y = max_vf(splat(-200.0f), min_vf(splat(200.0f), x));            \
		vf t = y + ROUNDER, q = part(y - (t - ROUNDER));                    \
		vi n = (vi)t - 0x4b400000, half = n >> 1;                           \
                                                                                    \
		return q * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23); \
	}
EX2(ex2_vf, ex2_part)
EX2(ex2_short_vf, ex2_short_part)

/*
 * log2 of x = 2^e * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2): e + f * polynomial. Relative error of
 * the polynomial: 2^-25.7.
 */
static inline vf lg2_vf(vf x)
{
	vi b = (vi)x, rare = (b < 0x00800000) | (b >= 0x7f800000), more = { 0 };

	if (UNLIKELY(any_vi(rare))) {
		vi tiny = abs_vf(x) < 0x1p-126f;

		b = (vi)pickf(tiny, x * 0x1p23f, x);
		more = tiny & 23;
	}
	vi e = (b - 0x3f3504f3) >> 23;
	vf f = (vf)(b - (e << 23)) - 1.0f, q = splat(-0x1.b84fb6p-4f);

	q = q * f + 0x1.7a63a0p-3f;
	q = q * f + -0x1.87f6a2p-3f;
	q = q * f + 0x1.a38c68p-3f;
	q = q * f + -0x1.eab7aap-3f;
	q = q * f + 0x1.277a52p-2f;
	q = q * f + -0x1.715a70p-2f;
	q = q * f + 0x1.ec70aap-2f;
	q = q * f + -0x1.715470p-1f;
	q = q * f + 0x1.715476p+0f;
	q = q * f + __builtin_convertvector(e - more, vf);
	if (UNLIKELY(any_vi(rare))) {
		q = pickf(x == 0, splat(-INFINITY), q);
		q = pickf(x == INFINITY, x, q);
		q = pickf((x < 0) | is_nan(x), splat(QNAN32), q);
	}
	return q;
}

static __attribute__((noinline)) void sin_rest(const f32 *x, u32 cosine, const i32 *which, f32 *r)
{
	OUTSIDE();
	for (unsigned i = 0; i < VECTOR_BYTES / 4; i++)
		if (which[i])
			r[i] = obd_nan32(cosine ? cosf(x[i]) : sinf(x[i]));
}

/*
 * sin or cos of x = k * pi/2 + r, |r| <= pi/4. pi/2 is the sum of three constants, of which the
 * first two have 12 bits, so that their products with k are exact for |x| <= 6000 (k < 2^12).
 * Larger arguments, which are rare, use the C library.
 */
static inline vf sin_vf(vf x, u32 cosine)
{
	vf t = x * 0x1.45f306p-1f + ROUNDER, k = t - ROUNDER;
	vf r = x - k * 0x1.92p+0f - k * 0x1.fb4p-12f - k * 0x1.4442d2p-24f;
	vi quadrant = (vi)t + (i32)cosine;
	vf r2 = r * r, s, c;

	s = splat(-0x1.9aaea8p-13f);
	s = s * r2 + 0x1.110bf6p-7f;
	s = s * r2 + -0x1.555552p-3f;
	s = s * r2 * r + r;
	c = splat(0x1.9bc2f0p-16f);
	c = c * r2 + -0x1.6c12aap-10f;
	c = c * r2 + 0x1.555554p-5f;
	c = c * r2 * r2 + (1.0f - 0.5f * r2);
	if (!cosine)
		s = pickf(x == 0, x, s);
	vu y = pick(-(quadrant & 1), (vu)c, (vu)s) ^ ((vu)(quadrant & 2) << 30);
	vi rest = ~(abs_vf(x) <= 6000.0f);

	if (UNLIKELY(any_vi(rest)))
		sin_rest((const f32 *)&x, cosine, (const i32 *)&rest, (f32 *)&y);
	return (vf)y;
}

/*
 * tanh: an odd polynomial for |x| < 0.6 (relative error 2^-26), else 1 - 2 / (2^y + 1) with
 * y = 2 log2(e) |x| and the sign of x. A NaN remains one.
 */
#define TANH_LARGE(a, part)                                                    \
	vf y = min_vf(splat(40.0f), a * 0x1.715476p+1f), t = y + ROUNDER;      \
	vf power = part(y - (t - ROUNDER)) * (vf)(((vi)t << 23) + 0x3f800000); \
	vf large = 1.0f - 2.0f / (power + 1.0f)

static inline vf tanh_vf(vf x)
{
	vf a = abs_vf(x), x2 = x * x, q = splat(-0x1.9adap-8f);

	TANH_LARGE(a, ex2_part);
	q = q * x2 + 0x1.59e1c8p-6f;
	q = q * x2 + -0x1.b955dcp-5f;
	q = q * x2 + 0x1.110ee0p-3f;
	q = q * x2 + -0x1.555554p-2f;
	q = q * x2 * a + a;
	return (vf)((vu)pickf(a < 0.6f, q, large) | ((vu)x & 0x80000000u));
}

/* The same with a relative error of 2^-16.7, for results of 16 bits. */
static inline vf tanh_short_vf(vf x)
{
	vf a = abs_vf(x), x2 = x * x, q = splat(-0x1.672db0p-5f);

	TANH_LARGE(a, ex2_short_part);
	q = q * x2 + 0x1.0e6482p-3f;
	q = q * x2 + -0x1.554e8ap-2f;
	q = q * x2 * a + a;
	return (vf)((vu)pickf(a < 0.6f, q, large) | ((vu)x & 0x80000000u));
}
