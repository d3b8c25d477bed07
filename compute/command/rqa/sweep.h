/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A sweep: every file of a folder, every mode, every combination of a grid. Made for the command
 * line and for the page of `serve` alike.
 *
 *     new -> open (files read, state opened: totals are known) -> run (may be stopped; what is there stays) -> write (the result files) -> free
 *
 * Each of these blocks and is called from one thread. counts, and on_event's arguments, tell four
 * kinds of rows apart: done now, skipped (done by an earlier run), failed (with a reason), and
 * those still to come.
 */
#ifndef OBX_RQA_SWEEP_H
#define OBX_RQA_SWEEP_H

#include <pthread.h>
#include <stdint.h>

#include "compute/command/rqa/files.h"
#include "compute/command/rqa/grid.h"
#include "compute/command/rqa/setup.h"
#include "compute/command/rqa/store.h"

/* of series in memory at one time, or one series if that is longer */
#define OBX_SWEEP_BATCH_BYTES (64u << 20)

/* Which files obx_sweep_write writes; failed.csv and sweep.json always. */
#define OBX_WRITE_LONG    1u /* results.csv: a row for each (file, mode, m, tau, eps, lmin) */
/* summary.csv: a row for each (m, tau, eps, lmin, file), modes side by side */
#define OBX_WRITE_WIDE    2u
/* m1_tau1_eps0.05_lmin2/RQA_1D2D_summary_GROUP.csv and metadata.json */
#define OBX_WRITE_FOLDERS 4u

struct obx_sweep_counts {
	uint64_t total, done, skipped, failed; /* rows */
};

enum obx_sweep_event_kind {
	OBX_SWEEP_READING, /* files are being read: current of total */
	OBX_SWEEP_STARTED,
	OBX_SWEEP_PROGRESS,
	OBX_SWEEP_FAILED, /* text: what failed and why; one for a file, one for each (file, mode) */
	OBX_SWEEP_WRITING /* text: the file */
};

struct obx_sweep_event {
	enum obx_sweep_event_kind kind;
	struct obx_sweep_counts counts;
	uint64_t current, total; /* READING */
	double share;            /* of the work, 0..1; the work of skipped rows is not counted */
	double elapsed, eta;     /* seconds; eta NaN until it can be told */
	double cells;            /* cells compared so far in this run, as the engine counts */
	const char *text;
	char signature[OBX_SIGNATURE_MAX]; /* of the combination that arrived last; "" */
};

struct obx_sweep {
	/* given, before open */
	struct obx_setup setup;
	struct obx_grid grid;
	char *folder, *out, *pattern;
	bool fresh;
	unsigned writes;
	int digits;
	/* one call at a time, from any thread; may be NULL */
	void (*on_event)(void *arg, const struct obx_sweep_event *event);
	void *arg;
	obk_rqa_flag cancel; /* not 0: stop soon */
	/* known after open */
	struct obx_files files;
	struct obx_store *store;
	struct obx_sweep_counts counts;
	/* inside */
	/*
	 * rows and progress come from several threads of the engine, and may overlap: of what
	 * follows, and of counts
	 */
	pthread_mutex_t lock;
	struct obx_group group;
	uint8_t *told; /* file * modes + mode: a failure was told */
	char last_reason[OBX_REASON_MAX];
	double work_total, work_done, work_batch, began, elapsed, cells, cells_before;
	uint64_t *batch; /* index in files of the series in the engine's hands */
	char signature[OBX_SIGNATURE_MAX];
	struct obx_error failure; /* of the disk, met in a callback */
	bool failed;
};

struct obx_sweep *obx_sweep_new(void);
void obx_sweep_free(struct obx_sweep *sweep);
bool obx_sweep_open(struct obx_sweep *sweep, struct obx_error *error);
/*
 * true when every row is done, skipped or failed. false with *error: stopped, or the disk is full.
 */
bool obx_sweep_run(struct obx_sweep *sweep, struct obx_error *error);
bool obx_sweep_write(struct obx_sweep *sweep, struct obx_error *error);
/* Why (file, mode, m, tau) cannot be computed, or OBK_RQA_OK. */
int obx_sweep_check(const struct obx_sweep *sweep, uint64_t file, uint32_t mode, uint32_t m,
	uint32_t tau, char *ret_reason, size_t size);
/* "long,wide,folders" */
bool obx_sweep_parse_writes(const char *text, unsigned *ret_writes, struct obx_error *error);
/* Row index in a slot -> eps and lmin. */
static inline double obx_sweep_eps(const struct obx_sweep *sweep, uint32_t row)
{
	return sweep->grid.eps[row / sweep->grid.lmin_count];
}
static inline uint32_t obx_sweep_lmin(const struct obx_sweep *sweep, uint32_t row)
{
	return sweep->grid.lmin[row % sweep->grid.lmin_count];
}

#endif
