/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Additions of points eight at a time. A slot is 128 bytes: 14 limbs of x in words of 32 bits, a word that is not 0 for infinity, an unused one; the same
 * for y. Limbs are below 2^28, values in [0, p (1 + 2^-10)), in Montgomery form with R = 2^392. In registers a number is 14 vectors of eight 64-bit lanes.
 * Differences are made positive by adding a multiple of p whose limbs are large (K2, K4), so they need no carries before a product.
 */
#include <immintrin.h>
#include <string.h>

#include "kernels/curve/lanes.h"

#define LIMBS 14
#define LANES 8
#define LIMB_BITS 28
#define LIMB_MASK 0xfffffff
#define WORDS 16
#define MAX_MULTIPLE 6

struct vec {
	__m512i l[LIMBS];
};

struct slot {
	uint32_t x[WORDS], y[WORDS];
} __attribute__((aligned(64)));

/* What the forward pass leaves for the backward pass of eight pairs; the masks name lanes. */
struct vstep {
	struct vec den, prefix;
	__mmask8 twice, copy_a, copy_b, infinite, rare;
} __attribute__((aligned(64)));

void obk_lanes_mul_avx512(struct vec *r, const struct vec *a, const struct vec *b);
void obk_lanes_sqr_avx512(struct vec *r, const struct vec *a);
extern const struct obk_lanes obk_lanes_avx512;

/* k p for k = 1..6 in plain limbs, the highest one holding the rest. */
static const uint32_t multiples[MAX_MULTIPLE][LIMBS] = {
	{ 0xfffaaab, 0xfefffff, 0x3ffffb9, 0xfffeb15, 0x6241eab, 0xa0f6b0f, 0xf6730d2,
		0xf38512b, 0x4774b84, 0x4bacd76, 0xba7b643, 0xe69a4b1, 0x1ea397f, 0x1a011 },
	{ 0xfff5556, 0xfdfffff, 0x7ffff73, 0xfffd62a, 0xc483d57, 0x41ed61e, 0xece61a5,
		0xe70a257, 0x8ee9709, 0x9759aec, 0x74f6c86, 0xcd34963, 0x3d472ff, 0x34022 },
	{ 0xfff0001, 0xfcfffff, 0xbffff2d, 0xfffc13f, 0x26c5c03, 0xe2e412e, 0xe359277,
		0xda8f383, 0xd65e28e, 0xe306862, 0x2f722c9, 0xb3cee15, 0x5beac7f, 0x4e033 },
	{ 0xffeaaac, 0xfbfffff, 0xffffee7, 0xfffac54, 0x8907aaf, 0x83dac3d, 0xd9cc34a,
		0xce144af, 0x1dd2e13, 0x2eb35d9, 0xe9ed90d, 0x9a692c6, 0x7a8e5ff, 0x68044 },
	{ 0xffe5557, 0xfafffff, 0x3fffea1, 0xfff976a, 0xeb4995b, 0x24d174c, 0xd03f41d,
		0xc1995db, 0x6547998, 0x7a6034f, 0xa468f50, 0x8103778, 0x9931f7f, 0x82055 },
	{ 0xffe0002, 0xf9fffff, 0x7fffe5b, 0xfff827f, 0x4d8b807, 0xc5c825c, 0xc6b24ef,
		0xb51e707, 0xacbc51d, 0xc60d0c5, 0x5ee4593, 0x679dc2a, 0xb7d58ff, 0x9c066 },
};
/* 2 p with 2^29 lent to every limb by the next one; 4 p with 2^30. */
static const uint32_t k2[LIMBS] = { 0x2fff5556, 0x2fdffffd, 0x27ffff71, 0x2fffd628, 0x2c483d55, 0x241ed61c, 0x2ece61a3, 0x2e70a255, 0x28ee9707, 0x29759aea,
	0x274f6c84, 0x2cd34961, 0x23d472fd, 0x34020 };
static const uint32_t k4[LIMBS] = { 0x4ffeaaac, 0x4fbffffb, 0x4ffffee3, 0x4fffac50, 0x48907aab, 0x483dac39, 0x4d9cc346, 0x4ce144ab, 0x41dd2e0f, 0x42eb35d5,
	0x4e9ed909, 0x49a692c2, 0x47a8e5fb, 0x68040 };
/* 2^392 mod p, which is one, and 2^400 mod p, which turns R = 2^384 into R = 2^392. */
static const uint32_t one[LIMBS] = { 0x347fcb8, 0xd800000, 0x002b119, 0x0cde6d2, 0xc7212e0, 0x83a2090, 0x037669f, 0xda0f73e, 0x9b09b42, 0x1297bb0, 0x515d98f,
	0x012ca7c, 0x659fcfa, 0x0577a };
static const uint32_t enter[LIMBS] = { 0x80e6299, 0x3500034, 0xeb12856, 0xdeb2699, 0xc988670, 0x4ef6697, 0x70983e8, 0xa4e6fe9, 0x3e8a053, 0xecf271e, 0xc20d323,
	0x6eb6385, 0x47f1286, 0x156da };
/* 2^376 turns R = 2^392 into R = 2^384 by a product of kernels/field; 2^400 = 2^16 R there. */
static const struct obk_fp leave = { { 0, 0, 0, 0, 0, 0x0100000000000000 } };
static const struct obk_fp two_16 = {
	{ 0x56350003480e6299, 0x8670deb2699eb128, 0x0983e84ef6697c98, 0xe3e8a053a4e6fe97, 0x385c20d323ecf271, 0x156da47f12866eb6 }
};

static bool usable(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512vl");
}

static size_t workspace_bytes(size_t pairs)
{
	return (pairs + LANES - 1) / LANES * sizeof(struct vstep);
}

static inline __m512i same(uint32_t v)
{
	return _mm512_set1_epi64(v);
}

/* Rows of 64 bits become columns: in row i and column j, out row j and column i. */
static inline void transpose(__m512i v[LANES])
{
	__m512i t[LANES], u[LANES];

	for (unsigned i = 0; i < 4; i++) {
		t[2 * i] = _mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]);
		t[2 * i + 1] = _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]);
	}
	/* t[2i + b] holds columns b, 2 + b, 4 + b, 6 + b of rows 2i and 2i + 1 */
	for (unsigned b = 0; b < 2; b++) {
		u[b] = _mm512_shuffle_i64x2(t[b], t[2 + b], 0x88);          /* columns b, 4 + b of rows 0..3 */
		u[2 + b] = _mm512_shuffle_i64x2(t[b], t[2 + b], 0xdd);      /* columns 2 + b, 6 + b */
		u[4 + b] = _mm512_shuffle_i64x2(t[4 + b], t[6 + b], 0x88);  /* rows 4..7 */
		u[6 + b] = _mm512_shuffle_i64x2(t[4 + b], t[6 + b], 0xdd);
	}
	for (unsigned b = 0; b < 2; b++) {
		v[b] = _mm512_shuffle_i64x2(u[b], u[4 + b], 0x88);
		v[4 + b] = _mm512_shuffle_i64x2(u[b], u[4 + b], 0xdd);
		v[2 + b] = _mm512_shuffle_i64x2(u[2 + b], u[6 + b], 0x88);
		v[6 + b] = _mm512_shuffle_i64x2(u[2 + b], u[6 + b], 0xdd);
	}
}

/* A coordinate of eight slots; tells which lanes have the word behind the limbs set. */
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

/* Carries through signed limbs; the highest limb takes the rest. */
static inline void normalise(struct vec *v)
{
	for (unsigned i = 0; i + 1 < LIMBS; i++) {
		v->l[i + 1] = _mm512_add_epi64(v->l[i + 1], _mm512_srai_epi64(v->l[i], LIMB_BITS));
		v->l[i] = _mm512_and_si512(v->l[i], same(LIMB_MASK));
	}
}

/*
 * From a value in [p / 2, 6 p) with signed limbs of less than 31 bits to [0, p (1 + 2^-10)) with proper limbs. The quotient by p is guessed from the highest
 * limb (p / 2^364 = 106513.9) less 8, more than what the carries still missing from it can amount to: never too large, too small by a ten-thousandth at most.
 */
static inline void reduce(struct vec *v)
{
	__m512i q = _mm512_sub_epi64(v->l[LIMBS - 1], same(8));

	q = _mm512_srli_epi64(_mm512_mul_epu32(q, same(645168)), 36);
	for (unsigned i = 0; i < LIMBS; i++)
		v->l[i] = _mm512_sub_epi64(v->l[i], _mm512_mul_epu32(q, same(multiples[0][i])));
	normalise(v);
}

/* Lanes whose value, below (most + 1) p and more than 0, is a multiple of p. */
static __mmask8 multiple_of_p(const struct vec *a, unsigned most)
{
	struct vec v = *a;
	__mmask8 found = 0;

	normalise(&v);
	for (unsigned k = 0; k < most; k++) {
		__mmask8 eq = 0xff;

		for (unsigned i = 0; i < LIMBS; i++)
			eq = _mm512_mask_cmpeq_epi64_mask(eq, v.l[i], same(multiples[k][i]));
		found |= eq;
	}
	return found;
}

/* The eight slots, and the signs, of one side of eight pairs; lanes past the end repeat the first. */
struct side {
	const uint32_t *x[LANES], *y[LANES];
	__mmask8 negative;
};

static inline void pick(struct side *s, const struct slot *base, const struct slot *scratch, const struct obk_pair *pairs, size_t n, bool second)
{
	s->negative = 0;
	for (unsigned i = 0; i < LANES; i++) {
		const struct obk_pair *pair = &pairs[i < n ? i : 0];
		uint32_t ref = second ? pair->b : pair->a;
		const struct slot *slot = (ref & OBK_REF_SCRATCH ? scratch : base) + (ref & OBK_REF_INDEX);

		s->x[i] = slot->x;
		s->y[i] = slot->y;
		s->negative |= (__mmask8)((ref >> 31) << i);
	}
}

static inline void prefetch(const struct slot *base, const struct slot *scratch, const struct obk_pair *pairs, size_t n)
{
	for (unsigned i = 0; i < LANES && i < n; i++) {
		const struct slot *a = (pairs[i].a & OBK_REF_SCRATCH ? scratch : base) + (pairs[i].a & OBK_REF_INDEX);
		const struct slot *b = (pairs[i].b & OBK_REF_SCRATCH ? scratch : base) + (pairs[i].b & OBK_REF_INDEX);

		_mm_prefetch((const char *)a->x, _MM_HINT_T0);
		_mm_prefetch((const char *)a->y, _MM_HINT_T0);
		_mm_prefetch((const char *)b->x, _MM_HINT_T0);
		_mm_prefetch((const char *)b->y, _MM_HINT_T0);
	}
}

/* r = k + (second ? b : -b with its sign) - (first with its sign), limb by limb */
static inline void signed_difference(struct vec *r, const uint32_t k[LIMBS], const struct vec *second, __mmask8 negative2, const struct vec *first,
	__mmask8 negative1)
{
	for (unsigned i = 0; i < LIMBS; i++) {
		__m512i t = same(k[i]);

		t = _mm512_mask_sub_epi64(_mm512_add_epi64(t, second->l[i]), negative2, t, second->l[i]);
		r->l[i] = _mm512_mask_add_epi64(_mm512_sub_epi64(t, first->l[i]), negative1, t, first->l[i]);
	}
}

/* Some lanes have equal x, or infinity: find out which, and give them denominators that are not 0. */
static __attribute__((noinline)) void forward_rare(struct vstep *s, const struct side *a, const struct side *b, __mmask8 infinite_a, __mmask8 infinite_b)
{
	__mmask8 equal = multiple_of_p(&s->den, 3) & (__mmask8)~(infinite_a | infinite_b);
	struct vec y1, y2, t;

	s->copy_b = infinite_a;
	s->copy_a = infinite_b & (__mmask8)~infinite_a;
	s->infinite = infinite_a & infinite_b;
	s->twice = 0;
	if (equal) {
		gather(&y1, a->y);
		gather(&y2, b->y);
		signed_difference(&t, k4, &y2, b->negative, &y1, a->negative);
		s->twice = multiple_of_p(&t, MAX_MULTIPLE) & equal;
		s->infinite |= equal & (__mmask8)~s->twice;
		/* y1 + y2, which is 2 y1, for those doubled */
		signed_difference(&t, k4, &y2, b->negative, &y1, (__mmask8)~a->negative);
		for (unsigned i = 0; i < LIMBS; i++)
			s->den.l[i] = _mm512_mask_mov_epi64(s->den.l[i], s->twice, t.l[i]);
	}
	for (unsigned i = 0; i < LIMBS; i++)
		s->den.l[i] = _mm512_mask_mov_epi64(s->den.l[i], s->copy_a | s->copy_b | s->infinite, same(one[i]));
	s->rare = s->twice | s->copy_a | s->copy_b | s->infinite;
}

static inline void forward(struct vstep *s, const struct side *a, const struct side *b)
{
	struct vec x1, x2;
	__mmask8 infinite_a = gather(&x1, a->x), infinite_b = gather(&x2, b->x), maybe;
	__m512i low;

	for (unsigned i = 0; i < LIMBS; i++)
		s->den.l[i] = _mm512_sub_epi64(_mm512_add_epi64(same(k2[i]), x2.l[i]), x1.l[i]);
	/* x2 - x1 + 2 p lies between 0 and 4 p: is it p, 2 p or 3 p? The lowest limb says no nearly always. */
	low = _mm512_and_si512(s->den.l[0], same(LIMB_MASK));
	maybe = infinite_a | infinite_b;
	for (unsigned k = 0; k < 3; k++)
		maybe |= _mm512_cmpeq_epi64_mask(low, same(multiples[k][0]));
	s->rare = 0;
	if (__builtin_expect(maybe, 0))
		forward_rare(s, a, b, infinite_a, infinite_b);
}

/* The lanes that are no plain addition, before the slope is used: numerators 3 x1^2, and x2 - x1 + 2 p = 2 p back in place of 2 y1. */
static __attribute__((noinline)) void backward_rare(struct vec *dy, struct vec *dx, const struct vec *x1, __mmask8 twice)
{
	struct vec t;

	obk_lanes_sqr_avx512(&t, x1);
	for (unsigned i = 0; i < LIMBS; i++) {
		dy->l[i] = _mm512_mask_add_epi64(dy->l[i], twice, t.l[i], _mm512_add_epi64(t.l[i], t.l[i]));
		dx->l[i] = _mm512_mask_mov_epi64(dx->l[i], twice, same(k2[i]));
	}
}

/* After it: lanes that copy one operand, its sign applied. */
static __attribute__((noinline)) void copy_lanes(struct vec *x, struct vec *y, const struct side *from, __mmask8 lanes)
{
	struct vec sx, sy;

	gather(&sx, from->x);
	gather(&sy, from->y);
	for (unsigned i = 0; i < LIMBS; i++) {
		__m512i k = same(multiples[2][i]);

		sy.l[i] = _mm512_mask_sub_epi64(_mm512_add_epi64(k, sy.l[i]), from->negative, k, sy.l[i]);
	}
	reduce(&sy);
	for (unsigned i = 0; i < LIMBS; i++) {
		x->l[i] = _mm512_mask_mov_epi64(x->l[i], lanes, sx.l[i]);
		y->l[i] = _mm512_mask_mov_epi64(y->l[i], lanes, sy.l[i]);
	}
}

static inline void backward(const struct vstep *s, const struct side *a, const struct side *b, struct vec *run, struct slot *const out[LANES])
{
	struct vec x1, y1, y2, slope, x3, y3, t, inv;
	uint32_t *rows[LANES];

	obk_lanes_mul_avx512(&inv, &s->prefix, run);
	obk_lanes_mul_avx512(run, &s->den, run);
	gather(&x1, a->x);
	gather(&y1, a->y);
	gather(&y2, b->y);
	signed_difference(&t, k4, &y2, b->negative, &y1, a->negative);
	x3 = s->den;
	if (__builtin_expect(s->rare, 0))
		backward_rare(&t, &x3, &x1, s->twice);
	obk_lanes_mul_avx512(&slope, &t, &inv);
	obk_lanes_sqr_avx512(&t, &slope);
	for (unsigned i = 0; i < LIMBS; i++) {
		/* slope^2 - x1 - x2 + 3 p, x2 by way of the denominator */
		__m512i v = _mm512_sub_epi64(_mm512_add_epi64(t.l[i], same(multiples[4][i])), x3.l[i]);

		x3.l[i] = _mm512_sub_epi64(v, _mm512_add_epi64(x1.l[i], x1.l[i]));
	}
	reduce(&x3);
	for (unsigned i = 0; i < LIMBS; i++)
		t.l[i] = _mm512_sub_epi64(_mm512_add_epi64(same(k2[i]), x1.l[i]), x3.l[i]);
	obk_lanes_mul_avx512(&y3, &t, &slope);
	for (unsigned i = 0; i < LIMBS; i++) {
		__m512i v = _mm512_add_epi64(y3.l[i], same(multiples[2][i]));

		y3.l[i] = _mm512_mask_add_epi64(_mm512_sub_epi64(v, y1.l[i]), a->negative, v, y1.l[i]);
	}
	reduce(&y3);
	if (__builtin_expect(s->rare, 0)) {
		copy_lanes(&x3, &y3, a, s->copy_a);
		copy_lanes(&x3, &y3, b, s->copy_b);
	}
	for (unsigned i = 0; i < LANES; i++)
		rows[i] = out[i]->x;
	scatter(rows, &x3, s->rare ? s->infinite : 0);
	for (unsigned i = 0; i < LANES; i++)
		rows[i] = out[i]->y;
	scatter(rows, &y3, 0);
}

/* 14 limbs of 28 bits, a value below 2 p, as a reduced number of 6 x 64 bits. */
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
		__extension__ unsigned __int128 d = (unsigned __int128)r->l[i] - obk_fp_modulus.l[i] - borrow;

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

/* run = 1 / run in each lane: one inversion in 64-bit limbs for all eight. */
static void invert_lanes(struct vec *run)
{
	uint64_t cell[LIMBS][LANES] __attribute__((aligned(64)));
	struct obk_fp a[LANES], scratch[LANES];
	uint32_t limbs[LIMBS];

	for (unsigned i = 0; i < LIMBS; i++)
		_mm512_store_si512(cell[i], run->l[i]);
	for (unsigned lane = 0; lane < LANES; lane++) {
		for (unsigned i = 0; i < LIMBS; i++)
			limbs[i] = (uint32_t)cell[i][lane];
		join(&a[lane], limbs);
	}
	/* what is a R = a 2^392 here is 2^8 a to kernels/field, whose inverse 2^384 / (2^8 a) lacks 2^16 to 2^392 / a */
	obk_fp_inv_batch(a, LANES, scratch);
	for (unsigned lane = 0; lane < LANES; lane++) {
		obk_fp_mul(&a[lane], &a[lane], &two_16);
		split(limbs, &a[lane]);
		for (unsigned i = 0; i < LIMBS; i++)
			cell[i][lane] = limbs[i];
	}
	for (unsigned i = 0; i < LIMBS; i++)
		run->l[i] = _mm512_load_si512(cell[i]);
}

static void add(const void *base_slots, void *scratch_slots, const struct obk_pair *pairs, size_t n, void *workspace)
{
	const struct slot *base = base_slots;
	struct slot *scratch = scratch_slots;
	struct vstep *steps = workspace;
	size_t vectors = (n + LANES - 1) / LANES;
	struct side a, b;
	struct vec run;

	for (unsigned i = 0; i < LIMBS; i++)
		run.l[i] = same(one[i]);
	for (size_t v = 0; v < vectors; v++) {
		size_t at = v * LANES;

		if (at + 3 * LANES < n)
			prefetch(base, scratch, pairs + at + 3 * LANES, n - at - 3 * LANES);
		pick(&a, base, scratch, pairs + at, n - at, false);
		pick(&b, base, scratch, pairs + at, n - at, true);
		forward(&steps[v], &a, &b);
		steps[v].prefix = run;
		obk_lanes_mul_avx512(&run, &steps[v].den, &run);
	}
	invert_lanes(&run);
	for (size_t v = vectors; v-- > 0;) {
		struct slot *out[LANES];
		size_t at = v * LANES;

		if (v >= 3)
			prefetch(base, scratch, pairs + at - 3 * LANES, LANES);
		pick(&a, base, scratch, pairs + at, n - at, false);
		pick(&b, base, scratch, pairs + at, n - at, true);
		for (unsigned i = 0; i < LANES; i++)
			out[i] = &scratch[pairs[i < n - at ? at + i : at].out];
		backward(&steps[v], &a, &b, &run, out);
	}
}

static void load(void *slots, const struct obk_g1_affine *points, size_t n)
{
	struct slot *out = slots;
	struct vec factor;

	for (unsigned i = 0; i < LIMBS; i++)
		factor.l[i] = same(enter[i]);
	for (size_t at = 0; at < n; at += LANES) {
		struct slot part[LANES] = { 0 };
		const uint32_t *in[LANES];
		uint32_t *rows[LANES];
		size_t count = n - at < LANES ? n - at : LANES;
		struct vec v;

		for (size_t i = 0; i < count; i++) {
			split(part[i].x, &points[at + i].x);
			split(part[i].y, &points[at + i].y);
		}
		for (unsigned y = 0; y < 2; y++) {
			for (unsigned i = 0; i < LANES; i++)
				in[i] = rows[i] = y ? part[i].y : part[i].x;
			gather(&v, in);
			obk_lanes_mul_avx512(&v, &v, &factor);
			scatter(rows, &v, 0);
		}
		for (size_t i = 0; i < count; i++)
			part[i].x[LIMBS] = obk_g1_affine_is_infinity(&points[at + i]);
		memcpy(out + at, part, count * sizeof(part[0]));
	}
}

static void store(struct obk_g1_affine *points, const void *slots, size_t n)
{
	const struct slot *in = slots;

	for (size_t i = 0; i < n; i++) {
		struct obk_fp t;

		if (in[i].x[LIMBS]) {
			memset(&points[i], 0, sizeof(points[i]));
			continue;
		}
		join(&t, in[i].x);
		obk_fp_mul(&points[i].x, &t, &leave);
		join(&t, in[i].y);
		obk_fp_mul(&points[i].y, &t, &leave);
	}
}

static void set_infinity(void *slot)
{
	struct slot *s = slot;

	memset(s, 0, sizeof(*s));
	s->x[LIMBS] = 1;
}

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
