/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/sweep.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/out.h"

#define SETTINGS_MAX  4096
#define MODE_TEXT_MAX 256

static double now(void)
{
	return (double)ob_clock_ns() / (double)OB_SECOND;
}

struct obx_sweep *obx_sweep_new(void)
{
	struct obx_sweep *sweep = calloc(1, sizeof *sweep);

	if (sweep) {
		sweep->writes = OBX_WRITE_LONG;
		sweep->digits = OBX_NUMBER_DIGITS;
		pthread_mutex_init(&sweep->lock, NULL);
	}
	return sweep;
}

void obx_sweep_free(struct obx_sweep *sweep)
{
	if (!sweep)
		return;
	obx_store_free(sweep->store);
	obx_group_fini(&sweep->group);
	obx_files_fini(&sweep->files);
	obx_grid_fini(&sweep->grid);
	free(sweep->folder);
	free(sweep->out);
	free(sweep->pattern);
	free(sweep->told);
	free(sweep->batch);
	pthread_mutex_destroy(&sweep->lock);
	free(sweep);
}

bool obx_sweep_parse_writes(const char *text, unsigned *ret_writes, struct obx_error *error)
{
	char copy[64], *rest = copy, *word;
	unsigned writes = 0;

	snprintf(copy, sizeof copy, "%s", text);
	while ((word = strtok_r(rest, ",", &rest))) {
		if (strcmp(word, "long") == 0)
			writes |= OBX_WRITE_LONG;
		else if (strcmp(word, "wide") == 0)
			writes |= OBX_WRITE_WIDE;
		else if (strcmp(word, "folders") == 0)
			writes |= OBX_WRITE_FOLDERS;
		else
			return obx_error_set(
				error, "--write takes long, wide and folders, not '%.40s'", word);
	}
	if (!writes)
		return obx_error_set(
			error, "--write takes long, wide and folders; the list is empty");
	*ret_writes = writes;
	return true;
}

static void emit(
	struct obx_sweep *sweep, enum obx_sweep_event_kind kind, const char *text, double eta)
{
	struct obx_sweep_event event = { .kind = kind,
		.counts = sweep->counts,
		.text = text,
		.eta = eta,
		.cells = sweep->cells,
		.elapsed = sweep->elapsed };

	if (!sweep->on_event)
		return;
	event.share = sweep->work_total > 0 ? sweep->work_done / sweep->work_total : 1;
	strcpy(event.signature, sweep->signature);
	sweep->on_event(sweep->arg, &event);
}

/* ---- open ---- */

static void on_file(void *arg, uint64_t index)
{
	struct obx_sweep *sweep = arg;
	struct obx_sweep_event event = { .kind = OBX_SWEEP_READING,
		.current = index + 1,
		.total = sweep->files.count,
		.eta = NAN };

	if (sweep->on_event)
		sweep->on_event(sweep->arg, &event);
}

static bool check_size(const struct obx_sweep *sweep, struct obx_error *error)
{
	double rows = (double)obx_grid_combinations(&sweep->grid) * (double)sweep->files.count *
		sweep->setup.mode_count;
	char a[OBX_NUMBER_MAX], b[OBX_NUMBER_MAX], c[OBX_NUMBER_MAX];

	if (rows <= OBK_RQA_MAX_ROWS)
		return true;
	return obx_error_set(error,
		"the grid has %s combinations; with %s files and %u modes that is more than the %s "
		"rows allowed; take larger steps, "
		"shorter ranges or fewer files",
		obx_number_group(obx_grid_combinations(&sweep->grid), a),
		obx_number_group(sweep->files.count, b), sweep->setup.mode_count,
		obx_number_group(OBK_RQA_MAX_ROWS, c));
}

static bool choose_modes(struct obx_sweep *sweep, struct obx_error *error)
{
	uint32_t most = 0;

	for (uint64_t i = 0; i < sweep->files.count; i++)
		if (!sweep->files.list[i].wrong && sweep->files.list[i].channels > most)
			most = sweep->files.list[i].channels;
	if (!most)
		return obx_error_set(error, "none of the %llu files can be used; the first: %s",
			(unsigned long long)sweep->files.count, sweep->files.list[0].wrong);
	return obx_setup_modes(&sweep->setup, most, error);
}

static bool open_store(struct obx_sweep *sweep, struct obx_error *error)
{
	struct obx_setup *setup = &sweep->setup;
	char settings[SETTINGS_MAX], texts[OBX_SETUP_MODES_MAX][MODE_TEXT_MAX];
	const char *modes[OBX_SETUP_MODES_MAX];
	OB_CLEANUP(ob_freep) const char **names = calloc(sweep->files.count, sizeof *names);
	OB_CLEANUP(ob_freep) uint64_t *hashes = calloc(sweep->files.count, sizeof *hashes);
	struct obx_store_key key = { .settings = settings,
		.grid = &sweep->grid,
		.modes = modes,
		.measures = setup->measures,
		.files = names,
		.hashes = hashes,
		.mode_count = setup->mode_count,
		.measure_count = setup->measure_count,
		.file_count = sweep->files.count };

	if (!names || !hashes)
		return obx_error_set(error, "out of memory for the list of files");
	obx_setup_text(setup, true, settings, sizeof settings);
	for (unsigned i = 0; i < setup->mode_count; i++) {
		size_t used = (size_t)snprintf(texts[i], MODE_TEXT_MAX, "%s norm %d",
			setup->modes[i].name, setup->modes[i].norm);

		for (uint32_t c = 0; c < setup->modes[i].channel_count && used < MODE_TEXT_MAX; c++)
			used += (size_t)snprintf(texts[i] + used, MODE_TEXT_MAX - used, " %u",
				setup->modes[i].channels[c]);
		modes[i] = texts[i];
	}
	for (uint64_t i = 0; i < sweep->files.count; i++) {
		names[i] = sweep->files.list[i].name;
		hashes[i] = sweep->files.list[i].hash;
	}
	return obx_store_open(sweep->out, &key, sweep->fresh, &sweep->store, error);
}

bool obx_sweep_open(struct obx_sweep *sweep, struct obx_error *error)
{
	/* Check what is fast to check before files are read. */
	if (!obx_setup_finish(&sweep->setup, error) || !obx_grid_check(&sweep->grid, error))
		return false;
	if (!obx_files_list(&sweep->files, sweep->folder, sweep->pattern ? sweep->pattern : "*.csv",
		    sweep->out, error) ||
		!obx_out_folder(sweep->out, error) ||
		!obx_files_survey(&sweep->files, &sweep->setup.table, &sweep->cancel, on_file,
			sweep, error) ||
		!choose_modes(sweep, error) || !check_size(sweep, error) ||
		!open_store(sweep, error))
		return false;
	sweep->counts.total =
		obx_grid_combinations(&sweep->grid) * sweep->files.count * sweep->setup.mode_count;
	sweep->told = calloc(sweep->files.count, sweep->setup.mode_count);
	sweep->batch = calloc(sweep->files.count, sizeof *sweep->batch);
	if (!obx_group_init(&sweep->group, sweep->store) || !sweep->told || !sweep->batch)
		return obx_error_set(error, "out of memory for the sweep");
	return true;
}

/* ---- groups that cannot be computed ---- */

int obx_sweep_check(const struct obx_sweep *sweep, uint64_t index, uint32_t mode_index, uint32_t m,
	uint32_t tau, char *ret_reason, size_t size)
{
	const struct obx_file *file = &sweep->files.list[index];
	const struct obk_rqa_mode *mode = &sweep->setup.modes[mode_index];
	uint64_t need = (uint64_t)(m - 1) * tau + 2;
	bool constant = !sweep->setup.allow_constant;

	if (file->wrong) {
		snprintf(ret_reason, size, "%s", file->wrong);
		return OBK_RQA_ARGUMENT;
	}
	for (uint32_t c = 0; c < mode->channel_count; c++) {
		if (mode->channels[c] >= file->channels) {
			snprintf(ret_reason, size,
				"%s/%s has %u column%s, but the mode %s needs column %u; choose "
				"with --columns and --modes",
				sweep->files.folder, file->name, file->channels,
				file->channels == 1 ? "" : "s", mode->name, mode->channels[c] + 1);
			return OBK_RQA_ARGUMENT;
		}
		constant &= file->constant[mode->channels[c]];
	}
	if (constant) {
		snprintf(ret_reason, size,
			"%s/%s, lines %llu to %llu: the series never changes, every point would "
			"recur; check the recording, or compute it "
			"all the "
			"same with --constant allow",
			sweep->files.folder, file->name, (unsigned long long)file->first_line,
			(unsigned long long)file->last_line);
		return OBK_RQA_CONSTANT;
	}
	if (file->rows < need) {
		snprintf(ret_reason, size,
			"%s/%s ends at line %llu with %llu samples, but m=%u and tau=%u need at "
			"least %llu, (m-1)*tau+2; use a smaller m "
			"or tau, or "
			"leave the file out",
			sweep->files.folder, file->name, (unsigned long long)file->last_line,
			(unsigned long long)file->rows, m, tau, (unsigned long long)need);
		return OBK_RQA_TOO_SHORT;
	}
	return OBK_RQA_OK;
}

static void tell_failure(struct obx_sweep *sweep, uint64_t file, uint32_t mode, const char *reason)
{
	bool whole = sweep->files.list[file].wrong;
	uint8_t *told = &sweep->told[file * sweep->setup.mode_count + (whole ? 0 : mode)];

	/* The modes of one file usually fail for the same reason. */
	if (!*told && strcmp(sweep->last_reason, reason) != 0) {
		emit(sweep, OBX_SWEEP_FAILED, reason, NAN);
		snprintf(sweep->last_reason, sizeof sweep->last_reason, "%s", reason);
	}
	*told = 1;
}

/* Marks all rows of a group as failed for one reason. */
static bool fail_group(struct obx_sweep *sweep, uint64_t slot, uint64_t file, uint32_t mode,
	int status, const char *reason, struct obx_error *error)
{
	uint32_t rows = obx_store_rows(sweep->store);

	memset(sweep->group.reason, 0, OBX_REASON_MAX);
	snprintf(sweep->group.reason, OBX_REASON_MAX, "%s", reason);
	memset(sweep->group.status, status, rows);
	for (uint64_t i = 0; i < (uint64_t)rows * sweep->setup.measure_count; i++)
		sweep->group.values[i] = NAN;
	if (!obx_store_put(sweep->store, slot, &sweep->group, error))
		return false;
	sweep->counts.failed += rows;
	tell_failure(sweep, file, mode, reason);
	return true;
}

/*
 * The number of cells compared for a group, on average over upper triangles: the unit of the
 * estimate.
 */
static double group_work(const struct obx_sweep *sweep, uint64_t file, uint32_t m, uint32_t tau)
{
	double n = (double)(sweep->files.list[file].rows - (uint64_t)(m - 1) * tau);

	/* a constant per group, which matters for short series */
	return n * n / 2 * sweep->grid.eps_count + 2000;
}

/*
 * LOOK: compute the remaining work. COUNT: count skipped rows and record failures, once per file.
 * GIVE_UP: record failures of a file that has become unusable.
 */
enum settling { LOOK, COUNT, GIVE_UP };

/*
 * Settles what needs no computation for one file: groups that are done are skipped, groups that
 * cannot be computed fail. Returns the remaining work; -1: the disk failed.
 */
static double settle(
	struct obx_sweep *sweep, uint64_t file, enum settling settling, struct obx_error *error)
{
	const _Atomic uint8_t *marks = obx_store_marks(sweep->store);
	uint32_t rows = obx_store_rows(sweep->store);
	char reason[OBX_REASON_MAX];
	double work = 0;

	for (uint32_t mode = 0; mode < sweep->setup.mode_count; mode++)
		for (uint32_t m = 0; m < sweep->grid.m_count; m++)
			for (uint32_t t = 0; t < sweep->grid.tau_count; t++) {
				uint64_t slot = obx_store_slot(sweep->store, m, t, file, mode);
				int status;

				if (marks[slot] == OBX_MARK_DONE) {
					sweep->counts.skipped += settling == COUNT ? rows : 0;
					continue;
				}
				status = obx_sweep_check(sweep, file, mode, sweep->grid.m[m],
					sweep->grid.tau[t], reason, sizeof reason);
				if (status == OBK_RQA_OK)
					work += group_work(
						sweep, file, sweep->grid.m[m], sweep->grid.tau[t]);
				else if (settling != LOOK &&
					!fail_group(sweep, slot, file, mode, status, reason, error))
					return -1;
			}
	return work;
}

/* ---- run ---- */

static int on_want(void *arg, uint64_t series, uint32_t mode, uint32_t m, uint32_t tau)
{
	struct obx_sweep *sweep = arg;
	uint64_t file = sweep->batch[series];
	char reason[OBX_REASON_MAX];
	uint32_t mi = 0, ti = 0;

	while (sweep->grid.m[mi] != m)
		mi++;
	while (sweep->grid.tau[ti] != tau)
		ti++;
	return obx_store_marks(sweep->store)[obx_store_slot(sweep->store, mi, ti, file, mode)] !=
		OBX_MARK_DONE &&
		obx_sweep_check(sweep, file, mode, m, tau, reason, sizeof reason) == OBK_RQA_OK;
}

static int take_rows(struct obx_sweep *sweep, const struct obk_rqa_row *rows, uint32_t count)
{
	struct obx_group *group = &sweep->group;
	unsigned measures = sweep->setup.measure_count;
	uint64_t file = sweep->batch[rows[0].series];
	uint32_t failed = 0;

	if (rows[0].status == OBK_RQA_SKIPPED)
		return 0;
	if (count != obx_store_rows(sweep->store))
		return 1;
	memset(group->reason, 0, OBX_REASON_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const struct obk_rqa_row *row = &rows[i];
		uint32_t at = row->radius_index * sweep->grid.lmin_count + row->lmin_index;

		group->status[at] = (uint8_t)row->status;
		for (unsigned k = 0; k < measures; k++)
			group->values[(size_t)at * measures + k] =
				row->values ? row->values[sweep->setup.measures[k]] : NAN;
		if (row->status == OBK_RQA_OK)
			continue;
		if (!failed++)
			snprintf(group->reason, OBX_REASON_MAX, "%s/%s: %s", sweep->files.folder,
				sweep->files.list[file].name, row->reason ? row->reason : "");
	}
	if (!obx_store_put(sweep->store,
		    obx_store_slot(
			    sweep->store, rows[0].m_index, rows[0].tau_index, file, rows[0].mode),
		    group, &sweep->failure)) {
		sweep->failed = true;
		return 1;
	}
	sweep->counts.done += count - failed;
	sweep->counts.failed += failed;
	obx_signature_print(rows[0].m, rows[0].tau, rows[count - 1].radius, rows[count - 1].lmin,
		sweep->signature);
	if (failed)
		tell_failure(sweep, file, rows[0].mode, group->reason);
	return 0;
}

static int on_rows(void *arg, const struct obk_rqa_row *rows, uint32_t count)
{
	struct obx_sweep *sweep = arg;
	int stop;

	pthread_mutex_lock(&sweep->lock);
	stop = take_rows(sweep, rows, count);
	pthread_mutex_unlock(&sweep->lock);
	return stop;
}

/*
 * Seconds left: the remaining work divided by the average rate since the start, which covers slow
 * and fast groups.
 */
static int on_progress(void *arg, const struct obk_rqa_progress *p)
{
	struct obx_sweep *sweep = arg;
	double share = p->total ? (double)p->done / (double)p->total : 1, before, done, eta = NAN;

	pthread_mutex_lock(&sweep->lock);
	before = sweep->work_done;
	done = before + sweep->work_batch * share;
	sweep->elapsed = now() - sweep->began;
	sweep->cells = sweep->cells_before + (double)p->done;
	if (done > 0 && sweep->elapsed > 0.2)
		eta = (sweep->work_total - done) * sweep->elapsed / done;
	sweep->work_done = done;
	emit(sweep, OBX_SWEEP_PROGRESS, NULL, eta);
	sweep->work_done = before;
	pthread_mutex_unlock(&sweep->lock);
	return sweep->cancel;
}

/* Processes the files from `first` on, as many as fit into memory; *ret_next is the next one. */
static bool run_batch(
	struct obx_sweep *sweep, uint64_t first, uint64_t *ret_next, struct obx_error *error)
{
	struct obk_rqa_grid grid = { .m = sweep->grid.m,
		.tau = sweep->grid.tau,
		.lmin = sweep->grid.lmin,
		.radius = sweep->grid.eps,
		.m_count = sweep->grid.m_count,
		.tau_count = sweep->grid.tau_count,
		.radius_count = sweep->grid.eps_count,
		.lmin_count = sweep->grid.lmin_count,
		.modes = sweep->setup.modes,
		.mode_count = sweep->setup.mode_count };
	struct obk_rqa_control control = { .threads = sweep->setup.threads,
		.device = sweep->setup.device,
		.isa = sweep->setup.isa,
		.arg = sweep,
		.progress = on_progress,
		.cancel = &sweep->cancel };
	OB_CLEANUP(ob_freep)
	struct obk_rqa_series *series = calloc(sweep->files.count - first, sizeof *series);
	OB_CLEANUP(ob_freep)
	struct obx_table *tables = calloc(sweep->files.count - first, sizeof *tables);
	struct obk_rqa_sweep job = { .series = series,
		.options = &sweep->setup.options,
		.grid = &grid,
		.rows = on_rows,
		.want = on_want };
	struct obk_rqa_error wrong = { 0 };
	uint64_t file = first, bytes = 0, count = 0;
	bool good = true;

	if (!series || !tables)
		return obx_error_set(error, "out of memory for the series");
	sweep->work_batch = 0;
	for (; good && file < sweep->files.count && !sweep->cancel; file++) {
		struct obx_error trouble;
		double work = settle(sweep, file, LOOK, error);
		uint64_t size = sweep->files.list[file].rows * sweep->files.list[file].channels *
			sizeof(double);

		if (work <= 0)
			continue;
		if (count && bytes + size > OBX_SWEEP_BATCH_BYTES)
			break;
		if (!obx_files_read(
			    &sweep->files, file, &sweep->setup.table, &tables[count], &trouble)) {
			struct obx_file *f = &sweep->files.list[file];

			f->wrong = strdup(trouble.text);
			good = f->wrong && settle(sweep, file, GIVE_UP, error) >= 0;
			sweep->work_total -= work;
			continue;
		}
		series[count] = (struct obk_rqa_series){ .name = sweep->files.list[file].name,
			.data = tables[count].data,
			.length = tables[count].rows,
			.channels = tables[count].channels,
			.step = tables[count].channels,
			.channel_step = 1 };
		sweep->batch[count++] = file;
		sweep->work_batch += work;
		bytes += size;
	}
	job.series_count = count;
	if (good && count && !sweep->cancel &&
		obk_rqa_sweep(&job, &control, &wrong) != OBK_RQA_OK) {
		if (sweep->failed)
			*error = sweep->failure;
		else if (wrong.status != OBK_RQA_CANCELLED)
			obx_error_set(error, "%s%s", wrong.text,
				wrong.status != OBK_RQA_DEVICE
					? ""
					: "; rows that are done are kept: run it again to go on, "
					  "with --device cpu if there is no GPU now");
		good = wrong.status == OBK_RQA_CANCELLED && sweep->cancel;
	}
	for (uint64_t i = 0; i < count; i++)
		obx_table_fini(&tables[i]);
	sweep->work_done += sweep->work_batch;
	sweep->cells_before = sweep->cells;
	*ret_next = file;
	return good;
}

bool obx_sweep_run(struct obx_sweep *sweep, struct obx_error *error)
{
	uint64_t next = 0;

	sweep->began = now();
	emit(sweep, OBX_SWEEP_STARTED, NULL, NAN);
	for (uint64_t i = 0; i < sweep->files.count && !sweep->cancel; i++) {
		double work = settle(sweep, i, COUNT, error);

		if (work < 0)
			return false;
		sweep->work_total += work;
	}
	while (next < sweep->files.count && !sweep->cancel)
		if (!run_batch(sweep, next, &next, error))
			return false;
	sweep->elapsed = now() - sweep->began;
	if (sweep->cancel)
		return obx_error_set(
			error, "stopped; run the same command again to go on from here");
	emit(sweep, OBX_SWEEP_PROGRESS, NULL, 0);
	return true;
}
