/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "compute/command/progress.h"

#define FIRST_AFTER OB_SECOND
#define EVERY       (100 * OB_MS)
#define WIDTH       40

void obx_progress_begin(struct obx_progress *p, const char *what)
{
	const char *forced = getenv("OUTBOARD_PROGRESS");
	bool force = forced && strcmp(forced, "1") == 0;

	*p = (struct obx_progress){
		.what = what, .begun = ob_clock_ns(), .wanted = force || isatty(STDERR_FILENO)
	};
	p->shown = force ? 0 : p->begun + FIRST_AFTER - EVERY;
}

void obx_progress_step(void *arg, double done)
{
	struct obx_progress *p = arg;
	uint64_t now = p->wanted ? ob_clock_ns() : 0;
	char bar[WIDTH + 1];
	double left;

	if (!p->wanted || now < p->shown + EVERY)
		return;
	done = done < 0 ? 0 : done > 1 ? 1 : done;
	memset(bar, '.', WIDTH);
	memset(bar, '#', (size_t)(done * WIDTH));
	bar[WIDTH] = 0;
	left = done > 0.01 ? (double)(now - p->begun) / 1e9 * (1 - done) / done : 0;
	fprintf(stderr, "\r%s [%s] %3.0f %%, %.0f s left \033[K", p->what, bar, done * 100, left);
	fflush(stderr);
	p->shown = now;
	p->any = true;
}

void obx_progress_end(struct obx_progress *p)
{
	if (p->any)
		fprintf(stderr, "\r\033[K");
	p->any = false;
}
