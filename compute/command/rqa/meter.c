/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/meter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "compute/command/rqa/device.h"
#include "compute/command/rqa/format.h"

#define BAR_WIDTH        30
#define TERMINAL_PERIOD  0.1
#define PLAIN_PERIOD     10.0
#define LINE_MAX_BYTES   400
#define FALLBACK_COLUMNS 80

bool obx_meter_parse(const char *text, enum obx_meter_mode *ret_mode)
{
	static const char *const words[] = { "auto", "always", "never" };

	for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(text, words[i]) == 0) {
			*ret_mode = (enum obx_meter_mode)i;
			return true;
		}
	return false;
}

void obx_meter_init(struct obx_meter *meter, enum obx_meter_mode mode)
{
	*meter = (struct obx_meter){ .terminal = isatty(2), .off = mode == OBX_METER_NEVER };
	meter->last = mode == OBX_METER_ALWAYS ? -1e9 : (double)ob_clock_ns() / (double)OB_SECOND;
	meter->shown = mode == OBX_METER_ALWAYS;
}

static unsigned columns(void)
{
	struct winsize size;

	return ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col
								    : FALLBACK_COLUMNS;
}

void obx_meter_show(struct obx_meter *meter, double share, double elapsed, double eta,
	const char *text, bool last)
{
	double now = (double)ob_clock_ns() / (double)OB_SECOND;
	char line[LINE_MAX_BYTES], bar[BAR_WIDTH + 1], spent[24], left[24];
	unsigned full;
	int length;

	if (meter->off || (last && !meter->shown) ||
		(!last && now - meter->last < (meter->terminal ? TERMINAL_PERIOD : PLAIN_PERIOD)))
		return;
	meter->last = now;
	meter->shown = true;
	share = share < 0 || isnan(share) ? 0 : share > 1 ? 1 : share;
	full = (unsigned)(share * BAR_WIDTH);
	memset(bar, '.', BAR_WIDTH);
	memset(bar, '#', full);
	bar[BAR_WIDTH] = 0;
	obx_time_print(elapsed, spent, sizeof spent);
	obx_time_print(eta, left, sizeof left);
	length = snprintf(line, sizeof line, "[%s] %5.1f %%  %s spent, %s left, %.0f MiB  %s", bar,
		share * 100, spent, left, (double)obx_memory_resident() / (1 << 20), text);
	if (!meter->terminal) {
		fprintf(stderr, "%s\n", line);
		return;
	}
	if ((unsigned)length >= columns()) /* a line that wraps cannot be redrawn */
		line[columns() - 1] = 0;
	fprintf(stderr, "\r%s\033[K%s", line, last ? "\n" : "");
	fflush(stderr);
	meter->drawn = !last;
}

void obx_meter_clear(struct obx_meter *meter)
{
	if (meter->drawn)
		fprintf(stderr, "\r\033[K");
	meter->drawn = false;
}
