/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reads and writes of the cells of 32 lanes, at addresses that have been checked; included by
 * interp.c. Cells of lanes outside the mask are not touched, they may lie in memory that does not
 * exist.
 */

/* ---- patterns of addresses ---- */

/* clang-format off */
static const _Alignas(64) u64 number_g[OBD_LANES] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};
static const _Alignas(64) u32 number_s[OBD_LANES] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};
/* clang-format on */

static inline bool is_zero(vw v)
{
#if defined(__AVX512F__)
	return _mm512_test_epi64_mask((__m512i)v, (__m512i)v) == 0;
#elif defined(__AVX2__)
	return _mm256_testz_si256((__m256i)v, (__m256i)v);
#elif defined(__SSE4_1__)
	return _mm_testz_si128((__m128i)v, (__m128i)v);
#else
	u64 bits = 0;

	for (unsigned i = 0; i < VECTOR_BYTES / 8; i++)
		bits |= v[i];
	return bits == 0;
#endif
}

/* Are the words of n vectors first, first + 1 << shift, first + 2 << shift and so on? */
#if defined(__AVX512F__)
static inline bool row_cells_s(const vu *v, const vu *number, u32 first, size_t n, int shift)
{
	__m512i start = _mm512_set1_epi32((int)first);
	u32 bad = 0;

	for (size_t i = 0; i < n; i++)
		bad |= _mm512_cmpneq_epi32_mask(
			(__m512i)v[i], _mm512_add_epi32(start, (__m512i)(number[i] << shift)));
	return bad == 0;
}

static inline bool row_cells_g(const vw *v, const vw *number, u64 first, size_t n, int shift)
{
	__m512i start = _mm512_set1_epi64((long long)first);
	u32 bad = 0;

	for (size_t i = 0; i < n; i++)
		bad |= _mm512_cmpneq_epi64_mask(
			(__m512i)v[i], _mm512_add_epi64(start, (__m512i)(number[i] << shift)));
	return bad == 0;
}
#else
#define ROW_CELLS(kind, word, vector)                                                   \
	static inline bool row_cells_##kind(                                            \
		const vector *v, const vector *number, word first, size_t n, int shift) \
	{                                                                               \
		vector bad = { 0 };                                                     \
                                                                                        \
		for (size_t i = 0; i < n; i++)                                          \
			bad |= (v[i] - first) ^ (number[i] << shift);                   \
		return is_zero((vw)bad);                                                \
	}
ROW_CELLS(s, u32, vu)
ROW_CELLS(g, u64, vw)
#endif

/*
 * is_row: does lane i access the cell i cells after that of lane 0? is_same: do all lanes access
 * one cell? part_is_row, part_is_same: the same of the lanes of the mask m, of which lane0 is the
 * first. `size`: of a cell, a power of two; n: number of lanes.
 */
#define PATTERNS(kind, word, vector)                                                             \
	static inline bool is_row_##kind(const word *pa, u32 n, u32 size)                        \
	{                                                                                        \
		const vector *v = (const vector *)(const void *)pa;                              \
		const vector *number = (const vector *)(const void *)number_##kind;              \
		return row_cells_##kind(                                                         \
			v, number, pa[0], sizeof(word) * n / VECTOR_BYTES, __builtin_ctz(size)); \
	}                                                                                        \
	static inline bool is_same_##kind(const word *pa, u32 n)                                 \
	{                                                                                        \
		const vector *v = (const vector *)(const void *)pa;                              \
		vector bad = { 0 };                                                              \
                                                                                                 \
		for (unsigned i = 0; i < sizeof(word) * n / VECTOR_BYTES; i++)                   \
			bad |= v[i] ^ pa[0];                                                     \
		return is_zero((vw)bad);                                                         \
	}                                                                                        \
	static inline bool part_is_row_##kind(const word *pa, u32 lane0, u32 size, u32 m)        \
	{                                                                                        \
		word first = pa[lane0] - (word)lane0 * size, x = 0;                              \
                                                                                                 \
		LOOP LANES x |= (m & lane_bit[i]) ? pa[i] ^ (first + (word)i * size) : 0;        \
		return x == 0;                                                                   \
	}                                                                                        \
	static inline bool part_is_same_##kind(const word *pa, u32 lane0, u32 m)                 \
	{                                                                                        \
		word first = pa[lane0], x = 0;                                                   \
                                                                                                 \
		LOOP LANES x |= (m & lane_bit[i]) ? pa[i] ^ first : 0;                           \
		return x == 0;                                                                   \
	}
PATTERNS(g, u64, vw)
PATTERNS(s, u32, vu)

enum half { HALF_OTHER, HALF_SAME, HALF_ROW };

/*
 * How 16 lanes access memory. In a block of 16 x n threads each half of a warp often reads one
 * cell, or a row.
 */
#define HALF_OF(kind, word)                                                    \
	static inline enum half half_##kind(const word *pa, u32 size)          \
	{                                                                      \
		return is_same_##kind(pa, OBD_LANES / 2)         ? HALF_SAME   \
			: is_row_##kind(pa, OBD_LANES / 2, size) ? HALF_ROW    \
								 : HALF_OTHER; \
	}
HALF_OF(g, u64)
HALF_OF(s, u32)

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
#define READ_PART(cell, lane)                                              \
	static inline void load_part_##cell(lane *d, const cell *s, u32 m) \
	{                                                                  \
		for (u32 rest = m; rest; rest &= rest - 1) {               \
			unsigned i = (unsigned)__builtin_ctz(rest);        \
			d[i] = s[i];                                       \
		}                                                          \
	}
#define WRITE_PART(cell, lane)                                              \
	static inline void store_part_##cell(cell *d, const lane *s, u32 m) \
	{                                                                   \
		for (u32 rest = m; rest; rest &= rest - 1) {                \
			unsigned i = (unsigned)__builtin_ctz(rest);         \
			d[i] = (cell)s[i];                                  \
		}                                                           \
	}
READ_PART(u8, u32)
READ_PART(u16, u32)
WRITE_PART(u8, u32)
WRITE_PART(u16, u32)
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
READ_PART(u32, u32)
READ_PART(u64, u64)
WRITE_PART(u32, u32)
WRITE_PART(u64, u64)
#endif
#endif

#define LOAD_HALF(cell, lane)                                                           \
	static inline void load_half_##cell(lane *d, const cell *s, enum half how)      \
	{                                                                               \
		lane first = *s;                                                        \
                                                                                        \
		if (how == HALF_SAME)                                                   \
			LOOP for (unsigned i = 0; i < OBD_LANES / 2; i++) d[i] = first; \
		else if (sizeof(lane) == sizeof(cell))                                  \
			memcpy(d, s, OBD_LANES / 2 * sizeof(cell));                     \
		else                                                                    \
			LOOP for (unsigned i = 0; i < OBD_LANES / 2; i++) d[i] = s[i];  \
	}
LOAD_HALF(u8, u32)
LOAD_HALF(u16, u32)
LOAD_HALF(u32, u32)
LOAD_HALF(u64, u64)

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
static inline void load_each_u32(u32 *d, const u64 *ad, u32 m)
{
	for (unsigned i = 0; i < OBD_LANES; i += 8) {
		__m256i *to = (__m256i *)(void *)(d + i);

		*to = _mm512_mask_i64gather_epi32(
			*to, (__mmask8)PART(i, 8), _mm512_load_si512(ad + i), NULL, 1);
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
