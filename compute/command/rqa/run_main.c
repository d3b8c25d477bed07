/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* `outboard rqa run`: measures one series or a pair, as a whole or in windows. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "compute/command/progress.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/out.h"
#include "compute/command/rqa/rqa.h"
#include "compute/command/rqa/setup.h"
#include "compute/command/rqa/setup_options.h"
#include "tools/command.h"

#define MEASURES_USUAL                                                                          \
	"RR,DET,L,Lmax,DIV,ENTR,RATIO,TREND,LAM,TT,Vmax,Ventr,W,Wmax,Wdiv,Wentr,T1,T2,MRT,RTE," \
	"NMPRT,CORM,rENTR,radius,n,points"
#define PRINT_DIGITS 10
/* differences below this fraction of the requested rate are not reported */
#define RATE_NEAR    1e-3

enum form { TABLE, JSON, CSV };

struct job {
	struct obx_setup setup;
	const char *path, *cross, *joint, *other_path, *state, *out_path;
	enum form form;
	enum obx_progress_mode progress;
	uint64_t window, step;
	int digits;
	struct obx_table table, other;
	struct obx_out out;
	struct obx_progress meter;
	/* a result for each mode */
	double values[OBX_SETUP_MODES_MAX][OBK_RQA_MEASURE_COUNT];
	int status[OBX_SETUP_MODES_MAX];
	char reasons[OBX_SETUP_MODES_MAX][OBX_ERROR_MAX], devices[OBX_SETUP_MODES_MAX][128];
	struct ob_json json; /* on out, if form is JSON */
	unsigned mode;       /* the current mode */
	bool failed;
};

static int on_progress(void *arg, const struct obk_rqa_progress *p)
{
	struct job *job = arg;
	char text[120];

	snprintf(text, sizeof text, "%s  %.2g of %.2g cells, %.2g a second",
		job->setup.modes[job->mode].name, (double)p->done, (double)p->total,
		p->elapsed > 0 ? (double)p->done / p->elapsed : 0);
	obx_progress_show(&job->meter, p->total ? (double)p->done / (double)p->total : 1,
		p->elapsed, p->eta, text, p->total && p->done == p->total);
	return obx_rqa_stop;
}

/* ---- output ---- */

static void put_number(FILE *out, double value, int digits)
{
	char text[OBX_NUMBER_MAX];

	if (isfinite(value))
		fwrite(text, 1, obx_number_print(value, digits, text), out);
}

static void put_csv_heading(struct job *job)
{
	FILE *out = job->out.file;

	fputs(job->window ? "file,mode,m,tau,eps,lmin,window,first_sample"
			  : "file,mode,m,tau,eps,lmin",
		out);
	for (unsigned k = 0; k < job->setup.measure_count; k++)
		fprintf(out, ",%s", obk_rqa_measure_name(job->setup.measures[k]));
	fputs(",status,error,reason\n", out);
}

static void put_csv_row(struct job *job, int status, const char *reason, const double *values,
	const uint64_t *window)
{
	const struct obk_rqa_options *o = &job->setup.options;
	FILE *out = job->out.file;

	obx_csv_print(out, job->path);
	fprintf(out, ",%s,%u,%u,", job->setup.modes[job->mode].name, o->m, o->tau);
	put_number(out, o->radius, job->digits);
	fprintf(out, ",%u", o->lmin);
	if (window)
		fprintf(out, ",%" PRIu64 ",%" PRIu64, window[0], window[1]);
	for (unsigned k = 0; k < job->setup.measure_count; k++) {
		putc(',', out);
		if (values)
			put_number(out, values[job->setup.measures[k]], job->digits);
	}
	fprintf(out, ",%s,%s,", status == OBK_RQA_OK ? "done" : "failed",
		status == OBK_RQA_OK ? "" : obk_rqa_status_name(status));
	obx_csv_print(out, reason);
	putc('\n', out);
}

static void put_json_item(struct job *job, int status, const char *reason, const double *values,
	const uint64_t *window)
{
	struct ob_json *json = &job->json;

	ob_json_break(json);
	ob_json_object(json, NULL);
	ob_json_text(json, "mode", job->setup.modes[job->mode].name);
	if (window) {
		ob_json_uint(json, "window", window[0]);
		ob_json_uint(json, "first_sample", window[1]);
	} else if (status == OBK_RQA_OK) {
		ob_json_text(
			json, "norm", obx_setup_norm(&job->setup, &job->setup.modes[job->mode]));
		ob_json_text(json, "device", job->devices[job->mode]);
	}
	ob_json_text(json, "status", status == OBK_RQA_OK ? "done" : "failed");
	if (values) {
		ob_json_object(json, "measures");
		for (unsigned k = 0; k < job->setup.measure_count; k++)
			ob_json_double(json, obk_rqa_measure_name(job->setup.measures[k]),
				values[job->setup.measures[k]], 0);
		ob_json_end(json);
	} else {
		ob_json_text(json, "error", obk_rqa_status_name(status));
		ob_json_text(json, "reason", reason);
	}
	ob_json_end(json);
}

static void put_json_start(struct job *job)
{
	char settings[4096];

	obx_setup_text(&job->setup, false, settings, sizeof settings);
	ob_json_begin(&job->json, job->out.file, OB_JSON_COMPACT);
	ob_json_object(&job->json, NULL);
	ob_json_text(&job->json, "file", job->path);
	ob_json_uint(&job->json, "samples", job->table.rows);
	ob_json_uint(&job->json, "dropped", job->table.dropped);
	ob_json_text(&job->json, "settings", settings);
	ob_json_array(&job->json, "results");
}

static void put_json_end(struct job *job)
{
	ob_json_end(&job->json);
	ob_json_end(&job->json);
	putc('\n', job->out.file);
}

static void put_table(struct job *job)
{
	const struct obk_rqa_options *o = &job->setup.options;
	FILE *out = job->out.file;
	char text[OBX_NUMBER_MAX], samples[OBX_NUMBER_MAX];
	bool any = false;

	obx_number_print(o->radius, PRINT_DIGITS, text);
	fprintf(out, "%s: %s samples, lines %" PRIu64 " to %" PRIu64 "\n", job->path,
		obx_number_group(job->table.rows, samples), job->table.first_line,
		job->table.last_line);
	if (job->table.dropped)
		fprintf(out, "%" PRIu64 " rows without a number were dropped\n",
			job->table.dropped);
	for (unsigned i = 0; i < job->setup.mode_count; i++)
		any |= job->status[i] == OBK_RQA_OK;
	if (!any) /* the reasons have been printed */
		return;
	fprintf(out, "preset %s, m %u, tau %u, eps %s, lmin %u\n\n%-8s",
		obk_rqa_preset_name(job->setup.preset), o->m, o->tau, text, o->lmin, "");
	for (unsigned i = 0; i < job->setup.mode_count; i++)
		fprintf(out, " %16s", job->setup.modes[i].name);
	putc('\n', out);
	for (unsigned k = 0; k < job->setup.measure_count; k++) {
		unsigned id = job->setup.measures[k];

		fprintf(out, "%-8s", obk_rqa_measure_name(id));
		for (unsigned i = 0; i < job->setup.mode_count; i++) {
			double value = job->values[i][id];

			if (isfinite(value))
				obx_number_print(value, job->digits, text);
			fprintf(out, " %16s",
				job->status[i] != OBK_RQA_OK ? "failed"
					: isfinite(value)    ? text
							     : "-");
		}
		fprintf(out, "   %s\n", obk_rqa_measure_what(id));
	}
	for (unsigned i = 0; i < job->setup.mode_count; i++)
		if (job->status[i] == OBK_RQA_OK)
			fprintf(out, "%s%s ran on %s\n", i ? "" : "\n", job->setup.modes[i].name,
				job->devices[i]);
}

/* ---- the work ---- */

static int on_window(void *arg, uint64_t index, uint64_t first, const double *values,
	const struct obk_rqa_error *error)
{
	struct job *job = arg;
	uint64_t window[2] = { index, first };
	int status = values ? OBK_RQA_OK : error->status;
	const char *reason = values ? "" : error->text;

	job->failed |= !values;
	if (job->form == JSON)
		put_json_item(job, status, reason, values, window);
	else
		put_csv_row(job, status, reason, values, window);
	return obx_rqa_stop;
}

/* Reports that ties prevent the requested rate. */
static void note_rate(struct job *job, const struct obk_rqa_result *result)
{
	const struct obk_rqa_rate *rate;

	for (unsigned s = 0; (rate = obk_rqa_result_rate(result, s)) != NULL; s++) {
		bool above = rate->reached > rate->asked;

		if (fabs(rate->reached - rate->asked) <= RATE_NEAR * rate->asked)
			continue;
		obx_progress_clear(&job->meter);
		fprintf(stderr,
			"outboard rqa run: %s%s: note: asked for the recurrence rate %.6g, reached "
			"%.6g; many distances are equal, and no radius gives a rate between %.6g "
			"and %.6g\n",
			job->setup.modes[job->mode].name, s ? ", second series" : "", rate->asked,
			rate->reached, above ? rate->other : rate->reached,
			above ? rate->reached : rate->other);
	}
}

/* Measures the current mode; sets its status and reason. */
static int measure_mode(struct job *job, char *reason)
{
	struct obk_rqa_mode *mode = &job->setup.modes[job->mode];
	struct obk_rqa_options options = job->setup.options;
	struct obk_rqa_control control = { .threads = job->setup.threads,
		.device = job->setup.device,
		.isa = job->setup.isa,
		.arg = job,
		.progress = on_progress,
		.cancel = &obx_rqa_stop,
		.state_path = job->state };
	OB_CLEANUP(ob_freep) double *copy = NULL;
	OB_CLEANUP(ob_freep) double *other_copy = NULL;
	struct obk_rqa_result *result = NULL;
	struct obk_rqa_series x, y, *second = NULL;
	struct obk_rqa_error wrong = { 0 };
	struct obx_error error;
	int status;

	if (mode->norm >= 0)
		options.norm = mode->norm;
	if (!obx_setup_series(
		    &job->setup, mode, job->path, &job->table, &x, &copy, &status, &error) ||
		(job->other_path &&
			!obx_setup_series(&job->setup, mode, job->other_path, &job->other, &y,
				&other_copy, &status, &error))) {
		strcpy(reason, error.text);
		return status;
	}
	if (job->other_path)
		second = &y;
	if (job->window) {
		status = obk_rqa_windows(&x, second, &options, job->window,
			job->step ? job->step : job->window, &control, on_window, job, &wrong);
	} else {
		status = obk_rqa_run(&x, second, &options, &control, &result, &wrong);
		if (status == OBK_RQA_OK) {
			status = obk_rqa_result_measures(
				result, NULL, job->values[job->mode], &wrong);
			snprintf(job->devices[job->mode], sizeof job->devices[0], "%s",
				obk_rqa_result_device(result));
			note_rate(job, result);
		}
		obk_rqa_result_free(result);
	}
	/* the CPU cannot resume from the file of a GPU */
	if (status == OBK_RQA_DEVICE && job->state)
		snprintf(reason, OBX_ERROR_MAX,
			"%s; the same command goes on from what %s has; for --device cpu remove it "
			"or name another",
			wrong.text, job->state);
	else if (status != OBK_RQA_OK)
		snprintf(reason, OBX_ERROR_MAX, "%s%s", wrong.text,
			status == OBK_RQA_DEVICE
				? "; run it again, or with --device cpu, which needs no GPU"
				: status == OBK_RQA_CANCELLED && job->state
				? "; the same command goes on where it ended"
				: "");
	return status;
}

static void run_modes(struct job *job)
{
	unsigned count = job->setup.mode_count;

	if (job->form == CSV || (job->form == TABLE && job->window))
		put_csv_heading(job);
	else if (job->form == JSON)
		put_json_start(job);
	for (job->mode = 0; job->mode < count; job->mode++) {
		int status = job->status[job->mode] = measure_mode(job, job->reasons[job->mode]);
		const char *reason = job->reasons[job->mode];

		obx_progress_clear(&job->meter);
		if (status != OBK_RQA_OK) {
			job->failed = true;
			fprintf(stderr, "outboard rqa run: %s: %s\n",
				job->setup.modes[job->mode].name, reason);
		}
		if (job->window && status == OBK_RQA_OK) /* its windows have been printed already */
			continue;
		if (job->form == JSON)
			put_json_item(job, status, reason,
				status == OBK_RQA_OK ? job->values[job->mode] : NULL, NULL);
		else if (job->form == CSV || job->window)
			put_csv_row(job, status, reason,
				status == OBK_RQA_OK ? job->values[job->mode] : NULL,
				job->window ? (const uint64_t[2]){ 0, 0 } : NULL);
	}
	if (job->form == JSON)
		put_json_end(job);
	else if (job->form == TABLE && !job->window)
		put_table(job);
}

static enum ob_err take_form(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause)
{
	(void)text;
	(void)ret_cause;
	*(enum form *)target = strcmp(option->name, "json") == 0 ? JSON : CSV;
	return OB_ERR_NONE;
}

static const struct ob_option options[] = {
	{ OB_OPTION("cross", OB_FILE, struct job, cross), .arg = "FILE",
		.help = "cross recurrence with a second series" },
	{ OB_OPTION("joint", OB_FILE, struct job, joint), .arg = "FILE",
		.help = "joint recurrence with a second series" },
	{ OB_OPTION("window", OB_NUMBER, struct job, window), .arg = "N", .min = 2,
		.max = OBK_RQA_MAX_LENGTH, .takes = "a whole number of samples, at least 2",
		.help = "one result for each window of N samples" },
	{ OB_OPTION("step", OB_NUMBER, struct job, step), .arg = "N", .min = 1,
		.max = OBK_RQA_MAX_LENGTH, .takes = "a whole number of samples, at least 1",
		.help = "samples from one window to the next" },
	{ OB_OPTION("json", OB_PARSED, struct job, form), .take = take_form,
		.help = "print JSON instead of a table" },
	{ OB_OPTION("csv", OB_PARSED, struct job, form), .take = take_form,
		.help = "print CSV instead of a table" },
	{ OB_OPTION("out", OB_FILE, struct job, out_path), .arg = "FILE", .letter = 'o',
		.help = "write there instead of standard output; the file appears whole or not at "
			"all" },
	{ OB_OPTION("state", OB_FILE, struct job, state), .arg = "FILE",
		.help = "a stopped or killed run goes on from this file (one mode, no windows)" },
	{ OB_OPTION("digits", OB_NUMBER, struct job, digits), .arg = "N", .min = 1, .max = 17,
		.fallback = OB_VALUE_TEXT(PRINT_DIGITS), .help = "significant digits" },
	OBX_PROGRESS_OPTION(struct job, progress) OBX_SETUP_POINT(struct job, setup)
		OBX_SETUP_OPTIONS(struct job, setup){ 0 },
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
	struct obx_error error;
	int code = ob_options_parse(&obx_rqa_run_command, job, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (job->step && !job->window)
		return ob_usage_error(&obx_rqa_run_command, "--step needs --window");
	if (!obx_setup_finish(&job->setup, &error))
		return ob_usage_error(&obx_rqa_run_command, "%s", error.text);
	job->other_path = job->joint ? job->joint : job->cross;
	if (job->other_path)
		job->setup.options.kind = job->joint ? OBK_RQA_JOINT : OBK_RQA_CROSS;
	obx_progress_init(&job->meter, job->progress);
	return OB_OPTIONS_GO;
}

static int run_main(int argc, char **argv)
{
	OB_CLEANUP(ob_freep) struct job *job = calloc(1, sizeof *job);
	struct obx_error error = { "out of memory" };
	bool good;
	int code;

	if (!job) {
		fprintf(stderr, "outboard rqa run: out of memory\n");
		return OBX_EXIT_UNWELL;
	}
	job->setup.default_measures = MEASURES_USUAL;
	job->digits = PRINT_DIGITS;
	code = parse(job, argc, argv);
	if (code != OB_OPTIONS_GO)
		return code;
	obx_rqa_catch_signals();
	good = obx_table_read(job->path, &job->setup.table, &job->table, &error) &&
		(!job->other_path ||
			obx_table_read(job->other_path, &job->setup.table, &job->other, &error)) &&
		obx_setup_modes(&job->setup, job->table.channels, &error);
	if (good && job->state && (job->setup.mode_count > 1 || job->window))
		good = obx_error_set(&error,
			"--state goes with one mode and no windows; choose the mode with --modes "
			"%s",
			job->setup.modes[0].name);
	if (good)
		good = obx_out_open(&job->out, job->out_path ? job->out_path : "-", &error);
	if (good) {
		run_modes(job);
		good = obx_out_commit(&job->out, &error);
	}
	obx_out_abort(&job->out);
	obx_table_fini(&job->table);
	obx_table_fini(&job->other);
	if (!good)
		fprintf(stderr, "outboard rqa run: %s\n", error.text);
	return obx_rqa_stop ? OBX_EXIT_STOPPED : good && !job->failed ? 0 : OBX_EXIT_UNWELL;
}

const struct ob_command obx_rqa_run_command = {
	.name = "outboard rqa run",
	.summary = "measures of one series (or of a pair, or in windows)",
	.about = "The measures of one series. FILE is CSV with a heading, or bare numbers in "
		 "columns; - is standard input.",
	.notes = OBX_SETUP_NOTES,
	.options = options,
	.operands = operands,
	.main = run_main,
};
