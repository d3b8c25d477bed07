/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The sweep that the web page runs: one at a time, on a separate thread. Its progress is recorded
 * as events, each a line of JSON with a number. They are kept in a ring, so that a page that
 * connects again receives what it missed. All functions may be called from any thread.
 *
 *     idle -> reading -> running -> writing -> completed | failed | stopped -> (the next start)
 */
#ifndef OBX_RQA_JOB_H
#define OBX_RQA_JOB_H

#include <pthread.h>

#include "compute/command/rqa/sweep.h"

#define OBX_JOB_EVENTS_MAX  512
#define OBX_JOB_EVENT_BYTES 1536

enum obx_job_phase {
	OBX_JOB_IDLE,
	OBX_JOB_READING,
	OBX_JOB_RUNNING,
	OBX_JOB_WRITING,
	OBX_JOB_COMPLETED,
	OBX_JOB_FAILED,
	OBX_JOB_STOPPED
};

struct obx_job {
	pthread_mutex_t lock; /* guards everything except sweep */
	pthread_cond_t changed;
	enum obx_job_phase phase;
	bool closing, started; /* started: thread must be joined */
	pthread_t thread;
	uint64_t next_event; /* number of the next event; the first is 1 */
	char (*events)[OBX_JOB_EVENT_BYTES];
	char out[4096];
	unsigned failures;  /* logged for the current sweep */
	double progress_at; /* time of the last progress event, in seconds */
	/*
	 * guards sweep: held by readers of results, and by start, which replaces it. Taken before
	 * lock.
	 */
	pthread_mutex_t use;
	struct obx_sweep *sweep;
	bool open; /* the sweep's store may be read */
};

bool obx_job_init(struct obx_job *job);
/* Stops a running sweep and waits for its end. */
void obx_job_fini(struct obx_job *job);
/* Takes ownership of the sweep, also on failure. */
bool obx_job_start(struct obx_job *job, struct obx_sweep *sweep, struct obx_error *error);
void obx_job_stop(struct obx_job *job);
/* Wakes obx_job_wait, which returns -1 from then on. */
void obx_job_close(struct obx_job *job);
/*
 * Returns the event after number *seq, as "id: N\nevent: NAME\ndata: {...}\n\n". Waits up to
 * timeout_ms. Returns its length and advances *seq; 0: there was no event; -1: closing. A reader
 * that is too slow continues with the oldest event that is kept.
 */
int obx_job_wait(struct obx_job *job, uint64_t *seq, unsigned timeout_ms,
	char ret_text[OBX_JOB_EVENT_BYTES + 64]);
const char *obx_job_phase_name(enum obx_job_phase phase);

#endif
