/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * NVIDIA's management library, loaded at run time; every function of it is optional. One library
 * in a process; one thread.
 */
#ifndef OBS_NVML_H
#define OBS_NVML_H

#include "base/cause.h"
#include "server/sensors/reading.h"

/* Loads and initialises the library at `path`. OB_ERR_DRIVER: *ret_cause says why. */
enum ob_err obs_nvml_open(const char *path, struct ob_cause *ret_cause);
/* Number of devices, at most OBP_DEVICE_MAX. */
uint32_t obs_nvml_count(void);
/*
 * Reads a device. False: it has no UUID, or it is lost; one that has reported an error of the
 * hardware is still told. Blocks as long as the library does.
 */
bool obs_nvml_read(uint32_t index, struct obs_reading *ret);

#endif
