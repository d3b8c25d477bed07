/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "base/opt.h"
#include "compute/rqa/count.h"

#define UNIT_CELLS     (1u << 18) /* cells of one unit of work, unless a single line is longer */
#define BAND_CELLS     (1u << 26) /* cells in a band, as far as its width allows */
/* fewest diagonals in a band: starting and ending one costs about as much as 64 diagonals */
#define BAND_LEAST     1024u
#define BAND_MOST      32768u
/* a band has at most this fraction (1/8) of the diagonals, so that all threads have work */
#define BAND_SHARE     8u
#define COLUMNS_BITS   (1u << 25) /* cells of columns counted together, but at least 32 columns */
/* units that a thread processes between two checks of the clock */
#define EPOCH_UNITS    64u
#define EPOCH_BANDS    4u
#define STATE_PERIOD_S 30.0

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

static void flush(struct obk_rqa_counting *c, unsigned threads)
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

/*
 * The number of diagonals in a band. It must not depend on the number of threads, because the file
 * of a run counts in bands.
 */
static uint64_t band_width(uint64_t n)
{
	uint64_t width = BAND_CELLS / n, share = n / BAND_SHARE;

	width = width < BAND_LEAST ? BAND_LEAST : width > BAND_MOST ? BAND_MOST : width;
	width = width > share ? share : width;
	return (width / OBK_RQA_LANES + 1) * OBK_RQA_LANES;
}

static void plan(struct obk_rqa_counting *c)
{
	const struct obk_rqa_matrix *matrix = c->matrix;
	uint64_t longest = matrix->n1 > matrix->n2 ? matrix->n1 : matrix->n2;

	c->diagonals = matrix->symmetric ? matrix->n1 : matrix->n1 + matrix->n2 - 1;
	c->banded = obk_rqa_banded(matrix, c->options);
	c->columns = !c->banded &&
			c->options->want &
				(OBK_RQA_WANT_VERTICAL | OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES)
		? matrix->n2
		: 0;
	c->diagonals_unit = c->banded
		? band_width(longest)
		: (UNIT_CELLS / longest + OBK_RQA_LANES) / OBK_RQA_LANES * OBK_RQA_LANES;
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
	return strips && options->want & OBK_RQA_WANT_VERTICAL &&
		!(options->want & (OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES)) &&
		ob_opt_on(OB_OPT_BANDS);
}

uint64_t obk_rqa_count_cells(
	const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options)
{
	uint64_t cells =
		matrix->symmetric ? matrix->n1 * (matrix->n1 + 1) / 2 : matrix->n1 * matrix->n2;

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

/*
 * Processes all units from `unit` on, one epoch at a time. Between two epochs every count is in
 * `counts`; at that point the run's file is written.
 */
static int epochs_run(struct obk_rqa_counting *c, unsigned threads, uint64_t unit,
	const struct obk_rqa_control *control, uint64_t hash, struct obk_rqa_error *ret_error)
{
	const char *path = control ? control->state_path : NULL;
	double period = path && control->state_period > 0 ? control->state_period : STATE_PERIOD_S,
	       saved = seconds();

	while (unit < c->units) {
		uint64_t last = path
			? unit + (uint64_t)threads * (c->banded ? EPOCH_BANDS : EPOCH_UNITS)
			: c->units;

		if (last > c->units)
			last = c->units;
		obk_rqa_each(c->watch, threads, unit, last, obk_rqa_count_unit, c);
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

/* The cells of units that an earlier run processed, for correct progress. */
static uint64_t cells_before(const struct obk_rqa_counting *c, uint64_t unit)
{
	uint64_t cells = 0,
		 diagonals = unit < c->diagonal_units ? unit * c->diagonals_unit : c->diagonals;

	if (c->matrix->symmetric) {
		cells = diagonals * c->matrix->n1 - diagonals * (diagonals ? diagonals - 1 : 0) / 2;
	} else {
		for (uint64_t d = 0; d < diagonals; d++) {
			uint64_t i = d < c->matrix->n1 - 1 ? c->matrix->n1 - 1 - d : 0,
				 j = d < c->matrix->n1 - 1 ? 0 : d - (c->matrix->n1 - 1);

			cells += c->matrix->n1 - i < c->matrix->n2 - j ? c->matrix->n1 - i
								       : c->matrix->n2 - j;
		}
	}
	if (unit > c->diagonal_units)
		cells += (unit - c->diagonal_units) * c->columns_unit * c->matrix->n1;
	return cells;
}

static void sieves_fini(struct obk_rqa_counting *c)
{
	for (unsigned p = 0; p < 2; p++)
		obk_rqa_sieve_fini(&c->sieve[p]);
}

static int sieves_init(struct obk_rqa_counting *c)
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

/* Allocates memory for the cells of columns if they are processed through a sieve. */
static bool columns_init(struct obk_rqa_counting *c, struct obk_rqa_scratch *scratch)
{
	if (!c->sifting || !c->columns)
		return true;
	if (!scratch->ring) { /* cross recurrence has no strips */
		uint64_t span = 0, channels = 1;

		for (uint32_t p = 0; p < c->matrix->plots; p++) {
			uint64_t own = (c->matrix->plot[p].m - 1) * c->matrix->plot[p].tau;

			span = own > span ? own : span;
			channels = c->matrix->plot[p].channels > channels
				? c->matrix->plot[p].channels
				: channels;
		}
		scratch->ring = aligned_alloc(64, (OBK_RQA_SIEVE_STRIP + span) * channels * 128);
	}
	scratch->columns =
		calloc(obk_rqa_columns_stride(c->matrix) * c->columns_unit * c->matrix->plots,
			sizeof *scratch->columns);
	if (scratch->ring && scratch->columns)
		return true;
	obk_rqa_scratch_fini(scratch);
	return false;
}

int obk_rqa_count(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options,
	const struct obk_rqa_ops *ops, struct obk_rqa_watch *watch, unsigned threads,
	struct obk_rqa_counts *counts, const struct obk_rqa_control *control, uint64_t hash,
	struct obk_rqa_error *ret_error)
{
	struct obk_rqa_counting c = {
		.matrix = matrix, .options = options, .ops = ops, .watch = watch, .counts = counts
	};
	uint64_t unit = 0;
	unsigned ready = 0;
	int status = OBK_RQA_OK;

	plan(&c);
	/*
	 * The file of a run counts in units and contains the open lines of bands if there are
	 * bands.
	 */
	hash = ob_hash_words(hash, &c.diagonals_unit, sizeof c.diagonals_unit);
	hash = ob_hash_words(hash, &(uint64_t){ c.banded }, sizeof(uint64_t));
	status = sieves_init(&c);
	if (status != OBK_RQA_OK)
		return obk_rqa_fail(ret_error, status, 0, 0, "no memory for the coarse series");
	if (threads > c.units)
		threads = (unsigned)c.units;
	c.scratch = calloc(threads, sizeof *c.scratch);
	while (c.scratch && ready < threads &&
		obk_rqa_scratch_init(&c.scratch[ready], matrix) == OBK_RQA_OK &&
		columns_init(&c, &c.scratch[ready]))
		ready++;
	while (ready && c.banded &&
		obk_rqa_bands_init(&c.bands, counts, c.diagonals_unit, ready) != OBK_RQA_OK)
		obk_rqa_scratch_fini(&c.scratch[--ready]);
	if (!ready) {
		sieves_fini(&c);
		free(c.scratch);
		return obk_rqa_fail(
			ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory for the work of one thread");
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
