/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/pool_table.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/terminal.h"
#include "base/text.h"

#define COLUMNS_MAX 24u
#define GAP         2u

struct obx_paper obx_paper_of_stdout(void)
{
	const char *text = getenv("COLUMNS"), *none = getenv("NO_COLOR"), *kind = getenv("TERM");
	struct winsize window = { .ws_col = 0 };
	struct obx_paper paper = { .columns = UINT_MAX };
	bool terminal = isatty(STDOUT_FILENO);
	uint64_t number;

	if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col)
		paper.columns = window.ws_col;
	if (text && ob_text_parse_number(text, 20, 10000, &number))
		paper.columns = (unsigned)number;
	/* https://no-color.org */
	paper.color = terminal && !(none && *none) && !(kind && strcmp(kind, "dumb") == 0);
	return paper;
}

/* ---- values ---- */

void obx_json_text(const json_t *object, const char *key, char ret[OBX_CELL_MAX])
{
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(ret, OBX_CELL_MAX, "%s", text ? text : "");
	ret[ob_text_clean(ret, strlen(ret))] = '\0';
}

unsigned long long obx_json_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (unsigned long long)value : 0;
}

void obx_print_duration(unsigned long long ms, char ret[OBX_CELL_MAX])
{
	unsigned long long s = (ms + 500) / 1000;

	if (ms < 1000)
		snprintf(ret, OBX_CELL_MAX, "%llu ms", ms);
	else if (s < 100)
		snprintf(ret, OBX_CELL_MAX, "%llu s", s);
	else if (s < 6000)
		snprintf(ret, OBX_CELL_MAX, "%llu min", s / 60);
	else if (s < 48 * 3600)
		snprintf(ret, OBX_CELL_MAX, "%llu h", s / 3600);
	else
		snprintf(ret, OBX_CELL_MAX, "%llu d", s / 86400);
}

static void time_print(unsigned long long ms, char ret[OBX_CELL_MAX])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm local;

	if (!ms || !localtime_r(&seconds, &local) ||
		!strftime(ret, OBX_CELL_MAX, "%Y-%m-%d %H:%M:%S", &local))
		snprintf(ret, OBX_CELL_MAX, "-");
}

static void cell_print(const struct obx_column *column, const json_t *row, const json_t *document,
	char ret[OBX_CELL_MAX])
{
	const json_t *value = column->key ? json_object_get(row, column->key) : NULL;
	unsigned long long number = column->key ? obx_json_number(row, column->key) : 0;

	ret[0] = '\0';
	if (column->print) {
		column->print(row, document, ret);
		ret[ob_text_clean(ret, strlen(ret))] = '\0';
	} else if (column->kind == OBX_CELL_TEXT || column->kind == OBX_CELL_STATE) {
		obx_json_text(row, column->key, ret);
	} else if (json_is_integer(value)) {
		switch (column->kind) {
		case OBX_CELL_BYTES:
			ob_text_print_size(number, ret, OBX_CELL_MAX);
			break;
		case OBX_CELL_PER_MILLE:
			snprintf(ret, OBX_CELL_MAX, "%llu %%", (number + 5) / 10);
			break;
		case OBX_CELL_MILLIONTHS:
			snprintf(ret, OBX_CELL_MAX, "%llu %%", (number + 5000) / 10000);
			break;
		case OBX_CELL_SECONDS:
			obx_print_duration(ob_min(number, ULLONG_MAX / 1000) * 1000, ret);
			break;
		case OBX_CELL_MS:
			obx_print_duration(ob_min(number, ULLONG_MAX - 500), ret);
			break;
		case OBX_CELL_TIME_MS:
			time_print(number, ret);
			break;
		default:
			snprintf(ret, OBX_CELL_MAX, "%llu", number);
			break;
		}
	}
	if (!ret[0])
		snprintf(ret, OBX_CELL_MAX, "-");
}

/* ---- tables ---- */

/* Characters of a UTF-8 text; the text has been cleaned, so each takes a column. */
static unsigned width_of(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* Bytes of the first n characters. */
static int bytes_of(const char *text, unsigned n)
{
	const char *p = text;

	while (*p && n--)
		for (p++; ((unsigned char)*p & 0xc0) == 0x80;)
			p++;
	return (int)(p - text);
}

static const char *color_of(const char *state)
{
	static const char *const good[] = { "ready", "running", "online" };
	static const char *const bad[] = { "lost", "unwell", "silent", "faulty", "refused",
		"twin" };

	for (size_t i = 0; i < ob_count(good); i++)
		if (strcmp(state, good[i]) == 0)
			return "\033[32m";
	for (size_t i = 0; i < ob_count(bad); i++)
		if (strcmp(state, bad[i]) == 0)
			return "\033[31m";
	return "\033[33m";
}

struct table {
	const struct obx_column *columns;
	struct obx_paper paper;
	size_t n_columns, n_rows;
	unsigned width[COLUMNS_MAX];
	bool right[COLUMNS_MAX], shown[COLUMNS_MAX];
	char **cells; /* n_rows times n_columns */
};

static unsigned line_width(const struct table *t)
{
	unsigned sum = 0;

	for (size_t c = 0; c < t->n_columns; c++)
		if (t->shown[c])
			sum += (sum ? GAP : 0) + t->width[c];
	return sum;
}

/* Leaves out the column of the highest rank. False: all that remain have rank 0. */
static bool column_drop(struct table *t)
{
	size_t worst = t->n_columns;
	unsigned rank = 0;

	for (size_t c = 0; c < t->n_columns; c++)
		if (t->shown[c] && t->columns[c].rank > rank) {
			rank = t->columns[c].rank;
			worst = c;
		}
	if (worst == t->n_columns)
		return false;
	t->shown[worst] = false;
	return true;
}

/* row NULL: the titles. */
static void line_print(const struct table *t, char *const *row)
{
	unsigned used = 0, pending = 0; /* blanks before the next text */

	for (size_t c = 0; c < t->n_columns; c++) {
		const char *text = row ? row[c] : t->columns[c].title, *color = NULL;
		unsigned width = width_of(text), room;

		if (!t->shown[c])
			continue;
		if (t->right[c])
			pending += t->width[c] - width;
		if (used + pending >= t->paper.columns)
			break;
		room = ob_min(width, t->paper.columns - used - pending);
		if (row && t->paper.color && t->columns[c].kind == OBX_CELL_STATE)
			color = color_of(text);
		printf("%*s%s%.*s%s", (int)pending, "", color ? color : "", bytes_of(text, room),
			text, color ? "\033[0m" : "");
		used += pending + room;
		pending = GAP + (t->right[c] ? 0 : t->width[c] - width);
	}
	putchar('\n');
}

static bool is_right(const struct obx_column *column)
{
	return !column->print && column->kind != OBX_CELL_TEXT && column->kind != OBX_CELL_STATE &&
		column->kind != OBX_CELL_TIME_MS;
}

/* Fills the cells and the widths. False: no memory. */
static bool table_fill(struct table *t, const json_t *rows, const json_t *document)
{
	char cell[OBX_CELL_MAX];
	const json_t *row;
	size_t r;

	for (size_t c = 0; c < t->n_columns; c++) {
		t->width[c] = width_of(t->columns[c].title);
		t->right[c] = is_right(&t->columns[c]);
		t->shown[c] = true;
	}
	json_array_foreach(rows, r, row)
	{
		for (size_t c = 0; c < t->n_columns; c++) {
			char **at = &t->cells[r * t->n_columns + c];

			cell_print(&t->columns[c], row, document, cell);
			*at = strdup(cell);
			if (!*at)
				return false;
			t->width[c] = ob_max(t->width[c], width_of(cell));
		}
	}
	return true;
}

bool obx_table_print(const json_t *rows, const json_t *document, const struct obx_column *columns,
	struct obx_paper paper)
{
	struct table t = { .columns = columns, .paper = paper, .n_rows = json_array_size(rows) };
	bool ok;

	if (!json_is_array(rows))
		return false;
	if (!t.n_rows) {
		puts("none");
		return true;
	}
	while (columns[t.n_columns].title && t.n_columns < COLUMNS_MAX)
		t.n_columns++;
	t.cells = calloc(t.n_rows * t.n_columns, sizeof *t.cells);
	ok = t.cells && table_fill(&t, rows, document);
	while (ok && line_width(&t) > paper.columns && column_drop(&t))
		;
	if (ok)
		line_print(&t, NULL);
	for (size_t r = 0; ok && r < t.n_rows; r++)
		line_print(&t, &t.cells[r * t.n_columns]);
	for (size_t i = 0; t.cells && i < t.n_rows * t.n_columns; i++)
		free(t.cells[i]);
	free(t.cells);
	return ok;
}

void obx_table_details(const json_t *row, const json_t *document, const struct obx_column *columns,
	struct obx_paper paper)
{
	unsigned width = 0;
	char cell[OBX_CELL_MAX];

	for (const struct obx_column *c = columns; c->title; c++)
		width = ob_max(width, width_of(c->title));
	for (const struct obx_column *c = columns; c->title; c++) {
		bool color = paper.color && c->kind == OBX_CELL_STATE;

		cell_print(c, row, document, cell);
		printf("%-*s  %s%s%s\n", (int)width, c->title, color ? color_of(cell) : "", cell,
			color ? "\033[0m" : "");
	}
}
