/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A picture of a matrix with axes, ticks, a title and a scale of colours, as PNG or SVG. What is
 * here says what the picture shows; liboutboard-plots.so, which is loaded for the first picture,
 * lays it out and draws it with cairo and pango, so that no other command loads them. The caller
 * owns what the pointers name; any thread.
 */
#ifndef OBX_RQA_FIGURE_H
#define OBX_RQA_FIGURE_H

#include <stddef.h>
#include <stdint.h>

#include "compute/command/rqa/error.h"
#include "compute/command/rqa/ticks.h"

#define OBX_FIGURE_SIDE_MAX 20000
#define OBX_FIGURE_SCALE    256 /* colours of the scale */
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
	const uint32_t *colours; /* 0xrrggbb, columns x rows, from the top */
	uint32_t columns, rows;
	uint32_t width, height; /* of the matrix, in dots; axes and titles lie around it */
	struct obx_axis scale;  /* a strip beside it, low at the bottom; no ticks: none */
	uint32_t scale_colours[OBX_FIGURE_SCALE];
};

/* 0..1 -> dark blue, teal, green, yellow; light grows steadily, so it also reads in grey. */
uint32_t obx_figure_colour(double share);
/* Into memory, to be freed. */
bool obx_figure_encode(const struct obx_figure *figure, enum obx_figure_format format,
	uint8_t **ret_bytes, size_t *ret_size, struct obx_error *error);
/* SVG if the path ends so, else PNG. Whole or not at all; "-" is standard output, a PNG. */
bool obx_figure_write(const struct obx_figure *figure, const char *path, struct obx_error *error);

/*
 * The one function of liboutboard-plots.so. Bytes are malloc'ed. False: ret_error is a sentence.
 */
typedef bool obx_figure_render_fn(const struct obx_figure *figure, enum obx_figure_format format,
	uint8_t **ret_bytes, size_t *ret_size, char ret_error[OBX_FIGURE_ERROR]);
#define OBX_FIGURE_LIBRARY "liboutboard-plots.so"
#define OBX_FIGURE_RENDER  "obx_figure_render"

#endif
