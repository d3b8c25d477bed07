/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

#define BAR_WIDTH        30
#define FIRST_AFTER      OB_SECOND /* of obx_progress_begin */
#define TERMINAL_PERIOD  (100 * OB_MS)
#define PLAIN_PERIOD     (10 * OB_SECOND)
#define LINE_MAX_BYTES   400
#define FALLBACK_COLUMNS 80

static uint64_t period(const struct obx_progress *p)
{
	return p->terminal ? TERMINAL_PERIOD : PLAIN_PERIOD;
}

void obx_progress_init(struct obx_progress *p, enum obx_progress_mode mode)
{
	bool always = mode == OBX_PROGRESS_ALWAYS;

	*p = (struct obx_progress){ .terminal = isatty(STDERR_FILENO),
		.off = mode == OBX_PROGRESS_NEVER,
		.shown = always,
		.begun = ob_clock_ns() };
	p->next = always ? 0 : p->begun + period(p);
}

static unsigned columns(void)
{
	struct winsize size;

	return ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col
								    : FALLBACK_COLUMNS;
}

/* "0:07", "12:40", "3:05:00"; "-:--" when not known. */
static void time_print(double seconds, char *ret_text, size_t size)
{
	unsigned long long s;

	if (!(seconds >= 0) || seconds > 1e9) {
		snprintf(ret_text, size, "-:--");
		return;
	}
	s = (unsigned long long)(seconds + 0.5);
	if (s >= 3600)
		snprintf(ret_text, size, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(ret_text, size, "%llu:%02llu", s / 60, s % 60);
}

uint64_t obx_memory_resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (file) {
		if (fscanf(file, "%*u %llu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void obx_progress_show(struct obx_progress *p, double share, double elapsed, double eta,
	const char *text, bool last)
{
	uint64_t now = p->off ? 0 : ob_clock_ns();
	char line[LINE_MAX_BYTES], bar[BAR_WIDTH + 1], spent[24], left[24];
	int length;

	if (p->off || (last && !p->shown) || (!last && now < p->next))
		return;
	p->next = now + period(p);
	p->shown = true;
	share = share < 0 || isnan(share) ? 0 : share > 1 ? 1 : share;
	memset(bar, '.', BAR_WIDTH);
	memset(bar, '#', (size_t)(share * BAR_WIDTH));
	bar[BAR_WIDTH] = 0;
	time_print(elapsed, spent, sizeof spent);
	time_print(eta, left, sizeof left);
	length = snprintf(line, sizeof line, "[%s] %5.1f %%  %s spent, %s left, %.0f MiB  %s", bar,
		share * 100, spent, left, (double)obx_memory_resident() / (1 << 20), text);
	if (!p->terminal) {
		fprintf(stderr, "%s\n", line);
		return;
	}
	if ((unsigned)length >= columns()) /* a line that wraps cannot be redrawn */
		line[columns() - 1] = 0;
	fprintf(stderr, "\r%s\033[K%s", line, last ? "\n" : "");
	fflush(stderr);
	p->drawn = !last;
}

void obx_progress_clear(struct obx_progress *p)
{
	if (p->drawn)
		fprintf(stderr, "\r\033[K");
	p->drawn = false;
}

void obx_progress_begin(struct obx_progress *p, const char *what)
{
	const char *forced = getenv("OUTBOARD_PROGRESS");
	bool force = forced && strcmp(forced, "1") == 0;

	obx_progress_init(p, OBX_PROGRESS_AUTO);
	p->what = what;
	p->off = !p->terminal && !force;
	p->terminal = true; /* never lines */
	p->next = force ? 0 : p->begun + FIRST_AFTER;
}

void obx_progress_step(void *arg, double done)
{
	struct obx_progress *p = arg;
	double elapsed = p->off ? 0 : (double)(ob_clock_ns() - p->begun) / (double)OB_SECOND;

	obx_progress_show(
		p, done, elapsed, done > 0.01 ? elapsed * (1 - done) / done : NAN, p->what, false);
}

void obx_progress_end(struct obx_progress *p)
{
	obx_progress_clear(p);
}
