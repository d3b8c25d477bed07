/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard rqa plot`: a recurrence plot, or a heat map of a sweep's results. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "compute/command/progress.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/heat.h"
#include "compute/command/rqa/rqa.h"
#include "compute/command/rqa/setup.h"
#include "compute/command/rqa/setup_options.h"
#include "tools/command.h"

#define SIZE_USUAL 800
#define TICKS      6

struct job {
	struct obx_setup setup;
	const char *path, *cross_path, *joint_path, *other_path, *out_path, *heat, *x, *y, *where;
	enum obx_progress_mode progress;
	uint64_t size;
	bool mean, joint;
	struct obx_progress meter;
};

static int on_progress(void *arg, const struct obk_rqa_progress *p)
{
	struct job *job = arg;

	obx_progress_show(&job->meter, p->total ? (double)p->done / (double)p->total : 1,
		p->elapsed, p->eta, "plotting", false);
	return obx_rqa_stop;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Makes the axis for `count` vectors, of a file if it is not NULL. */
static void axis(struct obx_axis *axis, const char *name, const char *file, uint64_t count)
{
	snprintf(axis->label, sizeof axis->label, file ? "vector %s of %.120s" : "vector %s", name,
		file);
	/*
	 * Vectors are numbered from 0, and the centre of each is half a cell further. There must
	 * not be more ticks than vectors, because some would lie between vectors.
	 */
	axis->count = obx_ticks_range(
		-0.5, (double)count - 0.5, count < TICKS ? (unsigned)count : TICKS, axis->ticks);
}

static void labels(struct job *job, const struct obk_rqa_options *options, uint64_t columns,
	uint64_t rows, struct obx_figure *f)
{
	const char *name = base_name(job->path),
		   *other = job->other_path ? base_name(job->other_path) : name;
	bool cross = job->other_path && !job->joint;
	char eps[OBX_NUMBER_MAX];

	if (job->other_path && strcmp(name, other) == 0) { /* they differ only in their folders */
		name = job->path;
		other = job->other_path;
	}
	obx_number_print(options->radius, 6, eps);
	snprintf(f->title, sizeof f->title, "%s of %.200s%s%.200s, %s",
		cross                     ? "Cross recurrence"
			: job->other_path ? "Joint recurrence"
					  : "Recurrence",
		name, job->other_path ? " and " : "", job->other_path ? other : "",
		job->setup.modes[0].name);
	snprintf(f->subtitle, sizeof f->subtitle, "m=%u tau=%u eps=%s", options->m, options->tau,
		eps);
	axis(&f->x, "i", cross ? name : NULL, columns);
	axis(&f->y, "j", cross ? other : NULL, rows);
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
	OB_CLEANUP(ob_freep) uint32_t *colours = NULL;
	struct obk_rqa_error wrong = { 0 };
	uint64_t columns, rows, longer;
	struct obx_figure figure = { 0 };
	uint32_t zoom;

	if (obk_rqa_plot_size(x, y, options, &columns, &rows, &wrong) != OBK_RQA_OK)
		return obx_error_set(error, "%s", wrong.text);
	longer = columns > rows ? columns : rows;
	/* Short series: a whole number of pixels per cell. Long series: several cells per pixel. */
	zoom = longer < job->size ? (uint32_t)(job->size / longer) : 1;
	figure.columns = (uint32_t)(longer > job->size ? columns * job->size / longer : columns);
	figure.rows = (uint32_t)(longer > job->size ? rows * job->size / longer : rows);
	figure.columns = figure.columns ? figure.columns : 1;
	figure.rows = figure.rows ? figure.rows : 1;
	figure.width = figure.columns * zoom;
	figure.height = figure.rows * zoom;
	pixels = malloc((size_t)figure.columns * figure.rows);
	colours = malloc((size_t)figure.columns * figure.rows * sizeof *colours);
	if (!pixels || !colours)
		return obx_error_set(error, "out of memory for the plot");
	if (obk_rqa_plot(x, y, options, figure.columns, figure.rows, job->mean, &control, pixels,
		    &wrong) != OBK_RQA_OK)
		return obx_error_set(error, "%s", wrong.text);
	for (size_t i = 0; i < (size_t)figure.columns * figure.rows; i++)
		colours[i] = pixels[i] * 0x10101u;
	figure.colours = colours;
	labels(job, options, columns, rows, &figure);
	obx_progress_clear(&job->meter);
	return obx_figure_write(&figure, job->out_path, error);
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

/* Prints what the cells are means over, and how to get one picture for each. */
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
	OB_CLEANUP(obx_heat_fini) struct obx_heat heat = { 0 };
	OB_CLEANUP(ob_freep) uint32_t *colours = NULL;
	struct obx_figure figure;

	if (!obx_heat_init(&heat, error) ||
		!obx_heat_read(&heat, job->path, job->heat, job->x ? job->x : "eps",
			job->y ? job->y : "m", job->where, error) ||
		!obx_heat_figure(&heat, (uint32_t)job->size, &figure, &colours, error) ||
		!obx_figure_write(&figure, job->out_path, error))
		return false;
	note_means(&heat);
	return true;
}

static const struct ob_option options[] = {
	{ OB_OPTION("out", OB_FILE, struct job, out_path), .arg = "FILE", .letter = 'o',
		.help = "the picture: SVG if the name ends in .svg, else PNG; - is standard "
			"output, a PNG" },
	{ OB_OPTION("size", OB_NUMBER, struct job, size), .arg = "N", .min = 16,
		.max = OBK_RQA_MAX_IMAGE, .fallback = OB_VALUE_TEXT(SIZE_USUAL),
		.help = "dots of the longer side" },
	{ OB_OPTION("mean", OB_FLAG, struct job, mean),
		.help = "shades of grey for long series: the share of recurrent cells; else a dot "
			"is black when any cell recurs" },
	{ OB_OPTION("cross", OB_FILE, struct job, cross_path), .arg = "FILE",
		.help = "cross recurrence with a second series" },
	{ OB_OPTION("joint", OB_FILE, struct job, joint_path), .arg = "FILE",
		.help = "joint recurrence with a second series" },
	OBX_PROGRESS_OPTION(
		struct job, progress){ .name = "Heat map of a sweep", .kind = OB_HEADING },
	{ OB_OPTION("heat", OB_TEXT, struct job, heat), .arg = "MEASURE",
		.help = "the measure to show" },
	{ OB_OPTION("x", OB_TEXT, struct job, x), .arg = "NAME", .words = "m|tau|eps|lmin",
		.fallback = "eps", .help = "parameter of the x axis: m, tau, eps or lmin" },
	{ OB_OPTION("y", OB_TEXT, struct job, y), .arg = "NAME", .words = "m|tau|eps|lmin",
		.fallback = "m", .help = "parameter of the y axis" },
	{ OB_OPTION("where", OB_TEXT, struct job, where), .arg = "'NAME=VALUE ...'",
		.help = "only these rows, for example 'mode=2D-xy tau=1'; the mean of all rows of "
			"a cell is shown" },
	OBX_SETUP_POINT(struct job, setup) OBX_SETUP_OPTIONS(struct job, setup){ 0 },
};

static const struct ob_operand operands[] = {
	{ .name = "FILE",
		.file = true,
		.offset = offsetof(struct job, path),
		.missing = "a file is missing" },
	{ 0 },
};

/* Returns OB_OPTIONS_GO or an exit code. */
static int parse(struct job *job, int argc, char **argv)
{
	const struct ob_command *command = &obx_rqa_plot_command;
	struct obx_error error;
	int code = ob_options_parse(command, job, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (!job->out_path)
		return ob_usage_error(command, "--out is missing: name a file for the picture");
	if ((job->x || job->y || job->where) && !job->heat)
		return ob_usage_error(command, "--x, --y and --where go with --heat");
	if (!obx_setup_finish(&job->setup, &error))
		return ob_usage_error(command, "%s", error.text);
	job->joint = job->joint_path;
	job->other_path = job->joint ? job->joint_path : job->cross_path;
	obx_progress_init(&job->meter, job->progress);
	return OB_OPTIONS_GO;
}

static int plot_main(int argc, char **argv)
{
	OB_CLEANUP(ob_freep) struct job *job = calloc(1, sizeof *job);
	struct obx_error error = { "out of memory" };
	int code;

	if (!job) {
		fprintf(stderr, "outboard rqa plot: out of memory\n");
		return OBX_EXIT_UNWELL;
	}
	job->size = SIZE_USUAL;
	code = parse(job, argc, argv);
	if (code != OB_OPTIONS_GO)
		return code;
	obx_rqa_catch_signals();
	if (job->heat ? plot_heat(job, &error) : plot_series(job, &error))
		return 0;
	obx_progress_clear(&job->meter);
	fprintf(stderr, "outboard rqa plot: %s\n", error.text);
	return obx_rqa_stop ? OBX_EXIT_STOPPED : OBX_EXIT_UNWELL;
}

const struct ob_command obx_rqa_plot_command = {
	.name = "outboard rqa plot",
	.summary = "a recurrence plot, or a heat map of a sweep, as PNG or SVG",
	.usage = "FILE --out FILE [OPTION]...\n"
		 "RESULTS.csv --heat MEASURE --out FILE [OPTION]...",
	.about = "Draws the recurrence plot of a series, or with --heat a measure of a sweep's "
		 "results over two parameters.",
	.notes = OBX_SETUP_NOTES,
	.options = options,
	.operands = operands,
	.main = plot_main,
};
