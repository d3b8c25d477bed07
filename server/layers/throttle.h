/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reactions to a session that keeps running into its limits: a warning, slowed calls, suspension,
 * its end. Each refusal is a point; points are halved every OBS_THROTTLE_HALF_S. One session per
 * process, so one state.
 */
#ifndef OBS_THROTTLE_H
#define OBS_THROTTLE_H

#include <stdint.h>

/* points at which a session is warned ... */
#define OBS_WARN_POINTS     64u
#define OBS_LIMIT_POINTS    512u  /* ... its refused calls take OBS_LIMIT_PAUSE_MS longer ... */
#define OBS_SUSPEND_POINTS  2048u /* ... it is suspended for OBS_SUSPEND_MS ... */
#define OBS_SUSPENSIONS_MAX 3u    /* ... and ended after so many suspensions */
#define OBS_THROTTLE_HALF_S 10u
#define OBS_LIMIT_PAUSE_MS  1u
#define OBS_SUSPEND_MS      2000u

/* Call once the session runs. `end` must end it, with this reason, and not return. */
void obs_throttle_open(void (*end)(const char *why));
/* A limit refused a call: any thread. May sleep, may end the session. */
void obs_throttle_refused(const char *what);
/* Halves the points when it is time. Loop thread. */
void obs_throttle_tick(uint64_t now);

#endif
