/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "compute/rqa/rqa.h"

#define ROWS_FIRST 1024
#define LINE_FIRST 256

struct reader {
	const char *path;
	FILE *file;
	char *line;
	size_t line_size;
	uint64_t number; /* number of the current line */
	char delimiter;  /* 0: white space */
	char *cells[OBX_TABLE_COLUMNS_MAX];
	unsigned cell_count;
	unsigned picked[OBX_TABLE_CHANNELS_MAX];
	uint64_t capacity;
};

/* Makes room for one more byte in the line. */
static bool line_grow(struct reader *r)
{
	size_t size = r->line_size ? r->line_size * 2 : LINE_FIRST;
	char *line = realloc(r->line, size);

	if (!line)
		return false;
	r->line = line;
	r->line_size = size;
	return true;
}

/*
 * Reads a line up to its end, which is a line feed, a carriage return, both, or the end of the
 * file. Reads OBX_TABLE_LINE_MAX + 1 bytes of a line that is too long. Returns its length, -1 at
 * the end of the file, -2 on an error (errno).
 */
static ssize_t take_line(struct reader *r)
{
	size_t n = 0;
	int c;

	while ((c = getc_unlocked(r->file)) != EOF && c != '\n' && c != '\r' &&
		n <= OBX_TABLE_LINE_MAX) {
		if (n + 1 >= r->line_size && !line_grow(r))
			return -2;
		r->line[n++] = (char)c;
	}
	if (c == '\r') {
		int next = getc_unlocked(r->file);

		if (next != EOF && next != '\n')
			ungetc(next, r->file);
	}
	if (ferror(r->file))
		return -2;
	if (c == EOF && !n)
		return -1;
	if (!r->line && !line_grow(r))
		return -2;
	r->line[n] = '\0';
	return (ssize_t)n;
}

/*
 * Reads the next line that is neither empty nor a comment, without its line end. Returns 1, 0 at
 * the end of the file, -1 on an error.
 */
static int next_line(struct reader *r, struct obx_error *error)
{
	for (;;) {
		ssize_t n = take_line(r);
		char *start = r->line;

		if (n == -1)
			return 0;
		if (n < 0) {
			obx_error_set(error, "%s cannot be read after line %llu: %s", r->path,
				(unsigned long long)r->number, strerror(errno));
			return -1;
		}
		r->number++;
		if (n > (ssize_t)OBX_TABLE_LINE_MAX || memchr(r->line, 0, (size_t)n)) {
			obx_error_set(error,
				"%s, line %llu: not a line of text; is this a CSV file?", r->path,
				(unsigned long long)r->number);
			return -1;
		}
		while (n && r->line[n - 1] == ' ')
			r->line[--n] = 0;
		if (r->number == 1 && n >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
			memmove(start, start + 3, (size_t)n - 2);
		while (*start == ' ')
			start++;
		if (*start && *start != '#')
			return 1;
	}
}

static char find_delimiter(const char *line)
{
	static const char tried[] = { ';', '\t', ',' };

	for (size_t i = 0; i < sizeof tried; i++)
		if (strchr(line, tried[i]))
			return tried[i];
	return 0;
}

/* Takes one cell from the line, without quotes and blanks around it. */
static char *next_cell(char **rest, char delimiter)
{
	char *p = *rest, *start, *out;

	while (*p == ' ' || (!delimiter && *p == '\t'))
		p++;
	start = out = p;
	if (*p == '"') {
		for (p++; *p; p++) {
			if (*p == '"' && p[1] == '"')
				p++;
			else if (*p == '"')
				break;
			*out++ = *p;
		}
		if (*p)
			p++;
		while (*p && *p != delimiter && !(!delimiter && isblank((unsigned char)*p)))
			p++;
	} else {
		while (*p && (delimiter ? *p != delimiter : !isblank((unsigned char)*p)))
			p++;
		out = p;
		while (out > start && isblank((unsigned char)out[-1]))
			out--;
	}
	*rest = *p ? p + 1 : p;
	if (*p == 0)
		*rest = NULL;
	*out = 0;
	return start;
}

static bool split(struct reader *r, struct obx_error *error)
{
	char *rest = r->line;

	r->cell_count = 0;
	while (rest) {
		char *blank = rest;

		if (!r->delimiter) { /* trailing blanks are not another column */
			blank += strspn(blank, " \t");
			if (!*blank)
				break;
		}
		if (r->cell_count == OBX_TABLE_COLUMNS_MAX)
			return obx_error_set(error, "%s, line %llu: more than %d columns", r->path,
				(unsigned long long)r->number, OBX_TABLE_COLUMNS_MAX);
		r->cells[r->cell_count++] = next_cell(&rest, r->delimiter);
	}
	return true;
}

/* 0x10, which strtod reads as 16. Such a cell is damaged or an address, not a sample. */
static bool is_hexadecimal(const char *text)
{
	text += *text == '-' || *text == '+';
	return text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

static bool is_number(const char *text, double *ret)
{
	char *end;

	if (!*text || is_hexadecimal(text))
		return false;
	*ret = strtod(text, &end);
	return *end == 0;
}

static bool is_missing(const char *text)
{
	static const char *const words[] = { "", "nan", "na", "n/a", "null", "none", "-" };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

static int find_name(const struct reader *r, const char *name)
{
	for (unsigned i = 0; i < r->cell_count; i++)
		if (strcmp(r->cells[i], name) == 0)
			return (int)i;
	for (unsigned i = 0; i < r->cell_count; i++)
		if (strcasecmp(r->cells[i], name) == 0)
			return (int)i;
	return -1;
}

static bool no_column(
	const struct reader *r, const char *name, bool heading, struct obx_error *error)
{
	char have[400];
	size_t used = 0;

	if (!heading)
		return obx_error_set(error,
			"%s, line %llu: there is no heading and so no column '%s', only columns 1 "
			"to %u; name them by number: "
			"--columns 1%s",
			r->path, (unsigned long long)r->number, name, r->cell_count,
			r->cell_count > 1 ? ",2" : "");
	have[0] = 0;
	for (unsigned i = 0; i < r->cell_count && used < sizeof have - 40; i++)
		used += (size_t)snprintf(
			have + used, sizeof have - used, "%s%.30s", i ? ", " : "", r->cells[i]);
	return obx_error_set(error,
		"%s, line %llu: there is no column '%s'; the columns are %s: name those to use "
		"with --columns",
		r->path, (unsigned long long)r->number, name, have);
}

/* Finds the requested columns in the first line. */
static bool pick_columns(struct reader *r, const struct obx_table_spec *spec, bool heading,
	struct obx_table *table, struct obx_error *error)
{
	static const char *const pairs[][2] = { { "x", "y" },
		{ "GazePointX_normalized", "GazePointY_normalized" } };
	char wanted[OBX_TABLE_CHANNELS_MAX * OBX_TABLE_NAME_MAX];
	char *rest = wanted, *name;

	if (!spec->columns || !*spec->columns) {
		for (size_t i = 0; heading && i < 2; i++) {
			int x = find_name(r, pairs[i][0]), y = find_name(r, pairs[i][1]);

			if (x < 0 || y < 0)
				continue;
			snprintf(wanted, sizeof wanted, "%d,%d", x + 1, y + 1);
			goto found;
		}
		if (r->cell_count != 1)
			return no_column(r,
				heading ? "x' and 'y' or 'GazePointX_normalized' and "
					  "'GazePointY_normalized"
					: "x",
				heading, error);
		strcpy(wanted, "1");
	} else if (snprintf(wanted, sizeof wanted, "%s", spec->columns) >= (int)sizeof wanted) {
		return obx_error_set(error, "--columns: the list is too long");
	}
found:
	table->channels = 0;
	while ((name = strtok_r(rest, ",", &rest))) {
		int at = heading ? find_name(r, name) : -1;
		char *end;

		if (at < 0) {
			unsigned long number = strtoul(name, &end, 10);

			if (*end || number < 1 || number > r->cell_count || name[0] == '-')
				return no_column(r, name, heading, error);
			at = (int)number - 1;
		}
		if (table->channels == OBX_TABLE_CHANNELS_MAX)
			return obx_error_set(error, "--columns: at most %d columns can be used",
				OBX_TABLE_CHANNELS_MAX);
		r->picked[table->channels] = (unsigned)at;
		if (heading)
			snprintf(table->names[table->channels], OBX_TABLE_NAME_MAX, "%s",
				r->cells[at]);
		else
			snprintf(table->names[table->channels], OBX_TABLE_NAME_MAX, "%d", at + 1);
		table->channels++;
	}
	return table->channels ? true : obx_error_set(error, "--columns: the list is empty");
}

static bool grow(struct reader *r, struct obx_table *table, struct obx_error *error)
{
	uint64_t capacity = r->capacity ? r->capacity * 2 : ROWS_FIRST;
	double *data;

	if (table->rows >= OBK_RQA_MAX_LENGTH)
		return obx_error_set(error,
			"%s, line %llu: more than %u samples; cut the file into parts", r->path,
			(unsigned long long)r->number, OBK_RQA_MAX_LENGTH);
	data = realloc(table->data, capacity * table->channels * sizeof *data);
	if (!data)
		return obx_error_set(error, "%s, line %llu: out of memory", r->path,
			(unsigned long long)r->number);
	table->data = data;
	r->capacity = capacity;
	return true;
}

/* Appends the current row unless it is dropped. */
static bool take_row(struct reader *r, const struct obx_table_spec *spec, struct obx_table *table,
	struct obx_error *error)
{
	unsigned long long line = r->number;
	double *to;

	if (table->rows == r->capacity && !grow(r, table, error))
		return false;
	to = table->data + table->rows * table->channels;
	for (uint32_t c = 0; c < table->channels; c++) {
		const char *name = table->names[c], *text;
		double value = NAN;

		if (r->picked[c] >= r->cell_count)
			return obx_error_set(error,
				"%s, line %llu: %u columns instead of the %u up to '%s'; complete "
				"or remove the line",
				r->path, line, r->cell_count, r->picked[c] + 1, name);
		text = r->cells[r->picked[c]];
		if (!is_number(text, &value) && !is_missing(text))
			return obx_error_set(error,
				"%s, line %llu, column %s: '%.40s' is not a number%s", r->path,
				line, name, text,
				strchr(text, ',') ? "; write decimals with a point"
					: is_hexadecimal(text)
					? ": it is hexadecimal; write it as a decimal number"
					: "; correct the cell or remove the line");
		if (!isfinite(value)) {
			if (spec->missing == OBX_MISSING_ERROR)
				return obx_error_set(error,
					"%s, line %llu, column %s: %s%.20s%s; correct it, or leave "
					"such rows out with --missing drop "
					"or keep them as gaps with --missing gap",
					r->path, line, name, *text ? "'" : "the cell is empty",
					text, *text ? "' is not a finite number" : "");
			if (spec->missing == OBX_MISSING_DROP) {
				table->dropped++;
				return true;
			}
			value = NAN;
		}
		/* convert -0 to 0, because the hash would differ */
		to[c] = value == 0 ? 0 : value;
		if (table->rows && to[c] != table->data[c] &&
			!(isnan(to[c]) && isnan(table->data[c])))
			table->constant[c] = false;
	}
	table->hash = ob_hash(table->hash, to, table->channels * sizeof *to);
	if (!table->rows++)
		table->first_line = r->number;
	table->last_line = r->number;
	return true;
}

static bool read_rows(struct reader *r, const struct obx_table_spec *spec, struct obx_table *table,
	struct obx_error *error)
{
	bool heading = false;
	double number;
	int more = next_line(r, error);

	if (more <= 0)
		return more < 0 ? false
				: obx_error_set(error,
					  "%s, line 1: the file is empty; it should have a heading "
					  "such as x,y and a sample on each line",
					  r->path);
	r->delimiter = find_delimiter(r->line);
	if (!split(r, error))
		return false;
	/*
	 * The first line is a heading if it has a word that is neither a number nor a missing
	 * value.
	 */
	for (unsigned i = 0; i < r->cell_count; i++)
		heading |= !is_number(r->cells[i], &number) && !is_missing(r->cells[i]) &&
			!is_hexadecimal(r->cells[i]);
	if (!pick_columns(r, spec, heading, table, error))
		return false;
	memset(table->constant, 1, sizeof table->constant);
	table->hash = ob_hash(OB_HASH_START, &table->channels, sizeof table->channels);
	if (!heading && !take_row(r, spec, table, error))
		return false;
	while ((more = next_line(r, error)) > 0)
		if (!split(r, error) || !take_row(r, spec, table, error))
			return false;
	if (more < 0)
		return false;
	if (table->rows < 2)
		return obx_error_set(error,
			"%s, line %llu: the file ends with %llu sample%s; at least 2 are needed",
			r->path, (unsigned long long)r->number, (unsigned long long)table->rows,
			table->rows == 1 ? "" : "s");
	return true;
}

static void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

bool obx_table_read(const char *path, const struct obx_table_spec *spec,
	struct obx_table *ret_table, struct obx_error *error)
{
	OB_CLEANUP(ob_freep) struct reader *r = calloc(1, sizeof *r);
	OB_CLEANUP(close_file) FILE *file = NULL;
	struct obx_table *table = ret_table;
	struct stat st;
	bool good;

	memset(table, 0, sizeof *table);
	if (!r)
		return obx_error_set(error, "%s: out of memory", path);
	if (strcmp(path, "-") == 0)
		file = fdopen(dup(0), "r");
	else
		file = fopen(path, "re");
	if (!file || fstat(fileno(file), &st) != 0)
		return obx_error_set(error, "%s cannot be opened: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return obx_error_set(error,
			"%s is a folder; name a file, or use 'outboard rqa sweep' for all files of "
			"a folder",
			path);
	r->path = path;
	r->file = file;
	good = read_rows(r, spec, table, error);
	free(r->line);
	if (!good)
		obx_table_fini(table);
	return good;
}

void obx_table_fini(struct obx_table *table)
{
	free(table->data);
	table->data = NULL;
	table->rows = 0;
}
