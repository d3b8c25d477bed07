/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The sensors process: reads temperature, power, clocks and so on of the server's GPUs from
 * NVIDIA's management library and sends them to the supervisor twice a second. A process of its
 * own, because that library may hang or crash. It has no connection to a client. Ends with the
 * supervisor.
 */
#ifndef OBS_SENSORS_H
#define OBS_SENSORS_H

#include "server/common/options.h"

/* Returns the exit status: 0 when the supervisor has ended, 1 when the library cannot be used. */
int obs_sensors_run(const struct obs_options *options);

#endif
