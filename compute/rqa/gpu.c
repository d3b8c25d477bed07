/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counts one matrix on a device, one band of rows after the other; kernel.cu describes the method.
 */
#include "compute/rqa/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/opt.h"
#include "compute/rqa/gpu_args.h"

/* bytes of cells: enough to keep a device busy, few enough to stay in or near its cache */
#define BAND_BYTES     (64u << 20)
#define BAND_LEAST     8u     /* fewest slabs in a band, to justify its launches */
#define BAND_MOST      32768u /* most slabs in a band: a grid has at most 65,535 rows */
/* bytes of pieces of lines, for a matrix that is processed in tiles */
#define PIECES_BYTES   (128u << 20)
/* fewest blocks per multiprocessor before a block gets more than one tile */
#define BLOCKS         4u
/*
 * initial number of cells per multiprocessor between two checks for cancellation and progress;
 * later as many as take about BURST_NS
 */
#define BURST_LEAST    (1ull << 24)
#define BURST_MOST     (1ull << 42)
#define BURST_NS       (OB_SECOND / 20)
#define STATE_PERIOD_S 30.0

#define SIDES 4 /* x and y of two plots */
#define HISTS 12u

struct work {
	struct obk_rqa_gpu_use use;
	struct obk_gpu *gpu;
	CUstream stream;
	const struct obk_rqa_matrix *matrix;
	struct obk_gpu_buffer planes[SIDES], valid[SIDES], near_planes[2], counters, states, words;
	struct obk_rqa_gpu_args args;
	struct obk_rqa_hist *hists[HISTS];
	/* addresses of the members of args that hold the histograms' addresses */
	uint64_t *at[HISTS];
	unsigned hist_count;
	uint64_t counter_words; /* of all histograms and sums */
	uint64_t rows;          /* rows in a step: a slab or a row of tiles */
	/* number of steps of the matrix; capacity of a band in 32-bit numbers */
	uint64_t steps, room;
	uint64_t state_bytes, told; /* told: cells reported to the watch */
	/* cells; 1: check after each band, because the caller set its size */
	uint64_t burst;
	bool columns, tiles, near;
	struct obk_fault *fault;
};

static enum ob_err side_write(struct work *w, unsigned side, const struct obk_rqa_planes *planes,
	uint32_t channels, bool f64, uint64_t *ret_at, uint64_t *ret_valid, uint64_t *ret_stride)
{
	size_t size = f64 ? sizeof(double) : sizeof(float),
	       stride = OBK_RQA_GPU_BEFORE + planes->length + OBK_RQA_GPU_BEHIND;
	enum ob_err err =
		obk_gpu_take(w->gpu, stride * size * channels, &w->planes[side], w->fault);

	if (err == OB_ERR_NONE)
		err = obk_gpu_zero(
			w->gpu, w->stream, w->planes[side].at, stride * size * channels, w->fault);
	for (uint32_t c = 0; c < channels && err == OB_ERR_NONE; c++)
		err = obk_gpu_write(w->gpu, w->stream,
			w->planes[side].at + (c * stride + OBK_RQA_GPU_BEFORE) * size,
			planes->channel[c], planes->length * size, w->fault);
	*ret_at = w->planes[side].at + OBK_RQA_GPU_BEFORE * size;
	*ret_stride = stride;
	*ret_valid = 0;
	if (err != OB_ERR_NONE || !planes->valid)
		return err;
	err = obk_gpu_take(w->gpu, (planes->n / 64 + 1) * 8, &w->valid[side], w->fault);
	if (err == OB_ERR_NONE)
		err = obk_gpu_write(w->gpu, w->stream, w->valid[side].at, planes->valid,
			(planes->n / 64 + 1) * 8, w->fault);
	*ret_valid = w->valid[side].at;
	return err;
}

/*
 * Uploads the data of the approximate test. If the test is not useful, or there is no memory, frees
 * w->near: then everything is computed exactly.
 */
static enum ob_err near_write(struct work *w, uint32_t p)
{
	const struct obk_rqa_plot *plot = &w->matrix->plot[p];
	struct obk_rqa_gpu_plot *to = &w->args.plot[p];
	uint64_t stride = plot->x.length + OBK_RQA_GPU_BEHIND,
		 count = (plot->channels + 1) * stride;
	float *planes = calloc(count, sizeof *planes);
	enum ob_err err = OB_ERR_NONE;

	w->near = planes && obk_rqa_gpu_near(plot, planes, stride, &to->slack);
	if (w->near) {
		err = obk_gpu_take(w->gpu, count * sizeof *planes, &w->near_planes[p], w->fault);
		w->near = err != OB_ERR_NO_MEMORY;
		err = w->near ? err : OB_ERR_NONE;
		if (w->near && err == OB_ERR_NONE)
			err = obk_gpu_write(w->gpu, w->stream, w->near_planes[p].at, planes,
				count * sizeof *planes, w->fault);
		to->near = w->near_planes[p].at;
		to->near_stride = stride;
	}
	free(planes);
	return err;
}

static enum ob_err plots_write(struct work *w)
{
	enum ob_err err = OB_ERR_NONE;

	for (uint32_t p = 0; p < w->matrix->plots && err == OB_ERR_NONE; p++) {
		const struct obk_rqa_plot *plot = &w->matrix->plot[p];
		struct obk_rqa_gpu_plot *to = &w->args.plot[p];

		*to = (struct obk_rqa_gpu_plot){ .tau = plot->tau,
			.limit = plot->limit,
			.channels = plot->channels,
			.m = plot->m,
			.norm = plot->norm == OBK_RQA_NORM_L1   ? 0
				: plot->norm == OBK_RQA_NORM_L2 ? 1
								: 2 };
		err = side_write(w, 2 * p, &plot->x, plot->channels, plot->f64, &to->x,
			&to->x_valid, &to->x_stride);
		to->y = to->x;
		to->y_valid = to->x_valid;
		to->y_stride = to->x_stride;
		if (!plot->same && err == OB_ERR_NONE)
			err = side_write(w, 2 * p + 1, &plot->y, plot->channels, plot->f64, &to->y,
				&to->y_valid, &to->y_stride);
		w->near = w->near && plot->norm == OBK_RQA_NORM_L2;
		if (w->near && err == OB_ERR_NONE)
			err = near_write(w, p);
	}
	return err;
}

static void hist_plan(struct work *w, struct obk_rqa_hist *hist, uint64_t *at)
{
	if (!hist->count)
		return;
	w->hists[w->hist_count] = hist;
	w->at[w->hist_count++] = at;
	w->counter_words += hist->length + 1;
}

static enum ob_err counters_take(struct work *w, struct obk_rqa_counts *counts)
{
	struct obk_rqa_gpu_args *a = &w->args;
	enum ob_err err;
	uint64_t at;

	for (unsigned kind = 0; kind < OBK_RQA_TOUCH; kind++)
		hist_plan(w, &counts->diagonal[kind], &a->kinds[kind]);
	hist_plan(w, &counts->loi, &a->loi);
	hist_plan(w, &counts->loi_border, &a->loi_border);
	hist_plan(w, &counts->profile, &a->profile);
	hist_plan(w, &counts->square, &a->square);
	hist_plan(w, &counts->vertical, &a->vertical);
	hist_plan(w, &counts->white, &a->white);
	hist_plan(w, &counts->white_border, &a->white_border);
	hist_plan(w, &counts->start, &a->start);
	hist_plan(w, &counts->middle, &a->middle);
	w->counter_words += OBK_RQA_GPU_SUMS;
	err = obk_gpu_take(w->gpu, w->counter_words * 8, &w->counters, w->fault);
	if (err == OB_ERR_NONE)
		err = obk_gpu_zero(
			w->gpu, w->stream, w->counters.at, w->counter_words * 8, w->fault);
	at = w->counters.at;
	for (unsigned h = 0; h < w->hist_count; h++) {
		*w->at[h] = at;
		at += (w->hists[h]->length + 1) * 8;
	}
	a->sums = at;
	return err;
}

/*
 * The 32-bit numbers that a step needs in a band that begins with step `first`; also sets their
 * layout.
 */
static uint64_t step_room(struct work *w, uint64_t first)
{
	struct obk_rqa_gpu_args *a = &w->args;
	uint64_t tiles = w->steps - first;

	if (!w->tiles) {
		a->stride = (a->n2 + OBK_RQA_GPU_SLAB + OBK_RQA_GPU_BLOCK - 1) / OBK_RQA_GPU_BLOCK *
			OBK_RQA_GPU_BLOCK;
	} else {
		a->tiles = (uint32_t)tiles;
		a->stride = (w->columns ? 3 * tiles + (tiles + a->strip - 1) / a->strip : tiles) *
			OBK_RQA_GPU_TILE;
	}
	return a->stride;
}

/*
 * Cells of the steps before this one, as progress counts them. For tiles, which cover one triangle
 * only, the number is scaled to the same total.
 */
static uint64_t cells_before(const struct work *w, uint64_t step)
{
	uint64_t n1 = w->args.n1, n2 = w->args.n2, i = step * w->rows < n1 ? step * w->rows : n1,
		 triangle = i * n1 - i * (i ? i - 1 : 0) / 2;

	if (w->tiles)
		return w->columns ? 2 * triangle + triangle - i : triangle;
	return (w->args.symmetric ? triangle : i * n2) + (w->columns ? i * n2 : 0);
}

/*
 * The end of a band that begins with step `first`, limited by memory and by the length of a burst.
 */
static uint64_t band_end(struct work *w, uint64_t first)
{
	uint64_t fit = w->room / step_room(w, first), left = w->steps - first;

	fit = fit > BAND_MOST ? BAND_MOST : fit;
	fit = fit < left ? fit : left;
	while (w->burst > 1 && fit > 1 &&
		cells_before(w, first + fit) - cells_before(w, first) > w->burst)
		fit = (fit + 1) / 2;
	return first + fit;
}

/* Allocates zeroed states for the lines that are open between two bands, and memory for a band. */
static enum ob_err band_take(struct work *w, const struct obk_rqa_control *control)
{
	struct obk_rqa_gpu_args *a = &w->args;
	uint64_t planes = !w->columns ? 0
		: a->start            ? OBK_RQA_GPU_COLUMN_STATES
		: a->white            ? OBK_RQA_GPU_COLUMN_BASIC
				      : 1,
		 least, strip;
	bool asked = control && control->gpu_band;
	enum ob_err err;

	w->rows = w->tiles ? OBK_RQA_GPU_TILE : OBK_RQA_GPU_SLAB;
	w->steps = (a->n1 + w->rows - 1) / w->rows;
	strip = w->steps * (w->steps + 1) / 2 / (BLOCKS * obk_gpu_info(w->gpu)->processors + 1);
	a->strip = strip < 1 ? 1 : strip < OBK_RQA_GPU_STRIP ? (uint32_t)strip : OBK_RQA_GPU_STRIP;
	w->state_bytes = (a->n1 + a->n2 + planes * a->n2) * 4;
	w->room = (asked ? control->gpu_band : w->tiles ? PIECES_BYTES : BAND_BYTES) / 4;
	least = step_room(w, 0) * (asked || w->tiles ? 1 : BAND_LEAST);
	if (w->room < least)
		w->room = least;
	if (w->room > w->steps * a->stride)
		w->room = w->steps * a->stride;
	err = obk_gpu_take(w->gpu, w->state_bytes, &w->states, w->fault);
	if (err == OB_ERR_NONE)
		err = obk_gpu_zero(w->gpu, w->stream, w->states.at, w->state_bytes, w->fault);
	if (err == OB_ERR_NONE)
		err = obk_gpu_take(w->gpu, w->room * 4, &w->words, w->fault);
	a->diagonal_state = w->states.at;
	a->column_state = a->diagonal_state + (a->n1 + a->n2) * 4;
	a->words = w->words.at;
	return err;
}

static enum ob_err counters_read(struct work *w, struct obk_rqa_counts *counts)
{
	uint64_t *words = malloc(w->counter_words * 8), *at = words;
	enum ob_err err;

	if (!words)
		return obk_fault_set(w->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for the counters");
	err = obk_gpu_read(
		w->gpu, w->stream, words, w->counters.at, w->counter_words * 8, w->fault);
	for (unsigned h = 0; h < w->hist_count && err == OB_ERR_NONE; h++)
		for (uint64_t l = 0; l <= w->hists[h]->length; l++, at++)
			if (*at)
				obk_rqa_hist_add(w->hists[h], l, *at);
	if (err == OB_ERR_NONE) {
		counts->points += at[OBK_RQA_GPU_POINTS];
		counts->loi_points += at[OBK_RQA_GPU_LOI];
		counts->t1_sum += at[OBK_RQA_GPU_T1_SUM];
		counts->t1_count += at[OBK_RQA_GPU_T1_COUNT];
		counts->open_last = at[OBK_RQA_GPU_OPEN];
	}
	free(words);
	return err;
}

/* ---- bands ---- */

static enum ob_err launch(struct work *w, unsigned kernel, uint64_t blocks, uint64_t blocks_y,
	unsigned threads, void **args)
{
	return obk_gpu_launch(w->gpu, w->stream, w->use.functions[kernel], (unsigned)blocks,
		(unsigned)blocks_y, threads, 0, args, w->fault);
}

static uint64_t blocks_for(uint64_t threads)
{
	return (threads + OBK_RQA_GPU_BLOCK - 1) / OBK_RQA_GPU_BLOCK;
}

/* Queues the slabs first .. last - 1. */
static enum ob_err slabs_run(struct work *w, uint64_t first, uint64_t last)
{
	struct obk_rqa_gpu_args *a = &w->args;
	uint64_t i0 = first * OBK_RQA_GPU_SLAB,
		 i1 = last * OBK_RQA_GPU_SLAB < a->n1 ? last * OBK_RQA_GPU_SLAB : a->n1;
	uint64_t from = a->symmetric ? 0 : a->n1 - i1,
		 to = a->symmetric ? a->n1 - i0 : a->n1 - 1 + a->n2 - i0;
	enum ob_err err = OB_ERR_NONE;

	for (uint32_t p = 0; p < a->plots && err == OB_ERR_NONE; p++)
		err = launch(w,
			OBK_RQA_KERNEL_BITS + a->plot[p].norm + (w->matrix->plot[p].f64 ? 3 : 0),
			a->stride / OBK_RQA_GPU_BLOCK, last - first, OBK_RQA_GPU_BLOCK,
			(void *[]){ a, &p, &first });
	if (err == OB_ERR_NONE)
		err = launch(w, OBK_RQA_KERNEL_DIAGONALS, blocks_for(to - from), 1,
			OBK_RQA_GPU_BLOCK, (void *[]){ a, &first, &last, &from, &to });
	if (err == OB_ERR_NONE && w->columns)
		err = launch(w, OBK_RQA_KERNEL_COLUMNS, blocks_for(a->n2), 1, OBK_RQA_GPU_BLOCK,
			(void *[]){ a, &first, &last });
	return err;
}

/* Queues the rows of tiles first .. last - 1. */
static enum ob_err tiles_run(struct work *w, uint64_t first, uint64_t last)
{
	struct obk_rqa_gpu_args *a = &w->args;
	unsigned kernel =
		OBK_RQA_KERNEL_TILES + (w->matrix->plot[0].f64 ? 1 : 0) + (w->near ? 2 : 0);
	enum ob_err err = launch(w, kernel, (a->tiles + a->strip - 1) / a->strip, last - first,
		OBK_RQA_GPU_TILE, (void *[]){ a, &first });

	return err == OB_ERR_NONE
		? launch(w, OBK_RQA_KERNEL_JOIN, blocks_for(a->n1 - first * OBK_RQA_GPU_TILE),
			  w->columns ? 2 : 1, OBK_RQA_GPU_BLOCK, (void *[]){ a, &first, &last })
		: err;
}

/* Saves or loads the step of a run and its state on the device. */
static int state_move(struct work *w, bool save, const char *path, uint64_t hash, uint64_t *step,
	struct obk_rqa_error *ret_error)
{
	size_t size = w->counter_words * 8 + w->state_bytes;
	unsigned char *bytes = malloc(size);
	enum ob_err err = OB_ERR_NONE;
	int status = OBK_RQA_OK;

	if (!bytes)
		return obk_rqa_fail(
			ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory for what %s keeps", path);
	if (save) {
		err = obk_gpu_read(
			w->gpu, w->stream, bytes, w->counters.at, w->counter_words * 8, w->fault);
		if (err == OB_ERR_NONE)
			err = obk_gpu_read(w->gpu, w->stream, bytes + w->counter_words * 8,
				w->states.at, w->state_bytes, w->fault);
		if (err == OB_ERR_NONE)
			status = obk_rqa_blob_save(path, hash, *step, bytes, size, ret_error);
	} else {
		status = obk_rqa_blob_load(path, hash, step, bytes, size, ret_error);
		if (status == OBK_RQA_OK && *step) {
			err = obk_gpu_write(w->gpu, w->stream, w->counters.at, bytes,
				w->counter_words * 8, w->fault);
			if (err == OB_ERR_NONE)
				err = obk_gpu_write(w->gpu, w->stream, w->states.at,
					bytes + w->counter_words * 8, w->state_bytes, w->fault);
			if (err == OB_ERR_NONE)
				err = obk_gpu_wait(w->gpu, w->stream, w->fault);
		}
	}
	free(bytes);
	return err == OB_ERR_NONE ? status : obk_rqa_gpu_fail(ret_error, err, w->fault);
}

/* Processes all bands. As many are queued at a time as take about BURST_NS. */
static int bands_run(struct work *w, struct obk_rqa_watch *watch,
	const struct obk_rqa_control *control, uint64_t hash, struct obk_rqa_error *ret_error)
{
	const char *path = control ? control->state_path : NULL;
	double period = path && control->state_period > 0 ? control->state_period : STATE_PERIOD_S;
	uint64_t step = 0, saved = ob_clock_ns(), queued = 0, begun = saved;
	enum ob_err err = OB_ERR_NONE;
	int status = OBK_RQA_OK;
	bool stop;

	w->burst =
		control && control->gpu_band ? 1 : BURST_LEAST * obk_gpu_info(w->gpu)->processors;
	hash ^= w->counter_words << 1 | w->tiles;
	if (path)
		status = state_move(w, false, path, hash, &step, ret_error);
	if (status != OBK_RQA_OK)
		return status;
	w->told = cells_before(w, step);
	if (w->told)
		obk_rqa_watch_before(watch, w->told);
	while (step < w->steps) {
		uint64_t last = band_end(w, step), now, took;

		err = w->tiles ? tiles_run(w, step, last) : slabs_run(w, step, last);
		if (err != OB_ERR_NONE)
			return obk_rqa_gpu_fail(ret_error, err, w->fault);
		queued += cells_before(w, last) - cells_before(w, step);
		step = last;
		if (queued < w->burst && step < w->steps)
			continue;
		err = obk_gpu_wait(w->gpu, w->stream, w->fault);
		if (err != OB_ERR_NONE)
			return obk_rqa_gpu_fail(ret_error, err, w->fault);
		took = ob_clock_ns() - begun;
		if (took < BURST_NS / 2 && w->burst > 1 && w->burst < BURST_MOST)
			w->burst *= 2;
		else if (took > 2 * BURST_NS && w->burst > 2)
			w->burst /= 2;
		queued = 0;
		now = cells_before(w, step);
		stop = obk_rqa_watch_add(watch, now - w->told, 0, 0, 0) && step < w->steps;
		w->told = now;
		begun = ob_clock_ns();
		if (path && step < w->steps && (stop || (double)(begun - saved) >= period * 1e9)) {
			status = state_move(w, true, path, hash, &step, ret_error);
			if (status != OBK_RQA_OK)
				return status;
			saved = begun = ob_clock_ns();
		}
		if (stop)
			return obk_rqa_fail(ret_error, OBK_RQA_CANCELLED, 0, 0, "cancelled");
	}
	return OBK_RQA_OK;
}

static int work_run(struct work *w, const struct obk_rqa_options *o, struct obk_rqa_watch *watch,
	const struct obk_rqa_control *control, uint64_t hash, struct obk_rqa_counts *counts,
	struct obk_rqa_error *ret_error)
{
	struct obk_rqa_gpu_args *a = &w->args;
	enum ob_err err = obk_gpu_stream_take(w->gpu, &w->stream, w->fault);
	int status = OBK_RQA_OK;

	w->columns = o->want & (OBK_RQA_WANT_VERTICAL | OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES);
	w->tiles = w->matrix->symmetric && !(o->want & (OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES)) &&
		ob_opt_on(OB_OPT_BANDS);
	w->near = w->tiles && ob_opt_on(OB_OPT_SIEVE);
	a->n1 = w->matrix->n1;
	a->n2 = w->matrix->n2;
	a->symmetric = w->matrix->symmetric;
	a->triangle = w->matrix->symmetric ? 0 : o->triangle;
	a->theiler_rr = o->theiler_rr;
	a->theiler_diag = o->theiler_diag;
	a->theiler_vert = o->theiler_vert;
	a->theiler_white = o->theiler_white;
	a->plots = w->matrix->plots;
	a->square_length = counts->square.count ? counts->square.length : 0;
	if (err == OB_ERR_NONE)
		err = plots_write(w);
	if (err == OB_ERR_NONE)
		err = counters_take(w, counts);
	if (err == OB_ERR_NONE)
		err = band_take(w, control);
	if (err == OB_ERR_NONE)
		status = bands_run(w, watch, control, hash, ret_error);
	if (err == OB_ERR_NONE && status == OBK_RQA_OK)
		err = counters_read(w, counts);
	if ((err != OB_ERR_NONE || status != OBK_RQA_OK) && w->stream && !obk_gpu_lost(w->gpu))
		/* no work may be pending on buffers that are given back */
		obk_gpu_wait(w->gpu, w->stream, &(struct obk_fault){ 0 });
	for (unsigned s = 0; s < SIDES; s++) {
		obk_gpu_give(w->gpu, &w->planes[s]);
		obk_gpu_give(w->gpu, &w->valid[s]);
	}
	obk_gpu_give(w->gpu, &w->near_planes[0]);
	obk_gpu_give(w->gpu, &w->near_planes[1]);
	obk_gpu_give(w->gpu, &w->counters);
	obk_gpu_give(w->gpu, &w->states);
	obk_gpu_give(w->gpu, &w->words);
	if (w->stream)
		obk_gpu_stream_give(w->gpu, w->stream);
	if (err != OB_ERR_NONE)
		status = obk_rqa_gpu_fail(ret_error, err, w->fault);
	if (status != OBK_RQA_OK && status != OBK_RQA_CANCELLED)
		obk_rqa_watch_again(watch, w->told);
	return status;
}

int obk_rqa_gpu_count(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options,
	struct obk_rqa_watch *watch, struct obk_rqa_counts *counts,
	const struct obk_rqa_control *control, uint64_t hash, char *ret_name, size_t size,
	struct obk_rqa_error *ret_error)
{
	struct obk_fault fault = { .text = "" };
	struct work work = { .matrix = matrix, .fault = &fault };
	int status = obk_rqa_gpu_begin(control, &work.use, ret_error);

	if (status != OBK_RQA_OK)
		return status;
	work.gpu = work.use.gpu;
	status = work_run(&work, options, watch, control, hash, counts, ret_error);
	snprintf(ret_name, size, "cuda %s", obk_gpu_info(work.gpu)->name);
	obk_rqa_gpu_end(&work.use);
	return status;
}
