/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A picture of a matrix with axes, ticks, a title and a colour scale, as PNG or SVG. This struct
 * describes the picture. liboutboard-plots.so, which is loaded for the first picture, lays it out
 * and draws it with cairo and pango, so that other commands do not load these libraries. The caller
 * owns what the pointers refer to; any thread.
 */
#ifndef OBX_RQA_FIGURE_H
#define OBX_RQA_FIGURE_H

#include <stddef.h>
#include <stdint.h>

#include "compute/command/rqa/error.h"
#include "compute/command/rqa/ticks.h"

#define OBX_FIGURE_SIDE_MAX 20000
#define OBX_FIGURE_SCALE    256 /* colours in the scale */
#define OBX_FIGURE_GREY     0xbfbfbfu
#define OBX_FIGURE_ERROR    256

enum obx_figure_format { OBX_FIGURE_PNG, OBX_FIGURE_SVG };

struct obx_axis {
	char label[160];
	struct obx_tick ticks[OBX_TICKS_MAX];
	unsigned count;
};

struct obx_figure {
	char title[560], subtitle[680]; /* UTF-8; either may be empty */
	struct obx_axis x, y;
	const uint32_t *colours; /* 0xrrggbb, columns x rows, from the top row */
	uint32_t columns, rows;
	uint32_t width, height; /* of the matrix, in pixels; axes and titles are drawn around it */
	/* a strip beside the matrix, low values at the bottom; no ticks: none */
	struct obx_axis scale;
	uint32_t scale_colours[OBX_FIGURE_SCALE];
};

/*
 * Maps 0..1 to dark blue, teal, green, yellow; brightness increases monotonically, so the scale is
 * also readable in grey.
 */
uint32_t obx_figure_colour(double share);
/* Encodes to memory, which the caller frees. */
bool obx_figure_encode(const struct obx_figure *figure, enum obx_figure_format format,
	uint8_t **ret_bytes, size_t *ret_size, struct obx_error *error);
/*
 * Writes SVG if the path ends in .svg, else PNG. The file is replaced atomically; "-" is standard
 * output, as PNG.
 */
bool obx_figure_write(const struct obx_figure *figure, const char *path, struct obx_error *error);

/*
 * The only function of liboutboard-plots.so. The bytes are allocated with malloc. False: ret_error
 * is a sentence.
 */
typedef bool obx_figure_render_fn(const struct obx_figure *figure, enum obx_figure_format format,
	uint8_t **ret_bytes, size_t *ret_size, char ret_error[OBX_FIGURE_ERROR]);
#define OBX_FIGURE_LIBRARY "liboutboard-plots.so"
#define OBX_FIGURE_RENDER  "obx_figure_render"

#endif
