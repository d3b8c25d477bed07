/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard rqa plot`: a recurrence plot, or a heat map of a sweep's results. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "compute/command/rqa/args.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/heat.h"
#include "compute/command/rqa/meter.h"
#include "compute/command/rqa/rqa.h"
#include "tools/command.h"

#define SIZE_USUAL 800
#define LEFT       90
#define TOP        44
#define RIGHT      30
#define BOTTOM     62
#define TICKS      5

struct job {
	struct obx_setup setup;
	const char *path, *other_path, *out_path, *heat, *x, *y, *where;
	uint64_t size;
	bool mean, joint;
	struct obx_meter meter;
};

static void usage(FILE *out)
{
	fprintf(out,
		"usage: outboard rqa plot FILE --out PNG [options]                    recurrence "
		"plot of a series\n"
		"       outboard rqa plot RESULTS.csv --heat MEASURE --out PNG ...    heat map of "
		"a sweep\n\n"
		"  --out FILE                   the picture; - is standard output\n"
		"  --size N                     dots of the longer side, 16 to %u; default %d\n"
		"  --mean                       shades of grey for long series: the share of "
		"recurrent cells; else a dot is black when any "
		"cell recurs\n"
		"  --cross FILE, --joint FILE   with a second series\n"
		"  --x NAME, --y NAME           heat map: the parameters, of m, tau, eps, lmin; "
		"default eps and m\n"
		"  --where 'NAME=VALUE ...'     heat map: only these rows, for example 'mode=2D-xy "
		"tau=1'; the mean of all rows of a cell "
		"is shown\n"
		"  --progress WHEN              auto, always, never\n\n",
		OBK_RQA_MAX_IMAGE, SIZE_USUAL);
	obx_setup_usage(out);
}

static int on_progress(void *arg, const struct obk_rqa_progress *p)
{
	struct job *job = arg;

	obx_meter_show(&job->meter, p->total ? (double)p->done / (double)p->total : 1, p->elapsed,
		p->eta, "plotting", false);
	return obx_rqa_stop;
}

/* 1, 2 or 5 times a power of ten, so that about TICKS of them fit. */
static uint64_t tick_step(uint64_t count)
{
	uint64_t step = 1;

	while (count / step > TICKS) {
		if (count / (step * 2) <= TICKS)
			return step * 2;
		if (count / (step * 5) <= TICKS)
			return step * 5;
		step *= 10;
	}
	return step;
}

static void draw_ticks(
	struct obx_canvas *c, uint32_t width, uint32_t height, uint64_t columns, uint64_t rows)
{
	char text[OBX_NUMBER_MAX];

	for (uint64_t at = 0; at < columns; at += tick_step(columns)) {
		int x = LEFT + (int)(((double)at + 0.5) * width / (double)columns);

		obx_canvas_box(c, x, TOP + (int)height + 1, 1, 6, OBX_BLACK);
		snprintf(text, sizeof text, "%" PRIu64, at);
		obx_canvas_text(
			c, x - obx_canvas_text_width(text, 2) / 2, TOP + (int)height + 12, 2, text);
	}
	for (uint64_t at = 0; at < rows; at += tick_step(rows)) {
		int y = TOP + (int)((double)height - ((double)at + 0.5) * height / (double)rows);

		obx_canvas_box(c, LEFT - 7, y, 6, 1, OBX_BLACK);
		snprintf(text, sizeof text, "%" PRIu64, at);
		obx_canvas_text(c, LEFT - 12 - obx_canvas_text_width(text, 2), y - 7, 2, text);
	}
}

static bool draw_plot(struct job *job, const struct obk_rqa_series *x,
	const struct obk_rqa_series *y, const struct obk_rqa_options *options,
	struct obx_error *error)
{
	struct obk_rqa_control control = { .threads = job->setup.threads,
		.isa = job->setup.isa,
		.arg = job,
		.progress = on_progress,
		.cancel = &obx_rqa_stop };
	OB_CLEANUP(ob_freep) uint8_t *pixels = NULL;
	OB_CLEANUP(obx_canvas_fini) struct obx_canvas canvas = { 0 };
	struct obk_rqa_error wrong = { 0 };
	uint64_t columns, rows, longer;
	uint32_t width, height, zoom;
	char title[200], eps[OBX_NUMBER_MAX];
	const char *slash = strrchr(job->path, '/');

	if (obk_rqa_plot_size(x, y, options, &columns, &rows, &wrong) != OBK_RQA_OK)
		return obx_error_set(error, "%s", wrong.text);
	longer = columns > rows ? columns : rows;
	/* Short series: whole dots for each cell. Long ones: cells are brought together. */
	zoom = longer < job->size ? (uint32_t)(job->size / longer) : 1;
	width = longer > job->size ? (uint32_t)(columns * job->size / longer) : (uint32_t)columns;
	height = longer > job->size ? (uint32_t)(rows * job->size / longer) : (uint32_t)rows;
	width = width ? width : 1;
	height = height ? height : 1;
	pixels = malloc((size_t)width * height);
	if (!pixels)
		return obx_error_set(error, "out of memory for the plot");
	if (obk_rqa_plot(x, y, options, width, height, job->mean, &control, pixels, &wrong) !=
		OBK_RQA_OK)
		return obx_error_set(error, "%s", wrong.text);
	if (!obx_canvas_init(&canvas, LEFT + (int)(width * zoom) + RIGHT,
		    TOP + (int)(height * zoom) + BOTTOM, error))
		return false;
	for (uint32_t j = 0; j < height; j++)
		for (uint32_t i = 0; i < width; i++)
			obx_canvas_box(&canvas, LEFT + (int)(i * zoom), TOP + (int)(j * zoom),
				(int)zoom, (int)zoom, pixels[(size_t)j * width + i] * 0x10101u);
	obx_canvas_frame(&canvas, LEFT, TOP, (int)(width * zoom), (int)(height * zoom));
	draw_ticks(&canvas, width * zoom, height * zoom, columns, rows);
	obx_number_print(options->radius, 6, eps);
	snprintf(title, sizeof title, "%.80s  %s  m=%u tau=%u eps=%s",
		slash ? slash + 1 : job->path, job->setup.modes[0].name, options->m, options->tau,
		eps);
	obx_canvas_text(&canvas, LEFT, 14,
		obx_canvas_text_width(title, 2) > (int)(width * zoom) + RIGHT ? 1 : 2, title);
	obx_canvas_text(&canvas, LEFT + (int)(width * zoom) / 2 - 36,
		TOP + (int)(height * zoom) + 38, 2, "vector");
	obx_meter_clear(&job->meter);
	return obx_canvas_write(&canvas, job->out_path, error);
}

static void fini_table(struct obx_table *table)
{
	obx_table_fini(table);
}

static bool plot_series(struct job *job, struct obx_error *error)
{
	OB_CLEANUP(fini_table) struct obx_table table = { 0 }, other = { 0 };
	OB_CLEANUP(ob_freep) double *copy = NULL;
	OB_CLEANUP(ob_freep) double *other_copy = NULL;
	struct obk_rqa_options options = job->setup.options;
	struct obk_rqa_series x, y;
	int status;

	if (!obx_table_read(job->path, &job->setup.table, &table, error) ||
		(job->other_path &&
			!obx_table_read(job->other_path, &job->setup.table, &other, error)) ||
		!obx_setup_modes(&job->setup, table.channels, error))
		return false;
	if (job->setup.modes[0].norm >= 0)
		options.norm = job->setup.modes[0].norm;
	if (job->other_path)
		options.kind = job->joint ? OBK_RQA_JOINT : OBK_RQA_CROSS;
	return obx_setup_series(&job->setup, &job->setup.modes[0], job->path, &table, &x, &copy,
		       &status, error) &&
		(!job->other_path ||
			obx_setup_series(&job->setup, &job->setup.modes[0], job->other_path, &other,
				&y, &other_copy, &status, error)) &&
		draw_plot(job, &x, job->other_path ? &y : NULL, &options, error);
}

/* Says what the cells are means over, and how to have one picture of each. */
static void note_means(const struct obx_heat *heat)
{
	char over[OBX_OVER_TEXT_MAX], choice[OBX_OVER_TEXT_MAX];

	obx_over_text(&heat->over, heat->x_name, heat->y_name, over);
	obx_over_choice(&heat->over, heat->x_name, heat->y_name, choice);
	if (*over)
		fprintf(stderr,
			"outboard rqa plot: note: each cell is a mean over %s; to split it choose "
			"one with --where, for example --where '%s%s%s'\n",
			over, choice, *choice && *heat->others ? " " : "", heat->others);
}

static bool plot_heat(struct job *job, struct obx_error *error)
{
	OB_CLEANUP(obx_canvas_fini) struct obx_canvas canvas = { 0 };
	OB_CLEANUP(obx_heat_fini) struct obx_heat heat = { 0 };

	if (!obx_heat_init(&heat, error) ||
		!obx_heat_read(&heat, job->path, job->heat, job->x ? job->x : "eps",
			job->y ? job->y : "m", job->where, error) ||
		!obx_heat_draw(&heat, (int)job->size, &canvas, error) ||
		!obx_canvas_write(&canvas, job->out_path, error))
		return false;
	note_means(&heat);
	return true;
}

static bool parse(struct job *job, struct obx_args *args, bool *ret_help)
{
	enum obx_meter_mode meter = OBX_METER_AUTO;
	struct obx_error error;

	while (obx_args_next(args)) {
		const char *value = NULL;

		if (obx_args_flag(args, "help")) {
			usage(stdout);
			*ret_help = true;
			return true;
		}
		if (args->word && !job->path) {
			job->path = args->word;
		} else if (obx_args_flag(args, "mean")) {
			job->mean = true;
		} else if (obx_args_is(args, "joint", &job->other_path)) {
			job->joint = true;
		} else if (obx_args_is(args, "progress", &value)) {
			if (value && !obx_meter_parse(value, &meter))
				obx_args_refuse(args,
					"--progress is auto, always or never, not '%.40s'", value);
		} else if (obx_args_is(args, "size", &value)) {
			if (value &&
				!ob_text_parse_number(value, 16, OBK_RQA_MAX_IMAGE, &job->size))
				obx_args_refuse(args,
					"--size takes a whole number from 16 to %u, not '%.40s'",
					OBK_RQA_MAX_IMAGE, value);
		} else if (!obx_args_is(args, "cross", &job->other_path) &&
			!obx_args_is(args, "out", &job->out_path) &&
			!obx_args_is(args, "heat", &job->heat) &&
			!obx_args_is(args, "x", &job->x) && !obx_args_is(args, "y", &job->y) &&
			!obx_args_is(args, "where", &job->where)) {
			obx_args_setup(args, &job->setup);
		}
	}
	if (!args->wrong && !job->path)
		obx_args_refuse(args, "a file is missing");
	if (!args->wrong && !job->out_path)
		obx_args_refuse(args, "--out is missing: where the picture goes");
	if (!args->wrong && (job->x || job->y || job->where) && !job->heat)
		obx_args_refuse(args, "--x, --y and --where go with --heat");
	if (!args->wrong && !obx_setup_finish(&job->setup, &error))
		obx_args_refuse(args, "%s", error.text);
	obx_meter_init(&job->meter, meter);
	return !args->wrong;
}

int obx_rqa_plot_main(int argc, char **argv)
{
	OB_CLEANUP(ob_freep) struct job *job = calloc(1, sizeof *job);
	struct obx_args args = { .verb = "rqa plot", .argc = argc, .at = 1, .argv = argv };
	struct obx_error error = { "out of memory" };
	bool help = false;

	if (!job) {
		fprintf(stderr, "outboard rqa plot: out of memory\n");
		return OBX_EXIT_UNWELL;
	}
	job->size = SIZE_USUAL;
	if (!parse(job, &args, &help))
		return OBX_EXIT_USAGE;
	if (help)
		return 0;
	obx_rqa_catch_signals();
	if (job->heat ? plot_heat(job, &error) : plot_series(job, &error))
		return 0;
	obx_meter_clear(&job->meter);
	fprintf(stderr, "outboard rqa plot: %s\n", error.text);
	return obx_rqa_stop ? OBX_EXIT_STOPPED : OBX_EXIT_UNWELL;
}
