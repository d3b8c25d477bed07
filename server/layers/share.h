/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures launches with pairs of events and holds them back until the session's share of the
 * device's time allows them. One session per process, so one state. Any thread that launches.
 */
#ifndef OBS_SHARE_H
#define OBS_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

struct obs_driver;

/* while it yields to others, a session still gets one launch through in this time */
#define OBS_YIELD_MAX_MS 100u

/* The functions below call `next` only. */
void obs_share_open(const struct obs_driver *next, uint32_t share);
/*
 * Blocks until the session may launch. held: the share holds it back, and it is charged; otherwise
 * it only yields to sessions of higher priority, and is measured. Call obs_share_launched with the result of the launch
 * afterwards.
 */
void obs_share_wait(CUstream stream, bool held);
void obs_share_launched(CUstream stream, CUresult result);
/* A context is about to be destroyed, and its events with it. */
void obs_share_forget(void);

#endif
