/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Distances in 16-bit numbers, 64 diagonals at once; included by lanes.c where vectors have 32 bytes or more. A cell whose coarse distance is surely within or
 * surely beyond the limit is decided by it; the few between are computed exactly, so the bits are those of the exact walk. The same speed for float and double.
 */
#define PARTS (128 / BYTES)   /* vectors of 64 numbers of 16 bits */
#define PACKS (64 / BYTES)    /* vectors of 64 bytes */
#define COARSE_PART 8u        /* positions after which open cells are looked for */
#define COARSE_LAGS 4u        /* lags whose place is held in a register */
#define COARSE_CHANNELS 64u   /* OBK_RQA_MAX_CHANNELS */

#if BYTES == 64
typedef __m512i coarse;
#define COARSE(name) _mm512_##name
#define COARSE_LOAD(at) _mm512_loadu_si512(at)
#define COARSE_STORE(at, v) _mm512_storeu_si512(at, v)
#else
typedef __m256i coarse;
#define COARSE(name) _mm256_##name
#define COARSE_LOAD(at) _mm256_loadu_si256((const __m256i *)(const void *)(at))
#define COARSE_STORE(at, v) _mm256_storeu_si256((__m256i *)(void *)(at), v)
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

/* The sign bits of 64 bytes: a row. Its own bytes come in the order in which vectors of 16-bit numbers are packed. */
static ALWAYS uint64_t coarse_signs(const coarse *bytes)
{
#if BYTES == 64
	return _mm512_movepi8_mask(bytes[0]);
#else
	return (uint64_t)(uint32_t)_mm256_movemask_epi8(bytes[0]) | (uint64_t)(uint32_t)_mm256_movemask_epi8(bytes[1]) << 32;
#endif
}

/* Which of 64 bytes are at most `last`, in the same order. */
static ALWAYS uint64_t coarse_at_most(const coarse *bytes, coarse last)
{
#if BYTES == 64
	return _mm512_cmple_epu8_mask(bytes[0], last);
#else
	coarse t[2] = { _mm256_cmpeq_epi8(_mm256_min_epu8(last, bytes[0]), bytes[0]), _mm256_cmpeq_epi8(_mm256_min_epu8(last, bytes[1]), bytes[1]) };

	return coarse_signs(t);
#endif
}

/* The place in a packed row of lane 8 * i, divided by 8. */
#if BYTES == 64
#define COARSE_BYTES 0, 2, 4, 6, 1, 3, 5, 7
#else
#define COARSE_BYTES 0, 2, 1, 3, 4, 6, 5, 7
#endif

/* Rows in their true order; count is a multiple of 4. */
static ALWAYS void coarse_order(uint64_t *rows, uint64_t count)
{
	const __m256i order = _mm256_add_epi8(_mm256_broadcastsi128_si256(_mm_setr_epi8(COARSE_BYTES, COARSE_BYTES)),
					      _mm256_setr_epi64x(0, 0x0808080808080808, 0, 0x0808080808080808));

	for (uint64_t p = 0; p < count; p += 4) {
		__m256i *at = (__m256i *)(void *)(rows + p);

		_mm256_storeu_si256(at, _mm256_shuffle_epi8(_mm256_loadu_si256(at), order));
	}
}

/* The lane of a bit of a packed row. */
static ALWAYS unsigned coarse_lane(unsigned bit)
{
	static const uint8_t bytes[8] = { COARSE_BYTES };
	unsigned lane = 0;

	while (bytes[lane] != bit / 8)
		lane++;
	return 8 * lane + (bit & 7);
}

static bool cell_exact(const struct obk_rqa_plot *plot, uint64_t i, uint64_t j)
{
	return plot->f64 ? cell_f64(plot, i, j) : cell_f32(plot, i, j);
}

/* Decides the cells of a part that its coarse distances, as packed, leave open; returns how many there were. */
static __attribute__((noinline)) uint64_t coarse_settle(const struct obk_rqa_sieve *sieve, const coarse *packed, bool turned, int64_t k, int64_t at,
							uint64_t *rows)
{
	const struct obk_rqa_plot *plot = sieve->plot;
	int64_t ones = (int64_t)(turned ? plot->y.n : plot->x.n), manys = (int64_t)(turned ? plot->x.n : plot->y.n);
	coarse last = COARSE(set1_epi8)((char)sieve->last);
	uint64_t open = 0;

	for (int64_t p = at; p < at + COARSE_PART && p < ones; p++, packed += PACKS) {
		uint64_t bits = coarse_at_most(packed, last);

		open += (uint64_t)__builtin_popcountll(bits);
		for (; bits; bits &= bits - 1) {
			unsigned bit = (unsigned)__builtin_ctzll(bits);
			int64_t q = p + k + coarse_lane(bit);

			if (q >= 0 && q < manys && cell_exact(plot, (uint64_t)(turned ? q : p), (uint64_t)(turned ? p : q)))
				rows[p - at] |= (uint64_t)1 << bit;
		}
	}
	return open;
}

/*
 * Rows of the positions base + size - 1 down to base: bit l of rows[at] is the cell (base + at, base + at + k + l). size is a multiple of 32; the window holds
 * the differences of what follows.
 */
static ALWAYS uint64_t coarse_block(const struct obk_rqa_sieve *sieve, coarse *ring, uint64_t ring_stride, bool turned, int64_t k, int64_t base, uint64_t size,
				    uint64_t *rows, uint32_t channels, uint32_t m, int norm, unsigned shift)
{
	const coarse bound = COARSE(set1_epi16)(sieve->bound), last = COARSE(set1_epi8)((char)sieve->last);
	const int16_t *one[COARSE_CHANNELS], *many[COARSE_CHANNELS];
	const uint64_t lagged = sieve->plot->tau * PARTS;
	uint64_t open = 0;

	/* Copies that no store can reach. */
	for (uint32_t c = 0; c < channels; c++) {
		one[c] = (turned ? sieve->y : sieve->x)[c] + base;
		many[c] = (turned ? sieve->x : sieve->y)[c] + base + k;
	}
	for (uint64_t part = size / COARSE_PART; part-- > 0;) {
		coarse low[PACKS], packed[COARSE_PART * PACKS];
		const coarse *lags[COARSE_LAGS];
		uint64_t at = COARSE_PART * part;

		/* Left to itself the compiler takes an index register for each vector, and every addition is two operations then. */
		for (uint32_t lag = 1; lag < COARSE_LAGS; lag++) {
			lags[lag] = ring + at * PARTS + lag * lagged;
			__asm__("" : "+r"(lags[lag]));
		}
		for (unsigned h = 0; h < PACKS; h++)
			low[h] = COARSE(set1_epi8)(-1);
#pragma GCC unroll 8
		for (unsigned step = COARSE_PART; step-- > 0;) {
			coarse t[PARTS], *window = ring + (at + step) * PARTS, *bytes = packed + step * PACKS, both[PACKS];

			for (unsigned h = 0; h < PARTS; h++)
				t[h] = bound;
			for (uint32_t c = 0; c < channels; c++) {
				const coarse x = COARSE(set1_epi16)(one[c][at + step]);

				for (unsigned h = 0; h < PARTS; h++) {
					coarse g = coarse_gap(x, many[c] + at + step + 64 / PARTS * h, norm, shift);

					t[h] = c ? coarse_join(t[h], g, norm) : g;
					window[c * ring_stride * PARTS + h] = g;
				}
			}
			for (uint32_t lag = 1; lag < m; lag++)
				for (uint32_t c = 0; c < channels; c++)
					for (unsigned h = 0; h < PARTS; h++)
						t[h] = coarse_join(t[h], lag < COARSE_LAGS && channels == 1 ? lags[lag][step * PARTS + h] :
										 window[c * ring_stride * PARTS + lag * lagged + h], norm);
			/* A byte keeps the sign, and whether it is open: differences further from 0 end at -128 and 127. */
			for (unsigned h = 0; h < PACKS; h++) {
				both[h] = COARSE(packs_epi16)(COARSE(sub_epi16)(t[2 * h], bound), COARSE(sub_epi16)(t[2 * h + 1], bound));
				low[h] = COARSE(min_epu8)(low[h], both[h]);
				COARSE_STORE(bytes + h, both[h]);
			}
			rows[at + step] = coarse_signs(both);
		}
		if (__builtin_expect(coarse_at_most(low, last) != 0, 0))
			open += coarse_settle(sieve, packed, turned, k, base + (int64_t)at, rows + at);
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
			for (unsigned h = 0; h < PARTS; h++) {
				const int16_t *y = many[c] + base + q + k + 64 / PARTS * h;
				coarse x = COARSE(set1_epi16)(one[c][base + q]);

				ring[(c * ring_stride + (uint64_t)q) * PARTS + h] = coarse_gap(x, y, plot->norm, sieve->shift);
			}
}

#define COARSE_CASE(c, m, norm, shift) \
	return coarse_block(sieve, ring, ring_stride, turned, k, base, size, rows, c, m, norm, shift)

static uint64_t coarse_any(const struct obk_rqa_sieve *sieve, coarse *ring, uint64_t ring_stride, bool turned, int64_t k, int64_t base, uint64_t size,
			   uint64_t *rows)
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

/* The window of a walk moves on, to where `size` positions are to come. */
static void coarse_move(const struct obk_rqa_sieve *sieve, coarse *ring, uint64_t ring_stride, uint64_t size)
{
	uint64_t span = (sieve->plot->m - 1) * sieve->plot->tau;

	for (uint32_t c = 0; c < sieve->plot->channels; c++)
		memmove(ring + (c * ring_stride + size) * PARTS, ring + c * ring_stride * PARTS, span * PARTS * sizeof(coarse));
}

static uint64_t sieve_walk(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *scratch, struct obk_rqa_walk *walk)
{
	uint64_t words = (walk->cells + 63) / 64, ring_stride = OBK_RQA_SIEVE_STRIP + (sieve->plot->m - 1) * sieve->plot->tau, open = 0;
	uint64_t size = words * 64 < OBK_RQA_SIEVE_STRIP ? words * 64 : OBK_RQA_SIEVE_STRIP, base = words * 64 - size;
	uint64_t rows[OBK_RQA_SIEVE_STRIP + 1] = { 0 };
	coarse *ring = scratch->ring;

	walk_begin(walk);
	coarse_begin(sieve, ring, ring_stride, false, (int64_t)walk->k, (int64_t)base, size);
	for (;;) {
		open += coarse_any(sieve, ring, ring_stride, false, (int64_t)walk->k, (int64_t)base, size, rows);
		coarse_order(rows, size);
		for (uint64_t at = size; at; at -= 64)
			walk_take(walk, rows + at - 64, base + at - 64);
		if (!base)
			break;
		size = base < OBK_RQA_SIEVE_STRIP ? base : OBK_RQA_SIEVE_STRIP;
		base -= size;
		rows[size] = rows[0];
		coarse_move(sieve, ring, ring_stride, size);
	}
	walk_end(walk, rows[0]);
	return open;
}

static uint64_t sieve_strip(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *scratch, uint64_t k, uint64_t cells, uint64_t *ret, uint64_t stride)
{
	uint64_t words = (cells + 63) / 64, ring_stride = OBK_RQA_SIEVE_STRIP + (sieve->plot->m - 1) * sieve->plot->tau, open = 0;
	uint64_t size = words * 64 < OBK_RQA_SIEVE_STRIP ? words * 64 : OBK_RQA_SIEVE_STRIP, base = words * 64 - size;
	uint64_t rows[OBK_RQA_SIEVE_STRIP];
	coarse *ring = scratch->ring;

	coarse_begin(sieve, ring, ring_stride, false, (int64_t)k, (int64_t)base, size);
	for (;;) {
		open += coarse_any(sieve, ring, ring_stride, false, (int64_t)k, (int64_t)base, size, rows);
		coarse_order(rows, size);
		for (uint64_t at = 0; at < size; at += 64) {
			bits_turn(rows + at);
			for (unsigned lane = 0; lane < 64; lane++)
				ret[lane * stride + (base + at) / 64] = rows[at + lane];
		}
		if (!base)
			break;
		size = base < OBK_RQA_SIEVE_STRIP ? base : OBK_RQA_SIEVE_STRIP;
		base -= size;
		coarse_move(sieve, ring, ring_stride, size);
	}
	for (unsigned lane = 0; lane < 64 && lane < cells; lane++) {
		uint64_t own = cells - lane;

		if (own & 63)
			ret[lane * stride + own / 64] &= ((uint64_t)1 << (own & 63)) - 1;
	}
	return open;
}

static uint64_t sieve_columns(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *scratch, int64_t k, uint64_t first, uint64_t count, uint64_t *ret,
			      uint64_t stride)
{
	uint64_t ring_stride = OBK_RQA_SIEVE_STRIP + (sieve->plot->m - 1) * sieve->plot->tau, open;
	uint64_t rows[OBK_RQA_SIEVE_STRIP];

	coarse_begin(sieve, scratch->ring, ring_stride, true, k, (int64_t)first, count);
	open = coarse_any(sieve, scratch->ring, ring_stride, true, k, (int64_t)first, count, rows);
	coarse_order(rows, count);
	for (uint64_t p = 0; p < count; p++)
		ret[p * stride] = rows[p];
	return open;
}
