/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the page shows of a sweep's results while it runs and after: a page of the table, a heat
 * map. Reads the store; the caller holds job->use.
 */
#ifndef OBX_RQA_RESULTS_H
#define OBX_RQA_RESULTS_H

#include <stdio.h>

#include "compute/command/rqa/over.h"
#include "compute/command/rqa/sweep.h"

#define OBX_RESULTS_HEAT_MIN 100
#define OBX_RESULTS_HEAT_MAX 2000
#define OBX_RESULTS_PAGE_MAX 500

/* An index into a list of the sweep, or -1 for all of it. */
struct obx_results_filter {
	int64_t file, mode, m, tau, eps, lmin;
};

/*
 * JSON: {"total":N,"offset":N,"measures":[...],"rows":[{"file":...,"status":...,"values":[...]}]}
 * in the order of results.csv.
 */
bool obx_results_print(const struct obx_sweep *sweep, const struct obx_results_filter *filter,
	uint64_t offset, uint32_t limit, FILE *out, struct obx_error *error);
/*
 * A heat map as PNG, to be freed. x and y are "m", "tau", "eps" or "lmin". Rows that are not there
 * yet leave grey cells. width: of the map alone, in dots. ret_over: what the cells are means over,
 * obx_over_text.
 */
bool obx_results_heat(const struct obx_sweep *sweep, const struct obx_results_filter *filter,
	unsigned measure, const char *x, const char *y, uint32_t width, uint8_t **ret_png,
	size_t *ret_size, char ret_over[OBX_OVER_TEXT_MAX], struct obx_error *error);
/* JSON of the lists a filter can choose from: files, modes, grid, measures. */
void obx_results_lists(const struct obx_sweep *sweep, FILE *out);

#endif
