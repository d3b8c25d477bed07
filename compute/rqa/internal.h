/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Declarations that the files of compute/rqa share: a prepared recurrence matrix (never stored as a
 * matrix), the integer counts taken from it, and the operations that have one implementation per
 * instruction set. A matrix is read-only once prepared. Many threads may walk it at once, each with
 * its own scratch.
 */
#ifndef OBK_RQA_INTERNAL_H
#define OBK_RQA_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "compute/rqa/rqa.h"

/*
 * elements behind every padded array that may be read: loads may go one word and the SIMD lanes of
 * a strip beyond the end
 */
#define OBK_RQA_PAD         192u
#define OBK_RQA_STRIP       256u /* positions that a strip processes before its window moves */
#define OBK_RQA_LANES       64u  /* most diagonals in a strip */
/* the same for 16-bit numbers; also the number of columns counted together */
#define OBK_RQA_SIEVE_STRIP 128u
#define OBK_RQA_SIEVE_PAD   512u /* numbers before and behind a coarse series that may be read */
/*
 * embeddings with a longer span are processed one diagonal at a time, because the window of a strip
 * would not fit into the cache
 */
#define OBK_RQA_SPAN        4096u
/* runs shorter than this are counted per thread, longer ones in the shared histogram */
#define OBK_RQA_SHORT       1024u
/* cells of a diagonal whose differences are kept in the cache together */
#define OBK_RQA_BLOCK       2048u
/*
 * a sweep of series shorter than this (in samples) counts all radii in one pass, with 32-bit
 * counters
 */
#define OBK_RQA_GROUP       65536u

/*
 * One side of a matrix: one plane of float or double per channel, each OBK_RQA_PAD elements longer
 * than the series.
 */
struct obk_rqa_planes {
	void *channel[OBK_RQA_MAX_CHANNELS];
	/* one bit per vector, set if it has no gaps; NULL: all are set. OBK_RQA_PAD bits longer */
	uint64_t *valid;
	uint64_t length; /* samples */
	uint64_t n;      /* vectors */
};

/* d(i, j) = norm of x_i - y_j. The cell (i, j) is recurrent if d <= limit; for L2, d is squared. */
struct obk_rqa_plot {
	struct obk_rqa_planes x, y; /* y.channel[] == x.channel[] for auto recurrence */
	uint32_t channels, m;
	uint64_t tau;
	int norm;
	bool f64, same; /* same: y is the same series as x */
	double limit;
	struct obk_rqa_rate rate; /* only if the radius is a rate */
};

struct obk_rqa_matrix {
	struct obk_rqa_plot plot[2]; /* plot[1] is used for joint recurrence only */
	uint32_t plots;
	uint64_t n1, n2; /* vectors along i and j */
	bool symmetric;
	double radius;
};

/* A dense histogram of run lengths 0..length. */
struct obk_rqa_hist {
	_Atomic uint64_t *count;
	uint64_t length;
};

enum { OBK_RQA_INNER, OBK_RQA_SEMI, OBK_RQA_FULL, OBK_RQA_TOUCH };

struct obk_rqa_counts {
	uint64_t n1, n2;
	bool symmetric;
	struct obk_rqa_hist diagonal[OBK_RQA_TOUCH]; /* symmetric: one triangle, without the LOI */
	/* symmetric only; gaps may split the LOI, and loi_border counts the pieces at its ends */
	struct obk_rqa_hist loi, loi_border;
	struct obk_rqa_hist vertical, white, white_border, start, middle;
	struct obk_rqa_hist profile;
	/*
	 * symmetric only, used while bands are counted: for each row and column its first run and
	 * its open run; not a histogram
	 */
	struct obk_rqa_hist line;
	/* cross: cells of the diagonals +k and -k within the largest square, for TREND */
	struct obk_rqa_hist square;
	uint64_t points; /* outside theiler_rr; symmetric: one triangle without the LOI */
	uint64_t loi_points;
	uint64_t t1_sum, t1_count;
	/* length of the run that is open at the end of the last column, 0: none */
	uint64_t open_last;
	bool has_network;
	double transitivity[2], clustering;
};

/* Counts of short runs of one thread, added to the shared histograms at the end. */
struct obk_rqa_short {
	uint64_t count[OBK_RQA_SHORT];
};

struct obk_rqa_scratch {
	void *gaps;      /* block + span elements per channel */
	uint64_t stride; /* elements of gaps per channel */
	uint64_t block;
	uint64_t *words, *words_b, *words_c;
	/*
	 * window of a strip: (OBK_RQA_STRIP + span) positions of all SIMD lanes, per channel; NULL:
	 * the span is too long
	 */
	void *ring;
	/* bits of a strip for each plot: OBK_RQA_LANES diagonals of strip_words words */
	uint64_t *strips;
	uint64_t strip_words;
	uint64_t *columns; /* cells of up to OBK_RQA_SIEVE_STRIP columns; NULL: no sieve */
	/* cells that a sieve left undecided, and all cells that it processed */
	uint64_t open, sifted;
	struct obk_rqa_short inner, vertical, white, start, middle;
	uint64_t points, loi_points, t1_sum, t1_count;
};

#define OBK_RQA_HEAD 0xffffu /* value of start[] for a run that began before the band */

/*
 * Runs along rows and columns within a band of at most OBK_RQA_HEAD - 1 neighbouring diagonals.
 * Lines 0 .. n - 1 are the rows of one triangle, lines n .. 2 n - 1 its columns. Positions on a
 * line are diagonals of the band. A run that lies inside the band is counted at once. For a run
 * that continues from the previous band, head[] is its length within this band; for a run that is
 * open at the end of the band, start[] is where it began.
 */
struct obk_rqa_band {
	uint16_t *start, *head;
	uint64_t *tail; /* one bit per row: its cell on the most recent diagonal */
	uint64_t lines; /* n */
	bool done;
};

/*
 * The lines of a strip of OBK_RQA_LANES diagonals k, k + 1 ...; the first of them has `cells`
 * cells.
 */
struct obk_rqa_walk {
	uint64_t k, cells;
	bool diagonals;
	struct obk_rqa_band *band; /* NULL: do not count along rows and columns */
	uint64_t lanes;            /* diagonals that count along rows and columns */
	uint32_t off;              /* index of diagonal k in the band */
	struct obk_rqa_short *inner, *vertical;
	struct obk_rqa_hist *kinds, *verticals;
	uint64_t points; /* recurrent cells on the diagonals; the walk adds to it */
	/* private to the walk */
	uint64_t touched, after;
	/*
	 * order of the bytes in a row: byte i has the SIMD lanes that byte (places >> 8 i) has in
	 * natural order
	 */
	uint64_t places;
	uint32_t last[OBK_RQA_LANES];
};

/*
 * A plot in 16-bit numbers. A cell whose coarse distance is at least 128 below `bound` is certainly
 * recurrent. For the `last` + 1 distances above that, the exact distance decides. Read-only once
 * prepared. on: false if the sieve would leave too many cells undecided; then the other fields are
 * not set.
 */
struct obk_rqa_sieve {
	const struct obk_rqa_plot *plot;
	/* OBK_RQA_SIEVE_PAD numbers may be read on both sides */
	int16_t *x[OBK_RQA_MAX_CHANNELS], *y[OBK_RQA_MAX_CHANNELS];
	unsigned shift; /* L2: how often a difference is doubled before it is squared */
	int16_t bound, last;
	bool on;
};

/*
 * Thresholds of one pass over many radii: limit[0] < limit[1] < ... look[] maps a scaled distance
 * to the first level that it may belong to.
 */
struct obk_rqa_levels {
	uint32_t count;
	bool f64;
	double *limit;
	float *limit_f32;
	uint32_t *look;
	uint32_t look_count;
	double look_scale, look_base;
};

/*
 * Changes that one pass over many radii makes: delta[level * stride + length], level 0..count (the
 * last level is never read).
 */
struct obk_rqa_delta {
	int32_t *count;
	uint64_t stride;
	uint64_t longest;
	uint32_t *stack_level;
	uint64_t *stack_start;
};

/*
 * The operations that have one implementation per instruction set. words: bit b of word w is cell
 * 64 * w + b; bits behind the last cell are 0.
 */
struct obk_rqa_ops {
	const char *name;
	unsigned lanes_f32, lanes_f64; /* diagonals of a strip */
	/*
	 * Computes the diagonals that start at (0, k), (0, k + 1) ... of a symmetric plot, the
	 * first with `cells` cells. Diagonal k + l is written to ret_words + l * stride.
	 */
	void (*strip)(const struct obk_rqa_plot *plot, struct obk_rqa_scratch *scratch, uint64_t k,
		uint64_t cells, uint64_t *ret_words, uint64_t stride);
	/*
	 * Counts lines along diagonals, rows and columns of a strip. Its OBK_RQA_LANES diagonals
	 * are at lines + l * stride; bits behind the end of a diagonal may have any value.
	 */
	void (*walk_lines)(struct obk_rqa_walk *walk, const uint64_t *lines, uint64_t stride);
	/*
	 * As strip and walk_lines, through a sieve; NULL if the instruction set has none. Returns
	 * the number of cells that were computed exactly.
	 */
	uint64_t (*sieve_walk)(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *scratch,
		struct obk_rqa_walk *walk);
	/* As strip, for OBK_RQA_LANES diagonals through a sieve. */
	uint64_t (*sieve_strip)(const struct obk_rqa_sieve *sieve, struct obk_rqa_scratch *own,
		uint64_t k, uint64_t cells, uint64_t *words, uint64_t stride);
	/*
	 * 64 cells in each of `count` columns: bit l of ret[p * stride] is the cell (first + p + k
	 * + l, first + p). Cells outside the matrix have any value.
	 */
	uint64_t (*sieve_columns)(const struct obk_rqa_sieve *sieve,
		struct obk_rqa_scratch *scratch, int64_t k, uint64_t first, uint64_t count,
		uint64_t *ret, uint64_t stride);
	/* The diagonal that starts at (i, j) and has `cells` cells. */
	void (*diagonal)(const struct obk_rqa_plot *plot, struct obk_rqa_scratch *scratch,
		uint64_t i, uint64_t j, uint64_t cells, uint64_t *ret_words);
	/* The column j: cells (0, j) to (n1 - 1, j). */
	void (*column)(const struct obk_rqa_plot *plot, uint64_t j, uint64_t *ret_words);
	/*
	 * Counts the runs of a line of `cells` cells: inner runs in the short or the shared counts,
	 * runs that touch an end by kind. Returns the number of set bits.
	 */
	uint64_t (*runs)(const uint64_t *words, uint64_t cells, struct obk_rqa_short *inner,
		struct obk_rqa_hist *kinds);
	/* Differences along a diagonal for one channel: gap[p] for p = 0..count-1, in one plane. */
	void (*gaps)(const struct obk_rqa_plot *plot, uint32_t channel, uint64_t i, uint64_t j,
		uint64_t count, void *ret_gaps);
	/* into[p] = into[p] + gap[p], or the maximum of both, depending on the norm. */
	void (*join)(const struct obk_rqa_plot *plot, void *into, const void *gap, uint64_t count);
	/* Writes the distances along column j to n1 elements. */
	void (*column_distance)(const struct obk_rqa_plot *plot, uint64_t j, void *ret_distance);
	/*
	 * Extends the first n distances from an embedding with `lag` coordinates to one with lag +
	 * 1. The bits are the same as those of column_distance.
	 */
	void (*column_step)(const struct obk_rqa_plot *plot, uint64_t j, uint32_t lag, uint64_t n,
		void *distance);
	/* Counts a line of distances for all radii at once. */
	void (*levels)(const void *distance, uint64_t cells, const struct obk_rqa_levels *levels,
		struct obk_rqa_delta *delta);
	/* Writes the bits distance <= limit. */
	void (*compare)(
		const void *distance, uint64_t cells, bool f64, double limit, uint64_t *ret_words);
};

#define OBK_RQA_ISAS(X) X(c) X(avx2) X(avx512)
extern const struct obk_rqa_ops obk_rqa_ops_c, obk_rqa_ops_avx2, obk_rqa_ops_avx512;
/* NULL if this CPU or this build lacks the instruction set. */
const struct obk_rqa_ops *obk_rqa_ops_find(int isa);

/* 64 bits of a bit stream, starting at a bit position. 64 bits behind the stream may be read. */
static inline uint64_t obk_rqa_bits_at(const uint64_t *bits, uint64_t at)
{
	unsigned shift = at & 63;
	uint64_t low = bits[at >> 6] >> shift;

	return shift ? low | bits[(at >> 6) + 1] << (64 - shift) : low;
}

static inline void obk_rqa_hist_add(struct obk_rqa_hist *hist, uint64_t length, uint64_t count)
{
	/* Relaxed: only sums are read, after the threads have been joined. */
	atomic_fetch_add_explicit(&hist->count[length], count, memory_order_relaxed);
}

static inline uint64_t obk_rqa_hist_get(const struct obk_rqa_hist *hist, uint64_t length)
{
	return length <= hist->length && hist->count
		? atomic_load_explicit(&hist->count[length], memory_order_relaxed)
		: 0;
}

/* ---- errors ---- */
int obk_rqa_fail(struct obk_rqa_error *ret_error, int status, uint64_t item, uint64_t where,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* ---- control: cancellation, progress, threads ---- */
struct obk_rqa_watch;
typedef void obk_rqa_unit_fn(void *arg, unsigned thread, uint64_t unit);
/* Number of threads for a call, at least 1. */
unsigned obk_rqa_threads(const struct obk_rqa_control *control);
struct obk_rqa_watch *obk_rqa_watch_new(const struct obk_rqa_control *control);
void obk_rqa_watch_free(struct obk_rqa_watch *watch);
void obk_rqa_watch_total(struct obk_rqa_watch *watch, uint64_t cells, uint64_t rows);
/* Adds finished work, and calls `progress` if enough time has passed. True: stop. */
bool obk_rqa_watch_add(struct obk_rqa_watch *watch, uint64_t cells, uint64_t rows, uint64_t failed,
	uint64_t skipped);
bool obk_rqa_watch_stopped(struct obk_rqa_watch *watch);
/* Adds cells that an earlier run has processed. They count as done but not for the speed. */
void obk_rqa_watch_before(struct obk_rqa_watch *watch, uint64_t cells);
/*
 * Another attempt begins: this many of the reported cells will be processed again, perhaps at
 * another speed.
 */
void obk_rqa_watch_again(struct obk_rqa_watch *watch, uint64_t cells);
/* Stops the call because a callback returned non-zero. */
void obk_rqa_watch_stop(struct obk_rqa_watch *watch);
/* Makes the last progress report. */
void obk_rqa_watch_end(struct obk_rqa_watch *watch);
/*
 * Calls fn for first <= unit < last on `threads` threads; units start in order. Ends early if the
 * watch is stopped.
 */
void obk_rqa_each(struct obk_rqa_watch *watch, unsigned threads, uint64_t first, uint64_t last,
	obk_rqa_unit_fn *fn, void *arg);

/* Checks that this machine has what the control asks for, and returns the operations to use. */
int obk_rqa_control_check(const struct obk_rqa_control *control, const struct obk_rqa_ops **ret_ops,
	struct obk_rqa_error *ret_error);

/* ---- preparation ---- */
int obk_rqa_series_check(const struct obk_rqa_series *series, uint64_t item,
	const struct obk_rqa_options *options, struct obk_rqa_error *ret_error);
/* Prepares everything except the radius. */
int obk_rqa_matrix_init(struct obk_rqa_matrix *matrix, const struct obk_rqa_series *x,
	const struct obk_rqa_series *y, const struct obk_rqa_options *options,
	struct obk_rqa_error *ret_error);
/* Sets radius and limits from the options; may walk the whole matrix. */
int obk_rqa_matrix_radius(struct obk_rqa_matrix *matrix, const struct obk_rqa_series *x,
	const struct obk_rqa_series *y, const struct obk_rqa_options *options,
	const struct obk_rqa_ops *ops, struct obk_rqa_watch *watch,
	struct obk_rqa_error *ret_error);
void obk_rqa_matrix_fini(struct obk_rqa_matrix *matrix);
/*
 * Prepares one side. `channels` lists the channels to use. Scaling and the handling of NaN follow
 * the options.
 */
int obk_rqa_planes_init(struct obk_rqa_planes *planes, const struct obk_rqa_series *series,
	uint64_t length, const uint32_t *channels, uint32_t channel_count,
	const struct obk_rqa_options *options, bool f64, struct obk_rqa_error *ret_error,
	uint64_t item);
void obk_rqa_planes_fini(struct obk_rqa_planes *planes);
/* Computes the bits of vectors without gaps from the bits of samples without gaps. */
int obk_rqa_planes_embed(struct obk_rqa_planes *planes, uint32_t m, uint64_t tau);
/*
 * The largest d (d squared for L2) that is recurrent, so that a single comparison implements norm,
 * radius and test. An infinite radius includes every finite distance.
 */
double obk_rqa_limit(int norm, int test, bool f64, double radius);
int obk_rqa_norm_of(int norm, uint32_t channels);
double obk_rqa_spread(
	const struct obk_rqa_series *series, const uint32_t *channels, uint32_t channel_count);
bool obk_rqa_use_f64(const struct obk_rqa_options *options, uint64_t length);

/* ---- the sieve ---- */
int obk_rqa_sieve_init(struct obk_rqa_sieve *sieve, const struct obk_rqa_plot *plot);
void obk_rqa_sieve_fini(struct obk_rqa_sieve *sieve);

/* ---- counting ---- */
int obk_rqa_scratch_init(struct obk_rqa_scratch *scratch, const struct obk_rqa_matrix *matrix);
void obk_rqa_scratch_fini(struct obk_rqa_scratch *scratch);
int obk_rqa_counts_init(
	struct obk_rqa_counts *counts, const struct obk_rqa_matrix *matrix, uint32_t want);
void obk_rqa_counts_fini(struct obk_rqa_counts *counts);
int obk_rqa_count(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options,
	const struct obk_rqa_ops *ops, struct obk_rqa_watch *watch, unsigned threads,
	struct obk_rqa_counts *counts, const struct obk_rqa_control *control, uint64_t hash,
	struct obk_rqa_error *ret_error);
/*
 * Whether vertical lines are counted during the walk of the diagonals. That walk has n (n + 1) / 2
 * cells, whatever obk_rqa_count_cells returns.
 */
bool obk_rqa_banded(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options);
uint64_t obk_rqa_count_cells(
	const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options);
int obk_rqa_network(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options,
	const struct obk_rqa_ops *ops, struct obk_rqa_watch *watch, unsigned threads,
	struct obk_rqa_counts *counts);
/* As obk_rqa_column_bits, for a diagonal of the matrix. */
void obk_rqa_diagonal_bits(const struct obk_rqa_matrix *matrix, const struct obk_rqa_ops *ops,
	struct obk_rqa_scratch *scratch, uint64_t i, uint64_t j, uint64_t cells,
	uint64_t *ret_words);
/* Column j of the matrix as bits, with all plots and gaps; uses words_b of the scratch. */
void obk_rqa_column_bits(const struct obk_rqa_matrix *matrix, const struct obk_rqa_ops *ops,
	struct obk_rqa_scratch *scratch, uint64_t j, uint64_t *ret_words);
/* Clears the cells (i, j) with |i - j| < width of column j. */
void obk_rqa_column_mask(uint64_t *words, uint64_t n1, uint64_t j, uint64_t width);

/* ---- a run's file ---- */
int obk_rqa_state_load(const char *path, uint64_t hash, struct obk_rqa_counts *counts,
	uint64_t *ret_unit, struct obk_rqa_error *ret_error);
int obk_rqa_state_save(const char *path, uint64_t hash, const struct obk_rqa_counts *counts,
	uint64_t unit, struct obk_rqa_error *ret_error);

/*
 * As obk_rqa_state_save and obk_rqa_state_load, for a run on a device, whose state has `size`
 * bytes; *ret_unit 0: there is no file.
 */
int obk_rqa_blob_save(const char *path, uint64_t hash, uint64_t unit, const void *bytes,
	size_t size, struct obk_rqa_error *ret_error);
int obk_rqa_blob_load(const char *path, uint64_t hash, uint64_t *ret_unit, void *ret_bytes,
	size_t size, struct obk_rqa_error *ret_error);

/* ---- measures ---- */
struct obk_rqa_sums {
	uint64_t lines, points; /* of lines with at least the minimum length */
	uint64_t bins, longest;
	/*
	 * sum of P ln P in extended precision, because the entropy is a small difference of large
	 * numbers
	 */
	long double weighted;
};
/* P ln P. */
long double obk_rqa_plogp(uint64_t count);
double obk_rqa_entropy(
	const struct obk_rqa_sums *sums, uint64_t n, const struct obk_rqa_options *options);
/*
 * Computes the measures of diagonal lines from sums over lengths >= lmin and >= 1. Single runs and
 * sweeps share it, so that they agree to the last bit.
 */
void obk_rqa_measure_lines(const struct obk_rqa_options *options, uint64_t n,
	const struct obk_rqa_sums *from_min, const struct obk_rqa_sums *all, uint64_t longest,
	uint64_t points, double rr_cells, double *ret_values);
void obk_rqa_measure_vertical(const struct obk_rqa_options *options, uint64_t n,
	const struct obk_rqa_sums *from_min, const struct obk_rqa_sums *all, uint64_t points,
	double *ret_values);
double obk_rqa_cells(
	uint64_t n1, uint64_t n2, bool symmetric, const struct obk_rqa_options *options);
int obk_rqa_counts_measures(const struct obk_rqa_counts *counts,
	const struct obk_rqa_options *options, double radius, double *ret_values);

#endif
