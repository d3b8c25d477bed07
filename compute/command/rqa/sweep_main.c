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
#include "compute/command/rqa/args.h"
#include "compute/command/rqa/device.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/meter.h"
#include "compute/command/rqa/rqa.h"
#include "compute/command/rqa/sweep.h"
#include "tools/command.h"

#define REASONS_SHOWN 10

struct command {
	struct obx_sweep *sweep;
	struct obx_meter meter;
	bool json;
	unsigned reasons; /* reported so far */
};

static void usage(FILE *out)
{
	fprintf(out,
		"usage: outboard rqa sweep FOLDER --grid '" OBX_GRID_USAGE "' [options]\n\n"
		"Computes every CSV file of FOLDER (and the folders in it) with every combination "
		"of the grid. Stopped or killed, it goes "
		"on where it was\n"
		"when the same command is given again. What cannot be computed is listed in "
		"failed.csv with its reason; the rest goes "
		"on.\n\n"
		"  --grid 'LISTS'        lists are values and ranges: 2,3,5  1..10  "
		"0.05..0.10:0.001; also --m, --tau, --eps, --lmin one "
		"by one\n"
		"  --out FOLDER          where results go; default FOLDER-rqa\n"
		"  --write LIST          long (results.csv), wide (summary.csv, modes side by "
		"side), folders (one a combination); default "
		"long\n"
		"  --pattern GLOB        which files; default *.csv\n"
		"  --digits N            significant digits in CSV, 1 to 17; default %d\n"
		"  --fresh               forget what an earlier run left in --out\n"
		"  --progress WHEN       auto, always, never\n"
		"  --json                the outcome as JSON on standard output\n\n",
		OBX_NUMBER_DIGITS);
	obx_setup_usage(out);
}

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
		obx_meter_show(&c->meter, (double)event->current / (double)event->total, 0, NAN,
			text, false);
		break;
	case OBX_SWEEP_FAILED:
		if (c->reasons++ == REASONS_SHOWN)
			fprintf(stderr, "failed: more are listed in %s/failed.csv\n",
				c->sweep->out);
		if (c->reasons > REASONS_SHOWN)
			break;
		obx_meter_clear(&c->meter);
		fprintf(stderr, "failed: %s\n", event->text);
		break;
	case OBX_SWEEP_WRITING:
		snprintf(text, sizeof text, "writing %s", event->text);
		obx_meter_show(&c->meter, 1, event->elapsed, NAN, text, false);
		break;
	case OBX_SWEEP_STARTED:
	case OBX_SWEEP_PROGRESS:
		snprintf(text, sizeof text, "%s of %s rows, %s failed  %.2g cells/s  %s",
			obx_number_group(n->done + n->skipped + n->failed, rows),
			obx_number_group(n->total, total), obx_number_group(n->failed, failed),
			event->elapsed > 0 ? event->cells / event->elapsed : 0, event->signature);
		obx_meter_show(&c->meter, event->share, event->elapsed, event->eta, text, false);
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

	obx_meter_clear(&c->meter);
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

static bool take_grid(struct obx_args *args, struct obx_grid *grid, bool *ret_taken)
{
	static const char *const names[] = { "m", "tau", "eps", "radius", "lmin" };
	struct obx_error error;
	const char *value = NULL;
	bool good = true;

	*ret_taken = true;
	if (obx_args_is(args, "grid", &value)) {
		good = !value || obx_grid_parse(grid, value, &error);
	} else {
		size_t i = 0;

		while (i < sizeof names / sizeof names[0] && !obx_args_is(args, names[i], &value))
			i++;
		*ret_taken = i < sizeof names / sizeof names[0];
		good = !value || obx_grid_set(grid, names[i], value, &error);
	}
	if (!good)
		obx_args_refuse(args, "%s", error.text);
	return good;
}

/* false: an argument is wrong; *ret_help: the usage was printed. */
static bool parse(struct command *c, struct obx_args *args, bool *ret_help)
{
	struct obx_sweep *sweep = c->sweep;
	enum obx_meter_mode meter = OBX_METER_AUTO;
	struct obx_error error;

	while (obx_args_next(args)) {
		const char *value = NULL;
		uint64_t digits;
		bool taken;

		if (obx_args_flag(args, "help")) {
			usage(stdout);
			*ret_help = true;
			return true;
		}
		if (!take_grid(args, &sweep->grid, &taken) || taken)
			continue;
		if (args->word && !sweep->folder) {
			set_text(&sweep->folder, args->word);
		} else if (obx_args_flag(args, "json")) {
			c->json = true;
		} else if (obx_args_flag(args, "fresh")) {
			sweep->fresh = true;
		} else if (obx_args_is(args, "out", &value)) {
			if (value)
				set_text(&sweep->out, value);
		} else if (obx_args_is(args, "pattern", &value)) {
			if (value)
				set_text(&sweep->pattern, value);
		} else if (obx_args_is(args, "write", &value)) {
			if (value && !obx_sweep_parse_writes(value, &sweep->writes, &error))
				obx_args_refuse(args, "%s", error.text);
		} else if (obx_args_is(args, "progress", &value)) {
			if (value && !obx_meter_parse(value, &meter))
				obx_args_refuse(args,
					"--progress is auto, always or never, not '%.40s'", value);
		} else if (obx_args_is(args, "digits", &value)) {
			if (value && !ob_text_parse_number(value, 1, 17, &digits))
				obx_args_refuse(args,
					"--digits takes a whole number from 1 to 17, not '%.40s'",
					value);
			else if (value)
				sweep->digits = (int)digits;
		} else {
			obx_args_setup(args, &sweep->setup);
		}
	}
	if (!args->wrong && !sweep->folder)
		obx_args_refuse(args, "a folder is missing");
	obx_meter_init(&c->meter, meter);
	return !args->wrong;
}

static void free_sweep(struct obx_sweep **sweep)
{
	obx_sweep_free(*sweep);
}

int obx_rqa_sweep_main(int argc, char **argv)
{
	OB_CLEANUP(free_sweep) struct obx_sweep *sweep = obx_sweep_new();
	struct obx_args args = { .verb = "rqa sweep", .argc = argc, .at = 1, .argv = argv };
	struct command c = { .sweep = sweep };
	struct obx_error error = { "out of memory" };
	bool help = false, good;

	if (!sweep) {
		fprintf(stderr, "outboard rqa sweep: out of memory\n");
		return OBX_EXIT_UNWELL;
	}
	if (!parse(&c, &args, &help))
		return OBX_EXIT_USAGE;
	if (help)
		return 0;
	if (!sweep->out) {
		size_t length = strlen(sweep->folder);
		char path[4096];

		while (length > 1 && sweep->folder[length - 1] == '/')
			length--;
		snprintf(path, sizeof path, "%.*s-rqa", (int)length, sweep->folder);
		set_text(&sweep->out, path);
	}
	sweep->on_event = on_event;
	sweep->arg = &c;
	obx_rqa_catch_signals();
	if (!obx_setup_finish(&sweep->setup, &error) || !obx_grid_check(&sweep->grid, &error)) {
		obx_args_refuse(&args, "%s", error.text);
		return OBX_EXIT_USAGE;
	}
	good = obx_sweep_open(sweep, &error) && obx_sweep_run(sweep, &error) &&
		obx_sweep_write(sweep, &error);
	return print_outcome(&c, good, error.text);
}
