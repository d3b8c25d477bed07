/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a session may take, enforced where nobody can go around it: around the driver's table.
 *
 *   quota.c  every driver call of the server that takes or gives memory is charged here, and the caps are what the driver seems to have
 *   share.c        launches are measured with event pairs and held back until the session's share
 *                  of the device's time has come round
 *   throttle.c      a session that keeps running into its limits is warned, slowed, suspended, ended
 *
 * One session per process, so one state. Wrapped before the driver is used; the limits may be
 * lowered until the first record is executed.
 */
#ifndef OBS_QUOTA_H
#define OBS_QUOTA_H

#include <stdint.h>

#include "base/cuda_types.h"
#include "server/common/limits.h"

struct obs_driver;
struct obp_hello;
struct obp_welcome;

/*
 * Puts the layer around the table: lib->table becomes the quota's, with the old
 * entries behind it.
 */
void obs_quota_wrap(struct obs_driver *table);
/*
 * After the hello: lowers the limits to what the client asks for, shows the caps in the welcome's
 * devices, wraps the launches of `table` where they must be. most_priority: the server's limit.
 */
void obs_quota_hello(struct obs_driver *table, struct obp_welcome *welcome,
	const struct obp_hello *hello, uint32_t most_priority);
/*
 * Charges memory that a driver takes without a call of its own for it: a module's image.
 * CUDA_ERROR_OUT_OF_MEMORY when the cap is reached.
 */
CUresult obs_quota_charge(uint32_t device, uint64_t bytes);
void obs_quota_discharge(uint32_t device, uint64_t bytes);
/* The same of the budget of host memory; it is given back by obs_hold_give. */
CUresult obs_quota_host(enum obs_purpose purpose, uint64_t bytes);
/* A limit was reached: counts it, see throttle.h. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult obs_quota_refused(const char *what);

#endif
