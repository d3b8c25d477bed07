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
#include "compute/command/rqa/format.h"
#include "compute/command/rqa/table.h"

#define COLUMNS_MAX 128
#define WHERE_MAX   16
#define LEFT        110
#define TOP         66
#define RIGHT       150
#define BOTTOM      80
#define SCALE_WIDTH 24

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

/* Where the value's row or column of sums lies; a new one gets the next. -1: too many. */
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
		return obx_error_set(error, "more than %d values of %s; a heat map is for fewer",
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

void obx_heat_title(const struct obx_heat *h, char ret_title[OBX_OVER_TEXT_MAX + 128],
	char ret_fixed[OBX_OVER_TEXT_MAX + 256])
{
	char text[OBX_OVER_TEXT_MAX];

	obx_over_text(&h->over, h->x_name, h->y_name, text);
	snprintf(ret_title, OBX_OVER_TEXT_MAX + 128, *text ? "mean %s over %s" : "%s%s", h->measure,
		text);
	obx_over_fixed(&h->over, h->x_name, h->y_name, text);
	snprintf(ret_fixed, OBX_OVER_TEXT_MAX + 256, "%s%s%s", text, *text && *h->others ? " " : "",
		h->others);
}

static double value_at(const struct obx_heat *h, uint32_t x, uint32_t y)
{
	size_t cell = (size_t)h->y_order[y] * OBX_HEAT_SIDE_MAX + h->x_order[x];

	return h->counts[cell] ? h->sums[cell] / h->counts[cell] : NAN;
}

/* ---- reading ---- */

/* The columns of results.csv that are used: x, y and the measure first. */
enum { STATUS = 3, DIMENSION, COLUMNS_USED = DIMENSION + OBX_OVER_DIMENSIONS };

struct filter {
	char *name, *value;
	int column;
};

/* A line of the file as a row of the sweep. */
struct line {
	char **cells;
	const int *columns;
};

static uint64_t line_key(const void *arg, enum obx_over_dimension d)
{
	const struct line *line = arg;
	const char *text = line->cells[line->columns[DIMENSION + d]];

	return obx_hash(OBX_HASH_START, text, strlen(text));
}

static void line_name(const void *arg, enum obx_over_dimension d, char ret_text[OBX_OVER_NAME_MAX])
{
	const struct line *line = arg;

	snprintf(ret_text, OBX_OVER_NAME_MAX, "%s", line->cells[line->columns[DIMENSION + d]]);
}

/* Cells of a line of CSV, changed in place. */
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

/* Of the conditions those that the dimensions of a sweep do not show. */
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
		    : obx_error_set(error, "%s: no row that is done fits%s%s", path,
			      where ? " --where " : "", where ? where : "");
}

/* ---- drawing ---- */

static void label(struct obx_canvas *c, int x, int y, double value, int align)
{
	char text[OBX_NUMBER_MAX];
	int width;

	obx_number_print(value, 5, text);
	width = obx_canvas_text_width(text, 2);
	obx_canvas_text(c, align == 0 ? x - width / 2 : align < 0 ? x - width : x, y, 2, text);
}

/* Every how many values a label fits. */
static uint32_t label_step(uint32_t count, int length, int room)
{
	uint32_t step = 1;

	while ((double)length / count * step < room)
		step++;
	return step;
}

static void draw_axes(const struct obx_heat *h, struct obx_canvas *c, int cell_width,
	int cell_height, int width, int height)
{
	uint32_t step = label_step(h->x_count, width, 76);
	int name_width = obx_canvas_text_width(h->x_name, 2),
	    name_height = obx_canvas_text_width(h->y_name, 2);

	obx_canvas_frame(c, LEFT, TOP, width, height);
	for (uint32_t i = 0; i < h->x_count; i += step) {
		int x = LEFT + (int)i * cell_width + cell_width / 2;

		obx_canvas_box(c, x, TOP + height + 1, 1, 6, OBX_BLACK);
		label(c, x, TOP + height + 12, h->xs[i], 0);
	}
	step = label_step(h->y_count, height, 24);
	for (uint32_t k = 0; k < h->y_count; k += step) {
		int y = TOP + height - (int)k * cell_height - cell_height / 2;

		obx_canvas_box(c, LEFT - 7, y, 6, 1, OBX_BLACK);
		label(c, LEFT - 12, y - 7, h->ys[k], -1);
	}
	obx_canvas_text(c, LEFT + (width - name_width) / 2, TOP + height + 42, 2, h->x_name);
	obx_canvas_text_up(c, 10, TOP + (height + name_height) / 2, 2, h->y_name);
}

static void draw_scale(struct obx_canvas *c, int x, int height, double low, double high)
{
	for (int y = 0; y < height; y++)
		obx_canvas_box(c, x, TOP + y, SCALE_WIDTH, 1,
			obx_canvas_scale(1 - (double)y / (height - 1)));
	obx_canvas_frame(c, x, TOP, SCALE_WIDTH, height);
	for (int i = 0; i <= 4; i++)
		label(c, x + SCALE_WIDTH + 8, TOP + (height - 1) * (4 - i) / 4 - 7,
			low + (high - low) * i / 4, 1);
}

/* What the colours are, and above it what the means were taken over. */
static void draw_titles(const struct obx_heat *h, struct obx_canvas *c, int width)
{
	char title[OBX_OVER_TEXT_MAX + 128], fixed[OBX_OVER_TEXT_MAX + 256], legend[80];
	int room = width + RIGHT;

	obx_heat_title(h, title, fixed);
	obx_canvas_text(c, LEFT, 12, obx_canvas_text_width(title, 2) > room ? 1 : 2, title);
	obx_canvas_text(c, LEFT, 36, obx_canvas_text_width(fixed, 2) > width ? 1 : 2, fixed);
	snprintf(legend, sizeof legend, "%s%s", strncmp(title, "mean ", 5) == 0 ? "mean " : "",
		h->measure);
	obx_canvas_text(c, LEFT + width + 24, TOP - 28, 2, legend);
}

bool obx_heat_draw(
	const struct obx_heat *h, int width, struct obx_canvas *ret, struct obx_error *error)
{
	int cell_width, cell_height, height;
	double low = INFINITY, high = -INFINITY;

	if (!h->x_count)
		return obx_error_set(error, "there is nothing to draw");
	cell_width = width / (int)h->x_count > 1 ? width / (int)h->x_count : 1;
	cell_height = width * 3 / 4 / (int)h->y_count > 1 ? width * 3 / 4 / (int)h->y_count : 1;
	width = cell_width * (int)h->x_count;
	height = cell_height * (int)h->y_count;
	for (uint32_t y = 0; y < h->y_count; y++)
		for (uint32_t x = 0; x < h->x_count; x++) {
			double v = value_at(h, x, y);

			low = v < low ? v : low;
			high = v > high ? v : high;
		}
	if (!obx_canvas_init(ret, LEFT + width + RIGHT, TOP + height + BOTTOM, error))
		return false;
	for (uint32_t y = 0; y < h->y_count; y++)
		for (uint32_t x = 0; x < h->x_count; x++) {
			double v = value_at(h, x, y);
			uint32_t colour = isnan(v)
				? OBX_GREY
				: obx_canvas_scale(high > low ? (v - low) / (high - low) : 0.5);

			obx_canvas_box(ret, LEFT + (int)x * cell_width,
				TOP + height - ((int)y + 1) * cell_height, cell_width, cell_height,
				colour);
		}
	draw_axes(h, ret, cell_width, cell_height, width, height);
	if (high >= low)
		draw_scale(ret, LEFT + width + 24, height, low, high);
	draw_titles(h, ret, width);
	return true;
}
