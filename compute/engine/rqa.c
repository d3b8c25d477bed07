/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Series that are kept for many calls, single runs, and sweeps, which are cut between series. */
#include "compute/engine/rqa.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "compute/engine/engine.h"

#define PIECE_SECONDS    0.25
#define CELLS_PER_SECOND 3e9 /* per thread; used only for the size of pieces */
/* tasks per thread in a piece; a task is a (series, mode, tau) and runs on one thread */
#define TASKS_PER_THREAD 4
#define NAME_MAX_BYTES   256

struct outboard_series_set {
	struct outboard *context;
	unsigned refs; /* under the context's lock */
	uint64_t count;
	struct obk_rqa_series *series;
};

static void set_destroy(struct outboard_series_set *set)
{
	for (uint64_t i = 0; set->series && i < set->count; i++) {
		free((void *)(uintptr_t)set->series[i].data);
		free((void *)(uintptr_t)set->series[i].name);
	}
	free(set->series);
	free(set);
}

static void set_unref(struct outboard_series_set *set)
{
	struct outboard *context = set->context;
	bool last;

	pthread_mutex_lock(&context->lock);
	last = --set->refs == 0;
	pthread_mutex_unlock(&context->lock);
	if (!last)
		return;
	set_destroy(set);
	obv_context_unref(context);
}

static int copy_series(struct obk_rqa_series *to, const struct outboard_series *from,
	uint64_t index, struct outboard_error *error)
{
	size_t bytes;
	char name[32];
	double *data;

	if (!from->channels || from->channels > OBK_RQA_MAX_CHANNELS ||
		from->length > OBK_RQA_MAX_LENGTH)
		return obv_fail(error, OUTBOARD_LIMIT, index,
			"series %llu has %llu samples of %u channels: 1 to %u channels and at most "
			"%u samples are possible",
			(unsigned long long)index, (unsigned long long)from->length, from->channels,
			OBK_RQA_MAX_CHANNELS, OBK_RQA_MAX_LENGTH);
	if (!from->data && from->length)
		return obv_fail(error, OUTBOARD_ARGUMENT, index, "series %llu has no data",
			(unsigned long long)index);
	bytes = (size_t)from->length * from->channels * sizeof(*data);
	snprintf(name, sizeof(name), "series %llu", (unsigned long long)index);
	data = malloc(bytes ? bytes : 1);
	to->data = data;
	to->name = from->name ? strndup(from->name, NAME_MAX_BYTES) : strdup(name);
	if (!data || !to->name)
		return obv_fail(error, OUTBOARD_NO_MEMORY, index, "no memory for series %llu",
			(unsigned long long)index);
	if (bytes)
		memcpy(data, from->data, bytes);
	to->length = from->length;
	to->channels = from->channels;
	return OUTBOARD_OK;
}

int outboard_series_new(struct outboard *context, const struct outboard_series *series,
	uint64_t count, struct outboard_series_set **ret_set, struct outboard_error *error)
{
	struct outboard_series_set *set;
	int status = OUTBOARD_OK;

	if (!ret_set || !series || !count)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"a set needs at least one series and somewhere to put the handle");
	if (count > OBK_RQA_MAX_SERIES)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
			"%llu series are more than %u: use several sets", (unsigned long long)count,
			OBK_RQA_MAX_SERIES);
	set = calloc(1, sizeof(*set));
	if (set) {
		set->refs = 1;
		set->count = count;
		set->series = calloc(count, sizeof(*set->series));
	}
	if (!set || !set->series)
		status = obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory for %llu series", (unsigned long long)count);
	for (uint64_t i = 0; i < count && status == OUTBOARD_OK; i++)
		status = copy_series(&set->series[i], &series[i], i, error);
	if (status == OUTBOARD_OK)
		status = obv_context_get(context, &set->context, error);
	if (status == OUTBOARD_OK)
		*ret_set = set;
	else if (set)
		set_destroy(set);
	return status;
}

void outboard_series_free(struct outboard_series_set *set)
{
	if (set)
		set_unref(set);
}

static void set_ref(struct outboard_series_set *set)
{
	pthread_mutex_lock(&set->context->lock);
	set->refs++;
	pthread_mutex_unlock(&set->context->lock);
}

/* ---- one run ---- */

struct watched {
	struct obv_job *job;
	unsigned piece;
};

static int rqa_progress(void *arg, const struct obk_rqa_progress *p)
{
	const struct watched *w = arg;

	return !obv_job_progress(
		w->job, w->piece, p->total ? (double)p->done / (double)p->total : 0);
}

/*
 * A call of the RQA kernel on a device: on the threads of a CPU, or on a GPU, with rows computed by
 * threads of this machine.
 */
struct call {
	int (*fn)(void *arg, const struct obk_rqa_control *control, struct obk_rqa_error *error);
	void *arg;
	struct obk_rqa_control control;
	struct obk_rqa_error *error;
};

static int call_with_gpu(void *arg, struct obk_gpu *gpu)
{
	struct call *c = arg;

	c->control.gpu = gpu;
	return c->fn(c->arg, &c->control, c->error);
}

/* enum obk_rqa_status. */
static int call_on(const struct obv_device *device,
	int (*fn)(void *arg, const struct obk_rqa_control *control, struct obk_rqa_error *error),
	void *arg, struct watched *watched, struct obk_rqa_error *error)
{
	const struct obv_backend *b = &device->backend;
	struct call c = { fn, arg, { .arg = watched, .progress = watched ? rqa_progress : NULL },
		error };

	if (b->ops->with_gpu) {
		c.control.device = OBK_RQA_DEVICE_CUDA;
		return b->ops->with_gpu(b->self, call_with_gpu, &c);
	}
	c.control.device = OBK_RQA_DEVICE_CPU;
	c.control.threads = ob_min(b->units, OBK_RQA_MAX_THREADS);
	return fn(arg, &c.control, error);
}

struct run_job {
	struct obv_job job;
	struct outboard_series_set *set;
	struct obk_rqa_options options;
	uint64_t x, y;
	double *ret_values, values[OBK_RQA_MEASURE_COUNT];
};

static int run_measure(
	void *arg, const struct obk_rqa_control *control, struct obk_rqa_error *error)
{
	struct run_job *r = arg;

	return obk_rqa_measure(&r->set->series[r->x],
		r->y == OUTBOARD_NO_ITEM ? NULL : &r->set->series[r->y], &r->options, control,
		r->values, error);
}

/* True if the series cannot be measured; false if something else failed. */
static bool is_of_series(int status)
{
	return status == OBK_RQA_ARGUMENT || status == OBK_RQA_LIMIT ||
		status == OBK_RQA_TOO_SHORT || status == OBK_RQA_NOT_FINITE ||
		status == OBK_RQA_CONSTANT;
}

static int run_run(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
	struct outboard_error *error)
{
	struct run_job *r = (struct run_job *)job;
	struct watched watched = { job, piece->index };
	struct obk_rqa_error e = { 0 };

	if (obv_job_stopped(job))
		return OUTBOARD_CANCELLED;
	if (call_on(device, run_measure, r, &watched, &e) == OBK_RQA_OK)
		return OUTBOARD_OK;
	return obv_rqa_fail(error, &e,
		!is_of_series(e.status)                      ? OUTBOARD_NO_ITEM
			: e.item && r->y != OUTBOARD_NO_ITEM ? r->y
							     : r->x);
}

static int run_finish(struct obv_job *job, struct outboard_error *error)
{
	struct run_job *r = (struct run_job *)job;

	(void)error;
	memcpy(r->ret_values, r->values, sizeof(r->values));
	return OUTBOARD_OK;
}

static void run_fini(struct obv_job *job)
{
	set_unref(((struct run_job *)job)->set);
}

static const struct obv_job_ops run_ops = { .run = run_run,
	.finish = run_finish,
	.fini = run_fini };

int outboard_rqa_run(struct outboard_series_set *set, uint64_t x, uint64_t y,
	const struct outboard_rqa_options *options, double *ret_values,
	const struct outboard_call *call, struct outboard_error *error)
{
	struct outboard_error own;
	struct run_job *r;
	uint64_t cells;
	int status;

	error = error ? error : &own;
	if (!set || !options || !ret_values)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"the set of series, the options, or the place for the values is NULL");
	if (x >= set->count || (y != OUTBOARD_NO_ITEM && y >= set->count))
		return obv_fail(error, OUTBOARD_ARGUMENT, x >= set->count ? x : y,
			"there is no series %llu in the set: it has %llu",
			(unsigned long long)(x >= set->count ? x : y),
			(unsigned long long)set->count);
	r = obv_job_new(set->context, sizeof(*r), &run_ops, OUTBOARD_OP_RQA, call, error);
	if (!r)
		return error->status;
	set_ref(set);
	r->set = set;
	r->options = options->o;
	r->x = x;
	r->y = y;
	r->ret_values = ret_values;
	cells = set->series[x].length *
		(y == OUTBOARD_NO_ITEM ? set->series[x].length : set->series[y].length);
	status = obv_job_cut(&r->job, 1, sqrt((double)cells), true, 1, cells, error);
	if (status != OUTBOARD_OK) {
		obv_job_unref(&r->job);
		return status;
	}
	return obv_job_submit(&r->job, error);
}

/* ---- calibration ---- */

struct timed_job {
	struct obv_job job;
	const struct obk_rqa_series *series;
	double seconds;
};

static int timed_call(void *arg, const struct obk_rqa_control *control, struct obk_rqa_error *error)
{
	struct obk_rqa_options options;
	double values[OBK_RQA_MEASURE_COUNT];

	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &options);
	options.m = 3;
	options.want = OBK_RQA_WANT_VERTICAL;
	return obk_rqa_measure(arg, NULL, &options, control, values, error);
}

static int timed_run(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
	struct outboard_error *error)
{
	struct timed_job *t = (struct timed_job *)job;
	uint64_t start = ob_clock_ns();
	struct obk_rqa_error e = { 0 };

	(void)piece;
	if (call_on(device, timed_call, (void *)(uintptr_t)t->series, NULL, &e) != OBK_RQA_OK)
		return obv_rqa_fail(error, &e, OUTBOARD_NO_ITEM);
	t->seconds = (double)(ob_clock_ns() - start) / 1e9;
	return OUTBOARD_OK;
}

static int timed_finish(struct obv_job *job, struct outboard_error *error)
{
	(void)error;
	*(double *)job->call.arg = ((struct timed_job *)job)->seconds;
	return OUTBOARD_OK;
}

static const struct obv_job_ops timed_ops = { .run = timed_run, .finish = timed_finish };

double obv_rqa_seconds(struct outboard *context, unsigned device, uint64_t length)
{
	double *data = malloc(length * sizeof(*data)), seconds = -1;
	struct obk_rqa_series series = {
		.name = "calibration", .data = data, .length = length, .channels = 1
	};
	struct outboard_call call = { .arg = &seconds };
	struct timed_job *t = data
		? obv_job_new(context, sizeof(*t), &timed_ops, OUTBOARD_OP_RQA, &call, NULL)
		: NULL;

	for (uint64_t i = 0; data && i < length; i++)
		data[i] = sin(0.3 * (double)i) + 0.2 * sin(1.7 * (double)i);
	if (t) {
		t->series = &series;
		t->job.allowed = (uint64_t)1 << device;
		if (obv_job_pieces(&t->job, 1)) {
			t->job.pieces[0].count = 1;
			t->job.pieces[0].size = t->job.pieces[0].times = 1;
			t->job.pieces[0].device = device;
			obv_job_submit(&t->job, NULL);
		} else {
			obv_job_unref(&t->job);
		}
	}
	free(data);
	return seconds;
}

/* ---- sweeps ---- */

struct sweep_job {
	struct obv_job job;
	struct outboard_series_set *set;
	struct obk_rqa_options options;
	struct obk_rqa_grid grid;
	uint32_t *m, *tau, *lmin;
	double *eps;
	struct obk_rqa_mode *modes;
	uint32_t mode_count;
	int (*rows)(void *arg, const struct outboard_rqa_row *rows, uint32_t count);
	void *rows_arg;
	pthread_mutex_t lock;         /* serialises the delivery of rows for all pieces */
	struct outboard_rqa_row *out; /* eps x lmin */
	/*
	 * one bit per group; relaxed: written under the lock, read as a hint and again under the
	 * lock
	 */
	_Atomic uint64_t *delivered;
};

static uint64_t group_of(const struct sweep_job *s, uint64_t series, uint32_t mode,
	uint32_t m_index, uint32_t tau_index)
{
	return ((series * s->mode_count + mode) * s->grid.m_count + m_index) * s->grid.tau_count +
		tau_index;
}

static bool is_delivered(struct sweep_job *s, uint64_t group)
{
	return atomic_load_explicit(&s->delivered[group / 64], memory_order_relaxed) >> group % 64 &
		1;
}

struct swept {
	/* must be the first field: progress takes its address as argument */
	struct watched watched;
	struct sweep_job *s;
	uint64_t first;
	bool gpu;
	/*
	 * enum obk_rqa_status of a row that failed because the GPU failed or ran out of memory; the
	 * piece must be tried again, here or on another device
	 */
	int lost;
	char why[256];
};

/* True if the device failed, not the series: the rows must not be delivered. */
static bool is_lost(struct swept *w, const struct obk_rqa_row *rows, uint32_t count)
{
	for (uint32_t i = 0; i < count && w->gpu; i++)
		if (rows[i].status == OBK_RQA_DEVICE || rows[i].status == OBK_RQA_NO_MEMORY) {
			w->lost = rows[i].status;
			snprintf(w->why, sizeof(w->why), "%s", rows[i].reason);
			return true;
		}
	return false;
}

/* Used when a piece is repeated: leaves out the groups that were delivered before. */
static int sweep_want(void *arg, uint64_t series, uint32_t mode, uint32_t m, uint32_t tau)
{
	const struct swept *w = arg;
	struct sweep_job *s = w->s;

	for (uint32_t i = 0; i < s->grid.m_count; i++)
		for (uint32_t k = 0; k < s->grid.tau_count; k++)
			if (s->grid.m[i] == m && s->grid.tau[k] == tau &&
				!is_delivered(s, group_of(s, w->first + series, mode, i, k)))
				return 1;
	return 0;
}

static int sweep_rows(void *arg, const struct obk_rqa_row *rows, uint32_t count)
{
	struct swept *w = arg;
	struct sweep_job *s = w->s;
	uint64_t group = group_of(
		s, w->first + rows[0].series, rows[0].mode, rows[0].m_index, rows[0].tau_index);
	int stop = 0;

	if (is_lost(w, rows, count))
		return 1;
	pthread_mutex_lock(&s->lock);
	if (obv_job_stopped(&s->job)) {
		stop = 1;
	} else if (!is_delivered(s, group) && rows[0].status != OBK_RQA_SKIPPED) {
		for (uint32_t i = 0; i < count; i++)
			s->out[i] = (struct outboard_rqa_row){ .series = w->first + rows[i].series,
				.mode = rows[i].mode,
				.m = rows[i].m,
				.tau = rows[i].tau,
				.lmin = rows[i].lmin,
				.eps = rows[i].radius,
				.status = obv_rqa_status(rows[i].status),
				.reason = rows[i].reason,
				.values = rows[i].values };
		atomic_fetch_or_explicit(
			&s->delivered[group / 64], (uint64_t)1 << group % 64, memory_order_relaxed);
		stop = s->rows(s->rows_arg, s->out, count);
		if (stop)
			outboard_cancel((struct outboard_ticket *)&s->job);
	}
	pthread_mutex_unlock(&s->lock);
	return stop;
}

static int sweep_call(void *arg, const struct obk_rqa_control *control, struct obk_rqa_error *error)
{
	return obk_rqa_sweep(arg, control, error);
}

static int sweep_run(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
	struct outboard_error *error)
{
	struct sweep_job *s = (struct sweep_job *)job;
	struct swept swept = { .watched = { job, piece->index },
		.s = s,
		.first = piece->first,
		.gpu = device->backend.ops->with_gpu != NULL };
	struct obk_rqa_sweep sweep = { .series = s->set->series + piece->first,
		.series_count = piece->count,
		.options = &s->options,
		.grid = &s->grid,
		.rows = sweep_rows,
		.want = piece->tried || piece->attempts ? sweep_want : NULL };
	struct obk_rqa_error e = { 0 };

	if (obv_job_stopped(job))
		return OUTBOARD_CANCELLED;
	if (call_on(device, sweep_call, &sweep, &swept.watched, &e) == OBK_RQA_OK)
		return OUTBOARD_OK;
	if (swept.lost)
		return obv_fail(
			error, obv_rqa_status(swept.lost), OUTBOARD_NO_ITEM, "%s", swept.why);
	return obv_rqa_fail(error, &e, OUTBOARD_NO_ITEM);
}

static void sweep_fini(struct obv_job *job)
{
	struct sweep_job *s = (struct sweep_job *)job;

	set_unref(s->set);
	free(s->m);
	free(s->tau);
	free(s->lmin);
	free(s->eps);
	for (uint32_t i = 0; s->modes && i < s->grid.mode_count; i++)
		free((void *)(uintptr_t)s->modes[i].name);
	free(s->modes);
	free(s->out);
	free((void *)s->delivered);
	pthread_mutex_destroy(&s->lock);
}

static const struct obv_job_ops sweep_ops = { .run = sweep_run, .fini = sweep_fini };

static void *copy_list(const void *list, uint32_t count, size_t each)
{
	void *copy = count && count <= OBK_RQA_MAX_VALUES && list ? malloc(count * each) : NULL;

	if (copy)
		memcpy(copy, list, count * each);
	return copy;
}

static int copy_modes(
	struct sweep_job *s, const struct outboard_rqa_grid *g, struct outboard_error *error)
{
	s->mode_count = 1;
	if (!g->modes)
		return OUTBOARD_OK;
	if (!g->mode_count || g->mode_count > OBK_RQA_MAX_MODES)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
			"the grid has %u modes: 1 to %u are possible", g->mode_count,
			OBK_RQA_MAX_MODES);
	s->modes = calloc(g->mode_count, sizeof(*s->modes));
	if (!s->modes)
		return obv_fail(
			error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for the grid");
	s->mode_count = s->grid.mode_count = g->mode_count;
	s->grid.modes = s->modes;
	for (uint32_t i = 0; i < g->mode_count; i++) {
		const struct outboard_rqa_mode *mode = &g->modes[i];

		s->modes[i].name = strndup(mode->name ? mode->name : "?", NAME_MAX_BYTES);
		s->modes[i].norm = mode->norm ? obv_rqa_norm(mode->norm) : -1;
		s->modes[i].channel_count = mode->channel_count;
		if ((mode->norm && s->modes[i].norm < 0) ||
			mode->channel_count > OBK_RQA_MAX_CHANNELS ||
			(mode->channel_count && !mode->channels))
			return obv_fail(error, OUTBOARD_ARGUMENT, i,
				"mode %u: the norm is l1, l2, max or gaze, and at most %u channels "
				"are named",
				i, OBK_RQA_MAX_CHANNELS);
		if (mode->channel_count)
			memcpy(s->modes[i].channels, mode->channels,
				mode->channel_count * sizeof(mode->channels[0]));
	}
	return OUTBOARD_OK;
}

static int copy_grid(
	struct sweep_job *s, const struct outboard_rqa_grid *g, struct outboard_error *error)
{
	uint64_t groups;

	s->m = copy_list(g->m, g->m_count, sizeof(*s->m));
	s->tau = copy_list(g->tau, g->tau_count, sizeof(*s->tau));
	s->lmin = copy_list(g->lmin, g->lmin_count, sizeof(*s->lmin));
	s->eps = copy_list(g->eps, g->eps_count, sizeof(*s->eps));
	if (!s->m || !s->tau || !s->lmin || !s->eps)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"the grid has %u values of m, %u of tau, %u of lmin, %u of eps: 1 to %u of "
			"each are possible",
			g->m_count, g->tau_count, g->lmin_count, g->eps_count, OBK_RQA_MAX_VALUES);
	s->grid = (struct obk_rqa_grid){ .m = s->m,
		.tau = s->tau,
		.lmin = s->lmin,
		.radius = s->eps,
		.m_count = g->m_count,
		.tau_count = g->tau_count,
		.lmin_count = g->lmin_count,
		.radius_count = g->eps_count };
	if (copy_modes(s, g, error) != OUTBOARD_OK)
		return error->status;
	groups = s->set->count * s->mode_count * g->m_count;
	if (ob_mul_overflows(groups, (uint64_t)g->tau_count, &groups) ||
		groups > OBK_RQA_MAX_ROWS ||
		(double)groups * g->eps_count * g->lmin_count > OBK_RQA_MAX_ROWS)
		return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
			"the grid over %llu series has more than %u rows: split it",
			(unsigned long long)s->set->count, OBK_RQA_MAX_ROWS);
	s->delivered = calloc(groups / 64 + 1, sizeof(*s->delivered));
	s->out = calloc((size_t)g->eps_count * g->lmin_count, sizeof(*s->out));
	if (!s->delivered || !s->out)
		return obv_fail(
			error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM, "no memory for the grid");
	return OUTBOARD_OK;
}

static double weight_of(const struct sweep_job *s, uint64_t series)
{
	double n = (double)s->set->series[series].length;

	return n * n + 1;
}

/*
 * Cuts the series into runs of about PIECE_SECONDS, each of at least `least` series. Returns the
 * number of runs. If pieces is not NULL, fills it; run `i` belongs to the device whose part
 * contains it.
 */
static uint64_t cut_runs(const struct sweep_job *s, double limit, uint64_t least, double times,
	struct obv_piece *pieces, const struct obv_part *parts, unsigned n)
{
	uint64_t first = 0, at = 0;
	unsigned part = 0;
	double sum = 0;

	for (uint64_t i = 0; i < s->set->count; i++) {
		sum += weight_of(s, i);
		if ((sum * times < limit || i + 1 - first < least) && i + 1 < s->set->count)
			continue;
		while (part + 1 < n && at >= parts[part].first + parts[part].count)
			part++;
		if (pieces) {
			pieces[at].first = first;
			pieces[at].count = i + 1 - first;
			pieces[at].size = sqrt(sum);
			pieces[at].times = times;
			pieces[at].items = (uint64_t)(sum * times);
			pieces[at].device = parts[part].device;
		}
		at++;
		first = i + 1;
		sum = 0;
	}
	return at;
}

/*
 * Each run has enough tasks for the threads of a device. Runs are divided by number; later moves
 * between devices correct the balance.
 */
static int cut_sweep(struct sweep_job *s, struct outboard_error *error)
{
	const struct obv_device *cpu = obv_context_cpu(s->job.context);
	unsigned threads = cpu ? cpu->backend.units : 1, n;
	double times = (double)s->grid.m_count * s->grid.tau_count * s->mode_count, cells = 0,
	       limit = 2 * CELLS_PER_SECOND * PIECE_SECONDS * threads;
	uint64_t least = 1 +
		TASKS_PER_THREAD * (uint64_t)threads /
			((uint64_t)s->grid.tau_count * s->mode_count),
		 pieces;
	struct obv_part parts[OUTBOARD_MAX_DEVICES];

	if (least * OBV_PIECES_MAX < s->set->count)
		least = s->set->count / OBV_PIECES_MAX + 1;
	for (uint64_t i = 0; i < s->set->count; i++)
		cells += weight_of(s, i);
	pieces = cut_runs(s, limit, least, times, NULL, NULL, 0);
	n = obv_share(s->job.context, &s->job, pieces, sqrt(cells * times / (double)pieces), true,
		1, parts);
	if (!n)
		return obv_fail(error, OUTBOARD_DEVICE, OUTBOARD_NO_ITEM,
			"no device of this context can do a sweep now: open one with a CPU");
	if (!obv_job_pieces(&s->job, (unsigned)pieces))
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"no memory for the pieces of a sweep");
	cut_runs(s, limit, least, times, s->job.pieces, parts, n);
	return OUTBOARD_OK;
}

int outboard_rqa_sweep(struct outboard_series_set *set, const struct outboard_rqa_options *options,
	const struct outboard_rqa_grid *grid,
	int (*rows)(void *arg, const struct outboard_rqa_row *rows, uint32_t count), void *rows_arg,
	const struct outboard_call *call, struct outboard_error *error)
{
	struct outboard_error own;
	struct sweep_job *s;
	int status;

	error = error ? error : &own;
	if (!set || !options || !grid || !rows)
		return obv_fail(error, OUTBOARD_ARGUMENT, OUTBOARD_NO_ITEM,
			"a sweep needs a set of series, options, a grid and a callback for its "
			"rows");
	s = obv_job_new(set->context, sizeof(*s), &sweep_ops, OUTBOARD_OP_RQA, call, error);
	if (!s)
		return error->status;
	set_ref(set);
	s->set = set;
	s->options = options->o;
	s->rows = rows;
	s->rows_arg = rows_arg;
	pthread_mutex_init(&s->lock, NULL);
	status = copy_grid(s, grid, error);
	if (status == OUTBOARD_OK)
		status = cut_sweep(s, error);
	if (status != OUTBOARD_OK) {
		obv_job_unref(&s->job);
		return status;
	}
	return obv_job_submit(&s->job, error);
}
