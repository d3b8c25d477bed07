/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The state of a sweep, OUT/.sweep.state: one slot of fixed size for each (m, tau, file, mode),
 * with the rows of all eps and lmin. A slot is written with one call and contains a checksum of its
 * bytes, so after a sweep was killed the next start can tell which slots are complete. The results
 * are written from the slots in a fixed order, so the files are the same however often the sweep
 * was interrupted.
 *
 *     | head | slot 0 | slot 1 | ...
 *     head = settings, grid, modes, measures, files with a hash of their values, check
 *     slot = check, reason, status of each row, values of each row
 *
 * If the head of an existing state differs only in files or lists, its matching slots are copied to
 * the new state. A lock prevents a second sweep in the same folder. Only one thread may put at a
 * time; others may call get meanwhile, each with its own group.
 */
#ifndef OBX_RQA_STORE_H
#define OBX_RQA_STORE_H

#include <stdint.h>

#include "compute/command/rqa/grid.h"

#define OBX_STORE_NAME      ".sweep.state"
#define OBX_STORE_SLOTS_MAX 100000000u
#define OBX_REASON_MAX      512

/*
 * What the slots belong to. The caller owns all memory, which is used only during obx_store_open.
 */
struct obx_store_key {
	const char *settings; /* everything that affects results, as text */
	const struct obx_grid *grid;
	const char *const *modes; /* as text, with columns and norm */
	const unsigned *measures;
	const char *const *files;
	const uint64_t *hashes;
	uint32_t mode_count, measure_count;
	uint64_t file_count;
};

/* The rows of one slot, eps by eps, lmin by lmin in each. */
struct obx_group {
	char *reason;    /* why rows failed; "": none failed */
	uint8_t *status; /* rows: enum obk_rqa_status */
	double *values;  /* rows * measures; NaN in rows that failed */
	void *memory;
};

enum obx_mark { OBX_MARK_NONE = 0, OBX_MARK_DONE = 1, OBX_MARK_FAILED = 2 };

struct obx_store;
/*
 * Opens or creates the state in folder `out`. fresh: discard an existing state. It is an error if
 * the state has other settings, if another sweep uses the folder, or if the disk is too small.
 */
bool obx_store_open(const char *out, const struct obx_store_key *key, bool fresh,
	struct obx_store **ret_store, struct obx_error *error);
void obx_store_free(struct obx_store *store);
uint64_t obx_store_slot(const struct obx_store *store, uint32_t m_index, uint32_t tau_index,
	uint64_t file, uint32_t mode);
uint32_t obx_store_rows(const struct obx_store *store);
/*
 * enum obx_mark for each slot: without rows, done, or with failed rows. Valid as long as the store;
 * put updates it.
 */
const _Atomic uint8_t *obx_store_marks(const struct obx_store *store);
bool obx_group_init(struct obx_group *group, const struct obx_store *store);
void obx_group_fini(struct obx_group *group);
bool obx_store_put(
	struct obx_store *store, uint64_t slot, struct obx_group *group, struct obx_error *error);
/* false without an error text when the slot has no rows yet. */
bool obx_store_get(const struct obx_store *store, uint64_t slot, struct obx_group *group,
	struct obx_error *error);
/*
 * One row of a slot, from a mapping of the file, for readers that access many slots. The values
 * (one per measure) are valid as long as the store. NULL if the slot has no rows yet. One thread at
 * a time.
 */
const double *obx_store_row(
	struct obx_store *store, uint64_t slot, uint32_t row, uint8_t *ret_status);

#endif
