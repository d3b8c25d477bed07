/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The files of a sweep: all files in a folder and its subfolders whose names match a pattern,
 * sorted by name. Each is read once to determine its length, its hash and its errors; its values
 * are read again when they are needed, so memory does not grow with the number of files. Owned by
 * one thread at a time.
 */
#ifndef OBX_RQA_FILES_H
#define OBX_RQA_FILES_H

#include <stdint.h>

#include "compute/command/rqa/setup.h"

#define OBX_FILES_DEPTH_MAX 16

struct obx_file {
	char *name;  /* relative to the folder */
	char *wrong; /* why it cannot be used; NULL: it can */
	uint64_t rows, first_line, last_line, hash, dropped;
	uint32_t channels;
	bool constant[OBX_TABLE_CHANNELS_MAX];
};

struct obx_files {
	struct obx_file *list;
	uint64_t count, wrong_count;
	char *folder;
};

/*
 * Only lists the files. It is an error if there are none. `leave_out`: a subfolder that is not
 * searched (that of the output); may be NULL.
 */
bool obx_files_list(struct obx_files *files, const char *folder, const char *pattern,
	const char *leave_out, struct obx_error *error);
/*
 * Reads all files; *cancel may be set by another thread or a signal. Calls on_file after each (may
 * be NULL).
 */
bool obx_files_survey(struct obx_files *files, const struct obx_table_spec *spec,
	const obk_rqa_flag *cancel, void (*on_file)(void *arg, uint64_t index), void *arg,
	struct obx_error *error);
/* Reads the values of one file; false if the file has changed since the survey. */
bool obx_files_read(const struct obx_files *files, uint64_t index,
	const struct obx_table_spec *spec, struct obx_table *ret_table, struct obx_error *error);
/* The path of a file: folder/name. */
bool obx_files_path(const struct obx_files *files, uint64_t index, char *ret_path, size_t size);
/*
 * The names that eye-tracking tables use for a file: group, the first folder below that of the
 * sweep ("all" if there is none); folder, the one that contains the file; file, its own name; q,
 * the number after the last q of its name ("n12q3.csv": 3), else "".
 */
struct obx_file_names {
	char group[128], folder[128], q[16];
	const char *file;
};
void obx_files_names(
	const struct obx_files *files, uint64_t index, struct obx_file_names *ret_names);
void obx_files_fini(struct obx_files *files);

#endif
