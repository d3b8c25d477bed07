/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Compiled once per instruction set with OBK_ISA = c, avx2, avx512, always with optimisation and
 * without contraction.
 */
#include <string.h>

#include "compute/rqa/internal.h"

#define ALWAYS    inline __attribute__((always_inline))
#define POINT_MAX 65536u /* coordinates of one vector: OBK_RQA_MAX_M * OBK_RQA_MAX_CHANNELS */

#if defined(__AVX512F__)
#include <immintrin.h>
#define BYTES 64
#elif defined(__AVX2__)
#include <immintrin.h>
#define BYTES 32
#else
#define BYTES 16
#endif

typedef float vector_f32 __attribute__((vector_size(BYTES)));
typedef double vector_f64 __attribute__((vector_size(BYTES)));
typedef int32_t vector_i32 __attribute__((vector_size(BYTES)));
typedef uint32_t vector_u32 __attribute__((vector_size(BYTES)));
typedef uint64_t vector_u64 __attribute__((vector_size(BYTES)));
typedef int64_t vector_i64 __attribute__((vector_size(BYTES)));

static inline vector_f32 abs_f32(vector_f32 a)
{
	return (vector_f32)((vector_i32)a & INT32_MAX);
}

static inline vector_f64 abs_f64(vector_f64 a)
{
	return (vector_f64)((vector_i64)a & INT64_MAX);
}

#if BYTES == 64
static inline uint32_t mask_f32(vector_f32 a, vector_f32 b)
{
	return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ);
}

static inline uint32_t mask_f64(vector_f64 a, vector_f64 b)
{
	return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LE_OQ);
}

static inline vector_i32 shift_in_f32(vector_i32 bits, vector_f32 a, vector_f32 b)
{
	__m512i twice = _mm512_add_epi32((__m512i)bits, (__m512i)bits);

	return (vector_i32)_mm512_mask_or_epi32(twice,
		_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ), twice, _mm512_set1_epi32(1));
}

static inline vector_i64 shift_in_f64(vector_i64 bits, vector_f64 a, vector_f64 b)
{
	__m512i twice = _mm512_add_epi64((__m512i)bits, (__m512i)bits);

	return (vector_i64)_mm512_mask_or_epi64(twice,
		_mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LE_OQ), twice,
		_mm512_set1_epi64(1));
}

static inline vector_f32 max_f32(vector_f32 a, vector_f32 b)
{
	return (vector_f32)_mm512_max_ps((__m512)a, (__m512)b);
}

static inline vector_f64 max_f64(vector_f64 a, vector_f64 b)
{
	return (vector_f64)_mm512_max_pd((__m512d)a, (__m512d)b);
}
#elif BYTES == 32
static inline uint32_t mask_f32(vector_f32 a, vector_f32 b)
{
	return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LE_OQ));
}

static inline uint32_t mask_f64(vector_f64 a, vector_f64 b)
{
	return (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_LE_OQ));
}

static inline vector_f32 max_f32(vector_f32 a, vector_f32 b)
{
	return (vector_f32)_mm256_max_ps((__m256)a, (__m256)b);
}

static inline vector_f64 max_f64(vector_f64 a, vector_f64 b)
{
	return (vector_f64)_mm256_max_pd((__m256d)a, (__m256d)b);
}
#else
/* The reference implementation, for every processor. */
static inline uint32_t mask_f32(vector_f32 a, vector_f32 b)
{
	return (uint32_t)(a[0] <= b[0]) | (uint32_t)(a[1] <= b[1]) << 1 |
		(uint32_t)(a[2] <= b[2]) << 2 | (uint32_t)(a[3] <= b[3]) << 3;
}

static inline uint32_t mask_f64(vector_f64 a, vector_f64 b)
{
	return (uint32_t)(a[0] <= b[0]) | (uint32_t)(a[1] <= b[1]) << 1;
}

static inline vector_f32 max_f32(vector_f32 a, vector_f32 b)
{
	vector_i32 above = a > b;

	return (vector_f32)((above & (vector_i32)a) | (~above & (vector_i32)b));
}

static inline vector_f64 max_f64(vector_f64 a, vector_f64 b)
{
	vector_i64 above = a > b;

	return (vector_f64)((above & (vector_i64)a) | (~above & (vector_i64)b));
}
#endif

#if BYTES != 64
/* A true comparison is -1 in its SIMD lane. */
static inline vector_i32 shift_in_f32(vector_i32 bits, vector_f32 a, vector_f32 b)
{
	return (vector_i32)((vector_u32)bits + (vector_u32)bits - (vector_u32)(a <= b));
}

static inline vector_i64 shift_in_f64(vector_i64 bits, vector_f64 a, vector_f64 b)
{
	return (vector_i64)((vector_u64)bits + (vector_u64)bits - (vector_u64)(a <= b));
}
#endif

static inline void emit(struct obk_rqa_delta *delta, uint32_t from, uint32_t to, uint64_t length)
{
	delta->count[from * delta->stride + length]++;
	delta->count[to * delta->stride + length]--;
	if (length > delta->longest)
		delta->longest = length;
}

/*
 * Ends the intervals that a cell of `level` at position `at` ends. Returns the start of an interval
 * that continues at that level.
 */
static inline uint64_t stack_pop(
	struct obk_rqa_delta *delta, uint32_t *depth, uint32_t level, uint64_t at)
{
	uint32_t top = *depth;
	uint64_t start = at;

	while (top && delta->stack_level[top] < level) {
		uint32_t below = delta->stack_level[top - 1];

		start = delta->stack_start[top];
		emit(delta, delta->stack_level[top], below < level ? below : level, at - start);
		top--;
	}
	*depth = top;
	return start;
}

#ifndef VECTORS
#define VECTORS (BYTES == 64 ? 1 : 2) /* in a strip; two vectors share the loads of one series */
#endif

#define REAL        float
#define INTEGERS    vector_i32
#define BITS        32
#define UNSIGNED(a) (uint32_t)(a)
#define SHIFT_IN    shift_in_f32
#define VECTOR      vector_f32
#define WIDTH       (BYTES / 4)
#define NAMED(name) name##_f32
#define MASK_LE     mask_f32
#define ABS         abs_f32
#define MAX         max_f32
#include "compute/rqa/lanes_real.h"
#undef REAL
#undef VECTOR
#undef WIDTH
#undef NAMED
#undef MASK_LE
#undef ABS
#undef MAX
#undef INTEGERS
#undef BITS
#undef UNSIGNED
#undef SHIFT_IN
#define REAL        double
#define INTEGERS    vector_i64
#define BITS        64
#define UNSIGNED(a) (uint64_t)(a)
#define SHIFT_IN    shift_in_f64
#define VECTOR      vector_f64
#define WIDTH       (BYTES / 8)
#define NAMED(name) name##_f64
#define MASK_LE     mask_f64
#define ABS         abs_f64
#define MAX         max_f64
#include "compute/rqa/lanes_real.h"

static void diagonal(const struct obk_rqa_plot *plot, struct obk_rqa_scratch *scratch, uint64_t i,
	uint64_t j, uint64_t cells, uint64_t *ret_words)
{
	if (plot->f64)
		diagonal_f64(plot, scratch, i, j, cells, ret_words);
	else
		diagonal_f32(plot, scratch, i, j, cells, ret_words);
	if (cells & 63)
		ret_words[cells / 64] &= ((uint64_t)1 << (cells & 63)) - 1;
}

static void strip(const struct obk_rqa_plot *plot, struct obk_rqa_scratch *scratch, uint64_t k,
	uint64_t cells, uint64_t *ret_words, uint64_t stride)
{
	unsigned lanes = plot->f64 ? VECTORS * BYTES / 8 : VECTORS * BYTES / 4;

	if (plot->f64)
		strip_f64(plot, scratch, k, cells, ret_words, stride);
	else
		strip_f32(plot, scratch, k, cells, ret_words, stride);
	for (unsigned lane = 0; lane < lanes && lane < cells; lane++)
		if ((cells - lane) & 63)
			ret_words[lane * stride + (cells - lane) / 64] &=
				((uint64_t)1 << ((cells - lane) & 63)) - 1;
}

static void column(const struct obk_rqa_plot *plot, uint64_t j, uint64_t *ret_words)
{
	uint64_t cells = plot->x.n;

	if (plot->f64)
		column_f64(plot, j, ret_words, NULL);
	else
		column_f32(plot, j, ret_words, NULL);
	if (cells & 63)
		ret_words[cells / 64] &= ((uint64_t)1 << (cells & 63)) - 1;
}

static void column_distance(const struct obk_rqa_plot *plot, uint64_t j, void *ret_distance)
{
	if (plot->f64)
		column_f64(plot, j, NULL, ret_distance);
	else
		column_f32(plot, j, NULL, ret_distance);
}

static void column_step(
	const struct obk_rqa_plot *plot, uint64_t j, uint32_t lag, uint64_t n, void *distance)
{
	if (plot->f64)
		column_step_f64(plot, j, lag, n, distance);
	else
		column_step_f32(plot, j, lag, n, distance);
}

static void gaps(const struct obk_rqa_plot *plot, uint32_t channel, uint64_t i, uint64_t j,
	uint64_t count, void *ret_gaps)
{
	if (plot->f64)
		gaps_any_f64((const double *)plot->x.channel[channel] + i,
			(const double *)plot->y.channel[channel] + j, count, ret_gaps, plot->norm);
	else
		gaps_any_f32((const float *)plot->x.channel[channel] + i,
			(const float *)plot->y.channel[channel] + j, count, ret_gaps, plot->norm);
}

static void join(const struct obk_rqa_plot *plot, void *into, const void *gap, uint64_t count)
{
	if (plot->f64)
		join_f64(into, gap, count, plot->norm);
	else
		join_f32(into, gap, count, plot->norm);
}

static void levels(const void *distance, uint64_t cells, const struct obk_rqa_levels *wanted,
	struct obk_rqa_delta *delta)
{
	if (wanted->f64)
		levels_f64(distance, cells, wanted, wanted->limit, delta);
	else
		levels_f32(distance, cells, wanted, wanted->limit_f32, delta);
}

static void compare(
	const void *distance, uint64_t cells, bool f64, double limit, uint64_t *ret_words)
{
	if (f64)
		compare_f64(distance, cells, limit, ret_words);
	else
		compare_f32(distance, cells, (float)limit, ret_words);
}

static inline void count_inner(
	uint64_t length, struct obk_rqa_short *inner, struct obk_rqa_hist *kinds)
{
	if (length < OBK_RQA_SHORT)
		inner->count[length]++;
	else
		obk_rqa_hist_add(&kinds[OBK_RQA_INNER], length, 1);
}

#include "compute/rqa/lanes_walk.h"

#if BYTES >= 32
#include "compute/rqa/lanes_runs.h"
#include "compute/rqa/lanes_sieve.h"
#else
struct line {
	uint64_t open; /* length of the run that is open */
	bool touches;  /* it began with the line */
	struct obk_rqa_short *inner;
	struct obk_rqa_hist *kinds;
};

static inline void line_close(struct line *line)
{
	if (line->open) {
		if (line->touches)
			obk_rqa_hist_add(&line->kinds[OBK_RQA_SEMI], line->open, 1);
		else
			count_inner(line->open, line->inner, line->kinds);
	}
	line->open = 0;
	line->touches = false;
}

/* Processes the next `left` cells of a line; bits behind them are 0. */
static inline __attribute__((always_inline)) void line_word(
	struct line *line, uint64_t bits, unsigned left)
{
	unsigned low, high;
	uint64_t *short_count = line->inner->count;

	if (!bits) {
		line_close(line);
		return;
	}
	low = ~bits ? (unsigned)__builtin_ctzll(~bits) : 64;
	line->open += low;
	if (low == left)
		return;
	line_close(line);
	high = (unsigned)__builtin_clzll(~(bits << (64 - left)));
	/*
	 * Removes the run that continues from before and the one that continues behind. Bit 0 is
	 * then clear, so no shift below is by 64.
	 */
	bits = bits >> low & (~(uint64_t)0 >> (64 - left + high + low));
	line->open = high;
	while (bits) {
		unsigned length;

		bits >>= __builtin_ctzll(bits);
		length = (unsigned)__builtin_ctzll(~bits);
		short_count[length]++;
		bits >>= length;
	}
}

static uint64_t runs(const uint64_t *words, uint64_t cells, struct obk_rqa_short *inner,
	struct obk_rqa_hist *kinds)
{
	struct line line = { .touches = true, .inner = inner, .kinds = kinds };
	uint64_t points = 0, whole = cells / 64;

	for (uint64_t w = 0; w < whole; w++) {
		points += (uint64_t)__builtin_popcountll(words[w]);
		line_word(&line, words[w], 64);
	}
	if (cells & 63) {
		points += (uint64_t)__builtin_popcountll(words[whole]);
		line_word(&line, words[whole], cells & 63);
	}
	if (line.open)
		obk_rqa_hist_add(&kinds[line.touches ? OBK_RQA_FULL : OBK_RQA_SEMI], line.open, 1);
	return points;
}
#endif

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)
#define TEXT2(a)    #a
#define TEXT(a)     TEXT2(a)

const struct obk_rqa_ops JOIN(obk_rqa_ops_, OBK_ISA) = {
	.name = TEXT(OBK_ISA),
	.lanes_f32 = VECTORS * BYTES / 4,
	.lanes_f64 = VECTORS * BYTES / 8,
	.strip = strip,
	.walk_lines = walk_lines,
#if BYTES >= 32
	.sieve_walk = sieve_walk,
	.sieve_strip = sieve_strip,
	.sieve_columns = sieve_columns,
#endif
	.diagonal = diagonal,
	.column = column,
	.runs = runs,
	.gaps = gaps,
	.join = join,
	.column_distance = column_distance,
	.column_step = column_step,
	.levels = levels,
	.compare = compare,
};
