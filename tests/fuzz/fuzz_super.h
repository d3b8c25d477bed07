/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A supervisor without processes: its own loop, a channel to an admission process and channels and
 * stats pages of workers, whose other sides are the fuzz target's. Processes that it would kill do not
 * exist, those that it would start are not wanted. One per process; one thread.
 */
#ifndef OB_FUZZ_SUPER_H
#define OB_FUZZ_SUPER_H

#include "server/supervisor/super.h"

#define FUZZ_WORKERS 3u

extern struct obs_super fuzz_super;
extern int fuzz_admission; /* the admission process's end of its channel */
extern struct obs_proc *fuzz_worker[FUZZ_WORKERS];
extern int fuzz_worker_end[FUZZ_WORKERS]; /* their ends of their channels */

/* Once. */
void fuzz_super_start(void);
/* For each input: workers that have just been started; nothing has happened yet. */
void fuzz_super_begin(void);
/* What is due in the loop. */
void fuzz_super_turn(void);
/* Everything of this input is gone. */
void fuzz_super_end(void);

/* A worker writes bytes of the input into its stats page. */
void fuzz_stats_page_spoil(unsigned worker);

#endif
