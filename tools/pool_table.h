/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Tables of a balancer's JSON documents: a column is a key of the rows, or a function. Columns are
 * left out, those of the highest rank first, until a line fits. All text is cleaned of control
 * characters. No state; main thread.
 */
#ifndef OBX_POOL_TABLE_H
#define OBX_POOL_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define OBX_CELL_MAX 256u /* bytes of a cell, NUL included; longer ones are cut */

enum obx_cell {
	OBX_CELL_TEXT,
	OBX_CELL_NUMBER,
	OBX_CELL_BYTES,
	OBX_CELL_PER_MILLE, /* shown as a percentage */
	OBX_CELL_MILLIONTHS,
	OBX_CELL_SECONDS,
	OBX_CELL_MS,
	OBX_CELL_TIME_MS, /* since 1970 */
	OBX_CELL_STATE,   /* text with a colour */
};

struct obx_column {
	const char *title; /* NULL: the end of the list */
	const char *key;   /* of a row's member; with `print` it may be NULL */
	enum obx_cell kind;
	unsigned rank; /* 0: never left out */
	/* replaces the kind's form; an empty text is shown as "-" */
	void (*print)(const json_t *row, const json_t *document, char ret[OBX_CELL_MAX]);
};

struct obx_paper {
	unsigned columns; /* UINT_MAX: unlimited */
	bool color;
};

/* What standard output takes: COLUMNS or the terminal's width, NO_COLOR. */
struct obx_paper obx_paper_of_stdout(void);
/*
 * Prints a table with a line of titles, or "none" if there are no rows. False: rows is no array, or
 * there is no memory.
 */
bool obx_table_print(const json_t *rows, const json_t *document, const struct obx_column *columns,
	struct obx_paper paper);
/* Prints "title: value" for each column of one row. */
void obx_table_details(const json_t *row, const json_t *document, const struct obx_column *columns,
	struct obx_paper paper);

/* The text of a member, cleaned; "" if it is none. */
void obx_json_text(const json_t *object, const char *key, char ret[OBX_CELL_MAX]);
/* A member that is a number from 0 on; 0 if it is none. */
unsigned long long obx_json_number(const json_t *object, const char *key);
/* "400 ms", "12 s", "3 min", "5 h", "2 d" */
void obx_print_duration(unsigned long long ms, char ret[OBX_CELL_MAX]);

#endif
