/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures launches with pairs of events and holds them back until the session's share of the
 * device's time allows them. Every launch is charged: outside the session's part of the device
 * (keep.h) its full time, inside it the share of its time. One session per process, so one state.
 * Any thread that launches.
 */
#ifndef OBS_SHARE_H
#define OBS_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

struct obs_driver;

/* while it yields to others, a session still gets one launch through in this time */
#define OBS_YIELD_MAX_MS  100u
/*
 * A launch that has to wait for earlier ones waits so long, if none of them ends. What they wait for
 * may come after it.
 */
#define OBS_SHARE_PASS_MS 10000u

/* The functions below call `next` only. */
void obs_share_open(const struct obs_driver *next, uint32_t share);
/*
 * Blocks until the session may launch. graph: the launch is a graph's. Call obs_share_launched with
 * the result of the launch afterwards. A launch that events cannot measure is waited for there, and
 * charged by the clock as one outside the part: one that the driver has no events for, or of a stream
 * of its own while as many launches as can be measured wait for something.
 */
void obs_share_wait(CUstream stream, bool graph);
void obs_share_launched(CUstream stream, CUresult result);
/* A context is about to be destroyed, and its events with it. */
void obs_share_forget(void);

#endif
