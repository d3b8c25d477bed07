/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A heat map: the mean of a measure for each pair of values of two parameters. Points are added one
 * by one, in any order; cells without one stay grey. Owned by one thread at a time.
 */
#ifndef OBX_RQA_HEAT_H
#define OBX_RQA_HEAT_H

#include <stddef.h>
#include <stdint.h>

#include "compute/command/rqa/canvas.h"

#define OBX_HEAT_SIDE_MAX 1000 /* values of one parameter */

struct obx_heat {
	char title[200], x_name[64], y_name[64];
	double *xs, *ys; /* values met, sorted */
	uint32_t x_count, y_count;
	double *sums;
	/* OBX_HEAT_SIDE_MAX * OBX_HEAT_SIDE_MAX: by index of the value in the order met */
	uint32_t *counts;
	uint16_t *x_order, *y_order;
};

bool obx_heat_init(struct obx_heat *heat, struct obx_error *error);
void obx_heat_fini(struct obx_heat *heat);
/* NaN values are left out, their place stays. */
bool obx_heat_add(struct obx_heat *heat, double x, double y, double value, struct obx_error *error);
/*
 * From a sweep's results.csv: measure over x and y, of rows that fit "name=value name=value". Rows
 * that are not done are left out.
 */
bool obx_heat_read(struct obx_heat *heat, const char *path, const char *measure, const char *x,
	const char *y, const char *where, struct obx_error *error);
/* width is that of the map alone, in dots. */
bool obx_heat_draw(const struct obx_heat *heat, int width, struct obx_canvas *ret_canvas,
	struct obx_error *error);

#endif
