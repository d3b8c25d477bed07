/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A file that appears whole or not at all: written beside its place under a hidden name, flushed to
 * the disk, then renamed. A killed run leaves the old file as it was; the hidden one is overwritten
 * by the next run. One thread at a time.
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
	 * set after open: not flushed to the disk before it is renamed; for thousands of small
	 * files
	 */
	bool quick;
};

/* "-" is standard output. */
bool obx_out_open(struct obx_out *out, const char *path, struct obx_error *error);
/* Closes; false (and the place untouched) when any byte could not be written. */
bool obx_out_commit(struct obx_out *out, struct obx_error *error);
/*
 * Closes and removes the part. Nothing to do for one that was committed or never opened (all zero).
 */
void obx_out_abort(struct obx_out *out);
/* Makes a folder and those above it. */
bool obx_out_folder(const char *path, struct obx_error *error);

#endif
