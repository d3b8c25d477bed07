/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Progress on standard error: on a terminal one line that is redrawn ten times a second, else one
 * line every ten seconds and a last one. The main thread owns it. obx_progress_step and
 * obx_progress_show may be called from any thread, but by one at a time; the library's progress
 * callbacks ensure that.
 */
#ifndef OBX_PROGRESS_H
#define OBX_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

enum obx_progress_mode { OBX_PROGRESS_AUTO, OBX_PROGRESS_ALWAYS, OBX_PROGRESS_NEVER };

struct obx_progress {
	const char *what;
	/* drawn: the bar is on the screen; shown: it was at some time */
	bool terminal, off, drawn, shown;
	uint64_t begun, next; /* ns: start of the work; nothing is printed before `next` */
};

/*
 * ALWAYS: also lines if standard error is not a terminal, and before ten seconds have passed. NEVER:
 * nothing.
 */
void obx_progress_init(struct obx_progress *p, enum obx_progress_mode mode);
/*
 * share 0..1; elapsed and eta in seconds, eta NaN: unknown. text follows them, with the memory of
 * this process. last: the final state, printed only if something was printed before.
 */
void obx_progress_show(struct obx_progress *p, double share, double elapsed, double eta,
	const char *text, bool last);
/* Removes the bar to make room for another line; the next show draws it again. */
void obx_progress_clear(struct obx_progress *p);

/*
 * For work that says only how much of it is done: a bar if it takes longer than a second and
 * standard error is a terminal (or always, for tests, with OUTBOARD_PROGRESS=1).
 */
void obx_progress_begin(struct obx_progress *p, const char *what);
/* done: 0..1; `p` is a struct obx_progress. */
void obx_progress_step(void *p, double done);
/* Removes the bar. */
void obx_progress_end(struct obx_progress *p);

/* Resident memory of this process in bytes, from /proc; 0 if unknown. */
uint64_t obx_memory_resident(void);

#endif
