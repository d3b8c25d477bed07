/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The results of a sweep for the web page, while it runs and afterwards: a page of the table, a
 * heat map. Reads the store; the caller holds job->use.
 */
#ifndef OBX_RQA_RESULTS_H
#define OBX_RQA_RESULTS_H

#include <stdio.h>

#include "compute/command/rqa/over.h"
#include "compute/command/rqa/sweep.h"

#define OBX_RESULTS_HEAT_MIN 100
#define OBX_RESULTS_HEAT_MAX 2000
#define OBX_RESULTS_PAGE_MAX 500

/* Indices into the lists of the sweep; -1: everything. */
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
 * A heat map as PNG, which the caller frees. x and y are "m", "tau", "eps" or "lmin". Cells of rows
 * that do not exist yet are grey. width: of the map alone, in pixels. ret_over: what the cells are
 * means over, from obx_over_text.
 */
bool obx_results_heat(const struct obx_sweep *sweep, const struct obx_results_filter *filter,
	unsigned measure, const char *x, const char *y, uint32_t width, uint8_t **ret_png,
	size_t *ret_size, char ret_over[OBX_OVER_TEXT_MAX], struct obx_error *error);
/* The lists that a filter can select from, as JSON: files, modes, grid, measures. */
void obx_results_lists(const struct obx_sweep *sweep, FILE *out);

#endif
