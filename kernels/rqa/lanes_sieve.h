/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Distances in 16-bit numbers, 32 diagonals at once; included by lanes.c where vectors have 32 bytes or more. A cell whose coarse distance is surely within or
 * surely beyond the limit is decided by it; the few between are computed exactly, so the bits are those of the exact walk. The same speed for float and double.
 */
#define HALVES (64 / BYTES)   /* vectors of 32 numbers of 16 bits */
#define COARSE_PART 8u        /* positions after which open cells are looked for */
#define COARSE_CHANNELS 64u   /* OBK_RQA_MAX_CHANNELS */

#if BYTES == 64
typedef __m512i coarse;
#define COARSE(name) _mm512_##name
#define COARSE_LOAD(at) _mm512_loadu_si512(at)
#else
typedef __m256i coarse;
#define COARSE(name) _mm256_##name
#define COARSE_LOAD(at) _mm256_loadu_si256((const __m256i *)(const void *)(at))
#endif

static ALWAYS coarse coarse_gap(coarse x, const int16_t *y, int norm, unsigned shift)
{
	coarse d = COARSE(subs_epi16)(x, COARSE_LOAD(y));

	if (norm != OBK_RQA_NORM_L2)
		return COARSE(abs_epi16)(d);
	for (unsigned s = 0; s < shift; s++)
		d = COARSE(adds_epi16)(d, d);
	return COARSE(mulhi_epi16)(d, d);
}

static ALWAYS coarse coarse_join(coarse a, coarse b, int norm)
{
	return norm == OBK_RQA_NORM_MAX ? COARSE(max_epi16)(a, b) : COARSE(adds_epi16)(a, b);
}

/* The sign bits of 32 numbers: a row. Two vectors leave its second and third byte exchanged. */
static ALWAYS uint32_t coarse_signs(const coarse *t)
{
#if BYTES == 64
	return _mm512_movepi16_mask(t[0]);
#else
	return (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(t[0], t[1]));
#endif
}

static ALWAYS bool coarse_any_below(coarse low, coarse last)
{
#if BYTES == 64
	return _mm512_cmple_epu16_mask(low, last) != 0;
#else
	return _mm256_movemask_epi8(_mm256_cmpeq_epi16(_mm256_min_epu16(low, last), low)) != 0;
#endif
}

/* The lane of bit `bit` of a row, and back. */
static ALWAYS unsigned coarse_lane(unsigned bit)
{
	return BYTES == 64 ? bit : (bit & 7) | (bit & 8) << 1 | (bit & 16) >> 1;
}

static bool cell_exact(const struct obk_rqa_plot *plot, uint64_t i, uint64_t j)
{
	return plot->f64 ? cell_f64(plot, i, j) : cell_f32(plot, i, j);
}

/* Decides the cells of a part that the coarse distance leaves open; returns how many there were. window: the differences of its first position. */
static __attribute__((noinline)) uint64_t coarse_settle(const struct obk_rqa_sieve *sieve, const coarse *window, uint64_t ring_stride, bool turned, int64_t k,
							int64_t at, uint32_t *rows)
{
	const struct obk_rqa_plot *plot = sieve->plot;
	const uint32_t channels = plot->channels, m = plot->m;
	const uint64_t lagged = plot->tau * HALVES;
	int64_t ones = (int64_t)(turned ? plot->y.n : plot->x.n), manys = (int64_t)(turned ? plot->x.n : plot->y.n);
	coarse bound = COARSE(set1_epi16)(sieve->bound), last = COARSE(set1_epi16)(sieve->last);
	uint64_t open = 0;

	for (int64_t p = at; p < at + COARSE_PART && p < ones; p++, window += HALVES) {
		coarse t[HALVES];
		uint32_t bits;

		for (unsigned h = 0; h < HALVES; h++) {
			coarse sum = window[h];

			for (uint32_t lag = 0; lag < m; lag++)
				for (uint32_t c = lag == 0; c < channels; c++)
					sum = coarse_join(sum, window[c * ring_stride * HALVES + lag * lagged + h], plot->norm);
			t[h] = COARSE(sub_epi16)(sum, bound);
#if BYTES == 64
			t[h] = _mm512_movm_epi16(_mm512_cmple_epu16_mask(t[h], last));
#else
			t[h] = _mm256_cmpeq_epi16(_mm256_min_epu16(t[h], last), t[h]);
#endif
		}
		bits = coarse_signs(t);
		open += (uint64_t)__builtin_popcount(bits);
		for (; bits; bits &= bits - 1) {
			unsigned bit = (unsigned)__builtin_ctz(bits);
			int64_t q = p + k + coarse_lane(bit);

			if (q >= 0 && q < manys && cell_exact(plot, (uint64_t)(turned ? q : p), (uint64_t)(turned ? p : q)))
				rows[p - at] |= (uint32_t)1 << bit;
		}
	}
	return open;
}

/*
 * Rows of the positions base + size - 1 down to base: bit l of rows[at] is the cell (base + at, base + at + k + l). size is a multiple of 32; the window holds
 * the differences of what follows.
 */
static ALWAYS uint64_t coarse_block(const struct obk_rqa_sieve *sieve, coarse *ring, uint64_t ring_stride, bool turned, int64_t k, int64_t base, uint64_t size,
				    uint32_t *rows, uint32_t channels, uint32_t m, int norm, unsigned shift)
{
	const coarse bound = COARSE(set1_epi16)(sieve->bound), last = COARSE(set1_epi16)(sieve->last);
	const int16_t *one[COARSE_CHANNELS], *many[COARSE_CHANNELS];
	const uint64_t lagged = sieve->plot->tau * HALVES;
	uint64_t open = 0;

	/* Copies that no store can reach. */
	for (uint32_t c = 0; c < channels; c++) {
		one[c] = (turned ? sieve->y : sieve->x)[c] + base;
		many[c] = (turned ? sieve->x : sieve->y)[c] + base + k;
	}
	for (uint64_t part = size / COARSE_PART; part-- > 0;) {
		coarse low = COARSE(set1_epi16)(-1);
		uint64_t at = COARSE_PART * part;

#pragma GCC unroll 8
		for (unsigned step = COARSE_PART; step-- > 0;) {
			coarse t[HALVES], *window = ring + (at + step) * HALVES;

			for (unsigned h = 0; h < HALVES; h++)
				t[h] = bound;
			for (uint32_t c = 0; c < channels; c++) {
				const coarse x = COARSE(set1_epi16)(one[c][at + step]);

				for (unsigned h = 0; h < HALVES; h++) {
					coarse g = coarse_gap(x, many[c] + at + step + 32 / HALVES * h, norm, shift);

					t[h] = c ? coarse_join(t[h], g, norm) : g;
					window[c * ring_stride * HALVES + h] = g;
				}
			}
			for (uint32_t lag = 1; lag < m; lag++)
				for (uint32_t c = 0; c < channels; c++)
					for (unsigned h = 0; h < HALVES; h++)
						t[h] = coarse_join(t[h], window[c * ring_stride * HALVES + lag * lagged + h], norm);
			for (unsigned h = 0; h < HALVES; h++) {
				t[h] = COARSE(sub_epi16)(t[h], bound);
				low = COARSE(min_epu16)(low, t[h]);
			}
			rows[at + step] = coarse_signs(t);
		}
		if (__builtin_expect(coarse_any_below(low, last), 0))
			open += coarse_settle(sieve, ring + at * HALVES, ring_stride, turned, k, base + (int64_t)at, rows + at);
	}
	return open;
}

/* The differences behind the last position of a walk. */
static ALWAYS void coarse_begin(const struct obk_rqa_sieve *sieve, coarse *ring, uint64_t ring_stride, bool turned, int64_t k, int64_t base, uint64_t size)
{
	const struct obk_rqa_plot *plot = sieve->plot;
	int16_t *const *one = turned ? sieve->y : sieve->x, *const *many = turned ? sieve->x : sieve->y;
	uint64_t span = (plot->m - 1) * plot->tau;

	for (uint32_t c = 0; c < plot->channels; c++)
		for (int64_t q = (int64_t)size; q < (int64_t)(size + span); q++)
			for (unsigned h = 0; h < HALVES; h++) {
				const int16_t *y = many[c] + base + q + k + 32 / HALVES * h;
				coarse x = COARSE(set1_epi16)(one[c][base + q]);

				ring[(c * ring_stride + (uint64_t)q) * HALVES + h] = coarse_gap(x, y, plot->norm, sieve->shift);
			}
}

#define COARSE_CASE(c, m, norm, shift) \
	return coarse_block(sieve, ring, ring_stride, turned, k, base, size, rows, c, m, norm, shift)

static uint64_t coarse_any(const struct obk_rqa_sieve *sieve, coarse *ring, uint64_t ring_stride, bool turned, int64_t k, int64_t base, uint64_t size,
			   uint32_t *rows)
{
	const struct obk_rqa_plot *plot = sieve->plot;

	if (plot->norm == OBK_RQA_NORM_L2 && !sieve->shift) {
		if (plot->channels == 1 && plot->m == 1)
			COARSE_CASE(1, 1, OBK_RQA_NORM_L2, 0);
		if (plot->channels == 1 && plot->m == 2)
			COARSE_CASE(1, 2, OBK_RQA_NORM_L2, 0);
		if (plot->channels == 1 && plot->m == 3)
			COARSE_CASE(1, 3, OBK_RQA_NORM_L2, 0);
		if (plot->channels == 1)
			COARSE_CASE(1, plot->m, OBK_RQA_NORM_L2, 0);
	}
	if (plot->norm == OBK_RQA_NORM_L2 && sieve->shift == 3)
		COARSE_CASE(plot->channels, plot->m, OBK_RQA_NORM_L2, 3);
	if (plot->norm == OBK_RQA_NORM_L2)
		COARSE_CASE(plot->channels, plot->m, OBK_RQA_NORM_L2, sieve->shift);
	if (plot->norm == OBK_RQA_NORM_L1)
		COARSE_CASE(plot->channels, plot->m, OBK_RQA_NORM_L1, 0);
	COARSE_CASE(plot->channels, plot->m, OBK_RQA_NORM_MAX, 0);
}

/* A row in its true order. */
static ALWAYS uint32_t coarse_row(uint32_t row)
{
	return BYTES == 64 ? row : (row & 0xff0000ffu) | (row >> 8 & 0xff00u) | (row << 8 & 0xff0000u);
}

/* Lane l of 32 rows becomes 32 bits of lane l, written at the word `at` (of 32 bits) of its line. */
static void coarse_turn(const uint32_t *rows, uint64_t *ret_words, uint64_t stride, uint64_t at)
{
	const __m256i gather = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i v[4], t[4], all;

	for (unsigned i = 0; i < 4; i++)
		v[i] = _mm256_loadu_si256((const __m256i *)(const void *)(rows + 8 * i));
	all = _mm256_or_si256(_mm256_or_si256(v[0], v[1]), _mm256_or_si256(v[2], v[3]));
	if (_mm256_testz_si256(all, all))
		return;
	for (unsigned i = 0; i < 4; i++)
		v[i] = _mm256_shuffle_epi8(v[i], gather);
	t[0] = _mm256_unpacklo_epi32(v[0], v[1]);
	t[1] = _mm256_unpackhi_epi32(v[0], v[1]);
	t[2] = _mm256_unpacklo_epi32(v[2], v[3]);
	t[3] = _mm256_unpackhi_epi32(v[2], v[3]);
	v[0] = _mm256_unpacklo_epi64(t[0], t[2]);
	v[1] = _mm256_unpackhi_epi64(t[0], t[2]);
	v[2] = _mm256_unpacklo_epi64(t[1], t[3]);
	v[3] = _mm256_unpackhi_epi64(t[1], t[3]);
	for (unsigned b = 0; b < 4; b++) {
		__m256i byte = _mm256_permutevar8x32_epi32(v[b], order);

		for (unsigned bit = 8; bit-- > 0;) {
			uint32_t line = (uint32_t)_mm256_movemask_epi8(byte);

			memcpy((char *)(ret_words + coarse_lane(8 * b + bit) * stride) + 4 * at, &line, sizeof line);
			byte = _mm256_add_epi8(byte, byte);
		}
	}
}

static uint64_t sieve_strip(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *scratch, uint64_t k, uint64_t cells, uint64_t *ret, uint64_t stride)
{
	const struct obk_rqa_plot *plot = sieve->plot;
	uint64_t span = (plot->m - 1) * plot->tau, words = (cells + 63) / 64, ring_stride = OBK_RQA_SIEVE_STRIP + span, open = 0;
	uint64_t size = words * 64 < OBK_RQA_SIEVE_STRIP ? words * 64 : OBK_RQA_SIEVE_STRIP, base = words * 64 - size;
	uint32_t rows[OBK_RQA_SIEVE_STRIP];
	coarse *ring = scratch->ring;

	for (unsigned lane = 0; lane < 32; lane++)
		memset(ret + lane * stride, 0, words * 8);
	coarse_begin(sieve, ring, ring_stride, false, (int64_t)k, (int64_t)base, size);
	for (;;) {
		open += coarse_any(sieve, ring, ring_stride, false, (int64_t)k, (int64_t)base, size, rows);
		for (uint64_t group = size / 32; group-- > 0;) /* the rows written first are the first to be readable at once */
			coarse_turn(rows + 32 * group, ret, stride, base / 32 + group);
		if (!base)
			break;
		size = base < OBK_RQA_SIEVE_STRIP ? base : OBK_RQA_SIEVE_STRIP;
		base -= size;
		for (uint32_t c = 0; c < plot->channels; c++)
			memmove(ring + (c * ring_stride + size) * HALVES, ring + c * ring_stride * HALVES, span * HALVES * sizeof(coarse));
	}
	for (unsigned lane = 0; lane < 32 && lane < cells; lane++) {
		uint64_t own = cells - lane;

		if (own & 63)
			ret[lane * stride + own / 64] &= ((uint64_t)1 << (own & 63)) - 1;
	}
	return open;
}

static uint64_t sieve_columns(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *scratch, int64_t k, uint64_t first, uint64_t count, uint32_t *ret,
			      uint64_t stride)
{
	uint64_t ring_stride = OBK_RQA_SIEVE_STRIP + (sieve->plot->m - 1) * sieve->plot->tau, open;
	uint32_t rows[OBK_RQA_SIEVE_STRIP];

	coarse_begin(sieve, scratch->ring, ring_stride, true, k, (int64_t)first, count);
	open = coarse_any(sieve, scratch->ring, ring_stride, true, k, (int64_t)first, count, rows);
	for (uint64_t p = 0; p < count; p++)
		ret[p * stride] = coarse_row(rows[p]);
	return open;
}
