/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "tools/latency_row.h"
#include "tools/plot.h"

#define LEFT           130.0
#define BAR_WIDTH      430.0
#define ROW            34.0
#define HISTOGRAM_LEFT 620.0
#define HISTOGRAM_STEP 13.0
#define WIDTH          960.0

static const char *const colours[] = { "#4477aa", "#ee6677", "#ccbb44", "#228833", "#66ccee",
	"#aa3377", "#bbbbbb", "#222222" };
static const char *const part_names[OBX_PARTS] = { "client", "wire", "queue", "driver" };

static void begin(FILE *f, double width, double height)
{
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n",
		width, height);
	fprintf(f, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"white\"/>\n", width, height);
}

/* True when everything was written to the file. */
static bool finish(FILE *f)
{
	bool written;

	fprintf(f, "</svg>\n");
	written = !ferror(f);
	return fclose(f) == 0 && written;
}

static void bar(FILE *f, const struct obx_latency_row *row, double y, double scale)
{
	double x = LEFT;

	fprintf(f, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 8, y + 15,
		row->name);
	for (unsigned p = 0; p < OBX_PARTS; p++) {
		double w = row->part[p] * scale;

		fprintf(f,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"20\" fill=\"%s\"/>\n",
			x, y, w, colours[p]);
		x += w;
	}
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\">%.2f us</text>\n", x + 4, y + 14,
		row->p50);
}

static void histogram(FILE *f, const struct obx_latency_row *row, double y)
{
	unsigned top = 1;

	for (unsigned b = 0; b < OBX_LATENCY_BUCKETS; b++)
		top = ob_max(top, row->histogram[b]);
	for (unsigned b = 0; b < OBX_LATENCY_BUCKETS; b++) {
		double h = 26.0 * row->histogram[b] / top;

		if (row->histogram[b])
			fprintf(f,
				"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
				"fill=\"#888\"/>\n",
				HISTOGRAM_LEFT + b * HISTOGRAM_STEP, y + 24 - h, HISTOGRAM_STEP - 1,
				h);
	}
}

bool obx_plot_latency(
	const char *file, const struct obx_latency_row *rows, unsigned n, const char *sentence)
{
	double height = 110 + n * ROW, longest = 1e-9;
	FILE *f = fopen(file, "w");

	if (!f)
		return false;
	for (unsigned i = 0; i < n; i++)
		longest = ob_max(longest, rows[i].p50);
	begin(f, WIDTH, height);
	fprintf(f, "<text x=\"10\" y=\"20\" font-size=\"13\">%s</text>\n", sentence);
	for (unsigned p = 0; p < OBX_PARTS; p++)
		fprintf(f,
			"<rect x=\"%.0f\" y=\"34\" width=\"12\" height=\"12\" fill=\"%s\"/><text "
			"x=\"%.0f\" y=\"45\">%s</text>\n",
			LEFT + p * 80, colours[p], LEFT + p * 80 + 16, part_names[p]);
	fprintf(f, "<text x=\"%.0f\" y=\"45\">all samples, by powers of two</text>\n",
		HISTOGRAM_LEFT);
	for (unsigned i = 0; i < n; i++) {
		bar(f, &rows[i], 60 + i * ROW, BAR_WIDTH / longest);
		histogram(f, &rows[i], 58 + i * ROW);
	}
	for (unsigned b = 0; b < OBX_LATENCY_BUCKETS; b += 4)
		fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\">%g us</text>\n",
			HISTOGRAM_LEFT + b * HISTOGRAM_STEP, 72 + n * ROW,
			64e-3 * (double)(1u << b));
	return finish(f);
}

bool obx_plot_lines(const char *file, const char *title, const double *x, unsigned n_x,
	const char *const *names, double(*const *y), unsigned n_lines)
{
	const double left = 60, top = 40, width = 560, height = 320;
	double low = 1e9, high = 1e-9, from = log2(x[0]), to = log2(x[n_x - 1]);
	FILE *f = fopen(file, "w");

	if (!f)
		return false;
	for (unsigned s = 0; s < n_lines; s++)
		for (unsigned i = 0; i < n_x; i++)
			if (y[s][i] > 0) {
				low = ob_min(low, y[s][i]);
				high = ob_max(high, y[s][i]);
			}
	low = pow(10, floor(log10(low)));
	high = pow(10, ceil(log10(high)));
	begin(f, left + width + 200, top + height + 60);
	fprintf(f, "<text x=\"10\" y=\"20\" font-size=\"13\">%s</text>\n", title);
	for (double v = low; v <= high * 1.01; v *= 10) {
		double at = top + height - height * log10(v / low) / log10(high / low);

		fprintf(f,
			"<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" "
			"stroke=\"#ddd\"/><text x=\"%.0f\" y=\"%.1f\" "
			"text-anchor=\"end\">%g</text>\n",
			left, left + width, at, at, left - 6, at + 4, v);
	}
	for (unsigned i = 0; i < n_x; i += 2)
		fprintf(f, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">2^%.0f</text>\n",
			left + width * (log2(x[i]) - from) / (to - from), top + height + 18,
			log2(x[i]));
	for (unsigned s = 0; s < n_lines; s++) {
		fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
			colours[s % ob_count(colours)]);
		for (unsigned i = 0; i < n_x; i++)
			if (y[s][i] > 0)
				fprintf(f, "%.1f,%.1f ",
					left + width * (log2(x[i]) - from) / (to - from),
					top + height -
						height * log10(y[s][i] / low) / log10(high / low));
		fprintf(f, "\"/>\n<text x=\"%.0f\" y=\"%.0f\" fill=\"%s\">%s</text>\n",
			left + width + 12, top + 20 + s * 18, colours[s % ob_count(colours)],
			names[s]);
	}
	return finish(f);
}

bool obx_plot_bars(const char *file, const char *title, const char *const *rows, unsigned n_rows,
	const char *const *names, double(*const *y), unsigned n_series)
{
	const double left = 200, row = 18.0 * n_series + 10;
	double longest = 1e-9;
	FILE *f = fopen(file, "w");

	if (!f)
		return false;
	for (unsigned s = 0; s < n_series; s++)
		for (unsigned i = 0; i < n_rows; i++)
			longest = ob_max(longest, y[s][i]);
	begin(f, WIDTH, 80 + n_rows * row);
	fprintf(f, "<text x=\"10\" y=\"20\" font-size=\"13\">%s</text>\n", title);
	for (unsigned s = 0; s < n_series; s++)
		fprintf(f,
			"<rect x=\"%.0f\" y=\"34\" width=\"12\" height=\"12\" fill=\"%s\"/><text "
			"x=\"%.0f\" y=\"45\">%s</text>\n",
			left + s * 120, colours[s % ob_count(colours)], left + s * 120 + 16,
			names[s]);
	for (unsigned i = 0; i < n_rows; i++) {
		fprintf(f, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", left - 8,
			60 + i * row + row / 2, rows[i]);
		for (unsigned s = 0; s < n_series; s++) {
			double at = 60 + i * row + 18 * s,
			       w = (WIDTH - left - 120) * y[s][i] / longest;

			if (y[s][i] >= 0)
				fprintf(f,
					"<rect x=\"%.0f\" y=\"%.1f\" width=\"%.1f\" height=\"15\" "
					"fill=\"%s\"/><text x=\"%.1f\" y=\"%.1f\">%.3g</text>\n",
					left, at, w, colours[s % ob_count(colours)], left + w + 5,
					at + 12, y[s][i]);
		}
	}
	return finish(f);
}
