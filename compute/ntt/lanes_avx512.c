/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tiles of a transform with AVX-512. A number has 10 limbs of 28 bits in ten vectors of eight
 * 64-bit SIMD lanes. A product of limbs is one vpmuludq. Products are Montgomery products with R =
 * 2^280. That leaves 25 spare bits, so sums stay unreduced through the levels of a tile.
 *
 *     scatter   t = b w is below r (1 + 2^-10). a + t and a - t + 2 r add at most 2 r to a value
 *               and 2^29 to a limb per level: below 13 r and 2^32 after six levels
 *     gather    a + b doubles per level: below 64 r after six levels, with its limbs carried.
 *               (a - b + K) w is below r (1 + 2^-10) again
 *
 * In K and 2 r every limb has 2^28 added at the expense of the next one, so that no limb of a
 * difference is negative.
 */
#include <immintrin.h>

#include "compute/ntt/lanes.h"

#define LIMBS     10
#define LIMB_BITS 28
#define LIMB_MASK 0xfffffff
#define ROWS      (1 << OBK_NTT_TILE_MAX_LEVELS)

void obk_ntt_tile_avx512(const struct obk_ntt_pass *pass, size_t item);

struct vec {
	__m512i l[LIMBS];
};

/* A number that is the same in all SIMD lanes. */
struct flat {
	uint64_t l[LIMBS];
};

/* r = a w / 2^280; limbs of a are below 2^32, limbs of w below 2^28. */
void obk_ntt_mul_avx512(struct vec *r, const struct vec *a, const struct vec *w);
void obk_ntt_mul_flat_avx512(struct vec *r, const struct vec *a, const struct flat *w);

static const struct flat modulus = { { 0x1, 0xffffff0, 0xe5bfeff, 0xa402fff, 0x80553bd, 0x809a1d,
	0x83339d8, 0x299d7d4, 0x3eda753, 0x7 } };

static inline __m512i same(uint64_t v)
{
	return _mm512_set1_epi64((long long)v);
}

static void flatten(struct flat *r, const uint64_t l[OBK_FR_LIMBS])
{
	for (unsigned i = 0; i < LIMBS; i++) {
		unsigned at = i * LIMB_BITS;
		uint64_t v = l[at / 64] >> at % 64;

		if (at % 64 > 64 - LIMB_BITS && at / 64 + 1 < OBK_FR_LIMBS)
			v |= l[at / 64 + 1] << (64 - at % 64);
		r->l[i] = v & LIMB_MASK;
	}
}

/* 2^shift r, where every limb has 2^28 added at the expense of the next one. */
static void lent_multiple(struct flat *k, unsigned shift)
{
	uint64_t carry = 0;

	for (unsigned i = 0; i < LIMBS; i++) {
		uint64_t v = (modulus.l[i] << shift) + carry;

		carry = i + 1 < LIMBS ? v >> LIMB_BITS : 0;
		k->l[i] = i + 1 < LIMBS ? v & LIMB_MASK : v;
		k->l[i] += i + 1 < LIMBS ? (uint64_t)1 << LIMB_BITS : 0;
		k->l[i] -= i ? 1 : 0;
	}
}

/* Propagates carries; all limbs except the highest are below 2^28 afterwards. */
static inline void carry_up(struct vec *v)
{
	for (unsigned i = 0; i + 1 < LIMBS; i++) {
		v->l[i + 1] = _mm512_add_epi64(v->l[i + 1], _mm512_srli_epi64(v->l[i], LIMB_BITS));
		v->l[i] = _mm512_and_si512(v->l[i], same(LIMB_MASK));
	}
}

/*
 * Reduces from below 2^8 r to below r (1 + 2^-10). The quotient by r is estimated from the bits
 * from 240 on: r / 2^240 = 29677.6, so 2^32 / 29678 is slightly too small.
 */
static inline void reduce(struct vec *v)
{
	__m512i q;

	carry_up(v);
	q = _mm512_or_si512(_mm512_slli_epi64(v->l[9], 12), _mm512_srli_epi64(v->l[8], 16));
	q = _mm512_srli_epi64(_mm512_mul_epu32(q, same(144718)), 32);
	for (unsigned i = 0; i < LIMBS; i++)
		v->l[i] = _mm512_sub_epi64(v->l[i], _mm512_mul_epu32(q, same(modulus.l[i])));
	for (unsigned i = 0; i + 1 < LIMBS; i++) {
		v->l[i + 1] = _mm512_add_epi64(v->l[i + 1], _mm512_srai_epi64(v->l[i], LIMB_BITS));
		v->l[i] = _mm512_and_si512(v->l[i], same(LIMB_MASK));
	}
}

/* Reduces from below 2 r, with carried limbs, to below r. */
static inline void finish(struct vec *v)
{
	__m512i d[LIMBS], borrow = _mm512_setzero_si512();
	__mmask8 below;

	for (unsigned i = 0; i < LIMBS; i++) {
		__m512i t = _mm512_add_epi64(_mm512_sub_epi64(v->l[i], same(modulus.l[i])), borrow);

		borrow = _mm512_srai_epi64(t, LIMB_BITS);
		d[i] = _mm512_and_si512(t, same(LIMB_MASK));
	}
	below = _mm512_movepi64_mask(borrow);
	for (unsigned i = 0; i < LIMBS; i++)
		v->l[i] = _mm512_mask_mov_epi64(d[i], below, v->l[i]);
}

/* Splits four words of eight numbers into limbs, and the inverse. */
static inline void split(struct vec *v, const __m512i w[OBK_FR_LIMBS])
{
	for (unsigned i = 0; i < LIMBS; i++) {
		unsigned at = i * LIMB_BITS;
		__m512i t = _mm512_srli_epi64(w[at / 64], at % 64);

		if (at % 64 > 64 - LIMB_BITS && at / 64 + 1 < OBK_FR_LIMBS)
			t = _mm512_or_si512(t, _mm512_slli_epi64(w[at / 64 + 1], 64 - at % 64));
		v->l[i] = _mm512_and_si512(t, same(LIMB_MASK));
	}
}

static inline void join(__m512i w[OBK_FR_LIMBS], const struct vec *v)
{
	for (unsigned k = 0; k < OBK_FR_LIMBS; k++) {
		w[k] = _mm512_setzero_si512();
		for (unsigned i = 0; i < LIMBS; i++) {
			int off = (int)(i * LIMB_BITS) - (int)(64 * k);

			if (off >= 0 && off < 64)
				w[k] = _mm512_or_si512(
					w[k], _mm512_slli_epi64(v->l[i], (unsigned)off));
			else if (off < 0 && off > -LIMB_BITS)
				w[k] = _mm512_or_si512(
					w[k], _mm512_srli_epi64(v->l[i], (unsigned)-off));
		}
	}
}

/*
 * Converts rows of two numbers each, [a b] [c d] [e f] [g h], to four words in the SIMD lanes a c b
 * d e g f h, and the inverse.
 */
static inline void words_of(__m512i w[OBK_FR_LIMBS], const __m512i z[4])
{
	__m512i low[2], high[2];

	for (unsigned i = 0; i < 2; i++) {
		low[i] = _mm512_unpacklo_epi64(z[2 * i], z[2 * i + 1]);
		high[i] = _mm512_unpackhi_epi64(z[2 * i], z[2 * i + 1]);
	}
	w[0] = _mm512_shuffle_i64x2(low[0], low[1], 0x88);
	w[1] = _mm512_shuffle_i64x2(high[0], high[1], 0x88);
	w[2] = _mm512_shuffle_i64x2(low[0], low[1], 0xdd);
	w[3] = _mm512_shuffle_i64x2(high[0], high[1], 0xdd);
}

static inline void rows_of(__m512i z[4], const __m512i w[OBK_FR_LIMBS])
{
	const __m512i first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0),
		      second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
	__m512i low[2], high[2];

	low[0] = _mm512_permutex2var_epi64(w[0], first, w[2]);
	low[1] = _mm512_permutex2var_epi64(w[0], second, w[2]);
	high[0] = _mm512_permutex2var_epi64(w[1], first, w[3]);
	high[1] = _mm512_permutex2var_epi64(w[1], second, w[3]);
	for (unsigned i = 0; i < 2; i++) {
		z[2 * i] = _mm512_unpacklo_epi64(low[i], high[i]);
		z[2 * i + 1] = _mm512_unpackhi_epi64(low[i], high[i]);
	}
}

static inline __m512i two(const struct obk_fr *a, const struct obk_fr *b)
{
	__m256i low = _mm256_loadu_si256((const __m256i_u *)a->l),
		high = _mm256_loadu_si256((const __m256i_u *)b->l);

	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/*
 * Loads one number from each of eight blocks that are `apart` elements apart; the first is in SIMD
 * lane 0.
 */
static inline void load_apart(struct vec *v, const struct obk_fr *x, size_t apart)
{
	__m512i z[4], w[OBK_FR_LIMBS];

	z[0] = two(x, x + 2 * apart);
	z[1] = two(x + apart, x + 3 * apart);
	z[2] = two(x + 4 * apart, x + 6 * apart);
	z[3] = two(x + 5 * apart, x + 7 * apart);
	words_of(w, z);
	split(v, w);
}

static inline void store_two(struct obk_fr *a, struct obk_fr *b, __m512i z)
{
	_mm256_storeu_si256((__m256i_u *)a->l, _mm512_castsi512_si256(z));
	_mm256_storeu_si256((__m256i_u *)b->l, _mm512_extracti64x4_epi64(z, 1));
}

static inline void store_apart(struct obk_fr *x, size_t apart, const struct vec *v)
{
	__m512i z[4], w[OBK_FR_LIMBS];

	join(w, v);
	rows_of(z, w);
	store_two(x, x + 2 * apart, z[0]);
	store_two(x + apart, x + 3 * apart, z[1]);
	store_two(x + 4 * apart, x + 6 * apart, z[2]);
	store_two(x + 5 * apart, x + 7 * apart, z[3]);
}

/* Parameters of the butterflies of one level. */
struct level {
	bool gather;
	struct flat k;
	struct vec *rows;
	size_t half;
};

static inline __attribute__((always_inline)) void butterflies(const struct level *v, size_t first,
	const struct flat *flat, const struct vec *own, bool one)
{
	for (size_t j = first; j < first + v->half; j++) {
		struct vec *a = &v->rows[j], *b = &v->rows[j + v->half], t;

		if (v->gather) {
			for (unsigned i = 0; i < LIMBS; i++) {
				__m512i x = a->l[i], y = b->l[i];

				a->l[i] = _mm512_add_epi64(x, y);
				t.l[i] = _mm512_add_epi64(_mm512_sub_epi64(x, y), same(v->k.l[i]));
			}
			carry_up(a);
			if (one) {
				*b = t;
				reduce(b);
			} else if (flat) {
				obk_ntt_mul_flat_avx512(b, &t, flat);
			} else {
				obk_ntt_mul_avx512(b, &t, own);
			}
			continue;
		}
		if (one) {
			t = *b;
			reduce(&t);
		} else if (flat) {
			obk_ntt_mul_flat_avx512(&t, b, flat);
		} else {
			obk_ntt_mul_avx512(&t, b, own);
		}
		for (unsigned i = 0; i < LIMBS; i++) {
			__m512i x = a->l[i];

			a->l[i] = _mm512_add_epi64(x, t.l[i]);
			b->l[i] = _mm512_add_epi64(_mm512_sub_epi64(x, t.l[i]), same(v->k.l[i]));
		}
	}
}

/* Three separate functions, so that each hot loop contains only one product. */
static __attribute__((noinline)) void butterflies_flat(
	const struct level *v, size_t first, const struct flat *w)
{
	butterflies(v, first, w, NULL, false);
}

static __attribute__((noinline)) void butterflies_own(
	const struct level *v, size_t first, const struct vec *w)
{
	butterflies(v, first, NULL, w, false);
}

static __attribute__((noinline)) void butterflies_one(const struct level *v, size_t first)
{
	butterflies(v, first, NULL, NULL, true);
}

/* The roots of eight blocks with numbers `apart` from each other; the first is `i`. */
static void own_roots(const struct obk_ntt_pass *p, struct vec *w, size_t i, size_t apart,
	const struct flat *high)
{
	size_t mask = ((size_t)1 << p->log_roots) - 1;
	const struct obk_fr *root[OBK_NTT_LANES];
	__m512i z[4], words[OBK_FR_LIMBS];
	__mmask8 negative = 0;

	for (unsigned q = 0; q < OBK_NTT_LANES; q++) {
		size_t at = i + q * apart;

		if (p->inverse && at) {
			at ^= ((size_t)1 << (63 - __builtin_clzll(at))) - 1;
			negative |= (__mmask8)(1u << q);
		}
		root[q] = &p->roots[at & mask];
	}
	z[0] = two(root[0], root[2]);
	z[1] = two(root[1], root[3]);
	z[2] = two(root[4], root[6]);
	z[3] = two(root[5], root[7]);
	words_of(words, z);
	split(w, words);
	if (high)
		obk_ntt_mul_flat_avx512(w, w, high);
	if (!negative)
		return;
	/* 2 r - w, because a product may be slightly above r */
	for (unsigned j = 0; j < LIMBS; j++) {
		__m512i k = same(2 * modulus.l[j]);

		w->l[j] = _mm512_mask_sub_epi64(w->l[j], negative, k, w->l[j]);
	}
	for (unsigned j = 0; j + 1 < LIMBS; j++) {
		w->l[j + 1] = _mm512_add_epi64(w->l[j + 1], _mm512_srai_epi64(w->l[j], LIMB_BITS));
		w->l[j] = _mm512_and_si512(w->l[j], same(LIMB_MASK));
	}
}

/* The root for the index bits beyond the table, which all blocks of a tile share. */
static bool high_root(const struct obk_ntt_pass *p, size_t i, struct flat *ret)
{
	struct obk_ntt_pass forward = *p;
	struct obk_fr t;

	if (i >> p->log_roots == 0)
		return false;
	if (p->inverse)
		i ^= ((size_t)1 << (63 - __builtin_clzll(i))) - 1;
	forward.inverse = false;
	t = obk_ntt_lanes_root(&forward, i & ~(((size_t)1 << p->log_roots) - 1));
	flatten(ret, t.l);
	return true;
}

/*
 * Executes all levels of a tile; `block` is its first block at the first level. last: the columns
 * are eight blocks.
 */
static void run_levels(const struct obk_ntt_pass *p, struct vec *rows, size_t block, bool last)
{
	for (unsigned n = 0; n < p->levels; n++) {
		unsigned s = p->gather ? p->levels - 1 - n : n;
		struct level level = {
			.gather = p->gather, .rows = rows, .half = (size_t)1 << (p->levels - 1 - s)
		};
		struct flat flat, high;
		bool beyond = last && high_root(p, block << s, &high);

		lent_multiple(&level.k, p->gather ? n + 1 : 1);
		for (size_t t = 0; t < (size_t)1 << s; t++) {
			size_t i = (block << s) + t, first = 2 * level.half * t;
			struct obk_fr root;
			struct vec own;

			if (last) {
				own_roots(p, &own, i, (size_t)1 << s, beyond ? &high : NULL);
				butterflies_own(&level, first, &own);
			} else if (i == 0) {
				butterflies_one(&level, first);
			} else {
				root = obk_ntt_lanes_root(p, i);
				flatten(&flat, root.l);
				butterflies_flat(&level, first, &flat);
			}
		}
	}
}

static inline void settle(const struct obk_ntt_pass *p, struct vec *v, const struct flat *scale)
{
	if (p->scale)
		obk_ntt_mul_flat_avx512(v, v, scale);
	else
		reduce(v);
	finish(v);
}

void obk_ntt_tile_avx512(const struct obk_ntt_pass *p, size_t item)
{
	unsigned log_step = p->log_n - p->level - p->levels; /* log2 of the distance between rows */
	size_t rows = (size_t)1 << p->levels,
	       tiles = (size_t)1 << (p->log_n - p->levels - OBK_NTT_LANES_LOG),
	       tile = item & (tiles - 1);
	struct obk_fr *data = p->data + ((item / tiles) << p->log_n);
	struct vec row[ROWS] __attribute__((aligned(64)));
	struct flat scale;
	bool last = log_step == 0;
	size_t block, apart, step;

	if (p->scale)
		flatten(&scale, p->scale->l);
	if (last) {
		block = tile * OBK_NTT_LANES;
		data += block << p->levels;
		apart = rows;
		step = 1;
	} else {
		block = tile >> (log_step - OBK_NTT_LANES_LOG);
		data += (block << (p->levels + log_step)) +
			(tile & (((size_t)1 << (log_step - OBK_NTT_LANES_LOG)) - 1)) *
				OBK_NTT_LANES;
		apart = 1;
		step = (size_t)1 << log_step;
	}
	for (size_t j = 0; j < rows; j++)
		load_apart(&row[j], data + j * step, apart);
	run_levels(p, row, block, last);
	for (size_t j = 0; j < rows; j++) {
		settle(p, &row[j], &scale);
		store_apart(data + j * step, apart, &row[j]);
	}
}
