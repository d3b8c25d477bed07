/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Additions of eight points at a time. A slot is 128 bytes: 14 limbs of x in 32-bit words, a word
 * that is non-zero for infinity, an unused word; then the same for y. Limbs are below 2^28, values
 * in [0, p (1 + 2^-10)), in Montgomery form with R = 2^392. In registers a number is 14 vectors of
 * eight 64-bit SIMD lanes. Differences are made positive by adding a multiple of p with large limbs
 * (K2, K4), so they need no carries before a product.
 */
#include <immintrin.h>
#include <string.h>

#include "compute/curve/lanes.h"
#include "compute/curve/lanes_transpose.h"

#define LIMBS        14
#define LIMB_BITS    28
#define LIMB_MASK    0xfffffff
#define WORDS        16
#define MAX_MULTIPLE 6
#define MUL          obk_lanes_mul_avx512
#define SQR          obk_lanes_sqr_avx512
#define FACTOR(v)    (void)(v) /* not needed: K2 and K4 have large limbs */

typedef uint32_t word;

struct vec {
	__m512i l[LIMBS];
};

struct slot {
	uint32_t x[WORDS], y[WORDS];
} __attribute__((aligned(64)));

void obk_lanes_mul_avx512(struct vec *r, const struct vec *a, const struct vec *b);
void obk_lanes_sqr_avx512(struct vec *r, const struct vec *a);
extern const struct obk_lanes obk_lanes_avx512;

/* k p for k = 1..6 in plain limbs; the highest limb holds the rest. */
static const uint32_t multiples[MAX_MULTIPLE][LIMBS] = {
	{ 0xfffaaab, 0xfefffff, 0x3ffffb9, 0xfffeb15, 0x6241eab, 0xa0f6b0f, 0xf6730d2, 0xf38512b,
		0x4774b84, 0x4bacd76, 0xba7b643, 0xe69a4b1, 0x1ea397f, 0x1a011 },
	{ 0xfff5556, 0xfdfffff, 0x7ffff73, 0xfffd62a, 0xc483d57, 0x41ed61e, 0xece61a5, 0xe70a257,
		0x8ee9709, 0x9759aec, 0x74f6c86, 0xcd34963, 0x3d472ff, 0x34022 },
	{ 0xfff0001, 0xfcfffff, 0xbffff2d, 0xfffc13f, 0x26c5c03, 0xe2e412e, 0xe359277, 0xda8f383,
		0xd65e28e, 0xe306862, 0x2f722c9, 0xb3cee15, 0x5beac7f, 0x4e033 },
	{ 0xffeaaac, 0xfbfffff, 0xffffee7, 0xfffac54, 0x8907aaf, 0x83dac3d, 0xd9cc34a, 0xce144af,
		0x1dd2e13, 0x2eb35d9, 0xe9ed90d, 0x9a692c6, 0x7a8e5ff, 0x68044 },
	{ 0xffe5557, 0xfafffff, 0x3fffea1, 0xfff976a, 0xeb4995b, 0x24d174c, 0xd03f41d, 0xc1995db,
		0x6547998, 0x7a6034f, 0xa468f50, 0x8103778, 0x9931f7f, 0x82055 },
	{ 0xffe0002, 0xf9fffff, 0x7fffe5b, 0xfff827f, 0x4d8b807, 0xc5c825c, 0xc6b24ef, 0xb51e707,
		0xacbc51d, 0xc60d0c5, 0x5ee4593, 0x679dc2a, 0xb7d58ff, 0x9c066 },
};
/* 2 p with 2^29 added to every limb at the expense of the next one; 4 p with 2^30. */
static const uint32_t k2[LIMBS] = { 0x2fff5556, 0x2fdffffd, 0x27ffff71, 0x2fffd628, 0x2c483d55,
	0x241ed61c, 0x2ece61a3, 0x2e70a255, 0x28ee9707, 0x29759aea, 0x274f6c84, 0x2cd34961,
	0x23d472fd, 0x34020 };
static const uint32_t k4[LIMBS] = { 0x4ffeaaac, 0x4fbffffb, 0x4ffffee3, 0x4fffac50, 0x48907aab,
	0x483dac39, 0x4d9cc346, 0x4ce144ab, 0x41dd2e0f, 0x42eb35d5, 0x4e9ed909, 0x49a692c2,
	0x47a8e5fb, 0x68040 };
/* 2^392 mod p, which is one, and 2^400 mod p, which converts from R = 2^384 to R = 2^392. */
static const uint32_t one[LIMBS] = { 0x347fcb8, 0xd800000, 0x002b119, 0x0cde6d2, 0xc7212e0,
	0x83a2090, 0x037669f, 0xda0f73e, 0x9b09b42, 0x1297bb0, 0x515d98f, 0x012ca7c, 0x659fcfa,
	0x0577a };
static const uint32_t enter[LIMBS] = { 0x80e6299, 0x3500034, 0xeb12856, 0xdeb2699, 0xc988670,
	0x4ef6697, 0x70983e8, 0xa4e6fe9, 0x3e8a053, 0xecf271e, 0xc20d323, 0x6eb6385, 0x47f1286,
	0x156da };
/*
 * 2^376 converts from R = 2^392 to R = 2^384 with a product of compute/field; 2^400 = 2^16 R there.
 */
static const struct obk_fp leave = { { 0, 0, 0, 0, 0, 0x0100000000000000 } };
static const struct obk_fp inverse_lacks = { { 0x56350003480e6299, 0x8670deb2699eb128,
	0x0983e84ef6697c98, 0xe3e8a053a4e6fe97, 0x385c20d323ecf271, 0x156da47f12866eb6 } };

static bool usable(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
		__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static inline __m512i same(uint32_t v)
{
	return _mm512_set1_epi64(v);
}

/*
 * Loads a coordinate of eight slots; returns the SIMD lanes in which the word behind the limbs is
 * set.
 */
static inline __mmask8 gather(struct vec *r, const uint32_t *const rows[LANES])
{
	__m512i c[LANES];

	for (unsigned i = 0; i < LANES; i++)
		c[i] = _mm512_load_si512(rows[i]);
	transpose(c);
	for (unsigned i = 0; i < LIMBS / 2; i++) {
		r->l[2 * i] = _mm512_and_si512(c[i], same(UINT32_MAX));
		r->l[2 * i + 1] = _mm512_srli_epi64(c[i], 32);
	}
	return _mm512_test_epi64_mask(c[LANES - 1], c[LANES - 1]);
}

static inline void scatter(uint32_t *const rows[LANES], const struct vec *v, __mmask8 flagged)
{
	__m512i c[LANES];

	for (unsigned i = 0; i < LIMBS / 2; i++)
		c[i] = _mm512_or_si512(v->l[2 * i], _mm512_slli_epi64(v->l[2 * i + 1], 32));
	c[LANES - 1] = _mm512_maskz_set1_epi64(flagged, 1);
	transpose(c);
	for (unsigned i = 0; i < LANES; i++)
		_mm512_store_si512(rows[i], c[i]);
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
 * Reduces from a value in [p / 2, 6 p) with signed limbs of less than 31 bits to [0, p (1 + 2^-10))
 * with proper limbs. The quotient by p is estimated from the highest limb (p / 2^364 = 106513.9)
 * minus 8, which is more than the missing carries can amount to. The estimate is never too large,
 * and too small by at most a ten-thousandth.
 */
static inline void reduce(struct vec *v)
{
	__m512i q = _mm512_sub_epi64(v->l[LIMBS - 1], same(8));

	q = _mm512_srli_epi64(_mm512_mul_epu32(q, same(645168)), 36);
	for (unsigned i = 0; i < LIMBS; i++)
		v->l[i] = _mm512_sub_epi64(v->l[i], _mm512_mul_epu32(q, same(multiples[0][i])));
	normalise(v);
}

/* Converts 14 limbs of 28 bits, a value below 2 p, to a reduced number of 6 x 64 bits. */
static void join(struct obk_fp *r, const uint32_t limbs[LIMBS])
{
	uint64_t borrow = 0, low[OBK_FP_LIMBS];

	memset(r, 0, sizeof(*r));
	for (unsigned i = 0; i < LIMBS; i++) {
		unsigned at = i * LIMB_BITS;

		r->l[at / 64] |= (uint64_t)limbs[i] << at % 64;
		if (at % 64 > 64 - LIMB_BITS && at / 64 + 1 < OBK_FP_LIMBS)
			r->l[at / 64 + 1] |= (uint64_t)limbs[i] >> (64 - at % 64);
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

static void split(uint32_t limbs[LIMBS], const struct obk_fp *a)
{
	for (unsigned i = 0; i < LIMBS; i++) {
		unsigned at = i * LIMB_BITS;
		uint64_t v = a->l[at / 64] >> at % 64;

		if (at % 64 > 64 - LIMB_BITS && at / 64 + 1 < OBK_FP_LIMBS)
			v |= a->l[at / 64 + 1] << (64 - at % 64);
		limbs[i] = (uint32_t)(v & LIMB_MASK);
	}
}

static void set_flag(struct slot *s, bool infinite)
{
	s->x[LIMBS] = infinite;
}

static bool flagged(const struct slot *s)
{
	return s->x[LIMBS] != 0;
}

#include "compute/curve/lanes_body.h"

const struct obk_lanes obk_lanes_avx512 = {
	.name = "avx512",
	.usable = usable,
	.slot_bytes = sizeof(struct slot),
	.workspace_bytes = workspace_bytes,
	.load = load,
	.store = store,
	.set_infinity = set_infinity,
	.add = add,
};
