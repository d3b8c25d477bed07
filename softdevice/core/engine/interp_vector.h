/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Vectors of 32-bit elements, of the width of the instruction set, with products, carries and
 * masks; included by interp.c.
 */

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define VECTORS (OBD_SLOT_BYTES / VECTOR_BYTES)
typedef u32 vu __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef i32 vi __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef u64 vw __attribute__((vector_size(VECTOR_BYTES), may_alias));

/*
 * The carry out of bit 31 of x + y + k, where `sum` is the result, and the borrow out of x - y - k,
 * where `diff` is the result.
 */
#define CARRY_OUT(x, y, sum)   ((((x) & (y)) | (((x) | (y)) & ~(sum))) >> 31)
#define BORROW_OUT(x, y, diff) (((~(x) & (y)) | ((~(x) | (y)) & (diff))) >> 31)

/*
 * A vector in which each odd element is also copied to the even one before it. From memory this
 * costs no more than the load.
 */
#if defined(__AVX2__)
static inline vu odd_lanes(const vu *p)
{
	vu r;

	__asm__("vmovshdup %1, %0" : "=v"(r) : "m"(*p));
	return r;
}
#endif

/*
 * Upper halves of unsigned products. The multiply instruction uses the even elements only and gives
 * 64 bits, so the odd elements are first copied to even positions.
 */
static inline vu mulhi_vu(const vu *pa, const vu *pb)
{
#if defined(__AVX512F__)
	__m512i even = _mm512_mul_epu32((__m512i)*pa, (__m512i)*pb);
	__m512i odd = _mm512_mul_epu32((__m512i)odd_lanes(pa), (__m512i)odd_lanes(pb));

	return (vu)_mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
#elif defined(__AVX2__)
	__m256i even = _mm256_mul_epu32((__m256i)*pa, (__m256i)*pb);
	__m256i odd = _mm256_mul_epu32((__m256i)odd_lanes(pa), (__m256i)odd_lanes(pb));

	return (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
#elif defined(__SSE2__)
	__m128i a = (__m128i)*pa, b = (__m128i)*pb;
	__m128i even = _mm_mul_epu32(a, b),
		odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));

	return (vu)_mm_or_si128(_mm_srli_epi64(even, 32),
		_mm_and_si128(odd, _mm_set1_epi64x((long long)0xffffffff00000000ull)));
#else
	vu r;

	for (unsigned i = 0; i < VECTOR_BYTES / 4; i++)
		r[i] = (u32)(((u64)(*pa)[i] * (*pb)[i]) >> 32);
	return r;
#endif
}

/*
 * Signed products. Read as unsigned, a negative factor adds 2^32 times the other factor; this is
 * subtracted.
 */
static inline vu mulhi_vs(const vu *pa, const vu *pb)
{
	vu a = *pa, b = *pb;

	return mulhi_vu(pa, pb) - ((vu)((vi)a >> 31) & b) - ((vu)((vi)b >> 31) & a);
}

/* Element i, which is 0 or all ones, gives bit i. */
static inline u32 lanes_to_mask(const u32 *t)
{
#if defined(__AVX512F__) && defined(__AVX512DQ__)
	return (u32)_mm512_movepi32_mask(_mm512_load_si512(t)) |
		((u32)_mm512_movepi32_mask(_mm512_load_si512(t + 16)) << 16);
#elif defined(__AVX2__)
	u32 r = 0;

	for (unsigned i = 0; i < 4; i++)
		r |= (u32)_mm256_movemask_ps(
			     _mm256_load_ps((const float *)(const void *)(t + 8 * i)))
			<< (8 * i);
	return r;
#elif defined(__SSE2__)
	u32 r = 0;

	for (unsigned i = 0; i < 8; i++)
		r |= (u32)_mm_movemask_ps(_mm_load_ps((const float *)(const void *)(t + 4 * i)))
			<< (4 * i);
	return r;
#else
	u32 r = 0;

	LANES r |= t[i] & lane_bit[i];
	return r;
#endif
}
