/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Distances in 16-bit numbers for 64 diagonals at once. lanes.c includes this file if vectors have
 * 32 bytes or more. A coarse distance that is certainly within or certainly beyond the limit
 * decides its cell. The few cells between are computed exactly, so the bits are those of the exact
 * walk. The speed is the same for float and double.
 */
#define PARTS           (128 / BYTES) /* vectors of 64 numbers of 16 bits */
#define PACKS           (64 / BYTES)  /* vectors of 64 bytes */
#define COARSE_PART     8u            /* positions after which undecided cells are looked for */
#define COARSE_LAGS     4u            /* lags whose position is held in a register */
#define COARSE_CHANNELS 64u           /* OBK_RQA_MAX_CHANNELS */

#if BYTES == 64
typedef __m512i coarse;
#define COARSE(name)        _mm512_##name
#define COARSE_LOAD(at)     _mm512_loadu_si512(at)
#define COARSE_STORE(at, v) _mm512_storeu_si512(at, v)
#else
typedef __m256i coarse;
#define COARSE(name)        _mm256_##name
#define COARSE_LOAD(at)     _mm256_loadu_si256((const __m256i *)(const void *)(at))
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

/*
 * Differences and their sums are unsigned. The sum of three squares cannot overflow, because each
 * is at most 16384; saturating additions, which fewer units of a processor execute, are needed only
 * for later terms.
 */
static ALWAYS coarse coarse_join(coarse a, coarse b, int norm, uint32_t before)
{
	if (norm == OBK_RQA_NORM_MAX)
		return COARSE(max_epu16)(a, b);
	return norm == OBK_RQA_NORM_L2 && before < 3 ? COARSE(add_epi16)(a, b)
						     : COARSE(adds_epu16)(a, b);
}

/*
 * 64 distances as bytes: the difference from the distance to `bound`. 128 or more: the cell is
 * certainly recurrent; 127 - sieve->last to 127: it is undecided. Bytes are in the order in which
 * the instructions pack vectors of 16-bit numbers.
 */
static ALWAYS void coarse_bytes(const coarse *t, coarse bound, coarse *bytes)
{
	for (unsigned h = 0; h < PACKS; h++)
		bytes[h] = COARSE(packus_epi16)(COARSE(subs_epu16)(bound, t[2 * h]),
			COARSE(subs_epu16)(bound, t[2 * h + 1]));
}

/* The top bits of 64 bytes: a row, in the same order. */
static ALWAYS void coarse_row(const coarse *bytes, uint64_t *row)
{
#if BYTES == 64
	*row = _mm512_movepi8_mask(bytes[0]);
#else
	int low = _mm256_movemask_epi8(bytes[0]), high = _mm256_movemask_epi8(bytes[1]);

	memcpy(row, &low, 4);
	memcpy((char *)row + 4, &high, 4);
#endif
}

/* Which of 64 bytes, as signed numbers, exceed `least`: the undecided cells. */
static ALWAYS uint64_t coarse_open(const coarse *bytes, coarse least)
{
#if BYTES == 64
	return _mm512_cmpgt_epi8_mask(bytes[0], least);
#else
	coarse t[2] = { _mm256_cmpgt_epi8(bytes[0], least), _mm256_cmpgt_epi8(bytes[1], least) };
	uint64_t row;

	coarse_row(t, &row);
	return row;
#endif
}

/*
 * COARSE_BYTES: the position in a packed row of SIMD lane 8 * i, divided by 8. COARSE_PLACES: the
 * inverse, as a shuffle of 8 bytes.
 */
#if BYTES == 64
#define COARSE_BYTES  0, 2, 4, 6, 1, 3, 5, 7
#define COARSE_PLACES 0x0703060205010400
#else
#define COARSE_BYTES  0, 2, 1, 3, 4, 6, 5, 7
#define COARSE_PLACES 0x0705060403010200
#endif

/* Puts the bits of rows in natural order; count is a multiple of 4. */
static ALWAYS void coarse_order(uint64_t *rows, uint64_t count)
{
	const __m256i order = _mm256_add_epi8(
		_mm256_broadcastsi128_si256(_mm_setr_epi8(COARSE_BYTES, COARSE_BYTES)),
		_mm256_setr_epi64x(0, 0x0808080808080808, 0, 0x0808080808080808));

	for (uint64_t p = 0; p < count; p += 4) {
		__m256i *at = (__m256i *)(void *)(rows + p);

		_mm256_storeu_si256(at, _mm256_shuffle_epi8(_mm256_loadu_si256(at), order));
	}
}

/* The SIMD lane of a bit in a packed row. */
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

/* The positions of a part that are undecided in one SIMD lane. */
static ALWAYS unsigned coarse_undecided(
	const struct obk_rqa_sieve *sieve, const uint16_t *gaps, uint64_t ring_stride)
{
	const struct obk_rqa_plot *plot = sieve->plot;
	uint32_t t[COARSE_PART] = { 0 };
	unsigned open = 0;

	for (uint32_t c = 0; c < plot->channels; c++)
		for (uint32_t lag = 0; lag < plot->m; lag++) {
			const uint16_t *from = gaps + (c * ring_stride + lag * plot->tau) * 64;

#pragma GCC unroll 8
			for (unsigned step = 0; step < COARSE_PART; step++) {
				uint32_t g = from[step * 64];

				t[step] = plot->norm != OBK_RQA_NORM_MAX ? t[step] + g
					: t[step] > g                    ? t[step]
									 : g;
			}
		}
#pragma GCC unroll 8
	for (unsigned step = 0; step < COARSE_PART; step++)
		open |= (unsigned)((uint32_t)sieve->bound - t[step] + (uint32_t)sieve->last - 127 <=
				(uint32_t)sieve->last)
			<< step;
	return open;
}

/*
 * Decides the undecided cells of a part, all of them in the SIMD lanes of these bits; returns their
 * number. gaps: the differences of the part's first position, 64 per position.
 */
static __attribute__((noinline)) uint64_t coarse_settle(const struct obk_rqa_sieve *sieve,
	uint64_t bits, const void *gaps, uint64_t ring_stride, bool turned, int64_t k, int64_t at,
	uint64_t *rows)
{
	const struct obk_rqa_plot *plot = sieve->plot;
	int64_t ones = (int64_t)(turned ? plot->y.n : plot->x.n),
		manys = (int64_t)(turned ? plot->x.n : plot->y.n);
	uint64_t open = 0;

	for (; bits; bits &= bits - 1) {
		unsigned bit = (unsigned)__builtin_ctzll(bits), lane = coarse_lane(bit);

		for (unsigned steps =
				coarse_undecided(sieve, (const uint16_t *)gaps + lane, ring_stride);
			steps; steps &= steps - 1) {
			unsigned step = (unsigned)__builtin_ctz(steps);
			int64_t p = at + step, q = p + k + lane;

			open++;
			if (p < ones && q >= 0 && q < manys &&
				cell_exact(plot, (uint64_t)(turned ? q : p),
					(uint64_t)(turned ? p : q)))
				rows[step] |= (uint64_t)1 << bit;
		}
	}
	return open;
}

/*
 * Rows of the positions base + size - 1 down to base: bit l of rows[at] is the cell (base + at,
 * base + at + k + l). size is a multiple of 32. The window holds the differences of the positions
 * behind.
 */
static ALWAYS uint64_t coarse_block(const struct obk_rqa_sieve *sieve, coarse *ring,
	uint64_t ring_stride, bool turned, int64_t k, int64_t base, uint64_t size, uint64_t *rows,
	uint32_t channels, uint32_t m, int norm, unsigned shift)
{
	const coarse bound = COARSE(set1_epi16)(sieve->bound),
		     least = COARSE(set1_epi8)((char)(126 - sieve->last));
	const int16_t *one[COARSE_CHANNELS], *many[COARSE_CHANNELS];
	const uint64_t lagged = sieve->plot->tau * PARTS;
	uint64_t open = 0;

	/* Local copies, so that the compiler knows that no store changes them. */
	for (uint32_t c = 0; c < channels; c++) {
		one[c] = (turned ? sieve->y : sieve->x)[c] + base;
		many[c] = (turned ? sieve->x : sieve->y)[c] + base + k;
	}
	for (uint64_t part = size / COARSE_PART; part-- > 0;) {
		coarse most[PACKS];
		const coarse *lags[COARSE_LAGS];
		uint64_t at = COARSE_PART * part, undecided;

		/*
		 * Without this the compiler uses one index register per vector, and every addition
		 * becomes two operations.
		 */
		for (uint32_t lag = 1; lag < COARSE_LAGS && lag < m; lag++) {
			lags[lag] = ring + at * PARTS + lag * lagged;
			__asm__("" : "+r"(lags[lag]));
		}
		for (unsigned h = 0; h < PACKS; h++)
			most[h] = COARSE(set1_epi8)(-128);
#pragma GCC unroll 8
		for (unsigned step = COARSE_PART; step-- > 0;) {
			coarse t[PARTS] = { 0 }, *window = ring + (at + step) * PARTS, bytes[PACKS];

			for (uint32_t c = 0; c < channels; c++) {
				const coarse x = COARSE(set1_epi16)(one[c][at + step]);

				for (unsigned h = 0; h < PARTS; h++) {
					coarse g = coarse_gap(x,
						many[c] + at + step + 64 / PARTS * h, norm, shift);

					t[h] = c ? coarse_join(t[h], g, norm, c) : g;
					window[c * ring_stride * PARTS + h] = g;
				}
			}
			for (uint32_t lag = 1; lag < m; lag++)
				for (uint32_t c = 0; c < channels; c++)
					for (unsigned h = 0; h < PARTS; h++)
						t[h] = coarse_join(t[h],
							lag < COARSE_LAGS && channels == 1
								? lags[lag][step * PARTS + h]
								: window[c * ring_stride * PARTS +
									  lag * lagged + h],
							norm, lag * channels + c);
			coarse_bytes(t, bound, bytes);
			for (unsigned h = 0; h < PACKS; h++)
				most[h] = COARSE(max_epi8)(most[h], bytes[h]);
			coarse_row(bytes, &rows[at + step]);
		}
		undecided = coarse_open(most, least);
		if (__builtin_expect(undecided != 0, 0))
			open += coarse_settle(sieve, undecided, ring + at * PARTS, ring_stride,
				turned, k, base + (int64_t)at, rows + at);
	}
	return open;
}

/* Computes the differences behind the last position of a walk. */
static ALWAYS void coarse_begin(const struct obk_rqa_sieve *sieve, coarse *ring,
	uint64_t ring_stride, bool turned, int64_t k, int64_t base, uint64_t size)
{
	const struct obk_rqa_plot *plot = sieve->plot;
	int16_t *const *one = turned ? sieve->y : sieve->x,
		       *const *many = turned ? sieve->x : sieve->y;
	uint64_t span = (plot->m - 1) * plot->tau;

	for (uint32_t c = 0; c < plot->channels; c++)
		for (int64_t q = (int64_t)size; q < (int64_t)(size + span); q++)
			for (unsigned h = 0; h < PARTS; h++) {
				const int16_t *y = many[c] + base + q + k + 64 / PARTS * h;
				coarse x = COARSE(set1_epi16)(one[c][base + q]);

				ring[(c * ring_stride + (uint64_t)q) * PARTS + h] =
					coarse_gap(x, y, plot->norm, sieve->shift);
			}
}

#define COARSE_CASE(c, m, norm, shift) \
	return coarse_block(           \
		sieve, ring, ring_stride, turned, k, base, size, rows, c, m, norm, shift)

static uint64_t coarse_any(const struct obk_rqa_sieve *sieve, coarse *ring, uint64_t ring_stride,
	bool turned, int64_t k, int64_t base, uint64_t size, uint64_t *rows)
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

/* Moves the window of a walk to make room for `size` positions. */
static void coarse_move(
	const struct obk_rqa_sieve *sieve, coarse *ring, uint64_t ring_stride, uint64_t size)
{
	uint64_t span = (sieve->plot->m - 1) * sieve->plot->tau;

	for (uint32_t c = 0; c < sieve->plot->channels; c++)
		memmove(ring + (c * ring_stride + size) * PARTS, ring + c * ring_stride * PARTS,
			span * PARTS * sizeof(coarse));
}

static uint64_t sieve_walk(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *scratch,
	struct obk_rqa_walk *walk)
{
	uint64_t words = (walk->cells + 63) / 64,
		 ring_stride = OBK_RQA_SIEVE_STRIP + (sieve->plot->m - 1) * sieve->plot->tau,
		 open = 0;
	uint64_t size = words * 64 < OBK_RQA_SIEVE_STRIP ? words * 64 : OBK_RQA_SIEVE_STRIP,
		 base = words * 64 - size;
	uint64_t rows[OBK_RQA_SIEVE_STRIP + 1] = { 0 };
	coarse *ring = scratch->ring;

	/* The order of SIMD lanes does not matter for diagonals. */
	walk_begin(walk, walk->band ? WALK_PLACES : COARSE_PLACES);
	coarse_begin(sieve, ring, ring_stride, false, (int64_t)walk->k, (int64_t)base, size);
	for (;;) {
		open += coarse_any(sieve, ring, ring_stride, false, (int64_t)walk->k, (int64_t)base,
			size, rows);
		if (walk->band)
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

static uint64_t sieve_strip(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *scratch,
	uint64_t k, uint64_t cells, uint64_t *ret, uint64_t stride)
{
	uint64_t words = (cells + 63) / 64,
		 ring_stride = OBK_RQA_SIEVE_STRIP + (sieve->plot->m - 1) * sieve->plot->tau,
		 open = 0;
	uint64_t size = words * 64 < OBK_RQA_SIEVE_STRIP ? words * 64 : OBK_RQA_SIEVE_STRIP,
		 base = words * 64 - size;
	uint64_t rows[OBK_RQA_SIEVE_STRIP];
	coarse *ring = scratch->ring;

	coarse_begin(sieve, ring, ring_stride, false, (int64_t)k, (int64_t)base, size);
	for (;;) {
		open += coarse_any(
			sieve, ring, ring_stride, false, (int64_t)k, (int64_t)base, size, rows);
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

static uint64_t sieve_columns(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *scratch,
	int64_t k, uint64_t first, uint64_t count, uint64_t *ret, uint64_t stride)
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
