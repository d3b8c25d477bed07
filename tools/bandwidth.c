/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/bandwidth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "tools/bare.h"
#include "tools/command.h"
#include "tools/latency.h"

#define SIZES 8u                     /* 4 KiB, 16 KiB ... 64 MiB */
#define ROUNDS_MAX 64u

enum line { UP, DOWN, BARE_UP, BARE_DOWN, LINES };

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* GB/s of one copy of each kind; 0: a call failed. */
static double measure(const struct obx_bandwidth_calls *calls, enum line line, CUdeviceptr device, void *host, size_t bytes, struct obx_bare *bare)
{
	uint64_t began = ob_clock_ns();
	CUresult result = CUDA_SUCCESS;

	switch (line) {
	case UP:
		result = calls->to_device(device, host, bytes);
		if (result == CUDA_SUCCESS)
			result = calls->synchronize();
		break;
	case DOWN:
		result = calls->to_host(host, device, bytes);
		break;
	case BARE_UP:
		return (double)bytes / (double)obx_bare_send(bare, host, bytes);
	default:
		return (double)bytes / (double)obx_bare_receive(bare, host, bytes);
	}
	return result == CUDA_SUCCESS ? (double)bytes / (double)(ob_clock_ns() - began) : 0;
}

static void print_size(const double sizes[SIZES], unsigned i, double y[LINES][SIZES], bool json, bool comma)
{
	char text[32];

	ob_text_print_size((uint64_t)sizes[i], text, sizeof text);
	if (json)
		printf("%s\n  {\"name\": \"bandwidth: %s\", \"bytes\": %.0f, \"unit\": \"GB/s\", "
		       "\"up\": %.5g, \"down\": %.5g, \"bare_up\": %.5g, \"bare_down\": %.5g}",
		       comma ? "," : "", text, sizes[i], y[UP][i], y[DOWN][i], y[BARE_UP][i], y[BARE_DOWN][i]);
	else
		printf("%12s  HtoD %8.3f  bare %8.3f  ratio %.2f    DtoH %8.3f  bare %8.3f  ratio %.2f   GB/s\n", text, y[UP][i], y[BARE_UP][i],
		       y[UP][i] / y[BARE_UP][i], y[DOWN][i], y[BARE_DOWN][i], y[DOWN][i] / y[BARE_DOWN][i]);
	fflush(stdout);
}

/* Half of the best rate is reached at this size: below, the round trip costs more than the bytes. */
static void sentence_make(const double sizes[SIZES], double y[LINES][SIZES], char *ret, size_t size)
{
	double best = 0;
	unsigned half = 0;
	char text[32];

	for (unsigned i = 0; i < SIZES; i++)
		best = ob_max(best, y[UP][i]);
	while (half < SIZES - 1 && y[UP][half] < best / 2)
		half++;
	ob_text_print_size((uint64_t)sizes[half], text, sizeof text);
	snprintf(ret, size, "Copies to the device reach %.2f GB/s (%.0f %% of the bare transport at the largest size) and half of that from %s on: "
		 "smaller ones wait for the round trip.", best, 100 * y[UP][SIZES - 1] / y[BARE_UP][SIZES - 1], text);
}

int obx_bandwidth_run(const struct obx_bandwidth_calls *calls, CUdeviceptr device, void *host,
	const struct obt_url *url, unsigned rounds, bool json, bool any_row,
	const char *plot)
{
	static const char *const names[LINES] = { "HtoD", "DtoH", "bare, to", "bare, from" };
	double sizes[SIZES], y[LINES][SIZES], values[LINES][ROUNDS_MAX], *lines[LINES];
	char sentence[256];
	struct obx_bare bare;

	rounds = ob_min(rounds, ROUNDS_MAX);
	if (!obx_bare_open(&bare, url, false))
		return OBX_EXIT_UNWELL;
	for (unsigned i = 0; i < SIZES; i++) {
		sizes[i] = (double)(4096u << 2 * i);
		for (unsigned r = 0; r < rounds; r++)
			for (unsigned l = 0; l < LINES; l++)
				values[l][r] = measure(calls, (enum line)l, device, host, (size_t)sizes[i], &bare);
		for (unsigned l = 0; l < LINES; l++) {
			qsort(values[l], rounds, sizeof values[l][0], by_value);
			y[l][i] = values[l][rounds / 2];
			if (values[l][0] <= 0) {
				fprintf(stderr, "outboard bench: a copy failed; 'outboard check' tells whether the server is well\n");
				obx_bare_close(&bare);
				return OBX_EXIT_UNWELL;
			}
		}
		print_size(sizes, i, y, json, any_row || i);
	}
	obx_bare_close(&bare);
	sentence_make(sizes, y, sentence, sizeof sentence);
	if (json)
		printf(",\n  {\"name\": \"bandwidth: verdict\", \"text\": \"%s\"}", sentence);
	else
		printf("\n%s\n", sentence);
	for (unsigned l = 0; l < LINES; l++)
		lines[l] = y[l];
	if (plot && !obx_plot_lines(plot, sentence, sizes, SIZES, names, lines, LINES)) {
		fprintf(stderr, "outboard bench: %s: %s\n", plot, strerror(errno));
		return OBX_EXIT_UNWELL;
	}
	return 0;
}
