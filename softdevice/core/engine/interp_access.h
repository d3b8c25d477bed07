/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reads and writes of the cells of 32 lanes, at addresses that have been checked; included by
 * interp.c. Cells of lanes outside the mask are not touched, they may lie in memory that does not
 * exist.
 */

/* Does each active lane i access the cell i - lane0 cells after that of lane0? */
#define IN_ROW(kind, word)                                                                  \
	static inline bool in_row_##kind(const word *pa, u32 lane0, word step, u32 m)       \
	{                                                                                   \
		word first = pa[lane0] - lane0 * step, x = 0;                               \
                                                                                            \
		if (m == OBD_FULL_MASK)                                                     \
			LOOP LANES x |= pa[i] ^ (first + i * step);                         \
		else                                                                        \
			LOOP LANES x |= (m & lane_bit[i]) ? pa[i] ^ (first + i * step) : 0; \
		return x == 0;                                                              \
	}                                                                                   \
	static inline bool is_same_##kind(const word *pa, u32 lane0, u32 m)                 \
	{                                                                                   \
		word first = pa[lane0], x = 0;                                              \
                                                                                            \
		if (m == OBD_FULL_MASK)                                                     \
			LOOP LANES x |= pa[i] ^ first;                                      \
		else                                                                        \
			LOOP LANES x |= (m & lane_bit[i]) ? pa[i] ^ first : 0;              \
		return x == 0;                                                              \
	}
IN_ROW(g, u64)
IN_ROW(s, u32)

/* ---- rows under a mask ---- */

#if defined(__AVX512F__)
#define OLD(i)     _mm512_load_si512(d + (i))
#define PART(i, w) ((m >> (i)) & ((1u << (w)) - 1))
static inline void load_part_u8(u32 *d, const u8 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 16)
		_mm512_store_si512(d + i,
			_mm512_mask_cvtepu8_epi32(OLD(i), (__mmask16)PART(i, 16),
				_mm_maskz_loadu_epi8((__mmask16)PART(i, 16), s + i)));
}

static inline void load_part_u16(u32 *d, const u16 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 16)
		_mm512_store_si512(d + i,
			_mm512_mask_cvtepu16_epi32(OLD(i), (__mmask16)PART(i, 16),
				_mm256_maskz_loadu_epi16((__mmask16)PART(i, 16), s + i)));
}

static inline void load_part_u32(u32 *d, const u32 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 16)
		_mm512_store_si512(
			d + i, _mm512_mask_loadu_epi32(OLD(i), (__mmask16)PART(i, 16), s + i));
}

static inline void load_part_u64(u64 *d, const u64 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 8)
		_mm512_store_si512(
			d + i, _mm512_mask_loadu_epi64(OLD(i), (__mmask8)PART(i, 8), s + i));
}

static inline void store_part_u8(u8 *d, const u32 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 16)
		_mm_mask_storeu_epi8(d + i, (__mmask16)PART(i, 16),
			_mm512_cvtepi32_epi8(_mm512_load_si512(s + i)));
}

static inline void store_part_u16(u16 *d, const u32 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 16)
		_mm256_mask_storeu_epi16(d + i, (__mmask16)PART(i, 16),
			_mm512_cvtepi32_epi16(_mm512_load_si512(s + i)));
}

static inline void store_part_u32(u32 *d, const u32 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 16)
		_mm512_mask_storeu_epi32(d + i, (__mmask16)PART(i, 16), _mm512_load_si512(s + i));
}

static inline void store_part_u64(u64 *d, const u64 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 8)
		_mm512_mask_storeu_epi64(d + i, (__mmask8)PART(i, 8), _mm512_load_si512(s + i));
}
#else
#define LOAD_PART(cell, lane)                                              \
	static inline void load_part_##cell(lane *d, const cell *s, u32 m) \
	{                                                                  \
		for (u32 rest = m; rest; rest &= rest - 1) {               \
			unsigned i = (unsigned)__builtin_ctz(rest);        \
			d[i] = s[i];                                       \
		}                                                          \
	}
#define STORE_PART(cell, lane)                                              \
	static inline void store_part_##cell(cell *d, const lane *s, u32 m) \
	{                                                                   \
		for (u32 rest = m; rest; rest &= rest - 1) {                \
			unsigned i = (unsigned)__builtin_ctz(rest);         \
			d[i] = (cell)s[i];                                  \
		}                                                           \
	}
LOAD_PART(u8, u32)
LOAD_PART(u16, u32)
STORE_PART(u8, u32)
STORE_PART(u16, u32)
#if defined(__AVX2__)
/* all ones in the elements of active lanes */
static inline __m256i lanes8(u32 m, unsigned at)
{
	__m256i bits = _mm256_load_si256((const __m256i *)(const void *)(lane_bit + at));

	return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)m), bits), bits);
}

static inline __m256i lanes4(u32 m, unsigned at)
{
	__m128i bits = _mm_load_si128((const __m128i *)(const void *)(lane_bit + at));

	return _mm256_cvtepi32_epi64(
		_mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32((int)m), bits), bits));
}

static inline void load_part_u32(u32 *d, const u32 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 8) {
		__m256i k = lanes8(m, i), *to = (__m256i *)(void *)(d + i);
		__m256i v = _mm256_maskload_epi32((const int *)(const void *)(s + i), k);

		_mm256_store_si256(to, _mm256_blendv_epi8(*to, v, k));
	}
}

static inline void load_part_u64(u64 *d, const u64 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 4) {
		__m256i k = lanes4(m, i), *to = (__m256i *)(void *)(d + i);
		__m256i v = _mm256_maskload_epi64((const long long *)(const void *)(s + i), k);

		_mm256_store_si256(to, _mm256_blendv_epi8(*to, v, k));
	}
}

static inline void store_part_u32(u32 *d, const u32 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 8)
		_mm256_maskstore_epi32((int *)(void *)(d + i), lanes8(m, i),
			_mm256_load_si256((const __m256i *)(const void *)(s + i)));
}

static inline void store_part_u64(u64 *d, const u64 *s, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 4)
		_mm256_maskstore_epi64((long long *)(void *)(d + i), lanes4(m, i),
			_mm256_load_si256((const __m256i *)(const void *)(s + i)));
}
#else
LOAD_PART(u32, u32)
LOAD_PART(u64, u64)
STORE_PART(u32, u32)
STORE_PART(u64, u64)
#endif
#endif

#define ROWS(cell, lane)                                                   \
	static inline void load_row_##cell(lane *d, const cell *s, u32 m)  \
	{                                                                  \
		if (m == OBD_FULL_MASK)                                    \
			LOOP LANES d[i] = s[i];                            \
		else                                                       \
			load_part_##cell(d, s, m);                         \
	}                                                                  \
	static inline void store_row_##cell(cell *d, const lane *s, u32 m) \
	{                                                                  \
		if (m == OBD_FULL_MASK)                                    \
			LOOP LANES d[i] = (cell)s[i];                      \
		else                                                       \
			store_part_##cell(d, s, m);                        \
	}
ROWS(u8, u32)
ROWS(u16, u32)
ROWS(u32, u32)
ROWS(u64, u64)

/* ---- any addresses ---- */

#define LOAD_ONE_BY_ONE(cell, lane)                                        \
	static inline void load_each_##cell(lane *d, const u64 *ad, u32 m) \
	{                                                                  \
		if (m == OBD_FULL_MASK) {                                  \
			LANES d[i] = *(const cell *)(uintptr_t)ad[i];      \
			return;                                            \
		}                                                          \
		for (u32 rest = m; rest; rest &= rest - 1) {               \
			unsigned i = (unsigned)__builtin_ctz(rest);        \
			d[i] = *(const cell *)(uintptr_t)ad[i];            \
		}                                                          \
	}
LOAD_ONE_BY_ONE(u8, u32)
LOAD_ONE_BY_ONE(u16, u32)
#if defined(__AVX512F__)
/*
 * Blocks of 16 x n threads make the two halves of a warp rows, or read one cell in each half. A
 * mask that is not full is left to the gather instruction.
 */
static inline bool load_half(u32 *d, const u64 *ad)
{
	__m512i first = _mm512_set1_epi64((long long)ad[0]);
	__m512i low = _mm512_sub_epi64(_mm512_load_si512(ad), first);
	__m512i high = _mm512_sub_epi64(_mm512_load_si512(ad + 8), first);
	const u32 *s = (const u32 *)(uintptr_t)ad[0];

	if (_mm512_test_epi64_mask(_mm512_or_si512(low, high), _mm512_set1_epi64(-1)) == 0) {
		_mm512_store_si512(d, _mm512_set1_epi32((int)*s));
		return true;
	}
	if ((_mm512_cmpneq_epi64_mask(low, _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28)) |
		    _mm512_cmpneq_epi64_mask(
			    high, _mm512_setr_epi64(32, 36, 40, 44, 48, 52, 56, 60))) != 0)
		return false;
	_mm512_store_si512(d, _mm512_loadu_si512(s));
	return true;
}

static inline void load_each_u32(u32 *d, const u64 *ad, u32 m)
{
	for (unsigned h = 0; h < OBD_LANES; h += 16) {
		if (m == OBD_FULL_MASK && load_half(d + h, ad + h))
			continue;
		for (unsigned i = h; i < h + 16; i += 8) {
			__m256i *to = (__m256i *)(void *)(d + i);

			*to = _mm512_mask_i64gather_epi32(
				*to, (__mmask8)PART(i, 8), _mm512_load_si512(ad + i), NULL, 1);
		}
	}
}

static inline void load_each_u64(u64 *d, const u64 *ad, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 8)
		_mm512_store_si512(d + i,
			_mm512_mask_i64gather_epi64(
				OLD(i), (__mmask8)PART(i, 8), _mm512_load_si512(ad + i), NULL, 1));
}
#else
LOAD_ONE_BY_ONE(u32, u32)
LOAD_ONE_BY_ONE(u64, u64)
#endif
