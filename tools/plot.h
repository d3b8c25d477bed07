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

/* Draws one stacked bar for each row, with its histogram beside it. */
bool obx_plot_latency(
	const char *file, const struct obx_latency_row *rows, unsigned n, const char *sentence);
/* Draws lines over sizes that are powers of two, on logarithmic axes. y[s][i] < 0: no point. */
bool obx_plot_lines(const char *file, const char *title, const double *x, unsigned n_x,
	const char *const *names, double(*const *y), unsigned n_lines);
/* Draws a group of bars per row, with one bar for each series. y[s][i] < 0: no bar. */
bool obx_plot_bars(const char *file, const char *title, const char *const *rows, unsigned n_rows,
	const char *const *names, double(*const *y), unsigned n_series);

#endif
