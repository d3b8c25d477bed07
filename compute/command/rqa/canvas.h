/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A picture in memory that becomes a PNG: boxes, letters (5 by 7 dots, drawn for this program), a
 * colour scale. Colours are 0xrrggbb. What lies outside the picture is cut off. Owned by one thread
 * at a time.
 */
#ifndef OBX_RQA_CANVAS_H
#define OBX_RQA_CANVAS_H

#include <stddef.h>
#include <stdint.h>

#include "compute/command/rqa/error.h"

#define OBX_CANVAS_SIDE_MAX 20000
#define OBX_WHITE           0xffffffu
#define OBX_BLACK           0x1a1a1au
#define OBX_GREY            0xbfbfbfu

struct obx_canvas {
	int width, height;
	uint8_t *pixels; /* three bytes each, rows from the top */
};

bool obx_canvas_init(struct obx_canvas *canvas, int width, int height, struct obx_error *error);
void obx_canvas_fini(struct obx_canvas *canvas);
void obx_canvas_box(
	struct obx_canvas *canvas, int x, int y, int width, int height, uint32_t colour);
/* Grey values, a byte each, put at (x, y). */
void obx_canvas_grey(
	struct obx_canvas *canvas, int x, int y, int width, int height, const uint8_t *grey);
/* A frame one dot wide around the box, outside it. */
void obx_canvas_frame(struct obx_canvas *canvas, int x, int y, int width, int height);
/*
 * ASCII; other bytes are shown as a box. (x, y) is the upper left corner; a letter is 6 * scale
 * wide and 7 * scale high.
 */
void obx_canvas_text(struct obx_canvas *canvas, int x, int y, int scale, const char *text);
/*
 * The same from the bottom to the top. (x, y) is the lower left corner of the first letter's box on
 * its side.
 */
void obx_canvas_text_up(struct obx_canvas *canvas, int x, int y, int scale, const char *text);
int obx_canvas_text_width(const char *text, int scale);
/* 0..1 -> dark blue, teal, green, yellow; light grows steadily, so it also reads in grey. */
uint32_t obx_canvas_scale(double share);
/* Whole or not at all; "-" is standard output. */
bool obx_canvas_write(const struct obx_canvas *canvas, const char *path, struct obx_error *error);
/* Into memory, to be freed. */
bool obx_canvas_encode(const struct obx_canvas *canvas, uint8_t **ret_png, size_t *ret_size,
	struct obx_error *error);

#endif
