/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/opt.h"
#include "kernels/rqa/bands.h"

#define UNIT_CELLS (1u << 18) /* cells of one unit of work, unless a single line is longer */
#define BAND_CELLS (1u << 26) /* cells of a band, as far as its width allows */
#define BAND_LEAST 1024u      /* diagonals of a band: its beginning and end cost as much as 64 of them or so */
#define BAND_MOST 32768u
#define BAND_SHARE 8u         /* a band is at most one in so many of the diagonals, for the threads */
#define COLUMNS_BITS (1u << 25) /* cells of columns counted together, but at least 32 columns */
#define EPOCH_UNITS 64u       /* units a thread does between two looks at the clock */
#define EPOCH_BANDS 4u
#define STATE_PERIOD_S 30.0
#define OPEN_SHARE 64u        /* a sieve may leave one cell of so many open */

struct count {
	const struct obk_rqa_matrix *matrix;
	const struct obk_rqa_options *options;
	const struct obk_rqa_ops *ops;
	struct obk_rqa_watch *watch;
	struct obk_rqa_counts *counts;
	struct obk_rqa_scratch *scratch; /* one a thread */
	struct obk_rqa_sieve sieve[2];   /* of each plot */
	bool sifting;
	bool banded;                     /* vertical lines are counted with the diagonals */
	struct obk_rqa_bands bands;
	uint64_t diagonals;              /* number of diagonals, the LOI of a symmetric matrix included */
	uint64_t columns;                /* 0 when nothing is counted along them */
	uint64_t diagonals_unit, columns_unit, diagonal_units, units;
};

static void gaps_out(const struct obk_rqa_plot *plot, uint64_t i, uint64_t j, uint64_t cells, uint64_t *words)
{
	for (uint64_t p = 0; p < cells && plot->x.valid; p += 64)
		words[p / 64] &= obk_rqa_bits_at(plot->x.valid, i + p);
	for (uint64_t p = 0; p < cells && plot->y.valid; p += 64)
		words[p / 64] &= obk_rqa_bits_at(plot->y.valid, j + p);
}

void obk_rqa_diagonal_bits(const struct obk_rqa_matrix *matrix, const struct obk_rqa_ops *ops, struct obk_rqa_scratch *scratch, uint64_t i, uint64_t j,
			   uint64_t cells, uint64_t *ret_words)
{
	for (uint32_t p = 0; p < matrix->plots; p++) {
		uint64_t *into = p ? scratch->words_b : ret_words;

		ops->diagonal(&matrix->plot[p], scratch, i, j, cells, into);
		gaps_out(&matrix->plot[p], i, j, cells, into);
		for (uint64_t w = 0; p && w < (cells + 63) / 64; w++)
			ret_words[w] &= into[w];
	}
}

void obk_rqa_column_bits(const struct obk_rqa_matrix *matrix, const struct obk_rqa_ops *ops, struct obk_rqa_scratch *scratch, uint64_t j, uint64_t *ret_words)
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

/* The bits of the diagonals d .. d + OBK_RQA_LANES - 1, in the scratch's first strip. */
static void strip_bits(struct count *c, struct obk_rqa_scratch *scratch, uint64_t d, bool sift)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	uint64_t stride = scratch->strip_words, n = matrix->n1, own;

	for (uint32_t p = 0; p < matrix->plots; p++) {
		uint64_t *strip = scratch->strips + p * stride * OBK_RQA_LANES;

		if (sift)
			scratch->open += c->ops->sieve_strip(&c->sieve[p], scratch, d, n - d, strip, stride);
		own = matrix->plot[p].f64 ? c->ops->lanes_f64 : c->ops->lanes_f32;
		for (uint64_t lane = 0; !sift && lane < OBK_RQA_LANES && d + lane < n; lane += own)
			c->ops->strip(&matrix->plot[p], scratch, d + lane, n - d - lane, strip + lane * stride, stride);
		for (uint64_t lane = 0; lane < OBK_RQA_LANES && d + lane < n; lane++) {
			uint64_t cells = n - d - lane, *first = scratch->strips + lane * stride;

			gaps_out(&matrix->plot[p], 0, d + lane, cells, strip + lane * stride);
			for (uint64_t w = 0; p && w < (cells + 63) / 64; w++)
				first[w] &= strip[lane * stride + w];
		}
	}
}

/* A sieve that leaves much open costs more than it saves: this thread then goes on without. The counts are the same. */
static bool sifts(const struct count *c, struct obk_rqa_scratch *scratch, uint64_t cells)
{
	scratch->sifted += cells;
	return c->sifting && scratch->open <= scratch->sifted / OPEN_SHARE;
}

/*
 * Diagonal number d: of a symmetric matrix the one d cells off the LOI, else counted from the lower left corner.
 * words: its bits, NULL if they are to be made.
 */
static void diagonal_count(struct count *c, struct obk_rqa_scratch *scratch, uint64_t d, uint64_t *words)
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
		if ((options->triangle == OBK_RQA_UPPER && i) || (options->triangle == OBK_RQA_LOWER && j))
			return;
	}
	cells = matrix->n1 - i < matrix->n2 - j ? matrix->n1 - i : matrix->n2 - j;
	if (!words) {
		words = scratch->words;
		obk_rqa_diagonal_bits(matrix, c->ops, scratch, i, j, cells, words);
	}
	if (off == 0 && matrix->symmetric) {
		struct obk_rqa_hist loi[OBK_RQA_TOUCH] = { counts->loi, counts->loi_border, counts->loi_border };
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
		obk_rqa_hist_add(&counts->square, off, bits_count(words, counts->square.length + 1 - off));
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

/* Distances between successive lines of one column: of their starts, and of their midpoints as RecurrenceAnalysis.jl rounds them. */
static void column_times(struct count *c, struct obk_rqa_scratch *scratch, const uint64_t *words)
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

static uint64_t columns_stride(const struct obk_rqa_matrix *matrix)
{
	return (matrix->n1 + OBK_RQA_SIEVE_STRIP) / 64 + 3;
}

/* Column j with its bits in scratch->words. */
static void column_count(struct count *c, struct obk_rqa_scratch *scratch, uint64_t j)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	const struct obk_rqa_options *options = c->options;
	struct obk_rqa_counts *counts = c->counts;
	uint64_t n = matrix->n1, words = (n + 63) / 64;

	if (counts->white.count) {
		struct obk_rqa_hist kinds[OBK_RQA_TOUCH] = { counts->white, counts->white_border, counts->white_border };

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
		struct obk_rqa_hist kinds[OBK_RQA_TOUCH] = { counts->vertical, counts->vertical, counts->vertical };

		c->ops->runs(scratch->words, n, &scratch->vertical, kinds);
		if (j == matrix->n2 - 1) {
			uint64_t open = 0;

			while (open < n && scratch->words[(n - 1 - open) / 64] >> ((n - 1 - open) & 63) & 1)
				open++;
			counts->open_last = open;
		}
	}
	if (counts->start.count)
		column_times(c, scratch, scratch->words);
}

/* The columns first .. last - 1, at most OBK_RQA_SIEVE_STRIP of them, 64 cells of each at a time. */
static void columns_sift(struct count *c, struct obk_rqa_scratch *scratch, uint64_t first, uint64_t last)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	uint64_t count = (last - first + 31) / 32 * 32, stride = columns_stride(matrix), words = (matrix->n1 + 63) / 64;
	int64_t k = -(int64_t)(first + count - 1);

	for (uint64_t w = 0; w < (matrix->n1 + count + 63) / 64; w++, k += 64)
		for (uint32_t p = 0; p < matrix->plots; p++) {
			uint64_t *into = scratch->columns + p * stride * c->columns_unit + w;

			scratch->open += c->ops->sieve_columns(&c->sieve[p], scratch, k, first, count, into, stride);
			for (uint64_t at = 0; p && at < last - first; at++)
				scratch->columns[at * stride + w] &= into[at * stride];
		}
	for (uint64_t j = first; j < last; j++) {
		/* The cell (0, j) is as many bits into the column's words as it lies above the last column's. */
		const uint64_t *bits = scratch->columns + (j - first) * stride;
		uint64_t off = first + count - 1 - j;

		for (uint64_t w = 0; w < words; w++)
			scratch->words[w] = obk_rqa_bits_at(bits, off + 64 * w);
		if (matrix->n1 & 63)
			scratch->words[words - 1] &= ((uint64_t)1 << (matrix->n1 & 63)) - 1;
		column_count(c, scratch, j);
	}
}

/* Diagonals one by one: cross recurrence, and embeddings that are too long for strips. */
static void diagonals_run(struct count *c, struct obk_rqa_scratch *scratch, uint64_t first, uint64_t last)
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

/* Strips of a symmetric matrix. Most go from the sieve to the counters; what needs a diagonal by itself is written as one first. */
static void strips_run(struct count *c, struct obk_rqa_scratch *scratch, uint64_t first, uint64_t last, struct obk_rqa_band *band)
{
	const struct obk_rqa_options *options = c->options;
	uint64_t n = c->matrix->n1;

	for (uint64_t d = first; d < last; d += OBK_RQA_LANES) {
		bool alike = d > 0 && d >= options->theiler_diag && d >= options->theiler_rr && !c->counts->profile.count;
		bool sift = sifts(c, scratch, (n - d) * OBK_RQA_LANES);
		uint64_t masked = options->theiler_vert > d ? options->theiler_vert - d : 0, end = d + OBK_RQA_LANES < last ? d + OBK_RQA_LANES : last;
		uint64_t cells;
		struct obk_rqa_walk walk = {
			.k = d, .cells = n - d, .diagonals = alike, .band = band, .lanes = masked < 64 ? ~(uint64_t)0 << masked : 0,
			.off = (uint32_t)(d - first),
			.inner = &scratch->inner, .vertical = &scratch->vertical, .kinds = c->counts->diagonal, .verticals = &c->counts->vertical,
		};

		if (sift && alike && c->matrix->plots == 1) {
			scratch->open += c->ops->sieve_walk(&c->sieve[0], scratch, &walk);
		} else {
			strip_bits(c, scratch, d, sift);
			if (band)
				c->ops->walk_lines(&walk, scratch->strips, scratch->strip_words);
			for (uint64_t lane = 0; !(band && alike) && d + lane < end; lane++)
				diagonal_count(c, scratch, d + lane, scratch->strips + lane * scratch->strip_words);
		}
		scratch->points += walk.points;
		cells = (end - d) * (n - d) - (end - d) * (end - d - 1) / 2;
		if (obk_rqa_watch_add(c->watch, cells, 0, 0, 0))
			return;
	}
}

static void band_run(struct count *c, struct obk_rqa_scratch *scratch, uint64_t unit, uint64_t first, uint64_t last)
{
	struct obk_rqa_band *band = obk_rqa_bands_claim(&c->bands, unit, c->watch);

	if (!band)
		return;
	strips_run(c, scratch, first, last, band);
	if (!obk_rqa_watch_stopped(c->watch))
		obk_rqa_bands_done(&c->bands, unit);
}

static void columns_run(struct count *c, struct obk_rqa_scratch *scratch, uint64_t first, uint64_t last)
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

static void unit_run(void *arg, unsigned thread, uint64_t unit)
{
	struct count *c = arg;
	struct obk_rqa_scratch *scratch = &c->scratch[thread];
	uint64_t first, last;

	if (unit < c->diagonal_units) {
		first = unit * c->diagonals_unit;
		last = first + c->diagonals_unit < c->diagonals ? first + c->diagonals_unit : c->diagonals;
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

static void short_flush(struct obk_rqa_short *little, struct obk_rqa_hist *hist)
{
	if (!hist->count)
		return;
	for (unsigned l = 1; l < OBK_RQA_SHORT && l <= hist->length; l++)
		if (little->count[l]) {
			obk_rqa_hist_add(hist, l, little->count[l]);
			little->count[l] = 0;
		}
}

static void flush(struct count *c, unsigned threads)
{
	for (unsigned t = 0; t < threads; t++) {
		struct obk_rqa_scratch *s = &c->scratch[t];

		short_flush(&s->inner, &c->counts->diagonal[OBK_RQA_INNER]);
		short_flush(&s->vertical, &c->counts->vertical);
		short_flush(&s->white, &c->counts->white);
		short_flush(&s->start, &c->counts->start);
		short_flush(&s->middle, &c->counts->middle);
		c->counts->points += s->points;
		c->counts->loi_points += s->loi_points;
		c->counts->t1_sum += s->t1_sum;
		c->counts->t1_count += s->t1_count;
		s->points = s->loi_points = s->t1_sum = s->t1_count = 0;
	}
}

/* Diagonals of a band. Not a matter of threads: a run's file counts in bands. */
static uint64_t band_width(uint64_t n)
{
	uint64_t width = BAND_CELLS / n, share = n / BAND_SHARE;

	width = width < BAND_LEAST ? BAND_LEAST : width > BAND_MOST ? BAND_MOST : width;
	width = width > share ? share : width;
	return (width / OBK_RQA_LANES + 1) * OBK_RQA_LANES;
}

static void plan(struct count *c)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	uint64_t longest = matrix->n1 > matrix->n2 ? matrix->n1 : matrix->n2;

	c->diagonals = matrix->symmetric ? matrix->n1 : matrix->n1 + matrix->n2 - 1;
	c->banded = obk_rqa_banded(matrix, c->options);
	c->columns = !c->banded && c->options->want & (OBK_RQA_WANT_VERTICAL | OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES) ? matrix->n2 : 0;
	c->diagonals_unit = c->banded ? band_width(longest) : (UNIT_CELLS / longest + OBK_RQA_LANES) / OBK_RQA_LANES * OBK_RQA_LANES;
	c->columns_unit = COLUMNS_BITS / longest / 32 * 32;
	if (c->columns_unit > OBK_RQA_SIEVE_STRIP)
		c->columns_unit = OBK_RQA_SIEVE_STRIP;
	if (c->columns_unit < 32)
		c->columns_unit = 32;
	c->diagonal_units = (c->diagonals + c->diagonals_unit - 1) / c->diagonals_unit;
	c->units = c->diagonal_units + (c->columns + c->columns_unit - 1) / c->columns_unit;
}

bool obk_rqa_banded(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options)
{
	bool strips = matrix->symmetric;

	for (uint32_t p = 0; p < matrix->plots; p++)
		strips = strips && (matrix->plot[p].m - 1) * matrix->plot[p].tau <= OBK_RQA_SPAN;
	return strips && options->want & OBK_RQA_WANT_VERTICAL && !(options->want & (OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES)) && ob_opt_on(OB_OPT_BANDS);
}

uint64_t obk_rqa_count_cells(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options)
{
	uint64_t cells = matrix->symmetric ? matrix->n1 * (matrix->n1 + 1) / 2 : matrix->n1 * matrix->n2;

	if (options->want & (OBK_RQA_WANT_VERTICAL | OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES))
		cells += matrix->n1 * matrix->n2;
	return cells;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* All units from `unit` on, an epoch at a time; between two epochs every counter is in `counts`, which is when the run's file is written. */
static int epochs_run(struct count *c, unsigned threads, uint64_t unit, const struct obk_rqa_control *control, uint64_t hash, struct obk_rqa_error *ret_error)
{
	const char *path = control ? control->state_path : NULL;
	double period = path && control->state_period > 0 ? control->state_period : STATE_PERIOD_S, saved = seconds();

	while (unit < c->units) {
		uint64_t last = path ? unit + (uint64_t)threads * (c->banded ? EPOCH_BANDS : EPOCH_UNITS) : c->units;

		if (last > c->units)
			last = c->units;
		obk_rqa_each(c->watch, threads, unit, last, unit_run, c);
		if (obk_rqa_watch_stopped(c->watch))
			return obk_rqa_fail(ret_error, OBK_RQA_CANCELLED, 0, 0, "cancelled");
		flush(c, threads);
		unit = last;
		if (path && unit < c->units && seconds() - saved >= period) {
			int status = obk_rqa_state_save(path, hash, c->counts, unit, ret_error);

			if (status != OBK_RQA_OK)
				return status;
			saved = seconds();
		}
	}
	return OBK_RQA_OK;
}

/* The cells of units that an earlier run did, for honest progress. */
static uint64_t cells_before(const struct count *c, uint64_t unit)
{
	uint64_t cells = 0, diagonals = unit < c->diagonal_units ? unit * c->diagonals_unit : c->diagonals;

	if (c->matrix->symmetric) {
		cells = diagonals * c->matrix->n1 - diagonals * (diagonals ? diagonals - 1 : 0) / 2;
	} else {
		for (uint64_t d = 0; d < diagonals; d++) {
			uint64_t i = d < c->matrix->n1 - 1 ? c->matrix->n1 - 1 - d : 0, j = d < c->matrix->n1 - 1 ? 0 : d - (c->matrix->n1 - 1);

			cells += c->matrix->n1 - i < c->matrix->n2 - j ? c->matrix->n1 - i : c->matrix->n2 - j;
		}
	}
	if (unit > c->diagonal_units)
		cells += (unit - c->diagonal_units) * c->columns_unit * c->matrix->n1;
	return cells;
}

static void sieves_fini(struct count *c)
{
	for (unsigned p = 0; p < 2; p++)
		obk_rqa_sieve_fini(&c->sieve[p]);
}

static int sieves_init(struct count *c)
{
	c->sifting = c->ops->sieve_strip != NULL;
	for (uint32_t p = 0; p < c->matrix->plots && c->sifting; p++) {
		const struct obk_rqa_plot *plot = &c->matrix->plot[p];

		if (plot->x.valid || plot->y.valid) {
			c->sifting = false;
		} else if (obk_rqa_sieve_init(&c->sieve[p], plot) != OBK_RQA_OK) {
			sieves_fini(c);
			return OBK_RQA_NO_MEMORY;
		}
		c->sifting = c->sifting && c->sieve[p].on;
	}
	return OBK_RQA_OK;
}

/* Room for the cells of columns, where they go through a sieve. */
static bool columns_init(struct count *c, struct obk_rqa_scratch *scratch)
{
	if (!c->sifting || !c->columns)
		return true;
	if (!scratch->ring) { /* cross recurrence has no strips */
		uint64_t span = 0, channels = 1;

		for (uint32_t p = 0; p < c->matrix->plots; p++) {
			uint64_t own = (c->matrix->plot[p].m - 1) * c->matrix->plot[p].tau;

			span = own > span ? own : span;
			channels = c->matrix->plot[p].channels > channels ? c->matrix->plot[p].channels : channels;
		}
		scratch->ring = aligned_alloc(64, (OBK_RQA_SIEVE_STRIP + span) * channels * 128);
	}
	scratch->columns = calloc(columns_stride(c->matrix) * c->columns_unit * c->matrix->plots, sizeof *scratch->columns);
	if (scratch->ring && scratch->columns)
		return true;
	obk_rqa_scratch_fini(scratch);
	return false;
}

int obk_rqa_count(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options, const struct obk_rqa_ops *ops, struct obk_rqa_watch *watch,
		  unsigned threads, struct obk_rqa_counts *counts, const struct obk_rqa_control *control, uint64_t hash, struct obk_rqa_error *ret_error)
{
	struct count c = { .matrix = matrix, .options = options, .ops = ops, .watch = watch, .counts = counts };
	uint64_t unit = 0;
	unsigned ready = 0;
	int status = OBK_RQA_OK;

	plan(&c);
	/* A run's file counts in units, and has the open lines of bands where there are bands. */
	hash = obk_rqa_hash(hash, &c.diagonals_unit, sizeof c.diagonals_unit);
	hash = obk_rqa_hash(hash, &(uint64_t){ c.banded }, sizeof(uint64_t));
	status = sieves_init(&c);
	if (status != OBK_RQA_OK)
		return obk_rqa_fail(ret_error, status, 0, 0, "no memory for the coarse series");
	if (threads > c.units)
		threads = (unsigned)c.units;
	c.scratch = calloc(threads, sizeof *c.scratch);
	while (c.scratch && ready < threads && obk_rqa_scratch_init(&c.scratch[ready], matrix) == OBK_RQA_OK &&
	       columns_init(&c, &c.scratch[ready]))
		ready++;
	while (ready && c.banded && obk_rqa_bands_init(&c.bands, counts, c.diagonals_unit, ready) != OBK_RQA_OK)
		obk_rqa_scratch_fini(&c.scratch[--ready]);
	if (!ready) {
		sieves_fini(&c);
		free(c.scratch);
		return obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory for the work of one thread");
	}
	if (c.banded)
		obk_rqa_watch_total(watch, matrix->n1 * (matrix->n1 + 1) / 2, 0);
	if (control && control->state_path)
		status = obk_rqa_state_load(control->state_path, hash, counts, &unit, ret_error);
	c.bands.next = unit;
	if (status == OBK_RQA_OK && unit)
		obk_rqa_watch_before(watch, cells_before(&c, unit));
	if (status == OBK_RQA_OK)
		status = epochs_run(&c, ready, unit, control, hash, ret_error);
	if (status == OBK_RQA_OK && c.banded)
		obk_rqa_bands_end(&c.bands);
	for (unsigned t = 0; t < ready; t++)
		obk_rqa_scratch_fini(&c.scratch[t]);
	obk_rqa_bands_fini(&c.bands);
	sieves_fini(&c);
	free(c.scratch);
	return status;
}
