/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Writes the result files of a sweep (obx_sweep_write). Everything is read from the slots in a
 * fixed order, so the files do not depend on interruptions of the sweep.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/out.h"
#include "compute/command/rqa/sweep.h"

/* Eye-tracking tables use the name ENT. */
static const char *wide_name(unsigned id)
{
	return id == OBK_RQA_ENTR ? "ENT" : obk_rqa_measure_name(id);
}

/* A word for programs; failed.csv has a sentence. */
static const char *status_name(const struct obx_sweep *sweep, uint64_t file, int status)
{
	return sweep->files.list[file].wrong ? "unreadable" : obk_rqa_status_name(status);
}

static void put_value(FILE *file, double value, int digits)
{
	char text[OBX_NUMBER_MAX];

	if (!isnan(value)) /* an undefined measure is an empty cell */
		fwrite_unlocked(text, 1, obx_number_print(value, digits, text), file);
}

static bool open_out(
	struct obx_sweep *sweep, const char *name, struct obx_out *out, struct obx_error *error)
{
	char path[PATH_MAX];
	struct obx_sweep_event event = { .kind = OBX_SWEEP_WRITING,
		.counts = sweep->counts,
		.text = name,
		.share = 1,
		.eta = NAN };

	memset(out, 0, sizeof *out);
	if (snprintf(path, sizeof path, "%s/%s", sweep->out, name) >= (int)sizeof path)
		return obx_error_set(error, "the name of the output folder is too long");
	if (sweep->on_event && !strchr(name, '/'))
		sweep->on_event(sweep->arg, &event);
	return obx_out_open(out, path, error);
}

/* ---- long ---- */

static char *print_whole(char *to, uint64_t value)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = (char)('0' + value % 10);
	while (value /= 10);
	while (count)
		*to++ = digits[--count];
	return to;
}

/*
 * Tens of millions of numbers are written here, so each line is built in memory and written at
 * once.
 */
static void put_long_rows(const struct obx_sweep *sweep, FILE *out, uint64_t file,
	const char *start, uint32_t m, uint32_t tau)
{
	const unsigned measures = sweep->setup.measure_count;
	char line[(OBK_RQA_MEASURE_COUNT + 6) * OBX_NUMBER_MAX], last_eps[OBX_NUMBER_MAX] = "";
	uint32_t rows = obx_store_rows(sweep->store);
	const struct obx_group *group = &sweep->group;

	for (uint32_t i = 0; i < rows; i++) {
		const double *values = group->values + (size_t)i * measures;
		char *to = line;

		if (i % sweep->grid.lmin_count == 0)
			obx_number_print(obx_sweep_eps(sweep, i), OBX_NUMBER_DIGITS, last_eps);
		*to++ = ',';
		to = print_whole(to, m);
		*to++ = ',';
		to = print_whole(to, tau);
		*to++ = ',';
		to = stpcpy(to, last_eps);
		*to++ = ',';
		to = print_whole(to, obx_sweep_lmin(sweep, i));
		for (unsigned k = 0; k < measures; k++) {
			*to++ = ',';
			/* an undefined measure is an empty cell */
			if (!isnan(values[k]))
				to += obx_number_print(values[k], sweep->digits, to);
		}
		fputs_unlocked(start, out);
		if (group->status[i] == OBK_RQA_OK) {
			to = stpcpy(to, ",done,\n");
			fwrite_unlocked(line, 1, (size_t)(to - line), out);
		} else {
			fwrite_unlocked(line, 1, (size_t)(to - line), out);
			fprintf(out, ",failed,%s\n", status_name(sweep, file, group->status[i]));
		}
	}
}

/* Writes results.csv (if out is not NULL) and failed.csv in one pass, and counts the rows. */
static bool put_failed_rows(const struct obx_sweep *sweep, FILE *out, uint64_t file, uint32_t mode,
	uint32_t m, uint32_t tau)
{
	const struct obx_group *group = &sweep->group;
	uint32_t rows = obx_store_rows(sweep->store), failed = 0;

	for (uint32_t i = 0; i < rows; i++)
		failed += group->status[i] != OBK_RQA_OK;
	for (uint32_t i = 0; i < rows && failed; i++) {
		if (group->status[i] == OBK_RQA_OK)
			continue;
		obx_csv_print(out, sweep->files.list[file].name);
		fprintf(out, ",%s,%u,%u,", sweep->setup.modes[mode].name, m, tau);
		if (failed < rows) {
			put_value(out, obx_sweep_eps(sweep, i), OBX_NUMBER_DIGITS);
			fprintf(out, ",%u", obx_sweep_lmin(sweep, i));
		} else {
			fputs("all,all", out);
		}
		fprintf(out, ",%s,", status_name(sweep, file, group->status[i]));
		obx_csv_print(out, group->reason);
		putc('\n', out);
		if (failed == rows) /* one line for all rows */
			break;
	}
	return failed;
}

static bool put_file(
	struct obx_sweep *sweep, uint64_t file, FILE *out, FILE *failed, struct obx_error *error)
{
	struct obx_file_names names;
	char start[2 * OBX_TABLE_NAME_MAX + 8];
	const struct obx_grid *g = &sweep->grid;

	obx_files_names(&sweep->files, file, &names);
	if (sweep->files.list[file].wrong) {
		obx_csv_print(failed, sweep->files.list[file].name);
		fputs(",all,all,all,all,all,unreadable,", failed);
		obx_csv_print(failed, sweep->files.list[file].wrong);
		putc('\n', failed);
	}
	for (uint32_t mode = 0; mode < sweep->setup.mode_count; mode++) {
		char *text = NULL;
		size_t size = 0;
		FILE *memory = out ? open_memstream(&text, &size) : NULL;

		snprintf(start, sizeof start, ",%s", sweep->setup.modes[mode].name);
		if (memory) {
			obx_csv_print(memory, sweep->files.list[file].name);
			putc(',', memory);
			obx_csv_print(memory, names.group);
			putc(',', memory);
			obx_csv_print(memory, names.folder);
			fprintf(memory, ",%s%s", names.q, start);
			fclose(memory);
		}
		for (uint32_t m = 0; m < g->m_count; m++)
			for (uint32_t t = 0; t < g->tau_count; t++) {
				if (!obx_store_get(sweep->store,
					    obx_store_slot(sweep->store, m, t, file, mode),
					    &sweep->group, error)) {
					free(text);
					return error->text[0]
						? false
						: obx_error_set(error,
							  "the sweep is not finished; run the same "
							  "command again");
				}
				if (!sweep->files.list[file].wrong)
					put_failed_rows(
						sweep, failed, file, mode, g->m[m], g->tau[t]);
				if (text)
					put_long_rows(sweep, out, file, text, g->m[m], g->tau[t]);
			}
		free(text);
	}
	return true;
}

static bool write_long(struct obx_sweep *sweep, struct obx_error *error)
{
	struct obx_out out = { 0 }, failed = { 0 };
	bool good = open_out(sweep, "failed.csv", &failed, error),
	     wanted = sweep->writes & OBX_WRITE_LONG;

	if (good && wanted)
		good = open_out(sweep, "results.csv", &out, error);
	if (good)
		fputs("file,mode,m,tau,eps,lmin,error,reason\n", failed.file);
	if (good && wanted) {
		fputs("file,group,folder,q,mode,m,tau,eps,lmin", out.file);
		for (unsigned k = 0; k < sweep->setup.measure_count; k++)
			fprintf(out.file, ",%s", obk_rqa_measure_name(sweep->setup.measures[k]));
		fputs(",status,error\n", out.file);
	}
	for (uint64_t i = 0; good && i < sweep->files.count; i++)
		good = put_file(sweep, i, out.file, failed.file, error) &&
			!(out.file && ferror(out.file) &&
				!obx_error_set(error, "the disk is full"));
	if (good)
		good = obx_out_commit(&failed, error) && (!wanted || obx_out_commit(&out, error));
	obx_out_abort(&out);
	obx_out_abort(&failed);
	return good;
}

/* ---- wide ---- */

/*
 * The measures to write side by side: those requested, else the three of the eye-tracking tables.
 */
static unsigned wide_measures(const struct obx_sweep *sweep, unsigned *ret_places)
{
	unsigned count = 0;

	for (unsigned k = 0; k < sweep->setup.measure_count; k++) {
		unsigned id = sweep->setup.measures[k];

		if (sweep->setup.measures_given || id == OBK_RQA_RR || id == OBK_RQA_DET ||
			id == OBK_RQA_ENTR)
			ret_places[count++] = k;
	}
	return count;
}

static void put_wide_heading(const struct obx_sweep *sweep, FILE *out, const char *first)
{
	unsigned places[OBK_RQA_MEASURE_COUNT], count = wide_measures(sweep, places);

	fprintf(out, "%sfilename,folder,q", first);
	for (unsigned k = 0; k < count; k++)
		for (uint32_t mode = 0; mode < sweep->setup.mode_count; mode++)
			fprintf(out, ",%s-%s", wide_name(sweep->setup.measures[places[k]]),
				sweep->setup.modes[mode].name);
	putc('\n', out);
}

/* false: every mode failed, and nothing was written. */
static bool put_wide_row(struct obx_sweep *sweep, FILE *out, const char *first, uint64_t file,
	uint32_t m, uint32_t tau, uint32_t row)
{
	unsigned places[OBK_RQA_MEASURE_COUNT], count = wide_measures(sweep, places);
	const double *values[OBX_SETUP_MODES_MAX];
	struct obx_file_names names;
	bool any = false;

	for (uint32_t mode = 0; mode < sweep->setup.mode_count; mode++) {
		uint8_t status = OBK_RQA_ARGUMENT;

		values[mode] = obx_store_row(sweep->store,
			obx_store_slot(sweep->store, m, tau, file, mode), row, &status);
		if (status != OBK_RQA_OK)
			values[mode] = NULL;
		any |= values[mode] != NULL;
	}
	if (!any)
		return false;
	obx_files_names(&sweep->files, file, &names);
	fputs_unlocked(first, out);
	obx_csv_print(out, names.file);
	putc_unlocked(',', out);
	obx_csv_print(out, names.folder);
	fprintf(out, ",%s", names.q);
	for (unsigned k = 0; k < count; k++)
		for (uint32_t mode = 0; mode < sweep->setup.mode_count; mode++) {
			putc_unlocked(',', out);
			if (values[mode])
				put_value(out, values[mode][places[k]], sweep->digits);
		}
	putc_unlocked('\n', out);
	return true;
}

static bool write_wide(struct obx_sweep *sweep, struct obx_error *error)
{
	const struct obx_grid *g = &sweep->grid;
	struct obx_out out;
	bool good = open_out(sweep, "summary.csv", &out, error);

	if (!good)
		return false;
	put_wide_heading(sweep, out.file, "m,tau,eps,lmin,");
	for (uint32_t m = 0; m < g->m_count; m++)
		for (uint32_t t = 0; t < g->tau_count; t++)
			for (uint32_t row = 0;
				row < obx_store_rows(sweep->store) && !ferror(out.file); row++) {
				char first[OBX_SIGNATURE_MAX], eps[OBX_NUMBER_MAX];

				obx_number_print(obx_sweep_eps(sweep, row), OBX_NUMBER_DIGITS, eps);
				snprintf(first, sizeof first, "%u,%u,%s,%u,", g->m[m], g->tau[t],
					eps, obx_sweep_lmin(sweep, row));
				for (uint64_t i = 0; i < sweep->files.count; i++)
					put_wide_row(sweep, out.file, first, i, m, t, row);
			}
	good = obx_out_commit(&out, error);
	obx_out_abort(&out);
	return good;
}

/* ---- folders ---- */

/* The group of each file, and one file of each group. */
struct groups {
	uint32_t *of;
	uint64_t *first;
	uint32_t count;
};

static void groups_fini(struct groups *g)
{
	free(g->of);
	free(g->first);
}

static bool groups_init(struct groups *g, const struct obx_sweep *sweep, struct obx_error *error)
{
	struct obx_file_names names, other;

	g->of = calloc(sweep->files.count, sizeof *g->of);
	g->first = calloc(sweep->files.count, sizeof *g->first);
	if (!g->of || !g->first)
		return obx_error_set(error, "out of memory for the list of files");
	for (uint64_t i = 0; i < sweep->files.count; i++) {
		uint32_t k = i ? g->of[i - 1] : 0; /* usually that of the previous file */

		obx_files_names(&sweep->files, i, &names);
		for (uint32_t tried = 0; tried < g->count; tried++, k = (k + 1) % g->count) {
			obx_files_names(&sweep->files, g->first[k], &other);
			if (strcmp(names.group, other.group) == 0)
				goto found;
		}
		k = g->count++;
		g->first[k] = i;
	found:
		g->of[i] = k;
	}
	return true;
}

/*
 * Writes the rows of one group for one combination; *ret_failed is the number of files without a
 * row.
 */
static bool write_group(struct obx_sweep *sweep, const struct groups *groups, uint32_t group,
	const char *signature, uint32_t m, uint32_t tau, uint32_t row, uint64_t *ret_failed,
	struct obx_error *error)
{
	struct obx_file_names names;
	char path[PATH_MAX];
	struct obx_out out;
	bool good;

	obx_files_names(&sweep->files, groups->first[group], &names);
	if (snprintf(path, sizeof path, "%s/RQA_1D2D_summary_%s.csv", signature, names.group) >=
		(int)sizeof path)
		return obx_error_set(error, "the name of the folder %s is too long", names.group);
	if (!open_out(sweep, path, &out, error))
		return false;
	out.quick = true;
	put_wide_heading(sweep, out.file, "");
	for (uint64_t i = 0; i < sweep->files.count; i++)
		if (groups->of[i] == group)
			*ret_failed += !put_wide_row(sweep, out.file, "", i, m, tau, row);
	good = obx_out_commit(&out, error);
	obx_out_abort(&out);
	return good;
}

static bool write_combination(struct obx_sweep *sweep, const struct groups *groups, uint32_t m,
	uint32_t tau, uint32_t row, struct obx_error *error)
{
	char signature[OBX_SIGNATURE_MAX], path[PATH_MAX];
	uint64_t failed = 0;
	struct ob_json json;
	struct obx_out out;
	bool good;

	obx_signature_print(sweep->grid.m[m], sweep->grid.tau[tau], obx_sweep_eps(sweep, row),
		obx_sweep_lmin(sweep, row), signature);
	if (snprintf(path, sizeof path, "%s/%s", sweep->out, signature) >= (int)sizeof path)
		return obx_error_set(error, "the name of the output folder is too long");
	if (!obx_out_folder(path, error))
		return false;
	for (uint32_t group = 0; group < groups->count; group++)
		if (!write_group(sweep, groups, group, signature, m, tau, row, &failed, error))
			return false;
	snprintf(path, sizeof path, "%s/metadata.json", signature);
	if (!open_out(sweep, path, &out, error))
		return false;
	out.quick = true;
	ob_json_begin(&json, out.file, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_text(&json, "signature", signature);
	ob_json_object(&json, "parameters");
	ob_json_uint(&json, "m", sweep->grid.m[m]);
	ob_json_uint(&json, "tau", sweep->grid.tau[tau]);
	ob_json_double(&json, "eps", obx_sweep_eps(sweep, row), OBX_NUMBER_DIGITS);
	ob_json_uint(&json, "lmin", obx_sweep_lmin(sweep, row));
	ob_json_end(&json);
	ob_json_bool(&json, "completed", true);
	ob_json_uint(&json, "files", sweep->files.count);
	ob_json_uint(&json, "failed", failed);
	ob_json_end(&json);
	putc('\n', out.file);
	good = obx_out_commit(&out, error);
	obx_out_abort(&out);
	return good;
}

static bool write_folders(struct obx_sweep *sweep, struct obx_error *error)
{
	struct obx_sweep_event event = { .kind = OBX_SWEEP_WRITING,
		.counts = sweep->counts,
		.text = "a folder for each combination",
		.share = 1,
		.eta = NAN };
	OB_CLEANUP(groups_fini) struct groups groups = { 0 };

	if (sweep->on_event)
		sweep->on_event(sweep->arg, &event);
	if (!groups_init(&groups, sweep, error))
		return false;
	for (uint32_t m = 0; m < sweep->grid.m_count; m++)
		for (uint32_t t = 0; t < sweep->grid.tau_count; t++)
			for (uint32_t row = 0; row < obx_store_rows(sweep->store) && !sweep->cancel;
				row++)
				if (!write_combination(sweep, &groups, m, t, row, error))
					return false;
	if (sweep->cancel)
		return obx_error_set(error,
			"stopped while the folders were written; run the same command again");
	sync(); /* the thousands of small files were not flushed individually */
	return true;
}

/* ---- sweep.json ---- */

/* Modes, with the columns counted from 1. */
static void put_modes(const struct obx_setup *setup, struct ob_json *json)
{
	ob_json_array(json, "modes");
	for (uint32_t i = 0; i < setup->mode_count; i++) {
		const struct obk_rqa_mode *mode = &setup->modes[i];

		ob_json_object(json, NULL);
		ob_json_text(json, "name", mode->name);
		ob_json_text(json, "norm", obx_setup_norm(setup, mode));
		ob_json_array(json, "columns");
		for (uint32_t c = 0; c < mode->channel_count; c++)
			ob_json_uint(json, NULL, mode->channels[c] + 1);
		ob_json_end(json);
		ob_json_end(json);
	}
	ob_json_end(json);
}

/* What was computed, without anything that differs between runs. */
static bool write_json(struct obx_sweep *sweep, struct obx_error *error)
{
	struct obx_out out;
	struct ob_json json;
	char settings[4096];
	bool good;

	if (!open_out(sweep, "sweep.json", &out, error))
		return false;
	obx_setup_text(&sweep->setup, true, settings, sizeof settings);
	ob_json_begin(&json, out.file, OB_JSON_COMPACT);
	ob_json_object(&json, NULL);
	ob_json_text(&json, "settings", settings);
	ob_json_object(&json, "grid");
	obx_grid_json(&sweep->grid, 0, &json);
	ob_json_end(&json);
	put_modes(&sweep->setup, &json);
	obx_setup_measures_json(&sweep->setup, &json);
	ob_json_uint(&json, "files", sweep->files.count);
	ob_json_uint(&json, "rows", sweep->counts.total);
	ob_json_uint(&json, "done", sweep->counts.total - sweep->counts.failed);
	ob_json_uint(&json, "failed", sweep->counts.failed);
	ob_json_end(&json);
	putc('\n', out.file);
	good = obx_out_commit(&out, error);
	obx_out_abort(&out);
	return good;
}

bool obx_sweep_write(struct obx_sweep *sweep, struct obx_error *error)
{
	return write_long(sweep, error) &&
		(!(sweep->writes & OBX_WRITE_WIDE) || write_wide(sweep, error)) &&
		(!(sweep->writes & OBX_WRITE_FOLDERS) || write_folders(sweep, error)) &&
		write_json(sweep, error);
}
