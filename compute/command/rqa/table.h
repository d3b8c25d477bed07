/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reads a series from a text file: CSV with a heading (comma, semicolon or tab; quoted cells; a
 * byte order mark; LF, CR LF or CR at the end of a line), or numbers in columns. Errors name the
 * file, the line, the column and what to do. Owned by one thread at a time.
 */
#ifndef OBX_RQA_TABLE_H
#define OBX_RQA_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "compute/command/rqa/error.h"

#define OBX_TABLE_COLUMNS_MAX  1024
#define OBX_TABLE_CHANNELS_MAX 16
#define OBX_TABLE_LINE_MAX     (1u << 20)
#define OBX_TABLE_NAME_MAX     64

enum obx_missing {
	OBX_MISSING_ERROR = 0, /* an empty cell, NaN or infinity is an error */
	OBX_MISSING_DROP = 1,  /* the row is skipped */
	OBX_MISSING_GAP = 2    /* kept as NaN: never recurrent */
};

struct obx_table_spec {
	/*
	 * "x,y": names or numbers (1 is the first column) of the columns to read. NULL or empty:
	 * x,y, else GazePointX_normalized,GazePointY_normalized, else the only column.
	 */
	const char *columns;
	int missing; /* enum obx_missing */
};

struct obx_table {
	double *data; /* rows * channels values, one sample after the other */
	uint64_t rows, dropped;
	uint32_t channels;
	char names[OBX_TABLE_CHANNELS_MAX][OBX_TABLE_NAME_MAX];
	bool constant[OBX_TABLE_CHANNELS_MAX]; /* the channel has a single value */
	uint64_t first_line, last_line;        /* of the rows, counted from 1 */
	uint64_t hash;                         /* of the values that were read */
};

/* Reads at least two rows. On false nothing needs to be freed. */
bool obx_table_read(const char *path, const struct obx_table_spec *spec,
	struct obx_table *ret_table, struct obx_error *error);
void obx_table_fini(struct obx_table *table);

#endif
