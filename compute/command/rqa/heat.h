/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A heat map: the mean of a measure for each pair of values of two parameters. Points are added one
 * by one, in any order; cells without one stay grey. The map knows what its means were taken over,
 * and says so. Owned by one thread at a time.
 */
#ifndef OBX_RQA_HEAT_H
#define OBX_RQA_HEAT_H

#include <stddef.h>
#include <stdint.h>

#include "compute/command/rqa/figure.h"
#include "compute/command/rqa/over.h"

#define OBX_HEAT_SIDE_MAX 1000 /* values of one parameter */

struct obx_heat {
	char measure[64], x_name[64], y_name[64];
	char others[200]; /* conditions of --where on other columns than those of the sweep */
	struct obx_over over;
	double *xs, *ys; /* values met, sorted */
	uint32_t x_count, y_count;
	double *sums;
	/* OBX_HEAT_SIDE_MAX * OBX_HEAT_SIDE_MAX: by index of the value in the order met */
	uint32_t *counts;
	uint16_t *x_order, *y_order;
};

bool obx_heat_init(struct obx_heat *heat, struct obx_error *error);
void obx_heat_fini(struct obx_heat *heat);
/*
 * A row of a sweep. A value of NaN is left out, its place stays. key(arg, d) is its value of each dimension, or a hash of it, and
 * name(arg, d, text) that value in words, which is asked for once for each dimension.
 */
struct obx_heat_row {
	double x, y, value;
	const void *arg;
	uint64_t (*key)(const void *arg, enum obx_over_dimension d);
	void (*name)(const void *arg, enum obx_over_dimension d, char ret_text[OBX_OVER_NAME_MAX]);
	unsigned dimensions; /* 1 << OBX_OVER_FILE | ...: those that the row has */
};
bool obx_heat_add(struct obx_heat *heat, const struct obx_heat_row *row, struct obx_error *error);
/*
 * From a sweep's results.csv: measure over x and y, of rows that fit "name=value name=value". Rows
 * that are not done are left out.
 */
bool obx_heat_read(struct obx_heat *heat, const char *path, const char *measure, const char *x,
	const char *y, const char *where, struct obx_error *error);
/*
 * The heat map as a figure: its title says "mean DET over 5 files, 2 modes", or "DET" where each
 * cell is one row, its second line what is the same in all rows, "tau=1 lmin=2". width is that of
 * the map alone, in dots. *ret_colours, which the figure points to, is to be freed.
 */
bool obx_heat_figure(const struct obx_heat *heat, uint32_t width, struct obx_figure *ret_figure,
	uint32_t **ret_colours, struct obx_error *error);

#endif
