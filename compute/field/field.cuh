/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Fp and Fr on the GPU: the same Montgomery form as fp.h and fr.h (R = 2^384 and 2^256), the same
 * layout in memory and the same canonical results, so every value equals that of the CPU limb for
 * limb.
 *
 * A product uses two accumulators of n words. Products of the even-numbered words of a with b[i]
 * are added to aligned pairs of words of the first one. Products of the odd-numbered words are
 * added to aligned pairs of the second one, which starts at word 1. So the low and the high half of
 * every 32 x 32 product are neighbours in one carry chain, and ptxas combines the two instructions
 * to one wide multiply-add (N. Emmart's arrangement). Adding m p clears the lowest word. A shift by
 * one word then makes the odd accumulator the even one, and the even one, shifted by two words, the
 * odd one. The single word between them is added when the next chain begins.
 */
#ifndef OBK_FIELD_CUH
#define OBK_FIELD_CUH

#include <stdint.h>

#define OBK_DEVICE static __device__ __forceinline__

/*
 * In constant memory and not as literals, because the compiler generates longer code for words like
 * 0xffffffff.
 */
static __constant__ uint32_t obk_fp_modulus_words[12] = { 0xffffaaab, 0xb9feffff, 0xb153ffff,
	0x1eabfffe, 0xf6b0f624, 0x6730d2a0, 0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6,
	0x397fe69a, 0x1a0111ea };
static __constant__ uint32_t obk_fp_one_words[12] = { 0x0002fffd, 0x76090000, 0xc40c0002,
	0xebf4000b, 0x53c758ba, 0x5f489857, 0x70525745, 0x77ce5853, 0xa256ec6d, 0x5c071a97,
	0xfa80e493, 0x15f65ec3 };
static __constant__ uint32_t obk_fr_modulus_words[8] = { 0x00000001, 0xffffffff, 0xfffe5bfe,
	0x53bda402, 0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753 };
static __constant__ uint32_t obk_fr_one_words[8] = { 0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa,
	0xecbc4ff5, 0x998c4fef, 0xacc5056f, 0x1824b159 };
/* -1 / p and -1 / r mod 2^32 */
static __constant__ uint32_t obk_ninv_words[2] = { 0xfffcfffd, 0xffffffff };

struct obk_fp_modulus {
	static const int words = 12;
	OBK_DEVICE uint32_t ninv()
	{
		return obk_ninv_words[0];
	}
	OBK_DEVICE uint32_t word(int i)
	{
		return obk_fp_modulus_words[i];
	}
	OBK_DEVICE uint32_t one(int i)
	{
		return obk_fp_one_words[i];
	}
};

struct obk_fr_modulus {
	static const int words = 8;
	OBK_DEVICE uint32_t ninv()
	{
		return obk_ninv_words[1];
	}
	OBK_DEVICE uint32_t word(int i)
	{
		return obk_fr_modulus_words[i];
	}
	OBK_DEVICE uint32_t one(int i)
	{
		return obk_fr_one_words[i];
	}
};

/* (x, y) += a b, with a carry in for "madc" and a carry out. */
#define OBK_PAIR(mad, x, y, a, b)                                                            \
	mad ".lo.cc.u32 %" #x ", %" #a ", %" #b ", %" #x ";\n\tmadc.hi.cc.u32 %" #y ", %" #a \
	    ", %" #b ", %" #y ";\n\t"
/* The last pair of a chain, which cannot have a carry out. */
#define OBK_LAST_PAIR(x, y, a, b)                                                                  \
	"madc.lo.cc.u32 %" #x ", %" #a ", %" #b ", %" #x ";\n\tmadc.hi.u32 %" #y ", %" #a ", %" #b \
	", %" #y ";"
#define OBK_WORDS4(t)       "+r"(t[0]), "+r"(t[1]), "+r"(t[2]), "+r"(t[3])
#define OBK_WORDS6(t)       OBK_WORDS4(t), "+r"(t[4]), "+r"(t[5])
#define OBK_WORDS8(t)       OBK_WORDS6(t), "+r"(t[6]), "+r"(t[7])
#define OBK_WORDS10(t)      OBK_WORDS8(t), "+r"(t[8]), "+r"(t[9])
#define OBK_WORDS12(t)      OBK_WORDS10(t), "+r"(t[10]), "+r"(t[11])
#define OBK_EVERY_OTHER4(a) "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6])
#define OBK_EVERY_OTHER5(a) OBK_EVERY_OTHER4(a), "r"(a[8])
#define OBK_EVERY_OTHER6(a) OBK_EVERY_OTHER5(a), "r"(a[10])

/* L pairs of t += a[0, 2, 4, ..] b; the carry is added to top. */
template <int L>
OBK_DEVICE void obk_pairs_even(uint32_t *t, uint32_t &top, const uint32_t *a, uint32_t b)
{
	if (L == 1)
		asm(OBK_PAIR("mad", 0, 1, 3, 4) "addc.u32 %2, %2, 0;"
			: "+r"(t[0]), "+r"(t[1]), "+r"(top)
			: "r"(a[0]), "r"(b));
	if (L == 2)
		asm(OBK_PAIR("mad", 0, 1, 5, 7) OBK_PAIR("madc", 2, 3, 6, 7) "addc.u32 %4, %4, 0;"
			: OBK_WORDS4(t), "+r"(top)
			: "r"(a[0]), "r"(a[2]), "r"(b));
	if (L == 3)
		asm(OBK_PAIR("mad", 0, 1, 7, 10) OBK_PAIR("madc", 2, 3, 8, 10)
				OBK_PAIR("madc", 4, 5, 9, 10) "addc.u32 %6, %6, 0;"
			: OBK_WORDS6(t), "+r"(top)
			: "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(b));
	if (L == 4)
		asm(OBK_PAIR("mad", 0, 1, 9, 13) OBK_PAIR("madc", 2, 3, 10, 13) OBK_PAIR(
			"madc", 4, 5, 11, 13) OBK_PAIR("madc", 6, 7, 12, 13) "addc.u32 %8, %8, 0;"
			: OBK_WORDS8(t), "+r"(top)
			: OBK_EVERY_OTHER4(a), "r"(b));
	if (L == 5)
		asm(OBK_PAIR("mad", 0, 1, 11, 16) OBK_PAIR("madc", 2, 3, 12, 16)
				OBK_PAIR("madc", 4, 5, 13, 16) OBK_PAIR("madc", 6, 7, 14, 16)
					OBK_PAIR("madc", 8, 9, 15, 16) "addc.u32 %10, %10, 0;"
			: OBK_WORDS10(t), "+r"(top)
			: OBK_EVERY_OTHER5(a), "r"(b));
	if (L == 6)
		asm(OBK_PAIR("mad", 0, 1, 13, 19) OBK_PAIR("madc", 2, 3, 14, 19) OBK_PAIR("madc", 4,
			5, 15, 19) OBK_PAIR("madc", 6, 7, 16, 19) OBK_PAIR("madc", 8, 9, 17, 19)
				OBK_PAIR("madc", 10, 11, 18, 19) "addc.u32 %12, %12, 0;"
			: OBK_WORDS12(t), "+r"(top)
			: OBK_EVERY_OTHER6(a), "r"(b));
}

/* The same for a sum without a carry out. */
template <int L> OBK_DEVICE void obk_pairs_odd(uint32_t *t, const uint32_t *a, uint32_t b)
{
	if (L == 1)
		asm("mad.lo.cc.u32 %0, %2, %3, %0;\n\tmadc.hi.u32 %1, %2, %3, %1;"
			: "+r"(t[0]), "+r"(t[1])
			: "r"(a[0]), "r"(b));
	if (L == 2)
		asm(OBK_PAIR("mad", 0, 1, 4, 6) OBK_LAST_PAIR(2, 3, 5, 6)
			: OBK_WORDS4(t)
			: "r"(a[0]), "r"(a[2]), "r"(b));
	if (L == 3)
		asm(OBK_PAIR("mad", 0, 1, 6, 9) OBK_PAIR("madc", 2, 3, 7, 9)
				OBK_LAST_PAIR(4, 5, 8, 9)
			: OBK_WORDS6(t)
			: "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(b));
	if (L == 4)
		asm(OBK_PAIR("mad", 0, 1, 8, 12) OBK_PAIR("madc", 2, 3, 9, 12)
				OBK_PAIR("madc", 4, 5, 10, 12) OBK_LAST_PAIR(6, 7, 11, 12)
			: OBK_WORDS8(t)
			: OBK_EVERY_OTHER4(a), "r"(b));
	if (L == 5)
		asm(OBK_PAIR("mad", 0, 1, 10, 15) OBK_PAIR("madc", 2, 3, 11, 15) OBK_PAIR("madc", 4,
			5, 12, 15) OBK_PAIR("madc", 6, 7, 13, 15) OBK_LAST_PAIR(8, 9, 14, 15)
			: OBK_WORDS10(t)
			: OBK_EVERY_OTHER5(a), "r"(b));
	if (L == 6)
		asm(OBK_PAIR("mad", 0, 1, 12, 18) OBK_PAIR("madc", 2, 3, 13, 18)
				OBK_PAIR("madc", 4, 5, 14, 18) OBK_PAIR("madc", 6, 7, 15, 18)
					OBK_PAIR("madc", 8, 9, 16, 18) OBK_LAST_PAIR(10, 11, 17, 18)
			: OBK_WORDS12(t)
			: OBK_EVERY_OTHER6(a), "r"(b));
}

template <int N>
OBK_DEVICE void obk_chain_even(uint32_t (&t)[N], uint32_t &top, const uint32_t *a, uint32_t b)
{
	obk_pairs_even<N / 2>(t, top, a, b);
}

/* a points at an odd word. */
template <int N> OBK_DEVICE void obk_chain_odd(uint32_t (&t)[N], const uint32_t *a, uint32_t b)
{
	obk_pairs_odd<N / 2>(t, a, b);
}

/* As obk_chain_odd after low += between, whose carry is the chain's carry in. */
OBK_DEVICE void obk_chain_joined(
	uint32_t (&t)[12], uint32_t &low, uint32_t between, const uint32_t *a, uint32_t b)
{
	asm("add.cc.u32 %12, %12, %13;\n\t" OBK_PAIR("madc", 0, 1, 14, 20) OBK_PAIR(
		"madc", 2, 3, 15, 20) OBK_PAIR("madc", 4, 5, 16, 20) OBK_PAIR("madc", 6, 7, 17, 20)
			OBK_PAIR("madc", 8, 9, 18, 20) OBK_LAST_PAIR(10, 11, 19, 20)
		: OBK_WORDS12(t), "+r"(low)
		: "r"(between), OBK_EVERY_OTHER6(a), "r"(b));
}

OBK_DEVICE void obk_chain_joined(
	uint32_t (&t)[8], uint32_t &low, uint32_t between, const uint32_t *a, uint32_t b)
{
	asm("add.cc.u32 %8, %8, %9;\n\t" OBK_PAIR("madc", 0, 1, 10, 14) OBK_PAIR(
		"madc", 2, 3, 11, 14) OBK_PAIR("madc", 4, 5, 12, 14) OBK_LAST_PAIR(6, 7, 13, 14)
		: OBK_WORDS8(t), "+r"(low)
		: "r"(between), OBK_EVERY_OTHER4(a), "r"(b));
}

#define OBK_STEP(op, x, y) op ".cc.u32 %" #x ", %" #x ", %" #y ";\n\t"
#define OBK_IN8(y) \
	"r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7])
#define OBK_IN12(y) OBK_IN8(y), "r"(y[8]), "r"(y[9]), "r"(y[10]), "r"(y[11])
/* x op= y over all words; `over` is the carry or borrow out of the last one (0 or 1, 0 or ~0). */
/* clang-format off */
#define OBK_ALL12(op) \
	OBK_STEP(op, 0, 13) OBK_STEP(op "c", 1, 14) OBK_STEP(op "c", 2, 15) OBK_STEP(op "c", 3, 16) OBK_STEP(op "c", 4, 17) OBK_STEP(op "c", 5, 18) \
	OBK_STEP(op "c", 6, 19) OBK_STEP(op "c", 7, 20) OBK_STEP(op "c", 8, 21) OBK_STEP(op "c", 9, 22) OBK_STEP(op "c", 10, 23) OBK_STEP(op "c", 11, 24) \
	op "c.u32 %12, 0, 0;"
#define OBK_ALL8(op) \
	OBK_STEP(op, 0, 9) OBK_STEP(op "c", 1, 10) OBK_STEP(op "c", 2, 11) OBK_STEP(op "c", 3, 12) OBK_STEP(op "c", 4, 13) OBK_STEP(op "c", 5, 14) \
	OBK_STEP(op "c", 6, 15) OBK_STEP(op "c", 7, 16) op "c.u32 %8, 0, 0;"
/* clang-format on */

OBK_DEVICE uint32_t obk_words_add(uint32_t (&x)[12], const uint32_t (&y)[12])
{
	uint32_t over;

	asm(OBK_ALL12("add") : OBK_WORDS12(x), "=r"(over) : OBK_IN12(y));
	return over;
}

OBK_DEVICE uint32_t obk_words_add(uint32_t (&x)[8], const uint32_t (&y)[8])
{
	uint32_t over;

	asm(OBK_ALL8("add") : OBK_WORDS8(x), "=r"(over) : OBK_IN8(y));
	return over;
}

OBK_DEVICE uint32_t obk_words_sub(uint32_t (&x)[12], const uint32_t (&y)[12])
{
	uint32_t over;

	asm(OBK_ALL12("sub") : OBK_WORDS12(x), "=r"(over) : OBK_IN12(y));
	return over;
}

OBK_DEVICE uint32_t obk_words_sub(uint32_t (&x)[8], const uint32_t (&y)[8])
{
	uint32_t over;

	asm(OBK_ALL8("sub") : OBK_WORDS8(x), "=r"(over) : OBK_IN8(y));
	return over;
}

/* An element; loaded from memory sixteen bytes at a time. */
template <class M> struct __align__(16) obk_element
{
	static const int N = M::words;
	uint32_t l[N];

	OBK_DEVICE void modulus(uint32_t(&p)[N])
	{
#pragma unroll
		for (int i = 0; i < N; i++)
			p[i] = M::word(i);
	}

	OBK_DEVICE obk_element zero()
	{
		obk_element r = {};

		return r;
	}

	OBK_DEVICE obk_element one()
	{
		obk_element r;

#pragma unroll
		for (int i = 0; i < N; i++)
			r.l[i] = M::one(i);
		return r;
	}

	/* Reduces a value below 2 m to one below m. */
	__device__ __forceinline__ void reduce()
	{
		uint32_t d[N], p[N], borrow;

		modulus(p);
#pragma unroll
		for (int i = 0; i < N; i++)
			d[i] = l[i];
		borrow = obk_words_sub(d, p);
#pragma unroll
		for (int i = 0; i < N; i++)
			l[i] = borrow ? l[i] : d[i];
	}

	__device__ __forceinline__ bool is_zero() const
	{
		uint32_t any = 0;

#pragma unroll
		for (int i = 0; i < N; i++)
			any |= l[i];
		return any == 0;
	}

	friend __device__ __forceinline__ obk_element operator+(obk_element a, const obk_element &b)
	{
		obk_words_add(a.l, b.l);
		a.reduce();
		return a;
	}

	friend __device__ __forceinline__ obk_element operator-(obk_element a, const obk_element &b)
	{
		uint32_t p[N], borrow = obk_words_sub(a.l, b.l);

#pragma unroll
		for (int i = 0; i < N; i++)
			p[i] = M::word(i) & borrow;
		obk_words_add(a.l, p);
		return a;
	}

	/*
	 * Adds a word of b times a. o and e are as after the shift; `between` is the word between
	 * them.
	 */
	OBK_DEVICE void multiply_row(uint32_t(&e)[N], uint32_t(&o)[N], uint32_t between,
		const uint32_t(&a)[N], uint32_t b)
	{
		obk_chain_joined(o, e[0], between, a + 1, b);
		obk_chain_even(e, o[N - 1], a, b);
	}

	/* Adds m p, which makes the lowest word 0. */
	OBK_DEVICE void reduce_row(uint32_t(&e)[N], uint32_t(&o)[N], const uint32_t(&p)[N])
	{
		uint32_t m = e[0] * M::ninv();

		obk_chain_odd(o, p + 1, m);
		obk_chain_even(e, o[N - 1], p, m);
	}

	/* Shifts by two words and returns the word in between. */
	OBK_DEVICE uint32_t shift(uint32_t(&e)[N])
	{
		uint32_t between = e[1];

#pragma unroll
		for (int i = 0; i + 2 < N; i++)
			e[i] = e[i + 2];
		e[N - 2] = e[N - 1] = 0;
		return between;
	}

	/*
	 * The sum of both accumulators: x starts at word 0, y at word 1, and `between` is added to
	 * word 0. It is below 2 m.
	 */
	OBK_DEVICE obk_element joined(uint32_t(&x)[N], uint32_t(&y)[N], uint32_t between)
	{
		obk_element r;

#pragma unroll
		for (int i = N - 1; i > 0; i--)
			y[i] = y[i - 1];
		y[0] = between;
		obk_words_add(x, y);
#pragma unroll
		for (int i = 0; i < N; i++)
			r.l[i] = x[i];
		r.reduce();
		return r;
	}

	friend __device__ __forceinline__ obk_element operator*(
		const obk_element &a, const obk_element &b)
	{
		uint32_t x[N] = {}, y[N] = {}, p[N], between = 0;

		modulus(p);
#pragma unroll
		for (int i = 0; i < N; i += 2) {
			multiply_row(x, y, between, a.l, b.l[i]);
			reduce_row(x, y, p);
			between = shift(x);
			multiply_row(y, x, between, a.l, b.l[i + 1]);
			reduce_row(y, x, p);
			between = shift(y);
		}
		return joined(x, y, between);
	}
};

typedef obk_element<obk_fp_modulus> obk_fp;
typedef obk_element<obk_fr_modulus> obk_fr;

/*
 * a b + c d with one reduction. Intermediate values are below 3 p, and the result, (a b + c d + m
 * p) / R, is below (1 + 2 p / R) p = 1.21 p. (3 r would not fit.)
 */
OBK_DEVICE obk_fp obk_fp_sum_of_products(
	const obk_fp &a, const obk_fp &b, const obk_fp &c, const obk_fp &d)
{
	uint32_t x[12] = {}, y[12] = {}, p[12], between = 0;

	obk_fp::modulus(p);
#pragma unroll
	for (int i = 0; i < 12; i += 2) {
		obk_fp::multiply_row(x, y, between, a.l, b.l[i]);
		obk_fp::multiply_row(x, y, 0, c.l, d.l[i]);
		obk_fp::reduce_row(x, y, p);
		between = obk_fp::shift(x);
		obk_fp::multiply_row(y, x, between, a.l, b.l[i + 1]);
		obk_fp::multiply_row(y, x, 0, c.l, d.l[i + 1]);
		obk_fp::reduce_row(y, x, p);
		between = obk_fp::shift(y);
	}
	return obk_fp::joined(x, y, between);
}

/*
 * Row I of a square: a[I] times a[I], and times twice the words above it; the lowest of these gets
 * no bit from a[I]. It takes 78 products of words instead of 144 and no more registers than a
 * product: row I + 1 needs neither a[I] nor its multiplicands. Intermediate values stay below 3 p,
 * because 2 a < 2 p.
 */
template <int I>
OBK_DEVICE void obk_fp_square_row(uint32_t (&e)[12], uint32_t (&o)[12], uint32_t between,
	const uint32_t (&a)[12], const uint32_t (&p)[12])
{
	const int even = I + I % 2, odd = I + 1 - I % 2;
	uint32_t w[12], m;

#pragma unroll
	for (int j = I; j < 12; j++)
		w[j] = j == I ? a[j] : j == I + 1 ? a[j] << 1 : __funnelshift_l(a[j - 1], a[j], 1);
	obk_pairs_odd<(13 - odd) / 2>(o + odd - 1, w + odd, a[I]);
	obk_pairs_even<(12 - even) / 2>(e + even, o[11], w + even, a[I]);
	m = (e[0] + between) * obk_fp_modulus::ninv();
	obk_chain_joined(o, e[0], between, p + 1, m);
	obk_chain_even(e, o[11], p, m);
}

template <int I>
OBK_DEVICE void obk_fp_square_rows(uint32_t (&x)[12], uint32_t (&y)[12], uint32_t &between,
	const uint32_t (&a)[12], const uint32_t (&p)[12])
{
	obk_fp_square_row<I>(x, y, between, a, p);
	between = obk_fp::shift(x);
	obk_fp_square_row<I + 1>(y, x, between, a, p);
	between = obk_fp::shift(y);
}

OBK_DEVICE obk_fp obk_fp_square(const obk_fp &a)
{
	uint32_t x[12] = {}, y[12] = {}, p[12], between = 0;

	obk_fp::modulus(p);
	obk_fp_square_rows<0>(x, y, between, a.l, p);
	obk_fp_square_rows<2>(x, y, between, a.l, p);
	obk_fp_square_rows<4>(x, y, between, a.l, p);
	obk_fp_square_rows<6>(x, y, between, a.l, p);
	obk_fp_square_rows<8>(x, y, between, a.l, p);
	obk_fp_square_rows<10>(x, y, between, a.l, p);
	return obk_fp::joined(x, y, between);
}

#endif
