/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The devices of a session that has a ticket. The innermost layer around the driver's table is
 * generated (obs_devices_wrap in obs_driver.h): it translates every number of a device, so that
 * the layers and the worker above it know the session's devices only, 0 to n - 1. A number that is
 * not one of them never reaches the driver, wherever it comes from. Until obs_devices_restrict is
 * called, and in sessions without a ticket, the numbers are the driver's.
 *
 * One session per process, so one state. Set before the first record is executed; any thread then.
 */
#ifndef OBS_DEVICES_H
#define OBS_DEVICES_H

#include <stdint.h>

#include "protocol/obs_driver.h"

/* numbers: the driver's, n of them, 1 to OBP_DEVICE_MAX, in the order of the session. */
void obs_devices_restrict(const uint8_t *numbers, uint32_t n);
/* Takes the restriction back: tests only. */
void obs_devices_all(void);

#endif
