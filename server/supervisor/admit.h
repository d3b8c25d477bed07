/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The supervisor's end of the admission process: starts it, starts another when it dies, lists for
 * it which sessions may be joined, takes what it hands on. Loop's thread only.
 */
#ifndef OBS_ADMIT_H
#define OBS_ADMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "server/common/handoff.h"

struct obs_super;
struct obs_proc;

struct obs_admit {
	uv_process_t process;
	uv_poll_t channel;
	uv_timer_t restart;
	int fd;                    /* the channel; -1: there is no process */
	struct obs_routes *routes; /* the sessions that may be joined; NULL: not started */
	int routes_fd;             /* of it, for each process that is started */
	unsigned closes_left;
	unsigned deaths; /* in a row */
	uint64_t started_ns;
	bool stopping;
};

/* Once the listening sockets are open. False: it cannot be started; the reason is in the log. */
bool obs_admit_start(struct obs_super *super);
/* A session begins, before its worker is told: from now on it may be joined. */
void obs_admit_session(struct obs_super *super, const struct obs_proc *proc);
void obs_admit_gone(struct obs_super *super, uint64_t route);
/*
 * One message of the process, which strangers may have taken over: obs_handoff_recv has checked its
 * form, and nothing else of it is believed.
 */
void obs_admit_take(struct obs_super *super, struct obs_handoff *message, int fds[OBS_HANDOFF_FDS]);
/* Ends it for good. */
void obs_admit_stop(struct obs_super *super);

#endif
