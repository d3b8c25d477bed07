/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The lines of one unit: diagonals, strips and bands of them, columns. */
#include <string.h>

#include "compute/rqa/count.h"

#define OPEN_SHARE 64u /* a sieve may leave one in this many cells undecided */

static void gaps_out(
	const struct obk_rqa_plot *plot, uint64_t i, uint64_t j, uint64_t cells, uint64_t *words)
{
	for (uint64_t p = 0; p < cells && plot->x.valid; p += 64)
		words[p / 64] &= obk_rqa_bits_at(plot->x.valid, i + p);
	for (uint64_t p = 0; p < cells && plot->y.valid; p += 64)
		words[p / 64] &= obk_rqa_bits_at(plot->y.valid, j + p);
}

void obk_rqa_diagonal_bits(const struct obk_rqa_matrix *matrix, const struct obk_rqa_ops *ops,
	struct obk_rqa_scratch *scratch, uint64_t i, uint64_t j, uint64_t cells,
	uint64_t *ret_words)
{
	for (uint32_t p = 0; p < matrix->plots; p++) {
		uint64_t *into = p ? scratch->words_b : ret_words;

		ops->diagonal(&matrix->plot[p], scratch, i, j, cells, into);
		gaps_out(&matrix->plot[p], i, j, cells, into);
		for (uint64_t w = 0; p && w < (cells + 63) / 64; w++)
			ret_words[w] &= into[w];
	}
}

void obk_rqa_column_bits(const struct obk_rqa_matrix *matrix, const struct obk_rqa_ops *ops,
	struct obk_rqa_scratch *scratch, uint64_t j, uint64_t *ret_words)
{
	uint64_t words = (matrix->n1 + 63) / 64;

	for (uint32_t p = 0; p < matrix->plots; p++) {
		const struct obk_rqa_plot *plot = &matrix->plot[p];
		uint64_t *into = p ? scratch->words_b : ret_words;

		if (plot->y.valid && !(plot->y.valid[j / 64] >> (j & 63) & 1)) {
			memset(ret_words, 0, words * 8);
			return;
		}
		ops->column(plot, j, into);
		for (uint64_t w = 0; plot->x.valid && w < words; w++)
			into[w] &= plot->x.valid[w];
		for (uint64_t w = 0; p && w < words; w++)
			ret_words[w] &= into[w];
	}
}

void obk_rqa_column_mask(uint64_t *words, uint64_t n1, uint64_t j, uint64_t width)
{
	uint64_t from = j >= width ? j - width + 1 : 0, to = j + width < n1 ? j + width : n1;

	for (uint64_t i = from; width && i < to; i++)
		words[i / 64] &= ~((uint64_t)1 << (i & 63));
}

static uint64_t bits_count(const uint64_t *words, uint64_t cells)
{
	uint64_t count = 0;

	for (uint64_t w = 0; w < cells / 64; w++)
		count += (uint64_t)__builtin_popcountll(words[w]);
	if (cells & 63)
		count += (uint64_t)__builtin_popcountll(words[cells / 64] << (64 - (cells & 63)));
	return count;
}

/* Computes the bits of the diagonals d .. d + OBK_RQA_LANES - 1 in the scratch's first strip. */
static void strip_bits(
	struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, uint64_t d, bool sift)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	uint64_t stride = scratch->strip_words, n = matrix->n1, own;

	for (uint32_t p = 0; p < matrix->plots; p++) {
		uint64_t *strip = scratch->strips + p * stride * OBK_RQA_LANES;

		if (sift)
			scratch->open +=
				c->ops->sieve_strip(&c->sieve[p], scratch, d, n - d, strip, stride);
		own = matrix->plot[p].f64 ? c->ops->lanes_f64 : c->ops->lanes_f32;
		for (uint64_t lane = 0; !sift && lane < OBK_RQA_LANES && d + lane < n; lane += own)
			c->ops->strip(&matrix->plot[p], scratch, d + lane, n - d - lane,
				strip + lane * stride, stride);
		for (uint64_t lane = 0; lane < OBK_RQA_LANES && d + lane < n; lane++) {
			uint64_t cells = n - d - lane, *first = scratch->strips + lane * stride;

			gaps_out(&matrix->plot[p], 0, d + lane, cells, strip + lane * stride);
			for (uint64_t w = 0; p && w < (cells + 63) / 64; w++)
				first[w] &= strip[lane * stride + w];
		}
	}
}

/*
 * A sieve that leaves many cells undecided costs more than it saves. This thread then continues
 * without it. The counts do not change.
 */
static bool sifts(const struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, uint64_t cells)
{
	scratch->sifted += cells;
	return c->sifting && scratch->open <= scratch->sifted / OPEN_SHARE;
}

/*
 * Diagonal number d: for a symmetric matrix the one at distance d from the LOI, else counted from
 * the lower left corner. words: its bits; NULL: compute them.
 */
static void diagonal_count(
	struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, uint64_t d, uint64_t *words)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	const struct obk_rqa_options *options = c->options;
	struct obk_rqa_counts *counts = c->counts;
	uint64_t i, j, off, cells, points;

	if (matrix->symmetric) {
		i = 0;
		j = off = d;
	} else {
		i = d < matrix->n1 - 1 ? matrix->n1 - 1 - d : 0;
		j = d < matrix->n1 - 1 ? 0 : d - (matrix->n1 - 1);
		off = i + j;
		if ((options->triangle == OBK_RQA_UPPER && i) ||
			(options->triangle == OBK_RQA_LOWER && j))
			return;
	}
	cells = matrix->n1 - i < matrix->n2 - j ? matrix->n1 - i : matrix->n2 - j;
	if (!words) {
		words = scratch->words;
		obk_rqa_diagonal_bits(matrix, c->ops, scratch, i, j, cells, words);
	}
	if (off == 0 && matrix->symmetric) {
		struct obk_rqa_hist loi[OBK_RQA_TOUCH] = { counts->loi, counts->loi_border,
			counts->loi_border };
		struct obk_rqa_short inner = { { 0 } };

		points = c->ops->runs(words, cells, &inner, loi);
		for (unsigned l = 1; l < OBK_RQA_SHORT && l <= cells; l++)
			if (inner.count[l])
				obk_rqa_hist_add(&counts->loi, l, inner.count[l]);
		scratch->loi_points += points;
	} else {
		if (off >= options->theiler_diag)
			points = c->ops->runs(words, cells, &scratch->inner, counts->diagonal);
		else
			points = bits_count(words, cells);
		if (off >= options->theiler_rr)
			scratch->points += points;
	}
	if (counts->profile.count)
		obk_rqa_hist_add(&counts->profile, d, points);
	if (counts->square.count && off <= counts->square.length)
		obk_rqa_hist_add(
			&counts->square, off, bits_count(words, counts->square.length + 1 - off));
}

static void time_add(struct obk_rqa_short *little, struct obk_rqa_hist *hist, uint64_t length)
{
	if (length < OBK_RQA_SHORT)
		little->count[length]++;
	else
		obk_rqa_hist_add(hist, length, 1);
}

/* The next position >= at whose bit equals `set`; cells if there is none. */
static uint64_t bits_next(const uint64_t *words, uint64_t cells, uint64_t at, bool set)
{
	while (at < cells) {
		uint64_t bits = (set ? words[at / 64] : ~words[at / 64]) >> (at & 63);

		if (bits) {
			at += (uint64_t)__builtin_ctzll(bits);
			return at < cells ? at : cells;
		}
		at = (at / 64 + 1) * 64;
	}
	return cells;
}

/*
 * Distances between successive lines of one column: between their starts, and between their
 * midpoints, rounded as in RecurrenceAnalysis.jl.
 */
static void column_times(
	struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, const uint64_t *words)
{
	uint64_t cells = c->matrix->n1, points = 0, first = 0, start = 0, end = 0;
	bool have = false;

	for (uint64_t at = bits_next(words, cells, 0, true); at < cells;) {
		uint64_t stop = bits_next(words, cells, at, false);

		if (have) {
			uint64_t middle = at - end + (end - start) / 2 + (stop - at) / 2;

			time_add(&scratch->start, &c->counts->start, at - start);
			time_add(&scratch->middle, &c->counts->middle, middle);
		} else {
			first = at;
		}
		have = true;
		points += stop - at;
		start = at;
		end = stop;
		at = bits_next(words, cells, stop, true);
	}
	if (have) {
		scratch->t1_sum += end - 1 - first;
		scratch->t1_count += points - 1;
	}
}

uint64_t obk_rqa_columns_stride(const struct obk_rqa_matrix *matrix)
{
	return (matrix->n1 + OBK_RQA_SIEVE_STRIP) / 64 + 3;
}

/* Counts column j, whose bits are in scratch->words. */
static void column_count(struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, uint64_t j)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	const struct obk_rqa_options *options = c->options;
	struct obk_rqa_counts *counts = c->counts;
	uint64_t n = matrix->n1, words = (n + 63) / 64;

	if (counts->white.count) {
		struct obk_rqa_hist kinds[OBK_RQA_TOUCH] = { counts->white, counts->white_border,
			counts->white_border };

		memcpy(scratch->words_c, scratch->words, words * 8);
		obk_rqa_column_mask(scratch->words_c, n, j, options->theiler_white);
		for (uint64_t w = 0; w < words; w++)
			scratch->words_c[w] = ~scratch->words_c[w];
		if (n & 63)
			scratch->words_c[words - 1] &= ((uint64_t)1 << (n & 63)) - 1;
		c->ops->runs(scratch->words_c, n, &scratch->white, kinds);
	}
	obk_rqa_column_mask(scratch->words, n, j, options->theiler_vert);
	if (counts->vertical.count) {
		struct obk_rqa_hist kinds[OBK_RQA_TOUCH] = { counts->vertical, counts->vertical,
			counts->vertical };

		c->ops->runs(scratch->words, n, &scratch->vertical, kinds);
		if (j == matrix->n2 - 1) {
			uint64_t open = 0;

			while (open < n &&
				scratch->words[(n - 1 - open) / 64] >> ((n - 1 - open) & 63) & 1)
				open++;
			counts->open_last = open;
		}
	}
	if (counts->start.count)
		column_times(c, scratch, scratch->words);
}

/*
 * The columns first .. last - 1, at most OBK_RQA_SIEVE_STRIP of them, 64 cells of each at a time,
 * through a sieve.
 */
static void columns_sift(
	struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, uint64_t first, uint64_t last)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	uint64_t count = (last - first + 31) / 32 * 32, stride = obk_rqa_columns_stride(matrix),
		 words = (matrix->n1 + 63) / 64;
	int64_t k = -(int64_t)(first + count - 1);

	for (uint64_t w = 0; w < (matrix->n1 + count + 63) / 64; w++, k += 64)
		for (uint32_t p = 0; p < matrix->plots; p++) {
			uint64_t *into = scratch->columns + p * stride * c->columns_unit + w;

			scratch->open += c->ops->sieve_columns(
				&c->sieve[p], scratch, k, first, count, into, stride);
			for (uint64_t at = 0; p && at < last - first; at++)
				scratch->columns[at * stride + w] &= into[at * stride];
		}
	for (uint64_t j = first; j < last; j++) {
		/*
		 * The bit position of the cell (0, j) in the column's words is the distance of
		 * column j from the last column.
		 */
		const uint64_t *bits = scratch->columns + (j - first) * stride;
		uint64_t off = first + count - 1 - j;

		for (uint64_t w = 0; w < words; w++)
			scratch->words[w] = obk_rqa_bits_at(bits, off + 64 * w);
		if (matrix->n1 & 63)
			scratch->words[words - 1] &= ((uint64_t)1 << (matrix->n1 & 63)) - 1;
		column_count(c, scratch, j);
	}
}

/*
 * Counts diagonals one at a time: for cross recurrence, and for embeddings that are too long for
 * strips.
 */
static void diagonals_run(
	struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, uint64_t first, uint64_t last)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	uint64_t cells = 0;

	for (uint64_t d = first; d < last; d++) {
		uint64_t i = 0, j = d;

		diagonal_count(c, scratch, d, NULL);
		if (!matrix->symmetric) {
			i = d < matrix->n1 - 1 ? matrix->n1 - 1 - d : 0;
			j = d < matrix->n1 - 1 ? 0 : d - (matrix->n1 - 1);
		}
		cells += matrix->n1 - i < matrix->n2 - j ? matrix->n1 - i : matrix->n2 - j;
	}
	obk_rqa_watch_add(c->watch, cells, 0, 0, 0);
}

/*
 * Counts strips of a symmetric matrix. Most go directly from the sieve to the counters; for options
 * that need single diagonals, each diagonal is first written separately.
 */
static void strips_run(struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, uint64_t first,
	uint64_t last, struct obk_rqa_band *band)
{
	const struct obk_rqa_options *options = c->options;
	uint64_t n = c->matrix->n1;

	for (uint64_t d = first; d < last; d += OBK_RQA_LANES) {
		bool alike = d > 0 && d >= options->theiler_diag && d >= options->theiler_rr &&
			!c->counts->profile.count;
		bool sift = sifts(c, scratch, (n - d) * OBK_RQA_LANES);
		uint64_t masked = options->theiler_vert > d ? options->theiler_vert - d : 0,
			 end = d + OBK_RQA_LANES < last ? d + OBK_RQA_LANES : last;
		uint64_t cells;
		struct obk_rqa_walk walk = {
			.k = d,
			.cells = n - d,
			.diagonals = alike,
			.band = band,
			.lanes = masked < 64 ? ~(uint64_t)0 << masked : 0,
			.off = (uint32_t)(d - first),
			.inner = &scratch->inner,
			.vertical = &scratch->vertical,
			.kinds = c->counts->diagonal,
			.verticals = &c->counts->vertical,
		};

		if (sift && alike && c->matrix->plots == 1) {
			scratch->open += c->ops->sieve_walk(&c->sieve[0], scratch, &walk);
		} else {
			strip_bits(c, scratch, d, sift);
			if (band)
				c->ops->walk_lines(&walk, scratch->strips, scratch->strip_words);
			for (uint64_t lane = 0; !(band && alike) && d + lane < end; lane++)
				diagonal_count(c, scratch, d + lane,
					scratch->strips + lane * scratch->strip_words);
		}
		scratch->points += walk.points;
		cells = (end - d) * (n - d) - (end - d) * (end - d - 1) / 2;
		if (obk_rqa_watch_add(c->watch, cells, 0, 0, 0))
			return;
	}
}

static void band_run(struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, uint64_t unit,
	uint64_t first, uint64_t last)
{
	struct obk_rqa_band *band = obk_rqa_bands_claim(&c->bands, unit, c->watch);

	if (!band)
		return;
	strips_run(c, scratch, first, last, band);
	if (!obk_rqa_watch_stopped(c->watch))
		obk_rqa_bands_done(&c->bands, unit);
}

static void columns_run(
	struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch, uint64_t first, uint64_t last)
{
	uint64_t cells = (last - first) * c->matrix->n1;

	if (scratch->columns && sifts(c, scratch, cells)) {
		columns_sift(c, scratch, first, last);
	} else {
		for (uint64_t j = first; j < last; j++) {
			obk_rqa_column_bits(c->matrix, c->ops, scratch, j, scratch->words);
			column_count(c, scratch, j);
		}
	}
	obk_rqa_watch_add(c->watch, cells, 0, 0, 0);
}

void obk_rqa_count_unit(void *arg, unsigned thread, uint64_t unit)
{
	struct obk_rqa_counting *c = arg;
	struct obk_rqa_scratch *scratch = &c->scratch[thread];
	uint64_t first, last;

	if (unit < c->diagonal_units) {
		first = unit * c->diagonals_unit;
		last = first + c->diagonals_unit < c->diagonals ? first + c->diagonals_unit
								: c->diagonals;
		if (c->banded)
			band_run(c, scratch, unit, first, last);
		else if (scratch->strips)
			strips_run(c, scratch, first, last, NULL);
		else
			diagonals_run(c, scratch, first, last);
	} else {
		first = (unit - c->diagonal_units) * c->columns_unit;
		last = first + c->columns_unit < c->columns ? first + c->columns_unit : c->columns;
		columns_run(c, scratch, first, last);
	}
}
