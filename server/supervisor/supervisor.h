/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The supervisor's start, its signals and its end. */
#ifndef OBS_SUPERVISOR_H
#define OBS_SUPERVISOR_H

#include "server/supervisor/super.h"

/* Runs until drained. The exit status. */
int obs_super_run(struct obs_options *options);

/*
 * Sets the functions at the end of struct obs_super. obs_super_run does it; tests with a supervisor
 * of their own call it.
 */
void obs_super_listen(struct obs_super *super);

#endif
