/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard rqa sweep`: the command line for compute/command/rqa/sweep.h. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "compute/command/progress.h"
#include "compute/command/rqa/device.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/rqa.h"
#include "compute/command/rqa/sweep.h"
#include "compute/command/rqa/setup.h"
#include "compute/command/rqa/setup_options.h"
#include "tools/command.h"

#define REASONS_SHOWN 10

struct command {
	struct obx_sweep *sweep;
	struct obx_progress meter;
	unsigned reasons; /* reported so far */
	/* options; those of the sweep are moved to it */
	bool json, fresh;
	const char *folder, *out, *pattern;
	enum obx_progress_mode progress;
	uint32_t writes, digits;
	struct obx_setup setup;
	struct obx_grid grid;
};

static void on_event(void *arg, const struct obx_sweep_event *event)
{
	struct command *c = arg;
	char text[200], rows[OBX_NUMBER_MAX], total[OBX_NUMBER_MAX], failed[OBX_NUMBER_MAX];
	const struct obx_sweep_counts *n = &event->counts;

	if (obx_rqa_stop)
		c->sweep->cancel = 1;
	switch (event->kind) {
	case OBX_SWEEP_READING:
		snprintf(text, sizeof text, "reading file %s of %s",
			obx_number_group(event->current, rows),
			obx_number_group(event->total, total));
		obx_progress_show(&c->meter, (double)event->current / (double)event->total, 0, NAN,
			text, false);
		break;
	case OBX_SWEEP_FAILED:
		if (c->reasons++ == REASONS_SHOWN)
			fprintf(stderr, "failed: more are listed in %s/failed.csv\n",
				c->sweep->out);
		if (c->reasons > REASONS_SHOWN)
			break;
		obx_progress_clear(&c->meter);
		fprintf(stderr, "failed: %s\n", event->text);
		break;
	case OBX_SWEEP_WRITING:
		snprintf(text, sizeof text, "writing %s", event->text);
		obx_progress_show(&c->meter, 1, event->elapsed, NAN, text, false);
		break;
	case OBX_SWEEP_STARTED:
	case OBX_SWEEP_PROGRESS:
		snprintf(text, sizeof text, "%s of %s rows, %s failed  %.2g cells/s  %s",
			obx_number_group(n->done + n->skipped + n->failed, rows),
			obx_number_group(n->total, total), obx_number_group(n->failed, failed),
			event->elapsed > 0 ? event->cells / event->elapsed : 0, event->signature);
		obx_progress_show(&c->meter, event->share, event->elapsed, event->eta, text, false);
		break;
	}
}

/* problem NULL: the sweep is complete. */
static void print_json(const struct obx_sweep *sweep, const char *problem)
{
	const struct obx_sweep_counts *n = &sweep->counts;
	struct ob_json json;

	ob_json_begin(&json, stdout, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_uint(&json, "total", n->total);
	ob_json_uint(&json, "done", n->done);
	ob_json_uint(&json, "skipped", n->skipped);
	ob_json_uint(&json, "failed", n->failed);
	ob_json_uint(&json, "files", sweep->files.count);
	ob_json_uint(&json, "combinations", obx_grid_combinations(&sweep->grid));
	ob_json_fixed(&json, "seconds", sweep->elapsed, 3);
	ob_json_fixed(&json, "cells", sweep->cells, 0);
	ob_json_uint(&json, "memory_resident", obx_memory_resident());
	ob_json_bool(&json, "complete", !problem);
	ob_json_text(&json, "out", sweep->out);
	ob_json_text(&json, "error", problem);
	ob_json_end(&json);
	putchar('\n');
}

static int print_outcome(struct command *c, bool good, const char *problem)
{
	const struct obx_sweep *sweep = c->sweep;
	const struct obx_sweep_counts *n = &sweep->counts;
	char total[OBX_NUMBER_MAX], done[OBX_NUMBER_MAX], skipped[OBX_NUMBER_MAX],
		failed[OBX_NUMBER_MAX];
	int code = !good    ? (sweep->cancel ? OBX_EXIT_STOPPED : OBX_EXIT_UNWELL)
		: n->failed ? OBX_EXIT_UNWELL
			    : 0;

	obx_progress_clear(&c->meter);
	if (c->json) {
		print_json(sweep, good ? NULL : problem);
	}
	if (!good)
		fprintf(stderr, "outboard rqa sweep: %s\n", problem);
	if (sweep->store && !c->json)
		printf("%s rows: %s done, %s skipped (done before), %s failed; %.2f s, %.0f MiB; "
		       "results in %s\n",
			obx_number_group(n->total, total), obx_number_group(n->done, done),
			obx_number_group(n->skipped, skipped), obx_number_group(n->failed, failed),
			sweep->elapsed, (double)obx_memory_resident() / (1 << 20), sweep->out);
	return code;
}

static bool set_text(char **to, const char *text)
{
	free(*to);
	*to = strdup(text);
	return *to;
}

static enum ob_err take_grid(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	struct obx_error error;
	bool taken = strcmp(option->name, "grid") == 0
		? obx_grid_parse(target, text, &error)
		: obx_grid_set(target, option->name, text, &error);

	return taken
		? OB_ERR_NONE
		: ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "lists of values (%.400s)", error.text);
}

static enum ob_err take_writes(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	struct obx_error error;

	(void)option;
	(void)ret_cause;
	return obx_sweep_parse_writes(text, target, &error) ? OB_ERR_NONE : OB_ERR_ARGUMENT;
}

#define GRID_LIST(option_name, hidden_name)                                        \
	{                                                                          \
		OB_OPTION(option_name, OB_PARSED, struct command, grid),           \
			.arg = "LIST", .take = take_grid, .hidden = (hidden_name), \
			.help = "the values of " option_name " in the grid"        \
	}

static const struct ob_option options[] = {
	{ OB_OPTION("grid", OB_PARSED, struct command, grid), .arg = "'LISTS'", .take = take_grid,
		.help = "'" OBX_GRID_USAGE "'; lists are values and ranges: 2,3,5 or 1..10 or "
			"0.05..0.10:0.001" },
	GRID_LIST("m", false),
	GRID_LIST("tau", false),
	GRID_LIST("eps", false),
	GRID_LIST("radius", true),
	GRID_LIST("lmin", false),
	{ OB_OPTION("out", OB_FOLDER, struct command, out), .arg = "FOLDER", .letter = 'o',
		.fallback = "FOLDER-rqa", .help = "where results go" },
	{ OB_OPTION("write", OB_PARSED, struct command, writes), .arg = "LIST", .take = take_writes,
		.takes = "a list of long, wide and folders", .fallback = "long",
		.help = "long (results.csv), wide (summary.csv, modes side by side), folders (one "
			"a combination)" },
	{ OB_OPTION("pattern", OB_TEXT, struct command, pattern), .arg = "GLOB",
		.fallback = "*.csv", .help = "which files" },
	{ OB_OPTION("digits", OB_NUMBER, struct command, digits), .arg = "N", .min = 1, .max = 17,
		.fallback = OB_VALUE_TEXT(OBX_NUMBER_DIGITS), .help = "significant digits in CSV" },
	{ OB_OPTION("fresh", OB_FLAG, struct command, fresh),
		.help = "forget what an earlier run left in --out" },
	OBX_PROGRESS_OPTION(struct command, progress){
		OB_OPTION("json", OB_FLAG, struct command, json),
		.help = "print the outcome as JSON on standard output" },
	OBX_SETUP_OPTIONS(struct command, setup){ 0 },
};

static const struct ob_operand operands[] = {
	{ .name = "FOLDER",
		.folder = true,
		.offset = offsetof(struct command, folder),
		.missing = "a folder is missing" },
	{ 0 },
};

/* Moves the options to the sweep. false: out of memory. */
static bool apply(struct command *c)
{
	struct obx_sweep *sweep = c->sweep;

	sweep->setup = c->setup;
	sweep->grid = c->grid;
	c->grid = (struct obx_grid){ 0 };
	sweep->fresh = c->fresh;
	sweep->writes = c->writes;
	sweep->digits = (int)c->digits;
	obx_progress_init(&c->meter, c->progress);
	return set_text(&sweep->folder, c->folder) && (!c->out || set_text(&sweep->out, c->out)) &&
		(!c->pattern || set_text(&sweep->pattern, c->pattern));
}

static void free_sweep(struct obx_sweep **sweep)
{
	obx_sweep_free(*sweep);
}

static void free_command(struct command **c)
{
	if (*c)
		obx_grid_fini(&(*c)->grid);
	free(*c);
}

static int sweep_main(int argc, char **argv)
{
	OB_CLEANUP(free_sweep) struct obx_sweep *sweep = obx_sweep_new();
	OB_CLEANUP(free_command) struct command *c = calloc(1, sizeof *c);
	struct obx_error error = { "out of memory" };
	bool good;
	int code;

	if (!sweep || !c) {
		fprintf(stderr, "outboard rqa sweep: out of memory\n");
		return OBX_EXIT_UNWELL;
	}
	c->sweep = sweep;
	c->writes = sweep->writes;
	c->digits = (uint32_t)sweep->digits;
	code = ob_options_parse(&obx_rqa_sweep_command, c, argc, argv);
	if (code != OB_OPTIONS_GO)
		return code;
	if (!apply(c)) {
		fprintf(stderr, "outboard rqa sweep: out of memory\n");
		return OBX_EXIT_UNWELL;
	}
	if (!sweep->out) {
		size_t length = strlen(sweep->folder);
		char path[4096];

		while (length > 1 && sweep->folder[length - 1] == '/')
			length--;
		snprintf(path, sizeof path, "%.*s-rqa", (int)length, sweep->folder);
		set_text(&sweep->out, path);
	}
	sweep->on_event = on_event;
	sweep->arg = c;
	obx_rqa_catch_signals();
	if (!obx_setup_finish(&sweep->setup, &error) || !obx_grid_check(&sweep->grid, &error)) {
		return ob_usage_error(&obx_rqa_sweep_command, "%s", error.text);
	}
	good = obx_sweep_open(sweep, &error) && obx_sweep_run(sweep, &error) &&
		obx_sweep_write(sweep, &error);
	return print_outcome(c, good, error.text);
}

const struct ob_command obx_rqa_sweep_command = {
	.name = "outboard rqa sweep",
	.summary = "every file of a folder with every combination of a grid; goes on where it was "
		   "stopped",
	.usage = "FOLDER --grid '" OBX_GRID_USAGE "' [OPTION]...",
	.about =
		"Computes every CSV file of FOLDER (and the folders in it) with every combination "
		"of the grid. Stopped or killed, it goes on where it was when the same command is "
		"given again. What cannot be computed is listed in failed.csv with its reason; the "
		"rest goes on.",
	.notes = OBX_SETUP_NOTES,
	.options = options,
	.operands = operands,
	.main = sweep_main,
};
