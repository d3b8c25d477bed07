/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The worker: a process of its own that serves one session and ends. Main thread only. */
#ifndef OBS_WORKER_H
#define OBS_WORKER_H

#include "server/common/options.h"

/*
 * Warms up, waits for a session from the supervisor on descriptor OBS_HANDOFF_FD, serves it. Does
 * not return but with an exit status.
 */
int obs_worker_run(const struct obs_options *options);
/* Exit status 0: the driver can be used. */
int obs_worker_probe(const struct obs_options *options);

#endif
