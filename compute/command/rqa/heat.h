/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A heat map: the mean of a measure for each pair of values of two parameters. Points are added one
 * by one, in any order; cells without points are grey. The map records which files, modes and
 * parameter values its means cover. Owned by one thread at a time.
 */
#ifndef OBX_RQA_HEAT_H
#define OBX_RQA_HEAT_H

#include <stddef.h>
#include <stdint.h>

#include "compute/command/rqa/figure.h"
#include "compute/command/rqa/over.h"

#define OBX_HEAT_SIDE_MAX 1000 /* most values of one parameter */

struct obx_heat {
	char measure[64], x_name[64], y_name[64];
	/* conditions of --where on columns other than the dimensions of the sweep */
	char others[200];
	struct obx_over over;
	double *xs, *ys; /* values found, sorted */
	uint32_t x_count, y_count;
	double *sums;
	/*
	 * OBX_HEAT_SIDE_MAX * OBX_HEAT_SIDE_MAX: indexed by the values in the order in which they
	 * were found
	 */
	uint32_t *counts;
	uint16_t *x_order, *y_order;
};

bool obx_heat_init(struct obx_heat *heat, struct obx_error *error);
void obx_heat_fini(struct obx_heat *heat);
/*
 * A row of a sweep. If the value is NaN it is not counted, but its cell exists. key(arg, d) is the
 * row's value in dimension d, or a hash of it. name(arg, d, text) writes that value as text; it is
 * called once for each dimension.
 */
struct obx_heat_row {
	double x, y, value;
	const void *arg;
	uint64_t (*key)(const void *arg, enum obx_over_dimension d);
	void (*name)(const void *arg, enum obx_over_dimension d, char ret_text[OBX_OVER_NAME_MAX]);
	/* bit mask of the dimensions that the row has: 1 << OBX_OVER_FILE | ... */
	unsigned dimensions;
};
bool obx_heat_add(struct obx_heat *heat, const struct obx_heat_row *row, struct obx_error *error);
/*
 * Reads results.csv of a sweep: measure over x and y, for rows that match "name=value name=value".
 * Rows that are not done are left out.
 */
bool obx_heat_read(struct obx_heat *heat, const char *path, const char *measure, const char *x,
	const char *y, const char *where, struct obx_error *error);
/*
 * The heat map as a figure. Its title is "mean DET over 5 files, 2 modes", or "DET" if each cell is
 * one row; its subtitle has what is the same in all rows, "tau=1 lmin=2". width is that of the map
 * alone, in pixels. The figure points to *ret_colours, which the caller frees.
 */
bool obx_heat_figure(const struct obx_heat *heat, uint32_t width, struct obx_figure *ret_figure,
	uint32_t **ret_colours, struct obx_error *error);

#endif
