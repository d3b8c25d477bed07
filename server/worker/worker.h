/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The worker: a process that serves one session and ends. Main thread only. */
#ifndef OBS_WORKER_H
#define OBS_WORKER_H

#include "server/common/options.h"

/*
 * Prepares, waits for a session from the supervisor on descriptor OBS_HANDOFF_FD and serves it.
 * Returns the exit status, if at all.
 */
int obs_worker_run(const struct obs_options *options);
/* Tries to initialise the driver. Exit status 0: it can be used. */
int obs_worker_probe(const struct obs_options *options);

#endif
