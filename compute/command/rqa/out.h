/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * An output file that is replaced atomically: written under a hidden name in the same folder,
 * flushed to disk, then renamed. A killed run leaves the old file unchanged; the next run
 * overwrites the hidden one. One thread at a time.
 */
#ifndef OBX_RQA_OUT_H
#define OBX_RQA_OUT_H

#include <limits.h>
#include <stdio.h>

#include "compute/command/rqa/error.h"

struct obx_out {
	FILE *file;
	char path[PATH_MAX], part[PATH_MAX];
	/*
	 * may be set after open: do not flush to disk before renaming; for thousands of small files
	 */
	bool quick;
};

/* "-" is standard output. */
bool obx_out_open(struct obx_out *out, const char *path, struct obx_error *error);
/*
 * Closes and renames the file. False, with the destination unchanged, if any byte could not be
 * written.
 */
bool obx_out_commit(struct obx_out *out, struct obx_error *error);
/*
 * Closes and removes the hidden file. Does nothing if it was committed or never opened (all zero).
 */
void obx_out_abort(struct obx_out *out);
/* Creates a folder and its missing parents. */
bool obx_out_folder(const char *path, struct obx_error *error);

#endif
