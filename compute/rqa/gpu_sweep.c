/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Runs a sweep on a device, several units (tau, series, mode) at a time. Their series are uploaded
 * together, one launch counts the lines for all their m and radii (kernel_sweep.cuh), the pairs of
 * length and count are read back, and the job's threads compute rows from them. Units that the
 * device does not support (gaps, a series of 65,536 samples or more, options that the pass does not
 * count) have no pairs and are processed on the CPU, or one combination at a time.
 *
 * A separate thread prepares and counts the next batch while the rows of the current one are
 * computed (with OUTBOARD_OPT=-ahead: one after the other). If all series fit, they stay on the
 * device for the other delays.
 */
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/thread.h"
#include "compute/rqa/gpu.h"
#include "compute/rqa/gpu_args.h"

/* most bytes of histograms in device memory; also limits the duration of a launch */
#define BATCH_BYTES (256u << 20)
#define UNIT_BYTES  (1u << 30) /* a unit that needs more is processed on the CPU */
#define BATCH_UNITS 65536u
#define KEPT_BYTES  (1u << 30) /* most bytes of series that stay on a device */
#define LINES       512u       /* lines per block */
#define PAIRS       48u        /* average number of pairs per slot for which there is memory */
#define NOWHERE     (~0u)
#define NO_PLACE    UINT64_MAX

/* Positions of a unit's data and results. */
struct unit {
	bool on;                       /* the device processes it */
	uint32_t m_count, levels;      /* number of dimensions; number of limits */
	uint32_t m_group, level_group; /* number of each in an item */
	uint32_t length, channels, norm, tau;
	uint64_t lists;    /* position of its list of m, followed by its limits */
	uint32_t found[2]; /* first slot: diagonals, columns */
};

/* The series on the device, indexed by their position among those of one delay. */
struct kept {
	/*
	 * NO_PLACE: not on the device; otherwise valid once the batch that uploads it has been
	 * counted
	 */
	uint64_t *at;
	uint64_t bytes, used;
	bool all;        /* all series fit; otherwise they are uploaded with their batch */
	uint64_t opened; /* identifies the device, see obk_rqa_gpu_use */
	struct obk_gpu_buffer buffer;
};

struct obk_rqa_gpu_batch {
	struct obk_rqa_job *job;
	struct kept *kept;
	uint64_t first, last;     /* units */
	bool vertical, f64, some; /* some: there are units for the device */
	bool no_memory;           /* out of memory for a series, which is not in the staging */
	uint32_t m_most, levels_most;
	struct unit *units;
	/*
	 * for each unit and each m of the grid: the index among the unit's m; NOWHERE: not
	 * processed
	 */
	uint32_t *place;
	uint32_t *ms;           /* m_most per unit */
	double *limits;         /* levels_most per unit */
	unsigned char *staging; /* series that are not on the device, in the order of units */
	/* indices into the kept series; NO_PLACE: the CPU processes the unit */
	uint64_t *series_at;
	bool *fresh; /* whether the series is in the staging */
	uint64_t staging_from, staging_bytes;
	/* items for diagonals, for columns, and one for each histogram */
	struct obk_rqa_gpu_item *items;
	uint64_t item_count[3];
	uint64_t hist_bytes, slots;
	uint32_t *pairs, pair_count;
	struct obk_rqa_gpu_found *found;
};

static uint32_t groups(uint32_t count, uint32_t each)
{
	return (count + each - 1) / each;
}

/* The items of a unit use consecutive slots, OBK_RQA_GPU_SLOTS each. */
static uint32_t unit_slots(const struct unit *u)
{
	return groups(u->m_count, u->m_group) * groups(u->levels, u->level_group) *
		OBK_RQA_GPU_SLOTS;
}

bool obk_rqa_gpu_found(const struct obk_rqa_task *task, uint32_t m_index, uint32_t level,
	bool columns, const uint32_t **ret_pairs, uint32_t *ret_count)
{
	const struct obk_rqa_gpu_batch *b = task->job->batch;
	const struct unit *u = &b->units[task->unit - b->first];
	const struct obk_rqa_gpu_found *found;
	uint32_t place, item, limits;

	if (!u->on)
		return false;
	place = b->place[(task->unit - b->first) * task->job->sweep->grid->m_count + m_index];
	if (place == NOWHERE)
		return false;
	item = place / u->m_group * groups(u->levels, u->level_group) + level / u->level_group;
	limits = u->levels - level / u->level_group * u->level_group;
	limits = limits < u->level_group ? limits : u->level_group;
	found = &b->found[u->found[columns] + item * OBK_RQA_GPU_SLOTS +
		place % u->m_group * limits + level % u->level_group];
	if (found->count == NOWHERE)
		return false;
	*ret_pairs = b->pairs + 2 * (size_t)found->first;
	*ret_count = found->count;
	return true;
}

/* ---- planning ---- */

/* The dimensions of a unit that are requested and possible. */
static void unit_dimensions(struct obk_rqa_gpu_batch *b, struct obk_rqa_task *task, struct unit *u)
{
	const struct obk_rqa_job *job = b->job;
	const struct obk_rqa_grid *grid = job->sweep->grid;
	uint64_t at = task->unit - b->first, length = job->sweep->series[task->series].length;
	uint32_t tau = grid->tau[task->tau_index];

	for (uint32_t o = 0; o < grid->m_count; o++) {
		uint32_t m = grid->m[job->order[o]];
		bool wanted = length >= (uint64_t)(m - 1) * tau + 2 &&
			(!job->sweep->want ||
				job->sweep->want(job->control ? job->control->arg : NULL,
					task->series, task->mode, m, tau));

		b->place[at * grid->m_count + job->order[o]] = wanted ? u->m_count : NOWHERE;
		if (wanted)
			b->ms[at * b->m_most + u->m_count++] = m;
	}
}

/*
 * Fills the unit and its part of the staging. Errors of a series are reported when the unit is
 * processed on the CPU, as for all other series. If memory runs out the batch is abandoned, because
 * other units, also of later batches, rely on the series.
 */
static void unit_prepare(void *arg, unsigned thread, uint64_t unit)
{
	struct obk_rqa_gpu_batch *b = arg;
	struct obk_rqa_job *job = b->job;
	struct obk_rqa_task *task = job->ahead;
	struct unit *u = &b->units[unit - b->first];
	uint32_t channels[OBK_RQA_MAX_CHANNELS], count;
	const struct obk_rqa_series *series;
	struct obk_rqa_plot plot;
	size_t size, plane;
	double one;
	int status;

	(void)thread;
	obk_rqa_task_place(task, unit);
	series = &job->sweep->series[task->series];
	memset(u, 0, sizeof *u);
	if (b->series_at[unit - b->first] == NO_PLACE ||
		job->series_status[task->series] != OBK_RQA_OK ||
		obk_rqa_task_channels(task, series, channels, &count, NULL) != OBK_RQA_OK)
		return;
	unit_dimensions(b, task, u);
	if (!u->m_count && !b->fresh[unit - b->first])
		return;
	status = obk_rqa_task_plot(task, series, channels, count, &plot, &one, NULL);
	b->no_memory = b->no_memory || status == OBK_RQA_NO_MEMORY;
	if (status != OBK_RQA_OK)
		return;
	size = plot.f64 ? sizeof(double) : sizeof(float);
	plane = (series->length + OBK_RQA_GPU_PAD) * size;
	for (uint32_t c = 0; c < count && b->fresh[unit - b->first]; c++)
		memcpy(b->staging + b->series_at[unit - b->first] - b->staging_from + c * plane,
			plot.x.channel[c], series->length * size);
	if (u->m_count && !plot.x.valid && obk_rqa_task_levels(task, &plot, one)) {
		u->on = true;
		u->levels = task->levels.count;
		memcpy(b->limits + (unit - b->first) * b->levels_most, task->levels.limit,
			u->levels * sizeof *b->limits);
		u->level_group = u->levels < OBK_RQA_GPU_SLOTS ? u->levels : OBK_RQA_GPU_SLOTS;
		u->m_group = OBK_RQA_GPU_SLOTS / u->level_group;
		u->length = (uint32_t)series->length;
		u->channels = count;
		u->norm = plot.norm == OBK_RQA_NORM_L1 ? 0 : plot.norm == OBK_RQA_NORM_L2 ? 1 : 2;
		u->tau = (uint32_t)plot.tau;
	}
	obk_rqa_planes_fini(&plot.x);
}

static const struct obk_rqa_series *series_of(const struct obk_rqa_job *job, uint64_t unit)
{
	const struct obk_rqa_grid *grid = job->sweep->grid;

	return &job->sweep->series[unit / (grid->modes ? grid->mode_count : 1) %
		job->sweep->series_count];
}

/* The number of planes for the unit's mode; a mode may name a column more than once. */
static uint32_t channels_of(const struct obk_rqa_job *job, uint64_t unit)
{
	const struct obk_rqa_grid *grid = job->sweep->grid;
	const struct obk_rqa_mode *mode =
		grid->modes ? &grid->modes[unit % grid->mode_count] : NULL;

	return mode && mode->channel_count ? mode->channel_count : series_of(job, unit)->channels;
}

static uint64_t series_per_tau(const struct obk_rqa_job *job)
{
	return job->sweep->series_count *
		(job->sweep->grid->modes ? job->sweep->grid->mode_count : 1);
}

static uint64_t series_bytes(const struct obk_rqa_job *job, uint64_t unit)
{
	return (series_of(job, unit)->length + OBK_RQA_GPU_PAD) * channels_of(job, unit) *
		sizeof(double);
}

/*
 * Bytes of histograms that a unit may need; 0: the CPU processes it, and its series is not
 * uploaded.
 */
static uint64_t unit_bytes(const struct obk_rqa_job *job, uint64_t unit)
{
	const struct obk_rqa_grid *grid = job->sweep->grid;
	uint64_t length = series_of(job, unit)->length, bytes;

	if (length >= OBK_RQA_GROUP)
		return 0;
	bytes = (length + 1) * 4 * grid->radius_count * grid->m_count *
		(job->sweep->options->want & OBK_RQA_WANT_VERTICAL ? 2 : 1);
	return bytes <= UNIT_BYTES ? bytes : 0;
}

static bool kept_init(struct kept *k, const struct obk_rqa_job *job)
{
	uint64_t count = series_per_tau(job);

	k->at = malloc(count * sizeof *k->at);
	for (uint64_t s = 0; s < count && k->at; s++) {
		k->at[s] = NO_PLACE;
		k->bytes += unit_bytes(job, s) ? series_bytes(job, s) : 0;
	}
	k->all = k->bytes <= KEPT_BYTES;
	return k->at;
}

static void kept_fini(struct kept *k, const struct obk_rqa_job *job)
{
	struct obk_rqa_gpu_use use;

	/* If the device was opened again meanwhile, the buffer has been freed already. */
	if (k->buffer.at && obk_rqa_gpu_begin(job->control, &use, NULL) == OBK_RQA_OK) {
		if (use.opened == k->opened)
			obk_gpu_give(use.gpu, &k->buffer);
		obk_rqa_gpu_end(&use);
	}
	free(k->at);
}

/* Selects units from b->first on until the batch is full, and their positions in the staging. */
static bool batch_plan(struct obk_rqa_gpu_batch *b)
{
	const struct obk_rqa_options *options = b->job->sweep->options;
	struct kept *k = b->kept;
	uint64_t bytes = 0, units = obk_rqa_job_units(b->job),
		 room = units - b->first < BATCH_UNITS ? units - b->first : BATCH_UNITS;

	b->series_at = malloc(room * sizeof *b->series_at);
	b->fresh = calloc(room, sizeof *b->fresh);
	if (!b->series_at || !b->fresh)
		return false;
	if (!k->all) {
		memset(k->at, 0xff, series_per_tau(b->job) * sizeof *k->at);
		k->used = 0;
	}
	b->staging_from = k->used;
	for (b->last = b->first; b->last - b->first < room; b->last++) {
		const struct obk_rqa_series *series = series_of(b->job, b->last);
		uint64_t more = unit_bytes(b->job, b->last),
			 *at = &k->at[b->last % series_per_tau(b->job)];

		if (b->last > b->first &&
			(bytes + more > BATCH_BYTES ||
				obk_rqa_use_f64(options, series->length) != b->f64))
			break;
		b->f64 = obk_rqa_use_f64(options, series->length);
		bytes += more;
		if (more && *at == NO_PLACE) {
			*at = k->used;
			k->used += series_bytes(b->job, b->last);
			b->fresh[b->last - b->first] = true;
		}
		b->series_at[b->last - b->first] = more ? *at : NO_PLACE;
	}
	b->some = bytes;
	b->staging_bytes = k->used - b->staging_from;
	room = b->last - b->first;
	b->units = calloc(room, sizeof *b->units);
	b->place = malloc(room * b->job->sweep->grid->m_count * sizeof *b->place);
	b->ms = malloc(room * b->m_most * sizeof *b->ms);
	b->limits = malloc(room * b->levels_most * sizeof *b->limits);
	b->staging = calloc(b->staging_bytes + 1, 1);
	return b->units && b->place && b->ms && b->limits && b->staging;
}

/* ---- items ---- */

/* items NULL: only count. */
static void item_add(
	struct obk_rqa_gpu_item *items, uint64_t *count, const struct obk_rqa_gpu_item *item)
{
	if (items)
		items[*count] = *item;
	++*count;
}

struct addresses {
	uint64_t series, hist, ms, limits;
};

/*
 * One pass over the units for one kernel: counts the items (items NULL) or writes them; writes one
 * for each histogram to `whole`.
 */
static void items_make(struct obk_rqa_gpu_batch *b, bool columns, const struct addresses *at,
	struct obk_rqa_gpu_item *items, uint64_t *ret_count, struct obk_rqa_gpu_item *whole,
	uint64_t *ret_whole, uint64_t *hist, uint32_t *slot)
{
	const struct obk_rqa_options *o = b->job->sweep->options;

	for (uint64_t i = 0; i < b->last - b->first; i++) {
		struct unit *u = &b->units[i];
		uint32_t from = columns       ? 0
			: o->theiler_diag > 1 ? o->theiler_diag
					      : 1,
			 items_of = 0;

		u->found[columns] = *slot;
		for (uint32_t m = 0; u->on && m < u->m_count; m += u->m_group)
			for (uint32_t l = 0; l < u->levels; l += u->level_group, items_of++) {
				uint32_t smallest = b->ms[i * b->m_most + m],
					 n = u->length - (smallest - 1) * u->tau;
				struct obk_rqa_gpu_item item = {
					.planes = at->series + b->series_at[i],
					.hist = at->hist + *hist,
					.m = at->ms + (i * b->m_most + m) * 4,
					.limit = at->limits + (i * b->levels_most + l) * 8,
					.length = u->length,
					.channels = u->channels,
					.tau = u->tau,
					.norm = u->norm,
					.width = columns ? o->theiler_vert : 0,
					.m_count = u->m_count - m < u->m_group ? u->m_count - m
									       : u->m_group,
					.limit_count = u->levels - l < u->level_group
						? u->levels - l
						: u->level_group,
					.slot = *slot + items_of * OBK_RQA_GPU_SLOTS,
				};

				for (uint32_t line = from; line < n; line += LINES) {
					item.line_first = line;
					item.line_last = n - line < LINES ? n : line + LINES;
					item_add(items, ret_count, &item);
				}
				item_add(whole, ret_whole, &item);
				*hist += (uint64_t)item.m_count * item.limit_count *
					(u->length + 1) * 4;
			}
		*slot += u->on ? unit_slots(u) : 0;
	}
}

/* ---- the device ---- */

enum { MS, LIMITS, HIST, ITEMS, FOUND, PAIR, CURSOR, BUFFERS };

struct device {
	struct obk_rqa_gpu_use use;
	CUstream stream;
	struct obk_gpu_buffer buffer[BUFFERS];
	struct obk_fault fault;
};

static enum ob_err place_bytes(struct device *d, int buffer, const void *from, size_t bytes)
{
	enum ob_err err = obk_gpu_take(d->use.gpu, bytes, &d->buffer[buffer], &d->fault);

	return err == OB_ERR_NONE && from
		? obk_gpu_write(d->use.gpu, d->stream, d->buffer[buffer].at, from, bytes, &d->fault)
		: err;
}

/*
 * Uploads the series that are not on the device. If there is no memory for all of them, this batch
 * and all later ones upload their own.
 */
static enum ob_err series_place(struct obk_rqa_gpu_batch *b, struct device *d)
{
	struct kept *k = b->kept;
	enum ob_err err = OB_ERR_NONE;

	if (!k->buffer.at) {
		k->opened = d->use.opened;
		err = obk_gpu_take(
			d->use.gpu, k->all ? k->bytes : b->staging_bytes, &k->buffer, &d->fault);
		if (err == OB_ERR_NO_MEMORY && k->all) {
			k->all = false;
			err = obk_gpu_take(d->use.gpu, b->staging_bytes, &k->buffer, &d->fault);
		}
	} else if (k->opened != d->use.opened) {
		return obk_fault_set(&d->fault, OB_ERR_DRIVER, OBK_FAULT_NO_ITEM,
			"it was lost, and with it a sweep's series");
	}
	return err == OB_ERR_NONE
		? obk_gpu_write(d->use.gpu, d->stream, k->buffer.at + b->staging_from, b->staging,
			  b->staging_bytes, &d->fault)
		: err;
}

/*
 * Making the items requires addresses, and allocating their memory requires their number: so they
 * are counted first, then written.
 */
static enum ob_err items_place(struct obk_rqa_gpu_batch *b, struct device *d)
{
	struct addresses at = { 0 };
	enum ob_err err = OB_ERR_NONE;

	for (int pass = 0; pass < 2 && err == OB_ERR_NONE; pass++) {
		uint64_t hist = 0, count = 0, whole_count = 0;
		struct obk_rqa_gpu_item *whole =
			pass ? b->items + b->item_count[0] + b->item_count[1] : NULL;
		uint32_t slot = 0;

		for (int columns = 0; columns <= b->vertical; columns++) {
			uint64_t before = count;

			items_make(b, columns, &at, pass ? b->items : NULL, &count, whole,
				&whole_count, &hist, &slot);
			b->item_count[columns] = count - before;
		}
		b->item_count[2] = whole_count;
		b->hist_bytes = hist;
		b->slots = slot;
		if (pass)
			break;
		b->items = malloc((count + whole_count) * sizeof *b->items + 1);
		b->found = malloc(b->slots * sizeof *b->found + 1);
		if (!b->items || !b->found)
			return obk_fault_set(&d->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
				"no memory for the items of a sweep");
		err = series_place(b, d);
		if (err == OB_ERR_NONE)
			err = place_bytes(
				d, MS, b->ms, (b->last - b->first) * b->m_most * sizeof *b->ms);
		if (err == OB_ERR_NONE)
			err = place_bytes(d, LIMITS, b->limits,
				(b->last - b->first) * b->levels_most * sizeof *b->limits);
		if (err == OB_ERR_NONE)
			err = place_bytes(d, HIST, NULL, b->hist_bytes);
		at = (struct addresses){ b->kept->buffer.at, d->buffer[HIST].at, d->buffer[MS].at,
			d->buffer[LIMITS].at };
	}
	return err == OB_ERR_NONE
		? place_bytes(d, ITEMS, b->items,
			  (b->item_count[0] + b->item_count[1] + b->item_count[2]) *
				  sizeof *b->items)
		: err;
}

static enum ob_err batch_count(struct obk_rqa_gpu_batch *b, struct device *d)
{
	struct obk_rqa_gpu_sweep w = { 0 };
	struct obk_gpu *gpu = d->use.gpu;
	uint64_t room, most = b->hist_bytes / 4;
	enum ob_err err = OB_ERR_NONE;

	room = (b->item_count[2] * OBK_RQA_GPU_SLOTS * PAIRS < most
			? b->item_count[2] * OBK_RQA_GPU_SLOTS * PAIRS
			: most);
	w.room = (uint32_t)room;
	err = place_bytes(d, FOUND, NULL, b->slots * sizeof *b->found);
	if (err == OB_ERR_NONE)
		err = place_bytes(d, PAIR, NULL, room * 8);
	if (err == OB_ERR_NONE)
		err = place_bytes(d, CURSOR, NULL, 4);
	if (err == OB_ERR_NONE)
		err = obk_gpu_zero(gpu, d->stream, d->buffer[CURSOR].at, 4, &d->fault);
	if (err == OB_ERR_NONE)
		err = obk_gpu_zero(gpu, d->stream, d->buffer[HIST].at, b->hist_bytes, &d->fault);
	w.pairs = d->buffer[PAIR].at;
	w.found = d->buffer[FOUND].at;
	w.cursor = d->buffer[CURSOR].at;
	w.items = d->buffer[ITEMS].at;
	for (int k = 0; k < 3 && err == OB_ERR_NONE; k++) {
		unsigned kernel = k == 2 ? OBK_RQA_KERNEL_PAIRS
					 : OBK_RQA_KERNEL_SWEEP + (b->f64 ? 2u : 0u) + (unsigned)k;

		if (b->item_count[k])
			err = obk_gpu_launch(gpu, d->stream, d->use.functions[kernel],
				(unsigned)b->item_count[k], 1, OBK_RQA_GPU_BLOCK, 0,
				(void *[]){ &w }, &d->fault);
		w.items += b->item_count[k] * sizeof *b->items;
	}
	if (err == OB_ERR_NONE)
		err = obk_gpu_read(gpu, d->stream, &b->pair_count, w.cursor, 4, &d->fault);
	if (err != OB_ERR_NONE)
		return err;
	if (b->pair_count > w.room)
		b->pair_count = w.room;
	b->pairs = malloc((size_t)b->pair_count * 8 + 1);
	if (!b->pairs)
		return obk_fault_set(&d->fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for the lines of a sweep");
	err = obk_gpu_read(
		gpu, d->stream, b->found, w.found, b->slots * sizeof *b->found, &d->fault);
	return err == OB_ERR_NONE && b->pair_count ? obk_gpu_read(gpu, d->stream, b->pairs, w.pairs,
							     (size_t)b->pair_count * 8, &d->fault)
						   : err;
}

static void batch_fini(struct obk_rqa_gpu_batch *b)
{
	free(b->units);
	free(b->place);
	free(b->ms);
	free(b->limits);
	free(b->staging);
	free(b->series_at);
	free(b->fresh);
	free(b->items);
	free(b->pairs);
	free(b->found);
}

/* Prepares and counts a batch; its rows are computed afterwards. */
static int batch_run(struct obk_rqa_gpu_batch *b, struct obk_rqa_error *ret_error)
{
	struct device d = { 0 };
	enum ob_err err;
	int status;

	if (!batch_plan(b))
		return obk_rqa_fail(
			ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory for a sweep's series");
	if (!b->some)
		return OBK_RQA_OK;
	obk_rqa_each(b->job->watch, 1, b->first, b->last, unit_prepare, b);
	if (obk_rqa_watch_stopped(b->job->watch))
		return OBK_RQA_OK;
	if (b->no_memory)
		return obk_rqa_fail(
			ret_error, OBK_RQA_NO_MEMORY, 0, 0, "no memory for a sweep's series");
	status = obk_rqa_gpu_begin(b->job->control, &d.use, ret_error);
	if (status != OBK_RQA_OK)
		return status;
	err = obk_gpu_stream_take(d.use.gpu, &d.stream, &d.fault);
	if (err == OB_ERR_NONE)
		err = items_place(b, &d);
	if (err == OB_ERR_NONE && b->slots)
		err = batch_count(b, &d);
	/*
	 * No work may be pending on buffers that are given back. Uploads of kept series must be
	 * complete, because the next batch uses another stream.
	 */
	if (d.stream && !obk_gpu_lost(d.use.gpu) && (err != OB_ERR_NONE || !b->slots))
		obk_gpu_wait(d.use.gpu, d.stream, &(struct obk_fault){ 0 });
	for (int i = 0; i < BUFFERS; i++)
		obk_gpu_give(d.use.gpu, &d.buffer[i]);
	if (!b->kept->all && b->kept->opened == d.use.opened)
		obk_gpu_give(d.use.gpu, &b->kept->buffer);
	if (d.stream)
		obk_gpu_stream_give(d.use.gpu, d.stream);
	obk_rqa_gpu_end(&d.use);
	return err == OB_ERR_NONE ? OBK_RQA_OK : obk_rqa_gpu_fail(ret_error, err, &d.fault);
}

/* A batch and its result. */
struct turn {
	struct obk_rqa_gpu_batch batch;
	struct obk_rqa_error error;
	pthread_t thread;
	bool begun; /* a thread was started for it */
	int status;
};

static void *turn_run(void *arg)
{
	struct turn *t = arg;

	t->status = batch_run(&t->batch, &t->error);
	return NULL;
}

static void turn_begin(
	struct turn *t, struct obk_rqa_job *job, struct kept *kept, uint64_t first, bool alone)
{
	const struct obk_rqa_options *o = job->sweep->options;

	*t = (struct turn){ .batch = { .job = job,
				    .kept = kept,
				    .first = first,
				    .last = obk_rqa_job_units(job),
				    .vertical = o->want & OBK_RQA_WANT_VERTICAL,
				    .m_most = job->sweep->grid->m_count,
				    .levels_most = job->sweep->grid->radius_count } };
	if (o->categorical || !obk_rqa_pass_suffices(o) || first == t->batch.last)
		return;
	t->begun = alone && ob_thread_start(turn_run, t, 0, &t->thread);
	if (!t->begun)
		turn_run(t);
}

static void turn_wait(struct turn *t)
{
	if (t->begun)
		pthread_join(t->thread, NULL);
	t->begun = false;
}

int obk_rqa_gpu_job_run(struct obk_rqa_job *job, unsigned threads, struct obk_rqa_error *ret_error)
{
	bool automatic = !job->control || job->control->device == OBK_RQA_DEVICE_AUTO,
	     ahead = ob_opt_on(OB_OPT_AHEAD);
	uint64_t units = obk_rqa_job_units(job), unit = 0;
	struct turn turns[2] = { 0 };
	struct kept kept = { 0 };
	unsigned now = 0;
	int status = kept_init(&kept, job) ? OBK_RQA_OK
					   : obk_rqa_fail(ret_error, OBK_RQA_NO_MEMORY, 0, 0,
						     "no memory for a sweep's series");

	if (status == OBK_RQA_OK)
		turn_begin(&turns[0], job, &kept, 0, false);
	while (unit < units && status == OBK_RQA_OK && !obk_rqa_watch_stopped(job->watch)) {
		struct turn *t = &turns[now], *next = &turns[!now];

		if (t->status != OBK_RQA_OK && automatic)
			t->batch.last = units; /* the CPU processes the rest */
		else
			status = t->status;
		if (status == OBK_RQA_OK) {
			struct obk_rqa_gpu_batch *b = &t->batch;

			if (ahead)
				turn_begin(next, job, &kept, b->last, true);
			job->batch = t->status == OBK_RQA_OK && b->found ? b : NULL;
			job->crew =
				b->last - unit < threads ? threads / (unsigned)(b->last - unit) : 1;
			obk_rqa_each(job->watch, threads, unit, b->last, obk_rqa_task_run, job);
			job->batch = NULL;
			unit = b->last;
			if (!ahead)
				turn_begin(next, job, &kept, unit, false);
			turn_wait(next);
		} else if (ret_error) {
			*ret_error = t->error;
		}
		batch_fini(&t->batch);
		t->batch = (struct obk_rqa_gpu_batch){ 0 };
		now = !now;
	}
	batch_fini(&turns[0].batch);
	batch_fini(&turns[1].batch);
	kept_fini(&kept, job);
	return status;
}
