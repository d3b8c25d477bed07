/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The driver's table with calls of device_times.h around what gives work to a stream. */
#ifndef OBS_DEVICE_CALLS_H
#define OBS_DEVICE_CALLS_H

struct obs_driver;

/* `next` is the table that is called; it must stay where it is. Executor. */
const struct obs_driver *obs_device_calls(const struct obs_driver *next);

#endif
