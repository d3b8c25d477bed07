/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Additions of eight points at a time on processors with AVX-512 IFMA, whose multiply-add takes
 * 52-bit numbers. A slot is 128 bytes: 8 limbs of x in 64-bit words, with the flag of infinity in
 * the top bit of the last one; then the same for y. Limbs are below 2^52, values in [0, p (1 +
 * 2^-10)), in Montgomery form with R = 2^416. The instruction reads only 52 bits of its operands,
 * so carries are propagated in differences before they are multiplied.
 *
 * With OBK_IFMA_EMULATED the two instructions are emulated, so that the rest can be tested on
 * processors without them.
 */
#include <immintrin.h>
#include <string.h>

#include "compute/curve/lanes.h"
#include "compute/curve/lanes_transpose.h"

#define LIMBS        8
#define LIMB_BITS    52
#define LIMB_MASK    0xfffffffffffff
#define MAX_MULTIPLE 6
#define INFINITE     ((uint64_t)1 << 63)
#define FACTOR(v)    normalise(v)

typedef uint64_t word;

struct vec {
	__m512i l[LIMBS];
};

struct slot {
	uint64_t x[LIMBS], y[LIMBS];
} __attribute__((aligned(64)));

#if defined(OBK_IFMA_EMULATED)
#define TABLE obk_lanes_ifma_emulated

/* The product of 52-bit numbers from halves of 26 bits: a b = high 2^52 + middle 2^26 + low. */
static inline __m512i emulated(__m512i sum, __m512i a, __m512i b, bool high_half)
{
	const __m512i mask = _mm512_set1_epi64(0x3ffffff);
	__m512i a0 = _mm512_and_si512(a, mask),
		a1 = _mm512_and_si512(_mm512_srli_epi64(a, 26), mask);
	__m512i b0 = _mm512_and_si512(b, mask),
		b1 = _mm512_and_si512(_mm512_srli_epi64(b, 26), mask);
	__m512i low = _mm512_mul_epu32(a0, b0), high = _mm512_mul_epu32(a1, b1);
	__m512i middle = _mm512_add_epi64(_mm512_mul_epu32(a0, b1), _mm512_mul_epu32(a1, b0));

	low = _mm512_add_epi64(low, _mm512_slli_epi64(_mm512_and_si512(middle, mask), 26));
	high = _mm512_add_epi64(
		_mm512_add_epi64(high, _mm512_srli_epi64(middle, 26)), _mm512_srli_epi64(low, 52));
	return _mm512_add_epi64(
		sum, high_half ? high : _mm512_and_si512(low, _mm512_set1_epi64(LIMB_MASK)));
}

#define MADD_LOW(sum, a, b)  emulated(sum, a, b, false)
#define MADD_HIGH(sum, a, b) emulated(sum, a, b, true)
#else
#define TABLE                obk_lanes_ifma
#define MADD_LOW(sum, a, b)  _mm512_madd52lo_epu64(sum, a, b)
#define MADD_HIGH(sum, a, b) _mm512_madd52hi_epu64(sum, a, b)
#endif

extern const struct obk_lanes TABLE;

/* 0 and k p for k = 1..7, limb by limb, so that a vector holds one limb of all of them. */
static const uint64_t by_limb[LIMBS][8] __attribute__((aligned(64))) = {
	{ 0x0, 0xeffffffffaaab, 0xdffffffff5556, 0xcffffffff0001, 0xbfffffffeaaac, 0xafffffffe5557,
		0x9fffffffe0002, 0x8fffffffdaaad },
	{ 0x0, 0xfeb153ffffb9f, 0xfd62a7ffff73f, 0xfc13fbffff2df, 0xfac54ffffee7f, 0xf976a3fffea1f,
		0xf827f7fffe5bf, 0xf6d94bfffe15f },
	{ 0x0, 0x6b0f6241eabff, 0xd61ec483d57ff, 0x412e26c5c03ff, 0xac3d8907aafff, 0x174ceb4995bff,
		0x825c4d8b807ff, 0xed6bafcd6b3ff },
	{ 0x0, 0x12bf6730d2a0f, 0x257ece61a541e, 0x383e359277e2e, 0x4afd9cc34a83d, 0x5dbd03f41d24d,
		0x707c6b24efc5c, 0x833bd255c266b },
	{ 0x0, 0x764774b84f385, 0xec8ee9709e70a, 0x62d65e28eda8f, 0xd91dd2e13ce14, 0x4f6547998c199,
		0xc5acbc51db51e, 0x3bf4310a2a8a3 },
	{ 0x0, 0x1ba7b6434bacd, 0x374f6c869759a, 0x52f722c9e3068, 0x6e9ed90d2eb35, 0x8a468f507a603,
		0xa5ee4593c60d0, 0xc195fbd711b9e },
	{ 0x0, 0x1ea397fe69a4b, 0x3d472ffcd3496, 0x5beac7fb3cee1, 0x7a8e5ff9a692c, 0x9931f7f810377,
		0xb7d58ff679dc2, 0xd67927f4e380d },
	{ 0x0, 0x1a011, 0x34022, 0x4e033, 0x68044, 0x82055, 0x9c066, 0xb6077 },
};
/* The same in rows, from p to 6 p. */
static const uint64_t multiples[MAX_MULTIPLE][LIMBS] = {
	{ 0xeffffffffaaab, 0xfeb153ffffb9f, 0x6b0f6241eabff, 0x12bf6730d2a0f, 0x764774b84f385,
		0x1ba7b6434bacd, 0x1ea397fe69a4b, 0x1a011 },
	{ 0xdffffffff5556, 0xfd62a7ffff73f, 0xd61ec483d57ff, 0x257ece61a541e, 0xec8ee9709e70a,
		0x374f6c869759a, 0x3d472ffcd3496, 0x34022 },
	{ 0xcffffffff0001, 0xfc13fbffff2df, 0x412e26c5c03ff, 0x383e359277e2e, 0x62d65e28eda8f,
		0x52f722c9e3068, 0x5beac7fb3cee1, 0x4e033 },
	{ 0xbfffffffeaaac, 0xfac54ffffee7f, 0xac3d8907aafff, 0x4afd9cc34a83d, 0xd91dd2e13ce14,
		0x6e9ed90d2eb35, 0x7a8e5ff9a692c, 0x68044 },
	{ 0xafffffffe5557, 0xf976a3fffea1f, 0x174ceb4995bff, 0x5dbd03f41d24d, 0x4f6547998c199,
		0x8a468f507a603, 0x9931f7f810377, 0x82055 },
	{ 0x9fffffffe0002, 0xf827f7fffe5bf, 0x825c4d8b807ff, 0x707c6b24efc5c, 0xc5acbc51db51e,
		0xa5ee4593c60d0, 0xb7d58ff679dc2, 0x9c066 },
};
static const uint64_t *const k2 = multiples[1], *const k4 = multiples[3];
/*
 * -1 / p mod 2^52; 2^416 mod p, which is one; 2^448 mod p, which converts from R = 2^384 to R =
 * 2^416.
 */
static const uint64_t negative_inverse = 0x3fffcfffcfffd;
static const uint64_t one[LIMBS] = { 0x6480ea8e9b9af, 0x65766c8fe444f, 0x8b540fea96f7d,
	0x3b2ee82efd422, 0xa6723e5f0ade5, 0xff6eb6fdd4230, 0xe06ef23c24a25, 0x14c8e };
static const uint64_t enter[LIMBS] = { 0x7fde37dba9366, 0x4e27525bc342b, 0x1f5b1e9778489,
	0xb872b2b91b9dc, 0xb206f497dfcaf, 0x4137cc89a9b0b, 0xd9d20d7e39959, 0x411c };
/*
 * 2^352 converts from R = 2^416 to R = 2^384 with a product of compute/field; 2^448 = 2^64 R there.
 */
static const struct obk_fp leave = { { 0, 0, 0, 0, 0, 0x100000000 } };
static const struct obk_fp inverse_lacks = { { 0x42b7fde37dba9366, 0x7784894e27525bc3,
	0xb2b91b9dc1f5b1e9, 0x206f497dfcafb872, 0x594137cc89a9b0bb, 0x0411cd9d20d7e399 } };

static bool usable(void)
{
#if defined(OBK_IFMA_EMULATED)
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
#else
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
		__builtin_cpu_supports("avx512ifma");
#endif
}

static inline __m512i same(uint64_t v)
{
	return _mm512_set1_epi64((long long)v);
}

/* Loads a coordinate of eight slots; returns the SIMD lanes that have the flag of infinity. */
static inline __mmask8 gather(struct vec *r, const uint64_t *const rows[LANES])
{
	__mmask8 infinite;

	for (unsigned i = 0; i < LANES; i++)
		r->l[i] = _mm512_load_si512(rows[i]);
	transpose(r->l);
	infinite = _mm512_movepi64_mask(r->l[LIMBS - 1]);
	r->l[LIMBS - 1] = _mm512_and_si512(r->l[LIMBS - 1], same(INFINITE - 1));
	return infinite;
}

static inline void scatter(uint64_t *const rows[LANES], const struct vec *v, __mmask8 infinite)
{
	struct vec c = *v;

	c.l[LIMBS - 1] =
		_mm512_mask_or_epi64(c.l[LIMBS - 1], infinite, c.l[LIMBS - 1], same(INFINITE));
	transpose(c.l);
	for (unsigned i = 0; i < LANES; i++)
		_mm512_store_si512(rows[i], c.l[i]);
}

/* Propagates carries through signed limbs; the highest limb takes the rest. */
static inline void normalise(struct vec *v)
{
	for (unsigned i = 0; i + 1 < LIMBS; i++) {
		v->l[i + 1] = _mm512_add_epi64(v->l[i + 1], _mm512_srai_epi64(v->l[i], LIMB_BITS));
		v->l[i] = _mm512_and_si512(v->l[i], same(LIMB_MASK));
	}
}

/*
 * Reduces from a value in [p / 2, 6 p) with signed limbs of less than 56 bits to [0, p (1 + 2^-10))
 * with proper limbs. The quotient by p is estimated from the highest limb (p / 2^364 = 106513.9)
 * minus 8, which is as much as the missing carries can amount to. The estimate is never too large,
 * and too small by at most a ten-thousandth.
 */
static inline void reduce(struct vec *v)
{
	__m512i q = _mm512_sub_epi64(v->l[LIMBS - 1], same(8));

	q = _mm512_srli_epi64(_mm512_mul_epu32(q, same(645168)), 36);
	for (unsigned i = 0; i < LIMBS; i++)
		v->l[i] = _mm512_sub_epi64(
			v->l[i], _mm512_permutexvar_epi64(q, _mm512_load_si512(by_limb[i])));
	normalise(v);
}

/*
 * r = a b / 2^416; the limbs of the operands are below 2^52. A column sums at most 32 numbers of 52
 * bits and a carry.
 */
static __attribute__((noinline)) void MUL(struct vec *r, const struct vec *a, const struct vec *b)
{
	__m512i t[LIMBS + 1];

	for (unsigned j = 0; j <= LIMBS; j++)
		t[j] = _mm512_setzero_si512();
#pragma GCC unroll 8
	for (unsigned i = 0; i < LIMBS; i++) {
		__m512i m;

#pragma GCC unroll 8
		for (unsigned j = 0; j < LIMBS; j++) {
			t[j] = MADD_LOW(t[j], a->l[i], b->l[j]);
			t[j + 1] = MADD_HIGH(t[j + 1], a->l[i], b->l[j]);
		}
		m = MADD_LOW(_mm512_setzero_si512(), t[0], same(negative_inverse));
#pragma GCC unroll 8
		for (unsigned j = 0; j < LIMBS; j++) {
			t[j] = MADD_LOW(t[j], m, same(multiples[0][j]));
			t[j + 1] = MADD_HIGH(t[j + 1], m, same(multiples[0][j]));
		}
		t[1] = _mm512_add_epi64(t[1], _mm512_srli_epi64(t[0], LIMB_BITS));
#pragma GCC unroll 8
		for (unsigned j = 0; j < LIMBS; j++)
			t[j] = t[j + 1];
		t[LIMBS] = _mm512_setzero_si512();
	}
	for (unsigned j = 0; j < LIMBS; j++)
		r->l[j] = t[j];
	normalise(r);
}

static inline void SQR(struct vec *r, const struct vec *a)
{
	MUL(r, a, a);
}

/* Converts 8 limbs of 52 bits, a value below 2 p, to a reduced number of 6 x 64 bits. */
static void join(struct obk_fp *r, const uint64_t limbs[LIMBS])
{
	uint64_t borrow = 0, low[OBK_FP_LIMBS];

	memset(r, 0, sizeof(*r));
	for (unsigned i = 0; i < LIMBS; i++) {
		unsigned at = i * LIMB_BITS;

		r->l[at / 64] |= limbs[i] << at % 64;
		if (at % 64 > 64 - LIMB_BITS && at / 64 + 1 < OBK_FP_LIMBS)
			r->l[at / 64 + 1] |= limbs[i] >> (64 - at % 64);
	}
	for (unsigned i = 0; i < OBK_FP_LIMBS; i++) {
		__extension__ unsigned __int128 d =
			(unsigned __int128)r->l[i] - obk_fp_modulus.l[i] - borrow;

		low[i] = (uint64_t)d;
		borrow = (uint64_t)(d >> 64) & 1;
	}
	if (!borrow)
		memcpy(r->l, low, sizeof(low));
}

static void split(uint64_t limbs[LIMBS], const struct obk_fp *a)
{
	for (unsigned i = 0; i < LIMBS; i++) {
		unsigned at = i * LIMB_BITS;
		uint64_t v = a->l[at / 64] >> at % 64;

		if (at % 64 > 64 - LIMB_BITS && at / 64 + 1 < OBK_FP_LIMBS)
			v |= a->l[at / 64 + 1] << (64 - at % 64);
		limbs[i] = v & LIMB_MASK;
	}
}

static void set_flag(struct slot *s, bool infinite)
{
	s->x[LIMBS - 1] |= infinite ? INFINITE : 0;
}

static bool flagged(const struct slot *s)
{
	return s->x[LIMBS - 1] >> 63;
}

#include "compute/curve/lanes_body.h"

const struct obk_lanes TABLE = {
	.name = "ifma",
	.usable = usable,
	.slot_bytes = sizeof(struct slot),
	.workspace_bytes = workspace_bytes,
	.load = load,
	.store = store,
	.set_infinity = set_infinity,
	.add = add,
};
