/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counts lines from rows; included by lanes.c. A row holds the cells of one position on 64
 * neighbouring diagonals. Rows are processed from the far end of a strip to its start:
 *
 *     bit l of rows[p]      the cell (p, p + k + l)
 *     along a diagonal      bit l of rows[p + 1], rows[p], rows[p - 1]
 *     along the row p       bits l, l + 1 of rows[p], then bit 0 of rows[p] in the next strip
 *     along a column        bit l of rows[p], bit l + 1 of rows[p - 1]
 *
 * If lines along rows and columns are not counted, the bits may be in another order. A cell that
 * differs from the one before it begins or ends a run. Most rows have no such cell and are skipped
 * four at a time. The cost of a run does not depend on its length. The row x and the column x of
 * one triangle are the parts of column x of the whole matrix above and below the line of identity,
 * so runs along both are all its vertical lines.
 */
#define DENSE_ROWS 32 /* of 64 busy rows: with so many, most have several edges */

static void bits_turn_step(uint64_t *a, unsigned width, uint64_t mask)
{
	for (unsigned block = 0; block < 64; block += 2 * width)
		for (unsigned i = block; i < block + width; i++) {
			uint64_t t = (a[i] >> width ^ a[i + width]) & mask;

			a[i] ^= t << width;
			a[i + width] ^= t;
		}
}

/* Swaps bit j of a[i] and bit i of a[j]. */
static void bits_turn(uint64_t *a)
{
	bits_turn_step(a, 32, 0x00000000ffffffff);
	bits_turn_step(a, 16, 0x0000ffff0000ffff);
	bits_turn_step(a, 8, 0x00ff00ff00ff00ff);
	bits_turn_step(a, 4, 0x0f0f0f0f0f0f0f0f);
	bits_turn_step(a, 2, 0x3333333333333333);
	bits_turn_step(a, 1, 0x5555555555555555);
}

/*
 * A mask of those of 64 rows at which a run may begin or end. `same`: a row that equals the one
 * before it has neither.
 */
static ALWAYS uint64_t rows_busy(const uint64_t *rows, bool same)
{
	uint64_t busy = 0;

#if BYTES >= 32
	for (unsigned p = 0; p < 64; p += 4) {
		__m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(rows + p));
		__m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(rows + p + 1));
		__m256i idle = same
			? _mm256_cmpeq_epi64(a, b)
			: _mm256_cmpeq_epi64(_mm256_or_si256(a, b), _mm256_setzero_si256());

		busy |= (uint64_t)(unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(idle)) << p;
	}
	return ~busy;
#else
	for (unsigned p = 0; p < 64; p++)
		busy |= (uint64_t)((same ? rows[p] ^ rows[p + 1] : rows[p] | rows[p + 1]) != 0)
			<< p;
	return busy;
#endif
}

/* The cells of 64 rows in the last SIMD lane. */
static ALWAYS uint64_t rows_tail(const uint64_t *rows)
{
	uint64_t tail = 0;

#if BYTES >= 32
	for (unsigned p = 0; p < 64; p += 4)
		tail |= (uint64_t)(unsigned)_mm256_movemask_pd(
				_mm256_loadu_pd((const double *)(const void *)(rows + p)))
			<< p;
#else
	for (unsigned p = 0; p < 64; p++)
		tail |= rows[p] >> 63 << p;
#endif
	return tail;
}

/* Ends the runs in these SIMD lanes that touch the border at their far end. */
static __attribute__((noinline)) uint64_t walk_touched(
	struct obk_rqa_walk *walk, uint64_t ends, uint64_t p)
{
	uint64_t points = 0;

	walk->touched &= ~ends;
	for (; ends; ends &= ends - 1) {
		uint64_t length = walk->last[__builtin_ctzll(ends)] - p;

		obk_rqa_hist_add(&walk->kinds[OBK_RQA_SEMI], length, 1);
		points += length;
	}
	return points;
}

static __attribute__((noinline)) void walk_long(struct obk_rqa_walk *walk, uint64_t length)
{
	obk_rqa_hist_add(&walk->kinds[OBK_RQA_INNER], length, 1);
}

static ALWAYS uint64_t walk_run(struct obk_rqa_walk *walk, uint64_t *short_count, uint64_t length)
{
	if (__builtin_expect(length < OBK_RQA_SHORT, 1))
		short_count[length]++;
	else
		walk_long(walk, length);
	return length;
}

/*
 * Counts runs that end and returns their number of cells. short_count: that of walk->inner, passed
 * because the compiler would otherwise load it again for every run. In rows with an edge or two,
 * starts and ends are treated alike, because a branch between them would be mispredicted often:
 * both store their position, and a start adds to the count of length 0, which is never read.
 */
static ALWAYS uint64_t walk_diagonals(struct obk_rqa_walk *walk, uint64_t *short_count,
	uint64_t now, uint64_t before, uint64_t p, bool border, bool dense)
{
	uint64_t edges = now ^ before, points = 0;

	if (border && (edges & before & walk->touched)) {
		uint64_t touched = edges & before & walk->touched;

		points = walk_touched(walk, touched, p);
		edges &= ~touched;
	}
	if (dense) {
		for (uint64_t ends = edges & before; ends; ends &= ends - 1)
			points +=
				walk_run(walk, short_count, walk->last[__builtin_ctzll(ends)] - p);
		for (uint64_t starts = edges & now; starts; starts &= starts - 1)
			walk->last[__builtin_ctzll(starts)] = (uint32_t)p;
		return points;
	}
	for (; edges; edges &= edges - 1) {
		unsigned lane = (unsigned)__builtin_ctzll(edges);
		uint64_t length = (walk->last[lane] - p) & -(before >> lane & 1);

		walk->last[lane] = (uint32_t)p;
		points += walk_run(walk, short_count, length);
	}
	return points;
}

/* Counts diagonals only. */
static ALWAYS void walk_busy(struct obk_rqa_walk *walk, const uint64_t *rows, uint64_t base,
	uint64_t busy, bool border, bool dense)
{
	uint64_t *short_count = walk->inner->count, points = 0;

	while (busy) {
		unsigned p = 63 ^ (unsigned)__builtin_clzll(busy);
		const uint64_t *row = rows + p;

		busy &= ((uint64_t)1 << p) - 1;
		points +=
			walk_diagonals(walk, short_count, row[0], row[1], base + p, border, dense);
	}
	walk->points += points;
}

/* Ends a run of a row or column before the band's diagonal `at`. */
static ALWAYS void walk_close(struct obk_rqa_walk *walk, uint64_t line, uint32_t at)
{
	struct obk_rqa_band *band = walk->band;

	if (band->start[line] == OBK_RQA_HEAD) {
		band->head[line] = (uint16_t)at;
		band->start[line] = 0;
	} else {
		count_inner(at - band->start[line], walk->vertical, walk->verticals);
	}
}

static ALWAYS void walk_verticals(struct obk_rqa_walk *walk, uint64_t now, uint64_t before,
	uint64_t p, uint64_t tail, uint64_t tail_before)
{
	struct obk_rqa_band *band = walk->band;
	uint64_t left = now << 1 | tail, starts = now & ~left, ends = left & ~now,
		 column = band->lines + p + walk->k;

	if (tail && ends) {
		walk_close(walk, p, walk->off + (uint32_t)__builtin_ctzll(ends));
		ends &= ends - 1;
	}
	for (; ends; ends &= ends - 1, starts &= starts - 1)
		walk->vertical->count[__builtin_ctzll(ends) - __builtin_ctzll(starts)]++;
	if (starts)
		band->start[p] = (uint16_t)(walk->off + (uint32_t)__builtin_ctzll(starts));
	left = before << 1 | tail_before;
	for (ends = left & ~now; ends; ends &= ends - 1)
		walk_close(walk, column + (uint64_t)__builtin_ctzll(ends),
			walk->off + (uint32_t)__builtin_ctzll(ends));
	for (starts = now & ~left; starts; starts &= starts - 1)
		band->start[column + (uint64_t)__builtin_ctzll(starts)] =
			(uint16_t)(walk->off + (uint32_t)__builtin_ctzll(starts));
}

/* Counts rows and columns, and diagonals if wanted. */
static ALWAYS void walk_banded(struct obk_rqa_walk *walk, const uint64_t *rows, uint64_t base,
	uint64_t busy, uint64_t there, bool diagonals)
{
	uint64_t *tail = walk->band->tail + base / 64, tails = tail[0], after = walk->after,
		 points = 0;

	walk->after = tails & 1;
	busy |= tails | tails >> 1 | after << 63;
	tail[0] = (walk->lanes >> 63 ? rows_tail(rows) & there : 0) | (tails & ~there);
	busy &= there;
	while (busy) {
		unsigned p = 63 ^ (unsigned)__builtin_clzll(busy);
		const uint64_t *row = rows + p;

		busy &= ((uint64_t)1 << p) - 1;
		if (diagonals)
			points += walk_diagonals(
				walk, walk->inner->count, row[0], row[1], base + p, true, false);
		walk_verticals(walk, row[0] & walk->lanes, row[1] & walk->lanes, base + p,
			tails >> p & 1, p == 63 ? after : tails >> (p + 1) & 1);
	}
	walk->points += points;
}

/* rows[64] is the row behind them. */
static void walk_rows(struct obk_rqa_walk *walk, const uint64_t *rows, uint64_t base)
{
	uint64_t left = walk->cells - base,
		 there = left >= 64 ? ~(uint64_t)0 : ~(~(uint64_t)0 << left), busy;

	if (walk->band) {
		busy = rows_busy(rows, false);
		if (walk->diagonals)
			walk_banded(walk, rows, base, busy, there, true);
		else
			walk_banded(walk, rows, base, busy, there, false);
		return;
	}
	busy = rows_busy(rows, true) & there;
	if (__builtin_popcountll(busy) > DENSE_ROWS)
		walk_busy(walk, rows, base, busy, true, true);
	else if (walk->touched)
		walk_busy(walk, rows, base, busy, true, false);
	else
		walk_busy(walk, rows, base, busy, false, false);
}

/* Converts a mask of SIMD lanes to the bit order of a row. */
static ALWAYS uint64_t walk_placed(const struct obk_rqa_walk *walk, uint64_t lanes)
{
#if BYTES >= 32
	return (uint64_t)_mm_cvtsi128_si64(_mm_shuffle_epi8(
		_mm_cvtsi64_si128((long long)lanes), _mm_cvtsi64_si128((long long)walk->places)));
#else
	(void)walk;
	return lanes;
#endif
}

/*
 * Processes the rows base .. base + 63, which are within the strip or behind its end; rows[64] is
 * the one behind them.
 */
static void walk_take(struct obk_rqa_walk *walk, uint64_t *rows, uint64_t base)
{
	if (base >= walk->cells)
		return;
	/*
	 * There are no cells behind a diagonal's end. At its last cell a run may touch the border.
	 */
	for (uint64_t p = walk->cells > base + 64 ? walk->cells - 64 - base : 0; p < 64; p++) {
		uint64_t lanes = walk->cells > base + p ? walk->cells - base - p : 0;

		if (lanes < 64)
			rows[p] &= walk_placed(walk, ~(~(uint64_t)0 << lanes));
		if (lanes && lanes <= 64)
			walk->touched |= rows[p] & walk_placed(walk, (uint64_t)1 << (lanes - 1));
	}
	walk_rows(walk, rows, base);
}

/* Ends runs that are open at the strip's first row: they touch the border. */
static void walk_end(struct obk_rqa_walk *walk, uint64_t row)
{
	for (uint64_t open = walk->diagonals ? row : 0; open; open &= open - 1) {
		unsigned lane = (unsigned)__builtin_ctzll(open);
		uint64_t length = walk->last[lane] + (uint64_t)1;

		walk->points += length;
		obk_rqa_hist_add(
			&walk->kinds[walk->touched >> lane & 1 ? OBK_RQA_FULL : OBK_RQA_SEMI],
			length, 1);
	}
	for (uint64_t open = walk->band ? row & walk->lanes : 0; open; open &= open - 1) {
		unsigned lane = (unsigned)__builtin_ctzll(open);

		walk_close(walk, walk->band->lines + walk->k + lane, walk->off + lane + 1);
	}
}

#define WALK_PLACES 0x0706050403020100 /* SIMD lanes in natural order */

static void walk_begin(struct obk_rqa_walk *walk, uint64_t places)
{
	walk->places = places;
	walk->touched = 0;
	/* The row behind the strip's last one, which only the previous strip had. */
	walk->after = walk->band ? walk->band->tail[walk->cells / 64] >> (walk->cells & 63) & 1 : 0;
}

/*
 * Makes rows from lines: 64 diagonals of a strip, one bit per cell, `stride` words apart. Bits
 * behind a diagonal's end may have any value.
 */
static void walk_lines(struct obk_rqa_walk *walk, const uint64_t *lines, uint64_t stride)
{
	uint64_t rows[65] = { 0 };

	walk_begin(walk, WALK_PLACES);
	for (uint64_t word = (walk->cells + 63) / 64; word-- > 0;) {
		rows[64] = rows[0];
		for (unsigned lane = 0; lane < 64; lane++)
			rows[lane] = lines[lane * stride + word];
		bits_turn(rows);
		walk_take(walk, rows, 64 * word);
	}
	walk_end(walk, rows[0]);
}
