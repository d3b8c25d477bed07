/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Plots of measurements as SVG files: what `outboard bench` and the benches of the compute commands
 * draw. No state; any thread. Each function returns false with errno set when the file could not be
 * written.
 */
#ifndef OBX_PLOT_H
#define OBX_PLOT_H

#include <stdbool.h>

struct obx_latency_row;

/* One stacked bar for each row, its histogram beside it. */
bool obx_plot_latency(
	const char *file, const struct obx_latency_row *rows, unsigned n, const char *sentence);
/* Lines over sizes that rise by powers of two, on logarithmic axes; y[s][i] < 0: no point. */
bool obx_plot_lines(const char *file, const char *title, const double *x, unsigned n_x,
	const char *const *names, double(*const *y), unsigned n_lines);
/* A group of bars a row, one for each series; y[s][i] < 0: none. */
bool obx_plot_bars(const char *file, const char *title, const char *const *rows, unsigned n_rows,
	const char *const *names, double(*const *y), unsigned n_series);

#endif
