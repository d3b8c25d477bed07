/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A progress bar on stderr for work that takes longer than a second, if stderr is a terminal (or
 * always, for tests, with OUTBOARD_PROGRESS=1). The main thread owns it. obx_progress_step may be
 * called from any thread, but by one at a time; the library's progress callbacks ensure that.
 */
#ifndef OBX_PROGRESS_H
#define OBX_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct obx_progress {
	const char *what;
	uint64_t begun, shown; /* ns */
	bool wanted, any;
};

void obx_progress_begin(struct obx_progress *p, const char *what);
/* done: 0..1; `p` is a struct obx_progress. */
void obx_progress_step(void *p, double done);
/* Removes the bar. */
void obx_progress_end(struct obx_progress *p);

#endif
