/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Launches are measured with pairs of events and held back until the session's share of the
 * device's time has come round. One session per process, so one state. Threads: any that launches.
 */
#ifndef OBS_SHARE_H
#define OBS_SHARE_H

#include <stdint.h>

#include "base/cuda_types.h"

struct obs_driver;

/* a session of lower priority gets a launch through so often at least */
#define OBS_YIELD_MAX_MS 100u

/* All that follows calls `next` only. */
void obs_share_open(const struct obs_driver *next, uint32_t share);
/*
 * Blocks until a launch is the session's turn; then obs_share_launched with what the launch
 * returned.
 */
void obs_share_wait(CUstream stream);
void obs_share_launched(CUstream stream, CUresult result);
/* A context is about to go, and its events with it. */
void obs_share_forget(void);

#endif
