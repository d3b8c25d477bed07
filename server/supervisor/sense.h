/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The supervisor's side of the sensors process (server/sensors/sensors.h): starts it, keeps the
 * last reading of each device, starts it again when it has died, kills it when it hangs. Without
 * it the answers lack temperatures and so on; nothing else depends on it. Loop's thread only.
 */
#ifndef OBS_SENSE_H
#define OBS_SENSE_H

#include "protocol/load.h"
#include "server/supervisor/super.h"

/* Starts the process if the driver is a GPU's, or --nvml names a library. */
void obs_sense_start(struct obs_super *super);
void obs_sense_stop(struct obs_super *super);
/*
 * Adds the last reading of the device with this UUID, unless it is too old. ret_version: set to
 * the version of NVIDIA's kernel driver, if known.
 */
void obs_sense_merge(const struct obs_super *super, const uint8_t uuid[16], struct obp_facts *facts,
	char ret_version[80]);
/*
 * The last error of the hardware (Xid) that the device has reported since the server's start; 0:
 * none.
 */
uint32_t obs_sense_xid(const struct obs_super *super, const uint8_t uuid[16]);

#endif
