/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "kernels/rqa/gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu/gpu.h"
#include "kernels/rqa/gpu_args.h"

#define LAUNCH_CELLS (1ull << 32) /* of one launch, so that it can be cancelled between two */
#define LAUNCH_LINES 4096u        /* but at least so many lines */

extern const unsigned char obk_rqa_image_start[], obk_rqa_image_end[];

enum { DIAGONALS, COLUMNS, KERNELS };
static const char *const kernel_names[KERNELS] = { "rqa_diagonals", "rqa_columns" };
static const struct obk_gpu_image image = { "recurrence", obk_rqa_image_start, obk_rqa_image_end, KERNELS, kernel_names };

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static struct obk_gpu *device; /* under the lock; closed when it is lost */

#define SIDES 4     /* x and y of two plots */
#define HISTS 12u

struct work {
	struct obk_gpu *gpu;
	CUstream stream;
	const CUfunction *functions;
	struct obk_gpu_buffer planes[SIDES], valid[SIDES], counters;
	struct obk_rqa_gpu_args args;
	struct obk_rqa_hist *hists[HISTS];
	uint64_t *at[HISTS]; /* the member of args that has each histogram's address */
	unsigned hist_count;
	uint64_t words; /* of all histograms and sums */
	struct obk_fault *fault;
};

static enum ob_err side_write(struct work *w, unsigned side, const struct obk_rqa_planes *planes, uint32_t channels, bool f64, uint64_t *ret_at,
			      uint64_t *ret_valid, uint64_t *ret_stride)
{
	size_t size = f64 ? sizeof(double) : sizeof(float), bytes = planes->length * size;
	enum ob_err err = obk_gpu_take(w->gpu, bytes * channels, &w->planes[side], w->fault);

	for (uint32_t c = 0; c < channels && err == OB_ERR_NONE; c++)
		err = obk_gpu_write(w->gpu, w->stream, w->planes[side].at + c * bytes, planes->channel[c], bytes, w->fault);
	*ret_at = w->planes[side].at;
	*ret_stride = planes->length;
	*ret_valid = 0;
	if (err != OB_ERR_NONE || !planes->valid)
		return err;
	err = obk_gpu_take(w->gpu, (planes->n / 64 + 1) * 8, &w->valid[side], w->fault);
	if (err == OB_ERR_NONE)
		err = obk_gpu_write(w->gpu, w->stream, w->valid[side].at, planes->valid, (planes->n / 64 + 1) * 8, w->fault);
	*ret_valid = w->valid[side].at;
	return err;
}

static enum ob_err plots_write(struct work *w, const struct obk_rqa_matrix *matrix)
{
	enum ob_err err = OB_ERR_NONE;

	for (uint32_t p = 0; p < matrix->plots && err == OB_ERR_NONE; p++) {
		const struct obk_rqa_plot *plot = &matrix->plot[p];
		struct obk_rqa_gpu_plot *to = &w->args.plot[p];

		*to = (struct obk_rqa_gpu_plot){ .tau = plot->tau, .limit = plot->limit, .channels = plot->channels, .m = plot->m, .norm = plot->norm,
						 .f64 = plot->f64 };
		err = side_write(w, 2 * p, &plot->x, plot->channels, plot->f64, &to->x, &to->x_valid, &to->x_stride);
		to->y = to->x;
		to->y_valid = to->x_valid;
		to->y_stride = to->x_stride;
		if (!plot->same && err == OB_ERR_NONE)
			err = side_write(w, 2 * p + 1, &plot->y, plot->channels, plot->f64, &to->y, &to->y_valid, &to->y_stride);
	}
	return err;
}

static void hist_plan(struct work *w, struct obk_rqa_hist *hist, uint64_t *at)
{
	if (!hist->count)
		return;
	w->hists[w->hist_count] = hist;
	w->at[w->hist_count++] = at;
	w->words += hist->length + 1;
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
	w->words += OBK_RQA_GPU_SUMS;
	err = obk_gpu_take(w->gpu, w->words * 8, &w->counters, w->fault);
	if (err == OB_ERR_NONE)
		err = obk_gpu_zero(w->gpu, w->stream, w->counters.at, w->words * 8, w->fault);
	at = w->counters.at;
	for (unsigned h = 0; h < w->hist_count; h++) {
		*w->at[h] = at;
		at += (w->hists[h]->length + 1) * 8;
	}
	a->sums = at;
	return err;
}

static enum ob_err counters_read(struct work *w, struct obk_rqa_counts *counts)
{
	uint64_t *words = malloc(w->words * 8), *at = words;
	enum ob_err err;

	if (!words)
		return obk_fault_set(w->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM, "no memory for the counters");
	err = obk_gpu_read(w->gpu, w->stream, words, w->counters.at, w->words * 8, w->fault);
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

/* All lines of one kind, some at a time; `cells` of progress in all. */
static enum ob_err lines_run(struct work *w, unsigned kernel, uint64_t lines, uint64_t longest, uint64_t cells, struct obk_rqa_watch *watch)
{
	uint64_t step = LAUNCH_CELLS / longest, told = 0;
	enum ob_err err = OB_ERR_NONE;

	step = step < LAUNCH_LINES ? LAUNCH_LINES : step;
	for (uint64_t first = 0; first < lines && err == OB_ERR_NONE && !obk_rqa_watch_stopped(watch); first += step) {
		uint64_t last = lines - first < step ? lines : first + step, now;

		err = obk_gpu_launch(w->gpu, w->stream, w->functions[kernel], (unsigned)((last - first + OBK_RQA_GPU_BLOCK - 1) / OBK_RQA_GPU_BLOCK), 1,
				     OBK_RQA_GPU_BLOCK, 0, (void *[]){ &w->args, &first, &last }, w->fault);
		if (err == OB_ERR_NONE)
			err = obk_gpu_wait(w->gpu, w->stream, w->fault);
		now = (uint64_t)((double)cells * ((double)last / (double)lines));
		obk_rqa_watch_add(watch, now - told, 0, 0, 0);
		told = now;
	}
	return err;
}

static enum ob_err work_run(struct work *w, const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *o, struct obk_rqa_watch *watch,
			    struct obk_rqa_counts *counts)
{
	uint64_t diagonals = matrix->symmetric ? matrix->n1 : matrix->n1 + matrix->n2 - 1, longest = matrix->n1 > matrix->n2 ? matrix->n1 : matrix->n2;
	bool columns = o->want & (OBK_RQA_WANT_VERTICAL | OBK_RQA_WANT_WHITE | OBK_RQA_WANT_TIMES);
	uint64_t cells = obk_rqa_count_cells(matrix, o), column_cells = columns ? matrix->n1 * matrix->n2 : 0;
	struct obk_rqa_gpu_args *a = &w->args;
	enum ob_err err = obk_gpu_load(w->gpu, &image, &w->functions, w->fault);

	a->n1 = matrix->n1;
	a->n2 = matrix->n2;
	a->plots = matrix->plots;
	a->symmetric = matrix->symmetric;
	a->triangle = o->triangle;
	a->theiler_rr = o->theiler_rr;
	a->theiler_diag = o->theiler_diag;
	a->theiler_vert = o->theiler_vert;
	a->theiler_white = o->theiler_white;
	a->square_length = counts->square.count ? counts->square.length : 0;
	if (err == OB_ERR_NONE)
		err = obk_gpu_stream_take(w->gpu, &w->stream, w->fault);
	if (err == OB_ERR_NONE)
		err = plots_write(w, matrix);
	if (err == OB_ERR_NONE)
		err = counters_take(w, counts);
	if (err == OB_ERR_NONE)
		err = lines_run(w, DIAGONALS, diagonals, longest, cells - column_cells, watch);
	if (err == OB_ERR_NONE && columns)
		err = lines_run(w, COLUMNS, matrix->n2, longest, column_cells, watch);
	if (err == OB_ERR_NONE && !obk_rqa_watch_stopped(watch))
		err = counters_read(w, counts);
	for (unsigned s = 0; s < SIDES; s++) {
		obk_gpu_give(w->gpu, &w->planes[s]);
		obk_gpu_give(w->gpu, &w->valid[s]);
	}
	obk_gpu_give(w->gpu, &w->counters);
	if (w->stream)
		obk_gpu_stream_give(w->gpu, w->stream);
	return err;
}

static enum ob_err device_open(struct obk_fault *fault)
{
	const struct obk_gpu_driver *driver;
	enum ob_err err;

	if (device && obk_gpu_lost(device)) {
		obk_gpu_close(device);
		device = NULL;
	}
	if (device)
		return OB_ERR_NONE;
	if (!obk_gpu_image_built(&image))
		return obk_fault_set(fault, OB_ERR_UNSUPPORTED, OBK_FAULT_NO_ITEM, "this build has no GPU code");
	err = obk_gpu_driver_open(NULL, &driver, fault);
	if (err == OB_ERR_NONE && !driver->devices)
		return obk_fault_set(fault, OB_ERR_UNSUPPORTED, OBK_FAULT_NO_ITEM, "the CUDA driver has no device");
	return err == OB_ERR_NONE ? obk_gpu_open(driver, 0, &device, fault) : err;
}

int obk_rqa_gpu_count(const struct obk_rqa_matrix *matrix, const struct obk_rqa_options *options, struct obk_rqa_watch *watch, struct obk_rqa_counts *counts,
		      char *ret_name, size_t size, struct obk_rqa_error *ret_error)
{
	struct obk_fault fault = { .text = "" };
	struct work work = { .fault = &fault };
	enum ob_err err;

	pthread_mutex_lock(&device_lock);
	err = device_open(&fault);
	if (err != OB_ERR_NONE) {
		pthread_mutex_unlock(&device_lock);
		return obk_rqa_fail(ret_error, OBK_RQA_UNSUPPORTED, 0, 0, "there is no GPU to count on: %s; ask for device cpu", fault.text);
	}
	work.gpu = device;
	err = obk_gpu_enter(device, &fault);
	if (err == OB_ERR_NONE) {
		err = work_run(&work, matrix, options, watch, counts);
		obk_gpu_leave(device);
	}
	snprintf(ret_name, size, "cuda %s", obk_gpu_info(device)->name);
	pthread_mutex_unlock(&device_lock);
	if (err != OB_ERR_NONE)
		return obk_rqa_fail(ret_error, err == OB_ERR_NO_MEMORY ? OBK_RQA_NO_MEMORY : OBK_RQA_UNSUPPORTED, 0, 0, "the GPU: %s", fault.text);
	return obk_rqa_watch_stopped(watch) ? obk_rqa_fail(ret_error, OBK_RQA_CANCELLED, 0, 0, "cancelled") : OBK_RQA_OK;
}
