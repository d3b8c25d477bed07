/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a session may take, enforced where nobody can go around it: around the driver's table.
 *
 *   quota.c  every driver call of the server that takes or gives memory is charged here, and the caps are what the driver seems to have
 *   share.c        launches are measured with event pairs and held back until the session's share
 *                  of the device's time has come round
 *   conduct.c      a session that keeps running into its limits is warned, slowed, suspended, ended
 *
 * One session per process, so one state. Wrapped before the driver is used; the limits may be
 * lowered until the first record is executed.
 */
#ifndef OBS_QUOTA_H
#define OBS_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "protocol/control.h"
#include "server/layers/hold.h"
#include "server/common/limits.h"

struct obs_driver;
struct obs_exec;
struct obs_session;

/* refusals, each halved after OBS_CONDUCT_HALF_S, at which a session is warned ... */
#define OBS_WARN_POINTS     64u
#define OBS_LIMIT_POINTS    512u  /* ... its refused calls cost it OBS_LIMIT_PAUSE_MS each ... */
#define OBS_SUSPEND_POINTS  2048u /* ... it is suspended for OBS_SUSPEND_MS ... */
#define OBS_SUSPENSIONS_MAX 3u    /* ... and ended when so many suspensions have not helped */
#define OBS_CONDUCT_HALF_S  10u
#define OBS_LIMIT_PAUSE_MS  1u
#define OBS_SUSPEND_MS      2000u
/* a session of lower priority gets a launch through so often at least */
#define OBS_YIELD_MAX_MS    100u

/* The limits in force. */
extern struct obs_limits obs_quota_limits;
/* Whom they hold; NULL before the hello. */
extern struct obs_session *obs_quota_session;

/*
 * quota.c. Puts the layer around the table: lib->table becomes the quota's, with the old
 * entries behind it.
 */
void obs_quota_wrap(struct obs_driver *table);
/*
 * After the hello: the client's own wishes; devices in the welcome show the cap; launches are
 * wrapped when they must be.
 */
void obs_quota_hello(struct obs_session *session, const struct obp_hello *hello);
/*
 * Charges memory that a driver takes without a call of its own for it: a module's image.
 * CUDA_ERROR_OUT_OF_MEMORY when the cap is reached.
 */
CUresult obs_quota_charge(uint32_t device, uint64_t bytes);
void obs_quota_discharge(uint32_t device, uint64_t bytes);
/* The same of the budget of host memory; it is given back by obs_hold_give. */
CUresult obs_quota_host(enum obs_purpose purpose, uint64_t bytes);
/*
 * May there be one more stream, event or function; one more module? CUDA_ERROR_OUT_OF_MEMORY if
 * not, or x->refused. Executor.
 */
CUresult obs_quota_handle(struct obs_exec *x);
CUresult obs_quota_module(struct obs_exec *x);

/* share.c. Calls of `next` only. */
void obs_share_open(const struct obs_driver *next, uint32_t share);
/*
 * Blocks until a launch is the session's turn; then obs_share_launched with what the launch
 * returned.
 */
void obs_share_wait(CUstream stream);
void obs_share_launched(CUstream stream, CUresult result);
/* A context is about to go, and its events with it. */
void obs_share_forget(void);

/* conduct.c. A call was refused by a limit: any thread. May sleep, may end the session. */
void obs_conduct_refused(const char *what);
/* Loop thread, now and then: points fade. */
void obs_conduct_tick(uint64_t now);

#endif
