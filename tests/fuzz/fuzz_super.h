/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A supervisor without processes: its event loop, a channel to an admission process, and channels
 * and stats pages of workers. The fuzz target holds the other ends. Killing and starting processes
 * has no effect. One per process; one thread.
 */
#ifndef OB_FUZZ_SUPER_H
#define OB_FUZZ_SUPER_H

#include "server/supervisor/super.h"

#define FUZZ_WORKERS 3u

extern struct obs_super fuzz_super;
extern int fuzz_admission; /* the admission process's end of the channel */
extern struct obs_proc *fuzz_worker[FUZZ_WORKERS];
extern int fuzz_worker_end[FUZZ_WORKERS]; /* the workers' ends of the channels */

/* To be called once per process. */
void fuzz_super_start(void);
/* To be called for each input: sets the supervisor up with workers that have just been started. */
void fuzz_super_begin(void);
/* Runs everything that is due in the event loop. */
void fuzz_super_turn(void);
/* Removes all state of this input. */
void fuzz_super_end(void);

/* Writes bytes of the input into a worker's stats page. */
void fuzz_stats_page_spoil(unsigned worker);

#endif
