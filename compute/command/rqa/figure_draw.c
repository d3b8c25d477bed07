/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* liboutboard-plots.so: lays out and draws a figure with cairo and pango. */
#include "compute/command/rqa/figure.h"

#include <math.h>
#include <pango/pangocairo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairo-svg.h>

#define FONT        "DejaVu Sans, sans-serif"
#define FONT_DOTS   13.0
/* size of the matrix in pixels from which fonts grow; below it they have FONT_DOTS */
#define SCALED_FROM 800.0
#define SCALE_MIN   0.85
#define SCALE_MAX   4.0
#define SIDE_MAX    32767.0 /* limit of cairo */
#define RUNS_MAX    200000u /* most runs in an SVG; if there are more, it contains an image */
#define WHITE       0xffffffu
#define INK         0.10

/* Distances in pixels, multiplied by the figure's scale. */
#define PAD         10.0
#define GAP         5.0
#define TICK        6.0
#define STRIP       18.0
#define STRIP_APART 20.0

obx_figure_render_fn obx_figure_render;

struct page {
	const struct obx_figure *figure;
	enum obx_figure_format format;
	cairo_t *cr;
	PangoFontDescription *font;
	double scale; /* scale of everything except the matrix */
	double left, top, right, bottom, width, height;
};

struct size {
	double width, height;
};

/* ---- text ---- */

/* wrap: width in pixels, or 0. Invalid UTF-8 is replaced. */
static PangoLayout *text_layout(const struct page *p, const char *text, double wrap)
{
	PangoLayout *layout = pango_cairo_create_layout(p->cr);
	char *valid = g_utf8_make_valid(text, -1);

	pango_layout_set_font_description(layout, p->font);
	pango_layout_set_text(layout, valid, -1);
	g_free(valid);
	if (wrap > 0) {
		pango_layout_set_width(layout, (int)(wrap * PANGO_SCALE));
		pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
	}
	return layout;
}

static struct size layout_size(PangoLayout *layout)
{
	int width, height;

	pango_layout_get_size(layout, &width, &height);
	return (struct size){ (double)width / PANGO_SCALE, (double)height / PANGO_SCALE };
}

static struct size text_size(const struct page *p, const char *text, double wrap)
{
	PangoLayout *layout = text_layout(p, text, wrap);
	struct size size = layout_size(layout);

	g_object_unref(layout);
	return *text ? size : (struct size){ 0 };
}

/*
 * ax, ay: the point of the text that lies at (x, y); 0: its left or upper end, 1: the opposite end.
 */
static void text_put(const struct page *p, const char *text, double x, double y, double ax,
	double ay, double wrap)
{
	PangoLayout *layout = text_layout(p, text, wrap);
	struct size size = layout_size(layout);

	cairo_move_to(p->cr, x - ax * size.width, y - ay * size.height);
	pango_cairo_show_layout(p->cr, layout);
	g_object_unref(layout);
}

/* Text from bottom to top; x is its left edge on the page, y its middle. */
static void text_put_up(const struct page *p, const char *text, double x, double y)
{
	cairo_save(p->cr);
	cairo_translate(p->cr, x, y);
	cairo_rotate(p->cr, -G_PI / 2);
	text_put(p, text, 0, 0, 0.5, 0, 0);
	cairo_restore(p->cr);
}

static struct size ticks_size(const struct page *p, const struct obx_axis *axis)
{
	struct size most = { 0 };

	for (unsigned i = 0; i < axis->count; i++) {
		struct size one = text_size(p, axis->ticks[i].text, 0);

		most.width = fmax(most.width, one.width);
		most.height = fmax(most.height, one.height);
	}
	return most;
}

/*
 * The interval between ticks with numbers at which no numbers touch; each number takes `room` of
 * `length`.
 */
static unsigned ticks_every(const struct obx_axis *axis, double length, double room)
{
	unsigned every = 1;

	while (every < axis->count && (axis->ticks[every].at - axis->ticks[0].at) * length < room)
		every++;
	return every;
}

/* ---- layout ---- */

static void measure(struct page *p)
{
	const struct obx_figure *f = p->figure;
	struct size x = ticks_size(p, &f->x), y = ticks_size(p, &f->y),
		    s = ticks_size(p, &f->scale);
	double k = p->scale, wrap;

	p->left = k * (PAD + GAP + TICK + GAP) + text_size(p, f->y.label, 0).height + y.width;
	p->right = k * PAD + x.width / 2;
	if (f->scale.count)
		p->right = k * (STRIP_APART + STRIP + TICK + GAP + GAP + PAD) + s.width +
			text_size(p, f->scale.label, 0).height;
	p->width = ceil(p->left) + f->width + ceil(p->right);
	p->left = ceil(p->left);
	wrap = p->width - 2 * k * PAD;
	p->top = ceil(k * (PAD + 2 * GAP) + text_size(p, f->title, wrap).height +
		text_size(p, f->subtitle, wrap).height);
	p->bottom =
		ceil(k * (TICK + GAP + GAP + PAD) + x.height + text_size(p, f->x.label, 0).height);
	p->height = p->top + f->height + p->bottom;
}

/* ---- drawing ---- */

static void ink(const struct page *p)
{
	cairo_set_source_rgb(p->cr, INK, INK, INK);
}

static void colour_set(cairo_t *cr, uint32_t colour)
{
	cairo_set_source_rgb(cr, (colour >> 16 & 255) / 255.0, (colour >> 8 & 255) / 255.0,
		(colour & 255) / 255.0);
}

static void frame(const struct page *p, double x, double y, double width, double height)
{
	ink(p);
	cairo_rectangle(p->cr, x - 0.5, y - 0.5, width + 1, height + 1);
	cairo_stroke(p->cr);
}

static bool matrix_image(const struct page *p)
{
	const struct obx_figure *f = p->figure;
	cairo_surface_t *image =
		cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)f->columns, (int)f->rows);
	unsigned char *data = cairo_image_surface_get_data(image);
	int stride = cairo_image_surface_get_stride(image);
	bool good = cairo_surface_status(image) == CAIRO_STATUS_SUCCESS && data;

	if (good) {
		cairo_surface_flush(image);
		for (uint32_t j = 0; j < f->rows; j++)
			memcpy(data + (size_t)j * (size_t)stride,
				f->colours + (size_t)j * f->columns, f->columns * sizeof(uint32_t));
		cairo_surface_mark_dirty(image);
		cairo_save(p->cr);
		cairo_rectangle(p->cr, p->left, p->top, f->width, f->height);
		cairo_clip(p->cr);
		cairo_translate(p->cr, p->left, p->top);
		cairo_scale(p->cr, (double)f->width / f->columns, (double)f->height / f->rows);
		cairo_set_source_surface(p->cr, image, 0, 0);
		cairo_pattern_set_filter(cairo_get_source(p->cr), CAIRO_FILTER_NEAREST);
		cairo_paint(p->cr);
		cairo_restore(p->cr);
	}
	cairo_surface_destroy(image);
	return good;
}

/* The end of the run of equal cells that begins at `from` in a row. */
static uint32_t run_end(const uint32_t *row, uint32_t columns, uint32_t from)
{
	uint32_t to = from + 1;

	while (to < columns && row[to] == row[from])
		to++;
	return to;
}

/* Number of runs of equal cells that are not white. */
static uint64_t runs_count(const struct obx_figure *f)
{
	uint64_t n = 0;

	for (uint32_t j = 0; j < f->rows; j++)
		for (uint32_t i = 0; i < f->columns;) {
			const uint32_t *row = f->colours + (size_t)j * f->columns;

			n += row[i] != WHITE;
			i = run_end(row, f->columns, i);
		}
	return n;
}

/* Draws the cells as rectangles, which are sharp at any size; viewers would smooth an image. */
static void matrix_runs(const struct page *p)
{
	const struct obx_figure *f = p->figure;
	double w = (double)f->width / f->columns, h = (double)f->height / f->rows;

	cairo_save(p->cr);
	cairo_set_antialias(p->cr, CAIRO_ANTIALIAS_NONE);
	for (uint32_t j = 0; j < f->rows; j++)
		for (uint32_t i = 0, end; i < f->columns; i = end) {
			const uint32_t *row = f->colours + (size_t)j * f->columns;

			end = run_end(row, f->columns, i);
			if (row[i] == WHITE)
				continue;
			colour_set(p->cr, row[i]);
			cairo_rectangle(p->cr, p->left + i * w, p->top + j * h, (end - i) * w, h);
			cairo_fill(p->cr);
		}
	cairo_restore(p->cr);
}

static void line(const struct page *p, double x, double y, double dx, double dy)
{
	cairo_move_to(p->cr, floor(x) + 0.5, floor(y) + 0.5);
	cairo_rel_line_to(p->cr, dx, dy);
	cairo_stroke(p->cr);
}

static void draw_axes(const struct page *p)
{
	const struct obx_figure *f = p->figure;
	double k = p->scale, below = p->top + f->height;
	struct size x = ticks_size(p, &f->x), y = ticks_size(p, &f->y);
	unsigned every = ticks_every(&f->x, f->width, x.width + k * 2 * GAP);

	ink(p);
	for (unsigned i = 0; i < f->x.count; i += every) {
		double at = p->left + f->x.ticks[i].at * f->width;

		line(p, at, below, 0, k * TICK);
		text_put(p, f->x.ticks[i].text, at, below + k * (TICK + GAP), 0.5, 0, 0);
	}
	every = ticks_every(&f->y, f->height, y.height * 1.2);
	for (unsigned i = 0; i < f->y.count; i += every) {
		double at = below - f->y.ticks[i].at * f->height;

		line(p, p->left - k * TICK, at, k * TICK, 0);
		text_put(p, f->y.ticks[i].text, p->left - k * (TICK + GAP), at, 1, 0.5, 0);
	}
	text_put(p, f->x.label, p->left + f->width / 2.0, p->height - k * PAD, 0.5, 1, 0);
	text_put_up(p, f->y.label, k * PAD, p->top + f->height / 2.0);
	frame(p, p->left, p->top, f->width, f->height);
}

static void draw_scale(const struct page *p)
{
	const struct obx_figure *f = p->figure;
	double k = p->scale, x = p->left + f->width + k * STRIP_APART, width = k * STRIP,
	       part = (double)f->height / OBX_FIGURE_SCALE;
	unsigned every = ticks_every(&f->scale, f->height, ticks_size(p, &f->scale).height * 1.2);

	cairo_save(p->cr);
	cairo_set_antialias(p->cr, CAIRO_ANTIALIAS_NONE);
	for (unsigned i = 0; i < OBX_FIGURE_SCALE; i++) {
		colour_set(p->cr, f->scale_colours[i]);
		cairo_rectangle(p->cr, x, p->top + f->height - (i + 1) * part, width, part + 0.5);
		cairo_fill(p->cr);
	}
	cairo_restore(p->cr);
	frame(p, x, p->top, width, f->height);
	for (unsigned i = 0; i < f->scale.count; i += every) {
		double at = p->top + f->height - f->scale.ticks[i].at * f->height;

		line(p, x + width, at, k * TICK, 0);
		text_put(p, f->scale.ticks[i].text, x + width + k * (TICK + GAP), at, 0, 0.5, 0);
	}
	text_put_up(p, f->scale.label, p->width - k * PAD - text_size(p, f->scale.label, 0).height,
		p->top + f->height / 2.0);
}

static bool draw(const struct page *p)
{
	const struct obx_figure *f = p->figure;
	double k = p->scale, wrap = p->width - 2 * k * PAD;
	bool good = true;

	cairo_set_source_rgb(p->cr, 1, 1, 1);
	cairo_paint(p->cr);
	cairo_set_line_width(p->cr, 1);
	if (p->format == OBX_FIGURE_SVG && runs_count(f) <= RUNS_MAX)
		matrix_runs(p);
	else
		good = matrix_image(p);
	ink(p);
	text_put(p, f->title, k * PAD, k * PAD, 0, 0, wrap);
	text_put(p, f->subtitle, k * PAD, k * (PAD + GAP) + text_size(p, f->title, wrap).height, 0,
		0, wrap);
	draw_axes(p);
	if (f->scale.count)
		draw_scale(p);
	return good;
}

/* ---- encoding ---- */

static cairo_status_t take(void *closure, const unsigned char *data, unsigned length)
{
	g_byte_array_append(closure, data, length);
	return CAIRO_STATUS_SUCCESS;
}

static void describe_axis(GString *text, const char *name, const struct obx_axis *axis)
{
	char *label = g_markup_escape_text(axis->label, -1);

	g_string_append_printf(text, "%s: %s;", name, label);
	for (unsigned i = 0; i < axis->count; i++)
		g_string_append_printf(text, " %s", axis->ticks[i].text);
	g_string_append_c(text, '\n');
	g_free(label);
}

/* Text in an SVG is drawn as outlines. <title> and <desc> contain it as text for screen readers. */
static void describe(GByteArray *bytes, const struct obx_figure *f)
{
	const char *start = g_strstr_len((const char *)bytes->data, bytes->len, "<svg");
	const char *end = start
		? memchr(start, '>', bytes->len - (size_t)(start - (const char *)bytes->data))
		: NULL;
	char *valid[2] = { g_utf8_make_valid(f->title, -1), g_utf8_make_valid(f->subtitle, -1) };
	char *title =
		g_markup_printf_escaped("\n<title>%s</title>\n<desc>%s\n", valid[0], valid[1]);
	GString *text = g_string_new(title);
	guint at = end ? (guint)(end + 1 - (const char *)bytes->data) : 0;

	describe_axis(text, "x", &f->x);
	describe_axis(text, "y", &f->y);
	if (f->scale.count)
		describe_axis(text, "colours", &f->scale);
	g_string_append(text, "</desc>");
	if (at) {
		guint tail = bytes->len - at;

		g_byte_array_set_size(bytes, bytes->len + (guint)text->len);
		memmove(bytes->data + at + text->len, bytes->data + at, tail);
		memcpy(bytes->data + at, text->str, text->len);
	}
	g_string_free(text, TRUE);
	g_free(title);
	g_free(valid[0]);
	g_free(valid[1]);
}

static cairo_status_t render_to(struct page *p, GByteArray *bytes)
{
	bool svg = p->format == OBX_FIGURE_SVG;
	cairo_surface_t *surface = svg
		? cairo_svg_surface_create_for_stream(take, bytes, p->width, p->height)
		: cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)p->width, (int)p->height);
	cairo_status_t status;

	if (svg)
		cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
	cairo_destroy(p->cr);
	p->cr = cairo_create(surface);
	if (!draw(p))
		status = CAIRO_STATUS_NO_MEMORY;
	else
		status = cairo_status(p->cr);
	if (!status && !svg)
		status = cairo_surface_write_to_png_stream(surface, take, bytes);
	cairo_surface_finish(surface);
	status = status ? status : cairo_surface_status(surface);
	cairo_surface_destroy(surface);
	return status;
}

static bool refuse(char ret_error[OBX_FIGURE_ERROR], const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static bool refuse(char ret_error[OBX_FIGURE_ERROR], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ret_error, OBX_FIGURE_ERROR, format, args);
	va_end(args);
	return false;
}

static bool render(
	struct page *p, uint8_t **ret_bytes, size_t *ret_size, char ret_error[OBX_FIGURE_ERROR])
{
	GByteArray *bytes;
	cairo_status_t status;

	measure(p);
	if (p->width > SIDE_MAX || p->height > SIDE_MAX)
		return refuse(ret_error,
			"a picture of %.0f by %.0f dots cannot be made, at most %.0f by %.0f; take "
			"a smaller size",
			p->width, p->height, SIDE_MAX, SIDE_MAX);
	bytes = g_byte_array_new();
	status = render_to(p, bytes);
	if (!status && p->format == OBX_FIGURE_SVG)
		describe(bytes, p->figure);
	*ret_size = bytes->len;
	*ret_bytes = status ? NULL : malloc(bytes->len);
	if (*ret_bytes)
		memcpy(*ret_bytes, bytes->data, bytes->len);
	g_byte_array_free(bytes, TRUE);
	if (status)
		return refuse(ret_error, "the picture cannot be made: %s",
			cairo_status_to_string(status));
	return *ret_bytes ? true : refuse(ret_error, "out of memory for the picture");
}

__attribute__((visibility("default"))) bool obx_figure_render(const struct obx_figure *figure,
	enum obx_figure_format format, uint8_t **ret_bytes, size_t *ret_size,
	char ret_error[OBX_FIGURE_ERROR])
{
	cairo_surface_t *nothing = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1, 1);
	double longer = figure->width > figure->height ? figure->width : figure->height;
	struct page p = { .figure = figure,
		.format = format,
		.cr = cairo_create(nothing), /* used for measuring only */
		.font = pango_font_description_from_string(FONT),
		.scale = fmin(fmax(longer / SCALED_FROM, SCALE_MIN), SCALE_MAX) };
	bool good;

	pango_font_description_set_absolute_size(p.font, FONT_DOTS * p.scale * PANGO_SCALE);
	good = render(&p, ret_bytes, ret_size, ret_error);
	cairo_destroy(p.cr);
	pango_font_description_free(p.font);
	cairo_surface_destroy(nothing);
	return good;
}
