/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/figure.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "compute/command/rqa/out.h"
#include "tools/command.h"

uint32_t obx_figure_colour(double share)
{
	static const uint8_t stops[][3] = { { 24, 22, 74 }, { 45, 56, 128 }, { 36, 96, 146 },
		{ 28, 134, 142 }, { 52, 168, 118 }, { 128, 196, 82 }, { 236, 222, 74 } };
	const int last = sizeof stops / sizeof stops[0] - 1;
	double at = share * last;
	int low = share <= 0 ? 0 : share >= 1 ? last - 1 : (int)at;
	double part = share <= 0 ? 0 : share >= 1 ? 1 : at - low;
	uint32_t colour = 0;

	for (int k = 0; k < 3; k++)
		colour = colour << 8 |
			(uint32_t)(stops[low][k] + part * (stops[low + 1][k] - stops[low][k]) +
				0.5);
	return colour;
}

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

/* Loads the library once and keeps it. NULL: error has the reason. */
static obx_figure_render_fn *load(struct obx_error *error)
{
	static obx_figure_render_fn *render;
	obx_figure_render_fn *found;
	char path[4096];
	void *library;

	pthread_mutex_lock(&library_lock);
	if (!render) {
		if (!obx_look_for_file(OBX_FIGURE_LIBRARY, path, sizeof path))
			obx_error_set(error,
				"pictures need " OBX_FIGURE_LIBRARY
				", which is not installed; this build may have been made without "
				"cairo and pango: install libcairo2-dev and libpango1.0-dev and "
				"build it again with -Dplots=enabled");
		else if (!(library = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
			obx_error_set(error, "pictures need %s: %s", OBX_FIGURE_LIBRARY, dlerror());
		else if (!(render = (obx_figure_render_fn *)(uintptr_t)dlsym(
				   library, OBX_FIGURE_RENDER)))
			obx_error_set(
				error, "%s is of another version of Outboard: %s", path, dlerror());
	}
	found = render;
	pthread_mutex_unlock(&library_lock);
	return found;
}

bool obx_figure_encode(const struct obx_figure *figure, enum obx_figure_format format,
	uint8_t **ret_bytes, size_t *ret_size, struct obx_error *error)
{
	obx_figure_render_fn *render = load(error);
	char why[OBX_FIGURE_ERROR];

	if (!render)
		return false;
	if (!render(figure, format, ret_bytes, ret_size, why))
		return obx_error_set(error, "%s", why);
	return true;
}

bool obx_figure_write(const struct obx_figure *figure, const char *path, struct obx_error *error)
{
	size_t length = strlen(path), size;
	bool svg = length > 4 && strcasecmp(path + length - 4, ".svg") == 0, good;
	struct obx_out out;
	uint8_t *bytes;

	if (!obx_figure_encode(figure, svg ? OBX_FIGURE_SVG : OBX_FIGURE_PNG, &bytes, &size, error))
		return false;
	good = obx_out_open(&out, path, error);
	if (good) {
		fwrite(bytes, 1, size, out.file);
		good = obx_out_commit(&out, error);
		obx_out_abort(&out);
	}
	free(bytes);
	return good;
}
