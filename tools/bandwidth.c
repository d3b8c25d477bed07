/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/bandwidth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "tools/bare.h"
#include "tools/command.h"
#include "tools/plot.h"

#define SIZES          8u /* 4 KiB, 16 KiB ... 64 MiB */
#define SIZE_MAX_BYTES (4096u << 2 * (SIZES - 1))
#define ROUNDS_MAX     64u
/* copies of the largest size before measuring: connections reach their rate, codecs are chosen */
#define WARM_COPIES    3

enum direction { UP, DOWN, DIRECTIONS };
enum line { BARE = OBX_WAYS, LINES };

static const char *const way_names[LINES] = { "plain", "packed", "striped", "bare" };

struct sweep {
	double sizes[SIZES];
	double rate[DIRECTIONS][LINES][SIZES]; /* GB/s */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ---- ways of copying ---- */

/* Numbers like a model's weights: only their exponents can be compressed. */
static void fill(void *host)
{
	float *x = host;
	uint64_t random = 1;

	for (size_t i = 0; i < SIZE_MAX_BYTES / sizeof *x; i++) {
		float sum = 0;

		for (int k = 0; k < 4; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			sum += (float)(random >> 40) / (float)(1 << 24) - 0.5f;
		}
		x[i] = sum * 0.05f;
	}
}

bool obx_bandwidth_start(struct obx_bandwidth *bandwidth)
{
	static const char *const environments[OBX_WAYS][4] = {
		{ "OUTBOARD_CODEC=none", "OUTBOARD_STRIPES=0", NULL },
		{ "OUTBOARD_CODEC=auto", "OUTBOARD_STRIPES=0", NULL },
		{ "OUTBOARD_CODEC=none", "OUTBOARD_STRIPES=4", "OUTBOARD_STRIPE_MIN=4M", NULL },
	};

	bandwidth->host = mmap(
		NULL, SIZE_MAX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (bandwidth->host == MAP_FAILED)
		return false;
	fill(bandwidth->host);
	for (unsigned i = 0; i < OBX_WAYS; i++)
		if (!obx_line_start(
			    &bandwidth->ways[i], environments[i], bandwidth->host, SIZE_MAX_BYTES))
			return false;
	return true;
}

void obx_bandwidth_stop(struct obx_bandwidth *bandwidth)
{
	for (unsigned i = 0; i < OBX_WAYS; i++)
		obx_line_stop(&bandwidth->ways[i]);
	munmap(bandwidth->host, SIZE_MAX_BYTES);
}

/* ---- measuring ---- */

/* GB/s of one copy; 0: it failed. */
static double measure(struct obx_bandwidth *bandwidth, unsigned line, enum direction direction,
	size_t bytes, struct obx_bare *bare)
{
	uint64_t ns;

	if (line != BARE)
		ns = obx_line_copy(&bandwidth->ways[line],
			direction == UP ? OBX_LINE_UP : OBX_LINE_DOWN, bytes);
	else
		ns = direction == UP ? obx_bare_send(bare, bandwidth->host, bytes)
				     : obx_bare_receive(bare, bandwidth->host, bytes);
	return ns ? (double)bytes / (double)ns : 0;
}

static bool size_sweep(struct obx_bandwidth *bandwidth, struct sweep *sweep, unsigned i,
	unsigned rounds, struct obx_bare *bare)
{
	static double values[DIRECTIONS][LINES][ROUNDS_MAX];

	for (unsigned r = 0; r < rounds; r++)
		for (unsigned l = 0; l < LINES; l++)
			for (unsigned d = 0; d < DIRECTIONS; d++)
				values[d][l][r] = measure(bandwidth, l, (enum direction)d,
					(size_t)sweep->sizes[i], bare);
	for (unsigned l = 0; l < LINES; l++)
		for (unsigned d = 0; d < DIRECTIONS; d++) {
			qsort(values[d][l], rounds, sizeof values[d][l][0], by_value);
			sweep->rate[d][l][i] = values[d][l][rounds / 2];
			if (values[d][l][0] <= 0)
				return false;
		}
	return true;
}

/* ---- results ---- */

static void json_size(struct ob_json *json, const struct sweep *s, unsigned i, const char *size)
{
	static const char *const keys[DIRECTIONS] = { "up", "down" };

	ob_json_break(json);
	ob_json_object(json, NULL);
	ob_json_textf(json, "name", "bandwidth: %s", size);
	ob_json_fixed(json, "bytes", s->sizes[i], 0);
	ob_json_text(json, "unit", "GB/s");
	for (unsigned d = 0; d < DIRECTIONS; d++) {
		ob_json_double(json, keys[d], s->rate[d][OBX_PLAIN][i], 5);
		for (unsigned l = 1; l < LINES; l++) {
			char key[32];

			snprintf(key, sizeof key, "%s_%s", way_names[l], keys[d]);
			ob_json_double(json, key, s->rate[d][l][i], 5);
		}
	}
	ob_json_end(json);
}

static void text_size(const struct sweep *s, unsigned i, const char *size)
{
	static const char *const directions[DIRECTIONS] = { "HtoD", "DtoH" };

	if (i == 0)
		printf("%12s %44s %44s\n%12s", "GB/s", "to the device", "from the device", "");
	for (unsigned d = 0; i == 0 && d < DIRECTIONS; d++)
		printf("      %10s %8s %8s %8s    ", way_names[BARE], way_names[OBX_PLAIN],
			way_names[OBX_PACKED], way_names[OBX_STRIPED]);
	printf("%s%12s", i ? "" : "\n", size);
	for (unsigned d = 0; d < DIRECTIONS; d++)
		printf(" %s %10.3f %8.3f %8.3f %8.3f    ", directions[d], s->rate[d][BARE][i],
			s->rate[d][OBX_PLAIN][i], s->rate[d][OBX_PACKED][i],
			s->rate[d][OBX_STRIPED][i]);
	putchar('\n');
}

static void print_size(const struct sweep *s, unsigned i, struct ob_json *json)
{
	char size[32];

	ob_text_print_size((uint64_t)s->sizes[i], size, sizeof size);
	if (json)
		json_size(json, s, i, size);
	else
		text_size(s, i, size);
	fflush(stdout);
}

/* Prints which way is best for large copies in one direction. A difference below 10% is ignored. */
static int best_text(const struct sweep *s, enum direction d, char *ret, size_t size)
{
	const double *at[LINES];
	unsigned best = OBX_PLAIN;

	for (unsigned l = 0; l < LINES; l++)
		at[l] = &s->rate[d][l][SIZES - 1];
	for (unsigned l = 1; l < OBX_WAYS; l++)
		if (*at[l] > 1.1 * *at[OBX_PLAIN] && *at[l] > *at[best])
			best = l;
	if (best == OBX_PLAIN)
		return snprintf(ret, size, "%s the device: plain (%.2f GB/s)",
			d == UP ? "To" : "from", *at[OBX_PLAIN]);
	return snprintf(ret, size, "%s the device: %s (%.2f GB/s, %.1f times plain)",
		d == UP ? "To" : "from", way_names[best], *at[best], *at[best] / *at[OBX_PLAIN]);
}

/*
 * Finds the size at which half of the best rate is reached. Below it, the round trip costs more
 * than the bytes. `half_bare` is that size for the bare transport; the difference between the two
 * is our overhead.
 */
static void sentence_make(const struct sweep *s, char *ret, size_t size)
{
	const double *ours = s->rate[UP][OBX_PLAIN], *bare = s->rate[UP][BARE];
	double best = 0, best_bare = 0;
	unsigned half = 0, half_bare = 0;
	char text[32], text_bare[32];

	for (unsigned i = 0; i < SIZES; i++) {
		best = ob_max(best, ours[i]);
		best_bare = ob_max(best_bare, bare[i]);
	}
	while (half < SIZES - 1 && ours[half] < best / 2)
		half++;
	while (half_bare < SIZES - 1 && bare[half_bare] < best_bare / 2)
		half_bare++;
	ob_text_print_size((uint64_t)s->sizes[half], text, sizeof text);
	ob_text_print_size((uint64_t)s->sizes[half_bare], text_bare, sizeof text_bare);
	snprintf(ret, size,
		"Plain copies to the device reach %.2f GB/s (%.0f %% of this machine's bare "
		"transport at the largest size) and half of that "
		"from %s on, a bare exchange of the same size its half from %s on: below, the "
		"round trip and the copy into the ring show.",
		best, 100 * ours[SIZES - 1] / bare[SIZES - 1], text, text_bare);
}

static bool plot_write(const char *plot, const char *title, struct sweep *s)
{
	static const char *const names[] = { "HtoD plain", "HtoD packed", "HtoD striped",
		"bare, to", "DtoH plain", "DtoH packed", "DtoH striped", "bare, from" };
	enum { CURVES = (int)DIRECTIONS * (int)LINES };
	double *lines[CURVES];

	for (unsigned d = 0; d < DIRECTIONS; d++)
		for (unsigned l = 0; l < LINES; l++)
			lines[d * LINES + l] = s->rate[d][l];
	if (obx_plot_lines(plot, title, s->sizes, SIZES, names, lines, CURVES))
		return true;
	fprintf(stderr, "outboard bench: %s: %s\n", plot, strerror(errno));
	return false;
}

static bool failed(void)
{
	fprintf(stderr, "outboard bench: a copy failed; 'outboard check' tests the server\n");
	return false;
}

static bool sweep_run(struct obx_bandwidth *bandwidth, struct sweep *sweep, unsigned rounds,
	struct obx_bare *bare, struct ob_json *json)
{
	for (unsigned l = 0; l < OBX_WAYS; l++)
		for (unsigned k = 0; k < WARM_COPIES * DIRECTIONS; k++)
			if (measure(bandwidth, l, k % 2 ? DOWN : UP, SIZE_MAX_BYTES, bare) <= 0)
				return failed();
	for (unsigned i = 0; i < SIZES; i++) {
		sweep->sizes[i] = (double)(4096u << 2 * i);
		if (!size_sweep(bandwidth, sweep, i, rounds, bare))
			return failed();
		print_size(sweep, i, json);
	}
	return true;
}

int obx_bandwidth_run(struct obx_bandwidth *bandwidth, const struct obt_url *url, unsigned rounds,
	struct ob_json *json, const char *plot)
{
	char sentence[400], up[120], down[120];
	struct sweep sweep;
	struct obx_bare bare;
	bool ran;

	if (!obx_bare_open(&bare, url, false))
		return OBX_EXIT_UNWELL;
	ran = sweep_run(bandwidth, &sweep, ob_min(rounds, ROUNDS_MAX), &bare, json);
	obx_bare_close(&bare);
	if (!ran)
		return OBX_EXIT_UNWELL;
	sentence_make(&sweep, sentence, sizeof sentence);
	best_text(&sweep, UP, up, sizeof up);
	best_text(&sweep, DOWN, down, sizeof down);
	if (json) {
		ob_json_break(json);
		ob_json_object(json, NULL);
		ob_json_text(json, "name", "bandwidth: verdict");
		ob_json_text(json, "text", sentence);
		ob_json_textf(json, "best", "%s; %s", up, down);
		ob_json_end(json);
	} else {
		printf("\n%s\nBest for large copies on this link: %s; %s.\n", sentence, up, down);
	}
	return plot && !plot_write(plot, sentence, &sweep) ? OBX_EXIT_UNWELL : 0;
}
