/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A sweep: every file of a folder, every mode, every combination of a grid. Used by the command
 * line and by the page of `serve`.
 *
 *     new    -> open   reads the files and opens the state; totals are known afterwards
 *            -> run    may be stopped; rows that are done are kept
 *            -> write  writes the result files
 *            -> free
 *
 * Each of these blocks and must be called from one thread. counts and the events distinguish rows
 * that are done now, skipped (done by an earlier run), failed (with a reason), and remaining.
 */
#ifndef OBX_RQA_SWEEP_H
#define OBX_RQA_SWEEP_H

#include <pthread.h>
#include <stdint.h>

#include "compute/command/rqa/files.h"
#include "compute/command/rqa/grid.h"
#include "compute/command/rqa/setup.h"
#include "compute/command/rqa/store.h"

/* most bytes of series in memory at one time; a single longer series is allowed */
#define OBX_SWEEP_BATCH_BYTES (64u << 20)

/* The files that obx_sweep_write writes, in addition to failed.csv and sweep.json. */
#define OBX_WRITE_LONG    1u /* results.csv: a row for each (file, mode, m, tau, eps, lmin) */
/* summary.csv: a row for each (m, tau, eps, lmin, file), modes side by side */
#define OBX_WRITE_WIDE    2u
/* m1_tau1_eps0.05_lmin2/RQA_1D2D_summary_GROUP.csv and metadata.json */
#define OBX_WRITE_FOLDERS 4u

struct obx_sweep_counts {
	uint64_t total, done, skipped, failed; /* rows */
};

enum obx_sweep_event_kind {
	OBX_SWEEP_READING, /* files are being read: `current` of `total` */
	OBX_SWEEP_STARTED,
	OBX_SWEEP_PROGRESS,
	/* text: what failed and why; one event per file, or one per (file, mode) */
	OBX_SWEEP_FAILED,
	OBX_SWEEP_WRITING /* text: name of the file */
};

struct obx_sweep_event {
	enum obx_sweep_event_kind kind;
	struct obx_sweep_counts counts;
	uint64_t current, total; /* for OBX_SWEEP_READING */
	double share;            /* of the work, 0..1, without the work of skipped rows */
	double elapsed, eta;     /* seconds; eta is NaN until it is known */
	/* cells compared so far in this run, as counted by the RQA kernel */
	double cells;
	const char *text;
	char signature[OBX_SIGNATURE_MAX]; /* of the most recent combination; "": none */
};

struct obx_sweep {
	/* set by the caller before open */
	struct obx_setup setup;
	struct obx_grid grid;
	char *folder, *out, *pattern;
	bool fresh;
	unsigned writes;
	int digits;
	/* called from any thread, one call at a time; may be NULL */
	void (*on_event)(void *arg, const struct obx_sweep_event *event);
	void *arg;
	obk_rqa_flag cancel; /* not 0: stop soon */
	/* valid after open */
	struct obx_files files;
	struct obx_store *store;
	struct obx_sweep_counts counts;
	/* ---- private ---- */
	/*
	 * guards the fields below and counts, because rows and progress come from several threads
	 * and may overlap
	 */
	pthread_mutex_t lock;
	struct obx_group group;
	uint8_t *told; /* [file * modes + mode]: a failure was reported */
	char last_reason[OBX_REASON_MAX];
	double work_total, work_done, work_batch, began, elapsed, cells, cells_before;
	uint64_t *batch; /* indices in files of the series in the current batch */
	char signature[OBX_SIGNATURE_MAX];
	struct obx_error failure; /* an error of the disk in a callback */
	bool failed;
};

struct obx_sweep *obx_sweep_new(void);
void obx_sweep_free(struct obx_sweep *sweep);
bool obx_sweep_open(struct obx_sweep *sweep, struct obx_error *error);
/* true if every row is done, skipped or failed. false with *error: stopped, or the disk is full. */
bool obx_sweep_run(struct obx_sweep *sweep, struct obx_error *error);
bool obx_sweep_write(struct obx_sweep *sweep, struct obx_error *error);
/* The reason why (file, mode, m, tau) cannot be computed, or OBK_RQA_OK. */
int obx_sweep_check(const struct obx_sweep *sweep, uint64_t file, uint32_t mode, uint32_t m,
	uint32_t tau, char *ret_reason, size_t size);
/* "long,wide,folders" */
bool obx_sweep_parse_writes(const char *text, unsigned *ret_writes, struct obx_error *error);
/* Converts a row index within a slot to eps and lmin. */
static inline double obx_sweep_eps(const struct obx_sweep *sweep, uint32_t row)
{
	return sweep->grid.eps[row / sweep->grid.lmin_count];
}
static inline uint32_t obx_sweep_lmin(const struct obx_sweep *sweep, uint32_t row)
{
	return sweep->grid.lmin[row % sweep->grid.lmin_count];
}

#endif
