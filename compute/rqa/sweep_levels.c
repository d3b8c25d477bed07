/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Counts all radii of a task in one pass: each diagonal and each column is walked once, one
 * difference per cell is added for every step of m, and the lines of all radii are counted from the
 * distances.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/rqa/sweep.h"

#define SPELL_LINES 64u /* diagonals or columns that a thread of a crew takes at a time */
/*
 * most bytes of counters per thread: the dimensions are processed in as many passes as that
 * requires
 */
#define CHUNK_BYTES (64u << 20)

struct order {
	double limit;
	uint32_t index;
};

static int order_compare(const void *a, const void *b)
{
	double left = ((const struct order *)a)->limit, right = ((const struct order *)b)->limit;

	return left < right ? -1 : left > right;
}

/*
 * Computes the distinct limits in ascending order; task->level[radius index] is the level of each
 * radius.
 */
bool obk_rqa_task_levels(struct obk_rqa_task *task, const struct obk_rqa_plot *plot, double unit)
{
	const struct obk_rqa_grid *grid = task->job->sweep->grid;
	struct obk_rqa_levels *levels = &task->levels;
	struct order *order = malloc(grid->radius_count * sizeof *order);

	if (!order)
		return false;
	for (uint32_t r = 0; r < grid->radius_count; r++)
		order[r] =
			(struct order){ obk_rqa_limit(plot->norm, task->job->sweep->options->test,
						plot->f64, grid->radius[r] * unit),
				r };
	qsort(order, grid->radius_count, sizeof *order, order_compare);
	levels->count = 0;
	levels->f64 = plot->f64;
	for (uint32_t r = 0; r < grid->radius_count; r++) {
		if (!levels->count || levels->limit[levels->count - 1] < order[r].limit) {
			levels->limit[levels->count] = order[r].limit;
			levels->limit_f32[levels->count++] = (float)order[r].limit;
		}
		task->level[order[r].index] = levels->count - 1;
	}
	free(order);
	/*
	 * A distance is mapped to a table entry. Levels that are mapped to a lower entry are below
	 * it, because the mapping is monotone.
	 */
	levels->look_base = levels->limit[0];
	levels->look_scale = levels->limit[levels->count - 1] > levels->look_base
		? OBK_RQA_LOOK / (levels->limit[levels->count - 1] - levels->look_base)
		: 0;
	if (!isfinite(levels->look_scale))
		levels->look_scale = 0;
	for (uint32_t slot = 0, below = 0; slot < OBK_RQA_LOOK + 2; slot++) {
		while (below < levels->count &&
			(uint32_t)((levels->limit[below] - levels->look_base) *
				levels->look_scale) < slot)
			below++;
		levels->look[slot] = below < levels->count ? below : levels->count - 1;
	}
	return true;
}

/*
 * Sums over lengths >= each lmin from the counters of one level, added in the same order as in a
 * single run.
 */
static void level_sums(const struct obk_rqa_task *task, const uint64_t *counts, uint64_t longest,
	uint64_t n, bool loi, unsigned times, const uint32_t *shortest, uint32_t shortest_count,
	struct obk_rqa_sums *ret_from_min, struct obk_rqa_sums *ret_all, uint64_t *ret_longest)
{
	struct obk_rqa_sums sums = { 0 };

	*ret_longest = 0;
	if (loi)
		sums = (struct obk_rqa_sums){ .lines = 1, .points = n, .bins = 1, .longest = n };
	for (uint32_t s = 0; s < shortest_count; s++)
		ret_from_min[s] = shortest[s] > n ? (struct obk_rqa_sums){ 0 } : sums;
	for (uint64_t l = longest; l >= 1; l--) {
		uint64_t count = counts[l] * times;

		if (count) {
			sums.lines += count;
			sums.points += count * l;
			sums.bins++;
			sums.longest = sums.longest ? sums.longest : l;
			*ret_longest = *ret_longest ? *ret_longest : l;
			sums.weighted += obk_rqa_plogp(count);
		}
		for (uint32_t s = 0; l <= task->lmin_most && s < shortest_count; s++)
			if (shortest[s] == l)
				ret_from_min[s] = sums;
	}
	*ret_all = sums;
}

/* Computes the rows of one level from task->sum and task->sum_vertical. */
static void level_measure(struct obk_rqa_task *task, uint32_t level, uint64_t lines_longest,
	bool vertical, uint64_t columns_longest, uint64_t n, double unit)
{
	const struct obk_rqa_grid *grid = task->job->sweep->grid;
	const struct obk_rqa_options *options = task->job->sweep->options;
	struct obk_rqa_sums all, vertical_all = { 0 }, vertical_min = { 0 };
	double cells = obk_rqa_cells(n, n, true, options);
	unsigned times = options->triangle == OBK_RQA_BOTH ? 2 : 1;
	bool loi = task->levels.limit[level] >= 0;
	uint64_t longest, vertical_longest, points;

	level_sums(task, task->sum, lines_longest, n, loi && options->theiler_diag == 0, times,
		grid->lmin, grid->lmin_count, task->from_min, &all, &longest);
	points = all.points - (loi && options->theiler_diag == 0 ? n : 0) +
		(loi && options->theiler_rr == 0 ? n : 0);
	if (vertical)
		level_sums(task, task->sum_vertical, columns_longest, n, false, 1, &options->vmin,
			1, &vertical_min, &vertical_all, &vertical_longest);
	for (uint32_t r = 0; r < grid->radius_count; r++) {
		if (task->level[r] != level)
			continue;
		for (uint32_t s = 0; s < grid->lmin_count; s++) {
			double *v = task->values +
				(size_t)(r * grid->lmin_count + s) * OBK_RQA_MEASURE_COUNT;

			for (unsigned i = 0; i < OBK_RQA_MEASURE_COUNT; i++)
				v[i] = NAN;
			obk_rqa_measure_lines(options, n, &task->from_min[s], &all,
				options->lmax_excludes_loi ? longest : all.longest, points, cells,
				v);
			if (vertical)
				obk_rqa_measure_vertical(
					options, n, &vertical_min, &vertical_all, points, v);
			v[OBK_RQA_RADIUS] = grid->radius[r] * unit;
			task->statuses[r * grid->lmin_count + s] = OBK_RQA_OK;
		}
	}
}

/* Computes the rows of one m from its counters. */
static void group_measure(struct obk_rqa_task *task, struct obk_rqa_delta *lines,
	struct obk_rqa_delta *vertical, uint64_t n, double unit)
{
	memset(task->sum, 0, (lines->longest + 1) * sizeof *task->sum);
	if (vertical)
		memset(task->sum_vertical, 0, (vertical->longest + 1) * sizeof *task->sum_vertical);
	for (uint32_t level = 0; level < task->levels.count; level++) {
		for (uint64_t l = 1; l <= lines->longest; l++)
			task->sum[l] += (uint64_t)(int64_t)lines->count[level * lines->stride + l];
		for (uint64_t l = 1; vertical && l <= vertical->longest; l++)
			task->sum_vertical[l] +=
				(uint64_t)(int64_t)vertical->count[level * vertical->stride + l];
		level_measure(task, level, lines->longest, vertical,
			vertical ? vertical->longest : 0, n, unit);
	}
}

/* ---- counts from a device ---- */

static uint64_t pairs_sum(uint64_t *sum, const uint32_t *pairs, uint32_t count)
{
	uint64_t longest = count ? pairs[2 * (count - 1)] : 0;

	memset(sum, 0, (longest + 1) * sizeof *sum);
	for (uint32_t p = 0; p < count; p++)
		sum[pairs[2 * p]] = pairs[2 * p + 1];
	return longest;
}

/* Computes the rows of one m; false: the device did not count it. */
static bool found_measure(struct obk_rqa_task *task, uint32_t m_index, uint64_t n, double unit)
{
	bool vertical = task->job->sweep->options->want & OBK_RQA_WANT_VERTICAL;
	const uint32_t *pairs[2];
	uint32_t count[2];

	for (uint32_t level = 0; level < task->levels.count; level++)
		if (!obk_rqa_gpu_found(task, m_index, level, false, &pairs[0], &count[0]) ||
			(vertical &&
				!obk_rqa_gpu_found(
					task, m_index, level, true, &pairs[1], &count[1])))
			return false;
	for (uint32_t level = 0; level < task->levels.count; level++) {
		uint64_t longest, columns_longest = 0;

		obk_rqa_gpu_found(task, m_index, level, false, &pairs[0], &count[0]);
		longest = pairs_sum(task->sum, pairs[0], count[0]);
		if (vertical) {
			obk_rqa_gpu_found(task, m_index, level, true, &pairs[1], &count[1]);
			columns_longest = pairs_sum(task->sum_vertical, pairs[1], count[1]);
		}
		level_measure(task, level, longest, vertical, columns_longest, n, unit);
	}
	return true;
}

/* Delivers the rows of all m that the device counted; the others stay in task->order. */
static void task_found(struct obk_rqa_task *task, const struct obk_rqa_plot *plot, double unit)
{
	const struct obk_rqa_job *job = task->job;
	uint32_t left = 0;

	for (uint32_t o = 0; o < task->order_count && !obk_rqa_watch_stopped(job->watch); o++) {
		uint64_t n = plot->x.length -
			(uint64_t)(job->sweep->grid->m[task->order[o]] - 1) * plot->tau;

		if (found_measure(task, task->order[o], n, unit))
			obk_rqa_rows_give(task, task->order[o], OBK_RQA_OK, NULL);
		else
			task->order[left++] = task->order[o];
	}
	task->order_count = left;
}

static bool delta_init(struct obk_rqa_delta *delta, uint32_t levels, uint64_t n)
{
	memset(delta, 0, sizeof *delta);
	delta->stride = n + 1;
	delta->count = calloc((levels + 1) * delta->stride, sizeof *delta->count);
	delta->stack_level = malloc((levels + 2) * sizeof *delta->stack_level);
	delta->stack_start = malloc((levels + 2) * sizeof *delta->stack_start);
	return delta->count && delta->stack_level && delta->stack_start;
}

static void delta_fini(struct obk_rqa_delta *delta)
{
	free(delta->count);
	free(delta->stack_level);
	free(delta->stack_start);
	memset(delta, 0, sizeof *delta);
}

/*
 * The part of one thread of a crew: its own buffers and counters, and the task's series and levels.
 */
struct part {
	void *gaps, *distance;
	struct obk_rqa_delta *deltas; /* one per dimension of the walk */
};

struct walk {
	const struct obk_rqa_task *task;
	const struct obk_rqa_plot *plot;
	struct part *part;
	uint32_t first, last; /* of task->order */
	uint64_t from, to;    /* diagonals, or columns */
	bool columns;
};

/*
 * Walks diagonals for the dimensions order[first..last): the distance for m + 1 is that for m plus
 * one difference per channel.
 */
static void diagonals_walk(const struct walk *walk, struct part *part, uint64_t from, uint64_t to)
{
	const struct obk_rqa_task *task = walk->task;
	const struct obk_rqa_plot *plot = walk->plot;
	const struct obk_rqa_job *job = task->job;
	const struct obk_rqa_grid *grid = job->sweep->grid;
	size_t size = plot->f64 ? sizeof(double) : sizeof(float);
	uint64_t length = plot->x.length;

	for (uint64_t k = from; k < to; k++) {
		uint32_t m = 1;

		for (uint32_t c = 0; c < plot->channels; c++)
			job->ops->gaps(plot, c, 0, k, length - k,
				(char *)part->gaps + c * task->stride * size);
		memcpy(part->distance, part->gaps, (length - k) * size);
		for (uint32_t c = 1; c < plot->channels; c++)
			job->ops->join(plot, part->distance,
				(char *)part->gaps + c * task->stride * size, length - k);
		for (uint32_t o = walk->first; o < walk->last; o++) {
			uint32_t wanted = grid->m[task->order[o]];
			uint64_t n = length - (uint64_t)(wanted - 1) * plot->tau;

			if (k >= n)
				break;
			for (; m < wanted; m++)
				for (uint32_t c = 0; c < plot->channels; c++)
					job->ops->join(plot, part->distance,
						(char *)part->gaps +
							(c * task->stride + m * plot->tau) * size,
						length - k - m * plot->tau);
			job->ops->levels(part->distance, n - k, &task->levels,
				&part->deltas[o - walk->first]);
		}
	}
}

/* Walks columns for the same dimensions in the same way. */
static void columns_walk(const struct walk *walk, struct part *part, uint64_t from, uint64_t to)
{
	const struct obk_rqa_task *task = walk->task;
	const struct obk_rqa_job *job = task->job;
	const struct obk_rqa_grid *grid = job->sweep->grid;
	struct obk_rqa_plot plot = *walk->plot;
	uint64_t width = job->sweep->options->theiler_vert, length = plot.x.length;
	size_t size = plot.f64 ? sizeof(double) : sizeof(float);

	plot.m = 1;
	plot.x.n = length - (uint64_t)(grid->m[task->order[walk->first]] - 1) * plot.tau;
	for (uint64_t j = from; j < to; j++) {
		uint32_t m = 1;

		job->ops->column_distance(&plot, j, part->distance);
		for (uint32_t o = walk->first; o < walk->last; o++) {
			uint32_t wanted = grid->m[task->order[o]];
			uint64_t n = length - (uint64_t)(wanted - 1) * plot.tau;
			struct obk_rqa_delta *delta = &part->deltas[o - walk->first];

			if (j >= n)
				break;
			for (; m < wanted; m++)
				job->ops->column_step(&plot, j, m, n, part->distance);
			if (!width) {
				job->ops->levels(part->distance, n, &task->levels, delta);
				continue;
			}
			if (j + 1 > width)
				job->ops->levels(
					part->distance, j + 1 - width, &task->levels, delta);
			if (j + width < n)
				job->ops->levels((char *)part->distance + (j + width) * size,
					n - j - width, &task->levels, delta);
		}
	}
}

static void walk_spell(void *arg, unsigned thread, uint64_t spell)
{
	const struct walk *walk = arg;
	uint64_t from = walk->from + spell * SPELL_LINES,
		 to = from + SPELL_LINES < walk->to ? from + SPELL_LINES : walk->to;

	if (walk->columns)
		columns_walk(walk, &walk->part[thread], from, to);
	else
		diagonals_walk(walk, &walk->part[thread], from, to);
}

static void delta_add(struct obk_rqa_delta *into, const struct obk_rqa_delta *more, uint32_t levels)
{
	for (uint64_t i = 0; i < (levels + 1) * into->stride; i++)
		into->count[i] += more->count[i];
	into->longest = more->longest > into->longest ? more->longest : into->longest;
}

/* Frees the parts of all threads but the first, which uses the buffers of the task. */
static void parts_fini(struct walk *walk, unsigned crew)
{
	for (unsigned t = 1; t < crew && walk->part; t++) {
		for (uint32_t d = 0; d < walk->last - walk->first && walk->part[t].deltas; d++)
			delta_fini(&walk->part[t].deltas[d]);
		free(walk->part[t].deltas);
		free(walk->part[t].gaps);
		free(walk->part[t].distance);
	}
	free(walk->part);
	walk->part = NULL;
}

static bool parts_init(struct walk *walk, unsigned crew, struct obk_rqa_delta *deltas)
{
	const struct obk_rqa_task *task = walk->task;
	bool good;

	walk->part = calloc(crew, sizeof *walk->part);
	good = walk->part != NULL;
	if (good)
		walk->part[0] = (struct part){ task->gaps, task->distance, deltas };
	for (unsigned t = 1; t < crew && good; t++) {
		struct part *part = &walk->part[t];

		part->gaps =
			calloc(task->stride * task->room_channels + OBK_RQA_PAD, sizeof(double));
		part->distance = calloc(task->stride + OBK_RQA_PAD, sizeof(double));
		part->deltas = calloc(walk->last - walk->first, sizeof *part->deltas);
		good = part->gaps && part->distance && part->deltas;
		for (uint32_t d = 0; d < walk->last - walk->first && good; d++)
			good = delta_init(
				&part->deltas[d], task->levels.count, deltas[d].stride - 1);
	}
	if (!good)
		parts_fini(walk, crew);
	return good;
}

/* Counts all lines from..to - 1 in deltas[] with the task's crew. */
static int walk_run(struct walk *walk, struct obk_rqa_delta *deltas)
{
	const struct obk_rqa_job *job = walk->task->job;
	unsigned crew = walk->plot->x.length < job->crew * SPELL_LINES ? 1 : job->crew;

	while (!parts_init(walk, crew, deltas)) {
		if (crew == 1)
			return OBK_RQA_NO_MEMORY;
		crew /= 2;
	}
	if (walk->from < walk->to)
		obk_rqa_each(job->watch, crew, 0,
			(walk->to - walk->from + SPELL_LINES - 1) / SPELL_LINES, walk_spell, walk);
	for (unsigned t = 1; t < crew; t++)
		for (uint32_t d = 0; d < walk->last - walk->first; d++)
			delta_add(&deltas[d], &walk->part[t].deltas[d], walk->task->levels.count);
	parts_fini(walk, crew);
	return OBK_RQA_OK;
}

/*
 * Counts the dimensions order[first..last) of a task: deltas[] of their diagonals, then of their
 * columns if those are wanted. Returns enum obk_rqa_status.
 */
static int chunk_walk(const struct obk_rqa_task *task, const struct obk_rqa_plot *plot,
	uint32_t first, uint32_t last, struct obk_rqa_delta *deltas)
{
	const struct obk_rqa_job *job = task->job;
	const struct obk_rqa_options *options = job->sweep->options;
	bool vertical = options->want & OBK_RQA_WANT_VERTICAL;
	struct walk walk = { .task = task,
		.plot = plot,
		.first = first,
		.last = last,
		.from = options->theiler_diag > 1 ? options->theiler_diag : 1,
		.to = plot->x.length };
	int status;

	for (uint32_t d = 0; d < (vertical ? 2 : 1) * (last - first); d++) {
		uint32_t m = job->sweep->grid->m[task->order[first + d % (last - first)]];

		if (!delta_init(&deltas[d], task->levels.count,
			    plot->x.length - (uint64_t)(m - 1) * plot->tau))
			return OBK_RQA_NO_MEMORY;
	}
	status = walk_run(&walk, deltas);
	if (!vertical || status != OBK_RQA_OK)
		return status;
	walk.columns = true;
	walk.from = 0;
	walk.to = deltas[0].stride - 1;
	return walk_run(&walk, deltas + (last - first));
}

int obk_rqa_task_pass(struct obk_rqa_task *task, const struct obk_rqa_plot *plot, double unit)
{
	struct obk_rqa_job *job = task->job;
	const struct obk_rqa_grid *grid = job->sweep->grid;
	bool vertical = job->sweep->options->want & OBK_RQA_WANT_VERTICAL;
	uint64_t bytes;
	uint32_t chunk, given = 0;
	int status = OBK_RQA_OK;

	if (!obk_rqa_task_levels(task, plot, unit))
		return OBK_RQA_NO_MEMORY;
	if (job->batch)
		task_found(task, plot, unit);
	bytes = (vertical ? 2 : 1) * (task->levels.count + 1) * (plot->x.length + 1) *
		sizeof(int32_t);
	chunk = bytes > CHUNK_BYTES ? 1 : (uint32_t)(CHUNK_BYTES / bytes);
	for (uint32_t first = 0; first < task->order_count && status == OBK_RQA_OK;
		first += chunk) {
		uint32_t last =
			first + chunk < task->order_count ? first + chunk : task->order_count;
		struct obk_rqa_delta *deltas = calloc((size_t)2 * (last - first), sizeof *deltas);

		status = deltas ? chunk_walk(task, plot, first, last, deltas) : OBK_RQA_NO_MEMORY;
		for (uint32_t o = first;
			o < last && status == OBK_RQA_OK && !obk_rqa_watch_stopped(job->watch);
			o++) {
			uint64_t n = plot->x.length -
				(uint64_t)(grid->m[task->order[o]] - 1) * plot->tau;

			group_measure(task, &deltas[o - first],
				vertical ? &deltas[last - first + o - first] : NULL, n, unit);
			obk_rqa_rows_give(task, task->order[o], OBK_RQA_OK, NULL);
			given++;
		}
		for (uint32_t d = 0; deltas && d < 2 * (last - first); d++)
			delta_fini(&deltas[d]);
		free(deltas);
	}
	task->order_count -= given;
	memmove(task->order, task->order + given, task->order_count * sizeof *task->order);
	return status;
}
