/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/heat.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "compute/command/rqa/format.h"

#define COLUMNS_MAX 128
#define WHERE_MAX   16
#define X_TICKS     12
#define Y_TICKS     12
#define SCALE_TICKS 5

bool obx_heat_init(struct obx_heat *h, struct obx_error *error)
{
	const size_t cells = (size_t)OBX_HEAT_SIDE_MAX * OBX_HEAT_SIDE_MAX;

	memset(h, 0, sizeof *h);
	h->xs = calloc(OBX_HEAT_SIDE_MAX, sizeof *h->xs);
	h->ys = calloc(OBX_HEAT_SIDE_MAX, sizeof *h->ys);
	h->x_order = calloc(OBX_HEAT_SIDE_MAX, sizeof *h->x_order);
	h->y_order = calloc(OBX_HEAT_SIDE_MAX, sizeof *h->y_order);
	h->sums = calloc(cells, sizeof *h->sums);
	h->counts = calloc(cells, sizeof *h->counts);
	if (h->xs && h->ys && h->x_order && h->y_order && h->sums && h->counts)
		return true;
	obx_heat_fini(h);
	return obx_error_set(error, "out of memory for the heat map");
}

void obx_heat_fini(struct obx_heat *h)
{
	free(h->xs);
	free(h->ys);
	free(h->x_order);
	free(h->y_order);
	free(h->sums);
	free(h->counts);
	obx_over_fini(&h->over);
	memset(h, 0, sizeof *h);
}

/* The index of the value's row or column of sums; a new value gets the next index. -1: too many. */
static int place(double *values, uint16_t *order, uint32_t *count, double value)
{
	uint32_t low = 0, high = *count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (values[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < *count && values[low] == value)
		return order[low];
	if (*count == OBX_HEAT_SIDE_MAX)
		return -1;
	memmove(values + low + 1, values + low, (*count - low) * sizeof *values);
	memmove(order + low + 1, order + low, (*count - low) * sizeof *order);
	values[low] = value;
	order[low] = (uint16_t)*count;
	return (int)(*count)++;
}

static bool add_point(struct obx_heat *h, double x, double y, double value, struct obx_error *error)
{
	int i = place(h->xs, h->x_order, &h->x_count, x),
	    k = place(h->ys, h->y_order, &h->y_count, y);
	size_t cell;

	if (i < 0 || k < 0)
		return obx_error_set(error, "more than %d values of %s, the maximum of a heat map",
			OBX_HEAT_SIDE_MAX, i < 0 ? h->x_name : h->y_name);
	if (isnan(value))
		return true;
	cell = (size_t)k * OBX_HEAT_SIDE_MAX + (size_t)i;
	h->sums[cell] += value;
	h->counts[cell]++;
	return true;
}

bool obx_heat_add(struct obx_heat *h, const struct obx_heat_row *row, struct obx_error *error)
{
	for (unsigned d = 0; d < OBX_OVER_DIMENSIONS && !isnan(row->value); d++) {
		if (!(row->dimensions >> d & 1))
			continue;
		if (!h->over.of[d].count)
			row->name(row->arg, d, h->over.of[d].first);
		if (!obx_over_add(&h->over, d, row->key(row->arg, d)))
			return obx_error_set(error, "out of memory for the heat map");
	}
	return add_point(h, row->x, row->y, row->value, error);
}

/* Makes the titles and the label of the colour scale. */
static void titles(const struct obx_heat *h, struct obx_figure *f)
{
	char over[OBX_OVER_TEXT_MAX], fixed[OBX_OVER_TEXT_MAX];

	obx_over_text(&h->over, h->x_name, h->y_name, over);
	snprintf(f->title, sizeof f->title, *over ? "mean %s over %s" : "%s%s", h->measure, over);
	obx_over_fixed(&h->over, h->x_name, h->y_name, fixed);
	snprintf(f->subtitle, sizeof f->subtitle, "%s%s%s", fixed, *fixed && *h->others ? " " : "",
		h->others);
	snprintf(f->scale.label, sizeof f->scale.label, *over ? "mean %s" : "%s", h->measure);
}

static double value_at(const struct obx_heat *h, uint32_t x, uint32_t y)
{
	size_t cell = (size_t)h->y_order[y] * OBX_HEAT_SIDE_MAX + h->x_order[x];

	return h->counts[cell] ? h->sums[cell] / h->counts[cell] : NAN;
}

/* ---- reading ---- */

/* The columns of results.csv that are used; x, y and the measure come first. */
enum { STATUS = 3, DIMENSION, COLUMNS_USED = DIMENSION + OBX_OVER_DIMENSIONS };

struct filter {
	char *name, *value;
	int column;
};

/* A line of the file, as a row of the sweep. */
struct line {
	char **cells;
	const int *columns;
};

static uint64_t line_key(const void *arg, enum obx_over_dimension d)
{
	const struct line *line = arg;
	const char *text = line->cells[line->columns[DIMENSION + d]];

	return ob_hash(OB_HASH_START, text, strlen(text));
}

static void line_name(const void *arg, enum obx_over_dimension d, char ret_text[OBX_OVER_NAME_MAX])
{
	const struct line *line = arg;

	snprintf(ret_text, OBX_OVER_NAME_MAX, "%s", line->cells[line->columns[DIMENSION + d]]);
}

/* Splits a line of CSV into cells, in place. */
static int split_line(char *line, char **ret_cells)
{
	int count = 0;
	char *p = line;

	while (count < COLUMNS_MAX) {
		char *out = p;

		ret_cells[count++] = p;
		if (*p == '"') {
			for (p++; *p && !(*p == '"' && p[1] != '"'); p++) {
				p += *p == '"';
				*out++ = *p;
			}
			p += *p == '"';
		} else {
			while (*p && *p != ',' && *p != '\n' && *p != '\r')
				*out++ = *p++;
		}
		if (*p != ',') {
			*out = 0;
			break;
		}
		p++;
		*out = 0;
	}
	return count;
}

static int find_column(char **cells, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcasecmp(cells[i], name) == 0)
			return i;
	return -1;
}

static bool same(const char *cell, const char *wanted)
{
	char *a, *b;
	double x = strtod(cell, &a), y = strtod(wanted, &b);

	return strcmp(cell, wanted) == 0 || (*cell && *wanted && !*a && !*b && x == y);
}

static bool parse_where(
	char *where, struct filter *filters, int *ret_count, struct obx_error *error)
{
	char *rest = where, *word;

	*ret_count = 0;
	while ((word = strtok_r(rest, " ", &rest))) {
		char *equals = strchr(word, '=');

		if (!equals || *ret_count == WHERE_MAX)
			return obx_error_set(error,
				"--where takes up to %d of NAME=VALUE, for example 'mode=2D-xy "
				"tau=1', not '%.60s'",
				WHERE_MAX, word);
		*equals = 0;
		filters[(*ret_count)++] = (struct filter){ .name = word, .value = equals + 1 };
	}
	return true;
}

static bool find_columns(const char *path, char **cells, int count, const char *const names[3],
	int columns[COLUMNS_USED], struct filter *filters, int filter_count,
	struct obx_error *error)
{
	for (int i = 0; i < 3; i++)
		if ((columns[i] = find_column(cells, count,
			     strcasecmp(names[i], "ENT") == 0 ? "ENTR" : names[i])) < 0)
			return obx_error_set(error,
				"%s, line 1: there is no column '%.60s'; a heat map is made from "
				"the results.csv of a sweep",
				path, names[i]);
	columns[STATUS] = find_column(cells, count, "status");
	for (int d = 0; d < OBX_OVER_DIMENSIONS; d++)
		columns[DIMENSION + d] = find_column(cells, count, obx_over_name(d));
	for (int i = 0; i < filter_count; i++)
		if ((filters[i].column = find_column(cells, count, filters[i].name)) < 0)
			return obx_error_set(error,
				"%s, line 1: there is no column '%.60s' for --where", path,
				filters[i].name);
	return true;
}

static void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* Collects the conditions on columns that are not dimensions of the sweep. */
static void other_conditions(struct obx_heat *h, const struct filter *filters, int count)
{
	for (int i = 0; i < count; i++) {
		size_t used = strlen(h->others);
		bool shown = false;

		for (int d = 0; d < OBX_OVER_DIMENSIONS; d++)
			shown |= strcasecmp(filters[i].name, obx_over_name(d)) == 0;
		if (!shown)
			snprintf(h->others + used, sizeof h->others - used, "%s%s=%s",
				used ? " " : "", filters[i].name, filters[i].value);
	}
}

static bool add_line(struct obx_heat *h, const double value[3], const struct line *line, int count,
	struct obx_error *error)
{
	struct obx_heat_row row = { .x = value[0],
		.y = value[1],
		.value = value[2],
		.arg = line,
		.key = line_key,
		.name = line_name };

	for (unsigned d = 0; d < OBX_OVER_DIMENSIONS; d++)
		if (line->columns[DIMENSION + d] >= 0 && line->columns[DIMENSION + d] < count)
			row.dimensions |= 1u << d;
	return obx_heat_add(h, &row, error);
}

bool obx_heat_read(struct obx_heat *h, const char *path, const char *measure, const char *x,
	const char *y, const char *where, struct obx_error *error)
{
	OB_CLEANUP(close_file) FILE *file = fopen(path, "re");
	OB_CLEANUP(ob_freep) char *conditions = strdup(where ? where : "");
	OB_CLEANUP(ob_freep) char *line = NULL;
	const char *const names[3] = { x, y, measure };
	struct filter filters[WHERE_MAX];
	char *cells[COLUMNS_MAX];
	int columns[COLUMNS_USED], filter_count;
	uint64_t number = 0, used = 0;
	size_t size = 0;

	if (!file || !conditions)
		return obx_error_set(error, "%s cannot be opened: %s", path, strerror(errno));
	snprintf(h->x_name, sizeof h->x_name, "%s", x);
	snprintf(h->y_name, sizeof h->y_name, "%s", y);
	snprintf(h->measure, sizeof h->measure, "%s", measure);
	if (!parse_where(conditions, filters, &filter_count, error))
		return false;
	other_conditions(h, filters, filter_count);
	while (getline(&line, &size, file) >= 0) {
		int count = split_line(line, cells);
		double value[3];
		bool fits = true;

		if (!number++) {
			if (!find_columns(path, cells, count, names, columns, filters, filter_count,
				    error))
				return false;
			continue;
		}
		for (int i = 0; i < filter_count; i++)
			fits &= filters[i].column < count &&
				same(cells[filters[i].column], filters[i].value);
		if (!fits ||
			(columns[STATUS] >= 0 &&
				(columns[STATUS] >= count ||
					strcmp(cells[columns[STATUS]], "done") != 0)))
			continue;
		for (int i = 0; i < 3; i++) {
			char *end = NULL;

			value[i] = columns[i] < count && *cells[columns[i]]
				? strtod(cells[columns[i]], &end)
				: NAN;
			if ((end && *end) || (i < 2 && isnan(value[i])))
				return obx_error_set(error,
					"%s, line %llu, column %s: '%.40s' is not a number", path,
					(unsigned long long)number, names[i],
					columns[i] < count ? cells[columns[i]] : "");
		}
		if (!add_line(h, value, &(struct line){ cells, columns }, count, error))
			return false;
		used++;
	}
	return used ? true
		    : obx_error_set(error, "%s: no completed row matches%s%s", path,
			      where ? " --where " : "", where ? where : "");
}

/* ---- the figure ---- */

/* The colours of all cells, from the top row; low..high: the range of the values. */
static uint32_t *paint(const struct obx_heat *h, double low, double high)
{
	uint32_t *colours = malloc((size_t)h->x_count * h->y_count * sizeof *colours);

	for (uint32_t y = 0; colours && y < h->y_count; y++)
		for (uint32_t x = 0; x < h->x_count; x++) {
			double v = value_at(h, x, y);

			colours[(size_t)(h->y_count - 1 - y) * h->x_count + x] = isnan(v)
				? OBX_FIGURE_GREY
				: obx_figure_colour(high > low ? (v - low) / (high - low) : 0.5);
		}
	return colours;
}

bool obx_heat_figure(const struct obx_heat *h, uint32_t width, struct obx_figure *f,
	uint32_t **ret_colours, struct obx_error *error)
{
	uint32_t cell_width, cell_height;
	double low = INFINITY, high = -INFINITY;

	if (!h->x_count)
		return obx_error_set(error, "there is nothing to draw");
	cell_width = width / h->x_count > 1 ? width / h->x_count : 1;
	cell_height = width * 3 / 4 / h->y_count > 1 ? width * 3 / 4 / h->y_count : 1;
	for (uint32_t y = 0; y < h->y_count; y++)
		for (uint32_t x = 0; x < h->x_count; x++) {
			double v = value_at(h, x, y);

			low = v < low ? v : low;
			high = v > high ? v : high;
		}
	*ret_colours = paint(h, low, high);
	if (!*ret_colours)
		return obx_error_set(error, "out of memory for the heat map");
	*f = (struct obx_figure){ .colours = *ret_colours,
		.columns = h->x_count,
		.rows = h->y_count,
		.width = cell_width * h->x_count,
		.height = cell_height * h->y_count };
	titles(h, f);
	snprintf(f->x.label, sizeof f->x.label, "%s", h->x_name);
	snprintf(f->y.label, sizeof f->y.label, "%s", h->y_name);
	f->x.count = obx_ticks_cells(h->xs, h->x_count, X_TICKS, f->x.ticks);
	f->y.count = obx_ticks_cells(h->ys, h->y_count, Y_TICKS, f->y.ticks);
	if (high >= low)
		f->scale.count = obx_ticks_range(low, high, SCALE_TICKS, f->scale.ticks);
	for (unsigned i = 0; i < OBX_FIGURE_SCALE; i++)
		f->scale_colours[i] = obx_figure_colour(i / (OBX_FIGURE_SCALE - 1.0));
	return true;
}
