/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A session that keeps running into its limits is warned, slowed, suspended, ended. One session per
 * process, so one state.
 */
#ifndef OBS_THROTTLE_H
#define OBS_THROTTLE_H

#include <stdint.h>

/* refusals, each halved after OBS_THROTTLE_HALF_S, at which a session is warned ... */
#define OBS_WARN_POINTS     64u
#define OBS_LIMIT_POINTS    512u  /* ... its refused calls cost it OBS_LIMIT_PAUSE_MS each ... */
#define OBS_SUSPEND_POINTS  2048u /* ... it is suspended for OBS_SUSPEND_MS ... */
#define OBS_SUSPENSIONS_MAX 3u    /* ... and ended when so many suspensions have not helped */
#define OBS_THROTTLE_HALF_S 10u
#define OBS_LIMIT_PAUSE_MS  1u
#define OBS_SUSPEND_MS      2000u

/* Once the session runs: `end` ends it, with the reason, and does not return. */
void obs_throttle_open(void (*end)(const char *why));
/* A call was refused by a limit: any thread. May sleep, may end the session. */
void obs_throttle_refused(const char *what);
/* Loop thread, now and then: points fade. */
void obs_throttle_tick(uint64_t now);

#endif
